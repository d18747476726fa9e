//! Fetching what a URL leads to, over HTTP, in as many transfers as it takes.
//!
//! Guarantees: no message has the user, the password, the query or the headers of a request; neither credentials nor
//! headers are sent to another host than the one that is asked first, nor after a redirect from HTTPS to HTTP, which
//! is refused.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use serde::{Deserialize, Serialize};
use stead_system::{Cancel, fs};
use ureq::http::{Response, StatusCode};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy};
use url::{Host, Url};

use crate::credentials;

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

/// A request for content at an address.
pub struct TransferRequest<'a> {
    /// Where it is, with a user and a password if the server wants them.
    pub url: &'a Url,
    /// Headers for the host of the URL.
    pub headers: &'a BTreeMap<&'a str, &'a str>,
    /// The URL of a proxy, in place of those that the environment names.
    pub proxy: Option<&'a str>,
    /// How long all of it may take.
    pub timeout: Duration,
    /// How many bytes are accepted.
    pub max_size: u64,
    /// By what it is known that the content is right.
    pub vouched: Vouched,
    /// True if a server that answers with a failure is left alone: whoever asks comes again later.
    pub leaves_alone: bool,
    /// Ends it early.
    pub cancel: &'a Cancel,
}

/// By what it is known that a content is right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vouched {
    /// By a digest, which whoever asks checks.
    ByDigest,
    /// By the server, which must be the one that was asked, and tell one content from a later one.
    ByServer,
    /// By signatures and digests, and nothing is asked for openly all the same.
    BySignature,
}

/// The content of a file before anything is fetched into it.
#[derive(Clone, Copy, Debug)]
pub enum TransferStart<'a> {
    /// Nothing that counts.
    Anew,
    /// Nothing; whoever asks has the content for which the server stated these.
    Known(&'a Validators),
    /// The beginning. A digest says whether it belongs to the rest.
    Part,
}

/// Why there is nothing, or not all of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransferProblem {
    /// The kind of it.
    pub kind: TransferProblemKind,
    /// Why, in a few words.
    pub reason: String,
    /// The status that the server answered with, where that is the reason.
    pub status: Option<u16>,
    /// How long the server wants to be left alone.
    pub again: Option<Duration>,
}

/// The side that is to blame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferProblemKind {
    /// It was cancelled.
    Cancelled,
    /// It took too long.
    Deadline,
    /// The address of the proxy.
    Proxy,
    /// The headers.
    Headers,
    /// It is larger than what is accepted.
    Size,
    /// The server tells no content from another.
    Validators,
    /// The server refuses it, as it would refuse it once more.
    Denied,
    /// Anything else.
    System,
}

/// By what a server tells one content of a URL from another: RFC 9110, section 8.8.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Validators {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_modified: Option<String>,
}

impl Validators {
    /// Returns whether a server states none.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    /// Whether they are of the same content. An `ETag` decides alone, and a weak one is as good: what was downloaded is used whole.
    fn are_of_same(&self, other: &Self) -> bool {
        let tag = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
        match (&self.etag, &other.etag) {
            (Some(own), Some(other)) => tag(own) == tag(other),
            (None, None) => self.last_modified.is_some() && self.last_modified == other.last_modified,
            _ => false,
        }
    }

    /// The headers that ask for another content than theirs.
    fn conditions(&self) -> Vec<(&'static str, &str)> {
        let headers = [("if-none-match", &self.etag), ("if-modified-since", &self.last_modified)];
        headers.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))).collect()
    }
}

/// Returns whether what a URL leads to could be from anybody: it is one of HTTP, and not of this machine.
pub fn is_open(url: &Url) -> bool {
    let is_local = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    url.scheme() == "http" && !is_local
}

/// Fetches it into a file; returns by what the server tells it from others, `None` if the server has what is known.
///
/// # Errors
/// When there is nothing, or not all of it. What came is in the file.
pub fn fetch(
    request: &TransferRequest<'_>,
    start: TransferStart<'_>,
    to: &File,
) -> Result<Option<Validators>, TransferProblem> {
    let (asking, received, validators) = (Asking::new(request)?, 0, Validators::default());
    let mut transfer = Transfer { asking, start, to, received, validators };
    transfer.prepare().map_err(Broken::problem)?;
    let (mut tries, mut pause) = (0, PAUSE);
    loop {
        let before = transfer.received;
        let problem = match transfer.attempt() {
            Ok(end) => return Ok(end),
            Err(Broken::Refused(problem)) => return Err(problem),
            Err(Broken::Interrupted(problem)) => problem,
        };
        (tries, pause) = if transfer.received > before { (0, PAUSE) } else { (tries + 1, pause * 2) };
        transfer.asking.wait(tries, pause, problem)?;
    }
}

