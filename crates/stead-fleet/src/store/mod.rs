//! What the controllers of a fleet keep: in one file, or in a PostgreSQL that they share. The rules are the same, and written once.

mod apply;
mod engine;
mod packing;
mod postgres;
mod read;
mod schema;
mod sqlite;
mod write;
mod writer;

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use engine::Engine;
use packing::Packing;
use stead_core::value::Sensitive;

pub use apply::UnitOutcome;
pub use engine::FleetStoreError;
pub use read::{Changes, LastHeard, MachineRow, StoredAct, StoredReport, StoredStatement};
pub use write::{
    Chain, Enrolment, Grant, Heartbeat, Invitation, MachineId, OperatorAct, Pointers, SignedStatement, Standing,
    StoreWrite, StoredEnvelope, Token, Unit, WriteRefusal, Written, labels_text,
};
pub use writer::{Done, Writer, WriterError};

/// Where the store is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StorePlace {
    /// A file of SQLite.
    File(PathBuf),
    /// What a client of PostgreSQL connects to, as an address or as words.
    Server(String),
}

/// A secret that sessions of machines are derived from.
pub struct SessionEpoch {
    /// The secret.
    pub secret: Sensitive<String>,
    /// From when on new sessions are derived from it, in milliseconds.
    pub since: u64,
}

/// A connection to the store. Each thread has its own.
pub struct FleetStore {
    place: StorePlace,
    engine: Box<dyn Engine>,
    packing: Packing,
    /// A clock beside that of the database.
    clock: Option<Box<dyn Fn() -> u64 + Send>>,
    is_shared: bool,
}

impl StorePlace {
    /// Opens a connection, and brings the tables to the version of this program.
    ///
    /// A database that does not keep what it acknowledges is refused, and so is one of a newer version.
    pub fn open(&self) -> Result<FleetStore, FleetStoreError> {
        let (place, is_shared) = (self.clone(), matches!(self, Self::Server(_)));
        Ok(FleetStore { place, engine: self.connect()?, packing: Packing::new()?, clock: None, is_shared })
    }

    fn connect(&self) -> Result<Box<dyn Engine>, FleetStoreError> {
        let mut engine: Box<dyn Engine> = match self {
            Self::File(path) => Box::new(sqlite::Sqlite::open(path)?),
            Self::Server(place) => Box::new(postgres::Postgres::open(place)?),
        };
        schema::bring_up(&mut *engine)?;
        Ok(engine)
    }
}

impl FleetStore {
    /// Connects anew: a server that was away is found again on another connection, and may be another one with another history.
    pub fn reopen(&mut self) -> Result<(), FleetStoreError> {
        self.engine = self.place.connect()?;
        // Another history may be that of another fleet.
        self.packing = Packing::new()?;
        Ok(())
    }

    /// Writes units, and returns the outcome of each and whether controllers must look at [`FleetStore::changes`].
    ///
    /// When it returns, they are durable. If it fails, they may be there or not: they can be written again.
    pub fn commit(&mut self, units: &[Unit]) -> Result<(Vec<UnitOutcome>, bool), FleetStoreError> {
        apply::commit(self, units)
    }

    /// Has the time be that of another clock than the database's, as a simulation needs it.
    #[must_use]
    pub fn with_clock(self, clock: impl Fn() -> u64 + Send + 'static) -> Self {
        Self { clock: Some(Box::new(clock)), is_shared: true, ..self }
    }

    /// The time in milliseconds: by the clock of the database, so that all controllers have one.
    pub fn now(&mut self) -> Result<u64, FleetStoreError> {
        match &self.clock {
            Some(clock) => Ok(clock()),
            None => self.engine.now().map(i64::unsigned_abs),
        }
    }

    /// A value that all controllers share, made by the first of them.
    pub fn shared(&mut self, name: &'static str, make: impl FnOnce() -> String) -> Result<String, FleetStoreError> {
        self.engine.begin(engine::Scope::Decides)?;
        let stated = schema::stated(self.engine(), name)?;
        let value = stated.clone().unwrap_or_else(make);
        if stated.is_none() {
            schema::state(self.engine(), name, &value)?;
        }
        self.engine.commit().map(|()| value)
    }

    /// The secrets that sessions of machines are derived from, with the time from which on each is used for new ones; the first is made.
    pub fn sessions(&mut self, make: impl FnOnce() -> String) -> Result<Vec<SessionEpoch>, FleetStoreError> {
        let Some(stated) = schema::stated(self.engine(), "sessions")? else {
            // Only what is not there yet is decided on.
            let secret = match schema::stated(self.engine(), "session")? {
                Some(secret) => secret,
                None => self.shared("session", make)?,
            };
            return Ok(vec![SessionEpoch { secret: Sensitive::new(secret), since: 0 }]);
        };
        let stated: Vec<(String, u64)> =
            serde_json::from_str(&stated).map_err(|_| FleetStoreError::Row("the sessions"))?;
        let epoch = |(secret, since)| SessionEpoch { secret: Sensitive::new(secret), since };
        Ok(stated.into_iter().map(epoch).collect())
    }

    /// Has new sessions be derived from another secret a while from now, in milliseconds: until then each controller has read it. Those
    /// of the secret that is used until then are accepted until the next time.
    pub fn rotate_sessions(&mut self, make: impl Fn() -> String, behind: u64) -> Result<(), FleetStoreError> {
        // The first one is made before it is decided.
        self.sessions(&make)?;
        let now = self.now()?;
        self.engine.begin(engine::Scope::Decides)?;
        let former = self.sessions(&make)?;
        let used = former.iter().rposition(|epoch| epoch.since <= now).unwrap_or_default();
        let former = former.into_iter().skip(used).map(|epoch| (epoch.secret.expose().clone(), epoch.since));
        let kept: Vec<(String, u64)> = former.chain([(make(), now.saturating_add(behind))]).collect();
        let kept = serde_json::to_string(&kept).map_err(|_| FleetStoreError::Row("the sessions"))?;
        schema::state(self.engine(), "sessions", &kept)?;
        self.engine.commit()
    }

    /// Counts that a controller begins or ends, in a place where that was counted so often. A store that was counted less often is an older
    /// copy of what was there, and another history. Returns the count now.
    pub fn begins_or_ends(&mut self, known: u64) -> Result<u64, FleetStoreError> {
        self.engine.begin(engine::Scope::Decides)?;
        let begun = schema::number(self.engine(), "begun")?.map_or(0, i64::unsigned_abs);
        if begun < known {
            schema::is_another(self.engine())?;
        }
        let now = begun.max(known) + 1;
        schema::state(self.engine(), "begun", &now.to_string())?;
        self.engine.commit().map(|()| now)
    }

    /// Writes a copy of the store into an empty file, while controllers use it. A server is copied by its own means.
    pub fn copy_into(&mut self, file: &Path) -> Result<(), FleetStoreError> {
        self.engine.copy_into(file)
    }

    /// Returns whether other controllers may have it as well.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn engine(&mut self) -> &mut dyn Engine {
        &mut *self.engine
    }
}

/// The place of a server. It is looked at when it is opened, since a parser's error would show it with its password.
impl FromStr for StorePlace {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::Server(text.to_owned()))
    }
}

/// A server without what may be secret in its address.
impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server(_) => f.write_str("PostgreSQL"),
        }
    }
}
