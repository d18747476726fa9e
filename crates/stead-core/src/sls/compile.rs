//! From declarations to states: one for each function and name, in order, with what each depends on.

use std::collections::BTreeMap;

use super::keyword::{Keyword, Requisite, keyword};
use super::read::{Declaration, Read};
use super::{codes, glob, template};
use crate::diag::{Diagnostic, nearest};
use crate::id::ResourceId;
use crate::text::{Entry, Kind, Node, Span};

/// All states, in the order in which Idem would call them one at a time.
#[derive(Default)]
pub(super) struct Compiled<'a> {
    pub(super) states: Vec<State<'a>>,
    pub(super) findings: Vec<Diagnostic>,
}

/// A state function that is called once.
pub(super) struct State<'a> {
    pub(super) declaration: &'a Declaration,
    pub(super) function: &'a str,
    /// The entry of `names` that it was made for.
    pub(super) resource_name: Option<&'a str>,
    /// Arguments of that entry.
    overrides: &'a [Entry],
    /// What the function gets as `name`.
    pub(super) argument: &'a str,
    /// The name of the instance.
    pub(super) name: String,
    order: i64,
    /// The states that it depends on, by their places.
    pub(super) requisites: BTreeMap<Requisite, Vec<usize>>,
}

impl<'a> State<'a> {
    /// The id of its instance.
    pub(super) fn id(&self) -> ResourceId {
        ResourceId { type_name: self.declaration.type_name.clone(), name: self.name.as_str().into() }
    }

    /// The arguments of the function, and those that Idem reads.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &'a Entry> {
        let overrides = self.overrides;
        let is_own = move |each: &&Entry| overrides.iter().all(|other| other.key != each.key);
        self.declaration.arguments.iter().filter(is_own).chain(overrides)
    }

    /// The value of an argument that Idem reads; the last one counts.
    pub(super) fn value(&self, wanted: Keyword) -> Option<&'a Node> {
        self.arguments().filter(|each| keyword(&each.key) == Some(wanted)).last().map(|each| &each.value)
    }
}

pub(super) fn compile(read: &Read) -> Compiled<'_> {
    let mut compiled = Compiled::default();
    for declaration in &read.declarations {
        for function in &declaration.functions {
            compiled.add(declaration, function);
        }
    }
    compiled.states.sort_by_key(|state| state.order);
    compiled.name();
    compiled.link();
    compiled
}

/// Where `order: last` is; nothing has so many states.
const LAST: i64 = 1 << 40;

/// Where states without `order` begin.
const UNORDERED: i64 = 100_000;

impl<'a> Compiled<'a> {
    fn error(&mut self, code: crate::diag::Code, span: Span, message: String, help: &str) {
        self.findings.push(Diagnostic::error(code, span, message).with_help(help));
    }

    fn add(&mut self, declaration: &'a Declaration, function: &'a str) {
        let last = |wanted| declaration.values(wanted).last().map(|each| &each.value);
        let order = match last(Keyword::Order) {
            Some(node) => self.order(node),
            None => i64::try_from(self.states.len()).unwrap_or(LAST) + UNORDERED,
        };
        let stated = last(Keyword::Name).and_then(Node::as_str).filter(|text| !template::is_marked(text));
        let argument = stated.unwrap_or(&declaration.id.value);
        let state = |resource_name, overrides, argument| State {
            declaration,
            function,
            resource_name,
            overrides,
            argument,
            name: String::new(),
            order,
            requisites: BTreeMap::new(),
        };
        let Some(names) = last(Keyword::Names) else { return self.states.push(state(None, &[], argument)) };
        let Kind::Array(entries) = &names.kind else {
            return self.error(&codes::FORM, names.span, "'names' must be a list".to_owned(), "write '- NAME'");
        };
        for entry in entries {
            let name = entry.as_str().filter(|text| !template::is_marked(text));
            match (name, entry.entries()) {
                (Some(name), _) => self.states.push(state(Some(name), &[], name)),
                (None, Some([Entry { key, value, .. }])) => {
                    let overrides = value.items().and_then(|items| items.first()).and_then(Node::entries);
                    self.states.push(state(Some(key), overrides.or(value.entries()).unwrap_or_default(), key));
                }
                _ => self.error(&codes::FORM, entry.span, "this is not a name".to_owned(), "write '- NAME'"),
            }
        }
    }

    fn order(&mut self, node: &Node) -> i64 {
        let number = if let Kind::Number(number) = &node.kind { number.as_i64() } else { None };
        match (node.as_str(), number) {
            (Some("first"), _) => 0,
            (Some("last"), _) => LAST,
            (_, Some(number)) if number < 0 => LAST.saturating_add(number),
            (_, Some(number)) => number,
            _ => {
                let message = "'order' must be 'first', 'last' or an integer".to_owned();
                self.error(&codes::FORM, node.span, message, "remove it for the order of the file");
                UNORDERED
            }
        }
    }

