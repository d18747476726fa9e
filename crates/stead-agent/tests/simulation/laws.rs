//! Laws of every change of the state, and of every decision.

use std::time::Duration;

use jiff::Timestamp;
use stead_agent::{
    AgentState, Ended, Intent, Job, JobKind, JobOutcome, JobResult, Moment, Next, Opening, Progress, Refusal, Stage,
    Waiting, Work, opening,
};
use stead_core::document::ConfigurationMode;

use crate::machine::{BYSTANDERS, Machine};

/// A law that was violated.
pub(crate) type Law = Result<(), String>;

/// The cause of a change of the state.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    Submit(Result<u64, Refusal>),
    Remove(Stage, Result<u64, Refusal>),
    UseExisting,
    Configure,
    Begin,
    End(Job, Box<JobOutcome>),
    Start,
    Order,
    Abandon,
    Owe,
    Hold,
}

fn law(holds: bool, text: impl FnOnce() -> String) -> Law {
    if holds { Ok(()) } else { Err(text()) }
}

type Stages = [Option<u64>; 3];

fn stages(state: &AgentState) -> Stages {
    [state.pending, state.current, state.previous]
}

/// A document that was accepted stays pending until it converges, is superseded or is removed; current converged while no
/// restart was due; previous is the former current.
pub(crate) fn change(cause: &Cause, before: &AgentState, after: &AgentState, machine: &Machine) -> Law {
    let [pending, current, previous] = stages(before);
    let expected = match cause {
        Cause::Submit(Ok(number)) => {
            let ended =
                |number: u64| after.generations.get(&number).is_none_or(|it| it.ended == Some(Ended::Superseded));
            law(*number == before.newest + 1, || format!("number {number} after {}", before.newest))?;
            law(pending.is_none_or(ended), || "the superseded document does not say so".to_owned())?;
            let anew = Progress { held: after.progress.held, ..Progress::default() };
            law(after.progress == anew, || format!("a new document has come as far as {:?}", after.progress))?;
            [Some(*number), current, previous]
        }
        Cause::Submit(Err(_)) | Cause::Remove(_, Err(_)) => {
            law(before == after, || "what was refused changed the state".to_owned())?;
            stages(before)
        }
        Cause::Remove(Stage::Pending, _) => [None, current, previous],
        Cause::Remove(Stage::Current, _) => [pending, None, previous],
        Cause::Remove(Stage::Previous, _) => [pending, current, None],
        Cause::End(job, outcome) if converges(before, job, outcome, machine) => [None, pending, current.or(previous)],
        _ => stages(before),
    };
    law(stages(after) == expected, || {
        format!("{cause:?}: {:?} became {:?}, not {expected:?}", stages(before), stages(after))
    })?;
    let kept = |number: &u64| after.generations.contains_key(number);
    law(stages(after).iter().flatten().all(kept), || "a staged document is not kept".to_owned())?;
    if let Cause::End(job, _) = cause
        && !job.only.is_empty()
    {
        of_a_part(before, after)?;
    }
    let counted = after.restarts.count > before.restarts.count;
    law(
        !counted
            || matches!(cause, Cause::Start)
                && before.restart.as_ref().is_some_and(|due| due.boot != machine.boot_id()),
        || "a restart was counted that did not happen".to_owned(),
    )
}

/// Returns whether the pending document becomes current. Nothing in the machine may wait for a restart then.
fn converges(before: &AgentState, job: &Job, outcome: &JobOutcome, machine: &Machine) -> bool {
    let Some((number, generation)) = before.staged(Stage::Pending) else { return false };
    number == job.generation
        && job.only.is_empty()
        && job.work == Work::Apply
        && outcome.result == JobResult::Converged
        && !machine.needs_restart
        && before.mode_of(generation) != ConfigurationMode::MonitorOnly
}

/// A job over a part says nothing about the rest: no check is put off, no crash is forgiven, and what waits for a correction
/// still does.
fn of_a_part(before: &AgentState, after: &AgentState) -> Law {
    let is_same =
        |state: &AgentState| (state.crashes.clone(), state.progress.clone(), state.apply_requested, state.drift_found);
    law(is_same(before) == is_same(after), || format!("a part changed {before:?} to {after:?}"))?;
    let (was_due, is_due) = (before.next_check, after.next_check);
    let is_put_off = is_due.is_some() && (was_due.is_none() || is_due > was_due);
    law(!is_put_off, || format!("a part put off the check from {was_due:?} to {is_due:?}"))
}

/// Whenever the agent starts, it tries a pending document at once, unless it crashed too often or may not.
pub(crate) fn started(state: &AgentState, moment: &Moment) -> Law {
    let next = state.next(moment);
    let waits = matches!(next, Next::Wait { because: Waiting::Retry | Waiting::Check, .. });
    law(!waits, || format!("after a start: {next:?}"))
}

/// A correction that failed is tried again no later than a pending document would be.
pub(crate) fn retried(job: &Job, state: &AgentState, now: Timestamp) -> Law {
    let failed = state.last.as_ref().is_some_and(|last| last.id == job.id && last.result == JobResult::Failed);
    if !failed || state.current != Some(job.generation) || job.work == Work::Test {
        return Ok(());
    }
    let latest = now.saturating_add(state.settings.pending_backoff.cap).unwrap_or(Timestamp::MAX);
    law(state.next_check.is_none_or(|at| at <= latest), || {
        format!("a correction that failed waits until {:?}", state.next_check)
    })
}

