//! Facts of a machine that is made up in a temporary directory.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use serde_json::json;
use stead_core::expr::{FactKey, FactPath, ValueKind, fact_path};
use stead_core::text::SourceId;
use stead_core::value::Value;
use stead_host::facts::{Labels, Machine, machine_id};
use stead_system::fs::{SystemRoot, User};

fn machine(root: &Path, environment: &[(&str, &str)]) -> Machine {
    let environment: BTreeMap<_, _> =
        environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Machine::new(environment, root.to_path_buf())
}

fn program(path: &Path, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn now_stands_still_and_is_utc_with_nanoseconds() {
    let machine = machine(Path::new("/"), &[]);
    let first = machine.fact(&FactKey::Now).unwrap();
    assert_eq!(first, machine.fact(&FactKey::Now).unwrap());
    let text = first.as_str().unwrap();
    assert!(text.len() == "2026-01-01T00:00:00.000000000Z".len() && text.ends_with('Z'), "{text}");
}

/// A document that names another fact is refused before anything runs.
#[test]
fn every_fact_is_at_a_path_that_documents_may_name() {
    fn look(path: &str, value: &Value, wrong: &mut Vec<String>) {
        let kind = match value {
            Value::Array(_) => ValueKind::Array,
            Value::Bool(_) => ValueKind::Boolean,
            Value::Number(_) => ValueKind::Number,
            Value::Object(_) => ValueKind::Object,
            Value::String(_) => ValueKind::String,
            _ => ValueKind::Null,
        };
        match fact_path(path) {
            FactPath::Named => return,
            known if known == FactPath::Of(kind) => {}
            known => wrong.push(format!("{path}: {known:?}, and is {kind:?}")),
        }
        for (name, value) in value.as_object().into_iter().flat_map(|object| object.iter()) {
            look(&format!("{path}.{name}"), value, wrong);
        }
    }
    let machine = machine(Path::new("/"), &[]);
    let mut wrong = Vec::new();
    for (name, value) in machine.facts().unwrap().as_object().unwrap() {
        look(name, value, &mut wrong);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn variables_are_those_given() {
    let machine = machine(Path::new("/"), &[("A", "b")]);
    assert_eq!(machine.fact(&FactKey::EnvironmentVariable("A".into())), Ok(Value::from("b")));
    assert_eq!(machine.fact(&FactKey::EnvironmentVariable("PATH".into())), Ok(Value::Null));
}

#[test]
fn programs_are_looked_for_in_absolute_entries_of_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    program(&at("a/tool"), 0o644);
    program(&at("b/tool"), 0o755);
    program(&at("c/tool"), 0o755);
    fs::create_dir_all(at("c/folder")).unwrap();
    let path = format!("::relative:{}:{}:{}", at("a").display(), at("b").display(), at("c").display());
    let machine = machine(folder.path(), &[("PATH", &path)]);
    let found = |name: &str| machine.fact(&FactKey::Executable(name.into())).unwrap();
    assert_eq!(found("tool"), Value::from(at("b/tool").to_str().unwrap()));
    assert_eq!(found(at("c/tool").to_str().unwrap()), Value::from(at("c/tool").to_str().unwrap()));
    for missing in ["", "folder", "none", at("a/tool").to_str().unwrap()] {
        assert_eq!(found(missing), Value::Null, "{missing}");
    }
}

#[test]
fn the_context_says_what_runs_here() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("etc")).unwrap();
    let release = "NAME=x\nVERSION_ID=\"12\"\nVERSION_CODENAME='bookworm'\n";
    fs::write(folder.path().join("etc/os-release"), release).unwrap();
    let mut machine = machine(folder.path(), &[]);
    (machine.system_root, machine.elevated) = (folder.path().to_path_buf(), true);
    let context = machine.fact(&FactKey::Context).unwrap().to_redacted_json();
    assert_eq!(context["os"]["version"], json!("12.0.0"));
    assert_eq!(context["os"]["codename"], json!("bookworm"));
    assert_eq!(context["security"], json!("elevated"));
    let root = machine.fact(&FactKey::SystemRoot).unwrap();
    assert_eq!(root, Value::from(folder.path().to_str().unwrap()));
}

