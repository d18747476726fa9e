//! Answers that were read on machines, for users.

use serde::Deserialize as _;
use serde_json::Value as Json;
use stead_core::event::Mode;
use stead_core::report::Totals;

use crate::commands::counts;
use crate::terminal::{plain, table, yaml};

/// A text as it is, recorded runs in a table, and whatever else as YAML.
pub(super) fn text(answer: &Json) -> String {
    let text = match (answer, answer["runs"].as_array()) {
        (Json::String(text), _) => text.clone(),
        (_, Some(runs)) if runs.is_empty() => "no recorded runs".to_owned(),
        (_, Some(runs)) => return table(&["Run", "Operation", "Document", "Result"], &rows(runs), None),
        (answer, None) => yaml(answer),
    };
    text.lines().flat_map(|line| [plain(line), "\n".into()]).collect()
}

fn rows(runs: &[Json]) -> Vec<Vec<String>> {
    let row = |run: &Json| {
        let [name, operation, document] = ["run", "operation", "document"].map(|member| word(&run[member]));
        let mode = if operation == "set" { Mode::APPLY } else { Mode::TEST };
        let operation = if mode == Mode::APPLY { "apply".to_owned() } else { operation };
        vec![name, operation, document, result(run, mode)]
    };
    runs.iter().map(row).collect()
}

/// How a run ended, and how many instances ended how.
fn result(run: &Json, mode: Mode) -> String {
    let state = word(&run["state"]);
    match Totals::deserialize(&run["totals"]) {
        Ok(totals) => format!("{state}: {}", counts(mode, &totals)),
        Err(_) => state,
    }
}

fn word(value: &Json) -> String {
    plain(value.as_str().unwrap_or_default()).into_owned()
}
