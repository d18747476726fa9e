//! Taking a recorded run back: what it changed, and the document that puts back what was there (decision 0059).

mod document;
mod former;
mod states;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::manifest::UndoWay;
use stead_core::visible::path_text;
use stead_host::store::images::{Entry, KeptContent, Read, Scene, SetEntry};
use stead_system::fs::{FsError, Image, ImageNode, Mark, SystemPath, Writes};

pub use document::UndoDocument;

/// What a recorded run changed, and what was there before.
pub struct Undo {
    /// What the run was about.
    pub scene: Scene,
    /// By path, from the root of the system.
    items: BTreeMap<PathBuf, Arc<Item>>,
    /// The sets of the run that are not taken back by their files alone, in order; of one instance the first has the state before, the
    /// last the properties.
    sets: Vec<SetEntry>,
    /// True where nothing but its beginning and its end was kept.
    is_empty: bool,
    /// True once the end of the run was found.
    is_whole: bool,
}

/// One path that the run changed.
pub(crate) struct Item {
    pub(crate) place: SystemPath,
    /// The path, from the root of the system.
    path: PathBuf,
    /// The path as documents and messages have it.
    pub(crate) shown: String,
    pub(crate) before: Image,
    /// True once `before` is known.
    is_kept: bool,
    pub(crate) content: KeptContent,
    /// What the run left; `None` where nobody knows.
    pub(crate) left: Option<Mark>,
    /// The instances that changed it, in order.
    pub(crate) instances: Vec<String>,
    /// True if the content may hold secrets, as far as the instances know. An undo, which has no secrets, does not know of any.
    covered: bool,
}

/// Something that is not taken back, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotTakenBack {
    /// The instance, or the path.
    pub what: String,
    /// Why it stays.
    pub why: String,
    /// True of what acts on changes, and does so again: what it did before stays.
    pub acts_again: bool,
}

impl Undo {
    /// Reads what a run kept; `None` where its file has no beginning.
    pub fn of(entries: Vec<Read>) -> Option<Self> {
        let mut entries = entries.into_iter();
        let Some((Entry::Began(scene), _)) = entries.next() else { return None };
        let is_empty = entries.as_slice().iter().all(|(entry, _)| matches!(entry, Entry::Ended));
        let mut undo = Self { scene, items: BTreeMap::new(), sets: Vec::new(), is_empty, is_whole: false };
        let mut items: BTreeMap<PathBuf, Item> = BTreeMap::new();
        for (entry, content) in entries {
            match entry {
                Entry::Kept { path, image, again } => {
                    let place = undo.scene.place(&path);
                    let fresh = || Item::new(place, &path);
                    items.entry(path.clone()).or_insert_with(fresh).keep((image, content), again);
                }
                Entry::Left { instance, path, mark, covered } => {
                    if let Some(item) = items.get_mut(&path) {
                        item.left = mark;
                        item.covered |= covered || document::is_former(&instance);
                        item.instances.retain(|known| *known != instance);
                        item.instances.push(instance);
                    }
                }
                Entry::Set(set) => undo.sets.push(set),
                Entry::Ended => undo.is_whole = true,
                Entry::Began(_) => {}
            }
        }
        items.retain(|_, item| item.was_changed());
        undo.items = items.into_iter().map(|(path, item)| (path, Arc::new(item))).collect();
        Some(undo)
    }

    /// Returns whether there is nothing that the run changed.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Returns whether the end of the run is among what was kept, so that nothing is missing.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// What stays as it is: what was not kept, and what a set did besides files.
    pub fn kept(&self) -> Vec<NotTakenBack> {
        let acts = |set: &SetEntry| self.scene.handlers.iter().any(|(handler, _)| *handler == set.instance);
        let mut kept: Vec<NotTakenBack> = Vec::new();
        for set in &self.sets {
            let unsaid = document::unsaid(set);
            let before = set.before.as_ref().and_then(Json::as_object).filter(|_| self.scene.root.is_none());
            let refused = before.and_then(|before| document::refused(set, before));
            let why = match set.undo {
                UndoWay::Cannot if acts(set) => {
                    "it runs again where what it acted on is taken back, and what it did stays".to_owned()
                }
                UndoWay::Cannot => "what it did besides files is not known".to_owned(),
                UndoWay::State if set.before.is_none() => "its former state could not be read".to_owned(),
                UndoWay::State if refused.is_some() => {
                    format!("its former state cannot be set again: {}", refused.unwrap_or_default())
                }
                UndoWay::State if !unsaid.is_empty() => {
                    format!("its former state does not say '{}', which stays", unsaid.join("', '"))
                }
                UndoWay::State | UndoWay::Files => continue,
            };
            let each = NotTakenBack { what: set.instance.clone(), why, acts_again: acts(set) };
            if !kept.contains(&each) {
                kept.push(each);
            }
        }
        let lost = self.items.values().filter_map(|item| {
            let why = item.lost()?.to_owned();
            Some(NotTakenBack { what: item.shown.clone(), why, acts_again: false })
        });
        kept.extend(lost);
        kept
    }

