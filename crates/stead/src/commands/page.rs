//! Pages about runs: what is known of one, for `stead_report`, and the file that it is written to.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use stead_core::call::{Execution, Operation, code};
use stead_core::destruction::Effect;
use stead_core::diag;
use stead_core::event::{Event, Mode, SkipReason, Status};
use stead_core::expr::fact_at;
use stead_core::graph::{Graph, Implied, Role};
use stead_core::history::{AttemptRecord, History, RunEnd};
use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_core::report::Record;
use stead_core::run::Run;
use stead_core::text::Sources;
use stead_core::value::Value;
use stead_core::wire::results::operation_name;
use stead_engine::{Difference, Prepared, Session};
use stead_report::{Act, Attempt, Call, Ending, Instance, Line, Need, Outcome, Page, Parameter, Text};
use stead_resources::builtin;

use super::command_word;
use super::files::RunFile;
use super::ready::Ready;
use super::report::{changes, described, path_of, wording};
use crate::exit::Exit;
use crate::terminal::json;

/// Gathers what a page is about, while the run goes on.
pub(super) struct Writer {
    file: RunFile,
    history: History,
}

impl Writer {
    /// Refuses what could not be written in the end; see [`RunFile::begin`].
    pub(super) fn begin(path: &Path) -> Result<Self, Exit> {
        let file = RunFile::begin(path, "the report", stead_report::BEGIN)?;
        Ok(Self { file, history: History::default() })
    }

    pub(super) fn event(&mut self, event: &Event) {
        self.history.apply(event);
    }

    /// Writes the page, for this user alone.
    pub(super) fn write(self, run: &Run, ready: &Ready) -> Result<(), Exit> {
        self.file.write(&stead_report::html(&of_run(run, &self.history, ready)), 0o600)
    }
}

/// The graph of a document as a drawing, in the colours of a run of it if there is one.
pub(super) fn drawing(prepared: &Prepared, history: Option<&History>) -> String {
    let graph = &*prepared.graph;
    let shown: Vec<NodeId> = graph.iter().map(|(id, _)| id).filter(|id| prepared.is_selected(*id)).collect();
    let places = places(&shown);
    let ended: BTreeMap<_, _> = history
        .into_iter()
        .flat_map(History::instances)
        .map(|(path, record)| {
            ((path.type_name().as_str().to_lowercase(), name_of(path)), outcome(record.status(), record.effect()))
        })
        .collect();
    let coloured = |id: &NodeId| {
        let path = &graph.node(*id).path;
        let known = ended.get(&(path.type_name().as_str().to_lowercase(), name_of(path))).copied();
        let usual = if history.is_some() { Outcome::NotReached } else { Outcome::Unchanged };
        Instance { outcome: known.unwrap_or(usual), ..drawn(graph, *id, &places) }
    };
    let instances = shown.iter().map(coloured).collect();
    let document = Text::from(&prepared.origin);
    let page = history.map_or_else(
        || empty(Act::Read, Ending::Finished, document.clone()),
        |history| of_history(history, document.clone()),
    );
    stead_report::svg(&Page { instances, knows_needs: true, ..page })
}

fn empty(act: Act, ending: Ending, document: Text) -> Page {
    Page {
        act,
        ending,
        document,
        began: None,
        elapsed: Duration::ZERO,
        instances: Vec::new(),
        knows_needs: false,
        facts: Vec::new(),
        parameters: Vec::new(),
        notes: Vec::new(),
        command: Text::default(),
    }
}

/// The places of instances in a page.
type Places = BTreeMap<NodeId, usize>;

fn places(shown: &[NodeId]) -> Places {
    shown.iter().enumerate().map(|(at, id)| (*id, at)).collect()
}

/// An instance of a graph before anything happens to it.
fn drawn(graph: &Graph, id: NodeId, places: &Places) -> Instance {
    let node = graph.node(id);
    let need = |needed: NodeId| {
        let is_implied = graph.implied.contains(&Implied { instance: id, needed });
        Some(Need { instance: *places.get(&needed)?, is_implied })
    };
    Instance {
        name: Text::from(&node.name),
        type_name: Text::from(graph.declaration(id).type_name.value.as_str()),
        path: None,
        outcome: Outcome::Unchanged,
        word: "",
        message: Vec::new(),
        lines: Vec::new(),
        snippet: Vec::new(),
        place: None,
        code: None,
        needs: node.needs.iter().filter_map(|each| need(each.node)).collect(),
        within: graph.container(id).and_then(|container| places.get(&container).copied()),
        held_by: None,
        is_container: matches!(node.role, Role::Container { .. }),
        attempts: Vec::new(),
    }
}

