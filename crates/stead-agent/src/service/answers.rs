//! What callers are answered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use stead_core::bundle::Bundle;
use stead_core::diag::{Diagnostic, any_error, count_errors, counted, render_all};
use stead_core::document::ConfigurationMode;
use stead_core::event::Mode;
use stead_core::identity::DocumentIdentity;
use stead_core::text::{Source, Sources};
use stead_engine::{Execution, Prepared, Session, Summary, error_chain, json as printed};

use super::difference::{self, Opened};
use super::upkeep::Why;
use super::{Agent, Inner};
use crate::control::{Goal, Request, Response};
use crate::decide::{Next, Waiting};
use crate::job::{SuspendReason, modes_of};
use crate::settings::Settings;
use crate::state::{Ended, Generation, Held, JobResult, Refusal, Stage, State, Submission};
use crate::status::Health;
use crate::store::{Delivered, StoreError};
use crate::touched::reaches_into;

/// After this time whoever waits is answered in any case.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A document that may be staged.
struct Valid {
    generation: Generation,
    delivered: Delivered,
    /// What is suspicious about it, as it is shown to users.
    warnings: String,
}

impl Agent {
    /// Answers a request of a user.
    pub(super) fn answer(&self, request: Request, user: u32) -> Response {
        let answer = match request {
            Request::Submit { delivered, force, publish } => self.submit((delivered, user), force, publish),
            Request::UseExisting => self.change(State::use_existing).map(|number| json!({ "generation": number })),
            Request::Check => self.inspect(Mode::TEST),
            Request::Get => self.inspect(Mode::GET),
            Request::Status => Ok(self.status()),
            Request::Wait { goal, milliseconds, seen, patient } => {
                Ok(self.wait_for(&Waited { goal, patient }, seen, Duration::from_millis(milliseconds)))
            }
            Request::Stop { force } => self.stop(force),
            Request::History => Ok(self.history()),
            Request::Restore { generation, force } => self.restore(generation, user, force),
            Request::Texts { from, to } => self.texts(from, to),
            Request::Remove { stage, force } => self.remove(stage, force),
            Request::Acknowledge => {
                self.change(|state| Ok(state.acknowledge())).map(|count| json!({ "forgotten": count }))
            }
            Request::Settings => Ok(settings_of(&self.lock().state.settings)),
            Request::Change { changes } => self.change_settings(&changes),
            Request::Load { name, text } => self.load_settings(&name, &text),
            Request::Reports { most } => self.reports(most),
            Request::Report { job } => self.report(&job),
            Request::Log { most } => Ok(json!({ "lines": crate::log::last_lines(&self.directory, most) })),
        };
        match answer {
            Ok(answer) => Response::Done(answer),
            Err(Refused { message, findings }) => Response::Refused { message, findings },
        }
    }

    /// Validates a document as `apply` does, and stages it. What is not valid changes nothing.
    fn submit(&self, (delivered, user): (Delivered, u32), force: bool, publish: bool) -> Answer {
        let valid = self.validate(delivered, user)?;
        self.stage(valid, force, publish)
    }

    fn stage(&self, valid: Valid, force: bool, publish: bool) -> Answer {
        let Valid { mut generation, delivered, warnings } = valid;
        let mut inner = self.lock();
        // What is refused leaves nothing behind.
        let trial = Submission { generation: generation.clone(), force, publish };
        inner.state.clone().submit(trial).map_err(|refusal| Refused::new(refusal.to_string()))?;
        generation.content = inner.store.put(&delivered).map_err(|error| unsaved(&error))?;
        let submission = Submission { generation, force, publish };
        let pending = inner.state.pending;
        let number = self.changed(&mut inner, |state| state.submit(submission))?;
        self.log.write("documentStaged", json!({ "generation": number, "superseded": pending, "published": publish }));
        // What is worked on is not wanted any more.
        if let Some(running) =
            inner.running.as_ref().filter(|running| Some(running.job().generation) == pending || force)
        {
            running.suspension.suspend(SuspendReason::Operator);
            if force {
                running.cancel.cancel();
            }
        }
        self.sweep(&inner);
        Ok(json!({ "generation": number, "warnings": warnings }))
    }

