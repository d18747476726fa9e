//! File work that is safe to do as root in directories that belong to others.
//!
//! A path is resolved once, to an open directory and a last name ([`Place`]); everything after that goes through the
//! directory's descriptor, so that whoever exchanges a component in the meantime reaches nothing.
//!
//! Guarantees
//! - The last component of a path is never followed when it is a symbolic link.
//! - A link in front of it is followed only when nobody but root and the user who runs this could have placed it.
//! - Nothing that is not a regular file is ever waited for: FIFOs and devices are opened without blocking, or not at all.
//! - New content appears under its name at once, complete, and with its final owner and mode; until then it is in a
//!   file that only its owner can open, and that has no name, or one like `.stead-…` where there are no such files or
//!   where little is written in place of another file.
//! - What a killed process left under such a name is removed when the same file is replaced a day or more later.
//! - A tree is removed, listed and copied through descriptors, without leaving the file system it starts on.
//!
//! Caveats: content is not flushed to the disk file by file. After a power cut a file may have its former content or, on
//! file systems that reorder, none; the next run sees that and mends it. The journal of a run is what has to be durable.

mod attributes;
mod error;
mod names;
mod place;
mod replace;
mod status;
mod tree;
mod trust;
mod trusted;
mod walk;

pub use error::{FsError, reason};
pub use names::{Names, Subject};
pub use place::Place;
pub use replace::{Ownership, Replacement, Way};
pub use status::{Identity, Kind, Status, format_mode, parse_mode};
pub use tree::{Patience, entries, open_below, remove_tree};
pub use trust::may_change_in_place;
pub use trusted::{Distrust, OpenError, Trust, TrustedDirectory, TrustedFile, Untrusted, User};
pub use walk::{open, open_directory};

/// The begin of the names of temporary files: what a killed process left behind is recognised by it.
pub const TEMPORARY_PREFIX: &str = ".stead-";
