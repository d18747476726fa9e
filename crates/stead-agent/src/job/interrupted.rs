//! The journal of an interrupted job, read without its document.

use std::collections::BTreeSet;
use std::path::Path;

use stead_core::report::{Phase, Report};
use stead_host::journal::read;

use super::asks_for_restart;
use super::explain::has_left_programs;

/// The state of an interrupted job, as far as its journal shows it without the document.
#[derive(Default)]
pub(crate) struct JournalSummary {
    /// True if there is a journal: the document had been read.
    pub(crate) is_begun: bool,
    /// The instances that were being worked on, by their paths.
    pub(crate) in_flight: Vec<String>,
    /// The instances that had asked for a restart of the machine, by their paths.
    pub(crate) restart: BTreeSet<String>,
    /// The instances that left a program running, by their paths.
    pub(crate) left_running: BTreeSet<String>,
}

/// Reads the journal of an interrupted job. One that cannot be read tells nothing.
pub(crate) fn journal_summary(journal: &Path) -> JournalSummary {
    let is_begun = journal.exists();
    let Some(events) = std::fs::read(journal).ok().and_then(|bytes| read(&bytes).ok()) else {
        return JournalSummary { is_begun, ..JournalSummary::default() };
    };
    let report = Report::of(&events);
    let in_flight = report.records().iter().filter(|record| matches!(record.phase, Phase::InFlight(..)));
    JournalSummary {
        is_begun,
        in_flight: in_flight.filter_map(|record| record.instance.as_ref()).map(ToString::to_string).collect(),
        restart: asked_for_restart(&report).collect(),
        left_running: left_running(&report).collect(),
    }
}

/// The instances of which a set left a program running.
fn left_running(report: &Report) -> impl Iterator<Item = String> {
    let left = report.records().iter().filter(|record| has_left_programs(record));
    left.filter_map(|record| record.instance.as_ref()).map(ToString::to_string)
}

/// The instances that asked for a restart of the machine.
pub(super) fn asked_for_restart(report: &Report) -> impl Iterator<Item = String> {
    let asked = report.records().iter().filter(|record| record.response.as_deref().is_some_and(asks_for_restart));
    asked.filter_map(|record| record.instance.as_ref()).map(ToString::to_string)
}
