//! `resource list|get|set|test|delete|export|schema`

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value as Json, json};
use stead_core::call::{Answered, Call, Execution, Exported, Failure, Operation, Outcome};
use stead_core::id::{NodeId, TypeName};
use stead_core::manifest::{Implementation, Kind, Manifest};
use stead_core::run::Mode;
use stead_core::value::{Object, Value, sealing_wrapped};
use stead_core::wire::results::{DOCUMENT_SCHEMA, exported_instance, state_result, test_result};
use stead_host::operate::{carry_out, delete};

use super::{config, given, listing, tell};
use crate::args::{GetFormat, Input, OutputFormat, Resource, Target};
use crate::exit::Exit;
use crate::input::{self, Text};
use crate::output::data;
use crate::session::{Session, search};

pub(crate) fn resource(command: &Resource) -> Exit {
    let done = match command {
        Resource::List { .. } => return listing::resources(command),
        Resource::Get { all, target, input, file, output_format } => {
            get(*all, target, input.as_deref(), file.as_deref(), *output_format)
        }
        Resource::Set { target, input, what_if } => set(target, input, execution(what_if.what_if)),
        Resource::Test { target, input } => test(target, input),
        Resource::Delete { target, input, what_if } => remove(target, input, execution(what_if.what_if)),
        Resource::Export { target, input } => export(target, input),
        Resource::Schema { target, output_format } => schema(target, *output_format),
    };
    match done {
        Ok(()) => Exit::Success,
        Err(exit) => exit,
    }
}

fn execution(what_if: bool) -> Execution {
    if what_if { Execution::WhatIf } else { Execution::Actual }
}

/// A resource to be called, and the session that it is called in.
struct Called {
    session: Session,
    manifest: Arc<Manifest>,
}

impl Called {
    fn find(target: &Target) -> Result<Self, Exit> {
        let root = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_path_buf());
        let session = Session::new(root, search());
        let type_name = TypeName::parse(&target.resource).map_err(|error| {
            tracing::error!("{error}");
            Exit::DscError
        })?;
        match session.find(&type_name, target.required_version.as_deref()) {
            Ok(manifest) => Ok(Self { session, manifest }),
            Err(error) => {
                let help = error.help.map(|help| format!(" ({help})")).unwrap_or_default();
                tracing::error!("{}{help}", error.message);
                Err(Exit::DscNotFound)
            }
        }
    }

    /// Refuses to call an adapter itself: it carries out others.
    fn not_an_adapter(self) -> Result<Self, Exit> {
        if self.manifest.kind == Kind::Adapter {
            tracing::error!("Can not perform this operation on the adapter itself");
            return Err(Exit::DscError);
        }
        Ok(self)
    }

    /// Whether it holds other instances, which the engine works on itself.
    fn is_holder(&self) -> bool {
        matches!(self.manifest.implementation, Implementation::Engine)
    }

    /// Works on what the properties hold, as on a document with this one instance.
    fn hold(&mut self, text: Option<&Text>, mode: Mode, format: Option<OutputFormat>) -> Result<(), Exit> {
        let properties = match text {
            Some(text) => input::value(&mut self.session, text).map_err(|findings| {
                tell(&findings, &self.session.sources);
                Exit::DscInput
            })?,
            None => Value::Object(Object::new()),
        };
        let type_name = &self.manifest.type_name;
        let instance = json!({
            "name": type_name.short(), "type": type_name.as_str(), "properties": properties.to_redacted_json(),
        });
        let result = config::carry_out_one(&mut self.session, &instance, mode)?;
        data(&result, format);
        Ok(())
    }

    /// The desired state that the command line gives; null when there is none.
    fn desired(&mut self, text: Option<&Text>) -> Result<Value, Exit> {
        let Some(text) = text else { return Ok(Value::Null) };
        input::value(&mut self.session, text).map(sealing_wrapped).map_err(|findings| {
            tell(&findings, &self.session.sources);
            Exit::DscInput
        })
    }

    fn call(&self, operation: Operation, execution: Execution, desired: Value) -> Call {
        Call {
            node: NodeId(0),
            name: self.manifest.type_name.to_string(),
            manifest: Arc::clone(&self.manifest),
            operation,
            execution,
            desired: Arc::new(desired),
            tested: None,
            metadata: None,
        }
    }

    fn ask(&self, operation: Operation, execution: Execution, desired: Value) -> Result<Answered, Exit> {
        let call = self.call(operation, execution, desired);
        let provider = self.session.provider(&self.manifest);
        let cx = self.session.context(&call.name);
        let answer = carry_out(&call, &*provider, &*self.session.vault, &cx);
        match answer.outcome {
            Outcome::Failed(failure) => Err(failed(&failure)),
            _ => Ok(answer),
        }
    }
}

fn failed(failure: &Failure) -> Exit {
    let property = failure.property.as_ref().map(|property| format!(" (at '{property}')")).unwrap_or_default();
    tracing::error!("{}{property}", failure.message.trim_end());
    Exit::DscError
}

