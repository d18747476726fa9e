//! The interface to resources: one trait, implemented by built-in, command and adapted ones.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use stead_core::call::{Changed, Execution, Exported, Failure, FailureKind, Operation, Pending, Presumed};
use stead_core::claims::{Claim, Claims, Extent, Ties};
use stead_core::destruction::Effects;
use stead_core::instance_path::InstancePath;
use stead_core::schema::Schema;
use stead_core::statements::Statement;
use stead_core::value::Value;

use crate::bundle::{FilesWithin, Source};
use crate::predicted_files::FileForecast;
use crate::store::images::Images;
use stead_system::Cancel;
use stead_system::fs::{Patience, SystemPath, SystemRoot, Writes};

pub mod lint;
mod plain;
mod said;
mod together;

pub use lint::{Lint, Linter};
pub use plain::Plain;
pub use said::{ActivityProgress, ProgressSink, Trace, TraceLevel};
pub use together::{Asked, MethodAnswer, Together};

/// Carries out the operations of one resource, each by itself: no method calls another.
///
/// How `test` is made up for by `get`, what precedes a `set` and what verifies it is the business of [`crate::operate`].
///
/// Guarantees: every method returns within the deadline of its [`Context`] and a grace of seconds, leaves no process
/// behind, and changes nothing when called with [`Execution::WhatIf`]. A method that the capabilities of the manifest do not
/// name is not called; the default bodies answer [`FailureKind::Unsupported`].
pub trait Provider: Send + Sync {
    /// The schema of the properties, compiled once; `None` when the resource checks them itself.
    fn schema(&self, _cx: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        Ok(None)
    }

    /// The schema of a filter of its export, where it declares one of its own.
    fn export_schema(&self, _cx: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        Ok(None)
    }

    /// The schema as users and editors see it. That of a resource which checks its properties itself only describes them.
    fn described_schema(&self, cx: &Context) -> Result<Option<Json>, Failure> {
        Ok(self.schema(cx)?.map(|schema| schema.json().clone()))
    }

    /// Checks properties, for a resource that has its own way to do so; the others check them when called.
    fn validate(&self, _cx: &Context, _input: &Plain) -> Result<(), Failure> {
        Ok(())
    }

    /// Finds values that are valid and probably do something else than was meant, where it knows any.
    fn linter(&self) -> Option<&dyn Linter> {
        None
    }

    /// A script of PowerShell that does the same as an operation with this input, of which secrets are covered; `None` where there is
    /// none.
    fn script(&self, _cx: &Context, _input: &Plain, _operation: Operation) -> Option<String> {
        None
    }

    /// Returns this resource with a program for each call, where it is one that stays and that others call so.
    fn called_once(&self) -> Option<Box<dyn Provider>> {
        None
    }

    /// The calls of several instances at once, where it takes them; [`stead_core::manifest::BatchKey`] says which.
    fn together(&self) -> Option<&dyn Together> {
        None
    }

    /// Reads the actual state. The input is null when the instance has no properties.
    fn get(&self, _cx: &Context, _input: &Plain) -> Result<State, Failure> {
        Err(unsupported("get"))
    }

    /// Compares the actual state with the desired one.
    fn test(&self, _cx: &Context, _input: &Plain) -> Result<TestReply, Failure> {
        Err(unsupported("test"))
    }

    /// Reaches the desired state.
    fn set(&self, _cx: &Context, _input: &Plain, _execution: Execution) -> Result<SetReply, Failure> {
        Err(unsupported("set"))
    }

    /// Removes the instance. Returns what would be done in words, when only asked.
    fn delete(&self, _cx: &Context, _input: &Plain, _execution: Execution) -> Result<Vec<String>, Failure> {
        Err(unsupported("delete"))
    }

    /// Lists the instances that are there. The input is a filter, or null.
    fn export(&self, _cx: &Context, _input: &Plain) -> Result<Vec<Exported>, Failure> {
        Err(unsupported("export"))
    }

    /// Reviews at the end of a run whether a change of an instance has lasted. Secrets of the desired state are
    /// redacted.
    fn review(&self, _cx: &Context, _desired: &Plain) -> Review {
        Review::Lasted
    }

    /// The way back of what can be brought down by a change of its files, where it has one.
    fn way_back(&self) -> Option<&dyn WayBack> {
        None
    }

