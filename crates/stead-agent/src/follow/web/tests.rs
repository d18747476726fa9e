//! Servers that are right, that are wrong, and that lie.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Instant;

use stead_core::bundle::Bundle;
use stead_release::LONGEST_ENVELOPE;
use stead_testkit::{WebServer, web_answer};
use tempfile::TempDir;

use super::*;

/// A follower of a server, with a place of its own.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn files(&self, server: &WebServer) -> WebFiles {
        let base = Url::parse(&server.url("fleet/")).unwrap();
        WebFiles::new(base, self.0.path().join("web"), Cancel::default())
    }
}

fn whole(headers: &str, content: &[u8]) -> Vec<u8> {
    web_answer("200 OK", &format!("{headers}content-length: {}\r\n", content.len()), content)
}

fn empty(status: &str, headers: &str) -> Vec<u8> {
    web_answer(status, &format!("{headers}content-length: 0\r\n"), b"")
}

/// The rest of a content from a place on, as `206` has it.
fn rest(content: &[u8], from: usize) -> Vec<u8> {
    let (last, all) = (content.len() - 1, content.len());
    let headers = format!("content-range: bytes {from}-{last}/{all}\r\ncontent-length: {}\r\n", all - from);
    web_answer("206 Partial Content", &headers, &content[from..])
}

/// A bundle, the file that it is, and its bytes.
fn bundle() -> (SourceFile, Vec<u8>) {
    let text = format!("# {}\nresources: []\n", "x".repeat(10_000));
    let bundle = Bundle::new(None, ("site.yaml".to_owned(), Arc::from(text)), BTreeMap::new()).unwrap();
    (SourceFile::Blob(bundle.name().parse().unwrap()), bundle.encode())
}

fn envelope() -> SourceFile {
    SourceFile::Envelope("web".parse().unwrap(), 1, stead_hosts::MachineName::parse("web1").unwrap())
}

/// The reason for which a server gives nothing, and how often it was asked for that.
fn refused(answer: &[u8], file: &SourceFile) -> (FetchError, usize) {
    let server = WebServer::with(vec![answer.to_vec()]);
    let refused = Machine::new().files(&server).file(file).unwrap_err();
    (refused, server.requests().len())
}

#[test]
fn a_statement_is_asked_for_by_what_the_server_said_of_it() {
    let date = "last-modified: Thu, 26 Nov 2026 10:00:00 GMT\r\n";
    for (said, condition) in [
        ("etag: \"one\"\r\n", "if-none-match: \"one\"\r\n"),
        (date, "if-modified-since: thu, 26 nov 2026 10:00:00 gmt\r\n"),
    ] {
        let answers = [
            whole(said, b"old"),
            web_answer("304 Not Modified", said, b""),
            whole("etag: \"two\"\r\n", b"new"),
            empty("404 Not Found", ""),
            empty("410 Gone", ""),
        ];
        let server = WebServer::with(answers.to_vec());
        let (machine, file) = (Machine::new(), SourceFile::Release("web".parse().unwrap(), 7));
        let mut files = machine.files(&server);
        let read: Vec<_> = (0..5).map(|_| files.file(&file).unwrap()).collect();
        let texts = [Some("old"), Some("old"), Some("new"), None, None];
        assert_eq!(read, texts.map(|text| text.map(|text: &str| text.as_bytes().to_vec())));
        let requests = server.requests();
        assert!(requests.iter().all(|each| each.starts_with("get /fleet/web/7.release http")), "{requests:?}");
        assert!(!requests[0].contains("if-"), "{requests:?}");
        assert!(requests[1].contains(condition) && requests[2].contains(condition), "{requests:?}");
        assert!(requests[3].contains("if-none-match: \"two\"\r\n"), "{requests:?}");
    }
}

/// What a server says is known that nobody knows.
#[test]
fn an_answer_without_content_is_refused() {
    let (error, asked) = refused(&web_answer("304 Not Modified", "", b""), &SourceFile::Root);
    assert!(error.reason.ends_with("the server answered 304 Not Modified"), "{error}");
    assert_eq!(asked, 1);
}

