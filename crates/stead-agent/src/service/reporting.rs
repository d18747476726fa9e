//! Reports that are sent to a web server: each is posted until the server has it.

use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stead_engine::error_chain;
use stead_resources::exchange::{ExchangeClient, ExchangeRequest};
use stead_resources::transfer::retry_after;
use stead_system::folder::Folder;

use super::Agent;
use super::jobs::random_part;
use super::releases::wait_for_source;
use crate::control::{Offline, ReportingStatus, SignReports, SignedReport, SignedReports};
use crate::follow::FetchError;

/// The folder of what is kept about it, and its file.
const FOLDER: &str = "reporting";
const FILE: &str = "sent.json";

/// How many reports are signed at once.
const AT_ONCE: usize = 20;

/// How long one may take, and how much of an answer is read.
const PATIENCE: Duration = Duration::from_mins(2);
const LONGEST_ANSWER: u64 = 64 << 10;

/// As long as there is nothing to send.
const NOTHING_TO_SEND: Duration = Duration::from_hours(24);

/// How far reports were sent.
///
/// Caveats: one whose answer was lost is sent again. It has the same name and the same content.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Sent {
    /// The address that they were sent to.
    to: String,
    /// The number of the first that was not.
    next: u64,
}

impl Sent {
    /// What is known of an address: of another one nothing is.
    fn to(directory: &Path, address: &str) -> Result<(Folder, Self), FetchError> {
        let folder = Folder::create(&directory.join(FOLDER)).map_err(|error| FetchError::new(error_chain(&error)))?;
        let kept = folder.read(FILE).map_err(|error| FetchError::new(error_chain(&error)))?;
        let kept: Self = kept.and_then(|kept| serde_json::from_slice(&kept).ok()).unwrap_or_default();
        let known = if kept.to == address { kept } else { Self { to: address.to_owned(), next: 0 } };
        Ok((folder, known))
    }

    fn keep(&self, folder: &Folder) -> Result<(), FetchError> {
        let kept = serde_json::to_vec(self).map_err(|error| FetchError::new(error.to_string()))?;
        folder.replace(FILE, &kept).map_err(|error| FetchError::new(error_chain(&error)))
    }
}

/// Posts a report. It is sent once the server says so, whatever it does with it.
fn post(client: &ExchangeClient, to: &str, report: &SignedReport) -> Result<(), FetchError> {
    let headers = [
        ("content-type", "text/plain; charset=utf-8".to_owned()),
        // Whoever gets it twice knows by this that it is one.
        ("idempotency-key", format!("\"{}\"", report.name)),
    ];
    let body = report.text.as_bytes();
    let (patience, longest) = (PATIENCE, LONGEST_ANSWER);
    let answer = client.ask(&ExchangeRequest { method: "POST", url: to, headers: &headers, body, patience, longest });
    let answer = answer.map_err(|why| FetchError::new(format!("'{}' is not taken: {why}", report.name)))?;
    if (200..300).contains(&answer.status) {
        return Ok(());
    }
    let again = answer.header("retry-after").and_then(retry_after);
    let until = again.map(|again| Timestamp::now().checked_add(again).unwrap_or(Timestamp::MAX));
    let reason = format!("'{}' is not taken: the server answered {}", report.name, answer.status);
    Err(FetchError { reason, until })
}

impl Agent {
    /// Sends reports where the settings say, as they come, until the agent is to end.
    pub(super) fn post_reports(&self) {
        let mut failures = 0_u32;
        let mut inner = self.lock();
        while !inner.stopping {
            inner.reporting.look = false;
            let (to, jobs) = (inner.state.settings.report_url.clone(), inner.jobs);
            drop(inner);
            let sent = to.as_ref().map(|to| self.send_reports(to));
            inner = self.lock();
            failures = if matches!(sent, Some(Err(_))) { failures.saturating_add(1) } else { 0 };
            let pause = match &sent {
                Some(Err(error)) => wait_for_source(failures, error.until, Timestamp::now(), random_part()),
                _ => NOTHING_TO_SEND,
            };
            let failure = sent.and_then(Result::err).map(|error| error.reason);
            inner.reporting.note(to.clone(), failure, self);
            // A server that does not take them is left alone, whatever is reported meanwhile.
            let is_left_alone = failures > 0;
            let waited = self.changed.wait_timeout_while(inner, pause, |inner| {
                let is_as_before = inner.state.settings.report_url == to && !inner.reporting.look;
                is_as_before && !inner.stopping && (is_left_alone || inner.jobs == jobs)
            });
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends all reports that were not sent to this address, the oldest first.
    fn send_reports(&self, to: &str) -> Result<(), FetchError> {
        let client = ExchangeClient::new(None).map_err(FetchError::new)?;
        let (folder, mut sent) = Sent::to(&self.directory, to)?;
        loop {
            let question = SignReports { after: sent.next, most: AT_ONCE };
            let SignedReports { reports, next } =
                self.sign_reports(question).map_err(|refused| FetchError::new(refused.message))?;
            if next == sent.next {
                return Ok(());
            }
            for report in &reports {
                if self.is_sent_elsewhere(to) {
                    return Ok(());
                }
                post(&client, to, report)?;
                sent.next = report.number + 1;
                sent.keep(&folder)?;
            }
            sent.next = next;
            sent.keep(&folder)?;
        }
    }

    /// True if the settings name another address meanwhile, or the agent is to end.
    fn is_sent_elsewhere(&self, to: &str) -> bool {
        let inner = self.lock();
        inner.stopping || inner.state.settings.report_url.as_deref() != Some(to)
    }
}

/// How sending goes.
#[derive(Clone, Default)]
pub(super) struct Reporting {
    /// True if what is not sent is to be sent at once.
    pub(super) look: bool,
    to: Option<String>,
    away: Option<Offline>,
}

impl Reporting {
    /// Its status; `None` where no reports are sent.
    pub(super) fn status(&self) -> Option<ReportingStatus> {
        self.to.clone().map(|to| ReportingStatus { to, away: self.away.clone() })
    }

    /// Notes how it went, and logs what is other than before.
    fn note(&mut self, to: Option<String>, failure: Option<String>, agent: &Agent) {
        match (&self.away, &failure) {
            (None, Some(failure)) => agent.log.write("reportsNotTaken", json!({ "to": to, "failure": failure })),
            (Some(_), None) => agent.log.write("reportsTaken", json!({ "to": to })),
            _ => {}
        }
        let since = self.away.as_ref().map_or_else(Timestamp::now, |away| away.since);
        (self.to, self.away) = (to, failure.map(|reason| Offline { since, reason }));
    }
}
