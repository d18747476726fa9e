//! Functions over sealed arrays: what their lambdas need from the environment is computed while it can be asked, and
//! the rest is kept as text.

use std::ops::Range;

use serde_json::Value as Json;

use super::builtin::{Ask, Builtin, Run};
use super::codes;
use super::evaluate::{Evaluator, Frame, needed_later, stop};
use super::syntax::{AccessStep, Accessor, ExpressionForm, Lambda, Node, quoted};
use super::{Expression, Stop, Template, UserFunction};
use crate::text::{self, node::Kind};
use crate::value::{Closure, Function, Value};

/// The names that are not known while a body is captured.
#[derive(Default)]
struct Bound {
    /// The parameters of the lambdas around.
    names: Vec<Box<str>>,
    /// True if it is the body of a function of the document, whose parameters are not known.
    parameters: bool,
}

impl Bound {
    /// Returns whether a part reads something bound, or may: the name can be computed.
    fn occurs_in(&self, node: &Node) -> bool {
        let mut found = matches!(node.kind, ExpressionForm::Lambda(_));
        node.walk(&mut |part| {
            let ExpressionForm::Call { builtin, arguments } = &part.kind else { return };
            found |= match builtin.run {
                Run::Asks(Ask::LambdaVariable) => match arguments.first().map(|argument| &argument.kind) {
                    Some(ExpressionForm::Constant(Value::String(name))) => {
                        self.names.iter().any(|each| **each == **name)
                    }
                    // Not a name; and numbers stand for captured values.
                    Some(ExpressionForm::Constant(_)) => false,
                    _ => true,
                },
                Run::Asks(Ask::Parameter) => self.parameters,
                _ => false,
            };
        });
        found
    }

    /// Returns whether a function that asks the environment asks for something bound instead.
    fn answers(&self, ask: Ask) -> bool {
        ask == Ask::LambdaVariable || (ask == Ask::Parameter && self.parameters)
    }
}

impl Evaluator<'_> {
    /// `map` or `filter` with a lambda, as text that needs no environment: `lambdaVariables(0)` is the array in it, and
    /// the numbers behind that are what was captured.
    pub(super) fn capture(&mut self, builtin: &Builtin, lambda: &Lambda) -> Result<Closure, Stop> {
        let mut capture = Capture {
            evaluator: self,
            bound: Bound::default(),
            closure: Closure { source: String::new(), captured: Vec::new(), functions: Vec::new() },
        };
        let lambda = capture.lambda(lambda)?;
        let source = format!("[{}({}, {lambda})]", builtin.name, captured(0));
        Ok(Closure { source, ..capture.closure })
    }
}

/// The text that stands for a captured value.
fn captured(number: usize) -> String {
    format!("lambdaVariables({number})")
}

struct Capture<'c, 'e> {
    evaluator: &'c mut Evaluator<'e>,
    bound: Bound,
    closure: Closure,
}

impl Capture<'_, '_> {
    fn lambda(&mut self, lambda: &Lambda) -> Result<String, Stop> {
        let outer = self.bound.names.len();
        self.bound.names.extend(lambda.parameters.iter().cloned());
        let body = self.part(&lambda.body);
        self.bound.names.truncate(outer);
        let names: String = lambda.parameters.iter().map(|name| quoted(name) + ", ").collect();
        Ok(format!("lambda({names}{})", body?))
    }

    /// The text of a part; what does not depend on anything bound is computed now.
    fn part(&mut self, node: &Node) -> Result<String, Stop> {
        if let ExpressionForm::Constant(literal) = &node.kind {
            return Ok(match literal {
                Value::String(text) => quoted(text),
                other => other.to_redacted_json().to_string(),
            });
        }
        if !self.bound.occurs_in(node) {
            let value = self.evaluator.value(node);
            return Ok(self.keep(needed_later(value)?));
        }
        match &node.kind {
            ExpressionForm::Call { builtin, arguments } => self.call(builtin, arguments, &node.at),
            ExpressionForm::UserCall { name, arguments } => self.user_call(name, arguments, &node.at),
            ExpressionForm::Lambda(lambda) => self.lambda(lambda),
            ExpressionForm::Access { of, path } => Ok(self.part(of)? + &self.path(path)?),
            ExpressionForm::Constant(value) => Ok(self.keep(value.clone())),
            ExpressionForm::Item(_) => {
                let item = self.evaluator.value(node)?;
                Ok(self.keep(item))
            }
        }
    }

    /// Captures a value and returns the text that stands for it.
    fn keep(&mut self, value: Value) -> String {
        self.closure.captured.push(value);
        captured(self.closure.captured.len())
    }

    fn call(&mut self, builtin: &Builtin, arguments: &[Node], at: &Range<usize>) -> Result<String, Stop> {
        if let Run::Asks(ask) = builtin.run
            && !self.bound.answers(ask)
        {
            let message = format!("'{}' is asked about something that depends on a secret", builtin.name);
            return Err(stop(&codes::SEALED, at, message, None));
        }
        Ok(format!("{}({})", builtin.name, self.parts(arguments)?))
    }

    fn user_call(&mut self, name: &str, arguments: &[Node], at: &Range<usize>) -> Result<String, Stop> {
        let arguments = self.parts(arguments)?;
        let function = match self.evaluator.function(name, at) {
            Ok(function) => function,
            Err(unknown) => return Ok(self.keep(needed_later(Err(unknown))?)),
        };
        if !self.closure.functions.iter().any(|known| known.name == name) {
            let function = self.function(function)?;
            self.closure.functions.push(function);
        }
        Ok(format!("{name}({arguments})"))
    }

    fn function(&mut self, function: &UserFunction) -> Result<Function, Stop> {
        let bound = std::mem::replace(&mut self.bound, Bound { names: Vec::new(), parameters: true });
        let outer = std::mem::take(&mut self.evaluator.lambda_variables);
        self.evaluator.frame = Some(Frame::default());
        let output = self.template(&function.output);
        self.evaluator.frame = None;
        self.evaluator.lambda_variables = outer;
        self.bound = bound;
        let parameters = function.parameters.iter();
        Ok(Function {
            name: function.name.value.clone(),
            parameters: parameters.map(|each| (each.name.value.clone(), each.value)).collect(),
            returns: function.output_type.value,
            output: output?,
        })
    }

    /// Returns the value that a document states as the output of a function, with its expressions as text again.
    fn template(&mut self, node: &Template) -> Result<Json, Stop> {
        Ok(match &node.kind {
            Kind::Compiled(expression) => Json::String(format!("[{}]", self.part(&expression.root)?)),
            Kind::String(text) if text.starts_with('[') => Json::String(format!("[{text}")),
            Kind::Array(items) => items.iter().map(|item| self.template(item)).collect::<Result<_, _>>()?,
            Kind::Object(entries) => {
                let member =
                    |entry: &text::Entry<Box<Expression>>| Ok((entry.key.to_string(), self.template(&entry.value)?));
                Json::Object(entries.iter().map(member).collect::<Result<_, Stop>>()?)
            }
            _ => node.literal().to_redacted_json(),
        })
    }

    fn parts(&mut self, nodes: &[Node]) -> Result<String, Stop> {
        Ok(nodes.iter().map(|node| self.part(node)).collect::<Result<Vec<_>, _>>()?.join(", "))
    }

    fn path(&mut self, path: &[Accessor]) -> Result<String, Stop> {
        let step = |accessor: &Accessor| match &accessor.step {
            AccessStep::Member(name) => Ok(format!(".{name}")),
            AccessStep::Index(index) => Ok(format!("[{}]", self.part(index)?)),
        };
        path.iter().map(step).collect()
    }
}
