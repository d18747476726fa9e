//! Loops: their rounds, and the names of their instances.

use std::sync::Arc;

use super::super::scope::forecast_weight;
use super::super::{Adjacent, Iteration, LoopItem, ScopeId, codes};
use crate::budget::{Cost, Exceeded, size};
use crate::diag::Diagnostic;
use crate::document::{Copy, Document, Instance, Over};
use crate::expr::Template;
use crate::graph::builder::Builder;
use crate::manifest::Manifest;
use crate::text::{self, Span};
use crate::value::{Object, Value};

/// How many iterations a loop may have; more is a typing error or an attack.
const MAX_ITERATIONS: i64 = 1_000_000;
/// Estimated memory of an instance of a loop until it has run, in bytes, besides its properties.
const INSTANCE_BYTES: u64 = 400;
/// The steps that a round of a loop around others counts for: it makes no instance itself, and so nothing else bounds it.
const ROUND_STEPS: u64 = 12;
/// How many variables and defaults are followed to the place of an item.
const MAX_FOLLOWED: usize = 8;

/// What all instances of loops have in common.
pub(super) struct Unrolled<'i> {
    pub(super) place: (ScopeId, usize),
    pub(super) instance: &'i Instance,
    pub(super) manifest: Arc<Manifest>,
    pub(super) stated: Option<Arc<Value>>,
}

/// The rounds of a loop.
enum Rounds {
    Count(i64),
    Items(Vec<Option<Arc<Value>>>),
}

impl Rounds {
    fn len(&self) -> i64 {
        match self {
            Self::Count(count) => *count,
            Self::Items(items) => i64::try_from(items.len()).unwrap_or(i64::MAX),
        }
    }

    /// The round of that index, as an iteration of the loop.
    fn round(&self, copy: &Copy, name: &Arc<str>, outer: Option<&Arc<Iteration>>, index: i64) -> Iteration {
        let item = match (self, &copy.over) {
            (Self::Items(items), Over::Each { called, .. }) => {
                let value = usize::try_from(index).ok().and_then(|index| items.get(index)).cloned().flatten();
                Some(LoopItem { called: Arc::clone(&called.value), value })
            }
            _ => None,
        };
        Iteration { name: Arc::clone(name), index, item, outer: outer.cloned() }
    }

    /// The rounds that the cost of all is judged by: the first, the last, and that with the largest item.
    fn judged(&self) -> Vec<i64> {
        let weight = |item: &Option<Arc<Value>>| item.as_ref().map_or(0, |item| item.weight());
        let heaviest = match self {
            Self::Count(_) => None,
            Self::Items(items) => (0..).zip(items).max_by_key(|(_, item)| weight(item)).map(|(index, _)| index),
        };
        [0, self.len() - 1].into_iter().chain(heaviest).collect()
    }
}

