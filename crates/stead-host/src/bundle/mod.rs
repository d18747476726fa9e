//! Bundles at work: reading the files that belong to one, and having those of one at hand.

mod gather;
mod unpacked;

pub use gather::{Gathering, Missing};
pub use unpacked::{Files, FilesWithin, Source, UnpackError};
