//! Commands that must accept new content before it is in place.

use std::borrow::Cow;
use std::path::Path;

use stead_core::call::{Failure, FailureKind, Presumed};
use stead_core::value::Value;
use stead_host::provider::Context;
use stead_system::fs::SystemPath;
use stead_system::scratch::Scratch;

use crate::declared::ToValue;
use crate::edit::{self, Outcome};
use crate::input::transient;
use crate::program::{self, Ended, Invocation, SearchPath};
use crate::text::{Text, text_type};

/// The property that states one.
const PROPERTY: &str = "validate";

/// What stands for the path of the content in the command.
const FILE: &str = "%s";

/// A command that must accept new content: words with spaces between them, without a shell.
#[derive(Clone, Copy)]
pub(crate) struct Guard<'a> {
    command: &'a str,
    own: Option<OwnGuard>,
}

/// What is known of the command of a resource. It reads only, so that plans run it as well.
#[derive(Clone, Copy)]
pub(crate) struct OwnGuard {
    /// A complaint about the system and not about the content: a check that fails with these words passes.
    pub(crate) accepted: &'static str,
    /// A complaint about what another instance may bring.
    pub(crate) missing: &'static str,
    /// The keyword that begins a line with the paths of other files, in small letters. They would be those of the running system:
    /// for another one the command is given the content without such lines.
    pub(crate) include: &'static str,
}

impl OwnGuard {
    /// The content without the lines that include other files; lines keep their numbers.
    fn alone(self, content: &[u8]) -> Vec<u8> {
        let is_include = |line: &[u8]| {
            let word = line.trim_ascii_start();
            let word = word.strip_prefix(b"\"").unwrap_or(word);
            let length = self.include.len();
            word.get(..length).is_some_and(|word| word.eq_ignore_ascii_case(self.include.as_bytes()))
                && word.get(length).is_none_or(|next| !next.is_ascii_alphanumeric())
        };
        let line = |line: &[u8]| if is_include(line) { Vec::new() } else { line.to_vec() };
        content.split(|byte| *byte == b'\n').map(line).collect::<Vec<_>>().join(&b'\n')
    }
}

text_type!(Guard, { "type": "string", "pattern": "^[^ %'\"\\\\\\x00-\\x1f\\x7f]+ [^'\"\\\\\\x00-\\x1f\\x7f]*%s[^'\"\\\\\\x00-\\x1f\\x7f]*$" });

impl<'a> Text<'a> for Guard<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_plain = |c: char| !c.is_ascii_control() && !matches!(c, '\'' | '"' | '\\');
        if !text.chars().all(is_plain) {
            return Err("must be words with spaces between them, without quotes: what needs more is a script");
        }
        let is_command = |(program, arguments): (&str, &str)| {
            !program.is_empty() && !program.contains('%') && arguments.contains(FILE)
        };
        if !text.split_once(' ').is_some_and(is_command) {
            return Err("must be a program followed by arguments, one of which contains %s");
        }
        Ok(Self { command: text, own: None })
    }
}

impl ToValue for Guard<'_> {
    fn to_value(&self) -> Option<Value> {
        Some(Value::from(self.command))
    }
}

impl Guard<'static> {
    /// The command of a resource.
    pub(crate) const fn own(command: &'static str, own: OwnGuard) -> Self {
        Self { command, own: Some(own) }
    }
}

