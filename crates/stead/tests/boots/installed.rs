//! Packages: installed, used, upgraded, removed and purged, in a whole machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use stead_testkit::until;

use crate::debian::Debian;

const UNIT: &str = "stead-agent.service";

/// A machine that nothing was done with. `None` where it cannot be made, which is reported.
fn fresh(test: &str, name: &str) -> Option<(PathBuf, Debian)> {
    if !stead_testkit::is_root(test) {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed").join(name);
    if stead_testkit::asked("STEAD_BOOTS").is_none() {
        stead_testkit::skip(test, "it builds a package, and installs it when STEAD_BOOTS is set");
        return None;
    }
    match Debian::of(&folder.join("fresh"), true) {
        Ok(machine) => Some((folder, machine)),
        Err(reason) => {
            stead_testkit::skip(test, &reason);
            None
        }
    }
}

/// Makes a package of a format. Returns where it is.
fn package(format: &str, out: &Path) -> PathBuf {
    package_of(Path::new(env!("CARGO_BIN_EXE_stead")), format, out)
}

fn package_of(program: &Path, format: &str, out: &Path) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(stead_testkit::repository());
    command.args(["run", "--quiet", "--locked", "-p", "xtask", "--", "package", format, "--binary"]);
    command.arg(program).arg("--out").arg(out).env("SOURCE_DATE_EPOCH", "1700000000");
    let output = command.output().unwrap();
    let [printed, complained] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{complained}");
    PathBuf::from(printed.trim())
}

#[test]
fn a_package_of_debian_is_installed_used_and_purged() {
    const TEST: &str = "a_package_of_debian_is_installed_used_and_purged";
    let Some((folder, fresh)) = fresh(TEST, "deb") else { return };
    let file = package("deb", &folder);
    needs_the_libraries_of_the_program(&file);
    is_installed_used_and_purged(&folder, &fresh, &file);
}

/// All that a package of Debian goes through, in a machine that is on. Nothing is left of it in the end.
fn is_installed_used_and_purged(folder: &Path, fresh: &Debian, file: &Path) {
    let mut machine = fresh.copy(&folder.join("machine"));
    fs::copy(file, machine.root("/srv/stead.deb")).unwrap();
    machine.boot();
    machine.wait_until_started();
    let before = files(&machine);
    machine.ok(&["dpkg", "-i", "/srv/stead.deb"]);
    works(&machine);
    is_a_service_when_it_is_asked_for(&machine);
    is_upgraded(&machine);
    upgrades_itself(&machine);
    is_kept_after_all(&machine);
    is_removed(&machine);
    machine.ok(&["dpkg", "--purge", "stead"]);
    assert_eq!(files(&machine).symmetric_difference(&before).collect::<Vec<_>>(), Vec::<&String>::new());
    machine.shut_down();
}

/// The dependencies state the newest version of the C library of which the program uses something.
fn needs_the_libraries_of_the_program(file: &Path) {
    let objdump = Command::new("objdump").arg("-T").arg(env!("CARGO_BIN_EXE_stead")).output().unwrap();
    let versions = String::from_utf8_lossy(&objdump.stdout).into_owned();
    let versions = versions.split("GLIBC_").skip(1).filter_map(|rest| rest.split([')', ' ', '\n']).next());
    let number = |version: &str| version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>();
    let newest = versions.max_by_key(|version| number(version)).unwrap();
    let depends = Command::new("dpkg-deb").arg("--field").arg(file).arg("Depends").output().unwrap();
    let depends = String::from_utf8_lossy(&depends.stdout);
    assert!(depends.contains(&format!("libc6 (>= {newest})")), "{newest}: {depends}");
}

/// The program does its work, and the agent waits to be asked for.
fn works(machine: &Debian) {
    let resource = "{name: a, type: Stead/File, properties: {path: /srv/a, content: b, owner: daemon}}";
    machine.write("/srv/a.yaml", &format!("resources: [{resource}]\n"));
    assert!(machine.ok(&["stead", "apply", "--record", "/srv/a.yaml"]).contains("1 created"));
    assert!(machine.ok(&["stead", "doctor"]).contains("ok"));
    assert!(machine.ok(&["stead", "get", "Stead/File", "/srv/a"]).contains("daemon"));
    assert_eq!(machine.ok(&["dpkg", "--verify", "stead"]), "");
    assert_eq!(machine.read("/srv/a").as_deref(), Some("b"));
    machine.remove("/srv/a");
    machine.remove("/srv/a.yaml");
    for (question, expected) in [("is-enabled", "disabled"), ("is-active", "inactive")] {
        assert_eq!(String::from_utf8_lossy(&machine.run(&["systemctl", question, UNIT]).stdout).trim(), expected);
    }
}

/// `stead agent install` enables the unit of the package, and writes none of its own.
fn is_a_service_when_it_is_asked_for(machine: &Debian) {
    let printed = machine.ok(&["stead", "agent", "install"]);
    assert!(printed.starts_with("/usr/lib/systemd/system/stead-agent.service is installed"), "{printed}");
    assert!(!machine.root("/etc/systemd/system").join(UNIT).exists());
    for (question, expected) in [("is-enabled", "enabled"), ("is-active", "active")] {
        assert_eq!(machine.ok(&["systemctl", question, UNIT]).trim(), expected);
    }
}

/// The agent is restarted by an upgrade, with what it knows.
fn is_upgraded(machine: &Debian) {
    deliver(machine, &json!([]));
    let former = process(machine);
    machine.ok(&["dpkg", "-i", "/srv/stead.deb"]);
    assert_ne!(process(machine), former);
    until(|| Some(machine.agent(&["history"])?["generations"].as_array()?.len() == 1));
}