#[test]
fn documents_are_read_below_the_root_or_by_absolute_path() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("sub/a.yaml"), "\u{feff}a: 1").unwrap();
    fs::write(folder.path().join("outside.yaml"), "b: 2").unwrap();
    fs::write(root.join("bytes"), [0xff, 0xfe]).unwrap();
    fs::File::create(root.join("huge")).unwrap().set_len(16 * 1024 * 1024 + 1).unwrap();
    let machine = machine(&root, &[]);
    let read = |path: &str| machine.fact(&FactKey::Document(path.into()));
    assert_eq!(read("sub/a.yaml"), Ok(Value::from("a: 1")));
    assert_eq!(read(folder.path().join("outside.yaml").to_str().unwrap()), Ok(Value::from("b: 2")));
    for (path, reason) in [
        ("../outside.yaml", "may not contain '..'"),
        ("sub/../sub/a.yaml", "may not contain '..'"),
        ("none", "cannot read"),
        ("sub", "is not a file"),
        ("bytes", "not UTF-8"),
        ("huge", "larger than"),
        ("/dev/zero", "is not a file"),
    ] {
        let error = read(path).unwrap_err();
        assert!(error.contains(reason), "{path}: {error}");
    }
}

#[test]
fn secrets_come_from_their_sources() {
    let mut machine = machine(Path::new("/"), &[]);
    let key = FactKey::Secret("a".into(), Some("v".into()));
    assert!(machine.fact(&key).unwrap_err().contains("No secret extensions"));
    machine.find_secret = Arc::new(|name, vault| Ok(format!("{}/{name}", vault.unwrap_or_default())));
    assert_eq!(machine.fact(&key), Ok(Value::from("v/a")));
}

#[test]
fn facts_are_those_of_the_system_root() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write(
        "etc/os-release",
        "ID=ubuntu\nID_LIKE=debian\nNAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\nVERSION_CODENAME=noble\n",
    );
    write("etc/hostname", "web1\n");
    write("etc/hosts", "127.0.0.1 localhost\n192.0.2.7 web1.example.com web1 # the server\n");
    write("usr/bin/apt-get", "");
    write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    write("etc/stead/labels.yaml", "role: web\n");
    std::os::unix::fs::symlink("/usr/share/zoneinfo/Europe/Berlin", folder.path().join("etc/localtime")).unwrap();
    let mut machine = machine(folder.path(), &[]);
    machine.system_root = folder.path().to_path_buf();
    let facts = machine.fact(&FactKey::Machine).unwrap().to_redacted_json();
    assert_eq!(facts["os"]["name"], json!("Ubuntu"));
    assert_eq!(facts["os"]["family"], json!("Debian"));
    assert_eq!(facts["os"]["release"], json!({"full": "24.04", "major": "24.04"}));
    assert_eq!(facts["os"]["distro"]["codename"], json!("noble"));
    assert_eq!(facts["networking"], json!({"hostname": "web1", "domain": "example.com", "fqdn": "web1.example.com"}));
    assert_eq!(facts["timezone"], json!("Europe/Berlin"));
    assert_eq!(facts["package_provider"], json!("apt"));
    assert_eq!(facts["machine"], json!({"id": "91dfa12b-40e2-45bf-b753-060376d97fda", "name": "web1.example.com"}));
    assert_eq!(facts["labels"], json!({"role": "web"}));
}

