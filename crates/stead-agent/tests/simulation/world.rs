//! The agent, its administrators, its clock, and its misfortunes.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use stead_agent::{
    ActionAfterReboot, AgentState, Backoff, Generation, HoldReason, Interrupted, Job, JobKind, LeftOver, Moment,
    NewDocument, Next, Purpose, Settings, Spread, Stage, Submission, Waiting, Window, Work,
};
use stead_core::document::ConfigurationMode;

use crate::laws::{self, Cause, Law, WEEK};
use crate::machine::{CULPRIT, Machine, Worked};
use crate::random::Numbers;

/// When the agent crashes before it has saved a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CrashAt {
    Never,
    Random,
    Change(usize),
}

pub(crate) struct World {
    numbers: Numbers,
    crash: CrashAt,
    /// The record as it was saved; the state beside it is what the agent has in memory.
    record: String,
    state: AgentState,
    machine: Machine,
    /// True time, and what the clock shows beside it.
    elapsed: Duration,
    clock: SignedDuration,
    is_fair: bool,
    changes: usize,
    trace: Vec<String>,
    /// When jobs were begun, and when something came from outside, in true time.
    begun: Vec<Duration>,
    outside: Vec<Duration>,
    /// Restarts that the agent ordered for the newest document, and when the machine was last restarted for one.
    ordered: u32,
    restarted: Option<Timestamp>,
    /// Crashes over the culprit since somebody delivered or asked for a document.
    crashes: u32,
    /// How often the agent started. What a process had in its memory, the next one has not.
    starts: u32,
    /// True if the current document is watched; a change may have been noticed that is to be looked at.
    watches: bool,
    noticed: bool,
    /// How often somebody asked for everything to be looked at since the job began.
    asked: usize,
    parts: usize,
}

impl World {
    pub(crate) fn new(seed: u64, crash: CrashAt) -> Self {
        let mut numbers = Numbers::of(9, seed);
        let state = AgentState { settings: settings(&mut numbers), ..AgentState::default() };
        Self {
            numbers,
            crash,
            record: serde_json::to_string(&state).unwrap(),
            state,
            machine: Machine::default(),
            elapsed: Duration::ZERO,
            clock: SignedDuration::ZERO,
            is_fair: false,
            changes: 0,
            trace: Vec::new(),
            begun: Vec::new(),
            outside: Vec::new(),
            ordered: 0,
            restarted: None,
            crashes: 0,
            starts: 0,
            watches: false,
            noticed: false,
            asked: 0,
            parts: 0,
        }
    }

    pub(crate) fn jobs(&self) -> usize {
        self.begun.len()
    }

    /// How many of the jobs were over parts of a document and recorded.
    pub(crate) fn parts(&self) -> usize {
        self.parts
    }

    pub(crate) fn changes(&self) -> usize {
        self.changes
    }

    pub(crate) fn trace(&self) -> &[String] {
        &self.trace
    }

    fn now(&self) -> Timestamp {
        let start: Timestamp = "2026-06-01T12:00:00Z".parse().unwrap();
        start.saturating_add(self.elapsed).unwrap().saturating_add(self.clock).unwrap()
    }

    fn moment(&self) -> Moment {
        Moment { now: self.now(), boot: self.machine.boot_id(), zone: TimeZone::UTC, shutdown: None }
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.numbers.below(100) < percent
    }

    fn note(&mut self, what: impl Into<String>) {
        let text = format!("{} [{:?}] {}", self.now(), self.elapsed, what.into());
        self.trace.push(text);
    }

    /// Changes the state and saves it, unless the agent crashes before it is saved.
    fn change(&mut self, apply: impl FnOnce(&mut AgentState) -> Cause) -> Law {
        let mut after = self.state.clone();
        let cause = apply(&mut after);
        let crashes = match self.crash {
            CrashAt::Never => false,
            CrashAt::Random => !self.is_fair && self.chance(4),
            CrashAt::Change(change) => change == self.changes,
        };
        self.changes += 1;
        if crashes {
            self.note(format!("crash before {cause:?} is saved"));
            self.outside.push(self.elapsed);
            return self.start();
        }
        self.record = serde_json::to_string(&after).unwrap();
        let read: AgentState = serde_json::from_str(&self.record).unwrap();
        if read != after {
            return Err("what is read is not what was saved".to_owned());
        }
        laws::change(&cause, &self.state, &after, &self.machine)?;
        match &cause {
            Cause::UseExisting | Cause::Configure => self.asked += 1,
            Cause::Start => self.asked = 0,
            _ => {}
        }
        if matches!(cause, Cause::Submit(Ok(_)) | Cause::UseExisting) {
            (self.ordered, self.crashes) = (0, 0);
        }
        if !matches!(cause, Cause::Begin | Cause::End(..) | Cause::Owe) {
            self.note(format!("{cause:?}"));
        }
        let before = std::mem::replace(&mut self.state, after);
        if let Cause::End(job, _) = &cause
            && before.current != self.state.current
        {
            laws::promoted(&self.machine.promoted(&before, job.generation))?;
        }
        self.machine.staged(&self.state);
        laws::quarantine(&self.state)?;
        laws::owed(&self.state, &self.machine)
    }

