//! A controller on this machine, and machines that ask it as an agent does.

#![allow(dead_code, reason = "not every test that has this needs all of it")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use stead_core::bundle::Bundle;
use stead_fleet::server::{Bound, Controller};
use stead_fleet::store::{StorePlace, StoreWrite};
use stead_fleet::tls;
use stead_hosts::MachineName;
use stead_protocol::{EnrolRequest, Proof, SentReport, SessionSecret, TokenRequest};
use stead_release::{
    ChainLink, Digest, MachineReport, MachineRequest, Numbered, PublicKey, Release, Root, Roster, RosterHold,
    RosterMachine, SealedParameters, SealingKey, Signable, Signed, Signers, Succession,
};
use stead_system::folder::Folder;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::keys::Key;

/// A controller that ends when it is dropped.
pub(crate) struct Site {
    pub(crate) url: String,
    pub(crate) agent: Agent,
    end: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The answer to a request.
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: ureq::http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&self.body)))
    }
}

impl Site {
    /// Begins on a store, with the certificate of a folder.
    pub(crate) fn start(folder: &std::path::Path, place: &StorePlace) -> Self {
        let private = Folder::create(&folder.join("state")).unwrap();
        let files = tls::own(&private, &["localhost".to_owned()]).unwrap();
        let agent = agent(&std::fs::read(&files.certificate).unwrap());
        let (controller, stop) = Controller::start(place, 2).unwrap();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let (address, bound) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let listening = Bound::new("127.0.0.1:0".parse().unwrap(), &files).unwrap();
                address.send(listening.address().unwrap()).unwrap();
                listening.serve(controller, stop, async { drop(ended.await) }).await;
            });
        });
        let url = format!("https://localhost:{}", bound.recv().unwrap().port());
        Self { url, agent, end: Some(end), thread: Some(thread) }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, String)], body: &[u8]) -> Answer {
        ask(&self.agent, &format!("{}{path}", self.url), method, headers, body)
    }

    /// What an operator with this token asks.
    pub(crate) fn operator(&self, token: &str, method: &str, path: &str, body: &[u8]) -> Answer {
        self.ask(method, path, &[("authorization", format!("Bearer {token}"))], body)
    }

    pub(crate) fn tell(&self, token: &str, path: &str, message: &impl Serialize) -> Answer {
        self.operator(token, "POST", path, &serde_json::to_vec(message).unwrap())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// The program on a folder.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) url: String,
}

impl Program {
    pub(crate) fn start(folder: &std::path::Path) -> Self {
        // With few descriptors, as systemd starts a service.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", r#"ulimit -S -n 64; exec "$0" "$@""#, env!("CARGO_BIN_EXE_stead-fleet")]);
        command.args(["run", "--listen", "127.0.0.1:0", "--folder"]).arg(folder).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split("listening on 127.0.0.1:").nth(1).and_then(|rest| rest.split(',').next());
        let url = format!("https://localhost:{}", port.unwrap_or_else(|| panic!("{line}")));
        Self { child, url }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that was killed before is not there any more.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// A client that trusts one certificate.
pub(crate) fn agent(certificate: &[u8]) -> Agent {
    trusting(&[certificate])
}

/// A client that trusts some certificates.
pub(crate) fn trusting(certificates: &[&[u8]]) -> Agent {
    let certificates: Vec<_> = certificates.iter().map(|text| Certificate::from_pem(text).unwrap()).collect();
    let roots = RootCerts::new_with_certs(&certificates);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder().root_certs(roots).unversioned_rustls_crypto_provider(provider).build();
    let config = Agent::config_builder().http_status_as_error(false).max_redirects(0).tls_config(tls);
    config.timeout_global(Some(Duration::from_mins(2))).build().into()
}

pub(crate) fn ask(agent: &Agent, url: &str, method: &str, headers: &[(&str, String)], body: &[u8]) -> Answer {
    // A request that is refused by its headers can lose its connection while its body is sent, and is asked again.
    for _ in 0..10 {
        match try_ask(agent, url, method, headers, body) {
            Err(ureq::Error::Io(error))
                if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
            answer => return answer.unwrap(),
        }
    }
    panic!("{method} {url}: the connection breaks each time")
}

pub(crate) fn try_ask(
    agent: &Agent,
    url: &str,
    method: &str,
    headers: &[(&str, String)],
    body: &[u8],
) -> Result<Answer, ureq::Error> {
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let response = match method {
        "GET" => agent.run(request.body(()).unwrap()),
        _ => agent.run(request.body(body).unwrap()),
    };
    let mut response = response?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok(Answer { status, headers, body: response.body_mut().with_config().limit(100 << 20).read_to_vec()? })
}

/// A connection that speaks TLS and nothing more.
pub(crate) fn tls_to(certificate: &[u8], port: u16) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    use rustls::pki_types::pem::PemObject as _;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_slice(certificate).unwrap()).unwrap();
    let provider = rustls::crypto::ring::default_provider().into();
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let client = rustls::ClientConnection::new(config.into(), "localhost".try_into().unwrap()).unwrap();
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    rustls::StreamOwned::new(client, stream)
}

