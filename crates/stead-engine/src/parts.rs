//! Running a part of a document.

use std::collections::BTreeSet;
use std::sync::Arc;

use stead_core::diag;
use stead_core::graph::{Graph, NeedKind, Role};
use stead_core::id::NodeId;
use stead_core::text::Node;

use crate::prepared::Prepared;
use crate::staying::listed;

/// Which instances of a document a run is about. Each word is the name of an instance, its id (`TYPE:NAME`), its type, the
/// part of its type behind the slash, or one of the `tags` of its metadata.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// These, with what they need; all if empty.
    pub only: Vec<String>,
    /// Not these, and nothing that needs them.
    pub skip: Vec<String>,
}

/// A word that means no instance of the document.
#[derive(Debug, thiserror::Error)]
#[error("no instance has the name, type or tag '{word}'")]
pub struct UnknownPart {
    /// The word.
    pub word: String,
    /// The name that was probably meant.
    pub meant: Option<String>,
    /// The first of the instances that there are, in words.
    pub known: String,
}

impl Prepared {
    /// Limits the document to a part. A container stands for what is nested in it, and stays around each instance that does.
    ///
    /// # Errors
    /// When a word means no instance; the document is as it was.
    pub fn select(&mut self, parts: &Parts) -> Result<(), UnknownPart> {
        if parts.only.is_empty() && parts.skip.is_empty() {
            return Ok(());
        }
        let graph = &*self.graph;
        let named = meant(graph, &parts.only)?;
        let wanted = match named.as_slice() {
            [] => graph.iter().map(|(id, _)| id).collect(),
            named => with_what_they_need(graph, named.to_vec()),
        };
        let left_out = with_what_needs_them(graph, meant(graph, &parts.skip)?);
        let mut selected: BTreeSet<NodeId> = wanted.difference(&left_out).copied().collect();
        // A container without any of its instances has nothing to do.
        let holds = |id: NodeId, selected: &BTreeSet<NodeId>| match graph.node(id).role {
            Role::Container { inner, .. } => {
                let members = &graph.scope(inner).members;
                members.is_empty() || members.iter().any(|member| selected.contains(member))
            }
            Role::Instance => true,
        };
        for (id, _) in graph.iter().collect::<Vec<_>>().into_iter().rev() {
            if !holds(id, &selected) {
                selected.remove(&id);
            }
        }
        (self.selected, self.named) = (Some(Arc::new(selected)), named.into_iter().collect());
        Ok(())
    }
}

/// The instances that the words mean.
fn meant(graph: &Graph, words: &[String]) -> Result<Vec<NodeId>, UnknownPart> {
    let mut all = Vec::new();
    for word in words {
        let found: Vec<NodeId> = graph.iter().map(|(id, _)| id).filter(|id| is_meant(graph, *id, word)).collect();
        if found.is_empty() {
            let known: Vec<String> = graph.iter().flat_map(|(id, _)| words_for(graph, id)).collect();
            let near = diag::nearest(word, known.iter().map(String::as_str));
            let labels: Vec<String> = graph.iter().map(|(id, _)| graph.label(id)).collect();
            let (meant, known) = (near.map(str::to_owned), listed(&labels, labels.len()));
            return Err(UnknownPart { word: word.clone(), meant, known });
        }
        all.extend(found);
    }
    Ok(all)
}

fn is_meant(graph: &Graph, id: NodeId, word: &str) -> bool {
    let node = graph.node(id);
    let type_name = &graph.declaration(id).type_name.value;
    *node.name == *word
        || type_name.as_str().eq_ignore_ascii_case(word)
        || type_name.short().eq_ignore_ascii_case(word)
        || graph.id_of(id).to_string() == word
        || tags(graph, id).any(|tag| tag == word)
}

fn words_for(graph: &Graph, id: NodeId) -> Vec<String> {
    let type_name = &graph.declaration(id).type_name.value;
    let own = [graph.node(id).name.to_string(), type_name.as_str().to_owned(), type_name.short().to_owned()];
    own.into_iter().chain(tags(graph, id).map(str::to_owned)).collect()
}

/// `metadata: {tags: [a, b]}`, or one tag alone.
fn tags(graph: &Graph, id: NodeId) -> impl Iterator<Item = &str> {
    let tags = graph.declaration(id).metadata.as_deref().and_then(|metadata| metadata.get("tags"));
    let several = tags.and_then(Node::items).unwrap_or_default().iter().filter_map(Node::as_str);
    tags.and_then(Node::as_str).into_iter().chain(several)
}

/// With the instances nested in them, what either needs, and the containers around them with what those need.
fn with_what_they_need(graph: &Graph, wanted: Vec<NodeId>) -> BTreeSet<NodeId> {
    let (mut selected, mut open) = (BTreeSet::new(), wanted);
    let mut around = Vec::new();
    while let Some(id) = open.pop() {
        if !selected.insert(id) {
            continue;
        }
        open.extend(needed_by(graph, id));
        if let Role::Container { inner, .. } = graph.node(id).role {
            open.extend(&graph.scope(inner).members);
        }
        around.extend(graph.container(id));
    }
    // Around an instance alone: what else is nested beside it is not meant.
    while let Some(id) = around.pop() {
        if selected.insert(id) {
            let needed = needed_by(graph, id).collect();
            selected.extend(with_what_they_need(graph, needed));
            around.extend(graph.container(id));
        }
    }
    selected
}

/// Returns the instances that an instance cannot do without. That another one only comes before it is not a need.
fn needed_by(graph: &Graph, id: NodeId) -> impl Iterator<Item = NodeId> {
    graph.node(id).needs.iter().filter(|need| need.kind != NeedKind::Order).map(|need| need.node)
}

/// With the instances nested in them, and what cannot be done without them.
fn with_what_needs_them(graph: &Graph, left_out: Vec<NodeId>) -> BTreeSet<NodeId> {
    let mut all: BTreeSet<NodeId> = left_out.into_iter().collect();
    // Needs and containers come before those that need them or are nested in them.
    for id in &graph.order {
        let is_without = needed_by(graph, *id).chain(graph.container(*id)).any(|other| all.contains(&other));
        if is_without {
            all.insert(*id);
        }
    }
    all
}
