//! What the commands for programs do, apart from how it is told: on the command line, or to whoever calls the server.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value as Json, json};
use stead_core::call::{Answered, Call, Execution, Exported, Failure, Operation, Outcome};
use stead_core::diag::Diagnostic;
use stead_core::event::Event;
use stead_core::id::{NodeId, TypeName};
use stead_core::manifest::{Implementation, Kind, Manifest};
use stead_core::run::{Mode, Run, Status, Verify};
use stead_core::text::Sources;
use stead_core::value::{Object, Value, sealing_wrapped};
use stead_core::wire::results::{
    DOCUMENT_SCHEMA, Setting, document, exported_instance, reason, state_result, test_result,
};
use stead_host::drive::drive;
use stead_host::operate::{carry_out, delete};

use crate::input::{self, Text};
use crate::people::width;
use crate::session::{DSC_VERSION, Prepared, Session};

/// A set whose outcome is reported as the resource reports it, as dsc does.
pub(crate) fn set_mode(execution: Execution) -> Mode {
    Mode { operation: Operation::Set, execution, verification: Verify::Lenient }
}

/// What came of a document.
pub(crate) struct Executed {
    /// The result, in the shape that dsc gives it.
    pub(crate) document: Json,
    /// What failed, one line each.
    pub(crate) failures: Vec<String>,
    /// Whether it was ended early.
    pub(crate) cancelled: bool,
}

/// Runs a document to its end.
pub(crate) fn execute(
    session: &Session,
    prepared: Prepared,
    mode: Mode,
    width: NonZeroUsize,
    watch: &mut dyn FnMut(&Run, &Event),
) -> Executed {
    let Prepared { graph, sources, facts, .. } = prepared;
    let mut run = Run::new(graph, Arc::clone(&sources), mode, facts, session.vault.clone());
    drive(&mut run, session, width, &session.cancel, watch);
    let mut failures = failures(&run, &sources);
    let bad_outputs = run.outputs().into_iter().filter_map(|(_, value)| value.err());
    failures.extend(bad_outputs.map(|finding| line(&finding, &sources)));
    let setting = Setting { version: DSC_VERSION, elevated: session.machine.elevated };
    Executed { document: document(&run, setting), failures, cancelled: run.report().cancelled }
}

/// Why a document may not run, before anything of it does: it has to run with other rights.
pub(crate) fn refusal(session: &Session, prepared: &Prepared) -> Option<String> {
    prepared.graph.refused(session.machine.elevated).map(|finding| line(&finding, &prepared.sources))
}

fn failures(run: &Run, sources: &Sources) -> Vec<String> {
    let (graph, report) = (run.graph(), run.report());
    let failed = graph.order.iter().filter(|id| report.status(**id).is_some_and(Status::blocks));
    let why = failed.map(|id| {
        if let Some(finding) = &report.record(*id).finding {
            return line(finding, sources);
        }
        let place = sources.place(graph.declaration(*id).name.span);
        let why = reason(graph, report, *id).unwrap_or_default();
        format!("{place}: {}: {}", graph.label(*id), why.trim_end())
    });
    why.collect()
}

/// A finding in one line.
pub(crate) fn line(finding: &Diagnostic, sources: &Sources) -> String {
    let help = finding.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    let place = finding.span.map(|span| format!("{}: ", sources.place(span))).unwrap_or_default();
    format!("{place}{}{help} [{}]", finding.message, finding.code)
}

fn stated(answer: &Answered, state: &str) -> Json {
    with_metadata(state_result(answer).unwrap_or_default(), state, answer)
}

/// A result with what the resource said beside the state. In a document that stands beside the result; here there is no
/// other place for it.
fn with_metadata(mut result: Json, state: &str, answer: &Answered) -> Json {
    let metadata = answer.metadata.as_ref().map(Value::to_redacted_json).unwrap_or_default();
    let mut metadata = metadata.as_object().cloned().unwrap_or_default();
    if let Outcome::Changed(changed) = &answer.outcome
        && !changed.what_if.is_empty()
    {
        metadata.insert("whatIf".to_owned(), json!(changed.what_if));
    }
    if let Some(members) = result.get_mut(state).and_then(Json::as_object_mut).filter(|_| !metadata.is_empty()) {
        members.insert("_metadata".to_owned(), Json::Object(metadata));
    }
    result
}

