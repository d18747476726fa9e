//! Figures of a controller under simulated machines, beside those of the first sketch of it. For ten thousand machines it is built optimized:
//! `STEAD_FLEET_LOAD=10000 cargo test --release -p stead-fleet --test load -- --nocapture`
//!
//! Controller and machines share the processors, so that a figure says something of both.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]
#![expect(clippy::print_stdout, reason = "it says what it measured, as tests do")]

#[path = "../examples/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use stead_core::bundle::Bundle;
use stead_fleet::store::StorePlace;
use stead_protocol::SentReport;
use stead_release::{ChainLink, Digest, MachineKeys, MachineReport, Numbered, Release, Root, Roster, Signed, Signers};
use stead_testkit::times;
use support::{Connection, Controller, Machine, Machines, enrolled, keys, load, ms, name, processor_of, shown, start};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// How large the bundle is, and a report.
const BUNDLE: usize = 20_480;
const REPORT: usize = 2_048;
/// How many machines connect at once.
const CONNECTING: usize = 64;
/// How long reports are sent by a thousand machines, and at most.
const REPORTING: Duration = Duration::from_secs(5);
/// The most memory that a controller of ten thousand machines has, in MiB.
const MOST_MEMORY: u64 = 300;

#[test]
fn each_machine_has_a_release_and_each_report_is_kept_and_figures_say_how_soon() {
    let machines = times("STEAD_FLEET_LOAD", 40);
    stead_system::process::allow_most_descriptors().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = StorePlace::File(folder.path().join("fleet.db"));
    let roster = enrolled(&place, machines);
    let controller = Arc::new(start(folder.path()));
    println!("{machines} machines; load at the beginning: {}", load());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let sent = runtime.block_on(measured(&controller, machines, roster));
    println!("load at the end: {}", load());
    // The machines end before what they ask.
    runtime.shutdown_timeout(Duration::from_secs(5));
    drop(controller);
    assert_eq!(place.open().unwrap().count_reports().unwrap(), sent);
}

/// Waits for releases for ever, each of which comes with its bundle, and says so.
async fn follow(mut machine: Machine, digest: Digest, got: mpsc::UnboundedSender<(usize, Instant)>) {
    let (mut after, mut tag) = (0, String::new());
    loop {
        let more = format!("prefer: wait=50\r\nif-none-match: {tag}\r\n");
        let answer = machine.ask("GET", &format!("/v1/desired?after={after}"), &more, b"").await;
        if answer.status != 200 {
            continue;
        }
        answer.header("etag").unwrap().clone_into(&mut tag);
        let desired: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        if desired["number"].as_u64().unwrap() == after {
            continue;
        }
        after = desired["number"].as_u64().unwrap();
        let bundle = desired["bundle"].as_str().unwrap();
        assert_eq!(Bundle::stated_name(bundle.as_bytes()).unwrap(), digest.as_str());
        if got.send((machine.number, Instant::now())).is_err() {
            return;
        }
    }
}

