//! `agent`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use stead_agent::Stage;
use stead_hosts::MachineName;

use super::document::Supplied;
use super::release::machine;
use super::values::{assignment, seconds};
use crate::request::{
    AgentQuestion, AgentRequest, AgentTask, DeliveryRequest, IdentityRequest, JoinRequest, MetricsRequest, Patience,
};
use crate::terminal::Output;

#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// The state directory of the agent [default: /var/lib/stead for root, else ~/.local/state/stead]
    #[arg(long, global = true, value_name = "FOLDER", env = "STEAD_STATE")]
    state: Option<PathBuf>,
    /// Output format
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(subcommand)]
    command: AgentCommand,
}

impl Agent {
    /// Returns whether it prints text to be read at length.
    pub(super) fn is_paged(&self) -> bool {
        use AgentCommand::{Diff, History, Logs, Report};
        matches!(self.command, Diff { .. } | History | Logs { .. } | Report { .. })
    }
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// Run the agent in this terminal, or as a service
    Run {
        /// The file that tells one boot of the machine from another; for tests
        #[arg(long, value_name = "FILE", hide = true)]
        boot_id: Option<PathBuf>,
        /// How long a job may go on after a request to end, before its end by force is a crash; for tests
        #[arg(long, value_name = "SECONDS", value_parser = seconds, hide = true)]
        stop_grace: Option<Duration>,
        /// Write figures about each job to FILE for Prometheus (the textfile collector of its node exporter)
        #[arg(long, value_name = "FILE")]
        metrics: Option<PathBuf>,
        /// Let every user read that file
        #[arg(long, requires = "metrics")]
        metrics_for_all: bool,
    },
    /// Deliver a document; the agent applies it until the machine converges
    Apply {
        /// The document, YAML or JSON; - reads standard input
        #[arg(value_name = "FILE", required_unless_present = "use_existing")]
        file: Option<PathBuf>,
        #[command(flatten)]
        delivery: Delivery,
        /// Apply the staged document now, without a new one
        #[arg(long, conflicts_with_all = ["file", "parameters", "parameters_file", "set"])]
        use_existing: bool,
        #[command(flatten)]
        waiting: Waiting,
    },
    /// Deliver a document that is only staged: 'apply --use-existing' starts it
    Publish {
        /// The document, YAML or JSON; - reads standard input
        file: PathBuf,
        #[command(flatten)]
        delivery: Delivery,
    },
    /// Test the current and the pending document now; changes nothing
    Check,
    /// Read the state of every instance of the current document
    Get,
    /// Show the stages, what is wrong, what the agent does or waits for, and the last result
    ///
    /// Exit codes: 0 converged; 2 not in the desired state; 4 something fails; 6 held, or no document; 1 the agent
    /// cannot be asked.
    Status,
    /// Clear the damage that 'status' reports
    Acknowledge,
    /// Wait until the pending document converges, an attempt fails, or it waits for a restart, a window or an operator
    Wait {
        /// Give up after this many seconds
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        timeout: Option<Duration>,
        /// Keep waiting through failed attempts and maintenance windows
        #[arg(long, conflicts_with = "job")]
        until_converged: bool,
        /// Wait only until the current job ends, or the next one
        #[arg(long)]
        job: bool,
    },
    /// Stop the running job; its document is then held until 'apply --use-existing'
    Stop {
        /// End programs of resources at once
        #[arg(long)]
        force: bool,
    },
    /// List the documents that are kept
    History,
    /// Deliver an earlier document again, and remove what newer ones created: the previous one, or that of a generation
    Restore {
        /// The generation, from 'history'
        generation: Option<u64>,
        /// Replace a pending document even if the settings refuse it
        #[arg(long)]
        force: bool,
        /// Follow no releases any more
        #[arg(long)]
        unfollow: bool,
        #[command(flatten)]
        waiting: Waiting,
    },
    /// Compare two documents; by default the current and the pending one
    Diff {
        /// The first generation
        from: Option<u64>,
        /// The second generation
        to: Option<u64>,
    },
    /// Remove the document of a stage
    Remove {
        /// The stage
        #[arg(long, value_enum, ignore_case = true)]
        stage: StageName,
        /// Stop the job that uses it first
        #[arg(long)]
        force: bool,
    },
    /// Show or change the settings
    Settings {
        #[command(subcommand)]
        command: Option<SettingsCommand>,
    },
    /// Show the reports of the last jobs, or one of them
    Report {
        /// Job id, or any unique part of it
        job: Option<String>,
        /// Number of reports to show
        #[arg(short = 'n', long, default_value_t = 10)]
        lines: usize,
        /// Show those behind this cursor, oldest first: the 'next' of an earlier answer, or 0 for all
        #[arg(long, value_name = "CURSOR", conflicts_with = "job")]
        after: Option<u64>,
        /// Write all that are kept to FOLDER, signed by this machine, each to a file that 'stead release verify' checks
        #[arg(long, value_name = "FOLDER", conflicts_with_all = ["job", "lines"])]
        out: Option<PathBuf>,
    },
    /// Show the last lines of the log
    Logs {
        /// Number of lines to show
        #[arg(short = 'n', long, default_value_t = 20)]
        lines: usize,
    },
    /// Print the public keys of this machine for a roster; the first time they are made
    Identity {
        /// Make new keys in place of those that are there
        #[arg(long)]
        new: bool,
        /// Make them without a question
        #[arg(long, requires = "new")]
        yes: bool,
    },
    /// Follow releases: what operators sign for this machine is delivered, and nothing else
    Follow {
        /// A folder as 'stead release' makes it, its address on a web server, as `https://HOST/PATH/`, or a repository that has one, as 'git+ADDRESS#BRANCH'
        source: PathBuf,
        /// The digest of the root statement of the fleet, as 'stead release root' prints it
        #[arg(long, value_name = "DIGEST")]
        root: stead_release::Digest,
        /// The name of this machine in the roster [default: its host name]
        #[arg(long, value_parser = machine)]
        name: Option<MachineName>,
    },
    /// Join a controller, and follow what its operators sign for this machine
    Join {
        /// The address of the controller, or of a proxy before it, as `https://HOST:7443`
        #[arg(value_name = "URL")]
        url: String,
        /// The digest of the root statement of the fleet, as 'stead release root' prints it
        #[arg(long, value_name = "DIGEST")]
        root: stead_release::Digest,
        /// The file with the token that admits this machine; - reads standard input [default: the variable `STEAD_JOIN_TOKEN`, or an operator admits it]
        #[arg(long, value_name = "FILE")]
        token_file: Option<PathBuf>,
        /// A label that this machine asks for; operators decide; repeatable
        #[arg(long = "label", value_name = "NAME=VALUE", value_parser = assignment)]
        labels: Vec<(String, String)>,
        /// The name of this machine in the roster [default: its host name]
        #[arg(long, value_parser = machine)]
        name: Option<MachineName>,
        /// The certificate of the controller, or of who vouches for it, in PEM, where the system does not trust it
        #[arg(long = "ca", value_name = "FILE")]
        certificates: Option<PathBuf>,
    },
    /// Follow no releases any more; what is staged stays
    Unfollow,
    /// Install the agent as a service of systemd, and start it
    Install {
        /// Print the unit, and change nothing
        #[arg(long)]
        print: bool,
    },
}

