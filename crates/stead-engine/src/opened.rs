//! The files of a bundle that is worked from.

use std::sync::Arc;

use stead_host::bundle::BundleFiles;

/// The files of a bundle, which are removed when this is dropped: a thread that has carried out a call may hold them for a
/// moment more, in which the process can end.
pub(crate) struct OpenedFiles(pub(crate) Arc<BundleFiles>);

impl Drop for OpenedFiles {
    fn drop(&mut self) {
        self.0.remove();
    }
}
