//! Retention, secrets, accounts, rosters, copies and the log of a controller.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "../../stead-release/tests/support/mod.rs"]
mod keys;
#[path = "sim/random.rs"]
mod random;
#[path = "support/reports.rs"]
mod reports;
#[path = "support/site.rs"]
mod site;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use random::Random;
use reports::RealReports;
use serde_json::{Value, json};
use site::{Operators, Program, Simulated, Site, bundle, joined, operator, printed};
use stead_fleet::store::{FleetStore, MachineId, StorePlace, StoreWrite};
use stead_protocol::{HoldRequest, SentReport, TokenRequest};
use stead_release::{
    Envelope, EnvelopeAddress, MachineKeys, MachineReport, MachineSecret, Release, ReleaseSecrets, SealedParameters,
    Signed,
};
use stead_system::folder::Folder;
use stead_testkit::{times, until};

const DAY: u64 = 86_400_000;

fn file(folder: &Path) -> StorePlace {
    StorePlace::File(folder.join("fleet.db"))
}

/// The most that a report takes on the disk, with its indexes: ten thousand machines that change something five times a day write 30 MB.
const MOST_OF_A_REPORT: u64 = 30_000_000 / 50_000;

/// Stores so many real reports of a machine, from the number 1 on, and returns how long they are on average as they come.
fn filled(store: &mut FleetStore, machine: &Simulated, id: MachineId, all: u64) -> u64 {
    let (real, mut random, mut came) = (RealReports::read("others"), Random::new(1), 0);
    let fleet = Operators::new().root.digest();
    let mut body = |number: u64| {
        let at = jiff::Timestamp::from_second(1_780_000_000 + i64::try_from(number).unwrap()).unwrap();
        let which = usize::try_from(random.below(1000)).unwrap();
        let report = MachineReport { number, ..real.of(which, &fleet, &machine.name, at, &mut random) };
        let signed = machine.key.signed(report).to_text();
        let body = serde_json::to_vec(&SentReport { number, signed }).unwrap();
        came += body.len() as u64;
        (number, bytes::Bytes::from(body))
    };
    for first in (1..=all).step_by(1000) {
        let reports = (first..(first + 1000).min(all + 1)).map(&mut body).collect();
        store.commit(&[vec![StoreWrite::Reports { machine: id, reports }]]).unwrap();
    }
    came / all
}

/// `STEAD_DOSE=10` keeps ten times as many reports: those of a day of ten thousand machines, of which each changed something five times.
/// It prints what they take, and how long one waits while they go.
#[test]
fn what_is_old_goes_a_little_at_a_time_and_reports_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(folder.path());
    let ann = operator(&place, "ann", "approver");
    let site = Site::start(folder.path(), &place);
    let mut machines = joined(&site, &ann, &["m1"]);
    let kept = bundle("kept");
    for unneeded in [&bundle("unneeded"), &kept] {
        assert_eq!(Operators::store(&site, &ann, unneeded).status, 200);
    }
    let mut operators = Operators::new();
    Operators::publish(&site, &ann, "root", &operators.root.to_text());
    let release = operators.release("all", "all", &kept);
    assert_eq!(Operators::publish(&site, &ann, "release", &release).status, 200);
    drop(site);
    let (all, new) = (times("STEAD_FLEET_REPORTS", 5_000) as u64, 10);
    let mut store = place.open().unwrap();
    let machine = store.changes(0).unwrap().machines[0].id;
    let before = std::fs::metadata(folder.path().join("fleet.db")).unwrap().len();
    let came = filled(&mut store, &machines[0], machine, all);
    let db = rusqlite::Connection::open(folder.path().join("fleet.db")).unwrap();
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let written = std::fs::metadata(folder.path().join("fleet.db")).unwrap().len() - before;
    let (old, older) = (2 * DAY, 31 * DAY);
    db.execute_batch(&format!(
        "UPDATE reports SET received = received - {older} WHERE number <= {}; UPDATE blobs SET stored = stored - {old};
        UPDATE tokens SET expires = expires - {old}",
        all - new
    ))
    .unwrap();
    let site = Site::start(folder.path(), &place);
    let (mut longest, mut sent) = (Duration::ZERO, 0);
    until(|| {
        let began = Instant::now();
        let number = all + 1 + sent;
        assert_eq!(machines[0].report(&site, number..number + 1).json()["new"], 1);
        (longest, sent) = (longest.max(began.elapsed()), sent + 1);
        (store.count_reports().unwrap() == new + sent).then_some(())
    });
    println!(
        "{all} reports of {came} bytes: {} bytes each, {} MB for 50,000; the longest wait while they go: {longest:?} of {sent}",
        written / all,
        written / all * 50_000 / 1_000_000
    );
    assert!(written / all < MOST_OF_A_REPORT, "{written} bytes for {all} of {came}");
    assert_eq!(store.reports(machine, all + 1, 100).unwrap().len() as u64, new, "those of the last days stay");
    let count =
        |table: &str| -> i64 { db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap() };
    until(|| (count("blobs") == 1 && count("tokens") == 0).then_some(()));
    assert!(store.blob_length(&kept.name().parse().unwrap()).unwrap().is_some());
    let figures = String::from_utf8(site.operator(&ann, "GET", "/metrics", b"").body).unwrap();
    assert!(figures.contains(&format!("stead_fleet_reports_forgotten_total {}\n", all - new)), "{figures}");
}