pub(super) fn of_run(run: &Run, history: &History, ready: &Ready) -> Page {
    let Ready { session, prepared, .. } = ready;
    let (graph, report) = (run.graph(), run.report());
    let shown: Vec<NodeId> = graph.iter().map(|(id, _)| id).filter(|id| report.is_selected(*id)).collect();
    let places = places(&shown);
    let instances = shown.iter().map(|id| {
        let record = report.record(*id);
        let known = known(history, (run.mode(), *id), (&graph.node(*id).path, record), &places);
        let place = prepared.sources.place(graph.declaration(*id).name.span);
        Instance {
            lines: lines(run, *id, &known),
            snippet: snippet(record, &prepared.sources),
            place: Some(Text::from(place.to_string())),
            ..merged(drawn(graph, *id, &places), known)
        }
    });
    Page {
        instances: instances.collect(),
        knows_needs: true,
        facts: facts(session, prepared, run.mode()),
        parameters: parameters(prepared),
        notes: report.restarts.iter().map(|restart| Text::from(super::report::restart(restart, run.mode()))).collect(),
        command: Text::from(match run.mode() {
            // Another apply would do something else.
            Mode::APPLY => "stead history show last".to_owned(),
            mode => format!("stead {} {}", command_word(mode), prepared.origin),
        }),
        ..of_history(history, Text::from(&prepared.origin))
    }
}

/// What is the same of every run.
fn of_history(history: &History, document: Text) -> Page {
    let mode = history.report.header.as_ref().map(|header| header.mode);
    let act = match mode {
        Some(Mode::PLAN) => Act::Plan,
        Some(mode) if mode.operation == Operation::Test => Act::Check,
        Some(mode) if mode.operation == Operation::Get => Act::Read,
        _ => Act::Apply,
    };
    let ending = if history.end() == RunEnd::Finished { Ending::Finished } else { Ending::Early };
    Page { began: history.report.began, elapsed: history.elapsed(), ..empty(act, ending, document) }
}

/// The page of a recorded run; what it needed was not recorded.
pub(super) fn of_recorded(id: &str, history: &History, is_running: bool) -> Page {
    let mode = history.report.header.as_ref().map_or(Mode::APPLY, |header| header.mode);
    let origin = history.report.header.as_ref().map(|header| Text::from(&header.origin)).unwrap_or_default();
    let shown: Vec<NodeId> = history.instances().map(|(path, _)| path.node()).collect();
    let places = places(&shown);
    let instances = history.instances().map(|(path, record)| {
        let known = known(history, (mode, path.node()), (path, record), &places);
        let built_in = builtin(path.type_name());
        let difference = Difference::of_record(record, built_in).filter(|_| known.outcome.is_change());
        let what_if = record.changed().map(|changed| &*changed.what_if);
        let lines = if known.outcome.is_change() {
            described(difference.as_ref(), record.effects(), what_if, built_in)
        } else {
            Vec::new()
        };
        Instance { lines, ..known }
    });
    let mut page = of_history(history, origin);
    page.instances = instances.collect();
    page.facts = vec![("Run", Text::from(id))];
    page.command = Text::from(format!("stead history show {id}"));
    if is_running {
        page.ending = Ending::Running;
    }
    page
}

/// What the events tell of an instance.
fn known(
    history: &History,
    (mode, id): (Mode, NodeId),
    (path, record): (&InstancePath, &Record),
    places: &Places,
) -> Instance {
    let status = record.status();
    let (_, word, _) =
        status.map_or((" ", "not reached", anstyle::AnsiColor::White), |status| wording(mode, status, record.effect()));
    let held_by = match status {
        Some(Status::Skipped(SkipReason::Need(other) | SkipReason::Container(other))) => places.get(&other.node()),
        _ => None,
    };
    let message = match status {
        Some(Status::Unknown(other)) => Some(format!("until {} has been changed", other.label())),
        _ => record.why_ended(),
    };
    let kind = record.failure().map(|failure| code(&failure.kind).id);
    Instance {
        name: Text::from(name_of(path)),
        type_name: Text::from(path.type_name().as_str()),
        path: path_of(path, record.desired.as_deref()).map(Text::from),
        outcome: outcome(status, record.effect()),
        word,
        message: message.iter().flat_map(|text| text.trim_end().lines()).map(Text::from).collect(),
        lines: Vec::new(),
        snippet: Vec::new(),
        place: None,
        code: kind.or(record.finding().map(|finding| finding.code.id)),
        needs: Vec::new(),
        within: path.container().and_then(|container| places.get(&container.node()).copied()),
        held_by: held_by.copied(),
        is_container: history.is_container(id),
        attempts: attempts(history.attempts(id), history.report.began),
    }
}

