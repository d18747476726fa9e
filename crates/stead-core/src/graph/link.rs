//! The second pass: what each instance needs, whether it may, and the order that follows.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::builder::{Builder, LoopNames};
use super::check::Use;
use super::order::{Cycle, sort};
use super::{Exclusion, Graph, Iteration, Need, NeedKind, Role, ScopeId, StaticView, codes, evaluate, wrong_output};
use crate::budget::Cost;
use crate::diag::{Diagnostic, Meant, nearest};
use crate::document::{Document, Exclusive, Relation};
use crate::expr::{Expression, Placed, Subexpression, Template, expressions};
use crate::id::{NodeId, ResourceId, TypeName};
use crate::manifest;
use crate::text::{Span, locate, shown};
use crate::value::Value;

pub(super) fn link(builder: &mut Builder<'_>) {
    for at in 0..builder.graph.scopes.len() {
        let document = Arc::clone(&builder.graph.scopes[at].document);
        builder.check_functions(&document);
    }
    for at in 0..builder.graph.nodes.len() {
        if builder.findings.is_full() || builder.budget.check().is_err() {
            return;
        }
        let id = NodeId(u32::try_from(at).unwrap_or(u32::MAX));
        for (who, need) in needs(builder, id) {
            builder.graph.nodes[who.index()].needs.push(need);
        }
        if let Some(exclusion) = exclusion(builder, id) {
            builder.graph.exclusions.insert(id, exclusion);
        }
    }
    for node in &mut builder.graph.nodes {
        node.needs.sort_unstable();
        node.needs.dedup();
    }
    outputs(builder);
    if !builder.findings.any_error() {
        order(builder);
    }
}

/// Who names an instance.
pub(super) struct Origin<'d> {
    who: Who<'d>,
    pub(super) scope: ScopeId,
    pub(super) iteration: Option<Box<Iteration>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Who<'d> {
    Instance(NodeId),
    /// An output, by its name.
    Output(&'d str),
}

impl Origin<'_> {
    fn label(&self, graph: &Graph) -> String {
        match self.who {
            Who::Instance(id) => graph.label(id),
            Who::Output(name) => format!("output '{name}'"),
        }
    }

    fn name<'a>(&'a self, graph: &'a Graph) -> &'a str {
        match self.who {
            Who::Instance(id) => &graph.node(id).name,
            Who::Output(name) => name,
        }
    }
}

/// The needs that an instance declares, and whose they are: its own, or with `before` those of others.
fn needs(builder: &mut Builder<'_>, id: NodeId) -> Vec<(NodeId, Need)> {
    let node = builder.graph.node(id);
    let origin = Origin { who: Who::Instance(id), scope: node.scope, iteration: node.iteration.clone() };
    let document = Arc::clone(&builder.graph.scope(origin.scope).document);
    let declaration = &document.resources[node.declaration as usize];
    // The properties of what holds others are its nested instances, which have needs of their own. What is stated as it is
    // holds no expression.
    let evaluated =
        node.role == Role::Instance && node.manifest.kind != manifest::ResourceKind::Group && node.stated.is_none();
    let mut needs = Vec::new();
    let own = |kind| move |node| (id, Need { node, kind });
    needs.extend(targets(builder, &origin, &declaration.depends_on, "dependsOn").map(own(NeedKind::Require)));
    for (relation, ids) in &declaration.directives().relations {
        let others = targets(builder, &origin, ids, relation.as_str());
        match relation {
            Relation::RequireAny => needs.extend(others.map(own(NeedKind::RequireAny))),
            Relation::OnChanges => needs.extend(others.map(own(NeedKind::OnChanges))),
            Relation::OnFailure => needs.extend(others.map(own(NeedKind::OnFailure))),
            Relation::Before => needs.extend(others.map(|other| (other, Need { node: id, kind: NeedKind::Order }))),
        }
    }
    let condition = declaration.condition.as_deref();
    let used = condition_use(builder, id, &origin, condition);
    let properties = declaration.properties.as_ref().filter(|_| evaluated);
    for (node, used) in
        condition.map(|node| (node, Use::Computed)).into_iter().chain(properties.map(|node| (node, used)))
    {
        let expressions = expressions(node);
        let is_condition = condition.is_some_and(|condition| std::ptr::eq(condition, node));
        let notifies = if is_condition { NeedKind::Notify } else { NeedKind::Require };
        for (function, kind) in [(REFERENCE, NeedKind::Require), ("stateChanged", notifies)] {
            needs.extend(references(builder, &origin, &expressions, function).into_iter().map(own(kind)));
        }
        builder.check(origin.scope, origin.iteration.as_deref(), &expressions, used);
    }
    needs
}

