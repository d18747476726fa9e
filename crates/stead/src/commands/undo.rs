//! `undo`: what a recorded run changed is taken back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use stead_core::diag::counted;
use stead_core::event::Mode;
use stead_core::history::{History, RunEnd};
use stead_engine::{NotTakenBack, ReconcileOptions, Undo, UndoDocument, error_chain};
use stead_host::journal::{RecordedRuns, RunId};
use stead_host::store::images::{self, Read};
use stead_host::store::{Keys, keys};

use super::ready::{Ready, get_ready};
use super::recorder::{Recorder, begins_a_change};
use super::{Done, Task, carry_out, confirm, history};
use crate::exit::Exit;
use crate::process_env::ProcessEnv;
use crate::request::{AboutRun, DocumentRequest, MadeDocument, Origin, Supplied, UndoRequest, View, Volume};
use crate::terminal::{self, complain, plain};
use crate::{input, interrupt};

/// Shows what is taken back, asks, and takes it back.
pub(crate) fn undo(request: &UndoRequest, env: &ProcessEnv) -> Exit {
    undone(request, env).unwrap_or_else(|exit| exit)
}

fn undone(request: &UndoRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let Target { id, undo, earlier, is_cut } = found(request)?;
    let mut kept = undo.kept();
    kept.extend(is_cut.then(|| NotTakenBack {
        what: format!("run {id}"),
        why: "the end of what was kept of it is missing: it may have changed more than this".to_owned(),
        acts_again: false,
    }));
    let Some(document) = undo.document(id.as_str(), &env.host, request.force) else {
        return Err(unusable("the run cannot be taken back", "please report this bug"));
    };
    let about = AboutRun::default();
    let ready = |mode| ready(&document, &undo, request.view, (&id, mode));
    let asks = request.asks && input::is_terminal() && terminal::is_watched();
    if request.shows || asks {
        let ready = ready(Mode::PLAN)?;
        let planned = carry_out(&ready, request.view, Task::new(Mode::PLAN, &about), env)?;
        complain_of(&kept);
        if request.shows {
            return Ok(planned.end(ready));
        }
        consent(&ready, &id, &planned)?;
    } else {
        complain_of(&kept);
        if request.asks && kept.iter().any(|each| !each.acts_again) {
            return Err(unusable("not all of the run can be taken back", "--yes takes back the rest"));
        }
        if request.view.volume != Volume::Quiet {
            complain(&format!("Taking back run {id} of {}", plain(&undo.scene.origin)));
        }
    }
    let recorder = request.recording.as_ref().map(Recorder::open).transpose()?.flatten();
    let recorder = recorder.map(|recorder| recorder.undoes(&id, earlier));
    let ready = ready(Mode::APPLY)?;
    let task = Task { recorder: recorder.as_ref(), ..Task::new(Mode::APPLY, &about) };
    Ok(carry_out(&ready, request.view, task, env)?.end(ready))
}

fn unusable(message: &str, help: &str) -> Exit {
    complain(&format!("error: {message}"));
    complain(&format!("help: {help}"));
    Exit::Unusable
}

/// Why what a run that is named changed may not be there.
const MADE_ROOM: &str = "an earlier version recorded it, or what was kept of it made room for later runs";

/// The way on where the last run cannot be taken back.
const OTHERS: &str = "'stead undo RUN' takes back an earlier one; 'stead history' lists them";

fn not_kept(id: &RunId, help: &str) -> Exit {
    unusable(&format!("what run {id} changed was not kept"), help)
}

/// The document of an undo, ready to be run.
fn ready(document: &UndoDocument, undo: &Undo, view: View, (id, when): (&RunId, Mode)) -> Result<Ready, Exit> {
    let name = format!("undo of {id}");
    let (path, text, identity) = (PathBuf::from(&name), document.text.clone(), document.identity.clone());
    let origin = Origin::Made(MadeDocument { path, name, text, bundle: None, identity });
    let folder = Some(undo.scene.folder.clone()).filter(|folder| folder.is_dir());
    let request = DocumentRequest {
        origin,
        supplied: Supplied {
            parameters: Some(document.parameters.clone()),
            root: folder.or_else(|| Some(PathBuf::from("/"))),
            ..Supplied::default()
        },
        system_root: undo.scene.root.clone(),
        ..DocumentRequest::on_command_line(String::new())
    };
    let session = document.host.session(request.supplied.root.clone().unwrap_or_default());
    interrupt::catch(&session);
    // What is still working is called again, as by apply.
    get_ready(&request, view, session, (when, &ReconcileOptions::default()))
}

