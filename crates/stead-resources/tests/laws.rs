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
#[path = "laws/rows.rs"]
mod rows;
mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use proptest::prelude::*;
use rows::{desired, desired_entry, desired_part, desired_setting, desired_system, members, start, system};
use rustix::fs::IFlags;
use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Failure};
use stead_core::destruction::{Effects, Item, ItemKind};
use stead_host::provider::Plain;
use stead_testkit::is_root;
use support::{Node, Tree, World, plain, provider, walk};

/// Returns the entries below a directory of a tree, as effects name them.
fn below(tree: &Tree, top: &str) -> Vec<String> {
    let below = tree.iter().filter_map(|(path, node)| Some((Path::new(path).strip_prefix(top).ok()?, node)));
    let mut found: Vec<_> = below.filter(|(path, _)| !path.as_os_str().is_empty()).collect();
    found.sort_by_key(|(path, _)| *path);
    let end = |node: &Node| if node.kind() == 0o040_000 { "/" } else { "" };
    found.into_iter().map(|(path, node)| format!("{}{}", path.display(), end(node))).collect()
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
