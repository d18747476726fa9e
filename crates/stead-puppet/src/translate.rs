//! JSON Schema → data types of Puppet.
//!
//! The type of an attribute accepts all that the schema accepts, and refuses what is known to be wrong without the engine. Where Puppet
//! has no type that is exact, the wider one is taken: the engine checks the schema itself.

use std::cell::Cell;
use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use crate::data_type::{Bounds, DataType, LetterCase, Member, Presence};
use crate::pattern;

/// How deep schemas may be nested, references followed.
const DEPTH: usize = 12;

/// How many schemas are translated for one property, references followed.
const STEPS: usize = 2000;

/// How many schemas are looked at for the properties of one object.
const PARTS: usize = 64;

/// The form of points in time in manifests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timestamps {
    /// Text, as in the documents of stead.
    #[default]
    Text,
    /// Values of the type `Timestamp`.
    Timestamp,
}

/// The rule by which secrets can be given as plain strings, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainSecrets {
    /// Only values of the type `Sensitive` are accepted.
    #[default]
    Refused,
    /// Strings are accepted as well. They are in the catalog and in reports like any other text.
    Accepted,
}

/// The options that decide the type of a schema besides the schema.
pub(crate) struct Translator<'s> {
    pub(crate) root: &'s Json,
    pub(crate) case: LetterCase,
    pub(crate) timestamps: Timestamps,
    pub(crate) plain_secrets: PlainSecrets,
    /// Where secrets are in an instance: `/credential/password`, with `*` for every element.
    pub(crate) secrets: &'s BTreeSet<String>,
    /// How many schemas are still translated for this property.
    pub(crate) steps: Cell<usize>,
}

/// Where a schema applies.
struct Position<'p> {
    /// Where the value is in an instance.
    place: &'p str,
    depth: usize,
    /// The reference that is followed here, and those on the way.
    reference: Option<&'p str>,
    outer: Option<&'p Position<'p>>,
}