/// Puts an operator into a store, as `stead-fleet operator` does.
pub(crate) fn operator(place: &StorePlace, name: &str, role: &str) -> String {
    let token = format!("token of {name}");
    let (name, digest) = (MachineName::parse(name).unwrap(), Digest::of(token.as_bytes()));
    let write = StoreWrite::Operator { name, role: role.to_owned(), digest };
    let (outcomes, _) = place.open().unwrap().commit(&[vec![write]]).unwrap();
    assert!(outcomes.iter().all(Result::is_ok));
    token
}

/// A bundle of nothing but a document of this text.
pub(crate) fn bundle(text: &str) -> Bundle {
    Bundle::new(None, ("main.yaml".to_owned(), text.into()), BTreeMap::new()).unwrap()
}

/// A machine: its key, and what it knows of its session.
pub(crate) struct Simulated {
    pub(crate) name: MachineName,
    pub(crate) key: Key,
    pub(crate) number: AtomicU64,
    pub(crate) session: Option<SessionSecret>,
}

impl Simulated {
    pub(crate) fn new(name: &str, key: u8) -> Self {
        Self { name: MachineName::parse(name).unwrap(), key: Key::new(key), number: AtomicU64::new(1), session: None }
    }

    /// The headers of its next request.
    pub(crate) fn headers(&self, method: &str, path: &str, said: &str, body: &[u8]) -> Vec<(&'static str, String)> {
        let number = self.number.fetch_add(1, Ordering::SeqCst);
        let content = Digest::of(&[said.as_bytes(), body].concat());
        let (machine, method, path) = (self.name.clone(), method.to_owned(), path.to_owned());
        let request = MachineRequest { machine, method, path, number, content };
        let proof = match &self.session {
            Some(session) => session.prove(request),
            None => Proof::of(&self.key.signed(request)),
        };
        let mut headers =
            vec![(stead_protocol::REQUEST, format!("{} {number}", self.name)), (stead_protocol::SIGNATURE, proof)];
        if !said.is_empty() {
            headers.push((stead_protocol::HEARTBEAT, said.to_owned()));
        }
        headers
    }

    pub(crate) fn ask(&mut self, site: &Site, method: &str, path: &str, said: &str, body: &[u8]) -> Answer {
        let headers = self.headers(method, path, said, body);
        let answer = site.ask(method, path, &headers, body);
        if let Some(session) = answer.header(stead_protocol::SESSION) {
            self.session = SessionSecret::parse(session);
        }
        answer
    }

