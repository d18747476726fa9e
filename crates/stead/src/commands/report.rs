//! The report of a run for users: a line for each instance with what differs, and a summary.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anstyle::AnsiColor;
use serde_json::{Value as Json, json as as_json};
use stead_core::call::{FailureKind, Operation, Restart, code};
use stead_core::destruction::{Effect, Effects};
use stead_core::diag;
use stead_core::diff::Change;
use stead_core::event::{Event, EventKind, SkipReason};
use stead_core::event::{Mode, Status};
use stead_core::graph::{Role, stated_at};
use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_core::report::Totals;
use stead_core::run::{Retention, Run};
use stead_core::text::Sources;
use stead_core::value::{Value, pointer};
use stead_core::visible::visible;
use stead_core::wire::results::{duration, left_out, reason};
use stead_engine::{Difference, Summary, printed};
use stead_report::Line;
use stead_resources::{BuiltIn, builtin_of};

use super::effects;
use super::values;
use crate::request::{Detail, View, Volume};
use crate::terminal::{
    Output, Progress, complain, complain_coloured, is_coloured, is_watched, json, painted, plain, print, print_coloured,
};

/// What is printed, and how.
pub(super) struct Style {
    /// Whether instances are printed as text at all.
    text: bool,
    volume: Volume,
    detail: Detail,
    progress: bool,
    /// Whether it is said on standard error that an instance is pending: text is printed, and no events.
    announces: bool,
    mode: Mode,
    print: fn(&str),
}

impl Style {
    pub(super) fn new(view: View, mode: Mode) -> Self {
        let View { volume, detail, .. } = view;
        let text = view.output == Output::Text;
        let announces = text && !view.events;
        let progress = announces && volume > Volume::Quiet && is_watched();
        Self { text, volume, detail, progress, announces, mode, print: print_coloured }
    }

    /// What a run must keep to be printed like this; all of it if it is stored as well.
    pub(super) fn retention(&self, is_stored: bool) -> Retention {
        let is_read = is_stored || !self.announces || self.volume == Volume::Verbose;
        if is_read { Retention::Everything } else { Retention::Changes }
    }

    /// Of the plan that a question is about: the question is on standard error, and so is the plan.
    pub(super) fn question(view: View) -> Self {
        let volume = Volume::Usual;
        Self { text: true, volume, print: complain_coloured, ..Self::new(view, Mode::PLAN) }
    }
}

/// Prints instances while a run goes on, and the rest at its end.
pub(super) struct Printer {
    style: Style,
    sources: Arc<Sources>,
    bar: Option<Progress>,
    /// The instances of which it was said that they are pending.
    announced: BTreeSet<NodeId>,
    /// How many instances were left out by a condition so far.
    left_out: Cell<usize>,
}

/// So many instances that a condition left out are named.
const MOST_LEFT_OUT: usize = 10;

impl Printer {
    pub(super) fn new(style: Style, sources: Arc<Sources>) -> Self {
        let bar = style.progress.then(Progress::begin);
        Self { style, sources, bar, announced: BTreeSet::new(), left_out: Cell::new(0) }
    }

    /// An apply is printed as it goes, so that what was done is known even if the rest is cut off; plans and checks are
    /// printed at the end, in the order of the graph.
    pub(super) fn event(&mut self, run: &Run, event: &Event) {
        if let EventKind::RetryScheduled { instance, until } = &event.kind {
            self.waits(run, instance.node(), Duration::try_from(*until - event.at).unwrap_or_default());
        }
        if let (Some(bar), EventKind::CallStarted { instance, .. }) = (&self.bar, &event.kind) {
            let heading = heading(instance, run.report().record(instance.node()).desired.as_deref());
            bar.starts(run.graph().nodes.len(), instance.node().index(), visible(&heading).into_owned());
        }
        let Some(node) = super::settled(event) else { return };
        if let Some(bar) = &self.bar {
            bar.ends(node.index());
            bar.step(run.graph().nodes.len(), visible(&run.graph().node(node).name).into_owned());
        }
        if self.style.text && self.style.mode == Mode::APPLY {
            self.print(run, node);
        }
    }

