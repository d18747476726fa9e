//! The expectations of a test, compared with the outcome.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use stead_core::destruction::Effect;
use stead_core::diag::{Diagnostic, did_you_mean, nearest, snippet};
use stead_core::event::{SkipReason, Status};
use stead_core::graph::{Graph, Node, Role};
use stead_core::id::NodeId;
use stead_core::run::Run;
use stead_core::text::{Sources, Span, Spanned};
use stead_core::value::REDACTED;
use stead_core::visible::visible;
use stead_core::wire::results::reason;
use stead_engine::Session;
use stead_host::redactor::Redactor;
use stead_system::fs::{FileKind, SystemRoot, format_mode};

use super::super::values;
use super::file::{Expected, ExpectedFile, ExpectedPlan, KINDS, Planned};
use crate::terminal::json;

/// Something that is not as a test expects.
pub(super) struct Miss {
    /// Where the test says so.
    pub(super) span: Span,
    /// The fact; further lines show it.
    pub(super) text: String,
}

impl Miss {
    fn at(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }
}

/// Covers the secrets of a test in what is said of it, short ones as well.
#[derive(Default)]
pub(super) struct Cover(Box<Redactor>);

impl Cover {
    /// For the secrets that a session holds now.
    pub(super) fn of(session: &Session) -> Self {
        Self(Box::new(session.vault().thorough()))
    }

    /// Returns whether a text has a secret in it.
    pub(super) fn is_needed(&self, text: &str) -> bool {
        self.0.occurs_in(text)
    }

    /// A message without secrets; those of up to three letters are covered only where they are all of it.
    pub(super) fn message(&self, text: &str) -> String {
        self.0.scrub(text).into_owned()
    }

    /// The content of a file without secrets; nothing of it where one is too short to be found in it.
    fn content(&self, text: &str) -> String {
        let covered = self.message(text);
        if self.is_needed(&covered) { REDACTED.to_owned() } else { covered }
    }
}

/// The largest file that is compared, in bytes.
const MAX_SIZE: u64 = 16 << 20;

/// Compares the findings about a document with those that are expected; without such, errors alone are wrong.
pub(super) fn findings(
    expected: Option<&Spanned<Vec<Spanned<String>>>>,
    found: &[Diagnostic],
    sources: &Sources,
) -> Vec<Miss> {
    let stated = expected.map(|stated| &*stated.value).unwrap_or_default();
    let is_expected = |finding: &&Diagnostic| stated.iter().any(|code| code.value == finding.code.id);
    let is_wrong =
        |finding: &&Diagnostic| expected.is_some() || stead_core::diag::any_error(std::slice::from_ref(finding));
    let unexpected = found.iter().filter(|finding| !is_expected(finding)).filter(is_wrong);
    let unexpected = unexpected.map(|finding| {
        let at = expected.map(|stated| stated.span).or(finding.span).unwrap_or_default();
        Miss::at(at, snippet(finding, sources, false).trim_end())
    });
    let missing = stated.iter().filter(|code| found.iter().all(|finding| finding.code.id != code.value));
    let missing = missing.map(|code| Miss::at(code.span, format!("expected finding {} was not reported", code.value)));
    unexpected.chain(missing).collect()
}

/// The names of instances, as tests write them.
fn names_of(graph: &Graph, id: NodeId) -> [String; 3] {
    let node = graph.node(id);
    let mut names: Vec<&str> = node.path.outward().map(|path| &**path.name()).collect();
    names.reverse();
    [node.name.to_string(), names.join("/"), graph.id_of(id).to_string()]
}

fn named<'g>(graph: &'g Graph, name: &'g str) -> impl Iterator<Item = NodeId> + 'g {
    graph.iter().map(|(id, _)| id).filter(move |id| names_of(graph, *id).iter().any(|known| known == name))
}

