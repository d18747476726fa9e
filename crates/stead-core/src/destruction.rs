//! What a set makes, changes and destroys, beyond the states before and after it.
//!
//! A state names properties; that a directory with seven entries makes way for a link is in none of them. A resource
//! that knows lists it here, the same in a what-if as when it is done.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::diag::counted;

/// What a set does to things, or in what-if would do.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Effects {
    /// What happens to the instance itself; `None` where nothing does, or the resource does not say.
    pub effect: Option<Effect>,
    /// What comes into being besides the instance itself, such as the files of a copied tree; of content that cannot be
    /// shown, its size and digest.
    pub creates: Listing,
    /// What is gone afterwards and was not kept elsewhere.
    pub destroys: Listing,
}

/// What happens to an instance.
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

    /// Whether nothing is known to happen.
    pub fn is_empty(&self) -> bool {
        self.effect.is_none() && self.creates.total() == 0 && self.destroys.total() == 0
    }

    /// Replaces every text in it, to cover secrets.
    #[must_use]
    pub fn map_text(mut self, map: impl Fn(&str) -> String) -> Self {
        for item in self.creates.items.iter_mut().chain(&mut self.destroys.items) {
            item.path = map(&item.path);
            if let ItemKind::Symlink { target: text } | ItemKind::Line { text, .. } = &mut item.kind {
                *text = map(text);
            }
        }
        self
    }
}

/// Items up to a limit, and how many there are besides.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    items: Vec<Item>,
    more: u64,
}

impl Listing {
    /// Enough for a person to see what happens; a tree may have millions of files.
    pub const LIMIT: usize = 100;

    /// Adds an item, or counts it when there are enough.
    pub fn push(&mut self, item: Item) {
        if self.items.len() < Self::LIMIT {
            self.items.push(item);
        } else {
            self.more += 1;
        }
    }

    /// The first ones, in the order in which they were added.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// How many there are besides [`Listing::items`].
    pub fn more(&self) -> u64 {
        self.more
    }

    /// How many there are.
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
    /// What it is.
    pub kind: ItemKind,
}

/// What is created or destroyed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ItemKind {
    /// A regular file.
    File {
        /// Its bytes.
        size: u64,
    },
    /// A directory.
    Directory {
        /// How many files, directories and others are below it, at any depth. Those are not listed themselves.
        entries_below: u64,
    },
    /// A symbolic link.
    Symlink {
        /// What it leads to.
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
}

impl ItemKind {
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

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, kind } = self;
        match kind {
            ItemKind::File { size } => write!(f, "{path} ({})", counted(*size, "byte")),
            ItemKind::Directory { entries_below: 0 } => write!(f, "{path} (empty directory)"),
            ItemKind::Directory { entries_below: 1 } => write!(f, "{path} (1 entry)"),
            ItemKind::Directory { entries_below } => write!(f, "{path} ({entries_below} entries)"),
            ItemKind::Symlink { target } => write!(f, "{path} -> {target}"),
            ItemKind::Special => write!(f, "{path} (device, FIFO or socket)"),
            ItemKind::Content { .. } => write!(f, "content of {path} ({})", kind.content().unwrap_or_default()),
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

    #[test]
    fn every_text_can_be_covered() {
        let mut effects = Effects::of(Effect::Remove);
        effects.destroys.push(line(7));
        let target = "secret".to_owned();
        effects.creates.push(Item { path: "secret".to_owned(), kind: ItemKind::Symlink { target } });
        let covered = effects.map_text(|_| "(sensitive)".to_owned());
        assert_eq!(covered.creates.items()[0].to_string(), "(sensitive) -> (sensitive)");
        assert_eq!(covered.destroys.items()[0].to_string(), "line 7 of (sensitive): (sensitive)");
    }
}