/// Returns the exclusions of the calls of an instance, by its own directive and by that of what it is nested in,
/// which comes before it.
fn exclusion(builder: &mut Builder<'_>, id: NodeId) -> Option<Arc<Exclusion>> {
    let outer = builder.graph.container(id).and_then(|container| builder.graph.exclusions.get(&container)).cloned();
    let (scope, iteration) = (builder.graph.node(id).scope, builder.graph.node(id).iteration.clone());
    let document = Arc::clone(&builder.graph.scope(scope).document);
    let declaration = &document.resources[builder.graph.node(id).declaration as usize];
    let Some(own) = &declaration.directives().exclusive else { return outer };
    let mut names = match outer.as_deref() {
        Some(Exclusion::All) => return outer,
        Some(Exclusion::Names(names)) => names.clone(),
        None => BTreeSet::new(),
    };
    if let Exclusive::All = own {
        return Some(Arc::new(Exclusion::All));
    }
    let texts = own.names().iter().filter_map(|name| builder.text(scope, iteration.as_deref(), name, "exclusive"));
    names.extend(texts.map(Arc::from));
    Some(Arc::new(Exclusion::Names(names)))
}

/// Returns how certain it is that the properties of an instance will be computed, as far as its condition is known.
fn condition_use(builder: &mut Builder<'_>, id: NodeId, origin: &Origin<'_>, condition: Option<&Template>) -> Use {
    let Some(condition) = condition else { return Use::Computed };
    let view = StaticView(builder.place(origin.scope, origin.iteration.as_deref()));
    let value = match evaluate(condition, &view) {
        Ok(value) => value,
        Err(halt) => {
            // Whatever else is wrong with it is found when it is checked.
            let too_much = halt.diagnostic(builder.sources).filter(|_| builder.budget.check().is_err());
            builder.findings.extend(too_much);
            return Use::Computed;
        }
    };
    match builder.graph.holds(id, condition, &value) {
        Ok(true) => Use::Computed,
        Ok(false) => Use::Skipped,
        Err(finding) => {
            builder.findings.push(*finding);
            Use::Computed
        }
    }
}

/// The instances that a list of ids names.
fn targets(
    builder: &mut Builder<'_>,
    origin: &Origin<'_>,
    ids: &[Template],
    key: &'static str,
) -> std::vec::IntoIter<NodeId> {
    let mut found = Vec::with_capacity(ids.len());
    for entry in ids {
        let Some(text) = builder.text(origin.scope, origin.iteration.as_deref(), entry, key) else { continue };
        match whole_loop(builder, origin.scope, &text, entry.span) {
            Some(all) => found.extend_from_slice(&all),
            None => found.extend(target(builder, origin, &text, entry.span, Link::Names(key))),
        }
    }
    found.into_iter()
}

/// Where the loops of a document are named.
fn loop_names(document: &Document) -> LoopNames {
    let mut names = LoopNames::new();
    for copy in document.resources.iter().flat_map(|instance| &instance.copy) {
        match names.get_mut(copy.name.value.as_str()) {
            Some((_, second)) => *second = second.or(Some(copy.name.span)),
            None => _ = names.insert(copy.name.value.as_str().into(), (copy.name.span, None)),
        }
    }
    names
}

