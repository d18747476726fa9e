//! Values of the running kernel that a file keeps for its next start.

#![expect(clippy::disallowed_methods, reason = "it asks the running kernel, and is not called for another system")]

use std::fs;
use std::path::PathBuf;

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::system::{sethostname, uname};
use stead_core::call::{Failure, Presumed};

use crate::input::{cannot, failure, transient};

/// A value of the running kernel.
pub(crate) struct Live {
    /// The property that states it.
    pub(crate) property: &'static str,
    /// Which value it is.
    pub(crate) setting: Setting,
    /// The desired value.
    pub(crate) value: String,
}

/// What the kernel is asked for, and given.
pub(crate) enum Setting {
    /// A file below /proc/sys.
    Parameter(PathBuf),
    /// The name of the machine. A container may change its own, where /proc/sys is read-only.
    HostName,
}

impl Live {
    /// The value that the kernel has instead; empty where it has none.
    pub(super) fn differing(&self) -> Result<Option<String>, Failure> {
        let current = self.read()?;
        Ok((!self.value.split_whitespace().eq(current.split_whitespace())).then_some(current))
    }

    fn read(&self) -> Result<String, Failure> {
        let Setting::Parameter(path) = &self.setting else {
            return Ok(uname().nodename().to_string_lossy().into_owned());
        };
        match fs::read_to_string(path) {
            Ok(text) => Ok(text.split_whitespace().collect::<Vec<_>>().join(" ")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(self.about(cannot("read", path, error))),
        }
    }

    /// In what-if: what keeps the value from being changed as things are.
    pub(super) fn presumed(&self) -> Option<Presumed> {
        let failure = match &self.setting {
            Setting::Parameter(path) => cannot("write", path, access(path, Access::WRITE_OK).err()?),
            Setting::HostName if rustix::process::geteuid().is_root() => return None,
            Setting::HostName => not_named(Errno::PERM),
        };
        Some(Presumed { failure: self.about(failure), paths: Vec::new() })
    }

    /// Changes the value at once.
    pub(super) fn put(&self) -> Result<(), Failure> {
        let done = match &self.setting {
            Setting::Parameter(path) => fs::write(path, &self.value).map_err(|error| cannot("write", path, error)),
            Setting::HostName => sethostname(self.value.as_bytes()).map_err(not_named),
        };
        done.map_err(|failure| self.about(failure))
    }

    fn about(&self, reason: Failure) -> Failure {
        failure(reason.kind, self.property, reason.message)
    }
}

fn not_named(error: Errno) -> Failure {
    let reason = stead_system::fs::reason(&error.into());
    transient("", format!("cannot change the name of the running machine: {reason}"))
}
