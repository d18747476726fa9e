//! Requests with a resource, and no document.

use std::path::PathBuf;

use stead_core::call::Execution;
use stead_engine::{Method, ResourceSpecification};
use stead_puppet::ModuleOptions;

use super::{FleetRequest, Given, View};
use crate::terminal::{Output, OutputFormat};

/// `get`
#[derive(Debug)]
pub(crate) struct GetRequest {
    pub(crate) resource: String,
    /// The properties that name one instance; all are meant without them.
    pub(crate) words: Vec<String>,
    pub(crate) output: Output,
    /// The machines that it is for, where it is not this one.
    pub(crate) fleet: Option<FleetRequest>,
}

/// `set`
#[derive(Debug)]
pub(crate) struct SetRequest {
    pub(crate) resource: String,
    /// The properties that name the instance, and those that it should have.
    pub(crate) words: Vec<String>,
    pub(crate) execution: Execution,
    /// True if users are asked before something is removed.
    pub(crate) asks: bool,
    pub(crate) view: View,
    /// The machines that it is for, where it is not this one.
    pub(crate) fleet: Option<FleetRequest>,
}

/// `export`
#[derive(Debug)]
pub(crate) struct ExportRequest {
    /// Types, each with the assignments that limit it.
    pub(crate) words: Vec<String>,
    pub(crate) output: Output,
    /// The machines that it is for, where it is not this one.
    pub(crate) fleet: Option<FleetRequest>,
}

/// `invoke`
#[derive(Debug)]
pub(crate) struct InvokeRequest {
    pub(crate) resource: ResourceSpecification,
    pub(crate) method: Method,
    /// Single properties, which win over those of the input.
    pub(crate) properties: Vec<(String, String)>,
    pub(crate) input: Option<Given>,
    pub(crate) ignores_run_as_credential: bool,
    pub(crate) format: Option<OutputFormat>,
}

/// `puppetize`
pub(crate) struct PuppetizeRequest {
    pub(crate) types: Vec<String>,
    /// The adapter of which all resources are meant.
    pub(crate) adapter: Option<String>,
    /// The module of PowerShell of which all resources are meant.
    pub(crate) powershell_module: Option<String>,
    pub(crate) options: ModuleOptions,
    /// The directory of the module.
    pub(crate) folder: PathBuf,
    /// True if nothing is written, and stale files are listed.
    pub(crate) only_checks: bool,
}

/// `serve`
#[derive(Debug)]
pub(crate) enum ServeRequest {
    /// Requests come from standard input.
    Converse,
    /// They are in a file, and sets are carried out like this.
    Replay { file: PathBuf, sets: Execution },
}
