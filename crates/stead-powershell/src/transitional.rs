//! `Microsoft.DSC.Transitional/PowerShellScript`: scripts in a document that get, test and set, as DSC v3 has it, in workers.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Failure, FailureKind};
use stead_core::id::TypeName;
use stead_core::manifest::{Capabilities, Manifest, Version};
use stead_core::schema::Schema;
use stead_core::value::{Object, Value};
use stead_host::provider::{Context, Plain, Provider, SetReply, State, TestReply};
use stead_powershell_reader::resource::Resource;
use stead_powershell_reader::types::{Property, Type};

use crate::provider::{PowerShellProvider, Source};
use crate::worker::Pool;

/// Its type.
pub const TYPE: &str = "Microsoft.DSC.Transitional/PowerShellScript";

/// The module that the worker imports for it; see `load.ps1`.
const MODULE: &str = concat!("text:", include_str!("transitional.ps1"));

/// Returns whether it is the resource of a manifest.
pub fn carries_out(manifest: &Manifest) -> bool {
    manifest.is_in_process() && manifest.type_name.as_str() == TYPE
}

/// The manifest of the type.
pub fn manifest() -> Option<Manifest> {
    let capabilities = Capabilities {
        get: true,
        set: true,
        set_what_if: true,
        implements_pretest: true,
        test: true,
        ..Capabilities::default()
    };
    let nothing_else = Manifest::in_process(TypeName::parse(TYPE).ok()?, Version::parse("0.2.0").ok()?);
    let description = Some("Runs scripts of PowerShell to get, test and set a state".to_owned());
    let tags = ["powershell", "linux"].map(str::to_owned).to_vec();
    Some(Manifest { capabilities, description, tags, ..nothing_else })
}

/// Carries out its operations, where there are workers. A script that is not stated is passed over: there is no state then, and the
/// test finds the desired one.
pub struct Scripts {
    calls: PowerShellProvider,
    schema: Option<Arc<Schema>>,
}

impl Scripts {
    /// With the workers of a machine; `None` where there is no PowerShell.
    pub fn new(pool: Option<Pool>) -> Self {
        let schema = Schema::compile(schema()).ok().map(Arc::new);
        Self { calls: PowerShellProvider::new(pool, Arc::new(resource()), Source::built_in(MODULE)), schema }
    }

    fn output_of(&self, cx: &Context, input: &Plain, property: &str) -> Result<Option<State>, Failure> {
        call(input, property)?.map(|call| self.calls.get(cx, &call)).transpose()
    }

    fn verdict(&self, cx: &Context, input: &Plain) -> Result<Option<bool>, Failure> {
        let Some(call) = call(input, "testScript")? else { return Ok(None) };
        Ok(self.calls.test(cx, &call)?.in_desired_state)
    }
}

impl Provider for Scripts {
    fn schema(&self, _cx: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        Ok(self.schema.clone())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        Ok(self.output_of(cx, input, "getScript")?.unwrap_or_else(nothing))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let verdict = self.verdict(cx, input)?.unwrap_or(true);
        let state = Plain::new(Value::from(json!({ "_inDesiredState": verdict })));
        Ok(TestReply { actual: Some(state), in_desired_state: Some(verdict), ..TestReply::default() })
    }

    /// Runs nothing where the script that tests says that it is in the desired state.
    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let is_needed = call(input, "setScript")?.is_some() && self.verdict(cx, input)? != Some(true);
        let changed = Some(if is_needed { vec!["output".to_owned()] } else { Vec::new() });
        let what_if = if is_needed { vec!["run 'setScript'".to_owned()] } else { Vec::new() };
        match execution {
            // What it would write is not known.
            Execution::WhatIf => Ok(SetReply { changed, what_if, ..SetReply::default() }),
            Execution::Actual if !is_needed => Ok(SetReply { after: Some(nothing()), changed, ..SetReply::default() }),
            Execution::Actual => {
                let after = self.output_of(cx, input, "setScript")?;
                Ok(SetReply { after, changed, ..SetReply::default() })
            }
        }
    }

    fn wants_wrapped_secrets(&self) -> bool {
        true
    }
}

fn nothing() -> State {
    Plain::new(Value::Object(Object::new()))
}

/// The properties of a call of the module: one of the scripts, and what is handed to it. `None` where it is not stated.
fn call(input: &Plain, property: &str) -> Result<Option<Plain>, Failure> {
    let Value::Object(stated) = input.expose() else { return Ok(None) };
    let named = |wanted: &str| {
        let mut found = stated.iter().filter(|(name, value)| name.eq_ignore_ascii_case(wanted) && !value.is_null());
        found.next().map(|(_, value)| value.clone())
    };
    let Some(script) = named(property) else { return Ok(None) };
    if !matches!(script, Value::String(_) | Value::Object(_)) {
        return Err(Failure::new(FailureKind::Invalid, format!("'{property}' must be the text of a script")));
    }
    let given = named("input");
    let mut members =
        Object::from_iter([("Script".to_owned(), script), ("IsGiven".to_owned(), Value::Bool(given.is_some()))]);
    members.extend(given.map(|given| ("Given".to_owned(), given)));
    // Which of them are the secrets is not always known.
    let properties = Value::Object(members);
    Ok(Some(if input.is_secret() { Plain::secret(properties) } else { Plain::new(properties) }))
}

fn resource() -> Resource {
    let declared = [("Script", Type::String), ("IsGiven", Type::Boolean), ("Given", Type::Object)];
    Resource::built_in("PowerShellScript", declared.map(|(name, ty)| Property::new(name, ty)).into())
}

/// The schema of its properties. Their names have no case for PowerShell, nor here.
fn schema() -> Json {
    let script = |description: &str| {
        json!({
            "description": description,
            "type": "string",
            "minLength": 1,
            "writeOnly": true,
            "contentMediaType": "text/vnd.microsoft.powershell",
        })
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "PowerShellScript",
        "type": "object",
        "properties": {
            "getScript": script("A script that reads the state: what it writes is 'output'."),
            "testScript": script("A script that returns whether the state is the desired one: one boolean, and nothing else."),
            "setScript": script("A script that reaches the desired state. It is not run where 'testScript' says that nothing is to be done."),
            "input": {
                "description": "A value for the one parameter that each script then has in 'param()'.",
                "writeOnly": true,
                "type": ["string", "boolean", "integer", "number", "object", "array"],
            },
            "output": { "description": "What the script wrote.", "readOnly": true },
            "_inDesiredState": { "type": ["boolean", "null"], "readOnly": true },
        },
        "patternProperties": {
            "^(?i:(get|test|set)script)$": { "type": "string", "minLength": 1, "writeOnly": true },
            "^(?i:input)$": { "writeOnly": true },
        },
        "additionalProperties": false,
    })
}
