//! The decision of a machine that follows a source, over sources in memory that show what they like.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod support;

use std::cell::RefCell;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Map;
use stead_hosts::MachineName;
use stead_release::{
    ChainLink, Decision, Digest, Envelope, EnvelopeAddress, Fleet, FleetFollower, FleetMemory, KnownRoster,
    MachineKeys, MachineSecret, Name, Numbered, Obstacle, Release, ReleaseSecrets, Root, Roster, RosterHold,
    RosterMachine, SealedParameters, Signable, Signed, Signers, SourceFile, Succession,
};
use support::Key;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// A source, and the operators who fill it. Signers are two of the keys 1 to 4, and change.
struct Source {
    files: BTreeMap<String, Vec<u8>>,
    fleet: Fleet,
    signers: [u8; 2],
    roster: Numbered,
    ends: BTreeMap<Name, Numbered>,
    clock: i64,
    /// The secrets of the releases that are made next.
    secrets: Option<ReleaseSecrets>,
    /// The keys that the machine printed for the roster.
    keys: Option<MachineKeys>,
    /// Until when the roster holds the machine.
    hold: Option<i64>,
}

impl Source {
    fn new() -> Self {
        let signers = [1, 2];
        let root = Signed::new(Root { name: name("shop"), signers: list(signers) });
        let fleet = Fleet::of_root(root.bytes(), &root.digest()).unwrap();
        let roster = Numbered { number: 0, digest: root.digest() };
        let files = BTreeMap::from([("root".to_owned(), root.to_text().into_bytes())]);
        Self { files, fleet, signers, roster, ends: BTreeMap::new(), clock: 0, secrets: None, keys: None, hold: None }
    }

    fn link(&mut self, former: &Numbered) -> ChainLink {
        self.clock += 1;
        ChainLink {
            fleet: self.fleet.root().clone(),
            number: former.number + 1,
            parent: former.digest.clone(),
            signers: self.fleet.in_force().1.clone(),
            made: time(self.clock),
        }
    }

    fn put<S: Signable>(&mut self, file: &SourceFile, statement: S, by: &[u8]) -> Digest {
        let mut signed = Signed::new(statement);
        for key in by {
            let signature = Key::new(*key).sign(S::PURPOSE, signed.bytes());
            signed.add(&signature).unwrap();
        }
        self.files.insert(file.to_string(), signed.to_text().into_bytes());
        signed.digest()
    }

    fn end(&self, channel: &str) -> Numbered {
        let first = || Numbered { number: 0, digest: self.fleet.root().clone() };
        self.ends.get(&name(channel)).cloned().unwrap_or_else(first)
    }

    /// Makes the next release of a channel, valid for a hundred seconds; with fewer signatures it is not in force yet.
    fn publish(&mut self, channel: &str, selector: &str, by: &[u8]) -> Digest {
        let link = self.link(&self.end(channel));
        let number = link.number;
        let expires = link.made + jiff::SignedDuration::from_secs(100);
        let release = Release {
            link,
            channel: name(channel),
            expires,
            selector: selector.parse().unwrap(),
            bundle: Digest::of(b"bundle"),
            parameters: Map::new(),
            sealed: self.secrets.as_ref().and_then(SealedParameters::of),
        };
        let digest = self.put(&SourceFile::Release(name(channel), number), release, by);
        if by.len() > 1 {
            self.ends.insert(name(channel), Numbered { number, digest: digest.clone() });
        }
        digest
    }

    fn release(&mut self, channel: &str, selector: &str) -> Digest {
        self.publish(channel, selector, &self.signers.clone())
    }

    fn enrol(&mut self, machine: &str) {
        let link = self.link(&self.roster.clone());
        let labels = BTreeMap::from([("role".to_owned(), "web".to_owned())]);
        let hold = self.hold.map(|until| RosterHold::new(time(until), "sale".to_owned()).unwrap());
        let member = match &self.keys {
            None => RosterMachine { key: Key::new(9).public, sealing: None, labels, hold },
            Some(keys) => {
                RosterMachine { key: keys.key().clone(), sealing: Some(keys.sealing().clone()), labels, hold }
            }
        };
        let machines = BTreeMap::from([(MachineName::parse(machine).unwrap(), member)]);
        let number = link.number;
        let roster = Roster { link, acts: None, machines, floors: self.ends.clone() };
        let digest = self.put(&SourceFile::Roster, roster, &self.signers.clone());
        self.roster = Numbered { number, digest };
    }

