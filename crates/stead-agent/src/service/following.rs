//! Asking what is followed: a source of releases, one that was given to the agent, or the folder that the settings name.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use stead_system::fs::User;

use super::deliveries::{Origin, Received, ReleaseView, SHORTEST_PAUSE, Terms};
use super::releases::Reader;
use super::{Agent, Inner};
use crate::settings::Settings;
use crate::source::{Folder, Source, SourceFailure};
use crate::state::{AgentState, Following};

/// What is followed.
struct Asked {
    releases: Option<Following>,
    folder: Option<PathBuf>,
    every: Duration,
}

impl Asked {
    fn of(state: &AgentState) -> Self {
        let Settings { source_folder, refresh_every, .. } = &state.settings;
        Self { releases: state.following.clone(), folder: source_folder.clone(), every: *refresh_every }
    }

    /// Returns whether it is what is followed still.
    fn is_of(&self, state: &AgentState) -> bool {
        let Settings { source_folder, refresh_every, .. } = &state.settings;
        let followed = |following: &Following| following.followed.clone();
        self.releases.as_ref().map(followed) == state.following.as_ref().map(followed)
            && (&self.folder, self.every) == (source_folder, *refresh_every)
    }
}

/// As long as there is nothing to ask.
const NOTHING_FOLLOWED: Duration = Duration::from_hours(24);

impl Agent {
    /// Asks the source that is followed, from time to time, until the agent is to end.
    pub(super) fn follow(self: &Arc<Self>) {
        let mut reader = Reader::default();
        let mut inner = self.lock();
        while !inner.stopping {
            inner.following.look = false;
            let asked = Asked::of(&inner.state);
            drop(inner);
            let pause = match &asked.releases {
                Some(following) => self.look_at_releases(following, &mut reader, asked.every),
                None => self.ask_source(&asked),
            };
            inner = self.lock();
            let as_before = |inner: &mut Inner| asked.is_of(&inner.state) && !inner.stopping && !inner.following.look;
            let waited = self.changed.wait_timeout_while(inner, pause, as_before);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Asks the source that was given, or the folder that the settings name. Returns how long it is not asked again.
    fn ask_source(&self, asked: &Asked) -> Duration {
        let folder = asked.folder.clone().map(Folder::new);
        let followed = match &asked.folder {
            Some(folder) if self.source.is_none() => Origin::Folder(folder),
            _ => Origin::Given,
        };
        let source = self.source.as_deref().or(folder.as_ref().map(|folder| folder as &dyn Source));
        let pause = source.map_or(NOTHING_FOLLOWED, |source| self.ask(source, followed).unwrap_or(asked.every));
        let mut inner = self.lock();
        inner.following.view = ReleaseView::default();
        if source.is_none() {
            inner.following.failure = None;
        }
        pause
    }

    /// Asks a source, and notes why nothing was taken. Returns how long it is not to be asked, if it says so.
    fn ask(&self, source: &dyn Source, origin: Origin<'_>) -> Option<Duration> {
        // To root nothing is followed that others can change.
        let terms = Terms { origin: Some(origin), ..Terms::of(User::current().id) };
        let (failure, until) = match self.receive(source, terms) {
            Ok(Received::NotNow(until)) => (None, Some(until)),
            Ok(Received::Nothing | Received::Staged(_)) => (None, None),
            Err(refused) => (Some(refused), None),
        };
        let mut inner = self.lock();
        if !inner.follows(Some(origin)) {
            return None;
        }
        self.note_failure(&mut inner, &source.to_string(), failure.map(SourceFailure::from));
        // A time that has passed says nothing.
        let pause = Duration::try_from(until?.duration_since(Timestamp::now())).ok()?;
        Some(pause.max(SHORTEST_PAUSE))
    }
}
