//! The files that several instances manage, so that a plan has each predicted from what those in front of it leave.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stead_core::claims::{Claim, Extent};
use stead_core::graph::Graph;
use stead_core::id::NodeId;
use stead_host::predicted_files::{FileForecast, PredictedFiles};

use crate::implied::Known;
use crate::real_paths::RealPaths;

/// The files that several instances manage.
#[derive(Clone, Default)]
pub(crate) struct SharedFiles(Vec<SharedFile>);

/// A file with its names and the instances that manage its content or a part of it.
#[derive(Clone, Default)]
struct SharedFile {
    names: BTreeSet<PathBuf>,
    instances: BTreeSet<NodeId>,
}

/// What the instances of a plan predict from them.
#[derive(Default)]
pub(crate) struct FileForecasts {
    files: Arc<PredictedFiles>,
    instances: BTreeSet<NodeId>,
}

impl SharedFiles {
    /// Those of instances of which this is known.
    pub(crate) fn of(known: &[Known], real_paths: &RealPaths) -> Self {
        let claims = known.iter().flat_map(|known| known.claims.iter().map(|claims| (known.id, claims)));
        let of_content = claims.flat_map(|(id, claims)| {
            let paths = claims.0.iter().filter_map(|Claim::Path { path, extent }| {
                matches!(extent, Extent::Part { .. } | Extent::Whole).then_some(&**path)
            });
            paths.map(move |path| (id, path))
        });
        let mut files = BTreeMap::<PathBuf, SharedFile>::new();
        for (id, path) in of_content {
            let file = files.entry(real_paths.of(path).unwrap_or_else(|| path.to_owned())).or_default();
            file.instances.insert(id);
            file.names.insert(path.to_owned());
        }
        Self(files.into_values().filter(|file| file.instances.len() > 1).collect())
    }

    /// For each instance of a run over a graph the ones that are the last in front of it on its files; without a selection of all
    /// instances.
    pub(crate) fn turns(&self, graph: &Graph, selected: Option<&BTreeSet<NodeId>>) -> BTreeMap<NodeId, Vec<NodeId>> {
        let mut turns = BTreeMap::<NodeId, Vec<NodeId>>::new();
        if self.0.is_empty() {
            return turns;
        }
        let places: HashMap<NodeId, usize> = graph.order.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        for file in &self.0 {
            let is_selected = |id: &&NodeId| selected.is_none_or(|selected| selected.contains(id));
            let mut instances: Vec<NodeId> = file.instances.iter().filter(is_selected).copied().collect();
            instances.sort_by_key(|id| places.get(id).copied());
            for (in_front, behind) in instances.iter().zip(instances.iter().skip(1)) {
                turns.entry(*behind).or_default().push(*in_front);
            }
        }
        turns
    }

    /// What the instances of a plan predict from them, before anything is predicted.
    pub(crate) fn forecasts(&self) -> FileForecasts {
        let names = self.0.iter().map(|file| file.names.iter().cloned().collect());
        let instances = self.0.iter().flat_map(|file| &file.instances).copied().collect();
        FileForecasts { files: Arc::new(PredictedFiles::new(names)), instances }
    }
}

impl FileForecasts {
    /// What an instance can predict from; `None` where it shares no file.
    pub(crate) fn of(&self, id: NodeId) -> Option<FileForecast> {
        self.instances.contains(&id).then(|| FileForecast { files: Arc::clone(&self.files), of: id })
    }

    /// Forgets what an instance would leave that is not changed as predicted.
    pub(crate) fn withdraw(&self, id: NodeId) {
        if self.instances.contains(&id) {
            self.files.withdraw(id);
        }
    }

    /// Returns whether an instance was predicted from what others leave at a path.
    pub(crate) fn is_seen_by(&self, id: NodeId, path: &Path) -> bool {
        self.instances.contains(&id) && self.files.is_seen_by(id, path)
    }

    /// Returns whether it is known what an instance leaves at a path.
    pub(crate) fn is_left_by(&self, id: NodeId, path: &Path) -> bool {
        self.instances.contains(&id) && self.files.is_left_by(id, path)
    }
}
