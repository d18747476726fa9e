//! The summary of a run.

use stead_core::diag::Diagnostic;
use stead_core::event::Status;
use stead_core::report::Totals;
use stead_core::run::Run;
use stead_core::value::Value;

/// The summary of a run. It costs a look at every instance and computes the outputs: it is made once, when a run has
/// ended.
pub struct Summary {
    /// How many instances ended how.
    pub totals: Totals,
    /// The values of the outputs, or what is wrong with them.
    pub outputs: Vec<(String, Result<Value, Diagnostic>)>,
    /// How many instances the reconciler gave up on: another run may realize them.
    pub given_up: usize,
}

impl Summary {
    /// The summary of a run that has ended.
    pub fn of(run: &Run) -> Self {
        Self { totals: run.totals(), outputs: run.outputs(), given_up: run.given_up().count() }
    }

    /// Returns whether anything of the run failed: an instance, one that waits for one, or an output.
    pub fn has_failures(&self, run: &Run) -> bool {
        self.totals.failed > 0
            || self.outputs.iter().any(|(_, value)| value.is_err())
            || run.graph().iter().any(|(id, _)| run.report().status(id).is_some_and(Status::blocks))
    }

    /// Returns whether everything that failed is what the reconciler gave up on, and what waits for it.
    pub fn only_gave_up(&self) -> bool {
        let outputs_hold = self.outputs.iter().all(|(_, value)| value.is_ok());
        self.given_up > 0 && self.given_up == self.totals.failed + self.totals.pending && outputs_hold
    }

    /// Returns whether anything changed or differs, or may.
    pub fn has_changes(&self) -> bool {
        self.totals.changed + self.totals.drifted + self.totals.unknown > 0
    }
}
