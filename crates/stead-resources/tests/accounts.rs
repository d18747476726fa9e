//! Laws of users and groups of every system.
//!
//! `STEAD_STATES=10000` tries so many systems; `STEAD_CUT_CHANGES=6` cuts all changes off at every system call that
//! changes something, in place of one at all of them and the others where databases take their place.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod support;

use std::os::unix::fs::MetadataExt;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value as Json, json};
use stead_core::call::Execution;
use stead_host::provider::{Context, Plain};
use stead_system::fs::SystemRoot;
use support::{World, provider};

/// The databases of a system: who is in them, and with what.
#[derive(Clone, Debug)]
struct System {
    users: Vec<(&'static str, u32)>,
    groups: Vec<(&'static str, u32, Vec<&'static str>)>,
    has_shadow: bool,
    has_user_groups: bool,
    is_complete: bool,
}

fn system() -> impl Strategy<Value = System> {
    let users = subsequence(vec![("root", 0), ("ann", 1000), ("bob", 1001), ("cat", 59_999)], 0..=4);
    let groups = subsequence(vec![("root", 0), ("ann", 1000), ("web", 1001), ("cat", 999)], 0..=4);
    let members = prop::collection::vec(subsequence(vec!["ann", "bob", "cat", "gone"], 0..=4), 4);
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.95));
    (users, groups, members, flags).prop_map(|(users, groups, members, (has_shadow, has_user_groups, is_complete))| {
        let groups = groups.into_iter().zip(members).map(|((name, gid), members)| (name, gid, members)).collect();
        System { users, groups, has_shadow, has_user_groups, is_complete }
    })
}

impl System {
    /// The tree that it is in, in the form that [`World::build`] takes.
    fn tree(&self) -> String {
        let text = |lines: Vec<String>| Json::from(lines.concat()).to_string();
        let passwd = |(name, uid): &(&str, u32)| format!("{name}:x:{uid}:{}:\u{fc}:/home/{name}:/bin/sh\n", uid % 1001);
        let shadow =
            |(name, _): &(&str, u32)| format!("{name}:{}:1:0:9:7:::\n", if *name == "ann" { "$6$a$b" } else { "!" });
        let group = |(name, gid, members): &(&str, u32, Vec<&str>)| format!("{name}:x:{gid}:{}\n", members.join(","));
        let gshadow = |(name, _, members): &(&str, u32, Vec<&str>)| format!("{name}:!::{}\n", members.join(","));
        let passwd = std::iter::once("# a comment\n".to_owned()).chain(self.users.iter().map(passwd)).collect();
        let groups = self.is_complete.then(|| self.groups.iter().map(group).collect());
        let databases = [
            ("passwd 0644", Some(passwd)),
            ("group 0644", groups),
            ("shadow 0600", self.has_shadow.then(|| self.users.iter().map(shadow).collect())),
            ("gshadow 0600", self.has_shadow.then(|| self.groups.iter().map(gshadow).collect())),
        ];
        let stated = databases.into_iter().filter_map(|(name, lines)| Some((name, text(lines?))));
        let files: Vec<String> = stated.map(|(name, text)| format!("file etc/{name} {text}\n")).collect();
        let own = if self.has_user_groups { "yes" } else { "no" };
        let settings = format!("file etc/login.defs 0644 \"USERGROUPS_ENAB {own}\\nUID_MAX 60000\\n\"\n");
        let homes =
            "file bin/sh 0755\ndir home 0755\ndir home/bob 0700\nfile home/bob/f 0644\nfile etc/skel/x 0600 \"x\"\n";
        files.concat() + &settings + homes
    }
}

