//! The things that a set creates, changes and destroys, beyond the states before and after it.
//!
//! A state names properties; that a directory with seven entries makes way for a link is in none of them. A resource
//! that knows lists it here, the same in a what-if as when it is done.

mod entries;
mod item;
mod listing;

use serde::{Deserialize, Serialize};

use crate::value::Value;

pub use entries::Entries;
pub use item::{Item, ItemKind};
pub use listing::Listing;

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
        self.creates.map_text(&map);
        self.destroys.map_text(&map);
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
