//! `release`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use stead_hosts::MachineName;
use stead_release::{Digest, Name, PublicKey, Selector};

use super::document::Supplied;
use super::values::assignment;
use crate::request::{Draft, KeysOfMachine, MakeRequest, NewSigners, ReleaseRequest, RosterChange, SecretsRequest};
use crate::terminal::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Release {
    /// Begin a fleet: a root statement with its first signers
    Root {
        /// What the fleet is called
        #[arg(long, value_name = "NAME")]
        name: Name,
        #[command(flatten)]
        signers: SignerKeys,
        /// Output file: 'root' in an empty folder, which becomes the source that machines follow
        #[arg(short, long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Change who signs: the signers in force must sign it
    Signers {
        #[command(flatten)]
        signers: SignerKeys,
        #[command(flatten)]
        next: Next,
    },
    /// Change the machines of a fleet
    Roster {
        #[command(subcommand)]
        command: RosterCommand,
    },
    /// Make a release of a bundle
    Make(Make),
    /// Seal the secrets of a release to each machine of the roster that it is for by its labels
    Seal {
        /// The release
        file: PathBuf,
        /// The root statement, in the folder of the source
        #[arg(long, value_name = "ROOT")]
        fleet: PathBuf,
        /// The secrets, as 'make --secrets-out' wrote them; - reads standard input
        #[arg(long, value_name = "FILE")]
        secrets: PathBuf,
    },
    /// Add a signature
    Sign {
        /// The release, roster or list of signers
        file: PathBuf,
        /// A private key, or the public key of one in an agent or in hardware; repeatable
        #[arg(long = "sign", value_name = "KEY", required = true)]
        keys: Vec<PathBuf>,
    },
    /// Check a file as a machine does, from the root statement on
    Verify {
        /// The release, roster or list of signers
        file: PathBuf,
        /// The root statement, in the folder of the source
        #[arg(long, value_name = "ROOT")]
        fleet: PathBuf,
    },
    /// Show what a file states, and whose signatures it has; checks nothing
    Show {
        /// The release, roster, list of signers or root statement
        file: PathBuf,
        /// Output format
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum RosterCommand {
    /// Add a machine, or change its key or labels
    Add {
        /// The name of the machine
        #[arg(value_parser = machine)]
        machine: MachineName,
        #[command(flatten)]
        keys: MachineKey,
        /// A label that selects releases; repeatable
        #[arg(long = "label", value_name = "NAME=VALUE", value_parser = assignment)]
        labels: Vec<(String, String)>,
        #[command(flatten)]
        next: NextRoster,
    },
    /// Remove a machine
    Remove {
        /// The name of the machine
        #[arg(value_parser = machine)]
        machine: MachineName,
        #[command(flatten)]
        next: NextRoster,
    },
    /// Hold a machine at its release for a while
    Hold {
        /// The name of the machine
        #[arg(value_parser = machine)]
        machine: MachineName,
        /// For how long, such as 3d or 12h
        #[arg(long = "for", value_name = "TIME", value_parser = time)]
        lasts: Duration,
        /// Why
        #[arg(long, value_name = "TEXT")]
        why: String,
        #[command(flatten)]
        next: NextRoster,
    },
    /// Let a machine that is held go on
    Unhold {
        /// The name of the machine
        #[arg(value_parser = machine)]
        machine: MachineName,
        #[command(flatten)]
        next: NextRoster,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NextRoster {
    /// The last act that its signers saw, as 'stead fleet audit verify' prints it: 'stead fleet apply' refuses another one
    #[arg(long, value_name = "DIGEST")]
    acts: Option<Digest>,
    #[command(flatten)]
    next: Next,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct MachineKey {
    /// The public keys that the machine made, as 'stead agent identity' prints them there; - reads standard input
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// The public key of a machine that no secrets are sealed to
    #[arg(long, value_name = "KEY.pub", value_parser = key)]
    key: Option<PublicKey>,
}

#[derive(Debug, Args)]
pub(crate) struct SignerKeys {
    /// The public key of a signer, Ed25519 or ECDSA over P-256; repeatable
    #[arg(long = "signer", value_name = "KEY.pub", required = true, value_parser = key)]
    signers: Vec<PublicKey>,
    /// How many of them must sign [default: 1 of 1, else 2]
    #[arg(long, value_name = "COUNT")]
    threshold: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct Next {
    /// The root statement, in the folder of the source
    #[arg(long, value_name = "ROOT")]
    fleet: PathBuf,
    /// Sign with this private key, or with the one in an agent or in hardware whose public key this is; repeatable
    #[arg(long = "sign", value_name = "KEY")]
    keys: Vec<PathBuf>,
    /// Output file [default: its place in the source]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Make {
    /// The bundle
    bundle: PathBuf,
    /// The channel, whose next release this is
    #[arg(long, value_name = "NAME")]
    channel: Name,
    /// The machines that it is for: a filter over labels and facts, such as 'role=web and site!=lab', or all
    #[arg(long = "where", value_name = "FILTER", value_parser = selector)]
    selector: Selector,
    /// How long machines that do not have it yet may take it, such as 90d or 12h
    #[arg(long, value_name = "TIME", value_parser = time)]
    expires: Duration,
    #[command(flatten)]
    supplied: Supplied,
    /// A file with values of secret parameters, YAML or JSON; - reads standard input
    #[arg(long, value_name = "FILE", requires = "secrets_out")]
    secrets: Option<PathBuf>,
    /// A secret parameter to take from the environment, where parameters of 'apply' are; repeatable
    #[arg(long = "secret-env", value_name = "NAME", requires = "secrets_out")]
    secrets_env: Vec<String>,
    /// Output file for the secrets, which 'seal' reads: keep it, and keep it from others
    #[arg(long, value_name = "FILE")]
    secrets_out: Option<PathBuf>,
    #[command(flatten)]
    next: Next,
}

pub(super) fn machine(text: &str) -> Result<MachineName, String> {
    MachineName::parse(text).map_err(|why| why.to_string())
}

fn selector(text: &str) -> Result<Selector, String> {
    text.parse().map_err(|error: stead_hosts::FilterError| format!("{}; {}", error.message, error.help))
}

/// The key in a file `.pub`.
fn key(path: &str) -> Result<PublicKey, String> {
    let line = crate::input::read(path.as_ref()).map_err(|error| error.to_string())?;
    PublicKey::parse(&line.text).map_err(|why| why.to_string())
}

fn time(text: &str) -> Result<Duration, String> {
    let of_unit = |unit: char, seconds: u64| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok().filter(|number| *number > 0)?;
        number.checked_mul(seconds).filter(|seconds| *seconds <= 10 * 366 * 86_400)
    };
    let seconds = of_unit('d', 86_400).or_else(|| of_unit('h', 3600));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "expected days or hours, such as 90d or 12h, at most ten years".to_owned())
}

impl From<SignerKeys> for NewSigners {
    fn from(SignerKeys { signers, threshold }: SignerKeys) -> Self {
        Self { keys: signers, threshold }
    }
}

impl From<Next> for Draft {
    fn from(Next { fleet, keys, out }: Next) -> Self {
        Self { fleet, keys, out }
    }
}

impl From<Make> for MakeRequest {
    fn from(make: Make) -> Self {
        let Make { bundle, channel, selector, expires, supplied, secrets, secrets_env, secrets_out, next } = make;
        Self {
            bundle,
            channel,
            selector,
            lasts: expires,
            supplied: supplied.into(),
            secrets: secrets_out.map(|out| SecretsRequest { file: secrets, environment: secrets_env, out }),
            draft: next.into(),
        }
    }
}

impl From<RosterCommand> for ReleaseRequest {
    fn from(command: RosterCommand) -> Self {
        let (machine, change, NextRoster { acts, next }) = match command {
            RosterCommand::Add { machine, keys, labels, next } => {
                let keys = match (keys.key, keys.identity) {
                    (Some(key), _) => KeysOfMachine::Key(key),
                    (None, identity) => KeysOfMachine::Identity(identity.unwrap_or_else(|| PathBuf::from("-"))),
                };
                (machine, RosterChange::Add { keys, labels: labels.into_iter().collect() }, next)
            }
            RosterCommand::Remove { machine, next } => (machine, RosterChange::Remove, next),
            RosterCommand::Hold { machine, lasts, why, next } => (machine, RosterChange::Hold { lasts, why }, next),
            RosterCommand::Unhold { machine, next } => (machine, RosterChange::Unhold, next),
        };
        Self::Roster { machine, change, acts, draft: next.into() }
    }
}

impl From<Release> for ReleaseRequest {
    fn from(release: Release) -> Self {
        match release {
            Release::Root { name, signers, out } => Self::Root { name, signers: signers.into(), out },
            Release::Signers { signers, next } => Self::Signers { signers: signers.into(), draft: next.into() },
            Release::Roster { command } => command.into(),
            Release::Make(make) => Self::Make(make.into()),
            Release::Seal { file, fleet, secrets } => Self::Seal { file, fleet, secrets },
            Release::Sign { file, keys } => Self::Sign { file, keys },
            Release::Verify { file, fleet } => Self::Verify { file, fleet },
            Release::Show { file, output } => Self::Show { file, output },
        }
    }
}
