//! Laws of what is accepted, over random fleets: each release that was made as the rules say is accepted, and each that is wrong in
//! one thing is refused with the code of that thing. A model of the rules, which knows no bytes, agrees.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::json;
use stead_release::{
    ChainLink, Digest, Fleet, Floor, Name, Numbered, Release, ReleaseRefusal, Root, Selector, Signable, Signed,
    Signers, Succession, Walk,
};
use support::Key;

/// The keys that are signers in some list, and one that never is.
const SIGNERS: usize = 6;
const STRANGER: usize = SIGNERS;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn subset(&mut self, least: usize, of: &[usize]) -> Vec<usize> {
        let mut rest = of.to_vec();
        let size = least + self.below(of.len() - least + 1);
        (0..size).map(|_| rest.swap_remove(self.below(rest.len()))).collect()
    }
}

/// A list of signers as the model sees it.
#[derive(Clone, Debug)]
struct ListModel {
    signers: Vec<usize>,
    threshold: usize,
    /// The last release that it signs.
    ends: Option<u64>,
}

/// A release as the model sees it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a rule of the record")]
struct ReleaseModel {
    is_of_fleet: bool,
    is_of_channel: bool,
    is_release: bool,
    number: u64,
    follows: bool,
    /// `None` for one that is not known.
    list: Option<usize>,
    by: Vec<usize>,
    is_for_releases: bool,
    is_altered: bool,
    /// In seconds from the beginning, as all times.
    expires: i64,
    is_for_machine: bool,
}

/// The ways in which a release is wrong, each with its code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wrong {
    Fleet,
    Channel,
    Kind,
    Ahead,
    Older,
    Forked,
    Parent,
    UnknownList,
    RetiredList,
    RetiredKey,
    Stranger,
    Twice,
    TooFew,
    Purpose,
    Altered,
    Expired,
    ExpiredByTheClockOfSigners,
    NotSelected,
}

const ALL: [(Wrong, &str); 18] = [
    (Wrong::Fleet, "E1409"),
    (Wrong::Channel, "E1410"),
    (Wrong::Kind, "E1402"),
    (Wrong::Ahead, "E1413"),
    (Wrong::Older, "E1411"),
    (Wrong::Forked, "E1412"),
    (Wrong::Parent, "E1413"),
    (Wrong::UnknownList, "E1408"),
    (Wrong::RetiredList, "E1407"),
    (Wrong::RetiredKey, "E1407"),
    (Wrong::Stranger, "E1406"),
    (Wrong::Twice, "E1405"),
    (Wrong::TooFew, "E1404"),
    (Wrong::Purpose, "E1402"),
    (Wrong::Altered, "E1403"),
    (Wrong::Expired, "E1414"),
    (Wrong::ExpiredByTheClockOfSigners, "E1414"),
    (Wrong::NotSelected, "E1415"),
];

