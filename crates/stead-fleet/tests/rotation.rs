//! Each key is replaced while machines poll, and none of them is refused for it. `STEAD_DOSE=10` has a hundred machines.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]
#![expect(clippy::print_stdout, reason = "it says what it did, as tests do")]

#[path = "../../stead-release/tests/support/mod.rs"]
mod keys;
#[path = "support/site.rs"]
mod site;

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use keys::Key;
use site::{Operators, Simulated, Site, bundle, operator};
use stead_fleet::server::TlsFiles;
use stead_fleet::store::StorePlace;
use stead_fleet::tls;
use stead_protocol::{StandingRequest, TokenRequest};
use stead_system::folder::Folder;
use stead_testkit::{times, until};

/// A controller, and machines that join it.
struct World {
    folder: tempfile::TempDir,
    place: StorePlace,
    ann: String,
    site: Site,
    operators: Operators,
}

impl World {
    fn new() -> (Self, Vec<Simulated>) {
        let folder = tempfile::tempdir().unwrap();
        let place = StorePlace::File(folder.path().join("fleet.db"));
        let ann = operator(&place, "ann", "approver");
        let site = Site::start(folder.path(), &place);
        let mut world = Self { folder, place, ann, site, operators: Operators::new() };
        assert_eq!(Operators::store(&world.site, &world.ann, &bundle("b")).status, 200);
        let root = world.operators.root.to_text();
        assert_eq!(world.publish("root", &root), 200);
        let machines = (1..=times("STEAD_FLEET_POLLING", 10)).map(|number| {
            let mut machine = Simulated::new(&format!("m{number}"), u8::try_from(number).unwrap());
            assert_eq!(world.join(&mut machine), 200);
            machine
        });
        let machines: Vec<_> = machines.collect();
        assert_eq!(world.release(), 200);
        assert_eq!(world.roster(machines.iter().map(|machine| (machine.name.as_str(), &machine.key))), 200);
        (world, machines)
    }

    fn join(&self, machine: &mut Simulated) -> u16 {
        let wanted = TokenRequest { uses: 1, seconds: 600, labels: [].into() };
        let token = self.site.tell(&self.ann, "/v1/tokens", &wanted).json()["token"].as_str().unwrap().to_owned();
        machine.enrol(&self.site, Some(&token)).status
    }

    fn publish(&self, kind: &str, text: &str) -> u16 {
        Operators::publish(&self.site, &self.ann, kind, text).status
    }

    fn release(&mut self) -> u16 {
        let release = self.operators.release("all", "all", &bundle("b"));
        self.publish("release", &release)
    }

    fn roster<'m>(&mut self, members: impl Iterator<Item = (&'m str, &'m Key)>) -> u16 {
        let members: Vec<_> =
            members.map(|(name, key)| (stead_hosts::MachineName::parse(name).unwrap(), key.public.clone())).collect();
        let members: Vec<_> = members.iter().map(|(name, key)| (name, key, "x")).collect();
        let roster = self.operators.roster(&members);
        self.publish("roster", &roster)
    }
}

/// Machines that poll and report until they are to end: how much they asked, and how often they were refused.
#[derive(Default)]
struct Polling {
    is_over: AtomicBool,
    asked: AtomicU64,
    refused: AtomicU64,
}

impl Polling {
    fn poll(&self, site: &Site, mut machine: Simulated) {
        let (mut number, mut former) = (1, None);
        while !self.is_over.load(Ordering::SeqCst) {
            let statuses = [machine.desired(site, 0, None, 0).status, machine.report(site, number..number + 1).status];
            number += 1;
            self.asked.fetch_add(2, Ordering::SeqCst);
            let refused = statuses.iter().filter(|status| !matches!(status, 200 | 304)).count();
            self.refused.fetch_add(refused as u64, Ordering::SeqCst);
            // Now and then it signs by its key and is given a new session, and goes on with the former one.
            match number % 7 {
                0 => former = machine.session.take(),
                3 if former.is_some() => machine.session = former.take(),
                _ => {}
            }
        }
    }

    /// Has machines poll while something is done, before it and behind it: none is refused.
    fn during<T>(site: &Site, machines: Vec<Simulated>, what: &str, done: impl FnOnce(&Self) -> T) -> T {
        let polling = Self::default();
        let value = std::thread::scope(|scope| {
            for machine in machines {
                scope.spawn(|| polling.poll(site, machine));
            }
            polling.go_on();
            let value = done(&polling);
            polling.go_on();
            polling.is_over.store(true, Ordering::SeqCst);
            value
        });
        let [asked, refused] = [&polling.asked, &polling.refused].map(|count| count.load(Ordering::SeqCst));
        println!("{asked} requests while {what} was replaced: {refused} refused");
        assert_eq!(refused, 0);
        value
    }

    /// Waits until more was asked.
    fn go_on(&self) {
        let from = self.asked.load(Ordering::SeqCst);
        until(|| (self.asked.load(Ordering::SeqCst) >= from + 100).then_some(()));
    }
}

#[test]
fn the_secret_of_sessions_is_replaced() {
    let (world, machines) = World::new();
    let sessions = || {
        let epochs = world.place.open().unwrap().sessions(String::new).unwrap();
        epochs.into_iter().map(|epoch| epoch.secret.expose().clone()).collect::<Vec<_>>()
    };
    let first = sessions();
    Polling::during(&world.site, machines, "the secret of sessions", |polling| {
        // Twice: the one that is used counts until another one is.
        for secret in ["second", "third"] {
            world.place.open().unwrap().rotate_sessions(|| secret.to_owned(), 3_000).unwrap();
        }
        // The first is accepted while the others are read, and while they are used.
        let began = Instant::now();
        until(|| (began.elapsed() > Duration::from_secs(6)).then_some(()));
        polling.go_on();
    });
    assert_eq!(sessions(), [&first[0], "second", "third"]);
    // The command does the same, and the first counts no more.
    let store = world.folder.path();
    let command = Command::new(env!("CARGO_BIN_EXE_stead-fleet")).args(["rotate", "--folder"]).arg(store).status();
    assert!(command.unwrap().success());
    let last = sessions();
    assert_eq!((&*last[0], last.len()), ("third", 2));
    assert!(!["third", &first[0]].contains(&&*last[1]));
}

