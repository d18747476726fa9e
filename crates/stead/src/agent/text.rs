//! Answers of an agent, for users.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;
use similar::TextDiff;
use stead_agent::control::{
    Acknowledged, Affected, AgentStatus, Changed, ChangedFile, ChangedParameter, Compared, Comparison,
    ControllerStanding, ControllerStatus, Happened, History, Inspected, InstanceReport, JobReport, LeftOutReports,
    Listing, LogLines, MachineStatus, Offline, ReleaseStatus, ReportingStatus, SettingsNow, Staged, Stopping,
    Unfollowed, WaitOutcome, Waited,
};
use stead_agent::{Followed, JobResult, JobStatus, Stage, StageStatus, StagedRelease, Trouble};
use stead_core::report::Totals;

use crate::terminal::{self, table};

/// The word for something that has one in JSON.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A time without its fraction of a second.
fn second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(super) fn staged(answer: &Staged) -> String {
    format!("generation {} is staged as pending\n", answer.generation)
}

pub(super) fn removed(answer: &Affected) -> String {
    format!("generation {} was removed\n", answer.generation)
}

pub(super) fn followed(answer: &Followed) -> String {
    let Followed { source, root, machine, .. } = answer;
    format!(
        "'{source}' is followed as '{machine}', from the root statement {root} on; 'stead agent status' shows the release\n"
    )
}

pub(super) fn unfollowed(answer: &Unfollowed) -> String {
    format!("'{}' is not followed any more; what is staged stays\n", answer.source)
}

pub(super) fn stopped(answer: &Stopping) -> String {
    match &answer.job {
        Some(job) => format!("job {job} is ending\n"),
        None => format!("generation {} is not tried again until it is asked for\n", answer.generation),
    }
}

pub(super) fn settings(answer: &SettingsNow) -> String {
    answer.settings.clone()
}

pub(super) fn lines(answer: &LogLines) -> String {
    answer.lines.iter().fold(String::new(), |all, line| all + line + "\n")
}

pub(super) fn waited(answer: &Waited) -> String {
    if !answer.done {
        return "still running\n".to_owned();
    }
    match answer.outcome {
        _ if answer.converged => "converged\n".to_owned(),
        Some(WaitOutcome::Superseded) => "not converged: another document took its place\n".to_owned(),
        Some(WaitOutcome::None) => "not converged: no document was delivered\n".to_owned(),
        Some(WaitOutcome::Removed) => "not converged: it was removed\n".to_owned(),
        _ => not_converged(answer),
    }
}

fn not_converged(answer: &Waited) -> String {
    if let Some(why) = &answer.waiting_for {
        let next = answer.next_attempt.map(|at| format!("; next attempt {}", second(at))).unwrap_or_default();
        return format!("not converged: {}{next}\n", attempts(answer.failures, why));
    }
    let result = answer.last.as_ref().map(|last| word(&last.result)).unwrap_or_default();
    format!("not converged: the last job ended as {result}; 'stead agent status' says more\n")
}

/// Says how many attempts failed, or `why` the agent waits if that is not counted.
fn attempts(failures: Option<u32>, why: &str) -> String {
    match failures {
        Some(1) => "1 attempt failed".to_owned(),
        Some(failures) => format!("{failures} attempts failed"),
        None => why.to_owned(),
    }
}

/// Describes events since the last request: jobs that found problems, and waits of a job.
pub(super) fn happened(answer: &Waited) -> String {
    let mut out = String::new();
    for event in &answer.events {
        match event {
            Happened::Waiting { generation, whom, .. } => {
                let _ = writeln!(out, "generation {generation}: waiting for {whom}");
            }
            Happened::JobEnded { result: JobResult::Converged, .. } => {}
            Happened::JobEnded { generation, instances, not_in_desired_state, troubles, error, .. } => {
                let counts = format!("{not_in_desired_state} of {instances} not in the desired state");
                let _ = writeln!(out, "generation {generation}: {}", error.as_ref().unwrap_or(&counts));
                out.extend(troubles.iter().map(|it| format!("  {}\n", trouble(it))));
            }
        }
    }
    out
}

