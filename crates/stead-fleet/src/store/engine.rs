//! What the store needs of a database. The statements are the same for each: the subset of SQL that they share.

use std::fmt;

use stead_hosts::MachineName;

/// The reason why a database did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum FleetStoreError {
    /// The database is not there, refuses, or ended while it worked. What was to be written may be there or not.
    #[error("the database: {0}")]
    Database(String),
    /// An act of an operator is stored, and a standby that follows does not have it yet.
    #[error("the act is stored, but a standby does not have it yet; 'stead fleet audit list' shows it")]
    Behind,
    /// It was written by a newer version.
    #[error("the database has version {found}, and this program knows {known}: use a newer one")]
    Newer {
        /// The version of the database.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// It would lose what it says that it has.
    #[error("the database does not keep what it acknowledges: {0}")]
    Forgetful(String),
    /// A row is not as this program writes it.
    #[error("a row of '{0}' is not valid")]
    Row(&'static str),
}

pub(crate) type Answer<T> = Result<T, FleetStoreError>;

/// A value that a statement is given: `$1` is the first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Param<'v> {
    Int(i64),
    Text(&'v str),
    Bytes(&'v [u8]),
}

/// A value that a statement returns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// The values of many rows in one column.
pub(crate) enum Column<'v> {
    Int(Vec<i64>),
    Text(Vec<&'v str>),
    Bytes(Vec<&'v [u8]>),
}

/// An insertion of many rows; those whose key is there already are left as they are.
pub(crate) struct Insertion<'v> {
    pub(crate) table: &'static str,
    pub(crate) columns: Vec<(&'static str, Column<'v>)>,
    /// What is done where the key is there.
    pub(crate) conflict: &'static str,
    /// How many of the columns, from the first on, are the key: numbers.
    pub(crate) key: usize,
}

impl Insertion<'_> {
    /// The names of the columns, or of the first of them.
    pub(crate) fn names(&self, count: usize) -> String {
        self.columns.iter().take(count).map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| match column {
            Column::Int(values) => values.len(),
            Column::Text(values) => values.len(),
            Column::Bytes(values) => values.len(),
        })
    }
}

impl Column<'_> {
    /// The value of a row.
    pub(crate) fn at(&self, row: usize) -> Option<Param<'_>> {
        match self {
            Self::Int(values) => values.get(row).map(|value| Param::Int(*value)),
            Self::Text(values) => values.get(row).map(|value| Param::Text(value)),
            Self::Bytes(values) => values.get(row).map(|value| Param::Bytes(value)),
        }
    }
}

/// How much of the database a transaction is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Scope {
    /// It appends rows that nobody else decides by.
    Appends,
    /// It decides by what it reads: among all controllers there is one at a time.
    Decides,
    /// It is an act of an operator besides, which no standby may lack that is promoted: its number would be given twice.
    Acts,
}

/// A connection to a database.
pub(crate) trait Engine: Send {
    /// The word for bytes in the definition of a table.
    fn bytes_type(&self) -> &'static str;
    /// Begins a transaction. What is committed behind it is durable when [`Engine::commit`] returns.
    fn begin(&mut self, scope: Scope) -> Answer<()>;
    /// Ends the transaction. It is written also if the error is [`FleetStoreError::Behind`].
    fn commit(&mut self) -> Answer<()>;
    /// Ends the transaction as if it had not been.
    fn roll_back(&mut self) -> Answer<()>;
    /// Runs statements without values.
    fn batch(&mut self, statements: &str) -> Answer<()>;
    /// Runs a statement, and returns how many rows it changed.
    fn execute(&mut self, statement: &str, values: &[Param<'_>]) -> Answer<u64>;
    /// Runs a statement, and returns its rows.
    fn rows(&mut self, statement: &str, values: &[Param<'_>]) -> Answer<Vec<Row>>;
    /// Inserts many rows, and returns whether each was written. Of two with one key the first is.
    fn insert(&mut self, insertion: &Insertion<'_>) -> Answer<Vec<bool>>;
    /// Writes a copy of the whole database into an empty file.
    fn copy_into(&mut self, file: &std::path::Path) -> Answer<()>;
    /// The time by the clock of the database, in milliseconds.
    fn now(&mut self) -> Answer<i64>;
    /// A text that is another one when the database may have forgotten what it acknowledged: it is a copy, or a standby that was
    /// promoted.
    fn history(&mut self) -> Answer<String>;
    /// Has the other controllers hear of a change when the transaction is committed.
    fn hint(&mut self) -> Answer<()>;
}

/// A row that a statement returned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row(pub(crate) Vec<Cell>);

impl Row {
    pub(crate) fn int(&self, column: usize, table: &'static str) -> Answer<i64> {
        match self.0.get(column) {
            Some(Cell::Int(value)) => Ok(*value),
            _ => Err(FleetStoreError::Row(table)),
        }
    }

    /// The values of a row that has only numbers.
    pub(crate) fn ints(&self, table: &'static str) -> Answer<Vec<i64>> {
        (0..self.0.len()).map(|column| self.int(column, table)).collect()
    }

    pub(crate) fn text(&self, column: usize, table: &'static str) -> Answer<&str> {
        match self.0.get(column) {
            Some(Cell::Text(value)) => Ok(value),
            _ => Err(FleetStoreError::Row(table)),
        }
    }

    pub(crate) fn parsed<T: std::str::FromStr>(&self, column: usize, table: &'static str) -> Answer<T> {
        self.text(column, table)?.parse().map_err(|_| FleetStoreError::Row(table))
    }

    /// The name of a machine or an operator.
    pub(crate) fn name(&self, column: usize, table: &'static str) -> Answer<MachineName> {
        MachineName::parse(self.text(column, table)?).map_err(|_| FleetStoreError::Row(table))
    }

    /// A count, a number or a time, of which none is negative.
    pub(crate) fn count(&self, column: usize, table: &'static str) -> Answer<u64> {
        self.int(column, table)?.try_into().map_err(|_| FleetStoreError::Row(table))
    }

    pub(crate) fn bytes(self, column: usize, table: &'static str) -> Answer<Vec<u8>> {
        match self.0.into_iter().nth(column) {
            Some(Cell::Bytes(value)) => Ok(value),
            _ => Err(FleetStoreError::Row(table)),
        }
    }
}

/// The error of a database as it is shown.
pub(crate) fn failed(error: impl fmt::Display) -> FleetStoreError {
    FleetStoreError::Database(error.to_string())
}
