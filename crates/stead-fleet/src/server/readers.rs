//! Reading from the store without keeping a thread of connections waiting.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::PATIENCE;
use crate::store::{FleetStore, FleetStoreError, StorePlace};

/// How many bytes of content are kept in memory: a release that many machines fetch at once.
const KEPT: usize = 32 << 20;

type Work = Box<dyn FnOnce(&mut FleetStore) + Send>;

/// Threads that read, each with a connection of its own. They end with this.
pub(super) struct Readers(Mutex<Sender<Work>>);

impl Readers {
    /// Begins with some threads.
    pub(super) fn start(place: &StorePlace, threads: usize) -> Result<Self, FleetStoreError> {
        let (sender, work) = channel();
        let work = Arc::new(Mutex::new(work));
        for _ in 0..threads {
            let (store, place, work) = (place.open()?, place.clone(), Arc::clone(&work));
            std::thread::spawn(move || serve(store, &place, &work));
        }
        Ok(Self(Mutex::new(sender)))
    }

    /// What is read, on one of the threads.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut FleetStore) -> Result<T, FleetStoreError> + Send + 'static,
    ) -> Result<T, FleetStoreError> {
        let (done, answer) = oneshot::channel();
        let work: Work = Box::new(move |store| drop(done.send(read(store))));
        let sent = self.0.lock().unwrap_or_else(PoisonError::into_inner).send(work);
        let ended = || FleetStoreError::Database("the controller ends".to_owned());
        sent.map_err(|_| ended())?;
        let late = |_| FleetStoreError::Database("it does not answer".to_owned());
        timeout(PATIENCE, answer).await.map_err(late)?.map_err(|_| ended())?
    }
}

fn serve(mut store: FleetStore, place: &StorePlace, work: &Mutex<Receiver<Work>>) {
    loop {
        let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(work) = next else { return };
        // A server that was away is there again on another connection.
        if store.now().is_err()
            && let Ok(opened) = place.open()
        {
            store = opened;
        }
        work(&mut store);
    }
}

/// Content by its name, until there is too much of it.
#[derive(Default)]
pub(super) struct Cache(Mutex<(HashMap<String, Bytes>, usize)>);

impl Cache {
    pub(super) fn get(&self, name: &str) -> Option<Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.get(name).cloned()
    }

    pub(super) fn put(&self, name: String, content: &Bytes) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.1 + content.len() > KEPT {
            *kept = (HashMap::new(), 0);
        }
        if content.len() <= KEPT && kept.0.insert(name, content.clone()).is_none() {
            kept.1 += content.len();
        }
    }
}
