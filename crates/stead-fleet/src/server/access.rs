//! The way of requests to the store.

use std::sync::mpsc::channel;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::readers::Readers;
use super::{Controller, PATIENCE};
use crate::store::{Done, FleetStore, FleetStoreError, Unit, UnitOutcome, Writer};

/// Something that is read.
pub type StoreRead = Box<dyn FnOnce(&mut FleetStore) + Send>;

/// The threads between requests and the store, so that none keeps another one waiting.
pub trait StoreAccess: Send + Sync {
    /// Has a unit written, and `done` called when it is durable or was refused.
    fn write(&self, unit: Unit, done: Done);
    /// Has something read. If it is dropped, it cannot be.
    fn read(&self, read: StoreRead);
    /// Returns whether what other controllers write is heard at once.
    fn hears_others(&self) -> bool;
}

/// Threads that read, and one that writes.
pub(super) struct Threads {
    pub(super) readers: Readers,
    pub(super) writer: Writer,
}

impl StoreAccess for Threads {
    fn write(&self, unit: Unit, done: Done) {
        self.writer.write(unit, done);
    }

    fn read(&self, read: StoreRead) {
        self.readers.read(read);
    }

    fn hears_others(&self) -> bool {
        self.writer.hears_others()
    }
}

impl Controller {
    /// What is read from the store.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut FleetStore) -> Result<T, FleetStoreError> + Send + 'static,
    ) -> Result<T, FleetStoreError> {
        let (done, answer) = oneshot::channel();
        self.access.read(Box::new(move |store| drop(done.send(read(store)))));
        let late = |_| FleetStoreError::Database("it does not answer".to_owned());
        let ended = |_| FleetStoreError::Database("the controller ends".to_owned());
        timeout(PATIENCE, answer).await.map_err(late)?.map_err(ended)?
    }

    /// Writes a unit, and waits for it on a thread that answers no requests.
    pub(super) fn written(&self, unit: Unit) -> Option<UnitOutcome> {
        let (sender, outcome) = channel();
        self.access.write(unit, Box::new(move |outcome| sender.send(outcome).unwrap_or(())));
        outcome.recv().ok()?.ok()
    }
}
