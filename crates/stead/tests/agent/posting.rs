//! Reports that a machine sends to a web server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use rustix::process::Signal;
use serde_json::Value;
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

/// The answers to a report that a server never takes: when it comes for the first time, and from then on.
const WRONG: [(&str, &str); 2] =
    [("500 Internal Server Error", "content-length: 0\r\n"), ("422 Unprocessable Content", "content-length: 0\r\n")];

/// A server that keeps what it gets. It answers in all ways in turns, or from `mood` 1 on well: it never takes the first `mood - 1` reports.
fn serve(got: &Got, mood: &Arc<AtomicU32>) -> WebServer {
    let (got, mood, mut turn, mut never) = (Arc::clone(got), Arc::clone(mood), 0, BTreeSet::new());
    WebServer::new(move |head, client| {
        let header = |name: &str| {
            head.lines().find_map(|line| line.split_once(": ").filter(|(each, _)| each.eq_ignore_ascii_case(name)))
        };
        let length = header("content-length").and_then(|(_, length)| length.parse().ok()).unwrap_or(0);
        turn += 1;
        let mood = mood.load(Ordering::SeqCst);
        let is_good = mood > 0;
        if turn % 7 == 0 && !is_good {
            // It ends in the middle.
            return drop(client.read(&mut vec![0; length / 2]));
        }
        let mut body = vec![0; length];
        if client.read_exact(&mut body).is_err() {
            return;
        }
        let name = header("idempotency-key").map(|(_, name)| name.trim_matches('"').to_owned()).unwrap_or_default();
        let answer = match mood {
            0 => ANSWERS[turn % ANSWERS.len()],
            _ if never.contains(&name) => Some(WRONG[1]),
            mood if never.len() + 1 < mood as usize => {
                never.insert(name.clone());
                Some(WRONG[0])
            }
            _ => Some(RIGHT),
        };
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

fn reporting(shop: &Shop) -> Value {
    shop.machine.status()["Reporting"].clone()
}

/// The others arrive when they are there, and the status says which one the server does not have.
#[test]
fn a_report_that_a_server_never_takes_holds_up_no_other() {
    let (mut shop, got) = (Shop::new(), Got::default());
    let server = serve(&got, &Arc::new(AtomicU32::new(2)));
    shop.publish("one", FOR_WEB);
    enrol(&shop, &shop.machine, "web1");
    shop.follow(&shop.folder());
    shop.until_kept("one");
    shop.machine.set(&format!("ReportUrl={}", server.url("reports")), "SplaySecs=0");
    until(|| {
        Some(reporting(&shop))
            .filter(|it| it["Away"]["Reason"].as_str().is_some_and(|why| why.ends_with("answered 422")))
    });
    let taken = || got.lock().unwrap().values().filter(|all| all.iter().any(|(_, taken)| *taken)).count();
    while reporting(&shop)["LeftOut"].is_null() {
        let before = taken();
        assert!(before < 12, "it is left out once others were taken in its place three times");
        drift(&shop);
        until(|| (taken() > before).then_some(()));
    }
    let left_out = until(|| Some(reporting(&shop)["LeftOut"].clone()).filter(|left_out| left_out["Count"] == 1));
    until(|| reporting(&shop)["Away"].is_null().then_some(()));
    let (number, all) = (left_out["Number"].as_u64().unwrap(), got.lock().unwrap().clone());
    let last = format!("'web1-{number}.report' is not taken: the server answered 422");
    assert_eq!(left_out["Reason"], *last, "the last answer");
    let refused = &all[&format!("web1-{number}.report")];
    assert!(refused.len() >= 3 && refused.iter().all(|(_, taken)| !taken), "{}", refused.len());
    assert!(
        all.iter().filter(|(_, all)| all.iter().any(|(_, taken)| *taken)).all(|(_, all)| all.len() == 1),
        "once each"
    );
    let text = shop.machine.ok(&["status"]);
    assert!(text.contains(&format!("; 1 report is left out, the last is {number}: 'web1-")), "{text}");
    // It is known to the agent that begins again, too.
    shop.machine.kill();
    shop.machine.start();
    until(|| (reporting(&shop)["LeftOut"]["Number"] == number).then_some(()));
    shop.machine.stop();
}

/// One more than wait aside: what is behind it shows that the server takes others. The log names each that the server does not get.
#[test]
fn more_reports_that_a_server_never_takes_than_wait_aside_hold_up_no_other() {
    let (mut shop, got) = (Shop::new(), Got::default());
    let server = serve(&got, &Arc::new(AtomicU32::new(10)));
    shop.publish("one", FOR_WEB);
    enrol(&shop, &shop.machine, "web1");
    shop.follow(&shop.folder());
    shop.until_kept("one");
    for _ in 0..12 {
        drift(&shop);
    }
    shop.machine.set(&format!("ReportUrl={}", server.url("reports")), "SplaySecs=0");
    until(|| {
        shop.machine.signal(Signal::USR1);
        Some(reporting(&shop)).filter(|it| it["LeftOut"]["Count"] == 9 && it["Away"].is_null())
    });
    let (all, log) = (got.lock().unwrap().clone(), shop.log());
    let is_taken = |(_, all): &(&String, &Vec<(String, bool)>)| all.iter().any(|(_, taken)| *taken);
    let (taken, never): (Vec<_>, Vec<_>) = all.iter().partition(is_taken);
    assert!(never.len() == 9 && taken.len() >= 3, "{} taken", taken.len());
    for (name, posts) in never {
        assert!(posts.len() >= 3, "{name} was posted {} times", posts.len());
        let lost = log.lines().filter(|line| line.contains("reportLost") && line.contains(&format!("'{name}'")));
        let lost: Vec<Value> = lost.map(|line| serde_json::from_str(line).unwrap()).collect();
        let number = name["web1-".len()..].strip_suffix(".report").and_then(|number| number.parse::<u64>().ok());
        assert!(lost.len() == 1 && lost[0]["number"].as_u64() == number, "{name}: {lost:?}");
    }
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
    let shown = until(|| Some(reporting(&shop)).filter(|it| it["Away"].is_object()));
    assert_eq!(shown["To"], server.url("reports"));
    let why = shown["Away"]["Reason"].as_str().unwrap();
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
