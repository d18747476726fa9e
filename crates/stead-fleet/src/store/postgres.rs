//! The store of several controllers: a server that speaks the protocol of PostgreSQL.

use std::collections::BTreeSet;
use std::str::FromStr as _;
use std::time::{Duration, Instant};

use postgres::config::SslMode;
use postgres::types::{ToSql, Type};
use postgres::{Client, Config, NoTls};

use super::engine::{Answer, Cell, Column, Engine, FleetStoreError, Insertion, Param, Row, Scope, failed};

/// The channel of hints, and the number of the lock that is held by what decides.
const CHANNEL: &str = "stead_fleet";
const LOCK: &str = "SELECT pg_advisory_xact_lock(7311)";
/// How long a connection may take to be made.
const PATIENCE: Duration = Duration::from_secs(10);
/// Settings without which a report that was acknowledged could be lost.
const DURABLE: [(&str, &[&str]); 2] = [("fsync", &["on"]), ("synchronous_commit", &["on", "remote_apply"])];

/// How long an act waits for standbys, and how often it is looked for.
const STANDBYS: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);
/// The standbys that follow and do not have a place of the log on their disks, with those that did not answer yet since they
/// connected. A program that only copies the log answers without a place up to which it applied the log, and is none.
const BEHIND: &str = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'
    AND (reply_time IS NULL OR replay_lsn IS NOT NULL AND flush_lsn < $1::text::pg_lsn)";

/// A connection to the server.
pub(crate) struct Postgres {
    client: Client,
    /// What the transaction is about that is under way.
    scope: Scope,
}

/// A connection that hears when others change something.
pub(crate) struct Listener(Client);

fn connected(place: &str) -> Answer<Client> {
    let mut config = Config::from_str(place).map_err(|_| {
        let form = "it is not an address of PostgreSQL, as 'host=… dbname=…' or 'postgresql://…'";
        FleetStoreError::Database(form.to_owned())
    })?;
    // A server that is cut off is noticed, whatever is waited for.
    config.keepalives_idle(PATIENCE).tcp_user_timeout(PATIENCE);
    if config.get_ssl_mode() == SslMode::Require {
        return Err(FleetStoreError::Database(
            "TLS to PostgreSQL is not supported: use a socket, or a tunnel".to_owned(),
        ));
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(PATIENCE);
    }
    config.application_name("stead-fleet").connect(NoTls).map_err(shown)
}

/// The error with what the server said, which its own text leaves out.
#[expect(clippy::needless_pass_by_value, reason = "it is given to `map_err`")]
fn shown(error: postgres::Error) -> FleetStoreError {
    match error.as_db_error() {
        Some(said) => FleetStoreError::Database(format!("{} ({})", said.message(), said.code().code())),
        None => failed(match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        }),
    }
}

impl Postgres {
    /// Connects, and refuses a server that does not keep what it acknowledges.
    pub(crate) fn open(place: &str) -> Answer<Self> {
        let mut this = Self { client: connected(place)?, scope: Scope::Appends };
        for (setting, good) in DURABLE {
            let rows = this.rows("SELECT current_setting($1)", &[Param::Text(setting)])?;
            let value = rows.first().ok_or(FleetStoreError::Row("settings"))?.text(0, "settings")?;
            if !good.contains(&value) {
                return Err(FleetStoreError::Forgetful(format!("its setting '{setting}' is '{value}'")));
            }
        }
        Ok(this)
    }

    /// Waits until all standbys that follow have what was committed on their disks. An account that may not see them waits for none.
    fn await_standbys(&mut self) -> Answer<()> {
        let rows = self.rows("SELECT pg_current_wal_flush_lsn()::text", &[])?;
        let place = rows.first().ok_or(FleetStoreError::Row("the log"))?.text(0, "the log")?.to_owned();
        let until = Instant::now() + STANDBYS;
        loop {
            let behind = self.rows(BEHIND, &[Param::Text(&place)])?;
            if behind.first().ok_or(FleetStoreError::Row("standbys"))?.int(0, "standbys")? == 0 {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(FleetStoreError::Behind);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Listener {
    /// Listens on a connection of its own.
    pub(crate) fn open(place: &str) -> Answer<Self> {
        let mut client = connected(place)?;
        client.batch_execute(&format!("LISTEN {CHANNEL}")).map_err(shown)?;
        Ok(Self(client))
    }

    /// Waits for a hint. Returns false if none came in time.
    pub(crate) fn wait(&mut self, at_most: Duration) -> Answer<bool> {
        use postgres::fallible_iterator::FallibleIterator as _;
        let mut notifications = self.0.notifications();
        let came = notifications.timeout_iter(at_most).next().map_err(shown)?.is_some();
        drop(notifications);
        if !came && self.0.is_closed() {
            return Err(FleetStoreError::Database("the connection ended".to_owned()));
        }
        Ok(came)
    }
}

impl Param<'_> {
    fn typed(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Int(value) => (value, Type::INT8),
            Self::Text(value) => (value, Type::TEXT),
            Self::Bytes(value) => (value, Type::BYTEA),
        }
    }
}

impl Column<'_> {
    fn typed(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Int(values) => (values, Type::INT8_ARRAY),
            Self::Text(values) => (values, Type::TEXT_ARRAY),
            Self::Bytes(values) => (values, Type::BYTEA_ARRAY),
        }
    }
}