/// All instances of the adjacent loop of that name; `None` where there is no such loop, or the text is an id.
fn whole_loop(builder: &mut Builder<'_>, scope: ScopeId, name: &str, span: Span) -> Option<Arc<[NodeId]>> {
    if name.contains('/') {
        return None;
    }
    let graph = &builder.graph;
    let names = builder.loop_names.entry(scope).or_insert_with(|| loop_names(&graph.scope(scope).document));
    let (first, second) = *names.get(name)?;
    if let Some(second) = second {
        let message = format!("two loops are called '{name}'");
        let finding = Diagnostic::error(&codes::TWO_LOOPS, span, message)
            .with_label(first, "one")
            .with_label(second, "the other one");
        builder.findings.push(finding.with_help("give one of them another name, or name instances with resourceId()"));
        return Some(Arc::default());
    }
    let key = (scope, name.into());
    let known = builder.loops.get(&key).cloned();
    let all = known.unwrap_or_else(|| {
        let graph = &builder.graph;
        let is_in = |id: &&NodeId| {
            let iteration = graph.node(**id).iteration.as_deref();
            iteration.is_some_and(|iteration| iteration.outward().any(|each| *each.name == *name))
        };
        let all: Arc<[NodeId]> = graph.scope(scope).members.iter().filter(is_in).copied().collect();
        builder.loops.insert(key, Arc::clone(&all));
        all
    });
    // Loops that wait for loops multiply.
    let bytes = (size_of::<Need>() * all.len()) as u64;
    if let Err(exceeded) = builder.budget.spend(Cost { steps: all.len() as u64, bytes }) {
        builder.too_large(span, format!("the document takes {exceeded}"));
        return Some(Arc::default());
    }
    Some(all)
}

/// Instances that the outputs refer to must exist as well. One with a condition may name what there is only when that
/// is true.
fn outputs(builder: &mut Builder<'_>) {
    let Some(outermost) = builder.graph.scopes.first() else { return };
    let document = Arc::clone(&outermost.document);
    for output in &document.outputs {
        let origin = Origin { who: Who::Output(&output.name.value), scope: ScopeId(0), iteration: None };
        let view = StaticView(builder.place(ScopeId(0), None));
        let used = Use::of(output.condition.as_ref(), &view);
        let wrong = evaluate(&output.value, &view).ok().and_then(|value| wrong_output(output, &value));
        builder.findings.extend(wrong.filter(|_| used == Use::Computed));
        let value = expressions(&output.value);
        if output.condition.is_none() {
            for function in REFERRING {
                references(builder, &origin, &value, function);
            }
        }
        builder.check(origin.scope, origin.iteration.as_deref(), &value, used);
        let condition = output.condition.as_ref().map(expressions).unwrap_or_default();
        builder.check(origin.scope, origin.iteration.as_deref(), &condition, Use::Computed);
    }
}

/// How an instance is named by another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    /// In a list of ids under this key.
    Names(&'static str),
    RefersTo,
}

impl Link {
    /// Returns the action of an instance that names the other in this way.
    fn does(self, other: &str) -> String {
        match self {
            Self::Names("dependsOn") => format!("depends on {other}"),
            Self::Names(key) => format!("names {other} in '{key}'"),
            Self::RefersTo => format!("refers to {other}"),
        }
    }

    /// Returns the action that another instance should state instead, to come in the same order.
    fn instead(self, other: &str) -> String {
        match self {
            Self::Names("dependsOn") | Self::RefersTo => format!("depend on {other}"),
            Self::Names(key) => format!("name {other} in '{key}'"),
        }
    }
}

/// The instances that a value refers to by a function, as far as that is known before anything runs.
fn references(
    builder: &mut Builder<'_>,
    origin: &Origin<'_>,
    expressions: &[Placed<'_>],
    function: &str,
) -> Vec<NodeId> {
    let found: Vec<Reference<'_>> = references_in(expressions, function).collect();
    let mut targets = Vec::with_capacity(found.len());
    for reference in &found {
        let Some(text) = known_text(builder, origin, reference.argument) else {
            builder.graph.referred.scopes.insert(origin.scope);
            continue;
        };
        let span = locate(builder.sources, reference.span, reference.argument.at());
        targets.extend(target(builder, origin, &text, span, Link::RefersTo));
    }
    if function == REFERENCE {
        builder.graph.referred.nodes.extend(&targets);
    }
    targets
}

/// The functions that refer to an instance.
pub(super) const REFERRING: [&str; 2] = [REFERENCE, "stateChanged"];

const REFERENCE: &str = "reference";

/// The argument of a call that refers to an instance.
pub(super) struct Reference<'a> {
    /// The string that holds the expression.
    pub(super) span: Span,
    pub(super) argument: Subexpression<'a>,
}

/// The argument of a `reference()`, if it is known before anything runs.
fn known_text(builder: &Builder<'_>, origin: &Origin<'_>, argument: Subexpression<'_>) -> Option<String> {
    let (scope, iteration) = (origin.scope, origin.iteration.as_deref());
    let place = builder.place(scope, iteration);
    match argument.evaluate(&place) {
        Ok(Value::String(text)) => Some(text),
        _ => None,
    }
}

