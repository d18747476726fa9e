//! The agent as a service of a whole machine that is restarted, and loses its power, at any moment.
//!
//! `STEAD_BOOTS=200 cargo test -p stead --test boots` makes a Debian once, in the target directory, and boots it so often.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]
#![expect(clippy::print_stdout, reason = "it says what it did, as tests do")]

#[path = "boots/beside.rs"]
mod beside;
#[path = "boots/broken.rs"]
mod broken;
#[path = "boots/controller.rs"]
mod controller;
#[path = "boots/debian.rs"]
mod debian;
#[path = "support/forms.rs"]
mod forms;
#[path = "boots/installed.rs"]
mod installed;
#[path = "boots/joined.rs"]
mod joined;
#[path = "boots/machines.rs"]
mod machines;
#[path = "boots/modules.rs"]
mod modules;
#[path = "boots/powershell.rs"]
mod powershell;
#[path = "boots/releases.rs"]
mod releases;
#[path = "support/restart.rs"]
mod restart;
#[path = "boots/server.rs"]
mod server;
#[path = "boots/site.rs"]
mod site;
#[path = "boots/speed.rs"]
mod speed;
#[path = "support/terminal.rs"]
mod terminal;
#[path = "boots/undone.rs"]
mod undone;

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use debian::Debian;
use serde_json::{Value as Json, json};
use stead_testkit::until;

const TEST: &str = "an_installed_agent_converges_through_restarts_and_power_failures";

/// How often the machine is booted where nothing is asked for.
const BOOTS: usize = 4;

/// How long the machine is left alone at most.
const LONGEST_PEACE: Duration = Duration::from_millis(3500);

/// How many of a hundred ends are not in order.
const POWER_CUTS: u64 = 85;

/// How long a document may take, however often the machine ends meanwhile.
const LONGEST: Duration = Duration::from_mins(5);

/// How many instances of a document ask for a restart of the machine.
const RESTARTS: usize = 5;

const PACKAGES: usize = 5;
const SERVICES: usize = 5;
const FILES: usize = 15;

/// A file that asks for a restart of the machine when it is created.
const RESTARTING: &str = r#"
path=$(sed 's/.*"path":"\([^"]*\)".*/\1/')
case $1 in
get) if test -e "$path"; then exist=true; else exist=false; fi; echo "{\"path\":\"$path\",\"_exist\":$exist}" ;;
set) touch "$path"; sync "$path"; echo "{\"path\":\"$path\",\"_exist\":true,\"_restartRequired\":[{\"system\":\"box\"}]}" ;;
esac
"#;

#[test]
fn an_installed_agent_converges_through_restarts_and_power_failures() {
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let asked = stead_testkit::asked("STEAD_BOOTS");
    let mut machine = match Debian::of(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("boots"), asked.is_some()) {
        Ok(machine) => machine,
        Err(reason) => return stead_testkit::skip(TEST, &reason),
    };
    prepare(&machine);
    machine.boot();
    install(&machine);
    is_a_service(&machine);
    others_are_sent_to_root(&machine);
    converges(&mut machine, asked.unwrap_or(BOOTS));
    stops_to_restart(&mut machine);
}

/// Makes the machine as it was before any agent, with the program and a resource that asks for restarts.
fn prepare(machine: &Debian) {
    for path in [
        "/var/lib/stead",
        "/etc/systemd/system/stead-agent.service",
        "/etc/systemd/system/multi-user.target.wants/stead-agent.service",
        "/srv/boots",
    ] {
        machine.remove(path);
    }
    machine.install(Path::new(env!("CARGO_BIN_EXE_stead")), "/usr/local/bin/stead");
    machine.write("/srv/boots/files/README", "");
    machine.write("/usr/local/bin/restarting.sh", RESTARTING);
    let manifest = restart::manifest("/usr/local/bin/restarting.sh");
    machine.write("/usr/local/bin/restarting.dsc.resource.json", &manifest.to_string());
}

/// The agent is installed by its own command.
fn install(machine: &Debian) {
    machine.wait_until_started();
    let printed = machine.ok(&["stead", "agent", "install"]);
    assert!(printed.contains("the agent is running"), "{printed}");
    machine.ok(&["stead", "agent", "settings", "set", "RebootNodeIfNeeded=true", "PendingRetrySecs=1"]);
    machine.ok(&["stead", "agent", "settings", "set", "PendingRetryMaxSecs=1", "ResourceRetrySecs=1"]);
}

