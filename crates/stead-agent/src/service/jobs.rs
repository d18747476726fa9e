//! Jobs: how they begin, what they report while they go on, and what follows from their ends.

use std::collections::BTreeSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use jiff::Timestamp;
use serde_json::json;
use stead_core::event::Event;
use stead_core::run::Owed;
use stead_engine::{Delivery, error_chain};
use stead_system::Cancel;
use stead_system::watch::{Drift, WatchOutcome, Watched};

use super::running::Running;
use super::upkeep::Why;
use super::{Agent, Inner};
use crate::decide::{HeldBack, Moment};
use crate::job::{
    Ended, JobSpec, JournalProblem, JournalSummary, Observer, Rules, Source, Suspension, carry_out, journal_summary,
};
use crate::sink::{EndedJob, Sink};
use crate::state::{Job, JobKind, JobResult, LeftOver, Spread, Work};

impl Agent {
    pub(super) fn new_job(&self, now: Timestamp, generation: u64, kind: JobKind, work: Work) -> Job {
        Job { id: job_id(now), generation, kind, work, began: now, boot: self.boot.clone(), only: BTreeSet::new() }
    }

    /// Begins a job over the instances of the current document whose things changed, if there are any.
    pub(super) fn begin_partial(self: &Arc<Self>, inner: &mut Inner, moment: &Moment) -> bool {
        let Some((generation, work)) = inner.state.partial_work(moment) else { return false };
        let only = inner.take_drifted();
        if only.is_empty() {
            return false;
        }
        let job = Job { only, ..self.new_job(moment.now, generation, JobKind::Consistency, work) };
        self.begin(inner, &job, false)
    }

    /// Has the agent look at what changed, as soon as nothing else is to be done.
    pub(super) fn notice(&self, what: Drift) {
        let mut inner = self.lock();
        match what {
            Drift::Instances(instances) => {
                let pending = inner.state.pending;
                if let Some(pending) =
                    pending.filter(|_| inner.running.as_ref().map(|it| it.job().generation) == pending)
                {
                    inner.touched.see(pending, &instances);
                }
                inner.drifted.extend(instances);
            }
            Drift::Anything => {
                self.log.write("watchOverflowed", json!({}));
                inner.state.check_at_once();
            }
        }
        self.changed.notify_all();
    }

    /// Watches what the instances of the current document manage.
    fn watch(&self, inner: &mut Inner, watched: &[Watched]) {
        if let Some(watcher) = &self.watcher {
            let WatchOutcome { unwatched, newly } = watcher.watch(watched);
            (inner.unwatched, inner.looked_after) = (unwatched, watched.len());
            // Something may have changed between the look at it and now.
            inner.drifted.extend(newly);
        }
    }

    /// Begins a job on a thread of its own; `false` if that cannot be recorded. A job over a part is recorded when it sets
    /// something.
    pub(super) fn begin(self: &Arc<Self>, inner: &mut Inner, job: &Job, resumed: bool) -> bool {
        let Some((spec, source)) = self.spec(inner, job, resumed) else { return false };
        if job.only.is_empty() {
            if !self.save(inner, |state| state.begin(job.clone())) {
                return false;
            }
            self.log_begin(if resumed { "jobResumed" } else { "jobBegan" }, job);
        }
        let (cancel, suspension) = (Cancel::default(), spec.suspension.clone());
        inner.running = Some(Running::new(job.clone(), cancel.clone(), suspension));
        let (agent, journal) = (Arc::clone(self), inner.store.journal(&spec.job.id));
        thread::spawn(move || {
            let carried_out = AssertUnwindSafe(|| carry_out(&agent.job_host, &spec, source, &journal, cancel, &*agent));
            // A defect in a job is a crash of the agent, with what follows from that: nothing less would end it.
            let ended = catch_unwind(carried_out).unwrap_or_else(|_| std::process::abort());
            let mut inner = agent.lock();
            inner.ended = Some((spec.job, ended));
            inner.running = None;
            agent.changed.notify_all();
        });
        true
    }

    fn log_begin(&self, event: &str, job: &Job) {
        let Job { id, generation, kind, work, .. } = job;
        self.log.write(event, json!({ "job": id, "generation": generation, "type": kind, "work": work }));
    }