impl Engine for Postgres {
    fn bytes_type(&self) -> &'static str {
        "BYTEA"
    }

    fn begin(&mut self, scope: Scope) -> Answer<()> {
        self.batch("BEGIN ISOLATION LEVEL READ COMMITTED")?;
        self.scope = scope;
        // Each statement behind the lock sees what the one before had committed when it let go.
        if scope >= Scope::Decides { self.batch(LOCK) } else { Ok(()) }
    }

    fn commit(&mut self) -> Answer<()> {
        self.batch("COMMIT")?;
        if self.scope == Scope::Acts { self.await_standbys() } else { Ok(()) }
    }

    fn roll_back(&mut self) -> Answer<()> {
        self.batch("ROLLBACK")
    }

    fn batch(&mut self, statements: &str) -> Answer<()> {
        self.client.batch_execute(statements).map_err(shown)
    }

    fn execute(&mut self, statement: &str, values: &[Param<'_>]) -> Answer<u64> {
        let values: Vec<_> = values.iter().map(Param::typed).collect();
        self.client.execute_typed(statement, &values).map_err(shown)
    }

    fn rows(&mut self, statement: &str, values: &[Param<'_>]) -> Answer<Vec<Row>> {
        let values: Vec<_> = values.iter().map(Param::typed).collect();
        self.client.query_typed(statement, &values).map_err(shown)?.iter().map(row).collect()
    }

    fn insert(&mut self, insertion: &Insertion<'_>) -> Answer<Vec<bool>> {
        let values: Vec<_> = insertion.columns.iter().map(|(_, column)| column.typed()).collect();
        let arrays = values.iter().enumerate().map(|(at, (_, of))| {
            let element = match *of {
                Type::INT8_ARRAY => "int8",
                Type::BYTEA_ARRAY => "bytea",
                _ => "text",
            };
            format!("${}::{element}[]", at + 1)
        });
        let arrays = arrays.collect::<Vec<_>>().join(", ");
        let Insertion { table, columns, conflict, key } = insertion;
        let (names, key_names) = (insertion.names(columns.len()), insertion.names(*key));
        let statement =
            format!("INSERT INTO {table}({names}) SELECT * FROM unnest({arrays}) {conflict} RETURNING {key_names}");
        let written = self.client.query_typed(&statement, &values).map_err(shown)?;
        let mut written = written.iter().map(|row| self::row(row)?.ints("a key")).collect::<Answer<BTreeSet<_>>>()?;
        let key_of = |row| columns.iter().take(*key).filter_map(move |(_, column)| column.at(row));
        let mut is_written = |row| {
            let key = key_of(row).filter_map(|param| if let Param::Int(value) = param { Some(value) } else { None });
            written.remove(&key.collect::<Vec<i64>>())
        };
        Ok((0..insertion.rows()).map(&mut is_written).collect())
    }

    fn copy_into(&mut self, _: &std::path::Path) -> Answer<()> {
        Err(FleetStoreError::Database("a PostgreSQL is copied by its own means, such as 'pg_basebackup'".to_owned()))
    }

    fn now(&mut self) -> Answer<i64> {
        let now = self.rows("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8", &[])?;
        now.first().ok_or(FleetStoreError::Row("now"))?.int(0, "now")
    }

    fn history(&mut self) -> Answer<String> {
        // A standby that is promoted begins another timeline, which is in the name of each file of its log.
        let history = "SELECT (SELECT system_identifier::text FROM pg_control_system())
            || '-' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)";
        let rows = self.rows(history, &[])?;
        Ok(rows.first().ok_or(FleetStoreError::Row("history"))?.text(0, "history")?.to_owned())
    }

    fn hint(&mut self) -> Answer<()> {
        self.batch(&format!("NOTIFY {CHANNEL}"))
    }
}

fn row(row: &postgres::Row) -> Answer<Row> {
    let cell = |(at, column): (usize, &postgres::Column)| {
        let null = |_| FleetStoreError::Row("a value");
        Ok(match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(at).map_err(null)?.map_or(Cell::Null, Cell::Int),
            Type::TEXT => row.try_get::<_, Option<String>>(at).map_err(null)?.map_or(Cell::Null, Cell::Text),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at).map_err(null)?.map_or(Cell::Null, Cell::Bytes),
            _ => return Err(FleetStoreError::Row("a value")),
        })
    };
    row.columns().iter().enumerate().map(cell).collect::<Answer<_>>().map(Row)
}
