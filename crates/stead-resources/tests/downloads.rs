//! Downloads from a server of the test's own.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "downloads/follow.rs"]
mod follow;
mod support;
#[path = "downloads/tls.rs"]
mod tls;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Failure, FailureKind};
use stead_host::provider::{Plain, SetReply};
use support::{World, provider};

/// The digest of the letters from a to j.
const DIGEST: &str = "sha256:72399361da6a7754fec986dca5b7cbaf1c810a28ded4abaf56b2106d06cb78b0";

/// Answers one connection after the other with the next of its answers, and keeps the requests.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(answers: Vec<String>) -> Self {
        Self::over(answers, |client| client)
    }

    /// With what is spoken over its connections.
    fn over<S: Read + Write>(answers: Vec<String>, connect: impl Fn(TcpStream) -> S + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, requests) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            for answer in answers {
                let mut client = connect(listener.accept().unwrap().0);
                let request = head(&mut client);
                kept.lock().unwrap().push(request);
                // Who asked may have gone.
                let _ = client.write_all(answer.as_bytes());
            }
        });
        Self { address, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|request| request.to_lowercase()).collect()
    }
}

/// The head of a request, or what came before the client went.
fn head(client: &mut impl Read) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n{body}")
}

fn whole(body: &str) -> String {
    answer("200 OK", &format!("content-length: {}\r\n", body.len()), body)
}

fn set(world: &World, desired: &Json, execution: Execution) -> Result<SetReply, Failure> {
    provider("Stead/Download").set(&world.context(), &Plain::new(desired.clone()), execution)
}

fn message(set: Result<SetReply, Failure>) -> String {
    set.err().expect("it is refused").message
}

fn content(world: &World) -> String {
    fs::read_to_string(world.root.path().join("f")).unwrap()
}

#[test]
fn a_file_is_downloaded_once() {
    let (world, server) = (World::build(""), Server::new(vec![whole("abcdefghij")]));
    let desired = json!({"path": "f", "url": server.url("x"), "checksum": DIGEST});
    assert!(set(&world, &desired, Execution::WhatIf).is_ok());
    assert!(server.requests().is_empty(), "a what-if asks nobody");
    for _ in 0..2 {
        set(&world, &desired, Execution::Actual).map_err(|failure| failure.message).unwrap();
    }
    assert_eq!((content(&world).as_str(), server.requests().len()), ("abcdefghij", 1));
}

#[test]
fn a_transfer_that_breaks_off_is_resumed() {
    let (begin, rest) =
        ("etag: \"e1\"\r\ncontent-length: 10\r\n", "content-range: bytes 4-9/10\r\ncontent-length: 6\r\n");
    let broken = answer("200 OK", begin, "abcd");
    let server = Server::new(vec![broken, answer("206 Partial Content", rest, "efghij")]);
    let world = World::build("");
    let desired = json!({"path": "f", "url": server.url("x"), "checksum": DIGEST});
    set(&world, &desired, Execution::Actual).map_err(|failure| failure.message).unwrap();
    assert_eq!(content(&world), "abcdefghij");
    let second = &server.requests()[1];
    assert!(second.contains("range: bytes=4-\r\n") && second.contains("if-range: \"e1\"\r\n"), "{second}");
}

#[test]
fn a_transfer_of_what_has_changed_begins_anew() {
    let broken = answer("200 OK", "etag: \"e1\"\r\ncontent-length: 10\r\n", "ABCD");
    let (world, server) = (World::build(""), Server::new(vec![broken, whole("abcdefghij")]));
    let desired = json!({"path": "f", "url": server.url("x"), "checksum": DIGEST});
    set(&world, &desired, Execution::Actual).map_err(|failure| failure.message).unwrap();
    assert_eq!(content(&world), "abcdefghij");
}

