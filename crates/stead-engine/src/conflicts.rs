//! Instances that manage the same thing, so that each undoes what the other did.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stead_core::budget::Budget;
use stead_core::claims::{Claim, Claims, Conflict, Contradiction, Extent, Links, conflicts, share_paths};
use stead_core::diag::Diagnostic;
use stead_core::document::Over;
use stead_core::expr::Template;
use stead_core::graph::{Graph, Implied, NeedKind, Node, Role, StatedNeeds, evaluate_known, is_written_out};
use stead_core::id::NodeId;
use stead_core::run::Run;
use stead_core::run::codes::CONFLICT;
use stead_core::statements::{Disagreement, Statement, disagreements};
use stead_core::value::{Object, Value};
use stead_host::provider::Plain;

use crate::implied::{self, Known, after_packages, as_stated, causes, implied};
use crate::prepared::Prepared;
use crate::real_paths::RealPaths;
use crate::session::Session;
use crate::shared_files::SharedFiles;

impl Session {
    /// Adds the order that instances have because of what they manage, as far as that is known before anything runs.
    ///
    /// A path that an instance lies in or uses is created before it, unless the document says otherwise. Of instances
    /// that undo each other's work, the later one begins when the earlier one has ended, so that it finds what that
    /// one left and does not report as unchanged what is being removed; each two are a warning.
    pub(crate) fn complete_order(&self, prepared: &mut Prepared) {
        let is_implied = self.is_order_implied(prepared);
        let mut known = self.known(prepared, is_implied);
        let implied = if is_implied { implied(&prepared.graph, &known) } else { BTreeSet::new() };
        let loose = if is_implied { self.after_packages(&prepared.graph, &known) } else { BTreeSet::new() };
        if !implied.is_empty() || !loose.is_empty() {
            let graph = Arc::make_mut(&mut prepared.graph);
            let contradicted = graph.imply(implied, NeedKind::Require);
            graph.imply(loose, NeedKind::Order);
            let places: HashMap<NodeId, usize> =
                graph.order.iter().enumerate().map(|(place, id)| (*id, place)).collect();
            known.sort_by_key(|known| places.get(&known.id).copied());
            if !contradicted.is_empty() {
                let Prepared { graph, sources, facts, .. } = &*prepared;
                let budget = &Budget::new(Budget::DOCUMENT);
                let stated = StatedNeeds { graph, sources, facts, seal: &*self.vault, budget };
                let warnings = implied::warnings(&contradicted, &known, &stated, self.system_root());
                prepared.warnings.extend(warnings);
            }
        }
        // Claims have the paths that links lead to as well, so that one file has one path at least in the claims of each.
        let claims = known.iter().filter_map(|known| Some((known.id, known.claims.as_ref()?)));
        let is_shared = share_paths(claims.clone());
        prepared.shared = if is_shared { SharedFiles::of(&known, &self.real_paths()) } else { SharedFiles::default() };
        let found = if is_shared || claims.clone().any(|(_, claims)| claims.remove_below()) {
            let is_settled = |(id, _): &(NodeId, &Claims)| settled(&prepared.graph, *id).is_some();
            once_each(conflicts(&claims.filter(is_settled).collect::<Vec<_>>()), &self.real_paths())
        } else {
            Vec::new()
        };
        self.order_conflicts(prepared, &known, found);
        let wildcards = self.wildcards(prepared, &known);
        prepared.warnings.extend(wildcards);
    }

    pub(crate) fn real_paths(&self) -> RealPaths {
        RealPaths::below(self.system_root().unwrap_or(Path::new("/")))
    }

    fn is_order_implied(&self, prepared: &Prepared) -> bool {
        let outermost = prepared.graph.scopes.first();
        let directive = outermost.and_then(|scope| scope.document.directives.implicit_order.as_ref());
        self.options.implicit_order && directive.is_none_or(|directive| directive.value)
    }