    /// Says in a sentence what to do where others of a run have undone an instance.
    fn way_out(&self) -> &'static str {
        "Change the order, or what changes it"
    }

    /// Returns whether secrets are to come as `{"secureString": …}` and `{"secureObject": …}` when there is no schema
    /// to tell.
    fn wants_wrapped_secrets(&self) -> bool {
        false
    }

    /// Returns whether `get` alone reports everything that can be read of the state. If so, the state of a built-in
    /// resource is read once more after other operations where an expression refers to it, so that it has the same
    /// members after each.
    fn get_tells_all(&self) -> bool {
        true
    }

    /// How long a call with this desired state takes, in order of magnitude; decides whether it is handed to a thread.
    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Process
    }

    /// Returns the cost of a test, which may be less.
    fn test_cost(&self, desired: &Value) -> Cost {
        self.cost(desired)
    }

    /// Returns the claims of an instance with this desired state, if it has an effect on nothing else; `None` means
    /// anything. Paths are as the instance states them; [`Context::resolve`] says which ones are meant.
    ///
    /// Conflicts between instances and what a change can reach are derived from it. The input may hold placeholders for
    /// what is not known yet.
    fn claims(&self, _input: &Plain) -> Option<Claims> {
        None
    }

    /// Returns the claims of [`Provider::claims`] with those that follow from what the managed system is set to.
    fn claims_there(&self, _cx: &Context, input: &Plain) -> Option<Claims> {
        self.claims(input)
    }

    /// Returns what an instance with this desired state manages, as far as it has paths: its claims or, where it has an effect on
    /// more than these, the files that it writes. The order of instances and conflicts go by it.
    fn manages(&self, cx: &Context, input: &Plain) -> Option<Claims> {
        self.claims_there(cx, input)
    }

    /// Returns whether an instance with this desired state has a state that does not show at the paths of its claims: that of the
    /// running system, or what lies deep in a tree. It is tested again at the end of a run in which others could change it.
    fn has_state_elsewhere(&self, _cx: &Context, _input: &Plain) -> bool {
        false
    }

    /// The paths that an instance with this desired state reads from, as it states them: those of its claims, and programs
    /// that lie beside the document.
    fn reads(&self, input: &Plain) -> Vec<String> {
        let claims = self.claims(input).unwrap_or_default();
        let read = claims.0.iter().filter_map(|Claim::Path { path, extent }| (*extent == Extent::Read).then_some(path));
        read.filter_map(|path| path.to_str().map(str::to_owned)).collect()
    }

    /// Returns the things that an instance with this desired state creates and uses besides the paths of its claims.
    /// Instances that use what others of their scope create wait for them.
    fn ties(&self, _input: &Plain) -> Ties {
        Ties::default()
    }

    /// Returns what an instance states of things that have a name. Another instance that states something else of the same thing
    /// is a conflict. Things that have a path are covered by claims.
    fn states(&self, _cx: &Context, _input: &Plain) -> Vec<Statement> {
        Vec::new()
    }

    /// Returns the lines that an instance with this desired state adds to the file that it claims a part of, as far as they do not
    /// depend on what is in the file.
    fn added_lines(&self, _input: &Plain) -> Vec<String> {
        Vec::new()
    }

    /// Returns what tells the lines that an instance with this desired state removes from the file that it claims a part of,
    /// whoever added them; `None` if it removes none but its own.
    fn removed_lines(&self, _input: &Plain) -> Option<LineTest> {
        None
    }
}

/// Something that runs, reads files when it comes up, and can be brought up again once these are what they were.
pub trait WayBack {
    /// Returns whether its last start or reload failed, though it ran in its state before the run. Secrets of the desired state are
    /// redacted.
    fn is_down(&self, desired: &Plain, before: &Json) -> bool;

    /// The files that it is stated to read when it comes up.
    fn reads_at_start(&self, cx: &Context, desired: &Plain) -> Vec<SystemPath>;

    /// Brings it up, and returns once that has lasted.
    fn bring_up(&self, cx: &Context, desired: &Plain) -> Result<(), Failure>;
}

fn unsupported(method: &str) -> Failure {
    Failure::new(FailureKind::Unsupported, format!("the resource does not support '{method}'"))
}

/// Tells lines from others.
pub type LineTest = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The answer to whether the result of a set has lasted.
#[derive(Clone, Debug)]
pub enum Review {
    /// It has.
    Lasted,
    /// It has so far; review it again after this duration.
    TooEarly(Duration),
    /// It has not.
    Failed(Failure),
}

/// The order of magnitude of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// Microseconds: a few system calls in this process.
    Inline,
    /// Milliseconds and more: a process, or waiting.
    Process,
}

/// The actual state as a resource reported it, secrets included.
pub type State = Plain;

