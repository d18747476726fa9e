//! The controller of a machine: two connections to it, one on which it may answer late, and what is said on them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stead_core::diag::codes::release::NOT_ADMITTED;
use stead_core::value::Sensitive;
use stead_engine::error_chain;
use stead_hosts::MachineName;
use stead_protocol::{
    Condition, DesiredAnswer, LONGEST_BODY, LONGEST_WAIT, Machine, MachineAction, MachineAnswer, MachineCall,
    MachineEvent, MachineIdentity, MachineMemory, Membership, Now, SentReport,
};
use stead_release::{MachineKeys, MachineReport};
use stead_resources::exchange::{ExchangeAnswer, ExchangeClient, ExchangeRequest};
use stead_system::folder::Folder;

use super::jobs::random_part;
use super::machine_reports::machine_report;
use super::{Agent, Inner};
use crate::control::{ControllerStanding, ControllerStatus, JobReport, MachineStatus, Offline, Refused};
use crate::follow::SourceAddress;
use crate::source::SourceFailure;
use crate::state::{Followed, JobKind, JobResult};

/// The folder of what is kept, its file, and that of the token while it is needed.
const FOLDER: &str = "controller";
const MEMORY: &str = "memory.json";
const TOKEN: &str = "token";
/// How long an answer may take, beside the time that it may be waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the condition of the machine is not looked at if nothing happens.
const STILL: Duration = Duration::from_mins(1);
/// How many reports are read at once.
const ROWS: usize = 16;

/// The state that is kept from one process to the next.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Kept {
    /// The root statement of the fleet that it is of.
    root: String,
    memory: MachineMemory,
}

/// A controller that is asked.
pub(super) struct Controller {
    url: String,
    client: ExchangeClient,
    keys: Arc<MachineKeys>,
    followed: Followed,
    folder: Folder,
    began: Instant,
    shared: Mutex<Shared>,
    woken: Condvar,
    ended: AtomicBool,
}

struct Shared {
    machine: Machine,
    /// What is to be sent, on the connection that waits and on the other one.
    calls: [VecDeque<MachineCall>; 2],
    /// The newest answer, whose releases are looked at.
    newest: Option<DesiredAnswer>,
    /// True while the machine is to be said how a look ended.
    looks: bool,
    /// Since when there is no answer.
    away: Option<Timestamp>,
}

/// Notes what a machine joins with, before it is followed.
pub(super) fn prepare(agent: &Agent, followed: &Followed, token: Option<&Sensitive<String>>) -> Result<(), Refused> {
    let failed = |error| Refused::new(error_chain(&error));
    machine_name(followed)?;
    client(followed)?;
    let folder = Folder::create(&agent.directory.join(FOLDER)).map_err(failed)?;
    let former = kept(&folder)?;
    let root = followed.root.to_string();
    let is_known = former.root == root;
    let memory =
        MachineMemory { joined: false, ..if is_known { former.memory.clone() } else { MachineMemory::default() } };
    // Numbers go on: they belong to the keys of the machine.
    let memory = MachineMemory { reserved: former.memory.reserved, ..memory };
    keep(&folder, &Kept { root, memory }).map_err(Refused::new)?;
    match token {
        Some(token) => folder.replace(TOKEN, token.expose().as_bytes()).map_err(failed),
        None => folder.remove(TOKEN).map_err(failed),
    }
}

fn machine_name(followed: &Followed) -> Result<MachineName, Refused> {
    MachineName::parse(&followed.machine)
        .map_err(|why| Refused::new(format!("'{}' is not a name of a machine: {why}", followed.machine)))
}

fn client(followed: &Followed) -> Result<ExchangeClient, Refused> {
    let certificates = followed.joining.as_ref().and_then(|joining| joining.certificates.as_deref());
    ExchangeClient::new(certificates).map_err(|why| Refused::new(format!("the certificates cannot be used: {why}")))
}

fn kept(folder: &Folder) -> Result<Kept, Refused> {
    let text = folder.read(MEMORY).map_err(|error| Refused::new(error_chain(&error)))?;
    // Whatever is lost of it costs requests, and nothing else.
    Ok(text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default())
}

fn keep(folder: &Folder, kept: &Kept) -> Result<(), String> {
    let text = serde_json::to_vec(kept).map_err(|error| error.to_string())?;
    folder.replace(MEMORY, &text).map_err(|error| error_chain(&error))
}

