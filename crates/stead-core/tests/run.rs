//! Cases of `corpus/run`: a document, a machine, and what a run does with both.
//!
//! `world` has a line for each thing that is not in its desired state: `NAME OPTION… = STATE`. Options are `set:fails`,
//! `set:nothing`, `set:partly`, `failures:2`, `restart:system`, `restart:web` (a service), `touches:/a,/b`,
//! `touches:anything` and `presumes:/a` (of which a what-if says that it has to be there). `mode` is `get`, `test`, `plan`, `apply`, `lenient` or `export`; further lines may state `width
//! 2`, `last first` (the call asked last is answered first) and `cancel after 5` (events). Computed are `events` and
//! `report`. Everything else is as in `corpus/resolve`.

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

use simulation::{Driver, Set, Thing, World, drive};
use stead_core::call::{Operation, Outcome, Response, Restart, Verification};
use stead_core::event::{Because, Event, Fact};
use stead_core::graph::Graph;
use stead_core::id::NodeId;
use stead_core::run::{Mode, Run, Status, Verify};
use stead_core::text::Sources;
use stead_core::value::Value;
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "run", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    let prepared = prepare::prepare(case)?;
    let Some(graph) = prepared.graph else {
        return Err(brief::findings(&prepared.findings, &prepared.sources));
    };
    let settings = Settings::parse(case.section("mode"))?;
    let mut world = world(case.section("world"))?;
    let sources = Arc::new(prepared.sources);
    let mut run =
        Run::new(Arc::new(graph), Arc::clone(&sources), settings.mode, prepared.facts, Arc::new(seal::Legible));
    let mut events = Vec::new();
    drive(
        &mut run,
        &mut world,
        &mut Driver {
            width: settings.width,
            pick: &mut |count| if settings.last_first { count - 1 } else { 0 },
            learn: &|key| prepare::fact(case, key),
            cancel_after: settings.cancel_after,
            observe: &mut |run, _, _, event| events.push(event_line(run.graph(), &sources, event)),
        },
    );
    Ok(vec![("events", events.concat()), ("report", report(&run, &sources))])
}

struct Settings {
    mode: Mode,
    width: usize,
    last_first: bool,
    cancel_after: Option<usize>,
}

impl Settings {
    fn parse(text: &str) -> Result<Self, String> {
        let mut settings = Self { mode: Mode::APPLY, width: 1, last_first: false, cancel_after: None };
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["get"] => settings.mode = Mode::GET,
                ["test"] => settings.mode = Mode::TEST,
                ["plan"] => settings.mode = Mode::PLAN,
                ["apply"] => settings.mode = Mode::APPLY,
                ["lenient"] => settings.mode = Mode { verification: Verify::Lenient, ..Mode::APPLY },
                ["export"] => settings.mode = Mode::EXPORT,
                ["width", number] => settings.width = number.parse().map_err(|_| line.to_owned())?,
                ["last", "first"] => settings.last_first = true,
                ["cancel", "after", number] => {
                    settings.cancel_after = Some(number.parse().map_err(|_| line.to_owned())?);
                }
                _ => return Err(format!("'{line}' is no mode")),
            }
        }
        Ok(settings)
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
        words.try_for_each(|word| option(&mut thing, word)).ok_or_else(|| format!("'{line}' is no thing"))?;
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
        ("restart", "system") => thing.restarts.push(Restart::System("this".to_owned())),
        ("restart", service) => thing.restarts.push(Restart::Service(service.to_owned())),
        ("touches", "anything") => thing.touches = None,
        ("presumes", path) => thing.presumes = Some(path.into()),
        ("touches", paths) => thing.touches = Some(paths.split(',').map(Into::into).collect()),
        _ => return None,
    }
    Some(())
}

fn event_line(graph: &Graph, sources: &Sources, event: &Event) -> String {
    let name = |id: &NodeId| graph.node(*id).name.clone();
    match &event.fact {
        Fact::Began => String::new(),
        Fact::Learned { key, value } => format!("learn {key:?}: {}\n", value.as_ref().map_or_else(Clone::clone, json)),
        Fact::Asked { node, operation, desired, .. } => {
            format!("ask {} {} {}\n", word(*operation), name(node), json(desired))
        }
        Fact::Response { node, answer, .. } => format!("  {} {}\n", name(node), answered(answer)),
        Fact::Opened { node } => format!("open {}\n", name(node)),
        Fact::Closed { node } => format!("close {}\n", name(node)),
        Fact::Skipped { node, because } => format!("skip {}: {}\n", name(node), because_of(graph, *because)),
        Fact::Refused { node, finding } => {
            let finding = brief::findings(std::slice::from_ref(finding), sources);
            format!("refuse {}: {}\n", name(node), finding.trim_end())
        }
        Fact::Unforeseen { node, because } => format!("unforeseen {}: because of {}\n", name(node), name(because)),
        Fact::Cancelled => "cancel\n".to_owned(),
    }
}

fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Get => "get",
        Operation::Test => "test",
        Operation::Set => "set",
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
        Outcome::Failed(failure) => format!("failed: {}", failure.message),
        Outcome::Tested(tested) if tested.in_desired_state => "is in state".to_owned(),
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

fn because_of(graph: &Graph, because: Because) -> String {
    match because {
        Because::Condition => "its condition".to_owned(),
        Because::Need(need) => format!("it needs {}", graph.node(need).name),
        Because::Container(container) => format!("it is within {}", graph.node(container).name),
        Because::Cancelled => "cancelled".to_owned(),
    }
}

fn report(run: &Run, sources: &Sources) -> String {
    let (graph, report) = (run.graph(), run.report());
    let mut out: Vec<String> = graph.order.iter().map(|id| status_line(run, *id)).collect();
    let totals = run.totals();
    let counts = [
        (totals.unchanged, "unchanged"),
        (totals.changed, "changed"),
        (totals.drifted, "drifted"),
        (totals.failed, "failed"),
        (totals.skipped, "skipped"),
        (totals.unforeseen, "unforeseen"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    let counts: Vec<String> = counts.collect();
    out.push(format!("total {}\n", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }));
    out.extend(report.restarts.iter().map(|restart| format!("restart {restart:?}\n")));
    for (name, value) in run.outputs() {
        let value = value.as_ref().map_or_else(|finding| finding.brief(sources), json);
        out.push(format!("output {name}: {value}\n"));
    }
    out.concat()
}

fn status_line(run: &Run, id: NodeId) -> String {
    let graph = run.graph();
    let status = match run.report().status(id) {
        Some(Status::Skipped(because)) => format!("skipped: {}", because_of(graph, *because)),
        Some(Status::Unforeseen(by)) => format!("unforeseen because of {}", graph.node(*by).name),
        Some(status) => format!("{status:?}"),
        None => "not settled".to_owned(),
    };
    let depth = std::iter::successors(graph.container(id), |id| graph.container(*id)).count();
    format!("{:indent$}{}: {status}\n", "", graph.node(id).name, indent = 2 * depth)
}
