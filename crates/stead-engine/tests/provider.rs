//! Resources of the program that embeds this library: the example, and how they stand beside what is built in.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "../examples/provider.rs"]
#[expect(dead_code, reason = "the test calls what `main` calls")]
mod provider;

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;
use stead_engine::provider::check::{CheckedResource, Depth, check};
use stead_engine::provider::{
    Capabilities, Claims, Context, EmbeddedResource, Execution, Extent, Failure, FailureKind, Implementation, Manifest,
    Plain, Provider, ResourceKind, Schema, SetReply, State, TypeName, Version,
};
use stead_engine::{Host, HostOptions, Mode, Object, Planned, RunOptions, Value};

use provider::{Settings, apply, setting};

const DOCUMENT: &str = "\
parameters:
  token: {type: secureString}
resources:
- {name: token, type: Example.App/Setting, properties: {name: token, value: \"[parameters('token')]\"}}
- {name: color, type: Example.App/Setting, properties: {name: color, value: green}}
";

#[test]
fn the_example_applies_its_own_resource_and_its_journal_holds_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let (file, journal) = (folder.path().join("settings.yaml"), folder.path().join("journal"));
    fs::write(&file, DOCUMENT).unwrap();
    let settings = Settings::default();
    for (changed, unchanged) in [(2, 0), (0, 2)] {
        let totals = apply(&file, "canary-1", &journal, &settings).unwrap().totals();
        assert_eq!((totals.changed, totals.unchanged), (changed, unchanged));
        let recorded = fs::read_to_string(&journal).unwrap();
        assert!(recorded.contains("Example.App/Setting"), "{recorded}");
        assert!(!recorded.contains("canary") && !recorded.contains("green"), "{recorded}");
        fs::remove_file(&journal).unwrap();
    }
    let settings: Vec<_> = settings.lock().unwrap().clone().into_iter().collect();
    assert_eq!(settings, [("color", "green"), ("token", "canary-1")].map(|(k, v)| (k.to_owned(), v.to_owned())));
}

#[test]
fn a_document_that_cannot_be_used_says_why_with_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.yaml");
    let wrong = DOCUMENT.replace("value: green", "colour: green, value: 1");
    for (text, lines) in [
        (wrong.as_str(), 2),
        (&*DOCUMENT.replace("App/Setting, properties: {name: color", "App/Settings, properties: {name: color"), 1),
    ] {
        fs::write(&file, text).unwrap();
        let error = apply(&file, "canary-1", &folder.path().join("journal"), &Settings::default()).err().unwrap();
        let said = error.to_string();
        assert_eq!(said.lines().count(), lines, "{said}");
        assert!(said.lines().all(|line| line.contains("settings.yaml:")), "{said}");
        assert!(!said.contains("canary"), "{said}");
    }
}

#[test]
fn the_example_keeps_to_what_is_expected_of_resources() {
    let example = setting(&Settings::default()).unwrap();
    let subject = CheckedResource { manifest: example.manifest(), provider: &**example.provider(), schema: None };
    let found = check(subject, &Context::new(Path::new("/")), &json!({"name": "a", "value": "b"}), Depth::Set);
    assert!(found.is_empty(), "{found:?}");
}

/// Reads a file or a folder, at its property `path`.
struct At(Extent, Option<Arc<Schema>>);

impl Provider for At {
    fn schema(&self, _: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        Ok(self.1.clone())
    }

    fn get(&self, _: &Context, desired: &Plain) -> Result<State, Failure> {
        Ok(desired.clone())
    }

    fn claims(&self, desired: &Plain) -> Option<Claims> {
        Some(Claims::path(desired.expose().get("path")?.as_str()?, self.0.clone()))
    }
}

fn manifest(type_name: &str, version: &str) -> Manifest {
    let (type_name, version) = (TypeName::parse(type_name).unwrap(), Version::parse(version).unwrap());
    let capabilities = Capabilities { get: true, ..Capabilities::default() };
    Manifest { capabilities, ..Manifest::new(type_name, version, Implementation::InProcess) }
}

fn at(type_name: &str, version: &str, extent: Extent) -> Result<EmbeddedResource, String> {
    let schema = Schema::compile(json!({"type": "object", "properties": {"path": {"type": "string"}}})).unwrap();
    let provider = Arc::new(At(extent, Some(Arc::new(schema))));
    EmbeddedResource::new(manifest(type_name, version), provider).map_err(|error| error.to_string())
}

#[test]
fn instances_have_an_order_and_conflicts_by_what_they_claim() {
    let resources =
        vec![at("Own/Note", "1.0.0", Extent::Whole).unwrap(), at("Own/Folder", "1.0.0", Extent::Directory).unwrap()];
    let mut session = Host::new(HostOptions { resources, ..HostOptions::default() }).session("/nowhere");
    let text = "resources:
- {name: note, type: Own/Note, properties: {path: a/note}}
- {name: folder, type: Own/Folder, properties: {path: a}}
- {name: file, type: Stead/File, properties: {path: /nowhere/a/note, content: x}}
";
    let prepared = session.prepare("main.yaml", text, Object::new()).unwrap();
    let order: Vec<String> = prepared.graph.order.iter().map(|id| prepared.graph.node(*id).name.to_string()).collect();
    assert_eq!(order, ["folder", "note", "file"]);
    let warnings: Vec<&str> = prepared.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(warnings, ["'note' (Own/Note) and 'file' (Stead/File) both manage the same file '/nowhere/a/note'"]);
}

/// Makes room for itself, as far as it says; cannot say what it would do once it is blind.
#[derive(Default)]
struct Room {
    is_blind: AtomicBool,
    sets: AtomicUsize,
}