/// The rules, from the record: nothing of the program is called.
fn is_accepted(lists: &[ListModel], release: &ReleaseModel, floor: u64, now: i64) -> bool {
    let Some(list) = release.list.map(|list| &lists[list]) else { return false };
    let different: BTreeSet<usize> = release.by.iter().copied().collect();
    release.is_of_fleet
        && release.is_of_channel
        && release.is_release
        && release.number == floor + 1
        && release.follows
        && list.ends.is_none_or(|last| release.number <= last)
        && different.len() == release.by.len()
        && different.iter().all(|key| list.signers.contains(key))
        && different.len() >= list.threshold
        && release.is_for_releases
        && !release.is_altered
        && release.expires > now
        && release.is_for_machine
}

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// A fleet with its lists and a channel, as bytes and for the model.
struct World {
    keys: Vec<Key>,
    fleet: Fleet,
    lists: Vec<ListModel>,
    digests: Vec<Digest>,
    /// Each release with the floor in front of it.
    channel: Vec<(Floor, Vec<u8>)>,
    floor: Floor,
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn signed<S: Signable>(statement: S, keys: &[Key], by: &[usize], purpose: &str) -> Vec<u8> {
    let signed = Signed::new(statement);
    let signatures = by.iter().map(|key| keys[*key].sign(purpose, signed.bytes()));
    signatures.fold(signed.bytes().to_vec(), |bytes, signature| [bytes, signature.into_bytes()].concat())
}

impl World {
    fn new(random: &mut Random) -> Self {
        let keys: Vec<Key> = (1..=u8::try_from(SIGNERS + 1).unwrap()).map(Key::new).collect();
        let list = |random: &mut Random| {
            let signers = random.subset(1, &(0..SIGNERS).collect::<Vec<_>>());
            let least = if signers.len() == 1 { 1 } else { 2 };
            ListModel { threshold: least + random.below(signers.len() - least + 1), signers, ends: None }
        };
        let of_model = |list: &ListModel, keys: &[Key]| {
            let signers = list.signers.iter().map(|key| keys[*key].public.clone()).collect();
            Signers::new(signers, u32::try_from(list.threshold).unwrap()).unwrap()
        };
        let first = list(random);
        let root = Signed::new(Root { name: name("fleet"), signers: of_model(&first, &keys) });
        let fleet = Fleet::of_root(root.bytes(), &root.digest()).unwrap();
        let floor = Floor::first(&fleet);
        let digests = vec![root.digest()];
        let mut world = Self { keys, fleet, lists: vec![first], digests, channel: Vec::new(), floor };
        for _ in 0..random.below(3) {
            world.publish(random);
            let next = list(random);
            let (number, former, _) = world.fleet.in_force();
            let link = ChainLink {
                fleet: world.fleet.root().clone(),
                number: number + 1,
                parent: former.clone(),
                signers: former.clone(),
                made: time(0),
            };
            let ends = BTreeMap::from([(name("web"), world.floor.release.clone())]);
            let signers = of_model(&next, &world.keys);
            let by = world.enough(random);
            let bytes =
                signed(Succession { link, last: ends, roster: None, signers }, &world.keys, &by, Succession::PURPOSE);
            world.fleet.follow(&bytes).unwrap();
            world.lists.last_mut().unwrap().ends = Some(world.floor.release.number);
            world.lists.push(next);
            world.digests.push(world.fleet.in_force().1.clone());
        }
        world.publish(random);
        world
    }

    /// Signers of the list in force, as many as it asks for or more.
    fn enough(&self, random: &mut Random) -> Vec<usize> {
        let list = self.lists.last().unwrap();
        random.subset(list.threshold, &list.signers)
    }

    /// Makes some releases, each of which is accepted.
    fn publish(&mut self, random: &mut Random) {
        for _ in 0..random.below(3) {
            let by = self.enough(random);
            let good = self.good(by);
            let bytes = self.release(&good, None);
            let mut walk = Walk::new(&self.fleet, WEB.get(), self.floor.clone());
            walk.step(&bytes).unwrap();
            let after = walk.floor().clone();
            self.channel.push((self.floor.clone(), bytes));
            self.floor = after;
        }
    }

    /// The next release, with nothing wrong.
    fn good(&self, by: Vec<usize>) -> ReleaseModel {
        ReleaseModel {
            is_of_fleet: true,
            is_of_channel: true,
            is_release: true,
            number: self.floor.release.number + 1,
            follows: true,
            list: Some(self.lists.len() - 1),
            by,
            is_for_releases: true,
            is_altered: false,
            expires: 1000,
            is_for_machine: true,
        }
    }

    fn release(&self, model: &ReleaseModel, made: Option<i64>) -> Vec<u8> {
        let other = Digest::of(b"another");
        let link = ChainLink {
            fleet: if model.is_of_fleet { self.fleet.root().clone() } else { other.clone() },
            number: model.number,
            parent: if model.follows { self.floor.release.digest.clone() } else { other.clone() },
            signers: model.list.map_or_else(|| other.clone(), |list| self.digests[list].clone()),
            made: time(made.unwrap_or(1)),
        };
        let purpose = if model.is_for_releases { Release::PURPOSE } else { Succession::PURPOSE };
        if !model.is_release {
            let signers = Signers::new(BTreeSet::from([self.keys[0].public.clone()]), 1).unwrap();
            let link = ChainLink { parent: link.signers.clone(), ..link };
            return signed(
                Succession { link, last: BTreeMap::new(), roster: None, signers },
                &self.keys,
                &model.by,
                purpose,
            );
        }
        let selector = if model.is_for_machine { "role=web" } else { "role=db" };
        let release = Release {
            link,
            channel: name(if model.is_of_channel { "web" } else { "db" }),
            expires: time(model.expires),
            selector: selector.parse::<Selector>().unwrap(),
            bundle: Digest::of(b"bundle"),
            parameters: json!({ "port": 8080 }).as_object().unwrap().clone(),
            sealed: None,
        };
        let bytes = signed(release, &self.keys, &model.by, purpose);
        if model.is_altered {
            let text = String::from_utf8(bytes).unwrap();
            return text.replacen("\"port\":8080", "\"port\":8081", 1).into_bytes();
        }
        bytes
    }

