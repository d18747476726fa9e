//! Things that former runs of a document managed and that it does not have any more.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use stead_core::budget::Budget;
use stead_core::call::Operation;
use stead_core::claims::{Claim, Claims};
use stead_core::diag::Severity;
use stead_core::digest::DigestOfParts;
use stead_core::document::{Document, Instance, Removed};
use stead_core::event::Mode;
use stead_core::expr::Template;
use stead_core::graph::{Graph, Role, ScopeId, codes};
use stead_core::id::{NodeId, ResourceId, TypeName};
use stead_core::text::{Span, Spanned};
use stead_core::value::Value;
use stead_host::store::kept::{Accounted, Kept, LeftBehind, Managed};
use stead_resources::{BuiltIn, builtin, builtin_of};

use crate::accounting::is_there;
use crate::contexts::Contexts;
use crate::delivery::Delivery;
use crate::managing::{Compared, Gone, Heir, Managing, Recorded, is_removal};
use crate::memory::Memory;
use crate::messages::error_chain;
use crate::prepared::Prepared;
use crate::session::Session;
use crate::staying::{NotRestored, Why, unknown};
use crate::things::{Blocked, Held, Hold, Things, to_remove};

/// The fate of one thing.
enum Fate {
    /// It is removed.
    Remove,
    /// It stays, and its record too, unless that is of no more use.
    Stay(Why),
    /// An instance of its name may have it, which is not known before the run.
    MayBeHad,
    /// It is gone, or the document has it under another key: the one that is returned, if it is the very same thing.
    Forget(Option<String>),
}

impl Session {
    /// The things of the instances of a graph.
    pub(crate) fn things(&self, graph: &Graph) -> Things {
        let contexts = Contexts::new(self.context(Arc::<str>::default()), graph);
        Things::new(contexts, Arc::clone(&self.shared.providers), self.system_root())
    }

    /// Compares a whole document with what its former runs managed: adds an instance without existence for each thing that is
    /// to be removed, and a warning about those that stay.
    ///
    /// Guarantees: what is removed was created by a former run of this document on this root, and is managed by no instance
    /// of it and by no other document of the store. Documents without an identity of their own remove nothing. A delivery that restores
    /// a former one removes what newer ones made, of whatever document, unless it says that it keeps it.
    pub fn account_for_removed(&mut self, prepared: &mut Prepared, mode: Mode) {
        let is_compared = matches!(mode.operation, Operation::Test | Operation::Set);
        let Some(memory) = prepared.memory.as_ref().filter(|_| is_compared && prepared.selected.is_none()) else {
            return;
        };
        let stated = prepared.graph.scopes.first().and_then(|scope| scope.document.directives.removed.clone());
        let policy = stated.as_ref().map(|stated| stated.value).unwrap_or_default();
        let delivery = memory.delivery();
        // What newer deliveries made is looked for by each run of one that restores.
        let restores = delivery.restores.is_some();
        let former = memory.accounted().ok().flatten().filter(|_| !restores);
        let is_of_use = former.is_some() || mode.changes() && !restores;
        let document = is_of_use.then(|| self.digest_as_stated(prepared, policy));
        let things = self.things(&prepared.graph);
        let holds = |former: &Accounted| document.as_ref() == Some(&former.document) && holds(former, memory, &things);
        if let Some(Accounted { left, others, document, .. }) = former.filter(holds) {
            let staying = left.is_empty().then(BTreeMap::new);
            prepared.removed = Gone { staying, compared: Some(Compared { document, others }), ..Gone::default() };
            let labels = |left: &LeftBehind| left.first.iter().map(label).collect::<Vec<_>>();
            prepared.warnings.extend(left.iter().map(|(why, left)| Why::of(*why).finding(&labels(left), left.count)));
            return;
        }
        let taken_over = if mode.changes() { memory.take_over() } else { Ok(()) };
        match taken_over.and_then(|()| memory.managed()) {
            Ok(Some(kept)) => {
                let others = memory.digest_of_others().ok();
                prepared.removed.compared =
                    document.zip(others).map(|(document, others)| Compared { document, others });
                let things = (&things, kept.managed.into_iter().chain(kept.left).collect());
                self.judge_left(prepared, things, stated.as_ref());
            }
            Ok(None) => {}
            // A run that changes something reports it.
            Err(error) => {
                let is_silent = policy != Removed::Remove || mode.changes();
                prepared.warnings.extend((!is_silent).then(|| unknown(&error)));
                if restores && policy != Removed::Keep {
                    prepared.removed.not_restored = NotRestored::of_error(&error);
                }
            }
        }
    }

