//! Agents that ask a controller, each in its own folder: over TLS, and behind a proxy that ends it.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "../../stead-release/tests/support/mod.rs"]
mod keys;
#[path = "support/proxy.rs"]
mod proxy;
#[path = "support/site.rs"]
mod site;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use proxy::Proxy;
use serde_json::{Value, json};
use site::{Operators, Site, bundle, operator};
use stead_agent::control::{
    AgentStatus, Ask, ControllerStanding, Follow, Join, ReadStatus, Refused, SourceStatus, Submit, Unfollow,
};
use stead_agent::{BOOT_ID, Delivered, Health, Joining, KeysWanted, Options, OwnKeys, STOP_GRACE, call};
use stead_core::bundle::Bundle;
use stead_core::value::Sensitive;
use stead_engine::{Host, HostOptions};
use stead_fleet::store::StorePlace;
use stead_hosts::MachineName;
use stead_protocol::{HoldRequest, SentReport, StandingRequest, TokenRequest};
use stead_release::{MachineReport, PublicKey, Roster, Signed};
use stead_system::Cancel;
use stead_testkit::{skip, until};

/// An agent in this process.
struct Running {
    name: MachineName,
    directory: PathBuf,
    stop: Cancel,
    thread: Option<JoinHandle<()>>,
    child: Option<Child>,
}

impl Running {
    fn start(folder: &Path, name: &str) -> Self {
        let (directory, stop) = (folder.join(name), Cancel::default());
        let options = Options {
            directory: directory.clone(),
            boot_id: BOOT_ID.into(),
            host: Host::new(HostOptions::default()),
            stop: stop.clone(),
            look: Arc::default(),
            stop_grace: STOP_GRACE,
            sinks: Vec::new(),
            source: None,
        };
        let thread = std::thread::spawn(move || stead_agent::run(options).unwrap());
        let name = MachineName::parse(name).unwrap();
        let running = Self { name, directory, stop, thread: Some(thread), child: None };
        until(|| running.status());
        running
    }

    /// An agent in a process of its own, which is killed at its end.
    fn process(program: &Path, directory: &Path) -> Self {
        let mut command = Command::new(program);
        command.args(["agent", "run", "--state"]).arg(directory).stdout(Stdio::null()).stderr(Stdio::null());
        let (name, child) = (MachineName::parse("web1").unwrap(), Some(command.spawn().unwrap()));
        let running = Self { name, directory: directory.to_owned(), stop: Cancel::default(), thread: None, child };
        until(|| running.status());
        running
    }

    fn key(&self) -> PublicKey {
        OwnKeys::open(&self.directory, KeysWanted::Present).unwrap().keys.key().clone()
    }

    fn ask<Q: Ask>(&self, question: Q) -> Result<Q::Answer, Refused> {
        call(&self.directory, question).unwrap().map(|answered| answered.answer)
    }

    fn status(&self) -> Option<AgentStatus> {
        Some(call(&self.directory, ReadStatus {}).ok()?.ok()?.answer)
    }

    fn source(&self) -> Option<SourceStatus> {
        self.status()?.source
    }

    fn until_source(&self, is: impl Fn(&SourceStatus) -> bool) -> SourceStatus {
        until(|| self.source().filter(&is))
    }

    fn until_standing(&self, standing: ControllerStanding) -> SourceStatus {
        let is = |source: &SourceStatus| {
            let releases = source.releases.as_ref();
            releases.and_then(|releases| releases.controller.as_ref()).is_some_and(|seen| seen.standing == standing)
        };
        self.until_source(is)
    }

    /// Joins at an address. What it trusts is in a file.
    fn join(&self, operators: &Operators, url: &str, certificate: Option<&Path>, token: Option<&str>) {
        let certificates = certificate.map(|file| fs::read_to_string(file).unwrap());
        let joining = Joining { labels: BTreeMap::from([("role".to_owned(), "web".to_owned())]), certificates };
        let joining = Some(Join { joining, token: token.map(|token| Sensitive::new(token.to_owned())) });
        let (root, machine) = (operators.root.digest().to_string(), self.name.to_string());
        self.ask(Follow { source: format!("fleet+{url}"), root, machine, joining }).map_err(|why| why.message).unwrap();
    }