/// The instances that a test names and the document does not have.
pub(super) fn unknown_names(expected: &Expected, graph: &Graph) -> Vec<Miss> {
    let planned: Vec<&Spanned<String>> = match &expected.plan {
        Some(ExpectedPlan::Instances(stated)) => stated.iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    };
    let stated = planned.into_iter().chain(expected.failures.iter().map(|(name, _)| name));
    let unknown = stated.filter(|name| named(graph, &name.value).next().is_none());
    let miss = |name: &Spanned<String>| {
        let known: Vec<String> = graph.iter().flat_map(|(id, _)| names_of(graph, id)).collect();
        let near = nearest(&name.value, known.iter().map(String::as_str));
        let near = near.map(|near| format!("; {}", did_you_mean(near))).unwrap_or_default();
        Miss::at(name.span, format!("the document has no instance '{}'{near}", visible(&name.value)))
    };
    unknown.map(miss).collect()
}

/// The outcome of an instance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Became {
    Planned(Planned),
    Failed,
    NotRun,
}

impl Became {
    fn of(run: &Run, id: NodeId) -> Self {
        let record = run.report().record(id);
        Self::Planned(match record.status() {
            None | Some(Status::Skipped(SkipReason::NotSelected)) => return Self::NotRun,
            Some(Status::Failed | Status::Pending) => return Self::Failed,
            Some(Status::Skipped(_)) => Planned::Skipped,
            Some(Status::Unknown(_) | Status::Undetermined) => Planned::Unknown,
            Some(Status::InState | Status::Read) => Planned::Unchanged,
            Some(Status::Changed | Status::Drifted) => match record.effect().unwrap_or(Effect::Change) {
                Effect::Create => Planned::Create,
                Effect::Change => Planned::Change,
                Effect::Replace => Planned::Replace,
                Effect::Remove => Planned::Remove,
            },
        })
    }

    fn word(self) -> &'static str {
        match self {
            Self::Planned(planned) => planned.word(),
            Self::Failed => "failed",
            Self::NotRun => "not run",
        }
    }

    fn is_change(self) -> bool {
        matches!(self, Self::Planned(Planned::Create | Planned::Change | Planned::Replace | Planned::Remove))
    }

    fn may_be_change(self) -> bool {
        self.is_change() || self == Self::Planned(Planned::Unknown)
    }
}

/// The instances that do something themselves: what is nested in a container is looked at by itself.
fn instances(graph: &Graph) -> impl Iterator<Item = NodeId> + '_ {
    graph.iter().filter(|(_, node)| node.role == Role::Instance).map(|(id, _)| id)
}

/// Returns whether an instance failed, and not because of one that is nested in it: that is looked at by itself.
fn fails(run: &Run, id: NodeId) -> bool {
    let has_failed = |id: NodeId| Became::of(run, id) == Became::Failed;
    has_failed(id) && !run.graph().members(id).iter().any(|nested| has_failed(*nested))
}

/// Compares a plan with what is expected of it.
pub(super) fn plan(expected: Option<&ExpectedPlan>, plan: &Run, left_out: &BTreeSet<NodeId>) -> Vec<Miss> {
    let graph = plan.graph();
    match expected {
        None => Vec::new(),
        Some(ExpectedPlan::Unchanged(span)) => {
            let changes =
                instances(graph).map(|id| (id, Became::of(plan, id))).filter(|(_, became)| became.may_be_change());
            changes
                .map(|(id, became)| {
                    Miss::at(*span, format!("the plan shows '{}' of {}", became.word(), label(graph, id)))
                })
                .collect()
        }
        Some(ExpectedPlan::Instances(stated)) => {
            let pairs =
                stated.iter().flat_map(|(name, planned)| named(graph, &name.value).map(move |id| (id, planned)));
            let other = pairs.filter(|(id, planned)| Became::of(plan, *id) != Became::Planned(planned.value));
            let miss = |(id, planned): (NodeId, &Spanned<Planned>)| {
                let became = Became::of(plan, id);
                let why = if left_out.contains(&id) {
                    ", because it would change the machine that runs the test"
                } else {
                    ""
                };
                let (label, word) = (label(graph, id), became.word());
                Miss::at(
                    planned.span,
                    format!("expected '{}' for {label}, but the plan shows '{word}'{why}", planned.value.word()),
                )
            };
            other.map(miss).collect()
        }
    }
}

