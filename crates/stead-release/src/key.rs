//! Public keys of OpenSSH, and what they have signed.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::signature::{self, ECDSA_P256_SHA256_FIXED, UnparsedPublicKey, VerificationAlgorithm};
use sha2::{Digest as _, Sha256};

use crate::wire::{Reader, put};

/// The longest line of a key, in bytes: the longest that is accepted has about 200.
const LONGEST: usize = 4096;
/// The algorithm of the keys that machines make.
pub(crate) const ED25519: &str = "ssh-ed25519";
/// The flag of an authenticator that somebody touched it.
const TOUCHED: u8 = 1;

/// The public key of a signer: Ed25519 or ECDSA over P-256, in a file or in a hardware token.
///
/// Two keys are equal if their bytes are; the comment behind a key does not belong to it.
///
/// # Examples
/// ```
/// use stead_release::PublicKey;
///
/// let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f ann@example.org";
/// let key = PublicKey::parse(line)?;
/// assert!(key.fingerprint().starts_with("SHA256:"));
/// assert_eq!(PublicKey::parse(&key.to_string())?, key);
/// # Ok::<(), stead_release::BadKey>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PublicKey {
    algorithm: Algorithm,
    blob: Box<[u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Algorithm {
    Ed25519,
    P256,
    /// In an authenticator of FIDO, which signs more than the message.
    HardwareEd25519,
    HardwareP256,
}

/// The reason why a text is not the key of a signer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadKey {
    /// It is not a line as in a file `.pub` of OpenSSH.
    #[error("it is not a public key of OpenSSH")]
    Form,
    /// It has another algorithm.
    #[error("its algorithm '{0}' is not supported")]
    Algorithm(String),
}

impl Algorithm {
    const ALL: [Self; 4] = [Self::Ed25519, Self::P256, Self::HardwareEd25519, Self::HardwareP256];

    fn name(self) -> &'static str {
        match self {
            Self::Ed25519 => ED25519,
            Self::P256 => "ecdsa-sha2-nistp256",
            Self::HardwareEd25519 => "sk-ssh-ed25519@openssh.com",
            Self::HardwareP256 => "sk-ecdsa-sha2-nistp256@openssh.com",
        }
    }

    fn is_curve_p256(self) -> bool {
        matches!(self, Self::P256 | Self::HardwareP256)
    }

    fn is_hardware(self) -> bool {
        matches!(self, Self::HardwareEd25519 | Self::HardwareP256)
    }
}

/// The fields of a key.
struct Parts<'k> {
    point: &'k [u8],
    /// The application that an authenticator signs for.
    application: Option<&'k [u8]>,
}

impl PublicKey {
    /// The key of a line `ALGORITHM BASE64 [COMMENT]`, as in a file `.pub`.
    pub fn parse(line: &str) -> Result<Self, BadKey> {
        let line = line.trim_end();
        if line.len() > LONGEST {
            return Err(BadKey::Form);
        }
        let mut words = line.split(' ');
        let (Some(algorithm), Some(blob)) = (words.next(), words.next()) else { return Err(BadKey::Form) };
        let known = Algorithm::ALL.into_iter().find(|known| known.name() == algorithm);
        let key = Self::of_blob(&STANDARD.decode(blob).map_err(|_| BadKey::Form)?)?;
        if known == Some(key.algorithm) { Ok(key) } else { Err(BadKey::Form) }
    }

    /// The key with these bytes.
    pub(crate) fn of_blob(blob: &[u8]) -> Result<Self, BadKey> {
        let name = Reader(blob).text().ok_or(BadKey::Form)?;
        let known = Algorithm::ALL.into_iter().find(|known| known.name() == name);
        let algorithm = known.ok_or_else(|| BadKey::Algorithm(name.to_owned()))?;
        let key = Self { algorithm, blob: blob.into() };
        if key.parts().is_some() { Ok(key) } else { Err(BadKey::Form) }
    }

    /// The Ed25519 key of this point.
    pub(crate) fn ed25519(point: &[u8]) -> Self {
        let mut blob = Vec::new();
        for part in [ED25519.as_bytes(), point] {
            put(&mut blob, part);
        }
        Self { algorithm: Algorithm::Ed25519, blob: blob.into() }
    }

    fn parts(&self) -> Option<Parts<'_>> {
        let mut reader = Reader(&self.blob);
        reader.string()?;
        let length = if self.algorithm.is_curve_p256() { (reader.text()? == "nistp256").then_some(65)? } else { 32 };
        let point = reader.string().filter(|point| point.len() == length)?;
        let application = if self.algorithm.is_hardware() { Some(reader.string()?) } else { None };
        reader.end()?;
        Some(Parts { point, application })
    }

    pub(crate) fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// `SHA256:` and the digest, as `ssh-keygen -l` shows it.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(&self.blob)))
    }

    /// Returns true if `signature`, in the encoding of SSH, is one of `message` by this key.
    ///
    /// An authenticator must say that somebody touched it.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        self.verified(message, signature).is_some()
    }

    fn verified(&self, message: &[u8], signature: &[u8]) -> Option<()> {
        let Parts { point, application } = self.parts()?;
        let mut reader = Reader(signature);
        (reader.text()? == self.algorithm.name()).then_some(())?;
        let bytes = reader.string()?;
        let signed = match application {
            None => message.to_vec(),
            Some(application) => {
                let (flags, counter) = (reader.bytes(1)?, reader.bytes(4)?);
                (*flags.first()? & TOUCHED != 0).then_some(())?;
                [&*Sha256::digest(application), flags, counter, &*Sha256::digest(message)].concat()
            }
        };
        reader.end()?;
        if self.algorithm.is_curve_p256() {
            let mut reader = Reader(bytes);
            let fixed = [reader.integer::<32>()?, reader.integer::<32>()?].concat();
            reader.end()?;
            checked(&ECDSA_P256_SHA256_FIXED, point, &signed, &fixed)
        } else {
            checked(&signature::ED25519, point, &signed, bytes)
        }
    }
}

fn checked(
    algorithm: &'static dyn VerificationAlgorithm,
    point: &[u8],
    message: &[u8],
    signature: &[u8],
) -> Option<()> {
    UnparsedPublicKey::new(algorithm, point).verify(message, signature).ok()
}

/// The line of a file `.pub`, without a comment.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.algorithm.name(), STANDARD.encode(&self.blob))
    }
}
