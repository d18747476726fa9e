//! Warm workers: PowerShell processes that carry out one call after the other.

mod compiled;
mod outcome;
mod own;
mod pool;
mod printed;
mod protocol;
mod start;
mod worth;

use std::error::Error as _;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use stead_core::call::{FailureKind, Raised};
use stead_host::provider::ActivityProgress;
use stead_powershell_reader::resource::DefinitionKind;
use stead_system::Cancel;
use stead_system::process::{ConversationError, Exit, Heard, ProcessError, ProgramSession};
use stead_system::scratch::Scratch;

pub use compiled::KeptWorker;
pub use outcome::{MethodReply, StreamRecord, WorkerError};
pub use pool::{Lease, Origin, Pool, Settings, StatedScripts};
pub use protocol::{Hello, Method, PowerShellError, Records, Stream};
pub use start::StartError;

use crate::convert::Wire;
use outcome::{Collector, Progress};
use printed::Printed;
use protocol::{Line, Message, fields};

/// A module at one state of its files. Where they changed since a worker loaded it, only a new process reads them again.
#[derive(Clone, Copy)]
pub struct Module<'a> {
    /// The file that is imported: the manifest or script of a class, the implementation of a script resource.
    pub path: &'a Path,
    /// Something that changes whenever a file of the module does.
    pub stamp: &'a str,
}

/// A call of one method.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The kind of source of the resource; a composite is not called.
    pub kind: DefinitionKind,
    /// The module.
    pub module: Module<'a>,
    /// The name of the class or of the script resource.
    pub resource: &'a str,
    /// The method.
    pub method: Method,
    /// The properties that are assigned, in this order.
    pub properties: &'a [(String, Wire)],
    /// How much of what the resource writes besides is wanted.
    pub records: Records,
    /// Takes how far its activities are; `None` where nobody shows it.
    pub progress: Option<&'a dyn Fn(ActivityProgress)>,
    /// Where it stands: what its relative paths start from. A module is loaded at the root, whoever wants it first.
    pub directory: &'a Path,
    /// The folder of the document as programs know it, `DSC_CONFIG_ROOT`.
    pub root: &'a Path,
}

/// When a call must be over: whatever it waits for shares this.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// How long it was given.
    allowed: Duration,
    begun: Instant,
}

impl Deadline {
    /// So long from now.
    pub fn after(allowed: Duration) -> Self {
        Self { allowed, begun: Instant::now() }
    }

    /// Returns the time that is left of it.
    fn left(&self) -> Duration {
        self.allowed.saturating_sub(self.begun.elapsed())
    }
}

