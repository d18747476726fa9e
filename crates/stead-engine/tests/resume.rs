//! A run that is killed at any point and resumed by another process ends as if nothing had happened.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use std::collections::BTreeMap;
use std::env::{current_exe, var};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use serde_json::json;
use stead_core::call::{Execution, Operation};
use stead_core::event::{Event, EventKind, Mode, Status};
use stead_core::report::Report;
use stead_core::run::Run;
use stead_core::value::{Object, Value};
use stead_engine::{Host, HostOptions, ResourceCall, RunOptions};
use stead_host::journal::{FileJournal, Journal, JournalError, read};
use tempfile::TempDir;

/// Where the process that will be killed works, and after which event, or before which append.
const FOLDER: &str = "STEAD_TEST_FOLDER";
const AFTER_EVENT: &str = "STEAD_TEST_AFTER_EVENT";
const BEFORE_APPEND: &str = "STEAD_TEST_BEFORE_APPEND";

fn document(folder: &Path) -> String {
    let folder = folder.join("made");
    let file = |name: &str, content: &str| {
        let path = folder.join(name);
        format!("{{path: '{}', content: \"{content}\"}}", path.display())
    };
    let lines = [
        "parameters: {token: {type: secureString, defaultValue: hunter2}}".to_owned(),
        "resources:".to_owned(),
        "- name: folder".to_owned(),
        "  type: Stead/Directory".to_owned(),
        format!("  properties: {{path: '{}'}}", folder.display()),
        "- name: motd".to_owned(),
        "  type: Stead/File".to_owned(),
        "  dependsOn: [\"[resourceId('Stead/Directory', 'folder')]\"]".to_owned(),
        format!("  properties: {}", file("motd", "hello")),
        "- name: group".to_owned(),
        "  type: Microsoft.DSC/Group".to_owned(),
        "  dependsOn: [\"[resourceId('Stead/File', 'motd')]\"]".to_owned(),
        "  properties:".to_owned(),
        "    resources:".to_owned(),
        "    - name: nested".to_owned(),
        "      type: Stead/File".to_owned(),
        format!("      properties: {}", file("nested", "[envvar('HOME')]")),
        "- name: secret".to_owned(),
        "  type: Stead/File".to_owned(),
        "  dependsOn: [\"[resourceId('Stead/File', 'motd')]\"]".to_owned(),
        format!("  properties: {}", file("secret", "[parameters('token')]")),
    ];
    lines.join("\n") + "\n"
}

/// Ends the process in place of an append.
struct Killed {
    journal: FileJournal,
    appends_left: Option<usize>,
}

impl Journal for Killed {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        match &mut self.appends_left {
            Some(0) => std::process::abort(),
            Some(left) => *left -= 1,
            None => {}
        }
        self.journal.append(events)
    }

    fn is_durable(&self) -> bool {
        true
    }
}

/// Begins the run of a folder or goes on with it, and ends the process where the environment says so.
fn apply(folder: &Path) -> Run {
    let number = |variable| var(variable).ok().map(|number| number.parse::<u64>().unwrap());
    let path = folder.join("journal");
    let (journal, events) = match FileJournal::create(&path) {
        Ok(journal) => (journal, Vec::new()),
        Err(_) => FileJournal::resume(&path).unwrap(),
    };
    let mut session = Host::new(HostOptions::default()).session(folder);
    let prepared = session.prepare("main.yaml", document(folder), Object::new());
    let prepared = prepared.map_err(|unusable| format!("{:?}", unusable.findings)).unwrap();
    let appends_left = number(BEFORE_APPEND).map(|number| usize::try_from(number).unwrap());
    let last_event = number(AFTER_EVENT);
    let execution = RunOptions::new(Mode::APPLY, NonZeroUsize::new(2).unwrap()).consumer(|_, event| {
        if last_event == Some(event.sequence) {
            std::process::abort();
        }
    });
    let execution = RunOptions { journal: Box::new(Killed { journal, appends_left }), ..execution };
    session.resume(&prepared, &events, execution).unwrap()
}