    /// The agent starts, with what is saved.
    fn start(&mut self) -> Law {
        self.elapsed += Duration::from_secs(1);
        self.starts += 1;
        (self.watches, self.noticed) = (false, false);
        self.state = serde_json::from_str(&self.record).unwrap();
        let in_flight = if self.state.job.is_some() { self.machine.journal.in_flight.clone() } else { Vec::new() };
        let (boot, now) = (self.machine.boot_id(), self.now());
        let starts = self.starts;
        self.change(|state| {
            state.started(&boot, Interrupted::Working(&in_flight), now);
            Cause::Start
        })?;
        // One that crashed before that was saved starts again.
        if self.starts == starts { laws::started(&self.state, &self.moment()) } else { Ok(()) }
    }

    fn boot(&mut self, ordered: bool) -> Law {
        self.outside.push(self.elapsed);
        let now = self.now();
        if self.state.restart.is_some() {
            let recent = |at: Timestamp| at <= now && now.duration_since(at) < SignedDuration::from_hours(24);
            let counts = self.state.pending.is_some() || self.restarted.is_some_and(recent);
            self.ordered = if counts { self.ordered } else { 0 } + u32::from(ordered);
            self.restarted = Some(now);
        }
        self.note(if ordered { "the machine restarts" } else { "somebody restarts the machine" });
        // The journal of a job over a part is not flushed.
        if self.state.job.as_ref().is_some_and(|job| !job.only.is_empty()) {
            self.machine.journal.is_lost();
        }
        self.machine.restarted();
        self.elapsed += Duration::from_secs(30);
        self.start()
    }

    /// Something may happen, and the agent does what is next.
    pub(crate) fn turn(&mut self) -> Law {
        if self.chance(35) {
            self.happen()?;
        }
        self.act()
    }

    fn happen(&mut self) -> Law {
        self.outside.push(self.elapsed);
        match self.numbers.below(16) {
            0..=4 => self.deliver(),
            5 => self.restore(),
            6 => self.remove(),
            7 => self.change(|state| match state.use_existing() {
                Ok(_) => Cause::UseExisting,
                Err(_) => Cause::Hold,
            }),
            8 => {
                let settings = settings(&mut self.numbers);
                self.change(|state| {
                    state.configure(settings);
                    Cause::Configure
                })
            }
            9 => self.change(|state| {
                state.hold(HoldReason::Stopped);
                Cause::Hold
            }),
            10 | 11 => {
                self.jump();
                Ok(())
            }
            12 => self.boot(false),
            13 => self.kill(),
            _ => {
                self.machine.drifted = true;
                self.noticed |= self.watches && self.chance(70);
                Ok(())
            }
        }
    }

    fn deliver(&mut self) -> Law {
        let modes = ConfigurationMode::ALL.map(|(_, mode)| Some(mode)).into_iter().chain([None; 6]);
        let mode = modes.clone().nth(self.numbers.below(modes.count())).flatten();
        let content = format!("d{}", self.machine.fates.len());
        self.machine.knows(&content, &mut self.numbers);
        self.note(format!("{content} {mode:?} {:?}", self.machine.fates[&content]));
        let generation = Generation {
            content,
            origin: String::new(),
            identity: None,
            accepted: self.now(),
            user: 0,
            mode,
            instance_modes: BTreeSet::new(),
            converged: None,
            ended: None,
            restores: None,
        };
        let (force, publish) = (self.chance(50), self.chance(15));
        self.change(|state| Cause::Submit(state.submit(Submission { generation, force, publish })))
    }

