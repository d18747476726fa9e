//! From declarations to states: one for each function and name, in order, with what each depends on.

use std::collections::{BTreeMap, BTreeSet};

use super::keyword::{Keyword, Requisite, keyword};
use super::read::{Declaration, Read};
use super::{codes, glob, template};
use stead_core::diag::{Diagnostic, nearest};
use stead_core::graph::{self, Cycle, sort};
use stead_core::id::{ResourceId, TypeName};
use stead_core::text::{Entry, Kind, Node, Span};

/// All states, in the order in which Idem would call them one at a time.
#[derive(Default)]
pub(super) struct Compiled<'a> {
    pub(super) states: Vec<StateCall<'a>>,
    /// Their places by their ids and by their names, ascending.
    by_text: BTreeMap<&'a str, Vec<usize>>,
    pub(super) findings: Vec<Diagnostic>,
}

/// A state function that is called once.
pub(super) struct StateCall<'a> {
    pub(super) declaration: &'a Declaration,
    pub(super) function: &'a str,
    /// The entry of `names` that it was made for.
    pub(super) resource_name: Option<&'a str>,
    /// Arguments of that entry.
    overrides: &'a [Entry],
    /// The value that the function gets as `name`.
    pub(super) argument: &'a str,
    /// Where its id stands, or its entry of `names`.
    pub(super) span: Span,
    /// The name of the instance.
    pub(super) name: String,
    order: i64,
    /// The states that it depends on, by their places.
    pub(super) requisites: BTreeMap<Requisite, Vec<usize>>,
    /// The names of the instances that call `mod_watch` for it, by the requisite that asks for them. A disabled state has none.
    pub(super) handlers: BTreeMap<Requisite, String>,
}

impl<'a> StateCall<'a> {
    /// The id of its instance.
    pub(super) fn id(&self) -> ResourceId {
        ResourceId { type_name: self.declaration.type_name.clone(), name: self.name.as_str().into() }
    }

    /// Its id, with its entry of `names`.
    fn written_name(&self) -> String {
        match self.resource_name {
            Some(name) => format!("{}[{name}]", self.declaration.id.value),
            None => self.declaration.id.value.clone(),
        }
    }

    /// Returns the name by which messages call it.
    fn label(&self) -> String {
        format!("'{}' ({}.{})", self.written_name(), self.declaration.module.value, self.function)
    }

