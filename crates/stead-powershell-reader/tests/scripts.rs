//! Scripts as PowerShell's parser reads them: the texts and modules that were recorded with it.
//!
//! The recordings lie outside of the repository; `corpus/powershell/script/deviations.json` lists where stead differs.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "support/recordings.rs"]
mod recordings;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stead_powershell_reader::script::{Script, TypeDefinition};
use stead_powershell_reader::text::Text;

/// Errors that are found with all types of a module at hand; they are compared over whole modules.
const OF_MEANING: &[&str] =
    &["DscResource", "TypeNotFound", "MemberAlreadyDefined", "AttributeNotAllowed", "CustomAttribute", "InvalidUnder"];

#[test]
fn snippets_have_the_types_and_errors_of_powershell() {
    let Some(rows) = recordings::lines("snippets_have_the_types_and_errors_of_powershell", "snippets.jsonl") else {
        return;
    };
    let mut found = BTreeMap::new();
    let mut lines = 0;
    for row in &rows {
        let source = row["text"].as_str().unwrap();
        let text = Text::new(source.to_owned());
        let script = Script::read(&text);
        let types: Value = script.types.iter().map(|ty| type_of(&text, ty)).collect();
        let errors = row["errors"].as_array().unwrap().iter().filter(|error| {
            let id = error["id"].as_str().unwrap();
            !OF_MEANING.iter().any(|start| id.starts_with(start))
        });
        let expected: Vec<_> = errors.map(|error| format!("{}@{}", error["id"], error["line"])).collect();
        if types != row["types"] || expected.is_empty() != script.problems.is_empty() {
            found.insert(source.to_owned(), (types.to_string(), script.problems, row["types"].to_string(), expected));
        } else if let (Some(problem), Some(error)) = (script.problems.first(), row["errors"].get(0)) {
            lines += usize::from(json!(text.place(problem.at).line) != error["line"]);
        }
    }
    eprintln!("{lines} first errors are on another line");
    recordings::check("snippets", rows.len(), found);
}

fn type_of(text: &Text, ty: &TypeDefinition) -> Value {
    json!({
        "name": ty.name,
        "kind": if ty.enumeration { "enum" } else { "class" },
        "bases": ty.bases.iter().map(|base| base.text.clone()).collect::<Vec<_>>(),
        "attributes": ty.attributes.iter().map(|attribute| attribute.name.clone()).collect::<Vec<_>>(),
        "members": ty.members.iter().map(|member| member.name.clone()).collect::<Vec<_>>(),
        "line": text.place(ty.at).line,
    })
}

/// Scripts that PowerShell ran when the recordings were made.
#[test]
fn scripts_that_ran_have_no_problems() {
    let folder = recordings::folder().join("..");
    let mut files = Vec::new();
    for folder in [folder.clone(), folder.join("discovery"), folder.join("../../prototypes/powershell")] {
        collect(&folder, "ps1", &mut files);
    }
    for folder in ["behaviour", "invoke"] {
        collect(&recordings::folder().join("..").join(folder).join("modules"), "psm1", &mut files);
    }
    files.retain(|file| !file.to_string_lossy().contains("discovery/modules") && !file.ends_with("SBroken.psm1"));
    if files.is_empty() {
        return stead_testkit::skip("scripts_that_ran_have_no_problems", "the recorded modules are not there");
    }
    let mut wrong = BTreeMap::new();
    for file in &files {
        let text = Text::decode(&std::fs::read(file).unwrap());
        let problems = Script::read(&text).problems;
        let messages: Vec<_> = problems.iter().map(|found| (text.place(found.at), found.message.clone())).collect();
        if !messages.is_empty() {
            wrong.insert(file, messages);
        }
    }
    eprintln!("{} scripts, {} with problems", files.len(), wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn collect(folder: &std::path::Path, extension: &str, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, extension, files);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
}