impl Builder<'_> {
    /// Adds the instances of loops within each other, the outer one first.
    pub(super) fn unroll(&mut self, unrolled: &Unrolled<'_>, loops: &[Copy], outer: Option<&Arc<Iteration>>) {
        let Some((copy, inner)) = loops.split_first() else { return };
        let scope = unrolled.place.0;
        let Some(rounds) = self.rounds(scope, copy, outer) else { return self.is_incomplete = true };
        let name: Arc<str> = copy.name.value.as_str().into();
        let fits = if inner.is_empty() {
            self.take(rounds.len(), unrolled.instance) && self.fits(unrolled, (copy, &name, outer), &rounds)
        } else {
            self.goes_round(copy, &rounds)
        };
        for index in 0..if fits { rounds.len() } else { 0 } {
            if self.room.is_used_up() || self.findings.leave_out_errors() {
                return;
            }
            let iteration = rounds.round(copy, &name, outer, index);
            if inner.is_empty() {
                let Unrolled { place, instance, manifest, stated } = unrolled;
                self.node(*place, instance, Arc::clone(manifest), Some(iteration), stated.clone());
            } else {
                self.unroll(unrolled, inner, Some(&Arc::new(iteration)));
            }
        }
    }

    /// Returns whether the budget has room for the rounds of a loop around others, which take time even where those have none.
    fn goes_round(&mut self, copy: &Copy, rounds: &Rounds) -> bool {
        let all = Cost { steps: ROUND_STEPS, bytes: 0 }.times(rounds.len().unsigned_abs());
        let Err(exceeded) = self.budget.spend(all) else { return true };
        self.too_large(copy.over.template().span, format!("the document takes {exceeded}"));
        false
    }

    /// Returns whether the properties of all iterations fit into the budget.
    fn fits(
        &mut self,
        unrolled: &Unrolled<'_>,
        (copy, name, outer): (&Copy, &Arc<str>, Option<&Arc<Iteration>>),
        rounds: &Rounds,
    ) -> bool {
        let count = rounds.len();
        let Some(properties) = unrolled.instance.properties.as_ref().filter(|_| count > 1) else { return true };
        let before = self.budget.spent().steps;
        let judged = rounds.judged();
        let weight = |index: &i64| {
            let iteration = rounds.round(copy, name, outer, *index);
            forecast_weight(properties, &self.place(unrolled.place.0, Some(&iteration)))
        };
        let bytes = INSTANCE_BYTES + judged.iter().map(weight).max().unwrap_or(0);
        let steps = (self.budget.spent().steps - before).div_ceil(judged.len() as u64);
        let all = Cost { steps, bytes }.times(count.unsigned_abs());
        let Err(exceeded) = self.budget.spend(all) else { return true };
        let message = match exceeded {
            Exceeded::Bytes { .. } => {
                format!("{count} iterations of about {} each take {}", size(bytes), size(all.bytes))
            }
            Exceeded::Steps { .. } => {
                format!("{count} iterations of about {steps} steps each take {} steps", all.steps)
            }
        };
        self.too_large(copy.over.template().span, format!("{message}: the document takes {exceeded}"));
        false
    }

    fn rounds(&mut self, scope: ScopeId, copy: &Copy, outer: Option<&Arc<Iteration>>) -> Option<Rounds> {
        let template = copy.over.template();
        let outer = outer.map(|outer| &**outer);
        let is_count = matches!(copy.over, Over::Count(_));
        let Some(value) = self.value(scope, outer, template) else {
            // One iteration stands for all.
            let one = if is_count { Rounds::Count(1) } else { Rounds::Items(vec![None]) };
            return self.is_open(scope, outer, template).then_some(one);
        };
        if is_count { self.count(template, &value) } else { self.items(template, value) }
    }

    fn count(&mut self, node: &Template, value: &Value) -> Option<Rounds> {
        let count = value.as_i64().filter(|count| (0..=MAX_ITERATIONS).contains(count));
        if count.is_none() {
            let message = format!("'count' must be between 0 and {MAX_ITERATIONS}, found {}", shown(value));
            let finding = Diagnostic::error(&codes::BAD_COUNT, node.span, message);
            self.findings.push(match value {
                Value::String(_) => finding.with_help("convert it with int()"),
                _ => finding.with_help("use a number of instances, or an expression that gives one"),
            });
        }
        count.map(Rounds::Count)
    }

    /// The elements of a list, or an object of key and value for each member.
    fn items(&mut self, node: &Template, value: Value) -> Option<Rounds> {
        let value = self.keep(value, node.span)?;
        let items: Vec<Value> = match value {
            Value::Array(items) => items,
            Value::Object(members) => members.into_iter().map(member).collect(),
            Value::Sealed(_) => {
                let finding = Diagnostic::error(&codes::SECRET_HERE, node.span, "'each' cannot be a secret");
                self.findings.push(finding.with_help("how many there are is shown; its items may have secret members"));
                return None;
            }
            other => {
                let message = format!("'each' must be a list or an object, found {}", shown(&other));
                let finding = Diagnostic::error(&codes::BAD_COUNT, node.span, message);
                let is_count = other.as_i64().is_some();
                self.findings.push(if is_count {
                    finding.with_help("a number of instances is 'count'")
                } else {
                    finding.with_help("write a list: each: [a, b]")
                });
                return None;
            }
        };
        if items.len() as u64 > MAX_ITERATIONS.unsigned_abs() {
            let message = format!("'each' must have at most {MAX_ITERATIONS} items, found {}", items.len());
            self.error(&codes::BAD_COUNT, node.span, message);
            return None;
        }
        Some(Rounds::Items(items.into_iter().map(|item| Some(Arc::new(item))).collect()))
    }

    /// The name of an instance; one that is not known yet, where that may be, is what is written. In a loop over items a name that
    /// is written as text, or none, is followed by the items.
    pub(super) fn name(
        &mut self,
        scope: ScopeId,
        iteration: Option<&Iteration>,
        instance: &Instance,
    ) -> Option<Arc<str>> {
        if let (None, text::Kind::String(written)) = (iteration, &instance.name.kind) {
            return Some((**written).into());
        }
        if let (Some(iteration), text::Kind::String(written)) = (iteration, &instance.name.kind)
            && instance.copy.iter().any(|copy| matches!(copy.over, Over::Each { .. }))
        {
            if iteration.outward().any(Iteration::is_open) {
                self.graph.scopes[scope.index()].open.names.insert(instance.type_name.value.clone());
            }
            let mut parts: Vec<String> = iteration.outward().map(Iteration::key).collect();
            parts.extend(Some(written.to_string()).filter(|written| !written.is_empty()));
            parts.reverse();
            return Some(parts.join("-").into());
        }
        let what = if iteration.is_some() { "Copy name" } else { "Resource name" };
        let name = self.text(scope, iteration, &instance.name, what);
        if name.is_some() || !self.is_open(scope, iteration, &instance.name) {
            return name.map(Arc::from);
        }
        self.graph.scopes[scope.index()].open.names.insert(instance.type_name.value.clone());
        let written = instance.name.literal().as_str().unwrap_or_default().to_owned();
        Some(match iteration {
            Some(iteration) => format!("{written} {}", iteration.index).into(),
            None => written.into(),
        })
    }

    pub(super) fn duplicate(&mut self, first: &Adjacent, instance: &Instance, iteration: Option<&Iteration>) {
        let (name, type_name) = (first.0.name(), &instance.type_name.value);
        let message = format!("Resource '{name}' of type '{type_name}' is specified more than once");
        let earlier = self.graph.declaration(first.node()).name.span;
        let finding = Diagnostic::error(&codes::DUPLICATE_INSTANCE, instance.name.span, message);
        let finding = if earlier == instance.name.span {
            match self.same_items(first, instance, iteration) {
                Some(([earlier, later], help)) => {
                    Diagnostic { span: Some(later), ..finding }.with_label(earlier, "the first one").with_help(help)
                }
                None => finding.with_help("make the name differ in each iteration with copyIndex()"),
            }
        } else {
            let help = if name.is_empty() { "give each a 'name'" } else { "give one of them another name" };
            finding.with_label(earlier, "the first one").with_help(help)
        };
        self.findings.push(finding);
    }

    /// The places of two items that make two instances of a loop have one name, and what there is to say of them.
    fn same_items(
        &self,
        first: &Adjacent,
        instance: &Instance,
        iteration: Option<&Iteration>,
    ) -> Option<([Span; 2], String)> {
        let node = self.graph.node(first.node());
        let rounds = node.iteration.as_deref()?.outward().zip(iteration?.outward());
        let differ = |((earlier, later), over): ((&Iteration, &Iteration), &Over)| {
            let Over::Each { items, .. } = over else { return None };
            let place = |iteration: &Iteration| {
                let document = &self.graph.scope(node.scope).document;
                self.item_place(node.scope, document, items, (iteration.index, MAX_FOLLOWED))
            };
            let help = format!(
                "two items of the loop '{}' make this name, those of the indexes {} and {}; give them names that differ",
                later.name, earlier.index, later.index
            );
            (earlier.index != later.index).then(|| ([place(earlier), place(later)], help))
        };
        rounds.zip(instance.copy.iter().rev().map(|copy| &copy.over)).find_map(differ)
    }

    /// Where an item is written, as far as that can be followed.
    fn item_place(
        &self,
        scope: ScopeId,
        document: &Document,
        items: &Template,
        (index, followed): (i64, usize),
    ) -> Span {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        let place = match &items.kind {
            text::Kind::Array(items) => items.get(at).map(|item| item.span),
            text::Kind::Object(entries) => entries.get(at).map(|entry| entry.key_span),
            text::Kind::Compiled(expression) if followed > 0 => {
                expression.whole().call().and_then(|(builtin, call)| {
                    let argument = call.arguments().next()?;
                    let source = self.source_of(scope, document, builtin.name, argument.text()?)?;
                    Some(self.item_place(scope, document, source, (index, followed - 1)))
                })
            }
            _ => None,
        };
        place.unwrap_or(items.span)
    }

    /// The value of a variable or the default of a parameter, as it is written in the document.
    fn source_of<'d>(
        &self,
        scope: ScopeId,
        document: &'d Document,
        function: &str,
        name: &str,
    ) -> Option<&'d Template> {
        match function {
            "variables" => document.variables.iter().find(|each| each.name.value == name).map(|each| &each.value),
            // What was supplied is written elsewhere.
            "parameters" if scope == ScopeId(0) && !self.inputs.parameters.values.contains_key(name) => {
                document.parameters.iter().find(|each| each.name.value == name)?.default.as_ref()
            }
            _ => None,
        }
    }
}

fn member((key, value): (String, Value)) -> Value {
    let members = [("key".to_owned(), Value::String(key)), ("value".to_owned(), value)];
    Value::Object(Object::from_iter(members))
}

/// A value for a message: a number itself, of anything else what it is.
fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        other => other.described().to_owned(),
    }
}
