//! Watching what pending instances read and manage.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stead_core::claims::{Claim, Claims};
use stead_core::id::NodeId;
use stead_core::run::Pending;
use stead_host::executor::Watch;
use stead_host::provider::{Context, Plain};
use stead_host::watch::{Drift, Watched, Watcher};

use crate::calls::Providers;

/// Watches the files of pending instances.
pub(crate) struct FileWatch {
    /// `None` until something is watched, and where the system can watch nothing.
    watcher: Option<Watcher>,
    providers: Providers,
    context: Context,
    /// The instances that are watched, by what the watcher calls them, and what is watched of them.
    watched: HashMap<String, (NodeId, Claims)>,
}

impl FileWatch {
    pub(crate) fn new(providers: Providers, context: Context) -> Self {
        Self { watcher: None, providers, context, watched: HashMap::new() }
    }

    fn claims(&self, pending: &Pending) -> Option<Claims> {
        // Paths are not secret; see `footprint`.
        let desired = Plain::covered(&pending.desired);
        let claims = self.providers.claims_of(&pending.manifest, &desired, &self.context)?;
        Some(Claims(claims.0.into_iter().map(first_missing).collect()))
    }
}

impl Watch for FileWatch {
    fn watch(&mut self, pending: &[Pending]) -> Vec<NodeId> {
        let mut names = HashMap::new();
        let mut wanted = Vec::new();
        for each in pending {
            let Some(claims) = self.claims(each).filter(|claims| !claims.0.is_empty()) else { continue };
            let instance = each.instance.to_string();
            names.insert(instance.clone(), (each.instance.node(), claims.clone()));
            wanted.push(Watched { instance, claims });
        }
        let before = std::mem::replace(&mut self.watched, names);
        if self.watcher.is_none() && !wanted.is_empty() {
            self.watcher = Watcher::new().ok();
        }
        let Some(watcher) = &self.watcher else { return Vec::new() };
        watcher.watch(&wanted);
        let is_new = |name: &String, claims: &Claims| before.get(name).is_none_or(|(_, former)| former != claims);
        self.watched.iter().filter(|(name, (_, claims))| is_new(name, claims)).map(|(_, (id, _))| *id).collect()
    }

    fn is_watching(&self) -> bool {
        self.watcher.is_some() && !self.watched.is_empty()
    }

    fn changed(&mut self, longest: Duration) -> Vec<NodeId> {
        match self.watcher.as_ref().map(|watcher| watcher.changed(Some(longest))) {
            Some(Ok(Some(Drift::Instances(names)))) => {
                names.iter().filter_map(|name| self.watched.get(name)).map(|(id, _)| *id).collect()
            }
            Some(Ok(Some(Drift::Anything))) => self.watched.values().map(|(id, _)| *id).collect(),
            Some(Ok(None)) => Vec::new(),
            // Nothing is noticed any more: everything is run again after its wait.
            Some(Err(_)) | None => {
                std::thread::sleep(longest);
                Vec::new()
            }
        }
    }
}

/// The same claim at the first folder above it that is missing, since only what is in a folder that is there can be watched.
fn first_missing(Claim::Path { path, extent }: Claim) -> Claim {
    let missing: Vec<&Path> = path.ancestors().skip(1).take_while(|folder| !folder.is_dir()).collect();
    let path = missing.last().map_or_else(|| Arc::clone(&path), |missing| Arc::from(*missing));
    Claim::Path { path, extent }
}