type Table = Vec<(&'static str, Vec<Json>)>;

fn stated(table: Table) -> impl Strategy<Value = Json> {
    let each: Vec<_> =
        table.into_iter().map(|(name, values)| (Just(name), proptest::option::weighted(0.3, select(values)))).collect();
    let name = select(vec!["root", "ann", "bob", "cat", "dan"]);
    (name, each).prop_map(|(name, chosen)| {
        let members = chosen.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let mut all: serde_json::Map<String, Json> = members.collect();
        all.insert("name".to_owned(), json!(name));
        Json::Object(all)
    })
}

fn desired() -> impl Strategy<Value = (&'static str, Json)> {
    let flags = || vec![json!(true), json!(false)];
    let ids = || vec![json!(0), json!(1000), json!(4000)];
    let user = vec![
        ("uid", ids()),
        ("group", vec![json!("web"), json!("1000"), json!("nobody")]),
        ("groups", vec![json!([]), json!(["web"]), json!(["web", "cat"]), json!(["nobody"])]),
        ("membership", vec![json!("exact"), json!("minimum")]),
        ("comment", vec![json!("c"), json!("")]),
        ("home", vec![json!("/home/bob"), json!("/srv/none/x"), json!("/home/new")]),
        ("shell", vec![json!("/bin/sh")]),
        ("passwordHash", vec![json!("$6$a$b"), json!("$6$c$d"), json!("*")]),
        ("locked", flags()),
        ("expires", vec![json!("never"), json!("2031-02-03")]),
        ("passwordMaximumAge", vec![json!(9), json!(-1)]),
        ("system", flags()),
        ("createHome", flags()),
        ("removeHome", flags()),
        ("_exist", flags()),
    ];
    let group = vec![
        ("gid", ids()),
        ("members", vec![json!([]), json!(["ann"]), json!(["bob", "ann"])]),
        ("membership", vec![json!("exact"), json!("minimum")]),
        ("system", flags()),
        ("_exist", flags()),
    ];
    prop_oneof![
        stated(user).prop_map(|state| ("Stead/User", state)),
        stated(group).prop_map(|state| ("Stead/Group", state))
    ]
}

fn config() -> ProptestConfig {
    let cases = u32::try_from(stead_testkit::times("STEAD_STATES", 300)).unwrap();
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// A set fails as the what-if says, or does what it says and reaches the desired state; a second one changes nothing.
    #[test]
    fn accounts_converge(system in system(), (type_name, desired) in desired()) {
        let world = World::build(&system.tree());
        let (provider, cx, desired) = (provider(type_name), world.context_for(type_name), Plain::new(desired));
        let untouched = world.imprint();
        let tested = provider.test(&cx, &desired);
        let predicted = provider.set(&cx, &desired, Execution::WhatIf);
        prop_assert!(world.imprint() == untouched, "a test or a what-if changed something");
        let done = provider.set(&cx, &desired, Execution::Actual);
        let (predicted, done) = match (predicted, done) {
            (Ok(predicted), Ok(done)) => (predicted, done),
            (Ok(predicted), Err(failed)) if predicted.presumed.is_some() => {
                prop_assert_eq!(predicted.presumed.unwrap().failure.message, failed.message);
                return Ok(());
            }
            (Err(predicted), Err(failed)) => {
                prop_assert_eq!(predicted.message, failed.message);
                let only_lock = world.tree().replace("file etc/.pwd.lock 0600 \"\"\n", "");
                prop_assert_eq!(only_lock, World::build(&system.tree()).tree(), "a failed set left something");
                return Ok(());
            }
            (predicted, done) => panic!("what-if: {:?}, set: {:?}", predicted.err(), done.err()),
        };
        prop_assert_eq!(&predicted.changed, &done.changed);
        prop_assert_eq!(predicted.after.map(|after| after.to_json()), done.after.map(|after| after.to_json()));
        prop_assert_eq!(predicted.effects, done.effects);
        prop_assert_eq!(tested.ok().unwrap().differing, done.changed);
        let settled = world.imprint();
        prop_assert_eq!(provider.test(&cx, &desired).ok().unwrap().in_desired_state, Some(true));
        let again = provider.set(&cx, &desired, Execution::Actual).unwrap();
        prop_assert!(again.changed.is_none_or(|changed| changed.is_empty()) && world.imprint() == settled);
    }

    /// Exported instances are in state, without the properties that have no value there.
    #[test]
    fn what_is_exported_is_in_state(system in system()) {
        let world = World::build(&system.tree());
        for type_name in ["Stead/User", "Stead/Group"] {
            let (provider, cx) = (provider(type_name), world.context_for(type_name));
            for found in provider.export(&cx, &Plain::default()).unwrap() {
                let tested = provider.test(&cx, &Plain::new(found.properties.clone()));
                prop_assert_eq!(tested.ok().unwrap().differing, Some(Vec::new()), "{:?}", found.properties);
            }
        }
    }
}

/// Where the process that will be killed works, and what it sets, in its environment.
const VICTIM: &str = "STEAD_TEST_VICTIM";
const STATE: &str = "STEAD_TEST_STATE";

/// The system calls that change something.
const MUTATING: [&str; 9] =
    ["write", "linkat", "renameat", "renameat2", "unlinkat", "fchmod", "fchown", "mkdirat", "symlinkat"];

/// Those by which a database takes its place: between two of them an account is half there.
const RENAMES: [&str; 2] = ["renameat", "renameat2"];

/// The changes that are cut off: of every kind, and of all databases.
const CHANGES: [(&str, &str); 6] = [
    ("Stead/User", r#"{"name": "dan", "groups": ["web"], "passwordHash": "$6$c$d"}"#),
    ("Stead/User", r#"{"name": "ann", "shell": "/bin/zsh", "locked": true, "groups": ["web"]}"#),
    ("Stead/User", r#"{"name": "bob", "_exist": false, "removeHome": true}"#),
    ("Stead/User", r#"{"name": "bob", "_exist": false}"#),
    ("Stead/Group", r#"{"name": "dev", "members": ["ann"]}"#),
    ("Stead/Group", r#"{"name": "web", "_exist": false}"#),
];

const BEFORE: &str = r#"file etc/passwd 0644 "root:x:0:0::/root:/bin/sh\nann:x:1000:100::/home/ann:/bin/sh\nbob:x:0:1001::/home/bob:/bin/sh\n"
file etc/shadow 0600 "root:*:1::::::\nann:$6$a$b:1::::::\nbob:!:1::::::\n"
file etc/group 0644 "root:x:0:\nbob:x:1001:\nweb:x:1002:bob\n"
file etc/gshadow 0600 "root:*::\nbob:!::\nweb:!::bob\n"
file etc/login.defs 0644 "USERGROUPS_ENAB yes\n"
file etc/.pwd.lock 0600
file bin/sh 0755
file bin/zsh 0755
file etc/skel/a/b 0600 "b"
link etc/skel/l -> a
file home/bob/f 0644 "f"
"#;

fn set(root: &std::path::Path, type_name: &str, state: &str) -> Result<(), String> {
    let cx = stead_host::provider::Context {
        system_root: SystemRoot::below(root),
        writes: stead_system::fs::Writes::default(),
        ..stead_host::provider::Context::new(root.to_owned())
    };
    let done = provider(type_name).set(&cx, &support::plain(state), Execution::Actual);
    done.map(|_| ()).map_err(|failure| failure.message)
}

/// Sets once: what the test starts and kills.
#[test]
fn process_that_is_killed() {
    let (Some(root), Ok(state)) = (std::env::var_os(VICTIM), std::env::var(STATE)) else { return };
    let (type_name, state) = state.split_once(' ').unwrap();
    set(std::path::Path::new(&root), type_name, state).unwrap();
}

/// Every database is as it was or as it is to be, whenever the process ends or the system fails; and the next set completes what
/// is missing.
#[test]
fn a_kill_at_any_change_leaves_whole_databases() {
    let test = "a_kill_at_any_change_leaves_whole_databases";
    if !stead_testkit::is_root(test) {
        return;
    }
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        return stead_testkit::skip(test, "there is no strace");
    }
    let databases = |world: &World| {
        ["passwd", "shadow", "group", "gshadow"]
            .map(|name| std::fs::read(world.root.path().join("etc").join(name)).unwrap())
    };
    let mut ends = 0;
    let whole = stead_testkit::times("STEAD_CUT_CHANGES", 1);
    for (at, (type_name, state)) in CHANGES.into_iter().enumerate() {
        let (before, reference) = (World::build(BEFORE), World::build(BEFORE));
        set(reference.root.path(), type_name, state).unwrap();
        let renames = || RENAMES.map(|call| [(call, "signal=KILL"), (call, "error=EIO")]).concat();
        let others = MUTATING.map(|call| (call, "signal=KILL")).into_iter().filter(|_| at < whole);
        for (call, how) in renames().into_iter().chain(others) {
            for when in 1.. {
                let world = World::build(BEFORE);
                let inject = format!("inject={call}:{how}:when={when}");
                let ended = std::process::Command::new("strace")
                    .args(["-f", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject])
                    .arg(std::env::current_exe().unwrap())
                    .args(["--exact", "process_that_is_killed", "--test-threads=1"])
                    .envs([(VICTIM, world.root.path().as_os_str()), (STATE, format!("{type_name} {state}").as_ref())])
                    .output()
                    .unwrap();
                let found = databases(&world);
                for (at, found) in found.iter().enumerate() {
                    let whole = [&databases(&before)[at], &databases(&reference)[at]];
                    assert!(whole.contains(&found), "{state}: {inject}: {}", String::from_utf8_lossy(found));
                }
                set(world.root.path(), type_name, state).unwrap();
                assert_eq!(world.tree(), reference.tree(), "{state}: {inject}");
                if ended.status.success() {
                    break;
                }
                ends += 1;
            }
        }
    }
    println!("broken off {ends} times, no database torn");
    assert!(ends > 20, "broken off {ends} times");
}

/// A name that the running system has as well means what the system below the root has it for.
#[test]
fn owners_are_those_of_the_system_that_is_managed() {
    if !stead_testkit::is_root("owners_are_those_of_the_system_that_is_managed") {
        return;
    }
    let databases =
        "file etc/passwd 0644 \"daemon:x:4711:1::/:/bin/sh\\n\"\nfile etc/group 0644 \"daemon:x:4712:\\n\"\n";
    let world = World::build(&format!("{databases}archive a.tar 0644 [[\"file\", \"x\", \"0644\", \"text\"]]\n"));
    let owner = json!({"owner": "daemon", "group": "daemon"});
    for (type_name, state) in [
        ("Stead/Template", json!({"path": "/f", "template": "a", "variables": {}})),
        ("Stead/Archive", json!({"path": "/d", "source": "/a.tar"})),
        ("Stead/File", json!({"path": "/g", "content": "a"})),
        ("Stead/Directory", json!({"path": "/h"})),
        ("Stead/Symlink", json!({"path": "/i", "target": "f"})),
    ] {
        let cx = Context { system_root: SystemRoot::below(world.root.path()), ..world.context() };
        let mut state = state;
        state.as_object_mut().unwrap().extend(owner.as_object().unwrap().clone());
        let (provider, input) = (provider(type_name), Plain::new(state.clone()));
        provider.set(&cx, &input, Execution::Actual).map_err(|failure| failure.message).unwrap();
        let path = world.root.path().join(state["path"].as_str().unwrap().trim_start_matches('/'));
        let path = if type_name == "Stead/Archive" { path.join("x") } else { path };
        let found = path.symlink_metadata().unwrap();
        assert_eq!((found.uid(), found.gid()), (4711, 4712), "{type_name}");
        let tested = provider.test(&cx, &input).map_err(|failure| failure.message).unwrap();
        assert_eq!(tested.in_desired_state, Some(true), "{type_name}");
    }
}
