//! Reports of jobs, in a separate database on which nothing else depends.
//!
//! Reports are kept in the order in which jobs ended, whatever the clock shows, up to a limit of bytes.
//!
//! Guarantees: a damaged database is set aside and a new one is begun; damage never causes a panic. After an error,
//! the next operation opens the database anew.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use redb::backends::FileBackend;
use redb::{
    AccessGuard, Builder, Database, Error, ReadOnlyTable, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    Table, TableDefinition, WriteTransaction,
};
use serde_json::Value as Json;
use stead_system::folder::{Folder, FolderError};

use crate::sink::{EndedJob, Sink};
use crate::store::{Damage, Repair, Store};

/// When a job ended, in nanoseconds, its id, and its report.
type Value = (i128, &'static str, &'static [u8]);

/// By the number of a report, which grows: when the job ended, in nanoseconds, its id, and its report.
const REPORTS: TableDefinition<'_, u64, Value> = TableDefinition::new("reports");
/// The number of its report, by the id of a job.
const JOBS: TableDefinition<'_, &str, u64> = TableDefinition::new("jobs");

/// How many bytes all reports have together, under [`BYTES`].
const SIZES: TableDefinition<'_, &str, u64> = TableDefinition::new("sizes");
const BYTES: &str = "bytes";

const FILE: &str = "reports.redb";

/// The default is a gigabyte.
const CACHE: usize = 2 << 20;

/// The default limit of all reports together, in bytes. A job in which nothing happened takes a few hundred.
const MOST_BYTES: usize = 64 << 20;

/// A report that was read: its number, when the job ended, its id, and what it says.
type Read = (u64, i128, String, Vec<u8>);

impl Sink for Reports {
    fn take(&self, ended: &EndedJob<'_>) -> Result<(), Box<dyn std::error::Error>> {
        Ok(self.append(ended.at, &ended.job.id, ended.report)?)
    }
}

/// A report as it is kept.
#[derive(Clone, PartialEq, Debug)]
pub struct Stored {
    /// Its number: a later one has a greater one.
    pub number: u64,
    /// When the job ended.
    pub at: Timestamp,
    /// The id of the job.
    pub job: String,
    /// The report of the job.
    pub report: Json,
}

/// The reports of jobs.
pub struct Reports {
    folder: Folder,
    /// `None` after an error.
    database: Mutex<Option<Database>>,
    most_bytes: usize,
}

/// Why reports cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ReportsError {
    /// The file cannot be opened.
    #[error("cannot open the reports")]
    Open(#[from] FolderError),
    /// A report cannot be encoded.
    #[error("cannot encode a report")]
    Encode(#[source] serde_json::Error),
    /// The database failed.
    #[error("cannot use the reports '{}'", path.display())]
    Database {
        /// Its file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<redb::Error>,
    },
    /// A record that was read is not a report.
    #[error("the reports '{}' are damaged; they are set aside when the agent is started", .0.display())]
    Damaged(PathBuf),
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reports").field("directory", &self.folder.path()).finish_non_exhaustive()
    }
}

impl Reports {
    /// Opens the reports of a store, after checking all of them.
    ///
    /// An error of the system is returned by the operations that meet it again.
    pub fn open(store: &Store) -> (Self, Option<Repair>) {
        let folder = store.folder().clone();
        let (database, repair) = match open(&folder) {
            Ok((database, repair)) => (Some(database), repair),
            Err(_) => (None, None),
        };
        (Self { folder, database: Mutex::new(database), most_bytes: MOST_BYTES }, repair)
    }

    /// Sets the limit of all reports together, in bytes.
    #[must_use]
    pub fn with_limit(mut self, most_bytes: usize) -> Self {
        self.most_bytes = most_bytes;
        self
    }

