//! Properties that name files, where an instance is named in the place of its file.

use stead_core::call::INVALID;
use stead_core::diag::Diagnostic;
use stead_core::expr::Template;
use stead_core::graph::{Adjacent, Node, Role, evaluate_known};
use stead_core::id::{NodeId, ResourceId};
use stead_core::text::Kind;
use stead_core::value::Value;
use stead_resources::builtin_of;

use super::Pass;
use crate::watched_files::WATCHED;

/// A finding for each file of a service that is the id or the name of an instance.
pub(super) fn check(pass: &Pass<'_>) -> Vec<Diagnostic> {
    let graph = &pass.prepared.graph;
    let mut found = Vec::new();
    for (id, node) in graph.iter().filter(|(_, node)| node.role == Role::Instance) {
        let Some(properties) = graph.declaration(id).properties.as_ref() else { continue };
        for property in WATCHED {
            let Some(Kind::Array(files)) = properties.get(property).map(|files| &files.kind) else { continue };
            // Few instances have such a property, and looking for the type takes longer.
            if builtin_of(&node.manifest).is_none() {
                break;
            }
            found.extend(files.iter().filter_map(|file| wrong(pass, node, property, file)));
        }
    }
    found
}

fn wrong(pass: &Pass<'_>, node: &Node, property: &str, file: &Template) -> Option<Diagnostic> {
    let graph = &pass.prepared.graph;
    let view = pass.view(node.scope, node.iteration.as_deref());
    let evaluated = evaluate_known(file, &view);
    let text = evaluated.as_str().filter(|text| !text.starts_with('/'))?;
    let scope = graph.scope(node.scope);
    let named = match ResourceId::parse(text) {
        Ok(id) => scope.ids.get(&id).map(Adjacent::node),
        Err(_) => scope.members.iter().copied().find(|id| *graph.node(*id).name == *text),
    }?;
    let path_of = |at: NodeId| {
        let other = graph.node(at);
        let path = graph.declaration(at).properties.as_ref()?.get("path")?;
        match evaluate_known(path, &pass.view(other.scope, other.iteration.as_deref())).literal() {
            Value::String(path) => Some(path),
            _ => None,
        }
    };
    // A file beside the document may have the name of an instance.
    if scope.members.iter().any(|member| path_of(*member).as_deref() == Some(text)) {
        return None;
    }
    let label = graph.label(named);
    let message = format!("expected a file in '{property}', found the instance {label}");
    let what = path_of(named).map_or_else(
        || "write the path of a file that it writes".to_owned(),
        |path| format!("write its path, \"{path}\""),
    );
    let help = if text.contains(':') { what } else { format!("{what}; a file beside the document is \"./{text}\"") };
    Some(Diagnostic::error(&INVALID, file.span, message).with_help(help))
}