    fn log(&self) -> String {
        let log = fs::read_dir(&self.directory).unwrap().flatten().map(|entry| entry.path());
        let log = log.filter(|path| path.is_file() && path.to_string_lossy().contains("log"));
        log.map(|path| fs::read_to_string(path).unwrap_or_default()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Copies the state of an agent in the place of another one.
fn copied(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copied(&from, &to),
            kind if kind.is_file() => drop(fs::copy(&from, &to).unwrap()),
            _ => {}
        }
    }
}

/// A document of one file with a content, which is put back when somebody changes it.
fn document(file: &Path, content: &str) -> Bundle {
    let properties = json!({ "path": file, "content": content });
    let instance = json!({ "name": "page", "type": "Stead/File", "properties": properties });
    let directives = json!({ "configurationMode": "ApplyAndAutoCorrect" });
    bundle(&json!({ "directives": directives, "resources": [instance] }).to_string())
}

struct Shop {
    folder: tempfile::TempDir,
    place: StorePlace,
    ann: String,
    operators: Operators,
}

impl Shop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = StorePlace::File(folder.path().join("fleet.db"));
        let ann = operator(&place, "ann", "approver");
        Self { folder, place, ann, operators: Operators::new() }
    }

    fn site(&self) -> Site {
        Site::start(self.folder.path(), &self.place)
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("state/tls.pem")
    }

    fn page(&self) -> PathBuf {
        self.folder.path().join("page")
    }

    fn token(&self, site: &Site) -> String {
        let answer = site.tell(&self.ann, "/v1/tokens", &TokenRequest { uses: 1, seconds: 600, labels: [].into() });
        answer.json()["token"].as_str().unwrap().to_owned()
    }

    fn publish(&mut self, site: &Site, content: &str) {
        let bundle = document(&self.page(), content);
        assert_eq!(Operators::store(site, &self.ann, &bundle).status, 200);
        let release = self.operators.release("web", "role=web", &bundle);
        assert_eq!(Operators::publish(site, &self.ann, "release", &release).status, 200);
    }

    fn roster(&mut self, site: &Site, machine: &Running) -> Roster {
        let roster = self.operators.roster_at_the_newest(&[(&machine.name, &machine.key(), "web")]);
        assert_eq!(Operators::publish(site, &self.ann, "roster", &roster).status, 200);
        Signed::<Roster>::parse(roster.as_bytes()).unwrap().statement().clone()
    }

    fn until_page(&self, content: &str) {
        until(|| fs::read_to_string(self.page()).ok().filter(|found| found == content));
    }

    fn reports(&self, site: &Site) -> Vec<Value> {
        site.operator(&self.ann, "GET", "/v1/machines/web1/reports", b"").json()["items"].as_array().unwrap().clone()
    }
}

/// A proxy sees everything and decides nothing; a controller that is away costs nothing that is kept.
#[test]
fn a_machine_joins_behind_a_proxy_follows_and_reports_also_when_the_controller_was_away() {
    let mut shop = Shop::new();
    let site = shop.site();
    let (proxy, web) = (Proxy::start(&site), Running::start(shop.folder.path(), "web1"));
    let token = shop.token(&site);
    Operators::publish(&site, &shop.ann, "root", &shop.operators.root.to_text());
    web.join(&shop.operators, &proxy.url, None, Some(&token));
    web.until_standing(ControllerStanding::Admitted);
    shop.publish(&site, "one");
    let roster = shop.roster(&site, &web);
    shop.until_page("one");
    let root = shop.operators.root.digest();
    let arrived = until(|| Some(shop.reports(&site)).filter(|reports| !reports.is_empty()));
    let sent: SentReport = serde_json::from_value(arrived[0]["report"].clone()).unwrap();
    let report = MachineReport::read(sent.signed.as_bytes(), &root, &roster).unwrap();
    assert_eq!((report.statement().number, &report.statement().machine), (sent.number, &web.name));
    // Drift is repaired, and said.
    fs::write(shop.page(), "by hand").unwrap();
    shop.until_page("one");
    let before = until(|| Some(shop.reports(&site).len()).filter(|count| *count > arrived.len()));
    // It is held: it stays, and shows why.
    site.tell(&shop.ann, "/v1/machines/web1/hold", &HoldRequest { seconds: 600, why: "by hand".to_owned() });
    shop.publish(&site, "two");
    drop(site);
    web.until_source(|source| source.releases.as_ref().is_some_and(|releases| releases.offline.is_some()));
    fs::write(shop.page(), "while it is away").unwrap();
    shop.until_page("one");
    let site = shop.site();
    proxy.lead_to(&site);
    let held = web.until_source(|source| {
        let seen = source.releases.as_ref().and_then(|releases| releases.controller.clone());
        seen.is_some_and(|seen| seen.held_because.as_deref() == Some("by hand"))
    });
    assert_eq!(held.releases.unwrap().staged.unwrap().number, 1);
    until(|| (shop.reports(&site).len() > before).then_some(()));
    site.tell(&shop.ann, "/v1/machines/web1/hold", &HoldRequest { seconds: 0, why: String::new() });
    shop.until_page("two");
    let machines = || site.operator(&shop.ann, "GET", "/v1/machines", b"").json();
    let applied = json!({"channel": "web", "number": 2});
    until(|| (machines()["items"][0]["said"]["applied"] == applied).then_some(()));
    // A bundle comes with the answer, unless it is long.
    assert!(proxy.was_asked_for("/v1/source/roster") && !proxy.was_asked_for("/v1/source/blobs/"));
    let long = "long ".repeat(20_000);
    shop.publish(&site, &long);
    shop.until_page(&long);
    assert!(proxy.was_asked_for("/v1/source/blobs/"));
    let numbers: Vec<u64> = shop.reports(&site).iter().map(|report| report["number"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one > next), "one is there twice: {numbers:?}");
    assert!(!web.directory.join("controller/token").exists(), "the token is used up");
    assert!(!web.log().contains(&token) && web.log().contains("sourceReached"), "{}", web.log());
}

