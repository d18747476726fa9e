//! Laws of the store: both databases agree, what is written again changes nothing more, controllers that write at once lose nothing,
//! and a database that may have forgotten something says so.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may end with a panic wherever it is")]
#![expect(clippy::doc_markdown, reason = "databases have such names")]

#[path = "support/cluster.rs"]
mod cluster;
#[path = "store/script.rs"]
mod script;

use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use bytes::Bytes;
use rustix::process::Signal;
use stead_fleet::store::{
    Chain, FleetStore, MachineId, OperatorAct, SignedStatement, StorePlace, StoreWrite, UnitOutcome, WriteRefusal,
    Writer, Written,
};
use stead_hosts::MachineName;
use stead_release::Digest;
use stead_testkit::{times, until};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }
}

/// What shows everything that a store has.
const ALL: &[&str] = &[
    "show machines",
    "show heads",
    "show statements channel/web 0",
    "show blob b1",
    "show blob b2",
    "show acts",
    "show heard",
    "show operator s1",
    "show operator s2",
    "show reports m1",
    "show reports m2",
];

/// Random steps behind a beginning that later ones need.
fn steps(random: &mut Random) -> Vec<String> {
    let mut steps: Vec<String> = [
        "token t1 4 60000",
        "enrol m1 k1 t1",
        "enrol m2 k2 t1",
        "lease one 60000",
        "blob b1 + statement channel/web 1 r b1",
    ]
    .map(str::to_owned)
    .into();
    for at in 0..24 {
        let machine = random.of(&["m1", "m2"]);
        let number = random.below(4) + 1;
        let one = |random: &mut Random, first: usize| match first + random.below(12 - first) {
            0 => format!(
                "enrol {} {} {}",
                random.of(&["m1", "m3", "m4"]),
                random.of(&["k1", "k3", "k4"]),
                random.of(&["t1", "t2", ""])
            ),
            1 => format!("standing {machine} {}", random.of(&["admitted", "admitted", "waiting", "retired"])),
            2 => format!("hold {machine} {} why", random.of(&["0", "9000000000000"])),
            3 => format!("token {} {} 60000", random.of(&["t1", "t2"]), random.below(3)),
            4 => format!(
                "operator {}",
                random.of(&["ann viewer s1", "ann approver s1", "ann viewer s3", "ben viewer s2"])
            ),
            5 => format!("blob {}", random.of(&["b1", "b2"])),
            6 => format!("statement channel/web {number} {} {}", random.of(&["r", "other"]), random.of(&["b1", "b2"])),
            7 => format!("point {} roster=0 web {number} m1 m2", random.of(&["1", "1", "1", "2"])),
            8 => format!("reports {machine} {number}={} 7=z", random.of(&["x", "y"])),
            9 => format!("heard {machine} {number} {at} {{}}"),
            10 => format!("act a{at}{}", random.of(&["", "", " nothing"])),
            _ => format!("sweep {}", random.of(&["0", "9000000000000"])),
        };
        let mut step = one(random, 0).trim_end().to_owned();
        // What machines are is not changed behind something that decides by it.
        if random.below(3) == 0 {
            step = format!("{step} + {}", one(random, 3).trim_end());
        }
        steps.push(step);
    }
    steps
}

/// The lines that show everything at the end.
fn end(place: &StorePlace, steps: &[String]) -> (Vec<String>, Vec<String>) {
    let text: Vec<&str> = steps.iter().map(String::as_str).chain(ALL.iter().copied()).collect();
    let mut lines: Vec<String> = script::run(place, 1, &text.join("\n")).unwrap().lines().map(str::to_owned).collect();
    let shown = lines.split_off(steps.len());
    (lines, shown)
}

