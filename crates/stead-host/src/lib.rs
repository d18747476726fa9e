//! The effects of stead: processes, files, discovery, and the loop that drives a run.
//!
//! Blocking calls on plain threads; no async runtime.

pub mod bundle;
pub mod cache;
pub mod catalog;
pub mod check;
pub mod command;
pub mod executor;
pub mod extensions;
pub mod facts;
pub mod journal;
pub mod operate;
pub mod predicted_files;
pub mod provider;
pub mod redactor;
pub mod settings;
pub mod store;
pub mod vault;
pub mod worker_pool;
