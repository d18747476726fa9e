//! One thing that is created or destroyed.

use std::fmt;
use std::mem::discriminant;

use serde::{Deserialize, Serialize};

use super::entries::{Entries, Sum};
use crate::diag::counted;

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

impl ItemKind {
    /// Returns whether a thing of its own is gone, and not content or a line of one that stays.
    pub fn is_whole(&self) -> bool {
        !matches!(self, Self::Content { .. } | Self::Line { .. })
    }
}

impl Item {
    /// Replaces every text in it, to cover secrets.
    pub(super) fn map_text(&mut self, map: &impl Fn(&str) -> String) {
        self.path = map(&self.path);
        match &mut self.kind {
            ItemKind::Symlink { target: text } | ItemKind::Line { text, .. } => *text = map(text),
            ItemKind::Package { version, former } => {
                *version = map(version);
                *former = former.as_deref().map(map);
            }
            ItemKind::Directory(entries) => entries.map_text(map),
            ItemKind::File { .. } | ItemKind::Special | ItemKind::Content { .. } | ItemKind::Lists { .. } => {}
        }
    }

    /// Says what goes with it that is not among what was shown; itself, where all was listed.
    pub(super) fn unshown(&self, shown: &[Self], is_listed: bool) -> Option<String> {
        let Some(shown) = shown.iter().find(|other| other.is_same(self)) else {
            return is_listed.then(|| format!("it would remove {self}, which the plan has not shown"));
        };
        self.kind.entries().unshown(shown.kind.entries(), &self.path)
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        other.path == self.path && discriminant(&other.kind) == discriminant(&self.kind)
    }

    /// Returns whether its removal is compared with what was shown.
    pub(super) fn is_compared(&self) -> bool {
        self.kind.is_whole() && !matches!(self.kind, ItemKind::Package { .. })
    }

    pub(super) fn count_in(&self, sum: &mut Sum) {
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
