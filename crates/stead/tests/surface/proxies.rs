//! Addresses that a document states: each one is used or refused, and none is the end of the program.

use std::process::Command;

use super::{Place, answer};

#[test]
fn no_address_ends_the_call_by_a_panic() {
    let port_of_nobody = "127.0.0.1:9";
    let refused = [
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
        "http:///x",
        " http://h",
        "http://[::1",
        "",
        "@",
    ];
    let used = [
        port_of_nobody.to_owned(),
        format!("http://{port_of_nobody}"),
        format!("https://{port_of_nobody}/"),
        format!("HTTP://{port_of_nobody}"),
        format!("http://user:p%40ss@{port_of_nobody}"),
        format!("user:pass@{port_of_nobody}"),
        "http://[::1]:9".to_owned(),
    ];
    let place = Place::new();
    let checks = |property: &str, address: &str| {
        let mut properties = serde_json::json!({
            "path": "f", "url": "http://127.0.0.1:9/f", "timeout": 1, "checksum": format!("sha256:{}", "0".repeat(64)),
        });
        properties[property] = address.into();
        let document =
            serde_json::json!({ "resources": [{ "name": "d", "type": "Stead/Download", "properties": properties }] });
        place.write("d.json", &document.to_string());
        let mut command = Command::new(place.program());
        command
            .args(["apply", "d.json"])
            .current_dir(place.path())
            .env("HOME", place.path())
            .env("STEAD_LOCKS", place.path());
        command.env("STEAD_RECONCILE", "none").env_remove("http_proxy").env_remove("HTTP_PROXY");
        let answer = answer(&mut command);
        assert!(
            !answer.stderr.contains("internal error") && answer.exit < 4,
            "{property} {address}: {}",
            answer.stderr
        );
        answer.stdout + &answer.stderr
    };
    for address in refused {
        let said = checks("proxy", address);
        assert!(said.contains("'proxy' must"), "{address}: {said}");
    }
    for address in used {
        let said = checks("proxy", &address);
        assert!(!said.contains("'proxy' must"), "{address}: {said}");
    }
    for address in [
        "http://[::1",
        "http://h:99999/",
        "https://",
        "http://\u{202e}/",
        "http://%00/",
        "http://a b/",
        "socks5://h/f",
        "http:///",
    ] {
        checks("url", address);
    }
}
