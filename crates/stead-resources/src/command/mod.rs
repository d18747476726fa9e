//! `Stead/Command`: something that commands read, test and set, for what no other resource manages.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use stead_core::call::{Execution, Failure, FailureKind};
use stead_core::claims::Ties;
use stead_core::destruction::{Effect, Effects};
use stead_core::manifest::Capabilities;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Lint, Linter, Plain, Provider, SetReply, State, TestReply};
use stead_system::fs::SystemPath;

use crate::declared::Declared as _;
use crate::input::{NonEmpty, PathText, ReadOnly, read};
use crate::program::{self, Ended, Invocation, SearchPath};
use crate::{BuiltIn, NOTHING};

mod lints;

pub(crate) fn built_in() -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Command))
}

/// Something that commands read, test and set, for what no other resource manages. It is in the desired state when the path
/// 'creates' exists and the command 'test' ends with exit code 0, as far as they are given. Where neither is given, 'set' is
/// run by every set.
#[resource(
    "Stead/Command",
    about = "Something that commands read, test and set, for what no other resource manages.",
    tags("command", "script", "shell"),
    undo = Cannot,
    capabilities = Capabilities { get: true, set: true, set_what_if: true, test: true, ..NOTHING },
    always_any(get, test, set, creates),
    repeated(set, test, creates),
)]
struct Properties<'a> {
    /// Reads the state; what it prints becomes 'output'. Text is run by '/bin/sh -c', an array is a program and its
    /// arguments. It must not change anything: it is run by every operation, in what-if too.
    get: Option<Script<'a>>,
    /// Tests the state: exit code 0 says that it is the desired one, any other that it is not. 126 and 127 say that the
    /// command could not be run, which is a failure. It must not change anything: it is run in what-if too.
    test: Option<Script<'a>>,
    /// Reaches the desired state. Any exit code but 0 is a failure.
    set: Option<Script<'a>>,
    /// A path that exists in the desired state. A relative path starts at the working directory.
    creates: Option<NonEmpty<'a>>,
    /// Variables for the commands. This is the way to hand them secrets: the arguments of a program can be read by every
    /// user of the machine.
    environment: Option<BTreeMap<&'a str, &'a str>>,
    /// Where the commands are started. A relative path starts at the directory of the document, or at the system root that
    /// was given, which is also the default.
    working_directory: Option<PathText<'a>>,
    /// After how many seconds a command is ended, which is a failure.
    timeout: Option<Seconds>,
    /// What the command 'get' printed, or without it the last one, without the newlines at the end.
    #[property(printed)]
    output: Option<ReadOnly<String>>,
    /// The exit code of the same command.
    exit_code: Option<ReadOnly<i64>>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

impl<'a> Properties<'a> {
    /// The programs that are named by a path from the folder of the document.
    fn beside_document(&self) -> impl Iterator<Item = &'a str> {
        let is_there = self.working_directory.is_none();
        let scripts = [&self.get, &self.test, &self.set].into_iter().flatten();
        let words: Vec<&str> = scripts.filter_map(|Script(words)| words.first().copied()).collect();
        words.into_iter().filter(move |word| is_there && word.contains('/') && !word.starts_with('/'))
    }
}

/// A program and its arguments.
struct Script<'a>(Vec<&'a str>);

impl<'de: 'a, 'a> Deserialize<'de> for Script<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScriptVisitor)
    }
}

struct ScriptVisitor;

impl<'de> Visitor<'de> for ScriptVisitor {
    type Value = Script<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string for the shell, or a list of a program and its arguments")
    }

    fn visit_borrowed_str<E: Error>(self, script: &'de str) -> Result<Script<'de>, E> {
        if script.is_empty() { Err(E::custom("must not be empty")) } else { Ok(Script(vec!["/bin/sh", "-c", script])) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Script<'de>, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = items.next_element()? {
            words.push(word);
        }
        if words.is_empty() { Err(A::Error::custom("must not be empty")) } else { Ok(Script(words)) }
    }
}

impl JsonSchema for Script<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Command".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "minLength": 1 },
                { "type": "array", "minItems": 1, "items": { "type": "string" } }
            ]
        })
    }
}

/// A time, at most a week.
#[derive(Deserialize)]
#[serde(try_from = "f64")]
struct Seconds(Duration);

impl Seconds {
    const MOST: f64 = 604_800.0;
}

impl TryFrom<f64> for Seconds {
    type Error = &'static str;

    fn try_from(seconds: f64) -> Result<Self, Self::Error> {
        let duration = Duration::try_from_secs_f64(seconds).ok().filter(|_| seconds > 0.0 && seconds <= Self::MOST);
        duration.map(Self).ok_or("must be more than 0 and at most 604800 seconds")
    }
}