/// Two machines of a roster with their keys, and a fleet that has secrets for them.
struct Sealing {
    operators: Operators,
    machines: Vec<Simulated>,
    keys: Vec<MachineKeys>,
    secrets: ReleaseSecrets,
}

impl Sealing {
    fn new(site: &Site, ann: &str) -> Self {
        let machines = joined(site, ann, &["m1", "m2"]);
        let keys: Vec<MachineKeys> = [1, 2].map(|number| MachineKeys::of(&MachineSecret::of(&[number; 64]))).into();
        let mut operators = Operators::new();
        Operators::store(site, ann, &bundle("b"));
        Operators::publish(site, ann, "root", &operators.root.to_text());
        for (machine, keys) in machines.iter().zip(&keys) {
            operators.sealing.insert(machine.name.clone(), keys.sealing().clone());
        }
        let members: Vec<_> = machines.iter().map(|machine| (&machine.name, &machine.key.public, "x")).collect();
        assert_eq!(Operators::publish(site, ann, "roster", &operators.roster(&members)).status, 200);
        let parameters = json!({ "password": "hunter2" }).as_object().unwrap().clone();
        Self { operators, machines, keys, secrets: ReleaseSecrets::new(&parameters).ok().unwrap() }
    }

    /// The next release, which has secrets.
    fn release(&mut self) -> String {
        self.operators.sealed = SealedParameters::of(&self.secrets);
        self.operators.release("all", "all", &bundle("b"))
    }

    fn address(&self, release: &str, to: usize) -> EnvelopeAddress {
        let signed = Signed::<Release>::parse(release.as_bytes()).unwrap();
        EnvelopeAddress::new(&signed, self.machines[to].name.clone(), self.keys[to].sealing().clone())
    }

    fn envelope(&self, release: &str, to: usize) -> String {
        Envelope::seal(self.address(release, to), &self.secrets).unwrap().to_text()
    }
}

#[test]
fn secrets_are_served_to_their_machine_alone() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(folder.path());
    let (ann, cid) = (operator(&place, "ann", "approver"), operator(&place, "cid", "operator"));
    let site = Site::start(folder.path(), &place);
    let mut all = Sealing::new(&site, &ann);
    let plain = all.operators.release("all", "all", &bundle("b"));
    let sealed = all.release();
    let (first, second) = (all.envelope(&sealed, 0), all.envelope(&sealed, 1));
    let put = |path: &str, text: &str| {
        let answer = site.operator(&cid, "PUT", &format!("/v1/sealed/{path}"), text.as_bytes());
        (answer.status, String::from_utf8(answer.body).unwrap())
    };
    assert_eq!(put("all/2/m1", &first).0, 409, "the release is not there yet");
    for text in [&plain, &sealed] {
        assert_eq!(Operators::publish(&site, &ann, "release", text).status, 200);
    }
    // Another machine, one without secrets, one that is not in the roster, another channel; and what is not an envelope.
    for (path, text) in [("all/2/m2", &*first), ("all/1/m1", &first), ("all/2/m3", &first), ("web/2/m1", &first)] {
        assert_eq!(put(path, text).0, 409, "{path}");
    }
    assert!(put("all/2/m2", &first).1.contains("error[E"));
    assert_eq!([put("all/2/m1", "x").0, put("all/x/m1", &first).0, put("all/0/m1", &first).0], [400; 3]);
    let tag = until(|| {
        let answer = all.machines[0].desired(&site, 0, None, 5);
        (answer.status == 200 && answer.json()["number"] == 2).then(|| answer.header("etag").unwrap().to_owned())
    });
    let path = "/v1/source/channel/all/2/sealed";
    assert_eq!(all.machines[0].ask(&site, "GET", path, "", b"").status, 404, "it waits for its secrets");
    std::thread::scope(|scope| {
        let machine = &mut all.machines[0];
        let (site, tag) = (&site, &tag);
        // A machine that waits is answered when they come.
        let waits = scope.spawn(move || machine.desired(site, 2, Some(tag), 50).status);
        assert_eq!((put("all/2/m1", &first).0, put("all/2/m2", &second).0), (200, 200));
        assert_eq!(waits.join().unwrap(), 200);
    });
    assert!(put("all/2/m1", &first).1.contains("\"is_new\":false"));
    for (at, text) in [&first, &second].into_iter().enumerate() {
        let served = all.machines[at].ask(&site, "GET", path, "", b"");
        assert_eq!((served.status, &*String::from_utf8(served.body).unwrap()), (200, &**text));
        let commitment = SealedParameters::of(&all.secrets).unwrap();
        let opened = Envelope::parse(text.as_bytes()).unwrap();
        let opened = opened.open(&all.keys[at], &all.address(&sealed, at), &commitment);
        assert_eq!(opened.ok().unwrap().expose_parameters()["password"], "hunter2");
    }
    assert_eq!(all.machines[0].ask(&site, "GET", &format!("{path}/m2"), "", b"").status, 404);
}

