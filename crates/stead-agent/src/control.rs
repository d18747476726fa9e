//! The protocol of the control socket: one request and one answer, each a line of JSON, over a connection.
//!
//! The socket lies in the directory of the agent, which only its user can enter, has the mode 0600, and every caller is asked
//! of the kernel for its user: only root and the user of the agent are answered.

mod client;
mod listener;
mod messages;

pub use client::{Answered, CallError, SERVICE_STATE, call};
pub(crate) use listener::{Answer, Listener, serve};
pub use messages::*;

/// The name of the socket in the directory of the agent.
pub(crate) const SOCKET: &str = "control.sock";

/// A request has at most so many bytes: a document of the largest size, with its parameters.
pub(crate) const MOST_BYTES: u64 = 128 << 20;
