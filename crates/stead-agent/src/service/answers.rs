//! The answers to callers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use stead_core::diag::{any_error, render_all};
use stead_core::document::ConfigurationMode;
use stead_core::event::Mode;
use stead_core::text::{Source, Sources};
use stead_engine::{RunOptions, Session, SessionOptions, Summary, error_chain, json as printed};

use super::deliveries::{Terms, invalid, unsaved};
use super::difference::{self, Opened};
use super::upkeep::Why;
use super::{Agent, Inner};
use crate::Moment;
use crate::control::{
    Acknowledge, Acknowledged, Affected, AgentStatus, Ask, ChangeSettings, Check, Compare, Compared, Comparison,
    Document, Follow, Get, Goal, History, Inspected, InspectedDocument, JobProgress, JobReport, KeptGeneration,
    ListReports, ListedReport, Listing, LoadSettings, LogLines, MachineStatus, ReadHistory, ReadLog, ReadReport,
    ReadSettings, ReadStatus, Refused, Remove, Request, Response, Restore, RunReport, SettingsNow, SignReports,
    SourceStatus, Staged, Stop, Stopping, Submit, Unfollow, UseExisting, Wait, WaitOutcome, Waited, WatchedCounts,
};
use crate::decide::{Next, Waiting};
use crate::job::SuspendReason;
use crate::reports::Stored;
use crate::settings::{InvalidSetting, Settings};
use crate::state::{AgentState, Ended, Generation, HoldReason, JobResult, Refusal, Stage};
use crate::status::Health;
use crate::store::Delivered;

/// After this time whoever waits is answered in any case.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl Inner {
    /// The health of the machine, as its status shows it and its controller is said.
    pub(super) fn health(&self, moment: &Moment, machine: &MachineStatus, source: Option<&SourceStatus>) -> Health {
        let is_frozen = |source: &SourceStatus| source.releases.as_ref().is_some_and(|releases| releases.frozen);
        let fails = |source: &SourceStatus| source.failure.is_some() || is_frozen(source);
        let of_runs = self.state.health(moment);
        match () {
            () if self.unsaved.is_some() || machine.failure.is_some() => of_runs.max(Health::Failing),
            () if source.is_some_and(fails) => of_runs.max(Health::Failing),
            () if self.running.is_none() && !self.drifted.is_empty() => of_runs.max(Health::Drifted),
            () => of_runs,
        }
    }
}

impl Agent {
    pub(super) fn answer(&self, request: Request, user: u32) -> Response {
        match request {
            Request::Submit(question) => self.submit(question, user).answers::<Submit>(),
            Request::UseExisting(_) => {
                let begun = self.change(AgentState::use_existing).map(|generation| Affected { generation });
                begun.answers::<UseExisting>()
            }
            Request::Check(_) => self.inspect(Mode::TEST).answers::<Check>(),
            Request::Get(_) => self.inspect(Mode::GET).answers::<Get>(),
            Request::ReadStatus(_) => Ok(self.status()).answers::<ReadStatus>(),
            Request::Wait(question) => Ok(self.wait_for(&question)).answers::<Wait>(),
            Request::Stop(question) => self.stop(question.force).answers::<Stop>(),
            Request::ReadHistory(_) => Ok(self.history()).answers::<ReadHistory>(),
            Request::Restore(question) => self.restore(question, user).answers::<Restore>(),
            Request::Compare(question) => self.compare(question).answers::<Compare>(),
            Request::Remove(question) => self.remove(question, user).answers::<Remove>(),
            Request::Acknowledge(_) => {
                let forgotten = self.change(|state| Ok(state.acknowledge()));
                forgotten.map(|forgotten| Acknowledged { forgotten }).answers::<Acknowledge>()
            }
            Request::ReadSettings(_) => Ok(settings_of(&self.lock().state.settings)).answers::<ReadSettings>(),
            Request::ChangeSettings(question) => self.change_settings(&question.changes).answers::<ChangeSettings>(),
            Request::LoadSettings(question) => self.load_settings(&question).answers::<LoadSettings>(),
            Request::ListReports(question) => self.reports(question).answers::<ListReports>(),
            Request::ReadReport(question) => self.report(&question.job).answers::<ReadReport>(),
            Request::SignReports(question) => self.sign_reports(question).answers::<SignReports>(),
            Request::Follow(question) => self.follow_source(question).answers::<Follow>(),
            Request::Unfollow(question) => self.unfollow(question, user).answers::<Unfollow>(),
            Request::ReadLog(question) => {
                let lines = crate::log::last_lines(&self.directory, question.most);
                Ok(LogLines { lines }).answers::<ReadLog>()
            }
        }
    }

