//! Deliveries: what sources have is validated and staged. One of them is followed.

use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use stead_core::diag::{Diagnostic, count_errors, counted, render_all};
use stead_core::event::Mode;
use stead_core::identity::DocumentIdentity;
use stead_engine::{Prepared, Session, SessionOptions, error_chain};
use stead_system::fs::User;

use super::{Agent, Inner};
use crate::control::{Refused, SourceStatus, Staged, Submit};
use crate::job::{SuspendReason, modes_of};
use crate::source::{Folder, Handed, Newer, Source};
use crate::state::{Generation, Refusal, Submission};
use crate::store::{Delivered, StoreError};
use crate::touched::reaches_into;

/// A document that may be staged.
pub(super) struct Valid {
    pub(super) generation: Generation,
    pub(super) delivered: Delivered,
    /// The warnings about it, as they are shown to users.
    pub(super) warnings: String,
    /// What the source is asked with from then on.
    pub(super) digest: Option<String>,
}

/// Who has a document staged, and how.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) user: u32,
    /// True if it takes the place of a pending one whatever the settings say.
    pub(super) force: bool,
    /// True if it is held until an operator asks for it.
    pub(super) publish: bool,
    /// The folder that it comes from. Nothing is staged that comes from one that is not followed any more.
    pub(super) folder: Option<&'a Path>,
}

/// The answer of a source, taken in.
enum Received {
    Nothing,
    Staged(Staged),
    NotNow(Timestamp),
}

/// What the agent knows of the source that it follows.
#[derive(Default)]
pub(super) struct Following {
    /// Why nothing was taken when it was asked last.
    failure: Option<Refused>,
    /// True if it is to be asked at once.
    pub(super) look: bool,
}

/// A source is not asked again sooner.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

/// As long as there is nothing to ask.
const NOTHING_FOLLOWED: Duration = Duration::from_hours(24);

impl Agent {
    /// Takes what somebody hands over.
    pub(super) fn submit(&self, question: Submit, user: u32) -> Result<Staged, Refused> {
        let terms = Terms { user, force: question.force, publish: question.publish, folder: None };
        match self.receive(&Handed(question.delivered), terms)? {
            Received::Staged(staged) => Ok(staged),
            Received::Nothing | Received::NotNow(_) => Err(Refused::new("nothing was delivered")),
        }
    }

    /// Asks a source, and stages what it has.
    fn receive(&self, source: &dyn Source, terms: Terms<'_>) -> Result<Received, Refused> {
        let than = self.lock().state.taken.clone();
        let newer = source.newer(than.as_deref()).map_err(|error| Refused::new(error_chain(&*error)))?;
        Ok(match newer {
            Newer::Nothing => Received::Nothing,
            Newer::NotNow { until } => Received::NotNow(until),
            Newer::Delivery { digest, delivered } => {
                let valid = self.validate(*delivered, terms.user)?;
                Received::Staged(self.stage(Valid { digest, ..valid }, terms)?)
            }
        })
    }

