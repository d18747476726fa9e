//! How a piece of work is done.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stead_core::graph::{Names, Values};
use stead_host::facts::Labels;
use stead_host::provider::{ProgressSink, Trace, TraceLevel};
use stead_system::Cancel;

use crate::contexts::{forward, shown};

/// How a [`crate::Session`] works; [`SessionOptions::default`] is the usual way.
#[derive(Clone)]
pub struct SessionOptions {
    /// The rule for instances of a document with the same name.
    pub names: Names,
    /// The rule for parameters of a document without a value.
    pub values: Values,
    /// True if a path that an instance lies in or uses is created before it, though the document does not say so.
    pub implicit_order: bool,
    /// How long one program of a resource may take; `None` for as long as the host says.
    pub deadline: Option<Duration>,
    /// The root of the operating system that is managed: the paths of built-in resources start there. `None` for the one
    /// that runs.
    pub system_root: Option<PathBuf>,
    /// True if the system root was made for this work alone: nobody else works on it, so that it is not locked, and its files are
    /// all that is asked for. What only a running system or root has is left out and not refused.
    pub private_root: bool,
    /// Labels of the machine that are known otherwise than by the file of its system, and count more than those.
    pub labels: Labels,
    /// Takes the messages of resources.
    pub trace: Trace,
    /// How much of them it passes on: resources need not make the rest.
    pub shown: TraceLevel,
    /// Takes how far activities of resources are; `None` where nobody shows it.
    pub progress: Option<ProgressSink>,
    /// Ends everything early.
    pub cancel: Cancel,
    /// Stops a run so that it can be resumed.
    pub suspend: Cancel,
    /// Ends calls that change nothing; those that do go on.
    pub end_reads: Cancel,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            names: Names::Unique,
            values: Values::Required,
            implicit_order: true,
            deadline: None,
            system_root: None,
            private_root: false,
            labels: Labels::default(),
            trace: Arc::new(forward),
            shown: shown(),
            progress: None,
            cancel: Cancel::default(),
            suspend: Cancel::default(),
            end_reads: Cancel::default(),
        }
    }
}
