//! The recording of a run: its events, and what it changes, as it was before.

use std::cell::OnceCell;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use jiff::Timestamp;
use stead_core::event::{Event, EventKind};
use stead_core::run::Run;
use stead_engine::{RunOptions, Summary, error_chain};
use stead_host::journal::{Beginning, FileJournal, Journal, JournalError, OpenJournalError, RecordedRuns, RunId};
use stead_host::store::images::{Direction, Images, ImagesError, OnFailure, Read, Scene};
use stead_host::store::keys;

use super::history;
use super::ready::Ready;
use crate::detached;
use crate::exit::Exit;
use crate::request::RecordingRequest;
use crate::terminal::complain;

/// Where a run is to be recorded.
pub(super) struct Recorder {
    directory: PathBuf,
    keep: NonZeroUsize,
    /// True if it was asked for. What was not is recorded from its first change on.
    stated: bool,
    detaches: bool,
    /// The run that this one takes back.
    undoes: Option<RunId>,
    /// What an earlier part of that kept, which this one goes on with.
    earlier: Vec<Read>,
}

/// The name of a run that is recorded, once it is.
pub(super) type RecordedAs = Rc<OnceCell<RunId>>;

impl Recorder {
    /// The recorder that is asked for. One that was stated has its directory; `None` for a user without a store who stated nothing.
    pub(super) fn open(request: &RecordingRequest) -> Result<Option<Self>, Exit> {
        let RecordingRequest { keep, stated, detaches, .. } = *request;
        let directory = match history::folder(request.runs.as_deref()) {
            None if !stated => return Ok(None),
            _ => history::directory(request.runs.as_deref())?,
        };
        if stated {
            RecordedRuns::create(&directory).map_err(|error| refused(&error))?;
        }
        Ok(Some(Self { directory, keep, stated, detaches, undoes: None, earlier: Vec::new() }))
    }

    /// The recorder of a run that takes another one back, or goes on with that.
    pub(super) fn undoes(self, run: &RunId, earlier: Vec<Read>) -> Self {
        Self { undoes: Some(run.clone()), earlier, ..self }
    }

    /// Returns whether recording was asked for.
    pub(super) fn is_stated(&self) -> bool {
        self.stated
    }

    /// Has a run recorded, which goes on without whoever asked for it where that is asked for.
    pub(super) fn record<'r>(&'r self, ready: &'r Ready, execution: &mut RunOptions<'r>) -> Result<RecordedAs, Exit> {
        let root = ready.session.system_root().unwrap_or(Path::new("/"));
        let on_failure = if self.stated { OnFailure::Stop } else { OnFailure::GoOn };
        let images = Images::without_file(root, Direction::of(self.undoes.as_ref()), on_failure);
        let mut recording =
            Recording { recorder: self, ready, images, id: Rc::default(), standing: Standing::Waits(Vec::new()) };
        let id = Rc::clone(&recording.id);
        if !self.stated {
            // One that goes on with another is that one's end, whether or not there is anything left to change.
            if !self.earlier.is_empty() {
                recording.begin();
            }
            execution.images = Some(recording.images.clone());
            execution.journal = Box::new(recording);
            return Ok(id);
        }
        let (run, journal, kept) = recording.begun().map_err(|error| refused(&error))?;
        execution.images = kept.map_err(|why| tracing::warn!("this run cannot be taken back: {why}")).ok();
        execution.journal = Box::new(journal);
        if self.detaches {
            detached::detach(&run);
        }
        let _ = id.set(run);
        Ok(id)
    }

    /// Forgets a run that changed nothing, failed at nothing and ended nothing, unless it was to be recorded.
    pub(super) fn end(&self, recorded: &RecordedAs, run: &Run, summary: &Summary) {
        let is_nothing = !summary.has_changes() && !summary.has_failures(run) && !run.report().cancelled;
        let Some(id) = recorded.get().filter(|_| is_nothing && self.earlier.is_empty() && !self.stated) else { return };
        if let Ok(Some(runs)) = RecordedRuns::open(&self.directory) {
            runs.forget(id);
        }
    }
}

