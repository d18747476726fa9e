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
        (Some(true), _) if text(answer, "outcome") == "none" => "not converged: no document was delivered\n".to_owned(),
        (Some(true), _) if text(answer, "outcome") == "removed" => "not converged: it was removed\n".to_owned(),
        (Some(true), _) => match answer["waitingFor"].as_str() {
            Some(why) => format!("not converged: {}{}\n", attempts(answer, why), next_attempt(&answer["nextAttempt"])),
            None => format!("not converged: the last job ended as {result}; 'stead agent status' says more\n"),
        },
        _ => "still running\n".to_owned(),
    }
}

/// Says how many attempts failed, or `why` the agent waits if that is not counted.
fn attempts(answer: &Json, why: &str) -> String {
    match answer["failures"].as_u64() {
        Some(1) => "1 attempt failed".to_owned(),
        Some(failures) => format!("{failures} attempts failed"),
        None => why.to_owned(),
    }
}

fn next_attempt(at: &Json) -> String {
    at.as_str().map(|at| format!("; next attempt {}Z", second(at))).unwrap_or_default()
}

/// Describes events since the last request: jobs that found problems, and waits of a job.
pub(super) fn happened(answer: &Json) -> String {
    let mut out = String::new();
    for event in items(answer, "events") {
        match text(event, "event") {
            "waiting" => _ = writeln!(out, "generation {}: waiting for {}", event["generation"], text(event, "for")),
            "jobEnded" if text(event, "result") != "converged" => {
                let counts =
                    format!("{} of {} not in the desired state", event["notInDesiredState"], event["instances"]);
                let error = event["error"].as_str();
                let _ = writeln!(out, "generation {}: {}", event["generation"], error.unwrap_or(&counts));
                out.extend(items(event, "troubles").map(|it| format!("  {}\n", trouble(it))));
            }
            _ => {}
        }
    }
    out
}

/// An instance that is not in its desired state, in a line.
fn trouble(trouble: &Json) -> String {
    let message = match text(trouble, "message") {
        "" => String::new(),
        message => format!(": {message}"),
    };
    format!("{} {}{message}", text(trouble, "kind"), text(trouble, "instance"))
}

pub(super) fn acknowledged(answer: &Json) -> String {
    format!("damage reports cleared: {}\n", answer["forgotten"])
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
    let mut out = diff.unified_diff().header(&name(from), &name(to)).to_string();
    items(answer, "parameters").for_each(|parameter| out.extend(changed_parameter(parameter)));
    items(answer, "files").for_each(|file| out.push_str(&changed_file(file)));
    if out.is_empty() { "the documents, their parameters and their files are the same\n".to_owned() } else { out }
}

fn changed_parameter(parameter: &Json) -> Option<String> {
    let (name, change) = (text(parameter, "name"), text(parameter, "change"));
    match change {
        "unchanged" => None,
        _ if parameter["secret"] == true => Some(format!("parameter '{name}': {change}, a secret\n")),
        "changed" => Some(format!("parameter '{name}': {} -> {}\n", parameter["from"], parameter["to"])),
        "added" => Some(format!("parameter '{name}': added, {}\n", parameter["to"])),
        _ => Some(format!("parameter '{name}': {change}\n")),
    }
}

fn changed_file(file: &Json) -> String {
    let (path, change) = (text(file, "path"), text(file, "change"));
    let mut out = format!("file '{path}': {change}\n");
    if let (Some(before), Some(after)) = (file["from"]["text"].as_str(), file["to"]["text"].as_str()) {
        out += &TextDiff::from_lines(before, after).unified_diff().header(path, path).to_string();
    }
    out
}

