//! Cases of `corpus/run`: a document, a machine, and what a run does with both.

#[path = "support/brief.rs"]
mod brief;
#[path = "support/catalog.rs"]
mod catalog;
#[path = "support/prepare.rs"]
mod prepare;
#[path = "support/seal.rs"]
mod seal;
#[path = "support/simulation.rs"]
mod simulation;

use std::process::ExitCode;
use std::sync::Arc;

use simulation::{Driver, Job, Set, Thing, World, drive};
use stead_core::call::{Operation, Outcome, Response, Restart, Verification};
use stead_core::claims::Extent;
use stead_core::event::{Approach, Event, EventKind, Mode, Problem, SkipReason, Status, Verify};
use stead_core::graph::Graph;
use stead_core::history::{AttemptRecord, AttemptResult, History, RunEnd};
use stead_core::id::NodeId;
use stead_core::manifest::Lane;
use stead_core::run::policy::{Policy, SinglePass};
use stead_core::run::reconcile::Reconciler;
use stead_core::run::{Exceptions, Privilege, Room, Run, Setup};
use stead_core::text::Sources;
use stead_core::value::Value;
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "run", run }, Suite { folder: "history", run: history }])
}

fn run(case: &Case) -> Result<Computed, String> {
    let Finished { run, lines, sources, .. } = finish(case)?;
    Ok(vec![("events", lines.concat()), ("report", report(&run, &sources))])
}

/// Returns the history of each attempt, from the journal of a run without its graph.
fn history(case: &Case) -> Result<Computed, String> {
    let Finished { run, journal, .. } = finish(case)?;
    let history = History::of(&journal);
    if history.totals() != run.totals() {
        return Err(format!("totals {:?}, and not {:?}", history.totals(), run.totals()));
    }
    let mut text =
        format!("{:?}, {} s, {} re-runs\n", history.end(), history.elapsed().as_secs(), history.report.re_runs);
    for (path, record) in history.instances() {
        let status =
            record.status().map_or("not settled".to_owned(), |status| ended(status, None, &Sources::default()));
        let why = record.why_ended().map(|why| format!(": {why}")).unwrap_or_default();
        text.extend([format!("{path}: {status}{why}\n")]);
        text.extend(history.attempts(path.node()).iter().enumerate().map(|(at, each)| attempt_line(at + 1, each)));
    }
    let mut early = (0..journal.len()).map(|length| History::of(&journal[..length]).end());
    match early.position(|end| !matches!(end, RunEnd::Interrupted | RunEnd::Suspended)) {
        Some(length) => Err(format!("its end is seen after {length} events")),
        None => Ok(vec![("history", text)]),
    }
}

fn attempt_line(number: usize, attempt: &AttemptRecord) -> String {
    let waited = attempt.waited.map(|waited| format!(", waited {} s", waited.as_secs())).unwrap_or_default();
    let woken = if attempt.woken { ", woken" } else { "" };
    let calls = attempt.calls.iter().map(|call| match call.elapsed {
        Some(_) => word(call.operation).to_owned(),
        None => format!("{} (not ended)", word(call.operation)),
    });
    let calls = calls.collect::<Vec<_>>().join(", ");
    let result = match attempt.result() {
        AttemptResult::Changed(changed) => {
            format!("Changed [{}]", changed.changed.as_deref().unwrap_or_default().join(", "))
        }
        AttemptResult::NotConverged(..) => "NotConverged".to_owned(),
        AttemptResult::Pending(_) => "Pending".to_owned(),
        AttemptResult::Failed(_) => "Failed".to_owned(),
        other => format!("{other:?}"),
    };
    let why = attempt.result().reason().map(|why| format!(", {why}")).unwrap_or_default();
    format!("  {number} at {}s{waited}{woken} ({calls}): {result}{why}\n", attempt.began.as_second())
}

/// A run that has ended, and what was recorded of it.
struct Finished {
    run: Run,
    journal: Vec<Event>,
    lines: Vec<String>,
    sources: Arc<Sources>,
}

