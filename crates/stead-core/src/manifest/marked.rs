//! Where values are secret by the schema of a resource.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::value::{Seal, Value};

/// Where the properties of a resource hold secrets, by its schema: what has the format `password`, and what a `SecureString` or
/// a credential of PowerShell becomes in one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SecretPlaces {
    whole: bool,
    members: BTreeMap<String, SecretPlaces>,
    /// The places in members that the schema does not name.
    others: Option<Box<SecretPlaces>>,
    items: Option<Box<SecretPlaces>>,
}

/// How many schemas within a schema are looked at: one can refer to itself.
const MOST_SCHEMAS: usize = 10_000;

/// How deep they are looked at.
const DEEPEST: usize = 16;

impl SecretPlaces {
    /// The places that a schema marks; `None` where it marks none. Manifests of adapted resources state their schema as
    /// `embedded`, as other manifests do, or as it is.
    pub fn of_schema(schema: &Json) -> Option<Self> {
        let schema = schema.get("embedded").filter(|embedded| embedded.is_object()).unwrap_or(schema);
        let mut reader = Reader { root: schema, left: MOST_SCHEMAS };
        Some(reader.read(schema, DEEPEST)).filter(|places| *places != Self::default())
    }

    /// Every property, for a resource of whose schema nothing can be known.
    pub fn everywhere() -> Self {
        Self { others: Some(Box::new(Self { whole: true, ..Self::default() })), ..Self::default() }
    }

    /// Returns whether a value has an unsealed secret in one of these places.
    pub(super) fn are_in(&self, value: &Value) -> bool {
        match value {
            Value::Null | Value::Sealed(_) => false,
            _ if self.whole => true,
            Value::Object(members) => {
                members.iter().any(|(name, member)| self.member(name).is_some_and(|places| places.are_in(member)))
            }
            Value::Array(items) => {
                self.items.as_ref().is_some_and(|places| items.iter().any(|item| places.are_in(item)))
            }
            _ => false,
        }
    }

    /// Seals the values in these places.
    pub(super) fn seal(&self, value: &mut Value, seal: &dyn Seal) {
        match value {
            Value::Null | Value::Sealed(_) => {}
            value if self.whole => *value = Value::secret(seal.seal(std::mem::take(value))),
            Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    if let Some(places) = self.member(name) {
                        places.seal(member, seal);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    if let Some(places) = &self.items {
                        places.seal(item, seal);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns whether a property is secret, or something in it.
    pub fn has(&self, property: &str) -> bool {
        self.member(property).is_some()
    }

    /// PowerShell compares names without regard to case; other readers do not accept another case at all.
    fn member(&self, name: &str) -> Option<&Self> {
        let in_any_case =
            || self.members.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, found)| found);
        self.members.get(name).or_else(in_any_case).or(self.others.as_deref())
    }

    fn add(&mut self, more: Self) {
        self.whole |= more.whole;
        for (name, places) in more.members {
            self.members.entry(name).or_default().add(places);
        }
        for (own, more) in [(&mut self.others, more.others), (&mut self.items, more.items)] {
            if let Some(more) = more {
                own.get_or_insert_default().add(*more);
            }
        }
    }
}

struct Reader<'s> {
    root: &'s Json,
    left: usize,
}

impl Reader<'_> {
    fn read(&mut self, schema: &Json, depth: usize) -> SecretPlaces {
        let mut places = SecretPlaces::default();
        let Json::Object(schema) = schema else { return places };
        let Some((left, deeper)) = self.left.checked_sub(1).zip(depth.checked_sub(1)) else { return places };
        self.left = left;
        places.whole = schema.get("format").is_some_and(|format| format == "password");
        for (name, property) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
            let within = self.read(property, deeper);
            if within != SecretPlaces::default() {
                places.members.entry(name.clone()).or_default().add(within);
            }
        }
        let named_by_pattern =
            schema.get("patternProperties").and_then(Json::as_object).into_iter().flat_map(Map::values);
        let unnamed = ["additionalProperties", "unevaluatedProperties"].into_iter().filter_map(|name| schema.get(name));
        for other in named_by_pattern.chain(unnamed) {
            add_to(&mut places.others, self.read(other, deeper));
        }
        let items = ["items", "additionalItems", "contains", "unevaluatedItems"]
            .into_iter()
            .filter_map(|name| schema.get(name));
        for item in items.chain(parts(schema, "prefixItems")).chain(parts(schema, "items")) {
            add_to(&mut places.items, self.read(item, deeper));
        }
        let conditional = ["then", "else"].into_iter().filter_map(|name| schema.get(name));
        let dependent = schema.get("dependentSchemas").and_then(Json::as_object).into_iter().flat_map(Map::values);
        let alike = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|name| parts(schema, name));
        let alike = alike.chain(conditional).chain(dependent);
        let root = self.root;
        for same in alike.chain(target(root, schema)) {
            places.add(self.read(same, deeper));
        }
        places
    }
}

fn add_to(places: &mut Option<Box<SecretPlaces>>, more: SecretPlaces) {
    if more != SecretPlaces::default() {
        places.get_or_insert_default().add(more);
    }
}

fn parts<'s>(schema: &'s Map<String, Json>, name: &str) -> impl Iterator<Item = &'s Json> {
    schema.get(name).and_then(Json::as_array).into_iter().flatten()
}

/// Resolves a reference within the schema.
fn target<'s>(root: &'s Json, schema: &Map<String, Json>) -> Option<&'s Json> {
    root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The paths of the marked places, `*` for elements and members of any name.
    fn marked(places: &SecretPlaces, path: &str) -> Vec<String> {
        let own = places.whole.then(|| path.to_owned());
        let members = places.members.iter().flat_map(|(name, within)| marked(within, &format!("{path}/{name}")));
        let any = [&places.others, &places.items].into_iter().flatten();
        own.into_iter().chain(members).chain(any.flat_map(|within| marked(within, &format!("{path}/*")))).collect()
    }

    #[test]
    fn places_are_found_however_a_schema_says_so() {
        let secret = json!({ "type": "string", "format": "password", "writeOnly": true });
        let schema = json!({
            "$defs": { "login": { "properties": { "user": { "type": "string" }, "password": secret } }, "self": { "$ref": "#" } },
            "properties": {
                "plain": { "type": "string", "writeOnly": true },
                "token": secret,
                "login": { "$ref": "#/$defs/login" },
                "logins": { "type": "array", "items": { "allOf": [{ "$ref": "#/$defs/login" }] } },
                "map": { "additionalProperties": { "anyOf": [{ "type": "null" }, secret] } },
                "again": { "$ref": "#/$defs/self" },
            },
            "if": { "required": ["token"] },
            "then": { "properties": { "second": secret } },
            "dependentSchemas": { "login": { "properties": { "third": secret } } },
        });
        let places = SecretPlaces::of_schema(&schema).unwrap();
        let mut found = marked(&places, "");
        found.retain(|path| !path.starts_with("/again"));
        assert_eq!(found, ["/login/password", "/logins/*/password", "/map/*", "/second", "/third", "/token"]);
        assert_eq!(marked(&SecretPlaces::everywhere(), ""), ["/*"]);
        assert_eq!(SecretPlaces::of_schema(&json!({ "properties": { "a": { "type": "string" } } })), None);
    }
}
