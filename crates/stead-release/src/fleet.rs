//! Whom a machine trusts: the root that it was given, and the lists of signers that lead from there to today's.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::name::{Digest, Name};
use crate::refusal::ReleaseRefusal;
use crate::signed::{Signable, Signed};
use crate::statements::{ChainLink, Numbered, Root, Roster, Signers, Succession};

/// A fleet as far as its statements are known.
///
/// Invariants: each list of signers is signed by the one before it, and the first is that of the root.
#[derive(Clone, Debug)]
pub struct Fleet {
    name: Name,
    root: Digest,
    /// The lists that signed before, from that of the root on.
    former: Vec<Ended>,
    in_force: List,
    /// The newest time that a list states.
    time: Timestamp,
}

#[derive(Clone, Debug)]
struct List {
    digest: Digest,
    number: u64,
    signers: Signers,
}

/// A list that another one took over from.
#[derive(Clone, Debug)]
struct Ended {
    list: List,
    /// The last releases that it and those before it sign, by channel.
    last: BTreeMap<Name, Numbered>,
    /// The last roster that they sign.
    roster: Option<Numbered>,
}

impl Fleet {
    /// The fleet that a root statement begins. `wanted` is the digest that the machine was given.
    pub fn of_root(bytes: &[u8], wanted: &Digest) -> Result<Self, ReleaseRefusal> {
        let root = Signed::<Root>::parse(bytes)?;
        let digest = root.digest();
        if digest != *wanted {
            return Err(ReleaseRefusal::Root(digest));
        }
        let Root { name, signers } = root.statement().clone();
        let in_force = List { digest: digest.clone(), number: 0, signers };
        Ok(Self { name, root: digest, former: Vec::new(), in_force, time: Timestamp::UNIX_EPOCH })
    }

    /// Its name among operators.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The digest of its root statement.
    pub fn root(&self) -> &Digest {
        &self.root
    }

    /// The list of signers in force: its number (0 for that of the root), its digest, and who signs.
    pub fn in_force(&self) -> (u64, &Digest, &Signers) {
        let List { number, digest, signers } = &self.in_force;
        (*number, digest, signers)
    }

    /// The newest time that its lists state.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// The channels that its lists name.
    pub(crate) fn channels(&self) -> impl Iterator<Item = &Name> {
        self.former.iter().flat_map(|former| former.last.keys())
    }

    /// Takes the next list of signers, which the one in force must have signed.
    pub fn follow(&mut self, bytes: &[u8]) -> Result<(), ReleaseRefusal> {
        let signed = Signed::<Succession>::parse(bytes)?;
        let Succession { link, last, roster, signers } = signed.statement();
        self.is_ours(link)?;
        // Nothing is said of the place of what nobody signed.
        self.has_signed(self.list(&link.signers)?, &signed)?;
        let former = &self.in_force;
        if link.number <= former.number {
            let known = self.lists().any(|list| list.number == link.number && list.digest == signed.digest());
            let older = ReleaseRefusal::Older { found: link.number, floor: former.number };
            return Err(if known { older } else { ReleaseRefusal::Forked(link.number) });
        }
        if link.number != former.number + 1 || link.parent != former.digest {
            return Err(ReleaseRefusal::Parent(link.number));
        }
        self.time = self.time.max(link.made);
        let next = List { digest: signed.digest(), number: link.number, signers: signers.clone() };
        let list = std::mem::replace(&mut self.in_force, next);
        self.former.push(Ended { list, last: last.clone(), roster: roster.clone() });
        Ok(())
    }

    /// Returns a roster that the list in force has signed, and that is not older than the one known before.
    pub fn roster(&self, bytes: &[u8], known: Option<&Numbered>) -> Result<Signed<Roster>, ReleaseRefusal> {
        let signed = self.roster_of_its_time(bytes)?;
        self.is_newest(&signed.statement().link, &signed.digest(), known)?;
        Ok(signed)
    }

    /// Checks that a roster, which its list has signed, is of the list in force and not older than the one known before.
    pub(crate) fn is_newest(
        &self,
        link: &ChainLink,
        digest: &Digest,
        known: Option<&Numbered>,
    ) -> Result<(), ReleaseRefusal> {
        if let Some(known) = known {
            match link.number.cmp(&known.number) {
                std::cmp::Ordering::Less => {
                    return Err(ReleaseRefusal::Older { found: link.number, floor: known.number });
                }
                std::cmp::Ordering::Equal if *digest != known.digest => {
                    return Err(ReleaseRefusal::Forked(link.number));
                }
                _ => {}
            }
        }
        if self.former.iter().any(|former| former.list.digest == link.signers) {
            return Err(retired(&link.signers));
        }
        Ok(())
    }

