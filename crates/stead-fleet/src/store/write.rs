//! What is written, as values.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use stead_hosts::MachineName;
use stead_release::{Digest, Name, PublicKey};

use super::engine::FleetStoreError;

/// A machine, by the number that the store gave it. None is given twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MachineId(pub(crate) i64);

impl fmt::Display for MachineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What is written whole or not at all.
///
/// Law: writing a unit again, since it is not known whether it was written, changes nothing more; unless a later write of it changes
/// what an earlier one decides by.
pub type Unit = Vec<StoreWrite>;

/// One thing that is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreWrite {
    /// A machine joins.
    Enrol(Enrolment),
    /// A machine is what operators say of it from here on.
    Standing(MachineId, Standing),
    /// A machine stays as it is until a time by the clock of the database, in milliseconds; 0 lets it go.
    Hold {
        /// The machine.
        machine: MachineId,
        /// Until when.
        until: u64,
        /// Why, for operators.
        why: String,
    },
    /// Machines are asked to check at once, by a request with a number that is higher than those before.
    Check {
        /// The machines. Those that are not admitted are left out.
        machines: Vec<MachineId>,
        /// The number.
        number: u64,
    },
    /// A token lets machines join.
    Token(Token),
    /// An account of an operator, by the digest of what it is proved with. It replaces a former one.
    Operator {
        /// The name.
        name: MachineName,
        /// What it may do.
        role: String,
        /// The digest of its token.
        digest: Digest,
    },
    /// A link lets whoever has it take an account, once.
    Invite(Invitation),
    /// Somebody takes an account by a link.
    Accept {
        /// The digest of the secret of the link.
        invitation: Digest,
        /// The digest of the token of the account.
        token: Digest,
    },
    /// Content by its name. Nobody is pointed to it yet.
    Blob(Digest, Bytes),
    /// Something that operators signed, at its place in a chain.
    Statement(SignedStatement),
    /// The secrets of a release, sealed to a machine.
    Envelope(StoredEnvelope),
    /// Machines are pointed to a release.
    Point(Pointers),
    /// What a machine reports.
    Reports {
        /// The machine.
        machine: MachineId,
        /// The reports by their numbers.
        reports: Vec<(u64, Bytes)>,
    },
    /// Two machines have the key of this one.
    Fork {
        /// The machine.
        machine: MachineId,
        /// The number of the request that showed it.
        number: u64,
    },
    /// When machines were heard, and what they said of themselves.
    Heard(Vec<Heartbeat>),
    /// An act of an operator, behind the one that it names.
    Act(OperatorAct),
    /// A lease is taken, or kept.
    Lease {
        /// What it is for.
        name: &'static str,
        /// Who wants it.
        owner: String,
        /// For how long, in milliseconds.
        length: u64,
    },
    /// Reports that came before a time go, not more than a number of them.
    Forget {
        /// The time, by the clock of the database in milliseconds.
        before: u64,
        /// How many at most, so that nothing waits for long.
        most: u64,
    },
    /// Content that was stored before a time goes, unless a recent release or a machine needs it.
    Sweep {
        /// The time, by the clock of the database in milliseconds.
        before: u64,
    },
}

/// A machine that joins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Enrolment {
    /// What it wants to be called.
    pub name: MachineName,
    /// Its key.
    pub key: PublicKey,
    /// The digest of its token, if it has one: without one it waits for an operator.
    pub token: Option<Digest>,
    /// The labels that it asks for, as JSON.
    pub labels: String,
    /// How many machines may wait.
    pub most_waiting: u64,
}

/// What a machine is to the fleet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It joined without a token.
    Waiting,
    /// It is served.
    Admitted,
    /// It is refused for ever, and so is its key.
    Retired,
}

/// A token that lets machines join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// The digest of its text, which is not kept.
    pub digest: Digest,
    /// How many machines.
    pub uses: u64,
    /// For how long, in milliseconds.
    pub length: u64,
    /// The labels that its machines ask for, as JSON.
    pub labels: String,
}

/// A link for an account of an operator. It takes the place of a former one that was not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invitation {
    /// The digest of its secret, which is not kept.
    pub digest: Digest,
    /// The name of the account.
    pub name: MachineName,
    /// What it may do.
    pub role: String,
    /// For how long, in milliseconds.
    pub length: u64,
}

/// The chain that a statement belongs to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Chain {
    /// The root statement, with the number 1.
    Root,
    /// The lists of signers.
    Signers,
    /// The rosters.
    Roster,
    /// The releases of a channel.
    Channel(Name),
}

/// Something that operators signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedStatement {
    /// Its chain.
    pub chain: Chain,
    /// Its number, one more than that of the one before.
    pub number: u64,
    /// Its name.
    pub digest: Digest,
    /// The content that it needs, which must be there.
    pub bundle: Option<Digest>,
    /// The file.
    pub body: Bytes,
}