#[test]
fn another_digest_leaves_nothing_behind() {
    let (world, server) = (World::build("file f 0644 \"old\"\n"), Server::new(vec![whole("other")]));
    let desired = json!({"path": "f", "url": server.url("x"), "checksum": DIGEST});
    assert_eq!(message(set(&world, &desired, Execution::Actual)), "what was downloaded has another digest");
    assert_eq!(world.tree(), "file f 0644 \"old\"\n");
}

#[test]
fn credentials_and_headers_stay_with_their_host_and_out_of_messages() {
    let elsewhere = Server::new(vec![answer("404 Not Found", "content-length: 0\r\n", "")]);
    let redirect = format!("location: {}\r\ncontent-length: 0\r\n", elsewhere.url("there?key=canary-query"));
    let server = Server::new(vec![answer("302 Found", &redirect, "")]);
    let world = World::build("");
    let address = server.address;
    let url = format!("http://us%65r:canary-password@{address}/x?token=canary-query");
    let desired = json!({"path": "f", "url": url, "checksum": DIGEST, "headers": {"x-token": "canary-header"}});
    let failure = message(set(&world, &desired, Execution::Actual));
    assert_eq!(failure, format!("cannot download 'http://{address}/x': the server answered 404 Not Found"));
    let (first, second) = (server.requests().concat(), elsewhere.requests().concat());
    assert!(first.contains("authorization: basic dxnlcjpjyw5hcnktcgfzc3dvcmq=\r\n"), "{first}");
    assert!(first.contains("x-token: canary-header\r\n"), "{first}");
    assert!(!second.contains("canary-header") && !second.contains("authorization"), "{second}");
    let tested = provider("Stead/Download").test(&world.context(), &Plain::new(desired.clone())).ok().unwrap();
    let planned = set(&world, &desired, Execution::WhatIf).ok().unwrap();
    let said = [tested.actual.unwrap().to_json().to_string(), planned.after.unwrap().to_json().to_string()].concat()
        + &planned.what_if.concat()
        + &world.trace.lock().unwrap().concat();
    assert!(!said.contains("canary"), "{said}");
}

#[test]
fn redirects_come_to_an_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let redirect = answer("301 Moved", &format!("location: http://{address}/x\r\ncontent-length: 0\r\n"), "");
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            head(&mut client);
            let _ = client.write_all(redirect.as_bytes());
        }
    });
    let desired = json!({"path": "f", "url": format!("http://{address}/x"), "checksum": DIGEST});
    assert!(message(set(&World::build(""), &desired, Execution::Actual)).ends_with("redirects more than 10 times"));
}

#[test]
fn more_than_the_limit_is_not_taken() {
    let unannounced = answer("200 OK", "", "abcdefghij");
    let server = Server::new(vec![whole("abcdefghij"), unannounced]);
    for _ in 0..2 {
        let world = World::build("");
        let desired = json!({"path": "f", "url": server.url("x"), "checksum": DIGEST, "maxSize": 9});
        let failure = message(set(&world, &desired, Execution::Actual));
        assert!(failure.ends_with("it has more than 9 bytes, see 'maxSize'"), "{failure}");
        assert_eq!(world.tree(), "");
    }
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let desired = json!({"path": "f", "url": url, "checksum": DIGEST, "timeout": 1});
    let failure = set(&World::build(""), &desired, Execution::Actual).err().unwrap();
    assert_eq!(failure.kind, FailureKind::Deadline, "{}", failure.message);
}

#[test]
fn a_server_that_goes_on_forever_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            head(&mut client);
            // Each part comes long before silence would end it, and each connection has one that is new.
            let _ = client.write_all(answer("200 OK", "etag: \"e\"\r\n", "").as_bytes());
            while client.write_all(b"a").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
    let (world, begin) = (World::build(""), Instant::now());
    let desired = json!({"path": "f", "url": url, "checksum": DIGEST, "timeout": 1});
    let failure = set(&world, &desired, Execution::Actual).err().unwrap();
    assert_eq!(failure.kind, FailureKind::Deadline, "{}", failure.message);
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!(world.tree(), "");
}

