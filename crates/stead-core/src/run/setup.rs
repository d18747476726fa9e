//! The subject of a run, and how it is carried out.

use super::policy::{Policy, SinglePass};
use crate::event::{Mode, SkipReason};
use crate::graph::{Facts, Graph};
use crate::id::NodeId;
use crate::text::Sources;
use crate::value::Seal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The subject of a run, and how it is carried out.
#[derive(Clone)]
pub struct Setup {
    /// The instances, in order.
    pub graph: Arc<Graph>,
    /// The texts that findings point into.
    pub sources: Arc<Sources>,
    /// The facts that the graph was resolved with.
    pub facts: Facts,
    /// Where secrets are put that are stated or made while it goes on.
    pub seal: Arc<dyn Seal>,
    /// The purpose of the run.
    pub mode: Mode,
    /// With what rights it runs.
    pub privilege: Privilege,
    /// The rule by which an instance is tried again.
    pub policy: Arc<dyn Policy>,
    /// Where the document came from.
    pub origin: Arc<str>,
    /// The digest that equal graphs share, from [`Graph::digest`]; empty where no journal is kept.
    pub digest: Arc<str>,
    /// The instances that something else is done with than with the others. A run is resumed with the same ones.
    pub exceptions: Exceptions,
    /// The answers of resources that are kept.
    pub retention: Retention,
    /// The instances that each one comes behind, because it reads what they leave: what is planned is predicted in this order. A run
    /// waits for their first try. All are in front of it in the order of the graph, and the run is about them.
    pub turns: BTreeMap<NodeId, Vec<NodeId>>,
}

/// The answers of resources that a run keeps, once their instances have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Retention {
    /// All of them.
    #[default]
    Everything,
    /// Not those of instances that were found in their desired state, unless an expression may ask for them. What is known of
    /// such an instance is then that it is in its desired state, and what that is.
    Changes,
}

/// The instances that something else is done with than with the others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Exceptions {
    /// The instances that the run is about, with what they need and the containers around them; `None` for all. Nothing is
    /// recorded about the others, so that a run over a few of many costs little.
    pub selected: Option<Arc<BTreeSet<NodeId>>>,
    /// Skipped, and why.
    pub skipped: BTreeMap<NodeId, SkipReason>,
    /// Only tested, also where the others are set.
    pub tested: BTreeSet<NodeId>,
    /// Owed a notification: what they wait on for changes changed in an earlier run, and they did not come to their turn.
    pub owed: BTreeSet<NodeId>,
}

/// With what rights a run is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Privilege {
    /// As root.
    Elevated,
    /// As anybody else.
    Restricted,
}

impl Setup {
    /// A single pass over a graph that asks nothing of the machine, by an ordinary user.
    pub fn new(graph: Arc<Graph>, sources: Arc<Sources>, seal: Arc<dyn Seal>, mode: Mode) -> Self {
        let (facts, privilege) = (Facts::new(), Privilege::Restricted);
        Self {
            graph,
            sources,
            facts,
            seal,
            mode,
            privilege,
            policy: Arc::new(SinglePass),
            origin: "".into(),
            digest: "".into(),
            exceptions: Exceptions::default(),
            retention: Retention::default(),
            turns: BTreeMap::new(),
        }
    }
}
