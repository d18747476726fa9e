//! From states to the instances of a document.

use super::binding::{Binder, literal, quoted};
use super::compile::{Compiled, StateCall};
use super::keyword::{Keyword, Requisite, is_ignored_by_idem, keyword};
use super::own;
use super::read::Read;
use super::{Converted, codes};
use stead_core::diag::{Code, Diagnostic};
use stead_core::id::ResourceId;
use stead_core::text::{Entry, Node, Sources, Span};
use stead_core::value::{Object, Value};
use stead_core::wire::results::DOCUMENT_SCHEMA;

/// Writes the document.
pub(super) fn write(read: &Read, compiled: &Compiled<'_>, sources: &Sources) -> (Converted, Vec<Diagnostic>) {
    let quoted = |span: Span| {
        let text = sources.get(span.source).and_then(|source| source.text.get(span.start as usize..));
        text.is_some_and(|text| text.starts_with(['\'', '"', '|', '>']))
    };
    let mut writer = Writer {
        compiled,
        binder: Binder::new(read, compiled, &quoted),
        findings: Vec::new(),
        resources: Vec::new(),
        listeners: Vec::new(),
        last: None,
    };
    for at in 0..compiled.states.len() {
        writer.state(at);
    }
    writer.resources.append(&mut writer.listeners);
    let head = writer.head(&read.meta);
    let mut findings = writer.findings;
    findings.append(&mut writer.binder.findings);
    findings.extend(compiled.findings.iter().cloned());
    findings.extend(compiled.cycle(&writer.binder.references));
    let comment = if read.comment.is_empty() { String::new() } else { format!("{}\n", read.comment) };
    (Converted { comment, head, resources: writer.resources }, findings)
}

struct Writer<'a> {
    compiled: &'a Compiled<'a>,
    binder: Binder<'a>,
    findings: Vec<Diagnostic>,
    resources: Vec<(String, Value)>,
    /// The states that react to changes at the end.
    listeners: Vec<(String, Value)>,
    /// The id whose comment was written.
    last: Option<Span>,
}

/// The keys of an instance besides its type, its name and its properties.
#[derive(Clone, Default)]
struct Relations {
    depends_on: Vec<Value>,
    directives: Object,
    conditions: Vec<String>,
}

impl Relations {
    fn directive(&mut self, key: &str, ids: Vec<Value>) {
        let mut all = Vec::new();
        if let Some(Value::Array(known)) = self.directives.get_mut(key) {
            all = std::mem::take(known);
        }
        add_new(&mut all, ids);
        self.directives.insert(key.to_owned(), Value::Array(all));
    }
}

/// Adds what is not there yet: a state may be required and watched.
fn add_new(known: &mut Vec<Value>, ids: Vec<Value>) {
    for id in ids {
        if !known.contains(&id) {
            known.push(id);
        }
    }
}