/// The name, behind those of what it is nested in.
fn name_of(path: &InstancePath) -> String {
    let mut names: Vec<&str> = path.outward().map(|path| &**path.name()).collect();
    names.reverse();
    names.join(" / ")
}

/// What the graph knows, and what the events say.
fn merged(graph: Instance, known: Instance) -> Instance {
    Instance { needs: graph.needs, within: graph.within, is_container: graph.is_container, ..known }
}

fn outcome(status: Option<&Status>, effect: Option<Effect>) -> Outcome {
    match status {
        None => Outcome::NotReached,
        Some(Status::Read | Status::InState) => Outcome::Unchanged,
        Some(Status::Drifted) => Outcome::Drifted,
        Some(Status::Failed) => Outcome::Failed,
        Some(Status::Pending) => Outcome::Pending,
        Some(Status::Skipped(_)) => Outcome::Skipped,
        Some(Status::Unknown(_) | Status::Undetermined) => Outcome::Unknown,
        Some(Status::Changed) => match effect.unwrap_or(Effect::Change) {
            Effect::Create => Outcome::Created,
            Effect::Change => Outcome::Changed,
            Effect::Remove => Outcome::Removed,
            Effect::Replace => Outcome::Replaced,
        },
    }
}

fn lines(run: &Run, id: NodeId, known: &Instance) -> Vec<Line> {
    if known.outcome.is_change() { changes(run, id) } else { Vec::new() }
}

/// What is wrong in the document, as a terminal shows it.
fn snippet(record: &Record, sources: &Sources) -> Vec<Text> {
    let finding = record.finding().filter(|_| record.status() == Some(&Status::Failed));
    let snippet = finding.map(|finding| diag::snippet(finding, sources, false)).unwrap_or_default();
    snippet.lines().map(Text::from).collect()
}

fn attempts(attempts: &[AttemptRecord], began: Option<Timestamp>) -> Vec<Attempt> {
    let since = |at: Timestamp| Duration::try_from(at - began.unwrap_or(at)).unwrap_or_default();
    let attempt = |attempt: &AttemptRecord| Attempt {
        waited: attempt.waited.unwrap_or_default(),
        calls: attempt
            .calls
            .iter()
            .map(|call| Call {
                operation: operation_name(call.operation),
                changes: matches!(call.operation, Operation::Set | Operation::Delete)
                    && call.execution == Execution::Actual,
                began: since(call.began),
                elapsed: call.elapsed.unwrap_or_default(),
            })
            .collect(),
    };
    attempts.iter().map(attempt).collect()
}

/// The parameters of the document, with secrets covered.
fn parameters(prepared: &Prepared) -> Vec<Parameter> {
    let Some(scope) = prepared.graph.scopes.first() else { return Vec::new() };
    let is_secret = |name: &str| {
        let declared = scope.document.parameters.iter().find(|parameter| parameter.name.value == name);
        declared.is_some_and(|parameter| parameter.data_type.value.is_secure())
    };
    let parameter = |(name, value): (&String, &Value)| Parameter {
        name: Text::from(name),
        value: (!is_secret(name) && !value.has_sealed())
            .then(|| Text::from(&*diag::covered(&json(&value.to_redacted_json())))),
        is_supplied: prepared.supplied.values.contains_key(name),
    };
    scope.parameters.iter().map(parameter).collect()
}

/// What a run was about.
fn facts(session: &Session, prepared: &Prepared, mode: Mode) -> Vec<(&'static str, Text)> {
    let fact = |path: &str| {
        let found = fact_at(session.machine().facts().ok()?, path).ok()?;
        found.as_str().map(str::to_owned)
    };
    let system = fact("os.distro.description").or_else(|| fact("os.name"));
    let machine = [fact("networking.hostname"), system].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let digest = prepared.digest();
    let root = session.system_root().map(|root| root.display().to_string());
    let all = [
        ("Machine", Some(machine)),
        ("System root", root),
        ("Document", Some(format!("{}, {}", prepared.origin, digest))),
        ("Operation", Some(command_word(mode).to_owned())),
        ("Program", Some(format!("stead {}", env!("CARGO_PKG_VERSION")))),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, Text::from(value?)))).collect()
}
