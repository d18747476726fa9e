//! The machine's side: what it asks next, and what follows from an answer. It has no clock, no connection and no disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stead_core::value::Sensitive;
use stead_hosts::MachineName;
use stead_release::{Digest, MachineKeys, MachineRequest};

use crate::exchange::{Condition, Heartbeat, Life, MachineAnswer, MachineCall, SentReport};
use crate::outgoing::{Batch, Consequence, LeftOut, NotTaken, Outgoing};
use crate::pace::{Pace, Random};
use crate::{
    DesiredAnswer, EnrolAnswer, EnrolRequest, HEARTBEAT, LONGEST_BODY, LONGEST_WAIT, Proof, REQUEST, ReportsAnswer,
    SIGNATURE, SessionSecret,
};

/// So many numbers of requests are put aside at once: the disk is written once for all of them.
const RESERVED: u64 = 1024;
/// How long a session key is used, in milliseconds. Controllers accept it for an hour at least.
const SESSION: u64 = 50 * 60_000;
/// How soon a machine that began anew asks at the latest, and one that waits for an operator asks again, in milliseconds.
const BEGIN: u64 = 2_000;
const ADMISSION: u64 = 30_000;
/// Lives have numbers from 1 to this one, which every reader of JSON can have.
const LIVES: u64 = (1 << 53) - 1;
/// The bytes of the brackets around a list of reports.
const BRACKETS: usize = 2;

/// The time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Now {
    /// How long the process runs, in milliseconds. It never goes back.
    pub passed: u64,
    /// The time by the clock of the machine, in milliseconds, which is only said.
    pub clock: i64,
}

/// The state that a machine keeps from one process to the next.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineMemory {
    /// The numbers of requests below this one were used, or may have been.
    pub reserved: u64,
    /// The history of the store that has the reports.
    pub epoch: Option<u64>,
    /// The reports up to this number are on its disk.
    pub acknowledged: u64,
    /// True once the machine was admitted.
    pub joined: bool,
    /// The reports that this history of the store does not get.
    pub left_out: Option<LeftOut>,
}

/// Who a machine is.
pub struct MachineIdentity {
    /// Its name.
    pub name: MachineName,
    /// Its keys.
    pub keys: Arc<MachineKeys>,
    /// The token with which it joins.
    pub token: Option<Sensitive<String>>,
    /// The labels that it asks for.
    pub labels: BTreeMap<String, String>,
}

/// An event that the machine learns of.
#[derive(Clone, PartialEq, Debug)]
pub enum MachineEvent {
    /// Time passed.
    Time,
    /// A request was answered.
    Answered(MachineAnswer),
    /// A request was not answered, and will not be: its number, and why.
    Lost(u64, String),
    /// The machine is in this condition.
    Is(Condition),
    /// These are the reports that were asked for, of those up to a number.
    Reports(Vec<SentReport>, u64),
    /// The look at the releases has ended. False if it is worth another one, such as when a content could not be had.
    Looked(bool),
}

/// The steps that are to be done, in this order.
#[derive(Clone, PartialEq, Debug)]
pub enum MachineAction {
    /// To be kept before anything that follows.
    Keep(MachineMemory),
    /// To be sent.
    Send(MachineCall),
    /// To be looked at and staged, as the releases of any source; then comes [`MachineEvent::Looked`].
    Look(DesiredAnswer),
    /// The reports behind a number are to be given, the oldest first, as many as this at most; then comes [`MachineEvent::Reports`].
    ReadReports(u64, usize),
    /// The machine is to be checked at once; then [`Condition::checked`] has this number.
    Check(u64),
    /// The token is not needed any more.
    ForgetToken,
    /// A report that the controller does not take was left out: its number, and why.
    LeftOut(u64, String),
}

/// The standing of a machine with its controller.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Membership {
    /// Nothing is known yet.
    #[default]
    Unknown,
    /// It waits until an operator admits it.
    Waiting,
    /// It is admitted.
    Admitted,
    /// It is refused, and why.
    Refused(String),
}

/// The look at releases.
#[derive(Debug, Default)]
struct Look {
    newest: Option<DesiredAnswer>,
    is_wanted: bool,
    is_under_way: bool,
    pace: Pace,
}