/// How long a call may take, and what ends it early.
pub struct Limits<'a> {
    /// How long.
    pub deadline: Deadline,
    /// The longest line that is taken, which is the largest state.
    pub output: usize,
    /// Ends it.
    pub cancel: &'a Cancel,
    /// The names of variables of the environment that the worker is given besides those that all are.
    pub inherited: &'a [String],
    /// How many calls may come after it, for which another worker can be worth its start; 0 where nobody knows.
    pub to_come: usize,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The resource failed. The worker goes on.
    #[error(transparent)]
    Call(#[from] WorkerError),
    /// There is no worker.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The worker ended in the call.
    #[error("PowerShell ended in the call{}", .exit.map(|exit| format!(": {exit}")).unwrap_or_default())]
    Died {
        /// How it ended.
        exit: Option<Exit>,
        /// The end of its standard error.
        tail: String,
    },
    /// It took too long, and the worker was ended.
    #[error("did not finish within {0:?}; PowerShell and its child processes were killed")]
    Deadline(Duration),
    /// All workers were busy for too long.
    #[error("no PowerShell process became free within {0:?}")]
    Busy(Duration),
    /// The run was cancelled, and the worker was ended.
    #[error("it was cancelled")]
    Cancelled,
    /// The worker sent more than allowed.
    #[error("it returned more than allowed")]
    TooMuch,
    /// The worker sent something else than the protocol has.
    #[error("invalid response from the PowerShell worker: {0}")]
    Protocol(&'static str),
    /// The system failed.
    #[error(transparent)]
    System(ProcessError),
}

impl Failed {
    /// The kind of failure that it is for callers.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Call(WorkerError::PowerShell(error)) if !error.property.is_empty() => FailureKind::Invalid,
            Self::Call(WorkerError::PowerShell(_) | WorkerError::Left { .. }) => FailureKind::Exit(1),
            Self::Call(_) | Self::Protocol(_) | Self::Died { exit: None, .. } => FailureKind::Protocol,
            Self::Start(error) => error.kind(),
            Self::Died { exit: Some(Exit::Code(code)), .. } => FailureKind::Exit(*code),
            Self::Died { exit: Some(Exit::Signal(signal)), .. } => FailureKind::Signal(*signal),
            Self::Deadline(_) | Self::Busy(_) => FailureKind::Deadline,
            Self::Cancelled => FailureKind::Cancelled,
            Self::TooMuch => FailureKind::OutputLimit,
            Self::System(_) => FailureKind::System,
        }
    }

    /// Returns whether the resource asked for a restart of the machine before it failed.
    pub fn asks_for_restart(&self) -> bool {
        matches!(self, Self::Call(error) if error.asks_for_restart())
    }

    /// The `FullyQualifiedErrorId` of an error of PowerShell.
    pub fn error_id(&self) -> Option<&str> {
        let Self::Call(WorkerError::PowerShell(error)) = self else { return None };
        Some(error.id.as_str()).filter(|id| !id.is_empty())
    }

    /// What PowerShell says of an error besides its text and id.
    pub fn raised(&self) -> Option<Raised> {
        let Self::Call(WorkerError::PowerShell(error)) = self else { return None };
        let outermost = (error.ty.clone(), error.message.clone());
        Some(Raised {
            category: error.category.clone(),
            exceptions: std::iter::once(outermost).chain(error.inner.iter().cloned()).collect(),
            stack: error.stack.clone(),
            place: error.at.clone(),
        })
    }

    /// Returns the error in words, with its causes and the end of what PowerShell wrote to its standard error.
    pub fn explain(&self) -> String {
        let causes = std::iter::successors(self.source(), |cause| (*cause).source());
        let text = causes.fold(self.to_string(), |text, cause| format!("{text}: {cause}"));
        match self {
            Self::Died { tail, .. } | Self::Start(StartError::Program { tail, .. }) if !tail.is_empty() => {
                format!("{text}\n{tail}")
            }
            _ => text,
        }
    }

    /// Returns whether the worker can carry out another call.
    fn spares_the_worker(&self) -> bool {
        matches!(self, Self::Call(_))
    }

    fn of(error: ConversationError, limits: &Limits<'_>, printed: &Printed) -> Self {
        match error {
            ConversationError::Ended(exit) => Self::Died { exit, tail: printed.tail() },
            ConversationError::Silent(_) => Self::Deadline(limits.deadline.allowed),
            ConversationError::TooMuch => Self::TooMuch,
            ConversationError::Unasked => Self::Protocol("it sent something that was not asked for"),
            ConversationError::Process(ProcessError::Cancelled) => Self::Cancelled,
            ConversationError::Process(error) => Self::System(error),
        }
    }
}

/// A worker: one process.
struct Worker {
    /// Absent once it is of no use any more.
    session: Option<ProgramSession>,
    calls: u32,
    /// When its memory was measured last.
    measured: Option<Instant>,
    /// Its files, which are gone with it.
    _folder: Scratch,
}

/// How long a call takes behind which memory is always measured, and how often it is behind shorter ones.
const MEASURED_AFTER: Duration = Duration::from_millis(20);
const MEASURED_EVERY: Duration = Duration::from_millis(100);

/// How long PowerShell may take to end when it is asked to. Forced at once it would leave its sockets behind.
const GRACE: Duration = Duration::from_millis(500);

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            session.end(GRACE);
        }
    }
}

impl Worker {
    fn new(session: ProgramSession, folder: Scratch) -> Self {
        Self { session: Some(session), calls: 0, measured: None, _folder: folder }
    }

    /// Asks it to end, which dropping it waits for.
    fn ask_to_end(&mut self) {
        self.session.iter_mut().for_each(ProgramSession::ask_to_end);
    }

    /// The worker, if it can be called: it runs, and has sent nothing that was not asked for. What it loaded could answer in
    /// advance for another module.
    fn if_ready(mut self) -> Option<Self> {
        self.session.as_mut().is_some_and(|session| session.is_running() && session.is_quiet()).then_some(self)
    }

