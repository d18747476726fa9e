//! A controller and machines on one machine, over TLS.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may end with a panic wherever it is")]
#![expect(clippy::doc_markdown, reason = "databases have such names")]

#[path = "support/cluster.rs"]
mod cluster;
#[path = "../../stead-release/tests/support/mod.rs"]
mod keys;
#[path = "support/site.rs"]
mod site;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::Request;
use hyper::body::Incoming;
use jiff::Timestamp;
use serde_json::json;
use site::{Operators, Program, Simulated, Site, bundle, operator, try_ask};
use stead_core::bundle::{Bundle, Reach};
use stead_fleet::server::Controller;
use stead_fleet::store::{FleetStore, MachineId, StorePlace};
use stead_protocol::{HoldRequest, StandingRequest, TokenRequest};
use stead_release::{Digest, Fleet, Floor, Walk};
use stead_testkit::until;

fn file(folder: &tempfile::TempDir) -> StorePlace {
    StorePlace::File(folder.path().join("fleet.db"))
}

fn token(site: &Site, by: &str, uses: u64) -> String {
    let answer = site.tell(by, "/v1/tokens", &TokenRequest { uses, seconds: 600, labels: [].into() });
    answer.json()["token"].as_str().unwrap().to_owned()
}

/// Waits until a machine is pointed to something newer than what a tag stands for.
fn newer(site: &Site, machine: &mut Simulated, after: u64, tag: Option<&str>) -> site::Answer {
    until(|| Some(machine.desired(site, after, tag, 5)).filter(|answer| answer.status == 200))
}

/// A fleet with one machine in its roster and one release, on both stores.
#[test]
fn a_machine_joins_gets_what_is_newer_at_once_and_reports() {
    let test = "a_machine_joins_gets_what_is_newer_at_once_and_reports";
    let folder = tempfile::tempdir().unwrap();
    for place in std::iter::once(file(&folder)).chain(cluster::database(test)) {
        let ann = operator(&place, "ann", "approver");
        let site = Site::start(folder.path(), &place);
        let (mut operators, mut web) = (Operators::new(), Simulated::new("web1", 1));
        assert_eq!(web.enrol(&site, None).json(), json!({ "standing": "waiting" }));
        assert_eq!(web.desired(&site, 0, None, 0).status, 403);
        let secret = token(&site, &ann, 1);
        let mut db = Simulated::new("db1", 2);
        assert_eq!(db.enrol(&site, Some(&secret)).json(), json!({ "standing": "admitted" }));
        assert_eq!(Simulated::new("db2", 3).enrol(&site, Some(&secret)).status, 403);
        site.tell(&ann, "/v1/machines/web1/standing", &StandingRequest { standing: "admitted".to_owned() });
        assert_eq!(web.desired(&site, 0, None, 0).status, 304);

        let root = operators.root.to_text();
        assert_eq!(Operators::publish(&site, &ann, "root", &root).status, 200);
        let release = operators.release("web", "role=web", &bundle("the bundle"));
        assert_eq!(Operators::publish(&site, &ann, "release", &release).status, 424, "its bundle is not there");
        assert_eq!(Operators::store(&site, &ann, &bundle("the bundle")).status, 200);
        assert_eq!(Operators::publish(&site, &ann, "release", &release).status, 200);
        let roster = operators.roster(&[(&web.name, &web.key.public, "web"), (&db.name, &db.key.public, "db")]);
        assert_eq!(Operators::publish(&site, &ann, "roster", &roster).status, 200);

        let answer = newer(&site, &mut web, 0, None);
        let (tag, desired) = (answer.header("etag").unwrap().to_owned(), answer.json());
        assert_eq!((&desired["channel"], &desired["number"]), (&json!("web"), &json!(1)));
        // As a machine checks it: with nothing but the digest of the root.
        let given = web.ask(&site, "GET", "/v1/source/root", "", b"").body;
        let fleet = Fleet::of_root(&given, &operators.root.digest()).unwrap();
        let channel = "web".parse().unwrap();
        let mut walk = Walk::new(&fleet, &channel, Floor::first(&fleet));
        walk.step(desired["releases"][0].as_str().unwrap().as_bytes()).unwrap();
        let label = |label: &str| (label == "role").then_some("web");
        let newest = walk.newest(&label, Timestamp::now()).unwrap().unwrap().statement().bundle.clone();
        let path = format!("/v1/source/blobs/{newest}");
        let served = web.ask(&site, "GET", &path, "", b"").body;
        assert!(Bundle::decode(&served, Reach::Machine, Some(newest.as_str())).is_ok());
        assert!(web.session.is_some());

        // It waits, and is answered when there is more.
        let second = operators.release("web", "role=web", &bundle("the bundle"));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| newer(&site, &mut web, 1, Some(&tag)));
            assert_eq!(Operators::publish(&site, &ann, "release", &second).status, 200);
            assert_eq!(waits.join().unwrap().json()["number"], 2);
        });
        assert_eq!(db.desired(&site, 0, None, 0).status, 304, "no channel is for it");

        assert_eq!(web.report(&site, 1..4).json(), json!({ "new": 3, "forked": [] }));
        assert_eq!(web.report(&site, 2..6).json(), json!({ "new": 2, "forked": [] }));
        let kept = site.operator(&ann, "GET", "/v1/machines/web1/reports", b"").json();
        assert_eq!(kept["items"].as_array().unwrap().len(), 5);
        let shown = site.operator(&ann, "GET", "/v1/machines/web1", b"").json();
        assert_eq!((&shown["name"], &shown["desired"]), (&json!("web1"), &json!(["web", 2])));
        assert_eq!((&shown["said"], &shown["state"]), (&json!({ "applied": 0 }), &json!("pending")));
        assert_eq!((&shown["labels"], &shown["inRoster"]), (&json!({ "role": "web" }), &json!(true)));

        // What another controller knows on the same store, later.
        drop(site);
        let site = Site::start(folder.path(), &place);
        assert_eq!(newer(&site, &mut web, 1, Some(&tag)).json()["number"], 2);
        assert_eq!(web.report(&site, 2..7).json(), json!({ "new": 1, "forked": [] }));
    }
}

