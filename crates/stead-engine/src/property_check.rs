//! Properties that do not fit the schema of their resource, as far as that is known without a look at the machine.

mod hints;
mod references;

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use stead_core::budget::Budget;
use stead_core::call::{Failure, INVALID, Operation, code};
use stead_core::diag::{Diagnostic, Findings};
use stead_core::document::Instance;
use stead_core::event::Mode;
use stead_core::expr::Template;
use stead_core::graph::{Iteration, Node as GraphNode, Role, ScopeId, StaticView, evaluate_known, is_written_out};
use stead_core::id::NodeId;
use stead_core::manifest::{Implementation, Manifest};
use stead_core::schema::{Mismatch, Schema};
use stead_core::text::codes::TOO_MANY;
use stead_core::text::{Kind, Span};
use stead_core::value::{Object, Value};
use stead_host::provider::{Context, Plain, Provider};
use stead_resources::BuiltIn;

use crate::session::{Prepared, Session};

impl Session {
    /// A finding for each property that its resource does not accept, and for each reference to what an instance will not
    /// report. What is still to be computed is accepted.
    ///
    /// Programs may be asked for their schemas, and what they say of properties; nothing is asked about the machine. What
    /// an export has of properties says which instances are wanted, and is not checked.
    pub fn check_properties(&self, prepared: &Prepared, mode: Mode) -> Vec<Diagnostic> {
        if mode.operation == Operation::Export {
            return Vec::new();
        }
        // Reading the state of something takes less than bringing it into one.
        let extent = if mode.operation == Operation::Get { Extent::Stated } else { Extent::Whole };
        let mut types = Types { session: self, known: HashMap::new(), schemas: HashMap::new() };
        let pass = Pass { session: self, prepared, extent, budget: Budget::new(Budget::DOCUMENT) };
        let instances = prepared.graph.iter().filter(|(_, node)| node.role == Role::Instance);
        let mut found = Findings::new(&TOO_MANY, MAX_FINDINGS);
        // The iterations of a loop have one declaration.
        let mut seen = HashSet::new();
        let mut is_new = |finding: &Diagnostic| seen.insert((finding.span, finding.message.clone()));
        for (id, node) in instances {
            found.extend(pass.instance(id, node, &mut types).into_iter().filter(&mut is_new));
            if found.is_full() {
                break;
            }
        }
        found.extend(references::check(&pass, &mut types).into_iter().filter(&mut is_new));
        found.into_vec()
    }
}

/// How many findings are kept; nobody reads more than the first dozens.
const MAX_FINDINGS: usize = 1000;

/// One look at all instances.
struct Pass<'a> {
    session: &'a Session,
    prepared: &'a Prepared,
    extent: Extent,
    /// What evaluating may cost in all. Resolving has taken as much already, so that it is not used up by honest documents.
    budget: Budget,
}

impl Pass<'_> {
    /// What expressions in a scope see.
    fn view<'v>(&'v self, scope: ScopeId, iteration: Option<&'v Iteration>) -> StaticView<'v> {
        let Prepared { graph, facts, .. } = self.prepared;
        graph.static_view((scope, iteration), facts, &*self.session.vault, &self.budget)
    }

    fn instance(&self, id: NodeId, node: &GraphNode, types: &mut Types<'_>) -> Vec<Diagnostic> {
        let instance = self.prepared.graph.declaration(id);
        let (known, provider) = types.of(&node.manifest);
        let cx = self.session.context(Arc::clone(&node.name));
        if let (Known::BuiltIn(_), Some(stated)) = (known, &node.stated)
            && provider.validate(&cx, &Plain::shared(Arc::clone(stated))).is_ok()
        {
            return Vec::new();
        }
        let empty = Template { span: instance.name.span, kind: Kind::Object(Vec::new()) };
        let properties = match (&instance.properties, known) {
            (Some(properties), _) if is_written_out(properties) => Cow::Borrowed(properties),
            (Some(properties), _) => {
                Cow::Owned(evaluate_known(properties, &self.view(node.scope, node.iteration.as_ref())))
            }
            (None, Known::BuiltIn(_)) => Cow::Owned(empty),
            // A program may do without properties whatever its schema says.
            (None, Known::Program(_)) => return Vec::new(),
        };
        let extent = self.extent;
        let checked = Checked { instance, properties: &properties, extent, provider: Arc::clone(provider), cx: &cx };
        match known {
            Known::BuiltIn(outline) => checked.by_built_in(outline),
            Known::Program(schema) => checked.by_program(schema.as_deref()),
        }
    }
}

/// Which properties are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Those that are stated.
    Stated,
    /// All: those that are required must be stated.
    Whole,
}

/// What is known of the types of a document, found out once for each.
struct Types<'s> {
    session: &'s Session,
    /// By the address of the manifest, which the graph keeps alive meanwhile.
    known: HashMap<*const Manifest, (Known, Arc<dyn Provider>)>,
    /// Of those that references are made to.
    schemas: HashMap<*const Manifest, Option<Arc<Schema>>>,
}

