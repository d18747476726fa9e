//! The code tables, one for each part of the pipeline. They are beside the type of a code, so that any id can be looked up
//! without knowing the part that reports it.

pub mod call;
pub mod document;
pub mod expr;
pub mod graph;
pub mod hosts;
pub mod manifest;
pub mod parameters;
pub mod powershell;
pub mod release;
pub mod run;
pub mod sls;
pub mod test;
pub mod text;
