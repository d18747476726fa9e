//! What a run changed is taken back: random documents of built-in resources over random roots, applied and undone.
//!
//! `STEAD_UNDONE=10000` tries so many, `STEAD_FIRST_PAIR=487` begins with that one. A failure names the number, which alone makes
//! it again.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "support/pairs.rs"]
#[expect(dead_code, reason = "the laws of plans need more of a pair")]
mod pairs;
#[path = "../../stead-core/tests/support/random.rs"]
mod random;
#[path = "../../stead-resources/tests/support/mod.rs"]
#[expect(dead_code, reason = "trees are a part of it")]
mod support;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::Path;

use pairs::Pair;
use random::Numbers;
use serde_json::{Value as Json, json};
use stead_core::event::{Mode, Status};
use stead_core::run::Run;
use stead_core::value::{Object, Value};
use stead_engine::{Host, HostOptions, RunOptions, Undo};
use stead_host::store::Keys;
use stead_host::store::images::{self, Images, OnFailure};
use stead_system::folder::Folder;
use stead_testkit::times;
use support::{MACHINE, USERS, World, walk};

/// All that is in a root, times apart.
type Content = BTreeMap<OsString, (u32, Vec<u8>, (u32, u32))>;

fn content(root: &Path) -> Content {
    walk(root).into_iter().map(|(path, node)| (path, node.copied())).collect()
}

/// A root, and a store for what runs on it change.
struct Scene {
    world: World,
    store: tempfile::TempDir,
    keys: Keys,
    host: Host,
    runs: usize,
}

impl Scene {
    fn new(start: &str) -> Self {
        // Thousands of runs would wait for the disk.
        let memory = Path::new("/dev/shm");
        let store = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let (keys, _) = Keys::load(&Folder::create(store.path()).unwrap(), None, false).unwrap();
        Self { world: World::build_in_memory(start), store, keys, host: Host::new(HostOptions::default()), runs: 0 }
    }

    fn root(&self) -> &Path {
        self.world.root.path()
    }

    /// Runs a document, as far as `most` sets. Returns it, and what it changed.
    fn run(&mut self, host: &Host, document: &str, parameters: Object, most: usize) -> (Run, Vec<u8>) {
        let root = self.root().to_owned();
        let mut session = host.session(&root).with(|options| options.system_root = Some(root));
        let prepared = session.prepare("main.json", document, parameters);
        let prepared = prepared.map_err(|unusable| format!("{document}\n{:?}", unusable.findings)).unwrap();
        self.runs += 1;
        let path = self.store.path().join(format!("{}.images", self.runs));
        let file = File::create_new(&path).unwrap();
        let images = Some(Images::begin(file, &self.keys, session.scene(&prepared), OnFailure::Stop).unwrap());
        let mut left = most;
        let permit = Box::new(move || {
            let goes_on = left > 0;
            left = left.saturating_sub(1);
            goes_on
        });
        let options = RunOptions { images, permit, ..RunOptions::new(Mode::APPLY, NonZeroUsize::MIN) };
        let run = session.run(&prepared, options).unwrap();
        (run, fs::read(path).unwrap())
    }

    fn apply(&mut self, document: &str) -> (Run, Vec<u8>) {
        self.run(&self.host.clone(), document, Object::new(), usize::MAX)
    }

    fn read(&self, images: &[u8]) -> Undo {
        Undo::of(images::read(images, &self.keys).unwrap()).unwrap()
    }

    /// Takes back what a run changed, as far as `most` sets.
    fn undo(&mut self, images: &[u8], most: usize) -> (Run, Vec<u8>) {
        self.undo_with(images, most, false)
    }

    fn undo_with(&mut self, images: &[u8], most: usize, force: bool) -> (Run, Vec<u8>) {
        let document = self.read(images).document("a", &self.host, force).unwrap();
        let parameters: Json = serde_json::from_str(&document.parameters).unwrap();
        let parameters = Value::from(parameters["parameters"].clone()).as_object().unwrap().clone();
        self.run(&document.host, &document.text, parameters, most)
    }
}