/// The secrets of a release, sealed to a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredEnvelope {
    /// The channel of the release.
    pub channel: Name,
    /// Its number.
    pub number: u64,
    /// The machine.
    pub machine: MachineName,
    /// The file.
    pub body: Bytes,
}

/// Machines that are pointed to a release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pointers {
    /// The lease of the planner.
    pub lease: Grant,
    /// The number of the roster that was looked at, 0 if there was none. Another one may hold machines, or have other labels.
    pub roster: u64,
    /// The channel.
    pub channel: Name,
    /// The release.
    pub number: u64,
    /// The machines.
    pub machines: Vec<MachineId>,
}

/// A lease that was granted. A write that names one is refused when another was granted since.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// What it is for.
    pub name: &'static str,
    /// Which of them, from 1 on.
    pub epoch: u64,
}

/// When a machine was heard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// The machine.
    pub machine: MachineId,
    /// The number of its last request.
    pub number: u64,
    /// When, by the clock of the controller in milliseconds.
    pub at: u64,
    /// What it said of itself, as JSON.
    pub said: String,
}

/// An act of an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperatorAct {
    /// The digest of the act before; of nothing for the first.
    pub parent: Digest,
    /// What was done, by whom and when, as JSON.
    pub body: String,
}

impl OperatorAct {
    /// The name of the act, which commits to all before it.
    pub fn digest(&self) -> Digest {
        Digest::of(format!("{}\n{}", self.parent, self.body).as_bytes())
    }

    /// The parent of the first act.
    pub fn nothing() -> Digest {
        Digest::of(b"")
    }
}

/// The outcome of a write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Written {
    /// It is there, and was not before.
    New,
    /// It was there.
    Known,
    /// The machine and its standing.
    Machine(MachineId, Standing),
    /// How many reports were new, and the numbers of those that were there with another content.
    Reports {
        /// How many were new.
        new: u64,
        /// Numbers that were used for something else.
        forked: Vec<u64>,
    },
    /// How many rows were changed.
    Changed(u64),
    /// The lease, or who has it.
    Lease(Result<Grant, String>),
    /// The number of the act.
    Act(u64),
}

/// The reason why a unit was not written, or is not answered as written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteRefusal {
    /// The token is not known, was used up or is too old.
    #[error("the token is invalid, used up or expired")]
    Token,
    /// The link is not known, was used or is too old.
    #[error("the link is invalid, used or expired")]
    Invitation,
    /// Another machine has the name.
    #[error("the name '{0}' is taken: retire that machine, or use another name")]
    Name(MachineName),
    /// The key belongs to another machine.
    #[error("the key belongs to the machine '{0}'")]
    Key(MachineName),
    /// The machine was retired.
    #[error("the machine was retired")]
    Retired,
    /// No more machines may wait.
    #[error("{0} machines wait already")]
    Full(u64),
    /// There is no such machine.
    #[error("there is no machine with the number {0}")]
    Machine(MachineId),
    /// There is another statement with that number.
    #[error("there is another one with the number {0}")]
    Forked(u64),
    /// A statement does not follow the one before.
    #[error("number {found} does not follow {last}")]
    Gap {
        /// Its number.
        found: u64,
        /// The newest that is there.
        last: u64,
    },
    /// The content of a release is not there.
    #[error("its bundle {0} is not stored: store it first")]
    Blob(Digest),
    /// There is no such release.
    #[error("there is not a release {1} of the channel '{0}'")]
    Release(Name, u64),
    /// Machines are at a newer release.
    #[error("{0} machines are at a newer release of the channel")]
    Backwards(u64),
    /// The machines were chosen by another roster than the one in force.
    #[error("roster {0} is in force")]
    Roster(u64),
    /// Another one has the lease.
    #[error("another controller has the lease '{0}'")]
    Lease(&'static str),
    /// It was written, and a standby does not have its act yet.
    #[error("{}", FleetStoreError::Behind)]
    Behind,
    /// There were other acts since.
    #[error("there were other acts since: the last is {0}")]
    Head(Digest),
}

impl Standing {
    const ALL: [Self; 3] = [Self::Waiting, Self::Admitted, Self::Retired];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Admitted => "admitted",
            Self::Retired => "retired",
        }
    }
}

impl std::str::FromStr for Standing {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|standing| standing.as_str() == text).ok_or(())
    }
}

/// The name of its rows.
impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("root"),
            Self::Signers => f.write_str("signers"),
            Self::Roster => f.write_str("roster"),
            Self::Channel(name) => write!(f, "channel/{name}"),
        }
    }
}

impl std::str::FromStr for Chain {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "root" => Ok(Self::Root),
            "signers" => Ok(Self::Signers),
            "roster" => Ok(Self::Roster),
            _ => text.strip_prefix("channel/").and_then(|name| name.parse().ok()).map(Self::Channel).ok_or(()),
        }
    }
}

/// Labels as the JSON that is stored.
pub fn labels_text(labels: &BTreeMap<String, String>) -> String {
    serde_json::to_string(labels).unwrap_or_default()
}