/// The journal of a run that nobody asked to be recorded: it begins with the first change, and the run goes on without it where it
/// cannot be written.
struct Recording<'r> {
    recorder: &'r Recorder,
    ready: &'r Ready,
    images: Images,
    id: RecordedAs,
    standing: Standing,
}

enum Standing {
    /// Nothing was changed so far; these are the events, as they came.
    Waits(Vec<Vec<Event>>),
    Recorded(FileJournal),
    GivenUp,
}

impl Recording<'_> {
    /// Begins the record. What the run changes is kept where that can be begun as well.
    fn begun(&self) -> Result<(RunId, FileJournal, Result<Images, String>), OpenJournalError> {
        let Recorder { directory, keep, undoes, .. } = self.recorder;
        let runs = RecordedRuns::create(directory)?;
        let run = runs.begin(Timestamp::now(), undoes.as_ref())?;
        let kept = self.keep(&run).map(|()| self.images.clone());
        let (id, journal) = run.journal(*keep)?;
        Ok((id, journal, kept))
    }

    fn keep(&self, run: &Beginning<'_>) -> Result<(), String> {
        let keys = keys().map_err(|error| error_chain(&error))?;
        let keys = keys.ok_or("there is no home folder; STEAD_STATE names a folder to keep it in")?;
        let file = run.images().map_err(|error| error_chain(&error))?;
        let undoes = self.recorder.undoes.as_ref().map(ToString::to_string);
        let scene = Scene { undoes, ..self.ready.session.scene(&self.ready.prepared) };
        let opened = self.images.open(file, &keys, scene);
        let kept = opened.and_then(|()| self.images.go_on(&self.recorder.earlier));
        kept.map_err(|error: ImagesError| error_chain(&error))
    }

    fn begin(&mut self) {
        self.standing = match self.begun() {
            Ok((id, journal, kept)) => {
                if let Err(why) = kept {
                    tracing::warn!("this run cannot be taken back: {why}");
                }
                let _ = self.id.set(id);
                Standing::Recorded(journal)
            }
            Err(error) => {
                tracing::warn!("this run is not recorded and cannot be taken back: {}", error_chain(&error));
                Standing::GivenUp
            }
        };
    }

    fn write(&mut self, events: &[Event]) {
        let Standing::Recorded(journal) = &mut self.standing else { return };
        if let Err(error) = journal.append(events) {
            self.standing = Standing::GivenUp;
            self.images.give_up(&error_chain(&error));
        }
    }
}

impl Drop for Recording<'_> {
    /// Taking the events of a run that changed nothing apart would only take time, as the program ends.
    fn drop(&mut self) {
        if let Standing::Waits(so_far) = &mut self.standing {
            std::mem::forget(std::mem::take(so_far));
        }
    }
}

impl Journal for Recording<'_> {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        if let Standing::Waits(so_far) = &mut self.standing {
            if !events.iter().any(begins_a_change) {
                return Ok(());
            }
            let so_far = std::mem::take(so_far);
            self.begin();
            for events in so_far {
                self.write(&events);
            }
        }
        self.write(events);
        Ok(())
    }

    fn counted(&mut self, events: Vec<Event>) {
        if let Standing::Waits(so_far) = &mut self.standing {
            so_far.push(events);
        }
    }
}

/// Returns whether a call is announced that may change something.
pub(super) fn begins_a_change(event: &Event) -> bool {
    match event.kind {
        EventKind::CallStarted { operation, execution, .. } => operation.changes_in(execution),
        _ => false,
    }
}

fn refused(error: &OpenJournalError) -> Exit {
    complain(&format!("error: cannot record the run: {}; nothing was run", error_chain(error)));
    complain("help: '--runs FOLDER' names another directory; without '--record' the run goes on without its record");
    Exit::Unusable
}