    fn restore(&mut self) -> Law {
        let number = if self.chance(50) { None } else { Some(self.numbers.below(8) as u64) };
        let Ok(generation) = self.state.to_restore(number) else { return Ok(()) };
        self.change(|state| Cause::Submit(state.submit(Submission { generation, force: true, publish: false })))
    }

    fn remove(&mut self) -> Law {
        let stage = [Stage::Pending, Stage::Current, Stage::Previous][self.numbers.below(3)];
        self.change(|state| Cause::Remove(stage, state.remove(stage)))
    }

    /// The clock is put forward or back, by seconds or by up to ten years.
    fn jump(&mut self) {
        let most: u32 = [60, 24 * 3600, 10 * 365 * 24 * 3600][self.numbers.below(3)];
        let ahead = self.numbers.below(2 * most as usize);
        let by = SignedDuration::from_secs(i64::try_from(ahead).unwrap() - i64::from(most));
        self.note(format!("the clock jumps by {by:#}"));
        self.clock = self.clock.saturating_add(by);
    }

    /// The agent is killed, or the power fails; in the middle of a job instances are in flight.
    fn kill(&mut self) -> Law {
        self.machine.journal.in_flight = vec![format!("killed{}", self.numbers.below(3))];
        if self.chance(50) {
            return self.boot(false);
        }
        self.note("the agent is killed");
        self.start()
    }

    fn act(&mut self) -> Law {
        let next = self.state.next(&self.moment());
        laws::decision(&next, &self.state, &self.moment(), &self.machine)?;
        let boot = self.machine.boot_id();
        match next {
            Next::Begin { generation, kind, work } => {
                let id = format!("j{}", self.begun.len());
                self.machine.journal = crate::machine::Journal::default();
                self.job(&Job { id, generation, kind, work, began: self.now(), boot, only: BTreeSet::new() })
            }
            Next::Resume => {
                let job = self.state.job.clone().ok_or("nothing to resume")?;
                self.machine.journal.in_flight.clear();
                self.job(&Job { boot, ..job })
            }
            Next::Abandon => {
                let journal = self.machine.journal.clone();
                let restart = journal.outcome.map(|outcome| outcome.restart).unwrap_or_default();
                let now = self.now();
                self.change(|state| {
                    state.abandon_job(LeftOver { settled: None, restart }, &boot, now);
                    Cause::Abandon
                })
            }
            Next::Restart => self.restart(),
            Next::Wait { until, because } => match self.state.partial_work(&self.moment()).filter(|_| self.noticed) {
                Some(part) => self.look(part, because),
                None => self.wait(until, because),
            },
        }
    }

    /// A job over the instances whose things changed.
    fn look(&mut self, (generation, work): (u64, Work), because: Waiting) -> Law {
        laws::part((generation, work), because, &self.state, &self.moment(), &self.machine)?;
        self.noticed = false;
        let (id, boot) = (format!("j{}", self.begun.len()), self.machine.boot_id());
        let only = BTreeSet::from(["part".to_owned()]);
        let job = Job { id, generation, kind: JobKind::Consistency, work, began: self.now(), boot, only };
        self.machine.journal = crate::machine::Journal::default();
        self.job(&job)
    }

    fn restart(&mut self) -> Law {
        let most = self.state.settings.max_restarts;
        if self.ordered >= most {
            return Err(format!("restart {} of at most {most}", self.ordered + 1));
        }
        let now = self.now();
        self.change(|state| {
            state.ordered_restart(now);
            Cause::Order
        })?;
        let happens = self.is_fair || self.chance(85);
        if happens && self.state.restart.as_ref().is_some_and(|due| due.ordered.is_some()) {
            self.boot(true)
        } else {
            Ok(())
        }
    }

    fn wait(&mut self, until: Option<Timestamp>, because: Waiting) -> Law {
        let patience =
            if self.is_fair { Duration::from_hours(1) } else { Duration::from_secs(self.numbers.below(20_000) as u64) };
        let wait = until.map_or(patience, |until| until.duration_since(self.now()).unsigned_abs());
        self.elapsed += if self.is_fair { wait } else { wait.min(patience) };
        match because {
            _ if !self.is_fair => Ok(()),
            Waiting::TooManyRestarts => self.boot(false),
            Waiting::Restart if !self.state.settings.reboot_node_if_needed => self.boot(false),
            Waiting::Held(_) => self.ask(),
            _ => Ok(()),
        }
    }

    fn ask(&mut self) -> Law {
        self.outside.push(self.elapsed);
        self.change(|state| state.use_existing().map_or(Cause::Hold, |_| Cause::UseExisting))
    }

