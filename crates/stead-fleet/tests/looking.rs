//! Machines as operators see them: states, silence, drift, causes, events, pages.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]
#![expect(clippy::doc_markdown, reason = "databases have such names")]

#[path = "support/cluster.rs"]
mod cluster;
#[path = "../../stead-release/tests/support/mod.rs"]
mod keys;
#[path = "support/site.rs"]
mod site;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use site::{Operators, Simulated, Site, bundle, joined, operator};
use stead_core::schema::Schema;
use stead_fleet::server::{Controller, Look, Planner, Stop, StoreAccess, StoreRead};
use stead_fleet::store::{Done, FleetStore, Heartbeat, Standing, StorePlace, StoreWrite, Unit};
use stead_protocol::{SentReport, StandingRequest, TokenRequest};
use stead_release::{Digest, MachineReport};
use stead_testkit::until;

fn file(folder: &tempfile::TempDir) -> StorePlace {
    StorePlace::File(folder.path().join("fleet.db"))
}

fn token(site: &Site, by: &str, uses: u64) -> String {
    let answer = site.tell(by, "/v1/tokens", &TokenRequest { uses, seconds: 600, labels: [].into() });
    answer.json()["token"].as_str().unwrap().to_owned()
}

fn asked(site: &Site, by: &str, path: &str) -> Value {
    let answer = site.operator(by, "GET", path, b"");
    assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
    // Each answer is what the published schema says.
    let schema = stead_fleet::api::answer_schema("GET", path.split('?').next().unwrap()).unwrap();
    let mismatches = Schema::compile(schema).unwrap().validate(&answer.json());
    assert!(mismatches.is_empty(), "{path}: {mismatches:?}");
    answer.json()
}

#[test]
fn a_request_to_check_is_over_after_an_hour() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "approver");
    let site = Site::start(folder.path(), &place);
    let mut machine = joined(&site, &ann, &["m1"]).remove(0);
    assert_eq!(site.operator(&ann, "POST", "/v1/checks", b"").json()["machines"], 1);
    drop(site);
    let db = rusqlite::Connection::open(folder.path().join("fleet.db")).unwrap();
    for (minutes, is_asked) in [(0, true), (50, true), (10, false)] {
        db.execute("UPDATE machines SET asked = asked - ?", [minutes * 60_000]).unwrap();
        let site = Site::start(folder.path(), &place);
        let answer = machine.ask(&site, "GET", "/v1/desired", "", b"");
        assert_eq!(answer.header("stead-check").is_some(), is_asked, "{minutes}");
    }
}

/// Has a machine say something of itself.
fn says(site: &Site, machine: &mut Simulated, said: &Value) {
    assert_eq!(machine.ask(site, "GET", "/v1/desired", &said.to_string(), b"").status, 304);
}

fn reports(site: &Site, machine: &mut Simulated, number: u64, report: &Value) -> Value {
    let body = machine.reports(number..number + 1, report);
    machine.ask(site, "POST", "/v1/reports", "", &body).json()
}

/// Waits until a machine is in a state.
fn becomes(site: &Site, by: &str, machine: &str, state: &str) {
    let path = format!("/v1/machines/{machine}");
    until(|| Some(()).filter(|()| asked(site, by, &path)["state"] == state));
}

