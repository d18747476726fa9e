//! `Microsoft.DSC.Debug/Echo`: gives back what it is given.
//!
//! It is for trying out documents. `showSecrets` is taken as DSC v3 takes it and has no effect: stead never prints a
//! secret.

use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::call::{Execution, Exported, Failure};
use stead_core::manifest::Capabilities;
use stead_core::schema::Schema;
use stead_core::value::{REDACTED, Value};
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};

use crate::schema::Lazy;
use crate::{BuiltIn, NOTHING, Profile, with_version};

const SCHEMA: &str = include_str!("schema.json");

pub(crate) fn built_in() -> Option<BuiltIn> {
    let profile = Profile {
        type_name: "Microsoft.DSC.Debug/Echo",
        description: "Echo resource for testing and debugging purposes",
        tags: &[],
        capabilities: Capabilities { get: true, set: true, test: true, export: true, export_filters: true, ..NOTHING },
        schema: SCHEMA,
    };
    let built_in = profile.built_in(Arc::new(Echo { schema: Lazy::new(SCHEMA) }))?;
    Some(with_version(built_in, semver::Version::new(1, 0, 0)))
}

struct Echo {
    schema: Lazy,
}

impl Provider for Echo {
    fn schema(&self, _cx: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        self.schema.get()
    }

    fn get(&self, _cx: &Context, input: &Plain) -> Result<State, Failure> {
        Ok(Plain::new(covered(input.expose())))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        Ok(TestReply { actual: Some(self.get(cx, input)?), in_desired_state: None, differing: None })
    }

    fn set(&self, cx: &Context, input: &Plain, _execution: Execution) -> Result<SetReply, Failure> {
        Ok(SetReply { after: Some(self.get(cx, input)?), ..SetReply::default() })
    }

    fn export(&self, cx: &Context, input: &Plain) -> Result<Vec<Exported>, Failure> {
        if input.expose().is_null() {
            return Ok(Vec::new());
        }
        let properties = Value::from(self.get(cx, input)?.into_exposed());
        Ok(vec![Exported { type_name: None, name: None, properties, depends_on: Vec::new(), metadata: None }])
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Inline
    }

    fn touches(&self, _input: &Plain) -> Option<Vec<std::path::PathBuf>> {
        Some(Vec::new())
    }
}

/// The value with everything covered that says by its form that it is secret.
fn covered(value: &Json) -> Json {
    match value {
        Json::Object(members) if members.contains_key("secureString") || members.contains_key("secureObject") => {
            Json::from(REDACTED)
        }
        Json::Object(members) => members.iter().map(|(name, value)| (name.clone(), covered(value))).collect(),
        Json::Array(items) => items.iter().map(covered).collect(),
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
        assert_eq!(covered(&value), expected);
    }
}
