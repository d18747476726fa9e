//! Why a machine does not take what a source has.

use jiff::Timestamp;
use stead_core::diag::Code;

use crate::codes;
use crate::name::{Digest, Name};
use crate::signed::BadForm;

/// The reason why something signed is refused, of which each has a code of its own.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReleaseRefusal {
    /// It is not a statement of the kind that belongs there.
    #[error(transparent)]
    Form(#[from] BadForm),
    /// A signature was made for another purpose.
    #[error("the signature of {0} was made for another purpose")]
    Purpose(String),
    /// A signature is not one of these bytes.
    #[error("the signature of {0} does not match: what was signed has been changed")]
    Altered(String),
    /// It has fewer signatures than the list of signers asks for.
    #[error("it has {have} of {wanted} signatures")]
    Unsigned {
        /// How many count.
        have: usize,
        /// How many must.
        wanted: usize,
    },
    /// One key has signed twice.
    #[error("the key {0} has signed it twice")]
    Twice(String),
    /// Who signed it was never a signer.
    #[error("the key {0} is not of a signer")]
    Stranger(String),
    /// Who signed it, or the list that it names, no longer signs.
    #[error("{0} no longer signs")]
    Retired(String),
    /// It names a list of signers that is not known.
    #[error("its list of signers {0} is not known")]
    Signers(Digest),
    /// It belongs to another fleet.
    #[error("it belongs to the fleet {0}")]
    Fleet(Digest),
    /// It belongs to another channel.
    #[error("it belongs to the channel '{0}'")]
    Channel(Name),
    /// Its number is below that of what was seen before.
    #[error("its number {found} is older than {floor}")]
    Older {
        /// Its number.
        found: u64,
        /// The newest that was seen.
        floor: u64,
    },
    /// There are two of one number.
    #[error("there are two of the number {0}")]
    Forked(u64),
    /// It does not lead back to what was seen before.
    #[error("number {0} does not follow what was seen before")]
    Parent(u64),
    /// Its time is over.
    #[error("it expired at {0}")]
    Expired(Timestamp),
    /// Its selector does not match the machine.
    #[error("it is for '{0}', which this machine is not")]
    NotSelected(String),
    /// An envelope was made for another release.
    #[error("it belongs to release {0}, or to another content of it")]
    OtherRelease(u64),
    /// An envelope was made for another machine, or for a former key of this one.
    #[error("it belongs to the machine {0}")]
    OtherMachine(String),
    /// An envelope cannot be opened with the key that it names.
    #[error("it cannot be opened: what was sealed has been changed")]
    Unopened,
    /// An envelope has other secrets than the release that was signed.
    #[error("it has other secrets than those that were signed for")]
    OtherSecrets,
    /// The document declares a parameter in the clear whose value is sealed.
    #[error("the document does not declare the sealed parameter '{0}' as a secret")]
    NotSecret(String),
    /// The roster does not name the machine.
    #[error("the roster does not name the machine '{0}'")]
    NotInRoster(String),
    /// Two channels have a release for the machine.
    #[error("the channels '{first}' and '{second}' both have a release for this machine")]
    Ambiguous {
        /// The first.
        first: Name,
        /// The second.
        second: Name,
    },
    /// The bundle of a release is another one.
    #[error("it is not the bundle that the release names")]
    Bundle,
    /// The root statement is not the one that the machine was given.
    #[error("the root statement is {0}, not the one that was given")]
    Root(Digest),
}

impl ReleaseRefusal {
    /// The code of the finding.
    pub fn code(&self) -> Code {
        match self {
            Self::Form(form) => form.code(),
            Self::Purpose(_) => &codes::PURPOSE,
            Self::Altered(_) => &codes::ALTERED,
            Self::Unsigned { .. } => &codes::UNSIGNED,
            Self::Twice(_) => &codes::TWICE,
            Self::Stranger(_) => &codes::STRANGER,
            Self::Retired(_) => &codes::RETIRED,
            Self::Signers(_) => &codes::SIGNERS,
            Self::Fleet(_) => &codes::FLEET,
            Self::Channel(_) => &codes::CHANNEL,
            Self::Older { .. } => &codes::OLDER,
            Self::Forked(_) => &codes::FORKED,
            Self::Parent(_) => &codes::PARENT,
            Self::Expired(_) => &codes::EXPIRED,
            Self::NotSelected(_) => &codes::NOT_SELECTED,
            Self::OtherRelease(_) => &codes::OTHER_RELEASE,
            Self::OtherMachine(_) => &codes::OTHER_MACHINE,
            Self::Unopened => &codes::UNOPENED,
            Self::OtherSecrets => &codes::OTHER_SECRETS,
            Self::NotSecret(_) => &codes::NOT_SECRET,
            Self::Root(_) => &codes::ROOT,
            Self::NotInRoster(_) => &codes::NOT_IN_ROSTER,
            Self::Ambiguous { .. } => &codes::AMBIGUOUS,
            Self::Bundle => &codes::BUNDLE,
        }
    }
}
