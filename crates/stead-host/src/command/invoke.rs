//! One program of a manifest from its arguments to its output, and what is said when it fails.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stead_core::call::{Failure, FailureKind};

use super::input::Prepared;
use super::named;
use super::output::{self, Expected, Garbage, OutputProblem};
use super::secrets::Secrets;
use super::stderr::Listener;
use crate::provider::Context;
use stead_system::fs::Trust;
use stead_system::process::{self, Environment, Executable, Exit, Limits, ProcessError, Program};

/// The settings that the programs of resources are run with, besides those of each call.
#[derive(Clone)]
pub struct CommandSettings {
    /// The environment that they are given; its `PATH` is where they are looked for.
    pub environment: Environment,
    /// How long they may take to end once they were asked to.
    pub grace: Duration,
    /// How long processes that they left behind may take to end by themselves.
    pub settle: Duration,
    /// True if they run as root.
    pub elevated: bool,
}

impl CommandSettings {
    /// Returns the environment of this process that may be handed on, and the usual patience.
    pub fn of_this_process() -> Self {
        let Limits { grace, settle, .. } = Limits::default();
        let elevated = stead_system::user::is_root();
        Self { environment: Environment::of_this_process(&[]), grace, settle, elevated }
    }
}

/// Where a program comes from.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) manifest_path: &'a Path,
    pub(super) exit_codes: &'a BTreeMap<i32, String>,
    pub(super) settings: &'a CommandSettings,
}

impl Origin<'_> {
    pub(super) fn directory(&self) -> &Path {
        let parent = self.manifest_path.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new("."))
    }

    /// The program, judged. The first of that name counts: another in its place would be a surprise.
    pub(super) fn open(&self, executable: &str, operation: &str) -> Result<Arc<Executable>, Failure> {
        let opened = self.settings.environment.open(executable, self.directory());
        opened.ok_or_else(|| self.not_found(executable, operation))?.map_err(|refused| {
            let message = format!("the program '{executable}' of operation '{operation}' {}", refused.reason());
            Failure::new(refused.kind(), message)
        })
    }

    fn not_found(&self, executable: &str, operation: &str) -> Failure {
        let beside = self.directory().join(executable);
        if beside.is_file() {
            let message = format!(
                "the program '{executable}' of operation '{operation}' is not executable: run `chmod +x {}`",
                beside.display()
            );
            return Failure::new(FailureKind::Start, message);
        }
        let path = self.settings.environment.get("PATH").unwrap_or(OsStr::new("")).display();
        let directory = self.directory().display();
        let message = format!(
            "Executable '{executable}' not found for operation '{operation}': it is neither in '{directory}', where the \
             manifest is, nor on PATH ({path}). Install it, or correct 'executable' in the manifest"
        );
        Failure::new(FailureKind::Start, message)
    }
}

fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
    }
}

/// One call of a program.
pub(super) struct Invocation<'a> {
    pub(super) origin: Origin<'a>,
    /// The type of the resource or extension, for what is traced.
    pub(super) of: &'a str,
    pub(super) operation: &'static str,
    pub(super) executable: &'a str,
    pub(super) secrets: &'a Secrets,
}

/// Where an answer says that the resource is still working.
pub(super) const PENDING: &str = "/_metadata/stead/pending";

/// Where the state after a set has the one before it.
pub(super) const BEFORE: &str = "/_metadata/stead/before";

/// Where an answer says why the resource cannot tell whether anything is to be changed.
pub(super) const UNKNOWN: &str = "/_metadata/stead/unknown";

/// The answer of a program.
pub(super) enum Output {
    /// Its standard output.
    Printed(Vec<u8>),
    /// The values that one which stays answered in place of it, or what is wrong with its answer.
    Answered(Result<Vec<serde_json::Value>, &'static str>),
}

/// The answer of a program that stays.
pub(super) struct Answered {
    /// What it would have printed, or what is wrong with it.
    pub(super) values: Result<Vec<serde_json::Value>, &'static str>,
    /// What was on its standard error meanwhile, with secrets removed.
    pub(super) said: String,
}

/// The output of a program that succeeded.
pub(super) struct Printed {
    of: String,
    program: String,
    operation: &'static str,
    /// True if the program was given secrets: any of them may be part of the output in any disguise.
    is_secret: bool,
    pub(super) output: Output,
    /// Its standard error, with secrets removed.
    said: String,
}

impl Printed {
    /// Reads the output.
    pub(super) fn read(&self, expected: Expected) -> Result<Vec<serde_json::Value>, Failure> {
        match (&self.output, expected) {
            (Output::Printed(bytes), _) => {
                output::parse(bytes, expected).map_err(|garbage| self.not_understood(&garbage, bytes))
            }
            (Output::Answered(Ok(values)), Expected::Values(count)) if values.len() != count => {
                Err(self.unexpected(&format!("{count} values are expected, and there are {}", values.len())))
            }
            (Output::Answered(values), _) => values.clone().map_err(|what| self.unexpected(what)),
        }
    }

