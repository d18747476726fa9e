//! Machines with the agent as a service, which follow what two operators sign, in a repository that they reach over SSH.

use std::fs;
use std::process::Command;

use serde_json::{Value as Json, json};
use stead_testkit::until;

use crate::debian::Debian;
use crate::forms::forms;
use crate::site::{Reach, Site};

const TEST: &str = "machines_follow_what_two_operators_push";

/// The repository, on the first machine.
const REPOSITORY: &str = "deploy@10.77.0.11/home/deploy/fleet.git";

/// A character of every kind that encoders write otherwise, and none that a file could have by chance.
const CANARY: &str = "Kiwi/47 11+'Canary\"&<é";

/// Where the machine has the secret, by its document.
const TOKEN: &str = "/srv/token";

const BEN: &str = "--sign ann --sign ben";
const CID: &str = "--sign ann --sign cid";
const FOR_WEB: &str = "--where role=web --expires 90d";

#[test]
fn machines_follow_what_two_operators_push() {
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let site = match Site::new(2, stead_testkit::asked("STEAD_BOOTS").is_some(), Reach::WithGit) {
        Ok(site) => site,
        Err(reason) => return stead_testkit::skip(TEST, &reason),
    };
    for machine in &site.machines {
        is_installed(machine);
    }
    may_read(&site);
    let root = begins(&site);
    publish(&site, "one", &format!("{FOR_WEB} {BEN}"));
    enrol(&site, BEN);
    push(&site);
    for (at, machine) in site.machines.iter().enumerate() {
        let source = format!("git+ssh://{REPOSITORY}#main");
        machine.ok(&["stead", "agent", "follow", &source, "--root", &root, "--name", &format!("m{at}")]);
    }
    all_have(&site, "one");
    what_one_operator_signed_is_refused_while_drift_is_repaired(&site);
    signers_change(&site);
    secrets_are_where_they_are_sealed_to(&site);
}

/// The agent is a service of the machine, and looks often.
fn is_installed(machine: &Debian) {
    machine.install(std::path::Path::new(env!("CARGO_BIN_EXE_stead")), "/usr/local/bin/stead");
    assert!(machine.ok(&["stead", "agent", "install"]).contains("the agent is running"));
    machine.ok(&["stead", "agent", "settings", "set", "RefreshFrequencyMins=0.02", "PendingRetrySecs=1"]);
    machine.ok(&["stead", "agent", "settings", "set", "SplaySecs=0", "ConfigurationModeFrequencyMins=0.05"]);
}

