//! Lists up to a limit, and what there is besides.

use serde::{Deserialize, Serialize};

use super::entries::{Entries, Sum};
use super::item::{Item, ItemKind};

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

    pub(super) fn map_text(&mut self, map: &impl Fn(&str) -> String) {
        self.items.iter_mut().for_each(|item| item.map_text(map));
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
    pub(super) fn is_covered_by(&self, shown: &Self) -> bool {
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
