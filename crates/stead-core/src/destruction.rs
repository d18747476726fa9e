//! The things that a set creates, changes and destroys, beyond the states before and after it.
//!
//! A state names properties; that a directory with seven entries makes way for a link is in none of them. A resource
//! that knows lists it here, the same in a what-if as when it is done.

use std::fmt;
use std::mem::discriminant;
use std::num::ParseIntError;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::diag::counted;
use crate::value::Value;

/// The effects of a set on things, or in what-if the predicted ones.
///
/// # Examples
/// ```
/// use stead_core::destruction::{Effect, Effects, Entries, Item, ItemKind};
///
/// let mut entries = Entries::default();
/// entries.push("nginx.conf".to_owned());
/// let mut effects = Effects::of(Effect::Replace);
/// effects.destroys.push(Item { path: "/etc/nginx".to_owned(), kind: ItemKind::Directory(entries) });
/// // What is below a directory is lost with it, and is said.
/// assert!(effects.removals().contains(&"remove /etc/nginx/nginx.conf".to_owned()));
/// assert_eq!(effects.effect.map(Effect::word), Some("replace"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Effects {
    /// The effect on the instance itself; `None` where there is none, or the resource does not say.
    pub effect: Option<Effect>,
    /// The things that come into being besides the instance itself, such as the files of a copied tree; of content
    /// that cannot be shown, its size and digest.
    pub creates: Listing,
    /// The things that are gone afterwards and were not kept elsewhere.
    pub destroys: Listing,
    /// Where the instance itself comes in what holds it, in words, such as "at line 5".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// The effect of a set on the instance itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// It was absent.
    Create,
    /// Properties of it get other values.
    Change,
    /// It was present and is no longer.
    Remove,
    /// Something else is in its place and is removed first.
    Replace,
}

impl Effect {
    /// The word that plans and results use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Remove => "remove",
            Self::Replace => "replace",
        }
    }
}

impl Effects {
    /// An effect on the instance alone.
    pub fn of(effect: Effect) -> Self {
        Self { effect: Some(effect), ..Self::default() }
    }

    /// Returns whether no effect is known.
    pub fn is_empty(&self) -> bool {
        self.effect.is_none() && self.creates.total() == 0 && self.destroys.total() == 0
    }

    /// Returns whether packages are installed whose versions are not known yet, because there are no package lists.
    pub fn leaves_versions_open(&self) -> bool {
        self.creates.items().iter().any(|item| matches!(item.kind, ItemKind::Lists { updated: None }))
    }

    /// Replaces every text in it, to cover secrets.
    #[must_use]
    pub fn map_text(mut self, map: impl Fn(&str) -> String) -> Self {
        self.place = self.place.as_deref().map(&map);
        for item in self.creates.items.iter_mut().chain(&mut self.destroys.items) {
            item.path = map(&item.path);
            match &mut item.kind {
                ItemKind::Symlink { target: text } | ItemKind::Line { text, .. } => *text = map(text),
                ItemKind::Package { version, former } => {
                    *version = map(version);
                    *former = former.as_deref().map(&map);
                }
                ItemKind::Directory(Entries { names, .. }) => names.iter_mut().for_each(|name| *name = map(name)),
                ItemKind::File { .. } | ItemKind::Special | ItemKind::Content { .. } | ItemKind::Lists { .. } => {}
            }
        }
        self
    }

    /// A sentence for each thing that is removed, what is below directories included.
    pub fn removals(&self) -> Vec<String> {
        let mut removals = Vec::new();
        for item in self.destroys.items().iter().filter(|item| item.kind.content().is_none()) {
            removals.push(format!("remove {item}"));
            let entries = item.kind.entries();
            removals.extend(entries.names().iter().map(|name| format!("remove {}/{name}", item.path)));
            removals.extend(entries.rest().map(|rest| format!("remove {rest} in {}", item.path)));
        }
        removals.extend((self.destroys.more() > 0).then(|| format!("remove {} more", self.destroys.more())));
        removals
    }
}

