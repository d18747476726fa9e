//! Scripts as PowerShell's parser reads them: the texts and modules that were recorded with it.
//!
//! The recordings lie outside of the repository; `corpus/powershell/script/deviations.json` lists where stead differs.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use stead_powershell::script::{Script, TypeDefinition};
use stead_powershell::text::Text;

/// The lines of a recording, if this machine has it.
fn recordings(test: &str, file: &str) -> Option<Vec<Value>> {
    let path = folder().join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        stead_testkit::skip(test, "the recorded modules are not there");
        return None;
    };
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn folder() -> PathBuf {
    stead_testkit::repository().join("../shared/corpus/powershell/discovery")
}

/// What deviates on purpose, by name, with the reason.
fn deviations(of: &str) -> BTreeMap<String, String> {
    let path = stead_testkit::repository().join("corpus/powershell/script/deviations.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    serde_json::from_value(all[of].clone()).unwrap()
}

/// Fails with what deviates without a reason, and with reasons for what does not deviate.
fn check<T: std::fmt::Debug>(what: &str, count: usize, mut found: BTreeMap<String, T>) {
    let known = deviations(what);
    eprintln!("{count} {what}, {} deviate", found.len());
    let stale: Vec<_> = known.keys().filter(|name| !found.contains_key(*name)).collect();
    assert!(stale.is_empty(), "these do not deviate: {stale:?}");
    found.retain(|name, _| !known.contains_key(name));
    assert!(found.is_empty(), "{found:#?}");
}

/// Errors that are found with all types of a module at hand; they are compared over whole modules.
const OF_MEANING: &[&str] =
    &["DscResource", "TypeNotFound", "MemberAlreadyDefined", "AttributeNotAllowed", "CustomAttribute", "InvalidUnder"];

#[test]
fn snippets_have_the_types_and_errors_of_powershell() {
    let Some(rows) = recordings("snippets_have_the_types_and_errors_of_powershell", "snippets.jsonl") else { return };
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
    check("snippets", rows.len(), found);
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
