//! The view of expressions of a document, and evaluating the values that hold them.

use std::sync::Arc;

use super::{Facts, Iteration, Scope, ScopeId};
use crate::budget::Budget;
use crate::diag::Diagnostic;
use crate::document::UserFunction;
use crate::expr::{Answer, Environment, Expression, FactKey, Stop, Template, ValueKind, kinds_of};
use crate::id::ResourceId;
use crate::text::{self, Entry, Sources, Span};
use crate::value::{Object, Seal, Value, pointer};

/// Where an expression stands: the scopes around it, and the iteration of its loop.
///
/// It sees what is known before anything runs; [`crate::run`] adds what instances answered.
#[derive(Clone, Copy)]
pub struct ScopeView<'a> {
    /// Every scope of the graph, as far as it is built.
    pub scopes: &'a [Scope],
    /// The scope that the expression stands in.
    pub scope: ScopeId,
    /// The iteration of its loop.
    pub iteration: Option<&'a Iteration>,
    /// The facts of the machine.
    pub facts: &'a Facts,
    /// Where secrets are kept.
    pub seal: &'a dyn Seal,
    /// The budget that all evaluations share; `None` once the run has begun, which counts what it holds.
    pub budget: Option<&'a Budget>,
}

impl<'a> ScopeView<'a> {
    /// The scope it stands in, and those around it that it sees, from the inside out.
    fn visible(&self) -> impl Iterator<Item = &'a Scope> + use<'a> {
        let scopes = self.scopes;
        std::iter::successors(scopes.get(self.scope.index()), |scope| scopes.get(scope.outer?.index()))
    }

    /// The iterations that it stands in, from the inside out: also of what holds it, as far as it sees that.
    fn iterations(&self) -> impl Iterator<Item = &'a Iteration> + use<'a> {
        let around = self.visible().filter_map(|scope| scope.iteration.as_deref());
        self.iteration.into_iter().chain(around).flat_map(Iteration::outward)
    }

    /// The innermost value of that name. What is declared in an inner scope without a value hides that of an outer one.
    fn look_up(
        &self,
        name: &str,
        values: fn(&'a Scope) -> &'a Object,
        open: impl Fn(&'a Scope) -> Option<Kinds>,
        names: fn(&'a Scope) -> Vec<&'a String>,
    ) -> Answer {
        let answer = |scope: &'a Scope| {
            let value = values(scope).get(name).map(|value| Answer::Value(value.clone()));
            value.or_else(|| open(scope).map(Answer::Open))
        };
        let known = |scope: &'a Scope| values(scope).keys().chain(names(scope)).cloned();
        let absent = || Answer::Absent { known: self.visible().flat_map(known).collect() };
        self.visible().find_map(answer).unwrap_or_else(absent)
    }
}

impl Environment for ScopeView<'_> {
    fn parameter(&self, name: &str) -> Answer {
        let open = |scope: &Scope| {
            let declared = scope.open.parameters.get(name).map(|data_type| kinds_of(*data_type));
            declared.or_else(|| scope.document.unreadable.contains(name).then_some(ValueKind::VALUES))
        };
        self.look_up(
            name,
            |scope| &scope.parameters,
            open,
            |scope| scope.open.parameters.keys().chain(&scope.document.unreadable).collect(),
        )
    }

    fn variable(&self, name: &str) -> Answer {
        let open = |scope: &Scope| {
            let is_open = scope.open.variables.contains(name) || scope.document.unreadable.contains(name);
            is_open.then_some(ValueKind::VALUES)
        };
        self.look_up(name, |scope| &scope.variables, open, |scope| scope.open.variables.iter().collect())
    }

    fn is_declared(&self, variable: &str) -> bool {
        self.visible().any(|scope| scope.document.variables.iter().any(|each| each.name.value == variable))
    }

    fn copy_index(&self, loop_name: Option<&str>) -> Answer {
        let Some(innermost) = self.iteration else { return Answer::NotHere };
        match innermost.outward().find(|each| loop_name.is_none_or(|name| name == &*each.name)) {
            Some(iteration) => Answer::Value(iteration.index.into()),
            None => Answer::Absent { known: innermost.outward().map(|each| each.name.to_string()).collect() },
        }
    }

    fn item(&self, called: &str) -> Answer {
        let items = || self.iterations().filter_map(|iteration| iteration.item.as_ref());
        match items().find(|item| *item.called == *called).map(|item| &item.value) {
            Some(Some(value)) => Answer::Value((**value).clone()),
            Some(None) => Answer::Open(ValueKind::VALUES),
            None => Answer::Absent { known: items().map(|item| item.called.to_string()).collect() },
        }
    }

    fn fact(&self, key: &FactKey) -> Option<Value> {
        self.facts.get(key)?.as_ref().ok().cloned()
    }

    fn folder(&self) -> Arc<str> {
        self.scopes.get(self.scope.index()).map(|scope| Arc::clone(&scope.folder)).unwrap_or_default()
    }

    fn seal(&self, plaintext: Value) -> Option<Value> {
        Some(Value::secret(self.seal.seal(plaintext)))
    }

    fn budget(&self) -> Option<&Budget> {
        self.budget
    }

    fn function(&self, name: &str) -> Option<&UserFunction> {
        self.visible().find_map(|scope| scope.document.functions.iter().find(|each| each.name.value == name))
    }

    fn function_names(&self) -> Vec<String> {
        let functions = self.visible().flat_map(|scope| &scope.document.functions);
        functions.map(|function| function.name.value.clone()).collect()
    }
}

/// The kinds of value that something can have.
type Kinds = &'static [ValueKind];

/// The view of an expression before anything runs, where it will be computed while a run goes on: answers of
/// instances are not known yet.
#[derive(Clone, Copy)]
pub struct StaticView<'a>(pub ScopeView<'a>);