#[test]
fn both_stores_agree_and_what_is_written_again_changes_nothing_more() {
    for seed in 0..times("STEAD_FLEET_STORES", 12) as u64 {
        let mut random = Random(seed);
        let steps = steps(&mut random);
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| StorePlace::File(folder.path().join(name));
        let (outcomes, shown) = end(&file("once.db"), &steps);
        let twice: Vec<String> = steps.iter().flat_map(|step| [step.clone(), "again".to_owned()]).collect();
        let (again, shown_again) = end(&file("twice.db"), &twice);
        assert_eq!(shown_again, shown, "seed {seed}, written twice: {again:#?}");
        let Some(server) = cluster::database("both_stores_agree_and_what_is_written_again_changes_nothing_more") else {
            continue;
        };
        assert_eq!(end(&server, &steps), (outcomes, shown), "seed {seed}, on PostgreSQL");
    }
}

/// Both stores, each with a new database.
fn places(test: &str, folder: &tempfile::TempDir) -> Vec<StorePlace> {
    let file = StorePlace::File(folder.path().join("fleet.db"));
    std::iter::once(file).chain(cluster::database(test)).collect()
}

fn written(store: &mut FleetStore, write: StoreWrite) -> UnitOutcome {
    let (outcomes, _) = store.commit(&[vec![write]]).unwrap();
    outcomes.into_iter().next().unwrap()
}

fn joined(store: &mut FleetStore, name: &str, token: Option<&str>) -> UnitOutcome {
    written(store, enrolment(name, token))
}

fn enrolment(name: &str, token: Option<&str>) -> StoreWrite {
    let token = token.map(|token| Digest::of(token.as_bytes()));
    let (labels, key) = ("{}".to_owned(), script::key(name));
    let name = MachineName::parse(name).unwrap();
    StoreWrite::Enrol(stead_fleet::store::Enrolment { name, key, token, labels, most_waiting: 100 })
}

fn machine(outcome: &UnitOutcome) -> MachineId {
    match outcome.as_deref() {
        Ok([Written::Machine(id, _)]) => *id,
        other => panic!("{other:?}"),
    }
}

