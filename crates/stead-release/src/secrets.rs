//! The secrets of a release, and what it says of them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Map, Value};
use stead_core::digest::hex;
use zeroize::Zeroizing;

use crate::name::Digest;

/// The longest text of their values, and of their names, in bytes.
const LONGEST: usize = 256 << 10;
/// The length of secrets is a multiple of this: it says little of what is in them.
const BLOCK: usize = 256;

/// The values of the parameters of a release that are secret, with a random number. They cannot be printed.
///
/// It is a text, which is sealed as it is. Its digest is what signers sign.
pub struct ReleaseSecrets(Zeroizing<String>);

/// The reason why values cannot be the secrets of a release.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadSecrets {
    /// They are not as this program writes them.
    #[error("it is not a file of secrets as 'stead release make --secrets-out' writes it")]
    Form,
    /// They are too long.
    #[error("the secrets have more than {} KiB", LONGEST >> 10)]
    TooLarge,
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    Random,
}

impl ReleaseSecrets {
    /// The secrets of a release, with a random number that is drawn for them.
    pub fn new(parameters: &Map<String, Value>) -> Result<Self, BadSecrets> {
        let mut random = [0; 32];
        SystemRandom::new().fill(&mut random).map_err(|_| BadSecrets::Random)?;
        let longest = LONGEST + 2 * BLOCK;
        // As long as it can be: a text that is moved while it grows leaves copies.
        let mut text = Zeroizing::new(String::with_capacity(longest));
        text.extend(["{\"random\":\"", &hex(&random), "\",\"parameters\":"]);
        let mut values = Zeroizing::new(Vec::with_capacity(longest));
        serde_json::to_writer(&mut *values, parameters).map_err(|_| BadSecrets::Form)?;
        if values.len() > LONGEST {
            return Err(BadSecrets::TooLarge);
        }
        text.push_str(std::str::from_utf8(&values).map_err(|_| BadSecrets::Form)?);
        text.push('}');
        let padding = text.len().next_multiple_of(BLOCK) - text.len();
        text.extend(std::iter::repeat_n(' ', padding));
        Ok(Self(text))
    }

    /// Reads what was written, with or without a line break at its end.
    pub fn read(bytes: &[u8]) -> Result<Self, BadSecrets> {
        let text = std::str::from_utf8(bytes.strip_suffix(b"\n").unwrap_or(bytes)).map_err(|_| BadSecrets::Form)?;
        let mut copy = Zeroizing::new(String::with_capacity(text.len()));
        copy.push_str(text);
        let secrets = Self(copy);
        if secrets.names().is_empty() { Err(BadSecrets::Form) } else { Ok(secrets) }
    }

    /// The text, to be kept by whoever seals.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The values, for the machine that they are for.
    pub fn expose_parameters(&self) -> Map<String, Value> {
        match serde_json::from_str(&self.0) {
            Ok(Value::Object(mut members)) => match members.remove("parameters") {
                Some(Value::Object(parameters)) => parameters,
                _ => Map::new(),
            },
            _ => Map::new(),
        }
    }

    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.expose_parameters().into_iter().map(|(name, _)| name).collect()
    }

    pub(crate) fn commitment(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }

    /// Returns true if these are the secrets that a release commits to.
    pub fn are(&self, sealed: &SealedParameters) -> bool {
        self.commitment() == *sealed.commitment() && self.names() == *sealed.names()
    }
}

impl fmt::Debug for ReleaseSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReleaseSecrets").field(&self.commitment()).finish()
    }
}

/// The parameters of a release that are sealed to machines: their names, and which values they have, without showing these.
///
/// Guarantees: there is at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedParameters {
    commitment: Digest,
    names: BTreeSet<String>,
}

impl SealedParameters {
    /// The parameters of secrets; `None` if there are none.
    pub fn of(secrets: &ReleaseSecrets) -> Option<Self> {
        let names = secrets.names();
        (!names.is_empty()).then(|| Self { commitment: secrets.commitment(), names })
    }

    /// The digest of the secrets, from which nothing of them can be computed: a random number is among them.
    pub fn commitment(&self) -> &Digest {
        &self.commitment
    }

    /// The names of the parameters.
    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }
}

impl fmt::Display for SealedParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.commitment, self.names.iter().cloned().collect::<Value>())
    }
}

impl FromStr for SealedParameters {
    type Err = BadSecrets;

    fn from_str(text: &str) -> Result<Self, BadSecrets> {
        let (commitment, names) = text.split_once(' ').filter(|_| text.len() <= LONGEST).ok_or(BadSecrets::Form)?;
        let names: BTreeSet<String> = serde_json::from_str(names).map_err(|_| BadSecrets::Form)?;
        let commitment = commitment.parse().map_err(|_| BadSecrets::Form)?;
        if names.is_empty() { Err(BadSecrets::Form) } else { Ok(Self { commitment, names }) }
    }
}