#[test]
fn a_machine_that_is_held_stays_and_goes_on_when_it_is_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "approver");
    let site = Site::start(folder.path(), &place);
    let (mut operators, mut one, mut other) = (Operators::new(), Simulated::new("m1", 1), Simulated::new("m2", 2));
    let secret = token(&site, &ann, 2);
    assert_eq!((one.enrol(&site, Some(&secret)).status, other.enrol(&site, Some(&secret)).status), (200, 200));
    Operators::store(&site, &ann, &bundle("b"));
    Operators::publish(&site, &ann, "root", &operators.root.to_text());
    let roster = operators.roster(&[(&one.name, &one.key.public, "x"), (&other.name, &other.key.public, "x")]);
    Operators::publish(&site, &ann, "roster", &roster);
    let hold = |seconds| site.tell(&ann, "/v1/machines/m1/hold", &HoldRequest { seconds, why: "by hand".to_owned() });
    assert_eq!(hold(600).status, 200);
    let first = operators.release("all", "all", &bundle("b"));
    assert_eq!(Operators::publish(&site, &ann, "release", &first).status, 200);
    newer(&site, &mut other, 0, None);
    let stays = one.desired(&site, 0, None, 0);
    assert_eq!(stays.status, 304);
    let (_, why) = stays.header(stead_protocol::HOLD).unwrap().split_once(' ').unwrap();
    assert_eq!(why, "by hand");
    assert_eq!(hold(0).status, 200);
    assert_eq!(newer(&site, &mut one, 0, None).header(stead_protocol::HOLD), None);
    // Two channels for one machine: it stays as it is.
    let second = operators.release("web", "role=x", &bundle("b"));
    assert_eq!(Operators::publish(&site, &ann, "release", &second).status, 200);
    let third = operators.release("all", "all", &bundle("b"));
    assert_eq!(Operators::publish(&site, &ann, "release", &third).status, 200);
    let fourth = operators.release("web", "role=none", &bundle("b"));
    assert_eq!(Operators::publish(&site, &ann, "release", &fourth).status, 200);
    let seen = until(|| Some(other.desired(&site, 1, Some("\"\""), 5)).filter(|answer| answer.json()["number"] == 2));
    assert_eq!(seen.json()["channel"], "all");
}

