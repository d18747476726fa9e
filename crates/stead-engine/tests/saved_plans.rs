//! A saved plan never does what it did not show: random documents, and random changes of the machine between plan and apply.
//!
//! `STEAD_PLANS=10000` tries so many changes, `STEAD_FIRST_PLAN=487` begins with that one. A failure names the number of its
//! pair, which alone makes it again.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "support/pairs.rs"]
#[expect(dead_code, reason = "what a plan cannot know is of no interest here")]
mod pairs;
#[path = "../../stead-core/tests/support/random.rs"]
mod random;
#[path = "../../stead-resources/tests/support/mod.rs"]
#[expect(dead_code, reason = "trees are a part of it")]
mod support;

use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pairs::Pair;
use random::Numbers;
use serde_json::Value as Json;
use stead_core::digest::sha256;
use stead_core::event::Mode;
use stead_core::run::Run;
use stead_core::value::Object;
use stead_engine::{Host, HostOptions, Parts, Planned, Prepared, RunOptions, SavedPlan, Session, Summary, json};
use stead_testkit::times;
use support::World;

/// Changes something below a root: a file that is there or one that is not, its mode, or a name.
fn disturb(root: &Path, random: &mut Numbers) {
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path.clone());
            }
            paths.push(path);
        }
    }
    paths.sort();
    let path = if paths.is_empty() { root.join("new") } else { paths.swap_remove(random.below(paths.len())) };
    // Whatever cannot be done to that path is not done: then nothing was disturbed.
    let _ = match random.below(7) {
        0 => fs::write(&path, "disturbed\n"),
        1 => fs::write(path.with_file_name(["a", "b", "f", "new"][random.below(4)]), "disturbed\n"),
        2 => fs::remove_file(&path),
        3 => fs::remove_dir_all(&path),
        4 => fs::set_permissions(&path, fs::Permissions::from_mode([0o600, 0o755, 0o640][random.below(3)])),
        5 => fs::remove_file(&path).and_then(|()| symlink("elsewhere", &path)),
        _ => fs::create_dir(path.with_file_name(["a", "b", "d"][random.below(3)])),
    };
}

struct Stage {
    session: Session,
    prepared: Prepared,
}

impl Stage {
    fn new(host: &Host, root: &Path, document: &str) -> Self {
        let mut session = host.session(root).with(|options| options.system_root = Some(root.to_owned()));
        let prepared = session.prepare("main.json", document, Object::new());
        let prepared = prepared.map_err(|unusable| format!("{:?}", unusable.findings)).unwrap();
        Self { session, prepared }
    }

    fn run(&self, mode: Mode) -> Run {
        self.session.run(&self.prepared, RunOptions::new(mode, NonZeroUsize::MIN)).unwrap()
    }
}

/// The members of an instance that a plan promises.
const PROMISED: [&str; 5] = ["name", "type", "action", "changes", "effects"];

/// The instances as programs see them, in the order of the document.
fn shown(run: &Run) -> Vec<Json> {
    let mut report = json::report(run, &Summary::of(run), Duration::ZERO);
    let mut instances: Vec<Json> = serde_json::from_value(report["instances"].take()).unwrap();
    instances.sort_by_key(|instance| instance["name"].to_string());
    instances
}

#[test]
fn a_saved_plan_does_what_it_showed_or_nothing() {
    let host = Host::new(HostOptions::default());
    let (mut applied, mut refused, mut number) = (0_usize, 0_usize, times("STEAD_FIRST_PLAN", 0) as u64);
    let wanted = times("STEAD_PLANS", 200);
    while applied + refused < wanted {
        number += 1;
        let (pair, random) = (Pair::of(number), &mut Numbers::of(2, number));
        let world = World::build(&pair.start);
        let made = Stage::new(&host, world.root.path(), &pair.document);
        let plan = made.run(Mode::PLAN);
        let summary = Summary::of(&plan);
        if summary.has_failures(&plan) {
            continue;
        }
        let saved = SavedPlan::new(&made.session, &made.prepared, &plan, Parts::default());
        let saved = SavedPlan::read(&saved.to_text().unwrap()).unwrap();
        for _ in 0..random.below(9) {
            disturb(world.root.path(), random);
        }
        let later = Stage::new(&host, world.root.path(), &saved.document);
        let before = world.imprint();
        let again = later.run(Mode::PLAN);
        assert!(world.imprint() == before, "pair {number}: looking changed something");
        if !saved.deviations(&again).is_empty() {
            refused += 1;
            continue;
        }
        let done = later.run(Mode::APPLY);
        for (planned, done) in shown(&plan).iter().zip(&shown(&done)) {
            // What becomes of an instance that was shown as unknown was not promised, and less may be done: where an instance
            // fails of which nobody could know, others are skipped.
            let is_open = planned["status"] == "unknown" || done["action"].is_null();
            let [planned, done] = [planned, done].map(|instance| PROMISED.map(|name| &instance[name]));
            assert!(is_open || planned == done, "pair {number}: {planned:?}\n{done:?}\n{pair}");
        }
        applied += 1;
    }
    println!("{applied} plans were applied, {refused} refused");
    assert!(applied * 10 > wanted && refused * 10 > wanted, "{applied} were applied, {refused} refused");
}

