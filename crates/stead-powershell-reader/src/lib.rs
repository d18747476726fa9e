//! DSC resources of PowerShell, read out of the files of modules. Nothing of a module is run.
//!
//! ```text
//! files ──▶ Module ──▶ Resource ──▶ JSON Schema
//! ```
//!
//! Manifests are evaluated as restricted language, classes and configurations are read from the text of scripts, script
//! resources from their MOF schema. All effects are reading: [`module::Files`].

pub mod class;
pub mod composite;
pub mod finding;
pub mod manifest;
pub mod module;
pub mod mof;
pub mod resource;
pub mod schema;
pub mod script;
pub mod text;
mod token;
pub mod types;
