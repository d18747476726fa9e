//! From a document to a graph: names resolved, copies unrolled, nested instances placed, everything ordered.
//!
//! [`resolve`] finds all that is wrong with the relations of a document before anything runs. What it returns cannot
//! hold an unknown name, a duplicate, or a cycle.

pub use crate::diag::codes::graph as codes;
mod builder;
mod check;
mod defaults;
mod digest;
mod implied;
mod iteration;
mod link;
mod order;
mod portable;
mod resolve;
mod rights;
mod scope;
mod stated_needs;
mod suggest;

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashSet;

use crate::budget::Budget;
use crate::diag::Diagnostic;
use crate::document::{DataType, Document, Instance};
use crate::expr::FactKey;
use crate::id::{NodeId, ResourceId, TypeName};
use crate::instance_path::InstancePath;
use crate::manifest::{Manifest, NotChosen};
use crate::parameters::Supplied;
use crate::text::Sources;
use crate::value::{Object, Seal, Value};

pub use check::wrong_output;
pub use implied::{Contradicted, Implied};
pub use iteration::{Iteration, LoopItem};
pub use order::{Cycle, sort};
pub use resolve::{MAX_NESTING, resolve};
use scope::stated;
pub use scope::{Halt, ScopeView, StaticView, evaluate, evaluate_known, is_written_out, stated_at};
pub use stated_needs::StatedNeeds;
pub use suggest::suggest_types;

/// The subject of a run: every instance of a document, in order, with its needs.
///
/// Invariants: `order` holds every node once, after all that it needs, and the nested instances of a group directly
/// behind it; needs are adjacent, that is, of the same scope; among nodes that do not need each other the order is
/// that of the document.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// In document order, nested instances behind the one that holds them; the index is the [`NodeId`].
    pub nodes: Vec<Node>,
    /// In the order in which a run with width 1 works on them.
    pub order: Vec<NodeId>,
    /// The documents: first the outermost, then those that are nested or included.
    pub scopes: Vec<Scope>,
    /// The instances whose calls exclude others, by their own `exclusive` or by that of what they are nested in.
    pub exclusions: BTreeMap<NodeId, Arc<Exclusion>>,
    /// Which of the needs no document states.
    pub implied: BTreeSet<Implied>,
    /// The instances that expressions refer to.
    pub referred: Referred,
}

/// The targets of calls of `reference()`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Referred {
    /// The instances that are named.
    nodes: BTreeSet<NodeId>,
    /// The scopes in which instances are named that only the run knows.
    scopes: BTreeSet<ScopeId>,
}

/// Which calls are never under way at the same time as one of an instance, whatever the operation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Exclusion {
    /// All others. Instances behind it in the order do not begin while it waits for those under way.
    All,
    /// Those of the instances that state one of these names, in any scope.
    Names(BTreeSet<Arc<str>>),
}

/// A document of the graph: a set of instances that are adjacent to each other.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The document as it was declared.
    pub document: Arc<Document>,
    /// The folder that its relative paths start in, from that of the outermost document, where it is empty.
    pub folder: Arc<str>,
    /// The instance that holds it; `None` for the outermost.
    pub container: Option<NodeId>,
    /// The scope whose parameters, variables and functions are seen besides its own. Included documents see none.
    pub outer: Option<ScopeId>,
    /// The iteration of the loop that the instance holding it is of, if it sees that.
    pub iteration: Option<Box<Iteration>>,
    /// The values of its parameters, as far as they have one.
    pub parameters: Object,
    /// The values of its variables.
    pub variables: Object,
    /// The names that it declares without a value that is known.
    pub open: Open,
    /// Its instances by the id that others call them by.
    pub ids: HashSet<Adjacent>,
    /// Its instances in document order.
    pub members: Vec<NodeId>,
}

/// An instance among the adjacent ones, found by its id.
#[derive(Clone, Debug)]
pub struct Adjacent(pub InstancePath);

impl Adjacent {
    /// Its place in document order.
    pub fn node(&self) -> NodeId {
        self.0.node()
    }
}

impl Borrow<ResourceId> for Adjacent {
    fn borrow(&self) -> &ResourceId {
        self.0.id()
    }
}
impl PartialEq for Adjacent {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}
impl Eq for Adjacent {}
impl Hash for Adjacent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

