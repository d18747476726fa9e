//! `history`, and the recording of runs.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, Subcommand};

use super::hosts::Fleet;
use super::values::at_least_one;
use crate::request::{Detail, HistoryRequest, HistoryView, RecordingRequest, UndoRequest, View, Volume};
use crate::terminal::Output;

const RECORDING: &str = "Recording";

/// The options for recording a run.
#[derive(Debug, Args)]
#[command(next_help_heading = RECORDING)]
pub(super) struct Recording {
    /// Record the run even if it changes nothing, and refuse to start if it cannot be recorded
    #[arg(long, env = "STEAD_RECORD", hide_env_values = true, value_parser = FalseyValueParser::new())]
    record: bool,
    /// Do not record the run: 'stead undo' cannot take it back
    #[arg(long)]
    no_record: bool,
    /// How many recorded runs are kept; the oldest are removed
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = at_least_one)]
    keep_runs: NonZeroUsize,
    /// The directory of recorded runs [default: /var/lib/stead/runs for root, else ~/.local/state/stead/runs]
    #[arg(long, value_name = "FOLDER")]
    runs: Option<PathBuf>,
}

impl Recording {
    /// How the run is recorded; `None` if it is not. The command line wins over the environment, and a detached run is always recorded.
    pub(super) fn request(self, detaches: bool) -> Option<RecordingRequest> {
        let stated = self.record && !self.no_record || detaches;
        let is_recorded = stated || !self.no_record;
        is_recorded.then_some(RecordingRequest { keep: self.keep_runs, runs: self.runs, stated, detaches })
    }
}

/// `undo`
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each option, as clap wants it")]
pub(crate) struct Undo {
    /// The run, or the first characters of its name [default: the last recorded one that changed something]
    run: Option<String>,
    /// Show what would be taken back, and change nothing
    #[arg(long, visible_aliases = ["what-if", "dry-run"])]
    plan: bool,
    /// Take back without asking, and although something cannot be taken back
    #[arg(short, long)]
    yes: bool,
    /// Take back also what was changed since the run
    #[arg(long)]
    force: bool,
    /// Take back the last recorded run on the operating system below FOLDER instead of the running one
    #[arg(long, value_name = "FOLDER")]
    system_root: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// List only what failed
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Also list unchanged instances
    #[arg(short, long)]
    verbose: bool,
    /// One line for each instance, without what differs
    #[arg(long)]
    brief: bool,
    /// Do not record the undo, which cannot be taken back then
    #[arg(long, help_heading = RECORDING)]
    no_record: bool,
    /// How many recorded runs are kept; the oldest are removed
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = at_least_one, help_heading = RECORDING)]
    keep_runs: NonZeroUsize,
    /// The directory of recorded runs [default: /var/lib/stead/runs for root, else ~/.local/state/stead/runs]
    #[arg(long, value_name = "FOLDER", help_heading = RECORDING)]
    runs: Option<PathBuf>,
}

impl From<Undo> for UndoRequest {
    fn from(undo: Undo) -> Self {
        let volume = match (undo.quiet, undo.verbose) {
            (true, _) => Volume::Quiet,
            (_, true) => Volume::Verbose,
            _ => Volume::Usual,
        };
        let detail = if undo.brief { Detail::Brief } else { Detail::Full };
        Self {
            run: undo.run,
            system_root: undo.system_root,
            shows: undo.plan,
            asks: !undo.yes,
            force: undo.force,
            view: View { output: undo.output, volume, detail, events: false, timings: false },
            recording: (!undo.no_record).then(|| RecordingRequest {
                keep: undo.keep_runs,
                runs: undo.runs.clone(),
                stated: false,
                detaches: false,
            }),
            runs: undo.runs,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct History {
    /// The directory of recorded runs [default: /var/lib/stead/runs for root, else ~/.local/state/stead/runs]
    #[arg(long, global = true, value_name = "FOLDER")]
    runs: Option<PathBuf>,
    /// Output format
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Number of runs to list
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    lines: usize,
    #[command(flatten)]
    fleet: Fleet,
    #[command(subcommand)]
    command: Option<HistoryCommand>,
}

#[derive(Debug, Subcommand)]
pub(super) enum HistoryCommand {
    /// Show every instance of a run, and every attempt at it
    Show {
        /// The run, or the first characters of its name; 'last' is the newest
        run: String,
        /// Print a page about it instead, for a browser
        #[arg(long)]
        html: bool,
        /// One line for each instance that changed or failed, without what differs
        #[arg(long, conflicts_with = "html")]
        brief: bool,
        #[command(flatten)]
        fleet: Fleet,
    },
    /// Show what differs between two runs: instances that ended otherwise, or that only one of them has
    Diff {
        /// The earlier run, or the first characters of its name
        first: String,
        /// The later run; 'last' is the newest
        #[arg(default_value = "last")]
        second: String,
    },
}

impl From<History> for HistoryRequest {
    fn from(history: History) -> Self {
        let fleet = history.fleet.request(None);
        let (shows, fleet) = match history.command {
            Some(HistoryCommand::Show { run, html: true, .. }) => (HistoryView::Page(run), fleet),
            Some(HistoryCommand::Show { run, html: false, brief, fleet: own }) => {
                let detail = if brief { Detail::Brief } else { Detail::Full };
                (HistoryView::Run(run, detail), own.request(None).or(fleet))
            }
            Some(HistoryCommand::Diff { first, second }) => (HistoryView::Difference(first, second), fleet),
            None => (HistoryView::Newest(history.lines), fleet),
        };
        Self { runs: history.runs, output: history.output, shows, fleet }
    }
}