#[test]
fn who_is_not_admitted_shows_why_and_who_leaves_is_free() {
    let mut shop = Shop::new();
    let site = shop.site();
    Operators::publish(&site, &shop.ann, "root", &shop.operators.root.to_text());
    let web = Running::start(shop.folder.path(), "web1");
    // Nobody vouches for the certificate.
    web.join(&shop.operators, &site.url, None, None);
    web.until_source(|source| source.releases.as_ref().is_some_and(|releases| releases.offline.is_some()));
    let certificate = shop.certificate();
    web.join(&shop.operators, &site.url, Some(&certificate), Some("not a token"));
    let refused = web.until_source(|source| source.failure.is_some());
    assert_eq!(refused.code.as_deref(), Some("E1441"));
    assert!(refused.failure.unwrap().starts_with("the controller refuses this machine: "));
    assert_eq!(web.status().unwrap().status.health, Health::Held, "there is no document yet");
    web.join(&shop.operators, &site.url, Some(&certificate), None);
    assert_eq!(web.until_standing(ControllerStanding::Waiting).failure, None);
    shop.publish(&site, "one");
    shop.roster(&site, &web);
    site.tell(&shop.ann, "/v1/machines/web1/standing", &StandingRequest { standing: "admitted".to_owned() });
    web.join(&shop.operators, &site.url, Some(&certificate), None);
    shop.until_page("one");
    let submit = || {
        let bundle = document(&shop.page(), "mine");
        let delivered = Delivered::of_bundle("main.yaml".to_owned(), &bundle, serde_json::Map::new(), "/".into());
        Submit { delivered, force: false, publish: false, unfollow: false }
    };
    assert!(web.ask(submit()).is_err(), "operators decide");
    assert!(web.ask(Unfollow {}).is_ok());
    assert!(web.ask(submit()).is_ok());
    shop.until_page("mine");
    shop.publish(&site, "two");
    assert!(web.source().is_none());
    // Its key is refused for ever.
    site.tell(&shop.ann, "/v1/machines/web1/standing", &StandingRequest { standing: "retired".to_owned() });
    web.join(&shop.operators, &site.url, Some(&certificate), None);
    assert_eq!(web.until_source(|source| source.failure.is_some()).code.as_deref(), Some("E1441"));
}