    fn job(&mut self, job: &Job) -> Law {
        self.begun.push(self.elapsed);
        self.asked = 0;
        self.note(format!("{:?} {:?} generation {}", job.kind, job.work, job.generation));
        self.is_bounded()?;
        self.is_continued(job)?;
        let (starts, content) = (self.starts, self.state.generations[&job.generation].content.clone());
        self.machine.known = self.state.owed_by(job.generation);
        // A job over a part is recorded when it is about to set something.
        if job.only.is_empty() || self.machine.sets_in_part(&self.state, job) {
            self.parts += usize::from(!job.only.is_empty());
            let job = job.clone();
            self.change(|state| {
                state.begin(job);
                Cause::Begin
            })?;
        }
        if self.starts != starts {
            return Ok(());
        }
        self.elapsed += Duration::from_secs(1 + self.numbers.below(90) as u64);
        let sets = self.state.job.is_some() && job.work == Work::Apply;
        if sets && self.machine.journal.outcome.is_none() && self.chance(30) {
            self.change_something(job, &content)?;
        }
        if self.starts != starts {
            return Ok(());
        }
        if !self.is_fair && self.chance(15) {
            self.happen()?;
        }
        if self.starts == starts { self.finish(job, &content) } else { Ok(()) }
    }

    /// The job changes something that an instance of its document acts on, once that is recorded.
    fn change_something(&mut self, job: &Job, content: &str) -> Law {
        let Some(handler) = self.machine.handler(content, &mut self.numbers) else { return Ok(()) };
        let (starts, number) = (self.starts, job.generation);
        self.change(|state| {
            state.owes(number, &BTreeSet::from([handler.clone()]));
            Cause::Owe
        })?;
        if self.starts == starts {
            self.machine.change_something(&self.state, (number, handler));
        }
        Ok(())
    }

    fn finish(&mut self, job: &Job, content: &str) -> Law {
        let is_aborted = !self.is_fair && self.machine.journal.outcome.is_none() && self.chance(8);
        let worked = if is_aborted {
            self.outside.push(self.elapsed);
            Worked::Ended(self.machine.aborted(&self.state, job))
        } else {
            self.machine.work(&self.state, (job, content), &mut self.numbers)
        };
        match worked {
            Worked::Crashed => {
                // Those over a document that was replaced meanwhile are forgiven.
                let is_staged = [self.state.pending, self.state.current].contains(&Some(job.generation));
                self.crashes += u32::from(is_staged && !self.machine.journal.in_flight.is_empty());
                self.note("the agent crashes over its job");
                if self.crashes > 3 {
                    return Err(format!("{} crashes over {CULPRIT}", self.crashes));
                }
                self.start()
            }
            Worked::Ended(outcome) => {
                self.note(format!("{:?}, restart {:?}, {:?}", outcome.result, outcome.restart, outcome.settled));
                let percent = u8::try_from(self.numbers.below(100)).unwrap();
                let (now, spread) = (self.now(), Spread::new(f64::from(percent) / 100.0));
                self.change(|state| {
                    // One over a part that set nothing was not recorded before.
                    state.job.get_or_insert_with(|| job.clone());
                    state.end(outcome.clone(), now, spread);
                    Cause::End(job.clone(), Box::new(outcome))
                })?;
                laws::retried(job, &self.state, now)?;
                self.watches |= job.only.is_empty() && self.state.current == Some(job.generation);
                let next = self.state.next(&self.moment());
                laws::asked(std::mem::take(&mut self.asked) > 0, &next)
            }
        }
    }

    /// A job after a restart says so, and a job that is resumed is none of another boot.
    fn is_continued(&self, job: &Job) -> Law {
        let expected = self.state.restarts.just_now && job.only.is_empty();
        if expected && self.state.job.is_none() && job.kind != JobKind::Reboot {
            return Err("the first job after a restart does not say so".to_owned());
        }
        Ok(())
    }

    /// Jobs of the last hour: two documents are checked, each is tried with waits that double, and what comes from outside may
    /// have anything done at once.
    fn is_bounded(&self) -> Law {
        let hour = Duration::from_hours(1);
        let recent = |times: &[Duration]| times.iter().rev().take_while(|at| **at + hour > self.elapsed).count();
        let Settings { check_every, pending_backoff: Backoff { base, cap }, .. } = &self.state.settings;
        let times = |wait: Duration| usize::try_from(hour.as_secs() / wait.as_secs().max(1)).unwrap();
        let doublings = (cap.as_secs() / base.as_secs()).max(1).ilog2() as usize;
        let tries = times(*cap) + doublings + 3;
        let most = 2 * (times(*check_every) + 1) + 2 * tries + 6 * (1 + recent(&self.outside));
        let begun = recent(&self.begun);
        if begun > most { Err(format!("{begun} jobs in an hour, at most {most} are to be")) } else { Ok(()) }
    }

