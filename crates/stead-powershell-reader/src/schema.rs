//! The JSON Schema of a resource.

use serde_json::{Map, Value as Json, json};

use crate::resource::Resource;
use crate::types::{Class, Type};
use crate::types::{Property, Rule};

/// The schema of the properties of a resource, the same for the same resource.
///
/// Guarantees: keys and mandatory properties are required, others than the declared ones are refused, what can only be read
/// is `readOnly`, and secrets are `writeOnly`, so that they are never compared or shown.
///
/// Caveats: PowerShell compares the values of a `ValidateSet` and the names of an enumeration without regard to case; the
/// schema has them as they are declared. A pattern that only .NET has is a `$comment`: the resource itself refuses what does
/// not fit it.
pub fn json_schema(resource: &Resource) -> Json {
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!(resource.name));
    schema.extend(described(resource.description.as_deref()));
    schema.extend(object(&resource.properties));
    Json::Object(schema)
}

fn described(description: Option<&str>) -> Option<(String, Json)> {
    description.filter(|text| !text.is_empty()).map(|text| ("description".to_owned(), json!(text)))
}

fn object(properties: &[Property]) -> Map<String, Json> {
    let all: Map<_, _> = properties.iter().map(|property| (property.name.clone(), property_schema(property))).collect();
    let required = properties.iter().filter(|property| (property.key || property.mandatory) && !property.read_only);
    let required: Vec<_> = required.map(|property| &property.name).collect();
    let mut schema =
        Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), Json::Object(all))]);
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

fn property_schema(property: &Property) -> Json {
    let mut schema = type_schema(&property.ty);
    for rule in &property.rules {
        apply(rule, &property.ty, &mut schema);
    }
    schema.extend(described(property.description.as_deref()));
    if property.read_only {
        schema.insert("readOnly".to_owned(), json!(true));
    }
    if is_secret(&property.ty) {
        schema.insert("writeOnly".to_owned(), json!(true));
    }
    Json::Object(schema)
}

fn is_secret(ty: &Type) -> bool {
    match ty {
        Type::Credential | Type::SecureString => true,
        Type::Array(element) | Type::Nullable(element) => is_secret(element),
        _ => false,
    }
}

/// A schema that says of the properties only which values are secret; `None` where none is.
pub fn secrets_schema(properties: &[Property]) -> Option<Json> {
    let marked = properties.iter().filter_map(|property| Some((property.name.clone(), secret_schema(&property.ty)?)));
    let marked: Map<String, Json> = marked.collect();
    (!marked.is_empty()).then(|| json!({ "properties": marked }))
}

fn secret_schema(ty: &Type) -> Option<Json> {
    match ty {
        Type::SecureString => Some(json!({ "format": "password" })),
        Type::Credential => Some(json!({ "properties": { "password": { "format": "password" } } })),
        Type::Array(element) => secret_schema(element).map(|items| json!({ "items": items })),
        Type::Nullable(element) => secret_schema(element),
        Type::CimInstance(class) | Type::Class(class) => secrets_schema(&class.properties),
        _ => None,
    }
}

fn type_schema(ty: &Type) -> Map<String, Json> {
    let members = match ty {
        Type::Object | Type::PsObject | Type::Other(_) => json!({}),
        Type::String | Type::ScriptBlock | Type::Uri => json!({ "type": "string" }),
        Type::SecureString => json!({ "type": "string", "format": "password" }),
        Type::DateTime | Type::DateTimeOffset => json!({ "type": "string", "format": "date-time" }),
        Type::TimeSpan | Type::Guid | Type::Version => {
            json!({ "type": "string" })
        }
        Type::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
        Type::Boolean | Type::Switch => json!({ "type": "boolean" }),
        Type::Integer { bits, signed } => integer(*bits, *signed),
        Type::BigInteger => json!({ "type": "integer" }),
        Type::Single | Type::Double | Type::Decimal => json!({ "type": "number" }),
        Type::Hashtable | Type::OrderedDictionary => json!({ "type": "object" }),
        Type::Credential => credential(),
        // A class within itself, or one that is declared elsewhere.
        Type::CimInstance(class) | Type::Class(class) if class.properties.is_empty() => json!({ "type": "object" }),
        Type::CimInstance(class) | Type::Class(class) => Json::Object(class_schema(class)),
        // Members of flags can be combined: `'A, B'`.
        Type::Enumeration(enumeration) if enumeration.flags => json!({ "type": "string" }),
        Type::Enumeration(enumeration) => {
            let names: Vec<_> = enumeration.members.iter().map(|(name, _)| name).collect();
            json!({ "type": "string", "enum": names })
        }
        Type::Array(element) => json!({ "type": "array", "items": type_schema(element) }),
        Type::Nullable(element) => return nullable(type_schema(element)),
    };
    if let Json::Object(members) = members { members } else { Map::new() }
}

