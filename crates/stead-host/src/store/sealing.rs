//! Sealing of what may hold secrets.
//!
//! A file is a line that names the purpose, a nonce, and the JSON sealed with ChaCha20-Poly1305. Its name is an HMAC of that
//! JSON. Each name has a key of its own, derived from the key of the store: two different texts are never sealed with one
//! key, whatever their nonces are. The name and the purpose are authenticated with the text.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hkdf, hmac};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use stead_core::digest::hex;
use zeroize::Zeroizing;

use stead_system::folder::{Folder, FolderError};

use super::StoreError;
use stead_system::fs::{TrustedFile, User};

const KEY: &str = "key";

/// The bytes that are taken from the random numbers of the system, and the least that a credential must have.
pub(super) const KEY_LENGTH: usize = 32;

const CREDENTIAL: &str = "stead-agent-key";
/// systemd has no longer ones.
const MAX_CREDENTIAL: u64 = 1 << 20;

/// The purpose of a sealed text: sealed for one, it cannot be opened for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SealingPurpose(&'static str);

impl SealingPurpose {
    /// A document that was delivered to the agent.
    pub const DOCUMENT: Self = Self("document");
    /// The texts of a saved plan.
    pub const PLAN: Self = Self("plan");
    /// What a run replaced, so that it can be taken back.
    pub const IMAGES: Self = Self("images");

    /// How a file begins.
    fn line(self) -> Vec<u8> {
        format!("stead-{} 1\n", self.0).into_bytes()
    }

    /// The additional data that is authenticated with the text.
    fn context(self, name: &str) -> Aad<Vec<u8>> {
        Aad::from([self.line(), name.as_bytes().to_vec()].concat())
    }
}

/// The key of a store was damaged or missing: what was sealed with it cannot be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostKey {
    /// Where the damaged file is now; `None` if it was missing.
    pub set_aside: Option<PathBuf>,
}

/// The keys of a store: the first one seals, each may have sealed what is there.
pub struct Keys {
    pub(super) first: Key,
    other: Option<Key>,
}

impl Keys {
    /// Reads the credential and the key file, of which one is enough. If there is neither, a key is created durably.
    ///
    /// `credentials`: the directory of credentials; `is_used`: something is sealed, so that there must be a key.
    pub fn load(
        folder: &Folder,
        credentials: Option<&Path>,
        is_used: bool,
    ) -> Result<(Self, Option<LostKey>), StoreError> {
        let credential = credentials.map(from_credential).transpose()?.flatten();
        let file = folder.read(KEY)?.map(Zeroizing::new);
        let own = file.as_ref().and_then(|file| checked(file)).map(Key::new).transpose()?;
        let is_damaged = file.is_some() && own.is_none();
        let is_missing = is_used && own.is_none() && credential.is_none();
        let set_aside = if is_damaged { folder.set_aside(KEY)? } else { None };
        let (first, other) = match (credential, own) {
            (Some(credential), own) => {
                if is_damaged {
                    folder.remove(KEY)?;
                }
                (credential, own)
            }
            (None, Some(own)) => (own, None),
            (None, None) => (create(folder)?, None),
        };
        Ok((Self { first, other }, (is_damaged || is_missing).then_some(LostKey { set_aside })))
    }

    /// Seals a value. Returns its name and the content of its file.
    pub fn seal(&self, purpose: SealingPurpose, value: &impl Serialize) -> Result<(String, Vec<u8>), StoreError> {
        let (name, length) = self.first.name(value)?;
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|Unspecified| StoreError::Seal)?;
        // As long as it will be: a text that is moved while it grows leaves copies.
        let mut text = Zeroizing::new(Vec::with_capacity(length));
        serde_json::to_writer(&mut *text, value).map_err(StoreError::Encode)?;
        let nonce_of_text = Nonce::assume_unique_for_key(nonce);
        let key = self.first.of(purpose, &name).map_err(|Unspecified| StoreError::Seal)?;
        let tag = key.seal_in_place_separate_tag(nonce_of_text, purpose.context(&name), &mut text);
        let tag = tag.map_err(|Unspecified| StoreError::Seal)?;
        Ok((name, [&purpose.line(), nonce.as_slice(), &text, tag.as_ref()].concat()))
    }

    /// Returns the value that was sealed under a name; `None` when it was not, or not with these keys.
    pub fn unseal<T: DeserializeOwned>(&self, purpose: SealingPurpose, name: &str, sealed: &[u8]) -> Option<T> {
        let (nonce, text) = sealed.strip_prefix(purpose.line().as_slice())?.split_first_chunk()?;
        [Some(&self.first), self.other.as_ref()].into_iter().flatten().find_map(|key| {
            let mut text = Zeroizing::new(text.to_vec());
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let text = key.of(purpose, name).ok()?.open_in_place(nonce, purpose.context(name), &mut text).ok()?;
            serde_json::from_slice(text).ok()
        })
    }
}

/// Seals the records of one file, one after the other, or opens them in that order.
///
/// Guarantees: a record that was altered, removed, repeated, moved or brought from another file is not opened.
pub(crate) struct Sequence {
    key: LessSafeKey,
    purpose: SealingPurpose,
    name: String,
    count: u64,
}