/// The change that a plan shows of each instance, by the shortest name that no other has; not of those that are not run or fail.
pub(super) fn shown(plan: &Run) -> Vec<(String, Planned)> {
    let graph = plan.graph();
    let shown = |id: NodeId| {
        let Became::Planned(planned) = Became::of(plan, id) else { return None };
        let is_alone = |name: &&String| named(graph, name).count() == 1;
        let names = names_of(graph, id);
        Some((names.iter().find(is_alone)?.clone(), planned))
    };
    instances(graph).filter_map(shown).collect()
}

/// The instances that nobody could carry out, since they depend on the state of what is not run.
pub(super) fn undecided(apply: &Run) -> BTreeMap<NodeId, String> {
    let graph = apply.graph();
    let undecided = instances(graph).filter(|id| Became::of(apply, *id) == Became::Planned(Planned::Unknown));
    undecided.map(|id| (id, format!("{}, which refers to what is not run", label(graph, id)))).collect()
}

/// Returns what failed in a run, with its message.
pub(super) fn failed(run: &Run) -> Vec<(String, String)> {
    let graph = run.graph();
    let failed = graph.iter().map(|(id, _)| id).filter(|id| fails(run, *id));
    failed.map(|id| (names_of(graph, id)[1].clone(), reason(graph, run.report(), id).unwrap_or_default())).collect()
}

/// Compares what was done with the plan of it, and failures with those that are expected.
pub(super) fn came_true(
    (plan, apply): (&Run, &Run),
    expected: &Expected,
    (left_out, root): (&BTreeSet<NodeId>, &Path),
) -> Vec<Miss> {
    let graph = apply.graph();
    let mut misses = Vec::new();
    for (id, node) in graph.iter() {
        let names = names_of(graph, id);
        let stated: Vec<_> = expected.failures.iter().filter(|(name, _)| names.contains(&name.value)).collect();
        let (planned, became) = (Became::of(plan, id), Became::of(apply, id));
        misses.extend(stated.iter().filter_map(|(name, message)| {
            if left_out.contains(&id) {
                let text =
                    format!("{} is not run, because it would change the machine that runs the test", label(graph, id));
                return Some(Miss::at(name.span, text));
            }
            if became != Became::Failed {
                return Some(Miss::at(
                    name.span,
                    format!("expected {} to fail, but it ended as '{}'", label(graph, id), became.word()),
                ));
            }
            let why = reason(graph, apply.report(), id).unwrap_or_default().replace(&root.display().to_string(), "");
            let text = || format!("{} failed with another message: {}", label(graph, id), lines(&why));
            (!why.contains(&message.value)).then(|| Miss::at(message.span, text()))
        }));
        if !stated.is_empty() || left_out.contains(&id) {
            continue;
        }
        let at = graph.declaration(id).name.span;
        if fails(apply, id) {
            let why = reason(graph, apply.report(), id).unwrap_or_default();
            misses.push(Miss::at(at, format!("{} failed: {}", label(graph, id), lines(&why))));
        } else if node.role == Role::Instance
            && planned != Became::Planned(Planned::Unknown)
            && planned != became
            && !is_held_up(apply, id)
        {
            let (planned, became) = (planned.word(), became.word());
            let text = format!("{}: planned '{planned}', but the run ended as '{became}'", label(graph, id));
            misses.push(Miss::at(at, text));
        }
    }
    misses
}

/// Returns whether an instance was not begun because another failed.
fn is_held_up(run: &Run, id: NodeId) -> bool {
    matches!(run.report().status(id), Some(Status::Skipped(SkipReason::Need(_) | SkipReason::Container(_))))
}