    /// Asks the source that is followed, from time to time, until the agent is to end.
    pub(super) fn follow(&self) {
        let mut inner = self.lock();
        while !inner.stopping {
            inner.following.look = false;
            let settings = &inner.state.settings;
            let asked = (settings.source_folder.clone(), settings.refresh_every);
            let folder = asked.0.clone().map(Folder::new);
            drop(inner);
            let followed = asked.0.as_deref().filter(|_| self.source.is_none());
            let source = self.source.as_deref().or(folder.as_ref().map(|folder| folder as &dyn Source));
            let pause = source.map_or(NOTHING_FOLLOWED, |source| self.ask(source, followed).unwrap_or(asked.1));
            inner = self.lock();
            if source.is_none() {
                inner.following.failure = None;
            }
            let as_before = |inner: &mut Inner| {
                let settings = &inner.state.settings;
                let is_same = (&settings.source_folder, settings.refresh_every) == (&asked.0, asked.1);
                is_same && !inner.stopping && !inner.following.look
            };
            let waited = self.changed.wait_timeout_while(inner, pause, as_before);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Asks a source, and notes why nothing was taken. Returns how long it is not to be asked, if it says so.
    fn ask(&self, source: &dyn Source, folder: Option<&Path>) -> Option<Duration> {
        // To root nothing is followed that others can change.
        let terms = Terms { user: User::current().id, force: false, publish: false, folder };
        let (failure, until) = match self.receive(source, terms) {
            Ok(Received::NotNow(until)) => (None, Some(until)),
            Ok(Received::Nothing | Received::Staged(_)) => (None, None),
            Err(refused) => (Some(refused), None),
        };
        let mut inner = self.lock();
        if !inner.follows(folder) {
            return None;
        }
        if let Some(Refused { message, findings }) = failure.as_ref().filter(|_| failure != inner.following.failure) {
            let source = source.to_string();
            self.log.write("deliveryRefused", json!({ "source": source, "failure": message, "findings": findings }));
        }
        inner.following.failure = failure;
        // A time that has passed says nothing.
        let pause = Duration::try_from(until?.duration_since(Timestamp::now())).ok()?;
        Some(pause.max(SHORTEST_PAUSE))
    }

    /// Returns what is followed, and how that goes.
    pub(super) fn source_status(&self, inner: &Inner) -> Option<SourceStatus> {
        let folder = inner.state.settings.source_folder.as_ref().map(|folder| folder.display().to_string());
        let place = self.source.as_ref().map(ToString::to_string).or(folder)?;
        let (failure, findings) = match inner.following.failure.clone() {
            Some(Refused { message, findings }) => (Some(message), findings),
            None => (None, String::new()),
        };
        Some(SourceStatus { place, taken: inner.state.taken.clone(), failure, findings })
    }

    /// Stages what is valid, and records with it what was taken.
    pub(super) fn stage(&self, valid: Valid, terms: Terms<'_>) -> Result<Staged, Refused> {
        let Terms { force, publish, folder, .. } = terms;
        let Valid { mut generation, delivered, warnings, digest } = valid;
        let mut inner = self.lock();
        if !inner.follows(folder) {
            return Err(Refused::new("the folder is not followed any more"));
        }
        // What is refused leaves nothing behind.
        let trial = Submission { generation: generation.clone(), force, publish };
        inner.state.clone().submit(trial).map_err(|refusal| match refusal {
            Refusal::StillPending { .. } if folder.is_none() => {
                Refused::new(format!("{refusal}; '--force' replaces it"))
            }
            refusal => Refused::new(refusal.to_string()),
        })?;
        generation.content = inner.store.put(&delivered).map_err(|error| unsaved(&error))?;
        let submission = Submission { generation, force, publish };
        let pending = inner.state.pending;
        let number = self.changed(&mut inner, |state| {
            if let Some(digest) = digest {
                state.took(digest);
            }
            state.submit(submission)
        })?;
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
        Ok(Staged { generation: number, warnings })
    }

    /// Validates a document as `apply` does. What is not valid changes nothing.
    pub(super) fn validate(&self, delivered: Delivered, user: u32) -> Result<Valid, Refused> {
        let options = SessionOptions { labels: self.lock().state.settings.labels.clone(), ..SessionOptions::default() };
        let mut session = self.job_host.host.session_with(&delivered.root, options);
        let prepared = crate::job::prepare_or_explain(&mut session, &delivered)
            .map_err(|(count, findings)| invalid(count, findings))?;
        let mut wrong = session.check_properties(&prepared, Mode::PLAN);
        wrong.extend(prepared.graph.refused(session.machine().elevated));
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
        Ok(Valid { generation, delivered, warnings: rendered, digest: None })
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
}

impl Inner {
    /// Returns whether a folder is the one that is followed; what comes from none always counts.
    fn follows(&self, folder: Option<&Path>) -> bool {
        folder.is_none_or(|folder| self.state.settings.source_folder.as_deref() == Some(folder))
    }
}

/// The identity of a document without a name, if it still lies where it came from.
fn identity_of_file(delivered: &Delivered) -> Option<DocumentIdentity> {
    let path = std::fs::canonicalize(delivered.root.join(&delivered.name)).ok()?;
    path.is_file().then(|| DocumentIdentity::of_file(&path))
}

/// The refusal of a document with errors.
pub(super) fn invalid(count: usize, findings: String) -> Refused {
    Refused { message: format!("{} found; nothing was staged", counted(count, "error")), findings }
}

/// The refusal of what cannot be recorded.
pub(super) fn unsaved(error: &StoreError) -> Refused {
    Refused::new(error_chain(error))
}
