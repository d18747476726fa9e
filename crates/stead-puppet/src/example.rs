//! Manifests that show how a type is used.

use serde_json::{Map, Value as Json};

use crate::data_type::{DataType, Presence, quoted};
use crate::input::{Dialect, Example};
use crate::resource_type::{Attribute, Behaviour, ResourceType};
use crate::ruby::Literal;

/// `examples/NAME.pp`
pub(crate) fn file(of: &ResourceType<'_>, dialect: Dialect) -> String {
    declarations(of, dialect).join("\n")
}

/// The declarations of all examples of a type.
pub(crate) fn declarations(of: &ResourceType<'_>, dialect: Dialect) -> Vec<String> {
    let given = of.resource.examples.iter().map(|example| given(of, dialect, example));
    let mut all: Vec<_> = given.collect();
    if all.is_empty() {
        all.push(made_up(of, dialect));
    }
    all
}

fn given(of: &ResourceType<'_>, dialect: Dialect, example: &Example) -> String {
    let hides = |attribute: &&Attribute| dialect == Dialect::DscCompatible && attribute.name == "ensure";
    let namevar = only_namevar(of).filter(|_| dialect == Dialect::Native);
    let mut title = example.title.as_str();
    let mut values = Vec::new();
    for attribute in of.attributes.iter().filter(|attribute| !hides(attribute)) {
        let property = attribute.property.as_ref();
        let Some(value) = property.and_then(|property| example.properties.get(property)) else { continue };
        match (value, namevar) {
            (Json::String(text), Some(key)) if key.name == attribute.name => title = text,
            _ => values.push((attribute.name.as_str(), attribute_value(attribute, value))),
        }
    }
    declaration(&of.name, title, &ensure_first(values))
}

/// Puppet's own attribute stands in front of the others, where it is expected.
fn ensure_first(mut values: Vec<(&str, String)>) -> Vec<(&str, String)> {
    values.sort_by_key(|(name, _)| !name.ends_with("ensure"));
    values
}

/// An example of what is required, and of the first property where nothing is.
fn made_up(of: &ResourceType<'_>, dialect: Dialect) -> String {
    let namevar = only_namevar(of).filter(|_| dialect == Dialect::Native);
    let is_required = |attribute: &&Attribute| {
        attribute.property.is_some()
            && !matches!(attribute.data_type, DataType::Optional(_))
            && namevar.is_none_or(|key| key.name != attribute.name)
    };
    let mut shown: Vec<_> = of.attributes.iter().filter(is_required).collect();
    if shown.is_empty() {
        let is_written = |attribute: &&Attribute| {
            attribute.property.is_some() && matches!(attribute.behaviour, Behaviour::Property | Behaviour::Parameter)
        };
        shown.extend(of.attributes.iter().find(is_written));
    }
    let values = shown.into_iter().map(|attribute| (attribute.name.as_str(), sample(&attribute.data_type)));
    declaration(&of.name, "an example", &values.collect::<Vec<_>>())
}

/// The namevar that the title is.
fn only_namevar<'t>(of: &'t ResourceType<'_>) -> Option<&'t Attribute> {
    let mut namevars = of.attributes.iter().filter(|attribute| attribute.behaviour == Behaviour::Namevar);
    let first = namevars.next()?;
    namevars.next().is_none().then_some(first)
}

/// A resource with its arrows in one column, as puppet-lint wants them.
fn declaration(type_name: &str, title: &str, values: &[(&str, String)]) -> String {
    let width = values.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let lines = values.iter().map(|(name, value)| format!("  {name:width$} => {value},\n"));
    format!("{type_name} {{ {}:\n{}}}\n", quoted(title), lines.collect::<String>())
}

/// The value of a property as that of the attribute.
fn attribute_value(attribute: &Attribute, value: &Json) -> String {
    let sent = |literal: &Literal| match (literal, value) {
        (Literal::Boolean(sent), Json::Bool(value)) => sent == value,
        (Literal::Text(sent), Json::String(value)) => sent == value,
        _ => false,
    };
    match attribute.values.iter().find(|(_, literal)| sent(literal)) {
        Some((word, _)) if attribute.name == "ensure" => (*word).to_owned(),
        Some((word, _)) => quoted(word),
        None => manifest_value(value, &attribute.data_type, attribute),
    }
}

fn manifest_value(value: &Json, data_type: &DataType, attribute: &Attribute) -> String {
    match data_type.required() {
        // A secret that may be plain text as well is better not written as such.
        DataType::Variant(of) if matches!(of.first(), Some(DataType::Sensitive(_))) => {
            return manifest_value(value, of.first().unwrap_or(&DataType::Any), attribute);
        }
        DataType::Sensitive(of) => return format!("Sensitive({})", manifest_value(value, of, attribute)),
        DataType::Timestamp => return format!("Timestamp({})", plain_value(value)),
        _ => {}
    }
    match value {
        Json::Array(items) => {
            let of = if let DataType::Array(of, _) = data_type.required() { of } else { data_type };
            let items: Vec<_> = items.iter().map(|item| manifest_value(item, of, attribute)).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(members) => object_value(members, data_type, attribute),
        other => plain_value(other),
    }
}

fn object_value(members: &Map<String, Json>, data_type: &DataType, attribute: &Attribute) -> String {
    let members = members.iter().map(|(name, value)| {
        let key = attribute.keys.iter().find(|(_, member)| *member == name).map_or(name, |(key, _)| key);
        let of = match data_type.required() {
            DataType::Struct(members) => members.iter().find(|member| member.name == *key).map(|each| &each.data_type),
            DataType::Hash(of, _) => Some(&**of),
            _ => None,
        };
        format!("{} => {}", quoted(key), manifest_value(value, of.unwrap_or(&DataType::Any), attribute))
    });
    let members: Vec<_> = members.collect();
    if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join(", ")) }
}

fn plain_value(value: &Json) -> String {
    match value {
        Json::String(text) => quoted(text),
        Json::Null => "undef".to_owned(),
        other => other.to_string(),
    }
}

/// A value of a type. That of a pattern is only of its kind.
fn sample(data_type: &DataType) -> String {
    match data_type {
        DataType::Any | DataType::String(_) | DataType::Pattern(_) => quoted("example"),
        DataType::Undef => "undef".to_owned(),
        DataType::Boolean => "true".to_owned(),
        DataType::Literal(value) => value.to_string(),
        DataType::Timestamp => "Timestamp('2030-01-31T12:00:00Z')".to_owned(),
        DataType::Enum { values, .. } => values.first().map_or_else(|| quoted(""), |value| quoted(value)),
        DataType::Words(words) => (*words.first().unwrap_or(&"undef")).to_owned(),
        DataType::Integer(bounds) => bounds.least.or(bounds.most.map(|most| most.min(1))).unwrap_or(1).to_string(),
        DataType::Number(bounds) => format!("{:?}", bounds.least.or(bounds.most).unwrap_or(1.0)),
        DataType::Array(of, _) => format!("[{}]", sample(of)),
        DataType::Hash(of, _) => format!("{{ 'example' => {} }}", sample(of)),
        DataType::Optional(of) => sample(of),
        DataType::Variant(of) => of.first().map_or_else(|| "undef".to_owned(), sample),
        DataType::Sensitive(of) => format!("Sensitive({})", sample(of)),
        DataType::Struct(members) => {
            let required = members.iter().filter(|member| member.presence == Presence::Required);
            let required: Vec<_> =
                required.map(|member| format!("{} => {}", quoted(&member.name), sample(&member.data_type))).collect();
            if required.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", required.join(", ")) }
        }
    }
}
