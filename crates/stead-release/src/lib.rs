//! What operators sign and machines follow, without any effect but random numbers: a root names the first signers, lists of signers follow each other,
//! a roster names the machines, and releases follow each other in channels.
//!
//! ```text
//! root ──▶ list of signers ──▶ list of signers       each signed by the list before it
//!   │             │
//!   │             ├──signs──▶ roster                 which machines there are, with keys and labels
//!   └─────────────┴──signs──▶ release ──▶ release    a bundle, for whom, until when
//!                                 └─ commits to ─▶ envelope    the secrets of a release, sealed to one machine
//! ```
//!
//! Each of these is a [`Signable`]: lines that are signed as they are stored. A machine is given the digest of the root, makes a
//! [`Fleet`] of it and of the lists, and takes a [`Walk`] over the releases of its channel. Nothing else says that something may be
//! staged; what is refused has a [`ReleaseRefusal`].

mod envelope;
mod file;
mod fleet;
mod follow;
mod key;
mod known_roster;
mod machine;
mod name;
mod refusal;
mod report;
mod request;
mod secrets;
mod signature;
mod signed;
mod statements;
mod walk;
mod wire;

pub use envelope::{Envelope, EnvelopeAddress, LONGEST_ENVELOPE};
pub use file::SourceFile;
pub use fleet::Fleet;
pub use follow::{Decision, FleetFollower, FleetMemory, Obstacle};
pub use key::{BadKey, PublicKey};
pub use known_roster::KnownRoster;
pub use machine::{MachineKeys, MachineSecret, PublicIdentity, SealingKey};
pub use name::{BadFleetName, Digest, Name};
pub use refusal::ReleaseRefusal;
pub use report::MachineReport;
pub use request::MachineRequest;
pub use secrets::{BadSecrets, ReleaseSecrets, SealedParameters};
pub use signature::Signature;
pub use signed::{BadForm, LONGEST, LONGEST_STATEMENT, Lines, MOST_SIGNATURES, Signable, Signed, StatementLines};
pub use statements::{
    BadSigners, ChainLink, LONGEST_PARAMETERS, Numbered, Release, Root, Roster, RosterHold, RosterMachine, Selector,
    Signers, Succession, are_labels,
};
pub use stead_core::diag::codes::release as codes;
pub use walk::{Floor, Walk};

/// Each kind of statement: its purpose, and what users call it.
const PURPOSES: [(&str, &str); 8] = [
    (Root::PURPOSE, Root::WORD),
    (Succession::PURPOSE, Succession::WORD),
    (Roster::PURPOSE, Roster::WORD),
    (Release::PURPOSE, Release::WORD),
    (PublicIdentity::PURPOSE, PublicIdentity::WORD),
    (Envelope::PURPOSE, Envelope::WORD),
    (MachineRequest::PURPOSE, MachineRequest::WORD),
    (MachineReport::PURPOSE, MachineReport::WORD),
];