    /// Adds the report of a job, in place of an older one of it. Reports must hold no secrets. The oldest ones are
    /// removed when all together would be too large.
    pub fn append(&self, at: Timestamp, job: &str, report: &Json) -> Result<(), ReportsError> {
        let report = serde_json::to_vec(report).map_err(ReportsError::Encode)?;
        self.with(|database| {
            let write = database.begin_write()?;
            {
                let mut tables = Tables::open(&write)?;
                // Not from 0: a cursor into a database that was damaged is not behind what a new one gets.
                let now = u64::try_from(at.as_millisecond()).unwrap_or_default();
                let number = tables.reports.last()?.map_or(0, |(last, _)| last.value().saturating_add(1)).max(now);
                let former = tables.jobs.insert(job, number)?.map(|former| former.value());
                if let Some(former) = former {
                    let removed = tables.reports.remove(former)?.map_or(0, |entry| entry.value().2.len());
                    tables.bytes -= removed.min(tables.bytes);
                }
                tables.reports.insert(number, (at.as_nanosecond(), job, report.as_slice()))?;
                tables.bytes += report.len();
                // The newest one stays in any case.
                while tables.bytes > self.most_bytes && tables.reports.len()? > 1 {
                    tables.forget_first()?;
                }
                tables.save()?;
            }
            Ok(write.commit()?)
        })
    }

    /// The newest reports, newest first.
    pub fn list(&self, limit: usize) -> Result<Vec<Stored>, ReportsError> {
        self.read(|reports| reports.iter()?.rev().take(limit).map(|entry| Ok(owned(&entry?))).collect())
    }

    /// The reports from this number on, the oldest first. Those that were removed meanwhile are missing.
    pub fn after(&self, number: u64, limit: usize) -> Result<Vec<Stored>, ReportsError> {
        self.read(|reports| reports.range(number..)?.take(limit).map(|entry| Ok(owned(&entry?))).collect())
    }

    /// The number of the newest report; 0 if there is none.
    pub fn newest(&self) -> Result<u64, ReportsError> {
        self.with(|database| match existing(database.begin_read()?.open_table(REPORTS))? {
            Some(reports) => Ok(reports.last()?.map_or(0, |(number, _)| number.value())),
            None => Ok(0),
        })
    }

    fn read(
        &self,
        select: impl FnOnce(&ReadOnlyTable<u64, Value>) -> Result<Vec<Read>, Error>,
    ) -> Result<Vec<Stored>, ReportsError> {
        let found = self.with(|database| match existing(database.begin_read()?.open_table(REPORTS))? {
            Some(reports) => select(&reports),
            None => Ok(Vec::new()),
        })?;
        found.into_iter().map(|read| self.decode(read)).collect()
    }

    /// The ids of all jobs that have a report, in no order that means anything.
    pub fn ids(&self) -> Result<Vec<String>, ReportsError> {
        self.with(|database| {
            let Some(jobs) = existing(database.begin_read()?.open_table(JOBS))? else { return Ok(Vec::new()) };
            jobs.iter()?.map(|entry| Ok(entry?.0.value().to_owned())).collect()
        })
    }

    /// The report of a job.
    pub fn get(&self, job: &str) -> Result<Option<Stored>, ReportsError> {
        let found = self.with(|database| {
            let read = database.begin_read()?;
            let Some(jobs) = existing(read.open_table(JOBS))? else { return Ok(None) };
            let Some(number) = jobs.get(job)?.map(|number| number.value()) else { return Ok(None) };
            let entry = read.open_table(REPORTS)?.get(number)?;
            Ok(entry.map(|entry| {
                let (at, job, report) = entry.value();
                (number, at, job.to_owned(), report.to_vec())
            }))
        })?;
        found.map(|read| self.decode(read)).transpose()
    }

    /// Removes the reports of jobs that ended before this instant, from the first one to the first that did not.
    ///
    /// Assumptions: the clock is right. One that is ahead for a moment would have all of them removed.
    pub fn prune(&self, older_than: Timestamp) -> Result<(), ReportsError> {
        let first = older_than.as_nanosecond();
        self.with(|database| {
            let write = database.begin_write()?;
            {
                let mut tables = Tables::open(&write)?;
                while tables.reports.first()?.is_some_and(|(_, entry)| entry.value().0 < first) {
                    tables.forget_first()?;
                }
                tables.save()?;
            }
            Ok(write.commit()?)
        })
    }

    fn decode(&self, (number, at, job, report): Read) -> Result<Stored, ReportsError> {
        let decoded = Timestamp::from_nanosecond(at).ok().zip(serde_json::from_slice(&report).ok());
        let (at, report) = decoded.ok_or_else(|| ReportsError::Damaged(self.folder.path().join(FILE)))?;
        Ok(Stored { number, at, job, report })
    }