    /// The states that a requisite of it names.
    pub(super) fn targets(&self, requisite: Requisite) -> &[usize] {
        self.requisites.get(&requisite).map_or(&[], Vec::as_slice)
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
    compiled.refuse_duplicates();
    compiled.index();
    compiled.link();
    compiled.name_handlers();
    compiled
}

/// Where `order: last` is; nothing has so many states.
const LAST: i64 = 1 << 40;

/// Where states without `order` begin.
const UNORDERED: i64 = 100_000;

impl<'a> Compiled<'a> {
    fn error(&mut self, code: stead_core::diag::Code, span: Span, message: String, help: &str) {
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
        let state = |resource_name, overrides, argument, span| StateCall {
            declaration,
            function,
            resource_name,
            overrides,
            argument,
            span,
            name: String::new(),
            order,
            requisites: BTreeMap::new(),
            handlers: BTreeMap::new(),
        };
        let Some(names) = last(Keyword::Names) else {
            return self.states.push(state(None, &[], argument, declaration.id.span));
        };
        let Kind::Array(entries) = &names.kind else {
            return self.error(&codes::FORM, names.span, "'names' must be a list".to_owned(), "write '- NAME'");
        };
        for entry in entries {
            match (entry.as_str(), entry.entries()) {
                (Some(name), _) => self.states.push(state(Some(name), &[], name, entry.span)),
                (None, Some([Entry { key, key_span, value }])) => {
                    let overrides = value.items().and_then(|items| items.first()).and_then(Node::entries);
                    let overrides = overrides.or(value.entries()).unwrap_or_default();
                    self.states.push(state(Some(key), overrides, key, *key_span));
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
        let mut count: BTreeMap<(&str, String), usize> = BTreeMap::new();
        for state in &self.states {
            *count.entry((&state.declaration.module.value, state.written_name())).or_default() += 1;
        }
        for state in &mut self.states {
            let name = state.written_name();
            let is_alone = count.get(&(state.declaration.module.value.as_str(), name.clone())) == Some(&1);
            state.name = if is_alone { name } else { format!("{name}.{}", state.function) };
        }
    }

    /// Two states cannot become the same instance.
    fn refuse_duplicates(&mut self) {
        let mut first: BTreeMap<ResourceId, Span> = BTreeMap::new();
        for state in &self.states {
            let Some(earlier) = first.insert(state.id(), state.span) else { continue };
            first.insert(state.id(), earlier);
            let message = format!("{} becomes the same instance as an earlier state", state.label());
            let finding = Diagnostic::error(&graph::codes::DUPLICATE_INSTANCE, state.span, message);
            self.findings
                .push(finding.with_label(earlier, "the first one").with_help("remove one, or give it another id"));
        }
    }

    fn index(&mut self) {
        for (at, state) in (0..).zip(&self.states) {
            let id = state.declaration.id.value.as_str();
            self.by_text.entry(id).or_default().push(at);
            if state.argument != id {
                self.by_text.entry(state.argument).or_default().push(at);
            }
        }
    }

    /// Names the instances that call `mod_watch`, as no state is named.
    fn name_handlers(&mut self) {
        let taken: BTreeSet<ResourceId> = self.states.iter().map(StateCall::id).collect();
        for state in self.states.iter_mut().filter(|state| !state.requisites.contains_key(&Requisite::Prereq)) {
            for (requisite, suffix) in [(Requisite::Watch, "watch"), (Requisite::Listen, "listen")] {
                if state.requisites.contains_key(&requisite) {
                    let name = free_name(format!("{}_{suffix}", state.name), &state.declaration.type_name, &taken);
                    state.handlers.insert(requisite, name);
                }
            }
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
                    let targets = match named {
                        Ok(named) => self.targets(at, &argument.key, &named),
                        Err(span) => {
                            let message = format!("'{}' must name states", argument.key);
                            self.error(&codes::FORM, span, message, "write '- module: id'");
                            continue;
                        }
                    };
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
    fn targets(&mut self, at: usize, key: &str, named: &StateTarget<'_>) -> Vec<usize> {
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
        if module == Some("sls") {
            return self.matching(|state| glob::matches(target, &state.declaration.sls));
        }
        let is_wanted = |state: &StateCall<'_>| {
            module.is_none_or(|module| module == state.declaration.module.value)
                && resource_name.is_none_or(|name| state.resource_name == Some(name))
        };
        if glob::is_pattern(id) {
            let is_named = |state: &StateCall<'_>| {
                glob::matches(id, &state.declaration.id.value) || glob::matches(id, state.argument)
            };
            return self.matching(|state| is_wanted(state) && is_named(state));
        }
        let places = self.by_text.get(id).into_iter().flatten().copied();
        places.filter(|at| self.states.get(*at).is_some_and(is_wanted)).collect()
    }

    fn matching(&self, is_wanted: impl Fn(&StateCall<'_>) -> bool) -> Vec<usize> {
        (0..).zip(&self.states).filter(|(_, state)| is_wanted(state)).map(|(at, _)| at).collect()
    }

    /// The states that each waits for, because of its requisites and of these references from one to another.
    pub(super) fn needs(&self, references: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let mut needs = vec![Vec::new(); self.states.len()];
        let mut add = |from: usize, to: usize| needs.get_mut(from).map(|all: &mut Vec<usize>| all.push(to));
        for (at, state) in (0..).zip(&self.states) {
            for (requisite, targets) in &state.requisites {
                for target in targets {
                    match requisite {
                        Requisite::Prereq => add(*target, at),
                        // What listens is an instance of its own, which nothing waits for.
                        Requisite::Listen => None,
                        _ => add(at, *target),
                    };
                }
            }
        }
        for (from, to) in references {
            add(*from, *to);
        }
        needs
    }

    /// That states wait for each other, if they do.
    pub(super) fn cycle(&self, references: &[(usize, usize)]) -> Option<Diagnostic> {
        let Cycle(members) = sort(&self.needs(references)).err()?;
        let states: Vec<&StateCall<'_>> = members.iter().filter_map(|at| self.states.get(*at)).collect();
        let (first, others) = states.split_first()?;
        let chain: Vec<String> = states.iter().chain([first]).map(|state| state.label()).collect();
        let message = format!("Circular dependency: {}", chain.join(" -> "));
        let finding =
            Diagnostic::error(&graph::codes::CYCLE, first.span, message).with_help("remove one of these dependencies");
        let labelled = |finding: Diagnostic, state: &&StateCall<'_>| finding.with_label(state.span, state.label());
        Some(others.iter().fold(finding, labelled))
    }

    /// That there is no such state, and what was probably meant.
    pub(super) fn unknown(&self, who: &str, named: &StateTarget<'_>) -> Diagnostic {
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
pub(super) struct StateTarget<'a> {
    pub(super) module: Option<&'a str>,
    pub(super) target: &'a str,
    pub(super) span: Span,
}

/// The first name, from this one on, that no state of the type has.
fn free_name(mut name: String, type_name: &TypeName, taken: &BTreeSet<ResourceId>) -> String {
    while taken.contains(&ResourceId { type_name: type_name.clone(), name: name.as_str().into() }) {
        name.push('_');
    }
    name
}

/// The states that a requisite names: by `module: id`, by `module: [id, ..]` or by the id alone; or where something else stands.
fn named(node: &Node) -> Vec<Result<StateTarget<'_>, Span>> {
    match &node.kind {
        Kind::String(target) => vec![Ok(StateTarget { module: None, target, span: node.span })],
        Kind::Array(items) => items.iter().flat_map(named).collect(),
        Kind::Object(entries) => entries
            .iter()
            .flat_map(|Entry { key, value, .. }| {
                let named = move |(target, span)| StateTarget { module: Some(key), target, span };
                ids(value).into_iter().map(move |id| id.map(named))
            })
            .collect(),
        _ => vec![Err(node.span)],
    }
}

/// The ids in the value of a module: one, or a list of them or of objects with one as their key.
fn ids(node: &Node) -> Vec<Result<(&str, Span), Span>> {
    match &node.kind {
        Kind::String(id) => vec![Ok((id, node.span))],
        Kind::Array(items) => items.iter().flat_map(ids).collect(),
        Kind::Object(entries) => entries.iter().map(|entry| Ok((&*entry.key, entry.key_span))).collect(),
        _ => vec![Err(node.span)],
    }
}