/// The changes of a second run, which are to be none.
pub(super) fn second((first, again): (&Run, &Run)) -> Vec<Miss> {
    let graph = again.graph();
    let of = |(id, node): (NodeId, &Node)| {
        let became = Became::of(again, id);
        let text = if fails(again, id) && Became::of(first, id) != Became::Failed {
            let why = reason(graph, again.report(), id).unwrap_or_default();
            format!("{} failed when it was applied again: {}", label(graph, id), lines(&why))
        } else if node.role == Role::Instance && became.is_change() && !graph.is_asserted(id) {
            format!("{} is not idempotent: the second run shows '{}'", label(graph, id), became.word())
        } else {
            return None;
        };
        Some(Miss::at(graph.declaration(id).name.span, text))
    };
    graph.iter().filter_map(of).collect()
}

/// Instances that are not in their desired state afterwards.
pub(super) fn in_state(check: &Run, left_out: &BTreeSet<NodeId>) -> Vec<Miss> {
    let graph = check.graph();
    let of = |(id, node): (NodeId, &Node)| {
        let why = match check.report().status(id) {
            Some(Status::InState | Status::Read) => return None,
            _ if node.role != Role::Instance && !fails(check, id) => return None,
            Some(Status::Drifted) => {
                let tested = check.report().record(id).tested.as_ref();
                let differing = tested.map(|tested| tested.differing.join(", ")).unwrap_or_default();
                format!("is not in its desired state: {} differs", visible(&differing))
            }
            Some(Status::Failed | Status::Pending) => {
                format!("cannot be compared: {}", lines(&reason(graph, check.report(), id).unwrap_or_default()))
            }
            Some(Status::Undetermined) => {
                format!(
                    "may be in its desired state or not: {}",
                    lines(&reason(graph, check.report(), id).unwrap_or_default())
                )
            }
            _ if left_out.contains(&id) => {
                "cannot be compared, because it would change the machine that runs the test".to_owned()
            }
            _ => "was not compared".to_owned(),
        };
        Some(Miss::at(graph.declaration(id).name.span, format!("{} {why}", label(graph, id))))
    };
    graph.iter().filter_map(of).collect()
}

/// Compares outputs.
pub(super) fn outputs(expected: &Expected, apply: &Run) -> Vec<Miss> {
    let found = if expected.outputs.is_empty() { Vec::new() } else { apply.outputs() };
    let declared = apply.graph().scopes.first().map(|scope| &*scope.document.outputs).unwrap_or_default();
    let is_secure =
        |name: &str| declared.iter().any(|each| each.name.value == name && each.data_type.value.is_secure());
    let of = |(name, wanted): &(Spanned<String>, stead_core::value::Value)| {
        let text = match found.iter().find(|(known, _)| *known == name.value) {
            None if is_secure(&name.value) => {
                format!("the output '{}' is secret and cannot be compared", visible(&name.value))
            }
            None => format!("the document has no output '{}'", visible(&name.value)),
            Some((_, Err(finding))) => {
                format!("the output '{}' cannot be computed: {}", visible(&name.value), visible(&finding.message))
            }
            Some((_, Ok(value))) if value == wanted => return None,
            Some((_, Ok(value))) => {
                format!("the output '{}' is {}", visible(&name.value), json(&value.to_redacted_json()))
            }
        };
        Some(Miss::at(name.span, text))
    };
    expected.outputs.iter().filter_map(of).collect()
}

/// Compares files with what is expected at their paths.
pub(super) fn files(expected: &[(Spanned<String>, ExpectedFile)], root: &Path, cover: &Cover) -> Vec<Miss> {
    let root = SystemRoot::below(root);
    expected.iter().flat_map(|(path, wanted)| file(path, wanted, &root, cover)).collect()
}

