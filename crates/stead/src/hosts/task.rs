//! A command for many machines, as it was asked for.

use std::path::PathBuf;

use stead_engine::ReconcileOptions;

use super::order::{Operation, Work};
use super::plans::PlansErrand;
use crate::request::{DocumentRequest, FleetRequest, RecordingRequest, View};

/// What is done, and on which machines.
pub(super) struct Task {
    pub(super) operation: Operation,
    pub(super) errand: Errand,
    pub(super) view: View,
    pub(super) fleet: FleetRequest,
    /// The file that the plans are saved in.
    pub(super) out: Option<PathBuf>,
}

/// The order for each machine.
pub(super) enum Errand {
    Document(Box<DocumentErrand>),
    /// The plan that each made before.
    Plans(Box<PlansErrand>),
    /// One order for all.
    Words(Work),
}

impl Errand {
    /// A document of which nothing is changed.
    pub(super) fn looking(document: DocumentRequest) -> Self {
        let (reconcile, recording) = (ReconcileOptions::none(), None);
        Self::Document(Box::new(DocumentErrand { document, reconcile, recording }))
    }
}

/// Something with a document.
pub(super) struct DocumentErrand {
    pub(super) document: DocumentRequest,
    pub(super) reconcile: ReconcileOptions,
    pub(super) recording: Option<RecordingRequest>,
}
