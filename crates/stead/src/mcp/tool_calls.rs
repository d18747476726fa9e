//! Carries out calls of tools. Each call is a session of its own: it finds the resources that there are now, and keeps no secret of
//! the one before; the index of the search makes that cheap.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value as Json, json};
use stead_core::call::Execution;
use stead_core::diag::{Diagnostic, did_you_mean, nearest};
use stead_core::event::Mode;
use stead_core::expr::{self, Environment, Expression, FactKey, Stop};
use stead_core::graph::Names;
use stead_core::manifest::listing;
use stead_core::text::Sources;
use stead_core::value::{Object, Value};
use stead_system::Cancel;

use super::call::{Operation, ToolCall};
use crate::dsc::listing::{everything, functions_like, has_no_adapter, is_carried_out_by};
use crate::input::{self, BadParameters, ParameterSources, Text};
use crate::process_env::ProcessEnv;
use crate::request;
use crate::rpc::Problem;
use crate::schemas;
use stead_engine::{
    CallRefusal, ResourceCall, RunOptions, RunWatch, Session, SessionOptions, error_chain, finding_line, set_mode,
};

/// Why a call has no result.
pub(super) enum Unanswered {
    /// There is nothing of what it asks for, or it cannot be read: an error of the protocol, as in dsc.
    Refused(Problem),
    /// It was carried out and failed, in words: a result that says so.
    Failed(String),
}

impl From<String> for Unanswered {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

impl Unanswered {
    /// There is no such resource, adapter, schema.
    fn nothing(message: impl Into<String>) -> Self {
        Self::Refused(Problem::new(Problem::PARAMS, message))
    }

    /// A text that cannot be used.
    fn invalid(message: impl Into<String>) -> Self {
        Self::Refused(Problem::new(Problem::REQUEST, message))
    }
}

/// Carries out calls of tools.
pub(super) struct Tools {
    pub(super) env: ProcessEnv,
}

impl Tools {
    /// Carries out one call: the text of an object, or why there is none.
    pub(super) fn call(
        &self,
        call: ToolCall,
        cancel: Cancel,
        watch: Arc<RunWatch>,
    ) -> Result<Box<RawValue>, Unanswered> {
        let session =
            self.env.host.session_with(input::current_folder(), SessionOptions { cancel, ..SessionOptions::default() });
        let result = match call {
            ToolCall::Config { operation, document, parameters } => {
                return self.config(session, watch, operation, (&document, parameters.as_deref()));
            }
            ToolCall::Resource { operation, type_name, properties } => {
                resource(session, operation, &type_name, properties)
            }
            ToolCall::Expression(text) => evaluate(&session, &text),
            ToolCall::Function { name, parameters } => call_function(&session, &name, &parameters),
            ToolCall::ListFunctions { name, categories, description } => {
                let categories: Vec<String> = categories
                    .iter()
                    .map(|each| request::category(each))
                    .collect::<Result<_, _>>()
                    .map_err(Unanswered::nothing)?;
                Ok(json!({ "functions": functions_like(name.as_deref(), &categories, description.as_deref()) }))
            }
            ToolCall::ListResources { adapter } => list(&session, adapter.as_deref()),
            ToolCall::ShowResource(type_name) => show(session, &type_name),
            ToolCall::ShowSchema(type_name) => schema(&type_name),
        };
        written(&result?)
    }