    pub(crate) fn enrol(&mut self, site: &Site, token: Option<&str>) -> Answer {
        let (key, token) = (self.key.public.to_string(), token.map(str::to_owned));
        let body = serde_json::to_vec(&EnrolRequest { key, token, labels: BTreeMap::new() }).unwrap();
        self.ask(site, "POST", "/v1/enrol", "", &body)
    }

    /// A report as it signs it.
    pub(crate) fn sent(&self, number: u64, report: &Value) -> SentReport {
        let (fleet, machine) = (Operators::new().root.digest(), self.name.clone());
        let (ended, report) = (Timestamp::from_second(1_700_000_000).unwrap(), report.clone());
        let report = MachineReport { fleet, machine, number, ended, release: None, report };
        SentReport { number, signed: self.key.signed(report).to_text() }
    }

    /// The body of a request with such reports.
    pub(crate) fn reports(&self, numbers: std::ops::Range<u64>, report: &Value) -> Vec<u8> {
        serde_json::to_vec(&numbers.map(|number| self.sent(number, report)).collect::<Vec<_>>()).unwrap()
    }

    pub(crate) fn report(&mut self, site: &Site, numbers: std::ops::Range<u64>) -> Answer {
        let body = self.reports(numbers, &serde_json::json!({ "of": "nothing" }));
        self.ask(site, "POST", "/v1/reports", "", &body)
    }

    /// Asks for what it should be behind a release; `wait` in seconds.
    pub(crate) fn desired(&mut self, site: &Site, after: u64, tag: Option<&str>, wait: u64) -> Answer {
        let path = format!("/v1/desired?after={after}");
        let mut headers = self.headers("GET", &path, r#"{"applied":0}"#, b"");
        headers.push(("prefer", format!("wait={wait}")));
        headers.extend(tag.map(|tag| ("if-none-match", tag.to_owned())));
        site.ask("GET", &path, &headers, b"")
    }
}

impl Key {
    /// A statement that this key signed.
    pub(crate) fn signed<S: Signable>(&self, statement: S) -> Signed<S> {
        let mut signed = Signed::new(statement);
        let signature = self.sign(S::PURPOSE, signed.bytes());
        signed.add(&signature).unwrap();
        signed
    }
}

/// An operator's side: one signer, and what was signed last.
pub(crate) struct Operators {
    pub(crate) signer: Key,
    pub(crate) root: Signed<Root>,
    /// The list of signers in force: its number and digest.
    list: Numbered,
    pub(crate) releases: BTreeMap<String, Numbered>,
    rosters: Option<Numbered>,
    /// The keys that secrets are sealed to, as rosters have them.
    pub(crate) sealing: BTreeMap<MachineName, SealingKey>,
    /// The holds of the next roster, and the last act that it names.
    pub(crate) holds: BTreeMap<MachineName, RosterHold>,
    pub(crate) acts: Option<Digest>,
    /// The digests that the next release commits to.
    pub(crate) sealed: Option<SealedParameters>,
}

impl Operators {
    pub(crate) fn new() -> Self {
        let signer = Key::new(200);
        let signers = Signers::new([signer.public.clone()].into(), 1).unwrap();
        let root = Signed::new(Root { name: "shop".parse().unwrap(), signers });
        let (releases, sealing, holds) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let list = Numbered { number: 0, digest: root.digest() };
        Self { signer, root, list, releases, rosters: None, sealing, holds, acts: None, sealed: None }
    }

    fn link(&self, last: Option<&Numbered>) -> ChainLink {
        let root = self.root.digest();
        let parent = last.map_or_else(|| root.clone(), |last| last.digest.clone());
        let number = last.map_or(1, |last| last.number + 1);
        ChainLink {
            fleet: root,
            number,
            parent,
            signers: self.list.digest.clone(),
            made: Timestamp::from_second(1_700_000_000).unwrap(),
        }
    }

