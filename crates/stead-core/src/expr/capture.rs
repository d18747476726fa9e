//! Lambdas over sealed arrays: what they need from the environment is put into them, as long as it can be asked.

use std::sync::Arc;

use super::Stop;
use super::builtin::{Ask, Run};
use super::codes;
use super::evaluate::{Evaluator, stop};
use super::sealed::{Deferred, defer};
use super::syntax::{Accessor, Form, Lambda, Node, Step};

impl Evaluator<'_> {
    /// A lambda that needs no environment any more.
    pub(super) fn capture(&mut self, lambda: &Lambda) -> Result<Arc<Lambda>, Stop> {
        self.captured(lambda, &mut Vec::new())
    }

    fn captured(&mut self, lambda: &Lambda, bound: &mut Vec<Box<str>>) -> Result<Arc<Lambda>, Stop> {
        let outer = bound.len();
        bound.extend(lambda.parameters.iter().cloned());
        let body = self.part(&lambda.body, bound);
        bound.truncate(outer);
        Ok(Arc::new(Lambda { parameters: lambda.parameters.clone(), body: body? }))
    }

    /// A part of a body: what does not depend on the parameters in `bound` is computed now.
    fn part(&mut self, node: &Node, bound: &mut Vec<Box<str>>) -> Result<Node, Stop> {
        if !depends(node, bound) {
            let value = match self.value(node) {
                // It may never be needed: an array can be empty, and a condition false.
                Err(Stop::Fault(fault)) if fault.code != &codes::LIMIT => defer(Deferred::Failed),
                other => other?,
            };
            return Ok(Node { at: node.at.clone(), kind: Form::Constant(value) });
        }
        let kind = match &node.kind {
            Form::Call { builtin, arguments } => {
                if let Run::Ask(ask) = builtin.run
                    && ask != Ask::LambdaVariable
                {
                    let message = format!("'{}' is asked about something that depends on a secret", builtin.name);
                    return Err(stop(&codes::SEALED, &node.at, message, None));
                }
                Form::Call { builtin, arguments: self.parts(arguments, bound)? }
            }
            Form::UserCall { name, .. } => {
                let message = format!("'{name}' cannot be computed for each element of an array that is a secret");
                return Err(stop(&codes::SEALED, &node.at, message, None));
            }
            Form::Lambda(lambda) => Form::Lambda(self.captured(lambda, bound)?),
            Form::Access { of, path } => {
                let of = Box::new(self.part(of, bound)?);
                let path = path.iter().map(|accessor| {
                    let step = match &accessor.step {
                        Step::Member(name) => Step::Member(name.clone()),
                        Step::Index(index) => Step::Index(Box::new(self.part(index, bound)?)),
                    };
                    Ok(Accessor { at: accessor.at.clone(), step })
                });
                Form::Access { of, path: path.collect::<Result<_, Stop>>()? }
            }
            Form::Constant(value) => Form::Constant(value.clone()),
        };
        Ok(Node { at: node.at.clone(), kind })
    }

    fn parts(&mut self, nodes: &[Node], bound: &mut Vec<Box<str>>) -> Result<Vec<Node>, Stop> {
        nodes.iter().map(|node| self.part(node, bound)).collect()
    }
}

/// Whether a part reads a parameter in `bound`, or may: its name can be computed.
fn depends(node: &Node, bound: &[Box<str>]) -> bool {
    let mut found = matches!(node.kind, Form::Lambda(_));
    node.walk(&mut |part| {
        let Form::Call { builtin, arguments } = &part.kind else { return };
        if matches!(builtin.run, Run::Ask(Ask::LambdaVariable)) {
            let name = match arguments.first().map(|argument| &argument.kind) {
                Some(Form::Constant(name)) => name.as_str(),
                _ => None,
            };
            found |= name.is_none_or(|name| bound.iter().any(|each| **each == *name));
        }
    });
    found
}
