//! Files that follow their URLs.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn with(validators: &str, body: &str) -> String {
    answer("200 OK", &format!("{validators}content-length: {}\r\n", body.len()), body)
}

fn unchanged() -> String {
    answer("304 Not Modified", "", "")
}

fn desired(url: &str) -> Json {
    json!({"path": "f", "url": url, "follow": "url"})
}

fn apply(world: &World, desired: &Json) -> bool {
    let reply = set(world, desired, Execution::Actual);
    reply.map_err(|failure| failure.message).unwrap().changed.is_some_and(|changed| !changed.is_empty())
}

fn is_in_state(world: &World, desired: &Json) -> bool {
    let tested = provider("Stead/Download").test(&world.context(), &Plain::new(desired.clone()));
    tested.map_err(|failure| failure.message).unwrap().in_desired_state.unwrap()
}

#[test]
fn a_server_is_asked_by_what_it_said_whether_it_has_another_content() {
    let date = "last-modified: Thu, 26 Nov 2026 10:00:00 GMT\r\n";
    for (first, second, asked) in [
        ("etag: \"one\"\r\n", "etag: \"two\"\r\n", "if-none-match: \"one\"\r\n"),
        ("etag: W/\"one\"\r\n", "etag: W/\"two\"\r\n", "if-none-match: w/\"one\"\r\n"),
        (
            date,
            "last-modified: Fri, 27 Nov 2026 10:00:00 GMT\r\n",
            "if-modified-since: thu, 26 nov 2026 10:00:00 gmt\r\n",
        ),
    ] {
        // The last one answers with the same content instead of saying so.
        let answers = [with(first, "old"), unchanged(), with(second, "new"), with(second, "new"), with(second, "new")];
        let (world, server) = (World::build(""), Server::new(answers.to_vec()));
        let desired = desired(&server.url("x"));
        assert!(apply(&world, &desired), "{asked}");
        assert!(!apply(&world, &desired), "{asked}");
        assert!(!is_in_state(&world, &desired), "{asked}");
        assert_eq!(content(&world), "old", "a test changes nothing");
        let requests = server.requests();
        assert!(!requests[0].contains("if-") && requests[1..].iter().all(|each| each.contains(asked)), "{requests:?}");
    }
}

#[test]
fn what_has_changed_is_downloaded_and_known_then() {
    let (one, two) = ("etag: \"one\"\r\n", "etag: \"two\"\r\n");
    let answers = [with(one, "old"), with(two, "new"), with(two, "new"), with("etag: W/\"two\"\r\n", "new")];
    let (world, server) = (World::build(""), Server::new(answers.to_vec()));
    let desired = desired(&server.url("x"));
    assert!(apply(&world, &desired));
    assert!(apply(&world, &desired));
    assert_eq!(content(&world), "new");
    assert!(is_in_state(&world, &desired), "the same ETag says the same content");
    assert!(server.requests()[3].contains("if-none-match: \"two\""));
}

#[test]
fn what_was_changed_here_or_comes_from_elsewhere_is_downloaded_again() {
    let one = "etag: \"one\"\r\n";
    let (world, server) = (World::build(""), Server::new(vec![with(one, "right"); 3]));
    let there = desired(&server.url("x"));
    assert!(apply(&world, &there));
    fs::write(world.root.path().join("f"), "wrong").unwrap();
    assert!(!is_in_state(&world, &there));
    assert_eq!(server.requests().len(), 1, "who sees it here asks nobody");
    assert!(apply(&world, &there));
    assert_eq!(content(&world), "right");
    assert!(!is_in_state(&world, &desired(&server.url("y"))), "another URL");
}

#[test]
fn a_server_that_says_nothing_of_its_content_is_refused() {
    let (world, server) = (World::build(""), Server::new(vec![whole("abc")]));
    let failure = message(set(&world, &desired(&server.url("x")), Execution::Actual));
    assert!(
        failure.ends_with("states no ETag and no Last-Modified. Without 'follow', state a 'checksum'"),
        "{failure}"
    );
    assert_eq!(world.tree(), "");
}