/// The names that are declared in a scope and have no value: none was supplied yet, or what was written is wrong.
#[derive(Clone, Debug, Default)]
pub struct Open {
    /// Parameters, with their types.
    pub parameters: BTreeMap<String, DataType>,
    /// Variables.
    pub variables: BTreeSet<String>,
    /// The types of instances whose names are not known.
    pub names: BTreeSet<TypeName>,
}

/// A scope by its place in [`Graph::scopes`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ScopeId(pub u32);

impl ScopeId {
    /// The place as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A resource instance.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name, evaluated.
    pub name: Arc<str>,
    /// The scope that it is declared in.
    pub scope: ScopeId,
    /// Its declaration: a place in the `resources` of that scope's document.
    pub declaration: u32,
    /// Which iteration of its loop it is, if it was declared with `copy`.
    pub iteration: Option<Box<Iteration>>,
    /// The resource that it is an instance of.
    pub manifest: Arc<Manifest>,
    /// Its name below those of its containers.
    pub path: InstancePath,
    /// Its desired state, where that is written out: it holds no expression and no secret. For a group that is a program,
    /// what is written, with secrets sealed.
    pub stated: Option<Arc<Value>>,
    /// The instances that it waits for, in document order, without duplicates.
    pub needs: Vec<Need>,
    /// The role that it has in the run.
    pub role: Role,
}

/// An adjacent instance that another waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Need {
    /// The instance that must be settled first.
    pub node: NodeId,
    /// The consequence of how it ended.
    pub kind: NeedKind,
}

/// The consequence for an instance of how another ended. An instance with needs of several kinds begins only if all
/// kinds let it.
///
/// An instance that fails, is still pending at the end, or is skipped for one of these reasons or because the run was
/// cancelled, has not succeeded. One that is skipped because of its own condition, or because nothing changed or
/// failed, has: it blocks nothing. In what-if, where it is unknown whether a need lets the instance begin, the
/// instance is unknown as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NeedKind {
    /// `dependsOn`, `reference()`: it must succeed, or the instance is skipped.
    Require,
    /// `stateChanged()` in a condition: as [`NeedKind::Require`], and the instance acts on its changes.
    Notify,
    /// `requireAny`: one of the needs of this kind must succeed, or the instance is skipped. It begins as soon as one has;
    /// in what-if all of them are waited for, so that a plan does not depend on which was first.
    RequireAny,
    /// `onChanges`: one of the needs of this kind must have changed and all must succeed, or the instance is skipped.
    /// Only a set changes: in a get or a test such an instance is skipped.
    OnChanges,
    /// `onFailure`: one of the needs of this kind must not have succeeded, or the instance is skipped.
    OnFailure,
    /// `before` of the other: whatever becomes of it, the instance comes after it.
    Order,
}

impl NeedKind {
    /// Returns whether the instance acts on changes of the other.
    pub fn notifies(self) -> bool {
        matches!(self, Self::OnChanges | Self::Notify)
    }

    /// Returns whether the instance is skipped unless the other succeeds.
    pub fn must_succeed(self) -> bool {
        matches!(self, Self::Require | Self::Notify | Self::OnChanges)
    }
}

/// The role of a node in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Its provider is called.
    Instance,
    /// It holds nested instances, which are nodes themselves; it is settled when they are.
    Container {
        /// The scope of the nested instances.
        inner: ScopeId,
        /// The purpose that it has for the nested instances.
        purpose: NestingPurpose,
    },
}

/// Why instances are nested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NestingPurpose {
    /// To be handled together.
    Group,
    /// To be tested, never set; one that is not in its desired state fails the container.
    Assertion,
    /// They come from another document.
    Include,
    /// They are carried out by an adapter.
    Adapter,
}

impl Graph {
    /// Lets an instance begin once an adjacent one that is before it in the order has ended, whatever becomes of that.
    pub fn add_order(&mut self, first: NodeId, second: NodeId) {
        self.add_need(second, Need { node: first, kind: NeedKind::Order });
    }