/// Runs the same on four threads at once, each with a connection of its own.
fn at_once<T: Send>(place: &StorePlace, work: impl Fn(usize, &mut FleetStore) -> T + Sync) -> Vec<T> {
    let begin = Barrier::new(4);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (begin, work) = (&begin, &work);
                scope.spawn(move || {
                    let mut store = place.open().unwrap();
                    begin.wait();
                    work(thread, &mut store)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn controllers_that_write_at_once_lose_and_double_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for place in places("controllers_that_write_at_once_lose_and_double_nothing", &folder) {
        let mut store = place.open().unwrap();
        let token =
            stead_fleet::store::Token { digest: Digest::of(b"t"), uses: 7, length: 600_000, labels: "{}".to_owned() };
        written(&mut store, StoreWrite::Token(token)).unwrap();
        let machine = machine(&joined(&mut store, "m", Some("t")));
        let counts = at_once(&place, |thread, store| {
            let (mut admitted, mut new) = (0, 0);
            for turn in 0..10_u64 {
                admitted += usize::from(joined(store, &format!("m{thread}-{turn}"), Some("t")).is_ok());
                // All of them send the same reports, each in another order.
                let mut reports: Vec<_> =
                    (0..8).map(|number| (turn * 8 + number, Bytes::from(format!("{turn} {number}")))).collect();
                reports.rotate_left(thread * 2);
                match written(store, StoreWrite::Reports { machine, reports }).as_deref() {
                    Ok([Written::Reports { new: count, forked }]) if forked.is_empty() => new += count,
                    other => panic!("{other:?}"),
                }
                let body = format!("{thread} {turn}");
                until(|| {
                    let parent = store.head().unwrap();
                    match written(store, StoreWrite::Act(OperatorAct { parent, body: body.clone() })) {
                        Err(WriteRefusal::Head(_)) => None,
                        outcome => Some(outcome.unwrap()),
                    }
                });
            }
            (admitted, new)
        });
        assert_eq!(counts.iter().map(|(admitted, _)| admitted).sum::<usize>(), 6, "{place:?}");
        assert_eq!(counts.iter().map(|(_, new)| new).sum::<u64>(), 80, "{place:?}");
        let acts = store.acts(0, 1000).unwrap();
        assert_eq!(acts.len(), 40);
        let heads = acts.iter().map(|act| act.digest.clone());
        let parents = std::iter::once(OperatorAct::nothing()).chain(heads);
        assert!(acts.iter().zip(parents).all(|(act, parent)| act.parent == parent));
        assert_eq!(store.count_reports().unwrap(), 80);
    }
}

#[test]
fn changes_behind_a_revision_miss_nothing_that_is_written_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    for place in places("changes_behind_a_revision_miss_nothing_that_is_written_meanwhile", &folder) {
        place.open().unwrap();
        let writing = AtomicUsize::new(3);
        let seen = at_once(&place, |thread, store| {
            if thread > 0 {
                (0..15).for_each(|turn| drop(joined(store, &format!("m{thread}-{turn}"), None).unwrap()));
                writing.fetch_sub(1, Ordering::SeqCst);
                return 45;
            }
            let (mut revision, mut seen) = (0, std::collections::BTreeSet::new());
            loop {
                let is_last = writing.load(Ordering::SeqCst) == 0;
                let changes = store.changes(revision).unwrap();
                revision = changes.revision;
                seen.extend(changes.machines.into_iter().map(|machine| machine.name));
                if is_last {
                    return seen.len();
                }
            }
        });
        assert_eq!(seen, [45; 4], "{place:?}");
    }
}

#[test]
fn what_the_database_cannot_have_harms_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    for place in places("what_the_database_cannot_have_harms_nothing_beside_it", &folder) {
        let changed = Arc::new(AtomicUsize::new(0));
        let count = changed.clone();
        let writer = Writer::start(place.clone(), move || count.store(1, Ordering::SeqCst)).unwrap();
        assert!(writer.hears_others());
        let (sender, outcomes) = channel();
        for turn in 0..20 {
            // A database has one operator with a token, and PostgreSQL no text with a zero in it.
            let name = MachineName::parse(&format!("o{turn}")).unwrap();
            let role = if turn == 5 { "\0" } else { "viewer" }.to_owned();
            let digest = Digest::of(if turn == 9 { "8".to_owned() } else { turn.to_string() }.as_bytes());
            let sender = sender.clone();
            let done = Box::new(move |outcome| sender.send((turn, outcome)).unwrap());
            writer.write(vec![StoreWrite::Operator { name, role, digest }], done);
        }
        let outcomes: Vec<_> = outcomes.iter().take(20).collect();
        let refused: Vec<i32> =
            outcomes.iter().filter(|(_, outcome)| outcome.is_err()).map(|(turn, _)| *turn).collect();
        let expected = if matches!(place, StorePlace::File(_)) { vec![9] } else { vec![5, 9] };
        assert_eq!(refused, expected, "{place:?}: {outcomes:?}");
        drop(writer);
        let mut store = place.open().unwrap();
        assert!(store.operator(&Digest::of(b"19")).unwrap().is_some());
        assert!(changed.load(Ordering::SeqCst) > 0);
    }
}

#[test]
fn of_reports_with_one_number_the_first_is_kept_and_each_other_one_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for place in places("of_reports_with_one_number_the_first_is_kept_and_each_other_one_is_said", &folder) {
        let mut store = place.open().unwrap();
        let machine = machine(&joined(&mut store, "m", None));
        // Two machines with one key, in one commit: so many that a sort could exchange what is alike.
        let report = |turn: u64| vec![(9 - turn % 3, Bytes::from(turn.to_string()))];
        let units: Vec<_> = (0..60).map(|turn| vec![StoreWrite::Reports { machine, reports: report(turn) }]).collect();
        let (outcomes, _) = store.commit(&units).unwrap();
        for (turn, outcome) in (0..).zip(outcomes) {
            let forked = if turn < 3 { vec![] } else { vec![9 - turn % 3] };
            assert_eq!(outcome, Ok(vec![Written::Reports { new: u64::from(turn < 3), forked }]), "{turn}, {place:?}");
        }
        let kept = store.reports(machine, u64::MAX, 10).unwrap();
        let kept: Vec<_> = kept.iter().map(|report| (report.number, &report.body[..])).collect();
        assert_eq!(kept, [(9, &b"0"[..]), (8, b"1"), (7, b"2")], "{place:?}");
    }
}

