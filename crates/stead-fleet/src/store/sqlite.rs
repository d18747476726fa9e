//! The store of one controller: one file.

use std::path::Path;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, params_from_iter};
use stead_system::fs::Identity;

use super::engine::{Answer, Cell, Engine, FleetStoreError, Insertion, Param, Row, Scope, failed};

/// The log is written into the file by [`Sqlite::checkpoint`] alone: a commit that did it would keep reports waiting.
const SETTINGS: &str = "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -2048; PRAGMA trusted_schema = OFF;";
/// How long a connection waits for another one of this process.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest log that is left as it is, in pages. A longer one is written from its beginning again, unless readers or a commit are in the
/// way for a moment: who commits waits for that. To cut it takes longer, and what it once took it may take again.
const LONG_LOG: i64 = 16_384;
const MOMENT: Duration = Duration::from_millis(20);
/// A log that is longer than this is waited for and cut: somebody has read for very long.
const VERY_LONG_LOG: i64 = 16 * LONG_LOG;

/// True if somebody was in the way, how many pages the log has, and how many of them are in the file.
type Checkpointed = (bool, i64, i64);

/// A connection to the file.
pub(crate) struct Sqlite {
    db: Connection,
    /// The device and the inode: a copy has others.
    file: String,
}

impl Sqlite {
    /// Opens the file, or begins it.
    pub(crate) fn open(path: &Path) -> Answer<Self> {
        let db = Connection::open(path).map_err(failed)?;
        db.busy_timeout(PATIENCE).map_err(failed)?;
        db.execute_batch(SETTINGS).map_err(failed)?;
        let status = std::fs::metadata(path).map_err(failed)?;
        let (device, inode) = Identity::of(&status).inode();
        Ok(Self { db, file: format!("{device}-{inode}") })
    }

    /// Writes the log into the file, as far as readers allow it.
    pub(crate) fn checkpoint(&self) -> Answer<()> {
        self.checkpointed(LONG_LOG, VERY_LONG_LOG).map(drop)
    }

