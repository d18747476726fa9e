//! Several documents at once: all are checked before the first one runs.

use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value as Json;
use stead_core::diag::Diagnostic;
use stead_core::event::Mode;
use stead_core::identity::DocumentIdentity;
use stead_core::run::Run;
use stead_core::run::policy::Policy;
use stead_core::text::Sources;
use stead_core::value::Object;

use crate::execution::{RunError, RunOptions, RunWatch};
use crate::host::Host;
use crate::json;
use crate::messages::finding_line;
use crate::prepared::Prepared;
use crate::reconcile::ReconcileOptions;
use crate::session::{Session, folder_of};
use crate::summary::Summary;

/// A document and what its parameters are.
#[derive(Clone, Debug)]
pub struct BatchDocument {
    /// The name of the document in findings and results.
    pub name: String,
    /// Its text, YAML or JSON.
    pub text: String,
    /// Where its relative paths start from.
    pub root: PathBuf,
    /// The identity by which its runs know what former ones owe, unless it states one itself; without either they do not.
    pub identity: Option<DocumentIdentity>,
    /// The values of its parameters. Those that it declares as secure are put into the vault before anything else.
    pub parameters: Object,
}

impl BatchDocument {
    /// The document of a file, without parameters.
    pub fn read(file: &Path) -> io::Result<Self> {
        let (name, text) = (file.display().to_string(), std::fs::read_to_string(file)?);
        let identity = Some(DocumentIdentity::of_file(&std::fs::canonicalize(file)?));
        Ok(Self { name, text, root: folder_of(file), identity, parameters: Object::new() })
    }
}

/// Documents that are run one after the other.
#[derive(Clone)]
pub struct Batch {
    /// The documents, in the order in which they are run.
    pub documents: Vec<BatchDocument>,
    /// The mode that the documents are run in.
    pub mode: Mode,
    /// How many instances are worked on at once.
    pub width: NonZeroUsize,
    /// The policy by which pending instances are run again; `None` for the one that `reconcile` and each document state.
    pub policy: Option<Arc<dyn Policy>>,
    /// How pending instances are run again, by names. What is stated here wins over what documents say.
    pub reconcile: ReconcileOptions,
}

/// The outcome of one document.
pub struct BatchResult {
    /// The name of the document.
    pub name: String,
    /// Its run, or why that could not be carried out.
    pub outcome: Result<Completed, RunError>,
}

/// A run that came to its end.
pub struct Completed {
    /// The run; its report is [`Run::report`].
    pub run: Run,
    /// The summary of the run.
    pub summary: Summary,
    /// The JSON that `stead apply --output json` prints.
    pub json: Json,
}

/// Documents that are refused. Nothing was run.
#[derive(Debug, thiserror::Error)]
pub struct RefusedDocuments {
    /// Everything that is wrong with them.
    pub documents: Vec<RefusedDocument>,
}

/// A document that is refused.
#[derive(Debug)]
pub struct RefusedDocument {
    /// Its name.
    pub name: String,
    /// Everything that is wrong with it.
    pub findings: Vec<Diagnostic>,
    /// The sources that the findings point into.
    pub sources: Sources,
}

impl fmt::Display for RefusedDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self
            .documents
            .iter()
            .flat_map(|document| document.findings.iter().map(|finding| finding_line(finding, &document.sources)));
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

impl Batch {
    /// Applies documents as they say themselves.
    pub fn apply(documents: Vec<BatchDocument>, host: &Host) -> Self {
        let reconcile = ReconcileOptions::default();
        Self { documents, mode: Mode::APPLY, width: host.width(), policy: None, reconcile }
    }

    /// Checks all documents and then runs them, one result for each.
    ///
    /// Guarantees: nothing is run if one of them is refused; then the findings of all are in the error. A run that cannot
    /// be carried out does not keep the later ones from being run.
    pub fn run(&self, host: &Host) -> Result<Vec<BatchResult>, RefusedDocuments> {
        self.run_beside(&host.session("."), None)
    }

    /// Does what [`Self::run`] does under the options of a session, and has calls watched.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_beside(
        &self,
        session: &Session,
        watch: Option<&Arc<RunWatch>>,
    ) -> Result<Vec<BatchResult>, RefusedDocuments> {
        let mut ready = Vec::new();
        let mut refused = Vec::new();
        for document in &self.documents {
            match self.prepare(document, session) {
                Ok(one) => ready.push(one),
                Err(one) => refused.push(one),
            }
        }
        if !refused.is_empty() {
            return Err(RefusedDocuments { documents: refused });
        }
        Ok(ready.into_iter().map(|ready| self.run_one(ready, watch)).collect())
    }

    fn prepare<'a>(&self, document: &'a BatchDocument, beside: &Session) -> Result<Ready<'a>, RefusedDocument> {
        let mut session = beside.elsewhere(beside.host(), &document.root);
        let prepared = session.prepare_checked(&document.name, &document.text, document.parameters.clone(), self.mode);
        let mut prepared = match prepared {
            Ok(prepared) => prepared,
            Err(unusable) => return Err(document.refused(unusable.findings, session)),
        };
        let identity = prepared.stated_identity().or_else(|| document.identity.clone());
        prepared.memory = identity.map(|identity| session.memory(&identity));
        session.account_for_removed(&mut prepared, self.mode);
        let policy = match &self.policy {
            Some(policy) => Ok(Arc::clone(policy)),
            None => session.policy(&self.reconcile, &prepared.reconcile),
        };
        match policy {
            Ok(policy) => Ok(Ready { name: &document.name, session, prepared, policy }),
            Err(findings) => Err(document.refused(findings, session)),
        }
    }

    fn run_one(&self, ready: Ready<'_>, watch: Option<&Arc<RunWatch>>) -> BatchResult {
        let Ready { name, session, prepared, policy } = ready;
        let began = Instant::now();
        let execution = RunOptions { policy, watch: watch.cloned(), ..RunOptions::new(self.mode, self.width) };
        let outcome = session.run(&prepared, execution).map(|run| {
            let summary = Summary::of(&run);
            let json = json::report(&run, &summary, began.elapsed());
            Completed { run, summary, json }
        });
        BatchResult { name: name.to_owned(), outcome }
    }
}

/// A document that can be run.
struct Ready<'a> {
    name: &'a str,
    session: Session,
    prepared: Prepared,
    policy: Arc<dyn Policy>,
}

impl BatchDocument {
    fn refused(&self, findings: Vec<Diagnostic>, session: Session) -> RefusedDocument {
        RefusedDocument { name: self.name.clone(), findings, sources: session.sources }
    }
}