    fn succeed(&mut self, next: [u8; 2]) {
        let (number, digest, _) = self.fleet.in_force();
        let former = Numbered { number, digest: digest.clone() };
        let link = self.link(&former);
        let file = SourceFile::Signers(link.number);
        let roster = Some(self.roster.clone()).filter(|roster| roster.number > 0);
        let succession = Succession { link, last: self.ends.clone(), roster, signers: list(next) };
        self.put(&file, succession, &self.signers.clone());
        self.fleet.follow(&self.files[&file.to_string()]).unwrap();
        self.signers = next;
    }
}

fn list(of: [u8; 2]) -> Signers {
    Signers::new(of.map(|key| Key::new(key).public).into(), 2).unwrap()
}

/// A machine, and what it remembers.
struct Machine {
    root: Digest,
    memory: FleetMemory,
    keys: Option<MachineKeys>,
    roster: KnownRoster,
}

impl Machine {
    fn of(source: &Source) -> Self {
        Self {
            root: source.fleet.root().clone(),
            memory: FleetMemory::default(),
            keys: None,
            roster: KnownRoster::default(),
        }
    }

    fn follower(&self, now: i64) -> FleetFollower<'_, impl Fn(&str) -> Option<String> + use<>> {
        let fact = |path: &str| (path == "os.family").then(|| "Debian".to_owned());
        let Self { root, keys, roster, .. } = self;
        FleetFollower { root, machine: "web1", keys: keys.as_ref(), roster, fact, now: time(now) }
    }

    fn look_at(&mut self, now: i64, fetch: impl Fn(&SourceFile) -> Result<Option<Vec<u8>>, ()>) -> Decision<()> {
        let given = RefCell::new(BTreeMap::new());
        let decision = self
            .follower(now)
            .decide(&self.memory, |file| given.borrow_mut().entry(file.clone()).or_insert_with(|| fetch(file)).clone());
        // The roster that is known changes what it costs, and nothing else.
        let anew = FleetFollower { roster: &KnownRoster::default(), ..self.follower(now) };
        let anew = anew.decide(&self.memory, |file| given.borrow()[file].clone());
        let said = |of: &Decision<()>| {
            (of.memory.clone(), of.fleet.clone(), of.labels.clone(), of.release.clone(), of.obstacle.clone())
        };
        assert_eq!(said(&decision), said(&anew));
        self.memory = decision.memory.clone();
        decision
    }

    fn look(&mut self, source: &Source, now: i64) -> Decision<()> {
        self.look_at(now, |file| Ok(source.files.get(&file.to_string()).cloned()))
    }
}

/// The number of the release, and the code and the file of what stands in the way.
fn seen(decision: &Decision<()>) -> (Option<u64>, Option<String>) {
    (decision.release.as_ref().map(|release| release.statement().link.number), decision.obstacle.as_ref().map(word))
}

fn word(obstacle: &Obstacle<()>) -> String {
    match obstacle {
        Obstacle::Unreachable(()) => "unreachable".to_owned(),
        Obstacle::Missing(file) => format!("no {file}"),
        Obstacle::NotSealed(file) => format!("not sealed {file}"),
        Obstacle::Held(hold) => format!("held: {}", hold.why()),
        Obstacle::Refused(file, refusal) => format!("{} {file}", refusal.code().id),
    }
}

fn refused(code_and_file: &str) -> (Option<u64>, Option<String>) {
    (None, Some(code_and_file.to_owned()))
}

/// A fleet with the machine `web1`, and a release for it.
fn shop() -> Source {
    let mut source = Source::new();
    source.release("web", "role=web");
    source.enrol("web1");
    source
}

#[test]
fn who_was_away_gets_the_newest_release_and_who_is_new_begins_where_the_roster_says() {
    let mut source = shop();
    let mut machine = Machine::of(&source);
    assert_eq!(seen(&machine.look(&source, 10)), (Some(1), None));
    for _ in 0..5 {
        source.release("web", "role=web and os.family=Debian");
    }
    assert_eq!(seen(&machine.look(&source, 10)), (Some(6), None));
    assert_eq!(seen(&machine.look(&source, 10)), (Some(6), None), "once more the same");
    source.enrol("web1");
    // A new machine asks for nothing that lies in front of the floor.
    let asked = RefCell::new(Vec::new());
    let decision = Machine::of(&source).look_at(10, |file| {
        asked.borrow_mut().push(file.to_string());
        Ok(source.files.get(&file.to_string()).cloned())
    });
    assert_eq!(seen(&decision), (Some(6), None));
    assert_eq!(asked.into_inner(), ["root", "signers/1", "roster", "web/6.release", "web/7.release"]);
}