/// The process that is killed.
#[test]
fn process_that_is_killed() {
    if let Ok(folder) = var(FOLDER) {
        apply(Path::new(&folder));
    }
}

fn process(folder: &Path, variable: &str, number: usize) -> ExitStatus {
    let mut command = Command::new(current_exe().unwrap());
    command.args(["--exact", "process_that_is_killed"]).env(FOLDER, folder).env(variable, number.to_string());
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap()
}

type Statuses = BTreeMap<String, Option<Status>>;

fn statuses(run: &Run, report: &Report) -> Statuses {
    run.graph().iter().map(|(id, node)| (node.path.to_string(), report.status(id).cloned())).collect()
}

/// Returns the files that a run left on the machine, and how its instances ended.
fn outcome(folder: &Path) -> (Statuses, Vec<(String, String)>) {
    let run = apply(folder);
    assert!(run.is_finished());
    let events = read(&fs::read(folder.join("journal")).unwrap()).unwrap();
    assert_eq!(statuses(&run, &Report::of(&events)), statuses(&run, run.report()), "the journal says the same");
    let file = |name: &str| (name.to_owned(), fs::read_to_string(folder.join("made").join(name)).unwrap());
    (statuses(&run, run.report()), ["motd", "nested", "secret"].map(file).into())
}

#[test]
fn a_run_that_was_killed_at_any_point_is_resumed() {
    let whole = outcome(TempDir::new().unwrap().path());
    assert!(whole.0.values().all(|status| *status == Some(Status::Changed)), "{whole:?}");
    for (variable, least) in [(AFTER_EVENT, 15), (BEFORE_APPEND, 6)] {
        let mut kills = 0;
        loop {
            let folder = TempDir::new().unwrap();
            let status = process(folder.path(), variable, kills);
            assert_eq!(outcome(folder.path()), whole, "{variable} {kills}");
            if status.success() {
                break;
            }
            kills += 1;
        }
        assert!(kills >= least, "{kills} kills");
    }
}

#[test]
fn a_journal_of_another_document_is_refused() {
    let folder = TempDir::new().unwrap();
    apply(folder.path());
    let events = read(&fs::read(folder.path().join("journal")).unwrap()).unwrap();
    let mut session = Host::new(HostOptions::default()).session(folder.path());
    let other = document(folder.path()).replace("hello", "goodbye");
    let Ok(prepared) = session.prepare("main.yaml", &other, Object::new()) else { panic!("it is a document") };
    let execution = RunOptions::new(Mode::APPLY, NonZeroUsize::MIN);
    assert!(session.resume(&prepared, &events, execution).is_err());
}

#[test]
fn sets_and_deletes_of_one_resource_are_announced() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("motd");
    let path = file.display().to_string();
    for (operation, properties) in
        [(Operation::Set, json!({"path": path, "content": "hello"})), (Operation::Delete, json!({"path": path}))]
    {
        let session = Host::new(HostOptions::default()).session(folder.path());
        let resource = ResourceCall::find(session, "Stead/File", None).unwrap();
        let journal = folder.path().join(format!("{operation:?}"));
        let is_there_before = file.exists();
        let execution = RunOptions::new(Mode::direct(operation, Execution::Actual), NonZeroUsize::MIN);
        let execution = RunOptions {
            journal: Box::new(FileJournal::create(&journal).unwrap()),
            ..execution.consumer(|_, event| {
                if matches!(event.kind, EventKind::CallStarted { .. }) {
                    assert_eq!(file.exists(), is_there_before, "it is announced before it is done");
                }
            })
        };
        resource.run(Value::from(properties), execution).unwrap();
        assert_ne!(file.exists(), is_there_before);
        let events = read(&fs::read(journal).unwrap()).unwrap();
        let announced = events
            .iter()
            .any(|event| matches!(&event.kind, EventKind::CallStarted { operation: found, .. } if *found == operation));
        assert!(announced, "{operation:?}");
    }
}