#[test]
fn a_command_publishes_the_secrets_of_a_source() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(folder.path());
    let ann = operator(&place, "ann", "approver");
    let site = Site::start(folder.path(), &place);
    let mut all = Sealing::new(&site, &ann);
    let source = folder.path().join("source");
    let write = |name: &str, content: &str| {
        std::fs::create_dir_all(source.join(name).parent().unwrap()).unwrap();
        std::fs::write(source.join(name), content).unwrap();
    };
    write("root", &all.operators.root.to_text());
    write("all/1.release", &all.release());
    let release = all.release();
    write("all/2.release", &release);
    write("all/2.sealed/m1", &all.envelope(&release, 0));
    std::fs::write(folder.path().join("state/token"), &ann).unwrap();
    let publish = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead-fleet"));
        command.arg("publish").arg(&source).args(["--url", &site.url, "--certificate"]);
        command.arg(folder.path().join("state/tls.pem")).arg("--token-file").arg(folder.path().join("state/token"));
        let output = command.output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert_eq!(publish(), "all/1.release\nall/2.release\nall/2.sealed/m1\n");
    assert_eq!(publish(), "");
    let path = "/v1/source/channel/all/2/sealed";
    let statuses = [0, 1].map(|at: usize| all.machines[at].ask(&site, "GET", path, "", b"").status);
    assert_eq!(statuses, [200, 404]);
    write("all/2.sealed/m2", &all.envelope(&release, 0));
    assert!(publish().contains("2.sealed/m2': error[E"), "sealed to another machine");
}

fn run(words: &[&str], folders: &[&Path]) -> (bool, String) {
    printed(Command::new(env!("CARGO_BIN_EXE_stead-fleet")).args(words).args(folders))
}