fn failed(name: &str, message: &str) -> Value {
    let instance = json!({ "name": name, "type": "Stead/Package", "status": "failed", "message": message });
    json!({ "version": 1, "totals": { "failed": 1 }, "instances": [instance] })
}

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[test]
fn failures_of_one_cause_are_one_and_drift_is_shown_by_machine() {
    let folder = tempfile::tempdir().unwrap();
    for place in std::iter::once(file(&folder)).chain(cluster::database("failures_of_one_cause_are_one")) {
        let ann = operator(&place, "ann", "operator");
        let site = Site::start(folder.path(), &place);
        let mut machines = joined(&site, &ann, &["a1", "a2", "a3", "b1"]);
        for (number, machine) in machines.iter_mut().take(3).enumerate() {
            let message = format!("cannot lock '/var/lib/dpkg/lock': held by process {number}");
            reports(&site, machine, 1, &failed(&format!("nginx{number}"), &message));
        }
        let drifted =
            json!({ "name": "page", "type": "Stead/File", "status": "drifted", "drift": ["content differs"] });
        reports(&site, &mut machines[3], 1, &json!({ "totals": { "drifted": 1 }, "instances": [drifted] }));
        becomes(&site, &ann, "a3", "failed");
        becomes(&site, &ann, "b1", "drifted");
        let causes = asked(&site, &ann, "/v1/failures");
        let message = "cannot lock …: held by process …";
        let cause = json!({ "type": "Stead/Package", "message": message, "machines": 3, "names": ["a1", "a2", "a3"] });
        assert_eq!(causes, json!({ "items": [cause] }));
        let one = asked(&site, &ann, "/v1/failures?where=name%3Da2");
        assert_eq!((&one["items"][0]["machines"], &one["items"][0]["names"]), (&json!(1), &json!(["a2"])));
        let instance = json!({ "name": "page", "type": "Stead/File", "drift": ["content differs"] });
        let drift = json!({ "items": [{ "machine": "b1", "report": 1, "instances": [instance] }] });
        assert_eq!(asked(&site, &ann, "/v1/drift"), drift);
        let counts = asked(&site, &ann, "/v1/status")["machines"].clone();
        assert_eq!((&counts["failed"], &counts["drifted"], &counts["silent"]), (&json!(3), &json!(1), &json!(0)));
        // What it says with a request is newer than its report.
        says(&site, &mut machines[0], &json!({ "counts": { "unchanged": 4 } }));
        becomes(&site, &ann, "a1", "unknown");
        // A controller that begins reads them again.
        drop(site);
        let site = Site::start(folder.path(), &place);
        becomes(&site, &ann, "a2", "failed");
        reports(&site, &mut machines[1], 2, &json!({ "totals": { "changed": 1 }, "instances": [] }));
        becomes(&site, &ann, "a2", "unknown");
        assert_eq!(asked(&site, &ann, "/v1/failures?where=name!=a1")["items"][0]["machines"], 1);
    }
}

/// What a machine says that it did is signed by its own key: whoever has its session, as a proxy that ends TLS, adds nothing to it.
#[test]
fn a_report_that_its_machine_did_not_sign_is_refused_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "approver");
    let site = Site::start(folder.path(), &place);
    let (mut web, other) = (Simulated::new("web1", 1), Simulated::new("web2", 2));
    let secret = token(&site, &ann, 1);
    assert_eq!(web.enrol(&site, Some(&secret)).status, 200);
    let signer = Simulated::new("web1", 1);
    let root = &Operators::new().root;
    assert_eq!(Operators::publish(&site, &ann, "root", &root.to_text()).status, 200);
    let sent = |number: u64, report: MachineReport| {
        serde_json::to_value(SentReport { number, signed: signer.key.signed(report).to_text() }).unwrap()
    };
    let report = |of: &Simulated, number: u64| of.sent(number, &json!({})).parse().unwrap().statement().clone();
    let own = serde_json::to_value(signer.sent(5, &json!({}))).unwrap();
    let fleet = MachineReport { fleet: Digest::of(b"another"), ..report(&signer, 1) };
    let altered = own["signed"].as_str().unwrap().replace("report {}", r#"report {"a":1}"#);
    let cases = [
        (json!({ "number": 1 }), "missing field `signed`"),
        (json!({ "number": 1, "signed": "" }), "error[E1401]: report 1: it is not a report"),
        (json!({ "number": 5, "signed": altered }), "error[E1403]: report 5: the signature of "),
        (
            serde_json::to_value(other.sent(1, &json!({}))).unwrap(),
            "error[E1432]: report 1: it belongs to the machine web2",
        ),
        (sent(1, report(&other, 1)), "error[E1432]: report 1: it belongs to the machine web2"),
        (sent(1, fleet), "error[E1409]: report 1: it belongs to the fleet "),
        (sent(7, report(&signer, 1)), "report 7 is signed as 1"),
    ];
    let shown = || site.operator(&ann, "GET", "/v1/machines/web1", b"").json();
    assert_eq!(shown().get("refused"), None);
    for (report, why) in cases {
        // What comes with it is not kept either: its machine sends it again.
        let answer = web.ask(&site, "POST", "/v1/reports", "", json!([own, report]).to_string().as_bytes());
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(answer.status == 400 && text.starts_with(why), "{report}: {text}");
        assert_eq!(shown()["refused"][1].as_str(), Some(text.trim()));
    }
    let reports = site.operator(&ann, "GET", "/v1/machines/web1/reports", b"").json();
    assert_eq!(reports["items"], json!([]));
    assert_eq!(web.report(&site, 5..6).json(), json!({ "new": 1, "forked": [] }));
}