fn finish(case: &Case) -> Result<Finished, String> {
    let prepared = prepare::prepare(case)?;
    let Some(graph) = prepared.graph else {
        return Err(brief::findings(&prepared.findings, &prepared.sources));
    };
    let mut settings = Settings::parse(case.section("mode"))?;
    let mut world = world(case.section("world"))?;
    let sources = Arc::new(prepared.sources);
    let setup = Setup {
        facts: prepared.facts,
        privilege: settings.privilege,
        policy: Arc::clone(&settings.policy),
        exceptions: settings.exceptions(&graph)?,
        ..Setup::new(Arc::new(graph), Arc::clone(&sources), Arc::new(seal::Legible), settings.mode)
    };
    let (mut journal, mut lines) = (Vec::new(), Vec::new());
    let run = loop {
        let mut run = Run::resume(setup.clone(), &journal).map_err(|error| error.to_string())?;
        let mut driver = Driver {
            room: settings.room.clone(),
            pick: &mut |count| if settings.last_first { count - 1 } else { 0 },
            learn: &|key| prepare::fact(case, key),
            signal: settings.signal.take(),
            wake: &mut |count| {
                let is_woken = count > 0 && settings.wakes > 0;
                settings.wakes -= u32::from(is_woken);
                is_woken.then_some(0)
            },
            observe: &mut |_, _, _, event| {
                lines.push(event_line(&sources, event));
                journal.push(event.clone());
            },
        };
        drive(&mut run, &mut world, &mut driver);
        if run.is_finished() {
            break run;
        }
    };
    Ok(Finished { run, journal, lines, sources })
}

struct Settings {
    mode: Mode,
    room: Room,
    last_first: bool,
    privilege: Privilege,
    policy: Arc<dyn Policy>,
    signal: Option<(usize, EventKind)>,
    /// How often what backs off first is woken.
    wakes: u32,
    /// The treatment of some instances, by their names.
    excepted: Vec<(String, String)>,
}

impl Settings {
    fn parse(text: &str) -> Result<Self, String> {
        let (room, privilege, policy) = (Room::of(1), Privilege::Restricted, Arc::new(SinglePass));
        let mode = Mode::APPLY;
        let mut settings =
            Self { mode, room, last_first: false, privilege, policy, signal: None, wakes: 0, excepted: Vec::new() };
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            settings.set(&words).ok_or_else(|| format!("'{line}' is not a mode"))?;
        }
        Ok(settings)
    }

    fn set(&mut self, words: &[&str]) -> Option<()> {
        match *words {
            ["get"] => self.mode = Mode::GET,
            ["test"] => self.mode = Mode::TEST,
            ["test", "direct"] => self.mode = Mode { approach: Approach::Direct, ..Mode::TEST },
            ["plan"] => self.mode = Mode::PLAN,
            ["apply"] => self.mode = Mode::APPLY,
            ["lenient"] => self.mode = Mode { verification: Verify::Lenient, ..Mode::APPLY },
            ["export"] => self.mode = Mode::EXPORT,
            ["width", number] => self.room.total = number.parse().ok()?,
            ["programs", number] => drop(self.room.lanes.insert(Lane::Programs, number.parse().ok()?)),
            ["last", "first"] => self.last_first = true,
            ["elevated"] => self.privilege = Privilege::Elevated,
            [how @ ("basic" | "continuous"), wait, unchanged, re_runs] => {
                self.reconcile(how, wait, unchanged, re_runs)?;
            }
            ["wake", number] => self.wakes = number.parse().ok()?,
            ["cancel", "after", number] => self.signal = Some((number.parse().ok()?, EventKind::Cancelled)),
            [how @ ("select" | "skip" | "quarantine" | "monitor" | "owe"), name] => {
                self.excepted.push((how.to_owned(), name.to_owned()));
            }
            ["suspend", "after", number] => self.signal = Some((number.parse().ok()?, EventKind::Suspended)),
            _ => return None,
        }
        Some(())
    }

    fn exceptions(&self, graph: &Graph) -> Result<Exceptions, String> {
        let mut exceptions = Exceptions::default();
        for (how, name) in &self.excepted {
            let found = graph.iter().find(|(_, node)| *node.name == **name);
            let (id, _) = found.ok_or_else(|| format!("there is no instance '{name}'"))?;
            match how.as_str() {
                "select" => drop(Arc::make_mut(exceptions.selected.get_or_insert_default()).insert(id)),
                "skip" => drop(exceptions.skipped.insert(id, SkipReason::NotSelected)),
                "quarantine" => drop(exceptions.skipped.insert(id, SkipReason::Quarantined)),
                "monitor" => drop(exceptions.tested.insert(id)),
                _ => drop(exceptions.owed.insert(id)),
            }
        }
        Ok(exceptions)
    }

    fn reconcile(&mut self, how: &str, wait: &str, unchanged: &str, re_runs: &str) -> Option<()> {
        let unchanged = unchanged.parse().ok()?;
        let made = if how == "basic" { Reconciler::basic(unchanged) } else { Reconciler::continuous(unchanged) };
        let wait = if wait == "-" { None } else { Some(wait.parse().ok()?) };
        self.policy = Arc::new(Reconciler { wait, max_re_runs: re_runs.parse().ok()?, ..made });
        Some(())
    }
}

