//! A controller at work: what it knows in memory, and how it answers.

mod access;
mod accounts;
mod changes;
mod checks;
mod envelopes;
mod events;
mod http;
mod keeping;
mod listener;
mod lists;
mod lives;
mod log;
mod machines;
mod metrics;
mod operators;
mod outcomes;
mod planner;
mod readers;
mod reply;
mod reports;
mod requests;
mod said;
mod sessions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stead_hosts::MachineName;
use stead_release::{Digest, Name};
use tokio::sync::{Notify, watch};

use crate::new_token;
use crate::store::{FleetStore, FleetStoreError, StorePlace, Writer};
use access::Threads;
use events::Events;
use log::Refusals;
use machines::Machine;
use metrics::Counters;
use readers::{Cache, Readers};
use sessions::SessionKeys;

pub use access::{StoreAccess, StoreRead};
pub use http::{Bound, TlsFiles};
pub use keeping::ControllerLimits;
pub use planner::{Look, Planner};

/// How long whoever wrote something waits at most until it is seen.
const SEEN: Duration = Duration::from_secs(3);
/// How long the store may take for what is asked of it. Longer than a file may be locked, which is known better then.
const PATIENCE: Duration = Duration::from_secs(15);
/// How many threads read from the store.
const READERS: usize = 2;

/// The reason why a controller does not begin.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The store cannot be used.
    #[error("cannot use the store")]
    Store(#[from] FleetStoreError),
    /// The system refused something.
    #[error("cannot {doing}")]
    System {
        /// The action that failed, as in "cannot …".
        doing: &'static str,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error("cannot use the certificate: {0}")]
    Tls(String),
}

/// The time in milliseconds since 1970.
pub type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// A controller: everything that its connections share.
pub struct Controller {
    machines: RwLock<BTreeMap<MachineName, Arc<Machine>>>,
    /// The newest release of each channel.
    newest: RwLock<BTreeMap<Name, u64>>,
    /// The channels that the roster names.
    channels: RwLock<BTreeSet<Name>>,
    events: Events,
    counters: Counters,
    /// When it began, in milliseconds.
    started: u64,
    /// The digest of the root statement, once it is published.
    root: RwLock<Option<Digest>>,
    /// The numbers of the newest list of signers and of the newest roster.
    signers: AtomicU64,
    roster: AtomicU64,
    epoch: AtomicU64,
    sessions: SessionKeys,
    access: Box<dyn StoreAccess>,
    clock: Clock,
    /// How far the clock of the database is ahead, in milliseconds.
    ahead: AtomicI64,
    cache: Cache,
    limits: ControllerLimits,
    refusals: Refusals,
    /// Wakes whoever waits for the planner to have seen something.
    looked: Notify,
    stop: watch::Receiver<bool>,
}

/// What ends a controller when it is dropped.
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// Has machines that wait go, and connections end.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Controller {
    /// Begins with the store at a place.
    pub fn start(
        place: &StorePlace,
        limits: impl Into<ControllerLimits>,
    ) -> Result<(Arc<Self>, Stop), ControllerError> {
        let (hints, woken) = std::sync::mpsc::channel();
        // Nobody is woken when the planner has ended.
        let writer = Writer::start(place.clone(), move || hints.send(()).unwrap_or(()))?;
        let access = Box::new(Threads { writer, readers: Readers::start(place, READERS)? });
        let (controller, stop, planner) = Self::over(place.open()?, access, Box::new(now), limits)?;
        let watched = Arc::downgrade(&controller);
        std::thread::spawn(move || planner.run(&watched, &woken));
        Ok((controller, stop))
    }

    /// Begins over another way to the store and another clock, and starts no thread: whoever calls has the planner look, at once whenever
    /// something changed and every two seconds.
    pub fn over(
        mut store: FleetStore,
        access: Box<dyn StoreAccess>,
        clock: Clock,
        limits: impl Into<ControllerLimits>,
    ) -> Result<(Arc<Self>, Stop, Planner), ControllerError> {
        let sessions = SessionKeys::default();
        sessions.read(&mut store)?;
        let (stop, stopped) = watch::channel(false);
        let heard = store.heard()?;
        let controller = Arc::new(Self {
            machines: RwLock::default(),
            newest: RwLock::default(),
            channels: RwLock::default(),
            events: Events::new(new_token().expose().clone()),
            counters: Counters::default(),
            started: clock(),
            root: RwLock::default(),
            signers: AtomicU64::default(),
            roster: AtomicU64::default(),
            epoch: AtomicU64::default(),
            sessions,
            access,
            clock,
            ahead: AtomicI64::default(),
            cache: Cache::default(),
            limits: limits.into(),
            refusals: Refusals::default(),
            looked: Notify::new(),
            stop: stopped,
        });
        let mut planner = Planner::new(store, heard);
        planner.look(&controller, Look::AtAll)?;
        Ok((controller, Stop(stop), planner))
    }

    /// Returns whether other controllers on the same store are heard at once.
    pub fn hears_others(&self) -> bool {
        self.access.hears_others()
    }

    fn machine(&self, name: &MachineName) -> Option<Arc<Machine>> {
        self.machines.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Waits until what was written is seen in memory, so that whoever wrote it is answered by it from here on; not for long, since it
    /// is seen later in any case.
    async fn seen(&self, is_seen: impl Fn(&Self) -> bool) {
        let until = tokio::time::Instant::now() + SEEN;
        loop {
            let looked = self.looked.notified();
            tokio::pin!(looked);
            looked.as_mut().enable();
            if is_seen(self) || tokio::time::timeout_at(until, looked).await.is_err() {
                return;
            }
        }
    }

    /// One value for each machine that has it, in the order of their names.
    fn each_machine<T>(&self, of: impl Fn(&Arc<Machine>) -> Option<T>) -> Vec<T> {
        let machines = self.machines.read().unwrap_or_else(PoisonError::into_inner);
        machines.values().filter_map(of).collect()
    }

    fn for_each_machine(&self, of: impl Fn(&Machine)) {
        self.machines.read().unwrap_or_else(PoisonError::into_inner).values().for_each(|machine| of(machine));
    }

    /// The time in milliseconds, by the clock of the database as far as it is known: controllers with other clocks accept each other's
    /// sessions, and say the same of who is held and when who was heard.
    fn now(&self) -> u64 {
        (self.clock)().saturating_add_signed(self.ahead.load(Ordering::Relaxed))
    }

    /// Learns the time of the database.
    fn hear_time(&self, now: u64) {
        let ahead = i128::from(now) - i128::from((self.clock)());
        self.ahead.store(i64::try_from(ahead).unwrap_or_default(), Ordering::Relaxed);
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }
}

/// The time by this clock, in milliseconds.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
