//! Laws of every run: random documents, random machines, random orders of answers.
//!
//! `STEAD_RUNS=10000` tries so many of them, `STEAD_FIRST_RUN=500` leaves out those before. A failure names its
//! number, which alone makes it again.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

#[path = "../support/catalog.rs"]
mod catalog;
#[path = "../support/prepare.rs"]
mod prepare;
#[path = "../support/random.rs"]
mod random;
#[path = "../support/seal.rs"]
mod seal;
#[path = "../support/simulation.rs"]
mod simulation;

mod breaks;
mod cost;
mod order;
mod plans;
mod retries;
mod scenes;
