//! Recordings of PowerShell, and where stead deviates from them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

/// The lines of a recording, if this machine has it.
pub(crate) fn lines(test: &str, file: &str) -> Option<Vec<Value>> {
    let path = folder().join(file);
    let Ok(recording) = std::fs::read_to_string(&path) else {
        stead_testkit::skip(test, "the recorded modules are not there");
        return None;
    };
    Some(recording.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// The folder of the recordings.
pub(crate) fn folder() -> PathBuf {
    stead_testkit::repository().join("../shared/corpus/powershell/discovery")
}

/// Returns the deviations that are on purpose, by name, with the reason.
fn deviations(of: &str) -> BTreeMap<String, String> {
    let path = stead_testkit::repository().join("corpus/powershell/script/deviations.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    serde_json::from_value(all[of].clone()).unwrap()
}

/// Fails with what deviates without a reason, and with reasons for what does not deviate.
pub(crate) fn check<T: std::fmt::Debug>(what: &str, count: usize, mut found: BTreeMap<String, T>) {
    let known = deviations(what);
    #[expect(clippy::print_stderr, reason = "the counts are seen when the test passes, too")]
    {
        eprintln!("{count} {what}, {} deviate", found.len());
    }
    let stale: Vec<_> = known.keys().filter(|name| !found.contains_key(*name)).collect();
    assert!(stale.is_empty(), "these do not deviate: {stale:?}");
    found.retain(|name, _| !known.contains_key(name));
    assert!(found.is_empty(), "{found:#?}");
}