    fn config(
        &self,
        session: Session,
        watch: Arc<RunWatch>,
        operation: Operation,
        (document, parameters): (&str, Option<&str>),
    ) -> Result<Box<RawValue>, Unanswered> {
        let mut session = session.with(|options| {
            options.implicit_order = false;
            if operation == Operation::Export {
                options.names = Names::Repeated;
            }
        });
        let from = ParameterSources { inline: parameters, ..ParameterSources::default() };
        let supplied = input::parameters(&mut session, &from).map_err(|bad| match bad {
            BadParameters::Unreadable(error) => Unanswered::invalid(format!("Invalid parameters: {error}")),
            BadParameters::Findings(findings) => {
                Unanswered::invalid(format!("Invalid parameters: {}", lines(&findings, &session.sources)))
            }
        })?;
        let prepared = session.prepare("<configuration>", document, supplied);
        let mut prepared = prepared.map_err(|unusable| {
            let findings = session.with_properties(unusable, mode(operation)).findings;
            Unanswered::invalid(format!("Invalid configuration: {}", lines(&findings, &session.sources)))
        })?;
        prepared.memory = Some(input::memory(&session, &prepared, Path::new("-")));
        if let Some(finding) = prepared.graph.refused(session.machine().elevated) {
            return Err(finding_line(&finding, &prepared.sources).into());
        }
        let wrong = session.check_properties(&prepared, mode(operation));
        if !wrong.is_empty() {
            return Err(lines(&wrong, &prepared.sources).into());
        }
        let plan = RunOptions { watch: Some(watch), ..RunOptions::new(mode(operation), self.env.host.width()) };
        let run = session.run(&prepared, plan).map_err(|error| error_chain(&error))?;
        // What failed is in the document, beside what did not.
        let document = session.written_result(&run);
        if operation == Operation::Export {
            written(&BTreeMap::from([("result", BTreeMap::from([("result", document)]))]))
        } else {
            written(&BTreeMap::from([("result", document)]))
        }
    }
}

/// A result as text: nothing of what it was made of is kept while the line with it is written.
fn written(result: &impl Serialize) -> Result<Box<RawValue>, Unanswered> {
    to_raw_value(result).map_err(|error| error.to_string().into())
}

/// How an operation is meant. A document is never deleted: there is no such call.
fn mode(operation: Operation) -> Mode {
    match operation {
        Operation::Test => Mode::TEST,
        Operation::Export => Mode::EXPORT,
        Operation::Set => set_mode(Execution::Actual),
        Operation::WhatIf => set_mode(Execution::WhatIf),
        Operation::Get | Operation::Delete => Mode::GET,
    }
}

fn lines(findings: &[Diagnostic], sources: &Sources) -> String {
    findings.iter().map(|finding| finding_line(finding, sources)).collect::<Vec<_>>().join("\n")
}

fn resource(
    session: Session,
    operation: Operation,
    type_name: &str,
    properties: Option<String>,
) -> Result<Json, Unanswered> {
    let mut called =
        ResourceCall::find(session, type_name, None).and_then(ResourceCall::not_an_adapter).map_err(refused)?;
    let text = properties.map(|text| Text { name: "<properties_json>".to_owned(), text });
    let mode = mode(operation);
    let desired = match &text {
        Some(text) => {
            input::value(&mut called.session, text).map_err(|found| lines(&found, &called.session.sources))?
        }
        None => Value::Null,
    };
    if called.is_container() && !matches!(operation, Operation::Delete | Operation::Export) {
        let properties = if desired == Value::Null { Value::Object(Object::new()) } else { desired };
        let nested = called.nested(&properties, mode).map_err(|refusal| refused_in(&called, refusal))?;
        return Ok(json!({ "result": nested }));
    }
    let result = match operation {
        Operation::Get => called.get(desired),
        Operation::Set => called.set(desired, Execution::Actual),
        Operation::WhatIf => called.set(desired, Execution::WhatIf),
        Operation::Test => called.test(desired),
        Operation::Delete => called.delete(desired, Execution::Actual).map(|_| json!({ "success": true })),
        Operation::Export => called.exported(desired).map(|found| {
            let states: Vec<Json> = found.iter().map(|each| each.properties.to_redacted_json()).collect();
            json!({ "actualState": states })
        }),
    };
    result.map(|result| json!({ "result": result })).map_err(refused)
}

fn refused_in(called: &ResourceCall, refusal: CallRefusal) -> Unanswered {
    match refusal {
        CallRefusal::Input(findings) => lines(&findings, &called.session.sources).into(),
        other => refused(other),
    }
}

fn refused(refusal: CallRefusal) -> Unanswered {
    match refusal {
        CallRefusal::NotFound(message) => Unanswered::nothing(message),
        CallRefusal::Failed(message) => message.into(),
        CallRefusal::Input(findings) => {
            findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("\n").into()
        }
    }
}

/// What an expression without a document can see: the machine.
struct OnMachine<'a>(&'a Session);

impl Environment for OnMachine<'_> {
    fn fact(&self, key: &FactKey) -> Option<Value> {
        self.0.machine().fact(key).ok()
    }
}

