//! Secrets that are sealed to machines: who has them, and where.

#[path = "../support/forms.rs"]
mod forms;

use std::fs;

use forms::forms;
use rustix::process::Signal;
use serde_json::json;
use stead_testkit::until;

use crate::machine::Machine;
use crate::releases::{BOTH, Shop};

/// A character of every kind that encoders write otherwise, and none that a file could have by chance.
const CANARY: &str = "Kiwi/47 11+'Canary\"&<é";

/// The forms of the secret that occur in bytes.
fn found_in(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    forms(CANARY).into_iter().filter(|form| text.contains(form)).collect()
}

/// The files of a machine with a form of the secret.
fn files_with(machine: &Machine, folder: &str) -> Vec<String> {
    let files = machine.everything(folder).into_iter().filter(|path| path.is_file());
    let found = files.filter(|path| !found_in(&fs::read(path).unwrap()).is_empty());
    found.map(|path| path.display().to_string()).collect()
}

/// What a machine says of itself.
fn said(machine: &Machine) -> String {
    let asked =
        [vec!["status", "-o", "json"], vec!["report", "-o", "json"], vec!["logs", "-n", "1000"], vec!["history"]];
    asked.iter().map(|words| String::from_utf8(machine.run(words).stdout).unwrap()).collect()
}

pub(crate) fn enrol(shop: &Shop, machine: &Machine, name: &str) {
    shop.machine.write(&format!("{name}.identity"), &machine.ok(&["identity"]));
    let words =
        format!("release roster add {name} --fleet fleet/root --identity {name}.identity --label role=web {BOTH}");
    shop.stead(&words);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, in the order in which it happens")]
fn secrets_are_on_the_machine_that_they_are_sealed_to_and_nowhere_else() {
    let shop = Shop::new();
    let mut other = Machine::new();
    other.start();
    other.set("RefreshFrequencyMins=0.02", "SplaySecs=0");
    let document = json!({
        "parameters": { "token": { "type": "secureString" }, "path": { "type": "string" } },
        "resources": [{
            "name": "kept",
            "type": "Stead/File",
            "properties": { "path": "[parameters('path')]", "content": "[parameters('token')]" },
        }],
    });
    shop.machine.write("site.yaml", &document.to_string());
    shop.machine.write("secrets.yaml", &json!({ "token": CANARY }).to_string());
    shop.stead("bundle site.yaml -o site.bundle");
    let make = "release make site.bundle --fleet fleet/root --channel web --where role=web --expires 9d";
    let path = shop.machine.path("kept").display().to_string();
    shop.stead(&format!("{make} --set path={path} --secrets secrets.yaml --secrets-out web-1.secrets {BOTH}"));
    enrol(&shop, &shop.machine, "web1");
    shop.stead("release seal fleet/web/1.release --fleet fleet/root --secrets web-1.secrets");
    // The other machine is in the roster once that is done.
    enrol(&shop, &other, "web2");
    let verified = shop.stead("release verify fleet/web/1.sealed/web1 --fleet fleet/root");
    assert!(verified.starts_with("valid: sealed envelope "), "{verified}");
    shop.follow(&shop.folder());
    other.ok(&["follow", &shop.folder(), "--root", &shop.root, "--name", "web2"]);
    assert_eq!(until(|| shop.machine.read("kept").filter(|kept| !kept.is_empty())), CANARY);
    shop.machine.wait(0);
    // The one that it is not for waits, without a failure.
    other.signal(Signal::USR1);
    let waiting = |machine: &Machine| machine.status()["Source"]["Releases"]["WaitingFor"].clone();
    until(|| (waiting(&other) == "web/1.sealed/web2").then_some(()));
    let (status, code) = other.status_and_code();
    assert_eq!((status["Source"]["Failure"].as_str(), code), (None, Some(6)), "it has no document, and no failure");
    let text = String::from_utf8(other.run(&["status"]).stdout).unwrap();
    assert!(text.contains("Waiting      for secrets: web/1.sealed/web2 is not there yet\n"), "{text}");
    assert_eq!(files_with(&other, ""), [""; 0]);
    assert_eq!(found_in(said(&other).as_bytes()), [""; 0]);
    assert_eq!(found_in(&other.memory()), [""; 0]);
    // On the one that it is for it is where the document puts it, and nowhere else.
    assert_eq!(files_with(&shop.machine, "state"), [""; 0]);
    assert_eq!(files_with(&shop.machine, "fleet"), [""; 0]);
    assert_eq!(found_in(said(&shop.machine).as_bytes()), [""; 0]);
    assert!(!found_in(fs::read_to_string(shop.machine.path("web-1.secrets")).unwrap().as_bytes()).is_empty());
    // What it reports is signed by it, and has nothing of it either.
    let out = shop.machine.path("out").display().to_string();
    shop.machine.ok(&["report", "--out", &out]);
    let names = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    assert!(!names.is_empty());
    assert_eq!(files_with(&shop.machine, "out"), [""; 0]);
    for name in &names {
        let verified = shop.stead(&format!("release verify out/{name} --fleet fleet/root"));
        assert!(verified.starts_with("valid: report "), "{verified}");
    }
    assert!(names.iter().any(|name| shop.machine.read(&format!("out/{name}")).unwrap().contains("\nrelease web 1 ")));
    let written = |machine: &Machine| machine.ok(&["report", "--out", &out]);
    // Each is one file; its checks go on, and are others.
    until(|| written(&shop.machine).ends_with("0 reports written\n").then_some(()));
    assert!(written(&other).ends_with("0 reports written\n"), "it did nothing yet");
    // It is sealed to the other machine as well, which looks by itself; an envelope of somebody else is refused.
    other.kill();
    shop.stead("release seal fleet/web/1.release --fleet fleet/root --secrets web-1.secrets");
    let [own, others] = ["web1", "web2"].map(|name| shop.machine.path(&format!("fleet/web/1.sealed/{name}")));
    let sealed = fs::read(&others).unwrap();
    fs::copy(&own, &others).unwrap();
    other.start();
    until(|| (other.status()["Source"]["Code"] == "E1432").then_some(()));
    fs::write(&others, &sealed).unwrap();
    other.signal(Signal::USR1);
    until(|| other.status()["Source"]["Releases"]["Staged"]["number"].as_u64());
    assert!(waiting(&other).is_null());
    // The keys of the roster are not those of the machine any more.
    other.ok(&["identity", "--new"]);
    other.signal(Signal::USR1);
    until(|| (other.status()["Source"]["Code"] == "E1432").then_some(()));
    other.kill();
}
