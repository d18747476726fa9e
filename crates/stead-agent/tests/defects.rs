//! The defects that an agent must not have each name the test that holds them.

use std::fs;

use stead_testkit::repository;

/// Packages that speak to a network, or would secure that.
const NETWORK: &[&str] =
    &["curl", "hyper", "native-tls", "openssl", "reqwest", "rustls", "tokio-rustls", "tonic", "tungstenite", "ureq"];

#[test]
fn each_defect_names_tests_that_exist() {
    assert_eq!(stead_testkit::check_table("corpus/agent/lcm/defects/README.md"), 18);
}

#[test]
fn there_is_no_client_of_a_network() {
    let lock = fs::read_to_string(repository().join("Cargo.lock")).unwrap();
    let needed = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let found: Vec<&str> = needed.filter(|name| NETWORK.contains(name)).collect();
    assert!(found.is_empty(), "{found:?}");
}