    /// Those without a condition whose properties are written out; these are in conflict over a path.
    fn order_conflicts(&self, prepared: &mut Prepared, known: &[Known], found: Vec<Conflict>) {
        let is_settled = |known: &&Known| settled(&prepared.graph, known.id).is_some();
        let is_set = |known: &&Known| is_settled(known) && !prepared.graph.is_asserted(known.id);
        let stating = known.iter().filter(|known| !known.states.is_empty()).filter(is_set);
        let states: Vec<_> = stating.map(|known| (known.id, known.states.as_slice())).collect();
        let found = &without_stated_parts(found, &states);
        let disagreements = besides(disagreements(states), found);
        let removes = known.iter().any(|known| known.removed_lines.is_some());
        let settled: Vec<&Known> = known.iter().filter(|_| removes).filter(is_set).collect();
        let erasures = self.erasures(&prepared.graph, &settled);
        let both = disagreements.iter().map(|found| (found.first, found.second));
        let both = found.iter().map(|found| (found.first, found.second)).chain(both);
        let both = both.chain(erasures.iter().map(|found| (found.first(), found.second())));
        let pairs: Vec<_> = both.filter_map(|(first, second)| prepared.graph.adjacent(first, second)).collect();
        if !pairs.is_empty() {
            let graph = Arc::make_mut(&mut prepared.graph);
            for (first, second) in pairs {
                graph.add_order(first, second);
            }
        }
        prepared.warnings.extend(warnings(&prepared.graph, found, self.system_root()));
        prepared.warnings.extend(disagreements.iter().map(|found| disagreement(&prepared.graph, found)));
        prepared.warnings.extend(erasures.iter().map(|found| found.finding(&prepared.graph, self.system_root())));
    }

    /// The instances that remove lines from a file which others add to it, in the order of the later one of both.
    fn erasures(&self, graph: &Graph, known: &[&Known]) -> Vec<Erasure> {
        let removing = known.iter().enumerate();
        let removing =
            removing.filter_map(|(at, known)| Some((at, known.id, known.removed_lines.as_ref()?, part_of(known)?)));
        let removing: Vec<_> = removing.collect();
        if removing.is_empty() {
            return Vec::new();
        }
        let (calls, mut found, mut left) = (self.calls(graph), BTreeSet::new(), MOST_LINES);
        for (at, adding) in known.iter().enumerate() {
            let Some((path, stated)) = part_of(adding).zip(graph.node(adding.id).stated.as_ref()) else { continue };
            let mut others = removing.iter().filter(|(other, _, _, of)| *other != at && *of == path).peekable();
            if others.peek().is_none() {
                continue;
            }
            let lines = calls.added_lines(&graph.node(adding.id).manifest, &Plain::covered(stated));
            for (other, removing, removes, _) in others {
                left = left.saturating_sub(lines.len());
                if left > 0 && lines.iter().any(|line| removes(line)) {
                    let in_order = *other < at;
                    let erasure = Erasure { removing: *removing, adding: adding.id, in_order, path: path.to_owned() };
                    found.insert((at.max(*other), erasure));
                }
            }
        }
        found.into_iter().map(|(_, erasure)| erasure).collect()
    }

    /// Why the graph has the needs that the document does not state.
    pub fn causes(&self, prepared: &Prepared) -> BTreeMap<Implied, String> {
        let known = self.known(prepared, true);
        let loose = self.after_packages(&prepared.graph, &known).into_iter();
        let mut causes: BTreeMap<_, _> =
            loose.map(|each| (each, "packages in front of it, which may bring what it uses".to_owned())).collect();
        causes.extend(self::causes(&prepared.graph, &known, self.system_root()));
        causes
    }

    fn after_packages(&self, graph: &Graph, known: &[Known]) -> BTreeSet<Implied> {
        after_packages(graph, known, &self.machine.system_root)
    }

    /// Returns the claims of the instances whose resources state them, in the order of the graph. Those with
    /// expressions count if asked for, with the properties that are known now.
    pub(crate) fn known(&self, prepared: &Prepared, with_expressions: bool) -> Vec<Known> {
        let graph = &prepared.graph;
        let (calls, budget) = (self.calls(graph), Budget::new(Budget::DOCUMENT));
        let known = |id: &NodeId| {
            let node = graph.node(*id);
            if !says_claims(node) || node.stated.is_none() && !with_expressions {
                return None;
            }
            let desired = Plain::covered(&self.desired_so_far(prepared, *id, &budget)?);
            Known::of(*id, calls.managed_by(*id, &node.manifest, &desired))
        };
        let mut all = Vec::with_capacity(graph.order.len());
        all.extend(graph.order.iter().filter_map(known));
        for known in &mut all {
            known.claims = known.claims.take().map(|claims| claims.with_other_paths(|path| calls.real_paths.of(path)));
        }
        let linking = all.iter().filter(|known| known.claims.as_ref().is_some_and(Claims::has_links));
        let will_be = linking.filter(|known| settled(graph, known.id).is_some());
        let links = Links::of(will_be.filter_map(|known| known.claims.as_ref()));
        if !links.is_empty() {
            for known in &mut all {
                known.claims = known.claims.take().map(|claims| through(&links, claims));
            }
        }
        all
    }

