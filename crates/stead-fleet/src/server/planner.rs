//! What is looked at again whenever something changed, and every two seconds: machines, what operators signed, and which release each
//! machine should come to. It decides from what is, so a hint that is lost costs two seconds.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use stead_hosts::MachineName;
use stead_release::{Name, Release, Roster, RosterMachine, Selector, Signed};

use super::Controller;
use super::machines::Machine;
use crate::new_token;
use crate::store::{
    Chain, Changes, FleetStore, FleetStoreError, Grant, LastHeard, MachineId, MachineRow, Pointers, Standing,
    StoreWrite, UnitOutcome, Written,
};

/// How long it is until it looks again without a hint.
const TURN: Duration = Duration::from_secs(2);
/// The lease of the one that points machines to releases, and for how long it holds, in milliseconds.
const LEASE: &str = "planner";
const LEASE_LENGTH: u64 = 10_000;

/// The thread that looks.
pub(super) struct Planner {
    store: FleetStore,
    revision: u64,
    heads: BTreeMap<Chain, u64>,
    heard: BTreeMap<MachineId, LastHeard>,
    roster: BTreeMap<MachineName, RosterMachine>,
    /// The newest release of each channel, and which machines it is for.
    newest: BTreeMap<Name, (u64, Selector)>,
    /// Its name among controllers.
    owner: String,
}

impl Planner {
    pub(super) fn new(store: FleetStore, heard: BTreeMap<MachineId, LastHeard>) -> Self {
        let (heads, roster, newest) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { store, revision: 0, heads, heard, roster, newest, owner: new_token().expose().clone() }
    }

    /// Looks until the controller ends.
    pub(super) fn run(mut self, controller: &Weak<Controller>, woken: &Receiver<()>) {
        loop {
            match woken.recv_timeout(TURN) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // One look is enough for all hints so far.
            while woken.try_recv().is_ok() {}
            let Some(controller) = controller.upgrade() else { return };
            // A store that is away is asked again; machines are answered by what is known.
            let _ = self.look(&controller);
        }
    }

    /// Takes in what changed, and points machines to releases.
    pub(super) fn look(&mut self, controller: &Controller) -> Result<(), FleetStoreError> {
        let changes = self.store.changes(self.revision)?;
        controller.epoch.store(changes.epoch, Ordering::Relaxed);
        self.statements(controller, &changes)?;
        let revision = changes.revision;
        self.machines(controller, changes.machines);
        self.revision = revision;
        controller.looked.notify_waiters();
        self.plan(controller);
        Ok(())
    }

    fn machines(&mut self, controller: &Controller, rows: Vec<MachineRow>) {
        if rows.is_empty() {
            return;
        }
        let mut machines = controller.machines.write().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            // A retired machine leaves its name to another one, which may have it already.
            let known =
                machines.get(&row.name).filter(|known| known.id() == row.id || row.standing == Standing::Retired);
            match known {
                Some(known) if known.id() == row.id => {
                    *known.row.write().unwrap_or_else(PoisonError::into_inner) = row;
                    known.changed.notify_waiters();
                }
                Some(_) => {}
                None => {
                    let heard = self.heard.remove(&row.id);
                    machines.insert(row.name.clone(), Arc::new(Machine::new(row, heard)));
                }
            }
        }
    }

    fn statements(&mut self, controller: &Controller, changes: &Changes) -> Result<(), FleetStoreError> {
        for (chain, (number, _)) in &changes.heads {
            if self.heads.get(chain) == Some(number) {
                continue;
            }
            let Some(last) = self.store.statements(chain, number - 1, 1)?.pop() else { continue };
            match chain {
                Chain::Root => {}
                Chain::Signers => controller.signers.store(*number, Ordering::Relaxed),
                Chain::Roster => {
                    controller.roster.store(*number, Ordering::Relaxed);
                    if let Ok(signed) = Signed::<Roster>::parse(&last.body) {
                        self.roster = signed.statement().machines.clone();
                    }
                }
                Chain::Channel(name) => {
                    // It was checked when it was published, and each machine checks it.
                    if let Ok(signed) = Signed::<Release>::parse(&last.body) {
                        self.newest.insert(name.clone(), (*number, signed.statement().selector.clone()));
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
        Ok(())
    }

    /// Points each machine to the newest release of the one channel that matches it.
    fn plan(&mut self, controller: &Controller) {
        let pointers = controller.each_machine(|machine| {
            let row = machine.row();
            let (channel, number) = self.release_for(&row)?;
            let is_there = row.desired.as_ref().is_some_and(|(at, from)| at == channel && *from >= number);
            if is_there { None } else { Some((channel.clone(), number, row.id)) }
        });
        let mut wanted: BTreeMap<(Name, u64), Vec<MachineId>> = BTreeMap::new();
        for (channel, number, machine) in pointers {
            wanted.entry((channel, number)).or_default().push(machine);
        }
        if wanted.is_empty() {
            return;
        }
        let Some(lease) = self.lease(controller) else { return };
        for ((channel, number), mut machines) in wanted {
            machines.sort_unstable();
            let pointers = Pointers { lease: lease.clone(), channel, number, machines };
            // Refused, it is decided anew by what is then.
            let _ = written(controller, StoreWrite::Point(pointers));
        }
    }

    fn release_for(&self, row: &MachineRow) -> Option<(&Name, u64)> {
        let now = super::now();
        let member = self.roster.get(&row.name).filter(|member| member.key == row.key)?;
        let is_held = row.held.as_ref().is_some_and(|(until, _)| *until > now);
        if row.standing != Standing::Admitted || is_held {
            return None;
        }
        let label = |name: &str| member.labels.get(name).map(String::as_str);
        let mut matching = self.newest.iter().filter(|(_, (_, selector))| match selector {
            Selector::All => true,
            Selector::Where(filter) => filter.matches(&label),
        });
        // Two channels for one machine are a mistake of operators: it stays as it is.
        matching.next().filter(|_| matching.next().is_none()).map(|(channel, (number, _))| (channel, *number))
    }

    fn lease(&self, controller: &Controller) -> Option<Grant> {
        let lease = StoreWrite::Lease { name: LEASE, owner: self.owner.clone(), length: LEASE_LENGTH };
        match written(controller, lease)?.ok()?.pop()? {
            Written::Lease(granted) => granted.ok(),
            _ => None,
        }
    }
}

/// Writes, and waits for it.
fn written(controller: &Controller, write: StoreWrite) -> Option<UnitOutcome> {
    let (sender, outcome) = channel();
    controller.writer.write(vec![write], Box::new(move |outcome| sender.send(outcome).unwrap_or(())));
    outcome.recv().ok()?.ok()
}