#[test]
fn a_server_that_is_away_is_no_state() {
    let answers = vec![with("etag: \"one\"\r\n", "old"), answer("403 Forbidden", "content-length: 0\r\n", "")];
    let (world, server) = (World::build(""), Server::new(answers));
    let desired = desired(&server.url("x"));
    assert!(apply(&world, &desired));
    let tested = provider("Stead/Download").test(&world.context(), &Plain::new(desired));
    let failure = tested.err().unwrap().message;
    assert!(failure.ends_with("the server answered 403 Forbidden"), "{failure}");
    assert_eq!(content(&world), "old");
}

#[test]
fn what_could_be_from_anybody_is_not_followed() {
    let failure = set(&World::build(""), &desired("http://downloads.example/x"), Execution::WhatIf).err().unwrap();
    assert_eq!(failure.property.as_deref(), Some("/follow"), "{}", failure.message);
    assert!(failure.message.starts_with("'follow' needs a URL of https"), "{}", failure.message);
}

#[test]
fn a_file_of_this_machine_is_followed_by_its_content() {
    let world = World::build("file source 0644 \"one\"\n");
    let source = world.root.path().join("source");
    let desired = desired(&format!("file://{}", source.display()));
    assert!(apply(&world, &desired));
    assert!(is_in_state(&world, &desired));
    fs::write(source, "two").unwrap();
    assert!(apply(&world, &desired));
    assert_eq!(content(&world), "two");
    assert!(!world.root.path().join("f.etag").exists());
}

#[test]
fn what_is_kept_goes_with_the_file_and_names_no_secret() {
    let (world, server) = (World::build(""), Server::new(vec![with("etag: \"one\"\r\n", "x")]));
    let url = format!("http://user:canary-password@{}/x?token=canary-query", server.address);
    assert!(apply(&world, &desired(&url)));
    let kept = fs::read_to_string(world.root.path().join("f.etag")).unwrap();
    assert!(kept.contains("\\\"one\\\"") && !kept.contains("canary"), "{kept}");
    let mode = fs::metadata(world.root.path().join("f.etag")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600, "the digest of a URL that holds a secret is for nobody else");
    let absent = json!({"path": "f", "follow": "url", "_exist": false});
    provider("Stead/Download").delete(&world.context(), &Plain::new(absent), Execution::Actual).ok().unwrap();
    assert_eq!(world.tree(), "");
}

#[test]
fn a_server_of_this_machine_leads_nowhere_where_it_could_be_from_anybody() {
    let redirect = "location: http://downloads.example/x?token=canary\r\ncontent-length: 0\r\n";
    let (world, server) = (World::build(""), Server::new(vec![answer("302 Found", redirect, "")]));
    let failure = message(set(&world, &desired(&server.url("x")), Execution::Actual));
    let reason = "redirects to 'http://downloads.example/x', where it could be from anybody";
    assert!(failure.ends_with(reason), "{failure}");
}

#[test]
fn a_part_is_not_taken_for_all() {
    let part = |range: &str, body: &str| {
        let length = body.len();
        let headers = format!("etag: \"one\"\r\ncontent-range: bytes {range}/10\r\ncontent-length: {length}\r\n");
        answer("206 Partial Content", &headers, body)
    };
    let broken = answer("200 OK", "etag: \"one\"\r\ncontent-length: 10\r\n", "abcd");
    for answers in [
        // Nobody asked for a part.
        vec![part("0-2", "abc"), with("etag: \"one\"\r\n", "abcdefghij")],
        // Less than the rest that was asked for.
        vec![broken, part("4-5", "ef"), part("6-9", "ghij")],
    ] {
        let (world, server) = (World::build(""), Server::new(answers));
        assert!(apply(&world, &desired(&server.url("x"))));
        assert_eq!(content(&world), "abcdefghij", "{:?}", server.requests());
    }
}
