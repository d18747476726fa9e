//! Requests about many machines.

use std::path::PathBuf;

use crate::terminal::Output;

/// `hosts`
#[derive(Debug)]
pub(crate) struct HostsRequest {
    /// A file, a program that prints one, or standard input for `-`.
    pub(crate) inventory: PathBuf,
    /// The filter that the machines must match.
    pub(crate) filter: Option<String>,
    pub(crate) output: Output,
}