fn world(text: &str) -> Result<World, String> {
    let mut world = World::default();
    for line in text.lines() {
        let (head, state) = line.split_once(" = ").map_or((line, None), |(head, state)| (head, Some(state)));
        let mut words = head.split(' ');
        let name = words.next().unwrap_or_default().to_owned();
        let json = state.map(serde_json::from_str::<serde_json::Value>).transpose();
        let actual = json.map_err(|error| format!("{line}: {error}"))?.map(Value::from);
        let mut thing = Thing { actual, ..Thing::default() };
        words.try_for_each(|word| option(&mut thing, word)).ok_or_else(|| format!("'{line}' is not a thing"))?;
        world.0.insert(name, thing);
    }
    Ok(world)
}

fn option(thing: &mut Thing, word: &str) -> Option<()> {
    match word.split_once(':')? {
        ("set", "fails") => thing.set = Set::Fails,
        ("set", "nothing") => thing.set = Set::Nothing,
        ("set", "partly") => thing.set = Set::Partly,
        ("failures", number) => thing.failures = number.parse().ok()?,
        ("lacking", number) => thing.lacking = number.parse().ok()?,
        ("job", length) => thing.job = Some(Job::new(length.parse().ok()?, false)),
        ("counting", length) => thing.job = Some(Job::new(length.parse().ok()?, false).counting(true)),
        ("detached", length) => thing.job = Some(Job::new(length.parse().ok()?, true)),
        ("restart", "system") => thing.restarts.push(Restart::System("this".to_owned())),
        ("restart", service) => thing.restarts.push(Restart::Service(service.to_owned())),
        ("test", "silent") => thing.is_silent = true,
        ("touches", "anything") => thing.touches = None,
        ("replaces", path) => (thing.touches, thing.extent) = (Some(vec![path.into()]), Extent::Whole),
        ("once", path) => thing.once = Some(path.into()),
        ("presumes", path) => thing.presumes = Some(path.into()),
        ("touches", paths) => thing.touches = Some(paths.split(',').map(Into::into).collect()),
        _ => return None,
    }
    Some(())
}

fn event_line(sources: &Sources, event: &Event) -> String {
    let second = event.at.as_second();
    match &event.kind {
        EventKind::Began(_) => String::new(),
        EventKind::Resumed => format!("{second}s resume\n"),
        EventKind::Refuted { instance, .. } => format!("refute {instance}\n"),
        EventKind::Suspended => "suspend\n".to_owned(),
        EventKind::Cancelled => "cancel\n".to_owned(),
        EventKind::FactObserved(fact) => {
            format!("fact {:?}: {}\n", fact.key, fact.value.as_ref().map_or_else(Clone::clone, json))
        }
        EventKind::ContainerOpened { instance } => format!("open {}\n", instance.name()),
        EventKind::CallStarted { instance, operation, desired, .. } => {
            format!("call {} {} {}\n", word(*operation), instance.name(), json(desired))
        }
        EventKind::CallEnded { instance, response, .. } => format!("  {} {}\n", instance.name(), answered(response)),
        EventKind::RetryScheduled { instance, until } => {
            format!("{second}s retry {} at {}s\n", instance.name(), until.as_second())
        }
        EventKind::Woken { instance } => format!("{second}s wake {}\n", instance.name()),
        EventKind::Settled { instance, status, problem } => {
            format!("settle {}: {}\n", instance.name(), ended(status, problem.as_deref(), sources))
        }
    }
}

fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Get => "get",
        Operation::Test => "test",
        Operation::Set => "set",
        Operation::Delete => "delete",
        Operation::Export => "export",
    }
}