impl Effects {
    /// Returns whether the instance itself goes, or something else than content and lines.
    pub fn is_destructive(&self) -> bool {
        let removes = matches!(self.effect, Some(Effect::Remove | Effect::Replace));
        removes || self.destroys.items().iter().any(|item| item.kind.is_whole())
    }

    /// Says what it destroys beyond what `shown` does: the first such thing. Contents, lines and packages are not compared, nor
    /// sizes of files; what is there no more needs no consent. Where more was shown than is listed, it counts.
    pub fn unshown(&self, shown: &Self) -> Option<String> {
        if self.is_destructive() && !shown.is_destructive() && self.destroys.total() == 0 {
            return Some("it would be removed, which the plan has not shown".to_owned());
        }
        let is_compared = |item: &&Item| item.is_compared();
        let items =
            |effects: &'_ Self| effects.destroys.items().iter().filter(is_compared).cloned().collect::<Vec<_>>();
        let planned = items(shown);
        let is_listed = shown.destroys.more() == 0;
        let first = items(self).iter().find_map(|item| item.unshown(&planned, is_listed));
        let count = |effects: &Self| effects.destroys.more().saturating_add(items(effects).len() as u64);
        let more = count(self).saturating_sub(count(shown));
        let first =
            first.or_else(|| (more > 0).then(|| format!("it would remove {more} more than the plan has shown")));
        let exchanged = "it would remove others than those that the plan has counted besides the listed ones";
        first.or_else(|| (!self.destroys.is_covered_by(&shown.destroys)).then(|| exchanged.to_owned()))
    }
}

/// Returns whether properties, as they are stated, allow that something is removed which is there: the instance is to be absent,
/// also in the words of PowerShell, or to make room for itself. An expression may come to anything.
pub fn may_destroy(stated: &Value) -> bool {
    const MAKES_ROOM: [&str; 6] = ["force", "recurse", "purge", "_purge", "removeHome", "_exist"];
    let allows = |name: &&str| match stated.get(name) {
        None => false,
        Some(Value::Bool(stated)) => *stated == (*name != "_exist"),
        Some(_) => true,
    };
    let ensures = |(name, value): (&String, &Value)| {
        let is_open =
            !matches!(value, Value::String(word) if !word.eq_ignore_ascii_case("Absent") && !word.starts_with('['));
        name.eq_ignore_ascii_case("Ensure") && is_open
    };
    MAKES_ROOM.iter().any(allows) || stated.as_object().is_some_and(|stated| stated.iter().any(ensures))
}

/// Items up to a limit, and how many there are besides.
///
/// # Examples
/// ```
/// use stead_core::destruction::{Item, ItemKind, Listing};
///
/// let mut listing = Listing::default();
/// for number in 0..Listing::LIMIT + 5 {
///     listing.push(Item { path: format!("/srv/{number}"), kind: ItemKind::Special });
/// }
/// assert_eq!((listing.items().len(), listing.more(), listing.total()), (100, 5, 105));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    items: Vec<Item>,
    more: u64,
    /// Of those that are counted and whose removal is compared with what was shown.
    #[serde(default, skip_serializing_if = "Sum::is_none")]
    rest: Sum,
}

/// What there is besides a list, in whatever order: the sum of a digest of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Sum(u64);

impl From<Sum> for String {
    fn from(sum: Sum) -> Self {
        format!("{:016x}", sum.0)
    }
}

impl TryFrom<String> for Sum {
    type Error = ParseIntError;

    fn try_from(digits: String) -> Result<Self, ParseIntError> {
        u64::from_str_radix(&digits, 16).map(Self)
    }
}

impl Sum {
    fn add(&mut self, text: &str) {
        let digest = Sha256::digest(text);
        self.merge(Self(digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))));
    }

    fn merge(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_none(&self) -> bool {
        self.0 == 0
    }
}

impl Listing {
    /// Enough for a person to see what happens; a tree may have millions of files.
    pub const LIMIT: usize = 100;

