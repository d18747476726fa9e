//! Journals in files: what is written is read again, and what is not what was written is never taken for it.
//!
//! `STEAD_CORRUPTIONS=100000` tries so many, in place of 2000.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

#[path = "../../stead-core/tests/support/random.rs"]
mod random;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use random::Numbers;
use serde_json::json;
use stead_core::call::{Execution, Failure, FailureKind, Operation, Outcome, Response, Tested};
use stead_core::claims::{Claims, Extent};
use stead_core::event::{Event, EventKind, Header, Mode, ObservedFact, Problem, SkipReason, Status, VERSION};
use stead_core::expr::FactKey;
use stead_core::footprint::Footprint;
use stead_core::id::{NodeId, ResourceId, SecretName};
use stead_core::instance_path::InstancePath;
use stead_core::value::Value;
use stead_host::journal::{FileJournal, Journal, OpenJournalError, ReadError, read};
use stead_testkit::times;
use tempfile::TempDir;

fn instance(name: &str, node: u32) -> InstancePath {
    InstancePath::new(None, ResourceId::parse(&format!("Test/Echo:{name}")).unwrap(), NodeId(node))
}

/// One of each kind of event, in the order of a run of `origin`.
fn events(origin: &str) -> Vec<Event> {
    let (one, two) = (instance("one", 0), instance("zwei – 2\n", 1));
    let secret = Value::secret(SecretName("vault/7".into()));
    let desired = Arc::new(Value::Object(
        [("text".to_owned(), secret), ("n".to_owned(), json!(0.1).into())].into_iter().collect(),
    ));
    let tested = Tested {
        unknown: None,
        actual: Arc::new(json!({"n": [1, null, {"$sealed": "x"}]}).into()),
        in_desired_state: true,
        differing: vec![],
        predicted: None,
        metadata: None,
    };
    let responses = [
        Outcome::Tested(Arc::new(tested)),
        Outcome::Failed(Box::new(Failure {
            property: Some("/n".into()),
            ..Failure::new(FailureKind::Exit(2), "no\nroom")
        })),
    ];
    let claims = Claims::path("/etc/motd", Extent::Entries { kept: ["a".to_owned()].into() }).and_reads("/etc");
    let footprint = Arc::new(Footprint::new(claims, &responses[0], |path| path.into()));
    let ended = |outcome| EventKind::CallEnded {
        instance: one.clone(),
        response: Arc::new(Response::of(outcome)),
        elapsed: Duration::from_nanos(1_000_000_007),
        footprint: Some(footprint.clone()),
    };
    let header = Header {
        version: VERSION,
        origin: origin.into(),
        graph: "5e".into(),
        instances: 2,
        mode: Mode::APPLY,
        selected: None,
    };
    let (operation, execution) = (Operation::Test, Execution::Actual);
    let failure = Problem::Failure(Failure::new(FailureKind::Unsupported, "no"));
    let mut kinds = vec![
        EventKind::Began(Arc::new(header)),
        EventKind::FactObserved(
            ObservedFact { key: FactKey::EnvironmentVariable("HOME".into()), value: Ok("/root".into()) }.into(),
        ),
        EventKind::FactObserved(ObservedFact { key: FactKey::Now, value: Err("no clock".into()) }.into()),
        EventKind::ContainerOpened { instance: two.clone() },
        EventKind::CallStarted { instance: one.clone(), operation, execution, desired },
        EventKind::RetryScheduled { instance: one.clone(), until: "2030-01-02T03:04:05.678901234Z".parse().unwrap() },
        EventKind::Woken { instance: one.clone() },
        EventKind::Resumed,
        EventKind::Suspended,
        EventKind::Cancelled,
        EventKind::Settled { instance: one.clone(), status: Status::Failed, problem: Some(Arc::new(failure.clone())) },
        EventKind::Refuted { instance: one.clone(), problem: Arc::new(failure) },
        EventKind::Settled { instance: two, status: Status::Skipped(SkipReason::Need(one.clone())), problem: None },
    ];
    kinds.extend(responses.map(ended));
    let at = "2030-01-02T03:04:05Z".parse().unwrap();
    (0..).zip(kinds).map(|(sequence, kind)| Event { sequence, at, kind }).collect()
}

/// Events as text, to be compared.
fn texts(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| serde_json::to_string(event).unwrap()).collect()
}