fn json(value: &Value) -> String {
    value.to_redacted_json().to_string()
}

fn answered(answer: &Response) -> String {
    match &answer.outcome {
        Outcome::Got(actual) => format!("is {}", json(actual)),
        Outcome::Exported(found) => format!("holds {}", found.len()),
        Outcome::Deleted(_) => "is deleted".to_owned(),
        Outcome::Pending(pending) => format!("is pending: {}", pending.message),
        Outcome::Failed(failure) => format!("failed: {}", failure.message),
        Outcome::Tested(tested) if tested.in_desired_state => "is in state".to_owned(),
        Outcome::Tested(tested) if tested.unknown.is_some() => "cannot tell".to_owned(),
        Outcome::Tested(tested) => format!("differs in {}", tested.differing.join(", ")),
        Outcome::Changed(changed) => {
            let names = changed.changed.as_deref().unwrap_or_default().join(", ");
            match &changed.verified {
                Verification::Differs(left) => format!("changed [{names}], still differs in {}", left.join(", ")),
                _ => format!("changed [{names}]"),
            }
        }
    }
}

fn ended(status: &Status, problem: Option<&Problem>, sources: &Sources) -> String {
    match (status, problem) {
        (Status::Skipped(reason), _) => format!("Skipped, {}", because(reason)),
        (Status::Unknown(other), _) => format!("Unknown, depends on {}", other.name()),
        (status, Some(Problem::Finding(finding))) => {
            let finding = brief::findings(std::slice::from_ref(finding), sources);
            format!("{status:?}, {}", finding.trim_end())
        }
        (status, Some(Problem::Failure(failure))) => format!("{status:?}, {}", failure.message),
        (status, None) => format!("{status:?}"),
    }
}

fn because(reason: &SkipReason) -> String {
    match reason {
        SkipReason::Condition => "its condition is false".to_owned(),
        SkipReason::NoChange => "nothing changed".to_owned(),
        SkipReason::NoFailure => "nothing failed".to_owned(),
        SkipReason::Need(need) => format!("requires {}", need.name()),
        SkipReason::Container(container) => format!("is nested in {}", container.name()),
        SkipReason::Cancelled => "the run was cancelled".to_owned(),
        SkipReason::NotSelected => "not selected".to_owned(),
        SkipReason::LeftAlone => "left alone".to_owned(),
        SkipReason::Quarantined => "quarantined".to_owned(),
        SkipReason::Withheld => "withheld".to_owned(),
    }
}

fn report(run: &Run, sources: &Sources) -> String {
    let (graph, report) = (run.graph(), run.report());
    let mut out: Vec<String> = graph.order.iter().map(|id| status_line(run, *id, sources)).collect();
    let totals = run.totals();
    let counts = [
        (totals.unchanged, "unchanged"),
        (totals.changed, "changed"),
        (totals.drifted, "drifted"),
        (totals.failed, "failed"),
        (totals.pending, "pending"),
        (totals.skipped, "skipped"),
        (totals.unknown, "unknown"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    let counts: Vec<String> = counts.collect();
    out.push(format!("total {}\n", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }));
    let given_up = run.given_up().count();
    if report.re_runs > 0 || given_up > 0 {
        out.push(format!("re-runs {}, {given_up} given up\n", report.re_runs));
    }
    out.extend(run.owed().iter().map(|instance| format!("owed {}\n", instance.name())));
    out.extend(report.restarts.iter().map(|restart| format!("restart {restart:?}\n")));
    for (name, value) in run.outputs() {
        let value = value.as_ref().map_or_else(|finding| finding.brief(sources), json);
        out.push(format!("output {name}: {value}\n"));
    }
    out.concat()
}

fn status_line(run: &Run, id: NodeId, sources: &Sources) -> String {
    let (graph, record) = (run.graph(), run.report().record(id));
    let status = record.status().map_or("not settled".to_owned(), |status| ended(status, None, sources));
    let depth = std::iter::successors(graph.container(id), |id| graph.container(*id)).count();
    let net = record.net_change().filter(|(before, after)| before != after);
    let net = net.map(|(before, after)| format!(", {} -> {}", json(before), json(after))).unwrap_or_default();
    format!("{:indent$}{}: {status}{net}\n", "", graph.node(id).name, indent = 2 * depth)
}
