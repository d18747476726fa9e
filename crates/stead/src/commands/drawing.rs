//! The graph of a document as a drawing or as JSON: nodes, what they need, what is nested.

use std::fmt::Write;

use serde_json::{Value as Json, json};
use stead_core::graph::{Graph, Implied, Need, NeedKind, Role, ScopeId};
use stead_core::id::NodeId;
use stead_core::visible::visible;
use stead_engine::Prepared;

use crate::request::Drawing;

/// The graph in the language of a drawing program. An arrow leads from what is needed to what needs it.
pub(super) fn draw(prepared: &Prepared, language: Drawing) -> String {
    let graph = &*prepared.graph;
    let mut drawn = match language {
        Drawing::Dot => "digraph stead {\n  rankdir=LR;\n  compound=true;\n  node [shape=box];\n".to_owned(),
        Drawing::Mermaid | Drawing::Svg => "flowchart LR\n".to_owned(),
    };
    scope(prepared, ScopeId(0), language, 1, &mut drawn);
    for (id, node) in graph.iter().filter(|(id, _)| prepared.is_selected(*id)) {
        for need in node.needs.iter().filter(|need| prepared.is_selected(need.node)) {
            line(&mut drawn, 1, &arrow(graph, language, need.node, id));
        }
    }
    if language == Drawing::Dot {
        drawn.push_str("}\n");
    }
    drawn
}

/// What is drawn, for programs.
pub(super) fn data(prepared: &Prepared) -> Json {
    let graph = &*prepared.graph;
    let need = |id: NodeId, need: &Need| {
        let mut shown = json!({ "instance": graph.id_of(need.node).to_string(), "kind": word(need.kind) });
        if is_implied(graph, need.node, id) {
            shown["implied"] = true.into();
        }
        shown
    };
    let instances = graph.order.iter().filter(|id| prepared.is_selected(**id)).map(|id| {
        json!({
            "id": graph.id_of(*id).to_string(),
            "name": *graph.node(*id).name,
            "type": graph.declaration(*id).type_name.value.as_str(),
            "within": graph.container(*id).map(|container| graph.id_of(container).to_string()),
            "needs": graph.node(*id).needs.iter().map(|each| need(*id, each)).collect::<Vec<Json>>(),
        })
    });
    json!({ "version": 1, "instances": instances.collect::<Vec<Json>>() })
}

/// Returns whether the document does not say that an instance needs the other.
fn is_implied(graph: &Graph, needed: NodeId, instance: NodeId) -> bool {
    graph.implied.contains(&Implied { instance, needed })
}

pub(super) fn word(kind: NeedKind) -> &'static str {
    match kind {
        NeedKind::Require | NeedKind::Notify => "require",
        NeedKind::RequireAny => "requireAny",
        NeedKind::OnChanges => "onChanges",
        NeedKind::OnFailure => "onFailure",
        NeedKind::Order => "order",
    }
}

/// A container is a frame around what is nested in it. In Dot an arrow ends at a node within the frame and is cut off there.
fn arrow(graph: &Graph, language: Drawing, from: NodeId, to: NodeId) -> String {
    if language == Drawing::Mermaid {
        let arrow = if is_implied(graph, from, to) { "-.->" } else { "-->" };
        return format!("{} {arrow} {}", name(from), name(to));
    }
    let cut = |end: &str, id: NodeId| {
        let framed = matches!(graph.node(id).role, Role::Container { .. });
        framed.then(|| format!("{end}=cluster_{}", name(id)))
    };
    let dashed = is_implied(graph, from, to).then(|| "style=dashed".to_owned());
    let cuts: Vec<String> = [cut("ltail", from), cut("lhead", to), dashed].into_iter().flatten().collect();
    let attributes = if cuts.is_empty() { String::new() } else { format!(" [{}]", cuts.join(", ")) };
    format!("{} -> {}{attributes};", name(from), name(to))
}

fn scope(prepared: &Prepared, within: ScopeId, language: Drawing, depth: usize, drawn: &mut String) {
    let graph = &*prepared.graph;
    let Some(within) = graph.scopes.get(within.index()) else { return };
    for id in within.members.iter().filter(|id| prepared.is_selected(**id)) {
        let shown = visible(&graph.node(*id).name);
        let label = escaped(&format!("{shown}\n{}", graph.declaration(*id).type_name.value), language);
        let shape = match language {
            Drawing::Dot => format!("{} [label=\"{label}\"];", name(*id)),
            Drawing::Mermaid | Drawing::Svg => format!("{}[\"{label}\"]", name(*id)),
        };
        let Role::Container { inner, .. } = graph.node(*id).role else {
            line(drawn, depth, &shape);
            continue;
        };
        match language {
            Drawing::Dot => {
                line(drawn, depth, &format!("subgraph cluster_{} {{ label=\"{label}\";", name(*id)));
                line(drawn, depth + 1, &format!("{} [shape=point, style=invis];", name(*id)));
            }
            Drawing::Mermaid | Drawing::Svg => line(drawn, depth, &format!("subgraph {shape}")),
        }
        scope(prepared, inner, language, depth + 1, drawn);
        line(drawn, depth, if language == Drawing::Dot { "}" } else { "end" });
    }
}

fn name(id: NodeId) -> String {
    format!("n{}", id.0)
}

fn escaped(text: &str, language: Drawing) -> String {
    match language {
        Drawing::Dot => text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"),
        Drawing::Mermaid | Drawing::Svg => text.replace('"', "#quot;").replace('\n', "<br>"),
    }
}

fn line(drawn: &mut String, depth: usize, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(drawn, "{:width$}{text}", "", width = depth * 2);
}
