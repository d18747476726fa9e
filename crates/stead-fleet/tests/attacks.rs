//! Machines that are not wanted any more or want too much, clocks that go back, and content that is still needed.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "../../stead-release/tests/support/mod.rs"]
mod keys;
#[path = "support/site.rs"]
mod site;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::json;
use site::{Simulated, Site, joined, operator};
use stead_fleet::store::{FleetStore, StorePlace, StoreWrite, Written};
use stead_protocol::StandingRequest;
use stead_release::Digest;
use stead_testkit::until;

/// A store whose clock is set by hand, in milliseconds.
fn with_clock(folder: &tempfile::TempDir) -> (FleetStore, Arc<AtomicU64>) {
    let time = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&time);
    let store = StorePlace::File(folder.path().join("fleet.db")).open().unwrap();
    (store.with_clock(move || clock.load(Ordering::SeqCst)), time)
}

/// A controller with its folder, and the token of an operator.
fn controller() -> (tempfile::TempDir, Site, String) {
    let folder = tempfile::tempdir().unwrap();
    let place = StorePlace::File(folder.path().join("fleet.db"));
    let ann = operator(&place, "ann", "operator");
    let site = Site::start(folder.path(), &place);
    (folder, site, ann)
}

fn one(store: &mut FleetStore, write: StoreWrite) -> Written {
    store.commit(&[vec![write]]).unwrap().0.remove(0).unwrap().remove(0)
}

#[test]
fn a_machine_that_is_retired_while_it_waits_is_refused_at_once() {
    for standing in ["retired", "waiting"] {
        let (_folder, site, ann) = controller();
        let mut machine = joined(&site, &ann, &["m1"]).remove(0);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| (machine.desired(&site, 0, None, 40).status, Instant::now()));
            until(|| {
                let shown = site.operator(&ann, "GET", "/v1/machines/m1", b"").json();
                (shown["said"]["applied"] == json!(0)).then_some(())
            });
            let wanted = StandingRequest { standing: standing.to_owned() };
            assert_eq!(site.tell(&ann, "/v1/machines/m1/standing", &wanted).status, 200);
            let began = Instant::now();
            let (status, ended) = waits.join().unwrap();
            assert_eq!(status, 403, "{standing}");
            assert!(ended.saturating_duration_since(began) < Duration::from_secs(10), "{standing}");
        });
    }
}

/// Anybody who reaches the port can wait under any name.
#[test]
fn whoever_waits_under_a_name_keeps_no_machine_with_a_token_from_it() {
    let (_folder, site, ann) = controller();
    let mut stranger = Simulated::new("m1", 77);
    assert_eq!(stranger.enrol(&site, None).json()["standing"], json!("waiting"));
    let mut machine = joined(&site, &ann, &["m1"]).remove(0);
    assert_eq!(machine.desired(&site, 0, None, 0).status, 304);
    assert_eq!([stranger.desired(&site, 0, None, 0).status, stranger.enrol(&site, None).status], [401, 409]);
    assert_eq!(Simulated::new("m1", 78).enrol(&site, None).status, 409, "nor does another one take it back");
    assert_eq!(machine.desired(&site, 0, None, 0).status, 304);
}

/// Whoever has the key of one machine does not have all the room of the others.
#[test]
fn a_machine_waits_a_few_times_at_once_and_no_more() {
    let (_folder, site, ann) = controller();
    let mut machines = joined(&site, &ann, &["m1", "m2"]);
    let (mut other, mut machine) = (machines.pop().unwrap(), machines.pop().unwrap());
    let headers = |machine: &Simulated| {
        let mut headers = machine.headers("GET", "/v1/desired?after=0", r#"{"applied":0}"#, b"");
        headers.push(("prefer", "wait=40".to_owned()));
        headers
    };
    let stands = |standing: &str| {
        let wanted = StandingRequest { standing: standing.to_owned() };
        site.tell(&ann, "/v1/machines/m1/standing", &wanted).status
    };
    let (answers, answered) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..40 {
            let (headers, answers) = (headers(&machine), answers.clone());
            let site = &site;
            scope.spawn(move || {
                let answer = site.ask("GET", "/v1/desired?after=0", &headers, b"");
                answers.send((answer.status, answer.header("retry-after").is_some())).unwrap();
            });
        }
        let refused: Vec<_> = (0..24).map(|_| answered.recv_timeout(Duration::from_secs(20)).unwrap()).collect();
        assert_eq!(refused, [(429, true); 24]);
        assert_eq!(other.desired(&site, 0, None, 0).status, 304, "others wait as before");
        assert_eq!(
            site.ask("POST", "/v1/reports", &machine.headers("POST", "/v1/reports", "", b"[]"), b"[]").status,
            200
        );
        assert_eq!(stands("waiting"), 200);
    });
    assert_eq!(answered.try_iter().map(|(status, _)| status).collect::<Vec<_>>(), [403; 16]);
    // Those that ended make room.
    assert_eq!(stands("admitted"), 200);
    for _ in 0..20 {
        assert_eq!(machine.desired(&site, 0, None, 0).status, 304);
    }
}

/// A clock that was ahead, such as that of a machine before it asked for the time, leaves no lease that nobody can have.
#[test]
fn a_lease_of_a_time_that_is_far_ahead_is_nobodys() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, time) = with_clock(&folder);
    let lease = |owner: &str| StoreWrite::Lease { name: "planner", owner: owner.to_owned(), length: 10_000 };
    let now = 1_800_000_000_000;
    time.store(now + 365 * 86_400_000, Ordering::SeqCst);
    let Written::Lease(Ok(ahead)) = one(&mut store, lease("former")) else { panic!() };
    time.store(now, Ordering::SeqCst);
    let Written::Lease(Ok(granted)) = one(&mut store, lease("next")) else { panic!("nobody has it for a year") };
    assert_eq!(granted.epoch, ahead.epoch + 1, "what the former one writes is refused");
    assert_eq!(one(&mut store, lease("former")), Written::Lease(Err("next".to_owned())));
    // Behind a small step back it counts as long as before.
    time.store(now - 1, Ordering::SeqCst);
    assert_eq!(one(&mut store, lease("next")), Written::Lease(Ok(granted)));
}

#[test]
fn content_that_is_stored_once_more_is_kept_for_what_is_published_next() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, time) = with_clock(&folder);
    let (digest, body) = (Digest::of(b"bundle"), Bytes::from_static(b"bundle"));
    let blob = || StoreWrite::Blob(digest.clone(), body.clone());
    time.store(1_000, Ordering::SeqCst);
    assert_eq!(one(&mut store, blob()), Written::New);
    time.store(100_000, Ordering::SeqCst);
    assert_eq!(one(&mut store, blob()), Written::Known);
    assert_eq!(one(&mut store, StoreWrite::Sweep { before: 50_000 }), Written::Changed(0));
    assert_eq!(store.blob_length(&digest).unwrap(), Some(6));
    assert_eq!(one(&mut store, StoreWrite::Sweep { before: 150_000 }), Written::Changed(1));
}
