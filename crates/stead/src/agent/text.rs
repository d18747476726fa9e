//! Answers of an agent, for users.

use std::fmt::Write as _;

use serde_json::Value as Json;
use similar::TextDiff;

use crate::dsc::listing::{table, terminal_width};

fn text<'a>(value: &'a Json, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn items<'a>(value: &'a Json, name: &str) -> impl Iterator<Item = &'a Json> {
    value[name].as_array().into_iter().flatten()
}

pub(super) fn staged(answer: &Json) -> String {
    format!("generation {} is staged as pending\n", answer["generation"])
}

pub(super) fn removed(answer: &Json) -> String {
    format!("generation {} was removed\n", answer["generation"])
}

pub(super) fn stopped(answer: &Json) -> String {
    match answer["job"].as_str() {
        Some(job) => format!("job {job} is ending\n"),
        None => format!("generation {} is not tried again until it is asked for\n", answer["generation"]),
    }
}

pub(super) fn settings(answer: &Json) -> String {
    text(answer, "settings").to_owned()
}

pub(super) fn lines(answer: &Json) -> String {
    items(answer, "lines").filter_map(Json::as_str).fold(String::new(), |all, line| all + line + "\n")
}

pub(super) fn waited(answer: &Json) -> String {
    let result = text(&answer["last"], "result");
    match (answer["done"].as_bool(), answer["converged"].as_bool()) {
        (Some(true), Some(true)) => "converged\n".to_owned(),
        (Some(true), _) if text(answer, "outcome") == "superseded" => {
            "not converged: another document took its place\n".to_owned()
        }
        (Some(true), _) if text(answer, "outcome") == "removed" => "not converged: it was removed\n".to_owned(),
        (Some(true), _) => format!("not converged: the last job ended as {result}; 'stead agent status' says more\n"),
        _ => "still running\n".to_owned(),
    }
}

pub(super) fn history(answer: &Json) -> String {
    let rows = items(answer, "generations").map(|each| {
        let stage = each["stage"].as_str().or(each["ended"].as_str()).unwrap_or("-");
        let converged = each["converged"].as_str().unwrap_or("-");
        let number = each["generation"].to_string();
        let cells = [&number, stage, second(text(each, "accepted")), second(converged), text(each, "origin")];
        cells.map(str::to_owned).to_vec()
    });
    table(
        &["Generation", "Stage", "Accepted", "Converged", "Origin"],
        &rows.collect::<Vec<_>>(),
        terminal_width(std::io::stdout()),
    )
}

/// A time without its fraction of a second.
fn second(at: &str) -> &str {
    at.split_once('.').map_or_else(|| at.trim_end_matches('Z'), |(whole, _)| whole)
}

pub(super) fn diff(answer: &Json) -> String {
    let (from, to) = (&answer["from"], &answer["to"]);
    let name = |side: &Json| format!("generation {} ({})", side["generation"], text(side, "name"));
    let diff = TextDiff::from_lines(text(from, "text"), text(to, "text"));
    let diff = diff.unified_diff().header(&name(from), &name(to)).to_string();
    if diff.is_empty() { "the texts are the same\n".to_owned() } else { diff }
}

pub(super) fn looked(answer: &Json) -> String {
    let mut out = String::new();
    for document in items(answer, "documents") {
        let report = &document["report"];
        for instance in items(report, "instances") {
            let status = text(instance, "status");
            if matches!(status, "drifted" | "failed" | "skipped") {
                let message = instance["message"].as_str().map(|message| format!(": {message}")).unwrap_or_default();
                let _ = writeln!(out, "  {status}: {} {}{message}", text(instance, "type"), text(instance, "name"));
            }
        }
        let totals = &report["totals"];
        let counts = ["unchanged", "drifted", "failed", "skipped"]
            .into_iter()
            .filter(|name| totals[name].as_u64().is_some_and(|count| count > 0))
            .map(|name| {
                format!("{} {}", totals[name], if name == "unchanged" { "in the desired state" } else { name })
            });
        let counts: Vec<String> = counts.collect();
        let _ =
            writeln!(out, "{} (generation {}): {}", text(document, "stage"), document["generation"], counts.join(", "));
    }
    out
}

pub(super) fn reports(answer: &Json) -> String {
    let mut out = String::new();
    for each in items(answer, "reports") {
        let report = &each["report"];
        let _ = writeln!(out, "{}  {}", text(each, "job"), text(report, "result"));
    }
    out
}

pub(super) fn report(answer: &Json) -> String {
    serde_json::to_string_pretty(answer).unwrap_or_default() + "\n"
}

/// The one screen that says where things stand. What does not apply has no line.
pub(super) fn status(answer: &Json) -> String {
    let mut lines = vec![("State", format!("{}: {}", text(answer, "LCMState"), text(answer, "LCMStateDetail")))];
    let mut line = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    let generation = |name: &str| answer[name].as_u64().map(|number| format!("generation {number}"));
    let names = |name: &str| {
        let all: Vec<&str> = items(answer, name).filter_map(Json::as_str).collect();
        (!all.is_empty()).then(|| all.join(", "))
    };
    line("Next", answer["NextAttempt"].as_str().map(|at| second(at).to_owned() + "Z"));
    line("Pending", generation("Pending"));
    line("Current", generation("Current"));
    line("Previous", generation("Previous"));
    line("Restart", names("RebootRequestedBy").map(|by| format!("asked for by {by}")));
    line("Quarantined", names("Quarantined"));
    line("Notify", names("Owed"));
    line("Flapping", names("Flapping"));
    line("Not watched", names("NotWatched"));
    let progress = &answer["Progress"];
    line("Progress", progress["Settled"].as_u64().map(|settled| format!("{settled} of {}", progress["Instances"])));
    line("Last job", answer["Job"].as_object().map(|_| last_job(&answer["Job"])));
    lines.iter().fold(String::new(), |all, (name, value)| all + &format!("{name:<12} {value}\n"))
}

fn last_job(job: &Json) -> String {
    let counts = format!("{} of {} not in the desired state", job["NumberNotInDesiredState"], job["NumberOfResources"]);
    let (kind, status) = (text(job, "Type"), text(job, "Status"));
    let at = job["EndDate"].as_str().map(|at| format!(", ended {}Z", second(at))).unwrap_or_default();
    format!("{status} ({kind}, generation {}{at}): {counts}", job["Generation"])
}