/// systemd knows that it is ready, its unit has no mistake, and the journal has its events with fields.
fn is_a_service(machine: &Debian) {
    let shown = machine.ok(&["systemctl", "show", "stead-agent", "-p", "Type,ActiveState,SubState,UnitFileState"]);
    for line in ["Type=notify", "ActiveState=active", "SubState=running", "UnitFileState=enabled"] {
        assert!(shown.lines().any(|each| each == line), "{line}: {shown}");
    }
    let verified = machine.run(&["systemd-analyze", "verify", "/etc/systemd/system/stead-agent.service"]);
    let findings = String::from_utf8_lossy(&verified.stderr);
    // The two settings that let restarts become rarer are younger than some systemd.
    let is_known = |line: &&str| line.contains("'RestartSteps'") || line.contains("'RestartMaxDelaySec'");
    let about_it: Vec<&str> = findings.lines().filter(|line| line.contains("stead") && !is_known(line)).collect();
    assert!(about_it.is_empty(), "{about_it:?}");
    let entry = until(|| {
        let output = machine.run(&["journalctl", "-u", "stead-agent", "-o", "json", "STEAD_EVENT=agentStarted"]);
        serde_json::from_slice::<Json>(output.stdout.split(|byte| *byte == b'\n').next()?).ok()
    });
    assert_eq!(entry["SYSLOG_IDENTIFIER"], "stead", "{entry}");
    assert!(entry["STEAD_JSON"].as_str().unwrap().contains("\"agentStarted\""), "{entry}");
}

/// Whoever is not root learns whom the agent of the machine answers.
fn others_are_sent_to_root(machine: &Debian) {
    let status = ["env", "HOME=/srv/boots", "stead", "agent", "status"];
    let other = ["setpriv", "--reuid=4711", "--regid=4711", "--clear-groups"];
    let said = machine.run_text(&[&other[..], &status].concat());
    assert!(said.contains("in '/srv/boots/.local/state/stead'") && said.contains("try 'sudo stead agent'"), "{said}");
    let said = machine.run_text(&[&status[..2], &["STEAD_STATE=/srv/boots/none"], &status[2..]].concat());
    assert!(said.contains("'stead agent run' starts one"), "{said}");
}

/// Documents are delivered one after the other, and each becomes current, however often the machine ends meanwhile.
fn converges(machine: &mut Debian, boots: usize) {
    let (begun, first) = (Instant::now(), machine.boots);
    let (mut cuts, mut documents, mut ordered) = (0, 0, 0);
    while machine.boots - first < boots {
        let version = new_version();
        let generation = deliver(machine, &document(machine, &version));
        let (before, delivered) = (ordered_restarts(machine), Instant::now());
        while !is_current(machine, generation) {
            assert!(delivered.elapsed() < LONGEST, "it takes too long; /var/lib/stead/log.jsonl in it says why");
            if !peace(machine, generation) && machine.boots - first < boots {
                if random(100) < POWER_CUTS {
                    machine.cut_power();
                } else {
                    machine.shut_down();
                }
                cuts += 1;
            }
            if !machine.is_on() {
                machine.boot();
            }
        }
        holds(machine, &version);
        documents += 1;
        let restarts = ordered_restarts(machine) - before;
        assert!(restarts <= RESTARTS, "it restarted the machine {restarts} times");
        ordered += restarts;
    }
    let (boots, took) = (machine.boots - first, begun.elapsed());
    println!(
        "{boots} boots: {cuts} at a random moment, {ordered} by the agent; {documents} documents converged in {took:?}"
    );
}