    /// Adds an item, or counts it when there are enough; packages are always added, since a saved plan installs just those that it
    /// lists. Of names below directories it keeps [`Entries::LIMIT`] in all.
    pub fn push(&mut self, mut item: Item) {
        if self.items.len() < Self::LIMIT || matches!(item.kind, ItemKind::Package { .. }) {
            let kept: usize = self.items.iter().map(|item| item.kind.entries().names.len()).sum();
            if let ItemKind::Directory(entries) = &mut item.kind {
                entries.truncate(Entries::LIMIT.saturating_sub(kept));
            }
            self.items.push(item);
        } else {
            self.more += 1;
            item.count_in(&mut self.rest);
        }
    }

    /// Adds everything of another one.
    pub fn append(&mut self, other: Self) {
        self.extend(other.items);
        self.more += other.more;
        self.rest.merge(other.rest);
    }

    fn sum(&self) -> Sum {
        let mut sum = self.rest;
        self.items.iter().for_each(|item| item.count_in(&mut sum));
        sum
    }

    /// Returns whether what it has, and another one does not list, is just what that counts. Where some of that is gone nobody
    /// knows whether the rest was shown.
    fn is_covered_by(&self, shown: &Self) -> bool {
        if self.sum() == shown.sum() {
            return true;
        }
        let mut beyond = self.rest;
        let others = self.items.iter().filter(|item| !shown.items.iter().any(|other| other.is_same(item)));
        others.for_each(|item| item.count_in(&mut beyond));
        beyond.is_none() || beyond == shown.rest
    }

    /// The first ones, in the order in which they were added.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the number of items besides [`Listing::items`].
    pub fn more(&self) -> u64 {
        self.more
    }

    /// Returns the number of all items.
    pub fn total(&self) -> u64 {
        self.more + self.items.len() as u64
    }
}

impl Extend<Item> for Listing {
    fn extend<T: IntoIterator<Item = Item>>(&mut self, items: T) {
        for item in items {
            self.push(item);
        }
    }
}

/// One thing that is created or destroyed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Where it is, beginning as the instance states its path.
    pub path: String,
    /// The kind of thing.
    pub kind: ItemKind,
}

/// The kind of a thing that is created or destroyed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ItemKind {
    /// A regular file.
    File {
        /// Its bytes.
        size: u64,
    },
    /// A directory, with what is below it.
    Directory(Entries),
    /// A symbolic link.
    Symlink {
        /// The target of the link, as it is written.
        target: String,
    },
    /// A FIFO, a socket or a device.
    Special,
    /// The content of a file that stays, where states do not show it.
    Content {
        /// Its bytes.
        size: u64,
        /// Its digest in hexadecimal digits; `None` where it could not be read.
        sha256: Option<String>,
    },
    /// A line of a text.
    Line {
        /// Its number, from 1, before the change.
        number: u64,
        /// The line without its ending.
        text: String,
    },
    /// A package of the system. Its name takes the place of a path.
    Package {
        /// Its version; empty where that is not known, or only its configuration files are there.
        version: String,
        /// The version that this one replaces.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        former: Option<String>,
    },
    /// The lists of what packages there are, which are got anew.
    Lists {
        /// When that was done last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated: Option<String>,
    },
}

