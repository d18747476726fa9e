//! Secrets in the arguments of commands, which every user of a machine can read.

use super::{Document, codes};
use crate::diag::Diagnostic;
use crate::expr::{Expression, Template, expressions};
use crate::text::{Sources, Span, locate};
use crate::value::DataType;

/// Types that run commands, with the properties that are commands and what to do instead.
const COMMANDS: [(&str, &[&str], &str); 3] = [
    (
        "Stead/Command",
        &["set", "test"],
        "pass it in the property 'environment', and let the program read it from there; a shell that puts it into the arguments of \
         another program shows it again",
    ),
    ("Stead/Cron", &["command"], FROM_A_FILE),
    ("Stead/Timer", &["command"], FROM_A_FILE),
];
const FROM_A_FILE: &str = "let the command read it from a file that only its user can read";
/// How many variables are followed that read others.
const DEPTH: usize = 4;

/// A warning for each secret in the arguments of a command.
pub(super) fn secrets(document: &Document, sources: &Sources) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for instance in &document.resources {
        let type_name = instance.type_name.value.as_str();
        let Some((_, properties, help)) = COMMANDS.iter().find(|(each, ..)| each.eq_ignore_ascii_case(type_name))
        else {
            continue;
        };
        let entries = instance.properties.as_ref().and_then(Template::entries).unwrap_or_default();
        for entry in entries.iter().filter(|entry| properties.contains(&&*entry.key)) {
            for placed in expressions(&entry.value) {
                let finding = |span| {
                    let message =
                        "a secret is an argument of this command: while it runs, every user of the machine can read it";
                    Diagnostic::warning(&codes::SECRET_ARGUMENT, span, message).with_help(*help)
                };
                found.extend(first_secret(document, placed.expression, placed.span, sources).map(finding));
            }
        }
    }
    found
}

/// The place of the first secret that an expression has in its value.
fn first_secret(document: &Document, expression: &Expression, span: Span, sources: &Sources) -> Option<Span> {
    let mut calls = expression.all_calls();
    let found = calls.find(|(builtin, call)| {
        let name = call.arguments().next();
        document.is_secret(builtin.name, name.as_ref().and_then(|name| name.text()), DEPTH)
    });
    found.map(|(_, call)| locate(sources, span, call.at()))
}

impl Document {
    /// Returns whether a call of a function returns a secret, or a variable that has one.
    fn is_secret(&self, function: &str, name: Option<&str>, depth: usize) -> bool {
        match function {
            "secret" => true,
            "parameters" => self.parameters.iter().any(|parameter| {
                let is_secure = [DataType::SecureString, DataType::SecureObject].contains(&parameter.data_type.value);
                is_secure && name == Some(&*parameter.name.value)
            }),
            "variables" => {
                let variable = self.variables.iter().find(|variable| name == Some(&*variable.name.value));
                let placed = variable.into_iter().flat_map(|variable| expressions(&variable.value));
                let mut calls = placed.flat_map(|placed| placed.expression.all_calls());
                depth > 0
                    && calls.any(|(builtin, call)| {
                        let name = call.arguments().next();
                        self.is_secret(builtin.name, name.as_ref().and_then(|name| name.text()), depth - 1)
                    })
            }
            _ => false,
        }
    }
}