fn class_schema(class: &Class) -> Map<String, Json> {
    let mut schema = Map::from_iter([("title".to_owned(), json!(class.name))]);
    schema.extend(object(&class.properties));
    schema
}

fn integer(bits: u8, signed: bool) -> Json {
    let half = 1_i128 << (bits - u8::from(signed)).min(64);
    let low = if signed { -half } else { 0 };
    json!({ "type": "integer", "minimum": i64::try_from(low).unwrap_or(i64::MIN), "maximum": u64::try_from(half - 1).unwrap_or(u64::MAX) })
}

fn credential() -> Json {
    json!({
        "type": "object",
        "properties": {
            "username": { "type": "string" },
            "password": { "type": "string", "writeOnly": true },
        },
        "required": ["username", "password"],
        "additionalProperties": false,
    })
}

fn nullable(mut schema: Map<String, Json>) -> Map<String, Json> {
    if let Some(ty) = schema.get_mut("type") {
        *ty = json!([ty, "null"]);
    }
    if let Some(Json::Array(values)) = schema.get_mut("enum") {
        values.push(Json::Null);
    }
    schema
}

/// Adds what a rule asks for: of the elements, where the property is an array.
fn apply(rule: &Rule, ty: &Type, schema: &mut Map<String, Json>) {
    let array = matches!(ty, Type::Array(_));
    if let Rule::Count(least, most) = rule {
        schema.extend(bounds("minItems", "maxItems", *least, *most));
        return;
    }
    if array && matches!(rule, Rule::NotEmpty) {
        schema.insert("minItems".to_owned(), json!(1));
    }
    let element = if array { schema.get_mut("items").and_then(Json::as_object_mut) } else { Some(schema) };
    let Some(element) = element else { return };
    let text = element.get("type") == Some(&json!("string"));
    match rule {
        Rule::OneOf(values) if text => drop(element.insert("enum".to_owned(), json!(values))),
        Rule::OneOf(values) => {
            let numbers: Option<Vec<Json>> =
                values.iter().map(|value| Some(value.parse::<i64>().ok()?.into())).collect();
            element.extend(numbers.map(|numbers| ("enum".to_owned(), Json::Array(numbers))));
        }
        Rule::Range(low, high) if !text => {
            let bound = |text: &String| serde_json::from_str::<Json>(text).ok().filter(Json::is_number);
            element.extend(bound(low).map(|low| ("minimum".to_owned(), low)));
            element.extend(bound(high).map(|high| ("maximum".to_owned(), high)));
        }
        Rule::Length(least, most) if text => element.extend(bounds("minLength", "maxLength", *least, *most)),
        Rule::NotEmpty if text => drop(element.insert("minLength".to_owned(), json!(1))),
        Rule::Pattern(pattern) if text => {
            // .NET disregards case here.
            let folded = format!("(?i){pattern}");
            let (keyword, pattern) = if regex::Regex::new(&folded).is_ok() {
                ("pattern", folded)
            } else {
                ("$comment", format!("ValidatePattern: {pattern}"))
            };
            element.insert(keyword.to_owned(), json!(pattern));
        }
        _ => {}
    }
}

fn bounds(least: &str, most: &str, low: u64, high: u64) -> [(String, Json); 2] {
    [(least.to_owned(), json!(low)), (most.to_owned(), json!(high))]
}
