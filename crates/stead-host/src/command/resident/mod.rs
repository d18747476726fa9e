//! Residents: programs of resources that stay for a session and answer one call after the other, or several at once.
//!
//! [`protocol`] has the words, [`process`] one process and its calls, [`pool`] how many there are; here is which call goes to which
//! process (docs/decisions/0060).

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stead_core::call::{Failure, FailureKind};
use stead_core::manifest::ResidentProgram;
use stead_system::fs::Trust;
use stead_system::process::{Program, dialogue};

use super::input::Prepared;
use super::invoke::{Answered, Invocation, with_causes};
use super::secrets::Secrets;
use crate::provider::{Context, TraceLevel};
use pool::{Key, Room};
use process::{Fault, Limits, Process};

pub use pool::ResidentPool;
pub(super) use protocol::{Query, failure as failure_of};

mod pool;
mod process;
mod protocol;

/// How long a start may take, unless calls have less time.
const LONGEST_START: Duration = Duration::from_secs(30);

/// Beyond how much memory, with what it started, one is replaced before its next call, in bytes.
const MOST_MEMORY: u64 = 768 << 20;

/// The residents of a session. Clones share them; they end with the last one.
#[derive(Clone)]
pub struct Residents(Arc<Shared>);

struct Shared {
    pool: Arc<ResidentPool>,
    most_memory: u64,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.pool.end();
    }
}

impl Default for Residents {
    fn default() -> Self {
        Self::bounded(MOST_MEMORY)
    }
}

/// A program that stays, and how it is started.
pub(super) struct Host<'a> {
    pub(super) program: &'a ResidentProgram,
    pub(super) invocation: &'a Invocation<'a>,
}

impl Residents {
    /// Residents of which one that takes more memory, in bytes, is replaced before its next call. It is looked at once a second.
    pub fn bounded(most_memory: u64) -> Self {
        Self(Arc::new(Shared { pool: Arc::default(), most_memory }))
    }

    /// Their processes, for whoever waits for the end of all of them.
    pub fn processes(&self) -> &Arc<ResidentPool> {
        &self.0.pool
    }

    /// Calls a resident, which is started if it is not there.
    ///
    /// What only reads is sent to another process where the first had answered before and ended by itself: it may have been about to
    /// end as it was asked. What changes something is sent once. All of it takes no longer than one call may.
    pub(super) fn call(
        &self,
        host: &Host<'_>,
        cx: &Context,
        asked: &Query<'_>,
        secrets: &Secrets,
    ) -> Result<Answered, Failure> {
        let settings = host.invocation.origin.settings;
        // What only reads need not tidy up.
        let grace = if cx.changes { settings.grace } else { settings.grace.min(Duration::from_secs(1)) };
        let (limits, key) = (Limits::new(cx, grace), host.key(asked.type_name));
        let failed = |failure: Failure| {
            let Query { method, type_name, .. } = asked;
            let message = format!("operation '{method}' of '{type_name}' failed: {}", failure.message);
            if failure.kind == FailureKind::Cancelled { failure } else { Failure { message, ..failure } }
        };
        loop {
            let process = self.process(&key, host, &limits).map_err(failed)?;
            match process.call(&limits, secrets, &|id| protocol::request(id, asked, limits.left())) {
                None => {}
                Some(Ok((answer, said))) => {
                    return Ok(Answered { values: protocol::printed(asked.method, answer), said });
                }
                Some(Err(Fault::Answered(failure))) => return Err(failure),
                Some(Err(Fault::Ended { failure, had_answered })) => {
                    let failure = failed(failure);
                    if cx.cancel.is_cancelled() || !had_answered || !asked.only_reads() {
                        return Err(failure);
                    }
                    cx.say(TraceLevel::Warn, &format!("another process is asked: {}", failure.message));
                }
            }
        }
    }

    /// The process of a key; started, if there is none that can be asked.
    fn process(&self, key: &Key, host: &Host<'_>, limits: &Limits<'_>) -> Result<Arc<Process>, Failure> {
        let Shared { pool, most_memory } = &*self.0;
        let room = match pool.enter(key, limits, |process| process.fitness(*most_memory))? {
            Ok(process) => return Ok(process),
            Err(room) => room,
        };
        let started = host.start(limits, room).map(Arc::new);
        pool.started(key, &started);
        started
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
    fn start(&self, limits: &Limits<'_>, room: Room) -> Result<Process, Failure> {
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
        let longest = limits.cx.output_limit;
        let halves = dialogue::start(&run, longest).map_err(|error| Failure::new(error.kind(), with_causes(&error)))?;
        Process::greet(&program.executable, halves, &limits.at_most(LONGEST_START), Box::new(room))
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