impl Controller {
    /// Begins to ask a controller, on threads of its own.
    pub(super) fn start(agent: &Arc<Agent>, followed: &Followed) -> Result<Arc<Self>, Refused> {
        let SourceAddress::Controller(url) = &followed.source else {
            return Err(Refused::new("the source is not a controller"));
        };
        let failed = |error| Refused::new(error_chain(&error));
        let folder = Folder::create(&agent.directory.join(FOLDER)).map_err(failed)?;
        let Kept { memory, .. } = kept(&folder)?;
        let token = folder.read(TOKEN).map_err(failed)?.and_then(|token| String::from_utf8(token).ok());
        let keys = Arc::new(agent.own_keys()?);
        let identity = MachineIdentity {
            name: machine_name(followed)?,
            keys: Arc::clone(&keys),
            token: token.map(Sensitive::new),
            labels: followed.joining.clone().unwrap_or_default().labels,
        };
        let seed = random_part().to_bits();
        let machine = Machine::new(identity, memory, seed, Now::default());
        let shared =
            Shared { machine, calls: [VecDeque::new(), VecDeque::new()], newest: None, looks: false, away: None };
        let controller = Arc::new(Self {
            url: url.as_str().trim_end_matches('/').to_owned(),
            client: client(followed)?,
            keys,
            followed: followed.clone(),
            folder,
            began: Instant::now(),
            shared: Mutex::new(shared),
            woken: Condvar::new(),
            ended: AtomicBool::new(false),
        });
        for work in [Self::send_waiting, Self::send_others, Self::notice] {
            let (controller, agent) = (Arc::clone(&controller), Arc::clone(agent));
            // A defect here is a crash of the agent, as it is where sources are asked.
            thread::spawn(move || {
                catch_unwind(AssertUnwindSafe(|| work(&controller, &agent))).unwrap_or_else(|_| std::process::abort());
            });
        }
        Ok(controller)
    }