    fn validate(&self, delivered: Delivered, user: u32) -> Result<Valid, Refused> {
        let mut session = self.job_host.host.session(&delivered.root);
        let prepared = crate::job::prepare_or_explain(&mut session, &delivered)
            .map_err(|(count, findings)| invalid(count, findings))?;
        let mut wrong = session.check_properties(&prepared, Mode::PLAN);
        wrong.extend(prepared.graph.refused(session.machine.elevated));
        let findings: Vec<Diagnostic> = prepared.warnings.iter().cloned().chain(wrong).collect();
        let rendered = render_all(&findings, &prepared.sources, false);
        let errors = count_errors(&findings);
        if errors > 0 {
            return Err(invalid(errors, rendered));
        }
        self.refuse_own(&session, &prepared)?;
        let document = prepared.graph.scopes.first().map(|scope| &scope.document);
        let generation = Generation {
            content: String::new(),
            origin: delivered.name.clone(),
            identity: prepared.stated_identity().or_else(|| identity_of_file(&delivered)),
            accepted: Timestamp::now(),
            user,
            mode: document.and_then(|document| document.directives.configuration_mode.as_ref()).map(|mode| mode.value),
            instance_modes: modes_of(&prepared.graph),
            converged: None,
            ended: None,
        };
        Ok(Valid { generation, delivered, warnings: rendered })
    }

    /// Refuses a document that manages what this agent needs: its documents, its key, its socket.
    fn refuse_own(&self, session: &Session, prepared: &Prepared) -> Result<(), Refused> {
        let graph = &prepared.graph;
        let own = std::fs::canonicalize(&self.directory).unwrap_or_else(|_| self.directory.clone());
        let claims = session.stated_claims(graph, graph.order.iter().copied());
        let Some((id, _)) = claims.iter().find(|(_, claims)| reaches_into(claims, &own)) else { return Ok(()) };
        let path = &graph.node(*id).path;
        Err(Refused::new(format!(
            "{path} manages what belongs to the agent, in '{}'; remove that instance",
            own.display()
        )))
    }

    /// Changes the state and saves that, or neither.
    fn changed<T>(
        &self,
        inner: &mut Inner,
        change: impl FnOnce(&mut State) -> Result<T, Refusal>,
    ) -> Result<T, Refused> {
        let mut changed = inner.state.clone();
        let value = change(&mut changed).map_err(|refusal| Refused::new(refusal.to_string()))?;
        inner.store.save(&changed).map_err(|error| unsaved(&error))?;
        inner.state = changed;
        self.changed.notify_all();
        Ok(value)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> Result<T, Refusal>) -> Result<T, Refused> {
        self.changed(&mut self.lock(), change)
    }

    /// Tests or reads what is staged: the current document, and for a test the pending one as well.
    fn inspect(&self, mode: Mode) -> Answer {
        let documents: Vec<(Stage, u64, String)> = {
            let inner = self.lock();
            let both = [Stage::Current, Stage::Pending].into_iter();
            let staged = both.filter_map(|stage| Some((stage, inner.state.staged(stage)?)));
            staged.map(|(stage, (number, generation))| (stage, number, generation.content.clone())).collect()
        };
        if documents.is_empty() {
            return refused("there is no current and no pending document; 'stead agent apply FILE' delivers one");
        }
        let most = if mode == Mode::GET { 1 } else { documents.len() };
        let deadline = self.lock().state.settings.resource_timeout;
        let _inspection = Inspection::new(&self.inspecting);
        let mut reports = Vec::new();
        for (stage, number, content) in documents.into_iter().take(most) {
            let delivered = self.document(&content)?;
            let mut session = self.job_host.host.session_with(&delivered.root, self.inspections.clone());
            session.deadline = deadline;
            reports.push(json!({
                "stage": stage,
                "generation": number,
                "report": report_of(&mut session, &delivered, mode)?,
            }));
        }
        Ok(json!({ "documents": reports }))
    }

