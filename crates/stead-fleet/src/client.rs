//! An operator's side: what is asked of a controller.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stead_core::value::Sensitive;
use stead_release::{Digest, Release, Signed};
use ureq::Agent;
use ureq::http::{Request, StatusCode};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::new_token;
use crate::store::OperatorAct;
use stead_hosts::Filter;
use stead_protocol::{
    AcceptAnswer, AcceptRequest, ActShown, CheckAnswer, InviteAnswer, InviteRequest, LONGEST_BLOB, ListPage,
    MOST_LINES, PlanAnswer, PublishAnswer,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// The reason why a controller did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A file cannot be read.
    #[error("cannot read '{}'", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The certificate cannot be used.
    #[error("'{}' is not a certificate in PEM", .0.display())]
    Certificate(PathBuf),
    /// The controller was not reached, or not understood.
    #[error("no answer from the controller: {0}")]
    Unreached(String),
    /// The controller refuses, or cannot do it now.
    #[error("{}{said}", if *status < 500 { "refused: " } else { "" })]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// What it said.
        said: String,
    },
    /// A link is not one.
    #[error(
        "that is not a link as 'stead fleet invite' prints it: the address of a controller, and a secret behind '/#'"
    )]
    Link,
    /// A file of the source is not what it should be.
    #[error("'{}': {why}", path.display())]
    Source {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The chain of acts was changed.
    #[error("act {0} is not what was written, or does not follow the one before")]
    Altered(u64),
    /// Acts that were there are not there any more.
    #[error("the act {0} is not in the chain: its end was cut, or another chain is shown")]
    Cut(Digest),
}

type Answered<T> = Result<T, ClientError>;

/// A connection to a controller.
pub struct Client {
    agent: Agent,
    url: String,
    /// The token of the operator, if one asks.
    token: Option<Sensitive<String>>,
}

/// The content of a file.
pub fn read(path: &Path) -> Answered<Vec<u8>> {
    fs::read(path).map_err(|source| ClientError::Read { path: path.to_owned(), source })
}

/// The secret in a file.
fn secret(path: &Path) -> Answered<Sensitive<String>> {
    let text = String::from_utf8(read(path)?)
        .map_err(|_| ClientError::Source { path: path.to_owned(), why: "it does not hold a secret".to_owned() })?;
    Ok(Sensitive::new(text.trim().to_owned()))
}

impl Client {
    /// A client for the controller at an address, which has this certificate or one that it vouches for. The token is in a file.
    pub fn new(url: &str, certificate: &Path, token: &Path) -> Answered<Self> {
        Ok(Self { token: Some(secret(token)?), ..Self::guest(url, certificate)? })
    }

    /// A client of nobody who is known there yet.
    fn guest(url: &str, certificate: &Path) -> Answered<Self> {
        let unusable = |_| ClientError::Certificate(certificate.to_owned());
        let roots = RootCerts::new_with_certs(&[Certificate::from_pem(&read(certificate)?).map_err(unusable)?]);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder().root_certs(roots).unversioned_rustls_crypto_provider(provider).build();
        let config =
            Agent::config_builder().http_status_as_error(false).https_only(true).max_redirects(0).tls_config(tls);
        let agent = config.timeout_global(Some(PATIENCE)).build().into();
        Ok(Self { agent, url: url.trim_end_matches('/').to_owned(), token: None })
    }

    /// Takes the account of the link in a file, and returns the token that proves from now on who it is.
    pub fn take_account(link: &Path, certificate: &Path) -> Answered<Sensitive<String>> {
        let link = secret(link)?;
        let (url, invitation) = link.expose().split_once("/#").ok_or(ClientError::Link)?;
        let token = new_token();
        let digest = Digest::of(token.expose().as_bytes()).to_string();
        let request = AcceptRequest { invitation: invitation.to_owned(), token: digest };
        parsed::<AcceptAnswer>(&Self::guest(url, certificate)?.post("/v1/accounts", &request)?)?;
        Ok(token)
    }

    /// Offers an account, and returns the link with which it is taken.
    pub fn invite(&self, request: &InviteRequest) -> Answered<Sensitive<String>> {
        let answer: InviteAnswer = parsed(&self.post("/v1/invitations", request)?)?;
        Ok(Sensitive::new(format!("{}/#{}", self.url, answer.invitation)))
    }

    fn ask(&self, method: &str, path: &str, body: Option<&[u8]>) -> Answered<Vec<u8>> {
        self.ask_waiting(method, path, body, 0)
    }

