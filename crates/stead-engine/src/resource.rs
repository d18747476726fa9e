//! Calling one resource: a run of a single instance.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Exported, Failure, Operation, Outcome};
use stead_core::diag::Diagnostic;
use stead_core::event::{Mode, Verify};
use stead_core::graph::{Facts, Graph};
use stead_core::id::{NodeId, TypeName};
use stead_core::manifest::{Implementation, Manifest, ResourceKind};
use stead_core::parameters::Supplied;
use stead_core::report::Record;
use stead_core::run::Run;
use stead_core::text::Sources;
use stead_core::value::{Object, Value};
use stead_core::wire::document::{Setting, document};
use stead_core::wire::results::{exported_document, stated, tested};
use stead_host::provider::Plain;
use stead_resources::builtin_of;

use crate::execution::{RunError, RunOptions};
use crate::host::DSC_VERSION;
use crate::managing::Gone;
use crate::messages::{error_chain, failure_lines, finding_line};
use crate::prepared::Prepared;
use crate::session::Session;
use crate::shared_files::SharedFiles;

/// A set whose outcome is reported as the resource reports it, as dsc does.
pub fn set_mode(execution: Execution) -> Mode {
    Mode { execution, verification: Verify::Lenient, ..Mode::APPLY }
}

impl Session {
    /// The result document of a run, in the shape that dsc gives it.
    pub fn result_document(&self, run: &Run) -> Json {
        // JSON always becomes a value.
        serde_json::to_value(self.written_result(run)).unwrap_or_default()
    }

    /// The same, to be written while it is made: of many instances it takes as much memory as its text.
    pub fn written_result<'a>(&self, run: &'a Run) -> impl Serialize + 'a {
        document(run, Setting { version: DSC_VERSION, elevated: self.machine.elevated })
    }
}

/// Why a resource was not called, or what it failed at.
#[derive(Debug)]
pub enum CallRefusal {
    /// There is none of that type and version.
    NotFound(String),
    /// The input cannot be read.
    Input(Vec<Diagnostic>),
    /// It cannot do that, or failed.
    Failed(String),
}

impl From<RunError> for CallRefusal {
    fn from(error: RunError) -> Self {
        Self::Failed(error_chain(&error))
    }
}

impl From<Failure> for CallRefusal {
    fn from(failure: Failure) -> Self {
        let message = failure.message.trim_end();
        // Most messages about a property begin with it.
        let unsaid = failure.property.as_ref().filter(|property| !message.starts_with(property.as_str()));
        let place = unsaid.map(|property| format!(" (at '{property}')")).unwrap_or_default();
        Self::Failed(format!("{message}{place}"))
    }
}

/// The record of an operation that was carried out, or why it was not.
pub(crate) fn carried_out(record: Record, sources: &Sources) -> Result<Record, CallRefusal> {
    match (record.failure(), record.finding(), &record.response) {
        (Some(failure), _, _) => Err(failure.clone().into()),
        (None, Some(finding), _) => Err(CallRefusal::Failed(finding_line(finding, sources))),
        (None, None, None) => Err(CallRefusal::Failed("the operation was cancelled".to_owned())),
        (None, None, Some(_)) => Ok(record),
    }
}

/// A resource to be called, and the session that it is called in.
pub struct ResourceCall {
    /// The session.
    pub session: Session,
    /// The resource.
    pub manifest: Arc<Manifest>,
}

impl ResourceCall {
    /// The resource of that type, and of a version that satisfies the requirement.
    pub fn find(session: Session, type_name: &str, version: Option<&str>) -> Result<Self, CallRefusal> {
        let type_name = TypeName::parse(type_name).map_err(|error| CallRefusal::Failed(error.to_string()))?;
        let found = session.find(&type_name, version);
        session.trace_problems();
        match found {
            Ok(manifest) => {
                if let Some(advice) = &manifest.deprecation {
                    session.warn_once(&format!("Resource '{}' is deprecated: {advice}", manifest.type_name));
                }
                Ok(Self { session, manifest })
            }
            Err(error) => {
                let help = error.help.map(|help| format!(" ({help})")).unwrap_or_default();
                Err(CallRefusal::NotFound(format!("{}{help}", error.message)))
            }
        }
    }

    /// Refuses to call an adapter itself: it carries out others.
    pub fn not_an_adapter(self) -> Result<Self, CallRefusal> {
        match self.manifest.kind {
            ResourceKind::Adapter => {
                Err(CallRefusal::Failed("Can not perform this operation on the adapter itself".to_owned()))
            }
            _ => Ok(self),
        }
    }

    /// Has one operation carried out, as a run of this one instance. Secrets in their wrapping are sealed on the way.
    pub fn ask(&self, operation: Operation, execution: Execution, desired: Value) -> Result<Record, CallRefusal> {
        self.run(desired, RunOptions::new(Mode::direct(operation, execution), NonZeroUsize::MIN))
    }

    /// Runs it, recorded and seen as `plan` says.
    pub fn run(&self, desired: Value, plan: RunOptions<'_>) -> Result<Record, CallRefusal> {
        let (record, sources) = self.attempt(desired, plan)?;
        carried_out(record, &sources)
    }