/// An instance that is not in its desired state, in a line.
fn trouble(trouble: &Trouble) -> String {
    let message = if trouble.message.is_empty() { String::new() } else { format!(": {}", trouble.message) };
    format!("{} {}{message}", trouble.kind.as_str(), trouble.instance)
}

pub(super) fn acknowledged(answer: &Acknowledged) -> String {
    format!("damage reports cleared: {}\n", answer.forgotten)
}

pub(super) fn history(answer: &History) -> String {
    let rows = answer.generations.iter().map(|each| {
        let stage = each.stage.map(|stage| word(&stage)).or(each.ended.map(|ended| word(&ended)));
        let time = |at: Timestamp| second(at).trim_end_matches('Z').to_owned();
        vec![
            each.generation.to_string(),
            stage.unwrap_or_else(|| "-".to_owned()),
            time(each.accepted),
            each.converged.map_or_else(|| "-".to_owned(), time),
            each.origin.clone(),
        ]
    });
    table(
        &["Generation", "Stage", "Accepted", "Converged", "Origin"],
        &rows.collect::<Vec<_>>(),
        terminal::width(&std::io::stdout()),
    )
}

pub(super) fn diff(answer: &Comparison) -> String {
    let name = |side: &Compared| format!("generation {} ({})", side.generation, side.name);
    let (from, to) = (&answer.from, &answer.to);
    let diff = TextDiff::from_lines(&from.text, &to.text);
    let mut out = diff.unified_diff().header(&name(from), &name(to)).to_string();
    out.extend(answer.parameters.iter().filter_map(changed_parameter));
    out.extend(answer.files.iter().map(changed_file));
    if out.is_empty() { "the documents, their parameters and their files are the same\n".to_owned() } else { out }
}

fn changed_parameter(parameter: &ChangedParameter) -> Option<String> {
    let (name, change) = (&parameter.name, parameter.change);
    let [from, to] = match &parameter.values {
        Some(values) => [&values.from, &values.to].map(|value| value.clone().unwrap_or_default()),
        None => Default::default(),
    };
    match change {
        Changed::Unchanged => None,
        _ if parameter.secret => Some(format!("parameter '{name}': {change}, a secret\n")),
        Changed::Changed => Some(format!("parameter '{name}': {from} -> {to}\n")),
        Changed::Added => Some(format!("parameter '{name}': added, {to}\n")),
        Changed::Removed => Some(format!("parameter '{name}': removed\n")),
    }
}

fn changed_file(file: &ChangedFile) -> String {
    let path = &file.path;
    let mut out = format!("file '{path}': {}\n", file.change);
    let text = |side: &'_ Option<stead_agent::control::ComparedFile>| side.clone()?.content?.text;
    if let (Some(before), Some(after)) = (text(&file.from), text(&file.to)) {
        out += &TextDiff::from_lines(&before, &after).unified_diff().header(path, path).to_string();
    }
    out
}

pub(super) fn looked(answer: &Inspected) -> String {
    let mut out = String::new();
    for document in &answer.documents {
        let report = &document.report.read;
        for instance in &report.instances {
            if matches!(instance.status.as_str(), "drifted" | "unknown" | "failed" | "skipped") {
                let InstanceReport { type_name, name, status, message, .. } = instance;
                let message = behind_status(status, message.as_deref());
                let _ = writeln!(out, "  {status}: {type_name} {name}{message}");
            }
        }
        let totals = &report.totals;
        let counts = counted([
            (totals.unchanged, "in the desired state"),
            (totals.drifted, "drifted"),
            (totals.unknown, "unknown"),
            (totals.failed, "failed"),
            (totals.skipped, "skipped"),
        ]);
        let _ = writeln!(out, "{} (generation {}): {counts}", document.stage.as_str(), document.generation);
    }
    out
}

/// Returns the message about an instance behind a colon, without the status that it may begin with; empty if nothing is left.
fn behind_status(status: &str, message: Option<&str>) -> String {
    let message = message.unwrap_or_default();
    let rest = message.strip_prefix(status).map_or(message, str::trim_start);
    if rest.is_empty() { String::new() } else { format!(": {rest}") }
}

