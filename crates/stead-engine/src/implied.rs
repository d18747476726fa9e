//! The order that follows from what instances create and use.

mod packages;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::Path;

use stead_core::claims::{Claims, Provision, Stake, Ties};
use stead_core::diag::Diagnostic;
use stead_core::graph::{Contradicted, Graph, Implied, StatedNeeds, codes};
use stead_core::id::NodeId;
use stead_core::statements::Statement;
use stead_core::text::Span;
use stead_host::provider::LineTest;

use crate::providers::Managed;
pub(crate) use packages::{account_of, after_packages};

/// The knowledge about an instance before anything runs.
pub(crate) struct Known {
    pub(crate) id: NodeId,
    pub(crate) claims: Option<Claims>,
    /// Most have none.
    pub(crate) ties: Option<Box<Ties>>,
    /// Few have any.
    pub(crate) states: Vec<Statement>,
    /// Which lines it removes from its file, whoever added them.
    pub(crate) removed_lines: Option<LineTest>,
}

impl Known {
    /// `None` of an instance that nothing is known of.
    pub(crate) fn of(id: NodeId, managed: Managed) -> Option<Self> {
        let Managed { claims, ties, states, removed_lines } = managed;
        let ties = (!ties.is_empty()).then(|| Box::new(ties));
        let is_known = claims.is_some() || ties.is_some() || !states.is_empty();
        is_known.then_some(Self { id, claims, ties, states, removed_lines })
    }
}

impl Known {
    fn provides(&self, is_meant: impl Fn(&Provision) -> bool) -> bool {
        self.ties.as_ref().is_some_and(|ties| ties.provides.iter().any(is_meant))
    }

    fn uses(&self) -> impl Iterator<Item = &Provision> {
        self.ties.iter().flat_map(|ties| &ties.uses)
    }
}

/// The thing that two instances have in common that the order of them follows from.
pub(crate) enum Cause<'k> {
    /// A path in the directory that the other creates.
    Within(&'k Path),
    /// A path that the other removes from the directory.
    Emptied(&'k Path),
    /// A path that one uses and the other creates.
    Path(&'k Path),
    /// A thing that one uses and the other brings.
    Provision(&'k Provision),
}

/// A path as a document for the system below a root states it.
pub(crate) fn as_stated<'p>(root: Option<&Path>, path: &'p Path) -> Cow<'p, Path> {
    match root.and_then(|root| path.strip_prefix(root).ok()) {
        Some(within) => Cow::Owned(Path::new("/").join(within)),
        None => Cow::Borrowed(path),
    }
}

/// An account, where the path is that of its record.
fn thing(root: Option<&Path>, path: &Path) -> String {
    let path = as_stated(root, path);
    stead_resources::account_at(&path).unwrap_or_else(|| format!("'{}'", path.display()))
}

impl Cause<'_> {
    /// The thing as messages name it.
    fn shown(&self, root: Option<&Path>) -> String {
        match self {
            Self::Within(path) | Self::Emptied(path) => format!("'{}'", as_stated(root, path).display()),
            Self::Path(path) => thing(root, path),
            Self::Provision(Provision::Path(path)) => thing(root, path),
            Self::Provision(Provision::Removals(folder)) => {
                format!("what is removed from '{}'", as_stated(root, folder).display())
            }
            Self::Provision(Provision::Package(name)) => format!("the package '{name}'"),
            Self::Provision(Provision::PackageSource) => "the sources of packages".to_owned(),
        }
    }

    /// The clause that follows the name of the instance that comes second; `None` where it may come first as well: a source
    /// of packages may need the packages of another one.
    fn reason(&self, root: Option<&Path>) -> Option<String> {
        let shown = || self.shown(root);
        match self {
            Self::Within(path) | Self::Emptied(path)
                if stead_resources::account_at(&as_stated(root, path)).is_some() =>
            {
                Some(format!("it manages {}", thing(root, path)))
            }
            Self::Within(_) => Some(format!("{} is in that directory", shown())),
            Self::Emptied(_) => Some(format!("{} is removed from it first", shown())),
            Self::Provision(Provision::PackageSource) => None,
            Self::Path(_) | Self::Provision(_) => Some(format!("it uses {}", shown())),
        }
    }
}