/// A machine that waits and comes back with a token is admitted at once; what it asks for stays a request beside the labels of the token.
#[test]
fn a_machine_that_waits_is_admitted_by_a_token_and_is_expected_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let test = "a_machine_that_waits_is_admitted_by_a_token_and_is_expected_from_then_on";
    for place in std::iter::once(file(&folder)).chain(cluster::database(test)) {
        let ann = operator(&place, "ann", "operator");
        let site = Site::start(folder.path(), &place);
        let labels = BTreeMap::from([("role".to_owned(), "web".to_owned())]);
        let wanted = TokenRequest { uses: 1, seconds: 600, labels };
        let secret = site.tell(&ann, "/v1/tokens", &wanted).json()["token"].as_str().unwrap().to_owned();
        let mut web = Simulated::new("web1", 1);
        let mut join = |token: Option<&str>| {
            let asked = json!({ "role": "db", "rack": "7" });
            let body = json!({ "key": web.key.public.to_string(), "token": token, "labels": asked }).to_string();
            web.ask(&site, "POST", "/v1/enrol", "", body.as_bytes())
        };
        let shown = || site.operator(&ann, "GET", "/v1/machines/web1", b"").json();
        assert_eq!(join(None).json(), json!({ "standing": "waiting" }));
        assert_eq!(join(Some("another")).status, 403);
        assert_eq!(
            (shown()["state"].clone(), shown()["asked"].clone()),
            (json!("waiting"), json!({ "role": "db", "rack": "7" }))
        );
        assert_eq!(join(Some(&secret)).json(), json!({ "standing": "admitted" }));
        assert_eq!(shown()["asked"], json!({ "role": "web", "rack": "7" }));
        // The token was used up by it, and it needs none any more.
        assert_eq!(join(Some(&secret)).json(), json!({ "standing": "admitted" }));
        assert_eq!(web.desired(&site, 0, None, 0).status, 304);
        // It is expected to ask from then on, however long it waited.
        assert_eq!(Simulated::new("web2", 2).enrol(&site, None).json(), json!({ "standing": "waiting" }));
        let mut store = place.open().unwrap();
        let mut joined = || store.changes(0).unwrap().machines.iter().map(|machine| machine.joined).max().unwrap();
        let before = joined();
        until(|| (place.open().unwrap().now().unwrap() > before).then_some(()));
        let admit = StandingRequest { standing: "admitted".to_owned() };
        assert_eq!(site.tell(&ann, "/v1/machines/web2/standing", &admit).status, 200);
        let admitted = joined();
        assert!(admitted > before);
        assert_eq!(site.tell(&ann, "/v1/machines/web2/standing", &admit).status, 200);
        assert_eq!(joined(), admitted, "it was");
    }
}

