//! The recording of a run: its events, and what it changes, as it was before.

use std::num::NonZeroUsize;

use jiff::Timestamp;
use stead_core::event::Event;
use stead_core::run::Run;
use stead_engine::{RunOptions, Summary, error_chain};
use stead_host::journal::{Beginning, FileJournal, Journal, JournalError, OpenJournalError, RecordedRuns, RunId};
use stead_host::store::images::{Images, ImagesError, OnFailure, Read, Scene};
use stead_host::store::keys;

use super::history;
use super::ready::Ready;
use crate::detached;
use crate::exit::Exit;
use crate::request::RecordingRequest;
use crate::terminal::complain;

/// Where a run is to be recorded.
pub(super) struct Recorder {
    runs: RecordedRuns,
    keep: NonZeroUsize,
    /// True if it was asked for; an undo is recorded without that.
    stated: bool,
    detaches: bool,
    /// The run that this one takes back.
    undoes: Option<RunId>,
    /// What an earlier part of that kept, which this one goes on with.
    earlier: Vec<Read>,
}

/// A run that is being recorded.
pub(super) struct Recording {
    id: RunId,
    journal: Box<dyn Journal>,
    /// `None` where what it changes cannot be kept.
    images: Option<Images>,
}

impl Recorder {
    /// Opens the directory of recorded runs; `None` where that cannot be used and nobody asked for it, which is reported.
    pub(super) fn open(request: &RecordingRequest) -> Result<Option<Self>, Exit> {
        let RecordingRequest { keep, stated, detaches, .. } = *request;
        let directory = match history::folder(request.runs.as_deref()) {
            None if !stated => return Ok(None),
            _ => history::directory(request.runs.as_deref())?,
        };
        let recorder = |runs| Self { runs, keep, stated, detaches, undoes: None, earlier: Vec::new() };
        settled(RecordedRuns::create(&directory).map(recorder), stated)
    }

    /// The recorder of a run that takes another one back, or goes on with that.
    pub(super) fn undoes(self, run: &RunId, earlier: Vec<Read>) -> Self {
        Self { undoes: Some(run.clone()), earlier, ..self }
    }

    /// Returns whether recording was asked for.
    pub(super) fn is_stated(&self) -> bool {
        self.stated
    }

    /// Begins to record a run, which goes on without whoever asked for it where that is asked for.
    pub(super) fn begin(&self, ready: &Ready) -> Result<Option<Recording>, Exit> {
        let Some(run) = settled(self.runs.begin(Timestamp::now(), self.undoes.as_ref()), self.stated)? else {
            return Ok(None);
        };
        let undoes = self.undoes.as_ref().map(ToString::to_string);
        let images = self.images(&run, Scene { undoes, ..ready.session.scene(&ready.prepared) });
        let Some((id, journal)) = settled(run.journal(self.keep), self.stated)? else { return Ok(None) };
        let images = images.map_err(|why| tracing::warn!("this run cannot be taken back: {why}")).ok();
        let journal: Box<dyn Journal> = match (self.stated, &images) {
            (true, _) => Box::new(journal),
            (false, images) => Box::new(Dispensable { journal: Some(journal), images: images.clone() }),
        };
        if self.detaches {
            detached::detach(&id);
        }
        Ok(Some(Recording { id, journal, images }))
    }

    fn images(&self, run: &Beginning<'_>, scene: Scene) -> Result<Images, String> {
        let keys = keys().map_err(|error| error_chain(&error))?;
        let keys = keys.ok_or("there is no home folder; STEAD_STATE names a folder to keep it in")?;
        let file = run.images().map_err(|error| error_chain(&error))?;
        let on_failure = if self.stated { OnFailure::Stop } else { OnFailure::GoOn };
        let begun = Images::begin(file, &keys, scene, on_failure).and_then(|images| {
            images.go_on(&self.earlier)?;
            Ok(images)
        });
        begun.map_err(|error: ImagesError| error_chain(&error))
    }

    /// Forgets a run that changed nothing, failed at nothing and ended nothing, unless it was to be recorded.
    pub(super) fn end(&self, id: &RunId, run: &Run, summary: &Summary) {
        let is_nothing = !summary.has_changes() && !summary.has_failures(run) && !run.report().cancelled;
        if is_nothing && self.earlier.is_empty() && !self.stated {
            self.runs.forget(id);
        }
    }
}

/// The journal of a run that goes on without it when it cannot be written.
struct Dispensable {
    journal: Option<FileJournal>,
    images: Option<Images>,
}

impl Journal for Dispensable {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let Err(error) = journal.append(events) else { return Ok(()) };
        self.journal = None;
        let why = error_chain(&error);
        if let Some(images) = &self.images {
            images.give_up(&why);
        } else {
            tracing::warn!("the record of this run ends early: {why}");
        }
        Ok(())
    }
}

impl Recording {
    /// Has a run recorded. Returns its name.
    pub(super) fn into_execution(self, execution: &mut RunOptions<'_>) -> RunId {
        execution.journal = self.journal;
        execution.images = self.images;
        self.id
    }
}

/// What was opened; `None` where it cannot be, and nobody asked for it.
fn settled<T>(opened: Result<T, OpenJournalError>, stated: bool) -> Result<Option<T>, Exit> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if stated => {
            complain(&format!("error: cannot record the run: {}; nothing was run", error_chain(&error)));
            complain("help: '--runs FOLDER' names another directory; without '--record' no run is recorded");
            Err(Exit::Unusable)
        }
        Err(error) => {
            tracing::warn!("the run is not recorded and cannot be taken back: {}", error_chain(&error));
            Ok(None)
        }
    }
}
