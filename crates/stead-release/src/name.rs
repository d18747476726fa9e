//! Names and digests in what is signed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use stead_core::digest::sha256;

/// The longest name of a fleet or a channel.
const LONGEST: usize = 63;
/// The names of a source beside its channels.
const TAKEN: [&str; 4] = ["blobs", "root", "roster", "signers"];

/// The reason why a text is not a name or a digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadFleetName {
    /// It has other characters, or too many.
    #[error("names have 1 to {LONGEST} small letters, digits and '-', and begin with a letter")]
    Form,
    /// It is the name of something else in a source.
    #[error("the name is taken: a source has a file or a folder of that name")]
    Taken,
    /// It is not a digest.
    #[error("a digest is 'sha256-' and 64 hexadecimal digits")]
    Digest,
    /// It is not a key that secrets are sealed to.
    #[error("a key that secrets are sealed to is 32 bytes in base64")]
    SealingKey,
    /// It is not a release by its number and digest.
    #[error("a release is its number, a space and its digest")]
    Numbered,
}

/// The name of a fleet or of a channel of releases, which is a folder of a source.
///
/// Guarantees: 1 to 63 small letters, digits and `-`, of which the first is a letter; nothing else in a source has that name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Box<str>);

impl FromStr for Name {
    type Err = BadFleetName;

    fn from_str(text: &str) -> Result<Self, BadFleetName> {
        let is_usual = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
        if !begins || text.len() > LONGEST || !text.bytes().all(is_usual) {
            return Err(BadFleetName::Form);
        }
        if TAKEN.contains(&text) { Err(BadFleetName::Taken) } else { Ok(Self(text.into())) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The SHA-256 of bytes, as the name of what they are: `sha256-` and 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(Box<str>);

impl Digest {
    /// The digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("sha256-{}", sha256(bytes)).into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Digest {
    type Err = BadFleetName;

    fn from_str(text: &str) -> Result<Self, BadFleetName> {
        let digits = text.strip_prefix("sha256-").ok_or(BadFleetName::Digest)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_digest = digits.len() == 64 && digits.bytes().all(is_digit);
        if is_digest { Ok(Self(text.into())) } else { Err(BadFleetName::Digest) }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Both are texts in files as well.
macro_rules! is_text {
    ($type:ident) => {
        impl TryFrom<String> for $type {
            type Error = BadFleetName;

            fn try_from(text: String) -> Result<Self, BadFleetName> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.0.into()
            }
        }
    };
}

is_text!(Name);
is_text!(Digest);