    pub(crate) fn release(&mut self, channel: &str, selector: &str, bundle: &Bundle) -> String {
        let link = self.link(self.releases.get(channel));
        let (expires, number) = (Timestamp::from_second(4_000_000_000).unwrap(), link.number);
        let (selector, bundle) = (selector.parse().unwrap(), bundle.name().parse().unwrap());
        let parameters = serde_json::Map::new();
        let sealed = self.sealed.take();
        let release =
            Release { link, channel: channel.parse().unwrap(), expires, selector, bundle, parameters, sealed };
        let signed = self.signer.signed(release);
        self.releases.insert(channel.to_owned(), Numbered { number, digest: signed.digest() });
        signed.to_text()
    }

    /// Another list of one signer, who signs from here on.
    pub(crate) fn succeeded_by(&mut self, next: Key) -> String {
        let link = ChainLink { number: self.list.number + 1, parent: self.list.digest.clone(), ..self.link(None) };
        let last = self.releases.iter().map(|(channel, last)| (channel.parse().unwrap(), last.clone())).collect();
        let signers = Signers::new([next.public.clone()].into(), 1).unwrap();
        let number = link.number;
        let signed = self.signer.signed(Succession { link, last, roster: self.rosters.clone(), signers });
        self.list = Numbered { number, digest: signed.digest() };
        self.signer = next;
        signed.to_text()
    }

    pub(crate) fn roster(&mut self, machines: &[(&MachineName, &PublicKey, &str)]) -> String {
        self.roster_at(machines, BTreeMap::new())
    }

    /// A roster that says at which releases new machines begin: those that were signed last.
    pub(crate) fn roster_at_the_newest(&mut self, machines: &[(&MachineName, &PublicKey, &str)]) -> String {
        let floors = self.releases.iter().map(|(channel, last)| (channel.parse().unwrap(), last.clone()));
        let floors = floors.collect();
        self.roster_at(machines, floors)
    }

    fn roster_at(
        &mut self,
        machines: &[(&MachineName, &PublicKey, &str)],
        floors: BTreeMap<stead_release::Name, Numbered>,
    ) -> String {
        let link = self.link(self.rosters.as_ref());
        let number = link.number;
        let member = |name: &MachineName, key: &PublicKey, role: &str| {
            let labels = BTreeMap::from([("role".to_owned(), role.to_owned())]);
            RosterMachine {
                key: key.clone(),
                sealing: self.sealing.get(name).cloned(),
                labels,
                hold: self.holds.get(name).cloned(),
            }
        };
        let machines = machines.iter().map(|(name, key, role)| ((*name).clone(), member(name, key, role))).collect();
        let signed = self.signer.signed(Roster { link, acts: self.acts.clone(), machines, floors });
        self.rosters = Some(Numbered { number, digest: signed.digest() });
        signed.to_text()
    }

    /// Publishes what was signed.
    pub(crate) fn publish(site: &Site, approver: &str, kind: &str, text: &str) -> Answer {
        site.operator(approver, "POST", &format!("/v1/statements/{kind}"), text.as_bytes())
    }

    pub(crate) fn store(site: &Site, approver: &str, bundle: &Bundle) -> Answer {
        site.operator(approver, "PUT", &format!("/v1/blobs/{}", bundle.name()), &bundle.encode())
    }
}

/// Machines that joined by a token of an operator, with the keys 1, 2 and so on.
pub(crate) fn joined(site: &Site, by: &str, names: &[&str]) -> Vec<Simulated> {
    let uses = names.len() as u64;
    let answer = site.tell(by, "/v1/tokens", &TokenRequest { uses, seconds: 600, labels: [].into() });
    let secret = answer.json()["token"].as_str().unwrap().to_owned();
    let machine = |(number, name): (usize, &&str)| {
        let mut machine = Simulated::new(name, u8::try_from(number + 1).unwrap());
        assert_eq!(machine.enrol(site, Some(&secret)).status, 200);
        machine
    };
    names.iter().enumerate().map(machine).collect()
}

/// Returns whether a command succeeds, and what it prints.
pub(crate) fn printed(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}
