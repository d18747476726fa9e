//! The contents of a plan that bind the run of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use stead_core::call::Changed;
use stead_core::destruction::Effects;
use stead_core::event::Status;
use stead_core::id::NodeId;
use stead_core::run::Run;
use stead_host::provider::Binding;

/// The contents of a plan that a run of it is held to.
#[derive(Default)]
pub struct Planned {
    /// The predictions by instance: the change, or `None` for an instance in its desired state. An instance without a prediction is
    /// not included.
    shown: HashMap<NodeId, Option<Arc<Changed>>>,
    /// The digests of the files and directories that the instances read, by path.
    reads: BTreeMap<String, Option<String>>,
    /// The removals that the plan has shown, if there is a plan.
    removals: Option<Removals>,
}

/// The removals that a plan has shown.
#[derive(Default)]
struct Removals {
    /// By instance; those that destroy nothing are not included.
    shown: HashMap<NodeId, Effects>,
    /// The instances that the plan calls unknown.
    unknown: BTreeSet<NodeId>,
}

impl Removals {
    fn of(plan: &Run) -> Self {
        let mut removals = Self::default();
        for (id, _) in plan.graph().iter() {
            let record = plan.report().record(id);
            match (record.status(), record.changed()) {
                (Some(status), _) if status.is_unknown() => drop(removals.unknown.insert(id)),
                (Some(Status::Changed), Some(changed)) => {
                    let effects = Effects { effect: Some(changed.effect()), ..changed.effects.clone() };
                    removals.shown.extend(effects.is_destructive().then_some((id, effects)));
                }
                _ => {}
            }
        }
        removals
    }
}

impl Planned {
    /// Takes from a what-if run what it destroys, for a run of the same document that is held to nothing else.
    pub fn removals(plan: &Run) -> Self {
        Self { removals: Some(Removals::of(plan)), ..Self::default() }
    }

    /// Returns what the plan has shown to be destroyed with an instance; `None` where it binds nobody: without a plan, and where
    /// the instance was unknown.
    pub(crate) fn destroyed_with(&self, id: NodeId) -> Option<Effects> {
        let removals = self.removals.as_ref().filter(|removals| !removals.unknown.contains(&id))?;
        Some(removals.shown.get(&id).cloned().unwrap_or_default())
    }

    /// Takes the predictions of a what-if run, for a run of the same document, with the digests of what its instances read.
    pub(crate) fn by(plan: &Run, reads: BTreeMap<String, Option<String>>) -> Self {
        let shown = |id| {
            let record = plan.report().record(id);
            match record.status()? {
                Status::Changed => Some((id, Some(Arc::new(record.changed()?.clone())))),
                Status::InState => Some((id, None)),
                _ => None,
            }
        };
        let shown = plan.graph().iter().filter_map(|(id, _)| shown(id)).collect();
        Self { shown, reads, removals: Some(Removals::of(plan)) }
    }

    /// Returns whether anything is read.
    pub(crate) fn has_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Returns the digest that what is at a path had when the plan showed what becomes of an instance that reads it; `None` where
    /// the plan does not tell, such as where an instance in front changes it.
    pub(crate) fn digest_of(&self, id: NodeId, path: &str) -> Option<&Option<String>> {
        self.shown.get(&id)?.as_ref()?;
        self.reads.get(path)
    }

    /// Returns how the plan binds the calls of an instance; [`Binding::None`] without a prediction.
    pub(crate) fn binding_of(&self, id: NodeId) -> Binding {
        self.shown.get(&id).map_or(Binding::None, |shown| Binding::Plan(shown.clone()))
    }
}