/// Leaves the machine alone for a while; whether it came to rest or ended by itself.
fn peace(machine: &mut Debian, generation: u64) -> bool {
    let end = Instant::now() + Duration::from_millis(random(LONGEST_PEACE.as_millis().try_into().unwrap()));
    while Instant::now() < end {
        if !machine.is_on() || is_current(machine, generation) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

fn deliver(machine: &Debian, document: &Json) -> u64 {
    machine.write("/srv/boots/document.json", &document.to_string());
    until(|| machine.agent(&["apply", "/srv/boots/document.json"])?["generation"].as_u64())
}

fn is_current(machine: &Debian, generation: u64) -> bool {
    let Some(history) = machine.agent(&["history"]) else { return false };
    let all = history["generations"].as_array().unwrap();
    all.iter().any(|each| each["generation"] == generation && each["stage"] == "current")
}

/// How often the agent has restarted the machine.
fn ordered_restarts(machine: &Debian) -> usize {
    let log = machine.read("/var/lib/stead/log.jsonl").unwrap_or_default();
    log.lines().filter(|line| line.contains("\"event\":\"restarting\"")).count()
}

/// Files, packages, services that are restarted when their settings change, and what asks for restarts of the machine.
fn document(machine: &Debian, version: &str) -> Json {
    let mut resources = Vec::new();
    for number in 0..FILES {
        let content = format!("{version} {number}\n").repeat(1 + number * 100);
        resources.push(json!({"name": format!("file-{number}"), "type": "Stead/File",
            "properties": {"path": format!("/srv/boots/files/{number}"), "content": content}}));
    }
    for number in 0..PACKAGES {
        let (name, file) = (format!("boots-{number}"), package(machine, number, version));
        let before = match number.checked_sub(1) {
            // Only one program at a time may install packages.
            Some(former) => json!([format!("Stead/Command:boots-{former}"), format!("Test/Restart:kernel-{number}")]),
            None => json!(["Test/Restart:kernel-0"]),
        };
        let test =
            format!("test \"$(dpkg-query -W -f '${{db:Status-Status}} ${{Version}}' {name})\" = 'installed {version}'");
        resources.push(json!({"name": name, "type": "Stead/Command",
            "dependsOn": before,
            "properties": {"test": test, "set": format!("dpkg --configure -a; dpkg -i {file}")}}));
    }
    for number in 0..SERVICES {
        resources.extend(service(number, version));
    }
    for number in 0..RESTARTS {
        resources.push(json!({"name": format!("kernel-{number}"), "type": "Test/Restart",
            "dependsOn": [format!("Stead/File:file-{number}")],
            "properties": {"path": format!("/srv/boots/kernel-{version}-{number}")}}));
    }
    json!({"directives": {"configurationMode": "ApplyAndAutoCorrect"}, "resources": resources})
}

/// A service, what it reads, and a note of every change of that, which is never made twice or left out.
fn service(number: usize, version: &str) -> [Json; 4] {
    let (name, settings) = (format!("boots-{number}"), format!("/srv/boots/settings-{number}"));
    let unit = format!(
        "# {version}\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/cp {settings} /run/{name}\n\n[Install]\nWantedBy=multi-user.target\n"
    );
    [
        json!({"name": format!("unit-{number}"), "type": "Stead/File", "dependsOn": [format!("Stead/Command:boots-{number}")],
            "properties": {"path": format!("/etc/systemd/system/{name}.service"), "content": unit}}),
        json!({"name": format!("settings-{number}"), "type": "Stead/File", "dependsOn": [format!("Stead/File:unit-{number}")],
            "properties": {"path": settings, "content": format!("{version}\n")}}),
        json!({"name": format!("enabled-{number}"), "type": "Stead/Command", "dependsOn": [format!("Stead/File:settings-{number}")],
            "properties": {
                "test": format!("systemctl is-enabled --quiet {name} && systemctl is-active --quiet {name}"),
                "set": format!("systemctl daemon-reload && systemctl enable --now {name}")}}),
        json!({"name": format!("changed-{number}"), "type": "Stead/Command",
            "dependsOn": [format!("Stead/Command:enabled-{number}")],
            "directives": {"onChanges": [format!("Stead/File:settings-{number}")]},
            "properties": {"set": format!("systemctl restart {name} && cp {settings} /srv/boots/noticed-{number}")}}),
    ]
}

/// A package of this version, as a file in the machine.
fn package(machine: &Debian, number: usize, version: &str) -> String {
    let name = format!("boots-{number}");
    let control = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: nobody <n@example.com>\nDescription: test\n"
    );
    machine.write(&format!("/srv/boots/{name}/DEBIAN/control"), &control);
    machine.write(&format!("/srv/boots/{name}/usr/share/{name}/version"), version);
    let file = format!("/srv/boots/{name}.deb");
    let built = Command::new("dpkg-deb")
        .args(["--build", "--root-owner-group"])
        .args([machine.root(&format!("/srv/boots/{name}")), machine.root(&file)])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    file
}

/// Everything is as the document of this version says, by the machine itself.
fn holds(machine: &Debian, version: &str) {
    for number in 0..FILES {
        let content = format!("{version} {number}\n").repeat(1 + number * 100);
        assert!(machine.read(&format!("/srv/boots/files/{number}")) == Some(content), "file {number}");
    }
    for number in 0..PACKAGES {
        let installed = machine.read(&format!("/usr/share/boots-{number}/version"));
        assert_eq!(installed.as_deref(), Some(version), "package {number}");
    }
    for number in 0..SERVICES {
        let expected = format!("{version}\n");
        assert_eq!(machine.ok(&["cat", &format!("/run/boots-{number}")]), expected, "service {number}");
        let noticed = machine.read(&format!("/srv/boots/noticed-{number}"));
        assert_eq!(noticed, Some(expected), "the change of settings {number} was noticed");
    }
}

/// A document that always asks for a restart has the machine restarted a few times, and then waits for somebody.
fn stops_to_restart(machine: &mut Debian) {
    let always = json!({"name": "always", "type": "Test/Restart", "properties": {"path": "/run/always"}});
    let before = ordered_restarts(machine);
    machine.write("/srv/boots/document.json", &json!({ "resources": [always] }).to_string());
    machine.ok(&["stead", "agent", "publish", "/srv/boots/document.json"]);
    // The machine may be off before there is an answer.
    machine.run(&["stead", "agent", "apply", "--use-existing"]);
    until(|| {
        if !machine.is_on() {
            machine.boot();
        }
        let status = machine.agent(&["status"])?;
        status["LCMStateDetail"].as_str()?.contains("MaxRestarts is").then_some(())
    });
    assert_eq!(ordered_restarts(machine) - before, 5, "as often as MaxRestarts says");
    machine.shut_down();
}

/// Returns text that makes one delivery different from all others.
fn new_version() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    format!("1.{}", now.as_millis())
}

fn random(below: u64) -> u64 {
    RandomState::new().hash_one(0_u8) % below
}
