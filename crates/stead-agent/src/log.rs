//! The log of the agent: JSON lines in a file, and in the journal of systemd where that runs.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};
use stead_core::event::{Event, EventKind, SkipReason, Status};
use stead_engine::json as printed;
use stead_system::fs::{self, append_private};
use stead_system::socket::Messages;

use crate::sink::{EndedJob, Sink};
use crate::state::JobOutcome;

/// Writes what happens. Every line is an object with `at`, `event`, and `job` where it is about one; nothing in it is secret.
pub(crate) struct Log {
    path: PathBuf,
    file: Mutex<Option<File>>,
    journal: Option<Messages>,
}

/// A file that has grown to this many bytes is set aside and a new one begun; one such file is kept.
const MOST_BYTES: u64 = 10 << 20;

impl Log {
    /// The log in a directory. `for_journal` says whether systemd started this process.
    pub(crate) fn open(directory: &Path, for_journal: bool) -> io::Result<Self> {
        let path = directory.join("log.jsonl");
        let file = Some(append_private(&path)?);
        let journal = if for_journal { Messages::to_journal().ok() } else { None };
        Ok(Self { path, file: Mutex::new(file), journal })
    }

    /// Records that something happened. What cannot be written is lost: it must not keep the machine from converging.
    pub(crate) fn write(&self, event: &str, members: Json) {
        let mut line = Map::from_iter([
            ("at".to_owned(), json!(Timestamp::now().to_string())),
            ("event".to_owned(), json!(event)),
        ]);
        if let Json::Object(members) = members {
            line.extend(members);
        }
        self.line(&line);
    }

    /// Records an event of a job, with the reason if its instance failed. An instance found in its desired state is
    /// not logged.
    pub(crate) fn event(&self, job: &str, event: &Event, why: Option<&str>) {
        let is_news = match &event.kind {
            EventKind::Settled { status, .. } => !matches!(
                status,
                Status::InState | Status::Read | Status::Skipped(SkipReason::NotSelected | SkipReason::NoChange)
            ),
            EventKind::Refuted { .. }
            | EventKind::RetryScheduled { .. }
            | EventKind::Woken { .. }
            | EventKind::Resumed
            | EventKind::Suspended
            | EventKind::Cancelled => true,
            EventKind::CallStarted { operation, .. } => operation.may_change(),
            EventKind::Began(_)
            | EventKind::FactObserved(_)
            | EventKind::ContainerOpened { .. }
            | EventKind::CallEnded { .. } => false,
        };
        if is_news && let Json::Object(mut line) = printed::event(event) {
            line.insert("job".to_owned(), json!(job));
            line.extend(why.map(|why| ("failure".to_owned(), json!(why))));
            self.line(&line);
        }
    }

    fn line(&self, line: &Map<String, Json>) {
        let mut text = Json::Object(line.clone()).to_string();
        if let Some(journal) = &self.journal {
            let _ = journal.send(&journal_entry(line, &text));
        }
        text.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let open = file.as_ref().and_then(|file| file.metadata().ok());
        if open.as_ref().is_some_and(|open| open.len() > MOST_BYTES) {
            let _ = std::fs::rename(&self.path, self.path.with_extension("former.jsonl"));
        }
        // It may have been taken away by others, too.
        let named = self.path.symlink_metadata().ok();
        let inode = |metadata: Metadata| fs::Status::from(&metadata).identity.inode();
        if open.map(inode) != named.map(inode) {
            *file = append_private(&self.path).ok();
        }
        if let Some(file) = file.as_mut() {
            let _ = file.write_all(text.as_bytes());
        }
    }
}

impl Sink for Log {
    fn take(&self, EndedJob { job, outcome, .. }: &EndedJob<'_>) -> Result<(), Box<dyn std::error::Error>> {
        let JobOutcome { result, not_in_state, .. } = outcome;
        self.write("jobEnded", json!({ "job": job.id, "result": result, "notInDesiredState": not_in_state }));
        Ok(())
    }
}

/// An entry in the native protocol of the journal: a field in a line, since none of them holds a line break.
fn journal_entry(line: &Map<String, Json>, text: &str) -> Vec<u8> {
    let field = |name: &str| line.get(name).and_then(Json::as_str).unwrap_or_default();
    let failed = line.contains_key("failure") || field("status") == "failed";
    let message: Vec<&str> =
        ["event", "instance", "status", "failure"].map(field).into_iter().filter(|part| !part.is_empty()).collect();
    let fields = [
        ("MESSAGE", message.join(" ").replace('\n', " ")),
        ("PRIORITY", if failed { "4" } else { "6" }.to_owned()),
        ("SYSLOG_IDENTIFIER", "stead".to_owned()),
        ("STEAD_EVENT", field("event").to_owned()),
        ("STEAD_JOB", field("job").to_owned()),
        ("STEAD_INSTANCE", field("instance").to_owned()),
        ("STEAD_JSON", text.to_owned()),
    ];
    let present = fields.iter().filter(|(_, value)| !value.is_empty());
    present.flat_map(|(name, value)| format!("{name}={value}\n").into_bytes()).collect()
}

/// The last lines of the log of a directory.
pub(crate) fn last_lines(directory: &Path, most: usize) -> Vec<String> {
    let path = directory.join("log.jsonl");
    let files = [path.with_extension("former.jsonl"), path];
    let readers = files.iter().filter_map(|path| File::open(path).ok()).map(BufReader::new);
    let mut lines: std::collections::VecDeque<String> = std::collections::VecDeque::new();
    for line in readers.flat_map(|reader| reader.lines().map_while(Result::ok)) {
        lines.push_back(line);
        if lines.len() > most {
            lines.pop_front();
        }
    }
    lines.into()
}
