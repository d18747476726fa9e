//! The codes of PowerShell resources, from the file to the call.

pub mod call;
pub mod module;
pub mod script;