    /// The graph of a single instance with these properties, taken as they are: nothing in them is an expression.
    pub fn of_instance(manifest: Arc<Manifest>, name: &str, properties: Value) -> Self {
        let id = ResourceId { type_name: manifest.type_name.clone(), name: name.into() };
        let document = Document::of_instance(&id, properties);
        let properties = document.resources.first().and_then(|instance| instance.properties.as_ref());
        let node = Node {
            stated: stated(properties).filter(|stated| !manifest.states_secrets(stated)),
            name: Arc::clone(&id.name),
            scope: ScopeId(0),
            declaration: 0,
            iteration: None,
            manifest,
            path: InstancePath::new(None, id, NodeId(0)),
            needs: Vec::new(),
            role: Role::Instance,
        };
        let scope = Scope {
            document: Arc::new(document),
            folder: "".into(),
            container: None,
            outer: None,
            iteration: None,
            parameters: Object::new(),
            variables: Object::new(),
            open: Open::default(),
            ids: HashSet::from_iter([Adjacent(node.path.clone())]),
            members: vec![NodeId(0)],
        };
        Self {
            nodes: vec![node],
            order: vec![NodeId(0)],
            scopes: vec![scope],
            exclusions: BTreeMap::new(),
            implied: BTreeSet::new(),
            referred: Referred::default(),
        }
    }

    /// Returns whether an expression may refer to an instance or to one of its containers.
    pub fn is_referred(&self, id: NodeId) -> bool {
        let Referred { nodes, scopes } = &self.referred;
        let mut outward = std::iter::successors(Some(id), |id| self.container(*id));
        !(nodes.is_empty() && scopes.is_empty())
            && outward.any(|id| nodes.contains(&id) || scopes.contains(&self.node(id).scope))
    }

    /// The node of that id.
    ///
    /// Assumptions: the id comes from this graph.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The scope of that id.
    pub fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.index()]
    }

    /// Every node with its id.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        (0..).map(NodeId).zip(&self.nodes)
    }

    /// Returns the declaration of a node.
    pub fn declaration(&self, id: NodeId) -> &Instance {
        let node = self.node(id);
        &self.scope(node.scope).document.resources[node.declaration as usize]
    }

    /// The id that adjacent instances call a node by.
    pub fn id_of(&self, id: NodeId) -> ResourceId {
        let node = self.node(id);
        let type_name = self.declaration(id).type_name.value.clone();
        ResourceId { type_name, name: node.name.clone() }
    }

    /// The instances that are nested directly in a container; none for an instance.
    pub fn members(&self, id: NodeId) -> &[NodeId] {
        match self.node(id).role {
            Role::Container { inner, .. } => &self.scope(inner).members,
            Role::Instance => &[],
        }
    }

    /// The instance that a node is nested in.
    pub fn container(&self, id: NodeId) -> Option<NodeId> {
        self.scope(self.node(id).scope).container
    }

    /// Returns the view of expressions in a scope before anything runs, in an iteration of a loop; their cost is
    /// taken from `budget`.
    pub fn static_view<'a>(
        &'a self,
        (scope, iteration): (ScopeId, Option<&'a Iteration>),
        facts: &'a Facts,
        seal: &'a dyn Seal,
        budget: &'a Budget,
    ) -> StaticView<'a> {
        StaticView(ScopeView { scopes: &self.scopes, scope, iteration, facts, seal, budget: Some(budget) })
    }

    /// Two instances or, where they are not adjacent, the containers around them that are; `None` where the same holds both all
    /// the way.
    pub fn adjacent(&self, one: NodeId, other: NodeId) -> Option<(NodeId, NodeId)> {
        let outward = |id: NodeId| std::iter::successors(Some(id), |id| self.container(*id));
        let beside = |one: NodeId| {
            let scope = self.node(one).scope;
            outward(other).find(|other| self.node(*other).scope == scope).map(|other| (one, other))
        };
        outward(one).find_map(beside).filter(|(one, other)| one != other)
    }

    /// Returns whether an instance is within an assertion: it is tested, and never set.
    pub fn is_asserted(&self, id: NodeId) -> bool {
        let is_assertion =
            |id: NodeId| matches!(self.node(id).role, Role::Container { purpose: NestingPurpose::Assertion, .. });
        std::iter::successors(self.container(id), |id| self.container(*id)).any(is_assertion)
    }

    /// `'name' (Type)`, the way messages speak of a node.
    pub fn label(&self, id: NodeId) -> String {
        self.node(id).path.label()
    }
}