type Change = fn(&Path) -> std::io::Result<()>;

/// A world in which a folder `d` with a file was planned for, then changed, then applied to, and the failures of that.
fn changed_after_the_plan(host: &Host, document: &str, change: Change) -> (World, Vec<String>) {
    let world = World::build("");
    let root = world.root.path();
    fs::create_dir(root.join("d")).unwrap();
    fs::write(root.join("d/one"), "").unwrap();
    let stage = Stage::new(host, root, document);
    let planned = Planned::removals(&stage.run(Mode::PLAN));
    change(root).unwrap();
    let execution = RunOptions { planned, ..RunOptions::new(Mode::APPLY, NonZeroUsize::MIN) };
    let run = stage.session.run(&stage.prepared, execution).unwrap();
    let failures = run.report().records().iter().filter_map(|record| Some(record.failure()?.message.clone()));
    let failures = failures.collect();
    (world, failures)
}

#[test]
fn nothing_is_removed_that_the_plan_has_not_shown() {
    const DOCUMENT: &str = r#"{"resources": [
        {"name": "d", "type": "Stead/Directory", "properties": {"path": "d", "_exist": false, "recurse": true}},
        {"name": "f", "type": "Stead/File", "properties": {"path": "f", "_exist": false}}
    ]}"#;
    let cases: [(Change, Option<&str>); 5] = [
        (|_| Ok(()), None),
        (|root| fs::remove_file(root.join("d/one")), None),
        (|root| fs::write(root.join("d/two"), ""), Some("'d' has 2 entries now, 1 was shown")),
        (
            |root| fs::rename(root.join("d/one"), root.join("d/two")),
            Some("it would remove d/two, which the plan has not shown"),
        ),
        (|root| fs::write(root.join("f"), ""), Some("which the plan has not shown")),
    ];
    let host = Host::new(HostOptions::default());
    for (change, why) in cases {
        let (world, failures) = changed_after_the_plan(&host, DOCUMENT, change);
        match why {
            None => assert!(failures.is_empty() && !world.root.path().join("d").exists(), "{failures:?}"),
            Some(why) => assert!(failures.len() == 1 && failures[0].contains(why), "{why}: {failures:?}"),
        }
    }
}

