//! What documents did to the running system of a whole machine is taken back by one command.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};
use stead_testkit::until;

use crate::debian::Debian;

const TEST: &str = "what_was_done_to_a_running_system_is_taken_back";

const UNIT: &str = "# Sleeps.\n[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n";

#[test]
fn what_was_done_to_a_running_system_is_taken_back() {
    let Some(mut machine) = Debian::of_test(TEST, "undone") else { return };
    if !(machine.root("/usr/sbin/sshd").exists() && machine.root("/usr/sbin/nft").exists())
        && let Err(why) = machine.install_packages(&["openssh-server", "nftables"])
    {
        return stead_testkit::skip(TEST, &why);
    }
    prepare(&machine);
    machine.boot();
    machine.wait_until_started();
    machine.ok(&["systemctl", "start", "server", "ssh"]);
    machine.ok(&["bash", "-c", "mountpoint -q /srv/there || mount /srv/there"]);
    machine.ok(&["nft", "add table inet found; add chain inet found c { tcp dport 22 accept ; }"]);
    let documents = documents();
    for (name, document) in &documents {
        machine.write("/srv/document.json", &json!({ "resources": document }).to_string());
        let before = imprint(&machine);
        let said = machine.ok(&["stead", "apply", "/srv/document.json", "--record", "--reconcile", "none", "--yes"]);
        let after = imprint(&machine);
        assert!(after != before, "{name}: it changes nothing: {said}");
        // Taken back, done once more by taking that back, and left as it was.
        for expected in [&before, &after, &before] {
            let said = machine.run_text(&["stead", "undo", "--yes"]);
            let found = imprint(&machine);
            assert!(found == *expected, "{name}: {said}{}", differing(expected, &found));
        }
    }
    println!("{} documents were taken back", documents.len());
    what_is_no_longer_stated_is_removed(&machine);
    a_table_is_there_after_a_boot(&mut machine);
    what_a_package_did_is_named(&machine);
    machine.shut_down();
}

