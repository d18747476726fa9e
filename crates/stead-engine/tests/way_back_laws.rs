//! What runs and does not come up with a run's changes gets back what it read: random documents over random roots, with a daemon that
//! comes up where no file that it reads says `bad`.
//!
//! `STEAD_WAYS_BACK=10000` tries so many. A failure names the number, which alone makes it again.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "../../stead-core/tests/support/random.rs"]
mod random;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use random::Numbers;
use serde_json::{Value as Json, json};
use stead_core::event::{Mode, Status};
use stead_core::manifest::UndoWay;
use stead_core::run::Run;
use stead_core::value::{Object, Value};
use stead_core::wait::{Curve, Wait};
use stead_engine::provider::{
    Capabilities, Context, EmbeddedResource, Execution, Failure, FailureKind, Implementation, Manifest, Plain,
    Provider, Schema, SetReply, State, TypeName, Version, WayBack,
};
use stead_engine::{Host, HostOptions, ReconcileOptions, RunOptions, Undo};
use stead_host::store::Keys;
use stead_host::store::images::{self, Images, OnFailure};
use stead_system::folder::Folder;
use stead_system::fs::SystemPath;
use stead_testkit::times;

/// Retries without a wait: thousands of runs have services that stay down.
const SHORT: Wait = Wait { curve: Curve::Static(Duration::from_millis(1)), cap: Duration::from_millis(1), jitter: 0.0 };

const FILES: [&str; 5] = ["a", "b", "c", "made/d", "links/e"];

/// The content that a daemon has read; `None` where it does not run.
#[derive(Clone, Default)]
struct Daemon {
    loaded: Arc<Mutex<Option<Vec<Option<String>>>>>,
    /// True if somebody else changes a file while it starts.
    is_disturbed: bool,
    /// True if its start succeeds though it ends at once, so that only its state says so.
    is_silent: bool,
    starts: Arc<AtomicUsize>,
}

impl Daemon {
    fn read(cx: &Context) -> Vec<Option<String>> {
        FILES.iter().map(|name| fs::read_to_string(&*cx.resolve(format!("/{name}"))).ok()).collect()
    }

    /// Reads its files, and ends where one is bad.
    fn start(&self, cx: &Context) -> Result<(), Failure> {
        self.starts.fetch_add(1, Ordering::Relaxed);
        let read = Self::read(cx);
        let is_good = read.iter().flatten().all(|text| !text.starts_with("bad"));
        *self.loaded.lock().unwrap() = is_good.then_some(read);
        if is_good { Ok(()) } else { Err(Failure::new(FailureKind::System, "it ended")) }
    }

    fn runs(&self) -> bool {
        self.loaded.lock().unwrap().is_some()
    }
}

impl Provider for Daemon {
    fn schema(&self, _: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        let schema = json!({ "type": "object", "properties": {
            "state": { "type": "string" }, "current": { "type": "boolean" }, "reads": { "type": "array" },
        }});
        Ok(Some(Arc::new(Schema::compile(schema).unwrap())))
    }

    fn get(&self, cx: &Context, desired: &Plain) -> Result<State, Failure> {
        let loaded = self.loaded.lock().unwrap().clone();
        let state = if loaded.is_some() { "running" } else { "stopped" };
        let is_current = loaded.is_some_and(|loaded| loaded == Self::read(cx));
        let reads = desired.expose().get("reads").map_or(json!([]), Value::to_redacted_json);
        Ok(Plain::new(json!({ "state": state, "current": is_current, "reads": reads })))
    }

    fn set(&self, cx: &Context, _: &Plain, _: Execution) -> Result<SetReply, Failure> {
        let started = self.start(cx);
        if self.is_disturbed {
            fs::write(&*cx.resolve("/a"), "bad, and mine").unwrap();
        }
        if self.is_silent { Ok(SetReply::default()) } else { started.map(|()| SetReply::default()) }
    }