/// The number that a database answers a query with.
type Asked = Box<dyn Fn(&str) -> Result<i64, String>>;

#[test]
fn reports_of_an_older_version_stay_as_they_are_and_new_ones_are_packed() {
    let folder = tempfile::tempdir().unwrap();
    for place in places("reports_of_an_older_version_stay_as_they_are_and_new_ones_are_packed", &folder) {
        let mut store = place.open().unwrap();
        let machine = machine(&joined(&mut store, "m", None));
        let body =
            |number: u64| Bytes::from(format!(r#"{{"number":{number},"signed":"{}"}}"#, "stead-report".repeat(99)));
        let report = |number: u64| StoreWrite::Reports { machine, reports: vec![(number, body(number))] };
        assert_eq!(written(&mut store, report(1)), Ok(vec![Written::Reports { new: 1, forked: vec![] }]));
        // As the version before had it: each report as it came.
        let former = "ALTER TABLE reports DROP COLUMN form; ALTER TABLE reports RENAME COLUMN packed TO body;
            UPDATE meta SET value = '4' WHERE name = 'version'";
        let asked: Asked = match &place {
            StorePlace::File(path) => {
                let db = rusqlite::Connection::open(path).unwrap();
                db.execute("UPDATE reports SET packed = ?1", [body(1).to_vec()]).unwrap();
                db.execute_batch(former).unwrap();
                Box::new(move |query| db.query_row(query, [], |row| row.get(0)).map_err(|error| error.to_string()))
            }
            StorePlace::Server(words) => {
                let mut db = postgres::Client::connect(words, postgres::NoTls).unwrap();
                db.execute("UPDATE reports SET packed = $1", &[&body(1).to_vec()]).unwrap();
                db.batch_execute(former).unwrap();
                let db = std::cell::RefCell::new(db);
                Box::new(move |query| {
                    let row = db.borrow_mut().query_one(query, &[]).map_err(|error| format!("{error:?}"))?;
                    Ok(row.get(0))
                })
            }
        };
        let of_former = "SELECT CAST(length(body) AS BIGINT) FROM reports WHERE number = 1";
        assert_eq!(asked(of_former), Ok(i64::try_from(body(1).len()).unwrap()), "{place:?}");
        let mut store = place.open().unwrap();
        for (number, new) in [(1, 0), (2, 1), (2, 0)] {
            let outcome = written(&mut store, report(number));
            assert_eq!(outcome, Ok(vec![Written::Reports { new, forked: vec![] }]), "{number}, {place:?}");
        }
        for number in [1, 2] {
            let other = StoreWrite::Reports { machine, reports: vec![(number, body(3))] };
            let forked = Ok(vec![Written::Reports { new: 0, forked: vec![number] }]);
            assert_eq!(written(&mut store, other), forked, "{number}, {place:?}");
        }
        let kept = store.reports(machine, u64::MAX, 10).unwrap();
        let kept: Vec<_> = kept.into_iter().map(|report| (report.number, report.body)).collect();
        assert_eq!(kept, [(2, body(2)), (1, body(1))], "{place:?}");
        // One of that version that still runs must not compare with what it does not know.
        let refused = asked(of_former).unwrap_err();
        assert!(refused.contains("no such column") || refused.contains("does not exist"), "{refused}, {place:?}");
        let length = |number: u64| {
            asked(&format!("SELECT CAST(length(packed) AS BIGINT) FROM reports WHERE number = {number}")).unwrap()
        };
        assert_eq!(length(1), i64::try_from(body(1).len()).unwrap(), "{place:?}");
        assert!(length(2) < 100, "{} bytes, {place:?}", length(2));
    }
}

#[test]
fn a_store_that_is_another_fleets_once_it_is_opened_again_packs_as_that_fleet() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("fleet.db");
    let body =
        |fleet: &str| Bytes::from(format!(r#"{{"signed":"stead-report 1\nfleet {}"}}"#, Digest::of(fleet.as_bytes())));
    let root = |fleet: &str| {
        let digest = Digest::of(fleet.as_bytes());
        StoreWrite::Statement(SignedStatement {
            chain: Chain::Root,
            number: 1,
            digest,
            bundle: None,
            body: Bytes::new(),
        })
    };
    let file = StorePlace::File(name.clone());
    std::os::unix::fs::symlink(folder.path().join("one.db"), &name).unwrap();
    let mut store = file.open().unwrap();
    let mut kept = Vec::new();
    // Each report names the first fleet, which the other one has in no dictionary.
    for fleet in ["one", "other"] {
        let machine = machine(&joined(&mut store, "m", None));
        assert!(written(&mut store, root(fleet)).is_ok());
        let report = StoreWrite::Reports { machine, reports: vec![(1, body("one"))] };
        assert_eq!(written(&mut store, report), Ok(vec![Written::Reports { new: 1, forked: vec![] }]));
        kept.push(file.open().unwrap().reports(machine, u64::MAX, 2).unwrap().remove(0).body == body("one"));
        std::fs::remove_file(&name).unwrap();
        std::os::unix::fs::symlink(folder.path().join("other.db"), &name).unwrap();
        store.reopen().unwrap();
    }
    assert_eq!(kept, [true, true]);
}

#[test]
fn a_page_of_reports_ends_before_it_is_too_long() {
    let folder = tempfile::tempdir().unwrap();
    for place in places("a_page_of_reports_ends_before_it_is_too_long", &folder) {
        let mut store = place.open().unwrap();
        let machine = machine(&joined(&mut store, "m", None));
        // Of a few bytes each in their rows.
        let long = |number: u64| (number, Bytes::from(vec![b'x'; 100_000 + usize::try_from(number).unwrap()]));
        let outcome = written(&mut store, StoreWrite::Reports { machine, reports: (1..=80).map(long).collect() });
        assert!(outcome.is_ok());
        for (most, bytes, pages) in [
            (1000, 9_000_000, vec![80]),
            (1000, 4_000_000, vec![39, 39, 2]),
            (30, 9_000_000, vec![30, 30, 20]),
            (40, 9_000_000, vec![40, 40]),
            (1000, 7, vec![1; 80]),
        ] {
            let (mut counts, mut below, mut has_more) = (Vec::new(), u64::MAX, true);
            while has_more {
                let page = store.page_of_reports(machine, below, most, bytes).unwrap();
                let numbers: Vec<u64> = page.0.iter().map(|report| report.number).collect();
                let newest = below.min(81);
                assert!(numbers.iter().copied().eq((newest - numbers.len() as u64..newest).rev()), "{numbers:?}");
                assert!(page.0.iter().all(|report| report.body == long(report.number).1));
                (below, has_more) = (*numbers.last().unwrap(), page.1);
                counts.push(numbers.len());
            }
            assert_eq!(counts, pages, "{most} and {bytes} bytes, {place:?}");
        }
    }
}

/// A log of more than 128 MiB, as a backup leaves it that reads for long.
#[test]
fn a_log_that_whoever_reads_keeps_long_is_used_again_behind_that() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fleet.db");
    let log = folder.path().join("fleet.db-wal");
    let writer = Writer::start(StorePlace::File(path.clone()), || ()).unwrap();
    let mut number = 0_u64;
    let mut write = |length: usize| {
        number += 1;
        let (sender, done) = channel();
        let blob = StoreWrite::Blob(Digest::of(&number.to_be_bytes()), vec![b'x'; length].into());
        writer.write(vec![blob], Box::new(move |outcome| sender.send(outcome).unwrap()));
        assert_eq!(done.recv().unwrap().unwrap(), Ok(vec![Written::New]));
    };
    // The salt in its head is another one each time that it begins anew.
    let begun = || {
        let mut head = [0; 20];
        let is_read = std::fs::File::open(&log).unwrap().read_exact(&mut head).is_ok();
        is_read.then(|| u32::from_be_bytes(*head.last_chunk().unwrap()))
    };
    let reader = rusqlite::Connection::open(&path).unwrap();
    write(1);
    reader.execute_batch("BEGIN; SELECT count(*) FROM meta").unwrap();
    (0..150).for_each(|_| write(1 << 20));
    let (first, length) = (begun(), std::fs::metadata(&log).unwrap().len());
    assert!(length > 150 << 20, "{length} bytes");
    drop(reader);
    until(|| {
        write(1);
        (begun() != first).then_some(())
    });
    let again = std::fs::metadata(&log).unwrap().len();
    assert!(again >= length, "{again} of {length} bytes: it was cut while others wait to write");
}

#[test]
fn a_controller_hears_what_another_one_writes() {
    let Some(place) = cluster::database("a_controller_hears_what_another_one_writes") else { return };
    let (sender, heard) = channel();
    let one = Writer::start(place.clone(), move || sender.send(()).unwrap_or(())).unwrap();
    let other = Writer::start(place, || ()).unwrap();
    assert!(one.hears_others() && other.hears_others());
    // What was said at the start of the other one is over when nothing comes for a while, or does no harm.
    while heard.recv_timeout(Duration::from_millis(50)).is_ok() {}
    other.write(vec![enrolment("m", None)], Box::new(|outcome| drop(outcome.unwrap().unwrap())));
    heard.recv_timeout(Duration::from_mins(1)).expect("the other one says that it changed something");
}

#[test]
fn a_copy_begins_another_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| StorePlace::File(folder.path().join(name));
    let mut store = at("fleet.db").open().unwrap();
    drop(joined(&mut store, "m", None).unwrap());
    drop(store);
    let epoch = |place: StorePlace| place.open().unwrap().changes(0).unwrap().epoch;
    let first = epoch(at("fleet.db"));
    std::fs::copy(folder.path().join("fleet.db"), folder.path().join("copy.db")).unwrap();
    let copy = epoch(at("copy.db"));
    assert_eq!((epoch(at("copy.db")), epoch(at("fleet.db"))), (copy, first));
    std::fs::rename(folder.path().join("fleet.db"), folder.path().join("moved.db")).unwrap();
    assert_eq!(epoch(at("moved.db")), first);
    assert_eq!(at("copy.db").open().unwrap().changes(0).unwrap().machines.len(), 1);
    // A copy that is written into the file itself, and once more, and one of a store of which a folder knows more.
    let (backup, into) = (folder.path().join("backup.db"), folder.path().join("moved.db"));
    at("moved.db").open().unwrap().copy_into(&backup).unwrap();
    let restored = || {
        std::fs::write(&into, std::fs::read(&backup).unwrap()).unwrap();
        epoch(at("moved.db"))
    };
    let epochs = [first, copy, restored(), restored(), epoch(at("new.db"))];
    assert_eq!(epochs.iter().collect::<BTreeSet<_>>().len(), epochs.len(), "{epochs:?}");
    let mut store = at("new.db").open().unwrap();
    assert_eq!([0, 1, 2].map(|known| store.begins_or_ends(known).unwrap()), [1, 2, 3]);
    assert_eq!(epoch(at("new.db")), epochs[4]);
    assert_eq!(store.begins_or_ends(5).unwrap(), 6);
    assert_ne!(epoch(at("new.db")), epochs[4], "two beginnings are not in it");
}

/// Controllers know machines of the time that an older copy lacks, and keep what those report under their numbers.
#[test]
fn no_machine_has_the_number_of_one_that_an_older_copy_lacks() {
    let folder = tempfile::tempdir().unwrap();
    // Numbers of epochs are drawn.
    for round in 0..16 {
        let path = |name: &str| folder.path().join(format!("{round}-{name}.db"));
        let mut store = StorePlace::File(path("fleet")).open().unwrap();
        let id = |store: &mut FleetStore, name: &str| machine(&joined(store, name, None));
        let first = id(&mut store, "m1");
        store.copy_into(&path("copy")).unwrap();
        let lacking = id(&mut store, "m2");
        let other = id(&mut StorePlace::File(path("copy")).open().unwrap(), "m3");
        assert!(first < lacking && lacking < other, "{first} {lacking} {other}");
    }
}

#[test]
fn a_database_of_a_newer_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fleet.db");
    let place = StorePlace::File(path.clone());
    drop(place.open().unwrap());
    let db = rusqlite::Connection::open(&path).unwrap();
    let version = |db: &rusqlite::Connection| -> String {
        db.query_row("SELECT value FROM meta WHERE name = 'version'", [], |row| row.get(0)).unwrap()
    };
    let known = version(&db);
    db.execute("UPDATE meta SET value = '99' WHERE name = 'version'", []).unwrap();
    let refusal = place.open().err().unwrap().to_string();
    assert_eq!(refusal, format!("the database has version 99, and this program knows {known}: use a newer one"));
    // One of the first version gets what it lacks.
    let first =
        "DROP TABLE forks; DROP TABLE envelopes; DROP TABLE invitations; ALTER TABLE machines DROP COLUMN sealed;
        ALTER TABLE machines DROP COLUMN asked; ALTER TABLE reports DROP COLUMN form;
        ALTER TABLE reports RENAME COLUMN packed TO body";
    db.execute_batch(&format!("{first}; UPDATE meta SET value = '1' WHERE name = 'version'")).unwrap();
    assert_eq!(place.open().unwrap().forks().unwrap(), []);
    assert_eq!(version(&db), known);
}