pub(super) fn looked(answer: &Json) -> String {
    let mut out = String::new();
    for document in items(answer, "documents") {
        let report = &document["report"];
        for instance in items(report, "instances") {
            let status = text(instance, "status");
            if matches!(status, "drifted" | "failed" | "skipped") {
                let message = message(instance, "message");
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

/// Returns the message about an instance behind a colon, without the status that it may begin with; empty if nothing is left.
fn message(instance: &Json, name: &str) -> String {
    let status = text(instance, "status");
    let message = text(instance, name);
    let rest = message.strip_prefix(status).map_or(message, str::trim_start);
    if rest.is_empty() { String::new() } else { format!(": {rest}") }
}

pub(super) fn reports(answer: &Json) -> String {
    let rows = items(answer, "reports").map(|each| {
        let (report, job) = (&each["report"], &each["report"]["job"]);
        let number = job["generation"].to_string();
        let (ended, counted) = (second(text(each, "at")).to_owned() + "Z", counts(report));
        let cells = [&*ended, &*number, text(job, "kind"), text(report, "result"), &*counted, text(each, "job")];
        cells.map(str::to_owned).to_vec()
    });
    table(
        &["Ended", "Generation", "Type", "Result", "Instances", "Job"],
        &rows.collect::<Vec<_>>(),
        terminal_width(std::io::stdout()),
    )
}

/// How many instances ended how, in words.
fn counts(report: &Json) -> String {
    let totals = &report["totals"];
    let names = ["changed", "unchanged", "drifted", "failed", "pending", "skipped", "unknown"];
    let counted = names.into_iter().filter(|name| totals[name].as_u64().is_some_and(|count| count > 0));
    let counted: Vec<String> = counted.map(|name| format!("{} {name}", totals[name])).collect();
    counted.join(", ")
}

pub(super) fn report(report: &Json) -> String {
    let job = &report["job"];
    let mut out = String::new();
    let mut line = |name: &str, value: &str| _ = writeln!(out, "{name:<12} {value}");
    line("Job", text(job, "id"));
    line("Generation", &format!("{} ({}, {})", job["generation"], text(job, "kind"), text(job, "work")));
    line("Began", &format!("{}Z", second(text(job, "began"))));
    line("Result", text(report, "result"));
    line("Instances", &counts(report));
    items(report, "errors").filter_map(Json::as_str).for_each(|error| line("Error", error));
    for instance in items(report, "instances") {
        let name = if instance["message"].is_string() { "message" } else { "notCorrected" };
        let why = message(instance, name);
        let status = text(instance, "status");
        let _ = writeln!(out, "{status:<12} {} {}{why}", text(instance, "type"), text(instance, "name"));
    }
    out
}

/// The one screen that says where things stand. What does not apply has no line.
pub(super) fn status(answer: &Json) -> String {
    let mut lines = vec![("State", format!("{}: {}", text(answer, "LCMState"), text(answer, "LCMStateDetail")))];
    let mut line = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    let names = |name: &str| {
        let all: Vec<&str> = items(answer, name).filter_map(Json::as_str).collect();
        (!all.is_empty()).then(|| all.join(", "))
    };
    line("Next", answer["NextAttempt"].as_str().map(|at| second(at).to_owned() + "Z"));
    let progress = &answer["Progress"];
    let known = progress["Instances"].as_u64().is_some_and(|instances| instances > 0);
    line(
        "Progress",
        progress["Settled"].as_u64().filter(|_| known).map(|settled| format!("{settled} of {}", progress["Instances"])),
    );
    items(answer, "Troubles").for_each(|each| line("", Some(since(each))));
    for stage in items(answer, "Stages") {
        line(stage_name(stage), Some(staged_document(stage)));
        line("", stage["Error"].as_str().map(str::to_owned));
        items(stage, "Troubles").for_each(|each| line("", Some(since(each))));
    }
    line("Restart", names("RebootRequestedBy").map(|by| format!("asked for by {by}")));
    line("Quarantined", names("Quarantined"));
    line("Notify", names("Owed"));
    line("Flapping", names("Flapping"));
    line(
        "Postponed",
        names("Postponed").map(|names| format!("{names} changed too often; checked again within a minute")),
    );
    line("Not watched", names("NotWatched"));
    line("Not saved", answer["NotSaved"].as_str().map(|why| format!("{why}; nothing is begun until it is")));
    for note in items(answer, "Damage") {
        line("Damage", Some(format!("{}Z: {}", second(text(note, "at")), text(note, "message"))));
    }
    let replaced = answer["ProgramReplaced"].as_bool() == Some(true);
    line(
        "Program",
        replaced.then(|| format!("{} was replaced; restart the agent to use the new one", text(answer, "Version"))),
    );
    let watched = &answer["Watched"];
    let any = watched["Instances"].as_u64().is_some_and(|instances| instances > 0);
    line("Watched", any.then(|| format!("{} of {} instances", watched["Watched"], watched["Instances"])));
    line("Last job", answer["Job"].as_object().map(|_| last_job(&answer["Job"])));
    lines.iter().fold(String::new(), |all, (name, value)| all + &format!("{name:<12} {value}\n"))
}

fn stage_name(stage: &Json) -> &'static str {
    match text(stage, "Stage") {
        "pending" => "Pending",
        "current" => "Current",
        _ => "Previous",
    }
}

/// A document that is staged: where it came from, since when, by whom.
fn staged_document(stage: &Json) -> String {
    let user = match stage["DeliveredBy"].as_u64() {
        Some(0) => "root".to_owned(),
        user => format!("user {}", user.unwrap_or_default()),
    };
    let (what, at) = match stage["Converged"].as_str() {
        Some(at) => ("converged", at),
        None => ("delivered", text(stage, "Accepted")),
    };
    format!("generation {} from {} (by {user}), {what} {}Z", stage["Generation"], text(stage, "Origin"), second(at))
}

fn since(each: &Json) -> String {
    format!("{} (since {}Z)", trouble(each), second(text(each, "since")))
}

fn last_job(job: &Json) -> String {
    let (kind, status) = (text(job, "Type"), text(job, "Status"));
    let at = job["EndDate"].as_str().map(|at| format!(", ended {}Z", second(at))).unwrap_or_default();
    let counts = match job["NumberOfResources"].as_u64() {
        Some(0) | None => String::new(),
        Some(all) => format!(": {} of {all} not in the desired state", job["NumberNotInDesiredState"]),
    };
    format!("{status} ({kind}, generation {}{at}){counts}", job["Generation"])
}
