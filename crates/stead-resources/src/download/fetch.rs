//! Fetching what a URL leads to, over HTTP, in as many transfers as it takes.
//!
//! Guarantees: no message has the user, the password, the query or the headers of a request; neither credentials nor
//! headers are sent to another host than the one that the document names, nor after a redirect from HTTPS to HTTP, which
//! is refused.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stead_core::call::{Failure, FailureKind};
use stead_host::provider::Context;
use stead_system::fs;
use ureq::http::{Response, StatusCode};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy};
use url::Url;

use super::Properties;
use super::followed::Validators;
use crate::credentials;
use crate::input::{failure, invalid};

/// How often a transfer that broke off is tried again without any progress.
const ATTEMPTS: u32 = 3;

/// The first pause before that; each one is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(250);

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 10;

/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_mins(1);

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(30);

/// What is asked for.
pub(super) struct Request<'a> {
    pub(super) url: &'a Url,
    pub(super) headers: &'a BTreeMap<&'a str, &'a str>,
    pub(super) proxy: Option<&'a str>,
    /// How long all of it may take.
    pub(super) timeout: Duration,
    pub(super) max_size: u64,
    /// Whether the server must say by what it tells this content from a later one.
    pub(super) is_followed: bool,
}

/// Fetches it into a file, from its begin, and returns by what the server tells it from others.
pub(super) fn fetch(cx: &Context, request: &Request<'_>, to: &File) -> Result<Validators, Failure> {
    let mut transfer =
        Transfer { asking: Asking::new(cx, request)?, to, received: 0, validators: Validators::default() };
    let (mut tries, mut pause) = (0, PAUSE);
    loop {
        let before = transfer.received;
        let failure = match transfer.attempt() {
            Ok(()) => return Ok(transfer.validators),
            Err(Broken::Refused(failure)) => return Err(failure),
            Err(Broken::Interrupted(failure)) => failure,
        };
        (tries, pause) = if transfer.received > before { (0, PAUSE) } else { (tries + 1, pause * 2) };
        transfer.asking.wait(tries, pause, failure)?;
    }
}

/// Returns whether the server has another content than the one that had these.
pub(super) fn has_changed(cx: &Context, request: &Request<'_>, known: &Validators) -> Result<bool, Failure> {
    let asking = Asking::new(cx, request)?;
    let (mut tries, mut pause) = (0, PAUSE);
    loop {
        let failure = match asking.has_changed(known) {
            Ok(changed) => return Ok(changed),
            Err(Broken::Refused(failure)) => return Err(failure),
            Err(Broken::Interrupted(failure)) => failure,
        };
        (tries, pause) = (tries + 1, pause * 2);
        asking.wait(tries, pause, failure)?;
    }
}

fn agent(request: &Request<'_>, roots: &[Certificate<'static>]) -> Result<Agent, Failure> {
    // Not for HTTPS alone: a redirect may lead there, and a proxy may be reached so.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = RootCerts::new_with_certs(roots);
    let tls = TlsConfig::builder().root_certs(roots).unversioned_rustls_crypto_provider(provider).build();
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .https_only(request.url.scheme() == "https")
        .tls_config(tls)
        .timeout_resolve(Some(CONNECT))
        .timeout_connect(Some(CONNECT))
        .timeout_per_read(Some(SILENCE))
        .user_agent(concat!("stead/", env!("CARGO_PKG_VERSION")));
    if let Some(proxy) = request.proxy {
        let proxy =
            Proxy::new(proxy).map_err(|_| invalid(Properties::PROXY, "'proxy' must be the URL of an HTTP proxy"))?;
        config = config.proxy(Some(proxy));
    }
    Ok(config.build().into())
}

/// The certificates that the system trusts, those of its administrator among them.
fn roots() -> Vec<Certificate<'static>> {
    let native = rustls_native_certs::load_native_certs();
    native.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect()
}

/// Why a transfer did not come to its end.
enum Broken {
    /// It may go on from where it is.
    Interrupted(Failure),
    /// Trying again helps nobody.
    Refused(Failure),
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

/// How one request is made, with all that it takes to come to an answer.
struct Asking<'a> {
    cx: &'a Context,
    request: &'a Request<'a>,
    agent: Agent,
    /// Whether the system trusts any certificate.
    has_roots: bool,
    until: Instant,
}

/// The headers of a request besides those of the instance.
type Headers<'h> = [(&'static str, &'h str)];

