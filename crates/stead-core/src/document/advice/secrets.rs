//! Secrets that are written into a document.

use super::{Document, codes, texts};
use crate::diag::Diagnostic;
use crate::diag::secret_forms::{FORMS, MYSQL, is_value, matches};
use crate::document::Parameter;
use crate::expr::Template;
use crate::text::{Kind, Sources, Span, locate, shown};
use crate::value::DataType;

/// How the names of parameters end that are secrets, in small letters without '_' and '-'.
const SECRET_NAMES: [&str; 9] =
    ["password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "secretkey", "privatekey"];

const HELP: &str =
    "pass a parameter of the type 'secureString', which has no default, or take it from a vault: [secret('NAME')]";

/// A warning for each secret in the text of a document, with its place and not with what it is.
pub(super) fn in_clear(document: &Document, sources: &Sources) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = document.parameters.iter().filter_map(of_parameter).collect();
    let mut report = |what: &str, span: Span| {
        // A default that is a secret may have the form of one, too.
        if !found.iter().any(|known| known.span.is_some_and(|known| known.holds(span))) {
            found.push(finding(span, format!("{what} is in plain text")));
        }
    };
    for value in document.all_values() {
        texts(value, &mut |node, text| {
            for (what, form) in &*FORMS {
                for range in matches(form, text) {
                    report(what, locate(sources, node.span, range));
                }
            }
        });
        arguments(value, &mut |span| report("a MySQL password", span));
    }
    found
}

fn finding(span: Span, message: String) -> Diagnostic {
    Diagnostic::warning(&codes::SECRET_IN_CLEAR, span, message).with_help(HELP)
}

/// A default that is a secret by the type or the name of its parameter.
fn of_parameter(parameter: &Parameter) -> Option<Diagnostic> {
    let default = secret_default(parameter)?;
    let name = shown(&parameter.name.value);
    let whose = if parameter.data_type.value.is_secure() {
        format!("the secret '{name}'")
    } else {
        format!("'{name}', which is named like a secret,")
    };
    Some(finding(default.span, format!("the default of {whose} is in plain text")))
}

/// The default of a parameter, where that is a secret by its type or its name and is written out.
fn secret_default(parameter: &Parameter) -> Option<&Template> {
    let default = parameter.default.as_ref().filter(|default| is_stated(default))?;
    let data_type = parameter.data_type.value;
    if data_type.is_secure() {
        return Some(default);
    }
    let plain: String =
        parameter.name.value.chars().filter(|c| !"_-".contains(*c)).flat_map(char::to_lowercase).collect();
    let is_secret = data_type == DataType::String && SECRET_NAMES.iter().any(|end| plain.ends_with(end));
    let Kind::String(text) = &default.kind else { return None };
    (is_secret && !text.starts_with('/')).then_some(default)
}

impl Document {
    /// The places of secrets that are stated as defaults of parameters: messages show stars for them.
    pub fn secret_defaults(&self) -> impl Iterator<Item = Span> {
        self.parameters.iter().filter_map(secret_default).map(|default| default.span)
    }
}

/// Returns whether a default is a value that is written out, and that may be a secret.
fn is_stated(default: &Template) -> bool {
    match &default.kind {
        Kind::String(text) => !text.is_empty() && is_value(text),
        Kind::Object(entries) => !entries.is_empty(),
        _ => false,
    }
}

/// Calls `visit` with the place of each password in a list of a program of `MySQL` and its arguments.
fn arguments(node: &Template, visit: &mut dyn FnMut(Span)) {
    match &node.kind {
        Kind::Object(entries) => entries.iter().for_each(|entry| arguments(&entry.value, visit)),
        Kind::Array(items) => {
            let is_client = items
                .first()
                .and_then(text)
                .is_some_and(|program| program.rsplit('/').next().is_some_and(|name| MYSQL.contains(&name)));
            for item in items {
                let word = text(item).filter(|_| is_client);
                let password = word.and_then(|word| word.strip_prefix("--password=").or(word.strip_prefix("-p")));
                if password.is_some_and(|password| !password.is_empty() && is_value(password)) {
                    visit(item.span);
                }
                arguments(item, visit);
            }
        }
        _ => {}
    }
}

fn text(node: &Template) -> Option<&str> {
    if let Kind::String(text) = &node.kind { Some(text) } else { None }
}