/// Each machine has a key of its own, which reads the repository and does nothing else there.
fn may_read(site: &Site) {
    let host = site.machines[0].read("/etc/ssh/ssh_host_ed25519_key.pub").unwrap();
    for machine in &site.machines {
        machine.write("/root/.ssh/known_hosts", &format!("10.77.0.11 {host}"));
        machine.ok(&["chmod", "700", "/root/.ssh"]);
    }
    let keys = "/home/deploy/.ssh/authorized_keys";
    site.machines[0].ok(&[
        "su",
        "deploy",
        "-c",
        "git init --quiet --bare --initial-branch=main /home/deploy/fleet.git",
    ]);
    for machine in &site.machines {
        machine.ok(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/root/.ssh/id_ed25519"]);
        let key = machine.read("/root/.ssh/id_ed25519.pub").unwrap();
        let known = site.machines[0].read(keys).unwrap();
        let reads = "restrict,command=\"git-upload-pack /home/deploy/fleet.git\"";
        site.machines[0].write(keys, &format!("{known}{reads} {key}"));
    }
}

/// Runs the program as an operator; it must succeed.
fn stead(site: &Site, words: &str) -> String {
    let (printed, errors, code) = site.stead(words);
    assert_eq!(code, Some(0), "{words}: {printed}{errors}");
    printed
}

/// Runs a program as an operator, in the folder of the fleet; it must succeed.
fn operator(site: &Site, words: &[&str]) {
    let mut command = site.environment(Command::new(words[0]));
    let output = command.args(&words[1..]).current_dir(site.path("fleet")).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Operators have keys, and a fleet in a repository. Returns its digest.
fn begins(site: &Site) -> String {
    fs::create_dir(site.path("fleet")).unwrap();
    for name in ["ann", "ben", "cid"] {
        operator(site, &["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &format!("../{name}")]);
    }
    operator(site, &["git", "init", "--quiet", "--initial-branch=main"]);
    operator(site, &["git", "config", "user.name", "ann"]);
    operator(site, &["git", "config", "user.email", "ann@example.org"]);
    let made = stead(site, "release root --name shop --signer ann.pub --signer ben.pub -o fleet/root");
    made.trim().rsplit(' ').next().unwrap().to_owned()
}

/// A release of a document that keeps a file at a content.
fn publish(site: &Site, content: &str, more: &str) {
    let properties = json!({"path": "/srv/kept", "content": content});
    document(site, &json!({"name": "kept", "type": "Stead/File", "properties": properties}), &json!({}));
    stead(site, &format!("release make site.bundle --fleet fleet/root --channel web {more}"));
}

fn document(site: &Site, instance: &Json, parameters: &Json) {
    let document = json!({
        "directives": {"configurationMode": "ApplyAndAutoCorrect"}, "parameters": parameters, "resources": [instance],
    });
    fs::write(site.path("site.yaml"), document.to_string()).unwrap();
    stead(site, "bundle site.yaml -o site.bundle");
}

/// The roster is made with the keys that the machines have now.
fn enrol(site: &Site, by: &str) {
    for (at, machine) in site.machines.iter().enumerate() {
        fs::write(site.path("identity"), machine.ok(&["stead", "agent", "identity"])).unwrap();
        let name = format!("m{at}");
        let add = format!("release roster add {name} --fleet fleet/root --identity identity --label role=web {by}");
        stead(site, &add);
    }
}

fn push(site: &Site) {
    operator(site, &["git", "add", "--all"]);
    operator(site, &["git", "commit", "--quiet", "--message", "next"]);
    operator(site, &["git", "push", "--quiet", &format!("ssh://{REPOSITORY}"), "HEAD:main"]);
}

fn all_have(site: &Site, content: &str) {
    for machine in &site.machines {
        until(|| machine.read("/srv/kept").filter(|kept| kept == content));
    }
}

/// The status of the source, once it is as wanted, and the exit code of that status.
fn until_source(machine: &Debian, wanted: impl Fn(&Json) -> bool) -> Option<i32> {
    until(|| {
        let output = machine.run(&["stead", "agent", "status", "--output", "json"]);
        let status: Json = serde_json::from_slice(&output.stdout).ok()?;
        wanted(&status["Source"]).then_some(output.status.code())
    })
}

fn is_refused(site: &Site, code: &str) {
    for machine in &site.machines {
        assert_eq!(until_source(machine, |source| source["Code"] == code), Some(4));
    }
}

fn what_one_operator_signed_is_refused_while_drift_is_repaired(site: &Site) {
    publish(site, "two", &format!("{FOR_WEB} --sign ann"));
    push(site);
    is_refused(site, "E1404");
    for machine in &site.machines {
        machine.write("/srv/kept", "drifted");
    }
    all_have(site, "one");
    for machine in &site.machines {
        let reported = until(|| {
            let reports = machine.agent(&["report"])?["reports"].clone();
            let all = reports.as_array()?.iter().map(|each| each["report"].clone());
            all.into_iter().find(|report| report["source"]["Code"] == "E1404")
        });
        assert_eq!(reported["source"]["Releases"]["Staged"]["number"], 1, "{reported}");
        let said = machine.ok(&["journalctl", "-u", "stead-agent", "--all", "-o", "export"]);
        assert!(said.contains("\"code\":\"E1404\""), "{said}");
    }
    stead(site, "release sign fleet/web/2.release --sign ben");
    push(site);
    all_have(site, "two");
}

/// Until the roster is signed by the new list, machines keep what they have.
fn signers_change(site: &Site) {
    stead(site, &format!("release signers --signer ann.pub --signer cid.pub --fleet fleet/root {BEN}"));
    push(site);
    is_refused(site, "E1407");
    enrol(site, CID);
    publish(site, "three", &format!("{FOR_WEB} {CID}"));
    push(site);
    all_have(site, "three");
    for machine in &site.machines {
        until_source(machine, |source| source["Failure"].is_null());
    }
}

/// The second machine has the release, the repository with the envelope of the first, and root, and finds nothing.
fn secrets_are_where_they_are_sealed_to(site: &Site) {
    let properties = json!({"path": TOKEN, "content": "[parameters('token')]", "mode": "0600"});
    let instance = json!({"name": "token", "type": "Stead/File", "properties": properties});
    document(site, &instance, &json!({"token": {"type": "secureString"}}));
    fs::write(site.path("secrets.yaml"), json!({ "token": CANARY }).to_string()).unwrap();
    let make = "release make site.bundle --fleet fleet/root --channel web";
    stead(site, &format!("{make} {FOR_WEB} --secrets secrets.yaml --secrets-out web-4.secrets {CID}"));
    let seal = "release seal fleet/web/4.release --fleet fleet/root --secrets web-4.secrets";
    assert!(stead(site, seal).contains("sealed to 2 machines"));
    fs::remove_file(site.path("fleet/web/4.sealed/m1")).unwrap();
    push(site);
    let (own, other) = (&site.machines[0], &site.machines[1]);
    until(|| own.read(TOKEN).filter(|token| token == CANARY));
    until_source(own, |source| source["Releases"]["Staged"]["number"] == 4);
    until_source(other, |source| source["Releases"]["WaitingFor"] == "web/4.sealed/m1");
    assert_eq!(files_with(other), "");
    assert_eq!(found_in(&said(other)), [""; 0]);
    // The search is not blind: where it is sealed to it is found in the file of the document, and in no other place.
    assert_eq!(files_with(own), format!("{TOKEN}\n"));
    assert_eq!(found_in(&said(own)), [""; 0]);
    stead(site, seal);
    push(site);
    until(|| other.read(TOKEN).filter(|token| token == CANARY));
    assert_eq!(files_with(other), format!("{TOKEN}\n"));
}

/// The files of a machine that have the secret in any form.
fn files_with(machine: &Debian) -> String {
    let forms = forms(CANARY);
    let patterns = forms.iter().flat_map(|form| ["-e", form]);
    let options = ["env", "LC_ALL=C", "grep", "-rlaF", "--exclude-dir=proc", "--exclude-dir=sys", "--exclude-dir=dev"];
    let output = machine.run(&options.into_iter().chain(patterns).chain(["/"]).collect::<Vec<_>>());
    String::from_utf8(output.stdout).unwrap()
}

/// The forms of the secret in bytes.
fn found_in(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    forms(CANARY).into_iter().filter(|form| text.contains(form)).collect()
}

/// What a machine tells of itself: what it logged, what it reports, and what was fetched from the repository, unpacked.
fn said(machine: &Debian) -> Vec<u8> {
    let git = ["git", "--git-dir=/var/lib/stead/following/git", "cat-file", "--batch-all-objects", "--batch"];
    // Each with something that it shows, since a command that fails shows nothing.
    let asked: [(&[&str], &str); 6] = [
        (&["journalctl", "--all", "--no-pager", "-o", "export"], "STEAD_EVENT=jobEnded"),
        (&["stead", "agent", "status", "--output", "json"], "\"Releases\""),
        (&["stead", "agent", "report", "--output", "json"], "\"instances\""),
        (&["stead", "agent", "logs", "-n", "1000"], "web/2.release"),
        (&["stead", "agent", "history"], "current"),
        (&git, "stead-envelope"),
    ];
    asked.into_iter().fold(Vec::new(), |mut said, (command, shown)| {
        let output = machine.run(command);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(shown), "{command:?} does not show {shown}: {text}");
        said.extend(output.stdout);
        said
    })
}