impl Writer<'_> {
    /// Returns the members that come before `resources`.
    fn head(&mut self, meta: &[Entry]) -> Object {
        let mut head = Object::new();
        head.insert("$schema".to_owned(), DOCUMENT_SCHEMA.into());
        let meta = meta.iter().map(|entry| entry.value.literal());
        if let Some(meta) = meta.reduce(merged) {
            head.insert("metadata".to_owned(), object([("Idem", object([("META", meta)]))]));
        }
        let parameters = self.binder.parameters.iter().map(|parameter| {
            let data_type = ("type", Value::from(parameter.data_type.as_str()));
            let default = parameter.default.as_ref();
            let default = default.map(|value| value.as_str().map_or_else(|| value.clone(), literal));
            let default = default.map(|value| ("defaultValue", value));
            (parameter.name.clone(), object([data_type].into_iter().chain(default)))
        });
        let parameters: Object = parameters.collect();
        if !parameters.is_empty() {
            head.insert("parameters".to_owned(), Value::Object(parameters));
        }
        head
    }

    /// Writes a state, and what reacts to changes for it.
    fn state(&mut self, at: usize) {
        let Some(state) = self.compiled.states.get(at) else { return };
        let properties = self.properties(at, state);
        let mut relations = Relations::default();
        for (requisite, targets) in &state.requisites {
            self.requisite(state, *requisite, targets, &mut relations);
        }
        if state.value(Keyword::Unique).is_some() {
            let function = format!("{}.{}", state.declaration.module.value, state.function);
            relations.directives.insert("exclusive".to_owned(), Value::Array(vec![function.into()]));
        }
        for argument in state.arguments().filter(|argument| is_ignored_by_idem(&argument.key)) {
            let message =
                format!("'{}' of '{}' has an effect; Idem ignores it", argument.key, state.declaration.id.value);
            let finding = Diagnostic::warning(&codes::DIFFERENT, argument.key_span, message);
            self.findings.push(finding.with_help("remove it if the states are to run as Idem runs them"));
        }
        if let Some(advice) = own::advice(&state.declaration.module.value, state.function) {
            let (module, id) = (&state.declaration.module, &state.declaration.id.value);
            let message =
                format!("'{}.{}' of '{id}' is a part of Idem itself, and no resource", module.value, state.function);
            self.findings.push(Diagnostic::warning(&codes::NOT_CARRIED, module.span, message).with_help(advice));
        }
        let is_first = self.last.replace(state.declaration.id.span) != Some(state.declaration.id.span);
        let comment = if is_first { state.declaration.comment.clone() } else { String::new() };
        let metadata = self.metadata(state);
        let own = instance(state, &state.name, properties.clone(), relations.clone(), metadata);
        self.resources.push((comment, own));
        for (requisite, name) in &state.handlers {
            self.handler(state, (*requisite, name), &relations, properties.clone());
        }
    }

    /// The instance that calls `mod_watch`, if the state itself is called and the targets of a requisite changed.
    fn handler(
        &mut self,
        state: &StateCall<'_>,
        (requisite, name): (Requisite, &str),
        of_state: &Relations,
        mut properties: Object,
    ) {
        properties.remove("_exist");
        properties.insert("fun".to_owned(), "mod_watch".into());
        let mut relations = Relations { conditions: self.conditions(state, of_state), ..Relations::default() };
        relations.depends_on.push(state.id().to_string().into());
        for key in ["requireAny", "onFailure"] {
            if let Some(ids) = of_state.directives.get(key) {
                relations.directives.insert(key.to_owned(), ids.clone());
            }
        }
        relations.directive("onChanges", self.ids(state.targets(requisite), InstancePart::All));
        let instance = instance(state, name, properties, relations, None);
        if requisite == Requisite::Watch {
            return self.resources.push((String::new(), instance));
        }
        self.listeners.push((String::new(), instance));
        self.warn(state, Keyword::Requisite(requisite), &codes::DIFFERENT, |id| {
            format!("'{id}' reacts as soon as the changes are made, not at the end of the run")
        });
    }

    /// The conditions of a state, with what must change for it.
    fn conditions(&self, state: &StateCall<'_>, relations: &Relations) -> Vec<String> {
        let changed = [(Requisite::OnChanges, "and"), (Requisite::OnChangesAny, "or")].map(|(requisite, function)| {
            let targets = state.targets(requisite);
            (!targets.is_empty()).then(|| self.changed(function, targets))
        });
        let mut conditions = relations.conditions.clone();
        for condition in changed.into_iter().flatten() {
            if !conditions.contains(&condition) {
                conditions.push(condition);
            }
        }
        conditions
    }

    /// Adds a warning at the arguments that are a keyword.
    fn warn(&mut self, state: &StateCall<'_>, about: Keyword, code: Code, message: impl Fn(&str) -> String) {
        let places = state.arguments().filter(|entry| keyword(&entry.key) == Some(about)).map(|entry| entry.key_span);
        let place = places.last().unwrap_or(state.declaration.id.span);
        self.findings.push(Diagnostic::warning(code, place, message(&state.declaration.id.value)));
    }

    fn requisite(&mut self, state: &StateCall<'_>, requisite: Requisite, targets: &[usize], relations: &mut Relations) {
        let several = targets.len() > 1;
        let about = Keyword::Requisite(requisite);
        match requisite {
            Requisite::Require | Requisite::Watch => {
                add_new(&mut relations.depends_on, self.ids(targets, InstancePart::All));
            }
            Requisite::RequireAny => relations.directive("requireAny", self.ids(targets, InstancePart::Last)),
            Requisite::OnChanges => {
                relations.directive("onChanges", self.ids(targets, InstancePart::All));
                if several {
                    relations.conditions.push(self.changed("and", targets));
                }
            }
            Requisite::OnChangesAny => {
                relations.directive("onChanges", self.ids(targets, InstancePart::All));
                if state.requisites.contains_key(&Requisite::OnChanges) {
                    relations.conditions.push(self.changed("or", targets));
                }
                if several {
                    self.warn(state, about, &codes::DIFFERENT, |id| {
                        format!("'{id}' is skipped also when one of these fails, whether or not another changed")
                    });
                }
            }
            Requisite::OnFail | Requisite::OnFailAny => {
                relations.directive("onFailure", self.ids(targets, InstancePart::All));
                if several && requisite == Requisite::OnFail {
                    self.warn(state, about, &codes::DIFFERENT, |id| {
                        format!("'{id}' begins when one of these fails; for Idem all of them must")
                    });
                }
            }
            // What listens is an instance of its own.
            Requisite::Listen => {}
            Requisite::Prereq => {
                relations.directive("before", self.ids(targets, InstancePart::First));
                relations.conditions.push("false()".to_owned());
                self.warn(state, about, &codes::NOT_CARRIED, |id| {
                    format!(
                        "'{id}' is disabled: an instance cannot depend on a change that has not been made yet; replace its \
                         condition 'false()'"
                    )
                });
            }
        }
    }

    /// The ids of states, and of what reacts to changes for them.
    fn ids(&self, targets: &[usize], part: InstancePart) -> Vec<Value> {
        let states = targets.iter().filter_map(|at| self.compiled.states.get(*at));
        let ids = states.flat_map(|state| {
            let own = state.id();
            let handler = state.handlers.get(&Requisite::Watch);
            let handler =
                handler.map(|name| ResourceId { name: name.as_str().into(), type_name: own.type_name.clone() });
            match (part, handler) {
                (InstancePart::All, handler) => [Some(own), handler],
                (InstancePart::Last, Some(handler)) => [Some(handler), None],
                (InstancePart::First | InstancePart::Last, _) => [Some(own), None],
            }
        });
        ids.flatten().map(|id| id.to_string().into()).collect()
    }

    /// The condition that all or one of these changed, each by itself or by its `mod_watch`.
    fn changed(&self, function: &str, targets: &[usize]) -> String {
        let one = |target: &usize| {
            let ids = self.ids(std::slice::from_ref(target), InstancePart::All);
            call("or", ids.iter().filter_map(Value::as_str).map(|id| format!("stateChanged({})", quoted(id))))
        };
        call(function, targets.iter().map(one))
    }

    fn properties(&mut self, at: usize, state: &StateCall<'_>) -> Object {
        let mut properties = Object::new();
        match state
            .value(Keyword::Name)
            .filter(|_| state.resource_name.is_none())
            .filter(|name| name.as_str().is_some())
        {
            Some(name) => properties.insert("name".to_owned(), self.binder.value(at, name)),
            None => properties.insert("name".to_owned(), literal(state.argument)),
        };
        match state.function {
            "present" => {}
            "absent" => drop(properties.insert("_exist".to_owned(), false.into())),
            function => drop(properties.insert("fun".to_owned(), function.into())),
        }
        for Entry { key, value, .. } in state.arguments().filter(|entry| keyword(&entry.key).is_none()) {
            let value = self.binder.value(at, value);
            properties.insert(key.to_string(), value);
        }
        for entry in state.arguments().filter(|entry| keyword(&entry.key) == Some(Keyword::ArgBind)) {
            self.binder.bind(at, &entry.value, &mut properties);
        }
        if let Some(sensitive) = state.value(Keyword::Sensitive) {
            self.seal(state, sensitive, &mut properties);
        }
        properties
    }

    /// Wraps the properties that are secret, as DSC v3 does.
    fn seal(&mut self, state: &StateCall<'_>, names: &Node, properties: &mut Object) {
        for item in names.items().unwrap_or(std::slice::from_ref(names)) {
            let Some(name) = item.as_str() else {
                let finding = Diagnostic::error(&codes::FORM, item.span, "'sensitive' must name arguments");
                self.findings.push(finding.with_help("write '- ARGUMENT'"));
                continue;
            };
            let Some(property) = properties.get_mut(name) else {
                let id = &state.declaration.id.value;
                let message = format!("'sensitive' names '{name}', which is not an argument of '{id}'");
                self.findings.push(Diagnostic::warning(&codes::NOT_CARRIED, item.span, message));
                continue;
            };
            let plain = std::mem::take(property);
            let is_text = plain.as_str().is_some_and(|text| !text.starts_with("[reference("));
            let wrapping = if is_text { "secureString" } else { "secureObject" };
            *property = object([(wrapping, plain)]);
        }
    }

    /// Returns the parts that are not carried over, as written.
    fn metadata(&mut self, state: &StateCall<'_>) -> Option<Object> {
        let mut kept = Object::new();
        if let Some(meta) = &state.declaration.meta {
            kept.insert("META".to_owned(), meta.literal());
        }
        for Entry { key, key_span, value } in state.arguments() {
            if let Some(Keyword::NotCarried(why)) = keyword(key) {
                let message = format!("'{key}' of '{}' is not carried over: {why}", state.declaration.id.value);
                self.findings.push(Diagnostic::warning(&codes::NOT_CARRIED, *key_span, message));
                kept.insert(key.to_string(), value.literal());
            }
        }
        (!kept.is_empty()).then_some(kept)
    }
}

