//! The paths that a prediction depends on and that a predicted change alters.
//!
//! In what-if nothing is done, so the state that an instance finds may be another one after the instances before it.
//! This module decides if it may be: the writes of those before it are compared with the reads that its prediction
//! depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::call::{Changed, Outcome};
use crate::claims::{Claim, Claims, Extent, Links};
use crate::destruction::{Effect, Item, ItemKind};
use crate::id::NodeId;

/// The paths that an instance reads and manages, and what its set alters at them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Footprint {
    claims: Claims,
    /// `None` where that is not known: as much as the claims allow.
    predicted: Option<Vec<Write>>,
    /// The paths at which it was predicted from what those in front of it leave, as far as that is known.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    seen: BTreeSet<PathBuf>,
    /// The paths of files of which it is known what its set leaves there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    left: BTreeSet<PathBuf>,
}

/// A change at a path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Write {
    /// Where.
    pub path: PathBuf,
    /// The kind of alteration there.
    pub kind: WriteKind,
}

/// The kind of alteration that a change makes at a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WriteKind {
    /// It comes, goes, or becomes something else, with all that is below it.
    Exchange,
    /// A directory is created where nothing was. There is still nothing below it.
    Directory,
    /// The node there stays the same one; its content, mode or owner changes.
    InPlace,
    /// Anything below it may come, go or change.
    Below,
    /// Lines of a text file with this text come or go.
    Line(String),
}

impl Footprint {
    /// Of an instance with these claims and this answer, both with absolute paths: `resolve` says which one is meant by one
    /// that the answer shows.
    pub fn new(claims: Claims, outcome: &Outcome, resolve: impl Fn(&str) -> PathBuf) -> Self {
        let predicted = match outcome {
            Outcome::Changed(changed) => predicted(&claims, changed, &resolve),
            Outcome::Got(_) | Outcome::Exported(_) | Outcome::Tested(_) => Some(Vec::new()),
            Outcome::Deleted(_) | Outcome::Pending(_) | Outcome::Failed(_) => None,
        };
        let numbers_lines = matches!(outcome, Outcome::Changed(changed) if changed.effects.destroys.total() > 0);
        let claims = if numbers_lines { of_all_lines(claims) } else { claims };
        Self { claims, predicted, seen: BTreeSet::new(), left: BTreeSet::new() }
    }

    /// Returns it with the paths at which it was predicted from what those in front of it leave, and those of which it is known
    /// what its set leaves there.
    #[must_use]
    pub fn predicted_from(self, seen: impl Fn(&Path) -> bool, left: impl Fn(&Path) -> bool) -> Self {
        let all: BTreeSet<&Path> = self.claims.0.iter().map(|Claim::Path { path, .. }| &**path).collect();
        let those = |is_meant: &dyn Fn(&Path) -> bool| {
            all.iter().filter(|path| is_meant(path)).map(|path| path.to_path_buf()).collect()
        };
        let (seen, left) = (those(&seen), those(&left));
        Self { seen, left, ..self }
    }

    /// The paths of files of which it is known what its set leaves there.
    pub(crate) fn left(&self) -> &BTreeSet<PathBuf> {
        &self.left
    }

    /// Returns it with all names of the paths: `other` says which one a path has besides, if links lead to it.
    #[must_use]
    pub fn with_other_paths(mut self, other: impl Fn(&Path) -> Option<PathBuf>) -> Self {
        self.claims = self.claims.with_other_targets(&other).with_other_paths(&other);
        if let Some(writes) = &mut self.predicted {
            let others = writes.iter().filter_map(|write| Some(Write { path: other(&write.path)?, ..write.clone() }));
            let others: Vec<Write> = others.collect();
            writes.extend(others);
        }
        self
    }

    /// Returns the writes of its set, or the possible ones where that is not known.
    pub fn writes(&self) -> Vec<Write> {
        self.predicted.clone().unwrap_or_else(|| self.possible_writes())
    }

    /// Returns the writes of its set if it does otherwise than predicted.
    pub fn possible_writes(&self) -> Vec<Write> {
        self.claims.0.iter().flat_map(|Claim::Path { path, extent }| possible(path, extent)).collect()
    }