impl<'a> Asking<'a> {
    fn new(cx: &'a Context, request: &'a Request<'a>) -> Result<Self, Failure> {
        let until = Instant::now() + request.timeout;
        let roots = roots();
        Ok(Self { cx, request, agent: agent(request, &roots)?, has_roots: !roots.is_empty(), until })
    }

    fn has_changed(&self, known: &Validators) -> Result<bool, Broken> {
        let headers = [("if-none-match", &known.etag), ("if-modified-since", &known.last_modified)];
        let headers: Vec<_> = headers.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
        let response = self.follow(&headers)?;
        match response.status() {
            StatusCode::NOT_MODIFIED => Ok(false),
            // Some servers answer with the same content again.
            StatusCode::OK => Ok(!validators(&response).are_of_same(known)),
            status => Err(self.status(status)),
        }
    }

    /// The answer at the end of all redirects.
    fn follow(&self, headers: &Headers<'_>) -> Result<Response<Body>, Broken> {
        let mut url = self.request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.call(&url, headers)?;
            if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED {
                return Ok(response);
            }
            let location = response.headers().get("location").and_then(|location| location.to_str().ok());
            let next = location.and_then(|location| url.join(location).ok());
            let next = next.ok_or_else(|| self.refused("the server redirects without a valid address"))?;
            let shown = credentials::without(next.as_str());
            match next.scheme() {
                "https" => {}
                "http" if url.scheme() == "http" => {}
                "http" => return Err(self.refused(&format!("the server redirects from HTTPS to HTTP, to '{shown}'"))),
                _ => return Err(self.refused(&format!("the server redirects to '{shown}', which is not HTTP"))),
            }
            url = next;
        }
        Err(self.refused(&format!("the server redirects more than {MAX_REDIRECTS} times")))
    }

    fn call(&self, url: &Url, headers: &Headers<'_>) -> Result<Response<Body>, Broken> {
        if url.scheme() == "https" && !self.has_roots {
            let hint = "Install the package ca-certificates, or name a file of them in SSL_CERT_FILE";
            return Err(self.refused(&format!("the system has no certificates to check the server with. {hint}")));
        }
        let mut bare = url.clone();
        let _ = credentials::take(&mut bare);
        bare.set_fragment(None);
        let left = self.until.saturating_duration_since(Instant::now());
        let mut call = self.agent.get(bare.as_str()).config().timeout_global(Some(left)).build();
        if url.origin() == self.request.url.origin() {
            if let Some(credentials) = credentials::take(&mut self.request.url.clone()) {
                call = call.header("authorization", credentials);
            }
            for (name, value) in self.request.headers {
                call = call.header(*name, *value);
            }
        }
        for (name, value) in headers {
            call = call.header(*name, *value);
        }
        call.call().map_err(|error| match error {
            ureq::Error::Http(_) => {
                invalid(Properties::HEADERS, "'headers' must be names and values of HTTP headers").into()
            }
            // What is wrong with certificates and protocols stays wrong.
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                self.refused(&fs::reason(&error))
            }
            error @ (ureq::Error::Tls(_) | ureq::Error::Rustls(_)) => self.refused(&error.to_string()),
            error => self.interrupted(&error.to_string()),
        })
    }

    fn check_size(&self, size: u64) -> Result<(), Broken> {
        let max = self.request.max_size;
        if size > max { Err(self.denied(&format!("it has more than {max} bytes, see 'maxSize'"))) } else { Ok(()) }
    }

    /// Waits for the next attempt, unless there is none, or the call is cancelled.
    fn wait(&self, tries: u32, pause: Duration, failure: Failure) -> Result<(), Failure> {
        if tries >= ATTEMPTS || Instant::now() + pause > self.until {
            return Err(failure);
        }
        let until = Instant::now() + pause;
        while Instant::now() < until.min(self.until) {
            if self.cx.cancel.is_cancelled() {
                return Err(Failure::new(FailureKind::Cancelled, "the download was cancelled"));
            }
            std::thread::sleep(Duration::from_millis(20).min(pause));
        }
        Ok(())
    }

    fn failure(&self, reason: &str) -> Failure {
        let kind = if Instant::now() >= self.until { FailureKind::Deadline } else { FailureKind::System };
        failure(
            kind,
            Properties::URL,
            format!("cannot download '{}': {reason}", credentials::without(self.request.url.as_str())),
        )
    }

    /// Returns the refusal of a download that another request would meet as well.
    fn denied(&self, reason: &str) -> Broken {
        Broken::Refused(Failure { kind: FailureKind::Refused, ..self.failure(reason) })
    }

    fn interrupted(&self, reason: &str) -> Broken {
        Broken::Interrupted(self.failure(reason))
    }

    fn refused(&self, reason: &str) -> Broken {
        Broken::Refused(self.failure(reason))
    }

    fn unwritable(&self, error: &std::io::Error) -> Broken {
        self.refused(&format!("cannot write it: {}", fs::reason(error)))
    }

    fn status(&self, status: StatusCode) -> Broken {
        let reason = format!("the server answered {status}");
        let may_pass = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
        if may_pass { self.interrupted(&reason) } else { self.denied(&reason) }
    }
}

