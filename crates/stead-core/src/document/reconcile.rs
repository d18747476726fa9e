//! `directives.reconcile` of a document, and `reconcileWait` and `reconcilePending` of an instance.

use super::codes;
use super::fields::Reader;
use crate::diag::Diagnostic;
use crate::text::{Entry, Kind, Node, Span, Spanned};
use crate::wait::Wait;

/// `directives.reconcile`: how what is pending is run again. What is not stated is as on the command line.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reconcile {
    /// Where it is stated
    pub place: Option<Span>,
    /// `reconciler`: `basic`, `continuous`, `none`, or one of its own
    pub reconciler: Option<Spanned<String>>,
    /// `pending`: the rule that says what is pending
    pub pending: Option<Spanned<String>>,
    /// `maxPendingReruns`: how often anything is run again at most
    pub max_pending_reruns: Option<u32>,
    /// `maxUnchangedReruns`: how many runs in a row may make no progress
    pub max_unchanged_reruns: Option<u32>,
    /// `wait`: how long is waited, whatever resources say
    pub wait: Option<Spanned<Wait>>,
    /// The rules that instances name in `reconcilePending`, of this document and of those in it
    pub rules: Vec<Spanned<String>>,
}

const KEYS: &[&str] = &["reconciler", "pending", "maxPendingReruns", "maxUnchangedReruns", "wait"];

impl Reader<'_> {
    pub(super) fn reconcile(&mut self, node: Node) -> Reconcile {
        let mut reconcile = Reconcile { place: Some(node.span), ..Reconcile::default() };
        for Entry { key, key_span, value } in self.entries(node, "'reconcile'") {
            match &*key {
                _ if value.kind == Kind::Null && KEYS.contains(&&*key) => {}
                "reconciler" => reconcile.reconciler = self.string(value, "'reconciler'"),
                "pending" => reconcile.pending = self.string(value, "'pending'"),
                "maxPendingReruns" => reconcile.max_pending_reruns = self.count(&value, "'maxPendingReruns'"),
                "maxUnchangedReruns" => reconcile.max_unchanged_reruns = self.count(&value, "'maxUnchangedReruns'"),
                "wait" => reconcile.wait = self.wait(&value, "'wait'"),
                _ => self.unknown_key(&key, key_span, "'reconcile'", KEYS),
            }
        }
        reconcile
    }

    fn count(&mut self, node: &Node, what: &str) -> Option<u32> {
        self.size(node, what).map(|count| u32::try_from(count.value).unwrap_or(u32::MAX))
    }

    pub(super) fn wait(&mut self, node: &Node, what: &str) -> Option<Spanned<Wait>> {
        match Wait::from_json(node.literal().to_redacted_json()) {
            Ok(wait) => Some(Spanned::new(wait, node.span)),
            Err(why) => {
                let finding = Diagnostic::error(&codes::WAIT, node.span, format!("{what} is not a valid wait: {why}"));
                self.report(finding.with_help("for example 'static: 3' or 'exponential: {wait: 1, multiplier: 2}'"));
                None
            }
        }
    }
}
