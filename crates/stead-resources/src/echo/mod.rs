//! `Microsoft.DSC.Debug/Echo`: gives back what it is given.
//!
//! It is for trying out documents. `showSecrets` is taken as DSC v3 takes it and has no effect: stead never prints a
//! secret.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny};
use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Exported, Failure};
use stead_core::claims::Claims;
use stead_core::manifest::Capabilities;
use stead_core::value::{Object, REDACTED, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};

use crate::declared::Declared as _;
use crate::input::{has_fraction, invalid, read};
use crate::{BuiltIn, NOTHING, schema, with_version};

pub(crate) fn built_in() -> Option<BuiltIn> {
    let built_in = Properties::built_in(Arc::new(Echo))?;
    Some(with_version(built_in, semver::Version::new(1, 0, 0)))
}

/// The schema in the form of dsc, which programs compare: without descriptions, and with the keys in its order.
fn schema_of_dsc() -> Json {
    let mut schema = schema::of::<Properties>();
    if let Some(switch) = schema.pointer_mut("/properties/showSecrets") {
        *switch = json!({ "type": ["boolean", "null"] });
    }
    let keys = ["$schema", "title", "type", "properties", "additionalProperties", "required", "$defs"];
    keys.iter().filter_map(|key| Some(((*key).to_owned(), schema.get(key)?.clone()))).collect()
}

/// What is given back.
#[resource(
    "Microsoft.DSC.Debug/Echo",
    about = "Echo resource for testing and debugging purposes",
    capabilities = Capabilities { get: true, set: true, test: true, export: true, export_filters: true, ..NOTHING },
    title = "Echo",
    schema = schema_of_dsc,
)]
#[schemars(
    extend("$defs" = {
        "Output": {
            "anyOf": [
                { "type": "array", "items": true },
                { "type": "boolean" },
                { "type": "integer", "format": "int64" },
                { "$ref": "#/$defs/SecureObject" },
                { "$ref": "#/$defs/SecureString" },
                { "type": "string" },
                { "type": "object", "additionalProperties": true },
                { "type": "null" }
            ]
        },
        "SecureObject": {
            "type": "object",
            "properties": { "secureObject": { "type": "object", "additionalProperties": true } },
            "additionalProperties": false,
            "required": ["secureObject"]
        },
        "SecureString": {
            "type": "object",
            "properties": { "secureString": { "type": "string" } },
            "additionalProperties": false,
            "required": ["secureString"]
        }
    })
)]
#[expect(dead_code, reason = "what is given back is the JSON itself")]
struct Properties {
    // Anything but a number with a fraction. The schema of dsc has no description here.
    output: Output,
    /// Has no effect: a secret is never shown.
    #[serde(default)]
    show_secrets: Switch,
}

impl crate::input::Properties<'_> for Properties {}

/// Anything but a number with a fraction.
struct Output;

impl<'de> Deserialize<'de> for Output {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl JsonSchema for Output {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Output".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "$ref": "#/$defs/Output" })
    }
}

/// True, false, or null.
#[derive(Default)]
struct Switch;

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Bool(_) | Json::Null => Ok(Self),
            _ => Err(D::Error::custom("must be true, false or null")),
        }
    }
}

impl JsonSchema for Switch {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Switch".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["null", "boolean"] })
    }
}

struct Echo;

impl Provider for Echo {
    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties>(input)?;
        match input.expose().get(Properties::OUTPUT) {
            Some(Value::Number(number)) if has_fraction(number) => {
                Err(invalid(Properties::OUTPUT, "'output' must not be a number with a fraction"))
            }
            _ => Ok(()),
        }
    }

    fn wants_wrapped_secrets(&self) -> bool {
        true
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        self.validate(cx, input)?;
        Ok(if holds_secret(input.expose()) { Plain::new(covered(input.expose())) } else { input.clone() })
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        Ok(TestReply { actual: Some(self.get(cx, input)?), ..TestReply::default() })
    }

    fn set(&self, cx: &Context, input: &Plain, _execution: Execution) -> Result<SetReply, Failure> {
        Ok(SetReply { after: Some(self.get(cx, input)?), ..SetReply::default() })
    }

    fn export(&self, cx: &Context, input: &Plain) -> Result<Vec<Exported>, Failure> {
        if input.expose().is_null() {
            return Ok(Vec::new());
        }
        let properties = self.get(cx, input)?.into_exposed();
        Ok(vec![Exported { type_name: None, name: None, properties, depends_on: Vec::new(), metadata: None }])
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Inline
    }

    fn claims(&self, _input: &Plain) -> Option<Claims> {
        Some(Claims::default())
    }
}

/// Returns whether a value says by its form that it is secret.
fn is_wrapped(members: &Object) -> bool {
    members.contains_key("secureString") || members.contains_key("secureObject")
}

/// Returns whether a part of a value says by its form that it is secret.
fn holds_secret(value: &Value) -> bool {
    match value {
        Value::Object(members) => is_wrapped(members) || members.values().any(holds_secret),
        Value::Array(items) => items.iter().any(holds_secret),
        _ => false,
    }
}

/// The value with everything covered that says by its form that it is secret.
fn covered(value: &Value) -> Value {
    match value {
        Value::Object(members) if is_wrapped(members) => Value::from(REDACTED),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), covered(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(covered).collect()),
        plain => plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_covered_wherever_they_stand() {
        let value = json!({
            "output": [{"secureString": "a"}, {"deep": {"secureObject": {"b": 1}}}, "c", 1.5, null],
            "showSecrets": true,
        });
        let expected = json!({
            "output": ["<secureValue>", {"deep": "<secureValue>"}, "c", 1.5, null],
            "showSecrets": true,
        });
        assert_eq!(covered(&value.into()), expected.into());
    }
}