    /// What is waited for, how long, and why. Where progress is not shown, only the first time unless asked for more.
    fn waits(&mut self, run: &Run, node: NodeId, wait: Duration) {
        let is_first = self.announced.insert(node);
        let is_printed = match self.style.volume {
            _ if self.bar.is_some() => true,
            Volume::Quiet => false,
            Volume::Usual => self.style.announces && is_first,
            Volume::Verbose => self.style.announces,
        };
        if !is_printed {
            return;
        }
        let record = run.report().record(node);
        let why = record.response.as_ref().and_then(|response| response.outcome.why_not_reached());
        let why = why.as_deref().and_then(|why| why.lines().next()).map(plain).unwrap_or_default();
        let wait = wait.as_secs_f64();
        let wait = if wait < 0.1 { "less than 0.1 s".to_owned() } else { format!("{wait:.1} s") };
        let heading = heading(&run.graph().node(node).path, record.desired.as_deref());
        let line = format!("pending: {heading} runs again in {wait}: {why}");
        match &self.bar {
            Some(bar) => bar.say(line),
            None => complain(&line),
        }
    }

    fn print(&self, run: &Run, node: NodeId) {
        let lines = self.lines(run, node);
        if lines.is_empty() {
            return;
        }
        match &self.bar {
            Some(bar) => bar.beside(|| (self.style.print)(&lines)),
            None => (self.style.print)(&lines),
        }
    }

    /// The lines about one instance; empty where it is not printed.
    fn lines(&self, run: &Run, node: NodeId) -> String {
        let (graph, record) = (run.graph(), run.report().record(node));
        let Some(status) = record.status() else { return String::new() };
        let container = matches!(graph.node(node).role, Role::Container { .. });
        // A container is the sum of what is nested in it, which is printed by itself; only its failure is news.
        let printed = match status {
            Status::Failed | Status::Pending => true,
            Status::Read | Status::InState => self.style.volume == Volume::Verbose && !container,
            // It is stated, and whoever reads that asks why nothing is done.
            Status::Skipped(SkipReason::Condition) => {
                self.style.volume > Volume::Quiet && !container && self.counts_among_first()
            }
            Status::Skipped(reason) if !reason.blocks() => self.style.volume == Volume::Verbose && !container,
            Status::Skipped(_) | Status::Changed | Status::Drifted | Status::Unknown(_) | Status::Undetermined => {
                self.style.volume > Volume::Quiet && !container
            }
        };
        if !printed {
            return String::new();
        }
        let (sign, mut word, paint) = wording(self.style.mode, status, record.effect());
        if *status == Status::Drifted && run.due(node).is_some() {
            word = "due";
        }
        let heading = heading(&graph.node(node).path, record.desired.as_deref());
        let lines = headline((sign, word, paint), &heading, &self.reason(run, node, status));
        if self.style.detail == Detail::Full { lines + &self.body(run, node, status) } else { lines }
    }

    /// Counts an instance that a condition left out, and returns whether it is one of those that are named.
    fn counts_among_first(&self) -> bool {
        self.left_out.set(self.left_out.get() + 1);
        self.left_out.get() <= MOST_LEFT_OUT || self.style.volume == Volume::Verbose
    }

    /// The line about those that a condition left out and that were not named.
    fn more_left_out(&self) -> String {
        let more = self.left_out.replace(0).saturating_sub(MOST_LEFT_OUT);
        let is_said = more > 0 && self.style.volume != Volume::Verbose;
        if is_said {
            format!("> {more} more skipped: their conditions are false; '-v' names each\n")
        } else {
            String::new()
        }
    }

