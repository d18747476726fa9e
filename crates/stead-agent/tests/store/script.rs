//! The life of the agent in these tests: a sequence of steps that depends on a seed alone, carried out by a process
//! of its own, and the states that the record may have after each.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;

use jiff::Timestamp;
use serde_json::json;
use stead_agent::{
    AgentState, BootId, Delivered, Generation, Job, JobKind, JobOutcome, JobResult, Reports, Spread, Stage, Store,
    Submission, Work,
};

/// A secret that is in each document and its parameters, and must be in no file.
pub(crate) const CANARY: &str = "canary-7c2b1f";

/// One change of the record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScriptStep {
    /// A document of so many bytes is accepted.
    Accept(usize),
    /// A job over it begins.
    Begin,
    /// It converges: pending becomes current, current becomes previous.
    Converge,
    /// The previous document is accepted again.
    Restore,
    /// A setting changes.
    Settings,
    /// The previous document is removed.
    Remove,
}

/// The steps of a seed: everything once, in an order that makes sense, with documents of different lengths.
pub(crate) fn steps(seed: usize) -> Vec<ScriptStep> {
    use ScriptStep::{Accept, Begin, Converge, Remove, Restore, Settings};
    let lengths = [0, 1, 300, 5_000, 70_000];
    let length = |each: usize| lengths[(seed + each) % lengths.len()];
    let mut steps = vec![Accept(length(0)), Settings, Begin, Converge, Accept(length(1)), Accept(length(2)), Begin];
    steps.extend([Converge, Restore, Begin, Settings, Converge, Remove, Accept(length(3)), Settings]);
    steps.truncate(15 - seed % 3);
    steps
}

fn at(step: usize) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + i64::try_from(step).unwrap()).unwrap()
}

pub(crate) fn document(step: usize, length: usize) -> Delivered {
    let text = format!("# {step} {CANARY}\n{}", "x".repeat(length));
    let parameters = json!({"password": CANARY, "step": step}).as_object().unwrap().clone();
    Delivered { name: format!("{step}.yaml"), text, bundle: None, parameters, root: "/".into() }
}

/// Changes the state as a step does; `put` stores a document.
pub(crate) fn take<E>(
    state: &mut AgentState,
    (number, step): (usize, ScriptStep),
    put: impl FnOnce(&Delivered) -> Result<String, E>,
) -> Result<(), E> {
    match step {
        ScriptStep::Accept(length) => {
            let generation = Generation {
                content: put(&document(number, length))?,
                origin: format!("{number} {length}"),
                identity: None,
                accepted: at(number),
                user: 0,
                mode: None,
                instance_modes: BTreeSet::new(),
                converged: None,
                ended: None,
                restores: None,
            };
            state.took(generation.origin.clone());
            state.submit(Submission { generation, force: false, publish: false }).unwrap();
        }
        ScriptStep::Restore => {
            let generation = state.to_restore(None).unwrap();
            state.submit(Submission { generation, force: false, publish: false }).unwrap();
        }
        ScriptStep::Begin => state.begin(Job {
            id: format!("job-{number}"),
            generation: state.pending.unwrap(),
            kind: JobKind::Initial,
            work: Work::Apply,
            began: at(number),
            boot: BootId("boot".to_owned()),
            only: std::collections::BTreeSet::new(),
        }),
        ScriptStep::Converge => {
            let (restart, settled) = (BTreeSet::new(), None);
            let result = JobResult::Converged;
            let (troubles, error) = (Vec::new(), None);
            let outcome = JobOutcome { result, restart, settled, not_in_state: 0, instances: 3, troubles, error };
            state.end(outcome, at(number), Spread::NONE);
        }
        ScriptStep::Settings => state.settings.generations = u32::try_from(number % 7).unwrap(),
        ScriptStep::Remove => drop(state.remove(Stage::Previous).unwrap()),
    }
    Ok(())
}

/// The states after no step, the first, the second, …; documents are named by what they hold.
pub(crate) fn states(seed: usize) -> Vec<AgentState> {
    let mut states = vec![AgentState::default()];
    for step in steps(seed).into_iter().enumerate() {
        let mut state = states.last().unwrap().clone();
        take::<()>(&mut state, step, |_| Ok(String::new())).unwrap();
        states.push(state);
    }
    states
}

/// Which of the states a record is, after its documents were read and compared.
pub(crate) fn number_of(store: &Store, found: &AgentState, seed: usize) -> Result<usize, String> {
    let mut unnamed = found.clone();
    for generation in unnamed.generations.values_mut() {
        let (step, length) = generation.origin.split_once(' ').unwrap();
        let wanted = document(step.parse().unwrap(), length.parse().unwrap());
        let stored = store.get(&generation.content).map_err(|error| format!("lost {}: {error}", generation.origin))?;
        if stored != wanted {
            return Err(format!("{} is another document", generation.origin));
        }
        generation.content.clear();
    }
    // A later one first: a step that changes nothing was not lost.
    states(seed).iter().rposition(|state| *state == unnamed).ok_or_else(|| "a state that never was".to_owned())
}

/// The steps of a process that is started to be disturbed.
pub(crate) struct Script<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) seed: usize,
    /// True if a step that failed is tried again, once.
    pub(crate) retries: bool,
    /// True if it writes reports as well.
    pub(crate) reports: bool,
}

impl Script<'_> {
    /// Goes on with the steps from where the record is. Says on standard output what it did, a line each: the number of
    /// steps that are done, or `failed` and why.
    pub(crate) fn run(&self) {
        // What comes before is none of the script, and found by this name in a record of system calls.
        let _ = fs::read_link("/begin");
        let Some((mut store, mut state, done)) = self.attempt(|| self.open()) else { return };
        say(&done.to_string());
        let reports = self.reports.then(|| Reports::open(&store));
        if let Some((_, Some(repair))) = &reports {
            say(&format!("repaired: {repair}"));
        }
        for step in steps(self.seed).into_iter().enumerate().skip(done) {
            let taken = self.attempt(|| {
                let mut next = state.clone();
                take(&mut next, step, |delivered| store.put(delivered))?;
                store.save(&next).map(|()| next)
            });
            let Some(next) = taken else { return };
            state = next;
            say(&(step.0 + 1).to_string());
            let kept = state.generations.values().map(|generation| generation.content.as_str()).collect();
            self.attempt(|| store.keep_only(&kept));
            if let Some((reports, _)) = &reports {
                self.attempt(|| reports.append(at(step.0), &format!("job-{}", step.0), &json!({"step": step.0})));
            }
        }
    }

    fn open(&self) -> Result<(Store, AgentState, usize), String> {
        let opened = Store::open_with(self.directory, None).map_err(|error| error.to_string())?;
        let (store, state, repairs) = opened;
        for repair in repairs {
            say(&format!("repaired: {repair}"));
        }
        let done = number_of(&store, &state, self.seed)?;
        Ok((store, state, done))
    }

    fn attempt<T, E: std::fmt::Display>(&self, mut work: impl FnMut() -> Result<T, E>) -> Option<T> {
        for _ in 0..if self.retries { 2 } else { 1 } {
            match work() {
                Ok(done) => return Some(done),
                Err(error) => say(&format!("failed: {error}")),
            }
        }
        None
    }
}

fn say(line: &str) {
    // At once, and at once gone if nobody listens.
    let _ = std::io::stdout().write_all(format!("\n={line}\n").as_bytes());
    let _ = std::io::stdout().flush();
}
