//! From the newest release that a machine has seen to the newest that there is.

use jiff::Timestamp;

use crate::fleet::Fleet;
use crate::name::Name;
use crate::refusal::ReleaseRefusal;
use crate::signed::Signed;
use crate::statements::{Numbered, Release};

/// The memory of a machine about a channel.
///
/// Invariant: it only grows, whatever sources and clocks say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Floor {
    /// The newest release that was seen.
    pub release: Numbered,
    /// The newest time that signers stated. Earlier than this it is not, whatever a clock says.
    pub time: Timestamp,
}

impl Floor {
    /// The floor of a machine that has seen nothing of a channel.
    pub fn first(fleet: &Fleet) -> Self {
        let release = Numbered { number: 0, digest: fleet.root().clone() };
        Self { release, time: Timestamp::UNIX_EPOCH }
    }
}

/// The releases of a channel, checked one after the other from a floor on.
///
/// Whoever was away for long reads each release on the way, and the content of the last alone: who signed what is checked for all
/// of them.
pub struct Walk<'f> {
    fleet: &'f Fleet,
    channel: &'f Name,
    floor: Floor,
    newest: Option<Signed<Release>>,
}

impl<'f> Walk<'f> {
    /// Begins behind a floor.
    pub fn new(fleet: &'f Fleet, channel: &'f Name, floor: Floor) -> Self {
        Self { fleet, channel, floor, newest: None }
    }

    /// The number of the release that comes next.
    pub fn next(&self) -> u64 {
        self.floor.release.number + 1
    }

    /// A release that the signers of its place have signed: nothing is said of the place of what nobody signed.
    fn signed(&self, bytes: &[u8]) -> Result<Signed<Release>, ReleaseRefusal> {
        let signed = Signed::<Release>::parse(bytes)?;
        let Release { link, channel, .. } = signed.statement();
        self.fleet.is_ours(link)?;
        if channel != self.channel {
            return Err(ReleaseRefusal::Channel(channel.clone()));
        }
        self.fleet.allows(channel, link, &signed)?;
        Ok(signed)
    }

    /// Takes the next release. If it is refused, the walk is where it was.
    pub fn step(&mut self, bytes: &[u8]) -> Result<(), ReleaseRefusal> {
        let signed = self.signed(bytes)?;
        let link = &signed.statement().link;
        let Numbered { number, digest } = &self.floor.release;
        if link.number == *number && signed.digest() != *digest {
            return Err(ReleaseRefusal::Forked(*number));
        }
        if link.number <= *number {
            return Err(ReleaseRefusal::Older { found: link.number, floor: *number });
        }
        if link.number != number + 1 || link.parent != *digest {
            return Err(ReleaseRefusal::Parent(link.number));
        }
        let release = Numbered { number: link.number, digest: signed.digest() };
        self.fleet.agrees(self.channel, &release)?;
        self.floor = Floor { release, time: self.floor.time.max(link.made) };
        self.newest = Some(signed);
        Ok(())
    }

    /// Takes the release at the floor again, whose content nobody has kept. The walk is where it was.
    pub fn again(&mut self, bytes: &[u8]) -> Result<(), ReleaseRefusal> {
        let signed = self.signed(bytes)?;
        let Numbered { number, digest } = &self.floor.release;
        if signed.digest() != *digest {
            return Err(ReleaseRefusal::Forked(*number));
        }
        self.fleet.agrees(self.channel, &self.floor.release)?;
        self.floor.time = self.floor.time.max(signed.statement().link.made);
        self.newest = Some(signed);
        Ok(())
    }

    /// The floor after the steps that were taken.
    pub fn floor(&self) -> &Floor {
        &self.floor
    }

    /// The last release, whoever it is for; `None` if none was read.
    ///
    /// A walk that ended in front of what the lists of signers agreed on is refused as older.
    pub fn last(&self) -> Result<Option<&Signed<Release>>, ReleaseRefusal> {
        let (found, floor) = (self.floor.release.number, self.fleet.agreed(self.channel));
        if found < floor { Err(ReleaseRefusal::Older { found, floor }) } else { Ok(self.newest.as_ref()) }
    }

    /// The last release, if it is to be staged by a machine: `None` if none was read. `label` gives the labels of the machine, `now`
    /// is the time by its clock.
    pub fn newest<'l>(
        &self,
        label: &impl Fn(&str) -> Option<&'l str>,
        now: Timestamp,
    ) -> Result<Option<&Signed<Release>>, ReleaseRefusal> {
        let Some(signed) = self.last()? else { return Ok(None) };
        let Release { selector, expires, .. } = signed.statement();
        if *expires <= now.max(self.floor.time) {
            return Err(ReleaseRefusal::Expired(*expires));
        }
        if selector.selects(label) { Ok(Some(signed)) } else { Err(ReleaseRefusal::NotSelected(selector.to_string())) }
    }
}
