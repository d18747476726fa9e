//! Which reconciler a run has: as the command line or settings say, else as the document says.

use std::sync::Arc;

use stead_core::diag::{Diagnostic, nearest};
use stead_core::document;
use stead_core::run::codes;
use stead_core::run::policy::{Policy, SinglePass};
use stead_core::run::reconcile::{PendingRule, Reconciler, WhileProgress};
use stead_core::text::Spanned;
use stead_core::wait::Wait;

/// How what is pending is run again. What is not stated is as the document says, or as usual.
#[derive(Clone, Debug, Default)]
pub struct ReconcileOptions {
    /// `basic`, `continuous`, or `none`, which runs everything once.
    pub reconciler: Option<String>,
    /// `default`: pending while there is progress.
    pub pending: Option<String>,
    /// How often anything is run again at most.
    pub max_pending_reruns: Option<u32>,
    /// How many runs in a row may make no progress.
    pub max_unchanged_reruns: Option<u32>,
    /// How long is waited, whatever resources say.
    pub wait: Option<Wait>,
}

/// The reconcilers that there are by themselves.
pub const RECONCILERS: [&str; 3] = ["continuous", "basic", "none"];

/// The pending rules that there are by themselves.
pub const PENDING_RULES: [&str; 1] = ["default"];

impl ReconcileOptions {
    /// One pass, whatever the document says.
    pub fn none() -> Self {
        Self { reconciler: Some("none".to_owned()), ..Self::default() }
    }

    /// The policy of a run of a document that says `stated`.
    pub fn policy(&self, stated: &document::Reconcile) -> Result<Arc<dyn Policy>, Box<Diagnostic>> {
        let max_unchanged = self.max_unchanged_reruns.or(stated.max_unchanged_reruns);
        let max_unchanged = max_unchanged.unwrap_or(WhileProgress::MAX_UNCHANGED);
        let name = chosen(self.reconciler.as_ref(), stated.reconciler.as_ref());
        let reconciler = match name.text {
            None | Some("continuous") => Reconciler::continuous(max_unchanged),
            Some("basic") => Reconciler::basic(max_unchanged),
            Some("none") => return Ok(Arc::new(SinglePass)),
            Some(other) => return Err(name.unknown("reconciler", other, &RECONCILERS)),
        };
        let rule = self.rule(stated, &reconciler)?;
        let most = self.max_pending_reruns.or(stated.max_pending_reruns).unwrap_or(Reconciler::MAX_RE_RUNS);
        let wait = self.wait.or(stated.wait.as_ref().map(|wait| wait.value));
        Ok(Arc::new(Reconciler { rule, wait, max_re_runs: most, ..reconciler }))
    }

    fn rule(
        &self,
        stated: &document::Reconcile,
        reconciler: &Reconciler,
    ) -> Result<Arc<dyn PendingRule>, Box<Diagnostic>> {
        let name = chosen(self.pending.as_ref(), stated.pending.as_ref());
        match name.text {
            None | Some("default") => Ok(Arc::clone(&reconciler.rule)),
            Some(other) => Err(name.unknown("pending rule", other, &PENDING_RULES)),
        }
    }
}

/// A name, and where it stands if that is in a document.
struct Chosen<'a> {
    text: Option<&'a str>,
    place: Option<&'a Spanned<String>>,
}

fn chosen<'a>(option: Option<&'a String>, stated: Option<&'a Spanned<String>>) -> Chosen<'a> {
    match option {
        Some(option) => Chosen { text: Some(option), place: None },
        None => Chosen { text: stated.map(|stated| stated.value.as_str()), place: stated },
    }
}

impl Chosen<'_> {
    fn unknown(&self, what: &str, name: &str, known: &[&str]) -> Box<Diagnostic> {
        let message = format!("there is no {what} '{name}'");
        let place = self.place.map(|place| place.span);
        let finding = Diagnostic::error(&codes::RECONCILER, place.unwrap_or_default(), message);
        let finding = Diagnostic { span: place, ..finding };
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("there are {}", known.join(", ")),
        };
        Box::new(finding.with_help(help))
    }
}