    /// The desired state of an instance as far as it is known before anything runs; `None` where it states nothing.
    pub(crate) fn desired_so_far(&self, prepared: &Prepared, id: NodeId, budget: &Budget) -> Option<Arc<Value>> {
        let (graph, node) = (&prepared.graph, prepared.graph.node(id));
        if let Some(stated) = &node.stated {
            return Some(Arc::clone(stated));
        }
        let properties = graph.declaration(id).properties.as_ref()?;
        let place = (node.scope, node.iteration.as_deref());
        let view = graph.static_view(place, &prepared.facts, &*self.vault, budget);
        Some(Arc::new(Value::Object(written_out(&evaluate_known(properties, &view)))))
    }

    /// The other ones, which are known after a run: of instances whose properties were computed.
    pub fn computed_conflicts(&self, run: &Run) -> Vec<Diagnostic> {
        let graph = run.graph();
        let is_computed = |id: NodeId| settled(graph, id).is_none();
        if !graph.order.iter().any(|id| is_computed(*id)) {
            return Vec::new();
        }
        let desired = |id: NodeId| run.report().record(id).desired.as_ref();
        let states = self.states_among(graph, desired);
        let states: Vec<_> = states.iter().map(|(id, states)| (*id, states.as_slice())).collect();
        let found = without_stated_parts(self.conflicts_among(graph, desired), &states);
        let equal = |one, other| agree(desired(one), desired(other));
        let is_new = |first, second| is_computed(first) || is_computed(second);
        let news = found.iter().filter(|found| is_new(found.first, found.second));
        let disagreements = besides(disagreements(states), &found);
        let differing = disagreements.iter().filter(|found| is_new(found.first, found.second));
        let news =
            news.filter(|found| !is_same(graph, found, equal)).map(|found| finding(graph, found, self.system_root()));
        news.chain(differing.map(|found| disagreement(graph, found))).collect()
    }

    /// The conflicts among the iterations of loops whose properties are computed from their items: these are known before anything
    /// runs.
    pub fn loop_conflicts(&self, prepared: &Prepared) -> Vec<Diagnostic> {
        let (graph, budget) = (&prepared.graph, Budget::new(Budget::DOCUMENT));
        let is_iteration = |id: NodeId| {
            let node = graph.node(id);
            says_claims(node) && node.stated.is_none() && node.iteration.is_some() && is_unconditional(graph, id)
        };
        let computed = |id: NodeId| {
            let (node, properties) = (graph.node(id), graph.declaration(id).properties.as_ref()?);
            let view =
                graph.static_view((node.scope, node.iteration.as_deref()), &prepared.facts, &*self.vault, &budget);
            let known = evaluate_known(properties, &view);
            is_written_out(&known).then(|| (id, Arc::new(known.literal())))
        };
        let ids = graph.order.iter().copied().filter(|id| is_iteration(*id));
        let desired: HashMap<NodeId, Arc<Value>> = ids.filter_map(computed).collect();
        if desired.is_empty() {
            return Vec::new();
        }
        let of = |id: NodeId| desired.get(&id);
        let found = self.conflicts_among(graph, of);
        let found = found.iter().filter(|found| found.about != Contradiction::SamePart);
        let differing = found.filter(|found| !is_same(graph, found, |one, other| agree(of(one), of(other))));
        differing.map(|found| finding(graph, found, self.system_root())).collect()
    }

