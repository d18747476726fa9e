//! The meaning of modes: the one table that deciding, carrying out and judging a job go by.

use stead_core::document::ConfigurationMode;

/// The treatment of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Treatment {
    /// It is brought into its desired state.
    Set,
    /// It is tested.
    Test,
    /// Nothing.
    Skip,
}

/// Where the document of an instance stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// It has not converged.
    Pending,
    /// It has.
    Current,
    /// It has, and an operator wants it to be applied once more.
    Requested,
}

/// Returns the treatment of an instance of a mode.
pub(crate) fn treatment(standing: Standing, mode: ConfigurationMode) -> Treatment {
    use ConfigurationMode::{ApplyAndAutoCorrect, ApplyAndMonitor, ApplyOnly, MonitorOnly};
    match (standing, mode) {
        (_, MonitorOnly) | (Standing::Current, ApplyAndMonitor) => Treatment::Test,
        (Standing::Current, ApplyOnly) => Treatment::Skip,
        (Standing::Current, ApplyAndAutoCorrect) | (Standing::Pending | Standing::Requested, _) => Treatment::Set,
    }
}