    /// Returns the writes that it may have made when it fails: a copy ends where it fails.
    pub fn writes_of_failure(&self) -> Vec<Write> {
        let copies = self.claims.0.iter().filter(|Claim::Path { extent, .. }| matches!(extent, Extent::Tree { .. }));
        copies.flat_map(|Claim::Path { path, extent }| possible(path, extent)).collect()
    }
}

/// Extends claims of instances whose effects name lines by their numbers, which depend on all lines in front of them.
fn of_all_lines(mut claims: Claims) -> Claims {
    for Claim::Path { extent, .. } in &mut claims.0 {
        if let Extent::Part { line, .. } = extent {
            *line = None;
        }
    }
    claims
}

/// The writes of a set that reports its effects; `None` of one that does not.
fn predicted(claims: &Claims, changed: &Changed, resolve: &impl Fn(&str) -> PathBuf) -> Option<Vec<Write>> {
    let mut writes = Vec::new();
    let Some(effect) = changed.effects.effect else {
        return changed.changed.as_ref().is_none_or(Vec::is_empty).then_some(writes);
    };
    let is_copied = changed.changed.iter().flatten().any(|name| name == "source");
    let (created, destroyed) = (&changed.effects.creates, &changed.effects.destroys);
    for Claim::Path { path, extent } in &claims.0 {
        writes.extend(own_writes(effect, extent, is_copied).into_iter().map(|kind| write(path, kind)));
        let is_managed = !matches!(extent, Extent::Read | Extent::Backup | Extent::Mode(_));
        if is_managed && created.more() + destroyed.more() > 0 {
            writes.push(write(path, WriteKind::Below));
        }
        let items =
            created.items().iter().map(|item| (item, true)).chain(destroyed.items().iter().map(|item| (item, false)));
        for (item, is_new) in items.filter(|_| is_managed) {
            writes.extend(item_writes(path, item, is_new, resolve));
        }
    }
    Some(writes)
}

/// Returns the writes that an effect on an instance makes at a path that it claims.
fn own_writes(effect: Effect, extent: &Extent, is_copied: bool) -> Vec<WriteKind> {
    use WriteKind::{Below, Directory, Exchange, InPlace};
    match (extent, effect) {
        (Extent::Read | Extent::Mode(_) | Extent::Presence, _) | (Extent::Backup, Effect::Create) |
        // The lines that are removed are listed, and so is what was created where nothing was.
        (Extent::Part { .. }, Effect::Remove) => Vec::new(),
        (Extent::Part { line, .. }, Effect::Create) => vec![line.clone().map_or(InPlace, WriteKind::Line)],
        (Extent::Directory | Extent::Entries { .. } | Extent::Tree { .. }, Effect::Create) => vec![Directory],
        // Which modes a copy changes is not listed.
        (Extent::Tree { .. }, Effect::Change) if is_copied => vec![InPlace, Below],
        // What a link leads to is below it.
        (Extent::Link { .. } | Extent::Backup, _) | (_, Effect::Create | Effect::Remove | Effect::Replace) => vec![Exchange],
        (_, Effect::Change) => vec![InPlace],
    }
}

/// Returns the writes of creating or destroying an item, and those to the directories that lead to it from above.
fn item_writes(claimed: &Path, item: &Item, is_new: bool, resolve: &impl Fn(&str) -> PathBuf) -> Vec<Write> {
    let path = resolve(&item.path);
    let kind = match &item.kind {
        // It is not at a path.
        ItemKind::Package { .. } | ItemKind::Lists { .. } => return Vec::new(),
        ItemKind::Content { .. } => WriteKind::InPlace,
        ItemKind::Line { text, .. } => WriteKind::Line(text.clone()),
        ItemKind::Directory(_) if is_new => WriteKind::Directory,
        ItemKind::File { .. } | ItemKind::Directory(_) | ItemKind::Symlink { .. } | ItemKind::Special => {
            WriteKind::Exchange
        }
    };
    let between =
        path.ancestors().skip(1).take_while(|above| is_new && above.starts_with(claimed) && *above != claimed);
    let above = between.map(|above| write(above, WriteKind::Directory));
    above.chain([write(&path, kind)]).collect()
}

