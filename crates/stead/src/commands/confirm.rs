//! The question before something is removed: asked of users, never of programs.

use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::destruction::{Effect, may_destroy};
use stead_core::diag::counted;
use stead_core::event::{Mode, Status};
use stead_core::id::NodeId;
use stead_core::report::Record;
use stead_core::run::Run;
use stead_core::text::Node;
use stead_engine::{Planned, RunOptions, SavedPlan};
use stead_system::Cancel;

use super::ready::Ready;
use super::report::{Printer, Style};
use super::saved::{self, Source};
use crate::exit::Exit;
use crate::input;
use crate::request::{Detail, View};
use crate::terminal::{self, complain, complain_coloured, complain_text, written_soon};

/// Plans and, where the plan removes or replaces something, or may do so where it is unknown, shows it and asks. Without a
/// terminal nothing is asked. What was consented to binds the run as a saved plan does; where nothing was asked, nothing is
/// removed that the plan does not remove.
///
/// Not guaranteed: that nothing else is removed where the plan calls an instance unknown, and by commands.
pub(super) fn confirm(view: View, ready: &Ready) -> Result<Planned, Exit> {
    written_soon(|| confirmed(view, ready))
}

fn confirmed(view: View, ready: &Ready) -> Result<Planned, Exit> {
    if !is_attended() {
        return Ok(Planned::default());
    }
    let style = Style::question(view);
    let plan = RunOptions { retention: style.retention(true), ..RunOptions::new(Mode::PLAN, ready.width) };
    let mut printer = Printer::new(style, Arc::clone(&ready.prepared.sources));
    let plan = super::executed(ready, view, plan, |run, event| printer.event(run, event))?;
    let destructive = plan.graph().iter().filter(|(id, _)| destroys(plan.report().record(*id))).count();
    let uncertain = plan.graph().iter().filter(|(id, _)| may_destroy_later(&plan, *id)).count();
    if destructive + uncertain == 0 {
        printer.clear();
        return Ok(Planned::removals(&plan));
    }
    let shown = SavedPlan::new(&ready.session, &ready.prepared, &plan, ready.parts.clone());
    printer.instances(&plan);
    Removals { destructive, uncertain, unknown: plan.totals().unknown, machines: None }.ask(ready.session.cancel())?;
    saved::confirm((&shown, Source::Shown), ready)
}

/// Shows a saved plan and asks, where it removes or replaces something, or may do so where it is unknown. Returns whether it asked.
pub(super) fn was_asked(plan: &SavedPlan, detail: Detail, cancel: &Cancel) -> Result<bool, Exit> {
    let removals = Removals::of(&plan.instances);
    if !is_attended() || removals.are_none() {
        return Ok(false);
    }
    complain_coloured(&saved::text(plan, detail));
    removals.ask(cancel).map(|()| true)
}

/// How many instances of a plan remove or replace what is there, or may do so.
#[derive(Default)]
pub(crate) struct Removals {
    pub(crate) destructive: usize,
    pub(crate) uncertain: usize,
    /// All of which the plan does not know what becomes of them.
    pub(crate) unknown: usize,
    /// The number of machines that they are on, where these are others than this one.
    pub(crate) machines: Option<usize>,
}

impl Removals {
    /// Those of the instances of the report of a plan.
    pub(crate) fn of<'a>(instances: impl IntoIterator<Item = &'a Json>) -> Self {
        let mut removals = Self::default();
        for instance in instances {
            removals.destructive += usize::from(saved::removes(instance));
            removals.unknown += usize::from(saved::is_unknown(instance));
        }
        Self { uncertain: removals.unknown, ..removals }
    }

    /// Those on all of several machines.
    pub(crate) fn on_all(each: impl Iterator<Item = Self>) -> Self {
        let add = |all: Self, one: Self| Self {
            destructive: all.destructive + one.destructive,
            uncertain: all.uncertain + one.uncertain,
            unknown: all.unknown + one.unknown,
            machines: Some(all.machines.unwrap_or_default() + usize::from(!one.are_none())),
        };
        each.fold(Self::default(), add)
    }

    pub(crate) fn are_none(&self) -> bool {
        self.destructive + self.uncertain == 0
    }

    /// Asks whether the plan is applied. Anything but a yes is a no.
    pub(crate) fn ask(&self, cancel: &Cancel) -> Result<(), Exit> {
        let Self { destructive, uncertain, unknown, machines } = *self;
        let on = machines.map(|machines| format!(" on {}", counted(machines, "machine"))).unwrap_or_default();
        let unknown = if unknown == 0 { String::new() } else { format!(" ({unknown} more unknown until then)") };
        let removes = if destructive == 0 {
            format!("may remove or replace what is there in {}{on}, unknown until then", counted(uncertain, "instance"))
        } else {
            format!("removes or replaces what is there in {}{on}{unknown}", counted(destructive, "instance"))
        };
        ask(&format!("Apply this plan? It {removes}."), cancel)
    }
}

/// Asks a question whose answer is yes or no. Anything but a yes is a no.
pub(crate) fn ask(question: &str, cancel: &Cancel) -> Result<(), Exit> {
    complain_text(&format!("{question} [y/N] "));
    match input::answer(cancel) {
        Some(answer) if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) => Ok(()),
        _ => {
            complain("nothing was changed");
            Err(Exit::Cancelled)
        }
    }
}

/// Returns whether somebody can be asked.
pub(crate) fn is_attended() -> bool {
    input::is_terminal() && terminal::is_watched()
}

/// Returns whether files, lines or other things are gone afterwards. That content is changed is what applying is for.
fn destroys(record: &Record) -> bool {
    let removes = matches!(record.effect(), Some(Effect::Remove | Effect::Replace));
    removes || record.changed().is_some_and(|changed| changed.effects.is_destructive())
}

/// Returns whether an instance of which the plan does not know what becomes of it may remove what is there.
fn may_destroy_later(plan: &Run, id: NodeId) -> bool {
    let record = plan.report().record(id);
    let stated = || plan.graph().declaration(id).properties.as_ref().map(Node::literal);
    record.status().is_some_and(Status::is_unknown)
        && record.desired.as_deref().map_or_else(|| stated().as_ref().is_some_and(may_destroy), may_destroy)
}
