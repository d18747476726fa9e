//! Running a program that a document names.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stead_core::call::{Failure, FailureKind, Presumed};
use stead_core::claims::{Provision, Ties};
use stead_host::command::scripts::run_by;
use stead_host::provider::{Context, TraceLevel};
use stead_system::fs::{OpenError, SystemPath, Trust, judge};
use stead_system::process::{self, Environment, Executable, Exit, Limits, Program, RefusedProgram};

use crate::headline::{headline, names_error};
use crate::input::blocked;

/// What a document says of a program.
pub(crate) struct Invocation {
    /// A name that is looked for on `PATH`, or a path.
    pub(crate) program: String,
    /// What it is called with.
    pub(crate) arguments: Vec<String>,
    /// Variables besides those that programs are given anyway.
    pub(crate) environment: Vec<(String, String)>,
    /// Where it is started, and what a path of the program is relative to.
    pub(crate) directory: SystemPath,
    /// How long it may take, if that is less than the call may.
    pub(crate) timeout: Option<Duration>,
    /// Where a name is looked for, and what the program gets as `PATH`.
    pub(crate) search: SearchPath,
}

/// Where programs are looked for.
#[derive(Clone, Copy)]
pub(crate) enum SearchPath {
    /// Where this process looks for them.
    Own,
    /// Where the system has programs as well, those of administrators included, which are not on the path of every user.
    System,
}

impl SearchPath {
    fn environment(self) -> Environment {
        let mut environment = Environment::of_this_process(&[]);
        if let Self::System = self {
            let own = environment.get("PATH").unwrap_or_default().to_string_lossy().into_owned();
            environment.set("PATH", format!("{own}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"));
        }
        environment
    }
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
    /// The last lines that it wrote to its standard error.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &str> {
        self.errors.lines.iter().map(String::as_str)
    }

    /// The failure that a program reports by its exit code; `what` is how messages call it.
    pub(crate) fn failure(&self, what: &str) -> Failure {
        let said = said(&self.output, &self.errors);
        Failure::new(FailureKind::Exit(self.code), format!("{what} ended with exit code {}{said}", self.code))
    }
}

/// The output of a program that failed: the line of its errors that says why, then the last lines of both outputs.
fn said(output: &str, errors: &Tail) -> String {
    let reason = errors.headline().map(|line| format!(": {line}")).unwrap_or_default();
    let printed = labelled("standard output", output);
    // A single line is the reason.
    let errors = if errors.count > 1 { errors.labelled("standard error") } else { String::new() };
    reason + &printed + &errors
}

/// The last lines of a text below a heading; nothing if there are none.
pub(crate) fn labelled(label: &str, text: &str) -> String {
    let mut tail = Tail::default();
    text.lines().for_each(|line| tail.push(line));
    tail.labelled(label)
}

/// The last lines of an output.
#[derive(Default)]
pub(crate) struct Tail {
    lines: VecDeque<String>,
    count: usize,
    /// The first line that names an error, of those that are no longer among the last.
    first_error: Option<String>,
}

impl Tail {
    /// Enough to see why something failed.
    pub(crate) const LINES: usize = 10;

    /// A longer line is left out: of a secret that is cut, the part that is left could not be recognized.
    const LONGEST: usize = 1000;

    fn push(&mut self, line: &str) {
        self.count += 1;
        if self.lines.len() == Self::LINES {
            let left = self.lines.pop_front().filter(|line| self.first_error.is_none() && names_error(line));
            self.first_error = self.first_error.take().or(left);
        }
        let kept =
            if line.len() > Self::LONGEST { format!("(a line of {} bytes)", line.len()) } else { line.to_owned() };
        self.lines.push_back(kept);
    }