/// The answer of a `test`.
#[derive(Default)]
pub struct TestReply {
    /// The actual state; `None` when the test of the resource does not report it, so that `get` is needed.
    pub actual: Option<State>,
    /// Its own verdict, if it gave one.
    pub in_desired_state: Option<bool>,
    /// The properties that it says differ.
    pub differing: Option<Vec<String>>,
    /// Why it has no verdict, if it says so.
    pub unknown: Option<String>,
    /// The result that a set would have, where the desired state does not tell, such as where it names the source of
    /// a content.
    pub predicted: Option<Prediction>,
    /// It cannot tell yet and wants to be called again, as of [`SetReply::pending`].
    pub pending: Option<Pending>,
}

/// The result that a set would have, as a test predicts it.
#[derive(Default)]
pub struct Prediction {
    /// The state after it.
    pub after: State,
    /// The things that it would create and destroy besides what the states show.
    pub effects: Effects,
    /// Descriptions of those effects that no state shows.
    pub words: Vec<String>,
    /// The absolute paths of which one must be changed first, of an instance that is in its desired state as things are.
    pub once: Vec<PathBuf>,
}

impl TestReply {
    /// Its own verdict; of a group, which answers with the results of what it holds, that of all of them together.
    pub fn verdict(&self) -> Option<bool> {
        self.in_desired_state.or_else(|| all_in_desired_state(self.actual.as_ref()?.expose()))
    }
}

/// Returns whether all results of tests say that it is so: one that says nothing does not. `None` when these are not
/// results.
fn all_in_desired_state(answer: &Value) -> Option<bool> {
    let says_so = |result: &Value| match result.get("result") {
        Some(nested @ Value::Array(_)) => all_in_desired_state(nested) == Some(true),
        own => own.and_then(|own| own.get("inDesiredState")) == Some(&Value::Bool(true)),
    };
    Some(answer.as_array()?.iter().all(says_so))
}

/// The answer of a `set`.
#[derive(Default)]
pub struct SetReply {
    /// The state before it, of a resource that reports it.
    pub before: Option<State>,
    /// The state after it; `None` when `get` is needed to learn it.
    pub after: Option<State>,
    /// The reason why the state after it cannot be read, if it cannot: the set was made, and `after` has only what the resource
    /// reported besides.
    pub unread: Option<Failure>,
    /// It reported a state that its manifest does not announce, and that counts for nothing.
    pub ignored: bool,
    /// The properties that it says it changed.
    pub changed: Option<Vec<String>>,
    /// In what-if: what it would do, in words.
    pub what_if: Vec<String>,
    /// In what-if: why it cannot tell whether it would change anything.
    pub unknown: Option<String>,
    /// In what-if: what is not there yet without which it would fail.
    pub presumed: Option<Presumed>,
    /// The things that are created and destroyed besides what the states show; the same in what-if and when it is
    /// done.
    pub effects: Effects,
    /// It is still working on it and wants to be called again; nothing else of the reply counts then. What it hands back
    /// comes with the next call, in [`Context::pending`].
    pub pending: Option<Pending>,
}

/// A constraint on a call besides the desired state.
#[derive(Clone, Default, Debug)]
pub enum Binding {
    /// Nothing.
    #[default]
    None,
    /// The change that a plan has shown for the instance; `None` where it has shown the desired state. A set does exactly that or
    /// fails. A resource guarantees this for what it queries from elsewhere, such as a version: that stays as it was shown. The
    /// state of the machine itself is read again.
    Plan(Option<Arc<Changed>>),
}

/// The side of an operating system that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SystemSide {
    /// All of it.
    Whole,
    /// Its files, of one that does not run.
    Files,
}