/// Names what stays as it is.
fn complain_of(kept: &[NotTakenBack]) {
    for NotTakenBack { what, why, .. } in kept {
        complain(&format!("cannot be taken back: {}: {why}", plain(what)));
    }
}

fn consent(ready: &Ready, id: &RunId, planned: &Done) -> Result<(), Exit> {
    if !planned.summary.has_changes() {
        return Ok(());
    }
    let changed = counted(planned.summary.totals.drifted + planned.summary.totals.changed, "change");
    confirm::ask(&format!("Take back {changed} of run {id}?"), ready.session.cancel())
}

/// A run that is taken back.
struct Target {
    id: RunId,
    undo: Undo,
    /// What an undo of it has kept so far, which this one goes on with.
    earlier: Vec<Read>,
    /// True of a run that came to its end, which what was kept of it does not have.
    is_cut: bool,
}

/// The run that is meant, and what it changed.
fn found(request: &UndoRequest) -> Result<Target, Exit> {
    let directory = history::directory(request.runs.as_deref())?;
    let runs = RecordedRuns::open(&directory).map_err(|error| history::failed(&error))?;
    let ids =
        runs.as_ref().map_or_else(|| Ok(Vec::new()), RecordedRuns::ids).map_err(|error| history::failed(&error))?;
    let nothing = || {
        unusable(
            "no recorded run changed anything",
            "'stead apply' records what it changes, unless '--no-record' is given",
        )
    };
    let (Some(runs), Some(keys)) = (runs, keys().map_err(|error| failed(&error))?) else { return Err(nothing()) };
    let found = Found { folder: runs, keys, ids };
    let root = request.system_root.as_deref();
    let id = match request.run.as_deref() {
        Some(text) => history::chosen(text, &found.ids, &directory)?,
        None => found.last(root)?.ok_or_else(|| match found.elsewhere(root) {
            Some(help) => unusable("no recorded run changed anything here", &help),
            None => nothing(),
        })?,
    };
    let run = found.folder.read(&id);
    if run.as_ref().is_ok_and(|run| run.is_running) {
        let help = "wait until it ends, or stop it: an undo now would miss what it still changes";
        return Err(unusable(&format!("run {id} is still running"), help));
    }
    let undo = found.read(&id)?.ok_or_else(|| not_kept(&id, MADE_ROOM))?;
    let earlier = found.earlier(&id, &undo)?;
    let is_cut = !undo.is_whole() && run.is_ok_and(|run| History::of(&run.events).end() == RunEnd::Finished);
    Ok(Target { id, undo, earlier, is_cut })
}

fn failed(error: &dyn std::error::Error) -> Exit {
    complain(&format!("error: {}", error_chain(error)));
    Exit::Failed
}

struct Found {
    folder: RecordedRuns,
    keys: Keys,
    ids: Vec<RunId>,
}

/// How far an undo came.
#[derive(PartialEq, Eq)]
enum Progress {
    /// It took back all that it was to take back.
    Over,
    /// It ended before that, or something failed.
    Open,
    /// It is at work.
    UnderWay,
}

impl Found {
    /// What was kept of a run; `None` where nothing was.
    fn entries(&self, id: &RunId) -> Result<Option<Vec<Read>>, Exit> {
        let Some(bytes) = self.folder.images(id).map_err(|error| history::failed(&error))? else { return Ok(None) };
        let entries = images::read(&bytes, &self.keys).map_err(|error| {
            complain(&format!("error: what run {id} changed cannot be read"));
            failed(&error)
        })?;
        Ok(Some(entries))
    }

