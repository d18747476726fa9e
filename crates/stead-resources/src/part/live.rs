//! Values of the running kernel that a file keeps for its next start.

#![expect(clippy::disallowed_methods, reason = "it asks the running kernel, and is not called for another system")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stead_core::call::{Failure, Presumed};
use stead_core::value::Value;
use stead_system::fs::{check_writable, not_permitted, reason};
use stead_system::kernel;
use stead_system::user;

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

    /// Returns whether the value stays when what a file keeps of it goes.
    pub(super) fn outlives_its_line(&self) -> bool {
        matches!(self.setting, Setting::Parameter(_))
    }

    /// The value that stays without a line, as the property that states it; `None` where none stays or the kernel has none.
    pub(super) fn outliving(live: Option<&Self>) -> Result<Option<(String, Value)>, Failure> {
        let Some(live) = live.filter(|live| live.outlives_its_line()) else { return Ok(None) };
        let current = live.read()?;
        Ok((!current.is_empty()).then(|| (live.property.to_owned(), Value::from(current))))
    }

    fn read(&self) -> Result<String, Failure> {
        let Setting::Parameter(path) = &self.setting else {
            return Ok(kernel::host_name());
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
            Setting::Parameter(path) => not_set(path, check_writable(path).err()?),
            Setting::HostName if user::is_root() => return None,
            Setting::HostName => not_named(&not_permitted()),
        };
        Some(Presumed::of(self.about(failure), Vec::new()))
    }

    /// Changes the value at once.
    pub(super) fn put(&self) -> Result<(), Failure> {
        let done = match &self.setting {
            Setting::Parameter(path) => fs::write(path, &self.value).map_err(|error| not_set(path, error)),
            Setting::HostName => kernel::set_host_name(&self.value).map_err(|error| not_named(&error)),
        };
        done.map_err(|failure| self.about(failure))
    }

    fn about(&self, reason: Failure) -> Failure {
        failure(reason.kind, self.property, reason.message)
    }
}

/// That a parameter of the kernel cannot be changed.
fn not_set(path: &Path, error: io::Error) -> Failure {
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    let failure = cannot("write", path, error);
    if !is_missing {
        return failure;
    }
    let message = format!(
        "the kernel has no parameter '{}'. Correct the name, or load the module that has it with a Stead/KernelModule",
        path.display()
    );
    Failure { message, ..failure }
}

fn not_named(error: &io::Error) -> Failure {
    transient("", format!("cannot change the name of the running machine: {}", reason(error)))
}