/// The context that a call is carried out with.
#[derive(Clone)]
pub struct Context {
    /// The name of the instance, or of the resource when it is called without one; for messages.
    pub name: Arc<str>,
    /// How long one process of the resource may take.
    pub deadline: Duration,
    /// How many bytes one process of the resource may write to each of its outputs.
    pub output_limit: usize,
    /// For a set: the test that led to it found no instance. That was a moment ago: the set must be correct even if it is
    /// no longer true.
    pub found_absent: bool,
    /// For a test: nobody reads the state of an instance that is in its desired state. For a set: nobody reads the state after
    /// it, but for the restarts in it. A resource may leave it out.
    pub verdict_suffices: bool,
    /// True if the method may change something, so that its program gets time to end when it is cancelled.
    pub changes: bool,
    /// The constraint on the call besides the desired state.
    pub binding: Binding,
    /// The value that the resource handed back when it was last called for the instance and had not come to an end.
    pub pending: Option<Plain>,
    /// Ends the call early.
    pub cancel: Cancel,
    /// The directory of the document. [`Context::resolve`] says what a path means.
    pub root: Arc<Path>,
    /// The files of the bundle that the document came in, which [`Context::source`] finds, and the folder of the document
    /// among them.
    pub files: Option<Arc<FilesWithin>>,
    /// The relative paths at which the document creates something, below the root of another system than the running one.
    pub made: Arc<[PathBuf]>,
    /// The operating system that is managed.
    pub system_root: SystemRoot,
    /// The side of it that is asked for.
    pub side: SystemSide,
    /// Where messages of a resource go: level and text, one call each. [`Context::say`] is the way there.
    pub trace: Trace,
    /// The instance of a document that warnings and errors name; `None` for a single call, whose caller knows what it is about.
    pub instance: Option<InstancePath>,
    /// How much of them somebody sees: the rest need not be made.
    pub shown: TraceLevel,
    /// Where it goes how far activities are; `None` where nobody shows it.
    pub progress: Option<ProgressSink>,
    /// Names of variables of the environment that programs are given besides those that all are.
    pub inherited: Arc<[String]>,
    /// The record of the files that are written, so that the run can make them durable at its end.
    pub writes: Writes,
    /// Keeps what sets change, if anything does.
    pub images: Option<Images>,
    /// How many other instances of the same adapter the run has not called yet; 0 where nobody knows.
    pub to_come: usize,
    /// In what-if: the files that instances in front of this one leave otherwise than they are; `None` where it shares none.
    pub forecast: Option<FileForecast>,
}

impl Context {
    /// How long one process may take unless something else is said.
    pub const DEADLINE: Duration = Duration::from_mins(10);
    /// How much one process may print unless something else is said: far more than a state, far less than the memory of a
    /// machine.
    pub const OUTPUT_LIMIT: usize = 16 * 1024 * 1024;

    /// For calls below a root: of nothing in particular, not cancelled, with messages discarded and writes unrecorded.
    pub fn new(root: impl Into<Arc<Path>>) -> Self {
        Self {
            name: "".into(),
            deadline: Self::DEADLINE,
            output_limit: Self::OUTPUT_LIMIT,
            found_absent: false,
            verdict_suffices: false,
            changes: false,
            binding: Binding::None,
            pending: None,
            cancel: Cancel::default(),
            root: root.into(),
            files: None,
            made: Arc::default(),
            system_root: SystemRoot::running(),
            side: SystemSide::Whole,
            trace: Arc::new(|_, _| {}),
            instance: None,
            shown: TraceLevel::Trace,
            progress: None,
            inherited: Arc::default(),
            writes: Writes::unrecorded(),
            images: None,
            to_come: 0,
            forecast: None,
        }
    }

    /// Hands on what a resource says of its work.
    pub fn say(&self, level: TraceLevel, text: &str) {
        match &self.instance {
            Some(instance) if level <= TraceLevel::Warn => {
                (self.trace)(level, &format!("{}: {text}", instance.label()));
            }
            _ => (self.trace)(level, text),
        }
    }

    /// Returns whether of a system that does not run files alone are asked for, so that what only a running one has is left out and
    /// not refused.
    pub fn files_alone(&self) -> bool {
        self.side == SystemSide::Files
    }

    /// Returns whether owners of files count: only root can give files away, and where files alone are asked for, a user goes without.
    pub fn gives_files_away(&self) -> bool {
        !self.files_alone() || stead_system::user::is_root()
    }

    /// How long work on files may go on: as long as the call may take, from now on.
    pub fn patience(&self) -> Patience {
        Patience::new(&self.cancel, self.deadline)
    }

    /// Returns whether the system that is managed is the one that runs, so that the state of its kernel and its
    /// services counts.
    pub fn manages_running_system(&self) -> bool {
        self.system_root.is_running()
    }

    /// Where relative paths start: at the root of the operating system if another one than the running one is managed, else
    /// at the directory of the document. Of a document that came in a bundle that need not be there: then at the first one
    /// above it that is.
    pub fn directory(&self) -> SystemPath {
        match (self.manages_running_system(), &self.files) {
            (false, _) => self.system_root.at(""),
            (true, None) => SystemPath::here(&*self.root),
            (true, Some(_)) => {
                let there = self.root.ancestors().find(|path| path.is_dir());
                SystemPath::here(there.unwrap_or(Path::new("/")))
            }
        }
    }

    /// Resolves a path of an instance.
    ///
    /// Guarantees: where another operating system than the running one is managed, every path is below its root;
    /// neither `..` nor a link leads out of it, whenever it is placed.
    pub fn resolve(&self, path: impl AsRef<Path>) -> SystemPath {
        let path = path.as_ref();
        match self.manages_running_system() {
            true if path.is_absolute() => SystemPath::here(path),
            true => SystemPath::here(self.root.join(path)),
            false => self.system_root.at(path),
        }
    }

