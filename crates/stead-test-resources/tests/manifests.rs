//! The manifests of the test resources and extensions are valid, and their programs are there.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde_json::Value as Json;
use stead_core::diag::Severity;
use stead_core::manifest::{self, ManifestForm};
use stead_core::text::{Limits, SourceId, read};

/// The path, the form and the text of every manifest.
fn manifests() -> io::Result<Vec<(PathBuf, ManifestForm, String)>> {
    let corpus = stead_testkit::repository().join("corpus/compat");
    let mut found = Vec::new();
    for folder in ["resources", "extensions", "extensions/discovered"] {
        for entry in fs::read_dir(corpus.join(folder))? {
            let path = entry?.path();
            if let Some(form) = path.file_name().and_then(|name| ManifestForm::of(name.to_str()?)) {
                let text = fs::read_to_string(&path)?;
                found.push((path, form, text));
            }
        }
    }
    assert!(!found.is_empty());
    Ok(found)
}

#[test]
fn every_manifest_is_valid() {
    for (path, form, text) in manifests().unwrap() {
        let (node, mut findings) = read(SourceId::default(), &text, &Limits::default());
        let (declared, more) = manifest::parse(form, &node.unwrap(), &path);
        findings.extend(more);
        let errors: Vec<&str> =
            findings.iter().filter(|each| each.severity == Severity::Error).map(|each| each.message.as_str()).collect();
        assert_eq!(errors, Vec::<&str>::new(), "{}", path.display());
        assert!(!declared.is_empty(), "{}", path.display());
    }
}

#[test]
fn every_program_is_there() {
    for (path, _, text) in manifests().unwrap() {
        let json: Json = serde_json::from_str(&text).unwrap();
        for program in programs(&json) {
            let beside = path.with_file_name(program);
            assert!(program == "dsctest" || beside.exists(), "{}: {program} is missing", path.display());
        }
    }
}

fn programs(json: &Json) -> Vec<&str> {
    match json {
        Json::Object(members) => {
            let own = members.get("executable").and_then(Json::as_str);
            own.into_iter().chain(members.values().flat_map(programs)).collect()
        }
        Json::Array(items) => items.iter().flat_map(programs).collect(),
        _ => Vec::new(),
    }
}
