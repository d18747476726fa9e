//! Requests about releases.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use stead_hosts::MachineName;
use stead_release::{Name, PublicKey, Selector};

use super::Supplied;
use crate::terminal::Output;

/// `release`
#[derive(Debug)]
pub(crate) enum ReleaseRequest {
    Root { name: Name, signers: NewSigners, out: PathBuf },
    Signers { signers: NewSigners, draft: Draft },
    Add { machine: MachineName, keys: KeysOfMachine, labels: BTreeMap<String, String>, draft: Draft },
    Remove { machine: MachineName, draft: Draft },
    Make(MakeRequest),
    Seal { file: PathBuf, fleet: PathBuf, secrets: PathBuf },
    Sign { file: PathBuf, keys: Vec<PathBuf> },
    Verify { file: PathBuf, fleet: PathBuf },
    Show { file: PathBuf, output: Output },
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
