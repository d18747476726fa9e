//! The files of a source.

use std::fmt;

use stead_hosts::MachineName;

use crate::name::{Digest, Name};

/// A file of a source: the folder, the web server or the repository that machines follow. Its text is its path there.
///
/// ```text
/// root                      the root statement
/// roster                    the newest roster
/// signers/NUMBER            each list of signers but the first, which is in the root
/// CHANNEL/NUMBER.release    the releases of a channel
/// CHANNEL/NUMBER.sealed/    the secrets of one, sealed to each machine under its name
/// blobs/sha256-…            the bundles, by their names
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SourceFile {
    /// The root statement.
    Root,
    /// The newest roster.
    Roster,
    /// A list of signers, by its number.
    Signers(u64),
    /// A release of a channel, by its number.
    Release(Name, u64),
    /// The secrets of a release, sealed to a machine.
    Envelope(Name, u64, MachineName),
    /// A bundle, by its name.
    Blob(Digest),
}

impl fmt::Display for SourceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("root"),
            Self::Roster => f.write_str("roster"),
            Self::Signers(number) => write!(f, "signers/{number}"),
            Self::Release(channel, number) => write!(f, "{channel}/{number}.release"),
            Self::Envelope(channel, number, machine) => write!(f, "{channel}/{number}.sealed/{machine}"),
            Self::Blob(name) => write!(f, "blobs/{name}"),
        }
    }
}
