//! Documents that install a resource and use it: what is found during a run does not make it another run.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use stead_core::event::{Event, EventKind, Mode, Status};
use stead_core::run::Run;
use stead_core::value::Object;
use stead_engine::{Host, HostOptions, Prepared, RunOptions, Session};
use stead_host::catalog::{Search, SearchEnvironment};
use stead_host::journal::{FileJournal, read};
use stead_host::settings::{Layers, Stated, resolve};
use tempfile::TempDir;

const MANIFEST: &str = r#"{"type": "Test/Late", "version": "1.2.0",
    "get": {"executable": "/bin/sh", "args": ["-c", "cat state 2>/dev/null || echo '{\"size\": 0}'"]},
    "set": {"executable": "/bin/sh", "args": ["-c", "cat > state"], "input": "stdin"}}"#;

fn document(folder: &Path) -> String {
    let path = folder.join("late.dsc.resource.json");
    let content = MANIFEST.replace('\'', "''");
    format!(
        "directives: {{resourceDiscovery: duringDeployment}}
resources:
- name: installed
  type: Stead/File
  properties: {{path: '{}', content: '{content}'}}
- name: late
  type: Test/Late
  dependsOn: [\"[resourceId('Stead/File', 'installed')]\"]
  properties: {{size: 2}}
",
        path.display()
    )
}

fn session(folder: &Path) -> Session {
    fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
    let usual = HostOptions::default();
    let environment = SearchEnvironment { resource_path: Some(folder.as_os_str()), ..SearchEnvironment::default() };
    let settings = resolve(&Layers::default(), &Stated::default());
    let search = Search::new(&environment, &settings.resource_path, usual.search.user);
    Host::new(HostOptions { search, ..usual }).session(folder)
}

fn prepare(session: &mut Session, folder: &Path) -> Prepared {
    let prepared = session.prepare("main.yaml", document(folder), Object::new());
    prepared.map_err(|unusable| format!("{:?}", unusable.findings)).unwrap()
}

fn statuses(run: &Run) -> Vec<Option<Status>> {
    run.graph().iter().map(|(id, _)| run.report().status(id).cloned()).collect()
}

#[test]
fn a_run_is_resumed_after_any_event_although_the_resource_is_there_by_then() {
    let folder = TempDir::new().unwrap();
    let (journal, state) = (folder.path().join("journal"), folder.path().join("state"));
    let mut before = session(folder.path());
    let prepared = prepare(&mut before, folder.path());
    let width = before.host().width();
    let execution =
        RunOptions { journal: Box::new(FileJournal::create(&journal).unwrap()), ..RunOptions::new(Mode::APPLY, width) };
    let run = before.run(&prepared, execution).unwrap();
    assert_eq!(statuses(&run), [Some(Status::Changed), Some(Status::Changed)]);
    let events: Vec<Event> = read(&fs::read(&journal).unwrap()).unwrap();
    let starts = events.iter().filter(|event| matches!(event.kind, EventKind::CallStarted { .. })).count();
    assert!(starts >= 4, "both are tested and set");
    for known in 1..events.len() {
        let _ = fs::remove_file(&state);
        let mut after = session(folder.path());
        let again = prepare(&mut after, folder.path());
        assert_eq!(again.digest(), prepared.digest(), "the type is there, and it is the same run");
        let resumed = after.resume(&again, &events[..known], RunOptions::new(Mode::APPLY, width)).unwrap();
        let late = resumed.graph().iter().find(|(_, node)| &*node.name == "late").map(|(id, _)| id).unwrap();
        assert_eq!(resumed.report().status(late), Some(&Status::Changed), "after {known} of {} events", events.len());
    }
}
