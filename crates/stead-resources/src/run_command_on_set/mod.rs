//! `Microsoft.DSC.Transitional/RunCommandOnSet`: a program that every set runs.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Failure, FailureKind};
use stead_core::manifest::Capabilities;
use stead_core::schema::Schema;
use stead_host::provider::{Context, Plain, Provider, SetReply, State};

use crate::program::{self, Invocation};
use crate::schema::Lazy;
use crate::{BuiltIn, NOTHING, Profile, with_version};

const SCHEMA: &str = include_str!("schema.json");

pub(crate) fn built_in() -> Option<BuiltIn> {
    let profile = Profile {
        type_name: "Microsoft.DSC.Transitional/RunCommandOnSet",
        description: "Takes a single-command line to execute on DSC set operation",
        tags: &["command"],
        capabilities: Capabilities { get: true, set: true, set_what_if: true, implements_pretest: true, ..NOTHING },
        schema: SCHEMA,
    };
    let built_in = profile.built_in(Arc::new(RunCommandOnSet { schema: Lazy::new(SCHEMA) }))?;
    Some(with_version(built_in, semver::Version::new(0, 1, 0)))
}

struct RunCommandOnSet {
    schema: Lazy,
}

impl Provider for RunCommandOnSet {
    fn schema(&self, _cx: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        self.schema.get()
    }

    /// There is no state behind it: what is asked is what is there.
    fn get(&self, _cx: &Context, input: &Plain) -> Result<State, Failure> {
        Ok(input.clone())
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = input.expose();
        let invocation = invocation(desired, cx)?;
        if execution == Execution::WhatIf {
            let what_if = vec![format!("'{}' would be run", invocation.program)];
            return Ok(SetReply {
                after: Some(input.clone()),
                changed: Some(changed()),
                what_if,
                ..SetReply::default()
            });
        }
        let ended = program::run(cx, &invocation, &format!("'{}'", invocation.program))?;
        let expected = desired.get("exitCode").and_then(Json::as_i64).unwrap_or(0);
        if i64::from(ended.code) != expected {
            return Err(ended.failure(&format!("'{}'", invocation.program)));
        }
        let mut after = desired.clone();
        if let Some(after) = after.as_object_mut() {
            after.insert("exitCode".to_owned(), json!(ended.code));
        }
        Ok(SetReply { after: Some(Plain::new(after)), changed: Some(changed()), ..SetReply::default() })
    }
}

/// Nobody can tell what a command changed; that it was run is told, so that others can act on it.
fn changed() -> Vec<String> {
    vec!["exitCode".to_owned()]
}

fn invocation(desired: &Json, cx: &Context) -> Result<Invocation, Failure> {
    let program = desired.get("executable").and_then(Json::as_str);
    let program = program.ok_or_else(|| Failure::new(FailureKind::Invalid, "'executable' is missing"))?;
    let arguments = desired.get("arguments").and_then(Json::as_array).into_iter().flatten();
    let word = |argument: &Json| argument.as_str().map_or_else(|| argument.to_string(), str::to_owned);
    Ok(Invocation {
        program: program.to_owned(),
        arguments: arguments.map(word).collect(),
        environment: Vec::new(),
        directory: cx.root.to_path_buf(),
        timeout: None,
    })
}