/// A machine that asks a controller.
///
/// Guarantees: no two requests have one number; one request waits at a controller at a time, and reports go beside it. A report counts as
/// acknowledged once the controller said in the same history that it has it; in another one everything that is kept is sent again. One
/// that is never taken is left out: at once if the controller says that it is not a report that it takes, and otherwise once others were
/// taken in its place, three times. A controller that is away is asked at random times that are farther and farther apart, and never
/// before the time that it named.
pub struct Machine {
    identity: MachineIdentity,
    memory: MachineMemory,
    life: Life,
    membership: Membership,
    hold: Option<(u64, String)>,
    unreached: Option<String>,
    session: Option<(SessionSecret, u64)>,
    /// The number of the next request.
    number: u64,
    tag: Option<String>,
    condition: Condition,
    /// The last request to check that was passed on.
    check: u64,
    /// The last condition that was sent.
    said: Condition,
    asking: Pace,
    reporting: Pace,
    /// The requests for files that are under way.
    files: BTreeSet<u64>,
    outgoing: Outgoing,
    look: Look,
    random: Random,
}

impl Machine {
    /// A machine that knows what it kept. Nobody else should be able to predict the seed.
    pub fn new(identity: MachineIdentity, memory: MachineMemory, seed: u64, now: Now) -> Self {
        let mut random = Random::new(seed);
        let due = now.passed + if memory.joined { random.below(BEGIN) } else { 0 };
        let membership = if memory.joined { Membership::Admitted } else { Membership::Unknown };
        let life = Life { life: 1 + random.below(LIVES), beside: 0 };
        Self {
            identity,
            number: memory.reserved,
            memory,
            life,
            membership,
            hold: None,
            unreached: None,
            session: None,
            tag: None,
            condition: Condition::default(),
            check: 0,
            said: Condition::default(),
            asking: Pace { due, ..Pace::default() },
            reporting: Pace { due, ..Pace::default() },
            files: BTreeSet::new(),
            outgoing: Outgoing::default(),
            look: Look::default(),
            random,
        }
    }

    /// Takes in what happened, and says what is to be done.
    pub fn handle(&mut self, now: Now, event: MachineEvent) -> Vec<MachineAction> {
        let mut actions = Vec::new();
        match event {
            MachineEvent::Time => {}
            MachineEvent::Is(condition) => self.is(condition, &mut actions),
            MachineEvent::Answered(answer) => self.answered(&answer, now, &mut actions),
            MachineEvent::Lost(number, why) => self.lost(number, why, None, now, &mut actions),
            MachineEvent::Reports(reports, last) => self.send_reports(reports, last, now, &mut actions),
            MachineEvent::Looked(is_done) => {
                let looks = &mut self.look;
                looks.is_under_way = false;
                if is_done || looks.is_wanted {
                    looks.pace.succeeded(now.passed);
                } else {
                    looks.is_wanted = true;
                    looks.pace.failed(now.passed, None, &mut self.random);
                }
            }
        }
        self.go_on(now, &mut actions);
        actions
    }

    /// When [`MachineEvent::Time`] is to come, if nothing else happens before.
    pub fn next(&self) -> Option<u64> {
        let looks = (self.look.is_wanted && !self.look.is_under_way).then_some(self.look.pace.due);
        let reports = if self.has_news() && !self.outgoing.reads { self.reporting.next() } else { None };
        self.asking.next().into_iter().chain(reports).chain(looks).min()
    }

    /// A request for a file of the releases, which whoever looks at them sends. What is to be kept comes first.
    pub fn ask(&mut self, now: Now, path: String) -> (Option<MachineMemory>, MachineCall) {
        let mut actions = Vec::new();
        let call = self.call(now, "GET", path, Vec::new(), &mut actions);
        self.files.insert(call.number);
        let keep = actions.into_iter().find_map(|action| match action {
            MachineAction::Keep(memory) => Some(memory),
            _ => None,
        });
        (keep, call)
    }

    /// The standing of the machine with the controller.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Until when the machine stays as it is, in milliseconds, and why.
    pub fn hold(&self) -> Option<&(u64, String)> {
        self.hold.as_ref()
    }

    /// Why the controller does not answer, if it does not.
    pub fn unreached(&self) -> Option<&str> {
        self.unreached.as_deref()
    }

    /// What it keeps.
    pub fn memory(&self) -> &MachineMemory {
        &self.memory
    }

    fn is_admitted(&self) -> bool {
        self.membership == Membership::Admitted
    }

    fn has_news(&self) -> bool {
        let is_changed = self.said.health != self.condition.health || self.said.release != self.condition.release;
        let is_changed = is_changed || self.said.checked != self.condition.checked;
        let is_said = self.said.refuses == self.condition.refuses && !is_changed;
        self.is_admitted() && (self.condition.report > self.memory.acknowledged || !is_said)
    }