/// An operator takes the account of a link by a token of one's own, which is sent to nobody.
#[test]
fn an_account_is_taken_by_a_link_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(folder.path());
    let [ann, ben] = [("ann", "approver"), ("ben", "operator")].map(|(name, role)| operator(&place, name, role));
    let site = Site::start(folder.path(), &place);
    let state = folder.path().join("state");
    let run = |token: &str, words: &[&str]| {
        std::fs::write(state.join("token"), token).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead-fleet"));
        command.args(words).args(["--url", &site.url, "--certificate"]).arg(state.join("tls.pem"));
        printed(command.arg("--token-file").arg(state.join("token")))
    };
    let accept = |link: &str| {
        std::fs::write(state.join("link"), link).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead-fleet"));
        printed(command.arg("accept").arg(state.join("link")).arg("--certificate").arg(state.join("tls.pem")))
    };
    let refusal = (false, "error: refused: the link is invalid, used or expired\n".to_owned());
    let (is_good, link) = run(&ann, &["invite", "cid", "--role", "operator"]);
    assert!(is_good && link.starts_with(&format!("{}/#", site.url)), "{link}");
    assert!(!run(&ben, &["invite", "eve", "--role", "approver"]).0, "who may not publish makes no accounts");
    let (is_good, token) = accept(&link);
    assert!(is_good, "{token}");
    assert!(run(&token, &["token"]).0 && !run(&token, &["invite", "eve", "--role", "viewer"]).0);
    assert_eq!(accept(&link), refusal, "once");
    assert!(run(&token, &["status"]).0, "who was first keeps it");
    // A token that was lost: the former one counts until the link is used, and a newer link ends an older one.
    let [older, newer] = [(); 2].map(|()| run(&ann, &["invite", "cid", "--role", "viewer", "--for", "600"]).1);
    assert!(run(&token, &["status"]).0);
    assert_eq!(accept(&older), refusal);
    let (is_good, other) = accept(&newer);
    assert!(is_good && !run(&token, &["status"]).0, "{other}");
    assert!(run(&other, &["status"]).0 && !run(&other, &["token"]).0, "it looks alone");
    for text in ["", "https://localhost", "x/#y"] {
        assert!(!accept(text).0, "{text}");
    }
    assert!(accept("no link").1.starts_with("error: that is not a link as 'stead fleet invite' prints it"));
    for wrong in [
        json!({ "name": "cid", "role": "root", "seconds": 9 }),
        json!({ "name": "cid", "role": "viewer", "seconds": 0 }),
    ] {
        assert_eq!(site.tell(&ann, "/v1/invitations", &wrong).status, 400, "{wrong}");
    }
    assert_eq!(site.tell("", "/v1/accounts", &json!({ "invitation": "x", "token": "y" })).status, 400);
    // The chain has who, and no secret.
    let (_, acts) = run(&ann, &["audit", "list"]);
    assert!(
        acts.contains("invite cid as operator for 86400 s") && acts.contains("take the account cid as viewer"),
        "{acts}"
    );
    let secrets = [link, newer].map(|link| link.trim().rsplit('#').next().unwrap().to_owned());
    let kept = std::fs::read(folder.path().join("fleet.db")).unwrap();
    let log = std::fs::read(folder.path().join("fleet.db-wal")).unwrap_or_default();
    for secret in secrets.iter().map(String::as_str).chain([token.trim(), other.trim()]) {
        let has = |bytes: &[u8]| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!has(&kept) && !has(&log) && !acts.contains(secret), "a secret is kept");
    }
}

/// The history of the store of a controller, which ends as an operator has it end.
fn history(state: &Path, meanwhile: impl FnOnce()) -> String {
    let mut program = Program::start(state);
    let agent = site::agent(&std::fs::read(state.join("tls.pem")).unwrap());
    let answer = site::ask(&agent, &format!("{}/v1/status", program.url), "GET", &[], b"");
    meanwhile();
    assert!(Command::new("kill").arg(program.child.id().to_string()).status().unwrap().success());
    assert!(program.child.wait().unwrap().success());
    answer.header("stead-epoch").unwrap().to_owned()
}

#[test]
fn a_copy_of_the_file_in_its_place_is_another_history_however_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let (state, copy) = (folder.path().join("state"), folder.path().join("copy"));
    let files = ["fleet.db", "fleet.db-wal"];
    // Into the same files: what the system says of them stays.
    let copies = |from: &Path, to: &Path| {
        std::fs::create_dir_all(to).unwrap();
        for file in files.iter().filter(|file| from.join(file).exists()) {
            std::fs::copy(from.join(file), to.join(file)).unwrap();
        }
    };
    let first = history(&state, || {});
    let second = history(&state, || copies(&state, &copy));
    assert_eq!(first, second, "a restart is not one");
    copies(&copy, &state);
    let third = history(&state, || {});
    assert_ne!(second, third, "a copy from before the orderly end");
    assert_eq!(history(&state, || {}), third);
    copies(&copy, &state);
    assert!(![second, third].contains(&history(&state, || {})), "and from before the last start");
}

