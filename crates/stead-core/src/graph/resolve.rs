//! The first pass: scopes with their values, and a node for every instance and every iteration of a loop.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

mod loops;
mod nested;

use loops::Unrolled;

use super::builder::{BuildRoom, Builder, Unknown};
use super::defaults::ordered;
use super::scope::stated;
use super::{
    Adjacent, FoundResource, Graph, Inputs, Iteration, Lacks, Names, Node, Open, Resolution, Role, Scope, ScopeId,
    ScopeView, Unresolved, Values, codes, evaluate, link,
};
use crate::budget::Budget;
use crate::diag::{Diagnostic, Findings, any_error, did_you_mean};
use crate::document::{self, DiscoveryTime, Document, Instance, Parameter};
use crate::expr::{Answer, Environment, FactKey};
use crate::id::{NodeId, ResourceId, TypeName};
use crate::instance_path::InstancePath;
use crate::manifest::{Implementation, Late, Manifest, ResourceKind, Version, VersionRequirement};
use crate::parameters::{self, Supplied};
use crate::text::{self, Sources, Span};
use crate::value::{Object, Value, sealing_wrapped};

/// How deep groups and includes may be nested: far beyond any use, and shallow enough for every stack.
pub const MAX_NESTING: usize = 32;

/// How many instances there may be: they take about half a gigabyte then.
const MAX_INSTANCES: i64 = 1_000_000;
/// How many documents may be included. With their parameters they are the sources that a place can be in, fewer than
/// 65,536.
const MAX_INCLUDED: usize = 10_000;
/// The properties with which an include names its document: a path, or the text itself.
const INCLUDED: [&str; 2] = ["configurationFile", "configurationContent"];
/// The properties with which it names the parameters of that.
const SUPPLIED: [&str; 2] = ["parametersFile", "parametersContent"];
/// How many findings are kept; nobody reads more than the first dozens.
const MAX_FINDINGS: usize = 1000;
/// How many instances of one unknown type are reported one by one.
const MAX_REPEATED: usize = 100;
/// How many names are looked at for hints at what was meant: 100,000 wrong needs among 100,000 names are not worth it.
const MAX_COMPARED: usize = 2_000_000;

/// Resolves a document: every scope, every instance, every need, all findings at once.
///
/// Included documents are added to `sources`, so that findings can point into them.
pub fn resolve(document: &Arc<Document>, inputs: &Inputs<'_>, sources: &mut Sources) -> Resolution {
    let mut builder = Builder {
        inputs,
        sources,
        graph: Graph::default(),
        findings: Findings::new(&text::codes::TOO_MANY, MAX_FINDINGS),
        wants: BTreeSet::new(),
        room: BuildRoom { depth: MAX_NESTING, instances: MAX_INSTANCES + 1, included: MAX_INCLUDED },
        is_incomplete: false,
        compared: MAX_COMPARED,
        budget: Budget::new(Budget::DOCUMENT),
        unknown: HashMap::new(),
        late: HashMap::new(),
        last_found: None,
        deprecated: BTreeSet::new(),
        incomplete: BTreeSet::new(),
        loop_names: HashMap::new(),
        loops: HashMap::new(),
    };
    builder.scope(document, ("".into(), None, None), inputs.parameters);
    builder.report_unknown();
    if builder.wants.is_empty() && !builder.room.is_used_up() {
        link::link(&mut builder);
        // What a reference names may have been left uncomputed.
        if let Err(exceeded) = builder.budget.check()
            && !builder.findings.any_error()
        {
            builder.too_large(Span::new(document.source, 0, 0), format!("the document takes {exceeded}"));
        }
    }
    let is_too_much = builder.room.is_used_up();
    let Builder { graph, findings, wants, .. } = builder;
    let mut findings = findings.into_vec();
    // What is wrong with a loop is wrong in each of its iterations.
    let mut reported = BTreeSet::new();
    findings.retain(|finding| reported.insert((finding.span, finding.code.id, finding.message.clone())));
    findings.sort_by_key(|finding| finding.span);
    if !wants.is_empty() {
        Resolution::Needs(wants)
    } else if any_error(&findings) {
        Resolution::Faulty { findings, rest: (!is_too_much).then_some(graph) }
    } else {
        Resolution::Graph(graph, findings)
    }
}

/// Parameter defaults see the parameters that come before them, but no variables, and may ask for the time.
struct Defaults<'a>(ScopeView<'a>);