/// The warnings about order that the document states and that contradicts what its instances need, one for each place.
pub(crate) fn warnings(
    contradicted: &[Contradicted],
    all: &[Known],
    stated: &StatedNeeds<'_>,
    root: Option<&Path>,
) -> Vec<Diagnostic> {
    let mut reasons = BTreeMap::new();
    each(stated.graph, all, |implied, cause| {
        if let Some((implied, reason)) = adjacent(stated.graph, implied).zip(cause.reason(root)) {
            reasons.entry(implied).or_insert(reason);
        }
    });
    // Another instance creates it in time, such as the directory below a mount that a second one sets the owner of.
    let is_met = |each: &Implied, reason: &String| {
        let first = Implied { needed: NodeId(0), ..*each };
        let mut others = stated.graph.implied.range(first..).take_while(|other| other.instance == each.instance);
        others.any(|other| reasons.get(other) == Some(reason))
    };
    let mut seen = BTreeSet::new();
    let found = contradicted.iter().filter_map(|each| {
        let links = each.chain.iter().zip(each.chain.iter().skip(1));
        let places = links.filter_map(|(from, to)| Some((*from, stated.place(*from, *to)?)));
        let places: Vec<(NodeId, Span)> = places.collect();
        let reason = reasons.get(&each.implied).filter(|reason| !is_met(&each.implied, reason))?;
        seen.insert(places.first()?.1).then(|| warning(each, reason, &places, stated))
    });
    found.collect()
}

fn warning(
    Contradicted { implied, chain }: &Contradicted,
    reason: &str,
    places: &[(NodeId, Span)],
    stated: &StatedNeeds<'_>,
) -> Diagnostic {
    let label = |id: NodeId| stated.graph.label(id);
    let (instance, needed) = (label(implied.instance), label(implied.needed));
    let between: Vec<String> = chain.iter().skip(1).rev().skip(1).rev().map(|id| label(*id)).collect();
    let by_way = if between.is_empty() { String::new() } else { format!(", by way of {},", between.join(" and ")) };
    let message = format!("{needed} depends{by_way} on {instance}, which implicitly depends on it: {reason}");
    let (span, others) = places.split_first().map_or((Span::default(), places), |(first, others)| (first.1, others));
    let what = if others.is_empty() { "this dependency" } else { "one of these dependencies" };
    let finding = Diagnostic::warning(&codes::CONTRADICTED, span, message)
        .with_help(format!("remove {what}; the implicit order then applies"));
    let finding = others.iter().fold(finding, |finding, (id, span)| finding.with_label(*span, stated.here(*id)));
    let name = stated.graph.declaration(implied.instance).name.span;
    finding.with_label(name, format!("implicit: after {needed}"))
}

/// Which instances need which others because of what they lie in or use: the one that creates it, or that removes it
/// last. Where several create the same, it needs all of them.
pub(crate) fn implied(graph: &Graph, all: &[Known]) -> BTreeSet<Implied> {
    let mut found = BTreeSet::new();
    each(graph, all, |implied, _| _ = found.insert(implied));
    let adjacent = |each: Implied| self::adjacent(graph, each);
    found.into_iter().filter_map(adjacent).collect()
}

/// Returns the order that is implied, and for each pair why.
pub(crate) fn causes(graph: &Graph, all: &[Known], root: Option<&Path>) -> BTreeMap<Implied, String> {
    let mut found = BTreeMap::new();
    each(graph, all, |implied, cause| {
        if let Some(implied) = adjacent(graph, implied) {
            found.entry(implied).or_insert_with(|| cause.shown(root));
        }
    });
    found
}

/// Between instances of one scope: those, or what they are nested in.
fn adjacent(graph: &Graph, each: Implied) -> Option<Implied> {
    let (instance, needed) = graph.adjacent(each.instance, each.needed)?;
    Some(Implied { instance, needed })
}

