//! The controller of a fleet, which serves signed releases to machines and keeps their reports.
//!
//! What counts is signed elsewhere (`stead-release`): a controller that lies can keep news back, and change no machine.

#![expect(clippy::doc_markdown, reason = "databases have such names")]

pub mod api;
pub mod client;
pub mod server;
pub mod store;
pub mod tls;

use base64::Engine as _;
use ring::rand::{SecureRandom as _, SystemRandom};
use stead_core::value::Sensitive;

/// 32 random bytes as a word, which proves who is asked for it.
///
/// # Panics
/// When the system has no random numbers.
pub fn new_token() -> Sensitive<String> {
    Sensitive::new(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random::<32>()))
}

/// Random bytes.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let drawn = SystemRandom::new().fill(&mut bytes);
    assert!(drawn.is_ok(), "the system has no random numbers");
    bytes
}
