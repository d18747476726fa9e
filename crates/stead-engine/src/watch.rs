//! Watching what pending instances read and manage.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stead_core::claims::{Claim, Claims};
use stead_core::id::NodeId;
use stead_core::run::KnownInstance;
use stead_host::executor::Watch;
use stead_host::provider::Plain;
use stead_system::watch::{Drift, Watched, Watcher};

use crate::contexts::Contexts;
use crate::providers::Providers;

/// Watches the files of pending instances.
pub(crate) struct FileWatch {
    /// `None` until something is watched, and where the system can watch nothing.
    watcher: Option<Watcher>,
    providers: Arc<Providers>,
    contexts: Arc<Contexts>,
    /// The instances that are watched, under their numbers, and what is watched of them.
    watched: BTreeMap<NodeId, Watched>,
}

impl FileWatch {
    pub(crate) fn new(providers: Arc<Providers>, contexts: Arc<Contexts>) -> Self {
        Self { watcher: None, providers, contexts, watched: BTreeMap::new() }
    }

    fn claims(&self, pending: &KnownInstance) -> Option<Claims> {
        // Paths are not secret; see `footprint`.
        let desired = Plain::covered(&pending.desired);
        let cx = self.contexts.of(pending.instance.node());
        let claims = self.providers.claims_of(&pending.manifest, &desired, cx)?;
        Some(Claims(claims.0.into_iter().map(first_missing).collect()))
    }
}

impl Watch for FileWatch {
    fn watch(&mut self, instance: &KnownInstance) -> bool {
        let id = instance.instance.node();
        let Some(claims) = self.claims(instance).filter(|claims| !claims.0.is_empty()) else { return false };
        if self.watched.get(&id).is_some_and(|watched| watched.claims == claims) {
            return false;
        }
        self.forget(id);
        if self.watcher.is_none() {
            self.watcher = Watcher::new().ok();
        }
        let Some(watcher) = &self.watcher else { return false };
        let entry = Watched { instance: id.index().to_string(), claims };
        watcher.add(&entry);
        self.watched.insert(id, entry);
        true
    }

    fn forget(&mut self, instance: NodeId) {
        if let (Some(watched), Some(watcher)) = (self.watched.remove(&instance), &self.watcher) {
            watcher.remove(&watched);
        }
    }

    fn is_watching(&self) -> bool {
        self.watcher.is_some() && !self.watched.is_empty()
    }

    fn changed(&mut self, longest: Duration) -> Vec<NodeId> {
        match self.watcher.as_ref().map(|watcher| watcher.changed(Some(longest))) {
            Some(Ok(Some(Drift::Instances(numbers)))) => {
                let number = |number: &String| Some(NodeId(number.parse().ok()?));
                numbers.iter().filter_map(number).collect()
            }
            // A folder may be gone: each is watched anew when it backs off again.
            Some(Ok(Some(Drift::Anything))) => {
                let all: Vec<NodeId> = self.watched.keys().copied().collect();
                for id in &all {
                    self.forget(*id);
                }
                all
            }
            Some(Ok(None)) => Vec::new(),
            // Nothing is noticed any more: everything is run again after its wait.
            Some(Err(_)) | None => {
                std::thread::sleep(longest);
                Vec::new()
            }
        }
    }
}

/// Moves a claim to the first folder above it that is missing, since only a path in a folder that exists can be
/// watched.
fn first_missing(Claim::Path { path, extent }: Claim) -> Claim {
    let missing: Vec<&Path> = path.ancestors().skip(1).take_while(|folder| !folder.is_dir()).collect();
    let path = missing.last().map_or_else(|| Arc::clone(&path), |missing| Arc::from(*missing));
    Claim::Path { path, extent }
}
