//! The pure core of stead: text in, decisions out.
//!
//! ```text
//! text ──parse──▶ Document ──resolve──▶ Graph ──Run──▶ Call ⇄ Outcome ──▶ Event ──▶ Report
//! ```
//!
//! Nothing in here reads a clock, a file, the environment or a process: what the machine knows comes in as values
//! ([`expr::FactKey`], [`call::Outcome`]), what should happen goes out as values ([`call::Call`], `event::Event`).

pub mod budget;
pub mod bundle;
pub mod call;
pub mod claims;
pub mod destruction;
pub mod diag;
pub mod diff;
pub mod digest;
pub mod document;
pub mod event;
pub mod export;
pub mod expr;
pub mod footprint;
pub mod graph;
pub mod history;
pub mod id;
pub mod identity;
pub mod instance_path;
pub mod manifest;
pub mod parameters;
pub mod planner;
pub mod report;
pub mod run;
pub mod schema;
pub mod source;
pub mod statements;
pub mod template;
pub mod text;
pub mod value;
pub mod visible;
pub mod wait;
pub mod wire;
