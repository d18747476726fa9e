//! The decision of a machine that follows a source: all rules, and no effect.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stead_hosts::MachineName;

use crate::envelope::{Envelope, EnvelopeAddress};
use crate::file::SourceFile;
use crate::fleet::Fleet;
use crate::known_roster::{KnownRoster, OwnRoster};
use crate::machine::MachineKeys;
use crate::name::{Digest, Name};
use crate::refusal::ReleaseRefusal;
use crate::secrets::ReleaseSecrets;
use crate::signed::Signed;
use crate::statements::{Numbered, Release, RosterHold, RosterMachine};
use crate::walk::{Floor, Walk};

/// The newest of each statement that a machine has seen.
///
/// Invariant: it only grows, whatever sources and clocks say.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FleetMemory {
    /// The newest time that signers stated.
    pub time: Timestamp,
    /// The list of signers.
    pub signers: Option<Numbered>,
    /// The roster.
    pub roster: Option<Numbered>,
    /// The release of each channel.
    pub channels: BTreeMap<Name, Numbered>,
}

/// A machine that follows a source.
pub struct FleetFollower<'a, Fact> {
    /// The digest of the root statement that it was given.
    pub root: &'a Digest,
    /// Its name in the roster.
    pub machine: &'a str,
    /// Its keys, if it has any.
    pub keys: Option<&'a MachineKeys>,
    /// The roster that it read last.
    pub roster: &'a KnownRoster,
    /// Its own facts, by their paths.
    pub fact: Fact,
    /// The time by its clock.
    pub now: Timestamp,
}

/// The outcome of a look at a source.
#[derive(Debug)]
pub struct Decision<E> {
    /// What the machine knows from now on.
    pub memory: FleetMemory,
    /// The name of the fleet, once the root statement was read.
    pub fleet: Option<Name>,
    /// The labels that operators signed for the machine.
    pub labels: BTreeMap<String, String>,
    /// The release that the machine is to have: the newest that is for it.
    pub release: Option<Signed<Release>>,
    /// Why there is none, or none that is newer.
    pub obstacle: Option<Obstacle<E>>,
}

/// Why a source gives nothing, or nothing newer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle<E> {
    /// The source cannot be asked.
    Unreachable(E),
    /// The source does not have a file that every source has.
    Missing(SourceFile),
    /// The secrets of a release are not sealed to the machine yet.
    NotSealed(SourceFile),
    /// The roster holds the machine at the release that it has.
    Held(RosterHold),
    /// The content of a file is refused.
    Refused(SourceFile, ReleaseRefusal),
}

/// The end of the newest release that matches the machine, by channel.
type Matching = (Name, u64, Signed<Release>);