    /// Makes a release wrong in one thing, if that can be in this fleet.
    fn make_wrong(&self, release: &mut ReleaseModel, wrong: Wrong, random: &mut Random) -> Option<()> {
        let list = self.lists.last()?;
        match wrong {
            Wrong::Fleet => release.is_of_fleet = false,
            Wrong::Channel => release.is_of_channel = false,
            Wrong::Kind => release.is_release = false,
            Wrong::Ahead => release.number += 1 + random.below(3) as u64,
            Wrong::Older => release.number = release.number.checked_sub(2).filter(|number| *number > 0)?,
            Wrong::Forked => release.number = release.number.checked_sub(1).filter(|number| *number > 0)?,
            Wrong::Parent => release.follows = false,
            Wrong::UnknownList => release.list = None,
            Wrong::RetiredList => {
                let former = self.lists.len().checked_sub(2)?;
                release.list = Some(former);
                release.by.clone_from(&self.lists[former].signers);
            }
            Wrong::RetiredKey => {
                let former = self.lists.iter().flat_map(|list| &list.signers);
                release.by.push(*former.clone().find(|key| !list.signers.contains(key))?);
            }
            Wrong::Stranger => release.by.push(STRANGER),
            Wrong::Twice => release.by.push(*release.by.first()?),
            Wrong::TooFew => release.by.truncate(list.threshold - 1),
            Wrong::Purpose => release.is_for_releases = false,
            Wrong::Altered => release.is_altered = true,
            Wrong::Expired => release.expires = 100,
            Wrong::ExpiredByTheClockOfSigners => return None,
            Wrong::NotSelected => release.is_for_machine = false,
        }
        Some(())
    }

