//! Deliveries: what sources have is validated and staged. One of them is followed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use stead_core::diag::{Diagnostic, count_errors, counted, render_all};
use stead_core::event::Mode;
use stead_core::identity::DocumentIdentity;
use stead_engine::{Delivery, Prepared, Session, SessionOptions, error_chain};
use stead_release::{Name, RosterHold};
use stead_system::Cancel;

use super::controller::Controller;
use super::{Agent, Inner};
use crate::control::{Offline, Refused, ReleaseStatus, SourceStatus, Staged, Submit};
use crate::job::{SuspendReason, modes_of};
use crate::source::{Handed, Newer, Source, SourceFailure};
use crate::state::{Followed, Following, Generation, Refusal, StagedRelease, Submission};
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
    /// True if no source of releases is followed from then on.
    pub(super) unfollow: bool,
    /// Where it comes from, if nobody delivered it. Nothing is staged that comes from what is not followed any more.
    pub(super) origin: Option<Origin<'a>>,
}

/// Where something comes from that is followed.
#[derive(Clone, Copy)]
pub(super) enum Origin<'a> {
    /// A source that was given to the agent.
    Given,
    /// The folder that the settings name.
    Folder(&'a Path),
    /// A source of releases, and which release it is.
    Releases(&'a Followed, &'a StagedRelease),
}

impl Terms<'_> {
    /// A document of a user, or for one.
    pub(super) fn of(user: u32) -> Self {
        Self { user, force: false, publish: false, unfollow: false, origin: None }
    }
}

/// The answer of a source, taken in.
pub(super) enum Received {
    Nothing,
    Staged(Staged),
    NotNow(Timestamp),
}

/// How the last look at the source that is followed went.
#[derive(Default)]
pub(super) struct LastLook {
    /// Why nothing was taken when it was asked last.
    pub(super) failure: Option<SourceFailure>,
    /// True if it is to be asked at once.
    pub(super) look: bool,
    /// What is shown of a source of releases.
    pub(super) view: ReleaseView,
    /// Ends a look that is under way.
    pub(super) reading: Cancel,
    /// The controller, where one is followed.
    pub(super) controller: Option<Arc<Controller>>,
}

impl LastLook {
    /// Something else is followed from here on: nobody waits for the source before it, and nothing of it is shown.
    pub(super) fn leave(&mut self) {
        self.reading.cancel();
        if let Some(controller) = &self.controller {
            controller.end();
        }
        *self = Self::default();
    }
}

/// What is shown of the source besides what the record says.
#[derive(Clone, Default)]
pub(super) struct ReleaseView {
    /// The name of the fleet.
    pub(super) fleet: Option<Name>,
    /// Since when it cannot be asked, and why.
    pub(super) offline: Option<Offline>,
    /// The secrets that the machine waits for.
    pub(super) waiting: Option<String>,
    /// The hold of the roster.
    pub(super) hold: Option<RosterHold>,
}

impl ReleaseView {
    /// What is shown of releases that are followed.
    pub(super) fn status(&self, following: &Following) -> ReleaseStatus {
        let Following { followed, staged, .. } = following;
        ReleaseStatus {
            fleet: self.fleet.as_ref().map(ToString::to_string),
            root: followed.root.to_string(),
            machine: followed.machine.clone(),
            staged: staged.clone(),
            frozen: following.is_frozen(Timestamp::now()),
            offline: self.offline.clone(),
            controller: None,
            waiting_for: self.waiting.clone(),
            held_until: self.hold.as_ref().map(RosterHold::until),
            held_because: self.hold.as_ref().map(|hold| hold.why().to_owned()),
        }
    }
}

/// A source is not asked again sooner.
pub(super) const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

impl Agent {
    /// Takes what somebody hands over.
    pub(super) fn submit(&self, question: Submit, user: u32) -> Result<Staged, Refused> {
        let Submit { force, publish, unfollow, .. } = question;
        let terms = Terms { force, publish, unfollow, ..Terms::of(user) };
        self.check_way(&self.lock(), terms)?;
        match self.receive(&Handed(question.delivered), terms)? {
            Received::Staged(staged) => Ok(staged),
            Received::Nothing | Received::NotNow(_) => Err(Refused::new("nothing was delivered")),
        }
    }

