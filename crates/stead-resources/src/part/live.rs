//! Values of the running kernel that a file keeps for its next start.

use std::fs;
use std::path::PathBuf;

use rustix::fs::{Access, access};
use stead_core::call::{Failure, Presumed};

use crate::input::{cannot, failure};

/// A value below /proc/sys.
pub(crate) struct Live {
    /// The property that states it.
    pub(crate) property: &'static str,
    /// Where the kernel has it.
    pub(crate) path: PathBuf,
    /// The desired value.
    pub(crate) value: String,
}

impl Live {
    /// The value that the kernel has instead; empty where it has none.
    pub(super) fn differing(&self) -> Result<Option<String>, Failure> {
        let current = match fs::read_to_string(&self.path) {
            Ok(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Some(String::new())),
            Err(error) => return Err(self.about(cannot("read", &self.path, error))),
        };
        Ok((!self.value.split_whitespace().eq(current.split_whitespace())).then_some(current))
    }

    /// In what-if: what keeps the value from being changed as things are.
    pub(super) fn presumed(&self) -> Option<Presumed> {
        let error = access(&self.path, Access::WRITE_OK).err()?;
        Some(Presumed { failure: self.about(cannot("write", &self.path, error)), paths: Vec::new() })
    }

    /// Changes the value at once.
    pub(super) fn put(&self) -> Result<(), Failure> {
        fs::write(&self.path, &self.value).map_err(|error| self.about(cannot("write", &self.path, error)))
    }

    fn about(&self, reason: Failure) -> Failure {
        failure(reason.kind, self.property, reason.message)
    }
}