impl JsonSchema for Seconds {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "exclusiveMinimum": 0, "maximum": Self::MOST })
    }
}

struct Command;

/// The program that a command runs by its name: the first argument, or the first word of a text for the shell.
fn program_of(command: &Value) -> Option<&str> {
    let first = command.as_array().map_or(Some(command), |arguments| arguments.first())?.as_str()?;
    let word = first.split_whitespace().next()?;
    let is_name = word.chars().all(|character| character.is_ascii_alphanumeric() || "._+-".contains(character));
    is_name.then_some(word)
}

impl Provider for Command {
    fn linter(&self) -> Option<&dyn Linter> {
        const LINTER: fn(&Object) -> Vec<Lint> = lints::lints;
        Some(&LINTER)
    }

    /// Without a command 'get', what the others printed is the state, and they do not run again.
    fn has_state_elsewhere(&self, _cx: &Context, input: &Plain) -> bool {
        [Properties::TEST, Properties::CREATES].iter().any(|guard| input.expose().get(guard).is_some())
    }

    fn get_tells_all(&self) -> bool {
        false
    }

    fn way_out(&self) -> &'static str {
        "Its 'test' succeeded and no longer does: another instance removed what it checks. Have 'set' leave a file that stays, \
         and name it in 'creates'"
    }

    fn ties(&self, input: &Plain) -> Ties {
        let commands = [Properties::GET, Properties::TEST, Properties::SET].into_iter();
        program::called(commands.filter_map(|name| program_of(input.expose().get(name)?)))
    }

    fn validate(&self, cx: &Context, input: &Plain) -> Result<(), Failure> {
        Desired::read(input, cx).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired = Desired::read(input, cx)?;
        let found = desired.run(Step::Get, cx)?;
        let mut differing = desired.differing();
        // Only a test tells.
        differing.push(Properties::TEST);
        Ok(Plain::new(desired.state(found.as_ref(), &differing)))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::read(input, cx)?;
        let tested = desired.run(Step::Test, cx)?;
        if let Some(ended) = tested.as_ref().filter(|ended| could_not_run(ended)) {
            return Err(ended.failure("the command 'test' cannot be run: it"));
        }
        let mut differing = desired.differing();
        if tested.as_ref().is_some_and(|ended| ended.code != 0) {
            differing.push(Properties::TEST);
        }
        let found = desired.run(Step::Get, cx)?.or(tested);
        Ok(TestReply {
            actual: Some(Plain::new(desired.state(found.as_ref(), &differing))),
            unknown: None,
            in_desired_state: Some(differing.is_empty()),
            differing: Some(differing.into_iter().map(str::to_owned).collect()),
            predicted: None,
            pending: None,
        })
    }

    fn reads(&self, input: &Plain) -> Vec<String> {
        let stated = read::<Properties<'_>>(input);
        stated.iter().flat_map(Properties::beside_document).map(str::to_owned).collect()
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::read(input, cx)?;
        if execution == Execution::WhatIf && desired.stated.set.is_some() {
            return self.predict(cx, input);
        }
        if desired.is_created() {
            let after = Some(Plain::new(desired.state(desired.run(Step::Get, cx)?.as_ref(), &[])));
            return Ok(SetReply { after, changed: Some(Vec::new()), ..SetReply::default() });
        }
        let Some(ended) = desired.run(Step::Set, cx)? else {
            let message = "it is not in the desired state, and there is no command 'set' to change that";
            return Err(Failure::new(FailureKind::Unsupported, message));
        };
        if ended.code != 0 {
            return Err(ended.failure("the command 'set'"));
        }
        let found = desired.run(Step::Get, cx)?.unwrap_or(ended);
        Ok(SetReply { after: Some(Plain::new(desired.state_after(&found))), ..runs_set() })
    }
}

impl Command {
    /// What a set would do: that the command would be run, and whether it can be started, is all that can be said.
    fn predict(&self, cx: &Context, input: &Plain) -> Result<SetReply, Failure> {
        let TestReply { actual, in_desired_state, .. } = self.test(cx, input)?;
        if in_desired_state == Some(true) {
            return Ok(SetReply { after: actual, changed: Some(Vec::new()), ..SetReply::default() });
        }
        let desired = Desired::read(input, cx)?;
        let presumed = desired.invocation(Step::Set).and_then(|invocation| invocation.presumed());
        Ok(SetReply { what_if: vec![desired.intention()], presumed, ..runs_set() })
    }
}

fn runs_set() -> SetReply {
    let effects = Effects::of(Effect::Change);
    SetReply { changed: Some(vec![Properties::SET.to_owned()]), effects, ..SetReply::default() }
}

