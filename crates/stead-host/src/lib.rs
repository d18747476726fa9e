//! The effects of stead: processes, files, discovery, and the loop that drives a run.
//!
//! Blocking calls on plain threads; no async runtime.

<<<<<<< HEAD
pub mod drive;
=======
pub mod facts;
pub mod operate;
>>>>>>> operate
pub mod provider;
pub mod vault;