/// Why a resource was not called, or what it failed at.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There is none of that type and version.
    NotFound(String),
    /// What it was given cannot be read.
    Input(Vec<Diagnostic>),
    /// It cannot do that, or failed.
    Failed(String),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let message = failure.message.trim_end();
        // Most messages about a property begin with it.
        let unsaid = failure.property.as_ref().filter(|property| !message.starts_with(property.as_str()));
        let place = unsaid.map(|property| format!(" (at '{property}')")).unwrap_or_default();
        Self::Failed(format!("{message}{place}"))
    }
}

/// A resource to be called, and the session that it is called in.
pub(crate) struct Called {
    pub(crate) session: Session,
    pub(crate) manifest: Arc<Manifest>,
}

impl Called {
    /// The resource of that type, and of a version that satisfies the requirement.
    pub(crate) fn find(session: Session, type_name: &str, version: Option<&str>) -> Result<Self, Refusal> {
        let type_name = TypeName::parse(type_name).map_err(|error| Refusal::Failed(error.to_string()))?;
        let found = session.find(&type_name, version);
        session.trace_problems();
        match found {
            Ok(manifest) => {
                if let Some(advice) = &manifest.deprecation {
                    tracing::warn!("Resource '{}' is deprecated: {advice}", manifest.type_name);
                }
                Ok(Self { session, manifest })
            }
            Err(error) => {
                let help = error.help.map(|help| format!(" ({help})")).unwrap_or_default();
                Err(Refusal::NotFound(format!("{}{help}", error.message)))
            }
        }
    }

    /// Refuses to call an adapter itself: it carries out others.
    pub(crate) fn not_an_adapter(self) -> Result<Self, Refusal> {
        match self.manifest.kind {
            Kind::Adapter => Err(Refusal::Failed("Can not perform this operation on the adapter itself".to_owned())),
            _ => Ok(self),
        }
    }

    /// The desired state that a text says; null when there is none.
    pub(crate) fn desired(&mut self, text: Option<&Text>) -> Result<Value, Refusal> {
        let Some(text) = text else { return Ok(Value::Null) };
        let value = input::value(&mut self.session, text).map_err(Refusal::Input)?;
        Ok(sealing_wrapped(value, &*self.session.vault))
    }

    fn call(&self, operation: Operation, execution: Execution, desired: Value) -> Call {
        Call {
            node: NodeId(0),
            name: self.manifest.type_name.as_str().into(),
            manifest: Arc::clone(&self.manifest),
            operation,
            execution,
            desired: Arc::new(desired),
            tested: None,
            metadata: None,
        }
    }

    /// Has one operation carried out.
    pub(crate) fn ask(&self, operation: Operation, execution: Execution, desired: Value) -> Result<Answered, Refusal> {
        let call = self.call(operation, execution, desired);
        let provider = self.session.provider(&self.manifest);
        let cx = self.session.context(Arc::clone(&call.name));
        let answer = carry_out(&call, &*provider, &*self.session.vault, &cx);
        match answer.outcome {
            Outcome::Failed(failure) => Err(failure.into()),
            _ => Ok(answer),
        }
    }

    /// Whether it holds other instances, which the engine works on itself.
    pub(crate) fn is_holder(&self) -> bool {
        matches!(self.manifest.implementation, Implementation::Engine)
    }

