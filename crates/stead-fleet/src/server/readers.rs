//! Reading from the store without keeping a thread of connections waiting.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::OnceCell;

use super::StoreRead;
use crate::store::{FleetStore, FleetStoreError, StorePlace};

/// How many bytes of content are kept in memory: a release that many machines fetch at once.
const MOST_KEPT: usize = 32 << 20;
/// How many bytes it takes at least to keep a content, however short that is.
const LEAST_KEPT: usize = 512;

/// Threads that read, each with a connection of its own. They end with this.
pub(super) struct Readers(Mutex<Sender<StoreRead>>);

impl Readers {
    /// Begins with some threads.
    pub(super) fn start(place: &StorePlace, threads: usize) -> Result<Self, FleetStoreError> {
        let (sender, work) = channel();
        let work = Arc::new(Mutex::new(work));
        for _ in 0..threads {
            let (store, work) = (place.open()?, Arc::clone(&work));
            std::thread::spawn(move || serve(store, &work));
        }
        Ok(Self(Mutex::new(sender)))
    }

    /// Has something read on one of the threads; nothing if they have ended.
    pub(super) fn read(&self, read: StoreRead) {
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).send(read);
    }
}

fn serve(mut store: FleetStore, work: &Mutex<Receiver<StoreRead>>) {
    loop {
        let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(work) = next else { return };
        if store.now().is_err() {
            // One that cannot be reached says so when it is asked.
            let _ = store.reopen();
        }
        work(&mut store);
    }
}

/// Content by its name, until there is too much of it.
#[derive(Default)]
pub(super) struct Cache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    contents: HashMap<String, Arc<OnceCell<Bytes>>>,
    bytes: usize,
}

impl Cache {
    /// A content. It is made once, however many ask for it at once. One that cannot be made leaves nothing.
    pub(super) async fn get_or<E>(
        &self,
        name: String,
        make: impl Future<Output = Result<Bytes, E>>,
    ) -> Result<Bytes, E> {
        let place = Arc::clone(self.kept().contents.entry(name.clone()).or_default());
        let mut is_new = false;
        let first = place.get_or_try_init(|| {
            is_new = true;
            make
        });
        let content = match Box::pin(first).await {
            Ok(content) => content.clone(),
            Err(error) => {
                // Whoever asks at this time has the same place, and may have more luck: then it is made once more for others.
                self.kept().contents.remove(&name);
                return Err(error);
            }
        };
        if is_new {
            let mut kept = self.kept();
            kept.bytes += content.len() + LEAST_KEPT;
            if kept.bytes > MOST_KEPT {
                *kept = Kept::default();
            }
        }
        Ok(content)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_limited_however_many_names_are_asked_for() {
        let (cache, runtime) = (Cache::default(), tokio::runtime::Builder::new_current_thread().build().unwrap());
        let ask = |name: usize, made: Result<&'static [u8], ()>| {
            runtime.block_on(cache.get_or(name.to_string(), async { made.map(Bytes::from_static) }))
        };
        for name in 0..1_000 {
            assert_eq!(ask(name, Err(())), Err(()));
        }
        assert_eq!(cache.kept().contents.len(), 0, "names of nothing");
        assert_eq!(ask(1, Ok(b"one")), Ok(Bytes::from_static(b"one")));
        assert_eq!(ask(1, Err(())), Ok(Bytes::from_static(b"one")));
        for name in 0..100_000 {
            assert_eq!(ask(name, Ok(b"")).unwrap().len(), if name == 1 { 3 } else { 0 });
            assert!(cache.kept().contents.len() <= MOST_KEPT / LEAST_KEPT);
        }
    }
}