    /// The digest of a document as its instances are stated, which tells what it manages and uses as far as that is known before a run.
    pub(crate) fn digest_as_stated(&self, prepared: &Prepared, policy: Removed) -> String {
        let (graph, budget) = (&prepared.graph, Budget::new(Budget::DOCUMENT));
        let mut digest = DigestOfParts::default();
        digest.text(env!("CARGO_PKG_VERSION"));
        digest.number(policy as usize);
        for folder in [Some(self.root()), self.system_root()] {
            digest.text(&folder.unwrap_or(Path::new("")).to_string_lossy());
        }
        for (id, node) in graph.iter() {
            let folder = &graph.scope(node.scope).folder;
            for text in [node.manifest.type_name.as_str(), &node.name, folder] {
                digest.text(text);
            }
            // What programs manage is known by the path alone.
            if !node.manifest.is_in_process() {
                digest.text(&node.path.to_string());
            }
            let is_instance = node.role == Role::Instance && !graph.is_asserted(id);
            digest.number(usize::from(is_instance));
            for need in node.needs.iter().filter(|need| need.kind.must_succeed()) {
                digest.number(need.node.index());
            }
            match self.desired_so_far(prepared, id, &budget) {
                Some(desired) => digest.value(&desired),
                None => digest.number(0),
            }
        }
        digest.end()
    }

    /// Decides what becomes of the things that a document does not have any more, given all that are recorded.
    fn judge_left(
        &mut self,
        prepared: &mut Prepared,
        (things, recorded): (&Things, BTreeMap<String, Managed>),
        stated: Option<&Spanned<Removed>>,
    ) {
        let policy = stated.map(|stated| stated.value).unwrap_or_default();
        let left = Leftover::of(self, prepared, things, recorded);
        if left.managed.is_empty() {
            prepared.removed.staying = Some(BTreeMap::new());
            return;
        }
        let delivery = prepared.delivery();
        let fates = left.fates(self, prepared, things, |managed| match policy {
            Removed::Report if delivery.takes_back(managed) => Removed::Remove,
            policy => policy,
        });
        let (removing, mut staying) = prepared.removed.sort((self, delivery), fates, policy);
        if !removing.is_empty() {
            // The things become others.
            prepared.removed.compared = None;
        }
        if let Err(why) = self.add_removals(prepared, &removing, stated) {
            staying.extend(removing.into_values().map(|managed| (why.clone(), managed)));
        }
        if policy != Removed::Keep {
            let mut stays: BTreeMap<Why, Vec<String>> = BTreeMap::new();
            for (why, managed) in staying {
                let label = label(&managed);
                if delivery.takes_back(&managed) {
                    prepared.removed.not_restored.insert(&why, label.clone());
                }
                stays.entry(why).or_default().push(label);
            }
            prepared.warnings.extend(stays.iter().map(|(why, things)| why.finding(things, things.len())));
        }
    }

    /// The instances that were to remove what they must not any more: since the document was prepared the record may have become
    /// another, and that of another document.
    pub(crate) fn no_longer_removed(&self, prepared: &Prepared, recorded: &Recorded) -> BTreeSet<NodeId> {
        if prepared.removed.removing.is_empty() {
            return BTreeSet::new();
        }
        let things = self.things(&prepared.graph);
        let elsewhere = Elsewhere::of(&things, prepared);
        let may_go = |key: &String| {
            let created = recorded.thing(key).filter(|managed| managed.created);
            created.zip(created.and_then(|managed| things.claims(managed))).is_some_and(|(managed, claims)| {
                elsewhere.to(managed).as_ref().is_ok_and(|held| held.hold(&claims).is_none())
            })
        };
        prepared.removed.removing.iter().filter(|(_, key)| !may_go(key)).map(|(id, _)| *id).collect()
    }