    fn is(&mut self, condition: Condition, actions: &mut Vec<MachineAction>) {
        if (1..self.memory.acknowledged).contains(&condition.report) {
            // The reports were begun anew, by a clock that was put back.
            self.memory.acknowledged = 0;
            actions.push(MachineAction::Keep(self.memory.clone()));
        }
        self.condition = condition;
    }

    /// Does what is due.
    fn go_on(&mut self, now: Now, actions: &mut Vec<MachineAction>) {
        if self.asking.is_due(now.passed) {
            let call = if self.is_admitted() { self.desired(now, actions) } else { self.enrol(now, actions) };
            self.asking.send(call.number, now.passed);
            actions.push(MachineAction::Send(call));
        }
        if self.has_news() && !self.outgoing.reads && self.reporting.is_due(now.passed) {
            if self.condition.report > self.memory.acknowledged {
                self.outgoing.reads = true;
                let (behind, most) = self.outgoing.wanted(self.memory.acknowledged);
                actions.push(MachineAction::ReadReports(behind, most));
            } else {
                // What it says of itself changed: that goes beside the request that waits.
                self.send_batch(None, b"[]", now, actions);
            }
        }
        let looks = &mut self.look;
        if looks.is_wanted
            && !looks.is_under_way
            && now.passed >= looks.pace.due
            && let Some(newest) = looks.newest.clone()
        {
            (looks.is_wanted, looks.is_under_way) = (false, true);
            actions.push(MachineAction::Look(newest));
        }
    }

    fn enrol(&mut self, now: Now, actions: &mut Vec<MachineAction>) -> MachineCall {
        let MachineIdentity { keys, token, labels, .. } = &self.identity;
        let token = token.as_ref().map(|token| token.expose().clone());
        let request = EnrolRequest { key: keys.key().to_string(), token, labels: labels.clone() };
        let body = serde_json::to_vec(&request).unwrap_or_default();
        // Only its key proves who it is.
        self.session = None;
        self.call(now, "POST", "/v1/enrol".to_owned(), body, actions)
    }

    fn desired(&mut self, now: Now, actions: &mut Vec<MachineAction>) -> MachineCall {
        let after = self.condition.release.as_ref().map_or(0, |(_, number)| *number);
        let mut call = self.call(now, "GET", format!("/v1/desired?after={after}"), Vec::new(), actions);
        call.waits = true;
        call.headers.push(("prefer", format!("wait={LONGEST_WAIT}")));
        call.headers.extend(self.tag.iter().map(|tag| ("if-none-match", tag.clone())));
        call
    }

    /// A request with the next number, proved.
    fn call(
        &mut self,
        now: Now,
        method: &'static str,
        path: String,
        body: Vec<u8>,
        actions: &mut Vec<MachineAction>,
    ) -> MachineCall {
        let number = self.number;
        self.number += 1;
        if number >= self.memory.reserved {
            self.memory.reserved = number + RESERVED;
            actions.push(MachineAction::Keep(self.memory.clone()));
        }
        let heartbeat = Heartbeat { condition: self.condition.clone(), life: self.life, clock: now.clock };
        self.said = self.condition.clone();
        let said = serde_json::to_string(&heartbeat).unwrap_or_default();
        let content = Digest::of(&[said.as_bytes(), &body].concat());
        let (name, keys) = (&self.identity.name, &self.identity.keys);
        let request = MachineRequest { machine: name.clone(), method: method.to_owned(), path, number, content };
        let path = request.path.clone();
        let session = self.session.as_ref().filter(|(_, since)| now.passed.saturating_sub(*since) < SESSION);
        let proof = match session {
            Some((session, _)) => session.prove(request),
            None => Proof::of(&keys.sign(request)),
        };
        let headers = vec![(REQUEST, format!("{name} {number}")), (SIGNATURE, proof), (HEARTBEAT, said)];
        MachineCall { number, waits: false, method, path, headers, body }
    }