/// A distribution that is not listed is recognized by what it says it is like.
#[test]
fn families_are_found_by_likeness() {
    let family = |release: &str| {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("etc")).unwrap();
        fs::write(folder.path().join("etc/os-release"), release).unwrap();
        let mut machine = machine(folder.path(), &[]);
        machine.system_root = folder.path().to_path_buf();
        machine.facts().unwrap().to_redacted_json()["os"]["family"].clone()
    };
    assert_eq!(family("ID=pop\nNAME=Pop!_OS\nID_LIKE=\"ubuntu debian\"\n"), json!("Debian"));
    assert_eq!(family("ID=rocky\nID_LIKE=\"rhel centos fedora\"\n"), json!("RedHat"));
    assert_eq!(family("ID=sled\nID_LIKE='suse'\n"), json!("Suse"));
    assert_eq!(family("ID=own\nNAME=Own\n"), json!("Own"));
}

/// systemd makes the same id of the machine, for the application that its id is for.
#[test]
fn the_id_of_this_machine_is_that_of_systemd() {
    let application = "5e2b9c1f8d7a4f0e9b3c6a1d2e4f8071";
    let systemd = Command::new("systemd-id128").args(["machine-id", "-u", "-a", application]).output();
    let Some(expected) = systemd.ok().filter(|output| output.status.success()) else {
        return stead_testkit::skip("the_id_of_this_machine_is_that_of_systemd", "no systemd-id128, or no machine-id");
    };
    let id = machine_id(&SystemRoot::running()).unwrap();
    assert_eq!(String::from_utf8_lossy(&expected.stdout).trim(), id);
    let own = fs::read_to_string("/etc/machine-id").unwrap();
    assert!(!id.replace('-', "").contains(own.trim()), "it is confidential");
}

#[test]
fn an_id_that_is_none_yet_is_none() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("etc")).unwrap();
    for text in ["", "uninitialized\n", "0123", "00000000000000000000000000000000", "0123456789abcdef0123456789abcdeg"]
    {
        fs::write(folder.path().join("etc/machine-id"), text).unwrap();
        assert_eq!(machine_id(&SystemRoot::below(folder.path())), None, "{text}");
    }
}

/// What machines without the label are meant for is not done where the label cannot be read.
#[test]
fn labels_that_are_there_count_or_there_are_no_facts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("etc/stead/labels.yaml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let labels = || {
        let mut machine = machine(folder.path(), &[]);
        machine.system_root = folder.path().to_path_buf();
        machine.labels = Labels::read(SourceId::default(), "site: berlin").0;
        machine.fact(&FactKey::Machine).map(|facts| facts.to_redacted_json()["labels"].clone())
    };
    assert_eq!(labels(), Ok(json!({"site": "berlin"})), "there is no file");
    fs::write(&file, "# none yet\n").unwrap();
    assert_eq!(labels(), Ok(json!({"site": "berlin"})));
    fs::write(&file, "role: web\nsite: paris\n").unwrap();
    assert_eq!(labels(), Ok(json!({"role": "web", "site": "berlin"})), "what the caller knows counts more");
    for (content, reason) in [
        (&b"role"[..], "labels are names with texts"),
        (b"role: 12", "write it in quotes: role: \"12\""),
        (b"{", "never closed"),
        (b"\xff\xfe", "not UTF-8"),
        (&vec![b'#'; 70_000], "more than"),
    ] {
        fs::write(&file, content).unwrap();
        let error = labels().unwrap_err();
        assert!(error.contains("labels.yaml") && error.contains(reason), "{error}");
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(labels().is_err());
}

#[test]
fn no_link_to_labels_leads_out_of_the_system_root() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("secret.yaml"), "stolen: yes it is\n").unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("etc/stead")).unwrap();
    for target in ["../../../secret.yaml", folder.path().join("secret.yaml").to_str().unwrap()] {
        let link = root.join("etc/stead/labels.yaml");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(target, link).unwrap();
        let labels = Labels::of_system(&SystemRoot::below(&root), User::current());
        assert!(labels.is_ok_and(|labels| labels.iter().count() == 0), "{target}");
    }
}
