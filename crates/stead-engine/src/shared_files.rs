//! The files that several instances manage, so that a plan has each predicted from what those in front of it leave.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
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
#[derive(Clone)]
struct SharedFile {
    names: BTreeSet<PathBuf>,
    instances: BTreeSet<NodeId>,
}

/// The files that instances of a plan are predicted from.
#[derive(Default)]
pub(crate) struct FileForecasts {
    files: Arc<PredictedFiles>,
    /// The instances, each with the places of its files.
    instances: BTreeMap<NodeId, Vec<usize>>,
}

impl SharedFiles {
    /// Those of instances of which this is known.
    pub(crate) fn of(known: &[Known], real_paths: &RealPaths) -> Self {
        let claims = known.iter().flat_map(|known| known.claims.iter().map(|claims| (known.id, claims)));
        let paths =
            claims.flat_map(|(id, claims)| claims.0.iter().map(move |Claim::Path { path, extent }| (id, path, extent)));
        let files = paths.filter(|(.., extent)| matches!(extent, Extent::Part { .. } | Extent::Whole));
        // By bytes, and not by components.
        let mut uses: Vec<(Cow<'_, OsStr>, NodeId, &Path)> = files
            .map(|(id, path, _)| match real_paths.of(path) {
                Some(real) => (Cow::Owned(real.into_os_string()), id, &**path),
                None => (Cow::Borrowed(path.as_os_str()), id, &**path),
            })
            .collect();
        uses.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        let shared = uses
            .chunk_by(|(one, ..), (other, ..)| one == other)
            .filter(|of| of.iter().any(|(_, id, _)| *id != of[0].1));
        let file = |of: &[(Cow<'_, OsStr>, NodeId, &Path)]| SharedFile {
            names: of.iter().map(|(.., path)| path.to_path_buf()).collect(),
            instances: of.iter().map(|(_, id, _)| *id).collect(),
        };
        Self(shared.map(file).collect())
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

    /// The forecasts of a plan, before anything is predicted.
    pub(crate) fn forecasts(&self) -> FileForecasts {
        let names = self.0.iter().map(|file| file.names.iter().cloned().collect());
        let mut instances = BTreeMap::<NodeId, Vec<usize>>::new();
        for (at, file) in self.0.iter().enumerate() {
            file.instances.iter().for_each(|id| instances.entry(*id).or_default().push(at));
        }
        FileForecasts { files: Arc::new(PredictedFiles::new(names)), instances }
    }
}

impl FileForecasts {
    /// The forecast of an instance; `None` where it shares no file.
    pub(crate) fn of(&self, id: NodeId) -> Option<FileForecast> {
        self.instances.contains_key(&id).then(|| FileForecast { files: Arc::clone(&self.files), of: id })
    }

    /// Forgets what an instance would leave that is not changed as predicted.
    pub(crate) fn withdraw(&self, id: NodeId) {
        if let Some(files) = self.instances.get(&id) {
            self.files.withdraw(id, files);
        }
    }

    /// Returns whether an instance was predicted from what others leave at a path.
    pub(crate) fn is_seen_by(&self, id: NodeId, path: &Path) -> bool {
        self.instances.contains_key(&id) && self.files.is_seen_by(id, path)
    }

    /// Returns whether it is known what an instance leaves at a path.
    pub(crate) fn is_left_by(&self, id: NodeId, path: &Path) -> bool {
        self.instances.contains_key(&id) && self.files.is_left_by(id, path)
    }
}