#[test]
fn what_is_in_the_way_has_a_code_and_a_file() {
    let source = shop();
    let look = |change: &dyn Fn(&mut Source), now: i64| {
        let mut source = shop();
        change(&mut source);
        seen(&Machine::of(&source).look(&source, now))
    };
    assert_eq!(look(&|_| (), 10), (Some(1), None));
    let unsigned = look(&|source| drop(source.publish("web", "role=web", &[1])), 10);
    assert_eq!(unsigned, (Some(1), Some("E1404 web/2.release".to_owned())), "the one before it counts");
    assert_eq!(look(&|_| (), 500), refused("E1414 web/1.release"));
    assert_eq!(look(&|source| drop(source.release("web", "role=db")), 10), refused("E1415 web/2.release"));
    assert_eq!(look(&|source| source.enrol("web2"), 10), refused("E1417 roster"));
    let two = |source: &mut Source| {
        source.release("all", "all");
        source.enrol("web1");
    };
    assert_eq!(look(&two, 10), refused("E1418 all/1.release"));
    let given_up = |source: &mut Source| {
        two(source);
        source.release("all", "role=none");
    };
    assert_eq!(look(&given_up, 10), (Some(1), None));
    // What is wrong in a channel for others is nothing to this machine.
    let elsewhere = |source: &mut Source| {
        given_up(source);
        source.publish("all", "role=none", &[1]);
    };
    assert_eq!(look(&elsewhere, 10), (Some(1), None));
    assert_eq!(look(&|source| drop(source.files.remove("root")), 10), (None, Some("no root".to_owned())));
    assert_eq!(look(&|source| drop(source.files.remove("roster")), 10), (None, Some("no roster".to_owned())));
    let held_back = look(&|source| drop(source.files.remove("web/1.release")), 10);
    assert_eq!(held_back, (None, Some("no web/1.release".to_owned())));
    let mut stranger = Machine { root: Digest::of(b"another"), ..Machine::of(&source) };
    assert_eq!(seen(&stranger.look(&source, 10)), refused("E1416 root"));
    let retired = |source: &mut Source| {
        source.succeed([1, 3]);
        source.enrol("web1");
        source.publish("web", "role=web", &[1, 2]);
    };
    assert_eq!(look(&retired, 10), (Some(1), Some("E1407 web/2.release".to_owned())));
    // A roster that the former signers signed.
    assert_eq!(look(&|source| source.succeed([1, 3]), 10), refused("E1407 roster"));
}

#[test]
fn a_source_that_goes_back_is_refused_whatever_the_clock_says() {
    let mut source = shop();
    let mut machine = Machine::of(&source);
    let before = source.files.clone();
    source.release("web", "role=web");
    source.succeed([1, 3]);
    source.enrol("web1");
    let renewed = source.files.clone();
    source.clock = 300;
    source.release("web", "role=web");
    assert_eq!(seen(&machine.look(&source, 10)), (Some(3), None));
    let memory = machine.memory.clone();
    // Each file as it was, and all of them together.
    let shown = |changes: &[(&str, Option<&Vec<u8>>)]| {
        let mut files = source.files.clone();
        for (path, content) in changes {
            match content {
                Some(content) => drop(files.insert((*path).to_owned(), (*content).clone())),
                None => drop(files.remove(*path)),
            }
        }
        let mut machine = Machine { root: machine.root.clone(), memory: memory.clone(), ..Machine::of(&source) };
        let decision = machine.look_at(10, |file| Ok(files.get(&file.to_string()).cloned()));
        assert_eq!(machine.memory, memory, "nothing is forgotten");
        let again = machine.look_at(10, |file| Ok(files.get(&file.to_string()).cloned()));
        assert_eq!(seen(&again), seen(&decision), "a roster that was refused is refused when it is known");
        seen(&decision)
    };
    assert_eq!(shown(&[("roster", before.get("roster"))]), refused("E1411 roster"));
    assert_eq!(shown(&[("signers/1", None)]), refused("E1411 signers/1"));
    assert_eq!(shown(&[("signers/1", None), ("roster", before.get("roster"))]), refused("E1411 signers/1"));
    assert_eq!(shown(&[("web/3.release", renewed.get("web/2.release"))]), refused("E1412 web/3.release"));
    assert_eq!(shown(&[("web/3.release", None)]), (None, Some("no web/3.release".to_owned())));
    // The newest that was seen stays the floor, and its time is not before what signers stated.
    source.clock = 500;
    source.enrol("web1");
    let decision = machine.look(&source, 10);
    assert_eq!(seen(&decision), refused("E1414 web/3.release"), "a signer stated a time behind its end");
    assert_eq!(machine.memory.time, time(501));
}

