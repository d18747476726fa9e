//! The tables, as steps from one version to the next. A step that was released is never changed.

use super::engine::{Answer, Engine, FleetStoreError, Param, Scope};

/// Each step makes the version after its place in this list. `BYTES` is the word of the database for bytes.
const STEPS: &[&str] = &[
    "
    CREATE TABLE machines(
        id BIGINT PRIMARY KEY, name TEXT NOT NULL, key TEXT NOT NULL UNIQUE, state TEXT NOT NULL, labels TEXT NOT NULL,
        joined BIGINT NOT NULL, channel TEXT NOT NULL, number BIGINT NOT NULL, held_until BIGINT NOT NULL,
        held_why TEXT NOT NULL, revision BIGINT NOT NULL);
    CREATE INDEX machines_by_name ON machines(name);
    CREATE INDEX machines_by_revision ON machines(revision);
    CREATE TABLE heard(machine BIGINT PRIMARY KEY, number BIGINT NOT NULL, at BIGINT NOT NULL, said TEXT NOT NULL);
    CREATE TABLE tokens(
        digest TEXT PRIMARY KEY, uses BIGINT NOT NULL, expires BIGINT NOT NULL, labels TEXT NOT NULL);
    CREATE TABLE operators(name TEXT PRIMARY KEY, role TEXT NOT NULL, digest TEXT NOT NULL UNIQUE);
    CREATE TABLE blobs(digest TEXT PRIMARY KEY, body BYTES NOT NULL, stored BIGINT NOT NULL);
    CREATE TABLE statements(
        chain TEXT NOT NULL, number BIGINT NOT NULL, digest TEXT NOT NULL, bundle TEXT NOT NULL, body BYTES NOT NULL,
        PRIMARY KEY(chain, number));
    CREATE TABLE reports(
        machine BIGINT NOT NULL, number BIGINT NOT NULL, received BIGINT NOT NULL, body BYTES NOT NULL,
        PRIMARY KEY(machine, number));
    CREATE INDEX reports_by_time ON reports(received);
    CREATE TABLE acts(
        number BIGINT PRIMARY KEY, parent TEXT NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL);
    CREATE TABLE leases(name TEXT PRIMARY KEY, owner TEXT NOT NULL, epoch BIGINT NOT NULL, until BIGINT NOT NULL);
",
    "
    CREATE TABLE forks(machine BIGINT PRIMARY KEY, number BIGINT NOT NULL, seen BIGINT NOT NULL);
",
    "
    CREATE TABLE envelopes(
        channel TEXT NOT NULL, number BIGINT NOT NULL, machine TEXT NOT NULL, body BYTES NOT NULL,
        PRIMARY KEY(channel, number, machine));
    ALTER TABLE machines ADD COLUMN sealed BIGINT NOT NULL DEFAULT 0;
",
    "
    ALTER TABLE machines ADD COLUMN asked BIGINT NOT NULL DEFAULT 0;
    CREATE TABLE invitations(
        digest TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, expires BIGINT NOT NULL, token TEXT NOT NULL);
",
    "
    ALTER TABLE reports RENAME COLUMN body TO packed;
    ALTER TABLE reports ADD COLUMN form SMALLINT NOT NULL DEFAULT 0;
",
];

/// Brings the tables to the version of this program, and the epoch to the history of the database.
pub(crate) fn bring_up(engine: &mut dyn Engine) -> Answer<()> {
    engine.begin(Scope::Decides)?;
    let outcome = steps(engine).and_then(|()| epoch(engine));
    match outcome {
        Ok(()) => engine.commit(),
        Err(error) => engine.roll_back().and(Err(error)),
    }
}

fn steps(engine: &mut dyn Engine) -> Answer<()> {
    engine.batch("CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT NOT NULL)")?;
    let found = number(engine, "version")?.unwrap_or_default();
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(FleetStoreError::Newer { found, known });
    }
    let done = usize::try_from(found).map_err(|_| FleetStoreError::Row("meta"))?;
    for step in STEPS.iter().skip(done) {
        let step = step.replace("BYTES", engine.bytes_type());
        engine.batch(&step)?;
    }
    if found == known { Ok(()) } else { state(engine, "version", &known.to_string()) }
}

/// The epoch begins anew with each history: machines then send what may have been forgotten. Its number is drawn, so that no other history
/// of the fleet has it: neither a store that was begun anew, nor the same copy once more. It is above the former one, since numbers of
/// machines begin behind it: below, a machine had that of another one which the copy lacks and controllers still know.
fn epoch(engine: &mut dyn Engine) -> Answer<()> {
    let history = engine.history()?;
    let known = stated(engine, "history")?;
    if known.as_deref() == Some(&*history) {
        return Ok(());
    }
    // Numbers of machines have room for epochs of 31 bits: of a first one of 30, and of a thousand histories behind it.
    let drawn = i64::from(u32::from_ne_bytes(crate::random()));
    let epoch = number(engine, "epoch")?.map_or(drawn >> 2, |former| former + (drawn >> 12)) + 1;
    state(engine, "history", &history)?;
    state(engine, "epoch", &epoch.to_string())
}

/// Takes in that the store is another history than before, such as an older copy of itself in the same file.
pub(crate) fn is_another(engine: &mut dyn Engine) -> Answer<()> {
    state(engine, "history", "")?;
    epoch(engine)
}

/// The value of a name, if one was stated.
pub(crate) fn stated(engine: &mut dyn Engine, name: &str) -> Answer<Option<String>> {
    let rows = engine.rows("SELECT value FROM meta WHERE name = $1", &[Param::Text(name)])?;
    rows.first().map(|row| row.text(0, "meta").map(str::to_owned)).transpose()
}

/// The number of a name, if one was stated.
pub(crate) fn number(engine: &mut dyn Engine, name: &str) -> Answer<Option<i64>> {
    let value = stated(engine, name)?;
    value.map(|value| value.parse().map_err(|_| FleetStoreError::Row("meta"))).transpose()
}

/// States the value of a name.
pub(crate) fn state(engine: &mut dyn Engine, name: &str, value: &str) -> Answer<()> {
    let statement =
        "INSERT INTO meta(name, value) VALUES($1, $2) ON CONFLICT(name) DO UPDATE SET value = excluded.value";
    engine.execute(statement, &[Param::Text(name), Param::Text(value)]).map(drop)
}