#[test]
fn a_bundle_that_breaks_off_goes_on_in_another_process_and_is_fetched_once() {
    let (file, bytes) = bundle();
    let broken = web_answer("200 OK", &format!("content-length: {}\r\n", bytes.len()), &bytes[..4000]);
    let server = WebServer::with(vec![broken, empty("503 Service Unavailable", ""), rest(&bytes, 4000)]);
    let machine = Machine::new();
    let error = machine.files(&server).file(&file).unwrap_err();
    assert!(error.reason.ends_with("the server answered 503 Service Unavailable"), "{error}");
    assert_eq!(machine.files(&server).file(&file), Ok(Some(bytes.clone())));
    let requests = server.requests();
    assert!(!requests[0].contains("range:"), "{requests:?}");
    assert!(requests[1..].iter().all(|each| each.contains("range: bytes=4000-\r\n")), "{requests:?}");
    assert_eq!(machine.files(&server).file(&file), Ok(Some(bytes)), "it is here");
    assert_eq!(server.requests().len(), 3);
    // A statement and another bundle end what was kept of this one.
    let other = SourceFile::Blob(format!("sha256-{}", "0".repeat(64)).parse().unwrap());
    let gone = WebServer::with(vec![empty("404 Not Found", "")]);
    assert_eq!(machine.files(&gone).file(&other), Ok(None));
    assert_eq!(machine.files(&gone).file(&file), Ok(None));
}