    fn states_among<'g>(
        &self,
        graph: &'g Graph,
        desired: impl Fn(NodeId) -> Option<&'g Arc<Value>>,
    ) -> Vec<(NodeId, Vec<Statement>)> {
        let calls = self.calls(graph);
        let states_of = |id: &NodeId| {
            let node = graph.node(*id);
            let desired = desired(*id).filter(|_| says_claims(node) && !graph.is_asserted(*id))?;
            Some((*id, calls.states_of(*id, &node.manifest, &Plain::covered(desired))))
        };
        graph.order.iter().filter_map(states_of).collect()
    }

    /// The conflicts among the instances of which the desired state is known.
    fn conflicts_among<'g>(
        &self,
        graph: &'g Graph,
        desired: impl Fn(NodeId) -> Option<&'g Arc<Value>>,
    ) -> Vec<Conflict> {
        let mut claims = self.claims_among(graph, desired);
        let real_paths = self.real_paths();
        claims =
            claims.into_iter().map(|(id, claims)| (id, claims.with_other_paths(|path| real_paths.of(path)))).collect();
        let links = Links::of(claims.iter().map(|(_, claims)| claims));
        if !links.is_empty() {
            claims = claims.into_iter().map(|(id, claims)| (id, through(&links, claims))).collect();
        }
        let found = conflicts(&claims.iter().map(|(id, claims)| (*id, claims)).collect::<Vec<_>>());
        once_each(found, &real_paths)
    }

    /// Returns the claims of the instances of a run, as far as they are known: those of resources that state so whose
    /// desired state was computed, or is written out in the document.
    pub fn claims(&self, run: &Run) -> Vec<(NodeId, Claims)> {
        let graph = run.graph();
        self.claims_among(graph, |id| run.report().record(id).desired.as_ref().or(graph.node(id).stated.as_ref()))
    }

    /// The digest of every file and directory that the instances of a run read, by path, as far as their desired states are
    /// known. Files of a bundle are not included. `None` for a path that does not exist or cannot be read.
    pub(crate) fn digests_of_reads(&self, run: &Run) -> BTreeMap<String, Option<String>> {
        let graph = run.graph();
        let calls = self.calls(graph);
        let mut found = BTreeMap::new();
        for id in graph.order.iter().filter(|id| says_claims(graph.node(**id))) {
            let node = graph.node(*id);
            let Some(desired) = run.report().record(*id).desired.as_ref().or(node.stated.as_ref()) else { continue };
            for path in calls.read_by(*id, &node.manifest, &Plain::covered(desired)) {
                let digest = || stead_system::fs::digest(&path).ok().flatten();
                found.entry(path.display().to_string()).or_insert_with(digest);
            }
        }
        found
    }

    /// Returns what these instances of a document read and manage, as far as that is known without a run.
    pub fn stated_claims(&self, graph: &Graph, ids: impl IntoIterator<Item = NodeId>) -> Vec<(NodeId, Claims)> {
        let ids = ids.into_iter().filter(|id| graph.node(*id).stated.is_some());
        self.claims_of_all(graph, ids, |id| graph.node(id).stated.as_ref())
    }

    fn claims_among<'g>(
        &self,
        graph: &'g Graph,
        desired: impl Fn(NodeId) -> Option<&'g Arc<Value>>,
    ) -> Vec<(NodeId, Claims)> {
        self.claims_of_all(graph, graph.order.iter().copied(), desired)
    }

    fn claims_of_all<'g>(
        &self,
        graph: &'g Graph,
        ids: impl Iterator<Item = NodeId>,
        desired: impl Fn(NodeId) -> Option<&'g Arc<Value>>,
    ) -> Vec<(NodeId, Claims)> {
        let calls = self.calls(graph);
        let claims_of = |id: NodeId| {
            let node = graph.node(id);
            let desired = desired(id).filter(|_| says_claims(node))?;
            Some((id, calls.claims_of(id, &node.manifest, &Plain::covered(desired))?))
        };
        let mut claims = Vec::with_capacity(ids.size_hint().0);
        claims.extend(ids.filter_map(claims_of));
        claims
    }
}

/// Tells an instance of a resource that says what it manages.
fn says_claims(node: &Node) -> bool {
    node.manifest.promises.claims && node.role == Role::Instance
}

/// How many lines are compared at most with what removes lines: few documents have any of it.
const MOST_LINES: usize = 1 << 20;

