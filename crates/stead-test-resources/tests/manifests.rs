//! The manifests of the test resources and extensions are valid, and their programs are there.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use stead_core::diag::Severity;
use stead_core::manifest::{self, Form};
use stead_core::text::{Limits, SourceId, read};

fn manifests() -> Vec<(PathBuf, Form, String)> {
    let corpus = stead_testkit::repository().join("corpus/compat");
    let folders = ["resources", "extensions", "extensions/discovered"].map(|folder| corpus.join(folder));
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let form = |path: &Path| Form::of(path.file_name()?.to_str()?);
    let found = entries.filter_map(|path| Some((path.clone(), form(&path)?, fs::read_to_string(&path).unwrap())));
    let found: Vec<_> = found.collect();
    assert!(!found.is_empty());
    found
}

#[test]
fn every_manifest_is_valid() {
    for (path, form, text) in manifests() {
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
    for (path, _, text) in manifests() {
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