/// Returns the writes that an instance may make at a path that it claims.
fn possible(path: &Path, extent: &Extent) -> Vec<Write> {
    use WriteKind::{Below, Directory, Exchange, InPlace};
    let kinds = match extent {
        Extent::Read | Extent::Mode(_) => vec![],
        Extent::Directory => vec![Directory, InPlace],
        Extent::Presence => vec![Directory, Below],
        Extent::Entries { .. } | Extent::Tree { .. } => vec![Directory, InPlace, Below],
        Extent::Attributes
        | Extent::Part { .. }
        | Extent::Whole
        | Extent::Link { .. }
        | Extent::Absent
        | Extent::Backup => {
            vec![Exchange]
        }
    };
    kinds.into_iter().map(|kind| write(path, kind)).collect()
}

fn write(path: &Path, kind: WriteKind) -> Write {
    Write { path: path.to_owned(), kind }
}

/// How much of what is at a path a prediction depends on.
enum View<'c> {
    /// The node at the path itself.
    Node,
    /// The presence of a line in a text file.
    Line(&'c str),
    /// And which names are below it, but those below these.
    Names(Option<&'c BTreeSet<String>>),
    /// And everything below it.
    Tree,
}

impl<'c> View<'c> {
    fn of(extent: &'c Extent, copies: bool) -> Self {
        match extent {
            Extent::Read if copies => Self::Tree,
            Extent::Tree { .. } => Self::Tree,
            Extent::Part { line: Some(line), .. } => Self::Line(line),
            // How much is destroyed with a directory is a part of the prediction.
            Extent::Link { .. } | Extent::Absent => Self::Names(None),
            Extent::Entries { kept } => Self::Names(Some(kept)),
            Extent::Read
            | Extent::Backup
            | Extent::Mode(_)
            | Extent::Attributes
            | Extent::Directory
            | Extent::Presence
            | Extent::Part { line: None, .. }
            | Extent::Whole => Self::Node,
        }
    }

    /// Returns whether a write at the path itself is seen.
    fn sees_at(&self, kind: &WriteKind) -> bool {
        match (self, kind) {
            (Self::Line(line), WriteKind::Line(text)) => text == line,
            (Self::Node | Self::Line(_), WriteKind::Below) => false,
            _ => true,
        }
    }

    /// Returns whether a write below the path is seen.
    fn sees_below(&self, path: &Path, below: &Path, kind: &WriteKind) -> bool {
        match self {
            Self::Node | Self::Line(_) => false,
            Self::Tree => true,
            Self::Names(kept) => {
                let is_kept = || kept.is_some_and(|kept| crate::claims::is_kept(kept, path, below));
                let is_name = match kind {
                    WriteKind::Exchange | WriteKind::Directory | WriteKind::Below => true,
                    // What is removed is listed with its size.
                    WriteKind::InPlace | WriteKind::Line(_) => kept.is_some() && below.parent() == Some(path),
                };
                is_name && !is_kept()
            }
        }
    }
}

/// The writes of many instances, by path: of each kind the first at a path. Those of instances that reach their path
/// through a link that another one creates are at both paths.
#[derive(Default)]
pub(crate) struct Writes {
    by_path: ByPath,
    /// Those of which it is known what they leave: whoever was predicted from that does not see them.
    known: ByPath,
    links: Links,
}

impl Writes {
    /// Adds what an instance alters; at some paths it is known what it leaves.
    pub(crate) fn add(&mut self, id: NodeId, writes: Vec<Write>, left: &BTreeSet<PathBuf>) {
        for Write { path, kind } in writes {
            for other in self.links.others(&path) {
                self.by_path.add(id, other, kind.clone());
            }
            let to = if left.contains(&path) { &mut self.known } else { &mut self.by_path };
            to.add(id, path, kind);
        }
    }

    /// Adds the links that an instance with this footprint creates.
    pub(crate) fn add_links(&mut self, footprint: &Footprint) {
        self.links.add(&footprint.claims);
    }

    /// The instance that creates a directory at a path.
    pub(crate) fn creator(&self, path: &Path) -> Option<NodeId> {
        self.by_path.0.get(path)?.get(&WriteKind::Directory).copied()
    }

    /// An instance that alters what the prediction for another depends on.
    pub(crate) fn reach(&self, footprint: &Footprint) -> Option<NodeId> {
        if self.by_path.0.is_empty() && self.known.0.is_empty() {
            return None;
        }
        let claims = &footprint.claims.0;
        let copies = claims.iter().any(|Claim::Path { extent, .. }| matches!(extent, Extent::Tree { .. }));
        claims
            .iter()
            .find_map(|Claim::Path { path, extent }| self.seen(path, &View::of(extent, copies), &footprint.seen))
    }

    /// An instance that alters what is at a path.
    pub(crate) fn reach_path(&self, path: &Path) -> Option<NodeId> {
        self.seen(path, &View::Node, &BTreeSet::new())
    }

    fn seen(&self, path: &Path, view: &View<'_>, predicted: &BTreeSet<PathBuf>) -> Option<NodeId> {
        let seen = || self.known.seen(path, view, |at| predicted.contains(at));
        self.by_path.seen(path, view, |_| false).or_else(seen)
    }
}

/// Of each kind of write the first one at a path.
#[derive(Default)]
struct ByPath(BTreeMap<PathBuf, BTreeMap<WriteKind, NodeId>>);

impl ByPath {
    fn add(&mut self, id: NodeId, path: PathBuf, kind: WriteKind) {
        self.0.entry(path).or_default().entry(kind).or_insert(id);
    }

    fn seen(&self, path: &Path, view: &View<'_>, is_known: impl Fn(&Path) -> bool) -> Option<NodeId> {
        let at = || (!is_known(path)).then(|| self.at(path, view)).flatten();
        at().or_else(|| self.above(path)).or_else(|| self.below(path, view))
    }

    fn at(&self, path: &Path, view: &View<'_>) -> Option<NodeId> {
        let writes = self.0.get(path)?;
        if let View::Line(line) = view {
            // A file may have many lines, each with an instance of its own.
            let others =
                [WriteKind::Exchange, WriteKind::Directory, WriteKind::InPlace, WriteKind::Line((*line).to_owned())];
            return others.iter().find_map(|kind| writes.get(kind)).copied();
        }
        writes.iter().find(|(kind, _)| view.sees_at(kind)).map(|(_, id)| *id)
    }

    fn above(&self, path: &Path) -> Option<NodeId> {
        path.ancestors().skip(1).find_map(|above| {
            let writes = self.0.get(above)?;
            writes.get(&WriteKind::Exchange).or_else(|| writes.get(&WriteKind::Below)).copied()
        })
    }

    fn below(&self, path: &Path, view: &View<'_>) -> Option<NodeId> {
        if matches!(view, View::Node | View::Line(_)) {
            return None;
        }
        let behind = self.0.range::<Path, _>((Bound::Excluded(path), Bound::Unbounded));
        let mut below = behind.take_while(|(below, _)| below.starts_with(path));
        below.find_map(|(below, writes)| {
            writes.iter().find(|(kind, _)| view.sees_below(path, below, kind)).map(|(_, id)| *id)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::WriteKind::{Below, Directory, Exchange, InPlace};
    use super::*;
    use crate::call::Verification;
    use crate::destruction::{Effects, Entries};

    fn line(text: &str) -> WriteKind {
        WriteKind::Line(text.to_owned())
    }

    fn part(line: &str) -> Extent {
        Extent::Part { line: Some(line.to_owned()), key: None }
    }

    fn entries(kept: &[&str]) -> Extent {
        Extent::Entries { kept: kept.iter().map(|name| (*name).to_owned()).collect() }
    }

    const LINK: Extent = Extent::Link { target: None };
    const TREE: Extent = Extent::Tree { purge: true };

    /// Of an instance with one claim, whose set has these effects.
    fn footprint(path: &str, extent: Extent, effects: Effects) -> Footprint {
        let changed = Changed {
            unknown: None,
            before: Arc::default(),
            after: Arc::default(),
            changed: Some(vec!["mode".to_owned()]),
            what_if: Vec::new(),
            presumed: None,
            effects,
            verified: Verification::InState,
        };
        Footprint::new(Claims::path(path, extent), &Outcome::Changed(Box::new(changed)), |path| path.into())
    }

    fn shown(writes: &[Write]) -> Vec<(&str, &WriteKind)> {
        writes.iter().map(|write| (write.path.to_str().unwrap(), &write.kind)).collect()
    }

    /// Returns whether the prediction for an instance with these claims depends on a write.
    fn is_seen(at: &str, kind: &WriteKind, claims: &Claims) -> bool {
        let mut writes = Writes::default();
        writes.add(NodeId(0), vec![write(Path::new(at), kind.clone())], &BTreeSet::new());
        let footprint = Footprint { claims: claims.clone(), ..Footprint::default() };
        writes.reach(&footprint).is_some()
    }

    #[test]
    fn an_effect_alters_what_is_claimed() {
        let all = |line| Extent::Part { line, key: None };
        for (extent, effect, expected) in [
            (Extent::Whole, Effect::Create, vec![Exchange]),
            (Extent::Whole, Effect::Change, vec![InPlace]),
            (Extent::Attributes, Effect::Change, vec![InPlace]),
            (Extent::Absent, Effect::Remove, vec![Exchange]),
            (Extent::Directory, Effect::Create, vec![Directory]),
            (entries(&[]), Effect::Create, vec![Directory]),
            (TREE, Effect::Change, vec![InPlace]),
            (LINK, Effect::Change, vec![Exchange]),
            (LINK, Effect::Replace, vec![Exchange]),
            (part("a"), Effect::Create, vec![line("a")]),
            (part("a"), Effect::Remove, vec![]),
            (all(None), Effect::Create, vec![InPlace]),
            (Extent::Backup, Effect::Create, vec![]),
            (Extent::Backup, Effect::Change, vec![Exchange]),
            (Extent::Mode(0o644), Effect::Change, vec![]),
            (Extent::Read, Effect::Change, vec![]),
        ] {
            let writes = footprint("/p", extent.clone(), Effects::of(effect)).writes();
            let expected: Vec<_> = expected.iter().map(|kind| ("/p", kind)).collect();
            assert_eq!(shown(&writes), expected, "{extent:?} {effect:?}");
        }
    }

    #[test]
    fn what_is_created_and_destroyed_is_altered_too() {
        let item = |path: &str, kind| Item { path: path.to_owned(), kind };
        let mut effects = Effects::of(Effect::Change);
        effects.creates.push(item("/d/e/f", ItemKind::File { size: 1 }));
        effects.destroys.push(item("/d/g", ItemKind::Directory(Entries::default())));
        let writes = footprint("/d", TREE, effects.clone()).writes();
        let expected = [("/d", &InPlace), ("/d/e", &Directory), ("/d/e/f", &Exchange), ("/d/g", &Exchange)];
        assert_eq!(shown(&writes), expected, "the directories in between come, too");
        effects.creates.extend((0..200).map(|number| item(&format!("/d/{number}"), ItemKind::Special)));
        assert!(shown(&footprint("/d", TREE, effects).writes()).contains(&("/d", &Below)), "not all are listed");
    }

    #[test]
    fn what_a_prediction_depends_on() {
        for (claimed, extent, seen, unseen) in [
            // A file: itself, and what becomes of the directories above it.
            (
                "/d/f",
                Extent::Whole,
                vec![("/d/f", InPlace), ("/d/f", line("a")), ("/d", Exchange), ("/d", Below)],
                vec![("/d/g", Exchange), ("/d", InPlace), ("/d", Directory), ("/d/f", Below)],
            ),
            // A line: not the other lines.
            ("/f", part("a"), vec![("/f", line("a")), ("/f", InPlace), ("/f", Exchange)], vec![("/f", line("b"))]),
            // Names in a directory: others than those that are kept.
            (
                "/d",
                entries(&["x"]),
                vec![("/d/y", Exchange), ("/d/y/z", Directory), ("/d/y", InPlace), ("/d", Below)],
                vec![("/d/x", Exchange), ("/d/x/z", Exchange), ("/d/y/z", InPlace)],
            ),
            // What is removed, or makes way for a link: how much there is of it.
            ("/d", Extent::Absent, vec![("/d/y/z", Exchange)], vec![("/d/y", InPlace)]),
            ("/d", LINK, vec![("/d/y/z", Exchange)], vec![("/d/y", InPlace)]),
            // A directory: not what is in it. A tree: everything.
            ("/d", Extent::Directory, vec![("/d", InPlace)], vec![("/d/y", Exchange), ("/d", Below)]),
            ("/d", TREE, vec![("/d/y/z", InPlace), ("/d/y", line("a"))], vec![("/dd", Exchange), ("/", InPlace)]),
        ] {
            let claims = Claims::path(claimed, extent);
            for (path, kind) in seen {
                assert!(is_seen(path, &kind, &claims), "{claims:?} does not see {kind:?} of {path}");
            }
            for (path, kind) in unseen {
                assert!(!is_seen(path, &kind, &claims), "{claims:?} sees {kind:?} of {path}");
            }
        }
    }

    #[test]
    fn what_is_copied_is_read_with_all_that_is_below_it() {
        let file = Claims::path("/f", Extent::Whole).and_reads("/src");
        let tree = Claims::path("/d", TREE).and_reads("/src");
        assert!(is_seen("/src", &InPlace, &file) && !is_seen("/src/x", &InPlace, &file));
        assert!(is_seen("/src/x", &InPlace, &tree));
    }

    #[test]
    fn a_path_that_links_lead_to_counts_by_both_names() {
        let through = |path: &Path| path.strip_prefix("/link").ok().map(|below| Path::new("/d").join(below));
        let one = footprint("/link/f", Extent::Whole, Effects::of(Effect::Create)).with_other_paths(through);
        assert_eq!(shown(&one.writes()), [("/link/f", &Exchange), ("/d/f", &Exchange)]);
        assert!(is_seen("/d/f", &InPlace, &one.claims));
    }

    const PATHS: [&str; 6] = ["/", "/a", "/a/b", "/a/b/c", "/ab", "/b"];

    fn kinds() -> [WriteKind; 5] {
        [Exchange, Directory, InPlace, Below, line("a")]
    }

    #[test]
    fn whoever_manages_more_sees_more() {
        let least_first = [part("a"), Extent::Whole, Extent::Absent, TREE];
        for (claimed, at) in PATHS.iter().flat_map(|claimed| PATHS.iter().map(move |at| (*claimed, *at))) {
            let related = Path::new(at).starts_with(claimed) || Path::new(claimed).starts_with(at);
            for kind in kinds() {
                let seen = least_first.clone().map(|extent| is_seen(at, &kind, &Claims::path(claimed, extent)));
                assert!(seen.is_sorted(), "{kind:?} of {at} from {claimed}: {seen:?}");
                assert!(related || !seen.contains(&true), "{kind:?} of {at} is nothing to {claimed}");
                assert!(kind != Exchange || !Path::new(claimed).starts_with(at) || !seen.contains(&false));
            }
        }
    }

    #[test]
    fn what_is_possible_is_at_least_what_is_predicted() {
        let effects = [Effect::Create, Effect::Change];
        let extents = [Extent::Attributes, Extent::Directory, part("a"), Extent::Whole, LINK, entries(&["x"]), TREE];
        for (extent, effect) in extents.iter().flat_map(|extent| effects.map(|effect| (extent.clone(), effect))) {
            let writer = footprint("/a/b", extent, Effects::of(effect));
            for reader in extents.iter().flat_map(|extent| PATHS.map(|path| Claims::path(path, extent.clone()))) {
                let sees = |writes: Vec<Write>| {
                    writes.iter().any(|Write { path, kind }| is_seen(path.to_str().unwrap(), kind, &reader))
                };
                assert!(!sees(writer.writes()) || sees(writer.possible_writes()), "{writer:?} for {reader:?}");
            }
        }
    }
}