    fn status(&self) -> Json {
        let (mut inner, moment) = (self.lock(), self.moment());
        let activity = inner.running.as_ref().map(|running| &running.activity);
        let mut status = inner.state.status(&moment, activity);
        let postponed: Vec<String> = inner.drifted.iter().filter(|_| inner.running.is_none()).cloned().collect();
        if inner.unsaved.is_some() {
            status.health = status.health.max(Health::Failing);
        } else if !postponed.is_empty() {
            status.health = status.health.max(Health::Drifted);
        }
        let progress = activity.map(|it| json!({ "Settled": it.settled, "Instances": it.instances }));
        let doing = activity.map(|activity| activity.troubles.clone());
        let watched = inner.looked_after.saturating_sub(inner.unwatched.len());
        let more = [
            ("Progress", progress),
            ("Troubles", doing.map(|troubles| json!(troubles))),
            ("Flapping", Some(json!(inner.flapping.reached(Instant::now())))),
            ("Postponed", Some(json!(postponed))),
            ("Watched", Some(json!({ "Instances": inner.looked_after, "Watched": watched }))),
            ("NotWatched", Some(json!(inner.unwatched))),
            ("NotSaved", inner.unsaved.as_ref().map(|why| json!(why))),
            ("Version", Some(json!(env!("CARGO_PKG_VERSION")))),
            ("ProgramReplaced", Some(json!(inner.upkeep.ends == Some(Why::ProgramReplaced)))),
        ];
        let mut status = json!(status);
        if let Some(members) = status.as_object_mut() {
            members.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        }
        status
    }

    /// Answers when the goal is reached, there is news, or after a short time: a caller that is still there asks
    /// again, so that the agent never waits for one that is gone.
    fn wait_for(&self, waited: &Waited, seen: Option<u64>, at_most: Duration) -> Json {
        let began = Instant::now();
        let mut inner = self.lock();
        // A caller that has seen nothing gets entries from now on.
        let seen = seen.unwrap_or_else(|| inner.feed.count());
        loop {
            let reached = self.reached(&inner, waited);
            let left = at_most.min(LONGEST_WAIT).saturating_sub(began.elapsed());
            if reached.is_some() || left.is_zero() || inner.feed.count() > seen {
                let waiting = inner.state.waiting_for(&self.moment());
                return json!({
                    "done": reached.is_some(),
                    "converged": reached == Some("converged"),
                    "outcome": reached,
                    "waitingFor": waiting.as_ref().map(|(why, _)| why),
                    "failures": inner.state.failed_attempts(&self.moment()),
                    "nextAttempt": waiting.as_ref().and_then(|(_, until)| *until),
                    "last": inner.state.last,
                    "jobs": inner.jobs,
                    "events": inner.feed.after(seen),
                    "seen": inner.feed.count(),
                });
            }
            inner = self.wait(inner, left);
        }
    }

    /// How what is waited for ended, in a word; `None` while it has not.
    fn reached(&self, inner: &Inner, Waited { goal, patient }: &Waited) -> Option<&'static str> {
        let state = &inner.state;
        let has_converged = state.last.as_ref().is_none_or(|last| last.result == JobResult::Converged);
        let generation = match goal {
            Goal::Job { .. } if state.pending.is_none() && state.current.is_none() => return Some("none"),
            Goal::Job { after } => {
                return (inner.jobs > *after).then_some(if has_converged { "converged" } else { "failed" });
            }
            Goal::Rest => None,
            Goal::Generation { number } => Some((number, state.generations.get(number))),
        };
        match generation {
            Some((_, Some(generation))) if generation.converged.is_some() => return Some("converged"),
            Some((_, Some(Generation { ended: Some(Ended::Removed), .. }))) => return Some("removed"),
            Some((number, found)) if state.pending != Some(*number) || found.is_none() => return Some("superseded"),
            _ => {}
        }
        if !self.is_at_rest(inner, *patient) {
            return None;
        }
        // A document that is only monitored never becomes current; that it is in its desired state is all there can be.
        let is_monitored = |generation: &Generation| state.mode_of(generation) == ConfigurationMode::MonitorOnly;
        if state.pending.is_none() && state.current.is_none() {
            return Some("none");
        }
        let last = match state.staged(Stage::Pending) {
            Some((_, generation)) if !is_monitored(generation) => return Some("waiting"),
            Some(_) => state.progress.last.as_ref(),
            None => state.checked.as_ref(),
        };
        let has_converged = last.is_none_or(|last| last.result == JobResult::Converged);
        Some(if has_converged { "converged" } else { "waiting" })
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
    fn stop(&self, force: bool) -> Answer {
        let mut inner = self.lock();
        let retries = matches!(inner.state.pending_waits_for(&self.moment()), Some((_, Waiting::Retry)));
        let generation = match &inner.running {
            Some(running) => running.job().generation,
            None => inner.state.pending.filter(|_| retries).ok_or_else(|| Refused::new("no job is under way"))?,
        };
        if inner.state.pending == Some(generation) {
            self.changed(&mut inner, |state| {
                state.hold(Held::Stopped);
                Ok(())
            })?;
        }
        if let Some(running) = &inner.running {
            running.suspension.suspend(SuspendReason::Operator);
            if force {
                running.cancel.cancel();
            }
        }
        Ok(json!({ "job": inner.running.as_ref().map(|running| running.job().id.clone()), "generation": generation }))
    }