/// A kernel parameter has its former value in the running kernel, with a line of its own before the run and without one. A line that is
/// deleted leaves the kernel its value. In a network of its own, since a machine in namespaces can change none.
#[test]
fn a_kernel_parameter_gets_its_value_back() {
    const NAME: &str = "a_kernel_parameter_gets_its_value_back";
    const SCRIPT: &str = r#"
set -e
mount -t tmpfs tmpfs /etc/sysctl.d
cd "$1"; stead=$2; name=net.ipv4.ip_default_ttl
value() { echo "$(cat /proc/sys/net/ipv4/ip_default_ttl) $(cat /etc/sysctl.d/* 2>/dev/null)"; }
value
echo '{"resources": [{"name": "ttl", "type": "Stead/Sysctl", "properties": {"name": "'$name'", "value": "70"}}]}' > main.json
"$stead" apply main.json --yes >&2; value
"$stead" undo --yes >&2; value
echo "$name = 71" > /etc/sysctl.d/90-stead.conf; echo 71 > /proc/sys/net/ipv4/ip_default_ttl
"$stead" apply main.json --yes >&2; value
"$stead" undo --yes >&2; value
"$stead" undo --yes >&2; value
"$stead" dsc resource delete -r Stead/Sysctl -i '{"name": "'$name'", "value": "99"}' >&2; value
"#;
    if !stead_testkit::is_root(NAME) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ended = Command::new("unshare")
        .args(["-m", "-n", "--propagation", "private", "sh", "-c", SCRIPT, "sh"])
        .args([folder.path(), Path::new(env!("CARGO_BIN_EXE_stead"))])
        .env("STEAD_STATE", folder.path().join("state"))
        .output()
        .unwrap();
    let [printed, said] = [ended.stdout, ended.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let line = |value: u8| format!("{value} net.ipv4.ip_default_ttl = {value}\n");
    let expected = format!("64 \n{}64 \n{}{}{}70 \n", line(70), line(70), line(71), line(70));
    assert_eq!(printed, expected, "{said}");
}

/// Things that the document before stated, and this one does not, go from the running system, and one command brings it back.
fn what_is_no_longer_stated_is_removed(machine: &Debian) {
    let of = |resources: Json| json!({ "directives": { "removed": "remove" }, "resources": resources }).to_string();
    let apply = |document: &str| {
        machine.write("/srv/removed.json", document);
        machine.run_text(&["stead", "apply", "/srv/removed.json", "--record", "--reconcile", "none", "--yes"])
    };
    // No other document had these.
    machine.write("/srv/removed/README", "");
    let stays = instance("Group", "stays", json!({}));
    apply(&of(json!([stays])));
    let before = imprint(machine);
    let mount = json!({ "path": "/srv/removed", "device": "tmpfs", "fstype": "tmpfs", "state": "mounted" });
    let more = json!([
        stays,
        instance("Nftables", "later", json!({ "content": "chain c {\n  counter\n}\n" })),
        instance("User", "ada", json!({ "shell": "/bin/sh", "createHome": false })),
        { "name": "mount", "type": "Stead/Mount", "properties": mount },
        { "name": "file", "type": "Stead/File", "properties": { "path": "/etc/site.conf", "content": "a\n" } },
    ]);
    apply(&of(more));
    let with_more = imprint(machine);
    let said = apply(&of(json!([stays])));
    let found = imprint(machine);
    // The line that includes tables stays for others.
    let is_other =
        |text: &str| text.lines().filter(|line| !line.contains("nftables")).map(str::to_owned).collect::<Vec<_>>();
    assert!(is_other(&found) == is_other(&before), "{said}{}", differing(&before, &found));
    let said = machine.run_text(&["stead", "undo", "--yes"]);
    let found = imprint(machine);
    assert!(found == with_more, "{said}{}", differing(&with_more, &found));
    apply(&of(json!([stays])));
}

/// A table that was changed by hand comes back with a boot, behind what Debian's own file flushes.
fn a_table_is_there_after_a_boot(machine: &mut Debian) {
    let content = "chain input {\n  type filter hook input priority filter;\n  tcp dport { 22, 80 } accept\n}\n";
    let document = json!({ "resources": [
        instance("Nftables", "site", json!({ "content": content })),
        instance("Service", "nftables", json!({ "enabled": true, "state": "running" })),
    ] });
    machine.write("/srv/document.json", &document.to_string());
    machine.ok(&["stead", "apply", "/srv/document.json", "--yes"]);
    machine.ok(&["nft", "flush", "ruleset"]);
    let drifted = machine.run(&["stead", "check", "/srv/document.json"]);
    assert_eq!(drifted.status.code(), Some(2), "a table that is gone is seen");
    machine.shut_down();
    machine.boot();
    machine.wait_until_started();
    machine.ok(&["stead", "check", "/srv/document.json"]);
    let tables = machine.ok(&["nft", "list", "tables"]);
    assert!(tables.contains("table inet site") && tables.contains("table inet filter"), "{tables}");
    machine.ok(&["stead", "undo", "--yes"]);
    assert!(!machine.ok(&["nft", "list", "tables"]).contains("inet site"));
}

/// A package is named before anything is done, and the rest is taken back.
fn what_a_package_did_is_named(machine: &Debian) {
    let document = json!({ "resources": [
        instance("Package", "openssh-server", json!({ "_exist": false })),
        instance("Group", "later", json!({})),
    ] });
    machine.write("/srv/document.json", &document.to_string());
    machine.ok(&["stead", "apply", "/srv/document.json", "--record", "--reconcile", "none", "--yes"]);
    let said = machine.run_text(&["stead", "undo"]);
    assert!(said.contains("cannot be taken back: Stead/Package:openssh-server"), "{said}");
    assert!(machine.run(&["getent", "group", "later"]).status.success(), "nothing is done without --yes: {said}");
    let said = machine.run_text(&["stead", "undo", "--yes"]);
    assert!(!machine.run(&["getent", "group", "later"]).status.success(), "{said}");
    assert!(!machine.root("/usr/sbin/sshd").exists(), "{said}");
}

/// The files, mounts and services that the documents are about.
fn prepare(machine: &Debian) {
    machine.install(Path::new(env!("CARGO_BIN_EXE_stead")), "/usr/local/bin/stead");
    let made = ["/etc/nftables.d", "/etc/systemd/system/nightly.timer", "/etc/systemd/system/nightly.service"];
    for path in ["/var/lib/stead", "/etc/systemd/system/timers.target.wants/nightly.timer"].into_iter().chain(made) {
        machine.remove(path);
    }
    machine.write("/etc/systemd/system/server.service", UNIT);
    machine.write("/etc/systemd/system/idle.service", "[Service]\nExecStart=/bin/true\n");
    machine.write("/etc/systemd/system/idle.timer", "[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=timers.target\n");
    machine.write("/etc/fstab", "# Mounts.\ntmpfs /srv/there tmpfs size=1m,nosuid 0 0\n");
    machine.write("/srv/there/README", "");
    machine.write("/srv/mounted/README", "");
    machine.write("/etc/sysctl.d/90-stead.conf", "# Kept.\nnet.ipv4.ip_default_ttl=64\n");
}

/// All that documents changed: what is below /etc, times apart, and the state of the running system.
fn imprint(machine: &Debian) -> String {
    const SHOW: &str = "cd /etc; find . -path ./.pwd.lock -prune -o -printf '%p %y %m %U %G %l\\n' | sort; \
        find . -type f ! -name .pwd.lock -exec sha256sum {} + | sort -k 2; ls -laR --time-style=+ /home; \
        nft -s list ruleset; findmnt -rno TARGET,FSTYPE,OPTIONS | grep '^/srv'; hostname; date +%Z; \
        for unit in server fresh ssh nightly.timer idle.timer; do echo \"$unit $(systemctl is-active $unit) $(systemctl is-enabled $unit)\"; done 2>&1";
    until(|| {
        let shown = machine.run_text(&["bash", "-c", SHOW]);
        // What is on its way is waited for.
        (!shown.contains("activating")).then_some(shown)
    })
}

/// The lines that one has and the other does not.
fn differing(expected: &str, found: &str) -> String {
    let [of, now] = [expected, found].map(|text| text.lines().collect::<BTreeSet<_>>());
    let lines = of.difference(&now).map(|line| format!("- {line}\n"));
    lines.chain(now.difference(&of).map(|line| format!("+ {line}\n"))).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "documents are written in place")]
