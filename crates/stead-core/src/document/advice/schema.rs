//! The addresses that `$schema` of a document may have.

use super::{Document, codes};
use crate::diag::{Diagnostic, Meant};
use crate::text::shown;

/// Where the schemas of documents are published.
const PUBLISHED: [&str; 2] =
    ["https://aka.ms/dsc/schemas/", "https://raw.githubusercontent.com/PowerShell/DSC/main/schemas/"];

/// The forms in which they are.
const FORMS: [&str; 3] =
    ["bundled/config/document.json", "bundled/config/document.vscode.json", "config/document.json"];

/// The versions before 3.0, by the month in which they were published.
const DATED: [&str; 3] = ["2023/08/", "2023/10/", "2024/04/"];

/// Returns whether an address is one of the schema of documents: of `vNext`, of a version such as `v3.1`, or of one before it.
pub fn is_schema_of_documents(address: &str) -> bool {
    let rest = PUBLISHED.iter().find_map(|start| address.strip_prefix(start));
    if rest.is_some_and(|rest| {
        DATED.iter().any(|month| rest.strip_prefix(month).is_some_and(|form| FORMS.contains(&form)))
    }) {
        return true;
    }
    rest.and_then(|rest| rest.split_once('/'))
        .is_some_and(|(version, form)| is_version(version) && FORMS.contains(&form))
}

fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = || text.strip_prefix('v').map(|rest| rest.split('.'));
    text == "vNext"
        || numbers().is_some_and(|mut parts| parts.next() == Some("3") && parts.all(is_number))
            && numbers().is_some_and(|parts| parts.count() <= 3)
}

/// A warning about a `$schema` that is not one of documents.
pub(super) fn unknown(document: &Document) -> Option<Diagnostic> {
    let schema = document.schema.as_ref().filter(|schema| !is_schema_of_documents(&schema.value))?;
    let message = format!("'{}' is not the schema of a document", shown(&schema.value));
    let finding = Diagnostic::warning(&codes::UNKNOWN_SCHEMA, schema.span, message);
    let known = FORMS.map(|form| format!("{}v3/{form}", PUBLISHED[0]));
    Some(match Meant::word(&schema.value, known.iter().map(String::as_str)) {
        Some(meant) => finding.with_help(meant.to_string()),
        None => finding.with_help(format!("remove it, or write '{}'", known[0])),
    })
}