pub(super) fn references_in<'a>(
    expressions: &'a [Placed<'a>],
    function: &'a str,
) -> impl Iterator<Item = Reference<'a>> {
    expressions.iter().flat_map(move |Placed { expression, span }| {
        let arguments = expression.calls(function).filter_map(|call| call.arguments().next());
        arguments.map(|argument| Reference { span: *span, argument })
    })
}

/// The adjacent instance of that id, or a finding that says why there is none.
fn target(builder: &mut Builder<'_>, origin: &Origin<'_>, text: &str, span: Span, link: Link) -> Option<NodeId> {
    let id = match ResourceId::parse(text) {
        Ok(id) => id,
        Err(error) => {
            let finding = Diagnostic::error(&codes::NOT_AN_ID, span, error.to_string());
            let written = builder.sources.text(span).filter(|_| matches!(link, Link::Names(_)));
            let loops = builder.graph.scope(origin.scope).document.resources.iter().flat_map(|instance| &instance.copy);
            let finding = match Meant::name(text, loops.map(|copy| &*copy.name.value)) {
                Some(meant) if matches!(link, Link::Names(_)) => finding.with_meant(text, &meant, written),
                _ => named(builder, origin, text).explain(finding, link, written, text),
            };
            builder.findings.push(finding);
            return None;
        }
    };
    if let Some(found) = builder.graph.scope(origin.scope).ids.get(&id) {
        return Some(found.node());
    }
    if builder.is_incomplete || builder.graph.scope(origin.scope).open.names.contains(&id.type_name) {
        return None;
    }
    let finding = match builder.graph.scopes.iter().find_map(|scope| scope.ids.get(&id)) {
        Some(external) => external_target(&builder.graph, origin, external.node(), span, link),
        None => unknown_target(builder, origin, &id, span, link),
    };
    builder.findings.push(finding);
    None
}

/// The adjacent instances that a text names by their name alone, or as `[Type]name`.
struct Named {
    /// Those that it can mean.
    ids: Vec<ResourceId>,
    /// Those that have the name and another type than it states.
    others: Vec<ResourceId>,
    /// Those with the one name that is near, where none has the name.
    near: Vec<ResourceId>,
}

fn named(builder: &Builder<'_>, origin: &Origin<'_>, text: &str) -> Named {
    let (stated, name) = stated_parts(text);
    let graph = &builder.graph;
    let has_path = |id: NodeId| {
        let properties = graph.declaration(id).properties.as_ref().filter(|_| name.starts_with('/'));
        properties.and_then(|properties| properties.get("path")).and_then(Template::as_str) == Some(name)
    };
    let is_meant = |id: &&NodeId| *graph.node(**id).name == *name || has_path(**id);
    let members = graph.scope(origin.scope).members.iter().filter(is_meant);
    let is_stated = |id: &ResourceId| {
        let is_it = |stated: &str| {
            [id.type_name.as_str(), id.type_name.short()].iter().any(|it| it.eq_ignore_ascii_case(stated))
        };
        stated.is_none_or(is_it)
    };
    let (ids, others): (Vec<_>, Vec<_>) = members.map(|id| graph.id_of(*id)).partition(is_stated);
    let all = || graph.scope(origin.scope).members.iter().map(|id| graph.node(*id));
    let is_unknown = ids.is_empty() && others.is_empty();
    let meant = nearest(name, all().map(|node| &*node.name)).filter(|_| is_unknown);
    let near = all().filter(|node| Some(&*node.name) == meant).map(|node| node.path.id().clone()).collect();
    Named { ids, others, near }
}

/// The type and the name in an id of PowerShell, `[File]a`, of Puppet, `File['a']`, and in `Stead/File/a`.
fn stated_parts(text: &str) -> (Option<&str>, &str) {
    let of_powershell = || text.strip_prefix('[')?.split_once(']');
    let of_puppet = || {
        let (stated, name) = text.strip_suffix(']')?.split_once('[')?;
        let is_type = !stated.is_empty() && stated.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '/'));
        is_type.then_some((stated, name.trim_matches(['\'', '"'])))
    };
    let of_path = || text.rsplit_once('/').filter(|(stated, _)| TypeName::parse(stated).is_ok());
    let parts = of_powershell().or_else(of_puppet).or_else(of_path);
    parts.map_or((None, text), |(stated, name)| (Some(stated), name))
}