#[test]
fn lists_come_in_pages_and_a_filter_chooses_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "approver");
    let site = Site::start(folder.path(), &place);
    let all = ["m1", "m2", "m3", "m4", "m5"];
    let mut machines = joined(&site, &ann, &all);
    let page = asked(&site, &ann, "/v1/machines?most=2");
    assert_eq!((names(&page), &page["next"]), (vec!["m1", "m2"], &json!("m2")));
    let page = asked(&site, &ann, "/v1/machines?most=2&after=m4");
    assert_eq!((names(&page), page.get("next")), (vec!["m5"], None));
    assert_eq!(names(&asked(&site, &ann, "/v1/machines?after=m3a")), ["m4", "m5"]);
    for number in 1..=5 {
        reports(&site, &mut machines[0], number, &json!({ "totals": {} }));
    }
    let page = asked(&site, &ann, "/v1/machines/m1/reports?most=2&after=4");
    assert_eq!((page["items"][0]["number"].as_u64(), &page["next"]), (Some(3), &json!("2")));
    let page = asked(&site, &ann, "/v1/machines/m1/reports?most=2&after=3");
    assert_eq!((page["items"].as_array().unwrap().len(), page.get("next")), (2, None));
    for wrong in [
        "/v1/machines?most=0",
        "/v1/machines?most=1001",
        "/v1/machines?most=x",
        "/v1/machines?where=role%3D",
        "/v1/machines?where=%ff",
        "/v1/machines?after=%20",
        "/v1/machines/m1/reports?after=x",
        "/v1/failures?after=x",
    ] {
        assert_eq!(site.operator(&ann, "GET", wrong, b"").status, 400, "{wrong}");
    }
    // Labels that operators signed come before those that a machine asked for.
    let mut operators = Operators::new();
    Operators::publish(&site, &ann, "root", &operators.root.to_text());
    let roster = operators.roster(&[(&machines[1].name, &machines[1].key.public, "web")]);
    assert_eq!(Operators::publish(&site, &ann, "roster", &roster).status, 200);
    let web = "/v1/machines?where=role%3Dweb%20and%20not%20state%3Dsilent";
    until(|| Some(()).filter(|()| names(&asked(&site, &ann, web)) == ["m2"]));
}

#[test]
fn a_machine_that_is_not_heard_is_silent_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "operator");
    let site = Site::start(folder.path(), &place);
    let mut machines = joined(&site, &ann, &["m1", "m2"]);
    // Two intervals and ten seconds: for the first it is soon, for the other it is not.
    says(&site, &mut machines[0], &json!({ "interval": 1, "counts": {} }));
    says(&site, &mut machines[1], &json!({ "counts": {} }));
    let events = asked(&site, &ann, "/v1/events");
    let shown = asked(&site, &ann, "/v1/machines/m1");
    let deadline = |shown: &Value| shown["deadline"].as_u64().unwrap();
    assert_eq!(deadline(&shown) - shown["heard"].as_u64().unwrap(), 12_000);
    becomes(&site, &ann, "m1", "silent");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    assert!(now > u128::from(deadline(&shown)), "not before its deadline");
    assert_eq!(asked(&site, &ann, "/v1/machines/m2")["state"], "unknown");
    assert_eq!(asked(&site, &ann, "/v1/status")["machines"]["silent"], 1);
    // It was an event, and that it is heard again is another one.
    let next = events["next"].as_str().unwrap();
    let event = until(|| {
        let page = asked(&site, &ann, &format!("/v1/events?after={next}"));
        let found = page["items"].as_array().unwrap().iter().find(|event| event["to"] == "silent").cloned();
        found.map(|event| (event, page["next"].as_str().unwrap().to_owned()))
    });
    assert_eq!((&event.0["machine"], &event.0["from"]), (&json!("m1"), &json!("unknown")));
    says(&site, &mut machines[0], &json!({ "interval": 60 }));
    becomes(&site, &ann, "m1", "unknown");
    let headers = [("authorization", format!("Bearer {ann}")), ("prefer", "wait=30".to_owned())];
    let page = site.ask("GET", &format!("/v1/events?after={}", event.1), &headers, b"").json();
    assert_eq!(page["items"][0]["from"], "silent", "{page}");
    // A controller that begins knows nothing of the time before: nobody is silent because it was away.
    let db = rusqlite::Connection::open(folder.path().join("fleet.db")).unwrap();
    drop(site);
    assert_eq!(db.execute("UPDATE heard SET at = 1000, said = '{}'", []).unwrap(), 2);
    let site = Site::start(folder.path(), &place);
    assert_eq!(asked(&site, &ann, "/v1/status")["machines"]["silent"], 0);
}