/// A proxy that answers in the place of the controller decides nothing, and none of its words get into what is shown.
#[test]
fn files_that_a_proxy_answers_itself_are_not_there_yet_and_not_gone() {
    let mut shop = Shop::new();
    let site = shop.site();
    let (proxy, web) = (Proxy::start(&site), Running::start(shop.folder.path(), "web1"));
    Operators::publish(&site, &shop.ann, "root", &shop.operators.root.to_text());
    web.join(&shop.operators, &proxy.url, None, Some(&shop.token(&site)));
    web.until_standing(ControllerStanding::Admitted);
    let answer = |status: &str, head: &str| {
        let words = format!("log in\n\u{1b}[31m{}", "x".repeat(3000));
        Some(format!("{status} -\r\n{head}content-length: {}\r\n\r\n{words}", words.len()))
    };
    let reason = |source: SourceStatus| source.releases.unwrap().offline.unwrap().reason;
    let says = |wanted: &str| {
        let is = |source: &SourceStatus| {
            let offline = source.releases.as_ref().and_then(|releases| releases.offline.as_ref());
            offline.is_some_and(|offline| offline.reason.contains(wanted))
        };
        reason(web.until_source(is))
    };
    proxy.refuse(answer("404", ""));
    shop.publish(&site, "one");
    shop.roster(&site, &web);
    says("what answers is not a controller, but says 404");
    // One that says that it is a controller has one short line.
    proxy.refuse(answer("403", "stead-epoch: 1\r\n"));
    let said = says("the controller says 403: log in");
    assert!(said.len() < 400 && !said.contains(char::is_control), "{said:?}");
    proxy.refuse(None);
    shop.until_page("one");
}

/// Two machines with one state are seen as soon as each was answered since the other one was heard; one that is killed and begins again, or
/// gets back an older disk, is one, and so it is to a controller that begins again.
#[test]
fn a_copy_of_a_machine_is_seen_and_an_older_disk_is_not_taken_for_one() {
    let program = Path::new(env!("CARGO_BIN_EXE_stead-fleet")).with_file_name("stead");
    if !program.exists() {
        return skip("a copy of a machine", "'stead' was not built beside 'stead-fleet'");
    }
    let mut shop = Shop::new();
    let mut site = shop.site();
    let (ann, folder, proxy) = (shop.ann.clone(), shop.folder.path().to_owned(), Proxy::start(&site));
    let [state, older, two] = ["web1", "older", "two"].map(|name| folder.join(name));
    let mut web = Running::process(&program, &state);
    Operators::publish(&site, &shop.ann, "root", &shop.operators.root.to_text());
    web.join(&shop.operators, &proxy.url, None, Some(&shop.token(&site)));
    web.until_standing(ControllerStanding::Admitted);
    shop.publish(&site, "0");
    shop.roster(&site, &web);
    shop.until_page("0");
    let shown = |site: &Site| site.operator(&ann, "GET", "/v1/machines", b"").json()["items"][0].clone();
    let has = |site: &Site, number: u64| {
        let is = |shown: &Value| shown["applied"] == json!(["web", number]) && shown["state"] == "converged";
        until(|| Some(shown(site)).filter(is))
    };
    // With its own disk, with an older one, again with that; and the controller begins again.
    for (turn, disk) in (1..).zip([None, Some(&older), Some(&older)]) {
        has(&site, turn);
        drop(web);
        disk.map_or_else(|| copied(&state, &older), |disk| copied(disk, &state));
        if turn == 2 {
            drop(site);
            site = shop.site();
            proxy.lead_to(&site);
        }
        web = Running::process(&program, &state);
        shop.publish(&site, &turn.to_string());
        shop.until_page(&turn.to_string());
    }
    assert_eq!(has(&site, 4).get("forked"), None);
    copied(&state, &two);
    let (began, before) = (Instant::now(), shop.reports(&site).len());
    let copy = Running::process(&program, &two);
    let cloned = until(|| Some(shown(&site)).filter(|shown| shown["state"] == "cloned"));
    println!("a copy was seen after {:?}", began.elapsed());
    assert!(cloned["forked"].as_u64().is_some());
    let reports = shop.reports(&site).len() - before;
    assert!(reports <= 4, "both reported twice at most: {reports}");
    // Nothing newer is for it, also of a controller that begins again, until an operator has decided.
    drop(site);
    site = shop.site();
    proxy.lead_to(&site);
    shop.publish(&site, "not for both");
    assert_eq!((&shown(&site)["state"], &shown(&site)["desired"]), (&json!("cloned"), &cloned["desired"]));
    drop(copy);
    site.tell(&ann, "/v1/machines/web1/standing", &StandingRequest { standing: "admitted".to_owned() });
    shop.until_page("not for both");
    assert_eq!(has(&site, 5).get("forked"), None);
}

