//! A file beside the one that is downloaded, which says something of that one.
//!
//! Who can replace this file can replace the one that it is about as well, so that no other place would be safer; here it
//! moves with the file, and serves every root and every user.
//!
//! Guarantees: it is read through a descriptor, without following a link, and believed only when nobody but root and the
//! user who runs this can have written it.

use std::path::Path;

use stead_core::call::Failure;
use stead_core::destruction::{Item, ItemKind};
use stead_host::provider::Context;
use stead_system::fs::{self, Former, Ownership, Place, Replacement, Status, SystemPath};

use crate::input::{blocked, transient};

/// It has a few lines.
const MAX_SIZE: u64 = 4096;

/// The file at `NAME` and a suffix, where `NAME` is downloaded.
pub(super) struct Beside {
    path: SystemPath,
    /// The name of the file that it is about.
    pub(super) name: String,
    /// The path as the instance states it.
    shown: String,
    /// The property because of which it is there.
    property: &'static str,
}

impl Beside {
    /// That of the file at a path, which the instance states like that.
    pub(super) fn of(path: &SystemPath, stated: &str, suffix: &str, property: &'static str) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = path.with_file_name(format!("{name}{suffix}"));
        Self { path, name, shown: format!("{stated}{suffix}"), property }
    }

    /// The path, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its content, where it is there and can be believed.
    pub(super) fn read(&self) -> Result<Option<Vec<u8>>, Failure> {
        let about = |failure: Failure| Failure { property: Some(format!("/{}", self.property)), ..failure };
        let Some(content) = fs::read(&self.path, MAX_SIZE).map_err(Failure::from).map_err(about)? else {
            return Ok(None);
        };
        if let Some(problem) = distrust(&content.status) {
            let shown = self.path.display();
            let hint = format!("Check it, then run `chown root '{shown}'` and `chmod 644 '{shown}'`, or remove it");
            return Err(blocked(self.property, format!("'{shown}' is not trusted: {problem}. {hint}")));
        }
        Ok(Some(content.bytes))
    }

    /// It as something that is created or removed.
    pub(super) fn item(&self, size: usize) -> Item {
        Item { path: self.shown.clone(), kind: ItemKind::File { size: size as u64 } }
    }

    /// Writes it.
    pub(super) fn keep(&self, cx: &Context, content: &[u8], (former, mode): (Former<'_>, u32)) -> Result<(), Failure> {
        let Some(place) = Place::find(&self.path, &cx.writes)? else { return Ok(()) };
        let replacement = Replacement::begin(&place, former)?;
        replacement.write(content)?;
        let created = || format!("'{}' was created by another program meanwhile", self.path.display());
        replacement.finish(mode, Ownership::default())?.map(|_| ()).ok_or_else(|| transient(self.property, created()))
    }

    /// Removes it.
    pub(super) fn remove(&self, cx: &Context) -> Result<(), Failure> {
        if let Some(place) = Place::find(&self.path, &cx.writes)? {
            place.remove()?;
        }
        Ok(())
    }
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