    fn reason(&self, run: &Run, node: NodeId, status: &Status) -> String {
        let graph = run.graph();
        match status {
            Status::Unknown(because) => until(&graph.label(because.node())),
            Status::Skipped(SkipReason::Need(other)) => {
                format!(": it depends on {}, which {}", visible(&graph.label(other.node())), became(run, other.node()))
            }
            Status::Skipped(SkipReason::Container(other)) => {
                format!(
                    ": it is nested in {}, which {}",
                    visible(&graph.label(other.node())),
                    became(run, other.node())
                )
            }
            Status::Skipped(reason) => {
                let why = left_out(graph, run.report(), node).map(|why| format!(": {}", visible(&why)));
                // What is nested was left out with what is around it.
                let outward = std::iter::successors(Some(node), |id| graph.container(*id));
                let conditions = outward.filter(|_| *reason == SkipReason::Condition);
                let condition = conditions.filter_map(|id| graph.declaration(id).condition.as_ref()).last();
                let place = condition.map(|condition| format!(" ({})", self.sources.place(condition.span)));
                why.map(|why| why + &place.unwrap_or_default()).unwrap_or_default()
            }
            Status::Failed | Status::Pending | Status::Undetermined => {
                let why = reason(graph, run.report(), node).unwrap_or_default();
                // The word before it says so already.
                let why = why.strip_prefix("still pending: ").unwrap_or(&why);
                let most = if self.style.detail == Detail::Full { usize::MAX } else { 1 };
                let lines: Vec<_> = why.trim_end().lines().take(most).map(plain).collect();
                format!(": {}", lines.join("\n    "))
            }
            Status::Drifted | Status::Changed if run.mode() != Mode::APPLY && run.due(node).is_some() => {
                format!(": {}", visible(&run.due(node).unwrap_or_default()))
            }
            // Of what is to be absent nothing else matters.
            Status::Drifted if run.report().record(node).effect() == Some(Effect::Remove) => String::new(),
            Status::Drifted => match &run.report().record(node).tested {
                Some(tested) if tested.differing.iter().any(|name| name != "_exist") => {
                    format!(": {}", visible(&tested.differing.join(", ")))
                }
                _ => String::new(),
            },
            Status::Changed | Status::InState | Status::Read => String::new(),
        }
    }

    /// What stands below the line: differences, or the place of what is wrong.
    fn body(&self, run: &Run, node: NodeId, status: &Status) -> String {
        let record = run.report().record(node);
        match status {
            Status::Failed => match record.finding() {
                Some(finding) => diag::snippet(finding, &self.sources, is_coloured()),
                None => self.place_of_failure(run, node),
            },
            Status::Changed | Status::Drifted => values::shown(&changes(run, node)) + &self.printed(run, node),
            Status::InState => self.printed(run, node),
            _ => String::new(),
        }
    }

    /// With -v, what a command printed.
    fn printed(&self, run: &Run, node: NodeId) -> String {
        let output = printed(run, node).filter(|_| self.style.volume == Volume::Verbose);
        output.map(|output| values::shown(&values::output(output))).unwrap_or_default()
    }

    fn place_of_failure(&self, run: &Run, node: NodeId) -> String {
        let record = run.report().record(node);
        let instance = run.graph().declaration(node);
        let refused = record.failure().filter(|failure| failure.kind == FailureKind::Invalid);
        let stated = refused.and_then(|failure| failure.property.as_deref()).and_then(|property| {
            let (properties, property) = (instance.properties.as_ref()?, property.trim_start_matches('/'));
            let (_, place) = stated_at(properties, &format!("/{property}"))?;
            Some(format!("'{}' is stated at {}", visible(property), self.sources.place(place?)))
        });
        let place = stated.unwrap_or_else(|| format!("declared at {}", self.sources.place(instance.name.span)));
        let kind = record.failure().map(|failure| &failure.kind);
        let kind = kind.or(record.not_converged().map(|_| &FailureKind::NotConverged));
        let explained = kind.map(|kind| format!(", see stead explain {}", code(kind).id)).unwrap_or_default();
        format!("    {place}{explained}\n")
    }

    /// The last lines, and before them what was not printed as it went.
    pub(super) fn summary(&self, run: &Run, summary: &Summary, elapsed: Duration) {
        self.clear();
        if self.style.mode == Mode::APPLY {
            (self.style.print)(&self.more_left_out());
        } else {
            self.instances(run);
        }
        self.outputs(summary);
        if self.style.volume > Volume::Quiet {
            self.restarts(run);
            print(&still_due(run));
            print(&totals(run.mode(), &summary.totals, elapsed));
            print(&reconciled(run.report().re_runs, summary.given_up));
        }
    }

