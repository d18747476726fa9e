//! Functions that the document defines.

use std::ops::Range;

use super::codes;
use super::evaluate::{Evaluator, Frame, fits, hint, stop};
use super::sealed::{Deferred, defer};
use super::syntax::{Inlined, Node, Signature};
use super::{Fault, Recipe, Stop};
use crate::document::{DataType, UserFunction};
use crate::text;
use crate::value::{Object, Sealed, Sensitive, Value};

impl Signature {
    pub(super) fn of(function: &UserFunction) -> Self {
        let parameters = function.parameters.iter();
        Self {
            name: function.name.value.as_str().into(),
            parameters: parameters.map(|each| (each.name.value.as_str().into(), each.value)).collect(),
            output: function.output_type.value,
        }
    }
}

impl<'e> Evaluator<'e> {
    pub(super) fn user_call(&mut self, name: &str, nodes: &[Node], at: &Range<usize>) -> Result<Value, Stop> {
        let function = self.function(name, at)?;
        self.invoked(&Signature::of(function), nodes, at, |evaluator| evaluator.written(&function.output))
    }

    pub(super) fn inlined(&mut self, inlined: &Inlined, at: &Range<usize>) -> Result<Value, Stop> {
        self.invoked(&inlined.signature, &inlined.arguments, at, |evaluator| evaluator.value(&inlined.body))
    }

    /// The function of that name. Inside of one there is none: that keeps them from recursion.
    pub(super) fn function(&self, name: &str, at: &Range<usize>) -> Result<&'e UserFunction, Stop> {
        let known = if self.frame.is_some() { None } else { self.environment.function(name) };
        known.ok_or_else(|| self.unknown(name, at))
    }

    fn invoked(
        &mut self,
        signature: &Signature,
        nodes: &[Node],
        at: &Range<usize>,
        body: impl FnOnce(&mut Self) -> Result<Value, Stop>,
    ) -> Result<Value, Stop> {
        let name = &signature.name;
        let parameters = self.parameters(signature, nodes, at)?;
        let outer = std::mem::take(&mut self.lambda_variables);
        self.frame = Some(Frame { parameters });
        let output = body(self);
        self.frame = None;
        self.lambda_variables = outer;
        typed(output.map_err(|stop| within(stop, name, at))?, signature.output).map_err(|found| {
            let wanted = signature.output.as_str();
            let message =
                format!("Output of user function '{name}' is of type '{found}', but it is declared as '{wanted}'");
            stop(&codes::USER_FUNCTION_TYPE, at, message, None)
        })
    }

    fn unknown(&self, name: &str, at: &Range<usize>) -> Stop {
        let help = if self.frame.is_some() {
            Some("functions of the document cannot call each other".to_owned())
        } else {
            let names = self.environment.function_names();
            hint(name, names.iter().map(String::as_str))
        };
        stop(&codes::USER_FUNCTION, at, format!("Unknown user function '{name}'"), help)
    }

    fn parameters(
        &mut self,
        signature: &Signature,
        nodes: &[Node],
        at: &Range<usize>,
    ) -> Result<Vec<(Box<str>, Value)>, Stop> {
        let (name, wanted) = (&signature.name, signature.parameters.len());
        if nodes.len() != wanted {
            let (plural, given) = (if wanted == 1 { "parameter" } else { "parameters" }, nodes.len());
            let message = format!("User function '{name}' expects {wanted} {plural}, but {given} were provided");
            return Err(stop(&codes::USER_FUNCTION_TYPE, at, message, None));
        }
        let mut parameters = Vec::with_capacity(wanted);
        for ((parameter, data_type), node) in signature.parameters.iter().zip(nodes) {
            let value = typed(self.value(node)?, *data_type).map_err(|found| {
                let wanted = data_type.as_str();
                let message =
                    format!("Parameter '{parameter}' of user function '{name}' expects type '{wanted}', not '{found}'");
                stop(&codes::USER_FUNCTION_TYPE, &node.at, message, None)
            })?;
            parameters.push((parameter.clone(), value));
        }
        Ok(parameters)
    }

    /// The value of what is written in a document.
    fn written(&mut self, node: &'e text::Node) -> Result<Value, Stop> {
        Ok(match &node.kind {
            text::node::Kind::Null => Value::Null,
            text::node::Kind::Bool(truth) => (*truth).into(),
            text::node::Kind::Number(number) => Value::Number(number.clone()),
            text::node::Kind::String(text) => Value::String(text.to_string()),
            text::node::Kind::Expression(expression) => self.value(&expression.root)?,
            text::node::Kind::Array(items) => {
                Value::Array(items.iter().map(|item| self.written(item)).collect::<Result<_, _>>()?)
            }
            text::node::Kind::Object(entries) => {
                let members = entries.iter().map(|entry| Ok((entry.key.to_string(), self.written(&entry.value)?)));
                Value::Object(members.collect::<Result<Object, Stop>>()?)
            }
        })
    }
}

/// A value of a type, or the word for what it is instead. A secure type seals; a sealed value is checked when opened.
fn typed(value: Value, data_type: DataType) -> Result<Value, &'static str> {
    match value {
        Value::Sealed(_) => Ok(defer(Deferred::Typed { value, data_type })),
        value if !fits(data_type, &value) => Err(value.kind()),
        value if data_type.is_secure() => Ok(Value::Sealed(Sealed::new(Recipe::Literal(Sensitive::new(value))))),
        value => Ok(value),
    }
}

/// What is wrong inside of a function, at the call of it: its own text is elsewhere.
fn within(inner: Stop, name: &str, at: &Range<usize>) -> Stop {
    match inner {
        Stop::Fault(fault) => {
            let message = format!("in '{name}': {}", fault.message);
            Stop::Fault(Fault { message, at: at.clone(), ..fault })
        }
        other => other,
    }
}