    /// What a machine makes of a release behind a floor: nothing is staged, or the code of the refusal.
    fn judged(&self, floor: &Floor, bytes: &[u8], now: i64) -> Result<(), ReleaseRefusal> {
        let mut walk = Walk::new(&self.fleet, WEB.get(), floor.clone());
        walk.step(bytes).inspect_err(|_| assert_eq!(walk.floor(), floor, "what is refused moves nothing"))?;
        walk.newest(&|label| (label == "role").then_some("web"), time(now))?;
        Ok(())
    }
}

/// The channel that is followed.
struct Web(std::sync::OnceLock<Name>);
static WEB: Web = Web(std::sync::OnceLock::new());

impl Web {
    fn get(&'static self) -> &'static Name {
        self.0.get_or_init(|| name("web"))
    }
}

/// How many releases are tried behind one channel of a random fleet: to make that takes most of the time.
const A_FLEET: usize = 20;

/// The time by the clock of the machine.
const NOW: i64 = 200;

/// How many attempts came out as the model says.
#[derive(Default, Debug)]
struct Tried {
    /// Right, and accepted.
    right: usize,
    /// Wrong in one thing, and refused with its code.
    wrong: BTreeMap<String, usize>,
    /// Wrong in several things or in none, and accepted or refused.
    mixed: [usize; 2],
}

#[test]
fn what_is_wrong_in_one_thing_is_refused_with_its_own_code_and_what_is_right_is_accepted() {
    let cases = stead_testkit::times("STEAD_RELEASES", 1_000);
    let mut tried = Tried::default();
    for seed in 0..cases.div_ceil(A_FLEET) as u64 {
        let random = &mut Random(seed);
        let world = World::new(random);
        for _ in 0..A_FLEET {
            try_one(seed, &world, random, &mut tried);
        }
    }
    println!("{cases} releases: {tried:?}");
    assert_eq!(tried.wrong.len(), ALL.len(), "each is tried");
    let (least, wrong) = (cases / 10, tried.wrong.values().sum::<usize>());
    assert!(tried.right >= least && wrong >= least, "a tenth at least is right, and a tenth is wrong in one thing");
}

fn try_one(seed: u64, world: &World, random: &mut Random, tried: &mut Tried) {
    let mut release = world.good(world.enough(random));
    let floor = &world.floor;
    let is_right = |release: &ReleaseModel, time: i64| is_accepted(&world.lists, release, floor.release.number, time);
    let judged = |release: &ReleaseModel| world.judged(floor, &world.release(release, None), NOW);
    let (wrong, code) = ALL[random.below(ALL.len())];
    match random.below(4) {
        0 => {
            assert!(is_right(&release, NOW), "seed {seed}: {release:?}");
            assert_eq!(judged(&release), Ok(()), "seed {seed}: {release:?}");
            tried.right += 1;
        }
        1 | 2 if wrong == Wrong::ExpiredByTheClockOfSigners => {
            // The clock of the machine was set back; a signer stated a later time.
            release.expires = 400;
            let bytes = world.release(&release, Some(399));
            let late = Floor { time: time(500), ..floor.clone() };
            assert!(is_right(&release, NOW) && !is_right(&release, 500), "seed {seed}: {release:?}");
            assert_eq!(world.judged(floor, &bytes, NOW), Ok(()), "seed {seed}");
            assert_eq!(world.judged(&late, &bytes, NOW).map_err(|refusal| refusal.code().id), Err(code), "seed {seed}");
            *tried.wrong.entry(format!("{wrong:?}")).or_default() += 1;
        }
        1 | 2 => {
            let Some(()) = world.make_wrong(&mut release, wrong, random) else { return };
            assert!(!is_right(&release, NOW), "seed {seed}: {release:?}");
            let judged = judged(&release).map_err(|refusal| refusal.code().id);
            assert_eq!(judged, Err(code), "seed {seed}: {wrong:?} {release:?} {:?}", world.lists);
            *tried.wrong.entry(format!("{wrong:?}")).or_default() += 1;
        }
        _ => {
            // Accepted or not, as the model says.
            for _ in 0..random.below(3) {
                let (wrong, _) = ALL[random.below(ALL.len())];
                world.make_wrong(&mut release, wrong, random);
            }
            let (judged, expected) = (judged(&release), is_right(&release, NOW));
            assert_eq!(judged.is_ok(), expected, "seed {seed}: {judged:?} {release:?} {:?}", world.lists);
            tried.mixed[usize::from(!expected)] += 1;
        }
    }
}

/// Who was away walks over all that was published, under whichever list, and comes to the same place.
#[test]
fn a_walk_from_the_beginning_leads_where_each_step_led() {
    for seed in 0..stead_testkit::times("STEAD_WALKS", 100) as u64 {
        let world = World::new(&mut Random(seed));
        let mut walk = Walk::new(&world.fleet, WEB.get(), Floor::first(&world.fleet));
        let agreed = world.lists.iter().filter_map(|list| list.ends).max().unwrap_or_default();
        for (before, bytes) in &world.channel {
            assert_eq!(walk.floor(), before, "seed {seed}");
            walk.step(bytes).unwrap_or_else(|refusal| panic!("seed {seed}: {refusal}"));
            // Former signers could have made up another beginning: nothing of it is staged.
            let newest = walk.newest(&|label| (label == "role").then_some("web"), time(200));
            let is_whole = walk.floor().release.number >= agreed;
            assert_eq!(newest.is_ok(), is_whole, "seed {seed}: {newest:?}");
        }
        assert_eq!(*walk.floor(), world.floor, "seed {seed}");
        let Numbered { number, .. } = walk.floor().release;
        assert_eq!(walk.next(), number + 1);
        // A list of signers comes once, and in its order.
        let (newest, ..) = world.fleet.in_force();
        assert_eq!(usize::try_from(newest), Ok(world.lists.len() - 1));
    }
}
