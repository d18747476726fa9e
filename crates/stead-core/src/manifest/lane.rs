//! The lanes of calls, by which calls of resources are limited together.

use super::{Implementation, Manifest, Version};
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

/// What resources have in common whose instances can be handed to one call: their adapter, and their author, whose code sees all
/// that the call is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BatchKey {
    /// The type of the adapter.
    pub adapter: TypeName,
    /// Its version.
    pub version: Version,
    /// The author: the owner of the types, in small letters.
    pub owner: String,
}

impl Manifest {
    /// The resources that its instances are handed over with; `None` where each instance has a call of its own.
    pub fn batch(&self) -> Option<BatchKey> {
        let Implementation::Adapted { adapter, .. } = &self.implementation else { return None };
        let Implementation::Command(methods) = &adapter.implementation else { return None };
        let takes_several = methods.adapter.as_ref().is_some_and(|methods| methods.batch);
        takes_several.then(|| BatchKey {
            adapter: adapter.type_name.clone(),
            version: adapter.version.clone(),
            owner: self.type_name.owner().to_ascii_lowercase(),
        })
    }

    /// The lane of its calls.
    pub fn lane(&self) -> Lane {
        match &self.implementation {
            Implementation::Adapted { adapter, .. } => Lane::Adapter(adapter.type_name.clone()),
            _ if self.is_in_process() => Lane::InProcess,
            _ => Lane::Programs,
        }
    }
}