impl<'s> Translator<'s> {
    /// The schema that another one refers to, if it is in the same document.
    pub(crate) fn referred(&self, schema: &Json) -> Option<&'s Json> {
        self.resolve(schema.get("$ref")?)
    }

    /// A schema, and those that apply together with it: the one that it refers to, and those of its `allOf`.
    pub(crate) fn parts(&self, schema: &'s Json) -> Vec<&'s Json> {
        let mut parts = vec![schema];
        let mut next = 0;
        while let Some(part) = parts.get(next).copied().filter(|_| next < PARTS) {
            next += 1;
            parts.extend(self.referred(part));
            parts.extend(part.get("allOf").and_then(Json::as_array).into_iter().flatten());
        }
        parts
    }

    fn resolve(&self, reference: &Json) -> Option<&'s Json> {
        self.root.pointer(reference.as_str()?.strip_prefix('#')?)
    }

    /// The type of a property of the resource.
    ///
    /// Guarantees: where the schema or the caller says that something in it is secret, so does the type: of the whole value
    /// where it cannot of a part.
    pub(crate) fn property(&self, name: &str, schema: &Json) -> DataType {
        let place = format!("/{name}");
        self.steps.set(STEPS);
        let data_type = self.translate(schema, &Position { place: &place, depth: 0, reference: None, outer: None });
        let below = place + "/";
        let is_listed = || self.secrets.iter().any(|secret| secret.starts_with(&below));
        if data_type.has_sensitive() || !(is_listed() || self.mentions_secret(schema, 0, &mut BTreeSet::new())) {
            return data_type;
        }
        self.protected(data_type)
    }

    /// Returns whether a secret is anywhere in a schema, in whatever way its parts belong together.
    fn mentions_secret(&self, schema: &Json, depth: usize, seen: &mut BTreeSet<String>) -> bool {
        let members = match schema {
            Json::Object(members) => members,
            Json::Array(schemas) => return schemas.iter().any(|each| self.mentions_secret(each, depth, seen)),
            _ => return false,
        };
        if is_password(members) || wrapped_secret(members).is_some() || (depth > 0 && is_written_text(members)) {
            return true;
        }
        let reference = members.get("$ref").and_then(Json::as_str);
        let is_new = reference.is_some_and(|reference| seen.insert(reference.to_owned()));
        let target = self.referred(schema).filter(|_| is_new);
        let mut parts = target.into_iter().chain(members.values());
        parts.any(|each| self.mentions_secret(each, depth + 1, seen))
    }

    fn translate(&self, schema: &Json, at: &Position<'_>) -> DataType {
        let steps = self.steps.get();
        self.steps.set(steps.saturating_sub(1));
        let Some(members) = schema.as_object().filter(|_| at.depth < DEPTH && steps > 0) else { return DataType::Any };
        let data_type = self.unprotected(members, at);
        if self.is_secret(members, at) { self.protected(data_type) } else { data_type }
    }

    pub(crate) fn protected(&self, data_type: DataType) -> DataType {
        match self.plain_secrets {
            PlainSecrets::Refused => data_type.sensitive(),
            PlainSecrets::Accepted => DataType::one_of([data_type.clone().sensitive(), data_type]),
        }
    }

    /// Secret is what the caller lists, what the schema calls a password, and what inside of a value can only be written.
    fn is_secret(&self, schema: &Map<String, Json>, at: &Position<'_>) -> bool {
        self.secrets.contains(at.place) || is_password(schema) || (at.depth > 0 && is_written_text(schema))
    }

    fn unprotected(&self, schema: &Map<String, Json>, at: &Position<'_>) -> DataType {
        if let Some(wrapped) = wrapped_secret(schema) {
            return wrapped;
        }
        if let Some(reference) = schema.get("$ref") {
            let target =
                self.resolve(reference).zip(reference.as_str()).filter(|(_, reference)| !at.is_within(reference));
            return target.map_or(DataType::Any, |(target, reference)| {
                self.translate(target, &Position { reference: Some(reference), ..at.deeper(at.place) })
            });
        }
        if let Some(values) = schema.get("enum").and_then(Json::as_array) {
            return self.enumeration(values);
        }
        if let Some(value) = schema.get("const") {
            return self.enumeration(std::slice::from_ref(value));
        }
        if let Some(data_type) = self.combined(schema, at) {
            return data_type;
        }
        match schema.get("type") {
            Some(Json::String(kind)) => self.kind(kind, schema, at),
            Some(Json::Array(kinds)) => {
                DataType::one_of(kinds.iter().filter_map(Json::as_str).map(|kind| self.kind(kind, schema, at)))
            }
            _ if schema.contains_key("properties") => self.kind("object", schema, at),
            _ => DataType::Any,
        }
    }

    /// The type of alternatives, if they are more than conditions on a schema that has a type of its own.
    fn combined(&self, schema: &Map<String, Json>, at: &Position<'_>) -> Option<DataType> {
        if schema.contains_key("type") || schema.contains_key("properties") {
            return None;
        }
        let list = |keyword| schema.get(keyword).and_then(Json::as_array).filter(|schemas| !schemas.is_empty());
        if let Some(alternatives) = list("oneOf").or_else(|| list("anyOf")) {
            return Some(DataType::one_of(alternatives.iter().map(|each| self.translate(each, &at.deeper(at.place)))));
        }
        // Puppet has no type of all that several types accept: the most telling one stands for them.
        let all = list("allOf")?.iter().map(|each| self.translate(each, &at.deeper(at.place)));
        Some(all.reduce(|first, next| if first == DataType::Any { next } else { first }).unwrap_or(DataType::Any))
    }

    fn enumeration(&self, values: &[Json]) -> DataType {
        let mut texts: Vec<String> = Vec::new();
        let mut others = Vec::new();
        for value in values {
            match value {
                Json::String(text) if texts.iter().any(|other| self.is_same(other, text)) => {}
                Json::String(text) => texts.push(text.clone()),
                Json::Null => others.push(DataType::Undef),
                Json::Bool(value) => others.push(DataType::Literal(*value)),
                Json::Number(number) => others.push(exact(number)),
                Json::Array(_) | Json::Object(_) => others.push(DataType::Any),
            }
        }
        let texts = (!texts.is_empty()).then_some(DataType::Enum { values: texts, case: self.case });
        DataType::one_of(texts.into_iter().chain(others))
    }

    fn is_same(&self, one: &str, other: &str) -> bool {
        match self.case {
            LetterCase::Sensitive => one == other,
            LetterCase::Insensitive => one.to_lowercase() == other.to_lowercase(),
        }
    }

    fn kind(&self, kind: &str, schema: &Map<String, Json>, at: &Position<'_>) -> DataType {
        match kind {
            "string" => self.string(schema),
            "integer" => DataType::Integer(integer_bounds(schema)),
            "number" => DataType::Number(Bounds::new(least_number(schema), most_number(schema))),
            "boolean" => DataType::Boolean,
            "null" => DataType::Undef,
            "array" => {
                let place = format!("{}/*", at.place);
                let element = schema.get("items").map(|items| self.translate(items, &at.deeper(&place)));
                DataType::Array(Box::new(element.unwrap_or(DataType::Any)), sizes(schema, "minItems", "maxItems"))
            }
            "object" => self.object(schema, at),
            _ => DataType::Any,
        }
    }

    fn string(&self, schema: &Map<String, Json>) -> DataType {
        let text = |keyword| schema.get(keyword).and_then(Json::as_str);
        if text("format") == Some("date-time") && self.timestamps == Timestamps::Timestamp {
            // Text in the form of documents is taken as well.
            return DataType::one_of([DataType::Timestamp, DataType::String(Bounds::NONE)]);
        }
        let pattern = text("pattern").and_then(pattern::to_ruby);
        pattern.map_or_else(|| DataType::String(sizes(schema, "minLength", "maxLength")), DataType::Pattern)
    }

    fn object(&self, schema: &Map<String, Json>, at: &Position<'_>) -> DataType {
        let properties = schema.get("properties").and_then(Json::as_object).filter(|properties| !properties.is_empty());
        // Puppet has no struct with a member without a name.
        if properties.is_some_and(|properties| properties.contains_key("")) {
            return DataType::Hash(Box::new(DataType::Any), Bounds::NONE);
        }
        let others = schema.get("additionalProperties").filter(|others| **others != Json::Bool(false));
        let bounds = sizes(schema, "minProperties", "maxProperties");
        let (Some(properties), None) = (properties, others) else {
            let place = format!("{}/*", at.place);
            let of = others.filter(|_| properties.is_none()).map(|others| self.translate(others, &at.deeper(&place)));
            return DataType::Hash(Box::new(of.unwrap_or(DataType::Any)), bounds);
        };
        let required = names(schema, "required");
        let members = properties.iter().map(|(name, schema)| Member {
            name: name.clone(),
            data_type: self.translate(schema, &at.deeper(&format!("{}/{name}", at.place))),
            presence: if required.contains(name.as_str()) { Presence::Required } else { Presence::Optional },
        });
        DataType::Struct(members.collect())
    }
}

