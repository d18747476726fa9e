//! The effects of stead: processes, files, discovery, and the loop that drives a run.
//!
//! Blocking calls on plain threads; no async runtime.

pub mod fs;
pub mod provider;