    /// What a run changed; `None` where that was not kept.
    fn read(&self, id: &RunId) -> Result<Option<Undo>, Exit> {
        Ok(self.entries(id)?.and_then(Undo::of))
    }

    /// The last run on a root that changed something or tried to: one that failed is not passed over for the run before it. Where
    /// that is an undo which is not over, it is what that takes back.
    fn last(&self, root: Option<&Path>) -> Result<Option<RunId>, Exit> {
        let real = |root: &Path| std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        let wanted = root.map(real);
        for id in self.ids.iter().rev() {
            let Some(undo) = self.read(id)? else {
                if self.has_changed(id) {
                    return Err(not_kept(id, OTHERS));
                }
                continue;
            };
            if undo.scene.root.as_deref().map(real) != wanted {
                continue;
            }
            if undo.is_empty() {
                if self.has_lost_all(id) {
                    return Err(not_kept(id, OTHERS));
                }
                if !self.has_tried(id) {
                    continue;
                }
            }
            let undoes = undo.scene.undoes.as_deref().and_then(RunId::parse);
            let first = undoes.filter(|_| self.progress(id) != Progress::Over);
            return Ok(Some(first.unwrap_or_else(|| id.clone())));
        }
        Ok(None)
    }

    /// Advice where no run changed this root: the last one that changed another.
    fn elsewhere(&self, root: Option<&Path>) -> Option<String> {
        let (id, other) = self.ids.iter().rev().find_map(|id| {
            let bytes = self.folder.images(id).ok()??;
            let scene = images::scene(&bytes, &self.keys).ok()??;
            (scene.root.as_deref() != root).then_some((id, scene.root))
        })?;
        Some(match other.as_deref().map(Path::display) {
            Some(other) => format!("run {id} changed another system: `stead undo --system-root {other}`"),
            None => format!("run {id} changed this machine: leave out '--system-root'"),
        })
    }

    /// What the last undo of a run kept, where that is to be gone on with: it is not over, and was not taken back itself.
    fn earlier(&self, first: &RunId, undo: &Undo) -> Result<Vec<Read>, Exit> {
        let mut taken_back = BTreeSet::new();
        for id in self.ids.iter().rev().take_while(|id| *id > first) {
            // Another run that cannot be read does not matter to this one.
            let Ok(Some(bytes)) = self.folder.images(id) else { continue };
            let Ok(Some(scene)) = images::scene(&bytes, &self.keys) else { continue };
            let Some(undoes) = scene.undoes.as_deref().and_then(RunId::parse) else { continue };
            if undoes == *first {
                let goes_on = !taken_back.contains(id) && self.progress(id) == Progress::Open;
                let entries = if goes_on { self.entries(id)?.unwrap_or_default() } else { return Ok(Vec::new()) };
                return Ok(undo.earlier_part(entries));
            }
            let _ = taken_back.insert(undoes);
        }
        Ok(Vec::new())
    }

    /// Returns how far an undo came.
    fn progress(&self, id: &RunId) -> Progress {
        let Ok(run) = self.folder.read(id) else { return Progress::Open };
        let history = History::of(&run.events);
        let (is_finished, totals) = (history.end() == RunEnd::Finished, history.totals());
        if run.is_running {
            Progress::UnderWay
        } else if is_finished && totals.failed + totals.pending == 0 {
            Progress::Over
        } else {
            Progress::Open
        }
    }

    /// Returns whether a run that is over has changed something, of which nothing is in its file.
    fn has_lost_all(&self, id: &RunId) -> bool {
        self.folder.read(id).is_ok_and(|run| !run.is_running && History::of(&run.events).totals().changed > 0)
    }

    /// Returns whether a run called something that may change the machine.
    fn has_tried(&self, id: &RunId) -> bool {
        self.folder.read(id).is_ok_and(|run| run.events.iter().any(begins_a_change))
    }

    /// Returns whether a run is known to have changed something, or nothing of it is known.
    fn has_changed(&self, id: &RunId) -> bool {
        self.folder.read(id).is_ok_and(|run| {
            let history = History::of(&run.events);
            !matches!(history.end(), RunEnd::Finished) || history.totals().changed > 0
        })
    }
}
