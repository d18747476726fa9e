//! Running a program that a document names.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stead_core::call::{Failure, FailureKind, Presumed};
use stead_host::process::{self, Environment, Exit, Limits, Program};
use stead_host::provider::{Context, TraceLevel};

/// What a document says of a program.
pub(crate) struct Invocation {
    /// A name that is looked for on `PATH`, or a path.
    pub(crate) program: String,
    /// What it is called with.
    pub(crate) arguments: Vec<String>,
    /// Variables besides those that programs are given anyway.
    pub(crate) environment: Vec<(String, String)>,
    /// Where it is started, and what a path of the program is relative to.
    pub(crate) directory: PathBuf,
    /// How long it may take, if that is less than the call may.
    pub(crate) timeout: Option<Duration>,
}

/// How a program ended.
pub(crate) struct Ended {
    /// Its exit code.
    pub(crate) code: i32,
    /// What it wrote to its standard output, without the newlines at the end.
    pub(crate) output: String,
    /// What it wrote to its standard error.
    errors: Tail,
}

impl Ended {
    /// The failure that a program reports by its exit code; `what` is how messages call it.
    pub(crate) fn failure(&self, what: &str) -> Failure {
        let said = said(&self.output, &self.errors);
        Failure::new(FailureKind::Exit(self.code), format!("{what} ended with exit code {}{said}", self.code))
    }
}

/// What a program that failed wrote: the last line of its errors, then the last lines of both outputs.
fn said(output: &str, errors: &Tail) -> String {
    let reason = errors.lines.back().map(|line| format!(": {line}")).unwrap_or_default();
    let mut printed = Tail::default();
    output.lines().for_each(|line| printed.push(line));
    // A single line is the reason.
    let errors = if errors.count > 1 { errors.labelled("standard error") } else { String::new() };
    reason + &printed.labelled("standard output") + &errors
}

/// The last lines of an output.
#[derive(Default)]
struct Tail {
    lines: VecDeque<String>,
    count: usize,
}

impl Tail {
    /// Enough to see why something failed.
    const LINES: usize = 10;

    /// A longer line is left out: of a secret that is cut, the part that is left could not be recognized.
    const LONGEST: usize = 1000;

    fn push(&mut self, line: &str) {
        self.count += 1;
        if self.lines.len() == Self::LINES {
            self.lines.pop_front();
        }
        let kept =
            if line.len() > Self::LONGEST { format!("(a line of {} bytes)", line.len()) } else { line.to_owned() };
        self.lines.push_back(kept);
    }

    /// The lines as they are below a heading, so that a secret of several lines is one text; nothing if there are none.
    fn labelled(&self, label: &str) -> String {
        let heading = match (self.count, self.lines.len()) {
            (0, _) => return String::new(),
            (count, kept) if count > kept => format!("\n{label}, the last {kept} of {count} lines:"),
            _ => format!("\n{label}:"),
        };
        self.lines.iter().fold(heading, |text, line| text + "\n" + line)
    }
}

impl Invocation {
    /// In what-if: what the program cannot be started without, as things are. A name that is not on `PATH` is not reported:
    /// where an earlier instance will put the program is not known.
    pub(crate) fn presumed(&self) -> Option<Presumed> {
        let missing = self.locate(&Environment::of_this_process(&[])).err()?;
        (!missing.paths.is_empty()).then_some(missing)
    }

    /// The path of the program, or what is missing.
    ///
    /// A path is relative to the directory; a name is looked for on `PATH` only: the working directory may be one in which
    /// others write.
    fn locate(&self, environment: &Environment) -> Result<PathBuf, Presumed> {
        let Self { program, directory, .. } = self;
        let own_path = program.contains('/').then(|| directory.join(program));
        if !directory.is_dir() {
            let message = format!("the working directory '{}' does not exist", directory.display());
            let failure = Failure::new(FailureKind::System, message);
            // A program that lies in it is missing as well, whoever creates the directory.
            let within = own_path.filter(|path| path.starts_with(directory));
            return Err(Presumed { failure, paths: vec![within.unwrap_or_else(|| directory.clone())] });
        }
        let start = if own_path.is_some() { directory } else { Path::new("/dev/null") };
        environment.find(program, start).ok_or_else(|| {
            let failure = Failure::new(FailureKind::Start, format!("there is no program '{program}'"));
            Presumed { failure, paths: own_path.into_iter().collect() }
        })
    }
}