/// A journal of these events, in batches of three.
fn written(events: &[Event]) -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal");
    let mut journal = FileJournal::create(&path).unwrap();
    events.chunks(3).for_each(|batch| journal.append(batch).unwrap());
    fs::read(path).unwrap()
}

/// Returns the events that can be resumed from.
fn intact(bytes: &[u8]) -> Option<Vec<Event>> {
    match read(bytes) {
        Ok(events) | Err(ReadError::Torn { intact: events }) => Some(events),
        Err(_) => None,
    }
}

fn records(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

#[test]
fn what_was_appended_is_read_again() {
    let events = events("a.yaml");
    let bytes = written(&events);
    assert_eq!(texts(&read(&bytes).unwrap()), texts(&events));
    assert_eq!(records(&bytes).len(), events.len(), "one record a line");
}

#[test]
fn a_journal_that_is_cut_off_anywhere_holds_what_was_complete() {
    let events = events("a.yaml");
    let (bytes, texts_of_all) = (written(&events), texts(&events));
    for length in 0..bytes.len() {
        let complete = bytes[..length].split(|byte| *byte == b'\n').count() - 1;
        match (read(&bytes[..length]), bytes[..length].last()) {
            (Err(ReadError::Empty), None) => {}
            (Ok(found), Some(b'\n')) => assert_eq!(texts(&found), texts_of_all[..complete]),
            (Err(ReadError::Torn { intact }), Some(_)) => assert_eq!(texts(&intact), texts_of_all[..complete]),
            (other, _) => panic!("{length} bytes: {other:?}"),
        }
    }
}

/// A journal that something happened to.
fn corrupted(bytes: &[u8], foreign: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let (at, length) = (numbers.below(bytes.len()), 1 + numbers.below(40));
    let range = at..(at + length).min(bytes.len());
    match numbers.below(7) {
        0 => bytes[at] ^= 1 << numbers.below(8),
        1 => drop(bytes.drain(range)),
        2 => bytes[range].fill(0),
        3 => bytes.extend_from_within(range),
        4 => drop(bytes.splice(at..at, foreign[..length].to_vec())),
        5 => bytes.truncate(at),
        _ => return of_records(&records(&bytes), &records(foreign), numbers),
    }
    bytes
}

/// Whole records swapped, repeated, removed, or taken from another journal.
fn of_records(records: &[&[u8]], foreign: &[&[u8]], numbers: &mut Numbers) -> Vec<u8> {
    let mut records = records.to_vec();
    let (one, other) = (numbers.below(records.len()), numbers.below(records.len()));
    match numbers.below(5) {
        0 => records.swap(one, other),
        1 => records.insert(other, records[one]),
        2 => drop(records.remove(one)),
        3 => records[one] = foreign[one],
        _ => records.splice(one.., foreign[one..].iter().copied()).for_each(drop),
    }
    records.concat()
}

#[test]
fn a_corrupted_journal_is_an_error_or_a_part_of_what_was_written() {
    let events = events("a.yaml");
    let (bytes, foreign, whole) = (written(&events), written(&self::events("b.yaml")), texts(&events));
    let foreign_whole = texts(&self::events("b.yaml"));
    for number in 0..times("STEAD_CORRUPTIONS", 2000) as u64 {
        let corrupted = corrupted(&bytes, &foreign, &mut Numbers::of(7, number));
        let Some(found) = intact(&corrupted) else { continue };
        // The whole of the other journal is a journal.
        let is_part = whole.starts_with(&texts(&found)) || foreign_whole == texts(&found);
        assert!(is_part, "{number}: {}", String::from_utf8_lossy(&corrupted));
    }
}

#[test]
fn every_fault_of_a_journal_has_its_own_error() {
    let bytes = written(&events("a.yaml"));
    let records = records(&bytes);
    let foreign = written(&events("b.yaml"));
    let joined = |parts: &[&[u8]]| read(&parts.concat()).unwrap_err();
    for text in ["\n", "{}", "resources: []\n", "0123456789abcdefg", "0123456789abcdef [", "\0"] {
        assert!(matches!(read(text.as_bytes()), Err(ReadError::NotAJournal)), "{text}");
    }
    assert!(matches!(joined(&[records[0], records[0]]), ReadError::Corrupted { record: 1 }), "repeated");
    assert!(matches!(joined(&[records[0], records[2], records[1]]), ReadError::Corrupted { record: 1 }), "swapped");
    assert!(matches!(joined(&[records[1]]), ReadError::Corrupted { record: 0 }), "without its begin");
    let other = self::records(&foreign)[1];
    assert!(matches!(joined(&[records[0], other]), ReadError::Corrupted { record: 1 }), "of another run");
    assert!(matches!(read(&written(&events("a.yaml")[1..])), Err(ReadError::NotAJournal)), "no header");
    assert!(matches!(read(&bytes[..10]), Err(ReadError::Torn { intact }) if intact.is_empty()), "only a begin");
}

#[test]
fn a_journal_of_another_version_is_refused_by_its_version() {
    for version in [VERSION - 1, VERSION + 1] {
        let mut events = events("a.yaml");
        let EventKind::Began(header) = &mut events[0].kind else { panic!("the first event is the header") };
        Arc::make_mut(header).version = version;
        let Err(ReadError::Version { found }) = read(&written(&events)) else { panic!("it is not of this version") };
        assert_eq!(found, version);
    }
}

/// An unknown member is not read, and a missing one may be taken for nothing: whoever changes this list raises the version.
#[test]
fn events_have_the_members_of_this_version() {
    let members = |event: &Event| {
        let json = serde_json::to_value(event).unwrap();
        let names: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let kind = json["event"].as_str().unwrap().to_owned();
        let own = names.into_iter().filter(|name| !["sequence", "at", "event"].contains(name));
        (kind, own.collect::<Vec<_>>().join(" "))
    };
    let found: BTreeMap<String, String> = events("a.yaml").iter().map(members).collect();
    let found: Vec<String> = found.iter().map(|(kind, members)| format!("{kind}: {members}")).collect();
    let expected = [
        "began: version origin graph instances mode",
        "callEnded: instance response elapsed footprint",
        "callStarted: instance operation execution desired",
        "cancelled: ",
        "containerOpened: instance",
        "factObserved: key value",
        "refuted: instance problem",
        "resumed: ",
        "retryScheduled: instance until",
        "settled: instance status problem",
        "suspended: ",
        "woken: instance",
    ];
    assert_eq!((VERSION, found.as_slice()), (4, expected.map(str::to_owned).as_slice()));
}

#[test]
fn a_journal_is_its_owners_alone_and_is_never_overwritten() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal");
    let journal = FileJournal::create(&path).unwrap();
    assert!(journal.is_durable());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert!(matches!(FileJournal::resume(&path), Err(OpenJournalError::InUse(_))), "one process at a time");
    drop(journal);
    assert!(FileJournal::create(&path).is_err(), "it is there");
    symlink(&path, folder.path().join("link")).unwrap();
    assert!(FileJournal::resume(&folder.path().join("link")).is_err(), "links are not followed");
    assert!(FileJournal::create(&folder.path().join("missing/journal")).is_err());
    assert!(FileJournal::resume(Path::new("/dev/null")).is_err(), "not a file");
}

#[test]
fn a_journal_is_resumed_wherever_it_ended() {
    let events = events("a.yaml");
    let (bytes, folder) = (written(&events), TempDir::new().unwrap());
    // Each length of the last records, and the beginning of the first.
    let lengths = (0..40).chain(bytes.len() - 400..=bytes.len());
    for length in lengths {
        let path = folder.path().join(length.to_string());
        OpenOptions::new().create_new(true).write(true).open(&path).unwrap().write_all(&bytes[..length]).unwrap();
        let (mut journal, found) = FileJournal::resume(&path).unwrap();
        assert!(texts(&events).starts_with(&texts(&found)));
        journal.append(&events[found.len()..]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes, "it goes on as if nothing had happened");
    }
}

#[test]
fn a_corrupted_journal_is_not_resumed_and_not_changed() {
    let (mut bytes, folder) = (written(&events("a.yaml")), TempDir::new().unwrap());
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let path = folder.path().join("journal");
    fs::write(&path, &bytes).unwrap();
    let Err(error) = FileJournal::resume(&path) else { panic!("it is corrupted") };
    assert!(matches!(error, OpenJournalError::Read { source: ReadError::Corrupted { .. }, .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}
