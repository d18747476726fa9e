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

/// The one client is that of `Stead/Download`, which fetches what a document names: nothing of the agent itself does.
#[test]
fn there_is_no_client_of_a_network() {
    let lock = fs::read_to_string(repository().join("Cargo.lock")).unwrap();
    let packages = lock.split("[[package]]").skip(1);
    // The controller is a program of its own: the one that an agent runs in reaches nothing of it.
    let own = packages
        .filter(|package| package.trim_start().starts_with("name = \"stead"))
        .filter(|package| !package.trim_start().starts_with("name = \"stead-fleet\""));
    let mut found = Vec::new();
    for package in own {
        let quoted = |line: &str| line.split('"').nth(1).map(|name| name.split(' ').next().unwrap_or(name).to_owned());
        let mut lines = package.trim_start().lines();
        let name = lines.next().and_then(quoted).unwrap();
        let needed = lines.skip_while(|line| !line.starts_with("dependencies")).skip(1).filter_map(quoted);
        found.extend(
            needed.filter(|needed| NETWORK.contains(&needed.as_str())).map(|needed| format!("{name}: {needed}")),
        );
    }
    assert_eq!(found, ["stead-resources: rustls", "stead-resources: ureq"]);
}