/// An agent that upgrades its own package is not ended by that, and neither is dpkg.
fn upgrades_itself(machine: &Debian) {
    let former = process(machine);
    deliver(
        machine,
        &json!([{"name": "upgrade", "type": "Stead/Command",
            "properties": {"test": "test -e /run/upgraded", "set": "dpkg -i /srv/stead.deb && touch /run/upgraded"}}]),
    );
    assert_eq!(process(machine), former);
    assert_eq!(machine.ok(&["dpkg", "--audit"]), "");
}

/// The agent runs again when dpkg does not go on with a removal, as for a package in place of this one that cannot be unpacked.
fn is_kept_after_all(machine: &Debian) {
    for (script, word, state) in [("prerm", "remove", "inactive"), ("postinst", "abort-remove", "active")] {
        machine.ok(&[&format!("/var/lib/dpkg/info/stead.{script}"), word, "in-favour", "other", "1.0"]);
        let printed = machine.run(&["systemctl", "is-active", UNIT]).stdout;
        assert_eq!(String::from_utf8_lossy(&printed).trim(), state, "{script}");
    }
}

/// Its records and documents are kept until it is purged, and the agent comes back with the package.
fn is_removed(machine: &Debian) {
    machine.ok(&["dpkg", "--remove", "stead"]);
    assert!(!machine.root("/usr/bin/stead").exists() && machine.root("/var/lib/stead/runs").exists());
    let state = machine.run(&["systemctl", "is-active", UNIT]);
    assert_eq!(String::from_utf8_lossy(&state.stdout).trim(), "inactive");
    machine.ok(&["dpkg", "-i", "/srv/stead.deb"]);
    assert_eq!(machine.ok(&["systemctl", "is-enabled", UNIT]).trim(), "enabled");
    machine.ok(&["systemctl", "start", UNIT]);
    until(|| Some(machine.agent(&["history"])?["generations"].as_array()?.len() == 2));
    assert_eq!(machine.ok(&["stead", "history"]).matches("apply").count(), 1);
}

fn deliver(machine: &Debian, resources: &serde_json::Value) {
    machine.write("/srv/document.json", &json!({ "resources": resources }).to_string());
    // A service that was just started may not answer yet.
    let apply = ["stead", "agent", "apply", "/srv/document.json", "--wait"];
    until(|| machine.run(&apply).status.success().then_some(()));
    machine.remove("/srv/document.json");
}

fn process(machine: &Debian) -> String {
    machine.ok(&["systemctl", "show", UNIT, "-p", "MainPID", "--value"])
}

#[test]
fn a_package_of_fedora_is_installed_used_and_erased() {
    const TEST: &str = "a_package_of_fedora_is_installed_used_and_erased";
    let Some((folder, fresh)) = fresh(TEST, "rpm") else { return };
    if Command::new("rpmbuild").arg("--version").output().is_err() {
        return stead_testkit::skip(TEST, "there is no rpmbuild");
    }
    let file = package("rpm", &folder);
    let again = package("rpm", &folder.join("again"));
    assert!(fs::read(&file).unwrap() == fs::read(again).unwrap(), "two packages of the same differ");
    let machine = fresh.copy(&folder.join("machine"));
    // Every Fedora has it.
    fs::create_dir(machine.root("/usr/share/licenses")).unwrap();
    let before = files(&machine);
    // The libraries are those of a Debian, which the database of rpm does not know.
    rpm(&machine, &["--install", "--nodeps", "--force-debian", file.to_str().unwrap()]);
    assert!(within(&machine, &["/usr/bin/stead", "--version"]).starts_with("stead "));
    assert!(within(&machine, &["/usr/bin/stead", "get", "Stead/File", "/etc/hostname"]).contains("/etc/hostname"));
    rpm(&machine, &["--verify", "stead", "--nodeps"]);
    rpm(&machine, &["--erase", "stead"]);
    assert_eq!(files(&machine).symmetric_difference(&before).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// What a program of a machine that does not run prints.
fn within(machine: &Debian, words: &[&str]) -> String {
    let output = Command::new("chroot").arg(machine.root("")).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_package_of_a_static_program_is_installed_used_and_purged() {
    const TEST: &str = "a_package_of_a_static_program_is_installed_used_and_purged";
    let target = format!("target/{}-unknown-linux-musl/release/stead", std::env::consts::ARCH);
    let program = stead_testkit::repository().join(target);
    if !program.exists() {
        return stead_testkit::skip(TEST, "no static program was built: 'cargo xtask package all' builds it");
    }
    let Some((folder, fresh)) = fresh(TEST, "static") else { return };
    let file = package_of(&program, "deb", &folder);
    let depends = Command::new("dpkg-deb").arg("--field").arg(&file).arg("Depends").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&depends.stdout).trim(), "");
    is_installed_used_and_purged(&folder, &fresh, &file);
}

fn rpm(machine: &Debian, words: &[&str]) {
    let output = Command::new("rpm")
        .arg("--root")
        .arg(machine.root(""))
        .args(["--dbpath", "/var/lib/rpm"])
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Everything in the machine, without what package managers, logs and caches of users keep about anything that happens.
fn files(machine: &Debian) -> BTreeSet<String> {
    const OTHERS: &[&str] =
        &["dev", "proc", "root/.cache", "run", "sys", "tmp", "var/cache", "var/lib/dpkg", "var/lib/rpm", "var/log"];
    let (root, mut found) = (machine.root(""), BTreeSet::new());
    let mut open = vec![root.clone()];
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            if OTHERS.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            }
            found.insert(name);
        }
    }
    found
}
