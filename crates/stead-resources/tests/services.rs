//! Laws of `Stead/Service` below any root, and on a running systemd: that of a whole Debian, which is booted for it
//! (see `crates/stead/tests/boots`).
//!
//! `STEAD_STATES=10000` tries so many roots.
//! `STEAD_BOOTS=1 cargo test -p stead-resources --test services` makes the Debian once, in the target directory. The test
//! is copied into it and started there again, and never touches the services of the machine that runs it.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[expect(dead_code, reason = "the tests of the agent use more of it")]
#[path = "../../stead/tests/boots/debian.rs"]
mod debian;
mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use debian::Debian;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value as Json, json};
use stead_core::call::Execution;
use stead_host::provider::{Context, Plain, Review};
use stead_testkit::until;
use support::{World, provider};

const TEST: &str = "services_of_a_running_systemd";
/// Set where the test runs within the Debian.
const WITHIN: &str = "STEAD_WITHIN_BOX";

#[test]
fn services_of_a_running_systemd() {
    if std::env::var_os(WITHIN).is_some() {
        return within();
    }
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let asked = stead_testkit::asked("STEAD_BOOTS");
    let mut machine = match Debian::of(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("boots"), asked.is_some()) {
        Ok(machine) => machine,
        Err(reason) => return stead_testkit::skip(TEST, &reason),
    };
    machine.install(&std::env::current_exe().unwrap(), "usr/local/bin/services");
    machine.boot();
    until(|| machine.run(&["systemctl", "is-active", "dbus.socket"]).status.success().then_some(()));
    machine.ok(&["env", &format!("{WITHIN}=1"), "services", "--exact", TEST, "--nocapture"]);
    machine.shut_down();
}

/// Brings a service into a state: the what-if changes nothing and predicts the set, after which the state is the desired one
/// and another set changes nothing. Returns the properties that were changed.
fn converge(desired: &Json) -> Vec<String> {
    let changed = set(desired);
    assert_eq!(set(desired), [""; 0], "{desired}: a second set changed something");
    changed
}

fn set(desired: &Json) -> Vec<String> {
    try_set(desired).unwrap_or_else(|message| panic!("{desired}: {message}"))
}

fn try_set(desired: &Json) -> Result<Vec<String>, String> {
    let (provider, cx) = (provider("Stead/Service"), context());
    let desired = Plain::new(desired.clone());
    let before = provider.get(&cx, &desired).map_err(|failure| failure.message)?;
    let tested = provider.test(&cx, &desired).map_err(|failure| failure.message)?;
    let predicted = provider.set(&cx, &desired, Execution::WhatIf).map_err(|failure| failure.message)?;
    let still = provider.get(&cx, &desired).map_err(|failure| failure.message)?;
    assert!(before.expose() == still.expose(), "a what-if changed something");
    let set = provider.set(&cx, &desired, Execution::Actual).map_err(|failure| failure.message)?;
    assert_eq!((&predicted.changed, &predicted.effects), (&set.changed, &set.effects));
    assert!(predicted.after.unwrap().expose() == set.after.unwrap().expose());
    assert_eq!(tested.differing, set.changed);
    Ok(set.changed.unwrap())
}

fn context() -> Context {
    Context { deadline: Duration::from_mins(1), ..Context::new(Path::new("/")) }
}

