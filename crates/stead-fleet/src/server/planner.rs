//! What is looked at again whenever something changed, and every two seconds: machines, what operators signed, and which release each
//! machine should come to. It decides from what is, so a hint that is lost costs two seconds. Less often it looks at what machines
//! say of themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use stead_hosts::MachineName;
use stead_release::{Name, Release, Roster, RosterMachine, Selector, Signed};

use super::Controller;
use super::listener::Listener;
use super::machines::Machine;
use crate::new_token;
use crate::store::{
    Chain, Changes, FleetStore, FleetStoreError, Grant, LastHeard, MachineId, MachineRow, Pointers, Standing,
    StoreWrite, Written,
};

/// How long it is until it looks again without a hint.
const TURN: Duration = Duration::from_secs(2);
/// How often it looks at most at what machines say, in milliseconds.
const LISTENING: u64 = 500;
/// The lease of the one that points machines to releases, and for how long it holds, in milliseconds.
const LEASE: &str = "planner";
const LEASE_LENGTH: u64 = 10_000;

/// How much is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// Only the channels and machines that changed.
    AtChanges,
    /// All machines, also those that were held until now or could not be pointed.
    AtAll,
}

/// The channels and machines that must be decided anew.
#[derive(Default)]
struct Due {
    machines: Vec<Arc<Machine>>,
    channels: BTreeSet<Name>,
    /// Machines may belong to other channels than before.
    is_grouped_anew: bool,
}

/// What looks.
pub struct Planner {
    store: FleetStore,
    revision: u64,
    heads: BTreeMap<Chain, u64>,
    heard: BTreeMap<MachineId, LastHeard>,
    roster: BTreeMap<MachineName, Arc<RosterMachine>>,
    /// The newest release of each channel, and which machines it is for.
    newest: BTreeMap<Name, (u64, Selector)>,
    /// The machines of each channel: those that no other one matches.
    members: BTreeMap<Name, BTreeMap<MachineId, Arc<Machine>>>,
    /// The lease, and when it was taken.
    lease: Option<(Grant, u64)>,
    /// Its name among controllers.
    owner: String,
    listener: Listener,
    /// When it looks again at what machines say, in milliseconds.
    listens: u64,
}

impl Planner {
    pub(super) fn new(store: FleetStore, heard: BTreeMap<MachineId, LastHeard>) -> Self {
        Self {
            store,
            revision: 0,
            heads: BTreeMap::new(),
            heard,
            roster: BTreeMap::new(),
            newest: BTreeMap::new(),
            members: BTreeMap::new(),
            lease: None,
            owner: new_token().expose().clone(),
            listener: Listener::default(),
            listens: 0,
        }
    }

    /// Looks until the controller ends.
    pub(super) fn run(mut self, controller: &Weak<Controller>, woken: &Receiver<()>) {
        let mut last = Instant::now();
        loop {
            match woken.recv_timeout(TURN.saturating_sub(last.elapsed())) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // One look is enough for all hints so far.
            while woken.try_recv().is_ok() {}
            let Some(controller) = controller.upgrade() else { return };
            let look = if last.elapsed() < TURN { Look::AtChanges } else { Look::AtAll };
            if look == Look::AtAll {
                last = Instant::now();
            }
            if self.look(&controller, look).is_err() {
                // A store that is away is asked again; machines are answered by what is known.
                let _ = self.reopen();
            }
        }
    }

    /// Takes in what changed, and points machines to releases.
    pub fn look(&mut self, controller: &Controller, look: Look) -> Result<(), FleetStoreError> {
        let mut changes = self.store.changes(self.revision)?;
        let known = controller.epoch.swap(changes.epoch, Ordering::Relaxed);
        if known != changes.epoch && known > 0 {
            changes = self.begin_anew(controller)?;
        }
        controller.hear_time(self.store.now()?);
        let mut due = self.statements(controller, &changes)?;
        due.machines = self.machines(controller, changes.machines);
        self.revision = changes.revision;
        if self.listens <= controller.now() {
            self.listener.listen(&mut self.store, controller)?;
            self.listens = controller.now() + LISTENING;
        }
        controller.looked.notify_waiters();
        if due.is_grouped_anew {
            self.members.clear();
            due.machines = controller.each_machine(|machine| Some(Arc::clone(machine)));
        }
        for machine in due.machines {
            let channel = self.channel_of(&machine.row()).cloned();
            if let Some(channel) = channel {
                due.channels.insert(channel.clone());
                self.members.entry(channel).or_default().insert(machine.id(), machine);
            }
        }
        if look == Look::AtAll {
            due.channels.extend(self.members.keys().cloned());
        }
        for channel in due.channels {
            self.plan(controller, &channel);
        }
        Ok(())
    }