    /// Returns the job with its rules, settings and document; `None` if that document is not kept any more.
    fn spec(&self, inner: &Inner, job: &Job, resumed: bool) -> Option<(JobSpec, Source)> {
        let generation = inner.state.generations.get(&job.generation)?;
        let source = self.job_host.source(job, &generation.content);
        let held_back = inner.state.held_back(&self.moment());
        let pending = inner.state.pending.filter(|pending| {
            *pending != job.generation && job.work == Work::Apply && held_back == Some(HeldBack::Pending)
        });
        let spec = JobSpec {
            job: job.clone(),
            document: generation.identity.clone(),
            delivery: Delivery { number: job.generation, restores: generation.restores },
            rules: Rules::of(&inner.state, job.generation, generation),
            settings: inner.state.settings.clone(),
            owed: inner.state.owed_by(job.generation),
            intended: Mutex::default(),
            quarantined: inner.state.crashes.quarantined().map(str::to_owned).collect(),
            withheld: inner.state.withheld.get(&job.generation).cloned().unwrap_or_default(),
            uncertain: inner.state.uncertain.clone(),
            resumed,
            width: inner.state.width(),
            held_back,
            touched: pending.map(|pending| inner.touched.by(pending)),
            suspension: Suspension::default(),
        };
        Some((spec, source))
    }

    /// Gives up on the job that was interrupted.
    pub(super) fn abandon(&self, inner: &mut Inner) {
        let Some(job) = inner.state.job.clone() else { return };
        let journal = inner.store.journal(&job.id);
        let JournalSummary { restart, left_running, .. } = journal_summary(&journal);
        self.log.write("jobAbandoned", json!({ "job": job.id, "owed": inner.state.owed_by(job.generation) }));
        inner.state.withhold(job.generation, left_running);
        self.give_up(inner, &LeftOver { settled: None, restart });
        let _ = std::fs::remove_file(journal);
    }

    /// Takes in how a job ended.
    pub(super) fn record(&self, inner: &mut Inner, job: &Job, ended: Result<Ended, JournalProblem>) {
        match ended {
            Ok(mut ended) => {
                let source = self.source_status(inner).filter(|source| source.releases.is_some());
                if let (Some(members), Some(source)) = (ended.report.as_object_mut(), source) {
                    members.insert("source".to_owned(), json!(source));
                }
                self.record_outcome(inner, job, &ended);
            }
            Err(problem) => {
                self.log.write("journalUnusable", json!({ "job": job.id, "failure": error_chain(&problem) }));
                let path = inner.store.journal(&job.id);
                let _ = std::fs::rename(&path, path.with_extension("unusable"));
                self.give_up(inner, &LeftOver::default());
            }
        }
        inner.jobs += 1;
        if inner.state.job.is_none() {
            let _ = std::fs::remove_file(inner.store.journal(&job.id));
        }
        if job.only.is_empty() {
            let now = Timestamp::now();
            if inner.wall_clock.is_steady(Instant::now(), now) {
                let _ = self.reports.prune(crate::state::before(now, inner.state.settings.retention));
            }
            self.sweep(inner);
        }
        self.changed.notify_all();
    }

    fn record_outcome(&self, inner: &mut Inner, job: &Job, ended: &Ended) {
        let Ended { outcome, report, watched, changed, claims, restarts_itself } = ended;
        if *restarts_itself {
            inner.upkeep.ends(Why::Asked);
        }
        let now = Timestamp::now();
        // That a part is in its desired state is worth no line.
        let is_news = job.only.is_empty() || !changed.is_empty() || outcome.result != JobResult::Converged;
        if is_news {
            inner.feed.ended(job, outcome);
        }
        if inner.state.pending == Some(job.generation)
            && let Some(claims) = claims
        {
            inner.touched.learn(job.generation, claims.iter());
        }
        if inner.stopping && outcome.result == JobResult::Aborted {
            // It was stopped in order: the next process begins another, which is worth a report.
            let _ = self.log.take(&EndedJob { at: now, job, outcome, report });
            inner.state.withhold(job.generation, outcome.left_running());
            self.give_up(inner, &LeftOver { settled: outcome.settled.clone(), restart: outcome.restart.clone() });
            return self.sweep(inner);
        }
        let spread = random_spread();
        self.save_or_retry(inner, |state| {
            // One over a part that set nothing was not recorded before.
            state.job.get_or_insert_with(|| job.clone());
            state.has_set(changed);
            state.end(outcome.clone(), now, spread);
        });
        if is_news {
            self.tell(&EndedJob { at: now, job, outcome, report });
        }
        if inner.state.current == Some(job.generation) && job.only.is_empty() && outcome.instances > 0 {
            self.watch(inner, watched);
        }
        if job.kind == JobKind::Consistency {
            self.note_corrections(inner, changed);
        }
    }

