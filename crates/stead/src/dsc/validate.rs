//! `config validate`: whether a document could be run, as far as that is known without a look at the machine.

use stead_core::document::{Document, is_schema_of_documents};
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
        Some(schema) if is_schema_of_documents(&schema.value) => None,
        Some(schema) => {
            let place = sources.place(schema.span);
            Some(format!("{place}: '{}' is not the schema of a configuration document", schema.value))
        }
    }
}