/// The reports under its former name are of another machine: its controller would refuse them.
#[test]
fn a_machine_that_has_another_name_sends_the_reports_under_that_one() {
    let (mut shop, other) = (Shop::new(), tempfile::tempdir().unwrap());
    let mut web = Running::start(shop.folder.path(), "web1");
    let page = document(&shop.page(), "one");
    let mut signed =
        vec![("root", shop.operators.root.to_text()), ("release", shop.operators.release("web", "role=web", &page))];
    for name in ["web1", "web2"] {
        web.name = MachineName::parse(name).unwrap();
        let site = shop.site();
        signed.push(("roster", shop.operators.roster_at_the_newest(&[(&web.name, &web.key(), "web")])));
        assert_eq!(Operators::store(&site, &shop.ann, &page).status, 200);
        for (kind, text) in &signed {
            assert_eq!(Operators::publish(&site, &shop.ann, kind, text).status, 200, "{kind}");
        }
        web.join(&shop.operators, &site.url, Some(&shop.certificate()), Some(&shop.token(&site)));
        shop.until_page("one");
        web.until_standing(ControllerStanding::Admitted);
        fs::write(shop.page(), "by hand").unwrap();
        shop.until_page("one");
        let reports = format!("/v1/machines/{name}/reports");
        until(|| site.operator(&shop.ann, "GET", &reports, b"").json()["items"].get(0).cloned());
        drop(site);
        // What the next controller has is nothing yet.
        shop.place = StorePlace::File(other.path().join("fleet.db"));
        shop.ann = operator(&shop.place, "ann", "approver");
    }
    assert!(!web.log().contains("reportLost"), "{}", web.log());
}

/// Each machine checks at once, whatever its interval is; the answer shows which did.
#[test]
fn machines_check_when_they_are_asked_and_the_answer_shows_which() {
    let mut shop = Shop::new();
    let (site, folder) = (shop.site(), shop.folder.path().to_owned());
    let web = Running::start(&folder, "web1");
    Operators::publish(&site, &shop.ann, "root", &shop.operators.root.to_text());
    web.join(&shop.operators, &site.url, Some(&shop.certificate()), Some(&shop.token(&site)));
    web.until_standing(ControllerStanding::Admitted);
    shop.publish(&site, "one");
    shop.roster(&site, &web);
    shop.until_page("one");
    fs::write(folder.join("token"), &shop.ann).unwrap();
    let check = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead-fleet"));
        command.args(["check", "--url", &site.url, "--certificate"]).arg(shop.certificate());
        let output = command.arg("--token-file").arg(folder.join("token")).args(words).output().unwrap();
        let [said, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.code(), said, error)
    };
    let jobs = || web.log().lines().filter(|line| line.contains("jobBegan") && line.contains("onsistency")).count();
    let machines = || site.operator(&shop.ann, "GET", "/v1/machines/web1", b"").json();
    until(|| (machines()["state"] == "converged").then_some(()));
    for turn in 1..=2 {
        let before = jobs();
        let began = Instant::now();
        let (code, said, error) = check(&["--now", "role=web"]);
        println!("web1 checked within {:?}", began.elapsed());
        assert_eq!((code, &*error), (Some(0), ""), "{said}");
        assert!(said.lines().any(|line| line.split_whitespace().eq(["web1", "converged", "yes"])), "{said}");
        assert!(jobs() > before, "{}", web.log());
        assert_eq!(web.log().matches("askedToCheck").count(), turn, "once each time");
    }
    // One that does not answer is named, and one that waits for an operator is not asked.
    let mut silent = site::Simulated::new("web2", 2);
    assert_eq!(silent.enrol(&site, Some(&shop.token(&site))).status, 200);
    assert_eq!(site::Simulated::new("web3", 3).enrol(&site, None).status, 200);
    let (code, said, error) = check(&["--now", "--wait", "1", "-o", "json"]);
    assert_eq!((code, &*error), (Some(1), "error: 1 of 2 machines have not checked within 1 s\n"), "{said}");
    let shown: Value = serde_json::from_str(&said).unwrap();
    let row = |name: &str, state: &str, checked: bool| json!({ "machine": name, "state": state, "checked": checked });
    assert_eq!(shown["checks"], json!([row("web1", "converged", true), row("web2", "unknown", false)]));
    // It is asked as long as it has not said so, and at once.
    let asked = |machine: &mut site::Simulated, checked: u64| {
        let answer = machine.ask(&site, "GET", "/v1/desired", &json!({ "checked": checked }).to_string(), b"");
        answer.header("stead-check").map(|number| number.parse::<u64>().unwrap())
    };
    let number = asked(&mut silent, 0).unwrap();
    assert_eq!((asked(&mut silent, number - 1), asked(&mut silent, number)), (Some(number), None));
    assert_eq!(check(&["--now", "name=nobody"]), (Some(0), "no machine matches\n".to_owned(), String::new()));
    assert_eq!(check(&[]).0, Some(3), "nobody is asked by mistake");
    let acts = String::from_utf8(site.operator(&shop.ann, "GET", "/v1/acts", b"").body).unwrap();
    assert!(acts.contains("check 1 machines: role=") && acts.contains("check 2 machines: all"), "{acts}");
}

