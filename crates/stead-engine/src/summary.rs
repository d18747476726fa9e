//! What a run came to.

use stead_core::diag::Diagnostic;
use stead_core::event::Status;
use stead_core::report::Totals;
use stead_core::run::Run;
use stead_core::value::Value;

/// What a run came to. It costs a look at every instance and computes the outputs: it is made once, when a run has ended.
pub struct Summary {
    /// How many instances ended how.
    pub totals: Totals,
    /// The values of the outputs, or what is wrong with them.
    pub outputs: Vec<(String, Result<Value, Diagnostic>)>,
}

impl Summary {
    /// The summary of a run that has ended.
    pub fn of(run: &Run) -> Self {
        Self { totals: run.totals(), outputs: run.outputs() }
    }

    /// Whether anything of the run failed: an instance, what waits for one, or an output.
    pub fn has_failures(&self, run: &Run) -> bool {
        self.totals.failed > 0
            || self.outputs.iter().any(|(_, value)| value.is_err())
            || run.graph().iter().any(|(id, _)| run.report().status(id).is_some_and(Status::blocks))
    }

    /// Whether anything changed or differs, or may.
    pub fn has_changes(&self) -> bool {
        self.totals.changed + self.totals.drifted + self.totals.unknown > 0
    }
}