struct Transfer<'a> {
    asking: Asking<'a>,
    to: &'a File,
    received: u64,
    /// What tells whether the server still has the same content; without them a transfer begins anew.
    validators: Validators,
}

impl Transfer<'_> {
    fn attempt(&mut self) -> Result<(), Broken> {
        let range = format!("bytes={}-", self.received);
        let strong = self.validators.etag.as_deref().filter(|tag| !tag.starts_with("W/"));
        let headers = match strong.or(self.validators.last_modified.as_deref()) {
            Some(validator) if self.received > 0 => vec![("range", range.as_str()), ("if-range", validator)],
            _ => Vec::new(),
        };
        let response = self.asking.follow(&headers)?;
        let expected = self.begin(&response)?;
        self.receive(response.into_body())?;
        if expected.is_some_and(|expected| self.received < expected) {
            return Err(self.asking.interrupted("the connection was closed before the end"));
        }
        Ok(())
    }

    /// Takes the status and the headers; returns how long the whole content is, if the server says so.
    fn begin(&mut self, response: &Response<Body>) -> Result<Option<u64>, Broken> {
        match response.status() {
            StatusCode::OK => self.restart()?,
            StatusCode::PARTIAL_CONTENT if range_start(header(response, "content-range")) == Some(self.received) => {}
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                self.restart()?;
                self.validators = Validators::default();
                return Err(self.asking.interrupted("the server answered with another part than the one asked for"));
            }
            status => return Err(self.asking.status(status)),
        }
        self.validators = validators(response);
        if self.asking.request.is_followed && self.validators.is_empty() {
            let hint = "Without 'follow', state a 'checksum'";
            return Err(self.asking.denied(&format!("the server states no ETag and no Last-Modified. {hint}")));
        }
        let length = header(response, "content-length").and_then(|length| length.parse::<u64>().ok());
        let whole = length.map(|length| length.saturating_add(self.received));
        self.asking.check_size(whole.unwrap_or_default())?;
        Ok(whole)
    }

    fn restart(&mut self) -> Result<(), Broken> {
        self.received = 0;
        let mut to = self.to;
        let done = to.set_len(0).and_then(|()| to.seek(SeekFrom::Start(0)));
        done.map(|_| ()).map_err(|error| self.asking.unwritable(&error))
    }

    fn receive(&mut self, body: Body) -> Result<(), Broken> {
        let asking = &self.asking;
        let mut content = body.into_with_config().limit(u64::MAX).reader();
        let (mut to, mut chunk) = (self.to, vec![0; 64 << 10]);
        loop {
            if asking.cx.cancel.is_cancelled() {
                return Err(Failure::new(FailureKind::Cancelled, "the download was cancelled").into());
            }
            if Instant::now() >= asking.until {
                return Err(asking.refused(&format!("it took longer than {} s", asking.request.timeout.as_secs())));
            }
            let read = content.read(&mut chunk).map_err(|error| asking.interrupted(&fs::reason(&error)))?;
            if read == 0 {
                return Ok(());
            }
            asking.check_size(self.received + read as u64)?;
            to.write_all(chunk.get(..read).unwrap_or_default()).map_err(|error| asking.unwritable(&error))?;
            self.received += read as u64;
        }
    }
}

fn header<'r>(response: &'r Response<Body>, name: &str) -> Option<&'r str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}

fn validators(response: &Response<Body>) -> Validators {
    let text = |name: &str| header(response, name).map(str::to_owned);
    Validators { etag: text("etag"), last_modified: text("last-modified") }
}

/// The first byte of a range such as `bytes 5-9/10`.
fn range_start(range: Option<&str>) -> Option<u64> {
    range?.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok()
}
