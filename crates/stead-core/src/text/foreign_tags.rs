//! Tags of other programs, which a document says in another way.

use super::{Span, codes};
use crate::diag::Diagnostic;

/// How a text begins that `ansible-vault` encrypted.
const ENCRYPTED: &str = "$ANSIBLE_VAULT;";

/// Returns whether a text is one that `ansible-vault` encrypted.
pub fn is_of_ansible_vault(text: &str) -> bool {
    text.starts_with(['$', ' ', '\t', '\n']) && text.trim_start().starts_with(ENCRYPTED)
}

/// Returns whether a text of a document may hold one. Every run asks, and few documents do.
pub(crate) fn mentions_ansible_vault(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), ENCRYPTED.as_bytes()).is_some()
}

/// Tags that another program computes a value by, whose they are, and how a document says what they say.
const TAGS: [(&[&str], &str, &str); 5] = [
    (
        &["vault", "vault-encrypted"],
        " of Ansible",
        "a vault of Ansible is not decrypted here: leave the value out. A parameter of the type 'secureString' without 'defaultValue' gets \
         it from STEAD_PARAM_NAME in the environment or from '--parameters-file FILE', and \"[secret('NAME')]\" from a vault",
    ),
    (&["secret"], " of Home Assistant", "a secret is [secret('NAME')], or a parameter of the type 'secureString'"),
    (&["env", "env_var", "environ", "ENV"], "", "a variable of the environment is \"[envvar('NAME')]\""),
    (
        &["include", "include_text", "include_raw", "reference"],
        "",
        "the text of a file is \"[stead.file('PATH')]\", and a document is included by an instance of Microsoft.DSC/Include",
    ),
    (
        &[
            "Ref",
            "Sub",
            "GetAtt",
            "Join",
            "If",
            "Select",
            "FindInMap",
            "ImportValue",
            "Base64",
            "Split",
            "Equals",
            "And",
            "Or",
            "Not",
            "Cidr",
            "Condition",
        ],
        " of CloudFormation",
        "functions are written as expressions, such as \"[parameters('NAME')]\" or \"[concat('a', 'b')]\"",
    ),
];

/// The finding about a tag that YAML does not have.
pub(super) fn finding(tag: &str, place: Span) -> Diagnostic {
    let name = tag.trim_start_matches('!');
    if let Some((_, whose, help)) = TAGS.iter().find(|(tags, ..)| tags.contains(&name)) {
        let message = format!("the tag '!{name}'{whose} is not supported: the value would be used as it is written");
        return Diagnostic::error(&codes::TAG_FOREIGN, place, message).with_help(*help);
    }
    let message = format!("the tag '{tag}' has no meaning here and is ignored");
    let help = match name {
        "unsafe" => {
            "remove it: the text in a document is never a template, and '[[' is text that begins with a bracket"
        }
        _ => "put text that starts with an exclamation mark in quotes",
    };
    Diagnostic::warning(&codes::TAG_UNKNOWN, place, message).with_help(help)
}
