//! The controller of a fleet, which says to machines what is newer and keeps what they report.
//!
//! What counts is signed elsewhere (`stead-release`): a controller that lies can keep news back, and change no machine.

#![expect(clippy::doc_markdown, reason = "databases have such names")]

pub mod store;