    fn send_reports(&mut self, mut reports: Vec<SentReport>, last: u64, now: Now, actions: &mut Vec<MachineAction>) {
        if !std::mem::take(&mut self.outgoing.reads) || !self.is_admitted() {
            return;
        }
        self.condition.report = self.condition.report.max(last);
        let is_short = |report: &SentReport| as_json(report).len() + BRACKETS <= LONGEST_BODY;
        let too_long: Vec<u64> =
            reports.iter().filter(|report| !is_short(report)).map(|report| report.number).collect();
        if !self.outgoing.tries_others() {
            for number in &too_long {
                self.leave_out(*number, "it is too long".to_owned(), actions);
            }
        }
        reports.retain(|report| !too_long.contains(&report.number));
        let (mut body, mut end, first) = (Vec::from(*b"["), last, reports.first().map(|report| report.number));
        for (at, report) in reports.iter().enumerate() {
            let text = as_json(report);
            if at == self.outgoing.most || body.len() + text.len() + BRACKETS > LONGEST_BODY {
                // Those up to the one that has no room any more.
                end = report.number - 1;
                break;
            }
            if at > 0 {
                body.push(b',');
            }
            body.extend(text);
        }
        body.push(b']');
        match first {
            Some(first) => {
                self.send_batch(Some(Batch { first, last: end, epoch: self.memory.epoch }), &body, now, actions);
            }
            None if !self.outgoing.passes(last) => {}
            // They cannot be read.
            None if last <= self.memory.acknowledged => self.reporting.failed(now.passed, None, &mut self.random),
            // Nothing of it is worth sending.
            None => self.acknowledge(last, actions),
        }
    }

    fn send_batch(&mut self, batch: Option<Batch>, body: &[u8], now: Now, actions: &mut Vec<MachineAction>) {
        let call = self.call(now, "POST", "/v1/reports".to_owned(), body.to_vec(), actions);
        self.reporting.send(call.number, now.passed);
        self.outgoing.batch = batch;
        actions.push(MachineAction::Send(call));
    }

    fn acknowledge(&mut self, last: u64, actions: &mut Vec<MachineAction>) {
        if last > self.memory.acknowledged {
            self.memory.acknowledged = last;
            actions.push(MachineAction::Keep(self.memory.clone()));
        }
    }

    fn leave_out(&mut self, number: u64, why: String, actions: &mut Vec<MachineAction>) {
        self.memory.left_out.get_or_insert_default().add(number, &why);
        actions.push(MachineAction::LeftOut(number, why));
    }

    /// No answer came that helps; a time that was named all the same counts.
    fn lost(&mut self, number: u64, why: String, retry_after: Option<u64>, now: Now, actions: &mut Vec<MachineAction>) {
        self.files.remove(&number);
        if self.asking.end(number).is_some() {
            self.unreached = Some(why);
            self.asking.failed(now.passed, retry_after, &mut self.random);
        } else if self.reporting.end(number).is_some() {
            self.reporting.failed(now.passed, retry_after, &mut self.random);
            if let Some(batch) = self.outgoing.batch.take() {
                self.not_taken(batch, NotTaken::Otherwise, why, now, actions);
            }
            // What it said did not arrive, perhaps.
            self.said = Condition::default();
        }
    }

    fn is_under_way(&self, number: u64) -> bool {
        let is = |pace: &Pace| pace.under_way.is_some_and(|(under_way, _)| under_way == number);
        is(&self.asking) || is(&self.reporting) || self.files.contains(&number)
    }

    fn answered(&mut self, answer: &MachineAnswer, now: Now, actions: &mut Vec<MachineAction>) {
        // Each answer counts once.
        if !self.is_under_way(answer.number) {
            return;
        }
        let Some(epoch) = answer.epoch else {
            let why = format!("what answers is not a controller, but says {}", answer.status);
            return self.lost(answer.number, why, answer.retry_after, now, actions);
        };
        if self.memory.epoch != Some(epoch) {
            // Another history may have forgotten what the one before had.
            let is_first = self.memory.epoch.replace(epoch).is_none();
            if !is_first {
                (self.memory.acknowledged, self.memory.left_out) = (0, None);
            }
            actions.push(MachineAction::Keep(self.memory.clone()));
        }
        if let Some(session) = answer.session.as_deref().and_then(SessionSecret::parse) {
            self.session = Some((session, now.passed));
        }
        let is_another = answer.life.is_some_and(|life| self.life.named(life));
        let check = answer.check.filter(|check| ![self.check, self.condition.checked].contains(check));
        if let Some(check) = check {
            self.check = check;
            actions.push(MachineAction::Check(check));
        }
        match answer.status {
            401 => self.session = None,
            // The disk of this machine may be an older copy of itself: its numbers go on somewhere above.
            409 if self.is_admitted() => {
                self.number += RESERVED << self.asking.failures.max(self.reporting.failures).min(20);
            }
            _ => {}
        }
        self.files.remove(&answer.number);
        if let Some(sent) = self.asking.end(answer.number) {
            self.unreached = None;
            if self.is_admitted() {
                self.was_answered(answer, sent, now, is_another || check.is_some());
            } else {
                self.enrolled(answer, now, actions);
            }
        } else if let Some(sent) = self.reporting.end(answer.number) {
            self.reported(answer, sent, now, actions);
        }
    }