/// A job over a part is over the current document. It begins where nothing else is to be done, and changes what may be changed.
pub(crate) fn part(
    (generation, work): (u64, Work),
    because: Waiting,
    state: &AgentState,
    moment: &Moment,
    machine: &Machine,
) -> Law {
    law(state.current == Some(generation), || format!("a part of generation {generation}"))?;
    law(state.job.is_none(), || "a part beside another job".to_owned())?;
    law(because != Waiting::Crashes, || format!("a part during a wait for {because:?}"))?;
    decision(&Next::Begin { generation, kind: JobKind::Consistency, work }, state, moment, machine)
}

/// Notifications that are owed survive until their own document delivers them.
pub(crate) fn owed(state: &AgentState, machine: &Machine) -> Law {
    let lost = |number: &u64| !machine.owed.get(number).is_none_or(|owed| owed.is_subset(&state.owed_by(*number)));
    let lost = state.pending.into_iter().chain(state.current).find(lost);
    law(lost.is_none(), || format!("generation {lost:?}: owed {:?}, known {:?}", machine.owed, state.owed))
}

/// A document that becomes current owes nothing.
pub(crate) fn promoted(undelivered: &std::collections::BTreeSet<String>) -> Law {
    law(undelivered.is_empty(), || format!("a document became current that owes {undelivered:?}"))
}

/// Instances that were in flight beside the one that crashes the agent are not left out.
pub(crate) fn quarantine(state: &AgentState) -> Law {
    let innocent = state.crashes.quarantined().find(|path| BYSTANDERS.contains(path));
    law(innocent.is_none(), || format!("{innocent:?} is left out"))
}

/// A request that comes during a job is carried out after it, and not when it would have been done anyway.
pub(crate) fn asked(was_asked: bool, next: &Next) -> Law {
    let waits = matches!(next, Next::Wait { because: Waiting::Check | Waiting::Retry, .. });
    law(!(was_asked && waits), || format!("after what was asked for during a job: {next:?}"))
}

/// Work that changes the machine is done inside of windows only, and not while a restart is due. Waits are bounded.
pub(crate) fn decision(next: &Next, state: &AgentState, moment: &Moment, machine: &Machine) -> Law {
    let open = |intent| opening(&state.settings.windows, intent, moment.now, &moment.zone) == Opening::Open;
    match next {
        Next::Begin { work: Work::Apply, .. } => {
            law(open(Intent::Set), || "a change outside of windows".to_owned())?;
            law(!machine.needs_restart, || "a change while a restart is due".to_owned())
        }
        Next::Begin { .. } => Ok(()),
        Next::Resume => {
            let job = state.job.as_ref().ok_or("nothing to resume")?;
            law(job.boot == machine.boot_id(), || "a job of another boot is resumed".to_owned())?;
            law(job.work == Work::Test || open(Intent::Set), || "a change outside of windows".to_owned())
        }
        Next::Abandon => law(state.job.is_some(), || "nothing to give up".to_owned()),
        Next::Restart => law(open(Intent::Restart), || "a restart outside of windows".to_owned()),
        Next::Wait { until, because } => {
            is_tested(*because, state)?;
            wait(*until, *because, state, moment.now)
        }
    }
}

/// Whatever is waited for, a current document that is to be tested is: it is not due. But for crashes, and a restart that
/// was ordered a moment ago.
fn is_tested(because: Waiting, state: &AgentState) -> Law {
    let ordered = state.restart.as_ref().is_some_and(|due| due.ordered.is_some());
    let Some((_, current)) = state.staged(Stage::Current).filter(|_| because != Waiting::Crashes && !ordered) else {
        return Ok(());
    };
    let is_due = state.mode_of(current) != ConfigurationMode::ApplyOnly && state.next_check.is_none();
    law(!is_due, || format!("the current document is not looked at during a wait for {because:?}"))
}

fn wait(until: Option<Timestamp>, because: Waiting, state: &AgentState, now: Timestamp) -> Law {
    let settings = &state.settings;
    let interval = settings.check_every + settings.splay;
    let longest = match because {
        Waiting::Check => interval,
        Waiting::Retry => settings.pending_backoff.cap,
        Waiting::Crashes => Duration::from_mins(10),
        // These may end by themselves or not; what else is due meanwhile is waited for at most for so long.
        Waiting::Restart if until.is_some() => interval.max(Duration::from_mins(10)),
        Waiting::Held(_) | Waiting::TooManyRestarts if until.is_some() => interval,
        Waiting::Window => WEEK,
        Waiting::Document | Waiting::Held(_) | Waiting::TooManyRestarts | Waiting::Restart => {
            return law(until.is_none(), || format!("a wait for {because:?} until {until:?}"));
        }
    };
    let until = until.ok_or_else(|| format!("a wait for {because:?} that never ends"))?;
    let wait = until.duration_since(now);
    law(wait.is_positive() && wait.unsigned_abs() <= longest, || format!("a wait for {because:?} of {wait:#}"))
}

/// The longest time between two openings of a window in the simulation.
pub(crate) const WEEK: Duration = Duration::from_hours(7 * 24);
