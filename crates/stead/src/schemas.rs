//! The JSON Schemas of what is read and printed: those of the folder `schemas`, each with all that it refers to.
//!
//! In the folder they refer to each other by file name, which is how editors read them. Whoever asks the program gets one
//! text that needs no other.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

macro_rules! schemas {
    ($($name:literal),* $(,)?) => {
        /// What `schema --type` can be asked for.
        pub(crate) const TYPES: &[&str] = &[$($name),*];

        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../schemas/", $name, ".json")))),*];
    };
}

schemas! {
    "adapted-dsc-resource-manifest",
    "configuration",
    "configuration-export-result",
    "configuration-get-result",
    "configuration-set-result",
    "configuration-test-result",
    "dsc-resource",
    "extension-discover-result",
    "extension-manifest",
    "function-definition",
    "get-result",
    "include",
    "manifest-list",
    "resolve-result",
    "resource",
    "resource-get-result",
    "resource-manifest",
    "resource-set-result",
    "resource-test-result",
    "restart-required",
    "run-report",
    "set-result",
    "test-result",
}

const DEFINITIONS: &str = include_str!("../../../schemas/definitions.json");

/// The schema of that type, with all that it refers to. `None` when there is none of that type.
pub(crate) fn schema(type_name: &str) -> Option<Json> {
    let mut root = file(type_name)?;
    let mut bundle = Bundle { root: type_name, definitions: parse(DEFINITIONS), taken: BTreeMap::new() };
    bundle.resolve(&mut root);
    let taken: Map<String, Json> = bundle.taken.into_iter().collect();
    if !taken.is_empty() {
        root["$defs"] = Json::Object(taken);
    }
    Some(root)
}

fn file(type_name: &str) -> Option<Json> {
    FILES.iter().find(|(name, _)| *name == type_name).map(|(_, text)| parse(text))
}

/// A test reads every file, so that none is invalid.
fn parse(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_default()
}

/// One schema while what it refers to is added to it.
struct Bundle<'a> {
    root: &'a str,
    definitions: Json,
    taken: BTreeMap<String, Json>,
}

impl Bundle<'_> {
    /// Lets every reference point into this schema.
    fn resolve(&mut self, json: &mut Json) {
        match json {
            Json::Array(items) => items.iter_mut().for_each(|item| self.resolve(item)),
            Json::Object(members) => {
                for (key, value) in members {
                    match value {
                        Json::String(reference) if key == "$ref" => *reference = self.take(reference),
                        other => self.resolve(other),
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds what a reference points to, and says where it is now.
    fn take(&mut self, reference: &str) -> String {
        let (source, name) = reference.rsplit_once("#/$defs/").unwrap_or((reference, reference));
        let name = name.trim_end_matches(".json");
        if name == self.root {
            return "#".to_owned();
        }
        if !self.taken.contains_key(name) {
            // Before what it refers to is looked at, since that may refer back to it.
            self.taken.insert(name.to_owned(), json!(true));
            let mut found = match source {
                "" | "definitions.json" => self.definitions["$defs"][name].take(),
                _ => file(name).unwrap_or_default(),
            };
            if let Some(members) = found.as_object_mut() {
                members.shift_remove("$schema");
            }
            self.resolve(&mut found);
            self.taken.insert(name.to_owned(), found);
        }
        format!("#/$defs/{name}")
    }
}