/// Which instances of a state are named, where it has two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InstancePart {
    All,
    /// The state itself.
    First,
    /// The one that comes last, and succeeds only if both do.
    Last,
}

/// A call of a function with these arguments; one argument stands for itself.
fn call(function: &str, arguments: impl Iterator<Item = String>) -> String {
    let arguments: Vec<String> = arguments.collect();
    if let [only] = arguments.as_slice() { only.clone() } else { format!("{function}({})", arguments.join(", ")) }
}

fn instance(
    state: &StateCall<'_>,
    name: &str,
    properties: Object,
    relations: Relations,
    metadata: Option<Object>,
) -> Value {
    let list = |items: Vec<Value>| (!items.is_empty()).then_some(Value::Array(items));
    let map = |members: Object| (!members.is_empty()).then_some(Value::Object(members));
    let name = if name.starts_with('[') { format!("[{name}") } else { name.to_owned() };
    let condition = match relations.conditions.as_slice() {
        [] => None,
        [one] => Some(format!("[{one}]").into()),
        several => Some(format!("[and({})]", several.join(", ")).into()),
    };
    let members = [
        ("name", Some(name.into())),
        ("type", Some(state.declaration.type_name.as_str().into())),
        ("dependsOn", list(relations.depends_on)),
        ("condition", condition),
        ("directives", map(relations.directives)),
        ("properties", map(properties)),
        ("metadata", metadata.map(|kept| object([("Idem", Value::Object(kept))]))),
    ];
    object(members.into_iter().filter_map(|(key, value)| Some((key, value?))))
}

fn object<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// The members of both; where both have one, that of the second.
fn merged(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Object(first), Value::Object(second)) => Value::Object(first.into_iter().chain(second).collect()),
        (_, second) => second,
    }
}