#[test]
fn two_machines_with_one_key_are_shown_and_given_nothing_newer() {
    let folder = tempfile::tempdir().unwrap();
    for place in std::iter::once(file(&folder)).chain(cluster::database("two_machines_with_one_key")) {
        let ann = operator(&place, "ann", "approver");
        let site = Site::start(folder.path(), &place);
        let mut machines = joined(&site, &ann, &["m1", "m2"]);
        let mut operators = Operators::new();
        Operators::store(&site, &ann, &bundle("b"));
        Operators::publish(&site, &ann, "root", &operators.root.to_text());
        let members: Vec<_> = machines.iter().map(|machine| (&machine.name, &machine.key.public, "x")).collect();
        Operators::publish(&site, &ann, "roster", &operators.roster(&members));
        reports(&site, &mut machines[0], 7, &json!({ "totals": {} }));
        let answer = reports(&site, &mut machines[0], 7, &json!({ "totals": { "failed": 1 } }));
        assert_eq!(answer, json!({ "new": 0, "forked": [7] }));
        assert_eq!(asked(&site, &ann, "/v1/machines/m1")["state"], "cloned");
        let release = operators.release("all", "all", &bundle("b"));
        assert_eq!(Operators::publish(&site, &ann, "release", &release).status, 200);
        until(|| (machines[1].desired(&site, 0, None, 5).status == 200).then_some(()));
        assert_eq!(machines[0].desired(&site, 0, None, 0).status, 304);
        // Also after a restart, until an operator has seen it.
        drop(site);
        let site = Site::start(folder.path(), &place);
        let shown = asked(&site, &ann, "/v1/machines/m1");
        assert_eq!((&shown["state"], &shown["forked"]), (&json!("cloned"), &json!(7)));
        let admit = stead_protocol::StandingRequest { standing: "admitted".to_owned() };
        assert_eq!(site.tell(&ann, "/v1/machines/m1/standing", &admit).status, 200);
        until(|| (machines[0].desired(&site, 0, None, 5).status == 200).then_some(()));
        assert_eq!(asked(&site, &ann, "/v1/machines/m1").get("forked"), None);
    }
}

#[test]
fn several_controllers_hear_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let Some(place) = cluster::database("several_controllers_hear_for_each_other") else { return };
    let ann = operator(&place, "ann", "operator");
    let (one, other) = (Site::start(folder.path(), &place), Site::start(folder.path(), &place));
    let mut machines = joined(&one, &ann, &["m1"]);
    says(&one, &mut machines[0], &json!({ "interval": 1, "counts": { "failed": 1 } }));
    reports(&one, &mut machines[0], 1, &failed("nginx", "no room"));
    until(|| Some(()).filter(|()| asked(&other, &ann, "/v1/failures")["items"][0]["machines"] == 1));
    until(|| Some(()).filter(|()| asked(&other, &ann, "/v1/machines/m1")["said"]["interval"] == 1));
    drop(one);
}

#[test]
fn figures_are_those_of_the_lists() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "operator");
    let site = Site::start(folder.path(), &place);
    let mut machines = joined(&site, &ann, &["m1", "m2"]);
    Simulated::new("m3", 9).enrol(&site, None);
    machines[0].report(&site, 1..4);
    assert_eq!(site.ask("GET", "/v1/status", &[], b"").status, 401);
    let answer = site.operator(&ann, "GET", "/metrics", b"");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = String::from_utf8(answer.body).unwrap();
    for line in [
        "# TYPE stead_fleet_machines gauge",
        "stead_fleet_machines{state=\"unknown\"} 2",
        "stead_fleet_machines{state=\"waiting\"} 1",
        "stead_fleet_machines{state=\"converged\"} 0",
        "stead_fleet_answers_total{status=\"401\"} 1",
        "stead_fleet_reports_total 3",
    ] {
        assert!(text.lines().any(|each| each == line), "{line}: {text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        assert!(line.starts_with("stead_fleet_") && line.rsplit(' ').next().unwrap().parse::<u64>().is_ok(), "{line}");
    }
}