fn failed(run: &Run) -> Vec<String> {
    let ended = |id| run.report().status(id).is_none_or(|status| matches!(status, Status::Failed | Status::Skipped(_)));
    let failed = run.graph().iter().map(|(id, _)| id).filter(|id| ended(*id));
    failed.map(|id| format!("{}: {:?}", run.graph().label(id), run.report().record(id).failure())).collect()
}

/// Instances of what is a part of the files of a system.
fn of_system(numbers: &mut Numbers) -> Json {
    let word = |numbers: &mut Numbers| ["one", "two", "three"][numbers.below(3)];
    let exist = numbers.below(4) > 0;
    let (type_name, mut properties) = match numbers.below(12) {
        0 => ("User", json!({ "name": word(numbers), "createHome": exist })),
        1 => ("Group", json!({ "name": word(numbers) })),
        2 => (
            "Ini",
            json!({ "path": "/etc/app.ini", "section": word(numbers), "key": "k", "value": word(numbers), "create": true }),
        ),
        3 => (
            "Json",
            json!({ "path": "/etc/app.json", "pointer": format!("/{}", word(numbers)), "value": 1, "create": true }),
        ),
        4 => ("Block", json!({ "path": "/etc/app.conf", "name": word(numbers), "content": "x\n", "create": true })),
        5 => ("Line", json!({ "path": "/etc/app.conf", "line": word(numbers), "create": true })),
        6 => (
            "Template",
            json!({ "path": "/etc/app.conf", "template": "{{ a }}\n", "variables": { "a": word(numbers) } }),
        ),
        7 => ("Host", json!({ "name": word(numbers), "address": "192.0.2.1" })),
        8 => ("Cron", json!({ "name": word(numbers), "user": "u", "schedule": "@daily", "command": word(numbers) })),
        9 => ("File", json!({ "path": "/etc/app.d/f", "content": word(numbers), "parents": true })),
        10 => ("Symlink", json!({ "path": "/etc/app.d", "target": word(numbers), "force": true })),
        _ => ("Directory", json!({ "path": "/etc/app.d", "mode": "0700", "recurse": true })),
    };
    if !exist && !matches!(type_name, "Template") {
        let _ = properties.as_object_mut().unwrap().insert("_exist".to_owned(), json!(false));
    }
    json!({ "type": format!("Stead/{type_name}"), "properties": properties })
}

fn system_document(number: u64) -> String {
    let mut numbers = Numbers::of(41, number);
    let count = 1 + numbers.below(5);
    let mut resources: Vec<Json> = (0..count).map(|_| of_system(&mut numbers)).collect();
    for (at, resource) in resources.iter_mut().enumerate() {
        let _ = resource.as_object_mut().unwrap().insert("name".to_owned(), json!(format!("i{at}")));
    }
    json!({ "resources": resources }).to_string()
}

#[derive(Default)]
struct Counts {
    whole: usize,
    changed: usize,
    named: usize,
    /// Those that were killed in their last set, or changed by somebody else.
    tried: usize,
    /// Those of which `--force` took back what is refused without.
    forced: usize,
}

/// The rest of a file of images where its run was killed in its last set, which had changed something: none, one or more of the records
/// of what that left.
fn killed_in_the_last_set(images: &[u8], keys: &Keys, numbers: &mut Numbers) -> Option<Vec<u8>> {
    let mut ends = vec![images.iter().position(|byte| *byte == b'\n').unwrap() + 1];
    while let Some(length) = images.get(*ends.last().unwrap()..).and_then(|rest| rest.first_chunk::<4>()) {
        ends.push(ends.last().unwrap() + 4 + usize::try_from(u32::from_be_bytes(*length)).unwrap());
    }
    let entries = images::read(images, keys).unwrap();
    let of = |entry: &images::Entry| match entry {
        images::Entry::Left { instance, .. } => Some(instance.clone()),
        _ => None,
    };
    let last = entries.iter().rposition(|(entry, _)| of(entry).is_some())?;
    let is_same = |at: &usize| of(&entries[*at].0) == of(&entries[last].0);
    let first = (0..=last).rev().take_while(is_same).last()?;
    Some(images[..ends[first + numbers.below(last + 1 - first)]].to_vec())
}