/// Runs a program to its end. Each line of its standard error becomes a message.
pub(crate) fn run(cx: &Context, invocation: &Invocation, what: &str) -> Result<Ended, Failure> {
    let mut environment = Environment::of_this_process(&[]);
    environment.add_of_this_process(&cx.inherited);
    let path = invocation.locate(&environment).map_err(|missing| missing.failure)?;
    let arguments: Vec<OsString> = invocation.arguments.iter().map(OsString::from).collect();
    let variables: Vec<(OsString, OsString)> =
        invocation.environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let program = Program {
        path: &path,
        image: None,
        arguments: &arguments,
        directory: &invocation.directory,
        environment: &environment,
        variables: &variables,
        input: None,
    };
    let deadline = invocation.timeout.map_or(cx.deadline, |timeout| timeout.min(cx.deadline));
    let limits = Limits { deadline, output: cx.output_limit, changes: cx.changes, ..Limits::default() };
    let mut errors = Lines::default();
    let finished = process::run(&program, &limits, &cx.cancel, &mut |bytes| errors.take(bytes, cx))
        .map_err(|error| failed(&error, what))?;
    errors.end(cx);
    let output = String::from_utf8_lossy(&finished.stdout).trim_end_matches(['\n', '\r']).to_owned();
    match finished.exit {
        Exit::Code(code) => Ok(Ended { code, output, errors: errors.tail }),
        Exit::Signal(signal) => {
            let message = format!("{what} was ended by signal {signal}{}", said(&output, &errors.tail));
            Err(Failure::new(FailureKind::Signal(signal), message))
        }
    }
}

fn failed(error: &process::ProcessError, what: &str) -> Failure {
    use std::error::Error as _;
    let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    Failure::new(error.kind(), format!("{what} failed: {error}{source}"))
}

/// Bytes on their way to becoming lines.
#[derive(Default)]
struct Lines {
    rest: Vec<u8>,
    tail: Tail,
}

impl Lines {
    /// A longer line is handed on in pieces: nobody reads it, and memory is bounded.
    const LONGEST: usize = 16 << 10;

    fn take(&mut self, bytes: &[u8], cx: &Context) {
        for byte in bytes {
            if *byte == b'\n' || self.rest.len() >= Self::LONGEST {
                self.end(cx);
            }
            if *byte != b'\n' {
                self.rest.push(*byte);
            }
        }
    }

    fn end(&mut self, cx: &Context) {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.rest)).trim_end().to_owned();
        if !line.is_empty() {
            (cx.trace)(TraceLevel::Info, &line);
            self.tail.push(&line);
        }
    }
}

/// A program of the system, which is run by its name alone.
pub(crate) struct SystemProgram {
    pub(crate) name: &'static str,
    /// A package that has it, for the hint where it is missing.
    pub(crate) package: &'static str,
}

impl SystemProgram {
    /// In what-if: that there is no such program.
    pub(crate) fn presumed(&self) -> Option<Presumed> {
        self.find().err().map(|failure| Presumed { failure, paths: Vec::new() })
    }

    /// Its path, or the failure that there is none.
    pub(crate) fn find(&self) -> Result<PathBuf, Failure> {
        let mut environment = Environment::of_this_process(&[]);
        environment.set("PATH", search_path());
        environment.find_on_path(self.name).ok_or_else(|| {
            let message = format!("there is no program '{}'. Install the package {}", self.name, self.package);
            Failure::new(FailureKind::Start, message)
        })
    }

    /// Runs it to its end, and returns what it printed.
    pub(crate) fn run(&self, cx: &Context, arguments: &[&str]) -> Result<String, Failure> {
        let invocation = Invocation {
            program: self.find()?.to_string_lossy().into_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            environment: vec![("LC_ALL".to_owned(), "C.UTF-8".to_owned()), ("PATH".to_owned(), search_path())],
            directory: PathBuf::from("/"),
            timeout: None,
        };
        let ended = run(cx, &invocation, self.name)?;
        if ended.code == 0 { Ok(ended.output) } else { Err(ended.failure(self.name)) }
    }
}

/// Where programs are looked for, those of administrators included, which are not on the path of every user.
pub(crate) fn search_path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    format!("{own}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin")
}