/// Each answer comes in time, and all of them together do not.
#[test]
fn redirects_share_a_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let redirect = answer("302 Found", &format!("location: http://{address}/x\r\ncontent-length: 0\r\n"), "");
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            head(&mut client);
            std::thread::sleep(Duration::from_millis(300));
            let _ = client.write_all(redirect.as_bytes());
        }
    });
    let desired = json!({"path": "f", "url": format!("http://{address}/x"), "checksum": DIGEST, "timeout": 1});
    let failure = set(&World::build(""), &desired, Execution::Actual).err().unwrap();
    assert_eq!(failure.kind, FailureKind::Deadline, "{}", failure.message);
}

/// A connection after one that broke off with progress does not get the whole time again.
#[test]
fn transfers_that_break_off_share_a_deadline() {
    const TIMEOUT: Duration = Duration::from_secs(4);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut clients = listener.incoming().map(Result::unwrap);
        let mut first = clients.next().unwrap();
        head(&mut first);
        std::thread::sleep(TIMEOUT * 3 / 4);
        let _ = first.write_all(answer("200 OK", "content-length: 10\r\n", "a").as_bytes());
        drop(first);
        // The others are kept, and nothing is said to them.
        clients.collect::<Vec<_>>()
    });
    let begin = Instant::now();
    let desired = json!({"path": "f", "url": url, "checksum": DIGEST, "timeout": TIMEOUT.as_secs()});
    let failure = set(&World::build(""), &desired, Execution::Actual).err().unwrap();
    assert_eq!(failure.kind, FailureKind::Deadline, "{}", failure.message);
    // With the whole time for the second one it would be seven.
    assert!(begin.elapsed() < TIMEOUT * 3 / 2, "{:?}", begin.elapsed());
}

#[test]
fn a_proxy_is_used() {
    let (world, proxy) = (World::build(""), Server::new(vec![answer("403 Forbidden", "content-length: 0\r\n", "")]));
    let desired = json!({
        "path": "f", "url": "http://host.example/x", "checksum": DIGEST, "timeout": 1,
        "proxy": format!("http://user:canary-password@{}", proxy.address),
    });
    let failure = message(set(&world, &desired, Execution::Actual));
    assert!(!failure.contains("canary"), "{failure}");
    let asked = proxy.requests().concat();
    assert!(asked.contains("host.example"), "{asked}");
}

#[test]
fn a_pin_refuses_another_content() {
    let (world, server) = (World::build(""), Server::new(vec![whole("first"), whole("other")]));
    let desired = json!({"path": "f", "url": server.url("x"), "pin": "firstUse"});
    set(&world, &desired, Execution::Actual).map_err(|failure| failure.message).unwrap();
    fs::remove_file(world.root.path().join("f")).unwrap();
    let failure = message(set(&world, &desired, Execution::Actual));
    assert!(failure.starts_with("what was downloaded is not what was there at first"), "{failure}");
    assert!(!world.root.path().join("f").exists());
}

#[test]
fn a_pin_that_somebody_else_placed_is_not_trusted() {
    if !stead_testkit::is_root("a_pin_that_somebody_else_placed_is_not_trusted") {
        return;
    }
    let (_, digest) = DIGEST.split_once(':').unwrap();
    let world = World::build(&format!("dir . 1777\nfile f.sha256 0644 \"{digest}  f\\n\"\n"));
    chown(world.root.path().join("f.sha256"), Some(1), None).unwrap();
    let server = Server::new(vec![whole("abcdefghij")]);
    let desired = json!({"path": "f", "url": server.url("x"), "pin": "firstUse"});
    for execution in [Execution::WhatIf, Execution::Actual] {
        let failure = message(set(&world, &desired, execution));
        assert!(failure.contains("f.sha256' is not trusted: it belongs to another user"), "{failure}");
    }
    assert!(server.requests().is_empty() && !world.root.path().join("f").exists());
}
