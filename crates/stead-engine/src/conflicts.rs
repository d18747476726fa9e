//! Instances that manage the same file, so that each undoes what the other did.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use stead_core::diag::Diagnostic;
use stead_core::id::NodeId;
use stead_core::run::Run;
use stead_core::run::codes::CONFLICT;
use stead_core::value::Value;

/// How much of what is at a path an instance decides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    Whole,
    Part,
}

/// A warning for each instance that another one before it in the order undoes.
pub fn conflicts(run: &Run, root: &Path) -> Vec<Diagnostic> {
    let mut first: HashMap<Cow<'_, OsStr>, (NodeId, Claim)> = HashMap::with_capacity(run.graph().order.len());
    let mut found = Vec::new();
    for id in &run.graph().order {
        let Some(desired) = run.report().record(*id).desired.as_deref() else { continue };
        let Some((path, claim)) = claim(run.graph().node(*id).manifest.type_name.as_str(), desired) else {
            continue;
        };
        let path = normal(root, path);
        match first.get(&path) {
            Some((_, Claim::Part)) if claim == Claim::Part => {}
            Some((other, _)) if run.report().record(*other).desired.as_deref() == Some(desired) => {}
            Some((other, _)) => found.push(finding(run, *other, *id)),
            None => _ = first.insert(path, (*id, claim)),
        }
    }
    found
}

/// The path written in one way, so that it can be compared.
fn normal<'p>(root: &Path, path: &'p str) -> Cow<'p, OsStr> {
    // Most are written so already.
    let is_normal = path.starts_with('/') && !path.ends_with('/') && !path.contains("//") && !path.contains("/.");
    if is_normal {
        return Cow::Borrowed(OsStr::new(path));
    }
    Cow::Owned(root.join(path).components().collect::<PathBuf>().into_os_string())
}

fn finding(run: &Run, one: NodeId, other: NodeId) -> Diagnostic {
    let graph = run.graph();
    let message = format!("{} and {} both manage the same file", graph.label(one), graph.label(other));
    Diagnostic::warning(&CONFLICT, graph.declaration(other).name.span, message)
        .with_label(graph.declaration(one).name.span, "the other one")
        .with_help("remove one of them, or give them different paths")
}

fn claim<'a>(type_name: &str, desired: &'a Value) -> Option<(&'a str, Claim)> {
    let desired = desired.as_object()?;
    let path = desired.get("path")?.as_str()?;
    let decides = ["content", "contentBase64", "source"].iter().any(|name| desired.contains_key(name));
    let gone = desired.get("_exist").and_then(Value::as_bool) == Some(false);
    match type_name {
        "Stead/File" if decides || gone => Some((path, Claim::Whole)),
        "Stead/Symlink" => Some((path, Claim::Whole)),
        "Stead/Line" => Some((path, Claim::Part)),
        _ => None,
    }
}
