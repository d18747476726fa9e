//! Laws of every start and every desired state, and of whole trees.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "laws/commands.rs"]
mod commands;
#[path = "laws/damage.rs"]
mod damage;
#[path = "laws/drawn.rs"]
mod drawn;
#[path = "laws/read_only.rs"]
mod read_only;
mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use proptest::prelude::*;
use rustix::fs::IFlags;
use serde_json::{Map, Value as Json, json};
use stead_core::call::{Execution, Failure};
use stead_core::destruction::{Effects, Item, ItemKind};
use stead_host::provider::Plain;
use stead_testkit::is_root;
use support::{MACHINE, Node, Tree, USERS, World, plain, provider, walk};

/// The content that a file may have, as JSON text.
const CONTENTS: &[&str] = &[
    "",
    "a\\n",
    "b\\na\\n",
    "a\\r\\nb",
    "\\u00ff",
    "# BEGIN n\\na\\n# END n\\n",
    "b\\n# BEGIN n\\n# END n",
    "[s]\\nk = 1\\n",
    "k = \\\"x\\\" # why\\n[s]\\na = [1]\\n[s.k]\\nb = 1\\n",
    "{\\\"s\\\": {\\\"k\\\": 1, \\\"a\\\": [1]}}",
    "{\\n  \\\"s\\\": [] // c\\n}\\n",
    "s:\\n  k: 1 # why\\n  a:\\n  - 1\\n",
    "s: {k: x, a: [1]}\\nt: &t [1]\\n",
    "10.0.0.1 h # c\\n::1 h a\\nu soft nofile 1\\nu - nofile 2 # c\\n",
    "vm.k = 1\\t2\\nvm/k=1\\n",
    "s:\\n- k: 1\\n  a: |\\n    x\\n",
];

/// Draws what is at the path in question, besides what is around it.
fn start() -> impl Strategy<Value = String> {
    let around = "dir d 0755\nfile d/x 0644 \"x\"\nlink d/l -> x\ndir src 0700\nfile src/a 0600 \"a\"\nlink src/k -> a\ndir src/b 0755\ndir home/u 0755\narchive a.tar 0644 [[\"dir\",\"b\",\"0750\"],[\"file\",\"a\",\"0644\",\"A\"],[\"link\",\"k\",\"b/c\"],[\"file\",\"b/c\",\"0600\",\"c\"]]\narchive a.zip 0644 [[\"file\",\"t/a\",\"0755\",\"x\"],[\"link\",\"t/k\",\"a\"],[\"dir\",\"t/e\",\"0700\"]]\nfile etc/cron.d/j 0644 \"# c\\nA=c\\n1 2 * * * root x\\n\"\n";
    let mode = prop_oneof![Just("0600"), Just("0644"), Just("0755"), Just("4711")];
    let content = prop::sample::select(CONTENTS);
    let filled = "dir p 0755\nfile p/a 0644 \"A\"\ndir p/extra 0755\nlink p/k -> elsewhere\n";
    prop_oneof![
        1 => Just(String::new()),
        6 => (mode, content).prop_map(|(mode, content)| format!("file p {mode} \"{content}\"\n")),
        1 => Just("dir p 0700\n".to_owned()),
        2 => Just(filled.to_owned()),
        1 => Just("link p -> d/x\n".to_owned()),
        1 => Just("link p -> nowhere\n".to_owned()),
        1 => Just("fifo p 0600\n".to_owned()),
    ]
    .prop_map(move |at| around.to_owned() + USERS + MACHINE + &at)
}

