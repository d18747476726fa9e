//! Addresses that a document states: each one is used or refused, and none is the end of the program.

use std::process::Command;

use super::{Place, answer};

/// Proxies that are none of HTTP, or no addresses at all.
const REFUSED: [&str; 18] = [
    "socks5://127.0.0.1:1080",
    "socks4://127.0.0.1:1080",
    "socks5h://h",
    "SOCKS5://h:1",
    "ftp://h:21",
    "file:///etc",
    "http://",
    "http://h:99999",
    "http://h:port",
    "http://h/path",
    "http://h?q",
    "http://h#f",
    "://h",
    "http:// h",
    " http://h",
    "http://[::1",
    "",
    "@",
];

/// Proxies with nobody behind them.
const USED: [&str; 7] = [
    "127.0.0.1:9",
    "http://127.0.0.1:9",
    "https://127.0.0.1:9/",
    "HTTP://127.0.0.1:9",
    "http://user:p%40ss@127.0.0.1:9",
    "user:pass@127.0.0.1:9",
    "http://[::1]:9",
];

const URLS: [&str; 8] = [
    "http://[::1",
    "http://h:99999/",
    "https://",
    "http://\u{202e}/",
    "http://%00/",
    "http://a b/",
    "socks5://h/f",
    "http:///",
];

/// Runs a download with an address in one of its properties, and returns its output, of both streams.
fn download(place: &Place, property: &str, address: &str) -> String {
    let mut properties = serde_json::json!({
        "path": "f", "url": "http://127.0.0.1:9/f", "timeout": 1, "checksum": format!("sha256:{}", "0".repeat(64)),
    });
    properties[property] = address.into();
    let instance = serde_json::json!({ "name": "d", "type": "Stead/Download", "properties": properties });
    place.write("d.json", &serde_json::json!({ "resources": [instance] }).to_string());
    let mut command = Command::new(place.program());
    command.args(["apply", "d.json"]).current_dir(place.path());
    command.env("HOME", place.path()).env("STEAD_STATE", place.path()).env("STEAD_RECONCILE", "none");
    let answer = answer(&mut command);
    assert!(!answer.stderr.contains("internal error") && answer.exit < 4, "{property} {address}: {}", answer.stderr);
    answer.stdout + &answer.stderr
}

#[test]
fn no_address_ends_the_call_by_a_panic() {
    let place = Place::new();
    for address in REFUSED {
        let said = download(&place, "proxy", address);
        assert!(said.contains("'proxy' must"), "{address}: {said}");
    }
    for address in USED {
        let said = download(&place, "proxy", address);
        assert!(!said.contains("'proxy' must"), "{address}: {said}");
    }
    for address in URLS {
        download(&place, "url", address);
    }
}
