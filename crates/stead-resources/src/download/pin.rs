//! The digest that a file had when it was first downloaded, kept beside it as `NAME.sha256`.
//!
//! Who can replace this file can replace the one that it is about as well, so that no other place would be safer; here it
//! moves with the file, serves every root and every user, and `sha256sum -c` reads it.
//!
//! Guarantees: it is read through a descriptor, without following a link, and believed only when nobody but root and the
//! user who runs this can have written it.

use std::path::Path;

use stead_core::call::Failure;
use stead_core::destruction::{Item, ItemKind};
use stead_host::provider::Context;
use stead_system::fs::{self, Former, Ownership, Place, Replacement, Status, SystemPath};

use super::Properties;
use crate::checksum::Checksum;
use crate::input::{blocked, transient};

/// What comes behind the name of the file.
pub(super) const SUFFIX: &str = ".sha256";

/// A digest, two spaces and a name.
const MAX_SIZE: u64 = 4096;

/// The pin of a file.
pub(super) struct Pin {
    path: SystemPath,
    /// The name of the file that it is about.
    name: String,
    /// The path as the instance states it.
    shown: String,
    /// What was pinned, if anything was.
    pub(super) checksum: Option<Checksum>,
}

impl Pin {
    /// The pin of the file at a path, which the instance states like that.
    pub(super) fn of(path: &SystemPath, stated: &str) -> Result<Self, Failure> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = path.with_file_name(format!("{name}{SUFFIX}"));
        let shown = format!("{stated}{SUFFIX}");
        let about_pin = |failure: Failure| Failure { property: Some("/pin".to_owned()), ..failure };
        let checksum = read(&path).map_err(about_pin)?;
        Ok(Self { path, name, shown, checksum })
    }

    /// The path, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What is created or removed with it.
    pub(super) fn item(&self) -> Item {
        let size = (64 + "  \n".len() + self.name.len()) as u64;
        Item { path: self.shown.clone(), kind: ItemKind::File { size } }
    }

    /// Keeps a digest of SHA-256.
    pub(super) fn keep(&self, cx: &Context, sha256: &str) -> Result<(), Failure> {
        let Some(place) = Place::find(&self.path, &cx.writes)? else { return Ok(()) };
        let replacement = Replacement::begin(&place, Former::Absent)?;
        replacement.write(format!("{sha256}  {}\n", self.name).as_bytes())?;
        match replacement.finish(0o644, Ownership::default())? {
            Some(_) => Ok(()),
            None => Err(transient(
                Properties::PIN,
                format!("'{}' was created by another program meanwhile", self.path.display()),
            )),
        }
    }

    /// Forgets it.
    pub(super) fn remove(&self, cx: &Context) -> Result<(), Failure> {
        if let Some(place) = Place::find(&self.path, &cx.writes)? {
            place.remove()?;
        }
        Ok(())
    }
}

fn read(path: &SystemPath) -> Result<Option<Checksum>, Failure> {
    let Some(content) = fs::read(path, MAX_SIZE)? else { return Ok(None) };
    let shown = path.display();
    if let Some(problem) = distrust(&content.status) {
        let hint = format!("Check it, then run `chown root '{shown}'` and `chmod 644 '{shown}'`, or remove it");
        return Err(blocked(Properties::PIN, format!("'{shown}' is not trusted: {problem}. {hint}")));
    }
    let text = String::from_utf8_lossy(&content.bytes);
    let digest = text.split_whitespace().next().and_then(Checksum::sha256);
    let malformed = || blocked(Properties::PIN, format!("'{shown}' does not begin with a digest of SHA-256"));
    digest.map(Some).ok_or_else(malformed)
}

/// Why somebody else can have written a file.
fn distrust(status: &Status) -> Option<&'static str> {
    let is_ours = status.uid == 0 || status.uid == stead_system::user::own();
    match () {
        () if !is_ours => Some("it belongs to another user"),
        () if status.mode & 0o022 != 0 => Some("others can write it"),
        () => None,
    }
}
