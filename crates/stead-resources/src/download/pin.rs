//! The digest that a file had when it was first downloaded, kept beside it as `NAME.sha256`: `sha256sum -c` reads it.

use std::path::Path;

use stead_core::call::Failure;
use stead_core::destruction::Item;
use stead_host::provider::Context;
use stead_system::fs::{Former, SystemPath};

use super::Properties;
use super::beside::Beside;
use crate::checksum::Checksum;
use crate::input::blocked;

/// What comes behind the name of the file.
pub(super) const SUFFIX: &str = ".sha256";

/// The pin of a file.
pub(super) struct Pin {
    file: Beside,
    /// What was pinned, if anything was.
    pub(super) checksum: Option<Checksum>,
}

impl Pin {
    /// The pin of the file at a path, which the instance states like that.
    pub(super) fn of(path: &SystemPath, stated: &str) -> Result<Self, Failure> {
        let file = Beside::of(path, stated, SUFFIX, Properties::PIN);
        let checksum = file.read()?.map(|content| {
            let text = String::from_utf8_lossy(&content);
            let digest = text.split_whitespace().next().and_then(Checksum::sha256);
            let shown = file.path().display();
            digest.ok_or_else(|| blocked(Properties::PIN, format!("'{shown}' does not begin with a digest of SHA-256")))
        });
        Ok(Self { checksum: checksum.transpose()?, file })
    }

    /// The path, for messages.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// What is created or removed with it.
    pub(super) fn item(&self) -> Item {
        self.file.item(64 + "  \n".len() + self.file.name.len())
    }

    /// Keeps a digest of SHA-256.
    pub(super) fn keep(&self, cx: &Context, sha256: &str) -> Result<(), Failure> {
        self.file.keep(cx, format!("{sha256}  {}\n", self.file.name).as_bytes(), (Former::Absent, 0o644))
    }

    /// Forgets it.
    pub(super) fn remove(&self, cx: &Context) -> Result<(), Failure> {
        self.file.remove(cx)
    }
}
