//! Measures the space that reports take on the disk, and how long one waits while old ones go: real reports (`corpus/fleet/reports`) as ten thousand machines
//! send them, of which each changes something five times a day.
//!
//! `cargo build --release -p stead-fleet --example keeping --bin stead-fleet`, and then `target/release/examples/keeping`
//!
//! - `bytes` prints the bytes of each sample: as it comes, and as a row has it.
//! - `month [MACHINES] [DAYS] [postgres]` prints the bytes of a day and of a month on SQLite or PostgreSQL, as the database counts them.
//!   With a file it goes on with a controller, and prints how long a report waits while it clears a day.
//! - `train FILE` makes a dictionary of the samples that are there for it. It is a new one: those that were shipped are never changed.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "what a measurement needs and does not get ends it")]
#![expect(clippy::expect_used, clippy::doc_markdown, reason = "what it shares with tests has them")]

#[path = "../tests/support/cluster.rs"]
mod cluster;
#[path = "../tests/sim/random.rs"]
mod random;
#[path = "../tests/support/reports.rs"]
mod reports;
#[path = "support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use random::Random;
use reports::RealReports;
use rusqlite::Connection;
use stead_fleet::store::{Chain, FleetStore, MachineId, SignedStatement, StorePlace, StoreWrite, Unit};
use stead_protocol::SentReport;
use stead_release::{Digest, MachineKeys};
use support::{Controller, Machine, enrolled, keys, load, ms, name, shown, start};

const DAY: u64 = 86_400_000;
/// How many days a controller keeps reports.
const KEPT: u64 = 30;
/// How often a machine changes something in a day.
const CHANGES: usize = 5;
/// How many reports share a commit.
const TOGETHER: usize = 100;
/// How large a dictionary is, and how many reports of each sample it is made of.
const DICTIONARY: usize = 16 << 10;
const VARIANTS: usize = 40;
/// How many machines report while a controller clears, and how often each.
const REPORTING: u32 = 50;
const EACH: Duration = Duration::from_millis(100);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(usual);
    match arguments.first().map(String::as_str) {
        Some("bytes") => bytes(),
        Some("train") => train(Path::new(&arguments[1])),
        _ => {
            let (machines, days) = (number(1, 10_000), number(2, 30) as u64);
            let folder = tempfile::tempdir_in(".").unwrap();
            let place = match arguments.get(3) {
                Some(_) => cluster::database("month").unwrap(),
                None => StorePlace::File(folder.path().join("fleet.db")),
            };
            println!("load at the beginning: {}", load());
            month(&place, machines, days);
            if matches!(place, StorePlace::File(_)) {
                clearing(folder.path());
            }
            println!("load at the end: {}", load());
        }
    }
}

fn fleet() -> Digest {
    Digest::of(b"fleet of a month")
}

/// A report as a machine signs it and a controller is given it.
fn sent(
    reports: &RealReports,
    which: usize,
    (fleet, number): (&Digest, usize),
    keys: &MachineKeys,
    at: u64,
    random: &mut Random,
) -> (u64, Vec<u8>) {
    let at = Timestamp::from_millisecond(i64::try_from(at).unwrap()).unwrap();
    let report = reports.of(which, fleet, &name(number), at, random);
    let number = report.number;
    (number, serde_json::to_vec(&SentReport { number, signed: keys.sign(report).to_text() }).unwrap())
}

fn train(file: &Path) {
    let (reports, mut random, mut samples) = (RealReports::read("trained"), Random::new(1), Vec::new());
    for variant in 0..VARIANTS {
        let fleet = Digest::of(format!("fleet {variant}").as_bytes());
        for which in 0..reports.len() {
            let number = usize::try_from(random.below(10_000)).unwrap();
            let at = random.between(1_750_000_000_000, 1_950_000_000_000);
            samples.push(sent(&reports, which, (&fleet, number), &keys(number), at, &mut random).1);
        }
    }
    let dictionary = zstd::dict::from_samples(&samples, DICTIONARY).unwrap();
    println!("{} bytes of {} reports", dictionary.len(), samples.len());
    std::fs::write(file, dictionary).unwrap();
}

