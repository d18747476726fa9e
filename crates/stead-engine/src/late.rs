//! Resources that a document installs itself: they are looked for when an instance is reached.

use std::sync::{Arc, Mutex, PoisonError};

use stead_core::call::{Failure, FailureKind};
use stead_core::id::TypeName;
use stead_core::manifest::{Late, Manifest, ResourceKind};
use stead_host::catalog::{Discovery, WantedType};

/// The search for resources that were not there when a run began.
///
/// Guarantees: what was found once is what every later call of the same type, version and adapter gets, so that one instance
/// is tested and set by the same resource. What was not found is looked for again.
pub(crate) struct LateSearch {
    before: Arc<Discovery>,
    /// Locked during a search, so that there is one at a time: the others may be answered by what it finds.
    found: Mutex<Vec<(WantedType, Arc<Manifest>)>>,
}

impl LateSearch {
    pub(crate) fn new(before: Arc<Discovery>) -> Self {
        Self { before, found: Mutex::default() }
    }

    /// Finds the resource of a type, which may have been installed since the run began.
    pub(crate) fn find(&self, type_name: &TypeName, late: &Late) -> Result<Arc<Manifest>, Failure> {
        let Late { requirement, adapter } = late.clone();
        let wanted = WantedType { type_name: type_name.clone(), requirement, adapter };
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = found.iter().find(|(known, _)| *known == wanted) {
            return Ok(Arc::clone(known));
        }
        let manifest = self.before.again().find(&wanted).map_err(|error| missing(&error.to_string()))?;
        if matches!(manifest.kind, ResourceKind::Adapter | ResourceKind::Importer) {
            let message = format!("'{type_name}' holds other instances, and must be there before the run begins");
            return Err(Failure::new(FailureKind::Unsupported, message));
        }
        tracing::info!("Found '{type_name}' {} during the run", manifest.version);
        found.push((wanted, Arc::clone(&manifest)));
        Ok(manifest)
    }
}

/// It may be installed by a call that is under way, so that trying again can help.
fn missing(why: &str) -> Failure {
    Failure::new(FailureKind::Start, format!("Resource not found: {why}; nothing that it depends on installed it"))
}
