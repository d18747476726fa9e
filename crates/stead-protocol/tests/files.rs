//! The files of a controller that a machine knows, and those that it must ask for.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::collections::BTreeMap;

use stead_core::bundle::Bundle;
use stead_hosts::MachineName;
use stead_protocol::{DesiredAnswer, KnownFile, KnownFiles};
use stead_release::{ChainLink, Digest, MachineKeys, MachineSecret, Release, SourceFile};

fn bundle(text: &str) -> (SourceFile, String) {
    let bundle = Bundle::new(None, ("main.yaml".to_owned(), text.into()), BTreeMap::new()).unwrap();
    (SourceFile::Blob(bundle.name().parse().unwrap()), String::from_utf8(bundle.encode()).unwrap())
}

/// A release as its text: who signed it is judged by whoever follows.
fn release(number: u64) -> String {
    let fleet = Digest::of(b"root");
    let made = "2030-01-01T00:00:00Z".parse().unwrap();
    let link = ChainLink { fleet: fleet.clone(), number, parent: fleet.clone(), signers: fleet.clone(), made };
    let (channel, selector) = ("web".parse().unwrap(), "all".parse().unwrap());
    let expires = "2031-01-01T00:00:00Z".parse().unwrap();
    let parameters = serde_json::Map::new();
    let release = Release { link, channel, expires, selector, bundle: fleet, parameters, sealed: None };
    MachineKeys::of(&MachineSecret::of(&[7; MachineSecret::LENGTH])).sign(release).to_text()
}

fn answer(number: u64, roster: u64, bundle: Option<String>) -> DesiredAnswer {
    DesiredAnswer { channel: "web".to_owned(), number, releases: vec![release(number)], bundle, signers: 1, roster }
}

fn at(number: u64) -> SourceFile {
    SourceFile::Release("web".parse().unwrap(), number)
}

fn here(text: &str) -> KnownFile {
    KnownFile::Here(text.as_bytes().into())
}

#[test]
fn what_came_or_was_fetched_is_not_asked_for_and_nothing_is_behind_what_is_named() {
    let mut files = KnownFiles::default();
    files.begin(Some(answer(3, 1, None)));
    assert_eq!(files.find(&at(3)), here(&release(3)));
    assert_eq!(files.find(&at(4)), KnownFile::Absent);
    assert_eq!(files.find(&SourceFile::Signers(2)), KnownFile::Absent);
    let unknown = [at(2), SourceFile::Root, SourceFile::Roster, SourceFile::Signers(1)];
    assert!(unknown.iter().all(|file| files.find(file) == KnownFile::Unknown));
    for file in &unknown {
        files.keep(file.clone(), b"fetched".as_slice().into());
    }
    files.ended(true);
    files.begin(Some(answer(4, 1, None)));
    assert!(unknown.iter().chain([&at(3), &at(4)]).all(|file| matches!(files.find(file), KnownFile::Here(_))));
    // Another roster, and nothing else.
    files.ended(true);
    files.begin(Some(answer(4, 2, None)));
    assert_eq!(files.find(&SourceFile::Roster), KnownFile::Unknown);
    assert_eq!(files.find(&SourceFile::Root), here("fetched"));
}

#[test]
fn what_is_known_is_fetched_again_behind_a_look_that_did_not_end_well() {
    for ends in [true, false] {
        let mut files = KnownFiles::default();
        files.begin(Some(answer(3, 1, None)));
        files.keep(SourceFile::Root, b"wrong".as_slice().into());
        if ends {
            files.ended(false);
        }
        files.begin(Some(answer(3, 1, None)));
        assert_eq!(files.find(&SourceFile::Root), KnownFile::Unknown);
        assert_eq!(files.find(&at(3)), here(&release(3)), "it came with the answer once more");
    }
}

#[test]
fn a_bundle_that_came_with_an_answer_is_the_one_of_its_name_or_none() {
    let ((name, text), (other, _)) = (bundle("one"), bundle("other"));
    let mut files = KnownFiles::default();
    files.begin(Some(answer(3, 1, Some(text.clone()))));
    assert_eq!(files.find(&name), here(&text));
    assert_eq!(files.find(&other), KnownFile::Unknown);
    for wrong in
        [text.replace("one", "two"), text.replace("main", "more"), text[..text.len() - 1].to_owned(), String::new()]
    {
        assert_ne!(wrong, text);
        files.begin(Some(answer(3, 1, Some(wrong.clone()))));
        assert_eq!(files.find(&name), KnownFile::Unknown, "{wrong}");
    }
    // Nothing of bundles and secrets is kept here.
    for file in [name, SourceFile::Envelope("web".parse().unwrap(), 3, MachineName::parse("web1").unwrap())] {
        files.keep(file.clone(), b"fetched".as_slice().into());
        assert_eq!(files.find(&file), KnownFile::Unknown);
    }
}

#[test]
fn an_answer_of_a_version_before_has_no_bundle_and_one_of_a_version_behind_has_more() {
    let text = r#"{"channel":"web","number":1,"releases":[],"signers":0,"roster":1}"#;
    let read: DesiredAnswer = serde_json::from_str(text).unwrap();
    assert_eq!(read.bundle, None);
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    let more = text.replace('{', r#"{"waves":[1],"#);
    assert_eq!(serde_json::from_str::<DesiredAnswer>(&more).unwrap(), read);
}
