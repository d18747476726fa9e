//! What expressions of a document see, and evaluating the values that hold them.

use std::sync::Arc;

use super::{Facts, Iteration, Scope, ScopeId};
use crate::budget::Budget;
use crate::diag::Diagnostic;
use crate::document::UserFunction;
use crate::expr::{Answer, Environment, Expression, FactKey, Fault, Stop, Template};
use crate::text::{self, Entry, Kind, Sources, Span};
use crate::value::{Object, Seal, Value};

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
    /// What is known of the machine.
    pub facts: &'a Facts,
    /// Where secrets are kept.
    pub seal: &'a dyn Seal,
    /// What all evaluations may cost together; `None` once the run has begun, which counts what it holds.
    pub budget: Option<&'a Budget>,
}

impl<'a> ScopeView<'a> {
    /// The scope it stands in, and those around it that it sees, from the inside out.
    fn visible(&self) -> impl Iterator<Item = &'a Scope> + use<'a> {
        let scopes = self.scopes;
        std::iter::successors(scopes.get(self.scope.index()), |scope| scopes.get(scope.outer?.index()))
    }

    fn look_up(&self, name: &str, values: fn(&Scope) -> &Object) -> Answer {
        match self.visible().find_map(|scope| values(scope).get(name)) {
            Some(value) => Answer::Value(value.clone()),
            None => Answer::Absent { known: self.visible().flat_map(|scope| values(scope).keys().cloned()).collect() },
        }
    }
}

impl Environment for ScopeView<'_> {
    fn parameter(&self, name: &str) -> Answer {
        // One without a value is known all the same.
        let mut declared = self.visible().flat_map(|scope| &scope.document.parameters);
        match self.look_up(name, |scope| &scope.parameters) {
            Answer::Absent { .. } if declared.any(|each| each.name.value == name) => {
                Answer::Absent { known: vec![name.to_owned()] }
            }
            answer => answer,
        }
    }

    fn variable(&self, name: &str) -> Answer {
        self.look_up(name, |scope| &scope.variables)
    }

    fn copy_index(&self, loop_name: Option<&str>) -> Answer {
        match self.iteration {
            Some(iteration) if loop_name.is_none_or(|name| name == &*iteration.name) => {
                Answer::Value(iteration.index.into())
            }
            Some(iteration) => Answer::Absent { known: vec![iteration.name.to_string()] },
            None => Answer::NotHere,
        }
    }

    fn fact(&self, key: &FactKey) -> Option<Value> {
        self.facts.get(key)?.as_ref().ok().cloned()
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

/// Why a value of a document could not be computed, and which part of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Halt {
    /// The reason.
    pub stop: Stop,
    /// The string that holds the expression.
    pub span: Span,
}

impl Halt {
    /// The finding that it is, pointing into the expression; `None` when something only has to be supplied.
    pub fn diagnostic(&self, sources: &Sources) -> Option<Diagnostic> {
        let Stop::Fault(Fault { code, message, at, help }) = &self.stop else { return None };
        let span = text::locate(sources, self.span, at.clone());
        let finding = Diagnostic::error(code, span, message.clone());
        Some(match help {
            Some(help) => finding.with_help(help.clone()),
            None => finding,
        })
    }
}

/// Whether nothing in a value is still to be computed or opened.
pub fn is_written_out(value: &Template) -> bool {
    match &value.kind {
        Kind::Compiled(_) => false,
        Kind::Array(items) => items.iter().all(is_written_out),
        Kind::Object(entries) => entries
            .iter()
            .all(|entry| !matches!(&*entry.key, "secureString" | "secureObject") && is_written_out(&entry.value)),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => true,
    }
}

/// The value of properties in which nothing is to be computed or opened; null where there are none.
pub(super) fn stated(properties: Option<&Template>) -> Option<Arc<Value>> {
    let Some(properties) = properties else { return Some(Arc::new(Value::Null)) };
    is_written_out(properties).then(|| Arc::new(properties.literal()))
}

/// Computes a value of a document: every expression in it is evaluated.
pub fn evaluate(node: &Template, environment: &dyn Environment) -> Result<Value, Halt> {
    Ok(match &node.kind {
        Kind::Null => Value::Null,
        Kind::Bool(truth) => Value::Bool(*truth),
        Kind::Number(number) => Value::Number(number.clone()),
        Kind::String(text) => Value::String(text.as_ref().to_owned()),
        Kind::Compiled(expression) => {
            expression.evaluate(environment).map_err(|stop| Halt { stop, span: node.span })?
        }
        Kind::Array(items) => {
            Value::Array(items.iter().map(|item| evaluate(item, environment)).collect::<Result<_, _>>()?)
        }
        Kind::Object(entries) => Value::Object(members(entries, environment)?),
    })
}

fn members(entries: &[Entry<Box<Expression>>], environment: &dyn Environment) -> Result<Object, Halt> {
    entries.iter().map(|entry| Ok((entry.key.as_ref().to_owned(), evaluate(&entry.value, environment)?))).collect()
}

/// How much memory a value of a document will take, as far as that is known before anything runs.
pub(super) fn forecast_weight(node: &Template, environment: &dyn Environment) -> u64 {
    match &node.kind {
        Kind::Compiled(expression) => expression.evaluate(environment).map_or(0, |value| value.weight()),
        Kind::String(text) => (size_of::<Value>() + text.len()) as u64,
        Kind::Array(items) => items.iter().map(|item| forecast_weight(item, environment)).sum(),
        Kind::Object(entries) => {
            let member = |entry: &Entry<Box<Expression>>| {
                (size_of::<String>() + entry.key.len()) as u64 + forecast_weight(&entry.value, environment)
            };
            entries.iter().map(member).sum()
        }
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => size_of::<Value>() as u64,
    }
}

/// A name for a loop that all of its iterations share.
pub(super) fn loop_name(name: &str) -> Arc<str> {
    name.into()
}
