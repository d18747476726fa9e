//! `resource check`

use std::sync::Arc;

use serde_json::{Value as Json, json};
use stead_core::diag::{Diagnostic, any_error, to_json};
use stead_core::id::TypeName;
use stead_core::manifest::{Implementation, Manifest, ResourceKind};
use stead_core::value::Value;
use stead_core::visible::{visible, visible_but};
use stead_host::catalog::{CatalogProblem, ProblemReason};
use stead_host::check::{self, CheckedResource, Depth, Listed, Question};
use stead_host::provider::Provider;
use stead_resources::{BuiltIn, builtin_of};

use super::{given, tell};
use crate::exit::Exit;
use crate::interrupt;
use crate::request::CheckRequest;
use crate::terminal::{Output, data_as, print};
use stead_engine::Session;
use stead_engine::{CallRefusal, ResourceCall};

/// Checks a resource with every desired state that is given.
pub(super) fn check(session: Session, request: &CheckRequest) -> Exit {
    match examined(session, request) {
        Ok(exit) | Err(exit) => exit,
    }
}

fn examined(session: Session, request: &CheckRequest) -> Result<Exit, Exit> {
    let texts = request.states.iter().map(|state| given(&session, Some(state))).collect::<Result<Vec<_>, _>>()?;
    interrupt::catch(&session);
    let mut called = ResourceCall::find(session, &request.resource, None).map_err(super::refused)?;
    if called.is_container() {
        let name = &called.manifest.type_name;
        return Err(refused(format!("'{name}' is carried out by the engine itself; there is nothing to check")));
    }
    let states = texts.iter().flatten().map(|text| desired(&mut called, text)).collect::<Result<Vec<_>, _>>()?;
    let filter = given(&called.session, request.filter.as_ref())?;
    let filter = filter.map(|text| desired(&mut called, &text)).transpose()?.unwrap_or_default();
    let findings = of_manifest(&mut called);
    let mut examination = Examination { called: &called, states, filter, depth: request.depth, findings };
    examination.whole(request.adapted.as_deref())?;
    let findings = examination.findings;
    report(&called, request, &findings);
    Ok(if any_error(&findings) { Exit::DscError } else { Exit::Success })
}

/// The problems found in the manifest of the resource while it was searched for, such as an unknown key.
fn of_manifest(called: &mut ResourceCall) -> Vec<Diagnostic> {
    let Implementation::Command(command) = &called.manifest.implementation else { return Vec::new() };
    let of_this = |problem: &CatalogProblem| match &problem.reason {
        ProblemReason::Invalid { source, findings } if problem.path == command.manifest_path => {
            Some((source.clone(), findings.clone()))
        }
        _ => None,
    };
    let Some((source, mut findings)) = called.session.discovery().find_problem(of_this) else { return Vec::new() };
    let id = called.session.sources.add(source);
    for finding in &mut findings {
        let spans = finding.labels.iter_mut().map(|(span, _)| span).chain(&mut finding.span);
        spans.for_each(|span| span.source = id);
    }
    findings
}

fn refused(message: String) -> Exit {
    super::refused(CallRefusal::Failed(message))
}

/// The state as it is handed to programs: with its secrets in their wrappings.
fn desired(called: &mut ResourceCall, text: &crate::input::Text) -> Result<Json, Exit> {
    match crate::input::value(&mut called.session, text) {
        Ok(value @ Value::Object(_)) => Ok(value.to_redacted_json()),
        Ok(_) => Err(refused("a desired state must be an object".to_owned())),
        Err(findings) => {
            tell(&findings, &called.session.sources);
            Err(Exit::DscInput)
        }
    }
}

/// A resource under examination: which questions it is asked depends on its kind.
struct Examination<'a> {
    called: &'a ResourceCall,
    states: Vec<Json>,
    filter: Json,
    depth: Depth,
    findings: Vec<Diagnostic>,
}