/// The key of a controller is that of its certificate: whoever asks it trusts both before one takes the place of the other.
#[test]
fn the_certificate_and_the_key_of_the_controller_are_replaced() {
    let (mut world, machines) = World::new();
    let state = Folder::create(&world.folder.path().join("state")).unwrap();
    let other = Folder::create(&world.folder.path().join("other")).unwrap();
    let TlsFiles { certificate, key } = tls::own(&other, &["localhost".to_owned()]).unwrap();
    let [certificate, key] = [certificate, key].map(|file| std::fs::read(file).unwrap());
    world.site.agent = site::trusting(&[&state.read("tls.pem").unwrap().unwrap(), &certificate]);
    Polling::during(&world.site, machines, "the certificate and its key", |polling| {
        state.replace("tls.key", &key).unwrap();
        // A key without its certificate is not taken: the former ones stay until both fit.
        polling.go_on();
        state.replace("tls.pem", &certificate).unwrap();
        let (renewed, url) = (site::agent(&certificate), format!("{}/v1/status", world.site.url));
        let headers = [("authorization", format!("Bearer {}", world.ann))];
        let asked = || site::try_ask(&renewed, &url, "GET", &headers, b"").ok();
        until(|| asked().filter(|answer| answer.status == 200));
    });
}

/// Another list of signers: what it signs counts from then on, and what the former one signs does not.
#[test]
fn the_signers_are_replaced() {
    let (mut world, mut machines) = World::new();
    let mut first = machines.remove(0);
    let number = |machine: &mut Simulated, site: &Site| {
        let answer = machine.desired(site, 0, None, 0);
        let answer = if answer.status == 200 { answer.json() } else { serde_json::Value::Null };
        (answer["signers"].as_u64(), answer["number"].as_u64())
    };
    until(|| (number(&mut first, &world.site) == (Some(0), Some(1))).then_some(()));
    let members: Vec<_> = (1..=machines.len() + 1).map(|number| format!("m{number}")).collect();
    let keys: Vec<_> = (1..=machines.len() + 1).map(|number| Key::new(u8::try_from(number).unwrap())).collect();
    let (list, release, roster, former) = {
        let operators = &mut world.operators;
        let known = operators.releases.clone();
        let former = operators.release("all", "all", &bundle("b"));
        operators.releases = known;
        let list = operators.succeeded_by(Key::new(201));
        let release = operators.release("all", "all", &bundle("b"));
        let names: Vec<_> = members.iter().map(|name| stead_hosts::MachineName::parse(name).unwrap()).collect();
        let machines: Vec<_> = names.iter().zip(&keys).map(|(name, key)| (name, &key.public, "x")).collect();
        (list, release, operators.roster(&machines), former)
    };
    Polling::during(&world.site, machines, "the list of signers", |_| {
        assert_eq!(world.publish("signers", &list), 200);
        let refused = Operators::publish(&world.site, &world.ann, "release", &former);
        assert!(String::from_utf8(refused.body).unwrap().starts_with("error[E1407]"), "{}", refused.status);
        assert_eq!(world.publish("roster", &roster), 200);
        assert_eq!(world.publish("release", &release), 200);
        until(|| (number(&mut first, &world.site) == (Some(1), Some(2))).then_some(()));
    });
}

/// Another key of one machine: it waits for operators, who decide which of both keys is meant, and nobody else notices.
#[test]
fn the_key_of_a_machine_is_replaced() {
    let (mut world, mut machines) = World::new();
    let mut former = machines.remove(0);
    until(|| (former.desired(&world.site, 0, None, 0).status == 200).then_some(()));
    let members: Vec<_> = machines.iter().map(|machine| machine.name.to_string()).collect();
    let keys: Vec<_> = (2..=members.len() + 1).map(|number| Key::new(u8::try_from(number).unwrap())).collect();
    let mut new = Simulated::new("m1", 250);
    let rows: Vec<_> = members.iter().map(String::as_str).zip(&keys).collect();
    let roster = {
        let name = new.name.clone();
        let names: Vec<_> = rows.iter().map(|(name, _)| stead_hosts::MachineName::parse(name).unwrap()).collect();
        let mut members: Vec<_> = names.iter().zip(&keys).map(|(name, key)| (name, &key.public, "x")).collect();
        members.push((&name, &new.key.public, "x"));
        world.operators.roster(&members)
    };
    Polling::during(&world.site, machines, "the key of a machine", |polling| {
        assert_eq!(world.join(&mut new), 409, "the name is that of the former key");
        assert_eq!(former.desired(&world.site, 0, None, 0).status, 200);
        let retire = StandingRequest { standing: "retired".to_owned() };
        assert_eq!(world.site.tell(&world.ann, "/v1/machines/m1/standing", &retire).status, 200);
        assert_eq!(world.join(&mut new), 200);
        polling.go_on();
        assert_eq!(new.desired(&world.site, 0, None, 0).status, 304, "nothing before operators signed its key");
        assert_eq!(world.publish("roster", &roster), 200);
        until(|| (new.desired(&world.site, 0, None, 0).status == 200).then_some(()));
        assert_eq!(former.desired(&world.site, 0, None, 0).status, 401, "the former key is nobody's");
    });
}
