//! Findings of a session in documents with built-in resources before anything runs, and where their paths lead.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail this way")]

use std::num::NonZeroUsize;
use std::path::Path;

use stead_core::diag::Diagnostic;
use stead_core::event::{Mode, Status};
use stead_core::run::Run;
use stead_core::value::Object;
use stead_engine::{Host, HostOptions, Prepared, RunOptions, Session};

fn session(root: &Path) -> Session {
    Host::new(HostOptions::default()).session(root)
}

fn prepared(session: &mut Session, resources: &str) -> Prepared {
    let schema = "https://aka.ms/dsc/schemas/v3/bundled/config/document.json";
    let text =
        format!("$schema: {schema}\nparameters:\n  p: {{type: string, defaultValue: f}}\nresources:\n{resources}");
    match session.prepare("main.yaml", &text, Object::new()) {
        Ok(prepared) => prepared,
        Err(unusable) => panic!("{:?}", messages(&unusable.findings)),
    }
}

fn messages(findings: &[Diagnostic]) -> Vec<&str> {
    findings.iter().map(|finding| finding.message.as_str()).collect()
}

fn conflicts(resources: &str) -> Vec<String> {
    // In the order of the document.
    let mut session = session(Path::new("/nowhere")).with(|options| options.implicit_order = false);
    let prepared = prepared(&mut session, resources);
    prepared.warnings.into_iter().map(|finding| finding.message).collect()
}

fn run(session: &Session, prepared: &Prepared, mode: Mode) -> Run {
    session.run(prepared, RunOptions::new(mode, NonZeroUsize::MIN)).unwrap()
}

#[test]
fn conflicts_are_found_before_anything_runs() {
    let found = conflicts(
        "- {name: one, type: Stead/File, properties: {path: d/f, content: x}}
- {name: same, type: Stead/File, properties: {path: d/f, content: x}}
- {name: other, type: Stead/File, properties: {path: /nowhere/./d//f, content: y}}
- {name: attributes, type: Stead/File, properties: {path: d/f, mode: '0600'}}
- {name: directory, type: Stead/Directory, properties: {path: d, entries: [g], _purge: true}}
- {name: gone, type: Stead/File, properties: {path: d/g, _exist: false}}
- {name: line, type: Stead/Line, properties: {path: d/g, line: z}}
",
    );
    assert_eq!(
        found,
        [
            "'one' (Stead/File) and 'other' (Stead/File) both manage the same file '/nowhere/d/f'",
            "of 'one' (Stead/File) and 'directory' (Stead/Directory), one removes what its directory should not hold, \
             and the other creates '/nowhere/d/f'",
            "of 'same' (Stead/File) and 'directory' (Stead/Directory), one removes what its directory should not hold, \
             and the other creates '/nowhere/d/f'",
            "of 'other' (Stead/File) and 'directory' (Stead/Directory), one removes what its directory should not hold, \
             and the other creates '/nowhere/d/f'",
            "of 'attributes' (Stead/File) and 'directory' (Stead/Directory), one removes what its directory should not \
             hold, and the other creates '/nowhere/d/f'",
            "of 'gone' (Stead/File) and 'line' (Stead/Line), one removes '/nowhere/d/g' and the other creates it",
        ]
    );
}

#[test]
fn what_depends_on_a_condition_or_is_computed_conflicts_only_when_it_is_known() {
    let resources = "- {name: one, type: Stead/File, properties: {path: f, content: x}}
- {name: never, type: Stead/File, condition: \"[equals(1, 2)]\", properties: {path: f, content: y}}
- {name: computed, type: Stead/File, properties: {path: \"[parameters('p')]\", content: z}}
";
    assert_eq!(conflicts(resources), Vec::<String>::new());
    let folder = tempfile::tempdir().unwrap();
    let mut session = session(folder.path());
    let prepared = prepared(&mut session, resources);
    let found = session.computed_conflicts(&run(&session, &prepared, Mode::PLAN));
    let path = folder.path().join("f");
    let expected =
        format!("'one' (Stead/File) and 'computed' (Stead/File) both manage the same file '{}'", path.display());
    assert_eq!(messages(&found), [expected]);
}

#[test]
fn every_mistake_is_reported_in_the_words_of_the_resource() {
    let mut session = session(Path::new("/nowhere"));
    let prepared = prepared(
        &mut session,
        "- {name: a, type: Stead/File, properties: {path: f, mode: u=rwx, size: 3, surprise: 1}}
- {name: b, type: Stead/File, properties: {path: f, content: x, source: y}}
- {name: c, type: Stead/Symlink, properties: {path: f}}
- {name: d, type: Stead/Symlink, properties: {path: f, target: \"[parameters('p')]\"}}
- {name: e, type: Stead/Line, properties: {path: f, line: x, match: '('}}
- {name: f, type: Stead/File, properties: {content: \"[parameters('p')]\", mode: 7}}
- {name: g, type: Stead/Command, properties: {test: 'true', timeout: -1}}
",
    );
    let found = session.check_properties(&prepared, Mode::PLAN);
    let found = messages(&found);
    assert!(found.iter().all(|message| !message.contains("pattern") && !message.contains("JSON")), "{found:#?}");
    let about = |word: &str| found.iter().filter(|message| message.contains(word)).count();
    let words = ["'mode'", "'size'", "'surprise'", "'source'", "'target'", "'match'", "'path'", "'timeout'"];
    assert_eq!(words.map(about), [2, 1, 1, 1, 1, 1, 1, 1], "{found:#?}");
    assert_eq!(found.len(), 9, "{found:#?}");
}

#[test]
fn a_command_on_set_runs_in_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = session(folder.path());
    let prepared = prepared(
        &mut session,
        "- name: touch
  type: Microsoft.DSC.Transitional/RunCommandOnSet
  properties: {executable: touch, arguments: [made]}
",
    );
    let after = [(Mode::PLAN, false), (Mode::APPLY, true)].map(|(mode, made)| {
        let run = run(&session, &prepared, mode);
        let record = run.report().record(stead_core::id::NodeId(0));
        assert!(matches!(record.status(), Some(Status::Changed)), "{:?}", record.status());
        assert_eq!(folder.path().join("made").exists(), made);
        record.changed().unwrap().after.to_redacted_json()
    });
    assert_eq!(after[0], after[1], "a plan says what an apply does");
}

#[test]
fn every_path_of_built_ins_is_below_the_system_root() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path().to_owned();
    let mut session = session(elsewhere.path()).with(|options| options.system_root = Some(root));
    std::fs::create_dir_all(folder.path().join("etc")).unwrap();
    std::fs::write(folder.path().join("etc/os-release"), "VERSION_ID=7.7\n").unwrap();
    let prepared = prepared(
        &mut session,
        "- {name: absolute, type: Stead/File, properties: {path: /etc/absolute, content: x}}
- {name: relative, type: Stead/File, properties: {path: relative, content: x}}
- {name: outside, type: Stead/File, properties: {path: /../../outside, content: x}}
- {name: command, type: Stead/Command, properties: {set: touch made, creates: /etc/made, workingDirectory: /etc}}
- {name: system, type: Microsoft/OSInfo, properties: {version: 7.7.0}}
",
    );
    let run = run(&session, &prepared, Mode::APPLY);
    let states = run.graph().iter().map(|(id, node)| format!("{} {:?}", node.name, run.report().status(id)));
    assert_eq!(run.totals().failed, 0, "{:?}", states.collect::<Vec<_>>());
    for made in ["etc/absolute", "relative", "outside", "etc/made"] {
        assert!(folder.path().join(made).exists(), "{made}");
    }
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}
