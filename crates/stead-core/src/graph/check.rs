//! Mistakes in expressions that are computed while a run goes on, as far as they are known before.

use super::builder::Builder;
use super::{Graph, Halt, Iteration, ScopeId, StaticView, evaluate};
use crate::diag::Diagnostic;
use crate::diag::codes::run as codes;
use crate::document::{DataType, Document, Output};
use crate::expr::{Fault, Placed, Stop, Template, condition_of_others, expressions, fits};
use crate::id::NodeId;
use crate::text::{Kind, Span};
use crate::value::Value;

/// The certainty with which something will be computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Computed,
    /// As far as is known, it will not be: only its names are checked.
    Skipped,
}

impl Use {
    /// The use of what has a condition: what is not known counts as true.
    pub(super) fn of(condition: Option<&Template>, view: &StaticView<'_>) -> Self {
        match condition.map(|condition| evaluate(condition, view)) {
            Some(Ok(Value::Bool(false))) => Self::Skipped,
            _ => Self::Computed,
        }
    }
}

impl Builder<'_> {
    /// Reports what is wrong with expressions that will be computed for an instance or an output.
    pub(super) fn check(
        &mut self,
        scope: ScopeId,
        iteration: Option<&Iteration>,
        expressions: &[Placed<'_>],
        used: Use,
    ) {
        for Placed { expression, span } in expressions {
            let is_repeated = iteration.is_some_and(|iteration| !iteration.is_first())
                && expression.calls("copyIndex").next().is_none()
                && expression.items().next().is_none();
            if is_repeated {
                continue;
            }
            let view = StaticView(self.place(scope, iteration));
            let faults = match used {
                Use::Computed => expression.check(&view),
                Use::Skipped => expression.check_names(&view),
            };
            self.faults(faults, *span);
        }
    }

    /// Reports what is wrong with the functions that a document defines.
    pub(super) fn check_functions(&mut self, document: &Document) {
        for function in &document.functions {
            for Placed { expression, span } in expressions(&function.output) {
                self.faults(function.check(expression), span);
            }
        }
    }

    fn faults(&mut self, faults: Vec<Fault>, span: Span) {
        for fault in faults {
            let found = Halt { stop: Stop::Fault(fault), span }.diagnostic(self.sources);
            // A name that does not exist was reported where it is resolved.
            let news = found.filter(|found| !self.findings.any_at(found.span));
            self.findings.extend(news);
        }
    }
}

impl Graph {
    /// Returns whether the condition of an instance holds, given its value.
    pub fn holds(&self, id: NodeId, condition: &Template, value: &Value) -> Result<bool, Box<Diagnostic>> {
        let label = self.label(id);
        let finding = match value {
            Value::Bool(truth) => return Ok(*truth),
            Value::Sealed(_) => {
                let message = format!("the condition of {label} depends on a secret");
                Diagnostic::error(&codes::SECRET_CONDITION, condition.span, message)
                    .with_help("whether an instance runs is shown; let it depend on what is not secret")
            }
            other => {
                let message = format!("the condition of {label} is {}, not true or false", other.described());
                let meant = condition.as_str().and_then(condition_of_others);
                Diagnostic::error(&codes::BAD_CONDITION, condition.span, message).with_help(
                    match (&condition.kind, meant) {
                        (Kind::Compiled(_), _) => "compare with equals(), or convert with bool()".to_owned(),
                        (_, Some(meant)) if !meant.starts_with('[') => format!("write {meant}, without quotes"),
                        (_, Some(meant)) => format!("write \"{meant}\""),
                        _ => {
                            "write true, false, or an expression in quotes and brackets: \"[equals(1, 2)]\"".to_owned()
                        }
                    },
                )
            }
        };
        Err(Box::new(finding))
    }
}

/// The finding that an output is not of its type, if so.
pub fn wrong_output(output: &Output, value: &Value) -> Option<Diagnostic> {
    let wanted = output.data_type.value;
    if matches!(value, Value::Sealed(_)) || fits(wanted, value) {
        return None;
    }
    let (name, wanted) = (&output.name.value, wanted.as_str());
    let message = format!("Output '{name}' is {}, but is declared as '{wanted}'", value.described());
    let fitting = DataType::ALL.iter().find(|(_, each)| !each.is_secure() && fits(*each, value));
    let finding = Diagnostic::error(&codes::WRONG_OUTPUT, output.value.span, message);
    Some(match fitting {
        Some((word, _)) => finding.with_help(format!("declare it as '{word}', or convert the value")),
        None => finding,
    })
}