/// A hold ends by the clock of the machine, and no later than a time that signers stated.
#[test]
fn a_machine_that_is_held_takes_nothing_and_remembers_what_it_has_seen() {
    let (mut source, held) = (shop(), (None, Some("held: sale".to_owned())));
    let mut machine = Machine::of(&source);
    assert_eq!(seen(&machine.look(&source, 10)), (Some(1), None));
    source.hold = Some(50);
    source.release("web", "role=web");
    source.enrol("web1");
    assert_eq!(seen(&machine.look(&source, 10)), held);
    assert_eq!(machine.memory.channels[&name("web")].number, 2, "what is older is not taken any more");
    assert_eq!([49, 50].map(|now| seen(&machine.look(&source, now))), [held.clone(), (Some(2), None)]);
    // What stands in the way of a newer one is said all the same, and what is not there is not held.
    source.publish("web", "role=web", &[1]);
    assert_eq!(seen(&machine.look(&source, 10)), refused("E1404 web/3.release"));
    source.files.remove("web/3.release");
    assert_eq!(seen(&machine.look(&source, 200)), refused("E1414 web/2.release"));
    // A clock that stands still holds nobody longer than signers say.
    source.clock = 60;
    source.release("web", "role=web");
    assert_eq!(seen(&machine.look(&source, 10)), (Some(3), None));
    source.hold = None;
    source.enrol("web1");
    assert_eq!(seen(&machine.look(&source, 10)), (Some(3), None));
}

#[test]
fn what_was_checked_is_remembered_where_a_look_ends_early() {
    let mut source = shop();
    for _ in 0..4 {
        source.release("web", "role=web");
    }
    let mut machine = Machine::of(&source);
    let decision = machine.look_at(10, |file| match file.to_string().as_str() {
        "web/4.release" => Err(()),
        path => Ok(source.files.get(path).cloned()),
    });
    assert_eq!(seen(&decision), (None, Some("unreachable".to_owned())), "nothing on the way is staged");
    assert_eq!(machine.memory.channels[&name("web")].number, 3);
    assert_eq!(seen(&machine.look(&source, 10)), (Some(5), None));
}

#[test]
fn a_machine_comes_at_least_as_far_as_the_roster() {
    let mut source = shop();
    let mut machine = Machine::of(&source);
    assert_eq!(seen(&machine.look(&source, 10)), (Some(1), None));
    source.release("web", "role=web");
    source.release("web", "role=web");
    source.enrol("web1");
    let held_back = source.files.remove("web/3.release").unwrap();
    assert_eq!(seen(&machine.look(&source, 10)), refused("E1411 web/3.release"));
    source.files.insert("web/3.release".to_owned(), held_back);
    assert_eq!(seen(&machine.look(&source, 10)), (Some(3), None));
}

/// Also a list that was checked, whatever the source shows behind it: signers who retired cannot have another one believed.
#[test]
fn a_list_of_signers_is_remembered_where_the_one_behind_it_is_refused() {
    let mut retired = shop();
    retired.succeed([2, 4]);
    let mut source = shop();
    source.succeed([1, 3]);
    source.files.insert("signers/2".to_owned(), b"garbage".to_vec());
    let mut machine = Machine::of(&source);
    assert_eq!(seen(&machine.look(&source, 10)), refused("E1401 signers/2"));
    assert_eq!(machine.memory.signers.as_ref().map(|list| list.number), Some(1));
    assert_eq!(seen(&machine.look(&retired, 10)), refused("E1412 signers/1"));
}