/// Returns whether the server has another content than the one that had these.
pub(crate) fn has_changed(request: &TransferRequest<'_>, known: &Validators) -> Result<bool, TransferProblem> {
    let asking = Asking::new(request)?;
    let (mut tries, mut pause) = (0, PAUSE);
    loop {
        let problem = match asking.has_changed(known) {
            Ok(changed) => return Ok(changed),
            Err(Broken::Refused(problem)) => return Err(problem),
            Err(Broken::Interrupted(problem)) => problem,
        };
        (tries, pause) = (tries + 1, pause * 2);
        asking.wait(tries, pause, problem)?;
    }
}

fn agent(request: &TransferRequest<'_>, roots: &[Certificate<'static>]) -> Result<Agent, TransferProblem> {
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
        let not_one = |_| TransferProblem::new(TransferProblemKind::Proxy, "it is not the URL of an HTTP proxy");
        let proxy = Proxy::new(proxy).map_err(not_one)?;
        config = config.proxy(Some(proxy));
    }
    Ok(config.build().into())
}

/// The certificates that the system trusts, those of its administrator among them.
pub(crate) fn roots() -> Vec<Certificate<'static>> {
    let native = rustls_native_certs::load_native_certs();
    native.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect()
}

/// Why a transfer did not come to its end.
enum Broken {
    /// It may go on from where it is.
    Interrupted(TransferProblem),
    /// Trying again helps nobody.
    Refused(TransferProblem),
}

impl From<TransferProblem> for Broken {
    fn from(problem: TransferProblem) -> Self {
        Self::Refused(problem)
    }
}

impl Broken {
    fn problem(self) -> TransferProblem {
        match self {
            Self::Interrupted(problem) | Self::Refused(problem) => problem,
        }
    }
}

impl TransferProblem {
    fn new(kind: TransferProblemKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), status: None, again: None }
    }
}

/// How one request is made, with all that it takes to come to an answer.
struct Asking<'a> {
    request: &'a TransferRequest<'a>,
    agent: Agent,
    /// True if the system trusts any certificate.
    has_roots: bool,
    until: Instant,
}

/// The headers of a request besides those of whoever asks.
type Headers<'h> = [(&'static str, &'h str)];

impl<'a> Asking<'a> {
    fn new(request: &'a TransferRequest<'a>) -> Result<Self, TransferProblem> {
        let until = Instant::now() + request.timeout;
        let roots = roots();
        Ok(Self { request, agent: agent(request, &roots)?, has_roots: !roots.is_empty(), until })
    }

    fn has_changed(&self, known: &Validators) -> Result<bool, Broken> {
        let response = self.follow(&known.conditions())?;
        match response.status() {
            StatusCode::NOT_MODIFIED => Ok(false),
            // Some servers answer with the same content again.
            StatusCode::OK => Ok(!validators(&response).are_of_same(known)),
            status => Err(self.status(status, &response)),
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
                "http" if self.request.vouched != Vouched::ByDigest && is_open(&next) => {
                    return Err(
                        self.refused(&format!("the server redirects to '{shown}', where it could be from anybody"))
                    );
                }
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
                TransferProblem::new(TransferProblemKind::Headers, "they are not names and values of HTTP headers")
                    .into()
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
        let too_large = || TransferProblem::new(TransferProblemKind::Size, format!("it has more than {max} bytes"));
        if size > max { Err(too_large().into()) } else { Ok(()) }
    }

    fn check_cancelled(&self) -> Result<(), TransferProblem> {
        let cancelled = || TransferProblem::new(TransferProblemKind::Cancelled, "it was cancelled");
        if self.request.cancel.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }

    /// Waits for the next attempt, unless there is none, or it is cancelled.
    fn wait(&self, tries: u32, pause: Duration, problem: TransferProblem) -> Result<(), TransferProblem> {
        let is_left_alone = self.request.leaves_alone && problem.status.is_some();
        if is_left_alone || tries >= ATTEMPTS || Instant::now() + pause > self.until {
            return Err(problem);
        }
        let until = Instant::now() + pause;
        while Instant::now() < until.min(self.until) {
            self.check_cancelled()?;
            std::thread::sleep(Duration::from_millis(20).min(pause));
        }
        Ok(())
    }

    fn problem(&self, reason: &str) -> TransferProblem {
        let is_late = Instant::now() >= self.until;
        TransferProblem::new(if is_late { TransferProblemKind::Deadline } else { TransferProblemKind::System }, reason)
    }

    fn interrupted(&self, reason: &str) -> Broken {
        Broken::Interrupted(self.problem(reason))
    }

    fn refused(&self, reason: &str) -> Broken {
        Broken::Refused(self.problem(reason))
    }

    fn unwritable(&self, error: &std::io::Error) -> Broken {
        self.refused(&format!("cannot write it: {}", fs::reason(error)))
    }

    fn status(&self, status: StatusCode, response: &Response<Body>) -> Broken {
        let (reason, code) = (format!("the server answered {status}"), status.as_u16());
        let problem = TransferProblem { status: Some(code), ..self.problem(&reason) };
        if status.is_server_error() || matches!(code, 408 | 425 | 429) {
            return Broken::Interrupted(TransferProblem {
                again: header(response, "retry-after").and_then(retry_after),
                ..problem
            });
        }
        // Another request would meet it as well.
        Broken::Refused(TransferProblem { kind: TransferProblemKind::Denied, ..problem })
    }
}

struct Transfer<'a> {
    asking: Asking<'a>,
    start: TransferStart<'a>,
    to: &'a File,
    received: u64,
    /// The validators of the content that the server had; without them a transfer begins anew.
    validators: Validators,
}