    fn way_back(&self) -> Option<&dyn WayBack> {
        Some(self)
    }
}

impl WayBack for Daemon {
    fn is_down(&self, _: &Plain, before: &Json) -> bool {
        before["state"] == "running" && !self.runs()
    }

    fn reads_at_start(&self, cx: &Context, desired: &Plain) -> Vec<SystemPath> {
        let reads = desired.expose().get("reads").and_then(Value::as_array).into_iter().flatten();
        reads.filter_map(|path| Some(cx.resolve(path.as_str()?))).collect()
    }

    fn bring_up(&self, cx: &Context, _: &Plain) -> Result<(), Failure> {
        self.start(cx)
    }
}

/// A root with good files, and a daemon on it.
struct Scene {
    root: tempfile::TempDir,
    daemon: Daemon,
    host: Host,
}

impl Scene {
    fn new(numbers: &mut Numbers, daemon: Daemon) -> Self {
        // Thousands of runs would wait for the disk.
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        fs::create_dir(root.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", root.path().join("links")).unwrap();
        for name in FILES.iter().filter(|name| !name.starts_with("made")) {
            if numbers.below(3) > 0 {
                fs::write(root.path().join(name), format!("good {name}\n")).unwrap();
            }
        }
        let capabilities = Capabilities { get: true, set: true, ..Capabilities::default() };
        let (name, version) = (TypeName::parse("Test/Daemon").unwrap(), Version::parse("1.0.0").unwrap());
        let new = Manifest::new(name, version, Implementation::InProcess);
        let manifest = Manifest { capabilities, undo: UndoWay::State, reconcile_wait: Some(SHORT), ..new };
        let resources = vec![EmbeddedResource::new(manifest, Arc::new(daemon.clone())).unwrap()];
        Self { root, daemon, host: Host::new(HostOptions { resources, ..HostOptions::default() }) }
    }

    fn files(&self) -> BTreeMap<&'static str, Option<String>> {
        FILES.iter().map(|name| (*name, fs::read_to_string(self.root.path().join(name)).ok())).collect()
    }

    fn run(&self, document: &Json, images: impl FnOnce(stead_host::store::images::Scene) -> Option<Images>) -> Run {
        let root = self.root.path().to_owned();
        let mut session = self.host.session(&root).with(|options| options.system_root = Some(root));
        let prepared = session.prepare("main.json", document.to_string(), Object::new());
        let prepared = prepared.map_err(|unusable| format!("{document}\n{:?}", unusable.findings)).unwrap();
        let images = images(session.scene(&prepared));
        let policy = session.policy(&ReconcileOptions::default(), &prepared.reconcile).unwrap();
        let options = RunOptions { images, policy, ..RunOptions::new(Mode::APPLY, NonZeroUsize::MIN) };
        session.run(&prepared, options).unwrap()
    }

    fn apply(&self, document: &Json) -> Run {
        self.run(document, |_| None)
    }
}

/// Instances that change files, and one daemon that reads some of them, or acts on the changes of some.
fn document(numbers: &mut Numbers) -> (Json, BTreeSet<&'static str>) {
    let (mut resources, mut concerned) = (Vec::new(), BTreeSet::new());
    let acts = numbers.below(2) == 0;
    let mut ids = Vec::new();
    for name in FILES {
        if numbers.below(4) == 0 {
            continue;
        }
        let content = format!("{} {}\n", ["good", "good", "good", "bad"][numbers.below(4)], numbers.below(3));
        let path = format!("/{name}");
        let properties = match numbers.below(4) {
            0 => json!({ "path": path, "_exist": false }),
            1 if !name.starts_with("made") => json!({ "path": path, "content": content, "mode": "0600" }),
            _ => json!({ "path": path, "content": content, "parents": true }),
        };
        resources.push(json!({ "name": name, "type": "Stead/File", "properties": properties }));
        if acts && numbers.below(4) == 0 {
            continue;
        }
        concerned.insert(name);
        ids.push(format!("Stead/File:{name}"));
    }
    let reads: Vec<String> = concerned.iter().filter(|_| !acts).map(|name| format!("/{name}")).collect();
    let mut daemon = json!({ "name": "daemon", "type": "Test/Daemon", "dependsOn": ids,
        "properties": { "state": "running", "current": true, "reads": reads } });
    if acts && !ids.is_empty() {
        daemon["directives"] = json!({ "onChanges": ids });
    }
    resources.push(daemon);
    (json!({ "resources": resources }), concerned)
}

