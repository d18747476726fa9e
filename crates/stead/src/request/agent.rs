//! Requests to an agent, or to be one.

use std::path::PathBuf;
use std::time::Duration;

use stead_agent::Stage;
use stead_hosts::MachineName;
use stead_release::Digest;

use super::{MetricsRequest, Supplied};
use crate::terminal::Output;

/// `agent`
#[derive(Debug)]
pub(crate) struct AgentRequest {
    /// The state directory of the agent, where it is not the usual one.
    pub(crate) state: Option<PathBuf>,
    pub(crate) output: Output,
    pub(crate) task: AgentTask,
}

/// A question to an agent.
#[derive(Debug)]
pub(crate) enum AgentTask {
    /// To run until it is stopped.
    Run {
        /// The file that tells one boot of the machine from another, where it is not the usual one.
        boot_id: Option<PathBuf>,
        /// How long a job may go on after a request to end.
        stop_grace: Option<Duration>,
        /// Where figures about each job are written.
        metrics: Option<MetricsRequest>,
    },
    /// To print the public keys of this machine.
    Identity(IdentityRequest),
    Install,
    /// Only the unit that 'install' writes.
    PrintUnit,
    /// To apply the document that is staged.
    ApplyStaged {
        waits: Option<Patience>,
    },
    Deliver(DeliveryRequest),
    Restore {
        generation: Option<u64>,
        force: bool,
        /// True if no releases are followed any more.
        unfollow: bool,
        waits: Option<Patience>,
    },
    /// To follow releases.
    Follow {
        source: PathBuf,
        /// The digest of the root statement.
        root: Digest,
        /// The name in the roster, where it is not the name of the host.
        name: Option<MachineName>,
    },
    /// To join a controller.
    Join(JoinRequest),
    WaitForRest(Patience),
    WaitForJob(Patience),
    LoadSettings(PathBuf),
    /// To write signed reports to files.
    WriteReports {
        folder: PathBuf,
        /// The first number.
        after: u64,
    },
    Status,
    Check,
    Get,
    /// A question whose answer is only shown.
    Look(AgentQuestion),
}

/// How a machine joins a controller.
#[derive(Debug)]
pub(crate) struct JoinRequest {
    /// Its address.
    pub(crate) url: String,
    /// The digest of the root statement.
    pub(crate) root: Digest,
    /// The name in the roster, where it is not the name of the host.
    pub(crate) name: Option<MachineName>,
    /// The labels that it asks for.
    pub(crate) labels: Vec<(String, String)>,
    /// The file with the token, where a variable does not have it.
    pub(crate) token: Option<PathBuf>,
    /// The file with certificates to trust besides those of the system.
    pub(crate) certificates: Option<PathBuf>,
}

/// The keys of this machine that are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IdentityRequest {
    /// Those that are there, or the first ones.
    Present,
    /// New ones. `asks` is true if a user at a terminal is asked before.
    New { asks: bool },
}

/// A question to an agent whose answer is shown as it is.
#[derive(Debug)]
pub(crate) enum AgentQuestion {
    Acknowledge,
    Unfollow,
    Stop { force: bool },
    History,
    Diff { from: Option<u64>, to: Option<u64> },
    Remove { stage: Stage, force: bool },
    Report(String),
    Reports { most: usize, after: Option<u64> },
    Logs { most: usize },
    Settings,
    ChangeSettings(Vec<(String, String)>),
}

/// A document for an agent.
#[derive(Debug)]
pub(crate) struct DeliveryRequest {
    /// The file, or standard input for `-`.
    pub(crate) file: PathBuf,
    pub(crate) supplied: Supplied,
    /// True if it replaces a pending document even if the settings refuse that.
    pub(crate) force: bool,
    /// True if it is only staged.
    pub(crate) publish: bool,
    /// True if no releases are followed any more.
    pub(crate) unfollow: bool,
    pub(crate) waits: Option<Patience>,
}

/// How long something is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) timeout: Option<Duration>,
    /// Also after an attempt has failed, and for maintenance windows.
    pub(crate) until_converged: bool,
}
