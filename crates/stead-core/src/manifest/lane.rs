//! The lanes of calls, by which calls of resources are limited together.

use super::{Implementation, Manifest};
use crate::id::TypeName;

/// A group of resources whose calls are limited together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lane {
    /// Resources that are carried out in this process.
    InProcess,
    /// Programs, one process a call.
    Programs,
    /// Resources that one adapter carries out.
    Adapter(TypeName),
}

impl Manifest {
    /// The lane of its calls.
    pub fn lane(&self) -> Lane {
        match &self.implementation {
            Implementation::Adapted { adapter, .. } => Lane::Adapter(adapter.type_name.clone()),
            _ if self.is_in_process() => Lane::InProcess,
            _ => Lane::Programs,
        }
    }
}