    /// What an undo of this run kept that ended early, for the one that goes on: with what it left also where it ended before it
    /// could say so.
    pub fn earlier_part(&self, mut entries: Vec<Read>) -> Vec<Read> {
        let mut open = BTreeSet::new();
        for (entry, _) in &entries {
            match entry {
                Entry::Kept { path, .. } => drop(open.insert(path.clone())),
                Entry::Left { path, .. } => drop(open.remove(path)),
                Entry::Began(_) | Entry::Set(_) | Entry::Ended => {}
            }
        }
        let back = |path: PathBuf| {
            let item = self.items.get(&path).filter(|item| item.is_back())?;
            let left = Entry::Left { instance: document::id(item), mark: item.place.mark(), path, covered: true };
            Some((left, KeptContent::default()))
        };
        entries.extend(open.into_iter().filter_map(back));
        entries
    }

    /// The paths that the run changed, in their order.
    pub(crate) fn items(&self) -> impl DoubleEndedIterator<Item = &Item> {
        self.items.values().map(|item| &**item)
    }

    /// The state of an instance before the run, where it was read.
    pub(crate) fn state_before(&self, instance: &str) -> Option<&Json> {
        self.sets.iter().find(|first| first.instance == instance)?.before.as_ref()
    }

    /// The nearest path above one that the run changed as well.
    fn above(&self, path: &Path) -> Option<&PathBuf> {
        path.ancestors().skip(1).find_map(|above| self.items.get_key_value(above).map(|(path, _)| path))
    }
}

impl Item {
    fn new(place: SystemPath, path: &Path) -> Self {
        let (before, content) = (Image::default(), KeptContent::default());
        let shown = path_text(path).into_owned();
        let path = path.to_owned();
        let (left, instances, covered) = (None, Vec::new(), false);
        Self { place, path, shown, before, is_kept: false, content, left, instances, covered }
    }

    /// Takes in what was there before another change.
    fn keep(&mut self, (image, content): (Image, KeptContent), again: bool) {
        // Until then only the mode and the owner were changed, so that the content is still that of the beginning.
        if self.before.node == ImageNode::SameContent && image.node == ImageNode::File {
            (self.before.node, self.content) = (ImageNode::File, content);
        } else if !self.is_kept || again {
            (self.before, self.content) = (image, content);
        }
        self.is_kept = true;
    }

    /// Returns whether the run left something else than was there before.
    fn was_changed(&self) -> bool {
        self.left.as_ref().is_none_or(|left| !self.before.is_at(left, &self.content))
    }

    /// Why what was there before was not kept, if it was not.
    pub(crate) fn lost(&self) -> Option<&'static str> {
        if let ImageNode::Lost(loss) = &self.before.node { Some(former::lost(*loss)) } else { None }
    }

    /// Why what is there is not known to be what the run left, if it is not.
    pub(crate) fn why_unknown(&self) -> Option<&'static str> {
        match &self.left {
            Some(left) if self.place.mark().as_ref() == Some(left) => None,
            Some(_) => Some("it was changed since the run"),
            None => Some("the run ended before it was known what it left"),
        }
    }

    /// Puts back what was there before.
    pub(crate) fn put_back(&self, writes: &Writes) -> Result<(), FsError> {
        self.place.put_back(&self.before, &self.content, writes)
    }

    /// Returns whether what was there before is there now.
    pub(crate) fn is_back(&self) -> bool {
        self.place.mark().is_some_and(|now| self.before.is_at(&now, &self.content))
    }
}