    /// Gives a report to all that take them.
    fn tell(&self, ended: &EndedJob<'_>) {
        let shipped: [&dyn Sink; 2] = [&self.log, &self.reports];
        for sink in shipped.into_iter().chain(self.sinks.iter().map(|sink| &**sink as &dyn Sink)) {
            if let Err(error) = sink.take(ended) {
                self.log.write("reportLost", json!({ "job": ended.job.id, "failure": error_chain(&*error) }));
            }
        }
    }

    fn give_up(&self, inner: &mut Inner, left: &LeftOver) {
        let now = Timestamp::now();
        self.save_or_retry(inner, |state| state.abandon_job(left.clone(), &self.boot, now));
    }

    fn note_corrections(&self, inner: &mut Inner, changed: &[String]) {
        let now = Instant::now();
        for instance in changed {
            if inner.flapping.note(instance, now) {
                self.log.write("flapping", json!({ "instance": instance, "failure": "it was corrected repeatedly, and changed again at once" }));
            }
        }
    }

    /// Removes the contents of documents that are not kept any more, and the journals of jobs that are over.
    pub(super) fn sweep(&self, inner: &Inner) {
        let own = inner.state.job.as_ref().map(|job| inner.store.journal(&job.id));
        let journals = inner.store.journal("").parent().and_then(|folder| std::fs::read_dir(folder).ok());
        for journal in journals.into_iter().flatten().flatten().map(|entry| entry.path()) {
            if own.as_ref() != Some(&journal) {
                let _ = std::fs::remove_file(journal);
            }
        }
        if !self.knows_documents {
            return;
        }
        let kept = inner.state.generations.values().map(|generation| generation.content.as_str()).collect();
        if let Err(error) = inner.store.keep_only(&kept) {
            self.log.write("sweepFailed", json!({ "failure": error_chain(&error) }));
        }
    }
}

impl Observer for Agent {
    fn event(&self, event: &Event, settled: usize, all: usize) {
        let mut inner = self.lock();
        let Some(running) = inner.running.as_mut() else { return };
        (running.activity.settled, running.activity.instances) = (settled, all);
        let (job, why) = (running.job().id.clone(), running.note(event));
        drop(inner);
        self.log.event(&job, event, why.as_deref());
    }

    fn owes(&self, instances: &Owed) -> io::Result<()> {
        let mut inner = self.lock();
        let Some(number) = inner.running.as_ref().map(|running| running.job().generation) else { return Ok(()) };
        if self.save(&mut inner, |state| state.owes(number, instances)) {
            return Ok(());
        }
        Err(io::Error::other("the state of the agent cannot be saved"))
    }

    fn announce(&self) -> io::Result<()> {
        let mut inner = self.lock();
        let Some(job) = inner.running.as_ref().map(|running| running.job().clone()) else { return Ok(()) };
        if !inner.state.generations.contains_key(&job.generation) {
            return Err(io::Error::other("the document was removed"));
        }
        if !self.save(&mut inner, |state| state.begin(job.clone())) {
            return Err(io::Error::other("the state of the agent cannot be saved"));
        }
        self.log_begin("jobBegan", &job);
        Ok(())
    }

    fn may_change(&self) -> bool {
        self.is_window_open(&self.lock())
    }

    fn waits(&self, whom: Option<&str>) {
        let mut inner = self.lock();
        let Inner { running, feed, .. } = &mut *inner;
        if let Some(running) = running {
            feed.waits(running.job(), whom);
            running.activity.waits_for = whom.map(str::to_owned);
        }
        self.changed.notify_all();
    }
}

/// Returns a new id for a job: unique, and sorted by time to the millisecond.
fn job_id(now: Timestamp) -> String {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(now.as_nanosecond());
    format!("{}-{:08x}", now.strftime("%Y%m%dT%H%M%S%.3fZ"), random & 0xffff_ffff)
}

/// Another one for each machine and call.
fn random_spread() -> Spread {
    Spread::new(random_part())
}

/// From 0 to 1, another one for each machine and call.
pub(super) fn random_part() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(0_u8) >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    let part = random as f64 / (1_u64 << 53) as f64;
    part
}