    fn enrolled(&mut self, answer: &MachineAnswer, now: Now, actions: &mut Vec<MachineAction>) {
        let standing = serde_json::from_slice::<EnrolAnswer>(&answer.body).map(|answer| answer.standing);
        match (answer.status, standing.as_deref()) {
            (200, Ok("admitted")) => {
                self.membership = Membership::Admitted;
                self.asking.due = now.passed;
                self.identity.token = None;
                self.memory.joined = true;
                actions.extend([MachineAction::Keep(self.memory.clone()), MachineAction::ForgetToken]);
            }
            (200, Ok("waiting")) => {
                self.membership = Membership::Waiting;
                self.asking.due = now.passed + ADMISSION / 2 + self.random.below(ADMISSION);
            }
            (429 | 500..=599, _) => {
                self.unreached = Some(answer.words());
                self.asking.failed(now.passed, answer.retry_after, &mut self.random);
            }
            _ => {
                self.membership = Membership::Refused(answer.words());
                self.asking.failed(now.passed, answer.retry_after, &mut self.random);
            }
        }
    }

    /// Takes in the answer to the request that waited. The next one follows after a while where the answer came early for no known reason.
    fn was_answered(&mut self, answer: &MachineAnswer, sent: u64, now: Now, again_at_once: bool) {
        self.hold.clone_from(&answer.hold);
        match (answer.status, serde_json::from_slice::<DesiredAnswer>(&answer.body)) {
            (200, Ok(desired)) => {
                self.tag.clone_from(&answer.tag);
                self.look.newest = Some(desired);
                self.look.is_wanted = true;
                // What is newer is looked at at once.
                self.look.pace = Pace::default();
                self.asking.succeeded(sent);
            }
            (304, _) => {
                self.asking.succeeded(sent);
                if now.passed.saturating_sub(sent) < LONGEST_WAIT * 1000 / 2 && !again_at_once {
                    self.asking.spread(now.passed, &mut self.random);
                }
            }
            // Another proof, or a higher number, may be all that it takes; not twice in a row.
            (401 | 409, _) if self.asking.failures == 0 => (self.asking.failures, self.asking.due) = (1, now.passed),
            // It is not known, or not admitted any more: to join again tells which.
            (401 | 403, _) => {
                self.membership = Membership::Unknown;
                self.asking.failed(now.passed, None, &mut self.random);
            }
            _ => {
                self.unreached = Some(answer.words());
                self.asking.failed(now.passed, answer.retry_after, &mut self.random);
            }
        }
    }

    fn reported(&mut self, answer: &MachineAnswer, sent: u64, now: Now, actions: &mut Vec<MachineAction>) {
        let batch = self.outgoing.batch.take();
        match (answer.status, serde_json::from_slice::<ReportsAnswer>(&answer.body)) {
            (200, Ok(_)) => {
                self.reporting.succeeded(sent);
                if let Some(batch) = batch.filter(|batch| batch.epoch == self.memory.epoch)
                    && self.outgoing.taken()
                {
                    self.acknowledge(batch.last, actions);
                }
            }
            (400 | 413, _) if let Some(batch) = batch => {
                self.reporting.failed(now.passed, answer.retry_after, &mut self.random);
                self.not_taken(batch, NotTaken::Form, answer.words(), now, actions);
            }
            (401 | 409, _) if self.reporting.failures == 0 => {
                (self.reporting.failures, self.reporting.due) = (1, now.passed);
            }
            (status, _) => {
                self.said = Condition::default();
                self.reporting.failed(now.passed, answer.retry_after, &mut self.random);
                // The others are about the machine, or its pace.
                if !matches!(status, 401 | 403 | 409 | 429)
                    && let Some(batch) = batch
                {
                    self.not_taken(batch, NotTaken::Otherwise, answer.words(), now, actions);
                }
            }
        }
    }

    /// A batch was not taken, which was counted as a failure. If one report is to blame, the others arrive all the same.
    fn not_taken(&mut self, batch: Batch, how: NotTaken, why: String, now: Now, actions: &mut Vec<MachineAction>) {
        match self.outgoing.not_taken(batch, self.reporting.failures, how) {
            Consequence::Later => {}
            Consequence::Part => (self.reporting.failures, self.reporting.due) = (0, now.passed),
            Consequence::LeftOut(number, last) => {
                self.leave_out(number, why, actions);
                self.acknowledge(last, actions);
                self.reporting.succeeded(now.passed);
            }
        }
    }
}

fn as_json(report: &SentReport) -> Vec<u8> {
    serde_json::to_vec(report).unwrap_or_default()
}
