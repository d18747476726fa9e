//! The order that follows from what instances manage, over random documents.
//!
//! `STEAD_DOCUMENTS=10000` tries so many documents.

#[path = "../../stead-core/tests/support/random.rs"]
mod random;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use random::Numbers;
use stead_core::graph::{Graph, NeedKind};
use stead_core::id::NodeId;
use stead_core::value::Object;
use stead_engine::{Host, HostOptions};
use stead_testkit::times;

/// Directories and files, each with a number of its own, in any order, and dependencies on earlier numbers: so the document
/// itself has no cycle.
struct RandomDocument {
    text: String,
    paths: Vec<String>,
}

fn document(random: &mut Numbers, with_needs: bool) -> RandomDocument {
    let count = 1 + random.below(8);
    let mut paths: Vec<String> = Vec::new();
    while paths.len() < count {
        let depth = 1 + random.below(3);
        let path: Vec<&str> = (0..depth).map(|_| ["a", "b"][random.below(2)]).collect();
        let path = path.join("/");
        if paths.contains(&path) {
            paths.push(format!("{path}/f{}", paths.len()));
        } else {
            paths.push(path);
        }
    }
    let mut text = String::from("resources:\n");
    for (at, path) in paths.iter().enumerate() {
        let is_file = path.contains('f');
        let kind = if is_file { "File" } else { "Directory" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- name: n{at}\n  type: Stead/{kind}\n  properties: {{path: {path}}}");
        if with_needs && at > 0 && random.below(2) == 0 {
            let other = random.below(at);
            let kind = if paths[other].contains('f') { "File" } else { "Directory" };
            let _ = writeln!(text, "  dependsOn: [\"[resourceId('Stead/{kind}', 'n{other}')]\"]");
        }
    }
    RandomDocument { text, paths }
}

fn graph(host: &Host, document: &RandomDocument, implicit_order: bool) -> Graph {
    let mut session = host.session("/nowhere").with(|options| options.implicit_order = implicit_order);
    let prepared = session.prepare("main.yaml", &document.text, Object::new());
    let prepared = prepared.unwrap_or_else(|unusable| panic!("{}{:?}", document.text, unusable.findings));
    (*prepared.graph).clone()
}

fn needs(graph: &Graph, kind: NeedKind) -> BTreeSet<(NodeId, NodeId)> {
    let of = |(id, node): (NodeId, &stead_core::graph::Node)| {
        let needs = node.needs.iter().filter(move |need| need.kind == kind);
        needs.map(move |need| (id, need.node)).collect::<Vec<_>>()
    };
    graph.iter().flat_map(of).collect()
}

/// Returns whether an instance needs another, be it by way of others.
fn reaches(graph: &Graph, from: NodeId, to: NodeId) -> bool {
    from == to || graph.node(from).needs.iter().any(|need| reaches(graph, need.node, to))
}

#[test]
fn what_is_needed_comes_first_and_the_document_is_never_contradicted() {
    let host = Host::new(HostOptions::default());
    for number in 0..times("STEAD_DOCUMENTS", 300) {
        let random = &mut Numbers::of(1, number as u64);
        let document = document(random, number % 2 == 1);
        let (stated, whole) = (graph(&host, &document, false), graph(&host, &document, true));
        let text = &document.text;
        let places: HashMap<NodeId, usize> = whole.order.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        assert_eq!(places.len(), whole.nodes.len(), "{text}");
        for (id, node) in whole.iter() {
            assert!(node.needs.iter().all(|need| places[&need.node] < places[&id]), "{text}");
        }
        let (before, after) = (needs(&stated, NeedKind::Require), needs(&whole, NeedKind::Require));
        assert!(before.is_subset(&after), "{text}");
        let added: BTreeSet<_> = after.difference(&before).copied().collect();
        let implied: BTreeSet<_> = whole.implied.iter().map(|each| (each.instance, each.needed)).collect();
        assert_eq!(added, implied, "{text}");
        for (at, path) in document.paths.iter().enumerate() {
            let around = |ancestor: &Path| document.paths.iter().position(|other| Path::new(other) == ancestor);
            let Some(directory) = Path::new(path).ancestors().skip(1).find_map(around) else { continue };
            let pair = (NodeId(u32::try_from(at).unwrap()), NodeId(u32::try_from(directory).unwrap()));
            // Unless the document says the opposite, the file comes after the directory, by whichever way.
            let (file, directory) = pair;
            assert!(reaches(&whole, file, directory) || reaches(&whole, directory, file), "{path}\n{text}");
        }
        assert_eq!(graph(&host, &document, true).order, whole.order, "{text}");
    }
}
