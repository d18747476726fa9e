//! Reports that are sent to a web server: each is posted until the server has it.

use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stead_engine::error_chain;
use stead_protocol::LeftOut;
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

/// How many reports that are not taken wait beside those that come.
const MOST_ASIDE: usize = 8;
/// How often one of them is sent while others are taken: if the server says that the request is wrong, and if it says anything else.
const TRIES: u32 = 3;
const MOST_TRIES: u32 = 20;

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
    /// The number from which on one is tried while no more can wait aside.
    behind: u64,
    /// Those before it that are not taken, and are tried again.
    aside: Vec<Aside>,
    /// Those that are not tried any more.
    left_out: Option<LeftOut>,
}

/// A report that is not taken.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Aside {
    number: u64,
    /// How often others were taken when it was not.
    tries: u32,
    /// The last answer.
    status: u16,
    why: String,
}

/// One pass over what an address does not have.
struct Pass<'a> {
    agent: &'a Agent,
    to: &'a str,
    client: ExchangeClient,
    folder: Folder,
    sent: Sent,
    is_any_taken: bool,
    /// Why the last one was not taken that was not.
    failure: Option<FetchError>,
}

/// Why a report was not taken.
enum NotTaken {
    /// The server answered so.
    Answered(u16, FetchError),
    /// There was no answer.
    Away(FetchError),
}

impl Sent {
    /// What is known of an address: of another one nothing is.
    fn to(directory: &Path, address: &str) -> Result<(Folder, Self), FetchError> {
        let folder = Folder::create(&directory.join(FOLDER)).map_err(|error| FetchError::new(error_chain(&error)))?;
        let kept = folder.read(FILE).map_err(|error| FetchError::new(error_chain(&error)))?;
        let kept: Self = kept.and_then(|kept| serde_json::from_slice(&kept).ok()).unwrap_or_default();
        let known = if kept.to == address { kept } else { Self { to: address.to_owned(), ..Self::default() } };
        Ok((folder, known))
    }

    fn keep(&self, folder: &Folder) -> Result<(), FetchError> {
        let kept = serde_json::to_vec(self).map_err(|error| FetchError::new(error.to_string()))?;
        folder.replace(FILE, &kept).map_err(|error| FetchError::new(error_chain(&error)))
    }

    /// Takes in that others were taken: those that are not, once more, are left out at last. Returns those that are.
    fn others_were_taken(&mut self) -> Vec<Aside> {
        for aside in &mut self.aside {
            aside.tries += 1;
        }
        let (over, aside): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.aside).into_iter().partition(|aside| aside.tries >= most_tries(aside.status));
        self.aside = aside;
        for Aside { number, why, .. } in &over {
            self.left_out.get_or_insert_default().add(*number, why);
        }
        over
    }
}

fn most_tries(status: u16) -> u32 {
    let is_verdict = (400..500).contains(&status) && !matches!(status, 401 | 407 | 408 | 429);
    if is_verdict { TRIES } else { MOST_TRIES }
}

/// Posts a report. It is sent once the server says so, whatever it does with it.
fn post(client: &ExchangeClient, to: &str, report: &SignedReport) -> Result<(), NotTaken> {
    let headers = [
        ("content-type", "text/plain; charset=utf-8".to_owned()),
        // Whoever gets it twice knows by this that it is one.
        ("idempotency-key", format!("\"{}\"", report.name)),
    ];
    let body = report.text.as_bytes();
    let (patience, longest) = (PATIENCE, LONGEST_ANSWER);
    let answer = client.ask(&ExchangeRequest { method: "POST", url: to, headers: &headers, body, patience, longest });
    let away = |why| NotTaken::Away(FetchError::new(format!("'{}' is not taken: {why}", report.name)));
    let answer = answer.map_err(away)?;
    if (200..300).contains(&answer.status) {
        return Ok(());
    }
    let again = answer.header("retry-after").and_then(retry_after);
    let until = again.map(|again| Timestamp::now().checked_add(again).unwrap_or(Timestamp::MAX));
    let reason = format!("'{}' is not taken: the server answered {}", report.name, answer.status);
    let error = FetchError { reason, until };
    // A server that wants to be left alone says nothing of the report.
    Err(if error.until.is_some() { NotTaken::Away(error) } else { NotTaken::Answered(answer.status, error) })
}

impl<'a> Pass<'a> {
    fn new(agent: &'a Agent, to: &'a str) -> Result<Self, FetchError> {
        let client = ExchangeClient::new(None).map_err(FetchError::new)?;
        let (folder, sent) = Sent::to(&agent.directory, to)?;
        Ok(Self { agent, to, client, folder, sent, is_any_taken: false, failure: None })
    }

    /// Sends all reports that were not sent, the oldest first. Returns why some are not taken, if the server answers.
    ///
    /// Guarantees: one that is never taken keeps none behind it from being sent. It is tried again, and left out once others were taken
    /// in its place: three times if the server says that the request is wrong, and twenty times if it says anything else.
    fn send(&mut self) -> Result<Option<FetchError>, FetchError> {
        self.try_aside()?;
        let is_at_end = self.send_next()?;
        if self.is_any_taken && !self.sent.aside.is_empty() {
            let over = self.sent.others_were_taken();
            self.keep()?;
            for Aside { number, why, .. } in over {
                self.agent.log.write("reportLost", json!({ "number": number, "failure": why }));
            }
        }
        Ok(self.failure.take().filter(|_| !is_at_end || !self.sent.aside.is_empty()))
    }

