//! The graph of a document as a drawing: nodes, what they need, what is nested.

use std::fmt::Write;

use stead_core::graph::{Graph, Role, ScopeId};
use stead_core::id::NodeId;

use crate::args::Drawing;

/// The graph in the language of a drawing program. An arrow leads from what is needed to what needs it.
pub(super) fn draw(graph: &Graph, language: Drawing) -> String {
    let mut drawn = match language {
        Drawing::Dot => "digraph stead {\n  rankdir=LR;\n  node [shape=box];\n".to_owned(),
        Drawing::Mermaid => "flowchart LR\n".to_owned(),
    };
    scope(graph, ScopeId(0), language, 1, &mut drawn);
    for (id, node) in graph.iter() {
        for need in &node.needs {
            let arrow = if language == Drawing::Dot { "->" } else { "-->" };
            line(&mut drawn, 1, &format!("{} {arrow} {}{}", name(need.node), name(id), end(language)));
        }
    }
    if language == Drawing::Dot {
        drawn.push_str("}\n");
    }
    drawn
}

fn scope(graph: &Graph, within: ScopeId, language: Drawing, depth: usize, drawn: &mut String) {
    let Some(within) = graph.scopes.get(within.index()) else { return };
    for id in &within.members {
        let label = escaped(&format!("{}\n{}", graph.node(*id).name, graph.declaration(*id).type_name.value), language);
        let shape = match language {
            Drawing::Dot => format!("{} [label=\"{label}\"];", name(*id)),
            Drawing::Mermaid => format!("{}[\"{label}\"]", name(*id)),
        };
        let Role::Container { inner, .. } = graph.node(*id).role else {
            line(drawn, depth, &shape);
            continue;
        };
        match language {
            Drawing::Dot => line(drawn, depth, &format!("subgraph cluster_{} {{ label=\"{label}\";", name(*id))),
            Drawing::Mermaid => line(drawn, depth, &format!("subgraph inside_{}[\"{label}\"]", name(*id))),
        }
        line(drawn, depth + 1, &shape);
        scope(graph, inner, language, depth + 1, drawn);
        line(drawn, depth, if language == Drawing::Dot { "}" } else { "end" });
    }
}

fn name(id: NodeId) -> String {
    format!("n{}", id.0)
}

fn end(language: Drawing) -> &'static str {
    if language == Drawing::Dot { ";" } else { "" }
}

fn escaped(text: &str, language: Drawing) -> String {
    match language {
        Drawing::Dot => text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"),
        Drawing::Mermaid => text.replace('"', "#quot;").replace('\n', "<br>"),
    }
}

fn line(drawn: &mut String, depth: usize, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(drawn, "{:width$}{text}", "", width = depth * 2);
}