    /// The things of a document in its run, with what the record has before that.
    pub(crate) fn managing(&self, prepared: &Prepared, recorded: Recorded) -> Managing {
        let (graph, things) = (&prepared.graph, self.things(&prepared.graph));
        let budget = Budget::new(Budget::DOCUMENT);
        let stated = |id: NodeId| {
            graph.declaration(id).properties.as_ref()?.get("_exist")?;
            let desired = self.desired_so_far(prepared, id, &budget).filter(|desired| is_removal(desired))?;
            Some(things.of(graph, id, &desired)?.key)
        };
        let removes = |id: &NodeId| prepared.removed.removing.get(id).cloned().or_else(|| stated(*id));
        let was_created = |key: &String| recorded.thing(key).is_some_and(|thing| thing.created);
        let has_any = recorded.has_created();
        let order = graph.order.iter().filter(|_| has_any);
        let next = order.filter_map(removes).filter(was_created).collect();
        Managing::new((things, graph), prepared.delivery(), &prepared.removed, recorded, next)
    }

    /// The thing with its path as a document in this folder would have it.
    fn as_written(&self, mut managed: Managed) -> Managed {
        let Some(built_in) = builtin(&managed.type_name) else { return managed };
        let removal = managed.removal.as_mut().map(Arc::make_mut);
        let path = removal.zip(built_in.place).and_then(|(removal, place)| removal.get_mut(place));
        if let Some(path) = path.filter(|_| self.system_root().is_none()) {
            let within = path.as_str().and_then(|text| Path::new(text).strip_prefix(self.root()).ok()?.to_str());
            // Some types take absolute paths alone.
            let fits = |within: &&str| !within.is_empty() && accepts_path(built_in, within);
            if let Some(within) = within.filter(fits).map(str::to_owned) {
                *path = within.into();
            }
        }
        managed
    }

    /// Resolves the document anew with an instance for each thing that is to be removed.
    fn add_removals(
        &mut self,
        prepared: &mut Prepared,
        removing: &BTreeMap<String, Managed>,
        stated: Option<&Spanned<Removed>>,
    ) -> Result<(), Why> {
        let Some(document) = prepared.graph.scopes.first().map(|scope| Arc::clone(&scope.document)) else {
            return Ok(());
        };
        if removing.is_empty() {
            return Ok(());
        }
        let own = document.resources.len();
        let members = &prepared.graph.scope(ScopeId(0)).members;
        let names = members.iter().map(|id| prepared.graph.id_of(*id).to_string().to_lowercase()).collect();
        let span = stated.map(|stated| stated.span).unwrap_or_default();
        let removals = instances(removing, names, span);
        let supplied = prepared.supplied.clone();
        let mut with = |removals: Vec<Instance>| {
            let mut document = Document::clone(&document);
            document.resources.extend(removals);
            self.resolve(document, &supplied, Vec::new())
        };
        let unordered = || removals.iter().map(|each| Instance { depends_on: Vec::new(), ..each.clone() }).collect();
        let resolved = match with(removals.clone()) {
            // What was recorded by several runs may need each other in a circle.
            Err(unusable) if unusable.findings.iter().any(|finding| finding.code.id == codes::CYCLE.id) => {
                with(unordered())
            }
            resolved => resolved,
        };
        let mut with = resolved.map_err(|unusable| {
            let mut errors = unusable.findings.iter().filter(|finding| finding.severity == Severity::Error);
            Why::Unresolved(errors.next().map(|finding| finding.message.clone()).unwrap_or_default())
        })?;
        self.complete_order(&mut with);
        let keys: Vec<&String> = removing.keys().collect();
        let added = with.graph.scope(ScopeId(0)).members.iter().filter_map(|id| {
            let place = (with.graph.node(*id).declaration as usize).checked_sub(own)?;
            Some((*id, (*keys.get(place)?).clone()))
        });
        prepared.removed.removing = added.collect();
        (prepared.graph, prepared.sources, prepared.facts) = (with.graph, with.sources, with.facts);
        prepared.shared = with.shared;
        Ok(())
    }
}

/// Returns whether nothing shows that another comparison with the same document would come to something else.
fn holds(former: &Accounted, memory: &Memory, things: &Things) -> bool {
    let others = |digest: String| digest == former.others;
    former.left.is_empty() || memory.digest_of_others().is_ok_and(others) && is_there(former, things)
}

/// The name of a thing in messages.
fn label(managed: &Managed) -> String {
    format!("'{}' ({})", managed.name, managed.type_name)
}

