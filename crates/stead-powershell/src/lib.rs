//! PowerShell DSC resources: found without PowerShell, called in warm workers.
//!
//! ```text
//! files ──read──▶ Module ──▶ Resource ──▶ JSON Schema
//!                               │
//! properties ──convert──▶ call ─┴─▶ worker (PowerShell) ──▶ state, verdict, records
//! ```
//!
//! Reading runs nothing of a module: manifests are evaluated as restricted language, classes are read from the text of
//! scripts, script resources from their MOF schema.

pub mod adapter;
pub mod class;
mod composite;
pub mod convert;
pub mod counterparts;
mod expansion;
pub mod finding;
pub mod index;
mod loaded;
pub mod manifest;
pub mod module;
pub mod mof;
pub mod provider;
pub mod resource;
pub mod schema;
pub mod script;
mod shared_types;
pub mod text;
mod token;
pub mod transitional;
pub mod types;
pub mod worker;