    /// From now on nothing fails, and somebody does what only somebody can do. Then the machine converges.
    pub(crate) fn become_fair(&mut self) -> Law {
        self.is_fair = true;
        self.jump();
        self.note("from now on the world is fair");
        self.machine.become_fair();
        let is_staged = |state: &AgentState| state.pending.or(state.current).is_some();
        while is_staged(&self.state) && self.state.crashes.quarantined().next().is_some() {
            self.ask()?;
        }
        let Settings { check_every, splay, pending_backoff, .. } = &self.state.settings;
        // A window for a restart, one for the changes; somebody who restarts or asks within an hour, twice at most.
        let bound = 3 * WEEK + *check_every + *splay + pending_backoff.cap + Duration::from_hours(3);
        let (since, until) = (self.begun.len(), self.elapsed + bound);
        while self.elapsed < until {
            if self.has_converged(since) {
                return Ok(());
            }
            self.act()?;
        }
        Err(format!("not converged within {bound:?}: {:?}", self.state.status(&self.moment(), None)))
    }

    /// Returns whether nothing is left to be done, and everything that is to be checked was since.
    fn has_converged(&self, since: usize) -> bool {
        use ConfigurationMode::{ApplyAndAutoCorrect, ApplyOnly, MonitorOnly};
        let state = &self.state;
        let monitors = |stage| state.staged(stage).is_none_or(|(_, it)| state.mode_of(it) == MonitorOnly);
        let settled = state.job.is_none() && state.restart.is_none() && monitors(Stage::Pending);
        let Some((_, current)) = state.staged(Stage::Current) else { return settled };
        let mode = state.mode_of(current);
        let checked = mode == ApplyOnly || self.begun.len() > since;
        let as_stated = self.machine.applied.as_deref() == Some(&*current.content) && !self.machine.drifted;
        let owes = state.current.and_then(|number| self.machine.owed.get(&number)).is_some_and(|owed| !owed.is_empty());
        settled && checked && (mode != ApplyAndAutoCorrect || as_stated && !owes)
    }
}

fn settings(numbers: &mut Numbers) -> Settings {
    let mut pick = |limit| numbers.below(limit);
    let (_, configuration_mode) = ConfigurationMode::ALL[pick(4)];
    let windows = windows(pick(6));
    let minutes = if windows.is_empty() { [1, 15, 120, 1440] } else { [60, 240, 720, 1440] }[pick(4)];
    let base = Duration::from_secs([1, 30, 300][pick(3)]);
    Settings {
        configuration_mode,
        check_every: Duration::from_mins(minutes),
        splay: Duration::from_secs([0, 30][pick(2)]),
        reboot_node_if_needed: pick(3) > 0,
        action_after_reboot: [ActionAfterReboot::ContinueConfiguration, ActionAfterReboot::StopConfiguration]
            [usize::from(pick(5) == 0)],
        max_restarts: u32::try_from(pick(4)).unwrap(),
        new_document: [NewDocument::Supersede, NewDocument::Refuse][usize::from(pick(4) == 0)],
        max_pending_retries: u32::try_from(pick(4)).unwrap(),
        pending_backoff: Backoff { base, cap: base * [1, 4, 60][pick(3)] },
        windows,
        generations: u32::try_from(pick(5)).unwrap(),
        ..Settings::default()
    }
}

fn windows(drawn: usize) -> Vec<Window> {
    let window = |days: &[i8], from, to, purpose| Window {
        days: days.to_vec(),
        from: Time::constant(from, 0, 0, 0),
        to: Time::constant(to, 0, 0, 0),
        purpose,
    };
    match drawn {
        3 => vec![window(&[], 22, 4, Purpose::Any)],
        4 => vec![window(&[], 1, 5, Purpose::Set), window(&[7], 2, 3, Purpose::Restart)],
        5 => vec![window(&[6], 0, 12, Purpose::Any), window(&[1, 3], 20, 22, Purpose::Set)],
        _ => Vec::new(),
    }
}
