//! The document that takes a run back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use stead_core::identity::DocumentIdentity;
use stead_core::manifest::UndoWay;
use stead_host::operate::{can_be_stated, former_properties};
use stead_host::store::images::SetEntry;
use stead_resources::builtin;
use stead_system::fs::ImageNode;

use super::former::{self, TYPE};
use super::{Item, Undo};
use crate::host::Host;

/// A document that takes a run back, and what it takes to run it.
pub struct UndoDocument {
    /// The host that has the resource which puts things back.
    pub host: Host,
    /// The text.
    pub text: String,
    /// The values of its parameters, as JSON. They may be secrets.
    pub parameters: String,
    /// Its identity between runs: what a killed undo owes is delivered by the next one of the same run.
    pub identity: Option<DocumentIdentity>,
}

impl Undo {
    /// The document that takes back a run of this name. With `force` also what was changed since.
    pub fn document(&self, run: &str, host: &Host, force: bool) -> Option<UndoDocument> {
        let resource = former::resource(self.items.values().cloned(), force)?;
        let mut secrets = Map::new();
        let sets = self.state_sets();
        let former = |(path, item): (&PathBuf, &Arc<Item>)| self.former(path, item, &sets);
        let mut resources: Vec<Json> = self.items.iter().rev().map(former).collect();
        resources.extend(self.states(&sets, &mut secrets));
        resources.extend(self.handlers(&mut secrets));
        let parameters: Map<String, Json> =
            secrets.keys().map(|name| (name.clone(), json!({ "type": "secureObject" }))).collect();
        Some(UndoDocument {
            host: host.with_resource(resource),
            text: json!({ "parameters": parameters, "resources": resources }).to_string(),
            parameters: json!({ "parameters": secrets }).to_string(),
            identity: DocumentIdentity::of_name(&format!("undo of {run}")),
        })
    }

    /// The instance that puts back what was at a path.
    fn former(&self, path: &Path, item: &Item, sets: &[&SetEntry]) -> Json {
        let properties: Map<String, Json> =
            item.former().into_iter().map(|(name, value)| (name, literal(value.to_redacted_json()))).collect();
        let mut needs: Vec<String> = Vec::new();
        // What was there needs its directory; a directory goes after all that the run made in it.
        if let Some(above) = self.above(path).filter(|_| item.before.node != ImageNode::Absent) {
            needs.extend(
                self.items.get(above).filter(|above| above.before.node == ImageNode::Directory).map(|it| id(it)),
            );
        }
        if item.before.node != ImageNode::Directory {
            let below = self.items.range(path.to_owned()..).skip(1).take_while(|(below, _)| below.starts_with(path));
            let is_next = |below: &Path| self.above(below).is_some_and(|above| above == path);
            needs.extend(
                below.filter(|(at, it)| it.before.node == ImageNode::Absent && is_next(at)).map(|(_, item)| id(item)),
            );
        }
        // What the run made for a state, such as a unit, is there until the state is back.
        let is_new = item.before.node == ImageNode::Absent;
        let of_item = |set: &&&SetEntry| is_new && !is_apart_from(set, item) && item.is_of(set);
        needs.extend(sets.iter().filter(of_item).map(|set| format!("{}:{}", set.type_name, name_of(set))));
        json!({ "name": item.shown, "type": TYPE, "dependsOn": needs, "properties": properties })
    }

    /// The sets whose former state is set again, the last first, one for each instance. A system that does not run has no state
    /// besides its files, but for what a program makes of it.
    fn state_sets(&self) -> Vec<&SetEntry> {
        let mut sets: Vec<&SetEntry> = Vec::new();
        let has_state = |set: &&SetEntry| self.scene.root.is_none() || is_not_built_in(set);
        for set in self.sets.iter().rev().filter(|set| set.undo == UndoWay::State).filter(has_state) {
            let can_be_set = self.object_before(set).is_some_and(|before| refused(set, before).is_none());
            if can_be_set && !sets.iter().any(|known| known.instance == set.instance) {
                sets.push(set);
            }
        }
        sets
    }

    /// The properties of an instance before the run.
    fn object_before(&self, set: &SetEntry) -> Option<&Map<String, Json>> {
        self.state_before(&set.instance)?.as_object()
    }

    /// Returns whether something is put back only after what the run made in its place, which may be there for a state.
    fn goes_after(&self, path: &Path, item: &Item) -> bool {
        let mut below = self.items.range(path.to_owned()..).skip(1);
        item.before.node != ImageNode::Directory && below.next().is_some_and(|(below, _)| below.starts_with(path))
    }