    fn ask_waiting(&self, method: &str, path: &str, body: Option<&[u8]>, seconds: u64) -> Answered<Vec<u8>> {
        let unreached = |error: &dyn std::fmt::Display| ClientError::Unreached(error.to_string());
        let request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        let request = match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {}", token.expose())),
            None => request,
        };
        let request = if seconds > 0 { request.header("prefer", format!("wait={seconds}")) } else { request };
        let response = match body {
            Some(body) => self.agent.run(request.body(body).map_err(|why| unreached(&why))?),
            None => self.agent.run(request.body(()).map_err(|why| unreached(&why))?),
        };
        let mut response = response.map_err(|why| unreached(&why))?;
        let status = response.status();
        let said = response.body_mut().with_config().limit(LONGEST_BLOB as u64).read_to_vec();
        let said = said.map_err(|why| unreached(&why))?;
        if status == StatusCode::OK {
            return Ok(said);
        }
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        Err(ClientError::Refused { status: status.as_u16(), said })
    }

    /// What is asked for, of the machines that a filter means.
    pub fn one<T: DeserializeOwned>(&self, path: &str, filter: Option<&Filter>) -> Answered<T> {
        parsed(&self.ask("GET", &meaning(path, filter), None)?)
    }

    /// Asks the machines that a filter means to check at once.
    pub fn check(&self, filter: Option<&Filter>) -> Answered<CheckAnswer> {
        parsed(&self.ask("POST", &meaning("/v1/checks", filter), Some(b""))?)
    }

    /// A list, of the machines that a filter means: page by page, not more than some lines.
    pub fn pages<T: DeserializeOwned>(&self, path: &str, filter: Option<&Filter>, most: usize) -> Answered<Vec<T>> {
        let (mut lines, mut after) = (Vec::new(), None::<String>);
        while lines.len() < most {
            let mut query = format!("most={}", MOST_LINES.min(most - lines.len()));
            query.extend(filter.map(|filter| format!("&where={}", encoded(&filter.to_string()))));
            query.extend(after.map(|after| format!("&after={}", encoded(&after))));
            let page: ListPage<T> = parsed(&self.ask("GET", &format!("{path}?{query}"), None)?)?;
            lines.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(lines)
    }

    /// The part of a list behind a place; it is waited for up to some seconds until there is something.
    pub fn behind<T: DeserializeOwned>(&self, path: &str, after: Option<&str>, seconds: u64) -> Answered<ListPage<T>> {
        let after = after.map_or(String::new(), |after| format!("?after={}", encoded(after)));
        parsed(&self.ask_waiting("GET", &format!("{path}{after}"), None, seconds)?)
    }

    /// All acts of operators.
    pub fn acts(&self) -> Answered<Vec<ActShown>> {
        let mut acts: Vec<ActShown> = Vec::new();
        loop {
            let after = acts.last().map_or(0, |act| act.number);
            let more: Vec<ActShown> = self.one(&format!("/v1/acts?after={after}"), None)?;
            if more.is_empty() {
                return Ok(acts);
            }
            acts.extend(more);
        }
    }

    /// Has something done, and returns what was said.
    pub fn post(&self, path: &str, message: &impl Serialize) -> Answered<Vec<u8>> {
        let body = serde_json::to_vec(message).map_err(|error| ClientError::Unreached(error.to_string()))?;
        self.ask("POST", path, Some(&body))
    }

    /// Publishes what is new in a source: root statement, lists of signers, roster, and the releases with their bundles. Returns the
    /// files that were not known. What was published before is left, so that it can be repeated.
    pub fn publish(&self, source: &Path) -> Answered<Vec<String>> {
        let root = source.join("root");
        if source.is_dir() && !root.exists() {
            let why = "it has no file 'root', as each source that 'stead release' makes".to_owned();
            return Err(ClientError::Source { path: source.to_owned(), why });
        }
        let mut files = vec![("root", root)];
        files.extend(numbered(&source.join("signers"), "")?.into_iter().map(|path| ("signers", path)));
        files.push(("roster", source.join("roster")));
        let entries =
            fs::read_dir(source).map_err(|error| ClientError::Read { path: source.to_owned(), source: error })?;
        let mut folders: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        folders.sort();
        let mut newest = Vec::new();
        for folder in folders {
            let releases = numbered(&folder, ".release")?;
            newest.extend(releases.last().cloned());
            files.extend(releases.into_iter().map(|path| ("release", path)));
        }
        let mut new = Vec::new();
        for (kind, path) in files.into_iter().filter(|(_, path)| path.exists()) {
            if self.publish_one(source, kind, &path)? {
                new.push(path.strip_prefix(source).unwrap_or(&path).display().to_string());
            }
        }
        for folder in newest {
            self.publish_envelopes(source, &folder, &mut new)?;
        }
        Ok(new)
    }

    /// Publishes the secrets of the newest release of a channel, sealed to its machines.
    fn publish_envelopes(&self, source: &Path, release: &Path, new: &mut Vec<String>) -> Answered<()> {
        let channel = release.parent().and_then(Path::file_name).unwrap_or_default().display().to_string();
        let number = release.file_stem().unwrap_or_default().display().to_string();
        let folder = release.with_extension("sealed");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(ClientError::Read { path: folder, source }),
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let machine = path.file_name().unwrap_or_default().display().to_string();
            let (text, route) = (read(&path)?, format!("/v1/sealed/{channel}/{number}/{}", encoded(&machine)));
            let answer = self.ask("PUT", &route, Some(&text)).map_err(|error| match error {
                ClientError::Refused { said, .. } => ClientError::Source { path: path.clone(), why: said },
                other => other,
            })?;
            if parsed::<PublishAnswer>(&answer)?.is_new {
                new.push(path.strip_prefix(source).unwrap_or(&path).display().to_string());
            }
        }
        Ok(())
    }

    /// Publishes a file, and before it the bundle that it needs, if the controller says that it has not got it.
    fn publish_one(&self, source: &Path, kind: &str, path: &Path) -> Answered<bool> {
        let (text, route) = (read(path)?, format!("/v1/statements/{kind}"));
        let of_file = |error| match error {
            ClientError::Refused { said, .. } => ClientError::Source { path: path.to_owned(), why: said },
            other => other,
        };
        let answer = match self.ask("POST", &route, Some(&text)) {
            Err(ClientError::Refused { status: 424, said }) => {
                let release = Signed::<Release>::parse(&text)
                    .map_err(|_| ClientError::Source { path: path.to_owned(), why: said })?;
                let digest = &release.statement().bundle;
                let bundle = read(&source.join("blobs").join(digest.as_str()))?;
                self.ask("PUT", &format!("/v1/blobs/{digest}"), Some(&bundle)).map_err(of_file)?;
                self.ask("POST", &route, Some(&text)).map_err(of_file)?
            }
            answer => answer.map_err(of_file)?,
        };
        parsed::<PublishAnswer>(&answer).map(|answer| answer.is_new)
    }

    /// What a signed roster would change.
    pub fn plan(&self, roster: &[u8]) -> Answered<PlanAnswer> {
        parsed(&self.ask("POST", "/v1/plans/roster", Some(roster))?)
    }

    /// Has a signed roster count from now on.
    pub fn apply(&self, roster: &[u8]) -> Answered<PublishAnswer> {
        parsed(&self.ask("POST", "/v1/statements/roster", Some(roster))?)
    }

    /// Follows the chain of acts from its beginning, and returns how many there are and the digest of the last. A digest that was the
    /// last one before must be in it.
    pub fn verify_acts(&self, known: Option<&Digest>) -> Answered<(u64, Digest)> {
        let (mut number, mut head) = (0, OperatorAct::nothing());
        let mut is_known = known.is_none_or(|known| *known == head);
        for act in self.acts()? {
            number += 1;
            let written = OperatorAct { parent: head, body: act.act };
            head = written.digest();
            if act.number != number || act.digest != head.as_str() || act.parent != written.parent.as_str() {
                return Err(ClientError::Altered(number));
            }
            is_known |= known == Some(&head);
        }
        match known {
            Some(known) if !is_known => Err(ClientError::Cut(known.clone())),
            _ => Ok((number, head)),
        }
    }
}

/// The path of what is asked of the machines that a filter means.
fn meaning(path: &str, filter: Option<&Filter>) -> String {
    filter.map_or(path.to_owned(), |filter| format!("{path}?where={}", encoded(&filter.to_string())))
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Answered<T> {
    serde_json::from_slice(bytes).map_err(|error| ClientError::Unreached(error.to_string()))
}

/// The files of a folder whose names are numbers, in their order.
fn numbered(folder: &Path, ending: &str) -> Answered<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(ClientError::Read { path: folder.to_owned(), source }),
    };
    let number = |path: &Path| path.file_name()?.to_str()?.strip_suffix(ending)?.parse::<u64>().ok();
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<(u64, PathBuf)> = paths.filter_map(|path| Some((number(&path)?, path))).collect();
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}