impl Environment for StaticView<'_> {
    fn parameter(&self, name: &str) -> Answer {
        self.0.parameter(name)
    }
    fn variable(&self, name: &str) -> Answer {
        self.0.variable(name)
    }
    fn is_declared(&self, variable: &str) -> bool {
        self.0.is_declared(variable)
    }
    fn copy_index(&self, loop_name: Option<&str>) -> Answer {
        self.0.copy_index(loop_name)
    }
    fn item(&self, called: &str) -> Answer {
        self.0.item(called)
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
        self.0.budget
    }
    fn function(&self, name: &str) -> Option<&UserFunction> {
        self.0.function(name)
    }
    fn function_names(&self) -> Vec<String> {
        self.0.function_names()
    }

    /// A state, or what is nested in a container.
    fn reference(&self, _id: &ResourceId) -> Answer {
        Answer::Open(&[ValueKind::Object, ValueKind::Array])
    }
    fn state_changed(&self, _id: &ResourceId) -> Answer {
        Answer::Open(&[ValueKind::Boolean])
    }
    fn restart_required(&self, _kind: &str, _name: Option<&str>) -> Answer {
        Answer::Open(&[ValueKind::Boolean])
    }
}

/// Why a value of a document could not be computed, and which part of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Halt {
    /// The reason.
    pub stop: Stop,
    /// The string that holds the expression.
    pub span: Span,
}

impl Halt {
    /// The finding that it is, pointing into the expression; `None` when something merely needs to be supplied first.
    pub fn diagnostic(&self, sources: &Sources) -> Option<Diagnostic> {
        let Stop::Fault(fault) = &self.stop else { return None };
        let span = text::locate(sources, self.span, fault.at.clone());
        Some(fault.finding(span, sources.text(span)))
    }
}

/// Returns whether nothing in a value is still to be computed or opened.
pub fn is_written_out(value: &Template) -> bool {
    match &value.kind {
        text::Kind::Compiled(_) => false,
        text::Kind::Array(items) => items.iter().all(is_written_out),
        text::Kind::Object(entries) => entries
            .iter()
            .all(|entry| !matches!(&*entry.key, "secureString" | "secureObject") && is_written_out(&entry.value)),
        text::Kind::Null | text::Kind::Bool(_) | text::Kind::Number(_) | text::Kind::String(_) => true,
    }
}