impl Provider for Room {
    fn schema(&self, _: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        let schema = Schema::compile(json!({"type": "object", "properties": {"force": {"type": "boolean"}}}));
        Ok(schema.ok().map(Arc::new))
    }

    fn get(&self, _: &Context, _: &Plain) -> Result<State, Failure> {
        Ok(Plain::new(json!({"force": false})))
    }

    fn set(&self, _: &Context, desired: &Plain, effect: Execution) -> Result<SetReply, Failure> {
        match effect {
            Execution::WhatIf if self.is_blind.load(Ordering::SeqCst) => {
                return Err(Failure::new(FailureKind::Unsupported, "it is dark"));
            }
            Execution::WhatIf => {}
            Execution::Actual => _ = self.sets.fetch_add(1, Ordering::SeqCst),
        }
        Ok(SetReply { after: Some(desired.clone()), ..SetReply::default() })
    }
}

#[test]
fn nothing_is_set_that_cannot_say_what_it_would_remove() {
    for is_blind in [false, true] {
        let room = Arc::new(Room::default());
        let (type_name, version) = (TypeName::parse("Own/Room").unwrap(), Version::parse("1.0.0").unwrap());
        let capabilities = Capabilities { get: true, set: true, set_what_if: true, ..Capabilities::default() };
        let manifest = Manifest { capabilities, ..Manifest::new(type_name, version, Implementation::InProcess) };
        let resources = vec![EmbeddedResource::new(manifest, Arc::clone(&room) as Arc<dyn Provider>).unwrap()];
        let mut session = Host::new(HostOptions { resources, ..HostOptions::default() }).session("/nowhere");
        let text = "resources: [{name: room, type: Own/Room, properties: {force: true}}]";
        let prepared = session.prepare("main.yaml", text, Object::new()).unwrap();
        let plan = session.run(&prepared, RunOptions::new(Mode::PLAN, NonZeroUsize::MIN)).unwrap();
        room.is_blind.store(is_blind, Ordering::SeqCst);
        let planned = Planned::removals(&plan);
        let execution = RunOptions { planned, ..RunOptions::new(Mode::APPLY, NonZeroUsize::MIN) };
        let run = session.run(&prepared, execution).unwrap();
        let failures: Vec<&str> =
            run.report().records().iter().filter_map(|record| Some(&*record.failure()?.message)).collect();
        let (sets, expected): (usize, &[&str]) = if is_blind { (0, &["it is dark"]) } else { (1, &[]) };
        assert_eq!((room.sets.load(Ordering::SeqCst), &*failures), (sets, expected));
    }
}

#[test]
fn the_newest_version_counts_and_what_is_built_in_is_replaced_by_a_newer_one_only() {
    for version in ["0.9.0", "1.0.0"] {
        let said = at("Stead/File", version, Extent::Whole).err().unwrap();
        assert_eq!(
            said,
            format!("'Stead/File' 1.0.0 is built in: only a newer version can replace it, which {version} is not")
        );
    }
    let newer = at("Stead/File", "1.1.0", Extent::Whole).unwrap();
    let older = at("Own/Note", "1.0.0", Extent::Whole).unwrap();
    let newest = at("Own/Note", "2.0.0", Extent::Whole).unwrap();
    let resources = vec![older, newest, newer];
    let session = Host::new(HostOptions { resources, ..HostOptions::default() }).session("/");
    let found = |type_name: &str, version: Option<&str>| {
        session.find(&TypeName::parse(type_name).unwrap(), version).unwrap().version.to_string()
    };
    assert_eq!([found("Own/Note", None), found("own/note", Some("^1"))], ["2.0.0", "1.0.0"]);
    assert_eq!([found("Stead/File", None), found("Stead/File", Some("=1.0.0"))], ["1.1.0", "1.0.0"]);
    let listed: Vec<String> =
        session.discovery().discovered().catalog.iter().map(|(name, _)| name.to_string()).collect();
    assert!(listed.contains(&"Own/Note".to_owned()), "{listed:?}");
    let own = session.find(&TypeName::parse("Stead/File").unwrap(), None).unwrap();
    assert!(
        session.provider(&own).claims(&Plain::new(json!({"path": "/a"}))).is_some_and(|claims| claims.0.len() == 1)
    );
}

#[test]
fn what_cannot_be_embedded_is_refused_with_the_reason() {
    let said = |manifest: Manifest| {
        EmbeddedResource::new(manifest, Arc::new(At(Extent::Whole, None))).err().unwrap().to_string()
    };
    assert_eq!(said(manifest("Own/Note", "1.0.0")), "'Own/Note' has no schema");
    let group = Manifest { kind: ResourceKind::Group, ..manifest("Own/Note", "1.0.0") };
    let program = Manifest { implementation: Implementation::Command(Arc::default()), ..manifest("Own/Note", "1.0.0") };
    for other in [group, program] {
        assert_eq!(said(other), "'Own/Note' must be of the kind 'resource', and carried out in this process");
    }
}

#[test]
fn the_schema_says_what_is_secret_and_nothing_else_is_promised() {
    let example = setting(&Settings::default()).unwrap();
    assert!(example.manifest().states_secrets(&Value::from(json!({"name": "a", "value": "b"}))));
    let promises = example.manifest().promises;
    assert!(promises.claims && !promises.covers_secrets && !promises.cheap_test && !promises.verdict_in_state);
}

#[test]
fn examples_name_no_other_crate_of_stead() {
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let named =
            text.match_indices("stead_").map(|(at, _)| &text[at..]).filter(|name| !name.starts_with("stead_engine"));
        assert_eq!(named.count(), 0, "{text}");
    }
}