/// The properties of an instance at the path `p`, or below it where directories above are created: each of a table or not, with one
/// of its values.
fn properties(table: Vec<(&'static str, Vec<Json>)>) -> impl Strategy<Value = Json> {
    members(table).prop_map(|mut members| {
        let is_below = members.get("parents") == Some(&Json::Bool(true));
        members.insert("path".to_owned(), json!(if is_below { "p/q/r" } else { "p" }));
        Json::Object(members)
    })
}

fn members(table: Vec<(&'static str, Vec<Json>)>) -> impl Strategy<Value = Map<String, Json>> {
    let each: Vec<_> = table
        .into_iter()
        .map(|(name, values)| (Just(name), proptest::option::of(proptest::sample::select(values))))
        .collect();
    each.prop_map(|chosen| chosen.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

fn desired() -> impl Strategy<Value = (&'static str, Json)> {
    let flags = || vec![json!(true), json!(false)];
    let modes = || vec![json!("0644"), json!("755"), json!("2711")];
    let file = vec![
        ("content", vec![json!("a\n"), json!("other")]),
        ("contentBase64", vec![json!("/w==")]),
        ("source", vec![json!("d/x"), json!("d/l"), json!("src")]),
        ("mode", modes()),
        ("owner", vec![json!("0")]),
        ("backup", vec![json!(true), json!(".old")]),
        ("parents", flags()),
        ("_exist", flags()),
    ];
    let directory = vec![
        ("entries", vec![json!(["a"]), json!([])]),
        ("source", vec![json!("src"), json!("d")]),
        ("mode", modes()),
        ("_purge", flags()),
        ("recurse", flags()),
        ("parents", flags()),
        ("_exist", flags()),
    ];
    let symlink = vec![("target", vec![json!("d/x"), json!("y")]), ("force", flags()), ("_exist", flags())];
    let line = vec![
        ("line", vec![json!("a"), json!("new")]),
        ("match", vec![json!("^a"), json!("b$")]),
        ("after", vec![json!("^b"), json!("BOF")]),
        ("before", vec![json!("a"), json!("EOF")]),
        ("create", flags()),
        ("_exist", flags()),
    ];
    prop_oneof![
        1 => properties(file).prop_map(|state| ("Stead/File", state)),
        1 => properties(directory).prop_map(|state| ("Stead/Directory", state)),
        1 => properties(symlink).prop_map(|state| ("Stead/Symlink", state)),
        1 => properties(line).prop_map(|state| ("Stead/Line", state)),
        5 => desired_content(),
    ]
}

/// Resources whose content comes from elsewhere.
fn desired_content() -> impl Strategy<Value = (&'static str, Json)> {
    let flags = || vec![json!(true), json!(false)];
    let modes = || vec![json!("0644"), json!("755"), json!("2711")];
    let template = vec![
        ("template", vec![json!("a\n"), json!("{{ v }}\n"), json!("{{ w }}")]),
        ("source", vec![json!("d/x"), json!("d/l"), json!("nothing")]),
        ("variables", vec![json!({"v": "a"})]),
        ("mode", modes()),
        ("backup", vec![json!(true)]),
        ("_exist", flags()),
    ];
    let archive = vec![
        ("source", vec![json!("a.tar"), json!("a.tar"), json!("a.zip"), json!("d/x"), json!("nothing")]),
        ("stripComponents", vec![json!(1)]),
        ("exclude", vec![json!(["b"]), json!(["**/c"])]),
        ("creates", vec![json!("a"), json!("t/a")]),
        ("owner", vec![json!("0")]),
        ("_exist", flags()),
    ];
    let checksum = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let download = vec![
        ("url", vec![json!("file:///d/x"), json!("file:///nothing"), json!("file:///src")]),
        ("checksum", vec![json!(checksum), json!(checksum.replace("sha256:2d", "sha256:00"))]),
        ("pin", vec![json!("firstUse")]),
        ("mode", modes()),
        ("_exist", flags()),
    ];
    prop_oneof![
        1 => properties(template).prop_map(|state| ("Stead/Template", state)),
        2 => properties(archive).prop_map(|state| ("Stead/Archive", state)),
        2 => properties(download).prop_map(|state| ("Stead/Download", state)),
    ]
}

/// Returns the entries below a directory of a tree, as effects name them.
fn below(tree: &Tree, top: &str) -> Vec<String> {
    let below = tree.iter().filter_map(|(path, node)| Some((Path::new(path).strip_prefix(top).ok()?, node)));
    let mut found: Vec<_> = below.filter(|(path, _)| !path.as_os_str().is_empty()).collect();
    found.sort_by_key(|(path, _)| *path);
    let end = |node: &Node| if node.kind() == 0o040_000 { "/" } else { "" };
    found.into_iter().map(|(path, node)| format!("{}{}", path.display(), end(node))).collect()
}

/// Resources that manage a part of a file of any kind.
fn desired_part() -> impl Strategy<Value = (&'static str, Json)> {
    let flags = || vec![json!(true), json!(false)];
    let block = vec![
        ("name", vec![json!("n")]),
        ("content", vec![json!("a"), json!(""), json!("x\ny\n")]),
        ("after", vec![json!("^b"), json!("BOF")]),
        ("create", flags()),
        ("_exist", flags()),
    ];
    let ini = vec![
        ("section", vec![json!("s")]),
        ("key", vec![json!("k"), json!("a")]),
        ("value", vec![json!("1"), json!("x y"), json!("")]),
        ("create", flags()),
        ("_exist", flags()),
    ];
    let key = || {
        let values = [json!(1), json!("x"), json!(null), json!({"b": [1, {"c": "y: z"}]}), json!([])];
        vec![
            ("pointer", ["/s", "/s/k", "/s/k/b", "/s/a/0", "/s/a/1", "/s/0", "/s/0/k", "/k"].map(Json::from).to_vec()),
            ("value", values.to_vec()),
            ("create", flags()),
            ("_exist", flags()),
        ]
    };
    prop_oneof![
        properties(block).prop_map(|state| ("Stead/Block", state)),
        properties(ini).prop_map(|state| ("Stead/Ini", state)),
        properties(key()).prop_map(|state| ("Stead/Json", state)),
        properties(key()).prop_map(|state| ("Stead/Toml", state)),
        properties(key()).prop_map(|state| ("Stead/Yaml", state)),
    ]
}

/// Resources that manage an entry in a file of the system.
fn desired_entry() -> impl Strategy<Value = (&'static str, Json)> {
    let flags = || vec![json!(true), json!(false)];
    let host = vec![
        ("name", vec![json!("h"), json!("g")]),
        ("ip", vec![json!("10.0.0.1"), json!("::2")]),
        ("aliases", vec![json!(["a", "b"]), json!([])]),
        ("comment", vec![json!("c"), json!("")]),
        ("_exist", flags()),
    ];
    let limits = vec![
        ("domain", vec![json!("u")]),
        ("type", vec![json!("soft"), json!("-")]),
        ("item", vec![json!("nofile")]),
        ("value", vec![json!("2"), json!("unlimited")]),
        ("_exist", flags()),
    ];
    let sysctl = vec![
        ("name", vec![json!("vm.k"), json!("k.a")]),
        ("value", vec![json!("1"), json!("1 2")]),
        ("live", flags()),
        ("_exist", flags()),
    ];
    let cron = vec![
        ("name", vec![json!("j"), json!("k")]),
        ("schedule", vec![json!("@daily"), json!("1 2 * * *")]),
        ("user", vec![json!("root")]),
        ("command", vec![json!("x y")]),
        ("environment", vec![json!({}), json!({"A": "b"})]),
        ("_exist", flags()),
    ];
    let hostname = vec![("name", vec![json!("a"), json!("web1")])];
    let ssh_key = vec![
        ("user", vec![json!("u"), json!("nobody-here")]),
        ("key", vec![json!("AAAA")]),
        ("type", vec![json!("ssh-rsa")]),
        ("options", vec![json!("no-pty"), json!("")]),
        ("comment", vec![json!("c"), json!("")]),
        ("exclusive", flags()),
        ("_exist", flags()),
    ];
    prop_oneof![
        properties(host).prop_map(|state| ("Stead/Host", state)),
        properties(limits).prop_map(|state| ("Stead/Limits", state)),
        properties(sysctl).prop_map(|state| ("Stead/Sysctl", state)),
        members(cron).prop_map(|state| ("Stead/Cron", Json::Object(state))),
        members(hostname).prop_map(|state| ("Stead/Hostname", Json::Object(state))),
        members(ssh_key).prop_map(|state| ("Stead/SshKey", Json::Object(state))),
    ]
}

/// Draws files of the system that have one owner, or an entry on each line.
fn system() -> impl Strategy<Value = String> {
    let fstab = prop::sample::select(vec![
        "",
        "file etc/fstab 0644 \"# c\\n\\nLABEL=a  /m  ext4 ro,noatime\\n\"\n",
        "file etc/fstab 0600 \"/dev/b / ext4 defaults 0 1\\nUUID=1\\tnone\\tswap\\tsw\\t0\\t0\\n/d /a\\\\040b none bind 0 0 # c\"\n",
        "file etc/fstab 0644 \"x /m tmpfs\\ny /m xfs size=1m 1 2\\nbroken\\n\"\n",
        "link etc/fstab -> ../d/x\n",
    ]);
    let sudoers = prop::sample::select(vec![
        "dir etc/sudoers.d 0750\n",
        "file etc/sudoers.d/s 0440 \"u ALL=ALL\\n\"\n",
        "file etc/sudoers.d/s 0644 \"u ALL=NOPASSWD: /bin/x\\n\"\n",
        "link etc/sudoers.d/s -> ../passwd\n",
        "",
    ]);
    let units = prop::sample::subsequence(
        vec![
            "file etc/systemd/system/t.timer 0644 \"[Timer]\\nOnCalendar=daily\\n[Install]\\nWantedBy=timers.target\\n\"\n",
            "file etc/systemd/system/t.service 0600 \"[Service]\\nNice=1\\nExecStart=/bin/a\\n\"\n",
            "link etc/systemd/system/timers.target.wants/t.timer -> /etc/systemd/system/t.timer\n",
            "file usr/lib/systemd/system/p.timer 0644 \"[Timer]\\nOnBootSec=1\\n\"\n",
            "link etc/systemd/system/q.timer -> /dev/null\n",
        ],
        0..=5,
    );
    (fstab, sudoers, units).prop_map(|(fstab, sudoers, units)| {
        ["dir etc 0755\nfile d/x 0644 \"x\"\n", fstab, sudoers, &units.concat()].concat()
    })
}

type Table = Vec<(&'static str, Vec<Json>)>;

/// Properties of which some are always stated.
fn with(always: Table, others: Table) -> impl Strategy<Value = Json> {
    let always: Vec<_> =
        always.into_iter().map(|(name, values)| (Just(name.to_owned()), prop::sample::select(values))).collect();
    (always, members(others)).prop_map(|(always, mut members)| {
        members.extend(always);
        Json::Object(members)
    })
}

fn mount() -> impl Strategy<Value = Json> {
    let flags = || vec![json!(true), json!(false)];
    let mount = with(
        vec![
            ("path", vec![json!("/m"), json!("/a b"), json!("/new"), json!("/")]),
            ("device", vec![json!("x"), json!("/d"), json!("LABEL=a")]),
            ("fstype", vec![json!("ext4"), json!("tmpfs"), json!("none")]),
        ],
        vec![
            ("options", vec![json!("noatime,ro"), json!("defaults"), json!("size=1m"), json!("bind")]),
            ("dump", vec![json!(1)]),
            ("pass", vec![json!(2), json!(0)]),
            ("state", vec![json!("mounted"), json!("unmounted")]),
            ("_exist", flags()),
        ],
    );
    let device = ("device", vec![json!("UUID=1"), json!("/s")]);
    let swap = with(
        vec![("path", vec![json!("none")]), ("fstype", vec![json!("swap")]), device],
        vec![("options", vec![json!("sw"), json!("pri=1")]), ("_exist", flags())],
    );
    prop_oneof![2 => mount, 1 => swap]
}

fn sudoers() -> impl Strategy<Value = Json> {
    let rules = |command: &str| json!([{"users": ["u"], "commands": [command]}]);
    let stated = |property: &'static str, values: Vec<Json>| {
        let always = vec![("name", vec![json!("s"), json!("t")]), ("validate", vec![json!(false)]), (property, values)];
        with(always, vec![("_exist", vec![json!(true), json!(false)])])
    };
    let content = vec![json!("u ALL=ALL\n"), json!("Defaults insults\n")];
    prop_oneof![stated("rules", vec![rules("ALL"), rules("/bin/x")]), stated("content", content)]
}

fn timer() -> impl Strategy<Value = Json> {
    let flags = || vec![json!(true), json!(false)];
    with(
        vec![("name", vec![json!("t"), json!("t.timer"), json!("p"), json!("q"), json!("n")])],
        vec![
            ("onCalendar", vec![json!("daily"), json!(["daily"]), json!(["a", "b"])]),
            ("onBootSec", vec![json!("1"), json!("1h 5min")]),
            ("command", vec![json!("/bin/a"), json!("/bin/b c")]),
            ("unit", vec![json!("u"), json!("t.service")]),
            ("persistent", flags()),
            ("user", vec![json!("u")]),
            ("description", vec![json!("D")]),
            ("enabled", flags()),
            ("state", vec![json!("running"), json!("stopped")]),
            ("_exist", flags()),
        ],
    )
}

/// Resources that manage such files.
fn desired_system() -> impl Strategy<Value = (&'static str, Json)> {
    prop_oneof![
        3 => mount().prop_map(|state| ("Stead/Mount", state)),
        2 => sudoers().prop_map(|state| ("Stead/Sudoers", state)),
        4 => timer().prop_map(|state| ("Stead/Timer", state)),
    ]
}

/// Resources that manage several files of the system, or one that is shared by many.
fn desired_setting() -> impl Strategy<Value = (&'static str, Json)> {
    let flags = || vec![json!(true), json!(false)];
    let crontab = vec![
        ("name", vec![json!("j"), json!("a b")]),
        ("table", vec![json!("user")]),
        ("user", vec![json!("u"), json!("nobody-here")]),
        ("schedule", vec![json!("@reboot"), json!("1 2 * * *")]),
        ("command", vec![json!("x y")]),
        ("environment", vec![json!({}), json!({"A": "b"})]),
        ("_exist", flags()),
    ];
    let timezone = vec![("name", ["UTC", "Europe/Berlin", "Etc/Old", "No/Where"].map(Json::from).to_vec())];
    let locale = vec![
        ("variables", vec![json!({"LANG": "de_DE.UTF-8", "LC_TIME": ""}), json!({})]),
        ("generated", vec![json!(["de_DE.utf8"]), json!(["C.UTF-8", "fr_FR.UTF-8"]), json!(["xx"])]),
    ];
    let module = vec![
        ("name", vec![json!("br_netfilter"), json!("packaged")]),
        ("boot", flags()),
        ("options", vec![json!("a=1 b"), json!("")]),
        ("blacklisted", flags()),
        ("loaded", flags()),
    ];
    prop_oneof![
        members(crontab).prop_map(|state| ("Stead/Cron", Json::Object(state))),
        members(timezone).prop_map(|state| ("Stead/Timezone", Json::Object(state))),
        members(locale).prop_map(|state| ("Stead/Locale", Json::Object(state))),
        members(module).prop_map(|state| ("Stead/KernelModule", Json::Object(state))),
    ]
}

/// Checks that effects name exactly what is gone from a tree, and what is new in it besides the instance at `own`.
fn check_effects(before: &Tree, after: &Tree, effects: &Effects, own: &str) -> Result<(), String> {
    let is_above = |above: &str, path: &str| Path::new(path).starts_with(above);
    let below_root = |item: &Item| Item { path: item.path.trim_start_matches('/').to_owned(), kind: item.kind.clone() };
    let whole = |item: &Item| !matches!(item.kind, ItemKind::Content { .. } | ItemKind::Line { .. });
    let destroyed: Vec<Item> = effects.destroys.items().iter().map(below_root).filter(whole).collect();
    let created: Vec<Item> = effects.creates.items().iter().map(below_root).filter(whole).collect();
    let remains = |path: &str, node: &Node| after.get(OsStr::new(path)).is_some_and(|now| now.kind() == node.kind());
    let is_kept = |path: &str, node: &Node| {
        let mut others = after.iter().filter(|(other, _)| other.to_str().unwrap().starts_with(&format!("{path}.")));
        others.any(|(_, other)| other.copied() == node.copied())
    };
    for (path, node) in before.iter().map(|(path, node)| (path.to_str().unwrap(), node)) {
        if !remains(path, node) && !is_kept(path, node) && !destroyed.iter().any(|item| is_above(&item.path, path)) {
            return Err(format!("'{path}' is gone, and nobody said so"));
        }
    }
    for item in &destroyed {
        let was = before.get(OsStr::new(&item.path)).ok_or(format!("'{item}' was never there"))?;
        let same = after.get(OsStr::new(&item.path)).is_some_and(|now| now == was);
        let below = below(before, &item.path);
        let entries = item.kind.entries();
        if same || entries.names() != below || entries.total() != below.len() as u64 || entries.is_incomplete() {
            return Err(format!("'{item}', {entries:?}, is not what was destroyed: {below:?}, still there: {same}"));
        }
    }
    for path in after.keys().filter(|path| !before.contains_key(*path)).map(|path| path.to_str().unwrap()) {
        let kept = path.starts_with(&format!("{own}.")) || path == own;
        if !kept && !created.iter().any(|item| is_above(path, &item.path)) {
            return Err(format!("'{path}' is new, and nobody said so"));
        }
    }
    match created.iter().find(|item| !after.contains_key(OsStr::new(&item.path))) {
        Some(item) => Err(format!("'{item}' was not created")),
        None => Ok(()),
    }
}

/// How many starts and desired states are tried.
fn states(usual: usize) -> ProptestConfig {
    let cases = u32::try_from(stead_testkit::times("STEAD_STATES", usual)).unwrap_or(u32::MAX);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// The answer of a method that must not fail.
fn answered<T>(answer: Result<T, Failure>) -> Result<T, TestCaseError> {
    answer.map_err(|failure| TestCaseError::fail(failure.message))
}

/// Either a typed failure, or the desired state: as predicted, once and for all, and without leftovers.
fn converges(given: &str, type_name: &str, desired: Json) -> Result<(), TestCaseError> {
    let world = World::build_in_memory(given);
    let (provider, cx, desired) = (provider(type_name), world.context_for(type_name), Plain::new(desired));
    let before = world.imprint();
    let tested = provider.test(&cx, &desired);
    let predicted = provider.set(&cx, &desired, Execution::WhatIf);
    prop_assert_eq!(&world.imprint(), &before, "a test or a what-if changed something");
    let set = provider.set(&cx, &desired, Execution::Actual);
    let failure_predicted = predicted.as_ref().map_or(true, |reply| reply.presumed.is_some());
    prop_assert!(set.is_ok() || failure_predicted, "the set failed, and the what-if did not say so");
    if let Ok(set) = set {
        prop_assert!(set.effects.destroys.more() == 0 && set.effects.creates.more() == 0);
        let own = desired.expose().get("path").and_then(|path| path.as_str()).filter(|path| path.starts_with("p/"));
        let reported = check_effects(&before, &world.imprint(), &set.effects, own.unwrap_or("p"));
        prop_assert!(reported.is_ok(), "{}", reported.unwrap_err());
        let predicted = answered(predicted)?;
        prop_assert_eq!(&predicted.changed, &set.changed);
        prop_assert_eq!(&predicted.effects, &set.effects);
        prop_assert_eq!(set.effects.effect.is_some(), set.changed.as_ref().is_some_and(|names| !names.is_empty()));
        let after = set.after.unwrap();
        prop_assert!(predicted.after.unwrap().expose() == after.expose(), "another state than predicted");
        let tested = answered(tested)?;
        prop_assert_eq!(tested.differing, set.changed);
        let destroys = set.effects.destroys.items().iter().any(|item| item.kind.content().is_none());
        prop_assert!(!destroys || tested.predicted.is_some(), "the test does not say what is destroyed");
        if let Some(prediction) = tested.predicted {
            prop_assert_eq!(&prediction.effects, &set.effects);
            prop_assert!(prediction.after.expose() == after.expose(), "another state than the test said");
        }
        let after = answered(provider.test(&cx, &desired))?;
        prop_assert_eq!(after.in_desired_state, Some(true));
        let settled = world.imprint();
        prop_assert!(provider.set(&cx, &desired, Execution::Actual).is_ok());
        prop_assert_eq!(world.imprint(), settled, "a second set changed something");
    }
    prop_assert!(!world.tree().contains(".stead-"), "left behind:\n{}", world.tree());
    Ok(())
}

proptest! {
    #![proptest_config(states(1600))]

    #[test]
    fn every_state_converges(given in start(), (type_name, desired) in desired()) {
        converges(&given, type_name, desired)?;
    }

    #[test]
    fn every_setting_converges(given in start(), (type_name, desired) in desired_setting()) {
        converges(&given, type_name, desired)?;
    }
}

proptest! {
    #![proptest_config(states(1200))]

    #[test]
    fn every_part_converges(given in start(), (type_name, desired) in desired_part()) {
        converges(&given, type_name, desired)?;
    }

    #[test]
    fn every_entry_converges(given in start(), (type_name, desired) in desired_entry()) {
        converges(&given, type_name, desired)?;
    }
}

proptest! {
    #![proptest_config(states(1000))]

    #[test]
    fn every_file_of_the_system_converges(given in system(), (type_name, desired) in desired_system()) {
        converges(&given, type_name, desired)?;
    }
}

/// The value of the kernel is compared where the running system is managed; one that it refuses is predicted to fail,
/// and then the file stays as it is.
#[test]
fn a_value_of_the_running_kernel_is_compared() {
    let world = World::build("file sysctl 0644 \"\"\n");
    let (provider, cx) = (provider("Stead/Sysctl"), world.context());
    let state = |value: &str| Plain::new(json!({"path": "sysctl", "name": "kernel.ostype", "value": value}));

    provider.set(&cx, &state("Linux"), Execution::Actual).map_err(|failure| failure.message).unwrap();
    assert_eq!(world.tree(), "file sysctl 0644 \"kernel.ostype = Linux\\n\"\n");

    let tested = provider.test(&cx, &state("Other")).ok().unwrap();
    assert_eq!(tested.differing, Some(vec!["value".to_owned()]));
    assert_eq!(tested.actual.unwrap().expose().get("value").unwrap().as_str(), Some("Linux"));
    assert!(provider.set(&cx, &state("Other"), Execution::WhatIf).ok().unwrap().presumed.is_some());
    assert!(provider.set(&cx, &state("Other"), Execution::Actual).is_err());
    assert_eq!(world.tree(), "file sysctl 0644 \"kernel.ostype = Linux\\n\"\n");
}

/// Copies a tree by exporting it and setting every instance below an empty root.
fn copy_by_export(tree: &Path) -> World {
    let world = World::build("");
    let cx = world.context();
    let filter = Plain::new(json!({ "path": tree, "relativeTo": tree }));
    for instance in provider("Stead/Directory").export(&cx, &filter).map_err(|failure| failure.message).unwrap() {
        let type_name = instance.type_name.as_ref().map_or("Stead/Directory", stead_core::id::TypeName::as_str);
        let desired = Plain::new(instance.properties.to_redacted_json());
        let set = provider(type_name).set(&cx, &desired, Execution::Actual);
        set.map_err(|failure| format!("{:?}: {}", instance.name, failure.message)).unwrap();
    }
    world
}

fn assert_same_tree(one: &Path, other: &Path) {
    let (one, other) = (walk(one), walk(other));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, node) in &one {
        assert_eq!(node.copied(), other[name].copied(), "{}", name.display());
    }
}

#[test]
fn an_exported_tree_can_be_applied_elsewhere() {
    let original = World::build(
        "dir a 0750\nfile a/key 0400 \"k\"\nfile a/blob 2755 \"\\u0000\\u00ff\"\ndir a/b 1777\nlink a/b/up -> ../key\nlink dangling -> /nowhere\nfile empty 0000 \"\"\n",
    );
    assert_same_tree(original.root.path(), copy_by_export(original.root.path()).root.path());
}

#[test]
fn the_configuration_of_this_machine_can_be_applied_elsewhere() {
    if !is_root("the_configuration_of_this_machine_can_be_applied_elsewhere") {
        return;
    }
    // A copy first: others may be working on the original, and it may hold what cannot be in a document.
    let stable = World::build("");
    let cx = stable.context();
    let desired = plain(r#"{"path": "etc", "source": "/etc", "mode": "0755"}"#);
    provider("Stead/Directory").set(&cx, &desired, Execution::Actual).map_err(|failure| failure.message).unwrap();
    let etc = stable.root.path().join("etc");
    assert_same_tree(&etc, copy_by_export(&etc).root.path());
}

#[test]
fn owners_are_set_and_kept() {
    if !is_root("owners_are_set_and_kept") {
        return;
    }
    let world = World::build("file f 4755 \"x\"\nlink l -> f\ndir d 0755\n");
    let (cx, at) = (world.context(), |name: &str| world.root.path().join(name));
    let set = |type_name: &str, desired: &str| {
        provider(type_name).set(&cx, &plain(desired), Execution::Actual).map_err(|failure| failure.message).unwrap();
    };
    set("Stead/File", r#"{"path": "f", "owner": "4711", "group": "4712", "mode": "4755"}"#);
    assert_eq!(fs::metadata(at("f")).unwrap().mode() & 0o7777, 0o4755, "a change of the owner takes set-user-id away");
    set("Stead/File", r#"{"path": "f", "content": "new"}"#);
    let kept = fs::metadata(at("f")).unwrap();
    assert_eq!((kept.uid(), kept.gid(), kept.mode() & 0o7777), (4711, 4712, 0o4755));
    set("Stead/Line", r#"{"path": "f", "line": "a line"}"#);
    let kept = fs::metadata(at("f")).unwrap();
    assert_eq!((kept.uid(), kept.gid(), kept.mode() & 0o7777), (4711, 4712, 0o4755));
    set("Stead/Symlink", r#"{"path": "l", "target": "f", "owner": "4711"}"#);
    set("Stead/Symlink", r#"{"path": "l", "target": "d"}"#);
    assert_eq!(fs::symlink_metadata(at("l")).unwrap().uid(), 4711);
    set("Stead/Directory", r#"{"path": "d", "group": "4712"}"#);
    assert_eq!((fs::metadata(at("d")).unwrap().uid(), fs::metadata(at("d")).unwrap().gid()), (0, 4712));
}

#[test]
fn what_belongs_to_others_is_not_followed() {
    if !is_root("what_belongs_to_others_is_not_followed") {
        return;
    }
    let world = World::build("dir home 0755\ndir etc 0755\nlink home/etc -> ../etc\nfile home/f 0600 \"x\"\n");
    chown(world.root.path().join("home"), Some(4711), Some(4711)).unwrap();
    let set = |type_name: &str, desired: &str| {
        let set = provider(type_name).set(&world.context(), &plain(desired), Execution::Actual);
        set.map(|_| ()).map_err(|failure| failure.message)
    };
    let refused = set("Stead/File", r#"{"path": "home/etc/passwd", "content": "x"}"#).unwrap_err();
    assert!(refused.contains("its directory belongs to another user"), "{refused}");
    // The owner of the directory could have made it another name of a file of root.
    let refused = set("Stead/File", r#"{"path": "home/f", "owner": "4711"}"#).unwrap_err();
    assert!(refused.contains("another name of somebody else's file"), "{refused}");
    set("Stead/File", r#"{"path": "home/f", "owner": "4711", "content": "x"}"#).unwrap();
}

#[test]
fn what_a_flag_protects_is_predicted_to_stay() {
    const TEST: &str = "what_a_flag_protects_is_predicted_to_stay";
    if !is_root(TEST) {
        return;
    }
    let world = World::build("file f 0644 \"x\"\ndir d 0755\n");
    let protect = |flags: IFlags| {
        let all = ["f", "d"].map(|name| fs::File::open(world.root.path().join(name)).unwrap());
        all.iter().try_for_each(|file| rustix::fs::ioctl_setflags(file, flags))
    };
    if let Err(error) = protect(IFlags::IMMUTABLE) {
        return stead_testkit::skip(TEST, &format!("the file system has no flags: {error}"));
    }
    let before = world.imprint();
    let unpredicted = PROTECTED.iter().filter(|(type_name, desired)| {
        let (provider, cx, desired) = (provider(type_name), world.context(), plain(desired));
        let predicted = provider.set(&cx, &desired, Execution::WhatIf).map_or(true, |reply| reply.presumed.is_some());
        let failed = provider.set(&cx, &desired, Execution::Actual).is_err();
        !(predicted && failed)
    });
    let unpredicted: Vec<_> = unpredicted.collect();
    let after = world.imprint();
    // Nobody could remove the files of the test.
    protect(IFlags::empty()).unwrap();
    assert!(unpredicted.is_empty(), "{unpredicted:?}");
    assert_eq!(before, after);
}

/// The changes that are impossible with the immutable file `f` and the immutable directory `d`.
const PROTECTED: [(&str, &str); 12] = [
    ("Stead/File", r#"{"path": "f", "content": "new"}"#),
    ("Stead/File", r#"{"path": "f", "mode": "0600"}"#),
    ("Stead/File", r#"{"path": "f", "owner": "4711"}"#),
    ("Stead/File", r#"{"path": "f", "_exist": false}"#),
    ("Stead/File", r#"{"path": "d/new", "content": "new"}"#),
    ("Stead/Line", r#"{"path": "f", "line": "new"}"#),
    ("Stead/Symlink", r#"{"path": "f", "target": "new", "force": true}"#),
    ("Stead/Symlink", r#"{"path": "d/new", "target": "new"}"#),
    ("Stead/Directory", r#"{"path": "d", "mode": "0700"}"#),
    ("Stead/Directory", r#"{"path": "d", "group": "4711"}"#),
    ("Stead/Directory", r#"{"path": "d", "_exist": false}"#),
    ("Stead/Directory", r#"{"path": "d/new"}"#),
];

#[test]
fn a_deep_tree_is_removed() {
    let world = World::build("dir d 0755\n");
    let mut directory = fs::File::open(world.root.path().join("d")).unwrap();
    for _ in 0..3000 {
        rustix::fs::mkdirat(&directory, "x", rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        directory = rustix::fs::openat(&directory, "x", flags, rustix::fs::Mode::empty()).unwrap().into();
    }
    let desired = plain(r#"{"path": "d", "_exist": false, "recurse": true}"#);
    let set = provider("Stead/Directory").set(&world.context(), &desired, Execution::Actual);
    set.map_err(|failure| failure.message).unwrap();
    assert_eq!(world.tree(), "");
}

#[test]
fn lines_that_are_set_at_once_are_all_there() {
    let world = World::build("file f 0644 \"begin\\n\"\ndir d 0755\nlink d/up -> ..\n");
    let provider = provider("Stead/Line");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (provider, cx) = (&provider, world.context());
            scope.spawn(move || {
                for line in 0..50 {
                    // By two paths, which are the same file.
                    let path = if line % 2 == 0 { "f" } else { "d/up/f" };
                    let desired = Plain::new(json!({ "path": path, "line": format!("{thread} {line}") }));
                    provider.set(&cx, &desired, Execution::Actual).map_err(|failure| failure.message).unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_to_string(world.root.path().join("f")).unwrap().lines().count(), 201);
}

#[test]
fn a_line_that_changed_behind_the_back_is_seen() {
    let world = World::build("file f 0644 \"a\\n\"\n");
    let (provider, cx, path) = (provider("Stead/Line"), world.context(), world.root.path().join("f"));
    let desired = plain(r#"{"path": "f", "line": "a"}"#);
    for round in 0..200 {
        let there = round % 2 == 0;
        // The same size, in the same inode, and often within the same tick of the clock of the file system.
        fs::write(&path, if there { "a\n" } else { "b\n" }).unwrap();
        assert_eq!(provider.test(&cx, &desired).ok().unwrap().in_desired_state, Some(there), "round {round}");
    }
}

#[test]
fn drift_that_keeps_size_and_time_is_found() {
    let world = World::build("file f 0644 \"one\"\n");
    let path = world.root.path().join("f");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "two").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let desired = plain(r#"{"path": "f", "content": "one"}"#);
    let tested = provider("Stead/File").test(&world.context(), &desired).ok().unwrap();
    assert_eq!(tested.differing, Some(vec!["content".to_owned()]));
}

#[test]
fn nobody_else_can_read_content_before_it_has_its_mode() {
    let world = World::build("dir d 0755\n");
    let place = stead_system::fs::Place::find(
        &stead_system::fs::SystemPath::here(world.root.path().join("d/f")),
        &stead_system::fs::Writes::default(),
    )
    .unwrap()
    .unwrap();
    let replacement = stead_system::fs::Replacement::begin(&place, stead_system::fs::Former::Any).unwrap();
    replacement.write(b"secret").unwrap();
    let (tree, metadata) = (world.tree(), replacement.file().metadata().unwrap());
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&metadata) & 0o7777, 0o600);
    assert!(!tree.contains("d/f "), "{tree}");
    drop(replacement);
    assert_eq!(world.tree(), "dir d 0755\n");
}
