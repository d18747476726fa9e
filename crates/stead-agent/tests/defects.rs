//! The defects that an agent must not have each name the test that holds them.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::fs;
use std::path::Path;

use stead_testkit::repository;

/// Packages that speak to a network, or would secure that.
const NETWORK: &[&str] =
    &["curl", "hyper", "native-tls", "openssl", "reqwest", "rustls", "tokio-rustls", "tonic", "tungstenite", "ureq"];

/// All tests of the repository, as text.
fn tests() -> String {
    fn add(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                add(&entry, text);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                *text += &fs::read_to_string(entry).unwrap();
            }
        }
    }
    let mut text = String::new();
    for member in fs::read_dir(repository().join("crates")).unwrap() {
        let folder = member.unwrap().path().join("tests");
        if folder.is_dir() {
            add(&folder, &mut text);
        }
    }
    text
}

#[test]
fn each_defect_names_tests_that_exist() {
    let table = fs::read_to_string(repository().join("corpus/agent/lcm/defects/README.md")).unwrap();
    let (tests, mut number) = (tests(), 0);
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| |")) {
        number += 1;
        assert!(row.starts_with(&format!("| {number} |")), "{row}");
        let held_by = row.trim_end_matches(['|', ' ']).rsplit_once('|').unwrap().1;
        let named: Vec<&str> = held_by.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test is named: {row}");
        for name in named {
            let exists = match name.strip_prefix("corpus/") {
                Some(_) => repository().join(name).is_file(),
                None => tests.contains(&format!("#[test]\nfn {name}()")),
            };
            assert!(exists, "{name} is not there: {row}");
        }
    }
    assert_eq!(number, 18);
}

#[test]
fn there_is_no_client_of_a_network() {
    let lock = fs::read_to_string(repository().join("Cargo.lock")).unwrap();
    let needed = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let found: Vec<&str> = needed.filter(|name| NETWORK.contains(name)).collect();
    assert!(found.is_empty(), "{found:?}");
}