/// The file that an instance manages a part of: where links lead to it, behind them.
fn part_of(known: &Known) -> Option<&Path> {
    let claims = known.claims.iter().flat_map(|claims| &claims.0);
    let mut parts = claims.filter(|Claim::Path { extent, .. }| matches!(extent, Extent::Part { .. }));
    parts.next_back().map(|Claim::Path { path, .. }| &**path)
}

/// An instance that removes from a file what another one adds to it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Erasure {
    removing: NodeId,
    adding: NodeId,
    /// True if the one that removes comes first.
    in_order: bool,
    path: PathBuf,
}

impl Erasure {
    fn first(&self) -> NodeId {
        if self.in_order { self.removing } else { self.adding }
    }

    fn second(&self) -> NodeId {
        if self.in_order { self.adding } else { self.removing }
    }

    fn finding(&self, graph: &Graph, root: Option<&Path>) -> Diagnostic {
        let (one, other) = (graph.label(self.removing), graph.label(self.adding));
        let path = as_stated(root, &self.path);
        let message = format!("{one} removes a line from '{}' that {other} adds to it", path.display());
        Diagnostic::warning(&CONFLICT, graph.declaration(self.second()).name.span, message)
            .with_label(graph.declaration(self.first()).name.span, "the other one")
            .with_help("remove one of them, or let 'match' fit other lines only")
    }
}

/// The conflicts without those of two instances that are the same by another path: one is found at each path that a link leads
/// to.
fn once_each(found: Vec<Conflict>, real_paths: &RealPaths) -> Vec<Conflict> {
    let behind: BTreeSet<_> = found
        .iter()
        .filter_map(|Conflict { first, second, about, path }| Some((*first, *second, *about, real_paths.of(path)?)))
        .collect();
    let is_first = |found: &Conflict| {
        behind.is_empty() || !behind.contains(&(found.first, found.second, found.about, found.path.clone()))
    };
    found.into_iter().filter(is_first).collect()
}

/// Removes conflicts over a part of a file of which both instances state values: these are compared instead.
fn without_stated_parts(mut found: Vec<Conflict>, states: &[(NodeId, &[Statement])]) -> Vec<Conflict> {
    if found.is_empty() {
        return found;
    }
    let things_of =
        |states: &[Statement]| states.iter().map(|statement| statement.thing.clone()).collect::<BTreeSet<_>>();
    let things: BTreeMap<NodeId, _> = states.iter().map(|(id, states)| (*id, things_of(states))).collect();
    let is_stated = |first: NodeId, second: NodeId| {
        things.get(&first).zip(things.get(&second)).is_some_and(|(one, other)| !one.is_disjoint(other))
    };
    found.retain(|each| each.about != Contradiction::SamePart || !is_stated(each.first, each.second));
    found
}

/// The disagreements of instances that are not in conflict over a path as well.
fn besides(mut disagreements: Vec<Disagreement>, found: &[Conflict]) -> Vec<Disagreement> {
    let pairs: BTreeSet<_> = found.iter().map(|found| (found.first, found.second)).collect();
    disagreements.retain(|each| !pairs.contains(&(each.first, each.second)));
    disagreements
}

fn disagreement(graph: &Graph, found: &Disagreement) -> Diagnostic {
    let Disagreement { first, second, thing, property } = found;
    let (one, other) = (graph.label(*first), graph.label(*second));
    let message = if *property == Statement::EXISTENCE {
        format!("of {one} and {other}, one removes {thing} and the other creates it")
    } else {
        format!("{one} and {other} state different values for '{property}' of {thing}")
    };
    Diagnostic::warning(&CONFLICT, graph.declaration(*second).name.span, message)
        .with_label(graph.declaration(*first).name.span, "the other one")
        .with_help("let both state the same, or remove one of them")
}

/// Returns claims with the paths that are meant by those that lead through links that the document creates.
fn through(links: &Links, claims: Claims) -> Claims {
    claims.with_other_paths(|path| links.others(path))
}

/// The properties without those that are not known.
pub(crate) fn written_out(properties: &Template) -> Object {
    let entries = properties.entries().into_iter().flatten().filter(|entry| is_written_out(&entry.value));
    entries.map(|entry| (entry.key.as_ref().to_owned(), entry.value.literal())).collect()
}

fn warnings(graph: &Graph, found: &[Conflict], root: Option<&Path>) -> Vec<Diagnostic> {
    let equal = |one, other| agree(graph.node(one).stated.as_ref(), graph.node(other).stated.as_ref());
    found.iter().filter(|found| !is_same(graph, found, equal)).map(|found| finding(graph, found, root)).collect()
}