/// Prints the figures, and returns how many reports were acknowledged.
async fn measured(controller: &Arc<Controller>, machines: usize, roster: Machines) -> u64 {
    let before = controller.memory();
    let began = Instant::now();
    let mut connected = connected(controller, machines).await;
    println!("connected and asked once: {:.1} s", began.elapsed().as_secs_f64());
    let bundle = Bundle::new(None, ("main.yaml".to_owned(), "x".repeat(BUNDLE).into()), BTreeMap::new()).unwrap();
    let name: Digest = bundle.name().parse().unwrap();
    let (got, mut gets) = mpsc::unbounded_channel();
    let reporting = connected.split_off(machines.saturating_sub(1000).max(machines / 2).max(2).min(machines));
    let followers = connected.len();
    let mut operators = Operators::begin(controller, roster, &bundle).await;
    for machine in connected {
        tokio::spawn(follow(machine, name.clone(), got.clone()));
    }
    let after = quiet(controller).await;
    let per_machine = (after - before) * 1024 / machines as u64;
    println!(
        "F7 memory: {before} MiB before, {after} MiB with {machines} connected, {per_machine} KiB each (sketch: 28, 287 and 26.5 at 10,000; goal 300 MiB)"
    );
    let mut all = Vec::new();
    let (began, used, own) = (Instant::now(), controller.processor(), processor_of("self"));
    operators.publish("many", "role=many").await;
    let published = began.elapsed();
    while all.len() < followers - 1 {
        all.push(gets.recv().await.unwrap().1.duration_since(began));
    }
    println!(
        "F5 one release to {}: answered in {}, all have its 20 KB: {} (sketch, staged, own content each: 5,000 in 289-309 ms, 10,000 in 476 ms)",
        followers - 1,
        ms(published),
        shown(&mut all)
    );
    println!(
        "   {} of the controller's time for each (sketch: 36-50 us), and {:.1?} of the machines' in all",
        each(controller, used, followers as u64 - 1),
        processor_of("self").saturating_sub(own)
    );
    let mut one = Vec::new();
    for _ in 0..50 {
        let began = Instant::now();
        operators.publish("one", "role=one").await;
        one.push(gets.recv().await.unwrap().1.duration_since(began));
    }
    println!("F5 one machine: {} (sketch: 1.1, 3.0; goal 3, 20)", shown(&mut one));
    let sent = report(controller, reporting, operators.root).await;
    println!("memory at the end: {} MiB", controller.memory());
    assert!(after <= MOST_MEMORY * (machines as u64).div_ceil(10_000), "{after} MiB");
    sent
}

/// Waits until the controller does nothing, and returns its memory.
async fn quiet(controller: &Controller) -> u64 {
    loop {
        let used = controller.processor();
        tokio::time::sleep(Duration::from_millis(300)).await;
        if controller.processor() == used {
            return controller.memory();
        }
    }
}

/// All machines with their connections, each with its session. The first are not to wait for so long that the controller ends them.
async fn connected(controller: &Arc<Controller>, machines: usize) -> Vec<Machine> {
    let (room, mut joining) = (Arc::new(Semaphore::new(CONNECTING)), JoinSet::new());
    for number in 0..machines {
        let (controller, place) = (Arc::clone(controller), Arc::clone(&room).acquire_owned().await.unwrap());
        joining.spawn(async move {
            let mut machine = Machine { number, connection: controller.connect().await, session: None, asked: 0 };
            assert_eq!(machine.ask("GET", "/v1/desired?after=0", "", b"").await.status, 304);
            drop(place);
            machine
        });
    }
    let mut all = joining.join_all().await;
    all.sort_by_key(|machine| machine.number);
    all
}

struct Operators {
    connection: Connection,
    signer: MachineKeys,
    root: Digest,
    bundle: Digest,
    last: BTreeMap<&'static str, Numbered>,
}

impl Operators {
    async fn begin(controller: &Controller, machines: Machines, bundle: &Bundle) -> Self {
        let signer = keys(usize::MAX);
        let signers = Signers::new([signer.key().clone()].into(), 1).unwrap();
        let root = Signed::new(Root { name: "load".parse().unwrap(), signers });
        let connection = controller.connect().await;
        let (digest, last) = (bundle.name().parse().unwrap(), BTreeMap::new());
        let mut this = Self { connection, signer, root: root.digest(), bundle: digest, last };
        this.ask("PUT", &format!("/v1/blobs/{}", this.bundle), &bundle.encode()).await;
        this.ask("POST", "/v1/statements/root", root.to_text().as_bytes()).await;
        let roster =
            this.signer.sign(Roster { link: this.link("roster"), acts: None, machines, floors: BTreeMap::new() });
        // A roster of ten thousand machines is larger than what machines may send.
        this.ask("POST", "/v1/statements/roster", roster.to_text().as_bytes()).await;
        this
    }

