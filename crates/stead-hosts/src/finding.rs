//! What is wrong with an inventory.

use stead_core::diag::Diagnostic;
use stead_core::text::{Form, Kind, Node, Span};

use crate::codes;
use crate::name::BadName;

/// Returns a member that is stated: a key without a value says nothing.
pub(crate) fn stated(node: Option<&Node>) -> Option<&Node> {
    node.filter(|node| !matches!(node.kind, Kind::Null))
}

/// The findings about an inventory.
pub(crate) struct Findings {
    pub(crate) form: Form,
}

impl Default for Findings {
    fn default() -> Self {
        Self { form: Form::new(&codes::FORM) }
    }
}

impl Findings {
    pub(crate) fn wrong(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.form.wrong(span, message, help);
    }

    /// Puts other advice to what was found at a place.
    pub(crate) fn advise(&mut self, span: Span, help: &str) {
        let here = self.form.findings.iter_mut().filter(|finding| finding.span == Some(span));
        here.for_each(|finding| finding.help = Some(help.to_owned()));
    }

    /// Reports what is not a name, and returns what is.
    pub(crate) fn named<T>(&mut self, span: Span, (what, text): (&str, &str), name: Result<T, BadName>) -> Option<T> {
        const HELP: &str = "write letters, digits, '.', '_' and '-', of which the first is a letter, a digit or '_'";
        let message = |why| format!("'{}' is not {what}: {why}", text.escape_debug());
        let finding = |why| Diagnostic::error(&codes::NAME, span, message(why)).with_help(HELP);
        name.map_err(|why| self.form.findings.push(finding(why))).ok()
    }

    /// Says that a part of an inventory of Ansible has no effect.
    pub(crate) fn left_out(&mut self, span: Span, message: String, help: &str) {
        self.form.findings.push(Diagnostic::warning(&codes::ANSIBLE, span, message).with_help(help));
    }
}
