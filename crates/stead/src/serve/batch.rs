//! Whole documents: several of them are checked, and then applied one after the other, with a reconciler and a pending rule.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use stead_core::event::Mode;
use stead_core::value::Object;
use stead_engine::policy::Wait;
use stead_engine::{
    Batch, BatchDocument, BatchResult, ReconcileOptions, RefusedDocuments, Session, error_chain, json as printed,
};

use super::calls::prepared;
use super::places::{Look, Places};
use super::protocol::Manner;
use crate::rpc::{Problem, Request, Work};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BatchParams {
    documents: Vec<DocumentParams>,
    #[serde(default)]
    reconcile: ReconcileParams,
    #[serde(default)]
    runtime: Runtime,
    /// Only say what would be done.
    #[serde(default)]
    what_if: bool,
    #[serde(flatten)]
    manner: Manner,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DocumentParams {
    #[serde(default)]
    name: Option<String>,
    /// The text of it, or the document itself.
    #[serde(default)]
    document: Option<Json>,
    /// Its file.
    #[serde(default)]
    path: Option<PathBuf>,
    #[serde(default)]
    parameters: Object,
}

/// What `directives.reconcile` of a document has.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct ReconcileParams {
    reconciler: Option<String>,
    pending: Option<String>,
    max_pending_reruns: Option<u32>,
    max_unchanged_reruns: Option<u32>,
    wait: Option<Json>,
}

/// How many instances are worked on at once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Runtime {
    /// One at a time.
    Serial,
    /// As many as there are processors.
    #[default]
    Parallel,
}

/// Checks all documents of a request, and then runs one after the other.
pub(super) fn batch(places: &Places, work: &Work<Request>) -> Result<Json, Problem> {
    let BatchParams { documents, reconcile, runtime, what_if, manner } = work.call.params()?;
    let base = places.of(&manner.caller, Look::Once)?;
    let session = prepared(&base, &manner, work)?;
    let numbered = documents.into_iter().zip(1..);
    let documents = numbered.map(|(stated, number)| document(&session, stated, number)).collect::<Result<_, _>>()?;
    let batch = Batch {
        mode: if what_if { Mode::PLAN } else { Mode::APPLY },
        width: if runtime == Runtime::Serial { NonZeroUsize::MIN } else { session.host().width() },
        reconcile: options(reconcile)?,
        ..Batch::apply(documents, session.host())
    };
    let results = batch.run_beside(&session, Some(&work.watch)).map_err(|refused| problem(&refused))?;
    Ok(json!({ "documents": results.iter().map(result).collect::<Vec<_>>() }))
}

fn document(session: &Session, stated: DocumentParams, number: usize) -> Result<BatchDocument, Problem> {
    let DocumentParams { name, document, path, parameters } = stated;
    let read = match (document, path) {
        (Some(document), None) => {
            let text = document.as_str().map_or_else(|| document.to_string(), str::to_owned);
            let (name, root) = (format!("document {number}"), session.root().to_owned());
            BatchDocument { name, text, root, identity: None, parameters: Object::new() }
        }
        (None, Some(path)) => BatchDocument::read(&session.root().join(&path)).map_err(|error| {
            Problem::new(Problem::PARAMS, format!("cannot read document '{}': {error}", path.display()))
        })?,
        _ => {
            let message = format!("document {number} must have either 'document' or 'path'");
            return Err(Problem::new(Problem::PARAMS, message));
        }
    };
    Ok(BatchDocument { name: name.unwrap_or(read.name), parameters, ..read })
}

fn options(stated: ReconcileParams) -> Result<ReconcileOptions, Problem> {
    let ReconcileParams { reconciler, pending, max_pending_reruns, max_unchanged_reruns, wait } = stated;
    let wait = wait.map(Wait::from_json).transpose();
    let wait = wait.map_err(|why| Problem::new(Problem::PARAMS, format!("'wait' is not a valid wait: {why}")))?;
    Ok(ReconcileOptions { reconciler, pending, max_pending_reruns, max_unchanged_reruns, wait })
}

fn result(result: &BatchResult) -> Json {
    match &result.outcome {
        Ok(completed) => json!({ "name": result.name, "report": completed.json }),
        Err(error) => json!({ "name": result.name, "error": error_chain(error) }),
    }
}

/// Documents that are refused; nothing was run.
fn problem(refused: &RefusedDocuments) -> Problem {
    let findings = |document: &stead_engine::RefusedDocument| {
        let mut findings = printed::findings(&document.findings, &document.sources);
        findings["name"] = document.name.as_str().into();
        findings
    };
    let documents: Vec<Json> = refused.documents.iter().map(findings).collect();
    Problem::new(Problem::PARAMS, refused.to_string()).with("documents", documents)
}