    /// Connects to the store anew.
    pub fn reopen(&mut self) -> Result<(), FleetStoreError> {
        self.store.reopen()
    }

    /// Another history has other revisions, statements and machines: nothing of the former one is known any more.
    fn begin_anew(&mut self, controller: &Controller) -> Result<Changes, FleetStoreError> {
        let changes = self.store.changes(0)?;
        self.heads.clear();
        self.newest.clear();
        self.members.clear();
        (self.roster, self.lease, self.listener) = (BTreeMap::new(), None, Listener::default());
        *controller.root.write().unwrap_or_else(PoisonError::into_inner) = None;
        controller.channels.write().unwrap_or_else(PoisonError::into_inner).clear();
        controller.newest.write().unwrap_or_else(PoisonError::into_inner).clear();
        controller.signers.store(0, Ordering::Relaxed);
        controller.roster.store(0, Ordering::Relaxed);
        let there: BTreeMap<_, _> = changes.machines.iter().map(|row| (&row.name, row.id)).collect();
        let mut machines = controller.machines.write().unwrap_or_else(PoisonError::into_inner);
        machines.retain(|name, machine| there.get(name) == Some(&machine.id()));
        drop(machines);
        Ok(changes)
    }

    /// Takes machines in, and returns those that are new, or held or admitted otherwise than before.
    fn machines(&mut self, controller: &Controller, rows: Vec<MachineRow>) -> Vec<Arc<Machine>> {
        let (mut due, mut new) = (Vec::new(), Vec::new());
        let machines = controller.machines.read().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            match machines.get(&row.name) {
                Some(known) if known.id() == row.id => {
                    let former =
                        std::mem::replace(&mut *known.row.write().unwrap_or_else(PoisonError::into_inner), row);
                    known.changed.notify_waiters();
                    let row = known.row();
                    if (former.standing, &former.held) != (row.standing, &row.held) {
                        due.push(Arc::clone(known));
                    }
                }
                // A retired machine leaves its name to another one, which may have it already.
                Some(_) if row.standing == Standing::Retired => {}
                _ => {
                    let heard = self.heard.remove(&row.id);
                    let signed = member(&self.roster, &row);
                    let machine = Machine::new(row, heard);
                    machine.sign(signed);
                    new.push(Arc::new(machine));
                }
            }
        }
        drop(machines);
        if !new.is_empty() {
            let mut machines = controller.machines.write().unwrap_or_else(PoisonError::into_inner);
            machines.extend(new.iter().map(|machine| (machine.row().name.clone(), Arc::clone(machine))));
        }
        due.append(&mut new);
        due
    }

    /// Takes in what operators signed.
    fn statements(&mut self, controller: &Controller, changes: &Changes) -> Result<Due, FleetStoreError> {
        let mut due = Due::default();
        for (chain, (number, digest)) in &changes.heads {
            if self.heads.get(chain) == Some(number) {
                continue;
            }
            let Some(last) = self.store.statements(chain, number - 1, 1)?.pop() else { continue };
            match chain {
                Chain::Root => {
                    *controller.root.write().unwrap_or_else(PoisonError::into_inner) = Some(digest.clone());
                }
                Chain::Signers => controller.signers.store(*number, Ordering::Relaxed),
                Chain::Roster => {
                    controller.roster.store(*number, Ordering::Relaxed);
                    if let Ok(signed) = Signed::<Roster>::parse(&last.body) {
                        let Roster { machines, floors, .. } = signed.statement();
                        let machines = machines.iter().map(|(name, machine)| (name.clone(), Arc::new(machine.clone())));
                        self.roster = machines.collect();
                        let channels = floors.keys().cloned().collect();
                        *controller.channels.write().unwrap_or_else(PoisonError::into_inner) = channels;
                        due.is_grouped_anew = true;
                        let roster = &self.roster;
                        controller.for_each_machine(|machine| machine.sign(member(roster, &machine.row())));
                    }
                }
                Chain::Channel(name) => {
                    // It was checked when it was published, and each machine checks it.
                    if let Ok(signed) = Signed::<Release>::parse(&last.body) {
                        let selector = signed.statement().selector.clone();
                        due.is_grouped_anew |= self.newest.get(name).is_none_or(|(_, former)| *former != selector);
                        due.channels.insert(name.clone());
                        self.newest.insert(name.clone(), (*number, selector));
                        let newest = self.newest.iter().map(|(name, (number, _))| (name.clone(), *number)).collect();
                        *controller.newest.write().unwrap_or_else(PoisonError::into_inner) = newest;
                    }
                }
            }
            self.heads.insert(chain.clone(), *number);
            let everyone = matches!(chain, Chain::Signers | Chain::Roster);
            if everyone {
                let machines = controller.machines.read().unwrap_or_else(PoisonError::into_inner);
                machines.values().for_each(|machine| machine.changed.notify_waiters());
            }
        }
        Ok(due)
    }

    /// Points the machines of a channel to its newest release.
    fn plan(&mut self, controller: &Controller, channel: &Name) {
        let Some(number) = self.newest.get(channel).map(|(number, _)| *number) else { return };
        let now = controller.now();
        let is_due = |machine: &Machine| {
            let row = machine.row();
            let is_held = machine.held(now).is_some();
            let is_there = row.desired.as_ref().is_some_and(|(at, from)| at == channel && *from >= number);
            // A copy must not be given what the other one is: nobody knows which of them is meant.
            row.standing == Standing::Admitted && !is_held && !is_there && !machine.is_forked()
        };
        let members = self.members.get(channel).into_iter().flatten();
        let machines: Vec<_> = members.filter(|(_, machine)| is_due(machine)).map(|(id, _)| *id).collect();
        if machines.is_empty() {
            return;
        }
        let Some(lease) = self.lease(controller) else { return };
        let roster = self.heads.get(&Chain::Roster).copied().unwrap_or_default();
        let pointers = Pointers { lease, roster, channel: channel.clone(), number, machines };
        // Refused, it is decided anew by what is then.
        if !matches!(controller.written(vec![StoreWrite::Point(pointers)]), Some(Ok(_))) {
            self.lease = None;
        }
    }

    /// The one channel that matches a machine.
    fn channel_of(&self, row: &MachineRow) -> Option<&Name> {
        let member = self.roster.get(&row.name).filter(|member| member.key == row.key)?;
        let label = |name: &str| member.labels.get(name).map(String::as_str);
        let mut matching = self.newest.iter().filter(|(_, (_, selector))| match selector {
            Selector::All => true,
            Selector::Where(filter) => filter.matches(&label),
        });
        // Two channels for one machine are a mistake of operators: it stays as it is.
        matching.next().filter(|_| matching.next().is_none()).map(|(channel, _)| channel)
    }

    /// The lease of the one that points machines. One that was taken lately is not taken again: whoever lost it is refused.
    fn lease(&mut self, controller: &Controller) -> Option<Grant> {
        let now = controller.now();
        if let Some((lease, taken)) = &self.lease
            && (*taken..taken + LEASE_LENGTH / 2).contains(&now)
        {
            return Some(lease.clone());
        }
        let lease = StoreWrite::Lease { name: LEASE, owner: self.owner.clone(), length: LEASE_LENGTH };
        let granted = match controller.written(vec![lease])?.ok()?.pop()? {
            Written::Lease(granted) => granted.ok(),
            _ => None,
        };
        self.lease = granted.clone().map(|lease| (lease, now));
        granted
    }
}

/// What a roster has for a machine with its key.
fn member(roster: &BTreeMap<MachineName, Arc<RosterMachine>>, row: &MachineRow) -> Option<Arc<RosterMachine>> {
    roster.get(&row.name).filter(|member| member.key == row.key).cloned()
}