/// The store of a controller that looks when the test says so.
struct Inline(Mutex<FleetStore>);

impl StoreAccess for Inline {
    fn write(&self, unit: Unit, done: Done) {
        let (mut outcomes, _) = self.0.lock().unwrap().commit(&[unit]).unwrap();
        done(Ok(outcomes.remove(0)));
    }

    fn read(&self, read: StoreRead) {
        read(&mut self.0.lock().unwrap());
    }

    fn hears_others(&self) -> bool {
        true
    }
}

/// A controller without threads, whose clock goes on by a second each time that somebody looks at it.
struct Quiet {
    controller: Arc<Controller>,
    planner: Planner,
    _stop: Stop,
}

impl Quiet {
    fn over(place: &StorePlace) -> Self {
        let time = Arc::new(AtomicU64::new(1_750_000_000_000));
        let clock = move || time.fetch_add(1000, Ordering::SeqCst);
        let open = || place.open().unwrap().with_clock(clock.clone());
        let (store, access) = (open(), Inline(Mutex::new(open())));
        let (controller, stop, planner) =
            Controller::over(store, Box::new(access), Box::new(clock.clone()), 2).unwrap();
        Self { controller, planner, _stop: stop }
    }

    fn look(&mut self) {
        self.planner.look(&self.controller, Look::AtAll).unwrap();
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, String)], body: &[u8]) -> Value {
        let mut request = hyper::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answered = runtime.block_on(async {
            let answer = Arc::clone(&self.controller).answer(request).await;
            assert_eq!(answer.status(), 200, "{path}");
            answer.into_body().collect().await.unwrap().to_bytes()
        });
        serde_json::from_slice(&answered).unwrap()
    }

    fn operator(&self, token: &str, path: &str) -> Value {
        self.ask("GET", path, &[("authorization", format!("Bearer {token}"))], b"")
    }
}

#[test]
fn what_another_controller_decided_on_two_machines_counts_before_this_one_looked() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "operator");
    let machines = joined(&Site::start(folder.path(), &place), &ann, &["m1", "m2"]);
    let mut quiet = Quiet::over(&place);
    let state = |quiet: &Quiet, name: &str| quiet.operator(&ann, &format!("/v1/machines/{name}"))["state"].clone();
    for report in [json!({}), json!({ "another": 1 })] {
        let body = machines[0].reports(7..8, &report);
        quiet.ask("POST", "/v1/reports", &machines[0].headers("POST", "/v1/reports", "", &body), &body);
    }
    assert_eq!(state(&quiet, "m1"), "cloned");
    let mut store = place.open().unwrap();
    let ids: Vec<_> = store.changes(0).unwrap().machines.iter().map(|machine| machine.id).collect();
    store.commit(&[vec![StoreWrite::Standing(ids[0], Standing::Admitted)]]).unwrap();
    quiet.look();
    assert_ne!(state(&quiet, "m1"), "cloned");
    // What others hear shows two machines as well, and is kept.
    for (number, said) in [(900, json!({ "life": 1, "beside": 2 })), (901, json!({ "life": 2, "beside": 1 }))] {
        let at = store.now().unwrap();
        let heard = ids.iter().map(|id| Heartbeat { machine: *id, number, at, said: said.to_string() }).collect();
        store.commit(&[vec![StoreWrite::Heard(heard)]]).unwrap();
        quiet.look();
    }
    assert_eq!(store.forks().unwrap(), [(ids[0], 901), (ids[1], 901)]);
    assert_eq!([state(&quiet, "m1"), state(&quiet, "m2")], ["cloned", "cloned"]);
}