#[test]
fn a_copy_is_made_while_it_runs_and_takes_no_machine_back() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let place = file(&state);
    Folder::create(&state).unwrap().open("fleet.db").unwrap();
    let ann = operator(&place, "ann", "approver");
    let site = Site::start(folder.path(), &place);
    let mut machines = joined(&site, &ann, &["m1"]);
    let mut operators = Operators::new();
    Operators::store(&site, &ann, &bundle("b"));
    Operators::publish(&site, &ann, "root", &operators.root.to_text());
    let members: Vec<_> = machines.iter().map(|machine| (&machine.name, &machine.key.public, "x")).collect();
    Operators::publish(&site, &ann, "roster", &operators.roster(&members));
    let release = operators.release("all", "all", &bundle("b"));
    assert_eq!(Operators::publish(&site, &ann, "release", &release).status, 200);
    let epoch = until(|| {
        let answer = machines[0].desired(&site, 0, None, 5);
        (answer.status == 200).then(|| answer.header("stead-epoch").unwrap().to_owned())
    });
    // While reports come.
    let (copy, end) = (folder.path().join("copy"), AtomicBool::new(false));
    let mut acknowledged = 0;
    std::thread::scope(|scope| {
        let (copy, state, end) = (&copy, &state, &end);
        let made = scope.spawn(move || {
            let made = run(&["backup", "--folder"], &[state, copy]);
            end.store(true, Ordering::SeqCst);
            made
        });
        while !end.load(Ordering::SeqCst) || acknowledged < 5 {
            acknowledged += 1;
            assert_eq!(machines[0].report(&site, acknowledged..acknowledged + 1).json()["new"], 1);
        }
        assert_eq!(made.join().unwrap(), (true, String::new()));
    });
    let (is_good, said) = run(&["backup", "--folder"], &[&state, &copy]);
    assert!(!is_good && said.contains("has a store already"), "{said}");
    // What happens behind the copy is not in it.
    let release = operators.release("all", "all", &bundle("b"));
    assert_eq!(Operators::publish(&site, &ann, "release", &release).status, 200);
    until(|| (machines[0].desired(&site, 1, None, 5).json()["number"] == 2).then_some(()));
    let last = acknowledged + 1;
    assert_eq!(machines[0].report(&site, last..last + 1).json()["new"], 1);
    drop(site);
    for name in ["fleet.db", "tls.pem", "tls.key"] {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(copy.join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    let site = Site::start(folder.path(), &file(&copy));
    let said = json!({ "applied": { "channel": "all", "number": 2 } }).to_string();
    machines[0].session = None;
    let answer = machines[0].ask(&site, "GET", "/v1/desired?after=2", &said, b"");
    assert_eq!(answer.status, 304, "it is not given the first release again");
    assert_ne!(answer.header("stead-epoch"), Some(&*epoch), "it sends its reports again");
    let again = machines[0].report(&site, 1..last + 1).json();
    assert!(again["new"].as_u64().unwrap() >= 1 && again["forked"] == json!([]), "{again}");
    assert_eq!(Operators::publish(&site, &ann, "release", &release).status, 200, "operators publish again");
    let number = until(|| {
        let answer = machines[0].ask(&site, "GET", "/v1/desired?after=2", &said, b"");
        (answer.status == 200).then(|| answer.json()["number"].clone())
    });
    assert_eq!(number, 2);
}

#[test]
fn acts_and_refusals_are_logged_and_nothing_secret_is() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let (_, ann) = run(&["operator", "ann", "--role", "operator", "--folder"], &[&state]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_stead-fleet"));
    command.args(["run", "--log-format", "json", "--listen", "127.0.0.1:0", "--folder"]).arg(&state);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    let port = first.split("listening on 127.0.0.1:").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let agent = site::agent(&std::fs::read(state.join("tls.pem")).unwrap());
    let ask = |method: &str, path: &str, token: &str, body: &[u8]| {
        let headers = [("authorization", format!("Bearer {}", token.trim()))];
        site::try_ask(&agent, &format!("https://localhost:{port}{path}"), method, &headers, body).unwrap()
    };
    let wanted = serde_json::to_vec(&TokenRequest { uses: 1, seconds: 60, labels: [].into() }).unwrap();
    let secret = ask("POST", "/v1/tokens", &ann, &wanted).json()["token"].as_str().unwrap().to_owned();
    let hold = serde_json::to_vec(&HoldRequest { seconds: 1, why: "x".to_owned() }).unwrap();
    assert_eq!(ask("POST", "/v1/machines/nobody/hold", &ann, &hold).status, 404);
    assert_eq!(ask("GET", "/v1/machines", "stolen-token", b"").status, 401);
    assert_eq!(ask("POST", "/v1/statements/root", &ann, b"x").status, 403);
    (0..30).for_each(|_| assert_eq!(ask("GET", "/v1/machines", "stolen-token", b"").status, 401));
    let status = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(status.success());
    let log: Vec<String> = lines.collect();
    child.wait().unwrap();
    let parsed: Vec<Value> =
        log.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let has = |members: Value| {
        let members = members.as_object().unwrap();
        parsed.iter().any(|line| members.iter().all(|(name, value)| line.get(name) == Some(value)))
    };
    assert!(has(json!({ "message": "act", "by": "ann", "level": "INFO" })), "{log:#?}");
    assert!(
        has(
            json!({ "message": "refused", "status": 404, "path": "/v1/machines/*/hold", "why": "there is no such machine" })
        ),
        "{log:#?}"
    );
    assert!(has(json!({ "message": "refused", "status": 401, "who": "-" })), "{log:#?}");
    assert!(has(json!({ "message": "refused", "status": 403, "method": "POST" })), "{log:#?}");
    for text in [secret.as_str(), ann.trim(), "stolen-token"] {
        assert!(!log.iter().any(|line| line.contains(text)), "{text}: {log:#?}");
    }
}