    fn link(&self, chain: &str) -> ChainLink {
        let last = self.last.get(chain);
        let parent = last.map_or_else(|| self.root.clone(), |last| last.digest.clone());
        let number = last.map_or(1, |last| last.number + 1);
        let made = jiff::Timestamp::from_second(1_700_000_000).unwrap();
        ChainLink { fleet: self.root.clone(), number, parent, signers: self.root.clone(), made }
    }

    async fn ask(&mut self, method: &str, path: &str, body: &[u8]) {
        let answer = self.connection.ask(method, path, "authorization: Bearer token\r\n", body).await;
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    }

    async fn publish(&mut self, channel: &'static str, selector: &str) {
        let (link, expires) = (self.link(channel), jiff::Timestamp::from_second(4_000_000_000).unwrap());
        let (number, bundle, selector) = (link.number, self.bundle.clone(), selector.parse().unwrap());
        let (channel_name, parameters) = (channel.parse().unwrap(), serde_json::Map::new());
        let release = Release { link, channel: channel_name, expires, selector, bundle, parameters, sealed: None };
        let signed = self.signer.sign(release);
        self.last.insert(channel, Numbered { number, digest: signed.digest() });
        self.ask("POST", "/v1/statements/release", signed.to_text().as_bytes()).await;
    }
}

/// Each machine sends reports as fast as they are acknowledged: one by one, and then in batches. Returns how many were.
async fn report(controller: &Controller, machines: Vec<Machine>, fleet: Digest) -> u64 {
    let (count, mut all) = (machines.len(), 0);
    let length = (REPORTING * u32::try_from(count).unwrap() / 1000).min(REPORTING);
    let mut machines = machines;
    for batch in [1_usize, 20] {
        let (began, sent, used) = (Instant::now(), Arc::new(AtomicU64::new(0)), controller.processor());
        let work = machines.into_iter().map(|mut machine| {
            let (sent, fleet) = (Arc::clone(&sent), fleet.clone());
            tokio::spawn(async move {
                let (mut number, own) = (batch as u64 * 1_000_000, keys(machine.number));
                let report = json!({ "filler": "r".repeat(REPORT - 700) });
                while began.elapsed() < length {
                    let reports = (0..batch).map(|_| {
                        number += 1;
                        let report = MachineReport {
                            fleet: fleet.clone(),
                            machine: name(machine.number),
                            number,
                            ended: jiff::Timestamp::from_second(1_700_000_000).unwrap(),
                            release: None,
                            report: report.clone(),
                        };
                        SentReport { number, signed: own.sign(report).to_text() }
                    });
                    let body = serde_json::to_vec(&reports.collect::<Vec<_>>()).unwrap();
                    let answer = machine.ask("POST", "/v1/reports", "", &body).await;
                    assert!(answer.body.starts_with(format!("{{\"new\":{batch},").as_bytes()), "{}", answer.status);
                    sent.fetch_add(batch as u64, Ordering::Relaxed);
                }
                machine
            })
        });
        let mut left = Vec::with_capacity(count);
        for work in work.collect::<Vec<_>>() {
            left.push(work.await.unwrap());
        }
        machines = left;
        let rate = f64::from(u32::try_from(sent.load(Ordering::Relaxed)).unwrap()) / began.elapsed().as_secs_f64();
        let sketch = if batch == 1 { "42,000-49,000; goal 30,000" } else { "41,000-91,000; goal 60,000" };
        println!(
            "F6 reports of 2 KB from {count} machines, {batch} to a request: {rate:.0} a second (sketch: {sketch})"
        );
        let sent = sent.load(Ordering::Relaxed);
        all += sent;
        let each = each(controller, used, sent);
        let sketch = if batch == 1 { "26-31" } else { "13-18" };
        println!("   {each} of the controller's time for each (sketch: {sketch} us)");
    }
    all
}

/// The processor time of the controller since then, for each of so many.
fn each(controller: &Controller, used: Duration, count: u64) -> String {
    let used = controller.processor().saturating_sub(used);
    format!("{} us", (used / u32::try_from(count.max(1)).unwrap()).as_micros())
}