/// As many bytes as a sealed record has more than what is in it.
pub(crate) const TAG: usize = 16;

impl Keys {
    /// A name that no other file has: each has a key of its own.
    pub(crate) fn unused_name() -> Result<String, StoreError> {
        let mut name = [0; 16];
        SystemRandom::new().fill(&mut name).map_err(|Unspecified| StoreError::Seal)?;
        Ok(hex(&name))
    }

    /// The sequences of a file of this name, by each of the keys: what is written is sealed by the first.
    pub(crate) fn sequences(&self, purpose: SealingPurpose, name: &str) -> Result<Vec<Sequence>, StoreError> {
        let keys = [Some(&self.first), self.other.as_ref()].into_iter().flatten();
        let sequence = |key: &Key| {
            let key = key.of(purpose, name).map_err(|Unspecified| StoreError::Seal)?;
            Ok(Sequence { key, purpose, name: name.to_owned(), count: 0 })
        };
        keys.map(sequence).collect()
    }
}

impl Sequence {
    /// Seals the next record in its place, behind which the tag is written.
    pub(crate) fn seal(&mut self, record: &mut Vec<u8>) -> Result<(), StoreError> {
        let (nonce, context) = self.next();
        let tag = self.key.seal_in_place_separate_tag(nonce, context, record);
        record.extend(tag.map_err(|Unspecified| StoreError::Seal)?.as_ref());
        Ok(())
    }

    /// Opens the next record; `None` when it is not that.
    pub(crate) fn open<'r>(&mut self, record: &'r mut [u8]) -> Option<&'r [u8]> {
        let (nonce, context) = self.next();
        self.key.open_in_place(nonce, context, record).ok().map(|text| &*text)
    }

    fn next(&mut self) -> (Nonce, Aad<Vec<u8>>) {
        let mut nonce = [0; NONCE_LEN];
        nonce.iter_mut().zip(self.count.to_be_bytes()).for_each(|(to, from)| *to = from);
        self.count += 1;
        (Nonce::assume_unique_for_key(nonce), self.purpose.context(&self.name))
    }
}

pub(super) struct Key {
    naming: hmac::Key,
    sealing: hkdf::Prk,
}

impl Key {
    fn new(secret: &[u8]) -> Result<Self, StoreError> {
        let sealing = hkdf::Salt::new(hkdf::HKDF_SHA256, b"stead-agent").extract(secret);
        let naming = sealing.expand(&[b"name"], hmac::HMAC_SHA256).map(hmac::Key::from);
        Ok(Self { naming: naming.map_err(|Unspecified| StoreError::Seal)?, sealing })
    }

    /// The name of a value, and how long its JSON is.
    pub(super) fn name(&self, value: &impl Serialize) -> Result<(String, usize), StoreError> {
        let mut naming = Naming { context: hmac::Context::with_key(&self.naming), length: 0 };
        serde_json::to_writer(&mut naming, value).map_err(StoreError::Encode)?;
        Ok((hex(naming.context.sign().as_ref()), naming.length))
    }

    fn of(&self, purpose: SealingPurpose, name: &str) -> Result<LessSafeKey, Unspecified> {
        let purpose = [purpose.0.as_bytes(), name.as_bytes()];
        let key = self.sealing.expand(&purpose, &CHACHA20_POLY1305)?;
        Ok(LessSafeKey::new(UnboundKey::from(key)))
    }
}

struct Naming {
    context: hmac::Context,
    length: usize,
}

impl Write for Naming {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.context.update(bytes);
        self.length += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The key in a key file: its bytes, followed by their checksum.
fn checked(file: &[u8]) -> Option<&[u8]> {
    let (key, checksum) = file.split_at_checked(KEY_LENGTH)?;
    (Sha256::digest(key).as_slice() == checksum).then_some(key)
}

fn create(folder: &Folder) -> Result<Key, StoreError> {
    let mut secret = Zeroizing::new([0; KEY_LENGTH]);
    SystemRandom::new().fill(&mut *secret).map_err(|Unspecified| StoreError::Seal)?;
    let file = Zeroizing::new([secret.as_slice(), &Sha256::digest(secret.as_slice())].concat());
    folder.replace(KEY, &file)?;
    Key::new(&*secret)
}

fn from_credential(directory: &Path) -> Result<Option<Key>, StoreError> {
    let path = directory.join(CREDENTIAL);
    let failed = |source| FolderError::System { doing: "read the credential", path: path.clone(), source };
    let file = match TrustedFile::open(&path, User::current().trust()).and_then(|file| file.read()) {
        Err(error) if error.is_not_found() => return Ok(None),
        opened => opened.map_err(|source| FolderError::Directory { path: path.clone(), source })?,
    };
    let mut secret = Zeroizing::new(Vec::new());
    file.take(MAX_CREDENTIAL).read_to_end(&mut secret).map_err(failed)?;
    if secret.len() < KEY_LENGTH { Err(StoreError::Credential(path)) } else { Key::new(&secret).map(Some) }
}