impl Gone {
    /// Sorts things by their fates: returns those that are removed, by key, and those that stay.
    fn sort(
        &mut self,
        (session, delivery): (&Session, Delivery),
        fates: Vec<(String, Managed, Fate)>,
        policy: Removed,
    ) -> (BTreeMap<String, Managed>, Vec<(Why, Managed)>) {
        let (mut removing, mut staying, mut known) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        for (key, managed, fate) in fates {
            match fate {
                Fate::Remove => drop(removing.insert(key, session.as_written(managed))),
                Fate::MayBeHad => {}
                Fate::Forget(heir) => {
                    let heir = heir.map(|key| Heir { key, is_of_created: managed.created, since: managed.since });
                    self.inherited.extend(heir.map(|heir| (key.clone(), heir)));
                    self.forgotten.insert(key);
                }
                Fate::Stay(why) => {
                    // What a run had begun to remove is still to go.
                    let is_over = match why {
                        Why::NotCreated => !delivery.takes_back(&managed),
                        Why::NotRemovable => true,
                        // A restore takes it back all the same.
                        Why::Elsewhere => managed.since == 0,
                        _ => false,
                    };
                    if policy == Removed::Keep || is_over {
                        self.forgotten.insert(key);
                    } else {
                        known.extend(why.reason().filter(|_| policy == Removed::Report).map(|reason| (key, reason)));
                    }
                    staying.push((why, managed));
                }
            }
        }
        self.staying = Some(known);
        (removing, staying)
    }
}

/// An instance for each thing, in the order of the keys. What depended on another is removed before it.
fn instances(removing: &BTreeMap<String, Managed>, mut taken: HashSet<String>, span: Span) -> Vec<Instance> {
    let mut id_of = |managed: &Managed| {
        let id = |name: String| ResourceId { type_name: managed.type_name.clone(), name: name.into() };
        let numbered = (2..).map(|number| format!("{} (removed {number})", managed.name));
        let named = [managed.name.to_string(), format!("{} (removed)", managed.name)].into_iter().chain(numbered);
        let mut free = named.map(id).filter(|id| taken.insert(id.to_string().to_lowercase()));
        free.next()
    };
    let ids: BTreeMap<&String, ResourceId> =
        removing.iter().filter_map(|(key, managed)| Some((key, id_of(managed)?))).collect();
    let mut dependents: BTreeMap<&String, Vec<&ResourceId>> = BTreeMap::new();
    for (key, managed) in removing {
        managed.after.iter().for_each(|needed| dependents.entry(needed).or_default().extend(ids.get(key)));
    }
    let instance = |(key, managed): (&String, &Managed)| {
        let before = dependents.get(key).into_iter().flatten();
        let depends_on = before.map(|id| Template::of_value(Value::from(id.to_string()))).collect();
        Some(Instance { depends_on, ..Instance::unwritten(ids.get(key)?, to_remove(managed), span) })
    };
    removing.iter().filter_map(instance).collect()
}

/// The things that no instance of the document has by its key.
struct Leftover {
    managed: BTreeMap<String, Managed>,
    budget: Budget,
}

impl Leftover {
    fn of(session: &Session, prepared: &Prepared, things: &Things, mut managed: BTreeMap<String, Managed>) -> Self {
        let budget = Budget::new(Budget::DOCUMENT);
        for (id, _) in prepared.graph.iter() {
            if managed.is_empty() {
                break;
            }
            let desired = session.desired_so_far(prepared, id, &budget);
            if let Some(thing) = desired.and_then(|desired| things.of(&prepared.graph, id, &desired)) {
                managed.remove(&thing.key);
            }
        }
        Self { managed, budget }
    }

    fn fates(
        self,
        session: &Session,
        prepared: &Prepared,
        things: &Things,
        policy: impl Fn(&Managed) -> Removed,
    ) -> Vec<(String, Managed, Fate)> {
        let mut held = things.held();
        session.known(prepared, true).iter().for_each(|known| held.add_known(known));
        let open = self.open(session, prepared, things, &mut held);
        let elsewhere = Elsewhere::of(things, prepared);
        let open = Open::of(&open, &prepared.graph, self.managed.values());
        let fate = |(key, managed): (String, Managed)| {
            let fate = match self::claimed(session, prepared, things, &managed, &held) {
                Some(fate) => fate,
                None if open.may_have(&managed) => Fate::MayBeHad,
                None => free(things, &managed, (elsewhere.to(&managed), open.first.clone()), policy(&managed)),
            };
            (key, managed, fate)
        };
        let mut fates: Vec<_> = self.managed.into_iter().map(fate).collect();
        keep_blocked(things, &mut fates);
        fates
    }

