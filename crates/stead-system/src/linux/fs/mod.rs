//! File work that is safe to do as root in directories that belong to others.
//!
//! A path is resolved once, to an open directory and a last name ([`Place`]); everything after that goes through the
//! directory's descriptor, so that whoever exchanges a component in the meantime reaches nothing. What is opened is named by a
//! [`SystemPath`], which knows the root of its system.
//!
//! Guarantees
//! - The last component of a path is never followed when it is a symbolic link.
//! - A link in front of it is followed only when nobody but root and the user who runs this could have placed it.
//! - Links of another system than the running one lead to what is below its root ([`SystemRoot`]).
//! - Nothing that is not a regular file is ever waited for: FIFOs and devices are opened without blocking, or not at all.
//! - New content appears under its name at once, complete, and with its final owner and mode; until then it is in a
//!   file without a name that only its owner can open. Where there are no such files it has a name like `.stead-…`.
//! - What a killed process left under such a name is removed by the next run that writes to the directory ([`Writes`]).
//! - A file that was read and is to be replaced is left alone when it was changed meanwhile ([`Former`]).
//! - A tree is removed, listed and copied through descriptors, without leaving the file system it starts on.
//! - What was written survives a power failure once [`Writes::flush`] succeeded, or earlier ([`Durability`]).
//!
//! Caveats: after a power failure during a run a file may have its former content or, on file systems that reorder,
//! none; the next run sees that and corrects it. With [`Durability::PerFile`] it has either its former or its new content.

mod abandoned;
mod attributes;
mod below;
mod change;
mod copy;
mod digest;
mod durability;
mod error;
mod handle;
mod image;
mod keep;
mod listing;
mod metadata;
mod mounts;
mod ownership;
mod path;
pub mod path_bytes;
mod place;
mod put_back;
mod read;
mod replace;
mod status;
mod system;
mod temporary;
mod tree;
mod trust;
mod trusted;
mod walk;

pub use crate::error::{FsError, advice, failure_kind, reason};
pub use crate::kind::{FileKind, format_mode, parse_mode};
pub use crate::waiting::Patience;
pub use abandoned::remove_abandoned;
pub use below::below_root;
pub use copy::{copy_tree, make_link};
pub use digest::digest;
pub use durability::{Durability, FlushTarget, Writes};
pub use error::{access_denied, is_not_openable, not_found, not_permitted};
pub use handle::{
    AsHandle, Handle, HandleRef, How, is_immutable, is_link, is_not_readable, link_target_of, look_at, os_string,
    os_text, path_by_handle, read_at, read_exact_at, read_once, real_path, reopen_directory, status_of,
};
pub use image::{Image, ImageNode, Keeper, Loss, Mark};
pub use listing::{Coverage, entries, entries_up_to, for_each_name};
pub use metadata::{append_private, check_writable, is_endless, make_private_directory, open_followed};
pub use mounts::{check_unmounted, mounts_below};
pub use ownership::Ownership;
pub use path::{SystemPath, SystemRoot};
pub use place::Place;
pub use read::{Content, read, read_open};
pub use replace::{Former, Replacement, retry_changed};
pub use status::{Identity, Status};
pub use tree::{open_below, remove_tree};
pub use trust::may_change_in_place;
pub use trusted::{Distrust, OpenError, Presence, Trust, TrustedDirectory, TrustedFile, Untrusted, User, judge};
pub use walk::{open, open_directory};

/// The beginning of the names of temporary files: what a killed process left behind is recognised by it.
pub const TEMPORARY_PREFIX: &str = ".stead-";
