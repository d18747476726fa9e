//! Functions that the document defines.

use std::ops::Range;

use super::codes;
use super::evaluate::{Evaluator, Frame, fits, hint, stop};
use super::syntax::Node;
use super::{Fault, Stop, Template, ValueKind};
use crate::diag::counted;
use crate::text::{self, Spanned};
use crate::value::{DataType, Object, SealedStep, Value};

/// Something with a name of its own.
#[derive(Clone, Debug)]
pub struct Named<T> {
    /// The name and where it stands.
    pub name: Spanned<String>,
    /// The value that it names.
    pub value: T,
}

/// One member of `functions`: a function that the document defines.
#[derive(Clone, Debug)]
pub struct UserFunction {
    /// `namespace.name`, the way it is called
    pub name: Spanned<String>,
    /// Its parameters in order.
    pub parameters: Vec<Named<DataType>>,
    /// The type of what it returns.
    pub output_type: Spanned<DataType>,
    /// The value it returns, usually an expression in which only `parameters()` is known.
    pub output: Template,
    /// True if the declaration can be read. If not, only the name is known.
    pub is_readable: bool,
}

impl UserFunction {
    pub(super) fn check_count(&self, given: usize, at: &Range<usize>) -> Result<(), Stop> {
        let (name, wanted) = (&self.name.value, self.parameters.len());
        if given == wanted {
            return Ok(());
        }
        let parameters = counted(wanted, "parameter");
        let message = format!("User function '{name}' expects {parameters}, but {given} were provided");
        let names: Vec<&str> = self.parameters.iter().map(|parameter| parameter.name.value.as_str()).collect();
        Err(stop(
            &codes::USER_FUNCTION_TYPE,
            at,
            message,
            Some(format!("it is used as {name}({})", names.join(", ")).into()),
        ))
    }

    pub(super) fn wrong_argument(&self, parameter: &Named<DataType>, found: &str, at: &Range<usize>) -> Stop {
        let (name, parameter, wanted) = (&self.name.value, &parameter.name.value, parameter.value.as_str());
        let message =
            format!("Parameter '{parameter}' of user function '{name}' expects type '{wanted}', not '{found}'");
        let help = format!("convert the argument, or declare '{parameter}' with another type");
        stop(&codes::USER_FUNCTION_TYPE, at, message, Some(help.into()))
    }
}

impl<'e> Evaluator<'e> {
    pub(super) fn user_call(&mut self, name: &str, nodes: &[Node], at: &Range<usize>) -> Result<Value, Stop> {
        let function = self.function(name, at)?;
        if !function.is_readable {
            return Err(Stop::Open(ValueKind::VALUES));
        }
        let parameters = self.parameters(function, nodes, at)?;
        let outer = std::mem::take(&mut self.lambda_variables);
        self.frame = Some(Frame { parameters });
        let output = self.written(&function.output);
        self.frame = None;
        self.lambda_variables = outer;
        let output = output.map_err(|stop| within(stop, name, at))?;
        let wanted = function.output_type.value;
        self.typed(output, wanted, at, |found| {
            let wanted = wanted.as_str();
            let message =
                format!("Output of user function '{name}' did not return expected type '{wanted}', but '{found}'");
            stop(&codes::USER_FUNCTION_TYPE, at, message, None)
        })
    }

    /// The function of that name. Inside of one there is none: that keeps them from recursion.
    pub(super) fn function(&self, name: &str, at: &Range<usize>) -> Result<&'e UserFunction, Stop> {
        let known = if self.frame.is_some() { None } else { self.environment.function(name) };
        known.ok_or_else(|| self.unknown(name, at))
    }

    fn unknown(&self, name: &str, at: &Range<usize>) -> Stop {
        let help = if self.frame.is_some() {
            Some("functions of the document cannot call each other".into())
        } else {
            let names = self.environment.function_names();
            hint(name, names.iter().map(String::as_str))
        };
        stop(&codes::USER_FUNCTION, at, format!("Unknown user function '{name}'"), help)
    }

    fn parameters(
        &mut self,
        function: &UserFunction,
        nodes: &[Node],
        at: &Range<usize>,
    ) -> Result<Vec<(Box<str>, Value)>, Stop> {
        function.check_count(nodes.len(), at)?;
        let mut parameters = Vec::with_capacity(nodes.len());
        for (parameter, node) in function.parameters.iter().zip(nodes) {
            let value = self.value(node)?;
            let wrong = |found: &str| function.wrong_argument(parameter, found, &node.at);
            let value = self.typed(value, parameter.value, &node.at, wrong)?;
            parameters.push((parameter.name.value.as_str().into(), value));
        }
        Ok(parameters)
    }

    /// A value of a type; `wrong` is the fault when it is something else. A secure type seals; a sealed value is checked when opened.
    fn typed(
        &self,
        value: Value,
        data_type: DataType,
        at: &Range<usize>,
        wrong: impl FnOnce(&str) -> Stop,
    ) -> Result<Value, Stop> {
        match value {
            Value::Sealed(_) => Ok(Value::deferred(SealedStep::Typed { value, data_type })),
            value if !fits(data_type, &value) => Err(wrong(value.kind())),
            value if data_type.is_secure() && value.has_sealed() => {
                Ok(Value::deferred(SealedStep::Typed { value, data_type }))
            }
            value if data_type.is_secure() => self.environment.seal(value).ok_or_else(|| {
                stop(&codes::NOT_HERE, at, "functions that take or return secrets are not available here", None)
            }),
            value => Ok(value),
        }
    }

    /// The value of what is written in a document.
    fn written(&mut self, node: &'e Template) -> Result<Value, Stop> {
        Ok(match &node.kind {
            text::node::Kind::Null => Value::Null,
            text::node::Kind::Bool(truth) => (*truth).into(),
            text::node::Kind::Number(number) => Value::Number(number.clone()),
            text::node::Kind::String(text) => Value::String(text.to_string()),
            text::node::Kind::Compiled(expression) => self.value(&expression.root)?,
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

/// Moves a mistake inside of a function to the call of it: its own text is elsewhere.
fn within(inner: Stop, name: &str, at: &Range<usize>) -> Stop {
    match inner {
        Stop::Fault(fault) => {
            let message = format!("in '{name}': {}", fault.message);
            // The word that was meant is not at this place.
            let help = fault.help.map(|help| help.to_string().into());
            Stop::Fault(Fault { message, at: at.clone(), help, ..fault })
        }
        other => other,
    }
}