fn status(run: &Run, name: &str) -> Option<Status> {
    let (id, _) = run.graph().iter().find(|(_, node)| &*node.name == name)?;
    run.report().status(id).cloned()
}

fn why(run: &Run, name: &str) -> String {
    let (id, _) = run.graph().iter().find(|(_, node)| &*node.name == name).unwrap();
    run.report().record(id).why_failed().unwrap_or_default()
}

#[derive(Default, Debug)]
struct Counts {
    up: usize,
    taken_back: usize,
    /// Those of them that ended though their start succeeded.
    silent: usize,
    still_down: usize,
    left: usize,
}

fn law(number: u64, counts: &mut Counts) {
    let mut numbers = Numbers::of(67, number);
    // A number of its own, so that the others stay as they are.
    let is_silent = Numbers::of(68, number).below(2) == 0;
    let scene = Scene::new(&mut numbers, Daemon { is_silent, ..Daemon::default() });
    let (document, concerned) = document(&mut numbers);
    let ran = numbers.below(5) > 0;
    if ran {
        let cx = Context::new(scene.root.path());
        scene
            .daemon
            .start(&Context { system_root: stead_system::fs::SystemRoot::below(scene.root.path()), ..cx })
            .unwrap();
    }
    let before = scene.files();
    let run = scene.apply(&document);
    let (after, said) = (scene.files(), why(&run, "daemon"));
    let label = || format!("{number}: {document}\n{before:?}\n{after:?}\n{said}");
    let changed = |name: &&'static str| {
        run.graph().iter().any(|(_, node)| &*node.name == *name) && status(&run, name) != Some(Status::InState)
    };
    let end = status(&run, "daemon");
    if !matches!(end, Some(Status::Failed | Status::Pending)) {
        counts.up += 1;
        assert!(FILES.iter().all(|name| status(&run, name) != Some(Status::Failed)), "{}", label());
        return;
    }
    let is_back = said.contains("were put back");
    assert_eq!(is_back, ran && concerned.iter().any(changed), "{}", label());
    assert!(end == Some(Status::Failed) || is_silent && !is_back, "{}", label());
    for name in FILES {
        let is_concerned = is_back && concerned.contains(name);
        let expected = if is_concerned { before[name].clone() } else { written(&document, name, &before) };
        assert_eq!(after[name], expected, "{name} {}", label());
        let has_failed = status(&run, name) == Some(Status::Failed);
        assert_eq!(has_failed, is_concerned && changed(&name), "{name} {}", label());
        assert!(!has_failed || why(&run, name).starts_with("taken back, since 'daemon'"), "{}", label());
    }
    // What it does not read may be bad as well: then it stays down, which is said.
    assert_eq!(scene.daemon.runs(), said.ends_with("it runs again"), "{}", label());
    match (is_back, scene.daemon.runs()) {
        (true, true) => {
            counts.silent += usize::from(is_silent);
            // Once before the run, once with what it changed, and once with what was put back: nothing is waited for.
            assert_eq!(scene.daemon.starts.load(Ordering::Relaxed), 3, "{}", label());
            counts.taken_back += 1;
        }
        (true, false) => counts.still_down += 1,
        (false, _) => counts.left += 1,
    }
}

