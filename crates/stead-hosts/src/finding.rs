//! What is wrong with an inventory.

use stead_core::diag::Diagnostic;
use stead_core::text::Span;

use crate::codes;
use crate::name::BadName;

/// The findings about an inventory.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) list: Vec<Diagnostic>,
}

impl Findings {
    pub(crate) fn wrong(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.list.push(Diagnostic::error(&codes::FORM, span, message).with_help(help));
    }

    /// Reports what is not a name, and returns what is.
    pub(crate) fn named<T>(&mut self, span: Span, (what, text): (&str, &str), name: Result<T, BadName>) -> Option<T> {
        let message = |why| format!("'{}' is not a name of {what}: {why}", text.escape_debug());
        name.map_err(|why| self.list.push(Diagnostic::error(&codes::NAME, span, message(why)))).ok()
    }

    /// Says that a part of an inventory of Ansible has no effect.
    pub(crate) fn left_out(&mut self, span: Span, message: String, help: &str) {
        self.list.push(Diagnostic::warning(&codes::ANSIBLE, span, message).with_help(help));
    }
}