    /// Returns whether a statement is of this fleet, and of a list of signers that it had.
    pub(crate) fn knows(&self, link: &ChainLink) -> bool {
        self.is_ours(link).is_ok() && self.list(&link.signers).is_ok()
    }

    /// Returns the roster that the next one is made of: one that the list in force has signed, or the last one of the lists before.
    /// What retired signers signed behind that does not count.
    pub fn roster_to_change(&self, bytes: &[u8]) -> Result<Signed<Roster>, ReleaseRefusal> {
        let signed = self.roster_of_its_time(bytes)?;
        let ChainLink { signers, number, .. } = &signed.statement().link;
        let found = Numbered { number: *number, digest: signed.digest() };
        let is_last = self.former.last().is_some_and(|former| former.roster.as_ref() == Some(&found));
        if *signers == self.in_force.digest || is_last { Ok(signed) } else { Err(retired(signers)) }
    }

    /// Returns a roster that the list in force has signed, or a former one that does not sign any more.
    pub(crate) fn roster_of_its_time(&self, bytes: &[u8]) -> Result<Signed<Roster>, ReleaseRefusal> {
        let signed = Signed::<Roster>::parse(bytes)?;
        let link = &signed.statement().link;
        self.is_ours(link)?;
        self.has_signed(self.list(&link.signers)?, &signed)?;
        Ok(signed)
    }

    /// Checks that the lists let a statement stand at its place in a channel, and have signed it.
    pub(crate) fn allows<S: Signable>(
        &self,
        channel: &Name,
        link: &ChainLink,
        signed: &Signed<S>,
    ) -> Result<(), ReleaseRefusal> {
        let list = self.list(&link.signers)?;
        let ended = self.former.iter().find(|former| former.list.digest == link.signers);
        if ended.is_some_and(|ended| ended.last.get(channel).is_none_or(|last| last.number < link.number)) {
            return Err(retired(&link.signers));
        }
        self.has_signed(list, signed)
    }

    /// Checks a release against the history of its channel, on which the lists agreed when one took over from the other.
    pub(crate) fn agrees(&self, channel: &Name, release: &Numbered) -> Result<(), ReleaseRefusal> {
        let mut agreed = self.former.iter().filter_map(|former| former.last.get(channel));
        let is_other = agreed.any(|last| last.number == release.number && last.digest != release.digest);
        if is_other { Err(ReleaseRefusal::Forked(release.number)) } else { Ok(()) }
    }

    /// The number of the newest release of a channel that the lists agreed on: whoever is shown less of the channel is not shown all,
    /// and former signers could have made up what they are shown.
    pub(crate) fn agreed(&self, channel: &Name) -> u64 {
        let last = self.former.iter().filter_map(|former| former.last.get(channel));
        last.map(|last| last.number).max().unwrap_or_default()
    }

    pub(crate) fn is_ours(&self, link: &ChainLink) -> Result<(), ReleaseRefusal> {
        if link.fleet == self.root { Ok(()) } else { Err(ReleaseRefusal::Fleet(link.fleet.clone())) }
    }

    fn list(&self, digest: &Digest) -> Result<&List, ReleaseRefusal> {
        self.lists().find(|list| list.digest == *digest).ok_or_else(|| ReleaseRefusal::Signers(digest.clone()))
    }

    fn lists(&self) -> impl Iterator<Item = &List> {
        self.former.iter().map(|former| &former.list).chain([&self.in_force])
    }

    /// Checks that as many different signers of a list as it asks for signed a statement, and nobody else.
    fn has_signed<S: Signable>(&self, list: &List, signed: &Signed<S>) -> Result<(), ReleaseRefusal> {
        let mut keys = BTreeSet::new();
        for signature in signed.signatures() {
            let key = signature.key();
            let named = || key.fingerprint();
            if signature.namespace() != S::PURPOSE {
                return Err(ReleaseRefusal::Purpose(named()));
            }
            if !list.signers.keys().contains(key) {
                let was = self.lists().any(|other| other.signers.keys().contains(key));
                let refusal = if was { ReleaseRefusal::Retired } else { ReleaseRefusal::Stranger };
                return Err(refusal(if was { format!("the key {}", named()) } else { named() }));
            }
            if !signature.is_of(signed.bytes()) {
                return Err(ReleaseRefusal::Altered(named()));
            }
            if !keys.insert(key) {
                return Err(ReleaseRefusal::Twice(named()));
            }
        }
        let (have, wanted) = (keys.len(), list.signers.threshold());
        if have < wanted { Err(ReleaseRefusal::Unsigned { have, wanted }) } else { Ok(()) }
    }
}

fn retired(list: &Digest) -> ReleaseRefusal {
    ReleaseRefusal::Retired(format!("its list of signers {list}"))
}