/// The entries below a directory, at any depth: names up to a limit, and how many there are besides.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entries {
    names: Vec<String>,
    more: u64,
    #[serde(default, skip_serializing_if = "Sum::is_none")]
    rest: Sum,
    #[serde(default, skip_serializing_if = "is_false")]
    incomplete: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Entries {
    /// Enough to find a name in it; a tree may have millions of files.
    pub const LIMIT: usize = 1000;

    /// Names may be as long as paths.
    const BYTES: usize = 64 << 10;

    const NONE: &Self = &Self { names: Vec::new(), more: 0, rest: Sum(0), incomplete: false };

    /// Adds the path of an entry, relative to the directory, or counts it when there are enough.
    pub fn push(&mut self, name: String) {
        // Once one is left out all that follow are: the names are the first ones.
        let has_room = self.more == 0 && self.names.len() < Self::LIMIT;
        let bytes = || self.names.iter().map(String::len).sum::<usize>();
        if has_room && bytes() + name.len() <= Self::BYTES {
            self.names.push(name);
        } else {
            self.more += 1;
            self.rest.add(&name);
        }
    }

    /// Notes that there may be entries that were not counted.
    pub fn mark_incomplete(&mut self) {
        self.incomplete = true;
    }

    /// The first ones, in the order in which they were added. Those of directories end with a slash.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the number of entries, as far as they were counted.
    pub fn total(&self) -> u64 {
        self.more + self.names.len() as u64
    }

    /// Returns whether there may be entries that were not counted: in a directory that cannot be listed, or in a very
    /// large one.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Describes the entries besides the names, such as `3 more`; `None` where there are none.
    pub fn rest(&self) -> Option<String> {
        self.rest_after(self.names.len())
    }

    /// Describes the entries besides the first names; `None` where there are none.
    pub fn rest_after(&self, shown: usize) -> Option<String> {
        let rest = self.total().saturating_sub(shown as u64);
        match (rest, self.incomplete) {
            (0, false) => None,
            (0, true) => Some("what could not be listed".to_owned()),
            (rest, false) => Some(format!("{rest} more")),
            (rest, true) => Some(format!("at least {rest} more")),
        }
    }

    fn sum(&self) -> Sum {
        let mut sum = self.rest;
        self.names.iter().for_each(|name| sum.add(name));
        sum
    }

    fn truncate(&mut self, limit: usize) {
        for name in self.names.drain(limit.min(self.names.len())..) {
            self.more += 1;
            self.rest.add(&name);
        }
    }
}

impl fmt::Display for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.total(), self.incomplete) {
            (0, false) => write!(f, "empty directory"),
            (0, true) => write!(f, "directory that cannot be listed"),
            (1, false) => write!(f, "1 entry"),
            (total, false) => write!(f, "{total} entries"),
            (1, true) => write!(f, "at least 1 entry"),
            (total, true) => write!(f, "at least {total} entries"),
        }
    }
}

impl ItemKind {
    /// Returns the entries below it; none, unless it is a directory.
    pub fn entries(&self) -> &Entries {
        match self {
            Self::Directory(entries) => entries,
            _ => Entries::NONE,
        }
    }

    /// Returns whether the item takes the place of a former one: another version of a package, or newer package lists.
    pub fn is_replaced(&self) -> bool {
        matches!(self, Self::Package { former: Some(_), .. } | Self::Lists { .. })
    }

    /// Of content: its size and the first digits of its digest.
    pub fn content(&self) -> Option<String> {
        match self {
            Self::Content { size, sha256: None } => Some(counted(*size, "byte")),
            Self::Content { size, sha256: Some(digest) } => {
                Some(format!("{}, sha256 {digest:.12}", counted(*size, "byte")))
            }
            _ => None,
        }
    }
}

impl Item {
    /// Says what goes with it that is not among what was shown; itself, where all was listed.
    fn unshown(&self, shown: &[Self], is_listed: bool) -> Option<String> {
        let Some(shown) = shown.iter().find(|other| other.is_same(self)) else {
            return is_listed.then(|| format!("it would remove {self}, which the plan has not shown"));
        };
        let (now, then) = (self.kind.entries(), shown.kind.entries());
        if now.total() > then.total() {
            let is = if now.total() == 1 { "entry" } else { "entries" };
            let was = if then.total() == 1 { "was" } else { "were" };
            return Some(format!("'{}' has {} {is} now, {} {was} shown", self.path, now.total(), then.total()));
        }
        let mut others = now.names.iter().filter(|name| !then.names.contains(name)).peekable();
        if let Some(other) = others.peek().filter(|_| then.more == 0) {
            return Some(format!("it would remove {}/{other}, which the plan has not shown", self.path));
        }
        let mut beyond = now.rest;
        others.for_each(|name| beyond.add(name));
        let is_covered = now.sum() == then.sum() || beyond.is_none() || beyond == then.rest;
        (!is_covered).then(|| format!("'{}' has other entries than the plan has counted", self.path))
    }