    /// Writes the log into the file, and returns what SQLite says of it.
    fn checkpointed(&self, long: i64, very_long: i64) -> Answer<Checkpointed> {
        let run = |how: &str, patience| {
            self.db.busy_timeout(patience).map_err(failed)?;
            let statement = format!("PRAGMA wal_checkpoint({how})");
            let said = self.db.query_row(&statement, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
            said.map_err(failed)
        };
        let said: Checkpointed = run("PASSIVE", MOMENT)?;
        if said.1 > very_long {
            run("TRUNCATE", PATIENCE)
        } else if said.1 > long {
            run("RESTART", MOMENT)
        } else {
            Ok(said)
        }
    }
}

impl rusqlite::ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(rusqlite::types::ToSqlOutput::Borrowed(match self {
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

impl Engine for Sqlite {
    fn bytes_type(&self) -> &'static str {
        "BLOB"
    }

    fn begin(&mut self, _: Scope) -> Answer<()> {
        // There is one writer at a time whatever it is about.
        self.batch("BEGIN IMMEDIATE")
    }

    fn commit(&mut self) -> Answer<()> {
        self.batch("COMMIT")
    }

    fn roll_back(&mut self) -> Answer<()> {
        self.batch("ROLLBACK")
    }

    fn batch(&mut self, statements: &str) -> Answer<()> {
        self.db.execute_batch(statements).map_err(failed)
    }

    fn execute(&mut self, statement: &str, values: &[Param<'_>]) -> Answer<u64> {
        let mut statement = self.db.prepare_cached(&numbered(statement)).map_err(failed)?;
        let changed = statement.execute(params_from_iter(values)).map_err(failed)?;
        u64::try_from(changed).map_err(failed)
    }

    fn rows(&mut self, statement: &str, values: &[Param<'_>]) -> Answer<Vec<Row>> {
        let mut statement = self.db.prepare_cached(&numbered(statement)).map_err(failed)?;
        let width = statement.column_count();
        let rows = statement.query_map(params_from_iter(values), |row| {
            (0..width).map(|column| row.get_ref(column).map(cell)).collect::<Result<Vec<_>, _>>()
        });
        rows.map_err(failed)?
            .map(|row| row.map_err(failed)?.into_iter().collect::<Option<_>>().map(Row).ok_or(ODD))
            .collect()
    }

    fn insert(&mut self, insertion: &Insertion<'_>) -> Answer<Vec<bool>> {
        let marks: Vec<String> = (1..=insertion.columns.len()).map(|number| format!("?{number}")).collect();
        let Insertion { table, columns, conflict, .. } = insertion;
        let (names, marks) = (insertion.names(columns.len()), marks.join(", "));
        let statement = format!("INSERT INTO {table}({names}) VALUES({marks}) {conflict}");
        let mut statement = self.db.prepare_cached(&statement).map_err(failed)?;
        let mut write = |row| {
            let values = columns.iter().filter_map(|(_, column)| column.at(row));
            statement.execute(params_from_iter(values)).map(|written| written > 0).map_err(failed)
        };
        (0..insertion.rows()).map(&mut write).collect()
    }

    fn copy_into(&mut self, file: &Path) -> Answer<()> {
        let place = file.to_str().ok_or_else(|| failed("the path of the copy is not UTF-8"))?;
        self.execute("VACUUM INTO $1", &[Param::Text(place)])?;
        // Wherever it is put, in the place of the first one as well, it is another history.
        let copy = Connection::open(file).map_err(failed)?;
        copy.execute("UPDATE meta SET value = '' WHERE name = 'history'", []).map_err(failed)?;
        copy.close().map_err(|(_, error)| failed(error))?;
        std::fs::File::open(file).and_then(|copy| copy.sync_all()).map_err(failed)
    }

    fn now(&mut self) -> Answer<i64> {
        let now = self.rows("SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)", &[])?;
        now.first().ok_or(ODD)?.int(0, "now")
    }

    fn history(&mut self) -> Answer<String> {
        Ok(self.file.clone())
    }

    fn hint(&mut self) -> Answer<()> {
        // Nobody else is there.
        Ok(())
    }
}

/// `$2` is a name to SQLite, and counts by where it appears; `?2` is the second.
fn numbered(statement: &str) -> String {
    statement.replace('$', "?")
}

const ODD: FleetStoreError = FleetStoreError::Row("a value");

/// `None` for what no table here has.
fn cell(value: ValueRef<'_>) -> Option<Cell> {
    Some(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Int(value),
        ValueRef::Text(text) => Cell::Text(std::str::from_utf8(text).ok()?.to_owned()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a log, the connection that writes the log into it, and one that writes and waits for nobody.
    struct Log {
        folder: tempfile::TempDir,
        keeper: Sqlite,
        writer: Connection,
    }

    impl Log {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let keeper = Sqlite::open(&folder.path().join("fleet.db")).unwrap();
            let writer = Sqlite::open(&folder.path().join("fleet.db")).unwrap().db;
            writer.busy_timeout(Duration::ZERO).unwrap();
            writer.execute_batch("CREATE TABLE t(body BLOB NOT NULL)").unwrap();
            Self { folder, keeper, writer }
        }

        /// Commits a row of so many pages.
        fn write(&self, pages: usize) {
            self.writer.execute("INSERT INTO t VALUES($1)", [vec![b'x'; pages * 8192]]).unwrap();
        }

        /// A connection that reads what is there now for as long as it is kept.
        fn reader(&self) -> Connection {
            let reader = Connection::open(self.folder.path().join("fleet.db")).unwrap();
            reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
            reader
        }

        fn bytes(&self) -> u64 {
            std::fs::metadata(self.folder.path().join("fleet.db-wal")).unwrap().len()
        }

        /// How long the connection that writes the log into the file waits for others.
        fn patience(&self) -> Duration {
            let milliseconds: u32 = self.keeper.db.query_row("PRAGMA busy_timeout", [], |row| row.get(0)).unwrap();
            Duration::from_millis(milliseconds.into())
        }
    }

    #[test]
    fn a_long_log_is_written_from_its_beginning_again_and_is_not_cut() {
        let log = Log::new();
        log.write(20);
        let bytes = log.bytes();
        let said = log.keeper.checkpointed(10, 1000).unwrap();
        assert!(!said.0 && said.1 > 20 && said.2 == said.1, "{said:?}");
        log.write(1);
        let (_, again, _) = log.keeper.checkpointed(1000, 1000).unwrap();
        assert!(again < said.1, "{again} pages behind {said:?}");
        assert_eq!(log.bytes(), bytes, "what it once took");
    }

    #[test]
    fn whoever_reads_for_long_is_waited_for_a_moment_and_keeps_nobody_from_writing() {
        let log = Log::new();
        log.write(20);
        // All of what the first reads is in the log: its pages go into the file, and the log goes on.
        let _newest = log.reader();
        let said = log.keeper.checkpointed(10, 1000).unwrap();
        assert!(said.0 && said.2 == said.1, "it waits for who reads: {said:?}");
        assert_eq!(log.patience(), MOMENT);
        log.write(20);
        let later = log.keeper.checkpointed(10, 1000).unwrap();
        assert_eq!((later.0, later.2), (true, said.1), "what is behind it stays in the log: {later:?}");
        assert!(later.1 > said.1 + 20, "{later:?} behind {said:?}");
        assert_eq!(log.patience(), MOMENT);
        log.write(1);
    }

    #[test]
    fn a_very_long_log_is_waited_for_and_cut() {
        let log = Log::new();
        log.write(20);
        assert_eq!(log.keeper.checkpointed(5, 10).unwrap(), (false, 0, 0));
        assert_eq!((log.bytes(), log.patience()), (0, PATIENCE));
        log.write(1);
        let short = log.keeper.checkpointed(10, 10).unwrap();
        assert!(!short.0 && short.1 > 0 && short.1 == short.2, "{short:?}");
    }
}