    /// The paths that an instance changed, as the instances that put them back.
    fn paths_of<'u>(&'u self, instance: &'u str) -> impl Iterator<Item = String> + 'u {
        self.items.values().filter(move |item| item.instances.iter().any(|by| by == instance)).map(|item| id(item))
    }

    /// The instances that set a former state again.
    fn states(&self, sets: &[&SetEntry], secrets: &mut Map<String, Json>) -> Vec<Json> {
        let resource = |set: &SetEntry| {
            let before = self.object_before(set)?;
            let by = |(path, item): &(&PathBuf, &Arc<Item>)| {
                let goes_first = item.before.node != ImageNode::Absent || is_apart_from(set, item);
                goes_first && item.is_of(set) && !self.goes_after(path, item)
            };
            let needs: Vec<String> = self.items.iter().filter(by).map(|(_, item)| id(item)).collect();
            let properties = covered(set, properties_before(set, before), secrets);
            Some(json!({
                "name": name_of(set), "type": set.type_name, "dependsOn": needs, "properties": properties,
            }))
        };
        sets.iter().copied().filter_map(resource).collect()
    }

    /// The instances that acted on changes which are taken back: they act again.
    fn handlers(&self, secrets: &mut Map<String, Json>) -> Vec<Json> {
        let mut resources = Vec::new();
        for (handler, sources) in &self.scene.handlers {
            let last = self.sets.iter().rev().find(|set| set.instance == *handler && set.undo == UndoWay::Cannot);
            let Some((set, desired)) = last.and_then(|set| Some((set, set.desired.as_ref()?.as_object()?))) else {
                continue;
            };
            let mut acts_on: Vec<String> = sources.iter().flat_map(|source| self.paths_of(source)).collect();
            acts_on.sort();
            acts_on.dedup();
            if acts_on.is_empty() {
                continue;
            }
            let properties = covered(set, desired.clone(), secrets);
            resources.push(json!({
                "name": name_of(set), "type": set.type_name, "properties": properties,
                "directives": { "onChanges": acts_on },
            }));
        }
        resources
    }
}

impl Item {
    /// Returns whether a state needs it: an instance changed both, or another undo did, which has an instance for each.
    fn is_of(&self, set: &SetEntry) -> bool {
        self.instances.iter().any(|by| *by == set.instance || is_former(by))
    }
}

/// Returns whether an instance is one of an undo.
pub(super) fn is_former(instance: &str) -> bool {
    instance.strip_prefix(TYPE).is_some_and(|name| name.starts_with(':'))
}

/// The name of an instance in the document: its own, within what holds it.
fn name_of(set: &SetEntry) -> &str {
    let of_type = set.instance.strip_prefix(set.type_name.as_str()).and_then(|name| name.strip_prefix(':'));
    of_type.unwrap_or(&set.instance)
}

/// The properties that set a former state again: what the instance states or has by a default, as it was, and all of what it removed. A
/// resource that is not built in is handed all that it said of what was there.
fn properties_before(set: &SetEntry, before: &Map<String, Json>) -> Map<String, Json> {
    let nothing = Map::new();
    let is_whole = removed(set, before) || is_not_built_in(set);
    let is_default = |name: &str| says(set, name, "default") && !says(set, name, "writeOnly");
    let can_be_set = |name: &str| can_be_stated(name) && !says(set, name, "readOnly");
    let counts = |name: &str| is_whole && can_be_set(name) || is_default(name);
    former_properties(stated(set).unwrap_or(&nothing), before, counts)
}

fn stated(set: &SetEntry) -> Option<&Map<String, Json>> {
    set.desired.as_ref()?.as_object()
}

/// Returns whether a set removed what there was. Its state has more than the instance states.
fn removed(set: &SetEntry, before: &Map<String, Json>) -> bool {
    stated(set).is_some_and(is_absent) && !is_absent(before)
}

/// Returns whether the schema of a built-in resource has something of a property.
fn says(set: &SetEntry, property: &str, word: &str) -> bool {
    builtin(&set.type_name).is_some_and(|built_in| built_in.schema()["properties"][property].get(word).is_some())
}

fn is_absent(state: &Map<String, Json>) -> bool {
    state.get("_exist") == Some(&Json::Bool(false))
}

fn is_not_built_in(set: &SetEntry) -> bool {
    builtin(&set.type_name).is_none()
}

