//! Texts that `ansible-vault` encrypted.

use super::{Document, codes, texts};
use crate::diag::Diagnostic;
use crate::text::{Sources, Span, is_of_ansible_vault, locate, mentions_ansible_vault, shown};

/// A warning for each text that would be used as it was encrypted.
pub(super) fn by_ansible_vault(document: &Document, sources: &Sources) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    if !sources.iter().any(|(_, source)| mentions_ansible_vault(&source.text)) {
        return found;
    }
    for parameter in &document.parameters {
        let name = shown(&parameter.name.value);
        let help = || {
            format!(
                "remove 'defaultValue', and supply '{name}' with '--parameters-file FILE', or as STEAD_PARAM_{name} in the environment"
            )
        };
        let default = parameter.default.iter();
        default.for_each(|default| {
            texts(default, &mut |node, text| found.extend(warning(node.span, text, sources, &help)));
        });
    }
    let help = || {
        "take the value from a parameter of the type 'secureString', \"[parameters('NAME')]\", or from a vault, \"[secret('NAME')]\"; \
         `ansible-vault view` shows it"
            .to_owned()
    };
    for value in document.computing_values() {
        texts(value, &mut |node, text| found.extend(warning(node.span, text, sources, &help)));
    }
    found
}

fn warning(place: Span, text: &str, sources: &Sources, help: &dyn Fn() -> String) -> Option<Diagnostic> {
    if !is_of_ansible_vault(text) {
        return None;
    }
    let start = text.len() - text.trim_start().len();
    let first = start..start + text.trim().lines().next().unwrap_or_default().len();
    let message = "this text is encrypted by ansible-vault, and would be used as it is written";
    Some(Diagnostic::warning(&codes::ENCRYPTED, locate(sources, place, first), message).with_help(help()))
}