fn file(path: &Spanned<String>, wanted: &ExpectedFile, root: &SystemRoot, cover: &Cover) -> Vec<Miss> {
    let shown = format!("/{}", visible(&path.value));
    let Some(status) = root.at(&path.value).status() else {
        let miss = Miss::at(path.span, format!("{shown} does not exist"));
        return wanted.exists.then_some(miss).into_iter().collect();
    };
    let kind = match status.kind {
        FileKind::File => KINDS[0],
        FileKind::Directory => KINDS[1],
        FileKind::Symlink => KINDS[2],
        other @ FileKind::Special => other.word(),
    };
    if !wanted.exists {
        return vec![Miss::at(path.span, format!("{shown} exists ({kind})"))];
    }
    let mut misses = Vec::new();
    if let Some(stated) = wanted.kind.as_ref().filter(|stated| stated.value != kind) {
        misses.push(Miss::at(stated.span, format!("{shown} is a {kind}")));
    }
    let is_link = status.kind == FileKind::Symlink;
    if let Some(mode) = wanted.mode.as_ref().filter(|_| is_link) {
        misses.push(Miss::at(mode.span, format!("{shown} is a link, which has no mode")));
    }
    if let Some(mode) = wanted.mode.as_ref().filter(|mode| !is_link && mode.value != status.mode & 0o7777) {
        misses.push(Miss::at(mode.span, format!("{shown} has the mode {}", format_mode(status.mode & 0o7777))));
    }
    if let Some(target) = &wanted.target {
        let found = root.at(&path.value).link_target().map(|target| target.display().to_string());
        if found.as_deref() != Some(&*target.value) {
            let found = found.map_or_else(|| format!("is a {kind}"), |found| format!("leads to {}", visible(&found)));
            misses.push(Miss::at(target.span, format!("{shown} {found}")));
        }
    }
    misses.extend(content((path, &shown), wanted, root, cover));
    misses
}

fn content(
    (path, shown): (&Spanned<String>, &str),
    wanted: &ExpectedFile,
    root: &SystemRoot,
    cover: &Cover,
) -> Vec<Miss> {
    if wanted.content.is_none() && wanted.contains.is_empty() && wanted.lacks.is_empty() {
        return Vec::new();
    }
    let bytes = match root.read(&path.value, MAX_SIZE) {
        Ok(Some(content)) => content.bytes,
        Ok(None) => return vec![Miss::at(path.span, format!("{shown} leads to nothing"))],
        Err(error) => return vec![Miss::at(path.span, stead_engine::error_chain(&error))],
    };
    let text: Cow<'_, str> = String::from_utf8_lossy(&bytes);
    let mut misses = Vec::new();
    if let Some(content) = wanted.content.as_ref().filter(|content| content.value.as_bytes() != bytes) {
        let difference = values::shown(&values::text(&cover.content(&content.value), &cover.content(&text)));
        misses.push(Miss::at(
            content.span,
            format!("{shown} has different content (- expected, + actual):\n{}", difference.trim_end()),
        ));
    }
    let lacking = wanted.contains.iter().filter(|part| !text.contains(&part.value));
    misses.extend(
        lacking.map(|part| Miss::at(part.span, format!("{shown} does not contain {}", quoted(&part.value, cover)))),
    );
    let present = wanted.lacks.iter().filter(|part| text.contains(&part.value));
    misses.extend(present.map(|part| Miss::at(part.span, format!("{shown} contains {}", quoted(&part.value, cover)))));
    misses
}

/// A part of a text, in one line.
fn quoted(text: &str, cover: &Cover) -> String {
    format!("'{}'", visible(cover.content(text).trim_end()).replace('\n', "\\n"))
}

fn label(graph: &Graph, id: NodeId) -> String {
    visible(&graph.label(id)).into_owned()
}

/// A message of several lines, as it stands below a line.
fn lines(text: &str) -> String {
    text.trim_end().lines().map(visible).collect::<Vec<_>>().join("\n    ")
}