    /// Works on what the properties of a holder hold, as on a document with this one instance.
    pub(crate) fn hold(&mut self, text: Option<&Text>, mode: Mode) -> Result<Json, Refusal> {
        let properties = match text {
            Some(text) => input::value(&mut self.session, text).map_err(Refusal::Input)?,
            None => Value::Object(Object::new()),
        };
        let type_name = &self.manifest.type_name;
        let instance = json!({
            "name": type_name.short(), "type": type_name.as_str(), "properties": properties.to_redacted_json(),
        });
        let text = json!({ "resources": [instance] }).to_string();
        let prepared = self.session.prepare("<instance>", &text, Object::new());
        let prepared = prepared.map_err(|unusable| Refusal::Failed(self.lines(&unusable.findings)))?;
        let executed = execute(&self.session, prepared, mode, width(None), &mut |_, _| {});
        if executed.failures.is_empty() {
            let mut document = executed.document;
            return Ok(document.pointer_mut("/results/0/result").map(Json::take).unwrap_or_default());
        }
        Err(Refusal::Failed(executed.failures.join("\n")))
    }

    fn lines(&self, findings: &[Diagnostic]) -> String {
        findings.iter().map(|finding| line(finding, &self.session.sources)).collect::<Vec<_>>().join("\n")
    }

    /// The result of `get`.
    #[cfg(feature = "server")]
    pub(crate) fn get(&self, desired: Value) -> Result<Json, Refusal> {
        self.ask(Operation::Get, Execution::Actual, desired).map(|answer| stated(&answer, "actualState"))
    }

    /// The result of `set`, or of what it would do.
    pub(crate) fn set(&self, desired: Value, execution: Execution) -> Result<Json, Refusal> {
        self.ask(Operation::Set, execution, desired).map(|answer| stated(&answer, "afterState"))
    }

    /// The result of `test`.
    pub(crate) fn test(&self, desired: &Value) -> Result<Json, Refusal> {
        let answer = self.ask(Operation::Test, Execution::Actual, desired.clone())?;
        match &answer.outcome {
            Outcome::Tested(tested) => Ok(with_metadata(test_result(Some(desired), tested), "actualState", &answer)),
            _ => Ok(Json::Null),
        }
    }

    /// The result of `delete`: nothing, unless it says what it would do.
    pub(crate) fn delete(&self, desired: Value, execution: Execution) -> Result<Option<Json>, Refusal> {
        let provider = self.session.provider(&self.manifest);
        let cx = self.session.context(self.manifest.type_name.as_str());
        let call = self.call(Operation::Set, execution, desired);
        let said = delete(&call, &*provider, &*self.session.vault, &cx)?;
        let told = execution == Execution::WhatIf && self.manifest.capabilities.delete_what_if;
        Ok(told.then(|| json!({ "_metadata": { "whatIf": said } })))
    }

    /// Every instance that fits the filter.
    pub(crate) fn exported(&self, filter: Value) -> Result<Vec<Exported>, Refusal> {
        match self.ask(Operation::Export, Execution::Actual, filter)?.outcome {
            Outcome::Exported(found) => Ok(found),
            _ => Ok(Vec::new()),
        }
    }

    /// The result of `export`: a document that holds every instance that fits the filter.
    pub(crate) fn export(&self, filter: Value) -> Result<Json, Refusal> {
        let began = Instant::now();
        let found = self.exported(filter)?;
        let (type_name, elapsed) = (&self.manifest.type_name, began.elapsed());
        let resources = found.iter().enumerate().map(|(at, each)| exported_instance(type_name, at, each, elapsed));
        Ok(json!({
            "$schema": DOCUMENT_SCHEMA,
            "contentVersion": "1.0.0",
            "resources": resources.collect::<Vec<_>>(),
        }))
    }

    /// The schema of its properties.
    pub(crate) fn schema(&self) -> Result<Json, Refusal> {
        if let Some(built_in) = self.session.built_in.get(&self.manifest.type_name) {
            return Ok(built_in.schema.clone());
        }
        let cx = self.session.context(self.manifest.type_name.as_str());
        match self.session.provider(&self.manifest).schema(&cx)? {
            Some(schema) => Ok(schema.json().clone()),
            None => Err(Refusal::Failed(format!("'{}' has no schema", self.manifest.type_name))),
        }
    }
}