    /// Returns the memory of the worker and its children in bytes, after a call that took so long; `None` if it is not measured:
    /// that takes longer than a short call, and is done once for many of them.
    fn memory(&mut self, took: Duration) -> Option<u64> {
        let is_due = took >= MEASURED_AFTER || self.measured.is_none_or(|at| at.elapsed() >= MEASURED_EVERY);
        let session = self.session.as_ref().filter(|_| is_due)?;
        self.measured = Some(Instant::now());
        Some(session.resident_memory())
    }

    fn call(
        &mut self,
        call: &Call<'_>,
        limits: &Limits<'_>,
        forward: &mut dyn FnMut(StreamRecord),
    ) -> Result<MethodReply, Failed> {
        self.calls += 1;
        // Nothing in the process can know it before the call.
        let id = format!("{:016x}", RandomState::new().hash_one(self.calls));
        let path = call.module.path.to_string_lossy();
        let scripts = if self.calls == 1 { start::scripts(call) } else { String::new() };
        let line = scripts + &request(call, &id, &path);
        // It comes back when the worker can go on; else it is ended at once.
        let mut session = self.session.take().ok_or(Failed::Protocol("it had ended"))?;
        let mut collector = Collector::new(call, forward);
        let (mut printed, mut outcome) = (Printed::default(), None);
        let exchanged =
            session.exchange(line.as_bytes(), limits.deadline.left(), limits.cancel, &mut |heard| match heard {
                Heard::Printed(stream, bytes) => {
                    printed.take(stream, bytes, &mut |line| collector.forward(Stream::Information, line));
                    ControlFlow::Continue(())
                }
                Heard::Line(line) => {
                    match message(line, &id).map(|message| collector.take(message)) {
                        Ok(Progress::Running) => return ControlFlow::Continue(()),
                        Ok(Progress::Ended(reply)) => outcome = Some(reply.map_err(Failed::Call)),
                        Err(failed) => outcome = Some(Err(failed)),
                    }
                    ControlFlow::Break(())
                }
            });
        printed.finish(&mut |line| collector.forward(Stream::Information, line));
        exchanged.map_err(|error| Failed::of(error, limits, &printed))?;
        let outcome = outcome.unwrap_or(Err(Failed::Protocol("it did not answer")));
        if outcome.as_ref().err().is_none_or(Failed::spares_the_worker) {
            self.session = Some(session);
        }
        outcome
    }
}

/// The message of a line for a call. What a line has is not shown: part of a secret could not be recognized in it.
fn message(line: &[u8], id: &str) -> Result<Message, Failed> {
    let line: Line = serde_json::from_slice(line).map_err(|_| Failed::Protocol("a line is not of its protocol"))?;
    if line.id != id {
        return Err(Failed::Protocol("a line is for another call"));
    }
    line.message().ok_or(Failed::Protocol("a line has no message"))
}

/// The line of a request. The values are what [`crate::convert`] made of them; they may hold secrets.
fn request(call: &Call<'_>, id: &str, path: &str) -> String {
    let (directory, root) = (call.directory.to_string_lossy(), call.root.to_string_lossy());
    let texts: Option<Vec<&str>> = call.properties.iter().map(|(_, value)| value.as_text()).collect();
    let (form, values) = if let Some(texts) = texts {
        ("texts", fields(texts))
    } else {
        let values: Vec<&Wire> = call.properties.iter().map(|(_, value)| value).collect();
        // Maps with text keys and texts: nothing of it can fail.
        ("json", serde_json::to_string(&values).unwrap_or_default())
    };
    let records =
        if call.progress.is_some() { &format!("{},progress", call.records.name()) } else { call.records.name() };
    let known = [kind(call), path, call.resource, call.method.name(), records, &directory, &root, form];
    let asked = fields(known.into_iter().chain(call.properties.iter().map(|(name, _)| name.as_str())));
    format!("{id}\t{asked}\t{values}\n")
}

/// The kind of source as the worker calls it.
fn kind(call: &Call<'_>) -> &'static str {
    if call.kind == DefinitionKind::Class { "class" } else { "script" }
}