#[test]
fn what_no_machine_would_take_is_not_published() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "approver");
    let site = Site::start(folder.path(), &place);
    let (mut operators, mut strangers) = (Operators::new(), Operators::new());
    strangers.signer = keys::Key::new(201);
    let release = operators.release("web", "all", &bundle("b"));
    assert_eq!(Operators::publish(&site, &ann, "release", &release).status, 409, "there is not a root statement");
    Operators::publish(&site, &ann, "root", &operators.root.to_text());
    Operators::store(&site, &ann, &bundle("b"));
    let says = |kind: &str, text: &str| {
        let answer = site.operator(&ann, "POST", &format!("/v1/statements/{kind}"), text.as_bytes());
        (answer.status, String::from_utf8(answer.body).unwrap().chars().take(12).collect::<String>())
    };
    let stranger = strangers.release("web", "all", &bundle("b"));
    assert_eq!(says("release", &stranger), (409, "error[E1406]".to_owned()));
    let unsigned = release.split("-----").next().unwrap().to_owned();
    assert_eq!(says("release", &unsigned), (409, "error[E1404]".to_owned()));
    assert_eq!(says("roster", &release).0, 409);
    assert_eq!(says("signers", "stead-signers 1\n").0, 409);
    assert_eq!(says("nothing", &release).0, 404);
    assert_eq!(says("release", &release).0, 200);
    assert_eq!(says("release", &release).0, 200);
    let _ = operators.release("web", "all", &bundle("b"));
    let third = operators.release("web", "all", &bundle("b"));
    assert_eq!(says("release", &third), (409, "error[E1413]".to_owned()));
    let acts = site.operator(&ann, "GET", "/v1/acts", b"").json();
    assert_eq!(acts.as_array().unwrap().len(), 2, "the root statement and a release: {acts}");
}

#[test]
fn a_request_holds_once_and_for_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "operator");
    let site = Site::start(folder.path(), &place);
    let (mut web, mut other) = (Simulated::new("web1", 1), Simulated::new("web2", 2));
    let secret = token(&site, &ann, 2);
    assert_eq!((web.enrol(&site, Some(&secret)).status, other.enrol(&site, Some(&secret)).status), (200, 200));
    let body = web.reports(1..2, &json!({}));
    for turn in 0..2 {
        // By its key first, and then by its session.
        let signed = web.headers("POST", "/v1/reports", "{}", &body);
        let ask = |method: &str, path: &str, headers: &[(&str, String)], body: &[u8]| {
            site.ask(method, path, headers, body).status
        };
        let altered = |name: &str, value: &str| {
            let mut headers = signed.clone();
            headers.retain(|(header, _)| *header != name);
            headers.push(("stead-x", String::new()));
            headers.extend(
                signed.iter().filter(|(header, _)| *header == name).map(|(header, _)| (*header, value.to_owned())),
            );
            headers
        };
        assert_eq!(ask("POST", "/v1/reports", &signed, b"[]"), 401, "{turn}: another body");
        assert_eq!(ask("POST", "/v1/reports?x=1", &signed, &body), 401, "{turn}: another path");
        assert_eq!(ask("GET", "/v1/desired", &signed, b""), 401, "{turn}: another method and path");
        for (name, value) in [
            ("stead-request", "web2 1"),
            ("stead-request", "web1 77"),
            ("stead-request", "web1"),
            ("stead-request", "nobody 1"),
            ("stead-heartbeat", r#"{"a":1}"#),
            ("stead-heartbeat", "no JSON"),
            ("stead-signature", "session AAAA"),
            ("stead-signature", "AAAA"),
            ("stead-signature", ""),
        ] {
            assert_eq!(ask("POST", "/v1/reports", &altered(name, value), &body), 401, "{turn}: {name}: {value}");
        }
        assert_eq!(ask("POST", "/v1/reports", &signed, &body), 200, "{turn}");
        assert_eq!(ask("POST", "/v1/reports", &signed, &body), 409, "{turn}: once more");
        let answer = web.ask(&site, "POST", "/v1/reports", "{}", &body);
        assert_eq!((answer.status, web.session.is_some()), (200, true));
    }
    // The session of one machine is nothing for another.
    other.session = web.session.take();
    assert_eq!(other.report(&site, 1..2).status, 401);
    let large = vec![b' '; (1 << 20) + 1];
    other.session = None;
    assert_eq!(other.ask(&site, "POST", "/v1/reports", "", &large).status, 413);
    let many = other.reports(0..257, &json!({}));
    assert_eq!(other.ask(&site, "POST", "/v1/reports", "", &many).status, 400);
    assert_eq!(other.ask(&site, "POST", "/v1/reports", "", b"{").status, 400);
}

