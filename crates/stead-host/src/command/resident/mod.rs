//! Residents: programs of resources that stay for a session and answer one call after the other, or several at once.
//!
//! [`protocol`] has the words, [`process`] one process and its calls; here is which call goes to which process, and how many there
//! are (docs/decisions/0060).

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use stead_core::call::{Failure, FailureKind};
use stead_core::manifest::ResidentProgram;
use stead_system::fs::Trust;
use stead_system::process::{Program, dialogue};

use super::input::Prepared;
use super::invoke::{Invocation, with_causes};
use super::secrets::Secrets;
use crate::provider::{Context, TraceLevel};
use process::{Fault, Process};

pub(super) use protocol::Asked;

mod process;
mod protocol;

/// How many processes a session keeps at most.
const MOST_PROCESSES: usize = 16;

/// How often one is started at most within [`STARTS_WITHIN`]: once, and five times again.
const MOST_STARTS: usize = 6;

/// The time in which starts are counted.
const STARTS_WITHIN: Duration = Duration::from_mins(10);

/// How long a start may take, unless calls have less time.
const LONGEST_START: Duration = Duration::from_secs(30);

/// Beyond how much memory, with what it started, one is replaced before its next call, in bytes.
const MOST_MEMORY: u64 = 768 << 20;

/// How often who waits for room looks whether there is some.
const TICK: Duration = Duration::from_millis(20);

/// The residents of a session. Clones share them; they end with the last one.
#[derive(Clone)]
pub struct Residents {
    kept: Arc<Mutex<BTreeMap<Key, Arc<Kept>>>>,
    most_memory: u64,
}

impl Default for Residents {
    fn default() -> Self {
        Self { kept: Arc::default(), most_memory: MOST_MEMORY }
    }
}

/// Which calls go to the same process: those of the same program of the same author.
///
/// A secret of a call can be seen by all code of the process, so types whose owner is another one get another process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    folder: PathBuf,
    executable: String,
    arguments: Vec<String>,
    owner: String,
}

/// The process of a key, if there is one, and when it was started.
#[derive(Default)]
struct Kept(Mutex<State>);

#[derive(Default)]
struct State {
    process: Option<Arc<Process>>,
    starts: VecDeque<Instant>,
}

/// A program that stays, and how it is started.
pub(super) struct Host<'a> {
    pub(super) program: &'a ResidentProgram,
    pub(super) invocation: &'a Invocation<'a>,
}

impl Residents {
    /// Residents of which one that takes more memory, in bytes, is replaced before its next call. It is looked at once a second.
    pub fn bounded(most_memory: u64) -> Self {
        Self { most_memory, ..Self::default() }
    }