    /// Changes the state and saves that, or neither.
    pub(super) fn changed<T>(
        &self,
        inner: &mut Inner,
        change: impl FnOnce(&mut AgentState) -> Result<T, Refusal>,
    ) -> Result<T, Refused> {
        let mut changed = inner.state.clone();
        let value = change(&mut changed).map_err(|refusal| Refused::new(refusal.to_string()))?;
        inner.store.save(&changed).map_err(|error| unsaved(&error))?;
        let followed = |state: &AgentState| state.following.as_ref().map(|following| following.followed.clone());
        let is_left = followed(&inner.state) != followed(&changed);
        inner.state = changed;
        if is_left {
            inner.following.leave();
        }
        self.changed.notify_all();
        Ok(value)
    }

    fn change<T>(&self, change: impl FnOnce(&mut AgentState) -> Result<T, Refusal>) -> Result<T, Refused> {
        self.changed(&mut self.lock(), change)
    }

    /// Tests or reads what is staged: the current document, and for a test the pending one as well.
    fn inspect(&self, mode: Mode) -> Result<Inspected, Refused> {
        let documents: Vec<(Stage, u64, String)> = {
            let inner = self.lock();
            let both = [Stage::Current, Stage::Pending].into_iter();
            let staged = both.filter_map(|stage| Some((stage, inner.state.staged(stage)?)));
            staged.map(|(stage, (number, generation))| (stage, number, generation.content.clone())).collect()
        };
        if documents.is_empty() {
            let nothing = "there is no current and no pending document; 'stead agent apply FILE' delivers one";
            return Err(Refused::new(nothing));
        }
        let most = if mode == Mode::GET { 1 } else { documents.len() };
        let Settings { resource_timeout: deadline, labels, .. } = self.lock().state.settings.clone();
        let _inspection = Inspection::new(&self.inspecting);
        let mut inspected = Vec::new();
        for (stage, generation, content) in documents.into_iter().take(most) {
            let delivered = self.document(&content)?;
            let (cancel, deadline) = (self.inspections.clone(), Some(deadline));
            let options = SessionOptions { cancel, deadline, labels: labels.clone(), ..SessionOptions::default() };
            let mut session = self.job_host.host.session_with(&delivered.root, options);
            let report = report_of(&mut session, &delivered, mode)?;
            inspected.push(InspectedDocument { stage, generation, report });
        }
        Ok(Inspected { documents: inspected })
    }