/// A client that sends its body before it reads has the answer. What was not read of a long one must not be taken for the next request.
#[test]
fn a_refusal_is_read_by_who_sends_a_body_before_it_reads() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start(folder.path(), &file(&folder));
    let sent = |path: &str, length: usize| {
        let headers = [("authorization", "Bearer stolen".to_owned())];
        try_ask(&site.agent, &format!("{}{path}", site.url), "POST", &headers, &vec![b' '; length])
    };
    for (path, status) in [("/v1/enrol", 413), ("/v1/nothing", 404), ("/v1/tokens", 401)] {
        for length in [(16 << 10) + 1, 64 << 10] {
            // On one connection, again and again.
            for _ in 0..20 {
                let refused = sent(path, length).unwrap();
                assert_eq!((refused.status, refused.header("connection")), (status, None), "{path} {length}");
            }
        }
        // It may break before it is answered; when it is, that is the end of it.
        let refused = until(|| sent(path, (64 << 10) + 1).ok());
        assert_eq!((refused.status, refused.header("connection")), (status, Some("close")), "{path}");
    }
    assert_eq!(site.ask("GET", "/v1/nothing", &[], b"").header("connection"), None, "nothing is unread");
}

/// Whoever says that a body comes and sends none, or waits to be asked for it, is refused all the same: after a second, and at once.
#[test]
fn a_refusal_waits_for_no_body_that_does_not_come() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start(folder.path(), &file(&folder));
    let port = site.url.rsplit(':').next().unwrap().parse().unwrap();
    let certificate = std::fs::read(folder.path().join("state/tls.pem")).unwrap();
    let answered = |expects: &str| {
        let (mut stream, began) = (site::tls_to(&certificate, port), Instant::now());
        let head = format!("POST /v1/tokens HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n{expects}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("connection: close"), "{answer}");
        began.elapsed()
    };
    let waits = Duration::from_secs(1);
    assert!(answered("") >= waits, "a body may come");
    // On a busy machine one of several: what waits for a body waits each time.
    until(|| (answered("expect: 100-continue\r\n") < waits).then_some(()));
}

#[test]
fn content_comes_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "approver");
    let site = Site::start(folder.path(), &place);
    let mut web = Simulated::new("web1", 1);
    let secret = token(&site, &ann, 1);
    web.enrol(&site, Some(&secret));
    let large = bundle(&(0..1_200_000).map(|line| line.to_string()).collect::<Vec<_>>().join("\n"));
    assert_eq!(Operators::store(&site, &ann, &large).status, 200);
    let (path, large) = (format!("/v1/source/blobs/{}", large.name()), large.encode());
    // Under another name, altered, and what is not a bundle.
    let put = |name: &str, body: &[u8]| site.operator(&ann, "PUT", &format!("/v1/blobs/{name}"), body).status;
    let (small, other) = (bundle("small"), Digest::of(b"other"));
    let mut altered = small.encode();
    *altered.last_mut().unwrap() ^= 1;
    assert_eq!([put(other.as_str(), &large), put(small.name(), &altered), put(other.as_str(), b"other")], [400; 3]);
    assert_eq!([put("other", b"other"), put(small.name(), &small.encode())], [400, 200]);
    let mut got = Vec::new();
    while got.len() < large.len() {
        let mut headers = web.headers("GET", &path, "", b"");
        headers.push(("range", format!("bytes={}-", got.len())));
        let answer = site.ask("GET", &path, &headers, b"");
        assert_eq!(answer.status, 206);
        let end = got.len() + answer.body.len() - 1;
        assert_eq!(answer.header("content-range"), Some(&*format!("bytes {}-{end}/{}", got.len(), large.len())));
        got.extend(answer.body);
    }
    assert_eq!(got, large);
    let mut headers = web.headers("GET", &path, "", b"");
    headers.push(("range", format!("bytes={}-", large.len())));
    assert_eq!(site.ask("GET", &path, &headers, b"").status, 416);
}

