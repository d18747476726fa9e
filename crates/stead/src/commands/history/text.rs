//! Recorded runs, for users.

use std::fmt::Write;
use std::time::Duration;

use anstyle::AnsiColor;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use stead_core::destruction::Effect;
use stead_core::event::{Mode, Status};
use stead_core::history::{AttemptRecord, AttemptResult, History};
use stead_core::instance_path::InstancePath;
use stead_core::report::Record;
use stead_core::wire::results::operation_name;
use stead_engine::{Difference, error_chain, json};
use stead_host::journal::RunId;
use stead_resources::builtin;

use super::super::command_word;
use super::super::report::{self, counts, described, effect_word, heading, human, wording};
use super::super::values;
use super::{Entry, Recorded};
use crate::request::Detail;
use crate::terminal::{self, natural_width, painted, plain, table};

/// Runs in a table, one a line.
pub(super) fn list<'a>(entries: impl Iterator<Item = Entry<'a>>) -> String {
    let rows: Vec<Vec<String>> = entries.map(|entry| row(&entry)).collect();
    if rows.is_empty() {
        return "no recorded runs; 'stead apply' records those that change something\n".to_owned();
    }
    let most = terminal::width(&std::io::stdout());
    let [all @ .., few] = BY_WIDTH.map(|columns| Columns::of(columns, &rows));
    let shown = all.into_iter().find(|shown| most.is_none_or(|most| shown.width() <= most)).unwrap_or(few);
    table(&shown.headings, &shown.rows, most)
}

const HEADINGS: [&str; 7] = ["Run", "Began", "Operation", "Document", "Re-runs", "Duration", "Result"];

/// The columns that there is room for. The name of a run is copied into commands, and says when it began: it is never cut before the
/// name of the document, which stands last then.
const BY_WIDTH: [&[usize]; 3] = [&[0, 1, 2, 3, 4, 5, 6], &[0, 2, 3, 5, 6], &[0, 6, 3]];

/// Some columns of the table.
struct Columns {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    fn of(columns: &[usize], rows: &[Vec<String>]) -> Self {
        let pick = |row: &Vec<String>| columns.iter().filter_map(|at| row.get(*at).cloned()).collect();
        let headings = columns.iter().filter_map(|at| HEADINGS.get(*at).copied()).collect();
        Self { headings, rows: rows.iter().map(pick).collect() }
    }

    fn width(&self) -> usize {
        natural_width(&self.headings, &self.rows)
    }
}

fn row(entry: &Entry<'_>) -> Vec<String> {
    let id = entry.id.to_string();
    let run = match &entry.content {
        Ok(run) => run,
        Err(error) => {
            let why = format!("unreadable: {}", error_chain(error));
            return [id].into_iter().chain(vec![String::new(); 5]).chain([why]).collect();
        }
    };
    let history = &run.history;
    let began = history.report.began.map(instant).unwrap_or_default();
    let header = history.report.header.as_deref();
    let operation = header.map(|header| command_word(header.mode).to_owned()).unwrap_or_default();
    let document = header.map(|header| plain(&header.origin).into_owned()).unwrap_or_default();
    let (re_runs, elapsed) = (history.report.re_runs.to_string(), human(history.elapsed()));
    vec![id, began, operation, document, re_runs, elapsed, result(run)]
}

/// How a run ended, and how many instances ended how.
pub(super) fn result(run: &Recorded) -> String {
    let Some(header) = &run.history.report.header else { return format!("{}: nothing was begun", end(run)) };
    let counts = counts(header.mode, &run.history.totals());
    match run.history.unsettled() {
        0 => counts,
        unsettled => format!("{}: {counts}, {unsettled} not finished", end(run)),
    }
}

fn end(run: &Recorded) -> &'static str {
    if run.is_running { "running" } else { json::end_word(run.history.end()) }
}

/// A run, with every instance and every attempt at it; in brief, a line for each instance that is not as it was before.
pub(super) fn show(id: &RunId, run: &Recorded, detail: Detail) -> String {
    let history = &run.history;
    let Some(header) = &history.report.header else { return format!("Run {id}: {}\n", result(run)) };
    let (mode, document) = (header.mode, plain(&header.origin));
    let mut text = format!("Run {id}: {} of {document}, {}\n", command_word(mode), end(run));
    for (path, record) in history.instances() {
        match detail {
            Detail::Full => text += &instance(history, mode, path, record),
            Detail::Brief if record.status() == Some(&Status::InState) => {}
            Detail::Brief => text += &outcome(mode, path, record),
        }
    }
    text += &report::totals(mode, &history.totals(), history.elapsed());
    // Writing to a string cannot fail.
    let _ = writeln!(text, "Re-runs: {}", history.report.re_runs);
    if history.unsettled() > 0 {
        let _ = writeln!(text, "Not finished: {}", history.unsettled());
    }
    text
}