fn bytes() {
    let reports = RealReports::read("others");
    let folder = tempfile::tempdir().unwrap();
    let place = StorePlace::File(folder.path().join("fleet.db"));
    begun(&place, reports.len());
    let (mut store, mut random) = (place.open().unwrap(), Random::new(1));
    let ids = ids(&mut store);
    for (which, id) in ids.into_iter().enumerate() {
        let report = sent(&reports, which, (&fleet(), which), &keys(which), DAY * 20_000, &mut random);
        let (number, length) = (report.0, report.1.len());
        store.commit(&[vec![StoreWrite::Reports { machine: id, reports: vec![(number, report.1.into())] }]]).unwrap();
        let db = Connection::open(folder.path().join("fleet.db")).unwrap();
        let row: i64 = db
            .query_row(
                "SELECT length(packed) FROM reports WHERE number = ?1 ORDER BY rowid DESC",
                [i64::try_from(number).unwrap()],
                |row| row.get(0),
            )
            .unwrap();
        println!("{which:3}: {length} bytes, {row} in its row");
    }
}

/// A store with machines, and with the root statement of their fleet as far as the store looks at it.
fn begun(place: &StorePlace, machines: usize) {
    enrolled(place, machines);
    let root =
        SignedStatement { chain: Chain::Root, number: 1, digest: fleet(), bundle: None, body: bytes::Bytes::new() };
    assert!(place.open().unwrap().commit(&[vec![StoreWrite::Statement(root)]]).unwrap().0[0].is_ok());
}

/// The machines in the order of their names' numbers.
fn ids(store: &mut FleetStore) -> Vec<MachineId> {
    let mut rows = store.changes(0).unwrap().machines;
    rows.sort_by_key(|row| row.name.as_str()[1..].parse::<usize>().unwrap());
    rows.into_iter().map(|row| row.id).collect()
}

fn month(place: &StorePlace, machines: usize, days: u64) {
    begun(place, machines);
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let time = Arc::new(AtomicU64::new(now - (KEPT + 1) * DAY));
    let clock = Arc::clone(&time);
    let mut store = place.open().unwrap().with_clock(move || clock.load(Ordering::Relaxed));
    let (ids, reports) = (ids(&mut store), RealReports::read("others"));
    let keys: Vec<MachineKeys> = (0..machines).map(keys).collect();
    let (mut random, mut raw, fleet) = (Random::new(7), 0, fleet());
    let before = size(place);
    // The first day is too old: it is what a controller clears in the end.
    for day in 1..=days + 1 {
        if day == 2 {
            time.store(now - days * DAY, Ordering::Relaxed);
        }
        let began = Instant::now();
        let mut order: Vec<usize> = (0..machines * CHANGES).map(|at| at % machines).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, usize::try_from(random.below(at as u64 + 1)).unwrap());
        }
        let step = DAY / (order.len().div_ceil(TOGETHER) as u64);
        for some in order.chunks(TOGETHER) {
            let at = time.fetch_add(step, Ordering::Relaxed);
            let unit = |machine: &usize| -> Unit {
                let which = usize::try_from(random.below(reports.len() as u64)).unwrap();
                let at = at - random.below(step.min(60_000));
                let (number, body) = sent(&reports, which, (&fleet, *machine), &keys[*machine], at, &mut random);
                raw += body.len() as u64;
                vec![StoreWrite::Reports { machine: ids[*machine], reports: vec![(number, body.into())] }]
            };
            let units: Vec<Unit> = some.iter().map(unit).collect();
            store.commit(&units).unwrap();
        }
        if day == 1 || day == days || day == days + 1 {
            let (count, size) = (store.count_reports().unwrap(), size(place) - before);
            println!(
                "day {day}: {count} reports of {} bytes as they come: {size} bytes on the disk, {} each; the day took {:.1} s",
                raw / count,
                size / count,
                began.elapsed().as_secs_f64()
            );
        }
    }
    parts(place);
}