/// One of the commands.
#[derive(Clone, Copy)]
enum Step {
    Get,
    Test,
    Set,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Get => Properties::GET,
            Self::Test => Properties::TEST,
            Self::Set => Properties::SET,
        }
    }
}

/// Returns whether a shell reports a command that does not exist or is not a program.
fn could_not_run(ended: &Ended) -> bool {
    matches!(ended.code, 126 | 127)
}

/// A link counts by itself, wherever it leads: it was created.
fn exists(path: &SystemPath) -> bool {
    path.status().is_some()
}

/// The properties of one instance.
struct Desired<'a> {
    stated: Properties<'a>,
    properties: &'a Value,
    directory: SystemPath,
    creates: Option<SystemPath>,
    /// Where programs that lie beside the document are, by their words, where it came in a bundle.
    bundled: BTreeMap<&'a str, String>,
    /// Where the files of the document are.
    root: std::path::PathBuf,
}

impl<'a> Desired<'a> {
    /// The command that a set would run, as the document states it.
    fn intention(&self) -> String {
        let words = self.stated.set.as_ref().map(|Script(words)| words.join(" ")).unwrap_or_default();
        format!("run: {words}")
    }

    fn read(input: &'a Plain, cx: &Context) -> Result<Self, Failure> {
        let stated: Properties<'a> = read(input)?;
        let directory = stated.working_directory.map_or_else(|| cx.directory(), |path| path.resolve(cx));
        let creates = stated.creates.map(|NonEmpty(path)| directory.join(path));
        let bundled = stated.beside_document().map(|word| Ok((word, cx.source(word)?.display().to_string())));
        let bundled = bundled.filter(|_| cx.files.is_some()).collect::<Result<_, Failure>>()?;
        Ok(Self { stated, properties: input.expose(), directory, creates, bundled, root: cx.program_root() })
    }

    /// Returns whether `creates` says that nothing is to be done, without a test that could say otherwise.
    fn is_created(&self) -> bool {
        self.stated.test.is_none() && self.creates.as_ref().is_some_and(exists)
    }

    /// The properties that differ, as far as that is known without running anything.
    fn differing(&self) -> Vec<&'static str> {
        let missing = self.creates.as_ref().is_some_and(|path| !exists(path)).then_some(Properties::CREATES);
        // Nothing says whether it needs to run, so it does.
        let unguarded = self.stated.test.is_none() && self.stated.creates.is_none();
        let always = (unguarded && self.stated.set.is_some()).then_some(Properties::SET);
        missing.into_iter().chain(always).collect()
    }

    /// Runs a command; `None` when there is none.
    fn run(&self, step: Step, cx: &Context) -> Result<Option<Ended>, Failure> {
        let what = || format!("the command '{}'", step.name());
        self.invocation(step).map(|invocation| program::run(cx, &invocation, &what())).transpose()
    }

    /// What a command is called with; `None` when there is none.
    fn invocation(&self, step: Step) -> Option<Invocation> {
        let script = match step {
            Step::Get => &self.stated.get,
            Step::Test => &self.stated.test,
            Step::Set => &self.stated.set,
        };
        let (program, arguments) = script.as_ref().and_then(|Script(words)| words.split_first())?;
        let owned = |text: &&str| (*text).to_owned();
        let variables = self.stated.environment.iter().flatten();
        let root = ("DSC_CONFIG_ROOT".to_owned(), self.root.display().to_string());
        Some(Invocation {
            program: self.bundled.get(program).cloned().unwrap_or_else(|| owned(program)),
            arguments: arguments.iter().map(owned).collect(),
            environment: [root].into_iter().chain(variables.map(|(name, value)| (owned(name), owned(value)))).collect(),
            directory: self.directory.clone(),
            timeout: self.stated.timeout.as_ref().map(|seconds| seconds.0),
            search: SearchPath::Own,
        })
    }

    /// The state: what is stated and does not differ, and what a command found.
    fn state(&self, found: Option<&Ended>, differing: &[&str]) -> Object {
        let stated = self.properties.as_object().into_iter().flatten();
        let settled = stated.filter(|(name, _)| !differing.contains(&name.as_str()));
        let mut state: Object = settled.map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Some(ended) = found {
            state.insert(Properties::OUTPUT.to_owned(), Value::from(ended.output.as_str()));
            state.insert(Properties::EXIT_CODE.to_owned(), Value::from(ended.code));
        }
        state
    }

    /// The state after a set: with every property that needs no second look. What is left out is tested again.
    fn state_after(&self, found: &Ended) -> Object {
        let missing = self.creates.as_ref().is_some_and(|path| !exists(path)).then_some(Properties::CREATES);
        self.state(Some(found), &[&[Properties::TEST], missing.as_slice()].concat())
    }
}
