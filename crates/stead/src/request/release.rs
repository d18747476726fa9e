//! Requests about releases.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use stead_hosts::MachineName;
use stead_release::{Digest, Name, PublicKey, Selector};

use super::Supplied;
use crate::terminal::Output;

/// `release`
#[derive(Debug)]
pub(crate) enum ReleaseRequest {
    Root { name: Name, signers: NewSigners, out: PathBuf },
    Signers { signers: NewSigners, draft: Draft },
    Roster { machine: MachineName, change: RosterChange, acts: Option<Digest>, draft: Draft },
    Make(MakeRequest),
    Seal { file: PathBuf, fleet: PathBuf, secrets: PathBuf },
    Sign { file: PathBuf, keys: Vec<PathBuf> },
    Verify { file: PathBuf, fleet: PathBuf },
    Show { file: PathBuf, output: Output },
}

/// A change of a machine in a roster.
#[derive(Debug)]
pub(crate) enum RosterChange {
    Add { keys: KeysOfMachine, labels: BTreeMap<String, String> },
    Remove,
    Hold { lasts: Duration, why: String },
    Unhold,
}

/// The public keys of a machine of a roster.
#[derive(Debug)]
pub(crate) enum KeysOfMachine {
    /// In a file that the machine printed, or on standard input for `-`.
    Identity(PathBuf),
    /// The key that it signs with, alone.
    Key(PublicKey),
}

/// Who is to sign.
#[derive(Debug)]
pub(crate) struct NewSigners {
    pub(crate) keys: Vec<PublicKey>,
    /// How many must sign, if that is stated.
    pub(crate) threshold: Option<u32>,
}

/// The next thing to sign in a source.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The root statement, in the folder of the source.
    pub(crate) fleet: PathBuf,
    /// The keys that sign it at once.
    pub(crate) keys: Vec<PathBuf>,
    /// Where it is written to, if that is not its place in the source.
    pub(crate) out: Option<PathBuf>,
}

/// `release make`
#[derive(Debug)]
pub(crate) struct MakeRequest {
    pub(crate) bundle: PathBuf,
    pub(crate) channel: Name,
    pub(crate) selector: Selector,
    pub(crate) lasts: Duration,
    pub(crate) supplied: Supplied,
    /// The secrets, if it has any.
    pub(crate) secrets: Option<SecretsRequest>,
    pub(crate) draft: Draft,
}

/// The parameters of a release that are secret.
#[derive(Debug)]
pub(crate) struct SecretsRequest {
    /// A file with values.
    pub(crate) file: Option<PathBuf>,
    /// The names of those whose values are in the environment.
    pub(crate) environment: Vec<String>,
    /// Where all are written for whoever seals.
    pub(crate) out: PathBuf,
}