impl Types<'_> {
    fn of(&mut self, manifest: &Arc<Manifest>) -> &(Known, Arc<dyn Provider>) {
        let key = Arc::as_ptr(manifest);
        if !self.known.contains_key(&key) {
            let found = (Known::of(self, manifest), self.session.provider(manifest));
            self.known.insert(key, found);
        }
        &self.known[&key]
    }

    fn schema(&mut self, manifest: &Arc<Manifest>) -> Option<Arc<Schema>> {
        let session = self.session;
        let find = || match session.built_in(&manifest.type_name) {
            Some(built_in) => Schema::compile(built_in.schema().clone()).ok().map(Arc::new),
            None => session.provider(manifest).schema(&session.context(manifest.type_name.as_str())).ok().flatten(),
        };
        self.schemas.entry(Arc::as_ptr(manifest)).or_insert_with(find).clone()
    }
}

/// What is known of the properties of a type.
enum Known {
    /// It says itself what is wrong.
    BuiltIn(LazyOutline),
    /// It is a program, or a kind that the engine carries out; its schema says most of it.
    Program(Option<Arc<Schema>>),
}

impl Known {
    fn of(types: &mut Types<'_>, manifest: &Arc<Manifest>) -> Self {
        match (types.session.built_in(&manifest.type_name), &manifest.implementation) {
            (Some(built_in), Implementation::BuiltIn) => Self::BuiltIn(lazy_outline(built_in)),
            _ => Self::Program(types.schema(manifest)),
        }
    }
}

/// Texts up to this size are checked, whatever they are: a regular expression is short, the content of a file may not be.
const SHORT: usize = 4096;

/// Made for the first instance that needs it: an instance that is written out and valid does not.
type LazyOutline = LazyCell<Outline, Box<dyn FnOnce() -> Outline>>;

fn lazy_outline(built_in: &BuiltIn) -> LazyOutline {
    let built_in = built_in.clone();
    LazyCell::new(Box::new(move || Outline::of(built_in.schema())))
}

/// What the schema of a built-in says of its properties, at hand for every instance.
struct Outline {
    required: Vec<String>,
    /// Texts that the schema does not constrain: long ones are content, and not copied to be checked.
    free: Vec<String>,
    names: Vec<String>,
    descriptions: HashMap<String, String>,
}

impl Outline {
    fn of(schema: &Json) -> Self {
        let properties = || schema.get("properties").and_then(Json::as_object).into_iter().flatten();
        let required = schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        let description = |(name, property): (&String, &Json)| {
            Some((name.clone(), property.get("description")?.as_str()?.to_owned()))
        };
        Self {
            required: required.map(str::to_owned).collect(),
            free: properties().filter(|(_, property)| is_free_text(property)).map(|(name, _)| name.clone()).collect(),
            names: properties().map(|(name, _)| name.clone()).collect(),
            descriptions: properties().filter_map(description).collect(),
        }
    }

    /// The first sentence of what the schema says of a property.
    fn description(&self, name: &str) -> Option<String> {
        let description = self.descriptions.get(name)?;
        Some(description.split_once(". ").map_or(description.clone(), |(first, _)| format!("{first}.")))
    }
}

fn is_free_text(property: &Json) -> bool {
    let annotations = ["type", "title", "description", "default"];
    let plain = |members: &Map<String, Json>| members.keys().all(|key| annotations.contains(&key.as_str()));
    property.get("type").is_some_and(|kind| kind == "string") && property.as_object().is_some_and(plain)
}

/// An instance that is checked.
struct Checked<'a> {
    instance: &'a Instance,
    properties: &'a Template,
    extent: Extent,
    provider: Arc<dyn Provider>,
    cx: &'a Context,
}