    /// Asks a source, and stages what it has.
    pub(super) fn receive(&self, source: &dyn Source, terms: Terms<'_>) -> Result<Received, Refused> {
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

    /// Refuses a document of a user while operators decide, unless nothing is to be followed any more.
    pub(super) fn check_way(&self, inner: &Inner, terms: Terms<'_>) -> Result<(), Refused> {
        if terms.origin.is_some() || terms.unfollow {
            return Ok(());
        }
        self.check_local(inner, terms.user, "'--unfollow' ends that")
    }

    /// Notes why nothing was taken of a source, and logs that once.
    pub(super) fn note_failure(&self, inner: &mut Inner, source: &str, failure: Option<SourceFailure>) {
        if let Some(SourceFailure { refused, code }) = failure.as_ref().filter(|_| failure != inner.following.failure) {
            let Refused { message, findings } = refused;
            let line = json!({ "source": source, "failure": message, "code": code, "findings": findings });
            self.log.write("deliveryRefused", line);
        }
        inner.following.failure = failure;
    }

    /// Returns what is followed, and how that goes.
    pub(super) fn source_status(&self, inner: &Inner) -> Option<SourceStatus> {
        let following = inner.state.following.as_ref();
        let folder = inner.state.settings.source_folder.as_ref().map(|folder| folder.display().to_string());
        let releases = following.map(|following| following.followed.source.to_string());
        let place = releases.or(self.source.as_ref().map(ToString::to_string)).or(folder)?;
        let controller = inner.following.controller.as_ref().map(|controller| controller.status());
        let (controller, away, refused) =
            controller.map_or((None, None, None), |(seen, away, refused)| (Some(seen), away, refused));
        let failure = refused.or(inner.following.failure.clone());
        let code = failure.as_ref().and_then(|failure| failure.code.map(str::to_owned));
        let (failure, findings) = match failure.map(|failure| failure.refused) {
            Some(Refused { message, findings }) => (Some(message), findings),
            None => (None, String::new()),
        };
        let releases = following.map(|following| {
            let status = inner.following.view.status(following);
            ReleaseStatus { controller, offline: away.or(status.offline.clone()), ..status }
        });
        Some(SourceStatus { place, taken: inner.state.taken.clone(), failure, code, findings, releases })
    }

    /// Stages what is valid, and records with it what was taken.
    pub(super) fn stage(&self, valid: Valid, terms: Terms<'_>) -> Result<Staged, Refused> {
        let Terms { force, publish, unfollow, origin, .. } = terms;
        let Valid { mut generation, delivered, warnings, digest } = valid;
        let mut inner = self.lock();
        if !inner.follows(origin) {
            return Err(Refused::new("the source is not followed any more"));
        }
        self.check_way(&inner, terms)?;
        // What is refused leaves nothing behind.
        let trial = Submission { generation: generation.clone(), force, publish };
        inner.state.clone().submit(trial).map_err(|refusal| match refusal {
            Refusal::StillPending { .. } if origin.is_none() => {
                Refused::new(format!("{refusal}; '--force' replaces it"))
            }
            refusal => Refused::new(refusal.to_string()),
        })?;
        generation.content = inner.store.put(&delivered).map_err(|error| unsaved(&error))?;
        let submission = Submission { generation, force, publish };
        let pending = inner.state.pending;
        let release = match origin {
            Some(Origin::Releases(_, release)) => Some(release.clone()),
            _ => None,
        };
        let number = self.changed(&mut inner, |state| {
            if unfollow {
                state.unfollow();
            }
            if let Some(digest) = digest {
                state.took(digest);
            }
            let generation = state.submit(submission)?;
            if let Some(release) = &release {
                state.staged_release(StagedRelease { generation, ..release.clone() });
            }
            Ok(generation)
        })?;
        let mut line = json!({ "generation": number, "superseded": pending, "published": publish });
        if let (Some(release), Some(members)) = (&release, line.as_object_mut()) {
            members.insert("release".to_owned(), json!(release.digest));
        }
        self.log.write("documentStaged", line);
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
        self.validate_as(delivered, user, None)
    }

    /// Validates a former generation once more, and warns of what newer ones made and what stays.
    pub(super) fn validate_former(&self, former: Generation, user: u32) -> Result<Valid, Refused> {
        let valid = self.validate_as(self.document(&former.content)?, user, Some(&former))?;
        let Generation { origin, identity, restores, .. } = former;
        Ok(Valid { generation: Generation { origin, identity, restores, ..valid.generation }, ..valid })
    }

    fn validate_as(&self, delivered: Delivered, user: u32, former: Option<&Generation>) -> Result<Valid, Refused> {
        let options = SessionOptions { labels: self.lock().state.settings.labels.clone(), ..SessionOptions::default() };
        let mut session = self.job_host.host.session_with(&delivered.root, options);
        let mut prepared = crate::job::prepare_or_explain(&mut session, &delivered)
            .map_err(|(count, findings)| invalid(count, findings))?;
        let mut wrong = session.check_properties(&prepared, Mode::PLAN);
        wrong.extend(prepared.graph.refused(session.machine().elevated));
        let findings: Vec<Diagnostic> = prepared.warnings.iter().cloned().chain(wrong).collect();
        let mut rendered = render_all(&findings, &prepared.sources, false);
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
            restores: None,
        };
        if let Some((former, document)) = former.and_then(|former| Some((former, former.identity.as_ref()?))) {
            let delivery = Delivery { number: self.lock().state.newest + 1, restores: former.restores };
            prepared.memory = Some(session.memory_of_things(self.job_host.documents.store(), document, delivery));
            session.account_for_removed(&mut prepared, Mode::PLAN);
            let going = prepared.to_be_removed().into_iter().chain(prepared.not_restored()).collect::<Vec<_>>();
            rendered.push_str(&render_all(&going, &prepared.sources, false));
        }
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
    /// Returns whether something is followed still; what users deliver always counts.
    pub(super) fn follows(&self, origin: Option<Origin<'_>>) -> bool {
        match origin {
            None | Some(Origin::Given) => true,
            Some(Origin::Folder(folder)) => self.state.settings.source_folder.as_deref() == Some(folder),
            Some(Origin::Releases(followed, _)) => self.state.follows(followed),
        }
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