    /// Its first value where that says "still working": it stands for all that is expected, and counts whatever the manifest has.
    pub(super) fn pending(&self) -> Option<serde_json::Value> {
        let stated = |value: &serde_json::Value| value.pointer(PENDING).cloned();
        match &self.output {
            Output::Answered(values) => stated(values.as_ref().ok()?.first()?),
            Output::Printed(bytes) => {
                let text = std::str::from_utf8(bytes).ok().filter(|text| text.contains("\"pending\""))?;
                let values = [Expected::Values(1), Expected::Lines].map(|form| output::parse(text.as_bytes(), form));
                values.into_iter().flatten().next()?.first().and_then(stated)
            }
        }
    }

    /// The part of it that is read where the manifest does not say: all that one which stays answered.
    pub(super) fn holds(&self, stated: Option<Expected>) -> Option<Expected> {
        match &self.output {
            Output::Answered(values) if stated != Some(Expected::Lines) => {
                let count = values.as_ref().map_or(1, Vec::len);
                (count > 0).then_some(Expected::Values(count))
            }
            _ => stated,
        }
    }

    /// The part of it that is about one instance of a type.
    pub(super) fn part(&self, of: &str, values: Result<Vec<serde_json::Value>, &'static str>) -> Self {
        let (of, program, said) = (of.to_owned(), self.program.clone(), self.said.clone());
        Self {
            of,
            program,
            operation: self.operation,
            is_secret: self.is_secret,
            output: Output::Answered(values),
            said,
        }
    }

    /// Its standard output; nothing of one that stays.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.output {
            Output::Printed(bytes) => bytes,
            Output::Answered(_) => &[],
        }
    }

    /// The failure of a program whose output is JSON, but not of the expected form. A program that succeeds without
    /// useful output often states the reason on standard error, as `pwsh -File` does.
    pub(super) fn unexpected(&self, what: &str) -> Failure {
        let Self { of, program, operation, .. } = self;
        let message = match self.output {
            Output::Printed(_) => {
                format!("the output of '{program}' in operation '{operation}' cannot be used: {what}")
            }
            Output::Answered(_) => {
                format!("the answer of '{program}' to operation '{operation}' of '{of}' cannot be used: {what}")
            }
        };
        Failure::new(FailureKind::Protocol, with_words(message, &self.said))
    }

    fn not_understood(&self, garbage: &Garbage, bytes: &[u8]) -> Failure {
        let Garbage { problem, offset } = garbage;
        match problem {
            OutputProblem::Empty => self.unexpected(&problem.to_string()),
            // Output that is not shown cannot reveal a secret.
            _ if self.is_secret => self.unexpected(&format!("{problem} (byte {offset})")),
            _ => self.unexpected(&format!("{problem} (byte {offset}): {}", excerpt(bytes, *offset))),
        }
    }
}

