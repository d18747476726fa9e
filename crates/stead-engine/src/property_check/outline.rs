//! The properties in the schema of a built-in, at hand for every instance.

use std::cell::LazyCell;
use std::collections::HashMap;

use serde_json::{Map, Value as Json};
use stead_resources::BuiltIn;

/// Texts up to this size are checked, whatever they are: a regular expression is short, the content of a file may not be.
pub(super) const SHORT: usize = 4096;

/// Made for the first instance that needs it: an instance that is written out and valid does not.
pub(super) type LazyOutline = LazyCell<Outline, Box<dyn FnOnce() -> Outline>>;

pub(super) fn lazy_outline(built_in: &BuiltIn) -> LazyOutline {
    let built_in = built_in.clone();
    LazyCell::new(Box::new(move || Outline::of(built_in.schema())))
}

/// The properties in the schema of a built-in, at hand for every instance.
pub(super) struct Outline {
    pub(super) names: Vec<String>,
    pub(super) required: Vec<String>,
    /// Texts that the schema does not constrain: long ones are content, and not copied to be checked.
    pub(super) free: Vec<String>,
    advice: HashMap<String, String>,
}

impl Outline {
    fn of(schema: &Json) -> Self {
        let properties = || schema.get("properties").and_then(Json::as_object).into_iter().flatten();
        let required = schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        Self {
            names: properties().map(|(name, _)| name.clone()).collect(),
            required: required.map(str::to_owned).collect(),
            free: properties().filter(|(_, property)| is_free_text(property)).map(|(name, _)| name.clone()).collect(),
            advice: properties().filter_map(|(name, property)| Some((name.clone(), advice(property)?))).collect(),
        }
    }

    pub(super) fn advice(&self, name: &str) -> Option<String> {
        self.advice.get(name).cloned()
    }
}

/// Returns how a property is used, from its schema: the first sentence of its description.
pub(super) fn advice(property: &Json) -> Option<String> {
    let description = property.get("description")?.as_str()?;
    Some(description.split_once(". ").map_or(description.to_owned(), |(first, _)| format!("{first}.")))
}

fn is_free_text(property: &Json) -> bool {
    let annotations = ["type", "title", "description", "default"];
    let plain = |members: &Map<String, Json>| members.keys().all(|key| annotations.contains(&key.as_str()));
    property.get("type").is_some_and(|kind| kind == "string") && property.as_object().is_some_and(plain)
}
