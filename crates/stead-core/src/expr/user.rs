//! Functions that the document defines.

use std::ops::Range;

use super::codes;
use super::evaluate::{Evaluator, Frame, fits, hint, stop};
use super::sealed::{Deferred, defer};
use super::syntax::Node;
use super::{Fault, Recipe, Stop};
use crate::document::{DataType, UserFunction};
use crate::text;
use crate::value::{Object, Sealed, Sensitive, Value};

impl<'e> Evaluator<'e> {
    pub(super) fn user_call(&mut self, name: &str, nodes: &[Node], at: &Range<usize>) -> Result<Value, Stop> {
        // They cannot call each other: that keeps them from recursion.
        let known = if self.frame.is_some() { None } else { self.environment.function(name) };
        let Some(function) = known else { return Err(self.unknown(name, at)) };
        let parameters = self.parameters(function, name, nodes, at)?;
        let outer = std::mem::take(&mut self.lambda_variables);
        self.frame = Some(Frame { parameters });
        let output = self.written(&function.output);
        self.frame = None;
        self.lambda_variables = outer;
        let output = output.map_err(|stop| within(stop, name, at))?;
        typed(output, function.output_type.value).map_err(|found| {
            let wanted = function.output_type.value.as_str();
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
        function: &'e UserFunction,
        name: &str,
        nodes: &[Node],
        at: &Range<usize>,
    ) -> Result<Vec<(&'e str, Value)>, Stop> {
        let wanted = function.parameters.len();
        if nodes.len() != wanted {
            let message =
                format!("User function '{name}' expects {wanted} parameters, but {} were provided", nodes.len());
            return Err(stop(&codes::USER_FUNCTION_TYPE, at, message, None));
        }
        let mut parameters = Vec::with_capacity(wanted);
        for (parameter, node) in function.parameters.iter().zip(nodes) {
            let value = typed(self.value(node)?, parameter.value).map_err(|found| {
                let (parameter, wanted) = (&parameter.name.value, parameter.value.as_str());
                let message =
                    format!("Parameter '{parameter}' of user function '{name}' expects type '{wanted}', not '{found}'");
                stop(&codes::USER_FUNCTION_TYPE, &node.at, message, None)
            })?;
            parameters.push((parameter.name.value.as_str(), value));
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