    /// Ends it. A request that waits is answered to nobody.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.woken.notify_all();
    }

    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// The newest answer, whose releases are looked at.
    pub(super) fn newest(&self) -> Option<DesiredAnswer> {
        self.lock().newest.clone()
    }

    /// Its status.
    pub(super) fn status(&self) -> (ControllerStatus, Option<Offline>, Option<SourceFailure>) {
        let shared = self.lock();
        let (standing, failure) = match shared.machine.membership() {
            Membership::Unknown => (ControllerStanding::Joining, None),
            Membership::Waiting => (ControllerStanding::Waiting, None),
            Membership::Admitted => (ControllerStanding::Admitted, None),
            Membership::Refused(why) => {
                let refused = Refused::new(format!("the controller refuses this machine: {why}"));
                (ControllerStanding::Refused, Some(SourceFailure { refused, code: Some(NOT_ADMITTED.id) }))
            }
        };
        let until = |until: u64| Timestamp::from_millisecond(i64::try_from(until).ok()?).ok();
        let held_until = shared.machine.hold().and_then(|(at, _)| until(*at));
        let held_because = shared.machine.hold().map(|(_, why)| why.clone());
        let offline = shared.away.zip(shared.machine.unreached());
        let offline = offline.map(|(since, reason)| Offline { since, reason: reason.to_owned() });
        let left_out = shared.machine.memory().left_out.clone().map(Into::into);
        (ControllerStatus { standing, held_until, held_because, left_out }, offline, failure)
    }

    /// Says how a look at the releases ended. One that the controller had not asked for is left out.
    pub(super) fn looked(&self, agent: &Agent, is_done: bool) {
        let looks = std::mem::take(&mut self.lock().looks);
        if looks {
            self.handle(agent, MachineEvent::Looked(is_done));
        }
    }

    /// Asks for a file of the releases, or a part of it.
    pub(super) fn ask(
        &self,
        agent: &Agent,
        path: String,
        range: Option<String>,
        longest: u64,
    ) -> Result<ExchangeAnswer, String> {
        let (memory, mut call) = self.lock().machine.ask(self.now(), path);
        if let Some(memory) = memory {
            self.keep(agent, memory);
        }
        call.headers.extend(range.map(|range| ("range", range)));
        let answered = self.exchange(&call, longest);
        let event = match &answered {
            Ok(answer) => MachineEvent::Answered(read(call.number, answer, Vec::new())),
            Err(why) => MachineEvent::Lost(call.number, why.clone()),
        };
        self.handle(agent, event);
        answered
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Now {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now { passed, clock: Timestamp::now().as_millisecond() }
    }

    fn keep(&self, agent: &Agent, memory: MachineMemory) {
        if self.is_over() {
            return;
        }
        let kept = Kept { root: self.followed.root.to_string(), memory };
        if let Err(failure) = keep(&self.folder, &kept) {
            // Numbers that were used are refused then, and reports are sent again.
            agent.log.write("notSaved", json!({ "failure": failure }));
        }
    }

    /// Takes in what happened, and does what follows.
    fn handle(&self, agent: &Agent, event: MachineEvent) {
        if self.is_over() {
            return;
        }
        let (mut events, mut is_newer, mut check) = (VecDeque::from([event]), false, None);
        let mut shared = self.lock();
        let before = (shared.machine.membership().clone(), shared.away.is_some());
        while let Some(event) = events.pop_front() {
            for action in shared.machine.handle(self.now(), event) {
                match action {
                    MachineAction::Keep(memory) => self.keep(agent, memory),
                    MachineAction::Send(call) => {
                        let [others, waiting] = &mut shared.calls;
                        if call.waits { waiting.push_back(call) } else { others.push_back(call) }
                    }
                    MachineAction::Look(newest) => {
                        (shared.newest, shared.looks, is_newer) = (Some(newest), true, true);
                    }
                    MachineAction::ReadReports(after, most) => {
                        let (reports, last) = self.reports(agent, after, most);
                        events.push_back(MachineEvent::Reports(reports, last));
                    }
                    MachineAction::Check(number) => check = Some(number),
                    MachineAction::ForgetToken => drop(self.folder.remove(TOKEN)),
                    MachineAction::LeftOut(number, why) => {
                        agent.log.write("reportLost", json!({ "number": number, "failure": why }));
                    }
                }
            }
        }
        shared.away = shared.machine.unreached().map(|_| shared.away.unwrap_or_else(Timestamp::now));
        self.say(agent, &shared, &before);
        let is_other = *shared.machine.membership() != before.0;
        drop(shared);
        self.woken.notify_all();
        if let Some(number) = check {
            agent.check_now(number);
        }
        if is_newer || is_other {
            agent.lock().following.look |= is_newer;
            agent.changed.notify_all();
        }
    }

    /// Logs what is other than it was.
    fn say(&self, agent: &Agent, shared: &Shared, (membership, was_away): &(Membership, bool)) {
        let source = &self.followed.source;
        match (was_away, shared.machine.unreached()) {
            (false, Some(why)) => agent.log.write("sourceOffline", json!({ "source": source, "failure": why })),
            (true, None) => agent.log.write("sourceReached", json!({ "source": source })),
            _ => {}
        }
        match shared.machine.membership() {
            now if now == membership => {}
            Membership::Unknown => {}
            Membership::Waiting => agent.log.write("waitingForAdmission", json!({ "source": source })),
            Membership::Admitted => agent.log.write("admitted", json!({ "source": source })),
            Membership::Refused(why) => {
                agent.log.write("notAdmitted", json!({ "source": source, "code": NOT_ADMITTED.id, "failure": why }));
            }
        }
    }

    /// The reports behind a number that are worth sending, and the number of the last one that was looked at.
    fn reports(&self, agent: &Agent, after: u64, most: usize) -> (Vec<SentReport>, u64) {
        let (mut reports, mut last, mut bytes) = (Vec::new(), after, 0);
        for _ in 0..most.div_ceil(ROWS) {
            let found = match agent.reports.after(last + 1, ROWS.min(most)) {
                Ok(found) => found,
                Err(error) => {
                    agent.log.write("reportsUnreadable", json!({ "failure": error_chain(&error) }));
                    break;
                }
            };
            if found.is_empty() {
                break;
            }
            for stored in found {
                last = stored.number;
                let is_quiet = serde_json::from_value(stored.report.clone()).is_ok_and(|report| is_quiet(&report));
                let Followed { root, machine, .. } = &self.followed;
                // Those under a former name are of another machine to a controller.
                let is_own = |report: &MachineReport| report.fleet == *root && report.machine.as_str() == machine;
                let report = machine_report(stored).filter(|report| is_own(report) && !is_quiet);
                let signed = report.map(|report| (report.number, self.keys.sign(report).to_text()));
                reports.extend(signed.map(|(number, signed)| {
                    bytes += signed.len();
                    SentReport { number, signed }
                }));
            }
            if bytes > LONGEST_BODY {
                break;
            }
        }
        (reports, last)
    }

    fn send_waiting(&self, agent: &Arc<Agent>) {
        self.send_all(agent, 1);
    }

    fn send_others(&self, agent: &Arc<Agent>) {
        self.send_all(agent, 0);
    }

    /// Sends what is to be sent on one connection, and says what becomes of it.
    fn send_all(&self, agent: &Agent, connection: usize) {
        while let Some(call) = self.next_call(agent, connection) {
            let event = match self.exchange(&call, LONGEST_BODY as u64 * 64) {
                Ok(mut answer) => {
                    let body = std::mem::take(&mut answer.body);
                    MachineEvent::Answered(read(call.number, &answer, body))
                }
                Err(why) => MachineEvent::Lost(call.number, why),
            };
            self.handle(agent, event);
        }
    }

    /// The next request of a connection; `None` when it is over. The one that does not wait also has the time.
    fn next_call(&self, agent: &Agent, connection: usize) -> Option<MachineCall> {
        loop {
            let mut shared = self.lock();
            if self.is_over() {
                return None;
            }
            if let Some(call) = shared.calls.get_mut(connection).and_then(VecDeque::pop_front) {
                return Some(call);
            }
            let now = self.now().passed;
            let next = if connection == 0 { shared.machine.next() } else { None };
            if next.is_some_and(|next| next <= now) {
                drop(shared);
                self.handle(agent, MachineEvent::Time);
                continue;
            }
            let pause = next.map_or(STILL, |next| Duration::from_millis(next - now).min(STILL));
            drop(self.woken.wait_timeout(shared, pause));
        }
    }

    fn exchange(&self, call: &MachineCall, longest: u64) -> Result<ExchangeAnswer, String> {
        let wait = if call.waits { Duration::from_secs(LONGEST_WAIT) } else { PATIENCE };
        self.client.ask(&ExchangeRequest {
            method: call.method,
            url: &format!("{}{}", self.url, call.path),
            headers: &call.headers,
            body: &call.body,
            patience: wait + PATIENCE,
            longest,
        })
    }

    /// Says of the machine how it is, whenever that changed.
    fn notice(&self, agent: &Arc<Agent>) {
        let (mut said, mut inner) = (None, agent.lock());
        let mut reports = (None, 0);
        while !self.is_over() && !inner.stopping {
            if reports.0 != Some(inner.jobs) {
                reports = (Some(inner.jobs), agent.reports.newest().unwrap_or(reports.1));
            }
            let condition = agent.condition(&inner, reports.1);
            if said.as_ref() == Some(&condition) {
                inner = agent.changed.wait_timeout(inner, STILL).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            drop(inner);
            self.handle(agent, MachineEvent::Is(condition.clone()));
            said = Some(condition);
            inner = agent.lock();
        }
    }
}

impl Agent {
    /// The condition of the machine, as its controller is said.
    fn condition(&self, inner: &Inner, report: u64) -> Condition {
        let staged = inner.state.following.as_ref().and_then(|following| following.staged.as_ref());
        let staged = staged.filter(|staged| inner.state.current == Some(staged.generation));
        let machine = MachineStatus::now(&inner.state.settings.labels);
        let health = inner.health(&self.moment(), &machine, self.source_status(inner).as_ref());
        let health = serde_json::to_value(health).unwrap_or_default();
        Condition {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            health: health.as_str().unwrap_or_default().to_owned(),
            release: staged.map(|staged| (staged.channel.clone(), staged.number)),
            refuses: inner.following.failure.as_ref().and_then(|failure| failure.code.map(str::to_owned)),
            report,
            checked: inner.check.done,
        }
    }
}

fn read(number: u64, answer: &ExchangeAnswer, body: Vec<u8>) -> MachineAnswer {
    MachineAnswer::of(number, answer.status, |name| answer.header(name), body)
}

/// Returns whether a job found everything in the desired state, which is worth a word and not a report.
fn is_quiet(report: &JobReport) -> bool {
    let is_check = report.job.kind == JobKind::Consistency && report.result == JobResult::Converged;
    is_check && report.totals.changed == 0
}