fn systemctl(arguments: &[&str]) -> String {
    let output = Command::new("systemctl").args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn process() -> String {
    systemctl(&["show", "--property=MainPID", "--value", "demo"])
}

fn unit(command: &str) -> String {
    format!("[Service]\nExecStart={command}\n[Install]\nWantedBy=multi-user.target\nAlias=other.service\n")
}

fn within() {
    a_service_is_made_and_runs();
    what_changed_restarts_it();
    what_changed_reloads_it();
    an_outdated_unit_file_is_read_again();
    a_failure_says_where_to_look();
    what_ends_after_its_start_is_found();
    what_is_started_over_and_over_does_not_run();
    masks_and_absence();
    what_is_exported_is_what_systemctl_says();
}

fn a_service_is_made_and_runs() {
    let desired = json!({"name": "demo", "unit": unit("/bin/sleep 1000"), "enabled": true, "state": "running"});
    assert_eq!(converge(&desired), ["_exist"]);
    assert_eq!(systemctl(&["is-active", "demo"]), "active");
    assert_eq!(systemctl(&["is-enabled", "demo"]), "enabled");
    assert_eq!(converge(&json!({"name": "demo", "state": "stopped", "enabled": false})), ["state", "enabled"]);
    assert_eq!(systemctl(&["is-active", "demo"]), "inactive");
    assert_eq!(systemctl(&["is-enabled", "demo"]), "disabled");
    assert_eq!(converge(&desired), ["state", "enabled"]);
}

fn what_changed_restarts_it() {
    let first = process();
    std::fs::write("/etc/demo.conf", "1").unwrap();
    let after_file = json!({"name": "demo", "restartedAfter": ["/etc/demo.conf"]});
    assert_eq!(converge(&after_file), ["restartedAfter"]);
    let second = process();
    assert_ne!(first, second);
    // What is started does not become outdated by a file that was there before.
    assert_eq!(set(&after_file), [""; 0]);
    let limits = json!({"limits": "[Service]\nLimitNOFILE=4096\n"});
    let desired = json!({"name": "demo", "unit": unit("/bin/sleep 2000"), "dropIns": limits, "state": "running"});
    assert_eq!(converge(&desired), ["unit", "dropIns"]);
    assert_ne!(second, process());
    assert_eq!(systemctl(&["show", "--property=LimitNOFILE", "--value", "demo"]), "4096");
    assert_eq!(systemctl(&["show", "--property=NeedDaemonReload", "--value", "demo"]), "no");
    let third = process();
    assert_eq!(set(&json!({"name": "demo", "restarted": true})), ["restarted"]);
    assert_ne!(third, process());
}

fn what_changed_reloads_it() {
    let reloads = || std::fs::read_to_string("/run/reloads").unwrap_or_default().lines().count();
    let process = |name: &str| systemctl(&["show", "--property=MainPID", "--value", name]);
    let changed = |path: &str| std::fs::write(path, "changed").unwrap();
    let what_if = |desired: &Json| {
        let predicted = provider("Stead/Service").set(&context(), &Plain::new(desired.clone()), Execution::WhatIf);
        predicted.unwrap_or_else(|failure| panic!("{}", failure.message)).what_if
    };
    let reload = "ExecReload=/bin/sh -c 'test ! -e /run/refused && echo >> /run/reloads'";
    let unit = format!("[Service]\nExecStart=/bin/sleep 1000\n{reload}\n");
    assert_eq!(converge(&json!({"name": "again", "unit": unit, "state": "running"})), ["_exist"]);
    let first = process("again");
    changed("/etc/again.conf");
    let after = json!({"name": "again", "reloadedAfter": ["/etc/again.conf"]});
    assert_eq!(what_if(&after), ["reload it, since '/etc/again.conf' was changed after its last reload"]);
    assert_eq!(converge(&after), ["reloadedAfter"]);
    changed("/etc/again.conf");
    changed("/run/refused");
    let failure = try_set(&after).unwrap_err();
    assert!(failure.starts_with("cannot reload 'again.service': it is active, with result exit-code"), "{failure}");
    let both = json!({"name": "again", "reloadedAfter": ["/etc/again.conf"], "restarted": true});
    assert_eq!(what_if(&both), ["restart it"], "it could reload");
    std::fs::remove_file("/run/refused").unwrap();
    assert_eq!(converge(&after), ["reloadedAfter"], "a reload that failed is due");
    assert_eq!(set(&json!({"name": "again", "reloaded": true})), ["reloaded"]);
    assert_eq!((reloads(), process("again")), (3, first), "it runs on");
    // One that cannot reload is restarted.
    let (first, after) = (process("demo"), json!({"name": "demo", "reloadedAfter": ["/etc/demo.conf"]}));
    changed("/etc/demo.conf");
    let because = "restart it, since '/etc/demo.conf' was changed after its last reload, and it cannot reload";
    assert_eq!(what_if(&after), [because]);
    assert_eq!(converge(&after), ["reloadedAfter"]);
    assert_ne!(process("demo"), first);
}

fn an_outdated_unit_file_is_read_again() {
    let path = "/etc/systemd/system/demo.service";
    std::fs::write(path, unit("/bin/sleep 3000")).unwrap();
    // A broken-off run wrote the file and did not come to the restart.
    let desired = json!({"name": "demo", "unit": unit("/bin/sleep 3000"), "state": "running"});
    assert_eq!(converge(&desired), ["restartedAfter"]);
    assert!(systemctl(&["show", "--property=ExecStart", "--value", "demo"]).contains("sleep 3000"));
}

fn a_failure_says_where_to_look() {
    let broken = "[Service]\nType=oneshot\nExecStart=/bin/false\n";
    let message = try_set(&json!({"name": "broken", "unit": broken, "state": "running"})).unwrap_err();
    assert!(message.contains("cannot start 'broken.service': it is failed, with result exit-code"), "{message}");
    assert!(message.contains("journalctl --unit broken.service"), "{message}");
    assert!(message.contains("\njournal of the unit") && message.contains("status=1/FAILURE"), "{message}");
    let misspelt = json!({"name": "broken", "unit": "[Service]\nExecStrat=/bin/true\n", "state": "running"});
    let message = try_set(&misspelt).unwrap_err();
    assert!(message.contains("/broken.service:2: ") && message.contains("'ExecStrat'"), "{message}");
    assert_eq!(set(&json!({"name": "broken", "_exist": false})), ["_exist"]);
    let elsewhere = "[Unit]\nConditionPathExists=/\nConditionPathExists=!/etc\n[Service]\nExecStart=/bin/sleep 1000\n";
    let message = try_set(&json!({"name": "elsewhere", "unit": elsewhere, "state": "running"})).unwrap_err();
    assert!(message.ends_with("on this machine: ConditionPathExists=!/etc in its unit file is not met"), "{message}");
    assert_eq!(set(&json!({"name": "elsewhere", "_exist": false})), ["_exist"]);
    let done = json!({"name": "done", "unit": "[Service]\nType=oneshot\nExecStart=/bin/true\n", "state": "running"});
    assert_eq!(set(&done), ["_exist"], "what has done its work was started");
    assert_eq!(set(&json!({"name": "done", "_exist": false})), ["_exist"]);
    let message = try_set(&json!({"name": "absent", "state": "running"})).unwrap_err();
    assert!(message.starts_with("there is no unit 'absent.service'"), "{message}");
}

/// Reviews a service until its time is over, as the end of a run does.
fn review(desired: &Json) -> Result<(), String> {
    loop {
        match provider("Stead/Service").review(&context(), &Plain::new(desired.clone())) {
            Review::Lasted => return Ok(()),
            Review::TooEarly(wait) => std::thread::sleep(wait),
            Review::Failed(failure) => return Err(failure.message),
        }
    }
}

fn what_ends_after_its_start_is_found() {
    let ends = [
        "ExecStart=/bin/sh -c 'sleep 0.2; exit 1'",
        "ExecStart=/bin/sh -c 'sleep 2; exit 1'",
        "ExecStart=/bin/sh -c 'sleep 1; exit 0'",
        "Restart=always\nRestartSec=0\nExecStart=/bin/sh -c 'sleep 1; exit 1'",
    ];
    for settings in ends {
        let unit = format!("[Service]\n{settings}\n");
        let desired = json!({"name": "ends", "unit": unit, "state": "running"});
        // A look right after the start may see that it has ended already.
        let message = try_set(&desired).and_then(|_| review(&desired)).unwrap_err();
        assert!(message.contains("'ends.service'") && message.contains("journalctl --unit ends.service"), "{message}");
        set(&json!({"name": "ends", "_exist": false}));
    }
    let lasts = [
        "ExecStart=/bin/sleep 1000",
        "Type=oneshot\nExecStart=/bin/true",
        "Type=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true",
    ];
    for settings in lasts {
        let desired = json!({"name": "lasts", "unit": format!("[Service]\n{settings}\n"), "state": "running"});
        set(&desired);
        assert_eq!(review(&desired), Ok(()), "{settings}");
        set(&json!({"name": "lasts", "_exist": false}));
    }
    // A restart that a user requests is not one by systemd.
    let desired = json!({"name": "lasts", "unit": "[Service]\nExecStart=/bin/sleep 1000\n", "state": "running"});
    set(&desired);
    systemctl(&["restart", "lasts"]);
    assert_eq!(review(&desired), Ok(()));
    let not_asked = json!({"name": "lasts", "restarted": true, "stableFor": 0});
    set(&not_asked);
    systemctl(&["stop", "lasts"]);
    assert_eq!(review(&not_asked), Ok(()));
    set(&json!({"name": "lasts", "_exist": false}));
}

/// Whoever looks in a lucky moment finds it active; how often it was started says that it does not stay so.
fn what_is_started_over_and_over_does_not_run() {
    let unit = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=200ms\nExecStart=/bin/sh -c 'sleep 1; exit 1'\n";
    let desired = json!({"name": "loops", "unit": unit, "state": "running"});
    let attempt = || try_set(&desired).and_then(|_| review(&desired)).unwrap_err();
    for _ in 0..3 {
        let message = attempt();
        assert!(message.contains("did not keep running"), "{message}");
        let tested = provider("Stead/Service").test(&context(), &Plain::new(desired.clone())).unwrap();
        assert_eq!(tested.differing.unwrap(), ["state"]);
    }
    set(&json!({"name": "loops", "_exist": false}));
}

fn masks_and_absence() {
    assert_eq!(converge(&json!({"name": "demo", "_exist": false})), ["_exist"]);
    assert_eq!(systemctl(&["is-active", "demo"]), "inactive");
    assert_eq!(systemctl(&["show", "--property=LoadState", "--value", "demo"]), "not-found");
    let unit = "systemd-networkd";
    assert_eq!(converge(&json!({"name": unit, "masked": true, "state": "stopped"})).last().unwrap(), "masked");
    assert_eq!(systemctl(&["is-enabled", unit]), "masked");
    converge(&json!({"name": unit, "masked": false, "enabled": true}));
    assert_eq!(systemctl(&["is-enabled", unit]), "enabled");
    converge(&json!({"name": unit, "enabled": false}));
    assert_eq!(systemctl(&["is-enabled", unit]), "disabled");
}

fn what_is_exported_is_what_systemctl_says() {
    let exported = provider("Stead/Service").export(&context(), &Plain::default()).ok().unwrap();
    assert!(exported.len() > 3, "{}", exported.len());
    let mut running = BTreeSet::new();
    for instance in exported {
        let properties = instance.properties.to_redacted_json();
        let (name, flag) = (properties["name"].as_str().unwrap(), |property: &str| properties[property] == json!(true));
        let enablement = systemctl(&["is-enabled", name]);
        assert_eq!(flag("masked"), enablement.starts_with("masked"), "{name}: {enablement}");
        assert_eq!(flag("enabled"), matches!(enablement.as_str(), "enabled" | "alias"), "{name}: {enablement}");
        if properties["state"] == "running" {
            running.insert(name.to_owned());
        }
        assert_eq!(set(&properties), [""; 0], "{name} is exported as it is not");
    }
    let listed = systemctl(&["list-units", "--type=service", "--state=active", "--plain", "--no-legend"]);
    let listed: BTreeSet<_> =
        listed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    assert_eq!(running, listed);
}

/// The files that may be below a root.
const FILES: [&str; 14] = [
    r#"file usr/lib/systemd/system/web.service 0644 "[Install]\nWantedBy=a.target b.target\nAlias=alias.service\nAlso=web.socket\n""#,
    r#"file usr/lib/systemd/system/web.socket 0644 "[Install]\nRequiredBy=sockets.target\nAlso=web.service\n""#,
    r#"file usr/lib/systemd/system/tty@.service 0644 "[Install]\nWantedBy=%i.target\n""#,
    r#"file usr/lib/systemd/system/static.service 0644 "[Service]\n""#,
    r#"file etc/systemd/system/own.service 0644 "[Install]\nUpheldBy=a.target\n""#,
    r#"file etc/systemd/system/own.service.d/a.conf 0644 "[Service]\n""#,
    "link etc/systemd/system/web.socket -> /dev/null",
    "link etc/systemd/system/static.service -> /dev/null",
    "link etc/systemd/system/a.target.wants/web.service -> /usr/lib/systemd/system/web.service",
    "link etc/systemd/system/alias.service -> /usr/lib/systemd/system/web.service",
    "link etc/systemd/system/a.target.upholds/own.service -> /etc/systemd/system/own.service",
    "link run/systemd/system/own.service -> /dev/null",
    "file opt/linked.service 0640 \"[Install]\\nWantedBy=a.target\\n\"",
    "link etc/systemd/system/linked.service -> /opt/linked.service",
];

fn desired() -> impl Strategy<Value = Json> {
    let flags = || vec![json!(true), json!(false)];
    let table = [
        ("state", vec![json!("stopped"), json!("running")]),
        ("enabled", flags()),
        ("masked", flags()),
        ("unit", vec![json!("[Service]\n"), json!("[Install]\nWantedBy=c.target\n")]),
        ("dropIns", vec![json!({}), json!({"a": "[Service]\n", "b": "[Unit]\n"})]),
        ("restartedAfter", vec![json!(["/etc/passwd"])]),
        ("reloadedAfter", vec![json!(["/etc/passwd"])]),
        ("_exist", flags()),
    ];
    let each: Vec<_> = table
        .into_iter()
        .map(|(name, values)| (Just(name), proptest::option::weighted(0.35, select(values))))
        .collect();
    let name = select(vec!["web", "web.socket", "own", "static.service", "tty@1", "none"]);
    (name, each).prop_map(|(name, chosen)| {
        let members = chosen.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let mut all: serde_json::Map<String, Json> = members.collect();
        all.insert("name".to_owned(), json!(name));
        Json::Object(all)
    })
}

fn config() -> ProptestConfig {
    let cases = u32::try_from(stead_testkit::times("STEAD_STATES", 300)).unwrap();
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// A set fails as the what-if says, or does what it says and reaches the desired state; a second one changes nothing.
    #[test]
    fn units_converge(files in subsequence(FILES.to_vec(), 0..=FILES.len()), desired in desired()) {
        let world = World::build_in_memory(&files.join("\n"));
        let (provider, cx, desired) = (provider("Stead/Service"), world.context_for("Stead/Service"), Plain::new(desired));
        let before = world.imprint();
        let tested = provider.test(&cx, &desired);
        let predicted = provider.set(&cx, &desired, Execution::WhatIf);
        prop_assert_eq!(&world.imprint(), &before, "a test or a what-if changed something");
        let Ok(set) = provider.set(&cx, &desired, Execution::Actual) else {
            prop_assert_eq!(&world.imprint(), &before, "a set that failed changed something");
            prop_assert!(predicted.is_err() || predicted.is_ok_and(|reply| reply.presumed.is_some()));
            return Ok(());
        };
        let predicted = predicted.map_err(|failure| TestCaseError::fail(failure.message))?;
        prop_assert!(predicted.presumed.is_none());
        prop_assert_eq!((&predicted.changed, &predicted.effects), (&set.changed, &set.effects));
        prop_assert_eq!(&tested.map_err(|failure| TestCaseError::fail(failure.message))?.differing, &set.changed);
        let settled = world.imprint();
        for item in set.effects.creates.items() {
            let path = item.path.trim_start_matches('/');
            prop_assert!(settled.contains_key(std::ffi::OsStr::new(path)), "{} was not created", path);
        }
        let at = |item: &stead_core::destruction::Item| std::ffi::OsString::from(item.path.trim_start_matches('/'));
        let destroyed: Vec<_> = set.effects.destroys.items().iter().map(at).collect();
        let is_gone = |(path, node): &(&std::ffi::OsString, &support::Node)| !settled.get(*path).is_some_and(|now| node.remains(now));
        let gone: Vec<_> = before.iter().filter(is_gone).map(|(path, _)| path).collect();
        prop_assert!(gone.iter().all(|path| destroyed.contains(path)), "unannounced: {:?}", gone);
        // A mask may make way for a unit file.
        prop_assert!(destroyed.iter().all(|path| settled.get(path) != before.get(path)), "announced and still there");
        let again = provider.set(&cx, &desired, Execution::Actual).map_err(|failure| TestCaseError::fail(failure.message))?;
        prop_assert_eq!(again.changed, Some(Vec::new()));
        prop_assert_eq!(world.imprint(), settled, "a second set changed something");
    }
}