    /// Takes the progress off the screen.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.clear();
        }
    }

    /// Every instance that is printed, in the order of the graph.
    pub(super) fn instances(&self, run: &Run) {
        self.clear();
        let lines: String = run.graph().order.iter().map(|node| self.lines(run, *node)).collect();
        (self.style.print)(&(lines + &self.more_left_out()));
    }

    fn outputs(&self, summary: &Summary) {
        for (name, value) in &summary.outputs {
            match value {
                Ok(value) if self.style.volume > Volume::Quiet => {
                    print(&format!("output {} = {}\n", visible(name), json(&value.to_redacted_json())));
                }
                Ok(_) => {}
                Err(finding) => print_coloured(&diag::snippet(finding, &self.sources, is_coloured())),
            }
        }
    }

    fn restarts(&self, run: &Run) {
        for restart in &run.report().restarts {
            print(&format!("{}\n", self::restart(restart, self.style.mode)));
        }
    }
}

/// What must be restarted.
pub(super) fn restart(restart: &Restart, mode: Mode) -> String {
    let verb = if mode == Mode::PLAN { "would have" } else { "has" };
    let what = match restart {
        Restart::System(name) => format!("the machine ({})", visible(name)),
        Restart::Service(name) => format!("the service {}", visible(name)),
        Restart::Process { name, id } => format!("the process {} ({id})", visible(name)),
    };
    format!("{what} {verb} to be restarted")
}

/// Lists what an earlier run owes to instances that this one leaves out, one line for each.
fn still_due(run: &Run) -> String {
    let left_out = run.graph().order.iter().filter(|id| !run.report().is_selected(**id));
    let due = left_out.filter_map(|id| Some((run.graph().label(*id), run.due(*id)?)));
    due.fold(String::new(), |all, (label, due)| {
        all + &format!("{} is still due, and was left out: {}\n", visible(&label), visible(&due))
    })
}

/// `Type 'name'`, within what holds it, and where it is if its name does not tell.
pub(super) fn heading(instance: &InstancePath, desired: Option<&Value>) -> String {
    let mut names: Vec<&str> = instance.outward().map(|path| &**path.name()).collect();
    names.reverse();
    let path = desired.and_then(stated_path);
    heading_of(instance.type_name().as_str(), &names, path)
}

fn stated_path(desired: &Value) -> Option<&str> {
    desired.as_object()?.get("path")?.as_str()
}

/// Where an instance is, if its name does not tell.
pub(super) fn path_of<'v>(instance: &InstancePath, desired: Option<&'v Value>) -> Option<&'v str> {
    let tells = |path: &&str| instance.name().split_whitespace().any(|word| word == *path);
    desired.and_then(stated_path).filter(|path| !tells(path))
}

/// Formats what [`heading`] does, from the names of the containers and of the instance, outermost first.
pub(super) fn heading_of(type_name: &str, names: &[&str], path: Option<&str>) -> String {
    let name = names.join(" / ");
    let tells = |path: &str| name.split_whitespace().any(|word| word == path);
    let place = path.filter(|path| !tells(path)).map(|path| format!(" ({path})")).unwrap_or_default();
    plain(&format!("{type_name} '{name}'{place}")).into_owned()
}

/// The first line about an instance.
pub(super) fn headline((sign, word, paint): Wording, heading: &str, reason: &str) -> String {
    painted(paint, &format!("{sign} {heading}")) + &format!("  {word}{reason}\n")
}

/// The reason of what is unknown.
pub(super) fn until(label: &str) -> String {
    format!(" until {} has been changed", visible(label))
}

/// How many instances are listed with the time that they took.
const SLOWEST: usize = 20;

