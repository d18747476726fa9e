//! Signatures as `ssh-keygen -Y sign` makes them (OpenSSH, PROTOCOL.sshsig).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256, Sha512};

use crate::key::{ED25519, PublicKey};
use crate::wire::{Reader, put};

/// The line that begins a signature.
pub(crate) const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----\n";
const END: &str = "-----END SSH SIGNATURE-----\n";
/// How long a line of `ssh-keygen` is.
const WIDTH: usize = 70;
/// The longest signature in bytes of its text; those of the supported algorithms have at most 600.
const LONGEST: usize = 8192;
const MAGIC: &[u8] = b"SSHSIG";

/// A signature, with the key that it says it was made with. Nothing is checked before [`Signature::is_of`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    key: PublicKey,
    namespace: String,
    hash: Hash,
    /// In the encoding of SSH.
    bytes: Box<[u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn of(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
            Self::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }
}

/// The message that a signature of bytes is made over.
fn signed_message(namespace: &str, hash: Hash, bytes: &[u8]) -> Vec<u8> {
    let mut message = MAGIC.to_vec();
    for part in [namespace.as_bytes(), b"", hash.name().as_bytes(), &hash.of(bytes)] {
        put(&mut message, part);
    }
    message
}

impl Signature {
    /// The signature at the beginning of a text, and what is behind it. `None` unless it is written just as `ssh-keygen`
    /// writes it, with a key of a supported algorithm.
    pub(crate) fn read(text: &str) -> Option<(Self, &str)> {
        let end = text.find(END)? + END.len();
        let (armored, rest) = text.split_at_checked(end).filter(|(armored, _)| armored.len() <= LONGEST)?;
        let lines = armored.strip_prefix(BEGIN)?.strip_suffix(END)?;
        let blob = STANDARD.decode(lines.replace('\n', "")).ok()?;
        let signature = Self::of_blob(&blob)?;
        (signature.to_text() == armored).then_some((signature, rest))
    }

    fn of_blob(blob: &[u8]) -> Option<Self> {
        let mut reader = Reader(blob);
        (reader.bytes(MAGIC.len())? == MAGIC && reader.number()? == 1).then_some(())?;
        let key = PublicKey::of_blob(reader.string()?).ok()?;
        let namespace = reader.text()?.to_owned();
        reader.string()?.is_empty().then_some(())?;
        let hash = match reader.text()? {
            "sha256" => Hash::Sha256,
            "sha512" => Hash::Sha512,
            _ => return None,
        };
        let bytes = reader.string()?.into();
        reader.end()?;
        Some(Self { key, namespace, hash, bytes })
    }

    /// The key that it names.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// The purpose that it was made for.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns whether its key signed these bytes for its namespace.
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        self.key.has_signed(&signed_message(&self.namespace, self.hash, bytes), &self.bytes)
    }

    /// The signature of bytes by an Ed25519 key of this program. `sign` signs a message with its private part.
    pub(crate) fn by(key: PublicKey, namespace: &str, bytes: &[u8], sign: impl FnOnce(&[u8]) -> Vec<u8>) -> Self {
        let hash = Hash::Sha512;
        let signature = sign(&signed_message(namespace, hash, bytes));
        let mut encoded = Vec::new();
        for part in [ED25519.as_bytes(), &signature] {
            put(&mut encoded, part);
        }
        Self { key, namespace: namespace.to_owned(), hash, bytes: encoded.into() }
    }

    /// Its text, as `ssh-keygen` writes it.
    pub(crate) fn to_text(&self) -> String {
        let mut blob = MAGIC.to_vec();
        blob.extend_from_slice(&1u32.to_be_bytes());
        let key = self.key.blob();
        for part in [key, self.namespace.as_bytes(), b"", self.hash.name().as_bytes(), &self.bytes] {
            put(&mut blob, part);
        }
        let digits = STANDARD.encode(blob);
        let lines = digits.as_bytes().chunks(WIDTH).filter_map(|line| std::str::from_utf8(line).ok());
        let lines: String = lines.flat_map(|line| [line, "\n"]).collect();
        format!("{BEGIN}{lines}{END}")
    }
}