/// Returns the value that a JSON pointer leads to in properties, and the place of its name; of an element, its own.
/// The whole has no place.
pub fn stated_at<'t>(properties: &'t Template, pointer: &str) -> Option<(&'t Template, Option<Span>)> {
    pointer::steps(pointer).try_fold((properties, None), |(outer, _), step| match &outer.kind {
        text::Kind::Object(entries) => {
            let entry = entries.iter().find(|entry| *entry.key == *step)?;
            Some((&entry.value, Some(entry.key_span)))
        }
        text::Kind::Array(items) => items.get(step.parse::<usize>().ok()?).map(|item| (item, Some(item.span))),
        _ => None,
    })
}

/// The value of properties in which nothing is to be computed or opened; null where there are none.
pub(super) fn stated(properties: Option<&Template>) -> Option<Arc<Value>> {
    let Some(properties) = properties else { return Some(Arc::new(Value::Null)) };
    is_written_out(properties).then(|| Arc::new(properties.literal()))
}

/// Computes a value of a document: every expression in it is evaluated.
pub fn evaluate(node: &Template, environment: &dyn Environment) -> Result<Value, Halt> {
    Ok(match &node.kind {
        text::Kind::Null => Value::Null,
        text::Kind::Bool(truth) => Value::Bool(*truth),
        text::Kind::Number(number) => Value::Number(number.clone()),
        text::Kind::String(text) => Value::String(text.as_ref().to_owned()),
        text::Kind::Compiled(expression) => {
            expression.evaluate(environment).map_err(|stop| Halt { stop, span: node.span })?
        }
        text::Kind::Array(items) => {
            Value::Array(items.iter().map(|item| evaluate(item, environment)).collect::<Result<_, _>>()?)
        }
        text::Kind::Object(entries) => Value::Object(members(entries, environment)?),
    })
}

fn members(entries: &[Entry<Box<Expression>>], environment: &dyn Environment) -> Result<Object, Halt> {
    entries.iter().map(|entry| Ok((entry.key.as_ref().to_owned(), evaluate(&entry.value, environment)?))).collect()
}

/// Returns the memory in bytes that a value of a document will take, as far as it is known before anything runs.
pub(super) fn forecast_weight(node: &Template, environment: &dyn Environment) -> u64 {
    match &node.kind {
        text::Kind::Compiled(expression) => expression.evaluate(environment).map_or(0, |value| value.weight()),
        text::Kind::String(text) => (size_of::<Value>() + text.len()) as u64,
        text::Kind::Array(items) => items.iter().map(|item| forecast_weight(item, environment)).sum(),
        text::Kind::Object(entries) => {
            let member = |entry: &Entry<Box<Expression>>| {
                (size_of::<String>() + entry.key.len()) as u64 + forecast_weight(&entry.value, environment)
            };
            entries.iter().map(member).sum()
        }
        text::Kind::Null | text::Kind::Bool(_) | text::Kind::Number(_) => size_of::<Value>() as u64,
    }
}

/// The value with every expression replaced by what it comes to, as far as that is known and no secret.
pub fn evaluate_known(node: &Template, environment: &dyn Environment) -> Template {
    let kind = match &node.kind {
        text::Kind::Compiled(expression) => match expression.evaluate(environment) {
            Ok(value) if !value.has_sealed() => return placed(Template::of_value(value), node.span),
            _ => text::Kind::Compiled(expression.clone()),
        },
        text::Kind::Array(items) => {
            text::Kind::Array(items.iter().map(|item| evaluate_known(item, environment)).collect())
        }
        text::Kind::Object(entries) => {
            let known = |entry: &Entry<_>| Entry { value: evaluate_known(&entry.value, environment), ..entry.clone() };
            text::Kind::Object(entries.iter().map(known).collect())
        }
        literal => literal.clone(),
    };
    Template { span: node.span, kind }
}

/// The value with all of it at one place.
fn placed(node: Template, span: Span) -> Template {
    let kind = match node.kind {
        text::Kind::Array(items) => text::Kind::Array(items.into_iter().map(|item| placed(item, span)).collect()),
        text::Kind::Object(entries) => {
            let entry = |entry: Entry<_>| Entry { key_span: span, value: placed(entry.value, span), key: entry.key };
            text::Kind::Object(entries.into_iter().map(entry).collect())
        }
        scalar => scalar,
    };
    Template { span, kind }
}