#[test]
fn a_server_that_may_lose_what_it_acknowledged_is_refused() {
    let Some(place) = cluster::database("a_server_that_may_lose_what_it_acknowledged_is_refused") else { return };
    let StorePlace::Server(words) = place else { panic!("a server") };
    let lazy = StorePlace::Server(format!("{words} options='-c synchronous_commit=off'"));
    let refusal = lazy.open().err().unwrap().to_string();
    assert_eq!(refusal, "the database does not keep what it acknowledges: its setting 'synchronous_commit' is 'off'");
    assert!(StorePlace::Server(format!("{words} sslmode=require")).open().is_err());
}

#[test]
fn a_standby_that_is_promoted_begins_another_epoch_and_has_each_act() {
    let test = "a_standby_that_is_promoted_begins_another_epoch_and_has_each_act";
    let act = |parent: &Digest, body: &str| OperatorAct { parent: parent.clone(), body: body.to_owned() };
    let first = act(&OperatorAct::nothing(), "first");
    let second = act(&first.digest(), "second");
    let Some((primary, promoted)) = cluster::failover(test, |place, signal| {
        let mut store = place.open().unwrap();
        drop(joined(&mut store, "m", None).unwrap());
        let machine = store.changes(0).unwrap().machines[0].id;
        let acted = |store: &mut FleetStore, act: &OperatorAct| {
            store
                .commit(&[vec![StoreWrite::Act(act.clone())]])
                .map(|(outcomes, _)| outcomes)
                .map_err(|why| why.to_string())
        };
        signal(Signal::STOP);
        // Machines send again what a standby lacks: nobody waits for it, beside an act either.
        let report = |number| vec![StoreWrite::Reports { machine, reports: vec![(number, Bytes::from_static(b"{}"))] }];
        let new = Ok(vec![Written::Reports { new: 1, forked: vec![] }]);
        let both = store.commit(&[report(1), vec![StoreWrite::Act(first.clone())]]).unwrap();
        assert_eq!(both.0, [new.clone(), Err(WriteRefusal::Behind)]);
        assert_eq!(store.commit(&[report(2)]).unwrap().0, [new], "the connection goes on");
        signal(Signal::CONT);
        assert_eq!(acted(&mut store, &first), Ok(vec![Ok(vec![Written::Act(1)])]), "it was there");
        assert_eq!(acted(&mut store, &second), Ok(vec![Ok(vec![Written::Act(2)])]));
    }) else {
        return;
    };
    let digests = |place: &StorePlace| place.open().unwrap().acts(0, 9).unwrap().into_iter().map(|act| act.digest);
    assert_eq!(digests(&promoted).collect::<Vec<_>>(), [first.digest(), second.digest()]);
    let changes = |place: &StorePlace| place.open().unwrap().changes(0).unwrap();
    assert_ne!(changes(&primary).epoch, changes(&promoted).epoch);
    assert_eq!(changes(&promoted).machines, changes(&primary).machines);
}