/// The slowest instances, with the time that their calls took. Instances that ran at once are each counted in full.
pub(super) fn timings(run: &Run) -> String {
    let (graph, timed) = (run.graph(), slowest_first(run));
    let total: Duration = timed.iter().map(|(elapsed, _)| *elapsed).sum();
    let slowest = timed.iter().take(SLOWEST).map(|(elapsed, id)| {
        let heading = heading(&graph.node(*id).path, run.report().record(*id).desired.as_deref());
        format!("  {heading} in {}\n", human(*elapsed))
    });
    let slowest: String = slowest.collect();
    let all = diag::counted(timed.len(), "instance");
    format!("Slowest instances:\n{slowest}  total of {all} in {}\n", human(total))
}

/// The same for programs: the paths of instances, and how long each took.
pub(super) fn timings_as_json(run: &Run) -> Json {
    let slowest = slowest_first(run).into_iter().take(SLOWEST);
    slowest.map(|(elapsed, id)| as_json!({ "instance": run.graph().node(id).path.to_string(), "duration": duration(elapsed) })).collect()
}

fn slowest_first(run: &Run) -> Vec<(Duration, NodeId)> {
    let graph = run.graph();
    let is_instance = |id: &NodeId| !matches!(graph.node(*id).role, Role::Container { .. });
    let timed = graph.order.iter().copied().filter(is_instance).map(|id| (run.report().record(id).elapsed, id));
    let mut timed: Vec<(Duration, NodeId)> = timed.filter(|(elapsed, _)| !elapsed.is_zero()).collect();
    timed.sort_by_key(|(elapsed, _)| std::cmp::Reverse(*elapsed));
    timed
}

/// What became of an instance that others wait for.
fn became(run: &Run, node: NodeId) -> &'static str {
    match run.report().status(node) {
        Some(Status::Failed) => "failed",
        Some(Status::Unknown(_) | Status::Undetermined) => "is unknown",
        Some(Status::Pending) => "is still pending",
        _ => "was skipped",
    }
}

/// The sign, the word and the color of how an instance ended.
pub(super) type Wording = (&'static str, &'static str, AnsiColor);

/// How it is said that an instance ended like this.
pub(super) fn wording(mode: Mode, status: &Status, effect: Option<Effect>) -> Wording {
    match status {
        Status::Read => (" ", "read", AnsiColor::White),
        Status::InState => (" ", "unchanged", AnsiColor::White),
        Status::Drifted | Status::Changed => {
            let effect = effect.unwrap_or(Effect::Change);
            let (sign, color) = sign(effect);
            (sign, effect_word(mode, status, effect), color)
        }
        Status::Failed => ("!", "failed", AnsiColor::Red),
        Status::Pending => ("!", "still pending", AnsiColor::Red),
        Status::Skipped(_) => (">", "skipped", AnsiColor::White),
        Status::Unknown(_) | Status::Undetermined => UNKNOWN,
    }
}

/// How it is said that nobody knows what becomes of an instance.
pub(super) const UNKNOWN: Wording = ("?", "unknown", AnsiColor::Cyan);

/// The word for what became of an instance.
pub(super) fn effect_word(mode: Mode, status: &Status, effect: Effect) -> &'static str {
    let (planned, drifted) = (mode == Mode::PLAN, *status == Status::Drifted);
    match effect {
        Effect::Create if drifted => "missing",
        Effect::Remove if drifted => "present, should be absent",
        _ if drifted => "drifted",
        Effect::Create if planned => "to be created",
        Effect::Change if planned => "to be changed",
        Effect::Remove if planned => "to be removed",
        Effect::Replace if planned => "to be replaced",
        Effect::Create => "created",
        Effect::Change => "changed",
        Effect::Remove => "removed",
        Effect::Replace => "replaced",
    }
}

fn sign(effect: Effect) -> (&'static str, AnsiColor) {
    match effect {
        Effect::Create => ("+", AnsiColor::Green),
        Effect::Change => ("~", AnsiColor::Yellow),
        Effect::Remove => ("-", AnsiColor::Red),
        Effect::Replace => ("-/+", AnsiColor::Magenta),
    }
}