/// The catalog, facts, values and rules that a document is resolved against.
pub struct Inputs<'a> {
    /// The resources that are known.
    pub catalog: &'a dyn Resources,
    /// The parameters that were supplied; those of secure type sealed already.
    pub parameters: &'a Supplied,
    /// The facts of the machine that are known so far.
    pub facts: &'a Facts,
    /// Where secrets are kept that the document states or makes.
    pub seal: &'a dyn Seal,
    /// The version that `directives.version` is compared with.
    pub version: &'a str,
    /// The rule for instances with the same type and name.
    pub names: Names,
    /// The rule for parameters without a value.
    pub values: Values,
    /// The folder of the document as messages show it; empty for the working directory.
    pub folder: &'a str,
}

/// The rule for parameters of a document without a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Values {
    /// Every parameter must.
    #[default]
    Required,
    /// A parameter may have none: the document is only checked, and what depends on such a parameter is not known. Instances
    /// whose names are not known are called by what is written.
    Open,
}

/// The rule for two instances of a type with the same name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Names {
    /// They may not: results and references would be ambiguous.
    #[default]
    Unique,
    /// They may: an export asks for all instances of a type, and its names stand for nothing.
    Repeated,
}

/// Facts that the host has supplied: the value, or why it cannot be obtained.
pub type Facts = BTreeMap<FactKey, Result<Value, String>>;

/// Finds resources: a snapshot as far as the core can tell, which answers the same question always the same.
pub trait Resources {
    /// The newest resource of that type whose version satisfies the requirement, carried out by that adapter if one
    /// is named.
    fn find(&self, type_name: &TypeName, requirement: Option<&str>, adapter: Option<&TypeName>) -> FoundResource;

    /// Returns the document that an instance with these properties consists of. The instance is of a composite
    /// resource, which has the kind [`Importer`](crate::manifest::ResourceKind::Importer) and is carried out by its adapter,
    /// or of an importer that [resolves](Manifest::resolves). Texts that its findings point into are added to
    /// `sources`, each once.
    fn expand(
        &self,
        _manifest: &Manifest,
        _properties: &Object,
        _sources: &mut Sources,
    ) -> Result<Expansion, Vec<ExpansionFinding>> {
        Ok(Expansion::default())
    }
}

/// Why an instance is not expanded.
#[derive(Clone, Debug)]
pub struct ExpansionFinding {
    /// The finding; without a place it is about the properties.
    pub finding: Diagnostic,
    /// The property, as a JSON pointer; empty for all of them.
    pub property: String,
}

impl From<Diagnostic> for ExpansionFinding {
    fn from(finding: Diagnostic) -> Self {
        Self { finding, property: String::new() }
    }
}

/// The document that an instance expands to.
#[derive(Clone, Debug, Default)]
pub struct Expansion {
    /// Its instances.
    pub document: Document,
    /// The values of the parameters of that document.
    pub parameters: Object,
}

/// The answer to a search for a resource.
#[derive(Clone, Debug)]
pub enum FoundResource {
    /// This one.
    Resource(Arc<Manifest>),
    /// There is none.
    Nothing(Unresolved),
}

/// Why there is no resource for an instance.
#[derive(Clone, Debug)]
pub struct Unresolved {
    /// The resource or capability that could not be found.
    pub lacks: Lacks,
    /// One sentence.
    pub message: String,
    /// The advice about it.
    pub help: Option<String>,
    /// The type that was probably meant.
    pub meant: Option<TypeName>,
}

/// A resource, version or capability that an instance asks for and does not get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lacks {
    /// Its type.
    Type,
    /// Its version, or the requirement cannot be read.
    Version,
    /// Its adapter.
    Adapter,
}

impl From<&NotChosen> for Lacks {
    fn from(error: &NotChosen) -> Self {
        match error {
            NotChosen::Type { .. } => Self::Type,
            NotChosen::Version { .. } => Self::Version,
        }
    }
}

/// The outcome of resolving.
#[derive(Debug)]
pub enum Resolution {
    /// The graph, and warnings.
    Graph(Graph, Vec<Diagnostic>),
    /// These facts must be supplied first; then resolve it again.
    Needs(BTreeSet<FactKey>),
    /// The document cannot be used.
    Faulty {
        /// Everything that is wrong with its relations.
        findings: Vec<Diagnostic>,
        /// The instances that could be resolved, in no order and without needs, to look for more that is wrong; `None` for a
        /// document that takes too much.
        rest: Option<Graph>,
    },
}
