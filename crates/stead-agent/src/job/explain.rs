//! Explanations of the instances that a job did not bring into their desired state.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value as Json};
use stead_core::call::{Failure, FailureKind, Outcome};
use stead_core::document::ConfigurationMode;
use stead_core::event::{SkipReason, Status};
use stead_core::graph::{Graph, Role};
use stead_core::id::NodeId;
use stead_core::report::{Phase, Record};
use stead_core::run::Run;
use stead_engine::{Summary, json as printed};

use super::{JobSpec, ReadyDocument, is_system, mode_of};
use crate::decide::HeldBack;
use crate::mode::{Treatment, treatment};
use crate::state::{Trouble, TroubleKind};

impl JobSpec {
    /// The report of a run, with the reason for each instance that was not begun, or has drifted and was not corrected, and
    /// the problems. Of instances in their desired state only the number is kept.
    pub(super) fn explained(&self, run: &Run, restart: &BTreeSet<String>, elapsed: Duration) -> (Json, Vec<Trouble>) {
        let graph = run.graph();
        let mut troubles = Vec::new();
        let report = printed::report_with(run, &Summary::of(run), elapsed, |id, mut instance| {
            let asked = restart.contains(&graph.node(id).path.to_string());
            self.give_reason(run, id, asked, &mut instance);
            if graph.node(id).role == Role::Instance {
                troubles.extend(trouble(run, id, asked, &instance));
            }
            let status = instance.get("status").and_then(Json::as_str);
            (!matches!(status, Some("unchanged" | "skippedByCondition"))).then_some(instance)
        });
        (report, troubles)
    }

    /// The problems of a job over all of a restored document with what newer ones made. A job over a part does not look for that.
    pub(super) fn not_restored(&self, ready: &ReadyDocument) -> Vec<Trouble> {
        let left = ready.prepared.not_restored_yet().filter(|_| self.job.only.is_empty());
        let trouble =
            |(what, why): (&str, String)| Trouble::new(what.to_owned(), TroubleKind::Failed, &why, Timestamp::now());
        left.map(trouble).collect()
    }

    fn give_reason(&self, run: &Run, id: NodeId, asked: bool, printed: &mut Map<String, Json>) {
        let record = run.report().record(id);
        let mut insert = |name: &str, text: &str| printed.insert(name.to_owned(), text.into());
        match record.status() {
            Some(Status::Drifted | Status::Undetermined) => {
                drop(self.not_corrected(run.graph(), id).map(|why| insert("notCorrected", why)));
            }
            _ if asked && let Some(failure) = failed_call(record) => {
                insert("status", "failed");
                insert("message", &format!("{}; it asks for a restart of the machine", failure.message));
            }
            _ if asked => {
                insert("status", "changed");
                insert("message", ASKED_FOR_RESTART);
            }
            None if has_failed_so_far(run, id) => {
                insert("status", "failed");
                insert("message", &failure_so_far(record).unwrap_or_default());
            }
            None => drop(self.suspension.because().map(|because| insert("message", because.clause()))),
            Some(_) => {}
        }
    }

    fn not_corrected(&self, graph: &Graph, id: NodeId) -> Option<&'static str> {
        let mode = mode_of(graph, id).unwrap_or(self.rules.mode);
        match treatment(self.rules.standing, mode) {
            Treatment::Test => Some(match mode {
                ConfigurationMode::MonitorOnly => "its mode is MonitorOnly",
                _ => "its mode is ApplyAndMonitor",
            }),
            Treatment::Set | Treatment::Skip => self.held_back.map(HeldBack::clause),
        }
    }
}

/// The message of an instance that requires a restart of the machine.
const ASKED_FOR_RESTART: &str = "it was set, and asks for a restart of the machine";

/// Returns the problem of an instance, if it has one. As in the Local Configuration Manager, an instance that was not
/// processed has none.
fn trouble(run: &Run, id: NodeId, asked: bool, printed: &Map<String, Json>) -> Option<Trouble> {
    let text = |name: &str| printed.get(name).and_then(Json::as_str).unwrap_or_default();
    let kind = match run.report().status(id) {
        _ if asked => TroubleKind::Restart,
        None if has_failed_so_far(run, id) => TroubleKind::Failed,
        Some(Status::Failed) if has_left_programs(run.report().record(id)) => TroubleKind::Withheld,
        Some(Status::Failed) => TroubleKind::Failed,
        Some(Status::Pending) => TroubleKind::Pending,
        Some(Status::Drifted | Status::Unknown(_) | Status::Undetermined) => TroubleKind::Drifted,
        Some(Status::Skipped(SkipReason::Quarantined)) => TroubleKind::Quarantined,
        Some(Status::Skipped(SkipReason::Withheld)) => TroubleKind::Withheld,
        _ => return None,
    };
    let message = match kind {
        TroubleKind::Drifted => drift(printed),
        _ => text("message").to_owned(),
    };
    Some(Trouble::new(run.graph().node(id).path.to_string(), kind, &message, Timestamp::now()))
}

/// Returns whether it left programs running, which were ended: its next test may find a state that is none.
pub(super) fn has_left_programs(record: &Record) -> bool {
    record.failure().is_some_and(|failure| failure.kind == FailureKind::LeftBehind)
}

/// In what an instance has drifted, and why it was not corrected.
fn drift(printed: &Map<String, Json>) -> String {
    let list = |name: &str| printed.get(name).and_then(Json::as_array).into_iter().flatten();
    let words = list("drift").filter_map(Json::as_str).map(str::to_owned);
    let paths = list("changes")
        .filter_map(|change| change["path"].as_str())
        .map(|path| path.trim_start_matches('/').to_owned());
    let mut what: Vec<String> = words.collect();
    if what.is_empty() {
        what = paths.collect();
    }
    if what.is_empty() {
        what.extend(printed.get("message").and_then(Json::as_str).map(str::to_owned));
    }
    let why = printed.get("notCorrected").and_then(Json::as_str);
    match (what.is_empty(), why) {
        (false, Some(why)) => format!("{}; {why}", what.join(", ")),
        (false, None) => what.join(", "),
        (true, why) => why.unwrap_or_default().to_owned(),
    }
}

/// Returns whether an instance had failed and was waiting to be tried again when the run was suspended.
pub(super) fn has_failed_so_far(run: &Run, id: NodeId) -> bool {
    let record = run.report().record(id);
    let asked = record.response.as_ref().is_some_and(|response| response.restarts.iter().any(is_system));
    run.report().suspended && matches!(record.phase, Phase::BackingOff(_)) && !asked && failure_so_far(record).is_some()
}

/// The failure of its last call.
fn failed_call(record: &Record) -> Option<&Failure> {
    match &record.response.as_ref()?.outcome {
        Outcome::Failed(failure) => Some(failure),
        _ => None,
    }
}

fn failure_so_far(record: &Record) -> Option<String> {
    record.response.as_ref()?.outcome.why_not_reached()
}