    /// Adds the things of instances whose claims are wider, and returns those whose thing is not known before the run.
    fn open(&self, session: &Session, prepared: &Prepared, things: &Things, held: &mut Held) -> Vec<NodeId> {
        let graph = &prepared.graph;
        let mut open = Vec::new();
        for (id, node) in graph.iter() {
            let Some(built_in) = builtin_of(&node.manifest) else { continue };
            let desired = session.desired_so_far(prepared, id, &self.budget);
            let written = graph.declaration(id).properties.as_ref();
            let is_written = |name: &str| written.is_some_and(|written| written.get(name).is_some());
            let known =
                |name: &str| desired.as_ref().and_then(|desired| desired.get(name)).filter(|it| !it.has_sealed());
            let is_open = built_in.known_by(is_written, known).any(|name| known(name).is_none() && is_written(name));
            open.extend(is_open.then_some(id));
            let thing = desired.and_then(|desired| things.of(graph, id, &desired));
            if let Some(claims) = thing.and_then(|thing| things.claims(&thing.managed)) {
                held.add(Some(id), &claims);
            }
        }
        open
    }
}

/// The instances whose things are not known before the run.
struct Open {
    /// The name of the first.
    first: Option<String>,
    /// The types and names of those that may still have what they had. Where a name had more than there are of it, some of that
    /// is left behind.
    unchanged: BTreeSet<(TypeName, Box<str>)>,
}

impl Open {
    fn of<'m>(instances: &[NodeId], graph: &Graph, left: impl Iterator<Item = &'m Managed>) -> Self {
        let mut had: BTreeMap<(TypeName, Box<str>), usize> = BTreeMap::new();
        left.for_each(|managed| *had.entry((managed.type_name.clone(), managed.name.clone())).or_default() += 1);
        let mut has: BTreeMap<(TypeName, Box<str>), usize> = BTreeMap::new();
        for node in instances.iter().map(|id| graph.node(*id)) {
            *has.entry((node.manifest.type_name.clone(), (&*node.name).into())).or_default() += 1;
        }
        has.retain(|name, has| had.get(name).is_some_and(|had| had <= has));
        Self { first: instances.first().map(|id| graph.label(*id)), unchanged: has.into_keys().collect() }
    }

    fn may_have(&self, managed: &Managed) -> bool {
        self.unchanged.contains(&(managed.type_name.clone(), managed.name.clone()))
    }
}

/// The things that the runs of other documents manage, or why they are not known.
struct Elsewhere {
    delivery: Delivery,
    all: Result<Held, String>,
    /// Those of documents that nobody delivered, for a restore.
    undelivered: Option<Result<Held, String>>,
}

impl Elsewhere {
    fn of(things: &Things, prepared: &Prepared) -> Self {
        let others = prepared.memory.as_ref().map_or_else(|| Ok(Vec::new()), Memory::others);
        let others = others.map_err(|error| error_chain(&error));
        let held = |is_wanted: fn(&Kept) -> bool| {
            let mut held = things.held();
            for (_, managed) in others.as_ref()?.iter().filter(|kept| is_wanted(kept)).flat_map(Kept::things) {
                things.claims(managed).iter().for_each(|claims| held.add(None, claims));
            }
            Ok(held)
        };
        let delivery = prepared.delivery();
        let held = |is_wanted| held(is_wanted).map_err(String::clone);
        let undelivered = delivery.restores.map(|_| held(|kept| !kept.is_of_delivery()));
        Self { delivery, all: held(|_| true), undelivered }
    }

    /// Those that can keep a thing from being removed. Of documents that are delivered one at a time is in force: the others have
    /// nothing that a restore takes back.
    fn to(&self, managed: &Managed) -> &Result<Held, String> {
        self.undelivered.as_ref().filter(|_| self.delivery.takes_back(managed)).unwrap_or(&self.all)
    }
}

/// The fate of a thing that the document has under another key, or uses.
fn claimed(session: &Session, prepared: &Prepared, things: &Things, managed: &Managed, held: &Held) -> Option<Fate> {
    let claims = things.claims(managed)?;
    match held.hold(&claims)? {
        Hold::Used => Some(Fate::Stay(Why::Used)),
        Hold::Managed(by) => {
            let of = |id: NodeId| {
                let desired = session.desired_so_far(prepared, id, &Budget::new(Budget::DOCUMENT))?;
                things.of(&prepared.graph, id, &desired)
            };
            // Another type may have it, such as a template what was a file.
            let is_same = |other: Claims| held.own(other) == held.own(claims.clone());
            let same = by.and_then(of).filter(|thing| things.claims(&thing.managed).is_some_and(is_same));
            Some(Fate::Forget(same.map(|thing| thing.key)))
        }
    }
}

