//! The part of listings that is compared. `docs/deviations.md` says why the rest is not.

use serde_json::Value as Json;

use crate::case::Run;

/// Returns the subject of a listing: `resource`, `function` or `extension`.
fn listed(run: &Run) -> Option<&str> {
    run.args.windows(2).find_map(|pair| match pair {
        [what, verb] if verb == "list" => Some(what.as_str()),
        _ => None,
    })
}

/// Returns whether a run prints a table.
pub(crate) fn is_table(run: &Run) -> bool {
    run.args.iter().any(|arg| arg == "table-no-truncate")
}

/// The headings of a table: its first line that says anything.
pub(crate) fn headings(lines: &[String]) -> Vec<&str> {
    let first = lines.iter().find(|line| !line.trim().is_empty());
    first.map(|line| line.split_whitespace().collect()).unwrap_or_default()
}

/// The items of a listing as they are compared; of other answers all as it is.
pub(crate) fn comparable(run: &Run, values: Vec<Json>) -> Vec<Json> {
    match listed(run) {
        Some("function") => values.into_iter().map(definition).collect(),
        Some("resource") => values.into_iter().filter_map(resource).collect(),
        _ => values,
    }
}

/// A function without the words and the kinds of values, which are our own.
fn definition(mut function: Json) -> Json {
    if let Some(members) = function.as_object_mut() {
        for key in ["constraints", "acceptedArgOrderedTypes", "remainingArgAcceptedTypes", "returnTypes"] {
            members.remove(key);
        }
        for key in ["description", "syntax"] {
            let is_given = members.get(key).and_then(Json::as_str).is_some_and(|text| !text.is_empty());
            members.insert(key.to_owned(), is_given.into());
        }
    }
    function
}

/// A resource as it is compared: in full if it comes from a manifest, in brief if the program brings it along.
fn resource(resource: Json) -> Option<Json> {
    if is_in_corpus(&resource) {
        return Some(resource);
    }
    let type_name = resource.get("type").and_then(Json::as_str)?;
    if OF_ONE_SIDE.iter().any(|start| type_name.starts_with(start)) {
        return None;
    }
    let members = resource.as_object()?.iter().filter(|(key, _)| ["type", "kind", "version"].contains(&key.as_str()));
    Some(Json::Object(members.map(|(key, value)| (key.clone(), value.clone())).collect()))
}

/// The resources that only one of the two programs brings along.
const OF_ONE_SIDE: [&str; 3] = ["DSC.PackageManagement/", "Microsoft.OpenSSH.SSHD/", "Stead/"];

fn is_in_corpus(resource: &Json) -> bool {
    let Some(path) = resource.get("path").and_then(Json::as_str) else { return false };
    let folder = stead_testkit::repository().join("corpus/compat/resources");
    path.strip_prefix("${RESOURCES}/").is_none_or(|file| folder.join(file).exists())
}