    fn status(&self) -> AgentStatus {
        let (mut inner, moment) = (self.lock(), self.moment());
        let activity = inner.running.as_ref().map(|running| &running.activity);
        let mut status = inner.state.status(&moment, activity);
        let postponed: Vec<String> = inner.drifted.iter().filter(|_| inner.running.is_none()).cloned().collect();
        let machine = MachineStatus::now(&inner.state.settings.labels);
        let source = self.source_status(&inner);
        status.health = inner.health(&moment, &machine, source.as_ref());
        AgentStatus {
            status,
            machine,
            progress: activity.map(|it| JobProgress { settled: it.settled, instances: it.instances }),
            troubles: activity.map(|activity| activity.troubles.clone()),
            postponed,
            watched: WatchedCounts {
                instances: inner.looked_after,
                watched: inner.looked_after.saturating_sub(inner.unwatched.len()),
            },
            not_watched: inner.unwatched.iter().cloned().collect(),
            not_saved: inner.unsaved.clone(),
            source,
            reporting: inner.reporting.status(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            program_replaced: inner.upkeep.ends == Some(Why::ProgramReplaced),
            flapping: inner.flapping.reached(Instant::now()),
        }
    }

    /// Answers when the goal is reached, there is news, or after a short time: a caller that is still there asks
    /// again, so that the agent never waits for one that is gone.
    fn wait_for(&self, question: &Wait) -> Waited {
        let (began, at_most) = (Instant::now(), Duration::from_millis(question.milliseconds));
        let mut inner = self.lock();
        // A caller that has seen nothing gets entries from now on.
        let seen = question.seen.unwrap_or_else(|| inner.feed.count());
        loop {
            let outcome = self.reached(&inner, question);
            let left = at_most.min(LONGEST_WAIT).saturating_sub(began.elapsed());
            if outcome.is_some() || left.is_zero() || inner.feed.count() > seen {
                let waiting = inner.state.waiting_for(&self.moment());
                return Waited {
                    done: outcome.is_some(),
                    converged: outcome == Some(WaitOutcome::Converged),
                    outcome,
                    next_attempt: waiting.as_ref().and_then(|(_, until)| *until),
                    waiting_for: waiting.map(|(why, _)| why),
                    failures: inner.state.failed_attempts(&self.moment()),
                    last: inner.state.last.clone(),
                    jobs: inner.jobs,
                    events: inner.feed.after(seen),
                    seen: inner.feed.count(),
                };
            }
            inner = self.wait(inner, left);
        }
    }

    /// Returns how the goal that is waited for ended; `None` while it has not.
    fn reached(&self, inner: &Inner, Wait { goal, patient, .. }: &Wait) -> Option<WaitOutcome> {
        let state = &inner.state;
        let has_converged = state.last.as_ref().is_none_or(|last| last.result == JobResult::Converged);
        let generation = match goal {
            Goal::Job { .. } if state.pending.is_none() && state.current.is_none() => return Some(WaitOutcome::None),
            Goal::Job { after } => {
                return (inner.jobs > *after).then_some(if has_converged {
                    WaitOutcome::Converged
                } else {
                    WaitOutcome::Failed
                });
            }
            Goal::Rest => None,
            Goal::Generation { number } => Some((number, state.generations.get(number))),
        };
        match generation {
            Some((_, Some(generation))) if generation.converged.is_some() => return Some(WaitOutcome::Converged),
            Some((_, Some(Generation { ended: Some(Ended::Removed), .. }))) => return Some(WaitOutcome::Removed),
            Some((number, found)) if state.pending != Some(*number) || found.is_none() => {
                return Some(WaitOutcome::Superseded);
            }
            _ => {}
        }
        if !self.is_at_rest(inner, *patient) {
            return None;
        }
        // A document that is only monitored never becomes current; that it is in its desired state is all there can be.
        let is_monitored = |generation: &Generation| state.mode_of(generation) == ConfigurationMode::MonitorOnly;
        if state.pending.is_none() && state.current.is_none() {
            return Some(WaitOutcome::None);
        }
        let last = match state.staged(Stage::Pending) {
            Some((_, generation)) if !is_monitored(generation) => return Some(WaitOutcome::Waiting),
            Some(_) => state.progress.last.as_ref(),
            None => state.checked.as_ref(),
        };
        let has_converged = last.is_none_or(|last| last.result == JobResult::Converged);
        Some(if has_converged { WaitOutcome::Converged } else { WaitOutcome::Waiting })
    }

    /// Returns whether nothing more happens for now to the pending document, or to the current one where there is
    /// none: it has failed, or waits for a window, a restart or an operator. With `patient`, waits that end by
    /// themselves do not count as rest.
    fn is_at_rest(&self, inner: &Inner, patient: bool) -> bool {
        let (state, moment) = (&inner.state, self.moment());
        let worked_on = state.pending.or(state.current);
        let is_running = inner.running.as_ref().is_some_and(|running| Some(running.job().generation) == worked_on);
        if is_running || inner.ended.is_some() || state.job.is_some() && inner.running.is_none() {
            return false;
        }
        match state.pending_waits_for(&moment) {
            Some((_, Waiting::Held(_) | Waiting::TooManyRestarts | Waiting::Check | Waiting::Document)) => true,
            Some((_, Waiting::Restart)) => !patient || !state.settings.reboot_node_if_needed,
            Some((until, Waiting::Window)) => !patient || until.is_none(),
            Some((_, Waiting::Retry)) => !patient,
            Some((_, Waiting::Crashes)) => false,
            None => state.pending.is_none() && matches!(state.next(&moment), Next::Wait { .. }),
        }
    }

    /// Ends the job under way, and the tries of its document. Between two tries there is no job.
    fn stop(&self, force: bool) -> Result<Stopping, Refused> {
        let mut inner = self.lock();
        let retries = matches!(inner.state.pending_waits_for(&self.moment()), Some((_, Waiting::Retry)));
        let generation = match &inner.running {
            Some(running) => running.job().generation,
            None => inner.state.pending.filter(|_| retries).ok_or_else(|| Refused::new("no job is under way"))?,
        };
        if inner.state.pending == Some(generation) {
            self.changed(&mut inner, |state| {
                state.hold(HoldReason::Stopped);
                Ok(())
            })?;
        }
        if let Some(running) = &inner.running {
            running.suspension.suspend(SuspendReason::Operator);
            if force {
                running.cancel.cancel();
            }
        }
        Ok(Stopping { job: inner.running.as_ref().map(|running| running.job().id.clone()), generation })
    }

    fn history(&self) -> History {
        let inner = self.lock();
        let state = &inner.state;
        let kept = state.generations.iter().rev().map(|(number, generation)| KeptGeneration {
            generation: *number,
            stage: [Stage::Pending, Stage::Current, Stage::Previous]
                .into_iter()
                .find(|stage| state.staged(*stage).is_some_and(|(staged, _)| staged == *number)),
            origin: generation.origin.clone(),
            user: generation.user,
            content: generation.content.clone(),
            accepted: generation.accepted,
            converged: generation.converged,
            ended: generation.ended,
        });
        History { generations: kept.collect() }
    }

    fn restore(&self, Restore { generation, force, unfollow }: Restore, user: u32) -> Result<Staged, Refused> {
        let terms = Terms { force, unfollow, ..Terms::of(user) };
        self.check_way(&self.lock(), terms)?;
        let former = self.lock().state.to_restore(generation);
        let former = former.map_err(|refusal| Refused::new(refusal.to_string()))?;
        self.stage(self.validate_former(former, user)?, terms)
    }

    fn compare(&self, Compare { from, to }: Compare) -> Result<Comparison, Refused> {
        let [from, to] = {
            let inner = self.lock();
            let state = &inner.state;
            let named = |number: Option<u64>| {
                let nothing = "nothing to compare: only one document was delivered";
                let number = number.ok_or_else(|| Refused::new(nothing))?;
                let generation = state.generations.get(&number);
                let generation = generation.ok_or_else(|| Refused::new(Refusal::NoGeneration(number).to_string()))?;
                Ok((number, generation.content.clone()))
            };
            [named(from.or(state.current))?, named(to.or(state.pending).or(state.previous))?]
        };
        compared(&(from.0, self.document(&from.1)?), &(to.0, self.document(&to.1)?))
    }

    /// Reads and unseals a stored document without the lock of the agent. Refused if it is missing or damaged, or cannot be read.
    pub(super) fn document(&self, content: &str) -> Result<Delivered, Refused> {
        self.job_host.documents.get(content).map_err(|error| unsaved(&error))
    }

    fn remove(&self, Remove { stage, force }: Remove, user: u32) -> Result<Affected, Refused> {
        let mut inner = self.lock();
        self.check_local(&inner, user, "'stead agent unfollow' ends that")?;
        let staged = inner.state.staged(stage).map(|(number, _)| number);
        if let Some(running) = inner.running.as_ref().filter(|running| Some(running.job().generation) == staged) {
            if !force {
                let why = format!("a job works on the {} document; '--force' ends it first", stage.as_str());
                return Err(Refused::new(why));
            }
            running.suspension.suspend(SuspendReason::Operator);
            running.cancel.cancel();
        }
        let number = self.changed(&mut inner, |state| state.remove(stage))?;
        self.log.write("documentRemoved", json!({ "generation": number, "stage": stage }));
        self.sweep(&inner);
        Ok(Affected { generation: number })
    }

    fn change_settings(&self, changes: &[(String, String)]) -> Result<SettingsNow, Refused> {
        let mut inner = self.lock();
        let mut settings = inner.state.settings.clone();
        for (name, value) in changes {
            settings = settings.with(name, value).map_err(|InvalidSetting { message, help }| {
                Refused::new(help.map_or_else(|| message.clone(), |help| format!("{message}; {help}")))
            })?;
        }
        may_configure(&inner, &settings)?;
        self.changed(&mut inner, |state| {
            state.configure(settings);
            Ok(())
        })?;
        self.log.write("settingsChanged", json!({ "names": changes.iter().map(|(name, _)| name).collect::<Vec<_>>() }));
        Ok(settings_of(&inner.state.settings))
    }

    fn load_settings(&self, LoadSettings { name, text }: &LoadSettings) -> Result<SettingsNow, Refused> {
        let mut sources = Sources::default();
        let source = sources.add(Source::new(name.as_str(), text.as_str()));
        let (settings, findings) = Settings::read(source, text);
        let rendered = render_all(&findings, &sources, false);
        if any_error(&findings) {
            let message = "the settings are not valid; nothing was changed".to_owned();
            return Err(Refused { message, findings: rendered });
        }
        let mut inner = self.lock();
        may_configure(&inner, &settings)?;
        self.changed(&mut inner, |state| {
            state.configure(settings.clone());
            Ok(())
        })?;
        self.log.write("settingsLoaded", json!({ "origin": name }));
        Ok(SettingsNow { warnings: Some(rendered), ..settings_of(&settings) })
    }

    fn reports(&self, question: ListReports) -> Result<Listing, Refused> {
        let failed = |error| Refused::new(error_chain(&error));
        let found = match question.after {
            Some(after) => self.reports.after(after, question.most),
            None => self.reports.list(question.most),
        };
        let found = found.map_err(failed)?;
        let next = found.iter().map(|stored| stored.number + 1).max().or(question.after);
        // One that another version wrote otherwise keeps nobody from the others.
        let listed = found.into_iter().filter_map(|Stored { at, job, report, .. }| match Document::of(report) {
            Ok(report) => Some(ListedReport { at, job, report }),
            Err(error) => {
                self.log.write("reportUnreadable", json!({ "job": job, "failure": error.to_string() }));
                None
            }
        });
        Ok(Listing { reports: listed.collect(), next })
    }

    fn report(&self, job: &str) -> Result<Document<JobReport>, Refused> {
        let failed = |error| Refused::new(error_chain(&error));
        let id = match self.reports.get(job).map_err(failed)? {
            Some(found) => return Document::of(found.report).map_err(|error| unreadable(&error)),
            None => self.id_of_job(job)?,
        };
        let found = self.reports.get(&id).map_err(failed)?.ok_or_else(|| no_report(job))?;
        Document::of(found.report).map_err(|error| unreadable(&error))
    }

    /// The id of the one job with this text in it.
    fn id_of_job(&self, part: &str) -> Result<String, Refused> {
        let ids = self.reports.ids().map_err(|error| Refused::new(error_chain(&error)))?;
        let mut found = ids.into_iter().filter(|id| id.contains(part));
        match (found.next(), found.next()) {
            (Some(id), None) => Ok(id),
            (Some(_), Some(_)) => {
                Err(Refused::new(format!("several jobs have '{part}' in their ids; 'stead agent report' lists them")))
            }
            (None, _) => Err(no_report(part)),
        }
    }
}

/// Refuses a folder beside a source of releases: one of them would undo what the other one does.
fn may_configure(inner: &Inner, settings: &Settings) -> Result<(), Refused> {
    let is_both = settings.source_folder.is_some() && inner.state.following.is_some();
    let message = "SourceFolder cannot be set while a source of releases is followed; 'stead agent unfollow' ends that";
    if is_both { Err(Refused::new(message)) } else { Ok(()) }
}

fn no_report(job: &str) -> Refused {
    Refused::new(format!("there is no report of a job '{job}'; 'stead agent report' lists them"))
}

fn unreadable(error: &serde_json::Error) -> Refused {
    Refused::new(format!("a report has another form than this agent writes: {error}"))
}

/// Turns the answer to a question, or its refusal, into the response.
trait Answers<A> {
    /// The response, in the form that the question asks for.
    fn answers<Q: Ask<Answer = A>>(self) -> Response;
}

impl<A: serde::Serialize> Answers<A> for Result<A, Refused> {
    fn answers<Q: Ask<Answer = A>>(self) -> Response {
        match self.map(serde_json::to_value) {
            Ok(Ok(answer)) => Response::Done(answer),
            Ok(Err(error)) => Response::Refused(Refused::new(format!("the answer cannot be written: {error}"))),
            Err(refused) => Response::Refused(refused),
        }
    }
}

/// Two deliveries, and in what they differ.
fn compared(from: &(u64, Delivered), to: &(u64, Delivered)) -> Result<Comparison, Refused> {
    let bundle = |(_, delivered): &(u64, Delivered)| {
        delivered.bundle().map_err(|error| Refused::new(format!("cannot use the bundle: {error}")))
    };
    let (from_bundle, to_bundle) = (bundle(from)?, bundle(to)?);
    let before = Opened { delivered: &from.1, bundle: from_bundle.as_deref() };
    let after = Opened { delivered: &to.1, bundle: to_bundle.as_deref() };
    let side = |generation: u64, opened: &Opened<'_>| Compared {
        generation,
        name: opened.delivered.name.clone(),
        bundle: opened.bundle.map(|bundle| bundle.name().to_owned()),
        text: opened.text().to_owned(),
    };
    Ok(Comparison {
        from: side(from.0, &before),
        to: side(to.0, &after),
        parameters: difference::parameters(&before, &after),
        files: difference::files(&before, &after),
    })
}

/// Something that is tested or read for a caller, until this is dropped.
struct Inspection<'a>(&'a AtomicUsize);

impl<'a> Inspection<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Inspection<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn settings_of(settings: &Settings) -> SettingsNow {
    SettingsNow { settings: settings.to_yaml(), values: settings.to_json(), warnings: None }
}

fn report_of(session: &mut Session, delivered: &Delivered, mode: Mode) -> Result<Document<RunReport>, Refused> {
    let began = Instant::now();
    let prepared =
        crate::job::prepare_or_explain(session, delivered).map_err(|(count, findings)| invalid(count, findings))?;
    let run = session.run(&prepared, RunOptions::new(mode, session.host().width()));
    let run = run.map_err(|error| Refused::new(error_chain(&error)))?;
    let report = printed::report(&run, &Summary::of(&run), began.elapsed());
    Document::of(report).map_err(|error| unreadable(&error))
}