#[test]
fn another_history_has_its_own_channels() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut operators = Operators::new();
    let releases = ["all", "web"].map(|channel| operators.release(channel, "all", &bundle("b")));
    let roster = operators.roster_at_the_newest(&[]);
    for (folder, has_all) in [(&folder, true), (&other, false)] {
        let ann = operator(&file(folder), "ann", "approver");
        let site = Site::start(folder.path(), &file(folder));
        Operators::store(&site, &ann, &bundle("b"));
        Operators::publish(&site, &ann, "root", &operators.root.to_text());
        for (kind, text) in [("release", &releases[0]), ("release", &releases[1]), ("roster", &roster)] {
            if has_all || *text == releases[0] {
                assert_eq!(Operators::publish(&site, &ann, kind, text).status, 200, "{kind}");
            }
        }
    }
    let place = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("fleet.db"), &place).unwrap();
    let mut quiet = Quiet::over(&StorePlace::File(place.clone()));
    let channels = |quiet: &Quiet| {
        let shown = quiet.operator("token of ann", "/v1/status")["channels"].clone();
        let one = |shown: &Value| (shown["channel"].as_str().unwrap().to_owned(), shown["inRoster"].as_bool());
        shown.as_array().unwrap().iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(channels(&quiet), [("all".to_owned(), Some(true)), ("web".to_owned(), Some(true))]);
    std::fs::remove_file(&place).unwrap();
    std::os::unix::fs::symlink(other.path().join("fleet.db"), &place).unwrap();
    quiet.planner.reopen().unwrap();
    quiet.look();
    assert_eq!(channels(&quiet), [("all".to_owned(), Some(false))]);
}

/// The output of a command.
fn printed(folder: &Path, site: &Site, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stead-fleet"));
    command.args(words).args(["--url", &site.url, "--certificate"]).arg(folder.join("state/tls.pem"));
    let output = command.arg("--token-file").arg(folder.join("state/token")).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn commands_print_lists_for_users_and_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let ann = operator(&place, "ann", "operator");
    let site = Site::start(folder.path(), &place);
    std::fs::write(folder.path().join("state/token"), &ann).unwrap();
    let run = |words: &[&str]| printed(folder.path(), &site, words);
    let data =
        |words: &[&str]| serde_json::from_str::<Value>(&run(&[words, &["--output-format", "json"]].concat())).unwrap();
    assert_eq!(run(&["machines"]), "no machine matches\n");
    assert_eq!((run(&["drift"]), run(&["failures"])), ("nothing drifted\n".to_owned(), "nothing failed\n".to_owned()));
    let mut machines = joined(&site, &ann, &["m1", "m2"]);
    reports(&site, &mut machines[0], 1, &failed("nginx", "no room in '/var'"));
    becomes(&site, &ann, "m1", "failed");
    assert_eq!(data(&["machines", "state=failed"])["machines"][0]["name"], "m1");
    assert_eq!(data(&["show", "m1"])["machine"]["report"], 1);
    assert_eq!(data(&["failures"])["failures"][0]["names"], json!(["m1"]));
    assert_eq!(data(&["status"])["status"]["machines"]["failed"], 1);
    assert_eq!(data(&["reports", "m1"])["reports"][0]["report"]["number"], 1);
    assert_eq!(data(&["drift"])["drift"], json!([]));
    assert!(run(&["failures"]).contains("no room in …"), "{}", run(&["failures"]));
    assert!(run(&["reports", "m1", "-n", "1"]).contains("1 failed"));
    assert!(run(&["status"]).lines().any(|line| line.split_whitespace().eq(["failed", "1"])));
    assert!(run(&["audit", "list"]).contains("token for 2 machines"));
    let events = run(&["events", "-o", "json"]);
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().any(|event| event["event"] == "act" && event["by"] == "ann"), "{events:?}");
    assert!(events.iter().any(|event| event["machine"] == "m1" && event["to"] == "failed"), "{events:?}");
    assert!(run(&["events"]).contains("ann: token for 2 machines"));
    // Many pages are one list.
    let mut follow = Command::new(env!("CARGO_BIN_EXE_stead-fleet"));
    follow.args(["events", "--follow", "--url", &site.url, "--certificate"]).arg(folder.path().join("state/tls.pem"));
    follow.arg("--token-file").arg(folder.path().join("state/token")).stdout(std::process::Stdio::piped());
    let mut child = follow.spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    run(&["hold", "m2", "--for", "60", "--why", "look"]);
    let seen = lines.map_while(Result::ok).find(|line| line.contains("ann: hold m2 for 60 s: look"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(seen.is_some());
}