/// The properties that an instance of a resource which is not built in states and that its former state does not say, so that they cannot be as they were.
pub(super) fn unsaid(set: &SetEntry) -> Vec<&str> {
    let before = set.before.as_ref().and_then(Json::as_object);
    let Some(before) = before.filter(|before| is_not_built_in(set) && !is_absent(before)) else { return Vec::new() };
    let names = stated(set).into_iter().flatten().map(|(name, _)| name.as_str());
    names.filter(|name| !name.starts_with('_') && !before.contains_key(*name)).collect()
}

/// Returns whether a state is set without the file that was made for it: a value of the kernel or a mount, of which the file has a line. Its
/// line would be removed from the file, which then is not as the run left it.
fn is_apart_from(set: &SetEntry, item: &Item) -> bool {
    let is_apart = builtin(&set.type_name).is_some_and(|built_in| built_in.is_apart);
    is_apart && item.place.image(0).is_ok_and(|(now, _)| now.node != ImageNode::Directory)
}

/// Why the former state of an instance cannot be set again, if its resource accepts no such properties: programs can make more than
/// that.
pub(super) fn refused(set: &SetEntry, before: &Map<String, Json>) -> Option<String> {
    let mismatches = builtin(&set.type_name)?.compiled()?.validate(&Json::Object(properties_before(set, before)));
    mismatches.first().map(ToString::to_string)
}

/// Properties, with values that may be secrets as parameters.
fn covered(set: &SetEntry, properties: Map<String, Json>, secrets: &mut Map<String, Json>) -> Map<String, Json> {
    // Nobody looked for secrets in what such an instance does not state.
    let is_stated = |name: &String| name == "_exist" || stated(set).is_some_and(|stated| stated.contains_key(name));
    if !set.covered && (!is_not_built_in(set) || properties.keys().all(is_stated)) {
        return properties.into_iter().map(|(name, value)| (name, literal(value))).collect();
    }
    let mut cover = |(name, value): (String, Json)| {
        // It says which call is made.
        if name == "_exist" {
            return (name, value);
        }
        let parameter = format!("p{}", secrets.len());
        // An object with nothing but 'value' would be taken for the value of a file of parameters.
        let call = format!("[parameters('{parameter}').former]");
        secrets.insert(parameter, json!({ "former": value }));
        (name, Json::String(call))
    };
    properties.into_iter().map(&mut cover).collect()
}

/// The id by which instances of the document call one that puts something back.
pub(super) fn id(item: &Item) -> String {
    format!("{TYPE}:{}", item.shown)
}

/// A value in which no text is an expression.
fn literal(value: Json) -> Json {
    match value {
        Json::String(text) if text.starts_with('[') => Json::String(format!("[{text}")),
        Json::Array(values) => values.into_iter().map(literal).collect(),
        Json::Object(members) => {
            Json::Object(members.into_iter().map(|(name, value)| (name, literal(value))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use stead_core::id::TypeName;

    use super::*;

    #[test]
    fn what_can_only_be_read_is_not_set_again() {
        let set = SetEntry {
            instance: "Stead/Nftables:site".to_owned(),
            type_name: TypeName::parse("Stead/Nftables").unwrap(),
            undo: UndoWay::State,
            desired: Some(json!({ "name": "site", "_exist": false })),
            covered: false,
            before: Some(json!({ "name": "site", "_exist": true, "content": "", "boot": true, "loaded": true })),
        };
        let before = set.before.as_ref().unwrap().as_object().unwrap();
        let expected = json!({ "name": "site", "_exist": true, "content": "", "boot": true });
        assert_eq!(Json::Object(properties_before(&set, before)), expected);
        assert_eq!(refused(&set, before), None);
    }

    #[test]
    fn a_state_that_cannot_be_stated_is_named() {
        let set = |content: &str| SetEntry {
            instance: "Stead/Nftables:site".to_owned(),
            type_name: TypeName::parse("Stead/Nftables").unwrap(),
            undo: UndoWay::State,
            desired: Some(json!({ "name": "site", "content": "" })),
            covered: false,
            before: Some(
                json!({ "family": "inet", "name": "site", "_exist": true, "content": content, "boot": false }),
            ),
        };
        let why = |set: &SetEntry| refused(set, set.before.as_ref().unwrap().as_object().unwrap());
        assert_eq!(why(&set("chain c {\n}\n")), None);
        let why = why(&set("chain c {\n  accept comment \"\u{1b}[2J\"\n}\n"));
        assert!(why.as_ref().is_some_and(|why| why.starts_with("'content' ")), "{why:?}");
    }
}