/// How an instance ended, in one line.
fn outcome(mode: Mode, path: &InstancePath, record: &Record) -> String {
    let ended = record.status().map(|status| wording(mode, status, record.effect()));
    let (sign, word, paint) = ended.unwrap_or(("!", "not finished", AnsiColor::Red));
    let heading = painted(paint, &format!("{sign} {}", heading(path, record.desired.as_deref())));
    format!("{heading}  {word}{}\n", record.why_ended().map(|why| reason(&why)).unwrap_or_default())
}

fn instance(history: &History, mode: Mode, path: &InstancePath, record: &Record) -> String {
    let mut text = outcome(mode, path, record);
    let attempts = history.attempts(path.node());
    for (at, each) in attempts.iter().enumerate() {
        text += &attempt(at + 1, each);
        if let Some(changed) = each.result().changed().filter(|_| attempts.len() > 1) {
            let built_in = builtin(path.type_name());
            let difference = Difference::of_set(changed, built_in);
            let lines = described(Some(&difference), Some(&changed.effects), Some(&changed.what_if), built_in);
            text += &deeper(&values::shown(&lines));
        }
    }
    text + &net_change(path, record, attempts.len())
}

/// What differs between before the first attempt and after the last.
pub(super) fn net_change(path: &InstancePath, record: &Record, attempts: usize) -> String {
    if !record.is_changed() {
        return String::new();
    }
    let built_in = builtin(path.type_name());
    let difference = Difference::of_record(record, built_in);
    let what_if = record.changed().map(|changed| &*changed.what_if);
    let net = values::shown(&described(difference.as_ref(), record.effects(), what_if, built_in));
    match attempts {
        ..=1 => net,
        // What a command did is not in its state.
        _ if net.is_empty() && record.net_change().is_none_or(|(before, after)| before != after) => String::new(),
        _ if net.is_empty() => "    net change: none\n".to_owned(),
        _ => format!("    net change:\n{}", deeper(&net)),
    }
}

fn attempt(number: usize, attempt: &AttemptRecord) -> String {
    let waited = attempt.waited.map(|waited| format!(", after {}", human(waited))).unwrap_or_default();
    let woken = if attempt.woken { ", woken early" } else { "" };
    let calls: Vec<&str> = attempt.calls.iter().map(|call| operation_name(call.operation)).collect();
    let elapsed: Duration = attempt.calls.iter().filter_map(|call| call.elapsed).sum();
    let began = instant(attempt.began);
    let result = attempt.result();
    let why = result.reason().or_else(|| attempt.state_unknown().map(str::to_owned));
    let (word, why) = (result_word(result), why.map(|why| reason(&why)).unwrap_or_default());
    let calls = format!("{} in {}", calls.join(", "), human(elapsed));
    format!("    attempt {number} at {began}{waited}{woken} ({calls}): {word}{why}\n")
}

fn result_word(result: AttemptResult<'_>) -> &'static str {
    match result {
        AttemptResult::Read => "read",
        AttemptResult::InState => "in desired state",
        AttemptResult::Drifted => "drifted",
        AttemptResult::Undetermined(_) => "unknown",
        AttemptResult::Changed(changed) => effect_word(Mode::APPLY, &Status::Changed, changed.effect()),
        AttemptResult::Deleted => effect_word(Mode::APPLY, &Status::Changed, Effect::Remove),
        AttemptResult::NotConverged(..) => "not converged",
        AttemptResult::Pending(_) => "pending",
        AttemptResult::Failed(_) => "failed",
        AttemptResult::Interrupted => "interrupted",
    }
}

/// A reason behind a word; further lines of it are indented.
pub(super) fn reason(why: &str) -> String {
    let lines: Vec<_> = why.trim_end().lines().map(plain).collect();
    format!(": {}", lines.join("\n        "))
}

fn deeper(lines: &str) -> String {
    lines.split_inclusive('\n').flat_map(|line| ["    ", line]).collect()
}

/// In UTC, with milliseconds.
fn instant(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}
