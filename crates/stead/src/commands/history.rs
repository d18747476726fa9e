//! `history`: the runs that were recorded.

mod between;
mod text;

use std::path::{Path, PathBuf};

use serde_json::json;
use stead_core::diag::{did_you_mean, nearest};
use stead_core::history::History;
use stead_engine::{error_chain, json};
use stead_host::journal::{OpenJournalError, RecordedRuns, RunId};
use stead_system::places;

use super::page;
use crate::exit::Exit;
use crate::request::{Detail, HistoryRequest, HistoryView};
use crate::terminal::{Output, complain, data_as, print_coloured, print_exactly};

/// The folder of recorded runs; `None` for a user without a home.
pub(super) fn folder(stated: Option<&Path>) -> Option<PathBuf> {
    stated.map(Path::to_owned).or_else(|| Some(places::store()?.join("runs")))
}

pub(super) fn directory(stated: Option<&Path>) -> Result<PathBuf, Exit> {
    folder(stated).ok_or_else(|| {
        complain("error: there is no home folder to keep recorded runs in");
        complain("help: '--runs FOLDER' names a directory");
        Exit::Unusable
    })
}

/// Lists recorded runs, or shows one.
pub(crate) fn history(request: &HistoryRequest) -> Exit {
    match carried_out(request) {
        Ok(()) => Exit::Success,
        Err(exit) => exit,
    }
}

fn carried_out(request: &HistoryRequest) -> Result<(), Exit> {
    let directory = directory(request.runs.as_deref())?;
    let runs = RecordedRuns::open(&directory).map_err(|error| failed(&error))?;
    let ids = runs.as_ref().map_or_else(|| Ok(Vec::new()), RecordedRuns::ids).map_err(|error| failed(&error))?;
    match (&request.shows, &runs) {
        (HistoryView::Run(run, detail), Some(runs)) => {
            show(runs, &chosen(run, &ids, &directory)?, (request.output, *detail))
        }
        (HistoryView::Page(run), Some(runs)) => show_page(runs, &chosen(run, &ids, &directory)?),
        (HistoryView::Difference(first, second), Some(runs)) => {
            let (first, second) = (chosen(first, &ids, &directory)?, chosen(second, &ids, &directory)?);
            difference(runs, [&first, &second], request.output)
        }
        (HistoryView::Run(run, _) | HistoryView::Page(run) | HistoryView::Difference(run, _), None) => {
            chosen(run, &ids, &directory).map(drop)
        }
        (HistoryView::Newest(most), runs) => {
            let newest = ids.iter().rev().take(*most);
            list(newest.filter_map(|id| Some(Entry::read(runs.as_ref()?, id))), request.output);
            Ok(())
        }
    }
}

pub(super) fn failed(error: &OpenJournalError) -> Exit {
    complain(&format!("error: {}", error_chain(error)));
    Exit::Failed
}

/// The run that is meant: the last one, or the only one whose name begins so.
pub(super) fn chosen(text: &str, ids: &[RunId], directory: &Path) -> Result<RunId, Exit> {
    let found: Vec<&RunId> = match text {
        "last" => ids.last().into_iter().collect(),
        prefix => ids.iter().filter(|id| id.as_str().starts_with(prefix)).collect(),
    };
    let (message, help) = match found.as_slice() {
        [one] => return Ok((*one).clone()),
        _ if ids.is_empty() => {
            let message = format!("no run is recorded in '{}'", directory.display());
            (message, "'stead apply' records one that changes something".to_owned())
        }
        [] => {
            let near = nearest(text, ids.iter().map(RunId::as_str)).map(did_you_mean);
            let help = near.unwrap_or_else(|| "'stead history' lists them".to_owned());
            (format!("there is no recorded run '{text}'"), help)
        }
        [first, .., last] => {
            let message = format!("{} recorded runs begin with '{text}'", found.len());
            (message, format!("use a longer prefix: '{first}' to '{last}'"))
        }
    };
    complain(&format!("error: {message}"));
    complain(&format!("help: {help}"));
    Err(Exit::Unusable)
}

/// A recorded run, as far as it can be read.
struct Entry<'a> {
    id: &'a RunId,
    content: Result<Recorded, OpenJournalError>,
}

struct Recorded {
    history: History,
    is_running: bool,
}

impl<'a> Entry<'a> {
    fn read(runs: &RecordedRuns, id: &'a RunId) -> Self {
        let content = runs.read(id);
        let folded = content.map(|run| Recorded { history: History::of(&run.events), is_running: run.is_running });
        Self { id, content: folded }
    }
}

/// One run at a time is in memory: a listing keeps a line of each.
fn list<'a>(entries: impl Iterator<Item = Entry<'a>>, output: Output) {
    if output == Output::Text {
        return print_coloured(&text::list(entries));
    }
    let runs = entries.map(|Entry { id, content }| match content {
        Ok(run) => json::recorded_run(id.as_str(), &run.history, run.is_running),
        Err(error) => json::unreadable_run(id.as_str(), &error_chain(&error)),
    });
    data_as(&json!({ "version": 1, "runs": runs.collect::<Vec<_>>() }), output);
}

/// The outcome of a recorded run.
pub(super) fn recorded(runs: Option<&Path>, run: &str) -> Result<History, Exit> {
    let directory = directory(runs)?;
    let runs = RecordedRuns::open(&directory).map_err(|error| failed(&error))?;
    let ids = runs.as_ref().map_or_else(|| Ok(Vec::new()), RecordedRuns::ids).map_err(|error| failed(&error))?;
    let id = chosen(run, &ids, &directory)?;
    let entry = runs.as_ref().map(|runs| Entry::read(runs, &id)).ok_or(Exit::Unusable)?;
    entry.content.map(|recorded| recorded.history).map_err(|error| failed(&error))
}

/// Prints the instances that ended otherwise in the second run, or that only one of them has.
fn difference(runs: &RecordedRuns, ids: [&RunId; 2], output: Output) -> Result<(), Exit> {
    let read = |id| Entry::read(runs, id).content.map_err(|error| failed(&error));
    let both = [read(ids[0])?, read(ids[1])?];
    let found = between::differences(&both[0].history, &both[1].history);
    match output {
        Output::Text => print_coloured(&between::text(ids, &both, &found)),
        output => data_as(
            &json!({ "version": 1, "runs": ids.map(RunId::as_str), "differences": between::data(&found) }),
            output,
        ),
    }
    Ok(())
}

fn show_page(runs: &RecordedRuns, id: &RunId) -> Result<(), Exit> {
    let Recorded { history, is_running } = Entry::read(runs, id).content.map_err(|error| failed(&error))?;
    print_exactly(&stead_report::html(&page::of_recorded(id.as_str(), &history, is_running)));
    Ok(())
}

fn show(runs: &RecordedRuns, id: &RunId, (output, detail): (Output, Detail)) -> Result<(), Exit> {
    let Entry { content, .. } = Entry::read(runs, id);
    let run = content.map_err(|error| failed(&error))?;
    match output {
        Output::Text => print_coloured(&text::show(id, &run, detail)),
        output => data_as(&json::history(id.as_str(), &run.history, run.is_running), output),
    }
    Ok(())
}