/// What differs in an instance, and what comes into being and what is destroyed with it.
pub(super) fn changes(run: &Run, node: NodeId) -> Vec<Line> {
    let record = run.report().record(node);
    let built_in = builtin_of(&run.graph().node(node).manifest);
    let difference = Difference::of(run, node);
    described(difference.as_ref(), record.effects(), Some(&stead_engine::words(run, node)), built_in)
}

/// A difference, and what comes into being and what is destroyed with it.
pub(super) fn described(
    difference: Option<&Difference>,
    effects: Option<&Effects>,
    what_if: Option<&[String]>,
    built_in: Option<&BuiltIn>,
) -> Vec<Line> {
    let listed = effects.map(effects::lines).unwrap_or_default();
    let removes = matches!(difference, Some(Difference { effect: Effect::Remove, .. }));
    // What is listed as gone is not listed once more, property by property, nor in words.
    let properties = difference.into_iter().filter(|_| !removes || listed.is_empty()).flat_map(|each| &each.properties);
    let is_derived = |change: &Change| {
        let property = pointer::steps(&change.path).next().unwrap_or_default();
        built_in.is_some_and(|built_in| built_in.is_derived(&property))
    };
    let reported = properties.filter(|change| !is_derived(change));
    let mut shown: Vec<Line> = reported.flat_map(|change| values::change(change, built_in)).collect();
    if listed.is_empty() {
        shown.extend(difference.map(|difference| words(&difference.words)).unwrap_or_default());
    }
    shown.extend(listed);
    if shown.is_empty() { what_if.map(words).unwrap_or_default() } else { shown }
}

fn words(said: &[String]) -> Vec<Line> {
    said.iter().map(|text| values::said(text)).collect()
}

pub(super) fn totals(mode: Mode, totals: &Totals, elapsed: Duration) -> String {
    let verb = match (mode.operation, mode == Mode::PLAN) {
        (_, true) => "Plan",
        (Operation::Test, _) => "Check",
        _ => "Applied",
    };
    format!("{verb}: {} in {}\n", counts(mode, totals), human(elapsed))
}

/// How many instances ended how, in words.
pub(crate) fn counts(mode: Mode, totals: &Totals) -> String {
    let [create, change, remove, replace, unchanged] = match (mode.operation, mode == Mode::PLAN) {
        (_, true) => ["to create", "to change", "to remove", "to replace", "in desired state"],
        (Operation::Test, _) => ["created", "changed", "removed", "replaced", "in desired state"],
        _ => ["created", "changed", "removed", "replaced", "unchanged"],
    };
    // Those of another machine may be anything.
    let others = [totals.created, totals.removed, totals.replaced];
    let changed = others.into_iter().fold(totals.changed, usize::saturating_sub);
    let parts = [
        (totals.created, create),
        (changed, change),
        (totals.removed, remove),
        (totals.replaced, replace),
        (totals.drifted, "drifted"),
        (totals.unknown, "unknown"),
        (totals.unchanged, unchanged),
        (totals.failed, "failed"),
        (totals.pending, "pending"),
        (totals.skipped, "skipped"),
    ];
    // That nothing changes and nothing failed is what one looks for; a check changes nothing anyway.
    let nothing = totals.changed == 0 && mode.operation != Operation::Test;
    let always = |word: &str| word == unchanged || word == "failed" || (nothing && word == change);
    let shown = parts.iter().filter(|(count, word)| *count > 0 || always(word));
    let text: Vec<String> = shown.map(|(count, word)| format!("{count} {word}")).collect();
    text.join(", ")
}

/// How often something pending was run again, and whether another run is required; nothing where neither is so.
fn reconciled(re_runs: u32, given_up: usize) -> String {
    let require = match given_up {
        0 => "no instance requires".to_owned(),
        1 => "1 instance requires".to_owned(),
        many => format!("{many} instances require"),
    };
    if re_runs == 0 && given_up == 0 { String::new() } else { format!("Re-runs: {re_runs}; {require} a re-run\n") }
}

pub(super) fn human(elapsed: Duration) -> String {
    if elapsed < Duration::from_secs(1) {
        format!("{} ms", elapsed.as_millis())
    } else {
        format!("{:.1} s", elapsed.as_secs_f64())
    }
}