/// The channels are those of the roster: one that it does not name is said on both sides.
#[test]
fn a_machine_says_that_the_roster_does_not_name_its_channel() {
    let mut shop = Shop::new();
    let site = shop.site();
    let web = Running::start(shop.folder.path(), "web1");
    Operators::publish(&site, &shop.ann, "root", &shop.operators.root.to_text());
    let (certificate, token) = (shop.certificate(), shop.token(&site));
    web.join(&shop.operators, &site.url, Some(&certificate), Some(&token));
    let roster = shop.operators.roster(&[(&web.name, &web.key(), "web")]);
    assert_eq!(Operators::publish(&site, &shop.ann, "roster", &roster).status, 200);
    shop.publish(&site, "one");
    let refused = web.until_source(|source| source.failure.is_some());
    assert_eq!(refused.code.as_deref(), Some("E1442"));
    let shown = || site.operator(&shop.ann, "GET", "/v1/machines/web1", b"").json();
    let said = until(|| Some(shown()).filter(|shown| shown["said"]["refuses"] == "E1442"));
    assert_eq!((&said["state"], &said["desired"]), (&json!("pending"), &json!(["web", 1])));
    let channel = || site.operator(&shop.ann, "GET", "/v1/status", b"").json()["channels"][0].clone();
    assert_eq!(channel()["inRoster"], false, "{}", channel());
    let roster = shop.operators.roster_at_the_newest(&[(&web.name, &web.key(), "web")]);
    assert_eq!(Operators::publish(&site, &shop.ann, "roster", &roster).status, 200);
    shop.until_page("one");
    web.until_source(|source| source.failure.is_none());
    assert_eq!(channel()["inRoster"], true);
}

/// A machine is as its own status says: one that refuses what it should have has failed, whatever its last job found.
#[test]
fn a_machine_that_refuses_a_release_is_not_shown_as_well() {
    let mut shop = Shop::new();
    let site = shop.site();
    let web = Running::start(shop.folder.path(), "web1");
    Operators::publish(&site, &shop.ann, "root", &shop.operators.root.to_text());
    let certificate = shop.certificate();
    web.join(&shop.operators, &site.url, Some(&certificate), Some(&shop.token(&site)));
    shop.publish(&site, "one");
    shop.roster(&site, &web);
    let ann = shop.ann.clone();
    let shown = || site.operator(&ann, "GET", "/v1/machines", b"").json()["items"][0].clone();
    let is = |state: &str| until(|| Some(shown()).filter(|shown| shown["state"] == state));
    assert_eq!(is("converged")["applied"], json!(["web", 1]));
    let bundle = bundle(r#"{"resources": [{"name": "page", "type": "Nobody/Knows"}]}"#);
    assert_eq!(Operators::store(&site, &shop.ann, &bundle).status, 200);
    let release = shop.operators.release("web", "role=web", &bundle);
    assert_eq!(Operators::publish(&site, &shop.ann, "release", &release).status, 200);
    let failed = is("failed");
    assert_eq!((&failed["applied"], &failed["said"]["health"]), (&json!(["web", 1]), &json!("failing")));
    assert_eq!(web.status().unwrap().status.health, Health::Failing);
    shop.publish(&site, "three");
    shop.until_page("three");
    until(|| Some(shown()).filter(|shown| shown["state"] == "converged" && shown["applied"] == json!(["web", 3])));
}