/// The desired state of an instance, if it is known before anything runs that it will be reached.
fn settled(graph: &Graph, id: NodeId) -> Option<&Arc<Value>> {
    let stated = graph.node(id).stated.as_ref()?;
    is_unconditional(graph, id).then_some(stated)
}

/// Returns whether neither an instance nor what it is nested in has a condition.
fn is_unconditional(graph: &Graph, id: NodeId) -> bool {
    let has_none = |id: NodeId| graph.declaration(id).condition.is_none();
    std::iter::successors(Some(id), |id| graph.container(*id)).all(has_none)
}

/// Returns whether two desired states are equal, or one agrees with the other on a part of it.
fn agree(one: Option<&Arc<Value>>, other: Option<&Arc<Value>>) -> bool {
    one == other || one.zip(other).is_some_and(|(one, other)| stead_resources::agree_on_part(one, other))
}

/// Returns whether both want the very same thing.
fn is_same(graph: &Graph, found: &Conflict, equal: impl Fn(NodeId, NodeId) -> bool) -> bool {
    let Conflict { first, second, .. } = *found;
    graph.node(first).manifest.type_name == graph.node(second).manifest.type_name && equal(first, second)
}

fn finding(graph: &Graph, found: &Conflict, root: Option<&Path>) -> Diagnostic {
    let Conflict { first, second, about, path } = found;
    let path = &*as_stated(root, path);
    let (one, other) = (graph.label(*first), graph.label(*second));
    let place = graph.declaration(*second).name.span;
    let message = message((&one, &other), *about, path);
    if let Some(advice) = use_the_item(graph, (*first, *second)) {
        return Diagnostic::warning(&CONFLICT, place, message).with_help(advice);
    }
    Diagnostic::warning(&CONFLICT, place, message)
        .with_label(graph.declaration(*first).name.span, "the other one")
        .with_help(match about {
            _ if stead_resources::account_at(path).is_some() => "let both state the same, or remove one of them",
            Contradiction::Same | Contradiction::Kind => "remove one of them, or give them different paths",
            Contradiction::Mode => "remove one of them, or give both the same mode",
            Contradiction::Replaced => "make the other one depend on the link, or remove one of them",
            Contradiction::Existence | Contradiction::SamePart => "remove one of them",
            Contradiction::Purged => "add the name to the 'entries' of the directory, or remove one of them",
        })
}

/// The advice about two iterations of one loop.
fn use_the_item(graph: &Graph, (first, second): (NodeId, NodeId)) -> Option<String> {
    let (one, other) = (graph.node(first), graph.node(second));
    let is_loop = (one.scope, one.declaration) == (other.scope, other.declaration) && one.iteration.is_some();
    let innermost = graph.declaration(second).copy.last().filter(|_| is_loop)?;
    let item = match &innermost.over {
        Over::Each { called, .. } => format!("its item, {}()", called.value),
        Over::Count(_) => "its index, copyIndex()".to_owned(),
    };
    Some(format!("both are of the loop '{}': use {item}, in the path", innermost.name.value))
}

fn message((one, other): (&str, &str), about: Contradiction, path: &Path) -> String {
    if let Some(account) = stead_resources::account_at(path) {
        return format!("{one} and {other} contradict each other about {account}");
    }
    let path = path.display();
    match about {
        Contradiction::Same => format!("{one} and {other} both manage the same file '{path}'"),
        Contradiction::SamePart => format!("{one} and {other} both manage the same part of the file '{path}'"),
        Contradiction::Kind => {
            format!("{one} and {other} require different kinds of '{path}': a file, a directory or a symbolic link")
        }
        Contradiction::Mode => format!("{one} and {other} require different modes of '{path}'"),
        Contradiction::Replaced => {
            format!(
                "{one} manages '{path}', and {other}, which comes later, replaces its directory with a symbolic link"
            )
        }
        Contradiction::Existence => format!("of {one} and {other}, one removes '{path}' and the other creates it"),
        Contradiction::Purged => {
            format!(
                "of {one} and {other}, one removes what its directory should not hold, and the other creates '{path}'"
            )
        }
    }
}