    fn is_same(&self, other: &Self) -> bool {
        other.path == self.path && discriminant(&other.kind) == discriminant(&self.kind)
    }

    /// Whether its removal is compared with what was shown.
    fn is_compared(&self) -> bool {
        self.kind.is_whole() && !matches!(self.kind, ItemKind::Package { .. })
    }

    fn count_in(&self, sum: &mut Sum) {
        if self.is_compared() {
            let kind = match &self.kind {
                ItemKind::Directory(entries) => format!("/{} {}", entries.total(), String::from(entries.sum())),
                ItemKind::Symlink { .. } => "@".to_owned(),
                _ => String::new(),
            };
            sum.add(&format!("{}\0{kind}", self.path));
        }
    }
}

impl ItemKind {
    /// Returns whether a thing of its own is gone, and not content or a line of one that stays.
    pub fn is_whole(&self) -> bool {
        !matches!(self, Self::Content { .. } | Self::Line { .. })
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, kind } = self;
        match kind {
            ItemKind::File { size } => write!(f, "{path} ({})", counted(*size, "byte")),
            ItemKind::Directory(entries) => write!(f, "{path} ({entries})"),
            ItemKind::Symlink { target } => write!(f, "{path} -> {target}"),
            ItemKind::Special => write!(f, "{path} (device, FIFO or socket)"),
            ItemKind::Content { .. } => write!(f, "content of {path} ({})", kind.content().unwrap_or_default()),
            ItemKind::Package { version, .. } if version.is_empty() => write!(f, "package {path}"),
            ItemKind::Package { version, former: None } => write!(f, "package {path} ({version})"),
            ItemKind::Package { version, former: Some(former) } => write!(f, "package {path} ({former} -> {version})"),
            ItemKind::Lists { updated: None } => write!(f, "{path} (never updated, so versions are not known)"),
            ItemKind::Lists { updated: Some(updated) } => write!(f, "{path} (last updated {updated})"),
            ItemKind::Line { number, text } => write!(f, "line {number} of {path}: {text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64) -> Item {
        Item { path: "f".to_owned(), kind: ItemKind::Line { number, text: format!("line {number}") } }
    }

    #[test]
    fn what_is_beyond_the_limit_is_counted() {
        let mut listing = Listing::default();
        listing.extend((1..=103).map(line));
        assert_eq!((listing.items().len(), listing.more(), listing.total()), (Listing::LIMIT, 3, 103));
    }

    fn directory(entries: usize) -> Item {
        let mut below = Entries::default();
        (0..entries).for_each(|number| below.push(number.to_string()));
        Item { path: "d".to_owned(), kind: ItemKind::Directory(below) }
    }

    #[test]
    fn names_below_directories_beyond_the_limit_are_counted() {
        let mut listing = Listing::default();
        listing.extend([directory(990), directory(30), directory(1020)]);
        let kept: Vec<_> = listing.items().iter().map(|item| item.kind.entries().names().len()).collect();
        let totals: Vec<_> = listing.items().iter().map(|item| item.kind.entries().total()).collect();
        assert_eq!((kept, totals), (vec![990, 10, 0], vec![990, 30, 1020]));
        let mut long = Entries::default();
        (0..100).for_each(|_| long.push("n".repeat(4096)));
        assert_eq!((long.names().len(), long.total(), long.rest()), (16, 100, Some("84 more".to_owned())));
    }

    #[test]
    fn what_could_not_be_listed_is_never_called_empty() {
        let mut entries = Entries::default();
        entries.mark_incomplete();
        assert_eq!(entries.to_string(), "directory that cannot be listed");
        entries.push("a".to_owned());
        assert_eq!(
            (entries.to_string().as_str(), entries.rest().as_deref()),
            ("at least 1 entry", Some("what could not be listed"))
        );
    }

    #[test]
    fn what_moves_into_the_list_was_shown() {
        let removing = |numbers: &mut dyn Iterator<Item = usize>| {
            let mut effects = Effects::of(Effect::Remove);
            let item = |number| Item { path: format!("/d/{number}"), kind: ItemKind::Special };
            effects.destroys.extend(numbers.map(item));
            effects
        };
        let shown = removing(&mut (0..101));
        for now in [removing(&mut (0..101)), removing(&mut (1..101)), removing(&mut (0..3))] {
            assert_eq!(now.unshown(&shown), None);
        }
        let why = removing(&mut (0..103)).unshown(&shown);
        assert_eq!(why.as_deref(), Some("it would remove 2 more than the plan has shown"));
        let why = removing(&mut (1..101)).unshown(&removing(&mut (1..100)));
        assert!(why.is_some_and(|why| why.contains("/d/100 ")));
        assert!(removing(&mut (0..101)).unshown(&removing(&mut (0..100))).is_some());
    }

    #[test]
    fn one_that_takes_the_place_of_another_beyond_the_list_is_seen() {
        let numbered = |numbers: &mut dyn Iterator<Item = usize>| {
            let mut effects = Effects::of(Effect::Remove);
            let item = |number| Item { path: format!("/d/{number}"), kind: ItemKind::File { size: 1 } };
            effects.destroys.extend(numbers.map(item));
            effects
        };
        let below = |numbers: &mut dyn Iterator<Item = usize>| {
            let mut effects = Effects::of(Effect::Remove);
            let mut entries = Entries::default();
            numbers.for_each(|number| entries.push(number.to_string()));
            effects.destroys.push(Item { path: "/d".to_owned(), kind: ItemKind::Directory(entries) });
            effects
        };
        let folders = |numbers: &mut dyn Iterator<Item = usize>| {
            let mut effects = Effects::of(Effect::Remove);
            let item = |number| Item { path: format!("/d/{number}"), kind: directory(2).kind };
            effects.destroys.extend(numbers.map(item));
            effects
        };
        let shown = folders(&mut (0..150));
        assert_eq!(folders(&mut (0..150).rev()).unshown(&shown), None);
        let mut others = folders(&mut (0..149));
        others.destroys.push(Item { path: "/d/149".to_owned(), kind: directory(3).kind });
        assert!(others.unshown(&shown).is_some(), "an entry below one beyond the list");
        for (of, most) in [(&numbered as &dyn Fn(&mut dyn Iterator<Item = usize>) -> Effects, 150), (&below, 1500)] {
            let shown = of(&mut (0..most));
            assert_eq!(of(&mut (0..most)).unshown(&shown), None);
            // The same in another order, as a file system may list them.
            assert_eq!(of(&mut (0..most).rev()).unshown(&shown), None);
            assert_eq!(of(&mut (0..50)).unshown(&shown), None);
            assert!(of(&mut (0..most - 1).chain([9999])).unshown(&shown).is_some());
            assert!(of(&mut (1..most).chain([9999])).unshown(&shown).is_some());
            assert!(of(&mut [9999].into_iter().chain(1..most)).unshown(&shown).is_some());
            // One is gone, another one is new, and there are fewer.
            assert!(of(&mut (2..most).chain([9999])).unshown(&shown).is_some());
        }
    }

    #[test]
    fn every_text_can_be_covered() {
        let mut effects = Effects::of(Effect::Remove);
        effects.destroys.push(line(7));
        effects.destroys.push(directory(1));
        let target = "secret".to_owned();
        effects.creates.push(Item { path: "secret".to_owned(), kind: ItemKind::Symlink { target } });
        let covered = effects.map_text(|_| "(sensitive)".to_owned());
        assert_eq!(covered.creates.items()[0].to_string(), "(sensitive) -> (sensitive)");
        assert_eq!(covered.destroys.items()[0].to_string(), "line 7 of (sensitive): (sensitive)");
        assert_eq!(covered.destroys.items()[1].kind.entries().names(), ["(sensitive)"]);
    }
}
