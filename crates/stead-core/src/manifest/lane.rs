//! The lanes of calls, by which calls of resources are limited together.

use super::{Implementation, Manifest};
use crate::id::TypeName;

/// A group of resources whose calls are limited together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lane {
    /// Resources that are built in, and those that the engine carries out itself.
    BuiltIn,
    /// Programs, one process a call.
    Programs,
    /// Resources that one adapter carries out.
    Adapter(TypeName),
}

impl Manifest {
    /// The lane of its calls.
    pub fn lane(&self) -> Lane {
        match &self.implementation {
            Implementation::BuiltIn | Implementation::Engine => Lane::BuiltIn,
            Implementation::Command(_) | Implementation::Late(_) => Lane::Programs,
            Implementation::Adapted { adapter, .. } => Lane::Adapter(adapter.type_name.clone()),
        }
    }
}
