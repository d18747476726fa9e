//! Paths with a wildcard, which no resource expands.

use std::path::Path;

use stead_core::budget::Budget;
use stead_core::claims::{Claim, Provision};
use stead_core::diag::Diagnostic;
use stead_core::expr::Template;
use stead_core::graph::codes::WILDCARD;
use stead_core::graph::{Graph, evaluate_known};
use stead_core::text::Kind;

use crate::implied::Known;
use crate::prepared::Prepared;
use crate::real_paths::RealPaths;
use crate::session::Session;

impl Session {
    /// A warning for each path of an instance that has a wildcard, unless there is a file of that very name.
    pub(crate) fn wildcards(&self, prepared: &Prepared, known: &[Known]) -> Vec<Diagnostic> {
        let (graph, real_paths) = (&prepared.graph, self.real_paths());
        let mut found = Vec::new();
        for known in known {
            let paths: Vec<&Path> =
                paths(known).filter(|path| is_pattern(path) && !exists(path, &real_paths)).collect();
            if !paths.is_empty() {
                let stated = self.stated(prepared, known);
                let texts = stated.iter().flat_map(|properties| texts(properties, &paths));
                found.extend(texts.map(|(text, is_item)| finding(graph, known, text, is_item)));
            }
        }
        found
    }

    /// The properties of an instance, with what is known of them before anything runs.
    fn stated(&self, prepared: &Prepared, known: &Known) -> Option<Template> {
        let (graph, node) = (&prepared.graph, prepared.graph.node(known.id));
        let budget = Budget::new(Budget::DOCUMENT);
        let view = graph.static_view((node.scope, node.iteration.as_deref()), &prepared.facts, &*self.vault, &budget);
        Some(evaluate_known(graph.declaration(known.id).properties.as_ref()?, &view))
    }
}

/// The paths that an instance manages, and those that it uses.
fn paths(known: &Known) -> impl Iterator<Item = &Path> {
    let claimed = known.claims.iter().flat_map(|claims| &claims.0).map(|Claim::Path { path, .. }| &**path);
    let used = known.ties.iter().flat_map(|ties| &ties.uses).filter_map(|used| match used {
        Provision::Path(path) => Some(&**path),
        _ => None,
    });
    claimed.chain(used)
}

/// Returns whether a shell would take a path for a pattern of several: with `*`, `?`, or words in braces.
fn is_pattern(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    // One pass: it is asked of each path of each run.
    let Some(at) = memchr::memchr3(b'*', b'?', b'{', text) else { return false };
    let braces = || {
        let inner = text.get(at..)?.split(|byte| *byte == b'{').nth(1)?;
        Some(inner.get(..memchr::memchr(b'}', inner)?)?.contains(&b','))
    };
    text.get(at..).is_some_and(|rest| memchr::memchr2(b'*', b'?', rest).is_some()) || braces() == Some(true)
}

fn exists(path: &Path, real_paths: &RealPaths) -> bool {
    real_paths.of(path).as_deref().unwrap_or(path).symlink_metadata().is_ok()
}

/// The texts that are one of the paths, and for each whether it is an item of a list.
fn texts<'t>(value: &'t Template, paths: &[&Path]) -> Vec<(&'t Template, bool)> {
    let is_meant = |text: &str| {
        let stated = Path::new(text);
        let relative = stated.strip_prefix("/").or_else(|_| stated.strip_prefix(".")).unwrap_or(stated);
        is_pattern(stated) && paths.iter().any(|path| path.ends_with(relative))
    };
    match &value.kind {
        Kind::String(text) if is_meant(text) => vec![(value, false)],
        Kind::Array(items) => items.iter().flat_map(|item| texts(item, paths)).map(|(text, _)| (text, true)).collect(),
        Kind::Object(entries) => entries.iter().flat_map(|entry| texts(&entry.value, paths)).collect(),
        _ => Vec::new(),
    }
}

fn finding(graph: &Graph, known: &Known, text: &Template, is_item: bool) -> Diagnostic {
    let (path, label) = (text.as_str().unwrap_or_default(), graph.label(known.id));
    let message = format!("wildcards are not expanded: {label} takes '{path}' for a single name");
    Diagnostic::warning(&WILDCARD, text.span, message).with_help(if is_item {
        "list each file"
    } else {
        "for several files, state the instance with a loop, `copy: {name: files, each: [a.conf, b.conf], as: file}`; to \
         remove what is not wanted in a directory, use 'entries' and '_purge' of Stead/Directory"
    })
}
