//! Comparisons of documents with what their former runs managed, as the record has them: while a document, its record and those of
//! others stay as they were, nothing is compared again.

use std::collections::BTreeMap;
use std::sync::Arc;

use stead_core::digest::DigestOfParts;
use stead_core::event::Status;
use stead_core::graph::Graph;
use stead_core::id::NodeId;
use stead_core::report::Report;
use stead_host::store::kept::{Accounted, LeftBehind, Managed, StayReason};

use crate::things::Things;

/// How many of the things that were left behind are looked at by each run, for each reason why they stay.
const LOOKED_AT: usize = 64;

/// The digest of what the instances of a run came to: which of them succeeded, and the desired states that only the run knew.
pub(crate) fn digest_of_success(graph: &Graph, report: &Report) -> String {
    let mut digest = DigestOfParts::default();
    for id in &graph.order {
        let record = report.record(*id);
        digest.number(usize::from(has_succeeded(report, *id)));
        match (&record.desired, &graph.node(*id).stated) {
            (Some(desired), Some(stated)) if Arc::ptr_eq(desired, stated) => {}
            (Some(desired), _) => digest.value(desired),
            (None, _) => {}
        }
    }
    digest.end()
}

pub(crate) fn has_succeeded(report: &Report, id: NodeId) -> bool {
    matches!(report.status(id), Some(Status::Changed | Status::InState))
}

/// Counts the things that were left behind, by why they stay.
pub(crate) fn summarized<'m>(
    left: impl Iterator<Item = (StayReason, &'m Managed)>,
) -> BTreeMap<StayReason, LeftBehind> {
    let mut all: BTreeMap<StayReason, LeftBehind> = BTreeMap::new();
    for (reason, managed) in left {
        let of_reason = all.entry(reason).or_default();
        of_reason.count += 1;
        if of_reason.first.len() < LOOKED_AT {
            of_reason.first.push(managed.clone());
        }
    }
    all
}

/// Returns whether all that is looked at of what was left behind is there.
pub(crate) fn is_there(accounted: &Accounted, things: &Things) -> bool {
    accounted.left.values().flat_map(|left| &left.first).all(|managed| !things.is_absent(managed))
}