/// Returns whether an instance is what Puppet calls a file: a directory or a link is one as well.
fn is_file_of_puppet(text: &str, id: &ResourceId) -> bool {
    let is_file = stated_parts(text).0.is_some_and(|stated| stated.eq_ignore_ascii_case("file"));
    is_file && !text.starts_with('[') && ["Stead/Directory", "Stead/Symlink"].contains(&id.type_name.as_str())
}

impl Named {
    /// The finding with what to write, and with the change that writes it where there is only one.
    fn explain(self, finding: Diagnostic, link: Link, written: Option<&str>, text: &str) -> Diagnostic {
        let form = |id: &ResourceId| {
            let call = format!("resourceId('{}', '{}')", id.type_name, id.name.replace('\'', "''"));
            if matches!(link, Link::Names(_)) { format!("[{call}]") } else { call }
        };
        match (&*self.ids, self.others.first()) {
            ([id], _) if text.starts_with('/') => {
                let found = with_id(finding, &form(id), written, text);
                let note = "; what lies in a path or uses it comes after it without this";
                Diagnostic { help: found.help.map(|help| help + note), ..found }
            }
            ([id], _) => with_id(finding, &form(id), written, text),
            ([], Some(other)) => {
                let what = format!("'{}' is of type '{}'", other.name, other.type_name);
                match &*self.others {
                    [only] if is_file_of_puppet(text, only) => {
                        let found = with_id(finding, &form(only), written, text);
                        Diagnostic { help: found.help.map(|help| format!("{what}: {help}")), ..found }
                    }
                    _ => finding.with_help(what),
                }
            }
            ([], None) => match &*self.near {
                _ if text.starts_with("resourceId(") && Expression::parse(&format!("[{text}]")).is_ok() => {
                    with_id(finding, &format!("[{text}]"), written, text)
                }
                [id] => finding.with_help(format!("did you mean '{}'? Write {}", id.name, form(id))),
                _ => finding.with_help("write [resourceId('Owner/Type', 'name')]"),
            },
            (several, _) => {
                let forms: Vec<String> = several.iter().take(3).map(form).collect();
                finding.with_help(format!("write {}", forms.join(" or ")))
            }
        }
    }
}

/// The finding with the id that was meant, and the change that writes it where the text stands as it is.
fn with_id(finding: Diagnostic, meant: &str, written: Option<&str>, text: &str) -> Diagnostic {
    let finding = finding.with_help(format!("write {meant}"));
    let stands = written.is_some_and(|written| written.trim_matches(['"', '\'']) == text);
    match finding.span.filter(|_| stands && !meant.contains(['"', '\\'])) {
        Some(span) => finding.with_fix(span, format!("\"{meant}\"")),
        None => finding,
    }
}

fn unknown_target(
    builder: &mut Builder<'_>,
    origin: &Origin<'_>,
    id: &ResourceId,
    span: Span,
    link: Link,
) -> Diagnostic {
    let wanted = format!("'{}' ({})", id.name, id.type_name);
    let message = match link {
        Link::Names(key) => format!(
            "'{key}' resource name '{}' does not exist for resource named '{}': there is no {wanted}",
            id.name,
            origin.name(&builder.graph)
        ),
        Link::RefersTo => format!("{} refers to {wanted}, which does not exist", origin.label(&builder.graph)),
    };
    let finding = Diagnostic::error(&codes::UNKNOWN_INSTANCE, span, message);
    // A name that is computed is seldom misspelt.
    if link == Link::RefersTo && builder.sources.text(span).is_some_and(|text| !text.contains(&*id.name)) {
        return finding.with_help(
            "names must exist in every branch, also where it is not taken; choose the name instead: \
             reference(if(CONDITION, resourceId(...), resourceId(...)))",
        );
    }
    let Some(meant) = builder.meant(id, origin.scope) else {
        return finding.with_help(names_of_type(builder, origin, id));
    };
    let adjacent = builder.graph.scope(origin.scope).ids.iter().map(|other| other.0.id());
    match adjacent.filter(|other| other.name == id.name).min() {
        Some(other) => finding.with_help(format!("'{}' is of type '{}'", other.name, other.type_name)),
        None => finding.with_meant(&id.name, &meant, builder.sources.text(span)),
    }
}

