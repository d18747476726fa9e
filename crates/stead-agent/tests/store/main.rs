//! Files of the agent survive kills, power failures, errors of the system and damage, and nobody else can read them.
//!
//! `STEAD_AGENT_KILLS=10000` kills so often, in place of 60 times.
//! `STEAD_AGENT_KEY_KILLS=1000` kills so often what makes the keys of a machine, in place of 12 times.
//! `STEAD_AGENT_ERRORS=10000` has a system call fail so often, in place of 30 times.
//! `STEAD_AGENT_POWER=100` replays so many recordings, in place of 2.
//! `STEAD_AGENT_DAMAGE=100000` damages files so often, in place of 500 times.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod damage;
mod errors;
mod keys;
mod kills;
mod power;
mod privacy;
mod recording;
mod script;
mod victim;
