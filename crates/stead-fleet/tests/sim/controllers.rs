//! Controllers of a simulation: the real ones, over a store that is asked without threads, at a time that does not pass by itself.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use stead_fleet::server::{Controller, Planner, Stop, StoreAccess, StoreRead};
use stead_fleet::store::{Done, FleetStore, StorePlace, Unit, WriterError};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// When worlds begin, in milliseconds.
pub(crate) const BEGIN: u64 = 1_750_000_000_000;

/// The time of the world, in milliseconds since 1970.
#[derive(Clone, Copy)]
pub(crate) struct Time(pub(crate) Instant);

impl Time {
    pub(crate) fn now(self) -> u64 {
        BEGIN + u64::try_from(self.0.elapsed().as_millis()).unwrap()
    }
}

/// What the world knows of a controller's process, and does to it.
pub(crate) struct Process {
    pub(crate) is_dead: AtomicBool,
    /// It dies at its so many-th step on the store from now on.
    pub(crate) dies_in: AtomicU64,
    /// At that step the database still does what it was asked.
    pub(crate) dies_behind: bool,
    /// The database does not answer it.
    pub(crate) is_cut_off: AtomicBool,
    /// The database is another one.
    pub(crate) is_moved: AtomicBool,
    /// Others must hear of something that it wrote.
    pub(crate) hints: AtomicBool,
}

enum Step {
    Goes,
    DiesBefore,
    DiesBehind,
}

impl Process {
    fn step(&self) -> Step {
        if self.is_dead.load(Ordering::SeqCst) {
            return Step::DiesBefore;
        }
        let left = self.dies_in.load(Ordering::SeqCst);
        if left < u64::MAX {
            self.dies_in.store(left.saturating_sub(1), Ordering::SeqCst);
        }
        if left > 0 {
            return Step::Goes;
        }
        self.is_dead.store(true, Ordering::SeqCst);
        if self.dies_behind { Step::DiesBehind } else { Step::DiesBefore }
    }
}

/// The store without threads: each question is answered before the next thing happens.
struct Inline {
    store: Mutex<FleetStore>,
    process: Arc<Process>,
}

impl Inline {
    fn store(&self) -> MutexGuard<'_, FleetStore> {
        let mut store = self.store.lock().unwrap();
        if self.process.is_moved.swap(false, Ordering::SeqCst) {
            store.reopen().unwrap();
        }
        store
    }
}

impl StoreAccess for Inline {
    fn write(&self, unit: Unit, done: Done) {
        if self.process.is_cut_off.load(Ordering::SeqCst) {
            return done(Err(WriterError::Store("cut off".to_owned())));
        }
        let step = self.process.step();
        if matches!(step, Step::DiesBefore) {
            return;
        }
        let (mut outcomes, hints) = self.store().commit(&[unit]).unwrap();
        if hints {
            self.process.hints.store(true, Ordering::SeqCst);
        }
        if matches!(step, Step::Goes) {
            done(Ok(outcomes.remove(0)));
        }
    }

    fn read(&self, read: StoreRead) {
        let is_answered = !self.process.is_cut_off.load(Ordering::SeqCst) && matches!(self.process.step(), Step::Goes);
        if is_answered {
            read(&mut self.store());
        }
    }

    fn hears_others(&self) -> bool {
        true
    }
}

/// A controller that runs.
pub(crate) struct Running {
    pub(crate) controller: Arc<Controller>,
    pub(crate) planner: Planner,
    pub(crate) process: Arc<Process>,
    pub(crate) tasks: JoinSet<()>,
    _stop: Stop,
}

/// A connection to the store of a file, at the time of the world.
pub(crate) fn open(file: &Path, time: Time) -> FleetStore {
    StorePlace::File(file.to_owned()).open().unwrap().with_clock(move || time.now())
}

impl Running {
    pub(crate) fn begin(file: &Path, time: Time, skew: i64, process: Process) -> Self {
        let process = Arc::new(process);
        let access = Inline { store: Mutex::new(open(file, time)), process: Arc::clone(&process) };
        let clock = Box::new(move || time.now().saturating_add_signed(skew));
        let (controller, stop, planner) = Controller::over(open(file, time), Box::new(access), clock, 100_000).unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&controller).keep_heard());
        Self { controller, planner, process, tasks, _stop: stop }
    }
}

/// Makes a name lead to a file.
pub(crate) fn lead(name: &Path, file: &Path) {
    let other = name.with_extension("new");
    std::os::unix::fs::symlink(file, &other).unwrap();
    std::fs::rename(other, name).unwrap();
}

/// A copy of the store as it is now, which nothing is written to.
pub(crate) fn copied(file: &Path, to: &str) -> PathBuf {
    let db = rusqlite::Connection::open(file).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)).unwrap();
    let copy = file.with_file_name(to);
    std::fs::copy(file, &copy).unwrap();
    copy
}