/// A source that shows anything that was ever in it, or that one signer signed alone, in any mixture: what the machine knows only
/// grows, and it takes nothing but releases that the signers of their time signed, each not older than the one before.
#[test]
fn no_mixture_of_what_was_signed_makes_a_machine_go_back() {
    for seed in 0..stead_testkit::times("STEAD_MIXTURES", 60) as u64 {
        let mut random = seed;
        let mut below = |limit: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(random >> 33).unwrap() % limit
        };
        let mut source = shop();
        let mut history: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        let mut machine = Machine::of(&source);
        let (mut valid, mut newest, mut taken) = (vec![source.end("web").digest], 0, 0);
        for turn in 0..12 {
            match below(4) {
                0 => {
                    let by = source.signers[0];
                    source.publish("web", "role=web", &[by]);
                }
                1 => source.succeed([1, u8::try_from(2 + below(3)).unwrap()]),
                2 => source.enrol("web1"),
                _ => valid.push(source.release("web", "role=web")),
            }
            for (path, content) in &source.files {
                history.entry(path.clone()).or_default().push(content.clone());
            }
            let mixed: BTreeMap<String, Option<Vec<u8>>> = history
                .iter()
                .map(|(path, versions)| {
                    let some = match below(6) {
                        0 => None,
                        1 | 2 => Some(versions[below(versions.len())].clone()),
                        _ => source.files.get(path).cloned(),
                    };
                    (path.clone(), some)
                })
                .collect();
            let before = machine.memory.clone();
            let decision = machine.look_at(20, |file| Ok(mixed.get(&file.to_string()).cloned().flatten()));
            let number = |known: &Option<Numbered>| known.as_ref().map_or(0, |known| known.number);
            let after = &machine.memory;
            assert!(after.time >= before.time && number(&after.signers) >= number(&before.signers), "{seed} {turn}");
            assert!(number(&after.roster) >= number(&before.roster), "{seed} {turn}");
            for (channel, known) in &before.channels {
                assert!(after.channels[channel].number >= known.number, "{seed} {turn}");
            }
            if let Some(release) = decision.release {
                let number = release.statement().link.number;
                assert!(valid.contains(&release.digest()), "{seed} {turn}: {number}");
                assert!(number >= newest, "{seed} {turn}: {number} after {newest}");
                (newest, taken) = (number, taken + 1);
            }
        }
        assert!(taken > 0 || seed % 3 != 0 || newest == 0, "{seed}");
    }
}

fn keys(number: u8) -> MachineKeys {
    MachineKeys::of(&MachineSecret::of(&[number; MachineSecret::LENGTH]))
}

fn secrets() -> ReleaseSecrets {
    ReleaseSecrets::new(serde_json::json!({ "token": "kiwi" }).as_object().unwrap()).unwrap()
}

/// A copy of a machine has other keys, and follows under the name of the first.
#[test]
fn a_copy_of_a_machine_takes_nothing() {
    let mut source = Source::new();
    source.keys = Some(keys(1));
    source.release("web", "role=web");
    source.enrol("web1");
    let mut machine = Machine::of(&source);
    for (own, expected) in [(Some(keys(1)), (Some(1), None)), (Some(keys(2)), refused("E1432 roster"))] {
        machine.keys = own;
        assert_eq!(seen(&machine.look(&source, 0)), expected);
    }
}

#[test]
fn facts_select_no_release_with_secrets() {
    let mut source = Source::new();
    source.release("web", "os.family=Debian");
    source.enrol("web1");
    let mut machine = Machine::of(&source);
    assert_eq!(seen(&machine.look(&source, 0)), (Some(1), None));
    source.secrets = Some(secrets());
    source.release("web", "os.family=Debian");
    assert_eq!(seen(&machine.look(&source, 0)), refused("E1415 web/2.release"));
    source.release("web", "role=web");
    assert_eq!(seen(&machine.look(&source, 0)), (Some(3), None));
}

