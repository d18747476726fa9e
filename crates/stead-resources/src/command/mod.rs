//! `Stead/Command`: something that commands read, test and set, for what no other resource manages.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use stead_core::call::{Execution, Failure, FailureKind};
use stead_core::manifest::Capabilities;
use stead_core::schema::Schema;
use stead_host::provider::{Context, Plain, Provider, SetReply, State, TestReply};

use crate::program::{self, Ended, Invocation};
use crate::schema::Lazy;
use crate::{BuiltIn, NOTHING, Profile};

const SCHEMA: &str = include_str!("schema.json");

pub(crate) fn built_in() -> Option<BuiltIn> {
    let profile = Profile {
        type_name: "Stead/Command",
        description: "Something that commands read, test and set, for what no other resource manages.",
        tags: &["command", "script", "shell"],
        capabilities: Capabilities { get: true, set: true, set_what_if: true, test: true, ..NOTHING },
        schema: SCHEMA,
    };
    profile.built_in(Arc::new(Command { schema: Lazy::new(SCHEMA) }))
}

struct Command {
    schema: Lazy,
}

impl Provider for Command {
    fn schema(&self, _cx: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        self.schema.get()
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired = Desired::read(input, cx)?;
        let ended = desired.run("get", cx)?;
        Ok(Plain::new(desired.state(ended.as_ref())))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::read(input, cx)?;
        let ended = desired.run("test", cx)?;
        if let Some(ended) = ended.as_ref().filter(|ended| could_not_run(ended)) {
            return Err(ended.failure("the command 'test' cannot be run: it"));
        }
        let mut differing = Vec::new();
        if desired.creates().is_some_and(|path| !exists(&path)) {
            differing.push("creates".to_owned());
        }
        if ended.as_ref().is_some_and(|ended| ended.code != 0) {
            differing.push("test".to_owned());
        }
        if !desired.has_guard() && desired.has("set") {
            differing.push("set".to_owned());
        }
        Ok(TestReply {
            actual: Some(Plain::new(desired.state(ended.as_ref()))),
            in_desired_state: Some(differing.is_empty()),
            differing: Some(differing),
        })
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::read(input, cx)?;
        if execution == Execution::WhatIf && desired.has("set") {
            return self.foresee(cx, input);
        }
        let Some(ended) = desired.run("set", cx)? else {
            let message = "it is not in the desired state, and there is no command 'set' to change that";
            return Err(Failure::new(FailureKind::Unsupported, message));
        };
        if ended.code != 0 {
            return Err(ended.failure("the command 'set'"));
        }
        let after = Plain::new(desired.state_after(&ended));
        Ok(SetReply { after: Some(after), changed: Some(vec!["set".to_owned()]), ..SetReply::default() })
    }
}

impl Command {
    /// What a set would do: that the command would be run is all that can be said.
    fn foresee(&self, cx: &Context, input: &Plain) -> Result<SetReply, Failure> {
        let TestReply { actual, in_desired_state, .. } = self.test(cx, input)?;
        if in_desired_state == Some(true) {
            return Ok(SetReply { after: actual, changed: Some(Vec::new()), ..SetReply::default() });
        }
        let what_if = vec!["run the command 'set'".to_owned()];
        Ok(SetReply { changed: Some(vec!["set".to_owned()]), what_if, ..SetReply::default() })
    }
}

/// What a shell says of a command that is not there or is no program.
fn could_not_run(ended: &Ended) -> bool {
    matches!(ended.code, 126 | 127)
}

/// A link counts by itself, wherever it leads: it was created.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The properties of one instance.
struct Desired<'a> {
    properties: &'a Map<String, Json>,
    directory: PathBuf,
}

impl<'a> Desired<'a> {
    fn read(input: &'a Plain, cx: &Context) -> Result<Self, Failure> {
        let properties = input.expose().as_object();
        let properties = properties.ok_or_else(|| Failure::new(FailureKind::Invalid, "there are no properties"))?;
        // The schema cannot say so: states have to fit it too.
        if !["get", "test", "set", "creates"].iter().any(|property| properties.contains_key(*property)) {
            let message =
                "there is nothing to run and nothing to look for: 'get', 'test', 'set' or 'creates' is missing";
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        let directory = properties.get("workingDirectory").and_then(Json::as_str);
        Ok(Self { properties, directory: cx.root.join(directory.unwrap_or_default()) })
    }

    fn has(&self, property: &str) -> bool {
        self.properties.contains_key(property)
    }

    /// Whether anything tells if `set` has to be run.
    fn has_guard(&self) -> bool {
        self.has("test") || self.has("creates")
    }

    fn creates(&self) -> Option<PathBuf> {
        Some(self.directory.join(self.properties.get("creates")?.as_str()?))
    }

    /// Runs the command of that name; `None` when there is none.
    fn run(&self, command: &str, cx: &Context) -> Result<Option<Ended>, Failure> {
        let words = match self.properties.get(command) {
            None => return Ok(None),
            Some(Json::String(script)) => vec!["/bin/sh".to_owned(), "-c".to_owned(), script.clone()],
            Some(words) => words.as_array().into_iter().flatten().filter_map(owned).collect(),
        };
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| Failure::new(FailureKind::Invalid, format!("the command '{command}' is empty")))?;
        let invocation = Invocation {
            program: program.clone(),
            arguments: arguments.to_vec(),
            environment: self.environment(),
            directory: self.directory.clone(),
            timeout: self.timeout(),
        };
        program::run(cx, &invocation, &format!("the command '{command}'")).map(Some)
    }

    fn environment(&self) -> Vec<(String, String)> {
        let variables = self.properties.get("environment").and_then(Json::as_object).into_iter().flatten();
        variables.filter_map(|(name, value)| Some((name.clone(), owned(value)?))).collect()
    }

    fn timeout(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.properties.get("timeout")?.as_f64()?).ok()
    }

    /// What a command found.
    fn state(&self, ended: Option<&Ended>) -> Json {
        let mut state = Map::new();
        if let Some(ended) = ended {
            state.insert("output".to_owned(), json!(ended.output));
            state.insert("exitCode".to_owned(), json!(ended.code));
        }
        let created = self.properties.get("creates").filter(|_| self.creates().is_some_and(|path| exists(&path)));
        state.extend(created.map(|path| ("creates".to_owned(), path.clone())));
        Json::Object(state)
    }

    /// The state after a set: with every property that needs no second look. What is left out is tested again.
    fn state_after(&self, ended: &Ended) -> Json {
        let settled = self.properties.iter().filter(|(name, _)| !matches!(name.as_str(), "test" | "creates"));
        let mut state: Map<String, Json> = settled.map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Json::Object(found) = self.state(Some(ended)) {
            state.extend(found);
        }
        Json::Object(state)
    }
}

fn owned(value: &Json) -> Option<String> {
    value.as_str().map(str::to_owned)
}
