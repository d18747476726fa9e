//! Secrets that are written into a document.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{Document, codes, form, texts};
use crate::diag::Diagnostic;
use crate::document::Parameter;
use crate::expr::Template;
use crate::text::{Kind, Sources, Span, locate, shown};
use crate::value::DataType;

/// The programs that take a password as an argument.
const MYSQL: [&str; 7] =
    ["mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump", "mariadb-admin"];

/// The forms that secrets have in text, each with the secret as its first group or as all of it.
static FORMS: LazyLock<[(&str, Regex); 5]> = LazyLock::new(|| {
    let mysql = MYSQL.join("|");
    [
        ("a private key", form("-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----")),
        ("an AWS access key", form(r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b")),
        (
            "an access token",
            form(r"\b(?:gh[opsur]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,})"),
        ),
        ("the password in a URL", form(r#"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@:'"]*:([^\s/?#@'"]+)@"#)),
        ("a MySQL password", form(&format!(r#"\b(?:{mysql})\s(?:[^|;&\n]*\s)?(?:-p|--password=)['"]?([^\s'"]+)"#))),
    ]
});

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
    let default = parameter.default.as_ref().filter(|default| is_stated(default))?;
    let name = shown(&parameter.name.value);
    let data_type = parameter.data_type.value;
    if data_type.is_secure() {
        return Some(finding(default.span, format!("the default of the secret '{name}' is in plain text")));
    }
    let plain: String =
        parameter.name.value.chars().filter(|c| !"_-".contains(*c)).flat_map(char::to_lowercase).collect();
    let is_secret = data_type == DataType::String && SECRET_NAMES.iter().any(|end| plain.ends_with(end));
    let Kind::String(text) = &default.kind else { return None };
    (is_secret && !text.starts_with('/')).then(|| {
        finding(default.span, format!("the default of '{name}', which is named like a secret, is in plain text"))
    })
}

/// Returns whether a default is a value that is written out, and that may be a secret.
fn is_stated(default: &Template) -> bool {
    match &default.kind {
        Kind::String(text) => !text.is_empty() && is_value(text),
        Kind::Object(entries) => !entries.is_empty(),
        _ => false,
    }
}

/// Where the secrets of a form are in a text.
fn matches(form: &Regex, text: &str) -> impl Iterator<Item = Range<usize>> {
    form.captures_iter(text)
        .filter_map(|captures| captures.get(1).or_else(|| captures.get(0)))
        .filter(|found| is_value(found.as_str()))
        .map(|found| found.range())
}

/// Returns whether a text may be a secret: not a variable, and not a word that stands for one, such as `PASSWORD` or `<token>`.
fn is_value(text: &str) -> bool {
    let is_example = text.ends_with("EXAMPLE");
    let is_name = text.chars().all(|c| c.is_ascii_uppercase() || c == '_') && !text.starts_with("-----");
    !is_example && !is_name && !text.starts_with(['$', '<', '{', '[', '%', '*', '`'])
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