/// Somebody has something else in the place of a file or a link that a run made or changed. Returns whether there is one.
fn meddle(root: &Path, before: &Content, after: &Content, numbers: &mut Numbers) -> bool {
    let is_changed = |path: &&OsString| after.get(*path) != before.get(*path) && !root.join(path).is_dir();
    let changed: Vec<_> = before.keys().chain(after.keys()).filter(is_changed).collect();
    let Some(path) = (!changed.is_empty()).then(|| root.join(changed[numbers.below(changed.len())])) else {
        return false;
    };
    let is_there = fs::symlink_metadata(&path).is_ok();
    if !is_there && !path.parent().unwrap().is_dir() {
        return false;
    }
    if is_there {
        fs::remove_file(&path).unwrap();
    }
    match numbers.below(4) {
        0 if is_there => {}
        1 => fs::create_dir(path).unwrap(),
        2 => std::os::unix::fs::symlink("of somebody", path).unwrap(),
        _ => fs::write(path, "of somebody").unwrap(),
    }
    true
}

/// A run is killed in its last set, or what it changed is changed by somebody else. It is refused by name where it is not known to be as
/// the run left it, and comes back with `--force`, which can be taken back as well.
fn forced(start: &str, document: &str, number: u64, counts: &mut Counts) {
    let (mut scene, mut numbers) = (Scene::new(start), Numbers::of(42, number));
    let before = content(scene.root());
    let is_killed = number % 20 < 10;
    let most = if is_killed { 1 + numbers.below(5) } else { usize::MAX };
    let (_, mut images) = scene.run(&scene.host.clone(), document, Object::new(), most);
    let after = content(scene.root());
    if !scene.read(&images).kept().is_empty() {
        counts.named += 1;
        return;
    }
    if is_killed {
        let Some(torn) = killed_in_the_last_set(&images, &scene.keys, &mut numbers) else { return };
        images = torn;
    } else if !meddle(scene.root(), &before, &after, &mut numbers) {
        return;
    }
    counts.tried += 1;
    let labelled =
        |scene: &Scene, what: &str| format!("{number}: {what}\n{start}{document}\nleft:\n{}", scene.world.tree());
    let (undone, _) = scene.undo(&images, usize::MAX);
    let (why, left) = (failed(&undone), content(scene.root()));
    let is_named = why.iter().any(|why| why.contains("--force takes it back") || why.contains("is not of the run"));
    assert!(left == before || is_named, "{}", labelled(&scene, &format!("{why:?}")));
    let (undone, undo) = scene.undo_with(&images, usize::MAX, true);
    assert!(failed(&undone).is_empty(), "{}", labelled(&scene, &format!("{:?}", failed(&undone))));
    assert!(content(scene.root()) == before, "{}", labelled(&scene, "not taken back with --force"));
    let (redone, _) = scene.undo(&undo, usize::MAX);
    assert!(failed(&redone).is_empty(), "{}", labelled(&scene, &format!("{:?}", failed(&redone))));
    assert!(content(scene.root()) == left, "{}", labelled(&scene, "the undo was not taken back"));
    counts.forced += usize::from(left != before);
}

/// Applies and takes back, then takes the undo back, and that. Every second undo is cut after a set, and begun again.
fn law(start: &str, document: &str, number: u64, counts: &mut Counts) {
    let mut scene = Scene::new(start);
    let before = content(scene.root());
    let (_, images) = scene.apply(document);
    let after = content(scene.root());
    let kept = scene.read(&images).kept();
    let labelled =
        |scene: &Scene, what: &str| format!("{number}: {what}\n{start}{document}\nleft:\n{}", scene.world.tree());
    if !kept.is_empty() {
        counts.named += 1;
        return;
    }
    counts.whole += 1;
    counts.changed += usize::from(before != after);
    if number.is_multiple_of(2) {
        let most = usize::try_from(number / 2 % 7).unwrap();
        let _ = scene.undo(&images, most);
    }
    let (undone, undo) = scene.undo(&images, usize::MAX);
    assert!(failed(&undone).is_empty(), "{}", labelled(&scene, &format!("{:?}", failed(&undone))));
    assert!(content(scene.root()) == before, "{}", labelled(&scene, "not taken back"));
    if !number.is_multiple_of(2) {
        let (redone, _) = scene.undo(&undo, usize::MAX);
        assert!(failed(&redone).is_empty(), "{}", labelled(&scene, &format!("{:?}", failed(&redone))));
        assert!(content(scene.root()) == after, "{}", labelled(&scene, "the undo was not taken back"));
    }
}

