//! A command on many machines: when each begins, and the outcome of all.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use stead_core::diag::counted;
use stead_hosts::{Machine, MachineEnd, Rollout};
use stead_system::Cancel;

use super::delivery::{Delivery, Parcel};
use super::inventory;
use super::order::{Order, PROTOCOL};
use super::outcome::{Outcome, finish, listed};
use super::plans::PlanOfAll;
use super::ready::{check_standard_input, way};
use super::screen::Screen;
use super::ssh::{Answer, Sign, Way};
use super::task::{Errand, Task};
use crate::exit::Exit;
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::terminal::complain;

/// Carries it out.
pub(super) fn on_many(task: &Task, env: &ProcessEnv) -> Result<Exit, Exit> {
    let cancel = Cancel::default();
    interrupt::catch_with(&cancel);
    check_standard_input(task)?;
    let machines = machines(task, env, &cancel)?;
    let parcel = match &task.errand {
        Errand::Document(errand) => Parcel::Document(errand, Box::new(Delivery::of(errand, env)?)),
        Errand::Plans(errand) => {
            if errand.asks {
                errand.plans.consent(&machines, task.view, &cancel)?;
            }
            Parcel::Plans(errand)
        }
        Errand::Words(work) => Parcel::Words(work),
    };
    parcel.warn_of_misspelt(&machines);
    let way = way(&parcel, env, &machines, task, cancel)?;
    let mut outcomes = rolled_out(task, &machines, &parcel, &way);
    let saved = task.out.as_ref().map_or(Ok(()), |path| save(path, (task, &parcel), &machines, &mut outcomes));
    let exit = finish(outcomes, task.operation, task.view, Some(env.began.elapsed()));
    saved?;
    Ok(interrupt::exit(&way.cancel, exit))
}

/// The machines of the inventory, or else those of the plan that is done.
fn machines(task: &Task, env: &ProcessEnv, cancel: &Cancel) -> Result<Vec<Machine>, Exit> {
    let Errand::Plans(errand) = &task.errand else { return inventory::of_fleet(&task.fleet, env, cancel) };
    if task.fleet.inventory.is_none() {
        return errand.plans.machines(&task.fleet);
    }
    let machines = inventory::of_fleet(&task.fleet, env, cancel)?;
    errand.plans.check(&machines).map(|()| machines)
}

/// Saves the plans of those machines that made one.
fn save(
    path: &Path,
    (task, parcel): (&Task, &Parcel<'_>),
    machines: &[Machine],
    outcomes: &mut [(String, Outcome)],
) -> Result<(), Exit> {
    let (mut planned, mut missing) = (Vec::new(), Vec::new());
    for (machine, (_, outcome)) in machines.iter().zip(outcomes) {
        match outcome.saved.take() {
            Some(saved) => planned.push((machine, saved)),
            None => missing.push(machine.name.as_str()),
        }
    }
    if planned.is_empty() {
        complain("error: the plan was not saved: no machine made one");
        return Err(Exit::Failed);
    }
    let needs = (parcel.declared(), parcel.secrets().map(|(_, named)| named.clone()));
    PlanOfAll::new(task.fleet.elevation, needs, planned.into_iter()).save(path)?;
    if !missing.is_empty() {
        let (count, names) = (counted(missing.len(), "machine"), listed(&missing, task.view));
        complain(&format!("warning: the saved plan is without {count}, which made none: {names}"));
    }
    Ok(())
}

/// How much news waits at most: a thread with more of it waits, and so does its machine.
const MOST_NEWS: usize = 256;

/// How often what is shown is refreshed where nothing happens.
const TICK: Duration = Duration::from_secs(1);

/// What a thread says of its machine.
enum News {
    Sign(usize, Sign),
    Ended(usize, Outcome),
}

fn rolled_out(task: &Task, machines: &[Machine], parcel: &Parcel<'_>, way: &Way) -> Vec<(String, Outcome)> {
    let (sender, news) = sync_channel(MOST_NEWS);
    let mut rollout = Rollout::new(machines.len(), task.fleet.rule);
    let mut outcomes: BTreeMap<usize, Outcome> = BTreeMap::new();
    let mut screen = Screen::new(machines, task.view);
    std::thread::scope(|scope| {
        while !rollout.is_over() {
            if way.cancel.is_cancelled() {
                rollout.stop();
            }
            while let Some((at, machine)) = rollout.begin().and_then(|at| Some((at, machines.get(at)?))) {
                let sender = sender.clone();
                screen.begin(at);
                scope.spawn(move || ask(at, machine, (task, parcel, way), &sender));
            }
            if rollout.is_over() {
                break;
            }
            match news.recv_timeout(TICK) {
                Ok(News::Sign(at, sign)) => screen.take(at, sign),
                Ok(News::Ended(at, outcome)) => {
                    let ended = if outcome.verdict.is_failure() { MachineEnd::Badly } else { MachineEnd::Well };
                    rollout.end(at, ended);
                    outcomes.insert(at, outcome);
                    screen.end(at);
                }
                Err(_) => screen.refresh(),
            }
        }
    });
    drop(screen);
    let outcome = |(at, machine): (usize, &Machine)| {
        let name = machine.name.to_string();
        let outcome = outcomes.remove(&at);
        let outcome = outcome.unwrap_or_else(|| Outcome::not_begun(&name, task.operation, task.view));
        (name, outcome)
    };
    machines.iter().enumerate().map(outcome).collect()
}

fn ask(at: usize, machine: &Machine, (task, parcel, way): (&Task, &Parcel<'_>, &Way), news: &SyncSender<News>) {
    let mut see = |sign| drop(news.send(News::Sign(at, sign)));
    // Whoever waits for all of them waits for this one as well.
    let answer = catch_unwind(AssertUnwindSafe(|| {
        let Some(work) = parcel.work(machine, task) else { return Answer::NotBegun };
        let order = Order { protocol: PROTOCOL, bundle: way.bundle.len(), work };
        let order = serde_json::to_vec(&order).unwrap_or_default();
        match way.ask(&machine.destination, &order, &mut see) {
            Answer::Ran { code: 0 | 2, report: Some(_), saved: None, .. } if task.out.is_some() => {
                Answer::Broken("it sent no plan that can be read".to_owned())
            }
            answer => answer,
        }
    }));
    let answer = answer.unwrap_or_else(|_| Answer::Broken("it ended because of a mistake in stead".to_owned()));
    let outcome = Outcome::of(machine.name.as_str(), task.operation, task.view, answer);
    let _ = news.send(News::Ended(at, outcome));
}