fn instance(kind: &str, name: &str, more: Json) -> Json {
    let mut properties = json!({ "name": name });
    let own = properties.as_object_mut().unwrap();
    own.extend(more.as_object().unwrap().iter().map(|(name, value)| (name.clone(), value.clone())));
    json!({ "name": name.replace('/', "-"), "type": format!("Stead/{kind}"), "properties": properties })
}

fn documents() -> Vec<(&'static str, Json)> {
    let service = |name: &str, more: Json| instance("Service", name, more);
    let refused_root =
        json!({ "path": "/etc/ssh/sshd_config", "line": "PermitRootLogin no", "validate": "sshd -t -f %s" });
    let sshd = json!([
        { "name": "login", "type": "Stead/Line", "properties": refused_root },
        service("ssh", json!({ "state": "running", "reloadedAfter": ["/etc/ssh/sshd_config"] })),
    ]);
    let live = vec![
        (
            "a service that is stopped and disabled",
            json!([service("server", json!({ "state": "stopped", "enabled": false }))]),
        ),
        ("a service that is masked", json!([service("ssh", json!({ "state": "stopped", "masked": true }))])),
        (
            "a service of its own",
            json!([service("fresh", json!({ "unit": UNIT, "state": "running", "enabled": true, "stableFor": 1 }))]),
        ),
        ("a drop-in", json!([service("server", json!({ "dropIns": { "nice": "# Nice.\n[Service]\nNice=5\n" } }))])),
        (
            "a timer",
            json!([instance(
                "Timer",
                "nightly",
                json!({ "onCalendar": "*-*-* 02:30", "command": "/bin/true", "state": "running" })
            )]),
        ),
        (
            "a timer that was disabled",
            json!([instance("Timer", "idle", json!({ "onCalendar": "*-*-* 03:30", "command": "/bin/true" }))]),
        ),
        (
            "a user with a home",
            json!([instance(
                "User",
                "ada",
                json!({ "comment": "Ada", "shell": "/bin/sh", "createHome": true, "groups": ["games"] })
            )]),
        ),
        (
            "a user that was there",
            json!([instance("User", "games", json!({ "shell": "/bin/bash", "comment": "Players", "locked": true }))]),
        ),
        ("a group", json!([instance("Group", "deploy", json!({ "members": ["games"] }))])),
        ("a group that was there", json!([instance("Group", "staff", json!({ "members": ["games"] }))])),
        // The kernel is that of the host.
        (
            "kernel parameters",
            json!([
                instance("Sysctl", "net.ipv4.ip_default_ttl", json!({ "value": "70", "live": false })),
                instance("Sysctl", "net.ipv4.ip_forward", json!({ "value": "1", "live": false })),
            ]),
        ),
        ("a host name", json!([instance("Hostname", "other", json!({}))])),
        ("a time zone", json!([instance("Timezone", "Asia/Tokyo", json!({}))])),
        ("a setting of sshd", sshd),
    ];
    live.into_iter().chain(mounts()).chain(tables()).collect()
}

fn mounts() -> [(&'static str, Json); 3] {
    let mount = |properties: Json| json!([{ "name": "mount", "type": "Stead/Mount", "properties": properties }]);
    [
        (
            "a mount",
            mount(
                json!({ "path": "/srv/mounted", "device": "tmpfs", "fstype": "tmpfs", "options": "size=2m", "state": "mounted" }),
            ),
        ),
        (
            "a mount with other options",
            mount(
                json!({ "path": "/srv/there", "device": "tmpfs", "fstype": "tmpfs", "options": "size=1m,noexec", "state": "mounted" }),
            ),
        ),
        ("a mount that is gone", mount(json!({ "path": "/srv/there", "_exist": false }))),
    ]
}

fn tables() -> [(&'static str, Json); 3] {
    [
        (
            "a table of nftables",
            json!([instance("Nftables", "site", json!({ "content": "chain c {\n  counter\n}\n" }))]),
        ),
        ("a table that was there", json!([instance("Nftables", "found", json!({ "content": "chain c {\n}\n" }))])),
        ("a table that is gone", json!([instance("Nftables", "found", json!({ "_exist": false }))])),
    ]
}
