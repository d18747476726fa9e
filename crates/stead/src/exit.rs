//! Exit codes: how the program reports the outcome to other programs.

use std::process::ExitCode;

/// How the program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// It did what it was asked; for `plan`, `apply`, `check`: the machine is in the desired state.
    Success,
    /// Commands for users: something failed.
    Failed,
    /// Commands for users: the machine is not in the desired state.
    Drifted,
    /// Commands for users: the document, its parameters or the command line cannot be used.
    Unusable,
    /// Commands for users: the reconciler gave up on something that another run may realize.
    GaveUp,
    /// The status of an agent: something fails.
    Failing,
    /// The status of an agent: nothing happens until an operator does something.
    Held,
    /// It was ended early by Ctrl-C.
    Cancelled,
    /// Standard output could not be written.
    Output,
    /// Whoever read standard output stopped reading; the status that shells give to SIGPIPE.
    ClosedPipe,
    /// As dsc: the arguments make no sense together.
    DscArguments,
    /// As dsc: something failed.
    DscError,
    /// As dsc: the input cannot be read.
    DscInput,
    /// As dsc: there is no such resource.
    DscNotFound,
    /// As dsc: what is asserted is not so.
    DscAssertion,
    /// As dsc: the server failed.
    DscServer,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failed | Exit::DscArguments => 1,
            Exit::Drifted | Exit::DscError => 2,
            Exit::Unusable => 3,
            Exit::GaveUp | Exit::Failing | Exit::DscInput => 4,
            Exit::Cancelled | Exit::Held => 6,
            Exit::DscNotFound => 7,
            Exit::DscAssertion => 8,
            Exit::DscServer => 9,
            Exit::Output => 10,
            Exit::ClosedPipe => 141,
        })
    }
}
