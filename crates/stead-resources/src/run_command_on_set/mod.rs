//! `Microsoft.DSC.Transitional/RunCommandOnSet`: a program that every set runs.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value as Json;
use stead_core::call::{Execution, Failure, FailureKind};
use stead_core::claims::Ties;
use stead_core::destruction::{Effect, Effects};
use stead_core::manifest::Capabilities;
use stead_core::value::Value;
use stead_declare::resource;
use stead_host::provider::{Context, Plain, Provider, SetReply, State};

use crate::declared::Declared as _;
use crate::input::{NonEmpty, ReadOnly, read};
use crate::program::{self, Invocation, SearchPath};
use crate::{BuiltIn, NOTHING, reply, with_version};

pub(crate) fn built_in() -> Option<BuiltIn> {
    let built_in = Properties::built_in(Arc::new(RunCommandOnSet))?;
    Some(with_version(built_in, semver::Version::new(0, 1, 0)))
}

/// A program that is run by every set. 'Stead/Command' can also test whether it needs to run.
#[resource(
    "Microsoft.DSC.Transitional/RunCommandOnSet",
    about = "Takes a single-command line to execute on DSC set operation",
    tags("command"),
    undo = Cannot,
    capabilities = Capabilities { get: true, set: true, set_what_if: true, implements_pretest: true, ..NOTHING },
    title = "RunCommandOnSet",
)]
struct Properties<'a> {
    /// A name that is looked for on 'PATH', or a path.
    executable: NonEmpty<'a>,
    /// What the program is called with.
    arguments: Option<Vec<Argument>>,
    /// The exit code that means success.
    #[serde(default)]
    exit_code: i64,
    /// What the program wrote to its standard output, without the newlines at the end.
    #[property(printed)]
    output: Option<ReadOnly<String>>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

impl<'a> Properties<'a> {
    /// The program, if it is named by a path from the folder of the document.
    fn beside_document(&self) -> Option<&'a str> {
        Some(self.executable.0).filter(|path| path.contains('/') && !path.starts_with('/'))
    }
}

/// A word of a command line.
struct Argument(String);

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::String(word) => Ok(Self(word)),
            word @ (Json::Number(_) | Json::Bool(_)) => Ok(Self(word.to_string())),
            _ => Err(D::Error::custom("must be a list of strings, numbers, true and false")),
        }
    }
}

impl JsonSchema for Argument {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Argument".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// The words of the system, which scripts look for behind those of dsc.
const MISSING: &str = "No such file or directory (os error 2)";

struct RunCommandOnSet;

impl Provider for RunCommandOnSet {
    /// Only a set tells what the program printed.
    fn get_tells_all(&self) -> bool {
        false
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    /// There is no state behind it: what is asked is what is there.
    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        self.validate(cx, input)?;
        Ok(input.clone())
    }

    fn ties(&self, input: &Plain) -> Ties {
        let name = reply::text(input, Properties::EXECUTABLE).filter(|name| !name.contains('/'));
        program::called(name)
    }

    fn reads(&self, input: &Plain) -> Vec<String> {
        let stated = read::<Properties<'_>>(input);
        stated.iter().filter_map(Properties::beside_document).map(str::to_owned).collect()
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let stated: Properties<'_> = read(input)?;
        let (expected, what) = (stated.exit_code, format!("'{}'", stated.executable.0));
        let invocation = invocation(stated, cx)?;
        if execution == Execution::WhatIf {
            let what_if = vec![format!("run {what}")];
            let presumed = invocation.presumed();
            let presumed = presumed.map(|missing| missing.with_failures(&|failure| as_dsc(failure, &what)));
            return Ok(SetReply { what_if, presumed, ..done(input, expected, None) });
        }
        let ended = program::run(cx, &invocation, &what).map_err(|failure| as_dsc(failure, &what))?;
        if i64::from(ended.code) == expected {
            Ok(done(input, expected, Some(ended.output).filter(|output| !output.is_empty())))
        } else {
            Err(ended.failure(&what))
        }
    }
}

/// Returns the failure with the words that dsc has for it.
fn as_dsc(failure: Failure, what: &str) -> Failure {
    if failure.kind == FailureKind::Start && failure.message.starts_with("there is no program") {
        return Failure { message: format!("Failed to execute {what}: {MISSING}"), ..failure };
    }
    failure
}

/// The answer once the program ended with the expected code: a set that ends with another one has failed.
fn done(input: &Plain, expected: i64, output: Option<String>) -> SetReply {
    let mut after = input.expose().clone();
    if let Value::Object(after) = &mut after {
        after.insert(Properties::EXIT_CODE.to_owned(), Value::from(expected));
        after.extend(output.map(|output| (Properties::OUTPUT.to_owned(), Value::from(output))));
    }
    let (after, effects) = (Some(Plain::new(after)), Effects::of(Effect::Change));
    SetReply { after, changed: Some(changed()), effects, ..SetReply::default() }
}

/// Nobody can tell what a command changed; that it was run is reported, so that others can act on it.
fn changed() -> Vec<String> {
    vec![Properties::EXIT_CODE.to_owned()]
}

fn invocation(stated: Properties<'_>, cx: &Context) -> Result<Invocation, Failure> {
    let program = match stated.beside_document().filter(|_| cx.files.is_some()) {
        Some(path) => cx.source(path)?.display().to_string(),
        None => stated.executable.0.to_owned(),
    };
    Ok(Invocation {
        program,
        arguments: stated.arguments.into_iter().flatten().map(|argument| argument.0).collect(),
        environment: vec![("DSC_CONFIG_ROOT".to_owned(), cx.program_root().display().to_string())],
        directory: cx.directory(),
        timeout: None,
        search: SearchPath::Own,
    })
}
