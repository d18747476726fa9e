//! Lambdas over sealed arrays: what they need from the environment is put into them, as long as it can be asked.

use std::ops::Range;
use std::sync::Arc;

use super::Stop;
use super::builtin::{Ask, Run, find};
use super::codes;
use super::evaluate::{Evaluator, Frame, stop};
use super::sealed::{Deferred, defer};
use super::syntax::{Accessor, Form, Inlined, Lambda, Node, Signature, Step};
use crate::document::UserFunction;
use crate::text::{self, node::Kind};
use crate::value::Value;

/// What is not known while a body is captured.
#[derive(Default)]
struct Bound {
    /// The parameters of the lambdas around.
    names: Vec<Box<str>>,
    /// The parameters of the function of the document around.
    parameters: bool,
}

impl Bound {
    /// Whether a part reads something bound, or may: the name can be computed.
    fn occurs_in(&self, node: &Node) -> bool {
        let mut found = matches!(node.kind, Form::Lambda(_));
        node.walk(&mut |part| {
            let Form::Call { builtin, arguments } = &part.kind else { return };
            found |= match builtin.run {
                Run::Ask(Ask::LambdaVariable) => match arguments.first().map(|argument| &argument.kind) {
                    Some(Form::Constant(Value::String(name))) => self.names.iter().any(|each| **each == **name),
                    _ => true,
                },
                Run::Ask(Ask::Parameter) => self.parameters,
                _ => false,
            };
        });
        found
    }

    /// Whether a function that asks the environment asks for something bound instead.
    fn answers(&self, ask: Ask) -> bool {
        ask == Ask::LambdaVariable || (ask == Ask::Parameter && self.parameters)
    }
}

impl Evaluator<'_> {
    /// A lambda that needs no environment any more.
    pub(super) fn capture(&mut self, lambda: &Lambda) -> Result<Arc<Lambda>, Stop> {
        self.captured(lambda, &mut Bound::default())
    }

    fn captured(&mut self, lambda: &Lambda, bound: &mut Bound) -> Result<Arc<Lambda>, Stop> {
        let outer = bound.names.len();
        bound.names.extend(lambda.parameters.iter().cloned());
        let body = self.part(&lambda.body, bound);
        bound.names.truncate(outer);
        Ok(Arc::new(Lambda { parameters: lambda.parameters.clone(), body: body? }))
    }

    /// A part of a body: what does not depend on anything bound is computed now.
    fn part(&mut self, node: &Node, bound: &mut Bound) -> Result<Node, Stop> {
        let at = node.at.clone();
        if !bound.occurs_in(node) {
            let value = self.value(node);
            return Ok(Node { at, kind: Form::Constant(needed_later(value)?) });
        }
        let kind = match &node.kind {
            Form::Call { builtin, arguments } => {
                if let Run::Ask(ask) = builtin.run
                    && !bound.answers(ask)
                {
                    let message = format!("'{}' is asked about something that depends on a secret", builtin.name);
                    return Err(stop(&codes::SEALED, &at, message, None));
                }
                Form::Call { builtin, arguments: self.parts(arguments, bound)? }
            }
            Form::UserCall { name, arguments } => {
                let arguments = self.parts(arguments, bound)?;
                match self.function(name, &at).and_then(|function| self.inline(function, arguments, &at)) {
                    Ok(inlined) => Form::Inlined(Box::new(inlined)),
                    Err(other) => Form::Constant(needed_later(Err(other))?),
                }
            }
            Form::Inlined(inlined) => {
                let arguments = self.parts(&inlined.arguments, bound)?;
                Form::Inlined(Box::new(Inlined { arguments, ..(**inlined).clone() }))
            }
            Form::Lambda(lambda) => Form::Lambda(self.captured(lambda, bound)?),
            Form::Access { of, path } => {
                let of = Box::new(self.part(of, bound)?);
                Form::Access { of, path: self.path(path, bound)? }
            }
            Form::Constant(value) => Form::Constant(value.clone()),
        };
        Ok(Node { at, kind })
    }

    fn parts(&mut self, nodes: &[Node], bound: &mut Bound) -> Result<Vec<Node>, Stop> {
        nodes.iter().map(|node| self.part(node, bound)).collect()
    }

    fn path(&mut self, path: &[Accessor], bound: &mut Bound) -> Result<Vec<Accessor>, Stop> {
        let captured = path.iter().map(|accessor| {
            let step = match &accessor.step {
                Step::Member(name) => Step::Member(name.clone()),
                Step::Index(index) => Step::Index(Box::new(self.part(index, bound)?)),
            };
            Ok(Accessor { at: accessor.at.clone(), step })
        });
        captured.collect()
    }

    fn inline(&mut self, function: &UserFunction, arguments: Vec<Node>, at: &Range<usize>) -> Result<Inlined, Stop> {
        let outer = std::mem::take(&mut self.lambda_variables);
        self.frame = Some(Frame::default());
        let body = self.template(&function.output, at);
        self.frame = None;
        self.lambda_variables = outer;
        Ok(Inlined { signature: Signature::of(function), body: body?, arguments })
    }

    /// What a document states as the output of a function, as an expression.
    fn template(&mut self, node: &text::Node, at: &Range<usize>) -> Result<Node, Stop> {
        let call = |name: &str, arguments: Vec<Node>| match find(name) {
            Some(builtin) => Ok(Form::Call { builtin, arguments }),
            None => Err(stop(&codes::UNKNOWN_FUNCTION, at, format!("Unknown function '{name}'"), None)),
        };
        let constant = |value: Value| Node { at: at.clone(), kind: Form::Constant(value) };
        let kind = match &node.kind {
            Kind::Null => Form::Constant(Value::Null),
            Kind::Bool(truth) => Form::Constant((*truth).into()),
            Kind::Number(number) => Form::Constant(Value::Number(number.clone())),
            Kind::String(text) => Form::Constant(Value::String(text.to_string())),
            Kind::Expression(expression) => {
                return self.part(&expression.root, &mut Bound { parameters: true, ..Bound::default() });
            }
            Kind::Array(items) => {
                call("createArray", items.iter().map(|item| self.template(item, at)).collect::<Result<_, _>>()?)?
            }
            Kind::Object(entries) => {
                let mut arguments = Vec::with_capacity(2 * entries.len());
                for entry in entries {
                    arguments
                        .extend([constant(Value::String(entry.key.to_string())), self.template(&entry.value, at)?]);
                }
                call("createObject", arguments)?
            }
        };
        Ok(Node { at: at.clone(), kind })
    }
}

/// What is wrong with a part counts only if it is needed: an array can be empty, and a condition false.
pub(super) fn needed_later(value: Result<Value, Stop>) -> Result<Value, Stop> {
    match value {
        Err(Stop::Fault(fault)) if fault.code != &codes::LIMIT => Ok(defer(Deferred::Failed)),
        other => other,
    }
}
