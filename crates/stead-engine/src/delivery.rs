//! Deliveries of documents, of which some restore a former one.

use stead_host::store::kept::Managed;

/// The delivery of a document that its runs are of.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Delivery {
    /// Its number, which grows with each; 0 where nobody counts them.
    pub number: u64,
    /// The delivery that it restores, if it is one that was made before: things that others made since are removed.
    pub restores: Option<u64>,
}

impl Delivery {
    /// Returns whether a thing was made by a delivery that this one takes back. It may be that a run had begun to remove it.
    pub(crate) fn takes_back(self, managed: &Managed) -> bool {
        self.restores.is_some_and(|former| former < managed.since && managed.since < self.number)
    }
}