/// The bytes of the database, with what its log has yet to bring.
fn size(place: &StorePlace) -> u64 {
    match place {
        StorePlace::File(file) => {
            let db = Connection::open(file).unwrap();
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)).unwrap();
            std::fs::metadata(file).unwrap().len()
        }
        StorePlace::Server(server) => {
            let mut client = postgres::Client::connect(server, postgres::NoTls).unwrap();
            client.batch_execute("VACUUM").unwrap();
            let row = client.query_one("SELECT pg_database_size(current_database())", &[]).unwrap();
            u64::try_from(row.get::<_, i64>(0)).unwrap()
        }
    }
}

/// The bytes of the table and of each of its indexes.
fn parts(place: &StorePlace) {
    let parts: Vec<(String, i64)> = match place {
        StorePlace::File(file) => {
            let db = Connection::open(file).unwrap();
            let query = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name HAVING sum(pgsize) > 100000";
            let mut query = db.prepare(query).unwrap();
            query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
        }
        StorePlace::Server(server) => {
            let mut client = postgres::Client::connect(server, postgres::NoTls).unwrap();
            let query = "SELECT relname::text, pg_relation_size(oid) FROM pg_class WHERE pg_relation_size(oid) > 100000
                AND relkind IN ('r', 'i', 't')";
            client.query(query, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
        }
    };
    for (name, size) in parts {
        println!("   {name}: {size} bytes");
    }
}

/// A controller begins on a store with a day too much, and machines report while it clears it and as long afterwards.
fn clearing(folder: &Path) {
    let controller = Arc::new(start(folder));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (reports, is_clear) = (Arc::new(RealReports::read("others")), Arc::new(AtomicBool::new(false)));
        let work = (0..REPORTING as usize).map(|number| {
            tokio::spawn(report(Arc::clone(&controller), Arc::clone(&reports), number, Arc::clone(&is_clear)))
        });
        let (work, began): (Vec<_>, _) = (work.collect(), Instant::now());
        let db = Connection::open(folder.join("fleet.db")).unwrap();
        let (mut last, mut gone) = (oldest(&db), Instant::now());
        // It has ended when the oldest one stays for a second.
        while gone.elapsed() < Duration::from_secs(1) {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let oldest = oldest(&db);
            gone = if oldest == last { gone } else { Instant::now() };
            last = oldest;
        }
        println!("what is too old is gone after {}", ms(gone.duration_since(began)));
        is_clear.store(true, Ordering::Relaxed);
        let mut waited = [Vec::new(), Vec::new()];
        for work in work {
            waited.iter_mut().zip(work.await.unwrap()).for_each(|(all, one)| all.extend(one));
        }
        for (when, mut waited) in ["while old ones go", "while none go"].into_iter().zip(waited) {
            println!("a report waits {when}: {}, of {}", shown(&mut waited), waited.len());
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
}

/// The time of the oldest report.
fn oldest(db: &Connection) -> i64 {
    db.query_row("SELECT coalesce(min(received), 0) FROM reports", [], |row| row.get(0)).unwrap()
}

/// A machine that reports at its pace, while the controller clears and as long afterwards: how long each took.
async fn report(
    controller: Arc<Controller>,
    reports: Arc<RealReports>,
    number: usize,
    is_clear: Arc<AtomicBool>,
) -> [Vec<Duration>; 2] {
    let (own, mut random, mut waited) = (keys(number), Random::new(number as u64), [Vec::new(), Vec::new()]);
    let mut machine = Machine { number, connection: controller.connect().await, session: None, asked: 0 };
    tokio::time::sleep(EACH * u32::try_from(number).unwrap() / REPORTING).await;
    while waited[1].len() < waited[0].len().max(1) {
        let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        let which = usize::try_from(random.below(1000)).unwrap();
        let (_, body) = sent(&reports, which, (&fleet(), number), &own, now, &mut random);
        let (is_over, began) = (is_clear.load(Ordering::Relaxed), Instant::now());
        let answer =
            machine.ask("POST", "/v1/reports", "", format!("[{}]", String::from_utf8(body).unwrap()).as_bytes()).await;
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        waited[usize::from(is_over)].push(began.elapsed());
        tokio::time::sleep(EACH.saturating_sub(began.elapsed())).await;
    }
    waited
}