#[test]
fn connections_without_a_word_keep_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "viewer");
    let site = Site::start(folder.path(), &place);
    let address = site.url.strip_prefix("https://localhost:").unwrap().to_owned();
    let connect = || TcpStream::connect(format!("127.0.0.1:{address}")).unwrap();
    let silent: Vec<TcpStream> = (0..500).map(|_| connect()).collect();
    for words in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01\xff\xff", &[0; 4096]] {
        let mut stream = connect();
        stream.write_all(words).unwrap();
    }
    let answered = until(|| {
        let began = Instant::now();
        assert_eq!(site.operator(&ann, "GET", "/v1/machines", b"").status, 200);
        // On a busy machine one of several: what is held up is held up each time.
        (began.elapsed() < Duration::from_millis(100)).then(|| began.elapsed())
    });
    assert!(answered < Duration::from_millis(100));
    let mut first = silent.into_iter().next().unwrap();
    first.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    assert_eq!(first.read(&mut [0; 1]).unwrap_or(0), 0, "it is ended by the controller");
}

/// Ten thousand machines wait: what each holds meanwhile is little.
#[test]
fn the_future_of_an_answer_is_small() {
    fn size<F>(_: impl Fn(Arc<Controller>, Request<Incoming>) -> F) -> usize {
        size_of::<F>()
    }
    let size = size(Controller::answer);
    println!("an answer that is waited for holds {size} bytes");
    assert!(size < 1600, "{size}");
}

/// Runs the program until it ends, and returns whether it succeeded and what it printed.
fn ended(words: &[&str], folder: &std::path::Path) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stead-fleet"));
    let output = command.args(words).arg("--folder").arg(folder).output().unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn a_file_has_one_controller_and_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let first = Program::start(&state);
    for entry in std::fs::read_dir(&state).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
    }
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", first.child.id())).unwrap();
    let descriptors = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let descriptors: Vec<&str> = descriptors.split_whitespace().collect();
    assert_eq!(descriptors[0], descriptors[1], "as many as it may have: each machine needs one");
    let another = ["run", "--listen", "127.0.0.1:0"];
    let (is_good, said) = ended(&another, &state);
    assert!(!is_good && said.starts_with("error: another controller has "), "{said}");
    assert!(ended(&["operator", "ann", "--role", "viewer"], &state).0, "accounts are made meanwhile");
    drop(first);
    drop(Program::start(&state));
}