fn get(
    all: bool,
    target: &Target,
    inline: Option<&str>,
    file: Option<&Path>,
    format: Option<GetFormat>,
) -> Result<(), Exit> {
    if format == Some(GetFormat::JsonArray) && !all {
        tracing::error!("The 'json-array' output format is only supported with '--all'");
        return Err(Exit::DscArguments);
    }
    let text = given(inline, file)?;
    let mut called = Called::find(target)?.not_an_adapter()?;
    if called.is_holder() {
        return called.hold(text.as_ref(), Mode::GET, plain_format(format));
    }
    let desired = called.desired(text.as_ref())?;
    if all {
        return get_all(&called, desired, format);
    }
    let answer = called.ask(Operation::Get, Execution::Actual, desired)?;
    let Outcome::Got(actual) = &answer.outcome else { return Ok(()) };
    let shown = match format {
        Some(GetFormat::PassThrough) => actual.to_redacted_json(),
        _ => state_result(&answer).unwrap_or_default(),
    };
    data(&shown, plain_format(format));
    Ok(())
}

fn get_all(called: &Called, filter: Value, format: Option<GetFormat>) -> Result<(), Exit> {
    let states: Vec<Json> = exported(called, filter)?.iter().map(|each| each.properties.to_redacted_json()).collect();
    if format == Some(GetFormat::JsonArray) {
        data(&Json::Array(states), Some(OutputFormat::Json));
        return Ok(());
    }
    for state in states {
        let shown = if format == Some(GetFormat::PassThrough) { state } else { json!({ "actualState": state }) };
        data(&shown, plain_format(format));
    }
    Ok(())
}

fn plain_format(format: Option<GetFormat>) -> Option<OutputFormat> {
    format.map(|format| match format {
        GetFormat::Json | GetFormat::JsonArray | GetFormat::PassThrough => OutputFormat::Json,
        GetFormat::PrettyJson => OutputFormat::PrettyJson,
        GetFormat::Yaml => OutputFormat::Yaml,
    })
}

fn set(target: &Target, input: &Input, execution: Execution) -> Result<(), Exit> {
    let text = given(input.input.as_deref(), input.file.as_deref())?;
    if text.is_none() {
        tracing::error!("Desired input is empty");
        return Err(Exit::DscArguments);
    }
    let mut called = Called::find(target)?.not_an_adapter()?;
    if called.is_holder() {
        return called.hold(text.as_ref(), config::set(execution), input.output_format);
    }
    let desired = called.desired(text.as_ref())?;
    let answer = called.ask(Operation::Set, execution, desired)?;
    data(&state_result(&answer).unwrap_or_default(), input.output_format);
    Ok(())
}

fn test(target: &Target, input: &Input) -> Result<(), Exit> {
    let text = given(input.input.as_deref(), input.file.as_deref())?;
    let Some(text) = text else {
        tracing::error!("Expected input is required");
        return Err(Exit::DscArguments);
    };
    let mut called = Called::find(target)?.not_an_adapter()?;
    if called.is_holder() {
        return called.hold(Some(&text), Mode::TEST, input.output_format);
    }
    let desired = called.desired(Some(&text))?;
    let answer = called.ask(Operation::Test, Execution::Actual, desired.clone())?;
    if let Outcome::Tested(tested) = &answer.outcome {
        data(&test_result(Some(&desired), tested), input.output_format);
    }
    Ok(())
}

fn remove(target: &Target, input: &Input, execution: Execution) -> Result<(), Exit> {
    let text = given(input.input.as_deref(), input.file.as_deref())?;
    let mut called = Called::find(target)?.not_an_adapter()?;
    let desired = called.desired(text.as_ref())?;
    let provider = called.session.provider(&called.manifest);
    let cx = called.session.context(called.manifest.type_name.as_str());
    let call = called.call(Operation::Set, execution, desired);
    let said = delete(&call, &*provider, &*called.session.vault, &cx);
    let said = said.map_err(|failure| failed(&failure))?;
    if execution == Execution::WhatIf && called.manifest.capabilities.delete_what_if {
        data(&json!({ "_metadata": { "whatIf": said } }), input.output_format);
    }
    Ok(())
}

fn exported(called: &Called, filter: Value) -> Result<Vec<Exported>, Exit> {
    match called.ask(Operation::Export, Execution::Actual, filter)?.outcome {
        Outcome::Exported(found) => Ok(found),
        _ => Ok(Vec::new()),
    }
}

fn export(target: &Target, input: &Input) -> Result<(), Exit> {
    let text = given(input.input.as_deref(), input.file.as_deref())?;
    let mut called = Called::find(target)?.not_an_adapter()?;
    let filter = called.desired(text.as_ref())?;
    let began = Instant::now();
    let found = exported(&called, filter)?;
    let type_name = &called.manifest.type_name;
    let elapsed = began.elapsed();
    let resources = found.iter().enumerate().map(|(at, each)| exported_instance(type_name, at, each, elapsed));
    let document = json!({
        "$schema": DOCUMENT_SCHEMA,
        "contentVersion": "1.0.0",
        "resources": resources.collect::<Vec<_>>(),
    });
    data(&document, input.output_format);
    Ok(())
}

fn schema(target: &Target, format: Option<OutputFormat>) -> Result<(), Exit> {
    let called = Called::find(target)?;
    if let Some(built_in) = called.session.built_in.get(&called.manifest.type_name) {
        data(&built_in.schema, format);
        return Ok(());
    }
    let cx = called.session.context(called.manifest.type_name.as_str());
    match called.session.provider(&called.manifest).schema(&cx) {
        Ok(Some(schema)) => {
            data(schema.json(), format);
            Ok(())
        }
        Ok(None) => {
            tracing::error!("'{}' has no schema", called.manifest.type_name);
            Err(Exit::DscError)
        }
        Err(failure) => Err(failed(&failure)),
    }
}