    /// Names the instances. Where several functions of a module stand below one id, they tell the instances apart.
    fn name(&mut self) {
        let base = |state: &State<'_>| match state.resource_name {
            Some(name) => format!("{}[{name}]", state.declaration.id.value),
            None => state.declaration.id.value.clone(),
        };
        let mut count: BTreeMap<(&str, String), usize> = BTreeMap::new();
        for state in &self.states {
            *count.entry((&state.declaration.module.value, base(state))).or_default() += 1;
        }
        for state in &mut self.states {
            let name = base(state);
            let is_alone = count.get(&(state.declaration.module.value.as_str(), name.clone())) == Some(&1);
            state.name = if is_alone { name } else { format!("{name}.{}", state.function) };
        }
    }

    fn link(&mut self) {
        for at in 0..self.states.len() {
            let Some(arguments) = self.states.get(at).map(|state| state.arguments().collect::<Vec<_>>()) else {
                continue;
            };
            for argument in arguments {
                let (requisite, is_reversed) = match keyword(&argument.key) {
                    Some(Keyword::Requisite(requisite)) => (requisite, false),
                    Some(Keyword::RequisiteIn(requisite)) => (requisite, true),
                    _ => continue,
                };
                for named in named(&argument.value) {
                    let targets = self.targets(at, &argument.key, &named);
                    for target in targets {
                        let (from, to) = if is_reversed { (target, at) } else { (at, target) };
                        self.depend(from, requisite, to);
                    }
                }
            }
        }
    }

    fn depend(&mut self, from: usize, requisite: Requisite, to: usize) {
        let Some(state) = self.states.get_mut(from) else { return };
        let others = state.requisites.entry(requisite).or_default();
        if !others.contains(&to) {
            others.push(to);
        }
    }

    /// The states that a requisite of a state names, without itself where it matches a pattern.
    fn targets(&mut self, at: usize, key: &str, named: &Named<'_>) -> Vec<usize> {
        let mut found = self.find(named.module, named.target);
        let is_broad = glob::is_pattern(named.target) || named.module == Some("sls");
        found.retain(|other| *other != at || !is_broad);
        if found == [at] {
            let message = format!("'{key}' of '{}' names itself", named.target);
            self.error(&codes::UNKNOWN_STATE, named.span, message, "remove it");
            found.clear();
        } else if found.is_empty() && !is_broad {
            let finding = self.unknown(&format!("'{key}' names"), named);
            self.findings.push(finding);
        } else if found.is_empty() {
            let message = format!("'{key}' matches no state: '{}'", named.target);
            self.error(&codes::UNKNOWN_STATE, named.span, message, "remove it, or include the file with the states");
        }
        found
    }

    /// The states that a module and an id stand for.
    pub(super) fn find(&self, module: Option<&str>, target: &str) -> Vec<usize> {
        let (id, resource_name) = match target.split_once('[') {
            Some((id, rest)) => (id, rest.split(']').next()),
            None => (target, None),
        };
        let matches = |state: &State<'_>| {
            let declaration = state.declaration;
            if module == Some("sls") {
                return glob::matches(target, &declaration.sls);
            }
            module.is_none_or(|module| module == declaration.module.value)
                && (glob::matches(id, &declaration.id.value) || glob::matches(id, state.argument))
                && resource_name.is_none_or(|name| state.resource_name == Some(name))
        };
        (0..).zip(&self.states).filter(|(_, state)| matches(state)).map(|(at, _)| at).collect()
    }

    /// The name of the instance that calls `mod_watch` for a state; no other has it.
    pub(super) fn handler_name(&self, state: &State<'_>, suffix: &str) -> String {
        let mut name = format!("{}_{suffix}", state.name);
        let is_same = |other: &State<'_>, name: &str| {
            other.name == name && other.declaration.type_name == state.declaration.type_name
        };
        while self.states.iter().any(|other| is_same(other, &name)) {
            name.push('_');
        }
        name
    }

    /// That there is no such state, and what was probably meant.
    pub(super) fn unknown(&self, who: &str, named: &Named<'_>) -> Diagnostic {
        let label = named.module.map_or_else(String::new, |module| format!(" ({module})"));
        let message = format!("{who} '{}'{label}, which does not exist", named.target);
        let finding = Diagnostic::error(&codes::UNKNOWN_STATE, named.span, message);
        let shorter = named.module.and_then(|module| module.rsplit_once('.')).map(|(module, _)| module);
        if let Some(module) = shorter.filter(|module| !self.find(Some(module), named.target).is_empty()) {
            return finding.with_help(format!("write the module without the function: '{module}'"));
        }
        let others = self.find(None, named.target).into_iter().find_map(|at| self.states.get(at));
        if let Some(other) = others.filter(|_| named.module.is_some()) {
            return finding
                .with_help(format!("'{}' is of the module '{}'", named.target, other.declaration.module.value));
        }
        let ids = self.states.iter().map(|state| state.declaration.id.value.as_str());
        match nearest(named.target, ids) {
            Some(meant) => finding.with_help(format!("did you mean '{meant}'?")),
            None => finding.with_help("include or convert the file that declares it"),
        }
    }
}

/// A state as a requisite names it.
pub(super) struct Named<'a> {
    pub(super) module: Option<&'a str>,
    pub(super) target: &'a str,
    pub(super) span: Span,
}

/// The states that a requisite names: by `module: id`, by `module: [id, ..]` or by the id alone.
fn named(node: &Node) -> Vec<Named<'_>> {
    match &node.kind {
        Kind::String(target) => vec![Named { module: None, target, span: node.span }],
        Kind::Array(items) => items.iter().flat_map(named).collect(),
        Kind::Object(entries) => entries
            .iter()
            .flat_map(|Entry { key, value, .. }| {
                ids(value).into_iter().map(move |(target, span)| Named { module: Some(key), target, span })
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The ids in the value of a module: one, or a list of them or of objects with one as their key.
fn ids(node: &Node) -> Vec<(&str, Span)> {
    match &node.kind {
        Kind::String(id) => vec![(id, node.span)],
        Kind::Array(items) => items.iter().flat_map(ids).collect(),
        Kind::Object(entries) => entries.iter().map(|entry| (&*entry.key, entry.key_span)).collect(),
        _ => Vec::new(),
    }
}
