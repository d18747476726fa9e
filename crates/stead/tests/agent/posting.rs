//! Reports that a machine sends to a web server.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use rustix::process::Signal;
use stead_testkit::{WebServer, until, web_answer};

use crate::releases::{FOR_WEB, Shop};
use crate::sealed::enrol;

/// What a server got by the names that came with it, each with whether it said that it has it.
type Got = Arc<Mutex<BTreeMap<String, Vec<(String, bool)>>>>;

/// The ways in which a server answers: the last is the right one.
const ANSWERS: [Option<(&str, &str)>; 6] = [
    None,
    Some(("503 Service Unavailable", "retry-after: 1\r\ncontent-length: 0\r\n")),
    Some(("429 Too Many Requests", "content-length: 0\r\n")),
    Some(("307 Temporary Redirect", "location: http://127.0.0.1:9/\r\ncontent-length: 0\r\n")),
    Some(("500 Internal Server Error", "content-length: 9999\r\n")),
    Some(RIGHT),
];
const RIGHT: (&str, &str) = ("201 Created", "content-length: 0\r\n");

/// A server that keeps what it gets. It answers in all ways in turns, or well: where `mood` is 1.
fn serve(got: &Got, mood: &Arc<AtomicU32>) -> WebServer {
    let (got, mood, mut turn) = (Arc::clone(got), Arc::clone(mood), 0);
    WebServer::new(move |head, client| {
        let header = |name: &str| {
            head.lines().find_map(|line| line.split_once(": ").filter(|(each, _)| each.eq_ignore_ascii_case(name)))
        };
        let length = header("content-length").and_then(|(_, length)| length.parse().ok()).unwrap_or(0);
        turn += 1;
        let is_good = mood.load(Ordering::SeqCst) == 1;
        if turn % 7 == 0 && !is_good {
            // It ends in the middle.
            return drop(client.read(&mut vec![0; length / 2]));
        }
        let mut body = vec![0; length];
        if client.read_exact(&mut body).is_err() {
            return;
        }
        let answer = if is_good { Some(RIGHT) } else { ANSWERS[turn % ANSWERS.len()] };
        let name = header("idempotency-key").map(|(_, name)| name.trim_matches('"').to_owned()).unwrap_or_default();
        let report = (String::from_utf8(body).unwrap(), answer == Some(RIGHT));
        got.lock().unwrap().entry(name).or_default().push(report);
        if let Some((status, headers)) = answer {
            let _ = client.write_all(&web_answer(status, headers, b""));
        }
    })
}

fn drift(shop: &Shop) {
    shop.machine.write("kept", "drifted\n");
    shop.until_kept("one");
}

#[test]
fn each_report_reaches_a_server_whatever_it_answers_and_whenever_the_agent_is_killed() {
    let (mut shop, got, mood) = (Shop::new(), Got::default(), Arc::new(AtomicU32::new(0)));
    let server = serve(&got, &mood);
    shop.publish("one", FOR_WEB);
    enrol(&shop, &shop.machine, "web1");
    shop.follow(&shop.folder());
    shop.until_kept("one");
    shop.machine.set(&format!("ReportUrl={}", server.url("reports")), "SplaySecs=0");
    let mut kills = 0;
    for turn in 0..stead_testkit::times("STEAD_POSTS", 12) {
        drift(&shop);
        shop.machine.signal(Signal::USR1);
        if turn % 4 == 3 {
            shop.machine.kill();
            shop.machine.start();
            kills += 1;
        }
    }
    mood.store(1, Ordering::SeqCst);
    shop.machine.signal(Signal::USR1);
    let out = shop.machine.path("out");
    let written = until(|| {
        shop.machine.ok(&["report", "--out", &out.display().to_string()]);
        let files = fs::read_dir(&out).unwrap().map(|each| each.unwrap().path());
        let name = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let written: BTreeMap<_, _> = files.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect();
        let got = got.lock().unwrap();
        let has = |name: &String| got.get(name).is_some_and(|all| all.iter().any(|(_, taken)| *taken));
        written.keys().all(has).then_some(written)
    });
    let got = got.lock().unwrap().clone();
    assert!(written.len() > 12, "{}", written.len());
    let (mut posts, mut again) = (0, 0);
    for (name, all) in &got {
        assert!(all.iter().all(|(report, _)| *report == written[name]), "{name} is one report");
        posts += all.len();
        again += all.iter().filter(|(_, taken)| *taken).count() - 1;
    }
    assert_eq!(got.keys().collect::<Vec<_>>(), written.keys().collect::<Vec<_>>());
    assert!(again <= kills, "what was taken is not sent again, unless its answer was lost: {again}");
    println!("{} reports, {posts} posts, {kills} kills, {again} taken twice", written.len());
    let last = written.keys().next_back().unwrap();
    fs::write(shop.machine.path("got.report"), &got[last][0].0).unwrap();
    assert!(shop.stead("release verify got.report --fleet fleet/root").starts_with("valid: report "));
    shop.machine.stop();
}

/// The machine is kept meanwhile; what is reported is kept for later.
#[test]
fn a_server_that_is_busy_is_left_alone() {
    let shop = Shop::new();
    let busy = web_answer("503 Service Unavailable", "retry-after: 3600\r\ncontent-length: 0\r\n", b"");
    let server = WebServer::with(vec![busy]);
    shop.publish("one", FOR_WEB);
    enrol(&shop, &shop.machine, "web1");
    shop.follow(&shop.folder());
    shop.until_kept("one");
    shop.machine.set(&format!("ReportUrl={}", server.url("reports")), "SplaySecs=0");
    let reporting = until(|| Some(shop.machine.status()["Reporting"].clone()).filter(|it| it["Away"].is_object()));
    assert_eq!(reporting["To"], server.url("reports"));
    let why = reporting["Away"]["Reason"].as_str().unwrap();
    assert!(why.starts_with("'web1-") && why.ends_with(".report' is not taken: the server answered 503"), "{why}");
    let text = shop.machine.ok(&["status"]);
    assert!(text.contains("Reports      sent to http://127.0.0.1:") && text.contains("; not taken since 2"), "{text}");
    let asked = server.requests().len();
    drift(&shop);
    drift(&shop);
    assert_eq!((server.requests().len(), shop.machine.status_and_code().1), (asked, Some(0)));
    // Who administers the machine has it asked at once.
    shop.machine.signal(Signal::USR1);
    until(|| (server.requests().len() > asked).then_some(()));
    shop.machine.set("ReportUrl=", "SplaySecs=0");
    until(|| shop.machine.status()["Reporting"].is_null().then_some(()));
}
