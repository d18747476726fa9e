//! The documents that go to and come from adapters, and the instances that exports name.

use serde_json::{Map, Value as Json, json};
use stead_core::call::Exported;
use stead_core::id::TypeName;
use stead_core::value::Value;

/// The form that the properties of an instance are wrapped in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// Nothing.
    Direct,
    /// A document with the one instance: `{"resources":[{"name":..,"type":..,"properties":..}]}`, answered by
    /// `{"result":[..]}` of the same form.
    Document {
        /// True if it says that the instance is part of a configuration.
        in_configuration: bool,
    },
}

impl Shape {
    /// Returns the input of a program for these properties.
    pub(super) fn wrap(self, type_name: &str, properties: &Json) -> Json {
        match self {
            Self::Direct => properties.clone(),
            Self::Document { in_configuration } => {
                document(vec![instance(type_name, type_name, properties)], in_configuration)
            }
        }
    }

    /// The state in what a program answered.
    pub(super) fn unwrap(self, answer: Json) -> Result<Json, &'static str> {
        if self == Self::Direct {
            return Ok(answer);
        }
        let mut instances = instances(answer).map_err(|_| "the answer of the adapter must be {\"result\": [..]}")?;
        match (instances.pop(), instances.is_empty()) {
            (Some(instance), true) => properties(instance),
            _ => Err("the adapter was asked for one instance and must answer with one"),
        }
    }
}

/// An instance in a document.
pub(super) fn instance(name: &str, type_name: &str, properties: &Json) -> Json {
    let mut instance = json!({"name": name, "type": type_name});
    if let (Some(members), false) = (instance.as_object_mut(), properties.is_null()) {
        members.insert("properties".to_owned(), properties.clone());
    }
    instance
}

/// The document that an adapter is given.
pub(super) fn document(instances: Vec<Json>, in_configuration: bool) -> Json {
    let mut members = Map::from_iter([("resources".to_owned(), Json::Array(instances))]);
    if in_configuration {
        members.insert("metadata".to_owned(), json!({"Microsoft.DSC": {"context": "configuration"}}));
    }
    Json::Object(members)
}

/// The instances of an answer; the answer itself, when it is none of that form.
pub(super) fn instances(answer: Json) -> Result<Vec<Json>, Json> {
    match answer {
        Json::Object(mut members) => match members.remove("result").or_else(|| members.remove("resources")) {
            Some(Json::Array(instances)) => Ok(instances),
            _ => Err(Json::Object(members)),
        },
        other => Err(other),
    }
}

fn properties(instance: Json) -> Result<Json, &'static str> {
    match instance {
        Json::Object(mut members) => members.remove("properties").ok_or("the adapter answered without 'properties'"),
        _ => Err("an instance in the answer of the adapter must be an object"),
    }
}

/// The state of an exported instance: its properties, or all of it, which is how the adapters of PowerShell list.
fn state(instance: Json) -> Json {
    match instance {
        Json::Object(mut members)
            if members.contains_key("type") && members.get("properties").is_some_and(Json::is_object) =>
        {
            members.remove("properties").unwrap_or_default()
        }
        state => state,
    }
}

/// Reads the lines of an export. `whole`: each is an instance with type and name instead of its properties alone.
pub(super) fn exported(shape: Shape, whole: bool, lines: Vec<Json>) -> Result<Vec<Exported>, &'static str> {
    if whole {
        return lines.into_iter().map(|line| from_instance(object(line)?)).collect();
    }
    let mut found = Vec::new();
    for line in lines {
        match shape {
            Shape::Direct => found.push(from_properties(object(line)?)),
            Shape::Document { .. } => {
                // One document with all instances, or an instance a line.
                for instance in instances(line).unwrap_or_else(|line| vec![line]) {
                    found.push(from_properties(object(state(instance))?));
                }
            }
        }
    }
    Ok(found)
}

fn object(json: Json) -> Result<Map<String, Json>, &'static str> {
    match json {
        Json::Object(members) => Ok(members),
        _ => Err("every line must be an object"),
    }
}

fn from_properties(mut members: Map<String, Json>) -> Exported {
    let name = members.remove("_name").and_then(|name| name.as_str().map(str::to_owned));
    let metadata = members.remove("_metadata").map(Value::from);
    Exported { type_name: None, name, properties: Value::from(Json::Object(members)), depends_on: Vec::new(), metadata }
}

fn from_instance(mut members: Map<String, Json>) -> Result<Exported, &'static str> {
    let type_name = members.get("type").and_then(Json::as_str).and_then(|name| TypeName::parse(name).ok());
    let type_name = Some(type_name.ok_or("every line must be an instance with its 'type'")?);
    let name = members.remove("name").and_then(|name| name.as_str().map(str::to_owned));
    let properties = Value::from(members.remove("properties").unwrap_or_default());
    let metadata = members.remove("metadata").map(Value::from);
    Ok(Exported { type_name, name, properties, depends_on: Vec::new(), metadata })
}