    /// Tries those again that are not taken.
    fn try_aside(&mut self) -> Result<(), FetchError> {
        for at in (0..self.sent.aside.len()).rev() {
            let Some(number) = self.sent.aside.get(at).map(|aside| aside.number) else { continue };
            let found = self.agent.signed(SignReports { after: number, most: 1 })?.reports.pop();
            let answer = match found.filter(|report| report.number == number) {
                Some(report) => self.post(&report)?,
                // It is not kept any more.
                None => None,
            };
            if let Some((status, why)) = answer
                && let Some(aside) = self.sent.aside.get_mut(at)
            {
                (aside.status, aside.why) = (status, why);
            } else {
                self.sent.aside.remove(at);
                self.keep()?;
            }
        }
        Ok(())
    }

    /// Sends those that were not, until there are no more, or two in a row are not taken, or one that cannot wait aside. Returns whether
    /// there are no more.
    fn send_next(&mut self) -> Result<bool, FetchError> {
        let mut was_refused = false;
        loop {
            let wanted = SignReports { after: self.sent.next, most: AT_ONCE };
            let SignedReports { reports, next } = self.agent.signed(wanted)?;
            if next == self.sent.next {
                return Ok(true);
            }
            for report in &reports {
                if self.agent.is_sent_elsewhere(self.to) {
                    return Ok(false);
                }
                let number = report.number;
                let answer = self.post(report)?;
                let is_refused = answer.is_some();
                match answer {
                    Some(_) if self.sent.aside.len() == MOST_ASIDE => {
                        self.try_behind(number + 1)?;
                        return Ok(false);
                    }
                    Some(_) if was_refused => return Ok(false),
                    Some((status, why)) => self.sent.aside.push(Aside { number, tries: 0, status, why }),
                    None => {}
                }
                was_refused = is_refused;
                self.sent.next = number + 1;
                self.keep()?;
            }
            self.sent.next = next;
            self.keep()?;
        }
    }

    /// Tries one of those from a number on, which stay where they are: if it is taken, the others are to blame. Each pass tries the next
    /// one, since it may be another of them; behind the last it is the first again.
    fn try_behind(&mut self, first: u64) -> Result<(), FetchError> {
        let after = self.sent.behind.max(first);
        let SignedReports { reports, next } = self.agent.signed(SignReports { after, most: 1 })?;
        if let Some(report) = reports.first() {
            self.post(report)?;
        }
        self.sent.behind = if next > after { next } else { 0 };
        self.keep()
    }

    /// Posts a report. Returns what the server answered if it does not take it.
    fn post(&mut self, report: &SignedReport) -> Result<Option<(u16, String)>, FetchError> {
        match post(&self.client, self.to, report) {
            Ok(()) => {
                self.is_any_taken = true;
                Ok(None)
            }
            Err(NotTaken::Away(error)) => Err(error),
            Err(NotTaken::Answered(status, error)) => {
                let why = error.reason.clone();
                self.failure = Some(error);
                Ok(Some((status, why)))
            }
        }
    }

    fn keep(&self) -> Result<(), FetchError> {
        self.sent.keep(&self.folder)
    }
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
            let mut left_out = None;
            let sent = to.as_ref().map(|to| {
                let mut pass = Pass::new(self, to)?;
                let outcome = pass.send();
                left_out = pass.sent.left_out;
                outcome
            });
            inner = self.lock();
            failures = if matches!(sent, Some(Err(_) | Ok(Some(_)))) { failures.saturating_add(1) } else { 0 };
            // A server that does not answer is left alone, whatever is reported meanwhile.
            let is_left_alone = matches!(sent, Some(Err(_)));
            let failure = sent.and_then(|sent| sent.unwrap_or_else(Some));
            let pause = match &failure {
                Some(error) => wait_for_source(failures, error.until, Timestamp::now(), random_part()),
                None => NOTHING_TO_SEND,
            };
            inner.reporting.left_out = left_out;
            inner.reporting.note(to.clone(), failure.map(|error| error.reason), self);
            let waited = self.changed.wait_timeout_while(inner, pause, |inner| {
                let is_as_before = inner.state.settings.report_url == to && !inner.reporting.look;
                is_as_before && !inner.stopping && (is_left_alone || inner.jobs == jobs)
            });
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn signed(&self, question: SignReports) -> Result<SignedReports, FetchError> {
        self.sign_reports(question).map_err(|refused| FetchError::new(refused.message))
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
    left_out: Option<LeftOut>,
}

impl Reporting {
    /// Its status; `None` where no reports are sent.
    pub(super) fn status(&self) -> Option<ReportingStatus> {
        self.to.clone().map(|to| ReportingStatus {
            to,
            away: self.away.clone(),
            left_out: self.left_out.clone().map(Into::into),
        })
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
