//! A controller in a process of its own, and machines that ask it, each by a connection.

#![allow(dead_code, reason = "not every measurement that has this needs all of it")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use stead_fleet::store::{Enrolment, StorePlace, StoreWrite, Token};
use stead_hosts::MachineName;
use stead_protocol::{Proof, SessionSecret};
use stead_release::{Digest, MachineKeys, MachineRequest, MachineSecret, RosterMachine};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) type Machines = BTreeMap<MachineName, RosterMachine>;

pub(crate) fn keys(number: usize) -> MachineKeys {
    let mut secret = [7; MachineSecret::LENGTH];
    for part in secret.chunks_mut(8) {
        part.copy_from_slice(&number.to_be_bytes());
    }
    MachineKeys::of(&MachineSecret::of(&secret))
}

pub(crate) fn name(number: usize) -> MachineName {
    MachineName::parse(&format!("m{number}")).unwrap()
}

/// Puts an operator and machines into a store, and returns the machines as a roster has them: the first has a role of its own.
pub(crate) fn enrolled(place: &StorePlace, machines: usize) -> Machines {
    let mut store = place.open().unwrap();
    let (ann, digest) = (MachineName::parse("ann").unwrap(), Digest::of(b"token"));
    let token = Token { digest: digest.clone(), uses: machines as u64, length: 3_600_000, labels: "{}".to_owned() };
    let mut units = vec![vec![StoreWrite::Operator { name: ann, role: "approver".to_owned(), digest: digest.clone() }]];
    units.push(vec![StoreWrite::Token(token)]);
    let mut roster = Machines::new();
    for number in 0..machines {
        let (name, key) = (name(number), keys(number).key().clone());
        let role = if number == 0 { "one" } else { "many" };
        let labels = BTreeMap::from([("role".to_owned(), role.to_owned())]);
        roster.insert(name.clone(), RosterMachine { key: key.clone(), sealing: None, labels, hold: None });
        let (token, labels) = (Some(digest.clone()), "{}".to_owned());
        units.push(vec![StoreWrite::Enrol(Enrolment { name, key, token, labels, most_waiting: 0 })]);
    }
    assert!(store.commit(&units).unwrap().0.iter().all(Result::is_ok));
    roster
}

pub(crate) struct Controller {
    pub(crate) child: Child,
    pub(crate) port: u16,
    pub(crate) connector: TlsConnector,
}

pub(crate) fn start(folder: &Path) -> Controller {
    start_at(folder, 0)
}

/// Starts a controller at a port: 0 is any.
pub(crate) fn start_at(folder: &Path, port: u16) -> Controller {
    let program = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("stead-fleet");
    let mut command = Command::new(program);
    let listen = format!("127.0.0.1:{port}");
    command.args(["run", "--listen", &listen, "--folder"]).arg(folder).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(',').next()).unwrap().parse().unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("tls.pem")).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Controller { child, port, connector: TlsConnector::from(Arc::new(config)) }
}

/// It ends with what asks it.
impl Drop for Controller {
    fn drop(&mut self) {
        self.end();
    }
}

impl Controller {
    pub(crate) fn end(&mut self) {
        // One that was killed before is not there any more.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// The memory of the controller, in MiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
    }

    /// The time of processors that the controller has used, which says the same on a busy machine as on a quiet one.
    pub(crate) fn processor(&self) -> Duration {
        processor_of(&self.child.id().to_string())
    }

    pub(crate) async fn connect(&self) -> Connection {
        connect(self.port, &self.connector).await.unwrap()
    }
}

/// The time of processors that a process has used.
pub(crate) fn processor_of(process: &str) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks = |field: usize| fields[field].parse::<u64>().unwrap();
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

pub(crate) async fn connect(port: u16, connector: &TlsConnector) -> std::io::Result<Connection> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await?;
    Ok(Connection { stream, read: Vec::new() })
}

pub(crate) struct Connection {
    pub(crate) stream: TlsStream<TcpStream>,
    pub(crate) read: Vec<u8>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

impl Connection {
    pub(crate) async fn ask(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        self.try_ask(method, path, headers, body).await.unwrap()
    }

    pub(crate) async fn try_ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> std::io::Result<Answer> {
        let length = body.len();
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{headers}\r\n")
                .into_bytes();
        request.extend_from_slice(body);
        self.stream.write_all(&request).await?;
        self.stream.flush().await?;
        loop {
            if let Some(end) = self.read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head = String::from_utf8(self.read[..end].to_vec()).unwrap();
                let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                let mut answer = Answer { status, head, body: Vec::new() };
                let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
                if self.read.len() >= end + 4 + length {
                    answer.body = self.read[end + 4..end + 4 + length].to_vec();
                    self.read.drain(..end + 4 + length);
                    return Ok(answer);
                }
            }
            let mut more = [0; 4096];
            let count = self.stream.read(&mut more).await?;
            if count == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            self.read.extend_from_slice(&more[..count]);
        }
    }
}

pub(crate) struct Machine {
    pub(crate) number: usize,
    pub(crate) connection: Connection,
    pub(crate) session: Option<SessionSecret>,
    pub(crate) asked: u64,
}

impl Machine {
    pub(crate) async fn ask(&mut self, method: &str, path: &str, more: &str, body: &[u8]) -> Answer {
        self.asked += 1;
        let (machine, number, content) = (name(self.number), self.asked, Digest::of(body));
        let request = MachineRequest { machine, method: method.to_owned(), path: path.to_owned(), number, content };
        let proof = match &self.session {
            Some(session) => session.prove(request),
            None => Proof::of(&keys(self.number).sign(request)),
        };
        let headers = format!(
            "{}: m{} {number}\r\n{}: {proof}\r\n{more}",
            stead_protocol::REQUEST,
            self.number,
            stead_protocol::SIGNATURE
        );
        let answer = self.connection.ask(method, path, &headers, body).await;
        if let Some(session) = answer.header(stead_protocol::SESSION) {
            self.session = SessionSecret::parse(session);
        }
        answer
    }
}

pub(crate) fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap().trim().to_owned()
}

pub(crate) fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

pub(crate) fn shown(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |part: usize| ms(times[(times.len() * part / 100).min(times.len() - 1)]);
    format!("p50 {}, p99 {}, last {}", at(50), at(99), at(100))
}
