//! The results of many machines: equal ones are shown once, with the machines that have them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value as Json, json};
use stead_core::diag::counted;

use super::order::Operation;
use super::read;
use super::ssh::Answer;
use crate::commands::reported;
use crate::exit::Exit;
use crate::request::{View, Volume};
use crate::terminal::{Output, data_as, data_line, for_users, plain, print, print_coloured};

/// What became of a machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Verdict {
    Differs,
    AsDesired,
    Begun,
    GaveUp,
    Unusable,
    Failed,
    Cancelled,
    Unreachable,
    NotBegun,
}

impl Verdict {
    fn of(operation: Operation, code: i32, report: &Json) -> Self {
        let has_failed = |each: &Json| each["status"] == "failed";
        match code {
            0 | 2 if report["instances"].as_array().is_some_and(|all| all.iter().any(has_failed)) => Self::Failed,
            0 if operation == Operation::Apply && report["changes"] == true => Self::Differs,
            0 => Self::AsDesired,
            2 if matches!(operation, Operation::Plan | Operation::Check) => Self::Differs,
            3 => Self::Unusable,
            4 => Self::GaveUp,
            6 => Self::Cancelled,
            _ => Self::Failed,
        }
    }

    pub(super) fn is_failure(self) -> bool {
        !matches!(self, Self::Differs | Self::AsDesired | Self::Begun)
    }

    fn word(self, operation: Operation) -> &'static str {
        match (self, operation) {
            (Self::Differs, Operation::Plan) => "to change",
            (Self::Differs, Operation::Apply) => "changed",
            (Self::Differs, Operation::Check | Operation::Read) => "drifted",
            (Self::AsDesired, Operation::Apply) => "unchanged",
            (Self::AsDesired, Operation::Read) => "answered",
            (Self::AsDesired, _) => "in desired state",
            (Self::Begun, _) => "begun",
            (Self::GaveUp, _) => "gave up",
            (Self::Unusable, _) => "refused",
            (Self::Failed, _) => "failed",
            (Self::Cancelled, _) => "ended early",
            (Self::Unreachable, _) => "unreachable",
            (Self::NotBegun, _) => "not begun",
        }
    }
}

/// The plan of a machine, and its text.
pub(super) struct Saved {
    pub(super) report: Json,
    pub(super) plan: String,
}

/// What is known of a machine: why there is no report, or its report.
enum Data {
    Message(String),
    Report(Json),
}

/// What is kept of a machine until all have ended.
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    /// What is printed of it, which other machines may have as well.
    text: String,
    /// The machine as data, where that is printed.
    data: Option<Json>,
    /// The plan that it sent.
    pub(super) saved: Option<Saved>,
}

impl Outcome {
    /// Of a machine that was asked.
    pub(super) fn of(name: &str, operation: Operation, view: View, answer: Answer) -> Self {
        let mut kept = None;
        let (verdict, text, data) = match answer {
            Answer::Unreachable(why) => {
                (Verdict::Unreachable, format!("unreachable: {}\n", plain(&why)), Data::Message(why))
            }
            Answer::NotBegun => return Self::not_begun(name, operation, view),
            Answer::Broken(why) => (Verdict::Failed, format!("failed: {}\n", plain(&why)), Data::Message(why)),
            Answer::Begun(run) => {
                let text = "begun; 'stead history' for these machines shows how it ended\n".to_owned();
                (Verdict::Begun, text, Data::Report(json!({ "run": plain(&run) })))
            }
            Answer::Ran { code: 0 | 2 | 4, report, .. } if !is_answer(operation, report.as_ref()) => {
                let why = "it sent no report that can be read";
                (Verdict::Failed, format!("failed: {why}\n"), Data::Message(why.to_owned()))
            }
            Answer::Ran { code: 0, report: Some(report), .. } if operation == Operation::Read => {
                (Verdict::AsDesired, read::text(&report), Data::Report(report))
            }
            Answer::Ran { code, report, saved, lines } => {
                let report = report.unwrap_or_default();
                kept = saved.map(|plan| Saved { report: report.clone(), plan });
                let verdict = Verdict::of(operation, code, &report);
                let instances = report["instances"].as_array().into_iter().flatten();
                let shown = instances.map(|each| (reported(each, operation.mode(), view.detail), &each["status"]));
                let is_shown = |status: &Json| view.volume > Volume::Quiet || status == "failed";
                let mut text: String = shown.filter(|(_, status)| is_shown(status)).map(|(text, _)| text).collect();
                let is_said = |line: &&String| verdict.is_failure() || line.starts_with("warning");
                text.extend(lines.iter().filter(is_said).map(|line| format!("{}\n", for_users(line))));
                text += &findings(&report);
                if verdict.is_failure() && text.is_empty() {
                    text = format!("{}\n", verdict.word(operation));
                }
                (verdict, text, Data::Report(report))
            }
        };
        let data = (view.output != Output::Text).then(|| {
            let (member, data) = match data {
                Data::Message(why) => ("message", json!(why)),
                Data::Report(report) => ("report", report),
            };
            json!({ "name": name, "outcome": verdict.word(operation), member: data })
        });
        Self { verdict, text: if data.is_some() { String::new() } else { text }, data, saved: kept }
    }

