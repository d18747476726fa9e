//! Settings: what an administrator decides for all runs, and how that goes together with arguments and environment.

use std::path::PathBuf;

/// x
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourcePath {
    /// Whether `DSC_RESOURCE_PATH` replaces the directories.
    pub allow_env_override: bool,
    /// Whether the directories of `PATH` are searched after these.
    pub append_env_path: bool,
    /// Directories that are searched first.
    pub directories: Vec<PathBuf>,
}

impl Default for ResourcePath {
    fn default() -> Self {
        Self { allow_env_override: true, append_env_path: true, directories: Vec::new() }
    }
}