#[derive(Debug, Args)]
struct Waiting {
    /// Wait until it converges, an attempt fails, or it waits for a restart, a window or an operator
    #[arg(short, long)]
    wait: bool,
    /// Give up waiting after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "wait")]
    timeout: Option<Duration>,
    /// Keep waiting through failed attempts and maintenance windows
    #[arg(long, requires = "wait")]
    until_converged: bool,
}

#[derive(Debug, Args)]
struct Delivery {
    #[command(flatten)]
    supplied: Supplied,
    /// Replace a pending document even if the settings refuse it, and end the running job
    #[arg(long)]
    force: bool,
    /// Follow no releases any more
    #[arg(long)]
    unfollow: bool,
}

#[derive(Debug, Subcommand)]
enum SettingsCommand {
    /// Print all settings
    Get,
    /// Change settings; all of them or none
    Set {
        /// A setting and its value
        #[arg(required = true, value_name = "NAME=VALUE", value_parser = assignment)]
        changes: Vec<(String, String)>,
    },
    /// Replace all settings with those in a file; missing ones get their defaults
    Load {
        /// The file, YAML or JSON; - reads standard input
        file: PathBuf,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum StageName {
    /// The document that is worked on
    Pending,
    /// The document the machine last converged to
    Current,
    /// The one before
    Previous,
}

impl From<Agent> for AgentRequest {
    fn from(Agent { state, output, command }: Agent) -> Self {
        Self { state, output, task: command.task() }
    }
}

impl AgentCommand {
    fn task(self) -> AgentTask {
        match self {
            Self::Run { boot_id, stop_grace, metrics, metrics_for_all: is_for_all } => {
                let metrics = metrics.map(|path| MetricsRequest { path, is_for_all });
                AgentTask::Run { boot_id, stop_grace, metrics }
            }
            Self::Identity { new: false, .. } => AgentTask::Identity(IdentityRequest::Present),
            Self::Identity { new: true, yes } => AgentTask::Identity(IdentityRequest::New { asks: !yes }),
            Self::Install { print: true } => AgentTask::PrintUnit,
            Self::Install { print: false } => AgentTask::Install,
            Self::Apply { use_existing: true, waiting, .. } => AgentTask::ApplyStaged { waits: waiting.patience() },
            Self::Apply { file, delivery, waiting, .. } => {
                let file = file.unwrap_or_else(|| PathBuf::from("-"));
                AgentTask::Deliver(DeliveryRequest { waits: waiting.patience(), ..delivery.of(file) })
            }
            Self::Publish { file, delivery } => {
                AgentTask::Deliver(DeliveryRequest { publish: true, ..delivery.of(file) })
            }
            Self::Restore { generation, force, unfollow, waiting } => {
                AgentTask::Restore { generation, force, unfollow, waits: waiting.patience() }
            }
            Self::Follow { source, root, name } => AgentTask::Follow { source, root, name },
            Self::Join { url, root, token_file: token, labels, name, certificates } => {
                AgentTask::Join(JoinRequest { url, root, name, labels, token, certificates })
            }
            Self::Wait { timeout, until_converged, job: false } => {
                AgentTask::WaitForRest(Patience { timeout, until_converged })
            }
            Self::Wait { timeout, until_converged, job: true } => {
                AgentTask::WaitForJob(Patience { timeout, until_converged })
            }
            Self::Settings { command: Some(SettingsCommand::Load { file }) } => AgentTask::LoadSettings(file),
            Self::Report { out: Some(folder), after, .. } => {
                AgentTask::WriteReports { folder, after: after.unwrap_or_default() }
            }
            Self::Status => AgentTask::Status,
            Self::Check => AgentTask::Check,
            Self::Get => AgentTask::Get,
            other => AgentTask::Look(other.question()),
        }
    }

    /// The question of a command whose answer is only shown.
    fn question(self) -> AgentQuestion {
        match self {
            Self::Acknowledge => AgentQuestion::Acknowledge,
            Self::Unfollow => AgentQuestion::Unfollow,
            Self::Stop { force } => AgentQuestion::Stop { force },
            Self::History => AgentQuestion::History,
            Self::Diff { from, to } => AgentQuestion::Diff { from, to },
            Self::Remove { stage, force } => AgentQuestion::Remove { stage: stage.into(), force },
            Self::Report { job: Some(job), .. } => AgentQuestion::Report(job),
            Self::Report { job: None, lines, after, .. } => AgentQuestion::Reports { most: lines, after },
            Self::Logs { lines } => AgentQuestion::Logs { most: lines },
            Self::Settings { command: Some(SettingsCommand::Set { changes }) } => {
                AgentQuestion::ChangeSettings(changes)
            }
            _ => AgentQuestion::Settings,
        }
    }
}

impl Waiting {
    fn patience(self) -> Option<Patience> {
        let Self { wait, timeout, until_converged } = self;
        wait.then_some(Patience { timeout, until_converged })
    }
}

impl Delivery {
    fn of(self, file: PathBuf) -> DeliveryRequest {
        let Self { supplied, force, unfollow } = self;
        DeliveryRequest { file, supplied: supplied.into(), force, publish: false, unfollow, waits: None }
    }
}

impl From<StageName> for Stage {
    fn from(name: StageName) -> Self {
        match name {
            StageName::Pending => Self::Pending,
            StageName::Current => Self::Current,
            StageName::Previous => Self::Previous,
        }
    }
}
