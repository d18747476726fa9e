//! The differences between two recorded runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstream::adapter::strip_str;

use serde_json::{Value as Json, json};
use stead_core::event::Mode;
use stead_core::history::History;
use stead_core::instance_path::InstancePath;
use stead_core::report::Record;

use stead_host::journal::RunId;

use super::super::command_word;
use super::super::report::{human, wording};
use super::Recorded;
use super::text::{net_change, reason, result};
use crate::terminal::plain;

/// An instance that ended otherwise in the second run.
pub(super) struct Difference {
    pub(super) name: String,
    /// How it ended in each run that has it.
    pub(super) ended: [Option<Ended>; 2],
}

/// How an instance ended.
#[derive(PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) word: &'static str,
    pub(super) why: Option<String>,
    /// The changes, as text for users.
    pub(super) changes: String,
}

/// The instances that ended otherwise, or that only one run has, in the order of the second run and then of the first.
pub(super) fn differences(first: &History, second: &History) -> Vec<Difference> {
    let of = |history: &History| -> BTreeMap<String, Ended> {
        history.instances().map(|(path, record)| (path_of(path), ended(history, path, record))).collect()
    };
    let (mut before, mut after) = (of(first), of(second));
    let mut found = Vec::new();
    for (path, _) in second.instances().chain(first.instances()) {
        let name = path_of(path);
        let ended = [before.remove(&name), after.remove(&name)];
        if ended[0] != ended[1] {
            found.push(Difference { name, ended });
        }
    }
    found
}

/// For programs.
pub(super) fn data(found: &[Difference]) -> Json {
    let ended = |ended: &Option<Ended>| {
        ended.as_ref().map(|ended| {
            let changes = strip_str(&ended.changes).to_string();
            json!({ "status": ended.word, "why": ended.why, "changes": changes })
        })
    };
    let data = |each: &Difference| json!({ "instance": each.name, "first": ended(&each.ended[0]), "second": ended(&each.ended[1]) });
    found.iter().map(data).collect()
}

/// The type and the name, behind the names of what it is nested in.
fn path_of(path: &InstancePath) -> String {
    let mut names: Vec<&str> = path.outward().map(|path| &**path.name()).collect();
    names.reverse();
    format!("{} '{}'", path.type_name(), plain(&names.join(" / ")))
}

fn ended(history: &History, path: &InstancePath, record: &Record) -> Ended {
    let mode = history.report.header.as_deref().map_or(Mode::APPLY, |header| header.mode);
    Ended {
        word: record.status().map_or("not finished", |status| wording(mode, status, record.effect()).1),
        why: record.why_ended(),
        changes: net_change(path, record, history.attempts(path.node()).len()),
    }
}

/// For users.
pub(super) fn text(ids: [&RunId; 2], both: &[Recorded; 2], found: &[Difference]) -> String {
    let mut text = String::new();
    for (id, run) in ids.iter().zip(both) {
        let header = run.history.report.header.as_deref();
        let act = header.map_or("run", |header| command_word(header.mode));
        let document = header.map(|header| plain(&header.origin).into_owned()).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{id}: {act} of {document}, {} in {}", result(run), human(run.history.elapsed()));
    }
    for each in found {
        let why = |ended: &Ended| ended.why.as_deref().map(reason).unwrap_or_default();
        let line = match &each.ended {
            [Some(first), Some(second)] if first.word == second.word => {
                format!("~ {}  {}{}", each.name, second.word, why(second))
            }
            [Some(first), Some(second)] => format!("~ {}  {} -> {}{}", each.name, first.word, second.word, why(second)),
            [None, Some(second)] => format!("+ {}  {}, only in the second run{}", each.name, second.word, why(second)),
            [Some(first), None] => format!("- {}  {}, only in the first run{}", each.name, first.word, why(first)),
            [None, None] => continue,
        };
        let _ = writeln!(text, "{line}");
        if let [_, Some(second)] = &each.ended {
            text += &second.changes;
        }
    }
    let _ = writeln!(text, "Differences: {}", found.len());
    text
}