fn each<'k>(graph: &Graph, all: &'k [Known], mut found: impl FnMut(Implied, Cause<'k>)) {
    // What is within an assertion creates nothing.
    let index = Index::of(all.iter().filter(|known| !graph.is_asserted(known.id)));
    for known in all {
        for (path, stake) in known.claims.iter().flat_map(Claims::stakes) {
            match stake {
                // What is removed empties the directories around it.
                Stake::Removes => {
                    let outer = around(path, &index.removed).iter();
                    outer.for_each(|outer| found(Implied { instance: *outer, needed: known.id }, Cause::Emptied(path)));
                }
                Stake::Holds | Stake::Creates => {
                    let outer = around(path, &index.folders).iter();
                    outer.for_each(|outer| found(Implied { instance: known.id, needed: *outer }, Cause::Within(path)));
                }
                Stake::Uses => {
                    let creators = index.creators(path);
                    creators.for_each(|other| found(Implied { instance: known.id, needed: other }, Cause::Path(path)));
                }
            }
        }
        for provision in known.ties.iter().flat_map(|ties| &ties.uses) {
            let mut needs = |other| found(Implied { instance: known.id, needed: other }, Cause::Provision(provision));
            match provision {
                Provision::Path(path) => index.creators(path).for_each(&mut needs),
                Provision::Removals(folder) => {
                    index.removed_from.get(folder.as_os_str()).into_iter().flatten().copied().for_each(&mut needs);
                }
                other => index.providers.get(other).into_iter().flatten().copied().for_each(&mut needs),
            }
        }
    }
}

/// Instances by path. The keys are not paths, which take as long to hash as to take apart.
type ByPath<'a> = HashMap<&'a OsStr, Vec<NodeId>>;

/// Who creates what.
#[derive(Default)]
struct Index<'a> {
    /// The paths that others can lie in: few, so that most paths are not taken apart at all.
    folders: ByPath<'a>,
    files: ByPath<'a>,
    removed: ByPath<'a>,
    /// By the folder that they remove something from.
    removed_from: ByPath<'a>,
    providers: HashMap<&'a Provision, Vec<NodeId>>,
}

impl<'a> Index<'a> {
    fn of(all: impl Iterator<Item = &'a Known> + Clone) -> Self {
        let mut index = Self::default();
        // Files matter to those who use them alone.
        let uses = |known: &'a Known| {
            let is_used = |(_, stake)| stake == Stake::Uses;
            known.ties.as_ref().is_some_and(|ties| !ties.uses.is_empty())
                || known.claims.iter().flat_map(Claims::stakes).any(is_used)
        };
        let with_files = all.clone().any(uses);
        for known in all {
            for (path, stake) in known.claims.iter().flat_map(Claims::stakes) {
                // Taking a path apart takes longer than all else, and few remove anything.
                if stake == Stake::Removes
                    && let Some(folder) = path.parent()
                {
                    index.removed_from.entry(folder.as_os_str()).or_default().push(known.id);
                }
                let places = match stake {
                    Stake::Holds => &mut index.folders,
                    Stake::Creates if with_files => &mut index.files,
                    Stake::Removes => &mut index.removed,
                    Stake::Creates | Stake::Uses => continue,
                };
                places.entry(path.as_os_str()).or_default().push(known.id);
            }
            for provision in known.ties.iter().flat_map(|ties| &ties.provides) {
                match provision {
                    Provision::Path(path) => index.files.entry(path.as_os_str()).or_default().push(known.id),
                    other => index.providers.entry(other).or_default().push(known.id),
                }
            }
        }
        index
    }

    /// Who creates what is at a path or, if nobody does, the nearest directory around it.
    fn creators(&self, path: &Path) -> impl Iterator<Item = NodeId> {
        let at = self.files.get(path.as_os_str()).or_else(|| self.folders.get(path.as_os_str()));
        let found = at.map_or_else(|| around(path, &self.folders), Vec::as_slice);
        found.iter().copied()
    }
}

/// The instances whose path is the nearest one around a path.
fn around<'i>(path: &Path, instances: &'i ByPath<'_>) -> &'i [NodeId] {
    if instances.is_empty() {
        return &[];
    }
    path.ancestors().skip(1).find_map(|ancestor| instances.get(ancestor.as_os_str())).map_or(&[], Vec::as_slice)
}