/// The names of the instances of a type that can be named, in words.
fn names_of_type(builder: &Builder<'_>, origin: &Origin<'_>, id: &ResourceId) -> String {
    const MOST: usize = 9;
    let adjacent = builder.graph.scope(origin.scope).ids.iter().map(|other| other.0.id());
    let this = origin.name(&builder.graph);
    let others = adjacent.filter(|other| other.type_name == id.type_name && *other.name != *this);
    let mut names: Vec<&str> = others.map(|other| &*other.name).take(MOST).collect();
    names.sort_unstable();
    if names.is_empty() {
        return format!("no other instance here is of the type '{}'", id.type_name);
    }
    format!("the others of this type are: {}", shown(&names.join(", ")))
}

fn external_target(graph: &Graph, origin: &Origin<'_>, external: NodeId, span: Span, link: Link) -> Diagnostic {
    let (this, does) = (origin.label(graph), link.does(&graph.label(external)));
    let mut outward = std::iter::successors(Some(external), |id| graph.container(*id));
    let is_inside = outward.any(|id| graph.node(id).scope == origin.scope);
    let place = if is_inside { "inside a group" } else { "outside this group" };
    let message = format!("{this} {does}, which is {place}");
    let finding = Diagnostic::error(&codes::NOT_ADJACENT, span, message)
        .with_label(graph.declaration(external).name.span, "declared here");
    match detour(graph, origin, external, link) {
        Some(help) => finding.with_help(help),
        None => finding,
    }
}

/// Returns how two instances can be brought in order that are not adjacent: by what holds them.
fn detour(graph: &Graph, origin: &Origin<'_>, external: NodeId, link: Link) -> Option<String> {
    let outward = |from| std::iter::successors(from, |id| graph.container(*id));
    // Of what holds the one and what holds the other, the two that are adjacent to each other.
    let theirs = |scope| outward(Some(external)).find(|id| graph.node(*id).scope == scope);
    if let Some(theirs) = theirs(origin.scope) {
        let container = graph.label(theirs);
        let instead = if link == Link::RefersTo { "refer to that".to_owned() } else { link.instead("that") };
        return Some(if origin.who == Who::Instance(theirs) {
            "it is nested in this instance, so it already runs after it; remove this".to_owned()
        } else {
            format!("it is nested in {container}: {instead} instead")
        });
    }
    let (ours, theirs) =
        outward(graph.scope(origin.scope).container).find_map(|id| Some((id, theirs(graph.node(id).scope)?)))?;
    let (container, other) = (graph.label(ours), graph.label(theirs));
    Some(match theirs {
        _ if ours == theirs => "this instance is nested in it, so it already runs after it; remove this".to_owned(),
        _ if theirs == external => {
            format!("this instance is nested in {container}: let that {} instead", link.instead("it"))
        }
        _ => format!("let {container}, which holds this instance, {}, which holds the other", link.instead(&other)),
    })
}

/// Sorts every scope and strings them together, what is nested behind what holds it.
fn order(builder: &mut Builder<'_>) {
    let mut sorted = Vec::with_capacity(builder.graph.scopes.len());
    let mut findings = Vec::new();
    for scope in &builder.graph.scopes {
        sorted.push(sort_scope(&builder.graph, &scope.members).unwrap_or_else(|cycle| {
            let members: Vec<NodeId> = cycle.0.iter().map(|at| scope.members[*at]).collect();
            findings.push(builder.stated_needs().cycle(&members));
            Vec::new()
        }));
    }
    builder.findings.extend(findings);
    let mut order = Vec::with_capacity(builder.graph.nodes.len());
    if let Some(outermost) = sorted.first() {
        append(&builder.graph, &sorted, outermost, &mut order);
    }
    builder.graph.order = order;
}

pub(super) fn append(graph: &Graph, sorted: &[Vec<NodeId>], scope: &[NodeId], order: &mut Vec<NodeId>) {
    for &id in scope {
        order.push(id);
        if let Role::Container { inner, .. } = graph.node(id).role {
            append(graph, sorted, &sorted[inner.index()], order);
        }
    }
}

pub(super) fn sort_scope(graph: &Graph, members: &[NodeId]) -> Result<Vec<NodeId>, Cycle> {
    // Members are in document order, so a binary search finds the place of a need among them.
    let place = |need: &Need| members.binary_search(&need.node).unwrap_or(0);
    let needs: Vec<Vec<usize>> = members.iter().map(|id| graph.node(*id).needs.iter().map(place).collect()).collect();
    Ok(sort(&needs)?.into_iter().map(|at| members[at]).collect())
}