/// The content at a path by the document, else the one that was there.
fn written(document: &Json, name: &str, before: &BTreeMap<&str, Option<String>>) -> Option<String> {
    let stated = document["resources"].as_array().unwrap().iter().find(|resource| resource["name"] == name);
    match stated {
        Some(stated) => stated["properties"]["content"]
            .as_str()
            .filter(|_| stated["properties"]["_exist"] != false)
            .map(str::to_owned),
        None => before[name].clone(),
    }
}

#[test]
fn what_does_not_come_up_gets_back_what_it_read_and_nothing_else_is_touched() {
    let mut counts = Counts::default();
    for number in 0..times("STEAD_WAYS_BACK", 100) as u64 {
        law(number, &mut counts);
    }
    println!("{counts:?}");
    let Counts { up, taken_back, silent, still_down, left } = counts;
    assert!([up, taken_back - silent, silent, still_down, left].iter().all(|count| *count > 0), "{counts:?}");
}

#[test]
fn what_somebody_else_changed_meanwhile_keeps_all_of_it() {
    let scene = Scene::new(&mut Numbers::of(1, 1), Daemon { is_disturbed: true, ..Daemon::default() });
    for name in ["a", "b"] {
        fs::write(scene.root.path().join(name), "good\n").unwrap();
    }
    *scene.daemon.loaded.lock().unwrap() = Some(Vec::new());
    let file = |name: &str, content: &str| json!({ "name": name, "type": "Stead/File", "properties": { "path": format!("/{name}"), "content": content } });
    let run = scene.apply(&json!({ "resources": [file("a", "bad\n"), file("b", "bad\n"),
        { "name": "daemon", "type": "Test/Daemon", "dependsOn": ["Stead/File:a", "Stead/File:b"],
          "properties": { "state": "running", "current": true, "reads": ["/a", "/b"] } }] }));
    let said = why(&run, "daemon");
    assert!(said.contains("cannot be put back: '/a': it was changed since the run"), "{said}");
    // The second look finds that something else is in it by now.
    assert_eq!((status(&run, "a"), status(&run, "b")), (Some(Status::Failed), Some(Status::Changed)));
    assert!(!why(&run, "a").contains("taken back"), "{}", why(&run, "a"));
    assert_eq!(scene.files()["a"].as_deref(), Some("bad, and mine"));
    assert_eq!(scene.files()["b"].as_deref(), Some("bad\n"));
}

/// The record of a run says of what was put back that it is as before, so that an undo of the run leaves it alone.
#[test]
fn what_was_put_back_is_no_change_of_a_recorded_run() {
    let (scene, store) = (Scene::new(&mut Numbers::of(1, 1), Daemon::default()), tempfile::tempdir().unwrap());
    let (keys, _) = Keys::load(&Folder::create(store.path()).unwrap(), None, false).unwrap();
    fs::write(scene.root.path().join("a"), "good\n").unwrap();
    *scene.daemon.loaded.lock().unwrap() = Some(Vec::new());
    let file = |name: &str, content: &str| json!({ "name": name, "type": "Stead/File", "properties": { "path": format!("/{name}"), "content": content } });
    let document = json!({ "resources": [file("a", "bad\n"), file("c", "other\n"),
        { "name": "daemon", "type": "Test/Daemon", "directives": { "onChanges": ["Stead/File:a"] },
          "properties": { "state": "running", "current": true } }] });
    let path = store.path().join("images");
    let run = scene.run(&document, |of| {
        Some(Images::begin(File::create_new(&path).unwrap(), &keys, of, OnFailure::Stop).unwrap())
    });
    assert_eq!((status(&run, "a"), status(&run, "c")), (Some(Status::Failed), Some(Status::Changed)));
    assert_eq!(scene.files()["a"].as_deref(), Some("good\n"));
    let undo = Undo::of(images::read(&fs::read(Path::new(&path)).unwrap(), &keys).unwrap()).unwrap();
    let document = undo.document("a", &scene.host, false).unwrap().text;
    assert!(document.contains("\"/c\"") && !document.contains("\"/a\""), "{document}");
}