/// What makes room for itself may remove as well, and where it cannot be found out what would be removed, nothing is.
#[test]
fn what_makes_room_removes_what_was_shown_only() {
    let force = r#"{"path": "l", "target": "elsewhere", "force": true}"#;
    let purge = r#"{"path": "d", "_purge": true, "entries": []}"#;
    let force = format!(r#"{{"resources": [{{"name": "l", "type": "Stead/Symlink", "properties": {force}}}]}}"#);
    let purge = format!(r#"{{"resources": [{{"name": "d", "type": "Stead/Directory", "properties": {purge}}}]}}"#);
    let cases: [(&str, Change, Option<&str>); 5] = [
        (&purge, |_| Ok(()), None),
        (&purge, |root| fs::write(root.join("d/two"), ""), Some("which the plan has not shown")),
        (&force, |_| Ok(()), None),
        (&force, |root| fs::write(root.join("l"), "mine"), Some("which the plan has not shown")),
        (
            &force,
            |root| fs::create_dir(root.join("l")).and_then(|()| fs::write(root.join("l/one"), "")),
            Some("which the plan has not shown"),
        ),
    ];
    let host = Host::new(HostOptions::default());
    for (document, change, why) in cases {
        let (_, failures) = changed_after_the_plan(&host, document, change);
        match why {
            None => assert!(failures.is_empty(), "{document}: {failures:?}"),
            Some(why) => assert!(failures.len() == 1 && failures[0].contains(why), "{document}: {failures:?}"),
        }
    }
}

/// Whatever bit of the file is another one: it is not a plan, or it is refused.
#[test]
fn no_bit_of_a_plan_can_be_another() {
    let host = Host::new(HostOptions::default());
    let document =
        r#"{"resources": [{"name": "f", "type": "Stead/File", "properties": {"path": "f", "content": "a\nb\n"}}]}"#;
    let folder = tempfile::tempdir().unwrap();
    let made = Stage::new(&host, folder.path(), document);
    let text =
        SavedPlan::new(&made.session, &made.prepared, &made.run(Mode::PLAN), Parts::default()).to_text().unwrap();
    assert!(SavedPlan::read(&text).is_ok());
    for (at, bit) in (0..text.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1 << bit;
        let Ok(other) = String::from_utf8(bytes) else { continue };
        assert!(SavedPlan::read(&other).is_err(), "bit {bit} of byte {at}: {}", &other[at.saturating_sub(20)..]);
    }
}

/// Members of an instance, and of a plan, with something else in them.
fn forge(value: &mut Json, random: &mut Numbers) {
    match value {
        Json::Object(members) if !members.is_empty() => {
            let at = random.below(members.len());
            if random.below(8) == 0 {
                let name = members.keys().nth(at).unwrap().clone();
                members.remove(&name);
            } else {
                forge(members.values_mut().nth(at).unwrap(), random);
            }
        }
        Json::Array(items) if !items.is_empty() => {
            let at = random.below(items.len());
            match random.below(8) {
                0 => _ = items.remove(at),
                1 => items.push(items[at].clone()),
                _ => forge(&mut items[at], random),
            }
        }
        Json::String(text) => {
            let words = ["changed", "unchanged", "unknown", "failed", "create", "remove", "change", "read", "x\n+ y"];
            words[random.below(words.len())].clone_into(text);
        }
        Json::Bool(is) => *is = !*is,
        other => *other = [Json::Null, Json::from(7), Json::from("changed")][random.below(3)].clone(),
    }
}

/// A saved plan with another in its place, and the digest of that: whoever can write the file can do that.
fn with_digest(saved: &str, plan: &Json) -> String {
    let (form, plan) = (saved.split_once(',').unwrap().0, plan.to_string());
    format!("{form},\"sha256\":\"{}\",\"plan\":{plan}}}", sha256(&plan))
}

/// Whatever somebody writes into a plan, its digest included: it is refused when it is read or when it is compared, or it shows what
/// is done.
#[test]
fn no_member_of_a_plan_can_be_another() {
    let host = Host::new(HostOptions::default());
    let (mut unread, mut refused, mut applied) = (0_usize, 0_usize, 0_usize);
    for number in 1..=times("STEAD_FORGED_PLANS", 150) as u64 {
        let (pair, random) = (Pair::of(number), &mut Numbers::of(3, number));
        let world = World::build(&pair.start);
        let made = Stage::new(&host, world.root.path(), &pair.document);
        let plan = made.run(Mode::PLAN);
        if Summary::of(&plan).has_failures(&plan) {
            continue;
        }
        let saved = SavedPlan::new(&made.session, &made.prepared, &plan, Parts::default()).to_text().unwrap();
        let behind = saved.split_once("\"plan\":").unwrap().1.strip_suffix('}').unwrap();
        let mut members: Json = serde_json::from_str(behind).unwrap();
        let part = if random.below(2) == 0 { &mut members } else { &mut members["instances"] };
        forge(part, random);
        let Ok(forged) = SavedPlan::read(&with_digest(&saved, &members)) else {
            unread += 1;
            continue;
        };
        let _ = (forged.totals(), forged.has_changes());
        let root = world.root.path();
        let mut session = host.session(root).with(|options| options.system_root = Some(root.to_owned()));
        let Ok(prepared) = session.prepare("main.json", &*forged.document, Object::new()) else {
            refused += 1;
            continue;
        };
        let later = Stage { session, prepared };
        let again = later.run(Mode::PLAN);
        if !forged.is_of(&later.prepared) || !forged.deviations(&again).is_empty() {
            refused += 1;
            continue;
        }
        // What is shown is what a plan of the document shows that is applied.
        let anew = SavedPlan::new(&later.session, &later.prepared, &again, Parts::default());
        assert_eq!((&forged.instances, forged.totals()), (&anew.instances, anew.totals()), "pair {number}");
        applied += 1;
    }
    println!("{unread} forged plans were not read, {refused} refused, {applied} would be applied");
    assert!(unread > 5 && refused > 5, "{unread} were not read, {refused} refused");
}