#[test]
fn a_part_that_is_wrong_or_already_all_ends_with_what_is_right() {
    let (file, bytes) = bundle();
    let SourceFile::Blob(name) = &file else { panic!("a bundle is a blob") };
    let wrong_place = rest(&bytes, 3000);
    let all = format!("content-range: bytes */{}\r\n", bytes.len());
    let whole = whole("", &bytes);
    for (kept, answers, asked) in [
        // Another part than the one asked for: everything, once.
        (bytes[..4000].to_vec(), vec![wrong_place, whole.clone()], 2),
        // The server knows no ranges.
        (bytes[..4000].to_vec(), vec![whole.clone()], 1),
        // What is there is not its beginning.
        (vec![0; 4000], vec![rest(&bytes, 4000), whole.clone()], 2),
        // It has the length and another content; so does what is longer.
        (vec![0; bytes.len()], vec![empty("416 Range Not Satisfiable", &all), whole.clone()], 2),
        (vec![0; bytes.len() + 1], vec![empty("416 Range Not Satisfiable", &all), whole.clone()], 2),
        // Less than the rest, in two parts.
        (
            bytes[..4000].to_vec(),
            vec![
                web_answer(
                    "206 Partial Content",
                    &format!("content-range: bytes 4000-4999/{}\r\ncontent-length: 1000\r\n", bytes.len()),
                    &bytes[4000..5000],
                ),
                rest(&bytes, 5000),
            ],
            2,
        ),
        // All of it came, and the end of it did not.
        (
            Vec::new(),
            vec![
                web_answer(
                    "200 OK",
                    "transfer-encoding: chunked\r\n",
                    &[format!("{:x}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat(),
                ),
                empty("416 Range Not Satisfiable", &all),
            ],
            2,
        ),
        // A part that nobody asked for is not all of it.
        (Vec::new(), vec![rest(&bytes[..100], 0), whole], 2),
    ] {
        let (machine, server) = (Machine::new(), WebServer::with(answers));
        fs::create_dir(machine.0.path().join("web")).unwrap();
        fs::write(machine.0.path().join("web").join(name.as_str()), &kept).unwrap();
        let read = machine.files(&server).file(&file);
        assert_eq!(read, Ok(Some(bytes.clone())), "{:?}", server.requests());
        assert_eq!(server.requests().len(), asked, "{:?}", server.requests());
    }
}

#[test]
fn lengths_that_are_lies_cost_little() {
    let most = format!("it has more than {LONGEST_ENVELOPE} bytes");
    // Ten gigabytes are announced: nothing of them is read.
    let (error, asked) = refused(&web_answer("200 OK", "content-length: 10000000000\r\n", b"x"), &envelope());
    assert!(error.reason.ends_with(&most), "{error}");
    assert_eq!(asked, 1);
    // More is announced than comes.
    let (error, asked) = refused(&web_answer("200 OK", "content-length: 10\r\n", b"abc"), &SourceFile::Root);
    assert!(error.reason.starts_with("cannot fetch 'http://"), "{error}");
    assert_eq!(error.until, None);
    assert!((1..10).contains(&asked), "{asked}");
    // Less is announced than comes, which is cut off.
    let server = WebServer::with(vec![web_answer("200 OK", "content-length: 3\r\n", b"abcdef")]);
    assert_eq!(Machine::new().files(&server).file(&SourceFile::Root), Ok(Some(b"abc".to_vec())));
}

#[test]
fn what_never_ends_is_ended() {
    for headers in ["", "transfer-encoding: chunked\r\n"] {
        let server = WebServer::new(move |_, client| {
            let chunk = if headers.is_empty() { "x".repeat(4096) } else { format!("1000\r\n{}\r\n", "x".repeat(4096)) };
            let _ = client.write_all(&web_answer("200 OK", headers, b""));
            while client.write_all(chunk.as_bytes()).is_ok() {}
        });
        let machine = Machine::new();
        let error = machine.files(&server).file(&envelope()).unwrap_err();
        assert!(error.reason.ends_with(&format!("it has more than {LONGEST_ENVELOPE} bytes")), "{error}");
        assert_eq!(server.requests().len(), 1);
        assert_eq!(fs::read_dir(machine.0.path().join("web")).unwrap().count(), 0, "nothing is left of it");
    }
}

#[test]
fn a_stall_is_ended() {
    for begun in ["", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"] {
        let server = WebServer::new(move |_, client| {
            let _ = client.write_all(begun.as_bytes());
            // Until the other side has enough of it.
            let _ = client.read(&mut [0]);
        });
        let machine = Machine::new();
        let mut files = machine.files(&server);
        files.timeouts.0 = Duration::from_millis(300);
        let began = Instant::now();
        let error = files.file(&SourceFile::Root).unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(30), "{error}");
        assert!(error.reason.contains("timeout") || error.reason.contains("took longer"), "{error}");
    }
}

#[test]
fn redirects_end_and_lead_nowhere_where_it_could_be_from_anybody() {
    let to = |location: &str| empty("302 Found", &format!("location: {location}\r\n"));
    for (location, reason) in [
        ("http://releases.example/root", "redirects to 'http://releases.example/root', where it could be from anybody"),
        ("//192.0.2.1/root?key=secret", "redirects to 'http://192.0.2.1/root', where it could be from anybody"),
        ("file:///etc/passwd", "redirects to 'file:///etc/passwd', which is not HTTP"),
        ("root", "redirects more than 10 times"),
    ] {
        let (error, asked) = refused(&to(location), &SourceFile::Root);
        assert!(error.reason.ends_with(reason), "{error}");
        assert_eq!(asked, if location == "root" { 11 } else { 1 });
    }
    let server = WebServer::with(vec![to("/there"), whole("", b"the root")]);
    assert_eq!(Machine::new().files(&server).file(&SourceFile::Root), Ok(Some(b"the root".to_vec())));
    assert!(server.requests()[1].starts_with("get /there http"));
}

#[test]
fn a_server_that_is_busy_is_left_alone_until_the_time_that_it_names() {
    let now = Timestamp::now();
    let date = "retry-after: Sun, 01 Jan 2040 00:00:00 GMT\r\n";
    let after = |seconds: i64| Timestamp::from_second(now.as_second() + seconds).unwrap();
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        for (header, expected) in [
            ("retry-after: 120\r\n", Some(after(120))),
            (date, Some("2040-01-01T00:00:00Z".parse().unwrap())),
            ("retry-after: 18446744073709551615\r\n", Some(Timestamp::MAX)),
            ("retry-after: soon\r\n", None),
            ("retry-after: -5\r\n", None),
            ("retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n", None),
            ("", None),
        ] {
            let (error, asked) = refused(&empty(status, header), &SourceFile::Root);
            assert_eq!(asked, 1, "{status} {header}");
            let is_near = |until: Timestamp| (until.as_second() - expected.unwrap().as_second()).abs() < 60;
            assert_eq!(error.until.is_some(), expected.is_some(), "{header} {error}");
            assert!(error.until.is_none_or(is_near), "{header} {error}");
            let said = format!("the server answered {status}");
            let shown = error.until.map(|until| format!("{said}, and wants to be left alone until {until:.0}"));
            assert!(error.reason.ends_with(&shown.unwrap_or(said)), "{error}");
        }
    }
}