#[test]
fn a_machine_waits_for_its_envelope_and_takes_no_other() {
    let mut source = Source::new();
    (source.keys, source.secrets) = (Some(keys(1)), Some(secrets()));
    source.release("web", "role=web");
    source.release("web", "role=web");
    source.enrol("web1");
    let mut machine = Machine::of(&source);
    machine.keys = Some(keys(1));
    let release = machine.look(&source, 0).release.unwrap();
    let opened = |machine: &Machine, envelope: Option<&Envelope>| {
        let fetch = |file: &SourceFile| {
            assert_eq!(file.to_string(), "web/2.sealed/web1");
            Ok(envelope.map(|envelope| envelope.to_text().into_bytes()))
        };
        let opened = machine.follower(0).secrets(&release, fetch);
        opened.map(|secrets| secrets.unwrap().expose_parameters()).map_err(|obstacle| word(&obstacle))
    };
    assert_eq!(opened(&machine, None), Err("not sealed web/2.sealed/web1".to_owned()));
    let address =
        |name: &str| EnvelopeAddress::new(&release, MachineName::parse(name).unwrap(), keys(1).sealing().clone());
    let seal = |address, secrets: &ReleaseSecrets| Envelope::seal(address, secrets).unwrap();
    let own = source.secrets.as_ref().unwrap();
    let given = opened(&machine, Some(&seal(address("web1"), own))).unwrap();
    assert_eq!(given, own.expose_parameters());
    let former = EnvelopeAddress { release: Numbered { number: 1, digest: Digest::of(b"1") }, ..address("web1") };
    for (code, envelope) in [
        ("E1431", seal(former, own)),
        ("E1432", seal(address("web2"), own)),
        ("E1434", seal(address("web1"), &secrets())),
    ] {
        assert_eq!(opened(&machine, Some(&envelope)), Err(format!("{code} web/2.sealed/web1")));
    }
    machine.keys = None;
    assert_eq!(opened(&machine, Some(&seal(address("web1"), own))), Err("not sealed web/2.sealed/web1".to_owned()));
}

/// A statement with another time, and without its signatures.
fn unsigned(text: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(text).unwrap();
    let (statement, _) = text.split_once("-----BEGIN").unwrap();
    statement.replacen("\nmade 2027", "\nmade 2026", 1).into_bytes()
}

/// Whoever has the source cannot have a machine say that operators contradict each other.
#[test]
fn nothing_is_said_of_the_place_of_what_nobody_signed() {
    let mut source = shop();
    source.release("web", "role=web");
    source.succeed([1, 3]);
    source.enrol("web1");
    let mut machine = Machine::of(&source);
    assert_eq!(seen(&machine.look(&source, 10)), (Some(2), None));
    let mut shown = |path: &str, place: &str| {
        let content = unsigned(&source.files[path]);
        let look = |file: &SourceFile| match file.to_string() {
            file if file == place => Ok(Some(content.clone())),
            file => Ok(source.files.get(&file).cloned()),
        };
        seen(&machine.look_at(10, look))
    };
    for path in ["web/2.release", "roster", "signers/1"] {
        assert_eq!(shown(path, path), refused(&format!("E1404 {path}")));
    }
    assert_eq!(shown("web/2.release", "web/3.release"), (Some(2), Some("E1404 web/3.release".to_owned())));
    assert_eq!(shown("signers/1", "signers/2"), refused("E1404 signers/2"));
}

#[test]
fn a_roster_is_made_of_the_last_one_that_signers_of_their_time_signed() {
    let (mut source, mut retired) = (shop(), shop());
    let is_taken = |source: &Source, roster: &[u8]| {
        source.fleet.roster_to_change(roster).map(drop).map_err(|refusal| refusal.code().id)
    };
    let last = source.files["roster"].clone();
    assert_eq!(is_taken(&source, &last), Ok(()));
    retired.enrol("evil");
    source.succeed([1, 3]);
    assert_eq!(is_taken(&source, &last), Ok(()), "it is made again, under the new list");
    assert_eq!(is_taken(&source, &retired.files["roster"]), Err("E1407"), "who retired adds no machine");
    assert_eq!(is_taken(&source, &unsigned(&last)), Err("E1404"));
    source.enrol("web1");
    assert_eq!(is_taken(&source, &source.files["roster"]), Ok(()));
}

#[test]
fn numbers_end_before_one_more_is_none() {
    let (mut source, greatest) = (shop(), (1_u64 << 53) - 1);
    let mut is_read = |before: u64| {
        source.ends.insert(name("web"), Numbered { number: before, digest: Digest::of(b"before") });
        source.release("web", "role=web");
        Signed::<Release>::parse(&source.files[&format!("web/{}.release", before + 1)]).is_ok()
    };
    assert!(is_read(greatest - 1) && !is_read(greatest) && !is_read(u64::MAX - 1));
    source.enrol("web1");
    assert_eq!(seen(&Machine::of(&source).look(&source, 10)), refused("E1401 roster"), "a floor of that number");
}