#[test]
fn what_a_run_changed_is_taken_back() {
    let (mut counts, start) = (
        Counts::default(),
        format!(
            "{USERS}{MACHINE}file etc/app.conf 0640 \"a\\n\"\nfile etc/hosts 0644 \"\"\nfile etc/.pwd.lock 0600 \"\"\n"
        ),
    );
    let start = start.replace("{uid}", "4000").replace("{gid}", "4000");
    let first = times("STEAD_FIRST_PAIR", 0) as u64;
    for number in first..first + times("STEAD_UNDONE", 150) as u64 {
        let pair = Pair::of(number);
        law(&pair.start, &pair.document, number, &mut counts);
        law(&start, &system_document(number), number, &mut counts);
        if number % 10 == 3 {
            forced(&pair.start, &pair.document, number, &mut counts);
            forced(&start, &system_document(number), number, &mut counts);
        }
    }
    let Counts { whole, changed, named, tried, forced } = counts;
    println!("{whole} runs taken back whole, of which {changed} changed something; {named} named what they cannot");
    println!("{forced} needed --force");
    assert!(forced > 0 || tried < 10, "a kill or a change by somebody else is not known to be of the run");
    assert!(changed * 2 > whole, "most runs change something");
    assert!(whole > named, "most runs are taken back whole");
}

/// A file, changed by a run and by somebody since, in a directory that the run made.
#[test]
fn what_was_changed_since_stays_with_what_it_lies_in() {
    let mut scene = Scene::new("file a 0644 \"old\\n\"\n");
    let document = json!({ "resources": [
        { "name": "a", "type": "Stead/File", "properties": { "path": "/a", "content": "new" } },
        { "name": "b", "type": "Stead/File", "properties": { "path": "/d/b", "content": "new", "parents": true } },
    ] });
    let (_, images) = scene.apply(&document.to_string());
    fs::write(scene.root().join("d/b"), "mine").unwrap();
    let (undone, _) = scene.undo(&images, usize::MAX);
    let failed = failed(&undone);
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed[0].contains("changed since") || failed[1].contains("changed since"), "{failed:?}");
    assert_eq!(fs::read_to_string(scene.root().join("d/b")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(scene.root().join("a")).unwrap(), "old\n");
}

/// A directory that the run made stays where somebody put something into it.
#[test]
fn what_somebody_put_into_a_directory_of_the_run_stays() {
    let mut scene = Scene::new("");
    let document = json!({ "resources": [
        { "name": "d", "type": "Stead/Directory", "properties": { "path": "/d" } },
    ] });
    let (_, images) = scene.apply(&document.to_string());
    fs::write(scene.root().join("d/mine"), "mine").unwrap();
    let (undone, _) = scene.undo(&images, usize::MAX);
    assert!(failed(&undone).iter().any(|why| why.contains("'mine'")), "{:?}", failed(&undone));
    assert!(scene.root().join("d/mine").exists());
}

#[test]
fn a_damaged_file_of_images_is_refused_and_a_torn_one_ends_early() {
    let mut scene = Scene::new("file a 0600 \"canary\\n\"\n");
    let document = json!({ "resources": [
        { "name": "a", "type": "Stead/File", "properties": { "path": "/a", "content": "other canary" } },
    ] });
    let (_, images) = scene.apply(&document.to_string());
    assert!(!images.windows(6).any(|window| window.eq_ignore_ascii_case(b"canary")), "it is sealed");
    for at in 0..images.len() {
        let mut flipped = images.clone();
        flipped[at] ^= 1;
        let read = images::read(&flipped, &scene.keys);
        let intact = images::read(&images[..at], &scene.keys);
        // A length that grew is a file that is torn.
        assert!(read.as_ref().map_or(true, |read| read.len() < 4), "{at}");
        assert!(intact.as_ref().map_or(true, |read| read.len() < 4), "{at}");
    }
    // The scene, what was there, what is left, and the end: of a set that its files take back nothing else is kept.
    assert_eq!(images::read(&images, &scene.keys).unwrap().len(), 4);
}