#[test]
fn a_place_that_is_not_a_server_makes_no_file_and_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    for place in [file.to_str().unwrap(), "postgres://ann:hunter2@localhost:port/db", "passwort=hunter2"] {
        let words = ["operator", "ann", "--role", "viewer", "--store", place];
        let (is_good, said) = ended(&words, &folder.path().join("state"));
        assert!(!is_good && said.starts_with("error: the database: it is not an address of PostgreSQL"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    assert!(!file.exists());
}

/// Somebody else keeps the lock that all writes need, as a session that was forgotten does.
#[test]
fn a_database_that_does_not_answer_keeps_nobody_waiting_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let Some(place) = cluster::database("a_database_that_does_not_answer_keeps_nobody_waiting_for_ever") else {
        return;
    };
    let ann = operator(&place, "ann", "operator");
    let site = Site::start(folder.path(), &place);
    let StorePlace::Server(words) = &place else { panic!("a server") };
    let mut other = postgres::Client::connect(words, postgres::NoTls).unwrap();
    other.batch_execute("SELECT pg_advisory_lock(7311)").unwrap();
    let ask = || site.tell(&ann, "/v1/tokens", &TokenRequest { uses: 1, seconds: 60, labels: [].into() });
    let began = Instant::now();
    let answer = ask();
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")));
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    assert_eq!(site.operator(&ann, "GET", "/v1/machines", b"").status, 200, "what is read waits for nothing");
    drop(other);
    until(|| (ask().status == 200).then_some(()));
}

/// The numbers of all reports of a machine.
fn numbers(store: &mut FleetStore, machine: MachineId) -> Vec<u64> {
    let (mut numbers, mut below) = (Vec::new(), u64::MAX);
    loop {
        let some = store.reports(machine, below, 1000).unwrap();
        let Some(last) = some.last() else { return numbers };
        below = last.number;
        numbers.extend(some.iter().map(|report| report.number));
    }
}

#[test]
fn a_kill_loses_and_doubles_no_report_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let made = Command::new(env!("CARGO_BIN_EXE_stead-fleet"))
        .args(["operator", "ann", "--role", "operator", "--folder"])
        .arg(&state)
        .output()
        .unwrap();
    let ann = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    assert_eq!(ann.len(), 43);
    let (mut acknowledged, mut sent) = (Vec::new(), 0_u64);
    let web = Simulated::new("web1", 1);
    for turn in 0..4 {
        let mut program = Program::start(&state);
        let agent = site::agent(&std::fs::read(state.join("tls.pem")).unwrap());
        let ask = |method: &str, path: &str, headers: &[(&str, String)], body: &[u8]| {
            try_ask(&agent, &format!("{}{path}", program.url), method, headers, body)
        };
        if turn == 0 {
            let body = serde_json::to_vec(&TokenRequest { uses: 1, seconds: 60, labels: [].into() }).unwrap();
            let answer = ask("POST", "/v1/tokens", &[("authorization", format!("Bearer {ann}"))], &body).unwrap();
            let key = web.key.public.to_string();
            let body = json!({ "key": key, "token": answer.json()["token"] }).to_string().into_bytes();
            let headers = web.headers("POST", "/v1/enrol", "", &body);
            assert_eq!(ask("POST", "/v1/enrol", &headers, &body).unwrap().status, 200);
        }
        let answered = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let (child, enough, answered) = (&mut program.child, 3 + 5 * turn, &answered);
            // While others are on their way.
            scope.spawn(move || {
                until(|| (answered.load(Ordering::SeqCst) >= enough).then_some(()));
                child.kill().unwrap();
            });
            loop {
                let numbers = sent + 1..sent + 6;
                let body = web.reports(numbers.clone(), &json!({}));
                let headers = web.headers("POST", "/v1/reports", "", &body);
                match ask("POST", "/v1/reports", &headers, &body) {
                    Ok(answer) if answer.status == 200 => {
                        // What was on its way when it was killed was sent again, and may have been there.
                        acknowledged.extend(numbers);
                        sent += 5;
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                    Ok(answer) => panic!("{} {}", answer.status, String::from_utf8_lossy(&answer.body)),
                    Err(_) => break,
                }
            }
        });
        program.child.wait().unwrap();
    }
    let mut store = StorePlace::File(state.join("fleet.db")).open().unwrap();
    let machine = store.changes(0).unwrap().machines.pop().unwrap().id;
    let mut kept = numbers(&mut store, machine);
    kept.sort_unstable();
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    assert!(acknowledged.iter().all(|number| kept.binary_search(number).is_ok()));
    assert!(kept.windows(2).all(|pair| pair[0] != pair[1]));
}