impl Checked<'_> {
    /// What a built-in says: it names one property at a time, which is then left out.
    fn by_built_in(&self, outline: &LazyOutline) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let mut is_complete = is_written_out(self.properties);
        let is_free = |name: &str| outline.free.iter().any(|free| free == name);
        let mut rest = members(self.properties, |name, text| text.len() <= SHORT || !is_free(name));
        loop {
            let input = Plain::new(rest);
            let Err(failure) = self.provider.validate(self.cx, &input) else { return found };
            let Value::Object(left) = input.into_exposed() else { return found };
            rest = left;
            let name = failure.property.as_deref().map(property_of);
            let stated = name.as_deref().and_then(|name| self.properties.get(name));
            let Some((name, value)) = name.as_deref().zip(stated) else {
                // Something is missing; where something else was left out, that may be why.
                let is_certain = is_complete || name.is_some_and(|name| outline.required.contains(&name));
                let missing = self.refused(failure, outline);
                let is_meant = found
                    .iter()
                    .filter_map(|other: &Diagnostic| other.help.as_deref())
                    .any(|help| quoted(&missing.message).is_some_and(|name| help == hints::did_you_mean(name)));
                found.extend((is_certain && !is_meant && self.extent == Extent::Whole).then_some(missing));
                return found;
            };
            if rest.remove(name).is_none() {
                return found;
            }
            if is_written_out(value) {
                let finding = self.refused(failure, outline);
                found.push(match hints::of_value(value, &finding.message).or_else(|| outline.description(name)) {
                    Some(help) if finding.help.is_none() => finding.with_help(help),
                    _ => finding,
                });
            }
            is_complete = false;
        }
    }

    fn by_program(&self, schema: Option<&Schema>) -> Vec<Diagnostic> {
        let mismatches = schema.map(|schema| of(self.instance, self.properties, schema)).unwrap_or_default();
        if !mismatches.is_empty() || !is_written_out(self.properties) {
            return mismatches;
        }
        let written = Plain::new(self.properties.literal());
        self.provider.validate(self.cx, &written).err().map(|failure| self.failed(failure)).into_iter().collect()
    }

    /// What a built-in says, with what to do about it.
    fn refused(&self, failure: Failure, outline: &Outline) -> Diagnostic {
        let finding = self.failed(failure);
        if let Some((what, meant)) = finding.message.split_once(". Did you mean ") {
            let (message, help) = (what.to_owned(), format!("did you mean {meant}"));
            return Diagnostic { message, help: Some(help), ..finding };
        }
        let name = quoted(&finding.message);
        let help = if finding.message.starts_with("there is no property") {
            name.map(|name| hints::of_unknown(name, &outline.names))
        } else if finding.message.ends_with("is required") {
            name.and_then(|name| outline.description(name)).or(Some("add it to 'properties'".to_owned()))
        } else {
            None
        };
        Diagnostic { help, ..finding }
    }

    fn failed(&self, failure: Failure) -> Diagnostic {
        let span = failure.property.as_deref().and_then(|pointer| place(self.properties, pointer));
        Diagnostic::error(code(&failure.kind), span.unwrap_or(self.instance.name.span), failure.message)
    }
}

/// The first name that a message has in quotes.
fn quoted(message: &str) -> Option<&str> {
    message.split('\'').nth(1)
}

/// The members of an object, expressions as text; a text for which `is_needed` is false is left empty. It is given the
/// name of the member as well. An empty object for anything else.
fn members(properties: &Template, is_needed: impl Fn(&str, &str) -> bool) -> Object {
    let member = |name: &str, value: &Template| match &value.kind {
        Kind::String(text) if !is_needed(name, text) => Value::from(""),
        _ => value.literal(),
    };
    let entries = properties.entries().into_iter().flatten();
    entries.map(|entry| (entry.key.as_ref().to_owned(), member(&entry.key, &entry.value))).collect()
}

/// The name of the property that a pointer leads to or into.
fn property_of(pointer: &str) -> String {
    let name = pointer.trim_start_matches('/').split('/').next().unwrap_or_default();
    name.replace("~1", "/").replace("~0", "~")
}

/// Whether a mismatch stays one whatever is still to be computed or opened.
fn is_certain(properties: &Template, mismatch: &Mismatch) -> bool {
    let mut at = properties;
    for step in mismatch.pointer.split('/').skip(1) {
        if is_open(at) {
            return false;
        }
        let step = step.replace("~1", "/").replace("~0", "~");
        let inner = match &at.kind {
            Kind::Array(items) => step.parse().ok().and_then(|step: usize| items.get(step)),
            _ => at.get(&step),
        };
        let Some(inner) = inner else { return true };
        at = inner;
    }
    !is_open(at) && (mismatch.is_shallow || is_written_out(at))
}

fn is_open(value: &Template) -> bool {
    let wraps = |name: &str| value.get(name).is_some();
    matches!(value.kind, Kind::Compiled(_)) || wraps("secureString") || wraps("secureObject")
}

fn of(instance: &Instance, properties: &Template, schema: &Schema) -> Vec<Diagnostic> {
    let mismatches = schema.validate(&properties.literal().to_redacted_json());
    let certain = mismatches.into_iter().filter(|mismatch| is_certain(properties, mismatch));
    let finding = |mismatch: Mismatch| {
        let span = place(properties, &mismatch.pointer).unwrap_or(instance.name.span);
        let name = property_of(&mismatch.pointer);
        let description = schema.property(&name).and_then(|property| property.get("description")?.as_str());
        let finding = Diagnostic::error(&INVALID, span, mismatch.sentence());
        match mismatch.help.as_deref().or(description) {
            Some(help) => finding.with_help(help),
            None if finding.message.ends_with("is required") => finding.with_help("add it to 'properties'"),
            None => finding,
        }
    };
    certain.map(finding).collect()
}

/// Where a pointer leads; `None` for the whole, and for what is in no text.
fn place(properties: &Template, pointer: &str) -> Option<Span> {
    let mut at = (properties, None);
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        at = match &at.0.kind {
            Kind::Object(entries) => {
                let entry = entries.iter().find(|entry| *entry.key == *step)?;
                (&entry.value, Some(entry.key_span))
            }
            Kind::Array(items) => items.get(step.parse::<usize>().ok()?).map(|item| (item, Some(item.span)))?,
            _ => return at.1,
        };
    }
    at.1
}
