//! What is heard of machines: by other controllers, in their reports, and by their silence.

use std::collections::BTreeMap;
use std::sync::Arc;

use stead_protocol::EventShown;

use super::Controller;
use super::outcomes::Outcome;
use crate::store::{FleetStore, FleetStoreError, LastHeard, MachineId, StoreWrite, StoredAct, Unit};

/// How many reports are read at once: those of more machines are read the next time.
const MOST_READ: usize = 2000;
/// How far back reports are looked for again, in milliseconds: a transaction dates them when it begins, and takes a while.
const BACK: u64 = 30_000;
/// How many acts are read at once.
const MOST_ACTS: u64 = 1000;

/// How far what is heard of machines was taken in.
#[derive(Default)]
pub(super) struct Listener {
    /// Until when what was reported and heard elsewhere was seen, by the clock of the database; 0 before the first time.
    until: u64,
    /// The number of the last act.
    act: Option<u64>,
}

impl Listener {
    /// Takes in what there is.
    pub(super) fn listen(&mut self, store: &mut FleetStore, controller: &Controller) -> Result<(), FleetStoreError> {
        let began = store.now()?;
        controller.sessions.read(store)?;
        if self.until == 0 || store.is_shared() {
            let since = self.until.saturating_sub(BACK);
            let reported: BTreeMap<MachineId, u64> = store.reported(since)?.into_iter().collect();
            let heard: BTreeMap<MachineId, LastHeard> = store.heard_since(since)?;
            controller.for_each_machine(|machine| {
                reported.get(&machine.id()).into_iter().for_each(|number| machine.has_reported(*number));
            });
            heard_elsewhere(controller, &heard);
        }
        let forks: BTreeMap<MachineId, u64> = store.forks()?.into_iter().collect();
        controller.for_each_machine(|machine| machine.fork(forks.get(&machine.id()).copied().unwrap_or_default()));
        let unread = controller.each_machine(|machine| Some((Arc::clone(machine), machine.unread()?)));
        for (machine, number) in unread.into_iter().take(MOST_READ) {
            let found = store.reports(machine.id(), number.saturating_add(1), 1)?.pop();
            let read = found.and_then(|report| Outcome::read(report.number, &report.body));
            // A report that says nothing of the machine leaves what is known of it, and is not read again.
            machine.learn(read.unwrap_or_else(|| Outcome::nothing(number, machine.outcome().as_deref())));
        }
        self.acts(store, controller)?;
        self.states(controller);
        self.until = began;
        Ok(())
    }

    /// Says which acts are new. Those before the first time are in the chain.
    fn acts(&mut self, store: &mut FleetStore, controller: &Controller) -> Result<(), FleetStoreError> {
        let Some(last) = self.act else {
            self.act = Some(store.count_acts()?);
            return Ok(());
        };
        for act in store.acts(last, MOST_ACTS)? {
            self.act = Some(act.number);
            controller.events.push(act_shown(&act));
        }
        Ok(())
    }

    /// Says which machines are in another state. What they are when this controller begins is not news.
    fn states(&self, controller: &Controller) {
        let (at, since) = (controller.now(), controller.started);
        let changed = controller.each_machine(|machine| {
            let state = machine.state(at, since);
            let from = machine.say(state);
            let machine = machine.row().name.to_string();
            (from != Some(state)).then_some(EventShown::State { at, machine, from, to: state })
        });
        for event in changed.into_iter().filter(|_| self.until > 0) {
            controller.events.push(event);
        }
    }
}

/// Takes in what other controllers heard of machines, and keeps which of them that shows to be two.
fn heard_elsewhere(controller: &Controller, heard: &BTreeMap<MachineId, LastHeard>) {
    let two = controller.each_machine(|machine| {
        let number = machine.was_heard(heard.get(&machine.id())?)?;
        Some((machine.row().name.clone(), StoreWrite::Fork { machine: machine.id(), number }))
    });
    let (names, unit): (Vec<_>, Unit) = two.into_iter().unzip();
    if unit.is_empty() {
        return;
    }
    for name in names {
        tracing::warn!(machine = name.as_str(), "two machines have its key");
    }
    if !matches!(controller.written(unit), Some(Ok(_))) {
        tracing::warn!("the store does not keep yet that machines are two: it is seen again when they are heard");
    }
}

fn act_shown(act: &StoredAct) -> EventShown {
    let body: serde_json::Value = serde_json::from_str(&act.body).unwrap_or_default();
    let text = |name: &str| body.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    let at = body.get("at").and_then(serde_json::Value::as_u64).unwrap_or_default();
    EventShown::Act { at, number: act.number, by: text("by"), did: text("did") }
}