impl Examination<'_> {
    fn whole(&mut self, adapted: Option<&str>) -> Result<(), Exit> {
        let manifest = Arc::clone(&self.called.manifest);
        if adapted.is_some() && manifest.kind != ResourceKind::Adapter {
            return Err(refused(format!("'{}' is not an adapter; remove --adapted", manifest.type_name)));
        }
        if manifest.kind == ResourceKind::Exporter && !self.states.is_empty() {
            return Err(refused("an exporter has no desired state; use --filter to say what to list".to_owned()));
        }
        let needs_state =
            matches!(manifest.kind, ResourceKind::Resource | ResourceKind::Group | ResourceKind::Importer);
        if self.states.is_empty() && (needs_state || adapted.is_some()) {
            return Err(refused("a desired state is required: --input or --file".to_owned()));
        }
        match manifest.kind {
            ResourceKind::Adapter => self.adapter(adapted)?,
            ResourceKind::Importer => self.importer(),
            ResourceKind::Exporter => self.exports(&manifest),
            ResourceKind::Resource | ResourceKind::Group => self.instances(&manifest),
        }
        Ok(())
    }

    fn instances(&mut self, manifest: &Arc<Manifest>) {
        for state in self.states.clone() {
            let found = self.ask(manifest, |subject, cx| check::check(subject, cx, &state, self.depth));
            self.take(found);
        }
        self.exports(manifest);
    }

    fn exports(&mut self, manifest: &Arc<Manifest>) {
        let states: Vec<&Json> = self.states.iter().collect();
        let types = |name: &TypeName| self.listed(name);
        let question = Question { filter: &self.filter, handed: &states, types: &types };
        let found = self.ask(manifest, |subject, cx| check::check_export(subject, cx, &question));
        self.take(found);
    }

    /// What resolves is asked for the document, and what can be asked as a group can, is asked as one.
    fn importer(&mut self) {
        let manifest = &self.called.manifest;
        let settings = &self.called.session.settings();
        for state in self.states.clone() {
            let found = self.ask(manifest, |subject, cx| check::check_resolve(subject, cx, &state, settings));
            self.take(found);
        }
        if manifest.capabilities.get {
            self.instances(manifest);
        }
    }

    /// The list, and one of the resources in it, as any other.
    fn adapter(&mut self, adapted: Option<&str>) -> Result<(), Exit> {
        let (manifest, session) = (&self.called.manifest, &self.called.session);
        let mut listed = Vec::new();
        let found = self.ask(manifest, |subject, cx| {
            let found;
            (listed, found) = check::check_list(manifest, subject.provider, cx, session.settings());
            found
        });
        self.take(found);
        if self.states.is_empty() {
            return Ok(());
        }
        let one = match (adapted, listed.as_slice()) {
            (Some(name), _) => self.adapted(name)?,
            (None, [one]) => Arc::clone(one),
            (None, []) if !self.findings.is_empty() => return Ok(()),
            (None, _) => {
                let name = &manifest.type_name;
                return Err(refused(format!("'{name}' lists several resources; choose one with --adapted")));
            }
        };
        self.instances(&one);
        Ok(())
    }

    fn adapted(&self, name: &str) -> Result<Arc<Manifest>, Exit> {
        let type_name = TypeName::parse(name).map_err(|error| refused(error.to_string()))?;
        let found = self.called.session.find(&type_name, None).map_err(|error| refused(error.message))?;
        match found.require_adapter() {
            Some(adapter) if *adapter == self.called.manifest.type_name => Ok(found),
            _ => Err(refused(format!("'{name}' is not carried out by '{}'", self.called.manifest.type_name))),
        }
    }

    fn ask<T>(
        &self,
        manifest: &Arc<Manifest>,
        questions: impl FnOnce(CheckedResource<'_>, &stead_host::provider::Context) -> T,
    ) -> T {
        let session = &self.called.session;
        let provider: Arc<dyn Provider> = session.provider(manifest);
        let schema = builtin_of(manifest).map(BuiltIn::schema);
        let cx = session.context(manifest.type_name.as_str());
        questions(CheckedResource { manifest, provider: &*provider, schema }, &cx)
    }

    fn listed(&self, name: &TypeName) -> Option<Listed> {
        let session = &self.called.session;
        let manifest = session.find(name, None).ok()?;
        let schema = builtin_of(&manifest).map(|each| each.schema().clone());
        Some(Listed { provider: session.provider(&manifest), manifest, schema })
    }

    fn take(&mut self, findings: Vec<Diagnostic>) {
        for finding in findings {
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
    }
}

fn report(called: &ResourceCall, request: &CheckRequest, findings: &[Diagnostic]) {
    let sources = &called.session.sources;
    if request.output != Output::Text {
        let all: Vec<Json> = findings.iter().map(|finding| to_json(finding, sources)).collect();
        data_as(&json!({ "version": 1, "findings": all }), request.output);
        return;
    }
    for finding in findings {
        print(&format!("{}\n", visible_but(&finding.brief(sources), &['\n', '\t'])));
        finding.help.iter().for_each(|help| print(&format!("  help: {}\n", visible(help))));
    }
    let unset =
        if request.depth == Depth::Set || request.states.is_empty() { "" } else { "; set was not called, --set does" };
    let count = if findings.is_empty() { "no mistakes".to_owned() } else { findings.len().to_string() };
    print(&format!("{}: {count} found{unset}\n", called.manifest.type_name));
}