impl Guard<'_> {
    /// What a plan says of it.
    pub(crate) fn intention(self, path: &str) -> String {
        format!("have '{}' check the content first", self.shown(path))
    }

    /// The command with the path of the file.
    fn shown(self, path: &str) -> String {
        self.command.replace(FILE, path)
    }

    /// In what-if: what the command cannot be started without. A name that is not on `PATH` is not reported: nothing says what
    /// brings it.
    pub(crate) fn presumed(self) -> Option<Presumed> {
        self.invocation(FILE).presumed().filter(|missing| !missing.paths.is_empty())
    }

    /// In what-if: that the command of a resource refuses the content. Nobody knows what that of a user does.
    pub(crate) fn refused(self, cx: &Context, path: &Path, content: &[u8]) -> Option<Presumed> {
        if self.own.is_none() || self.invocation(FILE).presumed().is_some() {
            return None;
        }
        let failure = self.check(cx, path, content).err().filter(|failure| failure.kind == FailureKind::Refused)?;
        Some(Presumed::of(failure, Vec::new()))
    }

    /// Has the command look at the content that a file is to have, in a file of the same name that only this user can read.
    ///
    /// # Errors
    /// When the command refuses the content, or cannot be run; the message has what it printed.
    pub(crate) fn check(self, cx: &Context, path: &Path, content: &[u8]) -> Result<(), Failure> {
        let not_handed =
            |error: &std::io::Error| transient(PROPERTY, format!("cannot hand the content to a command: {error}"));
        let folder = Scratch::new(false).map_err(|error| not_handed(&error.source))?;
        let copy = folder.path().join(path.file_name().unwrap_or_default());
        let elsewhere = self.own.filter(|_| !cx.manages_running_system());
        let content = elsewhere.map_or(Cow::Borrowed(content), |own| Cow::Owned(own.alone(content)));
        folder.create_file(&copy, &content, 0o600).map_err(|error| not_handed(&error))?;
        let copy = copy.display().to_string();
        let about = |failure: Failure| Failure { property: Some(format!("/{PROPERTY}")), ..failure };
        let what = format!("'{}'", self.shown(&path.display().to_string()));
        let ended = program::run(cx, &self.invocation(&copy), &what).map_err(about)?;
        let says = |words: &str| ended.errors().any(|line| line.contains(words));
        let is_of_machine = |own: OwnGuard| says(own.accepted) || elsewhere.is_some() && says(own.missing);
        if ended.code == 0 || self.own.is_some_and(is_of_machine) {
            Ok(())
        } else {
            let may_pass = self.own.is_none_or(|own| says(own.missing));
            Err(about(refusal(&ended, (&copy, path), &what, may_pass)))
        }
    }

    fn invocation(self, copy: &str) -> Invocation {
        let mut words = self.command.split(' ').filter(|word| !word.is_empty()).map(|word| word.replace(FILE, copy));
        Invocation {
            program: words.next().unwrap_or_default(),
            arguments: words.collect(),
            environment: Vec::new(),
            directory: SystemPath::here("/"),
            timeout: None,
            search: SearchPath::System,
        }
    }
}

/// The failure that a command refuses the content. Where it may pass once something else is changed, that is waited for.
fn refusal(ended: &Ended, (copy, path): (&str, &Path), what: &str, may_pass: bool) -> Failure {
    let failure = ended.failure(what);
    let said = failure.message.replace(copy, &path.display().to_string());
    let message = format!("the new content was refused, and the file stays as it is: {said}");
    Failure { kind: if may_pass { FailureKind::Blocked } else { FailureKind::Refused }, message, ..failure }
}

/// The command where it is run at all: it is a program of the running system, and not asked about files alone of another.
pub(crate) fn in_use<'a>(guard: Option<Guard<'a>>, cx: &Context) -> Option<Guard<'a>> {
    guard.filter(|_| !cx.files_alone())
}

/// Has the command of an edit, if it has one, look at what the file is to be, with the byte order mark that it keeps.
pub(crate) fn guarded<T>(
    guard: Option<Guard<'_>>,
    cx: &Context,
    path: &Path,
    outcome: &Outcome,
    text: Option<&edit::Text<T>>,
) -> Result<(), Failure> {
    match (guard, outcome) {
        (Some(guard), Outcome::Write(content)) => guard.check(cx, path, &[edit::mark(text), content].concat()),
        _ => Ok(()),
    }
}