    fn headline(&self) -> Option<&str> {
        let best = headline(self.lines.iter().map(String::as_str));
        best.filter(|line| names_error(line)).or(self.first_error.as_deref()).or(best)
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
    /// In what-if: what the program cannot be started without, as things are. Of a name that is not on `PATH` it has no path:
    /// where an earlier instance will put the program is not known.
    pub(crate) fn presumed(&self) -> Option<Presumed> {
        self.locate(&self.search.environment()).err()
    }

    /// The program, judged, or what is missing.
    ///
    /// A path is relative to the directory; a name is looked for on `PATH` only: the working directory may be one in which
    /// others write.
    fn locate(&self, environment: &Environment) -> Result<Executable, Presumed> {
        let Self { program, directory, .. } = self;
        let own_path = program.contains('/').then(|| Path::new(directory.as_os_str()).join(program));
        let Ok(Some(start)) = directory.real_directory() else {
            let message = format!("the working directory '{}' does not exist", directory.display());
            let failure = blocked("", message);
            // A program that lies in it is missing as well, whoever creates the directory.
            let within = own_path.filter(|path| path.starts_with(&**directory));
            return Err(Presumed::of(failure, vec![within.unwrap_or_else(|| directory.to_path_buf())]));
        };
        let start = if own_path.is_some() { &*start } else { Path::new("/dev/null") };
        let found = Executable::find(program, start, environment).ok_or_else(|| {
            let failure = Failure::new(FailureKind::Start, format!("there is no program '{program}'"));
            Presumed::of(failure, own_path.into_iter().collect())
        })?;
        let found = found.map_err(|refused| not_run(program, &refused))?;
        self.judge_scripts(environment.trust())?;
        Ok(found)
    }

    /// Judges what an interpreter is called to run, as it is itself.
    fn judge_scripts(&self, trust: Trust) -> Result<(), Presumed> {
        let scripts = if trust == Trust::Everyone { Vec::new() } else { run_by(&self.program, &self.arguments) };
        for script in scripts {
            let path = Path::new(self.directory.as_os_str()).join(&script);
            // One that is not there, or cannot be looked at, fails by itself.
            if let Err(refused @ OpenError::Untrusted(_)) = judge(&path, trust) {
                let what = format!("'{script}' among the arguments of '{}'", self.program);
                return Err(not_used(&what, &RefusedProgram::from(refused)));
            }
        }
        Ok(())
    }
}

/// That a program is not run as root. An earlier instance may give it to root.
fn not_run(program: &str, refused: &RefusedProgram) -> Presumed {
    not_used(&format!("the program '{program}'"), refused)
}

fn not_used(what: &str, refused: &RefusedProgram) -> Presumed {
    let message = format!("{what} {}", refused.reason());
    Presumed::of(Failure::new(refused.kind(), message), vec![refused.path().to_owned()])
}

/// Where programs are that are called by their names.
const FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Returns what an instance uses that calls programs by these names: the packages that have the names, as a rule, and what is
/// created where programs are.
pub(crate) fn called<'n>(names: impl IntoIterator<Item = &'n str>) -> Ties {
    let mut ties = Ties::default();
    for name in names {
        ties.uses.extend(FOLDERS.map(|folder| Provision::Path(Path::new(folder).join(name).into())));
        ties = ties.and_packages([name]);
    }
    ties
}

/// Runs a program to its end. Each line of its standard error becomes a message.
pub(crate) fn run(cx: &Context, invocation: &Invocation, what: &str) -> Result<Ended, Failure> {
    let mut environment = invocation.search.environment();
    environment.add_of_this_process(&cx.inherited);
    let executable = invocation.locate(&environment).map_err(|missing| missing.failure)?;
    let arguments: Vec<OsString> = invocation.arguments.iter().map(OsString::from).collect();
    let variables: Vec<(OsString, OsString)> =
        invocation.environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let directory = invocation.directory.real_directory()?.unwrap_or_else(|| invocation.directory.to_path_buf());
    let program = Program {
        executable: &executable,
        arguments: &arguments,
        directory: &directory,
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
            cx.say(TraceLevel::Info, &line);
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
        self.find().err()
    }

    /// Finds its path. Fails if it is not installed, or if others than root could change it.
    pub(crate) fn find(&self) -> Result<PathBuf, Presumed> {
        let found = Executable::find(self.name, Path::new("/dev/null"), &SearchPath::System.environment());
        let found = found.ok_or_else(|| {
            let message = format!("there is no program '{}'. Install the package {}", self.name, self.package);
            Presumed::of(Failure::new(FailureKind::Start, message), Vec::new())
        })?;
        found.map(|executable| executable.path().to_owned()).map_err(|refused| not_run(self.name, &refused))
    }

    /// Returns whether the program is not installed.
    pub(crate) fn is_missing(&self) -> bool {
        SearchPath::System.environment().find_on_path(self.name).is_none()
    }

    /// Runs it to its end, and returns what it printed.
    pub(crate) fn run(&self, cx: &Context, arguments: &[&str]) -> Result<String, Failure> {
        let invocation = Invocation {
            program: self.find().map_err(|presumed| presumed.failure)?.to_string_lossy().into_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            environment: vec![("LC_ALL".to_owned(), "C.UTF-8".to_owned())],
            directory: SystemPath::here("/"),
            timeout: None,
            search: SearchPath::System,
        };
        let ended = run(cx, &invocation, self.name)?;
        if ended.code == 0 { Ok(ended.output) } else { Err(ended.failure(self.name)) }
    }
}