impl<'p> Position<'p> {
    fn deeper<'d>(&'d self, place: &'d str) -> Position<'d>
    where
        'p: 'd,
    {
        Position { place, depth: self.depth + 1, reference: None, outer: Some(self) }
    }

    /// Returns whether this is within the schema that a reference leads to.
    fn is_within(&self, reference: &str) -> bool {
        self.reference == Some(reference) || self.outer.is_some_and(|outer| outer.is_within(reference))
    }
}

fn is_password(schema: &Map<String, Json>) -> bool {
    schema.get("format").is_some_and(|format| format == "password")
}

fn is_written_text(schema: &Map<String, Json>) -> bool {
    schema.get("type").is_some_and(|kind| kind == "string") && schema.get("writeOnly") == Some(&Json::Bool(true))
}

/// The type of the form in which stead has secrets: `{"secureString": text}` and `{"secureObject": object}`. In a manifest it
/// is the value alone.
fn wrapped_secret(schema: &Map<String, Json>) -> Option<DataType> {
    let properties = schema.get("properties").and_then(Json::as_object).filter(|properties| properties.len() == 1)?;
    if properties.contains_key("secureString") {
        return Some(DataType::String(Bounds::NONE).sensitive());
    }
    properties.contains_key("secureObject").then(|| DataType::Hash(Box::new(DataType::Any), Bounds::NONE).sensitive())
}

fn exact(number: &serde_json::Number) -> DataType {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => DataType::Integer(Bounds::new(Some(integer), Some(integer))),
        (None, Some(float)) => DataType::Number(Bounds::new(Some(float), Some(float))),
        (None, None) => DataType::Any,
    }
}

fn sizes(schema: &Map<String, Json>, least: &str, most: &str) -> Bounds<u64> {
    let size = |keyword| schema.get(keyword).and_then(Json::as_u64);
    Bounds::new(size(least).filter(|least| *least > 0), size(most))
}

/// The limits of an integer, as far as they are integers that Puppet has.
fn integer_bounds(schema: &Map<String, Json>) -> Bounds<i64> {
    let limit = |keyword| schema.get(keyword).and_then(integer);
    let above = limit("exclusiveMinimum").and_then(|limit| limit.checked_add(1));
    let below = limit("exclusiveMaximum").and_then(|limit| limit.checked_sub(1));
    Bounds::new(limit("minimum").max(above), [limit("maximum"), below].into_iter().flatten().min())
}

/// An integer, also where it is written as `5.0`.
fn integer(number: &Json) -> Option<i64> {
    number.as_i64().or_else(|| number.as_f64().filter(|float| float.fract() == 0.0).and_then(crate::data_type::whole))
}

fn least_number(schema: &Map<String, Json>) -> Option<f64> {
    limits(schema, "minimum", "exclusiveMinimum").reduce(f64::max)
}

fn most_number(schema: &Map<String, Json>) -> Option<f64> {
    limits(schema, "maximum", "exclusiveMaximum").reduce(f64::min)
}

/// Limits of a number. Puppet has none that are exclusive.
fn limits<'s>(schema: &'s Map<String, Json>, limit: &str, exclusive: &str) -> impl Iterator<Item = f64> + use<'s> {
    [schema.get(limit), schema.get(exclusive)].into_iter().flatten().filter_map(Json::as_f64)
}

/// The names in a list.
fn names<'s>(schema: &'s Map<String, Json>, keyword: &str) -> BTreeSet<&'s str> {
    schema.get(keyword).and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect()
}
