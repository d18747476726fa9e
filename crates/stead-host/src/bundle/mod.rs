//! Bundles on the machine: gathering the files of a document, and unpacking those of a bundle.

mod gather;
mod unpacked;

pub use gather::{Gathering, Missing};
pub use unpacked::{BundleFiles, FilesWithin, Source, UnpackError};