/// Keeps what cannot be removed as it is now, such as a directory with something of others in it: a run that tried would fail each
/// time. What is only in the way of it until this run removes that, too, keeps nothing.
fn keep_blocked(things: &Things, fates: &mut [(String, Managed, Fate)]) {
    let path = |managed: &Managed| {
        let claims = things.claims(managed)?;
        claims.0.first().map(|Claim::Path { path, .. }| path.to_path_buf())
    };
    let removed = fates.iter().enumerate().filter(|(_, (.., fate))| matches!(fate, Fate::Remove));
    let mut going: BTreeMap<PathBuf, usize> =
        removed.filter_map(|(at, (_, managed, _))| Some((path(managed)?, at))).collect();
    let needed: BTreeSet<String> =
        going.values().filter_map(|at| fates.get(*at)).flat_map(|(_, managed, _)| managed.after.clone()).collect();
    // What lies in a directory comes before it.
    for (path, at) in going.clone().into_iter().rev() {
        let Some((key, managed, fate)) = fates.get_mut(at) else { continue };
        let why = match things.blocked(managed) {
            None => continue,
            Some(Blocked::By(entries)) if entries.iter().all(|name| going.contains_key(&path.join(name))) => continue,
            Some(Blocked::By(_)) => Why::Occupied,
            Some(Blocked::Otherwise(_)) if needed.contains(key) => continue,
            Some(Blocked::Otherwise(message)) => Why::Blocked(message),
        };
        *fate = Fate::Stay(why);
        going.remove(&path);
    }
}

/// Returns whether the schema of a built-in type accepts a path of its things.
fn accepts_path(built_in: &BuiltIn, path: &str) -> bool {
    let Some(place) = built_in.place else { return false };
    let mismatches = built_in.compiled().map(|schema| schema.validate(&json!({ place: path }))).unwrap_or_default();
    !mismatches.iter().any(|mismatch| mismatch.pointer.strip_prefix('/') == Some(place))
}

/// The fate of a thing that the document does not have in any way.
fn free(
    things: &Things,
    managed: &Managed,
    (elsewhere, open): (&Result<Held, String>, Option<String>),
    policy: Removed,
) -> Fate {
    let stay = |why| Fate::Stay(why);
    let claims = things.claims(managed);
    if claims.is_some() && things.is_absent(managed) {
        return Fate::Forget(None);
    }
    let Some(claims) = claims.filter(|_| managed.created) else {
        return stay(if managed.created { Why::NotRemovable } else { Why::NotCreated });
    };
    match elsewhere.as_ref().map(|held| held.hold(&claims)) {
        Ok(Some(Hold::Managed(_))) => return stay(Why::Elsewhere),
        Ok(Some(Hold::Used)) => return stay(Why::Used),
        Err(error) if policy == Removed::Remove => return stay(Why::Unreadable(error.clone())),
        Ok(None) | Err(_) => {}
    }
    match (policy, open) {
        (Removed::Remove, None) => Fate::Remove,
        (Removed::Remove, Some(open)) => stay(Why::Open(open)),
        (Removed::Report | Removed::Keep, _) => stay(Why::NotStated),
    }
}

#[cfg(test)]
mod tests {
    use stead_core::value::Object;

    use super::*;
    use crate::host::{Host, HostOptions};

    #[test]
    fn a_removal_that_the_document_cannot_be_resolved_with_says_why() {
        let mut session = Host::new(HostOptions::default()).session("/");
        let prepared = session.prepare("main.yaml", "resources: []", Object::new());
        let mut prepared = prepared.unwrap_or_else(|_| panic!("valid"));
        let type_name = TypeName::parse("Test/Missing").unwrap();
        let thing = Managed { name: "a".into(), type_name, removal: None, created: true, since: 0, after: Vec::new() };
        let why = session.add_removals(&mut prepared, &BTreeMap::from([("a".to_owned(), thing)]), None).unwrap_err();
        let said = why.finding(&["'a' (Test/Missing)".to_owned()], 1).message;
        assert!(said.starts_with("no longer in the document; kept, since the document cannot be resolved"), "{said}");
        assert!(said.contains("Test/Missing") && prepared.removed.removing.is_empty(), "{said}");
    }
}