impl Invocation<'_> {
    /// The answer of a program that stays.
    pub(super) fn answered(&self, Answered { values, said }: Answered) -> Printed {
        Printed {
            of: self.of.to_owned(),
            program: self.executable.to_owned(),
            operation: self.operation,
            is_secret: !self.secrets.is_empty(),
            output: Output::Answered(values),
            said,
        }
    }

    /// Runs the program and returns what it printed, if it ended well.
    pub(super) fn run(&self, cx: &Context, prepared: &Prepared) -> Result<Printed, Failure> {
        let executable = self.origin.open(self.executable, self.operation)?;
        self.judge(prepared)?;
        tracing::info!("Invoking {} '{}' using '{}'", self.operation, self.of, self.executable);
        if self.secrets.is_empty() {
            tracing::trace!("Invoking command '{}' with args {:?}", self.executable, prepared.arguments);
        } else {
            tracing::trace!("Invoking command '{}' with args that may hold secrets", self.executable);
        }
        let root: (OsString, OsString) = ("DSC_CONFIG_ROOT".into(), cx.program_root().into_os_string());
        let variables: Vec<_> = std::iter::once(root).chain(prepared.variables.iter().cloned()).collect();
        let program = Program {
            executable: &executable,
            arguments: &prepared.arguments,
            directory: self.origin.directory(),
            environment: &self.origin.settings.environment,
            variables: &variables,
            input: prepared.stdin.as_deref(),
        };
        let CommandSettings { grace, settle, .. } = *self.origin.settings;
        let limits = Limits { deadline: cx.deadline, output: cx.output_limit, grace, settle, changes: cx.changes };
        let forward = |level, text: &str| cx.say(level, text);
        let mut listener = Listener::new(&forward, self.secrets);
        let began = Instant::now();
        let result = process::run(&program, &limits, &cx.cancel, &mut |bytes| listener.hear(bytes));
        let said = listener.finish();
        let finished = result.map_err(|error| self.not_run(&error, &said))?;
        let elapsed = began.elapsed().as_secs_f64();
        tracing::debug!(
            "'{}' ({}) after {elapsed:.3} s: {}",
            self.executable,
            executable.path().display(),
            ended(finished.exit)
        );
        match finished.exit {
            Exit::Code(0) => Ok(Printed {
                of: self.of.to_owned(),
                program: self.executable.to_owned(),
                operation: self.operation,
                is_secret: !self.secrets.is_empty(),
                output: Output::Printed(finished.stdout),
                said,
            }),
            Exit::Code(code) => Err(self.exited(code, &said)),
            Exit::Signal(signal) => {
                let message = format!("Resource '{}' was ended by signal {signal}", self.executable);
                Err(Failure::new(FailureKind::Signal(signal), with_words(message, &said)))
            }
        }
    }

    /// Refuses to hand a file of others to a program of root.
    pub(super) fn judge(&self, prepared: &Prepared) -> Result<(), Failure> {
        let trust = self.origin.settings.environment.trust();
        if trust == Trust::Everyone || named::runs_as_another(self.executable, &prepared.arguments) {
            return Ok(());
        }
        named::judge(self.executable, &prepared.stated, self.origin.directory()).map_err(|(file, untrusted)| {
            let (program, operation, help) = (self.executable, self.operation, untrusted.help());
            let message = format!(
                "the file '{file}' among the arguments of '{program}' in operation '{operation}' is not used as root: \
                 {untrusted}; {help}"
            );
            Failure::new(FailureKind::Start, message)
        })
    }

    fn exited(&self, code: i32, said: &str) -> Failure {
        let start = format!("Resource '{}' [exit code {code}]", self.executable);
        let message = match self.origin.exit_codes.get(&code) {
            Some(description) => with_words(format!("{start} manifest description: {description}"), said),
            None if said.is_empty() => format!("{start} wrote nothing to standard error"),
            None => format!("{start} {said}"),
        };
        Failure::new(FailureKind::Exit(code), message)
    }

    fn not_run(&self, error: &ProcessError, said: &str) -> Failure {
        let why = with_causes(error);
        let mut message = format!("operation '{}' of '{}' failed: {why}", self.operation, self.executable);
        if error.kind() == FailureKind::Start {
            message.push_str(". The file must be a program for this machine, or a script whose interpreter exists");
        }
        Failure::new(error.kind(), with_words(message, said))
    }
}

/// An error and what caused it, in one line.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.fold(error.to_string(), |line, cause| format!("{line}: {cause}"))
}

pub(super) fn with_words(message: String, said: &str) -> String {
    if said.is_empty() { message } else { format!("{message}\n{said}") }
}

/// A few words around a byte, in quotes and with everything unprintable escaped.
fn excerpt(printed: &[u8], offset: usize) -> String {
    const AROUND: usize = 24;
    let from = offset.saturating_sub(AROUND).min(printed.len());
    let to = offset.saturating_add(AROUND).min(printed.len());
    let piece = printed.get(from..to).unwrap_or_default();
    format!("\"{}\"", piece.escape_ascii())
}