pub(super) fn reports(answer: &Listing) -> String {
    let rows = answer.reports.iter().map(|each| {
        let report = &each.report.read;
        vec![
            second(each.at),
            report.job.generation.to_string(),
            word(&report.job.kind),
            word(&report.result),
            all_counts(&report.totals),
            each.job.clone(),
        ]
    });
    table(
        &["Ended", "Generation", "Type", "Result", "Instances", "Job"],
        &rows.collect::<Vec<_>>(),
        terminal::width(&std::io::stdout()),
    )
}

/// How many instances ended how, in words.
fn all_counts(totals: &Totals) -> String {
    counted([
        (totals.changed, "changed"),
        (totals.unchanged, "unchanged"),
        (totals.drifted, "drifted"),
        (totals.failed, "failed"),
        (totals.pending, "pending"),
        (totals.skipped, "skipped"),
        (totals.unknown, "unknown"),
    ])
}

fn counted<const N: usize>(counts: [(usize, &str); N]) -> String {
    let counted = counts.into_iter().filter(|(count, _)| *count > 0);
    counted.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

pub(super) fn report(report: &JobReport) -> String {
    let job = &report.job;
    let mut out = String::new();
    let mut line = |name: &str, value: &str| _ = writeln!(out, "{name:<12} {value}");
    line("Job", &job.id);
    line("Generation", &format!("{} ({}, {})", job.generation, word(&job.kind), word(&job.work)));
    line("Began", &second(job.began));
    if let Some(labels) = labels(&report.machine) {
        line("Labels", &labels);
    }
    line("Result", &word(&report.result));
    line("Instances", &all_counts(&report.totals));
    report.errors.iter().for_each(|error| line("Error", error));
    for InstanceReport { type_name, name, status, message, not_corrected } in &report.instances {
        let why = behind_status(status, message.as_deref().or(not_corrected.as_deref()));
        let _ = writeln!(out, "{status:<12} {type_name} {name}{why}");
    }
    out
}

/// The labels of a machine, or why they cannot be used; `None` where it has none.
fn labels(machine: &MachineStatus) -> Option<String> {
    let labels = machine.labels.iter().map(|(name, label)| format!("{name}={}", label.value));
    let all: Vec<_> = labels.chain(machine.failure.clone()).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// The one screen that says where things stand. What does not apply has no line.
pub(super) fn status(answer: &AgentStatus) -> String {
    let status = &answer.status;
    let mut lines = vec![("State", format!("{}: {}", word(&status.lcm_state), status.lcm_state_detail))];
    let mut line = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    line("Labels", labels(&answer.machine));
    let names = |names: &[String]| (!names.is_empty()).then(|| names.join(", "));
    line("Next", status.next_attempt.map(second));
    let known = answer.progress.filter(|progress| progress.instances > 0);
    line("Progress", known.map(|progress| format!("{} of {}", progress.settled, progress.instances)));
    answer.troubles.iter().flatten().for_each(|each| line("", Some(since(each))));
    for stage in &status.stages {
        line(stage_name(stage.stage), Some(staged_document(stage)));
        line("", stage.error.clone());
        stage.troubles.iter().for_each(|each| line("", Some(since(each))));
    }
    line("Restart", names(&status.reboot_requested_by).map(|by| format!("asked for by {by}")));
    line("Quarantined", names(&status.quarantined));
    line("Notify", names(&status.owed));
    line("Flapping", names(&answer.flapping));
    line(
        "Postponed",
        names(&answer.postponed).map(|names| format!("{names} changed too often; checked again within a minute")),
    );
    line("Not watched", names(&answer.not_watched));
    line("Not saved", answer.not_saved.as_ref().map(|why| format!("{why}; nothing is begun until it is")));
    if let Some(source) = &answer.source {
        let code = source.code.as_ref().map_or_else(String::new, |code| format!("[{code}] "));
        let failure = source.failure.as_ref().map_or_else(String::new, |failure| format!(": {code}{failure}"));
        line("Source", Some(format!("{}{failure}", source.place)));
        if let Some(releases) = &source.releases {
            line("Release", Some(release(releases)));
            let offline = |offline: &Offline| format!("since {}: {}", second(offline.since), offline.reason);
            line("Controller", releases.controller.as_ref().map(|seen| controller(seen, &releases.machine)));
            line("Offline", releases.offline.as_ref().map(offline));
            let waiting = |file: &String| format!("for secrets: {file} is not there yet");
            line("Waiting", releases.waiting_for.as_ref().map(waiting));
            let because = releases.held_because.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            line("Held", releases.held_until.map(|until| format!("by the roster until {}{because}", second(until))));
        }
        source.findings.lines().for_each(|each| line("", Some(each.to_owned())));
    }
    if let Some(ReportingStatus { to, away, left_out: left }) = &answer.reporting {
        let away = away.as_ref().map(|away| format!("; not taken since {}: {}", second(away.since), away.reason));
        line("Reports", Some(format!("sent to {to}{}{}", away.unwrap_or_default(), left_out(left.as_ref()))));
    }
    for note in &status.damage {
        line("Damage", Some(format!("{}: {}", second(note.at), note.message)));
    }
    let replaced = || format!("{} was replaced; restart the agent to use the new one", answer.version);
    line("Program", answer.program_replaced.then(replaced));
    let watched = &answer.watched;
    let counts = || format!("{} of {} instances", watched.watched, watched.instances);
    line("Watched", (watched.instances > 0).then(counts));
    line("Last job", status.job.as_ref().map(last_job));
    lines.iter().fold(String::new(), |all, (name, value)| all + &format!("{name:<12} {value}\n"))
}

/// The release that was staged last, and as which machine of which fleet.
fn release(status: &ReleaseStatus) -> String {
    let ReleaseStatus { fleet, machine, staged, frozen, .. } = status;
    let fleet = fleet.as_deref().map_or_else(String::new, |fleet| format!(" of '{fleet}'"));
    let Some(StagedRelease { channel, number, generation, expires, .. }) = staged else {
        return format!("none yet, as '{machine}'{fleet}");
    };
    let end = if *frozen { "expired at" } else { "until" };
    let news = if *frozen { "; nothing newer came" } else { "" };
    format!("{channel} {number} (generation {generation}), {end} {}, as '{machine}'{fleet}{news}", second(*expires))
}

/// What the machine is to its controller.
fn controller(seen: &ControllerStatus, machine: &str) -> String {
    let standing = match seen.standing {
        ControllerStanding::Joining => "not joined yet".to_owned(),
        ControllerStanding::Waiting => {
            format!("waits until an operator admits it: 'stead-fleet admit {}'", stead_core::visible::visible(machine))
        }
        ControllerStanding::Admitted => "admitted".to_owned(),
        ControllerStanding::Refused => "refused".to_owned(),
    };
    let because = seen.held_because.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    let held = seen.held_until.map_or_else(String::new, |until| format!(", held until {}{because}", second(until)));
    standing + &held + &left_out(seen.left_out.as_ref())
}

/// The reports that are not taken, although others are.
fn left_out(left: Option<&LeftOutReports>) -> String {
    let Some(LeftOutReports { count, number, reason }) = left else { return String::new() };
    let reports = if *count == 1 { "1 report is".to_owned() } else { format!("{count} reports are") };
    format!("; {reports} left out, the last is {number}: {reason}")
}

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Pending => "Pending",
        Stage::Current => "Current",
        Stage::Previous => "Previous",
    }
}

/// A document that is staged: where it came from, since when, by whom.
fn staged_document(stage: &StageStatus) -> String {
    let user = match stage.delivered_by {
        0 => "root".to_owned(),
        user => format!("user {user}"),
    };
    let (what, at) = match stage.converged {
        Some(at) => ("converged", at),
        None => ("delivered", stage.accepted),
    };
    format!("generation {} from {} (by {user}), {what} {}", stage.generation, stage.origin, second(at))
}

fn since(each: &Trouble) -> String {
    format!("{} (since {})", trouble(each), second(each.since))
}

fn last_job(job: &JobStatus) -> String {
    let at = job.end_date.map(|at| format!(", ended {}", second(at))).unwrap_or_default();
    let counts = match job.number_of_resources {
        0 => String::new(),
        all => format!(": {} of {all} not in the desired state", job.number_not_in_desired_state),
    };
    format!("{} ({}, generation {}{at}){counts}", word(&job.status), word(&job.kind), job.generation)
}
