//! `release roster`: the machines of a fleet.

use std::collections::BTreeMap;
use std::time::Duration;

use stead_hosts::MachineName;
use stead_release::{Digest, Numbered, PublicIdentity, Roster, RosterHold, RosterMachine, are_labels};

use super::source::{self, Source, Unusable};
use super::{Failed, finish, link, now, wrong};
use crate::input;
use crate::request::{Draft, KeysOfMachine, RosterChange};

type Machines = BTreeMap<MachineName, RosterMachine>;

fn member(keys: &KeysOfMachine, labels: BTreeMap<String, String>) -> Result<RosterMachine, Failed> {
    let path = match keys {
        KeysOfMachine::Key(key) => return Ok(RosterMachine { key: key.clone(), sealing: None, labels, hold: None }),
        KeysOfMachine::Identity(path) => path,
    };
    let bytes = source::read(path).map_err(Unusable::from)?;
    let refused = |refusal| Failed::Source(Unusable::Refused { path: input::shown(path).into(), refusal });
    let PublicIdentity { key, sealing } = PublicIdentity::read(&bytes).map_err(refused)?;
    Ok(RosterMachine { key, sealing: Some(sealing), labels, hold: None })
}

fn add(machines: &mut Machines, name: &MachineName, member: RosterMachine) -> Result<(), Failed> {
    if !are_labels(&member.labels) {
        return Err(wrong(
            "a label is not one that filters can name",
            "labels are words, and their values have one line",
        ));
    }
    let shares =
        |known: &RosterMachine| known.key == member.key || (known.sealing.is_some() && known.sealing == member.sealing);
    if let Some((other, _)) = machines.iter().find(|(other, known)| *other != name && shares(known)) {
        return Err(wrong(format!("'{other}' has that key"), "each machine makes a key of its own"));
    }
    let hold = machines.get(name).and_then(|known| known.hold.clone());
    machines.insert(name.clone(), RosterMachine { hold, ..member });
    Ok(())
}

fn unknown(name: &MachineName) -> Failed {
    Failed::Wrong(format!("there is no machine '{name}' in the roster"), None)
}

fn hold(lasts: Duration, why: &str) -> Result<RosterHold, Failed> {
    let until = now().checked_add(lasts).ok();
    until
        .and_then(|until| RosterHold::new(until, why.to_owned()))
        .ok_or_else(|| wrong("the reason is not one line of up to 1,000 bytes", "say why in a few words"))
}

fn change(machines: &mut Machines, name: &MachineName, change: &RosterChange) -> Result<(), Failed> {
    let hold = match change {
        RosterChange::Add { keys, labels } => return add(machines, name, member(keys, labels.clone())?),
        RosterChange::Remove => return machines.remove(name).map(drop).ok_or_else(|| unknown(name)),
        RosterChange::Hold { lasts, why } => Some(hold(*lasts, why)?),
        RosterChange::Unhold => None,
    };
    machines.get_mut(name).ok_or_else(|| unknown(name))?.hold = hold;
    Ok(())
}

/// Makes the next roster of a source, in which a machine is changed.
pub(super) fn next_roster(
    name: &MachineName,
    changed: &RosterChange,
    acts: Option<&Digest>,
    draft: &Draft,
) -> Result<(), Failed> {
    let source = Source::open(&draft.fleet)?;
    let former = source.roster_to_change()?;
    let first = || Numbered { number: 0, digest: source.fleet.root().clone() };
    let number = former
        .as_ref()
        .map_or_else(first, |former| Numbered { number: former.statement().link.number, digest: former.digest() });
    let mut machines = former.map(|former| former.statement().machines.clone()).unwrap_or_default();
    change(&mut machines, name, changed)?;
    let mut floors = BTreeMap::new();
    for channel in source.channels()? {
        let release = source.walk(&channel, None)?.floor().release.clone();
        floors.insert(channel, release);
    }
    let new = Roster { link: link(&source, number), acts: acts.cloned(), machines, floors };
    finish(new, draft, &source.roster_path(), &source)
}