    /// Runs it, and returns its record even where it failed; with the texts that findings of it point into.
    pub fn attempt(&self, desired: Value, plan: RunOptions<'_>) -> Result<(Record, Arc<Sources>), RunError> {
        let graph = Graph::of_instance(Arc::clone(&self.manifest), self.manifest.type_name.as_str(), desired);
        let (sources, facts) = (Arc::new(self.session.sources.clone()), Facts::new());
        let origin = "<command line>".into();
        let prepared = Prepared {
            graph: Arc::new(graph),
            sources,
            facts,
            warnings: Vec::new(),
            origin,
            reconcile: stead_core::document::Reconcile::default(),
            supplied: Supplied::default(),
            removed: Gone::default(),
            shared: SharedFiles::default(),
            selected: None,
            named: BTreeSet::new(),
            memory: None,
        };
        let run = self.session.run(&prepared, plan)?;
        Ok((run.report().record(NodeId(0)).clone(), prepared.sources))
    }

    /// Returns whether it holds other instances, which the engine works on itself.
    pub fn is_container(&self) -> bool {
        matches!(self.manifest.implementation, Implementation::Engine)
    }

    /// Works on what the properties of a container hold, as on a document with this one instance.
    pub fn nested(&mut self, properties: &Value, mode: Mode) -> Result<Json, CallRefusal> {
        let type_name = &self.manifest.type_name;
        let instance = json!({
            "name": type_name.short(), "type": type_name.as_str(), "properties": properties.to_redacted_json(),
        });
        let text = json!({ "resources": [instance] }).to_string();
        let prepared = self.session.prepare("<instance>", &text, Object::new());
        let prepared = prepared.map_err(|unusable| CallRefusal::Failed(self.lines(&unusable.findings)))?;
        let run = self.session.run(&prepared, RunOptions::new(mode, self.session.host().width()))?;
        let failures = failure_lines(&run);
        if failures.is_empty() {
            let mut document = self.session.result_document(&run);
            return Ok(document.pointer_mut("/results/0/result").map(Json::take).unwrap_or_default());
        }
        Err(CallRefusal::Failed(failures.join("\n")))
    }

    fn lines(&self, findings: &[Diagnostic]) -> String {
        findings.iter().map(|finding| finding_line(finding, &self.session.sources)).collect::<Vec<_>>().join("\n")
    }

    /// The result of `get`.
    pub fn get(&self, desired: Value) -> Result<Json, CallRefusal> {
        let record = self.ask(Operation::Get, Execution::Actual, desired)?;
        Ok(record.response.map_or(Json::Null, |response| stated(&response, "actualState")))
    }

    /// The result of `set`, or of what it would do.
    pub fn set(&self, desired: Value, execution: Execution) -> Result<Json, CallRefusal> {
        let record = self.ask(Operation::Set, execution, desired)?;
        Ok(record.response.map_or(Json::Null, |response| stated(&response, "afterState")))
    }

    /// The result of `test`.
    pub fn test(&self, desired: Value) -> Result<Json, CallRefusal> {
        let record = self.ask(Operation::Test, Execution::Actual, desired)?;
        let desired = record.desired.unwrap_or_default();
        Ok(record.response.map_or(Json::Null, |response| tested(&desired, &response)))
    }

    /// The result of `delete`: nothing, unless it says what it would do.
    pub fn delete(&self, desired: Value, execution: Execution) -> Result<Option<Json>, CallRefusal> {
        let record = self.ask(Operation::Delete, execution, desired)?;
        let says_so = execution == Execution::WhatIf && self.manifest.capabilities.delete_what_if;
        Ok(match record.response.as_deref().map(|response| &response.outcome) {
            Some(Outcome::Deleted(words)) if says_so => Some(json!({ "_metadata": { "whatIf": words } })),
            _ => None,
        })
    }

    /// Every instance that fits the filter.
    pub fn exported(&self, filter: Value) -> Result<Vec<Exported>, CallRefusal> {
        let record = self.ask(Operation::Export, Execution::Actual, filter)?;
        match record.response.as_deref().map(|response| &response.outcome) {
            Some(Outcome::Exported(found)) => Ok(found.clone()),
            _ => Ok(Vec::new()),
        }
    }

    /// The result of `export`: a document that holds every instance that fits the filter.
    pub fn export(&self, filter: Value) -> Result<Json, CallRefusal> {
        let began = Instant::now();
        let found = self.exported(filter)?;
        Ok(exported_document(&self.manifest.type_name, &found, began.elapsed()))
    }

    /// The properties that tell one instance from another; none where that is not known.
    pub fn keys(&self) -> Vec<String> {
        if let Some(built_in) = builtin_of(&self.manifest) {
            return built_in.keys.iter().map(|key| (*key).to_owned()).collect();
        }
        let Implementation::Adapted { resource, .. } = &self.manifest.implementation else { return Vec::new() };
        let keys = resource.content.as_ref().and_then(|content| content.get("keys")?.as_array());
        keys.into_iter().flatten().filter_map(|key| Some(key.as_str()?.to_owned())).collect()
    }

    /// A script of PowerShell that does the same as an operation with this desired state, of which secrets are covered; `None` for
    /// what is not a resource of PowerShell.
    pub fn script(&self, desired: &Arc<Value>, operation: Operation) -> Option<String> {
        let cx = self.session.context(self.manifest.type_name.as_str());
        self.session.provider(&self.manifest).script(&cx, &Plain::covered(desired), operation)
    }

    /// The schema of its properties.
    pub fn schema(&self) -> Result<Json, CallRefusal> {
        if let Some(built_in) = builtin_of(&self.manifest) {
            return Ok(built_in.schema().clone());
        }
        let cx = self.session.context(self.manifest.type_name.as_str());
        match self.session.provider(&self.manifest).described_schema(&cx)? {
            Some(schema) => Ok(schema),
            None => Err(CallRefusal::Failed(format!("'{}' has no schema", self.manifest.type_name))),
        }
    }
}
