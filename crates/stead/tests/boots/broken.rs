//! Documents that break a service, the rules of sudo, sshd, the firewall or the network of a whole machine: each is guarded, or taken back, by the run
//! itself or by one command.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value as Json, json};
use stead_testkit::until;

use crate::debian::Debian;

const TEST: &str = "what_breaks_a_machine_is_guarded_or_taken_back";

const SERVER: &str = "/srv/server.sh";

/// Serves until it is ended, with settings that it reads when it starts and reloads; a wrong one ends it, at once or after a while.
const SCRIPT: &str = r#"#!/bin/bash
read_settings() {
  for file in /etc/server.conf /etc/server.d/*; do
    [ ! -e "$file" ] || ! grep -q '^broken' "$file" || exit 1
    ! grep -q '^later' "$file" || { sleep 0.5; exit 1; }
  done
}
read_settings
trap read_settings HUP
while :; do sleep 0.1; done
"#;

const UNIT: &str =
    "[Service]\nExecStart=/srv/server.sh\nExecReload=/srv/check.sh\n[Install]\nWantedBy=multi-user.target\n";

/// How what a document breaks ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ends {
    /// It is refused before it is in place.
    Guarded,
    /// The run puts it back.
    ByTheRun,
    /// `stead undo` puts it back.
    ByUndo,
}

impl Ends {
    fn words(self) -> &'static str {
        match self {
            Self::Guarded => "guarded",
            Self::ByTheRun => "taken back by the run",
            Self::ByUndo => "taken back by one command",
        }
    }
}

#[test]
fn what_breaks_a_machine_is_guarded_or_taken_back() {
    let Some(mut machine) = Debian::of_test(TEST, "broken") else { return };
    let packages = [("/usr/sbin/sshd", "openssh-server"), ("/usr/sbin/nft", "nftables")];
    let missing: Vec<&str> =
        packages.iter().filter(|(program, _)| !machine.root(program).exists()).map(|(_, package)| *package).collect();
    if !missing.is_empty()
        && let Err(why) = machine.install_packages(&missing)
    {
        return stead_testkit::skip(TEST, &why);
    }
    prepare(&machine);
    machine.boot();
    machine.wait_until_started();
    machine.ok(&["systemctl", "start", "server", "flapping", "systemd-networkd", "ssh"]);
    let documents = documents();
    let mut counts = [0; 3];
    for (name, ends, document) in &documents {
        let (before, begun) = (imprint(&machine), Instant::now());
        machine.write("/srv/document.json", &document.to_string());
        let applied =
            machine.run(&["stead", "apply", "/srv/document.json", "--record", "--reconcile", "none", "--yes"]);
        let said = [applied.stdout, applied.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        if *ends == Ends::ByUndo {
            assert!(imprint(&machine) != before, "{name}: it breaks nothing: {said}");
            let undone = machine.run_text(&["stead", "undo", "--yes"]);
            assert!(imprint(&machine) == before, "{name}: {said}{undone}\n{before}\n{}", imprint(&machine));
        } else {
            assert_eq!(applied.status.code(), Some(1), "{name}: {said}");
            assert_eq!(said.contains("were put back, and it runs again"), *ends == Ends::ByTheRun, "{name}: {said}");
            assert!(imprint(&machine) == before, "{name}: {said}\n{before}\n{}", imprint(&machine));
        }
        counts[*ends as usize] += 1;
        println!("{name:<45} {:<28} {:>5.1} s", ends.words(), begun.elapsed().as_secs_f64());
    }
    println!(
        "{} documents: {} guarded, {} taken back by the run, {} by one command",
        documents.len(),
        counts[0],
        counts[1],
        counts[2]
    );
    machine.shut_down();
}

/// The files and services that the documents are about.
fn prepare(machine: &Debian) {
    machine.install(Path::new(env!("CARGO_BIN_EXE_stead")), "/usr/local/bin/stead");
    machine.write(SERVER, SCRIPT);
    machine.write("/srv/check.sh", "#!/bin/bash\n! grep -qs '^broken' /etc/server.conf /etc/server.d/*\n");
    machine.make_executable(SERVER);
    machine.make_executable("/srv/check.sh");
    let own = ["/etc/server.d", "/var/lib/stead", "/etc/systemd/system/server.service.d", "/etc/nftables.d"];
    for path in own.into_iter().chain(["/etc/ssh/sshd_config.d/site.conf"]) {
        machine.remove(path);
    }
    machine.write("/etc/server.conf", "port=80\n");
    machine.write("/etc/server.d/site", "name=a\n");
    machine.write("/etc/systemd/system/server.service", UNIT);
    machine.write(
        "/etc/systemd/system/flapping.service",
        &UNIT.replace("[Install]", "Restart=always\nRestartSec=50ms\n[Install]"),
    );
    machine.write("/etc/sudoers.d/admins", "%admins ALL=(ALL) ALL\n");
    machine.write("/etc/systemd/network/10-dummy.netdev", "[NetDev]\nName=dummy0\nKind=dummy\n");
    machine.write("/etc/systemd/network/10-dummy.network", "[Match]\nName=dummy0\n[Network]\nAddress=10.9.0.1/24\n");
}

/// All that a document can break: files with their modes, and what runs.
fn imprint(machine: &Debian) -> String {
    const SHOW: &str = "cd /etc; for f in $(find server.conf server.d sudoers.d sudoers systemd/system systemd/network \
        hosts sysctl.d ssh nftables.conf nftables.d -type f 2>/dev/null | sort); do stat -c '%n %a %u' $f; cat $f; done; \
        systemctl is-active server flapping systemd-networkd ssh; systemctl is-enabled server cron 2>&1; visudo -c; \
        sshd -t; nft list ruleset";
    until(|| {
        let shown = machine.run_text(&["bash", "-c", SHOW]);
        // What is on its way up is waited for.
        (!shown.contains("activating")).then_some(shown)
    })
}

#[expect(clippy::needless_pass_by_value, reason = "documents are written in place")]
fn instance(kind: &str, name: &str, properties: Json) -> Json {
    json!({ "name": name, "type": format!("Stead/{kind}"), "properties": properties })
}

/// A service that reads a file, behind what changes the file.
#[expect(clippy::needless_pass_by_value, reason = "documents are written in place")]
fn behind(service: &str, change: Json, more: &Json) -> Json {
    let id = format!("{}:{}", change["type"].as_str().unwrap(), change["name"].as_str().unwrap());
    let mut properties = json!({ "name": service, "state": "running", "stableFor": 2 });
    let own = properties.as_object_mut().unwrap();
    own.extend(more.as_object().unwrap().iter().map(|(name, value)| (name.clone(), value.clone())));
    let mut last = instance("Service", service, properties);
    last["dependsOn"] = json!([id]);
    json!({ "resources": [change, last] })
}

#[expect(clippy::too_many_lines, reason = "a table, a row for each document")]
fn documents() -> Vec<(&'static str, Ends, Json)> {
    use Ends::{ByTheRun, ByUndo, Guarded};
    let conf = |content: &str| instance("File", "conf", json!({ "path": "/etc/server.conf", "content": content }));
    let after = json!({ "restartedAfter": ["/etc/server.conf"] });
    let folder = json!({ "restartedAfter": ["/etc/server.d/site", "/etc/server.d/more"] });
    let alone = |instance: Json| json!({ "resources": [instance] });
    let mut acting = behind("server", conf("broken\n"), &json!({ "restarted": true }));
    acting["resources"][1]["directives"] = json!({ "onChanges": ["Stead/File:conf"] });
    let two = {
        let mut document = behind("server", conf("broken\n"), &after);
        let mut other = behind("flapping", conf("broken\n"), &after);
        let service = other["resources"][1].take();
        document["resources"].as_array_mut().unwrap().push(service);
        document
    };
    let unit = |text: String| {
        instance("Service", "server", json!({ "name": "server", "state": "running", "stableFor": 2, "unit": text }))
    };
    let network = |content: &str| {
        instance("File", "net", json!({ "path": "/etc/systemd/network/10-dummy.network", "content": content }))
    };
    let keywords = |mut more: Json| {
        more["validate"] = json!(true);
        alone(instance("SshdConfig", "sshd", more))
    };
    let table = |content: &str| alone(instance("Nftables", "table", json!({ "name": "site", "content": content })));
    let site = "/etc/ssh/sshd_config.d/site.conf";
    vec![
        ("a keyword of sshd with a wrong value", Guarded, keywords(json!({ "PermitRootLogin": "sometimes" }))),
        ("a keyword of sshd that is misspelt", Guarded, keywords(json!({ "PermitRootLogn": false }))),
        (
            "a line of sshd that is checked",
            Guarded,
            alone(instance(
                "Line",
                "line",
                json!({ "path": "/etc/ssh/sshd_config", "line": "Wrong yes", "validate": "sshd -t -f %s" }),
            )),
        ),
        (
            "a file with which sshd does not start",
            ByTheRun,
            behind(
                "ssh",
                instance("File", "site", json!({ "path": site, "content": "Wrong yes\n" })),
                &json!({ "restartedAfter": [site] }),
            ),
        ),
        ("an sshd that lets nobody in", ByUndo, keywords(json!({ "AllowUsers": ["nobody-here"] }))),
        ("a table that nft refuses", Guarded, table("chain input {\n  tcp dport\n}\n")),
        (
            "a firewall that lets nobody in",
            ByUndo,
            table("chain input {\n  type filter hook input priority filter; policy drop;\n}\n"),
        ),
        ("a file that ends it at once", ByTheRun, behind("server", conf("broken\n"), &after)),
        ("a file that ends it later", ByTheRun, behind("server", conf("later\n"), &after)),
        ("a file that has it started again and again", ByTheRun, behind("flapping", conf("later\n"), &after)),
        (
            "a file that its reload refuses",
            ByTheRun,
            behind("server", conf("broken\n"), &json!({ "reloadedAfter": ["/etc/server.conf"] })),
        ),
        ("a handler", ByTheRun, acting),
        ("two services of one file", ByTheRun, two),
        (
            "a line of a file",
            ByTheRun,
            behind("server", instance("Line", "line", json!({ "path": "/etc/server.conf", "line": "broken" })), &after),
        ),
        (
            "a block of a file",
            ByTheRun,
            behind(
                "server",
                instance("Block", "block", json!({ "path": "/etc/server.conf", "name": "b", "content": "broken\n" })),
                &after,
            ),
        ),
        (
            "a template",
            ByTheRun,
            behind(
                "server",
                instance(
                    "Template",
                    "t",
                    json!({ "path": "/etc/server.conf", "template": "{{ a }}\n", "variables": { "a": "broken" } }),
                ),
                &after,
            ),
        ),
        (
            "a file that is new",
            ByTheRun,
            behind(
                "server",
                instance("File", "more", json!({ "path": "/etc/server.d/more", "content": "broken\n" })),
                &folder,
            ),
        ),
        (
            "a unit that starts nothing",
            ByTheRun,
            alone(unit(format!("# Ends.\n{}", UNIT.replace("/srv/server.sh", "/bin/false")))),
        ),
        (
            "a drop-in",
            ByTheRun,
            alone(instance(
                "Service",
                "server",
                json!({ "name": "server", "state": "running", "stableFor": 2, "dropIns": { "user": "# Nobody.\n[Service]\nUser=nobody-here\n" } }),
            )),
        ),
        (
            "rules of sudo that are none",
            Guarded,
            alone(instance("Sudoers", "rules", json!({ "name": "admins", "content": "%admins ALL=(ALL\n" }))),
        ),
        (
            "a file of sudo that is checked",
            Guarded,
            alone(instance(
                "File",
                "rules",
                json!({ "path": "/etc/sudoers.d/admins", "content": "wrong\n", "validate": "visudo -c -q -f %s" }),
            )),
        ),
        (
            "a line of sudo that is checked",
            Guarded,
            alone(instance(
                "Line",
                "rules",
                json!({ "path": "/etc/sudoers.d/admins", "line": "wrong", "validate": "visudo -c -q -f %s" }),
            )),
        ),
        (
            "settings that are checked",
            Guarded,
            alone(instance(
                "File",
                "conf",
                json!({ "path": "/etc/server.conf", "content": "broken\n", "validate": "grep -qv broken %s" }),
            )),
        ),
        (
            "a file of sudo that is not checked",
            ByUndo,
            alone(instance("File", "rules", json!({ "path": "/etc/sudoers.d/admins", "content": "wrong\n" }))),
        ),
        ("a network without an address", ByUndo, alone(network("# No address.\n[Match]\nName=dummy0\n"))),
        (
            "a network that is gone",
            ByUndo,
            alone(instance("File", "net", json!({ "path": "/etc/systemd/network/10-dummy.network", "_exist": false }))),
        ),
        (
            "a service that is stopped and masked",
            ByUndo,
            alone(instance(
                "Service",
                "systemd-networkd",
                json!({ "name": "systemd-networkd", "state": "stopped", "masked": true }),
            )),
        ),
    ]
}
