//! Results of tests, for users and for pipelines.

use anstream::adapter::strip_str;
use anstyle::AnsiColor;
use serde_json::{Value as Json, json};
use stead_core::diag::counted;
use stead_core::visible::visible;
use stead_report::{Case, Suite, Text, junit};

use super::Results;
use super::file::{Test, TestFile};
use super::run::{Outcome, Shortcoming};
use crate::request::ResultsForm;
use crate::terminal::{Output, data_as, painted, print_coloured, print_exactly};

pub(super) fn print(results: &Results<'_>, form: ResultsForm) {
    match form {
        ResultsForm::Output(Output::Text) => print_coloured(&text(results)),
        ResultsForm::Output(output) => data_as(&data(results), output),
        ResultsForm::Tap => print_exactly(&tap(results)),
        ResultsForm::Junit => print_exactly(&junit(&suites(results))),
    }
}

/// How a test ended, in a word.
fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome { failures, .. } if !failures.is_empty() => "failed",
        Outcome { is_skipped: true, .. } => "not run",
        _ => "passed",
    }
}

fn text(results: &Results<'_>) -> String {
    results.tests.iter().flat_map(lines).chain([summary(results)]).collect()
}

/// The lines of one test.
fn lines((file, test, outcome): &(&TestFile, &Test, Outcome)) -> Vec<String> {
    let word = word(outcome);
    let paint = match word {
        "passed" => AnsiColor::Green,
        "failed" => AnsiColor::Red,
        _ => AnsiColor::Yellow,
    };
    let path = file.path.display().to_string();
    let (name, milliseconds) = (visible(&test.name.value), outcome.elapsed.as_millis());
    let head = format!("{} {}: {name} in {milliseconds} ms\n", painted(paint, word), visible(&path));
    let failures = outcome.failures.iter().map(|failure| format!("    {}\n", said(failure).replace('\n', "\n    ")));
    let not_run = (!outcome.not_run.is_empty()).then(|| format!("    not run: {}\n", not_run(outcome)));
    [head].into_iter().chain(failures).chain(not_run).collect()
}

fn summary(results: &Results<'_>) -> String {
    let count = |wanted: &str| results.tests.iter().filter(|(_, _, outcome)| word(outcome) == wanted).count();
    let (passed, failed, not_run) = (count("passed"), count("failed"), count("not run"));
    let all = counted(results.tests.len(), "test");
    let rest = if not_run > 0 { format!(", {not_run} not run") } else { String::new() };
    format!("{all}: {passed} passed, {failed} failed{rest} in {} ms\n", results.elapsed.as_millis())
}

/// A failure behind its place, which a finding shows itself.
fn said(failure: &Shortcoming) -> String {
    let is_shown = |place: &String| failure.text.contains(&format!("--> {place}"));
    let place = failure.place.as_ref().map(ToString::to_string).filter(|place| !is_shown(place));
    place.map(|place| place + ": ").unwrap_or_default() + &failure.text
}

/// A failure for other programs.
fn uncoloured(failure: &Shortcoming) -> String {
    strip_str(&said(failure)).to_string()
}

fn not_run(outcome: &Outcome) -> String {
    outcome.not_run.iter().map(|each| visible(each)).collect::<Vec<_>>().join("; ")
}

fn data(results: &Results<'_>) -> Json {
    let failure = |failure: &Shortcoming| {
        let place = failure.place.as_ref();
        json!({
            "source": place.map(|place| &place.name),
            "line": place.map(|place| place.line),
            "column": place.map(|place| place.column),
            "message": strip_str(&failure.text).to_string(),
        })
    };
    let tests = results.tests.iter().map(|(file, test, outcome)| {
        json!({
            "file": file.path.display().to_string(),
            "name": test.name.value,
            "document": test.document.display().to_string(),
            "result": word(outcome),
            "milliseconds": u64::try_from(outcome.elapsed.as_millis()).unwrap_or(u64::MAX),
            "failures": outcome.failures.iter().map(failure).collect::<Vec<_>>(),
            "notRun": outcome.not_run,
        })
    });
    json!({ "version": 1, "tests": tests.collect::<Vec<_>>() })
}

/// The Test Anything Protocol, version 14.
fn tap(results: &Results<'_>) -> String {
    let head = format!("TAP version 14\n1..{}\n", results.tests.len());
    let points = results.tests.iter().enumerate().flat_map(|(at, test)| points(at + 1, test));
    [head].into_iter().chain(points).collect()
}

/// The lines of one test, by its number.
fn points(number: usize, (file, test, outcome): &(&TestFile, &Test, Outcome)) -> Vec<String> {
    let name = format!("{}: {}", visible(&file.path.display().to_string()), visible(&test.name.value));
    let name = name.replace('\\', "\\\\").replace('#', "\\#");
    let sign = if outcome.failures.is_empty() { "ok" } else { "not ok" };
    let skip = if word(outcome) == "not run" { " # SKIP nothing of it can run in the root of a test" } else { "" };
    let notes = outcome.failures.iter().map(uncoloured);
    let not_run = (!outcome.not_run.is_empty()).then(|| format!("not run: {}", not_run(outcome)));
    let notes: Vec<String> = notes.chain(not_run).collect();
    let comments = notes.iter().flat_map(|note| note.lines()).map(|line| format!("# {line}\n"));
    [format!("{sign} {number} - {name}{skip}\n")].into_iter().chain(comments).collect()
}

fn suites(results: &Results<'_>) -> Vec<Suite> {
    let mut suites: Vec<Suite> = Vec::new();
    for (file, test, outcome) in &results.tests {
        let name = Text::from(file.path.display().to_string());
        let case = Case {
            name: Text::from(test.name.value.clone()),
            elapsed: outcome.elapsed,
            failures: outcome
                .failures
                .iter()
                .map(|failure| uncoloured(failure).lines().map(Text::from).collect())
                .collect(),
            not_run: outcome.not_run.iter().map(|each| Text::from(each.clone())).collect(),
            is_skipped: word(outcome) == "not run",
        };
        match suites.last_mut().filter(|suite| suite.name == name) {
            Some(suite) => suite.cases.push(case),
            None => suites.push(Suite { name, cases: vec![case] }),
        }
    }
    suites
}