    /// Works on the database, which is opened if it is not.
    fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, Error>) -> Result<T, ReportsError> {
        let mut open_database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let database = match open_database.take() {
            Some(database) => database,
            None => self.reopen()?,
        };
        let path = self.folder.path().join(FILE);
        // A database that others changed since it was checked may panic.
        let failure = match contained(|| work(&database)) {
            Some(Ok(done)) => {
                *open_database = Some(database);
                return Ok(done);
            }
            Some(Err(source)) => ReportsError::Database { path, source: Box::new(source) },
            None => ReportsError::Damaged(path),
        };
        contained(|| drop(database));
        Err(failure)
    }

    fn reopen(&self) -> Result<Database, ReportsError> {
        let (database, repair) = open(&self.folder)?;
        if let Some(repair) = repair {
            tracing::warn!("{repair}");
        }
        Ok(database)
    }
}

fn owned((number, entry): &(AccessGuard<'_, u64>, AccessGuard<'_, Value>)) -> Read {
    let (at, job, report) = entry.value();
    (number.value(), at, job.to_owned(), report.to_vec())
}

/// The tables while they are written.
struct Tables<'t> {
    reports: Table<'t, u64, Value>,
    jobs: Table<'t, &'static str, u64>,
    sizes: Table<'t, &'static str, u64>,
    /// How many bytes all reports have.
    bytes: usize,
}

impl<'t> Tables<'t> {
    fn open(write: &'t WriteTransaction) -> Result<Self, Error> {
        let sizes = write.open_table(SIZES)?;
        let bytes = sizes.get(BYTES)?.map_or(0, |bytes| usize::try_from(bytes.value()).unwrap_or(usize::MAX));
        Ok(Self { reports: write.open_table(REPORTS)?, jobs: write.open_table(JOBS)?, sizes, bytes })
    }

    fn forget_first(&mut self) -> Result<(), Error> {
        if let Some((_, entry)) = self.reports.pop_first()? {
            let (_, job, report) = entry.value();
            self.bytes -= report.len().min(self.bytes);
            self.jobs.remove(job)?;
        }
        Ok(())
    }

    fn save(&mut self) -> Result<(), Error> {
        self.sizes.insert(BYTES, self.bytes as u64)?;
        Ok(())
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        let database = self.database.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        contained(|| drop(database));
    }
}

/// `None` when the database panicked.
fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// A table, if anything was written to it.
fn existing<T>(table: Result<T, redb::TableError>) -> Result<Option<T>, Error> {
    match table {
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        table => Ok(Some(table?)),
    }
}

/// Opens the database. One that is damaged is set aside, and a new one is begun.
fn open(folder: &Folder) -> Result<(Database, Option<Repair>), ReportsError> {
    if let Some(database) = open_checked(folder)? {
        return Ok((database, None));
    }
    let set_aside = folder.set_aside(FILE)?.into_iter().collect();
    folder.remove(FILE)?;
    let repair = Repair { damage: Damage::Reports, set_aside };
    let path = folder.path().join(FILE);
    Ok((open_checked(folder)?.ok_or(ReportsError::Damaged(path))?, Some(repair)))
}

/// `None` when it is damaged.
fn open_checked(folder: &Folder) -> Result<Option<Database>, ReportsError> {
    let file = folder.open(FILE)?;
    let opened = contained(move || {
        let backend = FileBackend::new(file)?;
        Builder::new().set_cache_size(CACHE).set_check_integrity_on_open(true).create_with_backend(backend)
    });
    match opened.map(|opened| opened.map_err(Error::from)) {
        Some(Ok(database)) => Ok(Some(database)),
        Some(Err(source)) if is_of_the_system(&source) => {
            Err(ReportsError::Database { path: folder.path().join(FILE), source: Box::new(source) })
        }
        Some(Err(_)) | None => Ok(None),
    }
}

fn is_of_the_system(error: &Error) -> bool {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    match error {
        Error::Io(error) => !matches!(error.kind(), InvalidData | UnexpectedEof),
        error => matches!(error, Error::DatabaseAlreadyOpen | Error::PreviousIo),
    }
}
