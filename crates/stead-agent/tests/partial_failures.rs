//! Documents of which parts fail, hang or answer garbage: every instance ends as a model of it says, and what was recorded says
//! the same when the process is gone.
//!
//! `STEAD_FAILURES=10000 cargo test -p stead-agent --test partial_failures -- --nocapture` tries so many documents.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use stead_core::event::{Mode, SkipReason, Status};
use stead_core::report::Report;
use stead_core::value::Object;
use stead_engine::{Host, HostOptions, RunOptions, Summary};
use stead_host::catalog::{Search, SearchEnvironment};
use stead_host::journal::{FileJournal, read};
use stead_host::settings::{Layers, Stated, resolve};
use tempfile::TempDir;

#[path = "../../stead-core/tests/support/random.rs"]
mod random;

use random::Numbers;

/// How many documents are tried where nothing is asked for.
const DOCUMENTS: usize = 10;

/// The behaviour of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    InState,
    Changes,
    Fails,
    /// Its program ends at the deadline.
    Hangs,
    /// Its program prints something else than an answer.
    Garbage,
}

/// An instance, and the earlier ones that it needs.
struct Instance {
    fate: Fate,
    needs: BTreeSet<usize>,
}

/// The end of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Ok,
    Changed,
    Failed,
    Skipped,
}

fn drawn(seed: u64) -> Vec<Instance> {
    let mut numbers = Numbers::of(43, seed);
    let count = 2 + numbers.below(6);
    let fate = |drawn| match drawn {
        0..=4 => Fate::InState,
        5..=8 => Fate::Changes,
        9..=11 => Fate::Fails,
        12 => Fate::Garbage,
        _ => Fate::Hangs,
    };
    let mut instance = |at: usize| {
        let fate = fate(numbers.below(if seed.is_multiple_of(8) { 14 } else { 13 }));
        Instance { fate, needs: (0..at).filter(|_| numbers.below(4) == 0).collect() }
    };
    (0..count).map(&mut instance).collect()
}

fn document(folder: &Path, instances: &[Instance]) -> String {
    let mut text = String::from("resources:\n");
    for (number, Instance { fate, needs }) in instances.iter().enumerate() {
        let made = folder.join(format!("made-{number}"));
        let command =
            |test: &str, set: &str| format!("type: Stead/Command, properties: {{test: \"{test}\", set: \"{set}\"}}");
        let what = match fate {
            Fate::InState => command("true", "exit 1"),
            Fate::Changes => command(&format!("test -e {}", made.display()), &format!("touch {}", made.display())),
            Fate::Fails => command("false", "exit 1"),
            Fate::Hangs => command("sleep 600", "exit 1"),
            Fate::Garbage => "type: Test/Garbage, properties: {path: p}".to_owned(),
        };
        let needs: Vec<String> =
            needs.iter().map(|need| format!("{}:i{need}", type_of(instances[*need].fate))).collect();
        let _ = writeln!(text, "- {{name: i{number}, dependsOn: [{}], {what}}}", needs.join(", "));
    }
    text
}

fn type_of(fate: Fate) -> &'static str {
    if fate == Fate::Garbage { "Test/Garbage" } else { "Stead/Command" }
}

/// Returns how each instance must end.
fn model(instances: &[Instance]) -> Vec<End> {
    let mut ends: Vec<End> = Vec::new();
    for Instance { fate, needs } in instances {
        let is_blocked = needs.iter().any(|need| matches!(ends[*need], End::Failed | End::Skipped));
        ends.push(match fate {
            _ if is_blocked => End::Skipped,
            Fate::InState => End::Ok,
            Fate::Changes => End::Changed,
            Fate::Fails | Fate::Hangs | Fate::Garbage => End::Failed,
        });
    }
    ends
}

fn end(status: Option<&Status>) -> End {
    match status {
        Some(Status::InState) => End::Ok,
        Some(Status::Changed) => End::Changed,
        Some(Status::Failed) => End::Failed,
        Some(Status::Skipped(SkipReason::Need(_))) => End::Skipped,
        other => panic!("{other:?}"),
    }
}

/// A host that knows a resource whose program prints garbage.
fn host(resources: &Path) -> Host {
    let program = resources.join("garbage");
    fs::write(&program, "#!/bin/sh\nprintf '\\377{]garbage'\n").unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let call = json!({"executable": program, "args": []});
    let manifest = json!({
        "$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json",
        "type": "Test/Garbage", "version": "1.0.0", "get": call, "set": call,
        "schema": {"embedded": {"type": "object", "properties": {"path": {"type": "string"}}}},
    });
    fs::write(resources.join("garbage.dsc.resource.json"), manifest.to_string()).unwrap();
    let usual = HostOptions::default();
    let environment = SearchEnvironment { resource_path: Some(resources.as_os_str()), ..SearchEnvironment::default() };
    let settings = resolve(&Layers::default(), &Stated::default());
    let search = Search::new(&environment, &settings.resource_path, usual.search.user);
    Host::new(HostOptions { search, ..usual })
}

#[test]
fn every_instance_ends_as_the_model_says() {
    let documents = stead_testkit::times("STEAD_FAILURES", DOCUMENTS);
    let resources = TempDir::new().unwrap();
    fs::set_permissions(resources.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let host = host(resources.path());
    let mut counts = [0; 4];
    for seed in 0..documents as u64 {
        let instances = drawn(seed);
        let expected = model(&instances);
        assert_eq!(applied(&host, &instances), expected, "seed {seed}");
        for end in expected {
            counts[end as usize] += 1;
        }
    }
    println!("{documents} documents: ok, changed, failed and skipped {counts:?}, all as the model says");
}

/// Applies the document, and returns how each instance ended, by the run and by what it recorded.
fn applied(host: &Host, instances: &[Instance]) -> Vec<End> {
    let folder = TempDir::new_in(stead_testkit::memory_folder()).unwrap();
    let text = document(folder.path(), instances);
    let deadline = Duration::from_millis(if text.contains("sleep 600") { 1500 } else { 60_000 });
    let mut session = host.session(folder.path()).with(|options| {
        (options.system_root, options.deadline) = (Some(folder.path().to_owned()), Some(deadline));
    });
    let prepared = session.prepare("main.yaml", &text, Object::new());
    let prepared = prepared.map_err(|unusable| format!("{:?}\n{text}", unusable.findings)).unwrap();
    let journal = folder.path().join("journal");
    let execution = RunOptions::new(Mode::APPLY, NonZeroUsize::new(4).unwrap());
    let execution = RunOptions { journal: Box::new(FileJournal::create(&journal).unwrap()), ..execution };
    let run = session.run(&prepared, execution).unwrap();
    let recorded = Report::of(&read(&fs::read(journal).unwrap()).unwrap());
    let ends: Vec<End> = run.graph().iter().map(|(id, _)| end(run.report().status(id))).collect();
    let kept: Vec<End> = run.graph().iter().map(|(id, _)| end(recorded.status(id))).collect();
    assert_eq!(ends, kept, "what is left when the process is killed at its end");
    assert_eq!(Summary::of(&run).totals.failed > 0, ends.contains(&End::Failed), "the run says that it failed");
    ends
}