    /// Of one that was not.
    pub(super) fn not_begun(name: &str, operation: Operation, view: View) -> Self {
        let verdict = Verdict::NotBegun;
        let data = (view.output != Output::Text).then(|| json!({ "name": name, "outcome": verdict.word(operation) }));
        Self { verdict, text: "not begun\n".to_owned(), data, saved: None }
    }
}

/// Returns whether what was sent is a report: what is read may be anything.
fn is_answer(operation: Operation, report: Option<&Json>) -> bool {
    report.is_some_and(|report| operation == Operation::Read || report["instances"].is_array())
}

/// Why a document cannot be used there.
fn findings(report: &Json) -> String {
    let messages = report["findings"].as_array().into_iter().flatten().filter_map(|each| each["message"].as_str());
    messages.flat_map(|message| ["error: ", message, "\n"]).map(|text| for_users(text).into_owned()).collect()
}

/// Prints what became of all machines; returns the exit code of the command.
pub(super) fn finish(
    outcomes: Vec<(String, Outcome)>,
    operation: Operation,
    view: View,
    elapsed: Option<Duration>,
) -> Exit {
    let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
    for (_, outcome) in &outcomes {
        *counts.entry(outcome.verdict).or_default() += 1;
    }
    match view.output {
        Output::Text => {
            groups(&outcomes, view, print_coloured);
            if view.volume > Volume::Quiet {
                print(&totals(&counts, outcomes.len(), operation, elapsed));
            }
        }
        output => {
            let totals: serde_json::Map<String, Json> =
                counts.iter().map(|(verdict, count)| (verdict.word(operation).to_owned(), json!(count))).collect();
            let machines: Vec<Json> = outcomes.into_iter().filter_map(|(_, outcome)| outcome.data).collect();
            if output == Output::Ndjson {
                machines.iter().for_each(data_line);
                if operation != Operation::Read {
                    data_line(&json!({ "version": 1, "totals": totals }));
                }
            } else {
                data_as(&json!({ "version": 1, "totals": totals, "machines": machines }), output);
            }
        }
    }
    exit(&counts, operation)
}

/// Each text once, behind the names of the machines that it is about, in the order of the first of them.
pub(super) fn groups(outcomes: &[(String, Outcome)], view: View, print: fn(&str)) {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, outcome) in outcomes.iter().filter(|(_, outcome)| !outcome.text.is_empty()) {
        let at = *places.entry(&outcome.text).or_insert(groups.len());
        match groups.get_mut(at) {
            Some((_, names)) => names.push(name),
            None => groups.push((&outcome.text, vec![name])),
        }
    }
    for (text, names) in groups {
        let lines: String = text.lines().flat_map(|line| ["  ", line, "\n"]).collect();
        print(&format!("{}:\n{lines}", listed(&names, view)));
    }
}

/// How many names are listed of a group, unless all are asked for.
const MOST_NAMES: usize = 10;

/// Names in a line: the first ones, unless all are asked for.
pub(super) fn listed(names: &[&str], view: View) -> String {
    let most = if view.volume == Volume::Verbose { names.len() } else { MOST_NAMES };
    let shown: Vec<&str> = names.iter().copied().take(most).collect();
    let rest = names.len() - shown.len();
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    shown.join(", ") + &rest
}

fn totals(counts: &BTreeMap<Verdict, usize>, all: usize, operation: Operation, elapsed: Option<Duration>) -> String {
    let verb = match operation {
        Operation::Plan => "Plan for",
        Operation::Apply => "Applied on",
        Operation::Check => "Check of",
        Operation::Read => "Asked",
    };
    let parts: Vec<String> =
        counts.iter().map(|(verdict, count)| format!("{count} {}", verdict.word(operation))).collect();
    let elapsed = elapsed.map(|elapsed| format!(" in {:.1} s", elapsed.as_secs_f64())).unwrap_or_default();
    format!("{verb} {}: {}{elapsed}\n", counted(all, "machine"), parts.join(" · "))
}

fn exit(counts: &BTreeMap<Verdict, usize>, operation: Operation) -> Exit {
    let is = |verdict: Verdict| counts.contains_key(&verdict);
    if is(Verdict::Cancelled) {
        Exit::Cancelled
    } else if is(Verdict::Failed) || is(Verdict::Unreachable) || is(Verdict::NotBegun) {
        Exit::Failed
    } else if is(Verdict::Unusable) {
        Exit::Unusable
    } else if is(Verdict::GaveUp) {
        Exit::GaveUp
    } else if is(Verdict::Differs) && operation != Operation::Apply {
        Exit::Drifted
    } else {
        Exit::Success
    }
}