    fn history(&self) -> Json {
        let inner = self.lock();
        let state = &inner.state;
        let entries = state.generations.iter().rev().map(|(number, generation)| {
            let within = [Stage::Pending, Stage::Current, Stage::Previous]
                .into_iter()
                .find(|stage| state.staged(*stage).is_some_and(|(staged, _)| staged == *number));
            json!({
                "generation": number,
                "stage": within,
                "origin": generation.origin,
                "user": generation.user,
                "content": generation.content,
                "accepted": generation.accepted,
                "converged": generation.converged,
                "ended": generation.ended,
            })
        });
        json!({ "generations": entries.collect::<Vec<_>>() })
    }

    fn restore(&self, generation: Option<u64>, user: u32, force: bool) -> Answer {
        let former = self.lock().state.to_restore(generation);
        let former = former.map_err(|refusal| Refused::new(refusal.to_string()))?;
        let valid = self.validate(self.document(&former.content)?, user)?;
        let generation = Generation { origin: former.origin, identity: former.identity, ..valid.generation };
        self.stage(Valid { generation, ..valid }, force, false)
    }

    fn texts(&self, from: Option<u64>, to: Option<u64>) -> Answer {
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
    fn document(&self, content: &str) -> Result<Delivered, Refused> {
        self.job_host.documents.get(content).map_err(|error| unsaved(&error))
    }

    fn remove(&self, stage: Stage, force: bool) -> Answer {
        let mut inner = self.lock();
        let staged = inner.state.staged(stage).map(|(number, _)| number);
        if let Some(running) = inner.running.as_ref().filter(|running| Some(running.job().generation) == staged) {
            if !force {
                return refused(format!("a job works on the {} document; '--force' ends it first", stage.as_str()));
            }
            running.suspension.suspend(SuspendReason::Operator);
            running.cancel.cancel();
        }
        let number = self.changed(&mut inner, |state| state.remove(stage))?;
        self.log.write("documentRemoved", json!({ "generation": number, "stage": stage }));
        self.sweep(&inner);
        Ok(json!({ "generation": number }))
    }

    fn change_settings(&self, changes: &[(String, String)]) -> Answer {
        let mut inner = self.lock();
        let mut settings = inner.state.settings.clone();
        for (name, value) in changes {
            settings = settings.with(name, value).map_err(|why| Refused::new(error_chain(&why)))?;
        }
        self.changed(&mut inner, |state| {
            state.configure(settings);
            Ok(())
        })?;
        self.log.write("settingsChanged", json!({ "names": changes.iter().map(|(name, _)| name).collect::<Vec<_>>() }));
        Ok(settings_of(&inner.state.settings))
    }

    fn load_settings(&self, name: &str, text: &str) -> Answer {
        let mut sources = Sources::default();
        let source = sources.add(Source::new(name, text));
        let (settings, findings) = Settings::read(source, text);
        let rendered = render_all(&findings, &sources, false);
        if any_error(&findings) {
            let message = "the settings are not valid; nothing was changed".to_owned();
            return Err(Refused { message, findings: rendered });
        }
        self.change(|state| {
            state.configure(settings.clone());
            Ok(())
        })?;
        self.log.write("settingsLoaded", json!({ "origin": name }));
        let mut answer = settings_of(&settings);
        answer["warnings"] = rendered.into();
        Ok(answer)
    }

    fn reports(&self, most: usize) -> Answer {
        let reports = self.reports.list(most).map_err(|error| Refused::new(error_chain(&error)))?;
        let reports = reports.into_iter().map(|(at, job, report)| json!({ "at": at, "job": job, "report": report }));
        Ok(json!({ "reports": reports.collect::<Vec<_>>() }))
    }

    fn report(&self, job: &str) -> Answer {
        let failed = |error| Refused::new(error_chain(&error));
        if let Some((_, report)) = self.reports.get(job).map_err(failed)? {
            return Ok(report);
        }
        let mut found = self.reports.ids().map_err(failed)?.into_iter().filter(|id| id.contains(job));
        match (found.next(), found.next()) {
            (Some(id), None) => {
                Ok(self.reports.get(&id).map_err(failed)?.map(|(_, report)| report).unwrap_or_default())
            }
            (Some(_), Some(_)) => {
                refused(format!("several jobs have '{job}' in their ids; 'stead agent report' lists them"))
            }
            (None, _) => refused(format!("there is no report of a job '{job}'; 'stead agent report' lists them")),
        }
    }
}

/// Two deliveries, and in what they differ.
fn compared(from: &(u64, Delivered), to: &(u64, Delivered)) -> Answer {
    let bundle = |(_, delivered): &(u64, Delivered)| {
        delivered.bundle().map_err(|error| Refused::new(format!("cannot use the bundle: {error}")))
    };
    let (from_bundle, to_bundle) = (bundle(from)?, bundle(to)?);
    let before = Opened { delivered: &from.1, bundle: from_bundle.as_deref() };
    let after = Opened { delivered: &to.1, bundle: to_bundle.as_deref() };
    let side = |number: u64, opened: &Opened<'_>| {
        json!({
            "generation": number,
            "name": opened.delivered.name,
            "bundle": opened.bundle.map(Bundle::name),
            "text": opened.text(),
        })
    };
    Ok(json!({
        "from": side(from.0, &before),
        "to": side(to.0, &after),
        "parameters": difference::parameters(&before, &after),
        "files": difference::files(&before, &after),
    }))
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

/// The goal of a caller that waits, and whether it is patient.
struct Waited {
    goal: Goal,
    patient: bool,
}

/// The settings: as a file, and each with its value.
fn settings_of(settings: &Settings) -> Json {
    json!({ "settings": settings.to_yaml(), "values": settings.to_json() })
}

type Answer = Result<Json, Refused>;

/// Why something was refused: a sentence, and what is wrong with a document as it is shown to users.
struct Refused {
    message: String,
    findings: String,
}

impl Refused {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), findings: String::new() }
    }
}

fn refused(message: impl Into<String>) -> Answer {
    Err(Refused::new(message))
}

fn invalid(count: usize, findings: String) -> Refused {
    Refused { message: format!("{} found; nothing was staged", counted(count, "error")), findings }
}

fn unsaved(error: &StoreError) -> Refused {
    Refused::new(error_chain(error))
}

fn report_of(session: &mut Session, delivered: &Delivered, mode: Mode) -> Answer {
    let began = Instant::now();
    let prepared =
        crate::job::prepare_or_explain(session, delivered).map_err(|(count, findings)| invalid(count, findings))?;
    let run = session.run(&prepared, Execution::new(mode, session.host().width()));
    let run = run.map_err(|error| Refused::new(error_chain(&error)))?;
    Ok(printed::report(&run, &Summary::of(&run), began.elapsed()))
}

/// The identity of a document without a name, if it still lies where it came from.
fn identity_of_file(delivered: &Delivered) -> Option<DocumentIdentity> {
    let path = std::fs::canonicalize(delivered.root.join(&delivered.name)).ok()?;
    path.is_file().then(|| DocumentIdentity::of_file(&path))
}