    /// Resolves a path that an instance reads from: a file of the bundle, if the document came in one, and else a relative one in the
    /// directory of the document, whatever system is managed, unless the document creates what is there.
    ///
    /// Guarantees: of the folder of such a document nothing is read but what came with it, or what it creates itself.
    ///
    /// # Errors
    /// When the path is neither absolute, nor in the bundle, nor created by the document.
    pub fn source(&self, path: impl AsRef<Path>) -> Result<SystemPath, Failure> {
        let path = path.as_ref();
        match self.found(path) {
            None | Some(Source::Machine) => Ok(self.beside(path).map_or_else(|| self.resolve(path), SystemPath::here)),
            Some(Source::Bundled(place)) => Ok(SystemPath::here(place)),
            Some(Source::Nowhere) => Err(Failure::new(FailureKind::Invalid, not_in_bundle(path))),
        }
    }

    /// The file beside the document that a path means which an instance reads from, where paths that are managed mean others.
    pub fn beside(&self, path: &Path) -> Option<PathBuf> {
        let is_beside = path.is_relative() && !self.manages_running_system() && self.files.is_none();
        let is_made = || {
            let path = undotted(path);
            self.made.iter().any(|made| path.starts_with(made))
        };
        (is_beside && !is_made()).then(|| self.root.join(path))
    }

    /// Returns whether a path that an instance reads from lies in the bundle, which does not change.
    pub fn is_bundled(&self, path: &Path) -> bool {
        matches!(self.found(path), Some(Source::Bundled(_)))
    }

    /// Where a path is that an instance reads from; `None` without a bundle.
    pub fn found(&self, path: &Path) -> Option<Source> {
        let FilesWithin { files, folder } = &**self.files.as_ref()?;
        // A path that is not text is not in a bundle.
        Some(path.to_str().map_or(Source::Machine, |path| files.find(folder, path)))
    }

    /// The directory of the document as programs know it: with the files of its bundle in it, where it came in one.
    pub fn program_root(&self) -> PathBuf {
        self.files.as_ref().map_or_else(|| self.root.to_path_buf(), |within| within.files.folder(&within.folder))
    }

    /// Like [`Self::resolve`], for comparisons: borrows an absolute path of the running system.
    pub fn meant<'p>(&self, path: &'p Path) -> Cow<'p, Path> {
        if self.manages_running_system() && path.is_absolute() {
            return path.into();
        }
        PathBuf::from(self.resolve(path)).into()
    }
}

/// A path without components that mean nothing.
pub fn undotted(path: &Path) -> PathBuf {
    path.components().filter(|component| *component != Component::CurDir).collect()
}

/// The message about a path that a document reads and that its bundle does not have.
fn not_in_bundle(path: &Path) -> String {
    format!("'{}' is not in the bundle; name it in 'directives: {{files: [...]}}'", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_system_is_the_same_whether_its_root_is_given_or_not() {
        let with = |root: Option<&str>| Context {
            system_root: root.map_or_else(SystemRoot::running, |root| SystemRoot::below(Path::new(root))),
            ..Context::new(Path::new("/document"))
        };
        for root in [None, Some("/")] {
            let cx = with(root);
            assert!(cx.manages_running_system());
            assert_eq!(&*cx.resolve("f"), Path::new("/document/f"));
            assert_eq!(&*cx.directory(), Path::new("/document"));
        }
        let other = with(Some("/mnt"));
        assert_eq!((&*other.resolve("f"), &*other.resolve("/a/../../b")), (Path::new("/mnt/f"), Path::new("/mnt/b")));
        assert_eq!(&*other.directory(), Path::new("/mnt"));
    }

    #[test]
    fn what_is_read_by_a_relative_path_lies_beside_the_document_unless_the_document_makes_it() {
        let cx = Context {
            system_root: SystemRoot::below(Path::new("/mnt")),
            made: Arc::new(["made".into()]),
            ..Context::new(Path::new("/document"))
        };
        for (path, expected) in [
            ("f", "/document/f"),
            ("made/f", "/mnt/made/f"),
            ("made-otherwise", "/document/made-otherwise"),
            ("/etc/f", "/mnt/etc/f"),
        ] {
            assert_eq!(cx.source(path).map(PathBuf::from).ok().as_deref(), Some(Path::new(expected)), "{path}");
        }
        let running = Context { system_root: SystemRoot::running(), ..cx };
        assert_eq!(running.source("made/f").map(PathBuf::from).ok().as_deref(), Some(Path::new("/document/made/f")));
    }
}