/// The value of a text, which is itself where it is not an expression.
fn evaluate(session: &Session, text: &str) -> Result<Json, Unanswered> {
    if !expr::is_expression(text) {
        return Ok(json!({ "result": text }));
    }
    let expression = Expression::parse(text).map_err(|fault| {
        let message = format!("Failed to evaluate expression '{text}': Parser: Unable to parse statement root: {text}");
        Unanswered::Refused(Problem::new(Problem::REQUEST, message).with("reason", fault.message))
    })?;
    value_of(session, &expression)
        .map(|value| json!({ "result": value }))
        .map_err(|message| Unanswered::invalid(format!("Failed to evaluate expression '{text}': Parser: {message}")))
}

fn value_of(session: &Session, expression: &Expression) -> Result<Json, String> {
    match expression.evaluate(&OnMachine(session)) {
        // A secret is shown as one, here as everywhere.
        Ok(value) => Ok(value.to_redacted_json()),
        Err(Stop::Fault(fault)) => Err(fault.message),
        Err(Stop::Missing(key)) => {
            Err(session.machine().fact(&key).err().unwrap_or_else(|| "it asks for what is not known here".to_owned()))
        }
        Err(Stop::Open(_)) => Err("it depends on a value that is not known".to_owned()),
        Err(Stop::Unknown(id)) => Err(format!("it depends on the instance {id}")),
    }
}

fn call_function(session: &Session, name: &str, parameters: &[Json]) -> Result<Json, Unanswered> {
    let failed =
        |why: &str| Problem::new(Problem::REQUEST, format!("Function '{name}' invocation failed: Parser: {why}"));
    let known = || expr::functions().iter().map(|function| function.name);
    if !known().any(|each| each.eq_ignore_ascii_case(name)) {
        let problem = failed(&format!("Unknown function '{name}'"));
        let meant = nearest(name, known()).map(did_you_mean);
        return Err(Unanswered::Refused(meant.into_iter().fold(problem, |problem, help| problem.with("help", help))));
    }
    let literals: Vec<String> = parameters.iter().map(literal).collect();
    let expression = Expression::parse(&format!("[{name}({})]", literals.join(", "))).map_err(|fault| fault.message);
    let value = expression.and_then(|expression| value_of(session, &expression));
    value.map(|value| json!({ "result": value })).map_err(|why| Unanswered::Refused(failed(&why)))
}

/// The expression for a value. Whatever is in the value stays a value: only quotes end a literal, and they are doubled.
fn literal(value: &Json) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match value {
        Json::String(text) => quoted(text),
        other => format!("json({})", quoted(&other.to_string())),
    }
}

fn list(session: &Session, adapter: Option<&str>) -> Result<Json, Unanswered> {
    if let Some(filter) = adapter.filter(|filter| has_no_adapter(session, filter)) {
        return Err(Unanswered::nothing(format!("Adapter not found: {filter}")));
    }
    let catalog = everything(session, adapter);
    let all = catalog.iter().flat_map(|(_, versions)| versions);
    let found = all.filter(|manifest| is_carried_out_by(manifest, adapter)).map(|manifest| {
        let all = listing(manifest);
        let adapter = Some("requireAdapter").filter(|key| !all[*key].is_null());
        let keys = ["type", "kind", "description"].into_iter().chain(adapter);
        Json::Object(keys.map(|key| (key.to_owned(), all[key].clone())).collect())
    });
    Ok(json!({ "resources": found.collect::<Vec<_>>() }))
}

fn show(session: Session, type_name: &str) -> Result<Json, Unanswered> {
    let called = ResourceCall::find(session, type_name, None).map_err(refused)?;
    let all = listing(&called.manifest);
    let keys = ["type", "kind", "version", "capabilities", "description", "author"];
    let mut shown: serde_json::Map<String, Json> =
        keys.map(|key| (key.to_owned(), all[key].clone())).into_iter().collect();
    // One without a schema is shown without one.
    shown.insert("schema".to_owned(), called.schema().unwrap_or_default());
    Ok(Json::Object(shown))
}

/// The schema of a type, by its name on the command line or that of the type itself: `resource-manifest`, `ResourceManifest`.
fn schema(type_name: &str) -> Result<Json, Unanswered> {
    let letters = |name: &str| name.replace('-', "").to_lowercase();
    let named = schemas::TYPES.iter().find(|name| letters(name) == letters(type_name));
    named.and_then(|name| schemas::schema(name)).map(|schema| json!({ "schema": schema })).ok_or_else(|| {
        Unanswered::nothing(format!("there is no schema '{type_name}'; there are {}", schemas::TYPES.join(", ")))
    })
}
