//! Modules, manifests and schemas, held against what PowerShell recorded of them and against hand-written expectations.
//!
//! Both lie outside of the repository; `deviations.json` below `corpus/powershell/` lists where stead differs, and why.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod cases;
mod manifest;
mod module;
mod mof;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value as Json;

/// The rows of a recording; nothing, and a line that says so, where it is not there.
fn recorded(test: &str, file: &str) -> Option<Vec<Json>> {
    let Ok(rows) = fs::read_to_string(discovery().join(file)) else {
        stead_testkit::skip(test, "the recordings are not there");
        return None;
    };
    Some(rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect())
}

fn discovery() -> PathBuf {
    stead_testkit::repository().join("../shared/corpus/powershell/discovery")
}

/// Where stead differs, with the reasons.
fn deviations(folder: &str) -> BTreeMap<String, String> {
    let file = stead_testkit::repository().join("corpus/powershell").join(folder).join("deviations.json");
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}