/// The lines of a table, with one space between columns and without the line below its headings.
fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("--"));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Runs a command of an operator.
fn command(state: &std::path::Path, url: &str, words: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stead-fleet"));
    command.args(words).args(["--url", url, "--certificate"]).arg(state.join("tls.pem")).arg("--token-file");
    let output = command.arg(state.join("token")).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn operators_do_by_commands_what_they_may() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "approver");
    let site = Site::start(folder.path(), &place);
    let state = folder.path().join("state");
    std::fs::write(state.join("token"), format!("{ann}\n")).unwrap();
    let run = |words: &[&str]| command(&state, &site.url, words);
    let good = |words: &[&str]| {
        let (is_good, said) = run(words);
        assert!(is_good, "{words:?}: {said}");
        said
    };
    let (mut web, mut db) = (Simulated::new("web1", 1), Simulated::new("db1", 2));
    let secret = good(&["token", "--label", "role=web"]);
    assert_eq!(web.enrol(&site, Some(secret.trim())).status, 200);
    assert_eq!(db.enrol(&site, None).status, 200);
    assert_eq!(
        lines(&good(&["machines", "standing=waiting"])),
        ["Name State Release Heard Labels", "db1 waiting - never"]
    );
    assert!(lines(&good(&["machines", "role=web"]))[1].starts_with("web1 unknown - never"));
    assert!(lines(&good(&["labels"]))[1].starts_with("web1 not in the roster role=web"));
    assert_eq!(good(&["admit", "db1"]), "admitted db1\n");
    assert_eq!(
        run(&["machines", "role="]).1.lines().next(),
        Some("error: invalid value 'role=' for '[FILTER]': expected a value; write a word, or text in quotes")
    );
    assert_eq!(run(&["admit", "nobody"]), (false, "error: refused: there is no such machine\n".to_owned()));

    let mut operators = Operators::new();
    assert!(run(&["publish", folder.path().to_str().unwrap()]).1.contains("it has no file 'root'"));
    let source = folder.path().join("fleet");
    let write = |name: &str, content: &[u8]| {
        let path = source.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    write("root", operators.root.to_text().as_bytes());
    write("roster", operators.roster(&[(&web.name, &web.key.public, "web")]).as_bytes());
    write("web/1.release", operators.release("web", "role=web", &bundle("bundle")).as_bytes());
    let publish = ["publish", source.to_str().unwrap()];
    let (is_good, said) = run(&publish);
    assert!(!is_good && said.contains("cannot read") && said.contains("blobs"), "{said}");
    write(&format!("blobs/{}", bundle("bundle").name()), &bundle("bundle").encode());
    assert_eq!(good(&publish), "web/1.release\n");
    write("web/2.release", operators.release("web", "role=web", &bundle("bundle")).as_bytes());
    assert_eq!(good(&publish), "web/2.release\n");
    let acts = good(&["audit", "verify"]);
    assert_eq!((good(&publish), good(&["audit", "verify"])), (String::new(), acts), "what is there is not an act");
    newer(&site, &mut web, 0, None);
    assert!(lines(&good(&["machines", "channel=web"]))[1].starts_with("web1 pending - > web/"));
    assert!(good(&["hold", "web1", "--for", "60", "--why", "by hand"]).starts_with("hold web1 for 60 s"));
    assert!(lines(&good(&["machines", "state=held"]))[1].starts_with("web1 held "));
    assert_eq!(good(&["retire", "db1"]), "retired db1\n");
    assert_eq!(db.desired(&site, 0, None, 0).status, 403);
}

#[test]
fn a_chain_of_acts_that_was_changed_or_cut_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "operator");
    let site = Site::start(folder.path(), &place);
    let state = folder.path().join("state");
    std::fs::write(state.join("token"), ann).unwrap();
    let run = |words: &[&str]| command(&state, &site.url, words);
    assert_eq!(run(&["audit", "verify"]), (true, format!("0 acts, the last is {}\n", Digest::of(b""))));
    (0..3).for_each(|_| assert!(run(&["token"]).0));
    let said = run(&["audit", "verify"]).1;
    let head = said.trim().rsplit(' ').next().unwrap().to_owned();
    assert!(run(&["token"]).0 && run(&["audit", "verify", "--head", &head]).0);
    let db = rusqlite::Connection::open(folder.path().join("fleet.db")).unwrap();
    for number in 1..=4 {
        let change =
            |to: &str| db.execute(&format!("UPDATE acts SET body = {to} WHERE number = {number}"), []).unwrap();
        change("'x' || body");
        let (is_good, said) = run(&["audit", "verify"]);
        assert!(!is_good && said.starts_with(&format!("error: act {number} is not")), "{said}");
        change("substr(body, 2)");
    }
    assert!(run(&["audit", "verify"]).0);
    db.execute("DELETE FROM acts WHERE number > 2", []).unwrap();
    assert!(run(&["audit", "verify"]).0, "what nobody knew before is not missed");
    assert!(run(&["audit", "verify", "--head", &head]).1.contains("its end was cut"));
}
