//! Files with a line of a mebibyte: what is edited beside it keeps it whole, or the instance is refused by name.

use std::fs;

use serde_json::{Value as Json, json};
use stead_core::call::Execution;
use stead_host::provider::{Context, Plain};
use stead_system::fs::SystemRoot;

use super::support::{World, provider};

/// Types with the file that they edit, what stands before and behind its long text, and what is desired.
fn cases() -> Vec<(&'static str, &'static str, [&'static str; 2], Json)> {
    let desired = |text: &str| -> Json { serde_json::from_str(text).unwrap() };
    vec![
        ("Stead/Line", "f", ["", "\nb\n"], json!({"path": "/f", "line": "new"})),
        ("Stead/Block", "f", ["", "\n"], json!({"path": "/f", "name": "n", "content": "new"})),
        ("Stead/Ini", "f", ["[s]\nlong = ", "\n"], json!({"path": "/f", "section": "s", "key": "k", "value": "v"})),
        ("Stead/Json", "f", ["{\"long\": \"", "\"}\n"], json!({"path": "/f", "pointer": "/k", "value": "v"})),
        ("Stead/Yaml", "f", ["long: ", "\n"], json!({"path": "/f", "pointer": "/k", "value": "v"})),
        ("Stead/Toml", "f", ["long = \"", "\"\n"], json!({"path": "/f", "pointer": "/k", "value": "v"})),
        ("Stead/Host", "etc/hosts", ["192.0.2.1 a # ", "\n"], json!({"name": "n", "ip": "192.0.2.2"})),
        ("Stead/Sysctl", "etc/sysctl.d/90-stead.conf", ["# ", "\n"], json!({"name": "a.b", "value": "1"})),
        (
            "Stead/Limits",
            "etc/security/limits.d/90-stead.conf",
            ["# ", "\n"],
            desired(r#"{"domain": "d", "type": "hard", "item": "nofile", "value": "1"}"#),
        ),
        ("Stead/SshdConfig", "etc/ssh/sshd_config", ["# ", "\n"], json!({"PermitRootLogin": false, "validate": false})),
        ("Stead/Mount", "etc/fstab", ["# ", "\n"], json!({"path": "/d", "device": "/dev/x", "fstype": "ext4"})),
        (
            "Stead/Cron",
            "etc/cron.d/n",
            ["# ", "\n"],
            json!({"name": "n", "user": "root", "schedule": "@daily", "command": "x"}),
        ),
        ("Stead/KernelModule", "etc/modprobe.d/o.conf", ["# ", "\n"], json!({"name": "n", "options": "a=1"})),
        (
            "Stead/AptRepository",
            "etc/apt/sources.list.d/o.list",
            ["# ", "\n"],
            desired(r#"{"name": "n", "uris": ["http://r.test/d"], "suites": ["s"], "components": ["m"]}"#),
        ),
    ]
}

#[test]
fn a_line_of_a_mebibyte_is_kept_or_refused() {
    let long = "word ".repeat((1 << 20) / 5) + "end";
    for (name, file, [before, behind], desired) in cases() {
        let world = World::system();
        let path = world.root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = format!("{before}{long}{behind}");
        fs::write(&path, &text).unwrap();
        let cx = Context { system_root: SystemRoot::below(world.root.path()), ..world.context() };
        let (resource, input) = (provider(name), Plain::new(desired));
        let now = || fs::read_to_string(&path).unwrap();
        match resource.set(&cx, &input, Execution::Actual) {
            Ok(_) => {
                assert!(now().contains(&long), "{name} does not keep the line");
                let tested = resource.test(&cx, &input).unwrap_or_else(|failure| panic!("{name}: {}", failure.message));
                assert_eq!(tested.verdict(), Some(true), "{name}");
            }
            Err(failure) => {
                assert!(failure.message.contains(file), "{name} is refused without the file: {}", failure.message);
                assert_eq!(now(), text, "{name} changes what it refuses");
            }
        }
    }
}
