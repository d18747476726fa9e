//! One thread writes: what came in while the last commit was on its way to the disk goes into the next one.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::apply::UnitOutcome;
use super::postgres::Listener;
use super::sqlite::Sqlite;
use super::write::{StoreWrite, Unit};
use super::{FleetStore, FleetStoreError, StorePlace};

/// How many rows of reports go into a commit: more than this, and who waits for the first waits for long.
const MOST_ROWS: usize = 4096;
/// How long is waited before a database that was lost is tried again.
const AGAIN: Duration = Duration::from_millis(500);
/// How often a log is written into its file.
const CHECKPOINTS: Duration = Duration::from_millis(500);
/// How long the first hint may take.
const TRIAL: Duration = Duration::from_secs(2);
/// How long a listener waits at most: so long a thread may need to see that nobody listens any more.
const TURN: Duration = Duration::from_secs(1);

/// What is called when a unit was written, or not, on the thread that writes.
pub type Done = Box<dyn FnOnce(Result<UnitOutcome, WriterError>) + Send>;

/// The reason why it is not known whether a unit was written: it can be written again.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriterError {
    /// The database did not do it.
    #[error("not stored: {0}")]
    Store(String),
    /// The thread has ended.
    #[error("not stored: the controller ends")]
    Ended,
}

/// The thread that writes. It ends when it is dropped, behind everything that it was given.
pub struct Writer {
    units: Option<Sender<(Unit, Done)>>,
    thread: Option<JoinHandle<()>>,
    checkpoints: Option<(Sender<()>, JoinHandle<()>)>,
    hears_others: bool,
}

/// What is called when controllers must look at what changed.
type Changed = Arc<dyn Fn() + Send + Sync>;

impl Writer {
    /// Begins with a connection of its own. `changed` is called, on any thread, when controllers must look at what changed: by this
    /// one, or by another as far as the database says so.
    pub fn start(place: StorePlace, changed: impl Fn() + Send + Sync + 'static) -> Result<Self, FleetStoreError> {
        let mut store = Some(place.open()?);
        let changed: Changed = Arc::new(changed);
        let (mut checkpoints, mut hears_others) = (None, true);
        match &place {
            StorePlace::File(path) => checkpoints = Some(checkpointing(Sqlite::open(path)?)),
            StorePlace::Server(server) => hears_others = listen(server, store.as_mut(), &changed)?,
        }
        let (units, waiting) = channel();
        let thread = std::thread::spawn(move || {
            while let Some(group) = group(&waiting) {
                write(&place, &mut store, group, &changed);
            }
        });
        Ok(Self { units: Some(units), thread: Some(thread), checkpoints, hears_others })
    }

    /// Returns whether what other controllers write is heard at once. It is not behind a pooler of connections; then it is seen when
    /// [`FleetStore::changes`] is asked.
    pub fn hears_others(&self) -> bool {
        self.hears_others
    }

    /// Has a unit written.
    pub fn write(&self, unit: Unit, done: Done) {
        let rejected = match &self.units {
            Some(units) => units.send((unit, done)).err().map(|error| error.0),
            None => Some((unit, done)),
        };
        if let Some((_, done)) = rejected {
            done(Err(WriterError::Ended));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.units = None;
        let checkpoints = self.checkpoints.take().map(|(end, thread)| {
            drop(end);
            thread
        });
        for thread in self.thread.take().into_iter().chain(checkpoints) {
            // A thread that panicked said so.
            let _ = thread.join();
        }
    }
}

/// The units that wait, as many as go into one commit.
fn group(waiting: &Receiver<(Unit, Done)>) -> Option<Vec<(Unit, Done)>> {
    let first = waiting.recv().ok()?;
    let mut rows = weight(&first.0);
    let mut group = vec![first];
    while rows < MOST_ROWS
        && let Ok(next) = waiting.try_recv()
    {
        rows += weight(&next.0);
        group.push(next);
    }
    Some(group)
}

fn weight(unit: &Unit) -> usize {
    unit.iter().map(|write| if let StoreWrite::Reports { reports, .. } = write { reports.len() } else { 1 }).sum()
}

fn write(place: &StorePlace, store: &mut Option<FleetStore>, group: Vec<(Unit, Done)>, changed: &Changed) {
    let (units, done): (Vec<Unit>, Vec<Done>) = group.into_iter().unzip();
    match attempt(place, store, &units, changed) {
        Ok(outcomes) => done.into_iter().zip(outcomes).for_each(|(done, outcome)| done(Ok(outcome))),
        Err(_) if units.len() > 1 => {
            // One that the database cannot have must not keep the others from it.
            for (unit, done) in units.iter().zip(done) {
                let outcome = attempt(place, store, std::slice::from_ref(unit), changed);
                done(outcome.and_then(|outcomes| outcomes.into_iter().next().ok_or(WriterError::Ended)));
            }
        }
        Err(error) => done.into_iter().for_each(|done| done(Err(error.clone()))),
    }
}

fn attempt(
    place: &StorePlace,
    store: &mut Option<FleetStore>,
    units: &[Unit],
    changed: &Changed,
) -> Result<Vec<UnitOutcome>, WriterError> {
    let said = |error: FleetStoreError| WriterError::Store(error.to_string());
    let was_lost = store.is_none();
    let open = match store {
        Some(open) => open,
        None => store.insert(place.open().map_err(said)?),
    };
    match open.commit(units) {
        Ok((outcomes, hints)) => {
            // What is found again may have another history.
            if hints || was_lost {
                changed();
            }
            Ok(outcomes)
        }
        Err(error) => {
            // A connection in an unknown state is not used again.
            *store = None;
            Err(said(error))
        }
    }
}

/// Begins to listen, and returns whether a hint arrives.
fn listen(server: &str, store: Option<&mut FleetStore>, changed: &Changed) -> Result<bool, FleetStoreError> {
    let mut listener = Listener::open(server)?;
    store.map_or(Ok(()), |store| store.engine().hint())?;
    let arrives = listener.wait(TRIAL)?;
    let (server, changed) = (server.to_owned(), Arc::downgrade(changed));
    std::thread::spawn(move || {
        let mut listener = Some(listener);
        while changed.strong_count() > 0 {
            let heard = match &mut listener {
                Some(listening) => listening.wait(TURN),
                // What was said meanwhile was not heard.
                None => Listener::open(&server).map(|opened| listener = Some(opened)).map(|()| true),
            };
            match (heard, changed.upgrade()) {
                (Ok(true), Some(changed)) => changed(),
                (Ok(_), _) => {}
                (Err(_), _) => {
                    listener = None;
                    std::thread::sleep(AGAIN);
                }
            }
        }
    });
    Ok(arrives)
}

fn checkpointing(db: Sqlite) -> (Sender<()>, JoinHandle<()>) {
    let (end, ended) = channel::<()>();
    let thread = std::thread::spawn(move || {
        while ended.recv_timeout(CHECKPOINTS) == Err(RecvTimeoutError::Timeout) {
            // The next one does what this one could not; a file that cannot be written shows at the next commit.
            let _ = db.checkpoint();
        }
    });
    (end, thread)
}