impl<Fact: Fn(&str) -> Option<String>> FleetFollower<'_, Fact> {
    /// Decides what the machine is to have. `fetch` gives a file of the source, `None` if the source does not have it.
    ///
    /// Guarantees: nothing that `fetch` gives counts before its signatures were checked, from the root on. What was checked is
    /// remembered, also where the look ends early.
    pub fn decide<E>(
        &self,
        memory: &FleetMemory,
        mut fetch: impl FnMut(&SourceFile) -> Result<Option<Vec<u8>>, E>,
    ) -> Decision<E> {
        let mut decision =
            Decision { memory: memory.clone(), fleet: None, labels: BTreeMap::new(), release: None, obstacle: None };
        if let Err(obstacle) = self.look(&mut decision, &mut fetch) {
            decision.release = None;
            decision.obstacle = Some(obstacle);
        }
        decision
    }

    fn look<E>(
        &self,
        decision: &mut Decision<E>,
        fetch: &mut impl FnMut(&SourceFile) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<(), Obstacle<E>> {
        let fleet = self.fleet(&mut decision.memory, fetch)?;
        decision.fleet = Some(fleet.name().clone());
        let roster = read(SourceFile::Roster, fetch, |bytes| {
            let roster = self.roster.read(bytes, self.machine, &fleet)?;
            fleet.is_newest(&roster.link, &roster.digest, decision.memory.roster.as_ref())?;
            Ok(roster)
        })?;
        let OwnRoster { link, digest, floors, machine, .. } = &*roster;
        decision.memory.roster = Some(Numbered { number: link.number, digest: digest.clone() });
        decision.memory.time = decision.memory.time.max(link.made);
        let machine = machine.as_ref().ok_or_else(|| {
            Obstacle::Refused(SourceFile::Roster, ReleaseRefusal::NotInRoster(self.machine.to_owned()))
        })?;
        self.is_machine(machine).map_err(|refusal| Obstacle::Refused(SourceFile::Roster, refusal))?;
        decision.labels.clone_from(&machine.labels);
        let (mut matching, mut others) = (Vec::<Matching>::new(), None);
        let known = decision.memory.channels.keys().chain(floors.keys()).chain(fleet.channels());
        for channel in known.cloned().collect::<BTreeSet<_>>() {
            let (newest, refused) = channel_end(&fleet, &channel, floors, &mut decision.memory, fetch)?;
            match newest {
                Some(release) if self.is_selected(machine, &release) => {
                    decision.obstacle = refused.or(decision.obstacle.take());
                    matching.push((channel, release.statement().link.number, release));
                }
                Some(release) => {
                    let file = SourceFile::Release(channel, release.statement().link.number);
                    let refusal = ReleaseRefusal::NotSelected(release.statement().selector.to_string());
                    others = others.or(Some(Obstacle::Refused(file, refusal)));
                }
                None => others = refused.or(others),
            }
        }
        self.choose(decision, matching, others)?;
        if let Some(hold) = &machine.hold
            && hold.until() > self.now.max(decision.memory.time)
            && decision.release.take().is_some()
        {
            decision.obstacle.get_or_insert_with(|| Obstacle::Held(hold.clone()));
        }
        Ok(())
    }

    /// The one release that is left, if its time is not over.
    fn choose<E>(
        &self,
        decision: &mut Decision<E>,
        matching: Vec<Matching>,
        others: Option<Obstacle<E>>,
    ) -> Result<(), Obstacle<E>> {
        let mut matching = matching.into_iter();
        let Some((channel, number, release)) = matching.next() else { return others.map_or(Ok(()), Err) };
        let file = SourceFile::Release(channel.clone(), number);
        if let Some((second, ..)) = matching.next() {
            return Err(Obstacle::Refused(file, ReleaseRefusal::Ambiguous { first: channel, second }));
        }
        let expires = release.statement().expires;
        if expires <= self.now.max(decision.memory.time) {
            return Err(Obstacle::Refused(file, ReleaseRefusal::Expired(expires)));
        }
        decision.release = Some(release);
        Ok(())
    }

    /// The fleet as far as the lists of the source lead, which is not less far than they led before.
    fn fleet<E>(
        &self,
        memory: &mut FleetMemory,
        fetch: &mut impl FnMut(&SourceFile) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Fleet, Obstacle<E>> {
        let mut fleet = read(SourceFile::Root, fetch, |bytes| Fleet::of_root(bytes, self.root))?;
        loop {
            let (number, digest, _) = fleet.in_force();
            let file = SourceFile::Signers(number + 1);
            let found = Numbered { number, digest: digest.clone() };
            if let Some(known) = memory.signers.as_ref().filter(|known| known.number == number && **known != found) {
                return Err(Obstacle::Refused(SourceFile::Signers(number), ReleaseRefusal::Forked(known.number)));
            }
            let floor = memory.signers.as_ref().map_or(0, |known| known.number);
            if number >= floor {
                memory.signers = Some(found);
                memory.time = memory.time.max(fleet.time());
            }
            let Some(bytes) = fetch(&file).map_err(Obstacle::Unreachable)? else {
                let older = || Obstacle::Refused(file, ReleaseRefusal::Older { found: number, floor });
                return if number < floor { Err(older()) } else { Ok(fleet) };
            };
            fleet.follow(&bytes).map_err(|refusal| Obstacle::Refused(file, refusal))?;
        }
    }

    /// Checks that the keys of the roster are those of this machine, unless they were not made by one: a copy of a machine has others.
    fn is_machine(&self, machine: &RosterMachine) -> Result<(), ReleaseRefusal> {
        let (Some(keys), Some(sealing)) = (self.keys, &machine.sealing) else { return Ok(()) };
        let is_own = (&machine.key, sealing) == (keys.key(), keys.sealing());
        if is_own { Ok(()) } else { Err(ReleaseRefusal::OtherMachine(machine.key.fingerprint())) }
    }

    /// The secrets of a release that was decided on; `None` if it has none.
    pub fn secrets<E>(
        &self,
        release: &Signed<Release>,
        fetch: impl FnOnce(&SourceFile) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Option<ReleaseSecrets>, Obstacle<E>> {
        let Release { link, channel, sealed, .. } = release.statement();
        let Some(sealed) = sealed else { return Ok(None) };
        let not_in_roster = || ReleaseRefusal::NotInRoster(self.machine.to_owned());
        let machine =
            MachineName::parse(self.machine).map_err(|_| Obstacle::Refused(SourceFile::Roster, not_in_roster()))?;
        let file = SourceFile::Envelope(channel.clone(), link.number, machine.clone());
        let bytes = fetch(&file).map_err(Obstacle::Unreachable)?;
        let (Some(bytes), Some(keys)) = (bytes, self.keys) else { return Err(Obstacle::NotSealed(file)) };
        let address = EnvelopeAddress::new(release, machine, keys.sealing().clone());
        let opened = Envelope::parse(&bytes).map_err(ReleaseRefusal::from);
        let opened = opened.and_then(|envelope| envelope.open(keys, &address, sealed));
        opened.map(Some).map_err(|refusal| Obstacle::Refused(file, refusal))
    }

    /// Returns whether a release is for the machine: by the labels that operators signed, and by its own facts, which select none
    /// that has secrets.
    fn is_selected(&self, machine: &RosterMachine, release: &Signed<Release>) -> bool {
        let Release { selector, sealed, .. } = release.statement();
        let mut facts = BTreeMap::new();
        selector.labels(&mut |name| {
            if let Some(value) =
                machine.labels.get(name).cloned().or_else(|| sealed.is_none().then(|| (self.fact)(name))?)
            {
                facts.insert(name.to_owned(), value);
            }
        });
        selector.selects(&|name| facts.get(name).map(String::as_str))
    }
}

/// The newest release of a channel whoever it is for, and why the one behind it is refused.
#[expect(clippy::type_complexity, reason = "two values of one walk")]
fn channel_end<E>(
    fleet: &Fleet,
    channel: &Name,
    floors: &BTreeMap<Name, Numbered>,
    memory: &mut FleetMemory,
    fetch: &mut impl FnMut(&SourceFile) -> Result<Option<Vec<u8>>, E>,
) -> Result<(Option<Signed<Release>>, Option<Obstacle<E>>), Obstacle<E>> {
    let of_roster = floors.get(channel);
    let known = memory.channels.get(channel).or(of_roster).cloned();
    let release = known.unwrap_or_else(|| Floor::first(fleet).release);
    let mut walk = Walk::new(fleet, channel, Floor { release, time: memory.time });
    let at = |number: u64| SourceFile::Release(channel.clone(), number);
    let floor = walk.next() - 1;
    if floor > 0 {
        read(at(floor), fetch, |bytes| walk.again(bytes))?;
    }
    let mut stopped = None;
    loop {
        let here = &walk.floor().release;
        if of_roster.is_some_and(|stated| stated.number == here.number && stated != here) {
            return Err(Obstacle::Refused(at(here.number), ReleaseRefusal::Forked(here.number)));
        }
        memory.channels.insert(channel.clone(), here.clone());
        memory.time = memory.time.max(walk.floor().time);
        let file = at(walk.next());
        let Some(bytes) = fetch(&file).map_err(Obstacle::Unreachable)? else { break };
        match walk.step(&bytes) {
            Ok(()) => {}
            // Two of one number: nothing of the source is taken.
            Err(forked @ ReleaseRefusal::Forked(_)) => return Err(Obstacle::Refused(file, forked)),
            // It is as if the source did not have it yet.
            Err(refusal) => {
                stopped = Some(Obstacle::Refused(file, refusal));
                break;
            }
        }
    }
    let (found, least) = (walk.floor().release.number, of_roster.map_or(0, |stated| stated.number));
    if found < least {
        let older = ReleaseRefusal::Older { found, floor: least };
        return stopped.map_or(Err(Obstacle::Refused(at(found + 1), older)), Err);
    }
    match walk.last() {
        Ok(newest) => Ok((newest.cloned(), stopped)),
        Err(refusal) => Err(stopped.unwrap_or_else(|| Obstacle::Refused(at(found + 1), refusal))),
    }
}

/// Reads a file that every source has.
fn read<T, E>(
    file: SourceFile,
    fetch: &mut impl FnMut(&SourceFile) -> Result<Option<Vec<u8>>, E>,
    check: impl FnOnce(&[u8]) -> Result<T, ReleaseRefusal>,
) -> Result<T, Obstacle<E>> {
    match fetch(&file).map_err(Obstacle::Unreachable)? {
        None => Err(Obstacle::Missing(file)),
        Some(bytes) => check(&bytes).map_err(|refusal| Obstacle::Refused(file, refusal)),
    }
}