impl Transfer<'_> {
    /// Goes to where the rest belongs.
    fn prepare(&mut self) -> Result<(), Broken> {
        if !matches!(self.start, TransferStart::Part) {
            return self.restart();
        }
        let mut to = self.to;
        self.received = to.seek(SeekFrom::End(0)).map_err(|error| self.asking.unwritable(&error))?;
        Ok(())
    }

    fn attempt(&mut self) -> Result<Option<Validators>, Broken> {
        let range = format!("bytes={}-", self.received);
        let strong = self.validators.etag.as_deref().filter(|tag| !tag.starts_with("W/"));
        let headers = match (strong.or(self.validators.last_modified.as_deref()), self.start) {
            (Some(validator), _) if self.received > 0 => vec![("range", range.as_str()), ("if-range", validator)],
            (None, TransferStart::Part) if self.received > 0 => vec![("range", range.as_str())],
            (_, TransferStart::Known(known)) => known.conditions(),
            _ => Vec::new(),
        };
        let response = self.asking.follow(&headers)?;
        let known = matches!(self.start, TransferStart::Known(_)) && self.received == 0;
        match response.status() {
            StatusCode::NOT_MODIFIED if known => return Ok(None),
            // The part is the whole: nothing is behind it.
            StatusCode::RANGE_NOT_SATISFIABLE if self.is_all(&response) => {
                return Ok(Some(self.validators.clone()));
            }
            _ => {}
        }
        let expected = self.begin(&response)?;
        self.receive(response.into_body())?;
        if expected.is_some_and(|expected| self.received < expected) {
            return Err(self.asking.interrupted("the connection was closed before the end"));
        }
        Ok(Some(self.validators.clone()))
    }

    /// Returns whether a server that has no more says that so many bytes are all.
    fn is_all(&self, response: &Response<Body>) -> bool {
        let length = header(response, "content-range").and_then(|range| range.strip_prefix("bytes */")?.parse().ok());
        self.received > 0 && length == Some(self.received)
    }

    /// Takes the status and the headers; returns how long the whole content is, if the server says so.
    fn begin(&mut self, response: &Response<Body>) -> Result<Option<u64>, Broken> {
        let mut total = None;
        match (response.status(), header(response, "content-range").and_then(range)) {
            (StatusCode::OK, _) => self.restart()?,
            (StatusCode::PARTIAL_CONTENT, Some((first, all))) if self.received > 0 && first == self.received => {
                total = all;
            }
            (StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE, _) => {
                self.restart()?;
                self.validators = Validators::default();
                return Err(self.asking.interrupted("the server answered with another part than the one asked for"));
            }
            (status, _) => return Err(self.asking.status(status, response)),
        }
        self.validators = validators(response);
        if self.asking.request.vouched == Vouched::ByServer && self.validators.is_empty() {
            let reason = "the server states no ETag and no Last-Modified";
            return Err(TransferProblem::new(TransferProblemKind::Validators, reason).into());
        }
        let length = header(response, "content-length").and_then(|length| length.parse::<u64>().ok());
        let whole = total.or(length.map(|length| length.saturating_add(self.received)));
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
            asking.check_cancelled()?;
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

/// The first byte of a range such as `bytes 5-9/10`, and how many bytes there are in all, if it says so.
fn range(range: &str) -> Option<(u64, Option<u64>)> {
    let (bytes, all) = range.strip_prefix("bytes ")?.split_once('/')?;
    Some((bytes.split_once('-')?.0.parse().ok()?, all.parse().ok()))
}

/// How long a server wants to be left alone, by the header `Retry-After`: seconds, or a date.
pub fn retry_after(stated: &str) -> Option<Duration> {
    let stated = stated.trim();
    let date = || DateTimeParser::new().parse_timestamp(stated).ok()?.duration_since(Timestamp::now()).try_into().ok();
    stated.parse().map(Duration::from_secs).ok().or_else(date)
}
