//! The entries below a directory, and sums of what is not listed.

use std::fmt;
use std::num::ParseIntError;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What there is besides a list, in whatever order: the sum of a digest of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Sum(u64);

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
    pub(super) fn add(&mut self, text: &str) {
        let digest = Sha256::digest(text);
        self.merge(Self(digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))));
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn is_none(&self) -> bool {
        self.0 == 0
    }
}

/// The entries below a directory, at any depth: names up to a limit, and how many there are besides.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entries {
    pub(super) names: Vec<String>,
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

    pub(super) const NONE: &Self = &Self { names: Vec::new(), more: 0, rest: Sum(0), incomplete: false };

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

    pub(super) fn map_text(&mut self, map: impl Fn(&str) -> String) {
        self.names.iter_mut().for_each(|name| *name = map(name));
    }

    /// Says which entries of the directory at a path are not among those that were shown of it.
    pub(super) fn unshown(&self, shown: &Self, path: &str) -> Option<String> {
        if self.total() > shown.total() {
            let is = if self.total() == 1 { "entry" } else { "entries" };
            let was = if shown.total() == 1 { "was" } else { "were" };
            return Some(format!("'{path}' has {} {is} now, {} {was} shown", self.total(), shown.total()));
        }
        let mut others = self.names.iter().filter(|name| !shown.names.contains(name)).peekable();
        if let Some(other) = others.peek().filter(|_| shown.more == 0) {
            return Some(format!("it would remove {path}/{other}, which the plan has not shown"));
        }
        let mut beyond = self.rest;
        others.for_each(|name| beyond.add(name));
        let is_covered = self.sum() == shown.sum() || beyond.is_none() || beyond == shown.rest;
        (!is_covered).then(|| format!("'{path}' has other entries than the plan has counted"))
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

    pub(super) fn sum(&self) -> Sum {
        let mut sum = self.rest;
        self.names.iter().for_each(|name| sum.add(name));
        sum
    }

    pub(super) fn truncate(&mut self, limit: usize) {
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
