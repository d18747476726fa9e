//! Several documents: the example runs, and one that is refused keeps all from being run.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "../examples/batch.rs"]
#[expect(dead_code, reason = "the test calls what `main` calls")]
mod batch;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tempfile::TempDir;

fn document(folder: &TempDir, name: &str, properties: &str) -> PathBuf {
    let file = folder.path().join(name).with_extension("yaml");
    let text =
        format!("resources:\n- {{name: {name}, type: Stead/File, properties: {{path: {name}, {properties}}}}}\n");
    fs::write(&file, text).unwrap();
    file
}

fn apply(files: &[PathBuf]) -> Result<Vec<Json>, String> {
    let mut out = Vec::new();
    batch::apply(files, &mut out).map_err(|error| error.to_string())?;
    let out = String::from_utf8(out).unwrap();
    Ok(out.lines().map(|line| serde_json::from_str(line.split_once(": ").unwrap().1).unwrap()).collect())
}

fn is_there(folder: &TempDir, name: &str) -> bool {
    Path::new(folder.path()).join(name).is_file()
}

#[test]
fn each_document_has_a_report_and_the_rule_decides_what_is_pending() {
    let folder = tempfile::tempdir().unwrap();
    let copied = document(&folder, "copied", "source: missing");
    let reports = apply(&[copied, document(&folder, "written", "content: x")]).unwrap();
    assert_eq!(reports.len(), 2);
    assert_eq!(reports[0]["totals"]["failed"], 1, "{}", reports[0]);
    assert_eq!(reports[0]["instances"][0]["reRuns"], 10, "{}", reports[0]);
    assert_eq!(reports[0]["reconcile"]["require_re_run"], true);
    assert_eq!(reports[1]["totals"]["created"], 1, "{}", reports[1]);
    assert!(is_there(&folder, "written"));
}

#[test]
fn nothing_is_run_when_a_document_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        document(&folder, "written", "content: x"),
        document(&folder, "wrong", "contents: x"),
        document(&folder, "worse", "content: \"[nothing()]\""),
    ];
    let findings = apply(&files).unwrap_err();
    assert_eq!(findings.lines().count(), 2, "{findings}");
    assert!(findings.contains("wrong.yaml:2:") && findings.contains("worse.yaml:2:"), "{findings}");
    assert!(!is_there(&folder, "written"));
}

/// An instance that acts on a change and failed is due in the next batch with the document.
#[test]
fn what_a_batch_owes_is_delivered_by_a_later_one() {
    const TEST: &str = "what_a_batch_owes_is_delivered_by_a_later_one";
    const FOLDER: &str = "STEAD_BATCH_TEST";
    let Some(folder) = std::env::var_os(FOLDER) else {
        // The store is that of this process.
        let folder = tempfile::tempdir().unwrap();
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", TEST]).env(FOLDER, folder.path()).env("STEAD_STATE", folder.path().join("state"));
        assert!(again.status().unwrap().success());
        return;
    };
    let (folder, file) = (PathBuf::from(&folder), PathBuf::from(&folder).join("main.yaml"));
    let set = format!("cd '{}' && test -e allowed && touch done", folder.display());
    let text = format!(
        "resources:
- {{name: f, type: Stead/File, properties: {{path: f, content: new}}}}
- {{name: acts, type: Stead/Command, directives: {{onChanges: ['Stead/File:f']}}, properties: {{set: \"{set}\"}}}}
"
    );
    fs::write(&file, text).unwrap();
    assert_eq!(apply(std::slice::from_ref(&file)).unwrap()[0]["totals"]["failed"], 1);
    fs::write(folder.join("allowed"), "").unwrap();
    assert_eq!(apply(&[file]).unwrap()[0]["totals"]["failed"], 0);
    assert!(folder.join("done").exists(), "it was not due");
}