impl Environment for Defaults<'_> {
    fn allows_now(&self) -> bool {
        true
    }
    fn parameter(&self, name: &str) -> Answer {
        self.0.parameter(name)
    }
    fn fact(&self, key: &FactKey) -> Option<Value> {
        self.0.fact(key)
    }
    fn folder(&self) -> Arc<str> {
        self.0.folder()
    }
    fn seal(&self, plaintext: Value) -> Option<Value> {
        self.0.seal(plaintext)
    }
    fn budget(&self) -> Option<&Budget> {
        self.0.budget()
    }
    fn function(&self, name: &str) -> Option<&document::UserFunction> {
        self.0.function(name)
    }
    fn function_names(&self) -> Vec<String> {
        self.0.function_names()
    }
}

impl Builder<'_> {
    fn check_version(&mut self, document: &Document) {
        let Some(required) = &document.directives.version else { return };
        let version = Version::parse(self.inputs.version);
        let (problem, help) = match VersionRequirement::parse(&required.value) {
            Err(error) => (error.to_string(), "write a requirement such as '>=3.1.0'"),
            Ok(requirement) if version.is_ok_and(|version| requirement.matches(&version)) => return,
            Ok(_) => (
                format!(
                    "Configuration requires DSC version '{}', but the current version is '{}'",
                    required.value, self.inputs.version
                ),
                "install a version that satisfies it, or change 'version'",
            ),
        };
        self.findings.push(Diagnostic::error(&codes::WRONG_VERSION, required.span, problem).with_help(help));
    }

    /// Warns of directives that only the outermost document has.
    fn check_directives(&mut self, document: &Document) {
        let directives = &document.directives;
        let reconcile = directives.reconcile.place.map(|span| (span, "reconcile"));
        let order = directives.implicit_order.as_ref().map(|order| (order.span, "implicitOrder"));
        let removed = directives.removed.as_ref().map(|removed| (removed.span, "removed"));
        let secrets = directives.secrets_from.as_ref().map(|from| (from.span, "secretsFrom"));
        for (span, name) in reconcile.into_iter().chain(order).chain(removed).chain(secrets) {
            self.no_effect(span, name, "state it in the document that includes this one");
        }
    }

    fn no_effect(&mut self, span: Span, name: &str, help: &str) {
        let finding = Diagnostic::warning(&codes::NO_EFFECT, span, format!("'{name}' has no effect here"));
        self.findings.push(finding.with_help(help));
    }

    /// Builds a scope and all that is nested in it.
    ///
    /// `place`: the folder of its document, the instance that holds it, and the scope that it sees.
    fn scope(
        &mut self,
        document: &Arc<Document>,
        place: (Arc<str>, Option<NodeId>, Option<ScopeId>),
        supplied: &Supplied,
    ) {
        let (folder, container, outer) = place;
        let id = ScopeId(u32::try_from(self.graph.scopes.len()).unwrap_or(u32::MAX));
        self.graph.scopes.push(Scope {
            document: Arc::clone(document),
            folder,
            container,
            outer,
            iteration: container.filter(|_| outer.is_some()).and_then(|id| self.graph.node(id).iteration.clone()),
            parameters: Object::new(),
            variables: Object::new(),
            open: Open::default(),
            ids: HashSet::with_capacity(document.resources.len()),
            members: Vec::with_capacity(document.resources.len()),
        });
        self.graph.nodes.reserve(document.resources.len());
        self.check_version(document);
        if container.is_some() {
            self.check_directives(document);
        }
        self.parameters(id, document, supplied);
        self.variables(id, document);
        for (at, instance) in document.resources.iter().enumerate() {
            if self.room.is_used_up() || self.findings.leave_out_errors() {
                return;
            }
            self.instance(id, at, instance);
        }
    }

    fn parameters(&mut self, id: ScopeId, document: &Document, supplied: &Supplied) {
        let is_declared = |finding: &parameters::Finding| {
            finding.parameter.as_ref().is_some_and(|name| document.unreadable.contains(name))
        };
        for finding in parameters::unknown(&document.parameters, supplied) {
            if is_declared(&finding) {
                continue;
            }
            self.wrong_parameter(id, finding, None, supplied);
        }
        // Looked for only when something has no value, and then once.
        let used = OnceCell::new();
        let is_supplied = |name: &str| supplied.values.contains_key(name);
        let ordered = ordered(document, is_supplied);
        for circle in &ordered.circles {
            let span = circle.first().and_then(|first| first.default.as_ref()).map(|default| default.span);
            self.wrong_parameter(id, parameters::circular(circle), span, supplied);
        }
        for parameter in ordered.circles.into_iter().flatten().chain(ordered.others) {
            let (name, data_type) = (parameter.name.value.clone(), parameter.data_type.value);
            self.graph.scopes[id.index()].open.parameters.insert(name, data_type);
        }
        for parameter in ordered.parameters {
            let is_used = || used.get_or_init(|| document.used_parameters(is_supplied)).holds(&parameter.name.value);
            let (value, name) = (self.parameter(id, parameter, supplied, &is_used), parameter.name.value.clone());
            let value = value.and_then(|value| self.keep(value, parameter.name.span));
            let scope = &mut self.graph.scopes[id.index()];
            match value {
                Some(value) => drop(scope.parameters.insert(name, value)),
                None => drop(scope.open.parameters.insert(name, parameter.data_type.value)),
            }
        }
    }

    /// The supplied value or the default, if it meets the constraints.
    fn parameter(
        &mut self,
        id: ScopeId,
        parameter: &Parameter,
        supplied: &Supplied,
        is_used: &dyn Fn() -> bool,
    ) -> Option<Value> {
        let (value, span) = match (supplied.values.get(&parameter.name.value), &parameter.default) {
            (Some(value), _) => (value.clone(), parameter.name.span),
            (None, Some(default)) => {
                let value = evaluate(default, &Defaults(self.place(id, None)));
                let value = self.settle(value)?;
                if let Err(finding) = parameters::check_sealed(parameter, &value) {
                    self.wrong_parameter(id, finding, Some(default.span), supplied);
                    return None;
                }
                (value, default.span)
            }
            (None, None) => {
                if self.inputs.values == Values::Required && is_used() {
                    let finding = match self.graph.scope(id).container {
                        Some(container) if self.is_include(container) => parameters::not_included(parameter),
                        _ => parameters::missing(parameter),
                    };
                    self.wrong_parameter(id, finding, Some(parameter.name.span), supplied);
                }
                return None;
            }
        };
        // A sealed value was checked where its plaintext was still at hand.
        if matches!(value, Value::Sealed(_)) {
            return Some(value);
        }
        if let Err(finding) = parameters::check(parameter, &value) {
            self.wrong_parameter(id, finding, Some(span), supplied);
            return None;
        }
        let (data_type, seal) = (parameter.data_type.value, self.inputs.seal);
        Some(if data_type.is_secure() { value.sealed_as(data_type, seal) } else { sealing_wrapped(value, seal) })
    }

    /// Reports what is wrong with a parameter, at its declaration or default. What has neither was supplied from outside the
    /// document: by what includes it, or by the caller.
    fn wrong_parameter(
        &mut self,
        id: ScopeId,
        finding: parameters::Finding,
        declared: Option<Span>,
        supplied: &Supplied,
    ) {
        let container = self.graph.scope(id).container.map(|container| self.graph.declaration(container).name.span);
        self.findings.push(finding.placed(declared.or(container), supplied));
    }

    fn variables(&mut self, id: ScopeId, document: &Document) {
        for variable in &document.variables {
            let name = variable.name.value.clone();
            // Nobody reads what else is wrong.
            let is_wanted = !self.room.is_used_up() && !self.findings.leave_out_errors();
            let value = if is_wanted { self.value(id, None, &variable.value) } else { None };
            let value = value.and_then(|value| self.keep(value, variable.value.span));
            let scope = &mut self.graph.scopes[id.index()];
            match value {
                Some(value) => drop(scope.variables.insert(name, value)),
                None => drop(scope.open.variables.insert(name)),
            }
        }
    }

    fn instance(&mut self, scope: ScopeId, at: usize, instance: &Instance) {
        let Some(manifest) = self.find(instance) else { return self.is_incomplete = true };
        let stated = stated(instance.properties.as_ref());
        if instance.copy.is_empty() {
            if self.take(1, instance) {
                self.node((scope, at), instance, manifest, None, stated);
            }
            return;
        }
        self.unroll(&Unrolled { place: (scope, at), instance, manifest, stated }, &instance.copy, None);
    }

    /// Makes room for instances, or ends it all.
    fn take(&mut self, count: i64, instance: &Instance) -> bool {
        // The last one is never given out, so that no room at all means that it was used up.
        if count < self.room.instances {
            self.room.instances -= count;
            return true;
        }
        let message = format!("the document has more than {MAX_INSTANCES} instances");
        self.stop(&codes::TOO_MANY, instance.span, message);
        false
    }

    fn find(&mut self, instance: &Instance) -> Option<Arc<Manifest>> {
        let type_name = &instance.type_name.value;
        let requirement = instance.require_version.as_ref().map(|version| version.value.as_str());
        let adapter = instance.directives().require_adapter.as_ref().map(|adapter| &adapter.value);
        if let Some((name, version, manifest)) = &self.last_found
            && adapter.is_none()
            && name.as_str() == type_name.as_str()
            && version.as_deref() == requirement
        {
            return Some(Arc::clone(manifest));
        }
        let wanted = (type_name.clone(), requirement.map(str::to_owned), adapter.cloned());
        if let Some(unknown) = self.unknown.get_mut(&wanted) {
            unknown.instances += 1;
            if unknown.instances <= MAX_REPEATED {
                let finding = unresolved(instance, &unknown.why);
                self.findings.push(finding);
            }
            return None;
        }
        if let Some(late) = self.late.get(&wanted) {
            return Some(Arc::clone(late));
        }
        match self.inputs.catalog.find(type_name, requirement, adapter) {
            FoundResource::Resource(manifest) => {
                self.check_deprecation(instance, &manifest);
                self.check_completeness(instance, &manifest);
                if adapter.is_none() {
                    self.last_found = Some((wanted.0, wanted.1, Arc::clone(&manifest)));
                }
                Some(manifest)
            }
            FoundResource::Nothing(why) if self.looks_again(requirement) => {
                self.warn_of_late(instance, &why);
                let (type_name, requirement, adapter) = wanted.clone();
                let requirement = requirement.and_then(|text| VersionRequirement::parse(&text).ok());
                let late = Arc::new(Manifest::late(type_name, Late { requirement, adapter }));
                self.late.insert(wanted, Arc::clone(&late));
                Some(late)
            }
            FoundResource::Nothing(why) => {
                let first = unresolved(instance, &why);
                self.findings.push(first.clone());
                self.unknown.insert(wanted, Unknown { first, why, instances: 1 });
                None
            }
        }
    }

    /// Returns whether a resource that was not found is searched for again during the run.
    fn looks_again(&self, requirement: Option<&str>) -> bool {
        let outermost = self.graph.scopes.first().map(|scope| &scope.document.directives);
        let discovery = outermost.and_then(|directives| directives.discovery.as_ref());
        let is_readable = requirement.is_none_or(|text| VersionRequirement::parse(text).is_ok());
        is_readable && discovery.is_some_and(|discovery| discovery.value == DiscoveryTime::DuringDeployment)
    }

    fn warn_of_late(&mut self, instance: &Instance, why: &Unresolved) {
        let finding = unresolved(instance, why);
        let message = format!("{}; it is looked for again when the instance is reached", finding.message);
        let mut finding = Diagnostic::warning(&codes::LATE, finding.span.unwrap_or(instance.span), message);
        if instance.depends_on.is_empty() {
            finding = finding.with_help("name what installs it in 'dependsOn'");
        }
        self.findings.push(match &why.meant {
            Some(meant) => finding.with_help(did_you_mean(meant.as_str())),
            None => finding,
        });
    }

    /// Says how many more instances there are of unknown types than were reported one by one.
    fn report_unknown(&mut self) {
        let many = self.unknown.drain().map(|(_, unknown)| unknown).filter(|each| each.instances > MAX_REPEATED);
        let mut many: Vec<Unknown> = many.collect();
        many.sort_by_key(|unknown| unknown.first.span);
        self.findings.extend(many.into_iter().map(|Unknown { first, instances, .. }| {
            let more = instances - MAX_REPEATED;
            let message = format!("{more} more instances have this type: {}", first.message);
            Diagnostic { message, help: None, fix: None, ..first }
        }));
    }

    /// Warns of a deprecated resource where it is first used.
    fn check_deprecation(&mut self, instance: &Instance, manifest: &Manifest) {
        if let Some(advice) = &manifest.deprecation
            && self.deprecated.insert(manifest.type_name.clone())
        {
            let message = format!("Resource '{}' is deprecated: {advice}", manifest.type_name);
            self.findings.push(Diagnostic::warning(&codes::DEPRECATED, instance.type_name.span, message));
        }
    }

    /// Warns of a resource without an operation that its kind requires, on first use.
    fn check_completeness(&mut self, instance: &Instance, manifest: &Manifest) {
        if let Some(lack) = manifest.lack()
            && self.incomplete.insert(lack.clone())
        {
            self.findings.push(Diagnostic::warning(&codes::INCOMPLETE, instance.type_name.span, lack));
        }
    }

    /// Adds the instance at a place in the resources of a scope.
    fn node(
        &mut self,
        (scope, at): (ScopeId, usize),
        instance: &Instance,
        manifest: Arc<Manifest>,
        iteration: Option<Iteration>,
        stated: Option<Arc<Value>>,
    ) {
        let Some(name) = self.name(scope, iteration.as_ref(), instance) else { return self.is_incomplete = true };
        let id = NodeId(u32::try_from(self.graph.nodes.len()).unwrap_or(u32::MAX));
        let resource_id = ResourceId { type_name: instance.type_name.value.clone(), name: Arc::clone(&name) };
        let container = self.graph.scope(scope).container.map(|container| self.graph.node(container).path.clone());
        let path = InstancePath::new(container.as_ref(), resource_id, id);
        if let Some(first) = self.graph.scopes[scope.index()].ids.replace(Adjacent(path.clone()))
            && self.inputs.names == Names::Unique
        {
            self.duplicate(&first, instance, iteration.as_ref());
            self.graph.scopes[scope.index()].ids.replace(first);
            return;
        }
        // What is secret is sealed when the run comes to it.
        let stated = stated.filter(|stated| !manifest.states_secrets(stated));
        let stated = self.with_nested_secrets(&manifest, instance).or(stated);
        self.graph.scopes[scope.index()].members.push(id);
        self.graph.nodes.push(Node {
            name,
            scope,
            declaration: u32::try_from(at).unwrap_or(u32::MAX),
            iteration: iteration.map(Box::new),
            manifest,
            path,
            stated,
            needs: Vec::new(),
            role: Role::Instance,
        });
        self.nest(id, instance);
    }

    /// The desired state of a group that is a program, if what its nested instances state is secret by their resources. It
    /// gets them as they were written, and what is sealed is opened for it.
    fn with_nested_secrets(&self, manifest: &Manifest, instance: &Instance) -> Option<Arc<Value>> {
        let is_program =
            manifest.kind == ResourceKind::Group && !matches!(manifest.implementation, Implementation::Engine);
        let properties = instance.properties.as_ref().filter(|_| is_program)?;
        let mut desired = properties.literal();
        self.seal_nested(&mut desired).then(|| Arc::new(desired))
    }

    /// Seals what is secret in nested instances, and returns whether anything is.
    fn seal_nested(&self, properties: &mut Value) -> bool {
        let Value::Object(properties) = properties else { return false };
        let Some(Value::Array(nested)) = Object::get_mut(properties, "resources") else { return false };
        let mut any = false;
        for instance in nested {
            any |= self.seal_in(instance).unwrap_or_default();
        }
        any
    }

    fn seal_in(&self, instance: &mut Value) -> Option<bool> {
        let type_name = TypeName::parse(instance.get("type")?.as_str()?).ok()?;
        let Value::Object(instance) = instance else { return None };
        let properties = Object::get_mut(instance, "properties")?;
        let is_nested = self.seal_nested(properties);
        let FoundResource::Resource(manifest) = self.inputs.catalog.find(&type_name, None, None) else {
            return Some(is_nested);
        };
        let is_own = manifest.states_secrets(properties);
        if is_own {
            *properties = manifest.sealing_secrets(std::mem::take(properties), self.inputs.seal);
        }
        Some(is_own || is_nested)
    }
}

/// The finding that there is no resource for an instance, where the instance says what there is not.
fn unresolved(instance: &Instance, why: &Unresolved) -> Diagnostic {
    let said = match why.lacks {
        Lacks::Type => None,
        Lacks::Version => instance.require_version.as_ref().map(|version| version.span),
        Lacks::Adapter => instance.directives().require_adapter.as_ref().map(|adapter| adapter.span),
    };
    let span = said.unwrap_or(instance.type_name.span);
    let finding = Diagnostic::error(&codes::UNKNOWN_TYPE, span, why.message.clone());
    match &why.meant {
        Some(meant) => finding.with_help(did_you_mean(meant.as_str())),
        None => Diagnostic { help: why.help.clone(), ..finding },
    }
}
