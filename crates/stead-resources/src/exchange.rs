//! One request of HTTPS and its answer, for protocols that prove each request by itself: nothing is repeated here, and no redirect is
//! followed.

use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::http::{HeaderMap, Request};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::transfer;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(30);

/// A client of a server.
pub struct ExchangeClient(Agent);

/// An answer, whatever its status is.
pub struct ExchangeAnswer {
    /// The status of HTTP.
    pub status: u16,
    headers: HeaderMap,
    /// The content.
    pub body: Vec<u8>,
}

/// A request of HTTP with its body.
pub struct ExchangeRequest<'a> {
    /// The method of HTTP.
    pub method: &'a str,
    /// The address.
    pub url: &'a str,
    /// The headers.
    pub headers: &'a [(&'a str, String)],
    /// The content.
    pub body: &'a [u8],
    /// How long all of it may take.
    pub patience: Duration,
    /// How many bytes of an answer are read.
    pub longest: u64,
}

impl ExchangeAnswer {
    /// A header by its name, if it is visible text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl ExchangeClient {
    /// A client that trusts what the system does, and the certificates of a text in PEM.
    ///
    /// # Errors
    /// When that text is not one of certificates.
    pub fn new(certificates: Option<&str>) -> Result<Self, String> {
        let mut roots = transfer::roots();
        let of_system = roots.len();
        for item in parse_pem(certificates.unwrap_or_default().as_bytes()) {
            match item.map_err(|error| error.to_string())? {
                PemItem::Certificate(certificate) => roots.push(certificate),
                _ => return Err("it has something else than certificates".to_owned()),
            }
        }
        if certificates.is_some() && roots.len() == of_system {
            return Err("it has no certificate".to_owned());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = RootCerts::new_with_certs(&roots);
        let tls = TlsConfig::builder().root_certs(roots).unversioned_rustls_crypto_provider(provider).build();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .tls_config(tls)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .user_agent(concat!("stead/", env!("CARGO_PKG_VERSION")));
        Ok(Self(config.build().into()))
    }

    /// Asks once.
    ///
    /// # Errors
    /// When there is no whole answer, with the reason in one line.
    pub fn ask(&self, asked: &ExchangeRequest<'_>) -> Result<ExchangeAnswer, String> {
        let mut request = Request::builder().method(asked.method).uri(asked.url);
        for (name, value) in asked.headers {
            request = request.header(*name, value);
        }
        let answered = if asked.method == "GET" {
            let request = request.body(()).map_err(|error| error.to_string())?;
            self.0.run(self.0.configure_request(request).timeout_global(Some(asked.patience)).build())
        } else {
            let request = request.body(asked.body).map_err(|error| error.to_string())?;
            self.0.run(self.0.configure_request(request).timeout_global(Some(asked.patience)).build())
        };
        let mut response = answered.map_err(|error| error.to_string())?;
        let body = response.body_mut().with_config().limit(asked.longest).read_to_vec();
        let body = body.map_err(|error| error.to_string())?;
        Ok(ExchangeAnswer { status: response.status().as_u16(), headers: response.headers().clone(), body })
    }
}
