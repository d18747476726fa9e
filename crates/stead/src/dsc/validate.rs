//! `config validate`: whether a document could be run, as far as that is known without a look at the machine.

use stead_core::document::Document;
use stead_core::event::Mode;
use stead_core::text::Sources;
use stead_engine::{Prepared, Session, finding_line};

/// What is wrong with a document beside what keeps it from running, one line each.
pub(super) fn faults(session: &Session, prepared: &Prepared) -> Vec<String> {
    let Some(scope) = prepared.graph.scopes.first() else { return Vec::new() };
    let properties = session.check_properties(prepared, Mode::PLAN);
    let lines = properties.iter().map(|finding| finding_line(finding, &prepared.sources));
    schema_fault(&scope.document, &prepared.sources).into_iter().chain(lines).collect()
}

fn schema_fault(document: &Document, sources: &Sources) -> Option<String> {
    match &document.schema {
        None => Some("'$schema' is missing".to_owned()),
        Some(schema) if is_known(&schema.value) => None,
        Some(schema) => {
            let place = sources.place(schema.span);
            Some(format!("{place}: '{}' is not the schema of a configuration document", schema.value))
        }
    }
}

/// Where the schemas of documents are published.
const PUBLISHED: [&str; 2] =
    ["https://aka.ms/dsc/schemas/", "https://raw.githubusercontent.com/PowerShell/DSC/main/schemas/"];

/// The forms in which they are.
const FORMS: [&str; 3] =
    ["bundled/config/document.json", "bundled/config/document.vscode.json", "config/document.json"];

/// Returns whether an address is one of the schema of documents: of `vNext`, or of a version such as `v3.1`.
fn is_known(address: &str) -> bool {
    let rest = PUBLISHED.iter().find_map(|start| address.strip_prefix(start));
    rest.and_then(|rest| rest.split_once('/'))
        .is_some_and(|(version, form)| is_version(version) && FORMS.contains(&form))
}

fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text == "vNext"
        || text.strip_prefix('v').is_some_and(|rest| rest.split('.').count() <= 3 && rest.split('.').all(is_number))
}