    /// Calls a resident, which is started if it is not there. Returns what a program would have printed, or what is wrong with the
    /// answer.
    ///
    /// What only reads is sent to another process where the first had answered before and ended by itself: it may have been about to
    /// end as it was asked. What changes something is sent once.
    pub(super) fn call(
        &self,
        host: &Host<'_>,
        cx: &Context,
        asked: &Asked<'_>,
        secrets: &Secrets,
    ) -> Result<Result<Vec<Json>, &'static str>, Failure> {
        let kept = self.kept(host.key(asked.type_name));
        let settings = host.invocation.origin.settings;
        // What only reads need not tidy up.
        let grace = if cx.changes { settings.grace } else { settings.grace.min(Duration::from_secs(1)) };
        loop {
            let process = self.process(&kept, host, cx)?;
            match process.call(cx, grace, secrets, &|id| protocol::request(id, asked)) {
                None => {}
                Some(Ok(answer)) => return Ok(protocol::printed(asked.method, answer)),
                Some(Err(Fault { failure, .. })) if cx.cancel.is_cancelled() => return Err(failure),
                Some(Err(Fault { failure, had_answered: true })) if asked.only_reads() => {
                    (cx.trace)(TraceLevel::Warn, &format!("{}; another is asked", failure.message));
                }
                Some(Err(Fault { failure, .. })) => return Err(failure),
            }
        }
    }

    fn kept(&self, key: Key) -> Arc<Kept> {
        Arc::clone(self.lock().entry(key).or_default())
    }

    /// The process of a key; started, if there is none that can be asked.
    fn process(&self, kept: &Kept, host: &Host<'_>, cx: &Context) -> Result<Arc<Process>, Failure> {
        let mut state = kept.lock();
        match &state.process {
            Some(process) if !process.is_over() && !process.is_worn(self.most_memory) => {
                return Ok(Arc::clone(process));
            }
            // It has not failed, and that another takes its place does not count.
            Some(process) if !process.is_over() => drop(state.starts.pop_back()),
            _ => {}
        }
        state.process = None;
        state.starts.retain(|start| start.elapsed() < STARTS_WITHIN);
        if state.starts.len() >= MOST_STARTS {
            let program = &host.program.executable;
            let message = format!(
                "'{program}' was started {MOST_STARTS} times within {} minutes and ended each time; it is not started again",
                STARTS_WITHIN.as_secs() / 60
            );
            return Err(Failure::new(FailureKind::Protocol, message));
        }
        self.make_room(kept, cx)?;
        state.starts.push_back(Instant::now());
        let process = Arc::new(host.start(cx)?);
        state.process = Some(Arc::clone(&process));
        Ok(process)
    }

    /// Ends the process that has had nothing to do for the longest time where there are as many as there may be.
    fn make_room(&self, own: &Kept, cx: &Context) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            let others: Vec<Arc<Kept>> =
                self.lock().values().filter(|other| !std::ptr::eq(Arc::as_ptr(other), own)).cloned().collect();
            // Who starts one holds its lock, and has a process in a moment.
            let busy = |kept: &Arc<Kept>| kept.0.try_lock().map_or(true, |state| state.process.is_some());
            if others.iter().filter(|other| busy(other)).count() < MOST_PROCESSES {
                return Ok(());
            }
            let idle = |kept: &Arc<Kept>| kept.0.try_lock().ok()?.process.as_ref()?.idle_since();
            let longest = others.iter().filter_map(|other| Some((idle(other)?, other))).min_by_key(|(since, _)| *since);
            if let Some((_, other)) = longest {
                drop(other.lock().process.take());
                continue;
            }
            if cx.cancel.is_cancelled() {
                return Err(Failure::new(FailureKind::Cancelled, "it was cancelled"));
            }
            if begun.elapsed() >= cx.deadline {
                let message =
                    format!("none of the {MOST_PROCESSES} programs that stay became free within {:?}", cx.deadline);
                return Err(Failure::new(FailureKind::Deadline, message));
            }
            std::thread::sleep(TICK);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Kept>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host<'_> {
    fn key(&self, type_name: &str) -> Key {
        let owner = type_name.split('/').next().unwrap_or_default();
        Key {
            folder: self.invocation.origin.directory().to_owned(),
            executable: self.program.executable.clone(),
            arguments: self.program.arguments.clone(),
            owner: owner.to_owned(),
        }
    }

    /// Starts a process and greets it. It is judged as every program is; for root, Python sees nothing of the user's.
    fn start(&self, cx: &Context) -> Result<Process, Failure> {
        let Self { program, invocation } = self;
        let settings = invocation.origin.settings;
        let executable = invocation.origin.open(&program.executable, invocation.operation)?;
        let is_roots = settings.environment.trust() != Trust::Everyone;
        let isolated = (is_roots && is_python(&program.executable)).then(|| "-I".to_owned());
        let stated: Vec<String> = isolated.into_iter().chain(program.arguments.iter().cloned()).collect();
        let arguments: Vec<OsString> = stated.iter().map(OsString::from).collect();
        let prepared = Prepared { arguments, stated, ..Prepared::default() };
        invocation.judge(&prepared)?;
        let variables: Vec<(OsString, OsString)> =
            if is_roots { PYTHON_ISOLATED.map(|name| (name.into(), "1".into())).to_vec() } else { Vec::new() };
        tracing::info!("Starting '{}', which stays for '{}'", program.executable, invocation.of);
        let run = Program {
            executable: &executable,
            arguments: &prepared.arguments,
            directory: invocation.origin.directory(),
            environment: &settings.environment,
            variables: &variables,
            input: None,
        };
        let halves =
            dialogue::start(&run, cx.output_limit).map_err(|error| Failure::new(error.kind(), with_causes(&error)))?;
        let limited = Context { deadline: cx.deadline.min(LONGEST_START), ..cx.clone() };
        Process::greet(&program.executable, halves, &limited)
    }
}

/// What keeps the folders of the user, and that of the script, out of a Python whose options the manifest does not state.
const PYTHON_ISOLATED: [&str; 2] = ["PYTHONNOUSERSITE", "PYTHONSAFEPATH"];

/// Returns whether a program is Python, in any version.
fn is_python(executable: &str) -> bool {
    let name = Path::new(executable).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}
