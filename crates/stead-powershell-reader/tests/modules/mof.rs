//! Schemas of script resources.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use stead_core::diag::Severity;
use stead_powershell_reader::mof::{self, PropertyDeclaration, Schema, Shape, Value};
use stead_powershell_reader::types::Property;
use stead_powershell_reader::types::{Class, Type};

#[test]
fn every_schema_is_read_as_expected() {
    let Some(rows) = super::recorded("every_schema_is_read_as_expected", "script-expected.jsonl") else { return };
    let folder = super::discovery();
    let (mut wrong, mut schemas, mut refused) = (String::new(), 0, 0);
    for row in rows {
        let module = folder.join("modules").join(row["module"].as_str().unwrap());
        for expected in row["script"].as_array().into_iter().flatten().filter(|entry| entry["kind"] == "script") {
            schemas += 1;
            let found = found(&read(&module.join(expected["schema"].as_str().unwrap())), expected);
            if found != *expected {
                writeln!(wrong, "{}\n  expected {expected}\n  found    {found}", row["module"]).unwrap();
            }
        }
        for expected in row["errors"].as_array().into_iter().flatten().filter(|error| error["kind"] != "missing") {
            let Some(file) =
                expected["file"].as_str().filter(|file| Path::new(file).extension().is_some_and(|end| end == "mof"))
            else {
                continue;
            };
            refused += 1;
            let schema = read(&module.join(file));
            let errors = schema.findings.iter().filter(|finding| finding.severity == Severity::Error);
            let lines: Vec<_> = errors.map(|finding| finding.place.line).collect();
            if !schema.resources.is_empty() || lines.first().map(|line| json!(line)) != Some(expected["line"].clone()) {
                writeln!(wrong, "{}: expected {expected}\n  found {:?}", row["module"], schema.findings).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    eprintln!("{schemas} schemas and {refused} refused ones, none deviates");
}

fn read(path: &Path) -> Schema {
    mof::read(&fs::read(path).unwrap(), &Arc::new(path.to_owned()))
}

/// Returns the findings, in the form of the expectation, whose other members are kept.
fn found(schema: &Schema, expected: &Json) -> Json {
    let mut found = expected.clone();
    let Some(resource) = schema.resources.first() else {
        return json!({ "findings": format!("{:?}", schema.findings) });
    };
    let class_name = resource.class_name.as_ref().unwrap_or(&resource.name);
    let class = schema.classes.iter().find(|class| class.name == *class_name).unwrap();
    let names = |keep: fn(&Property) -> bool| -> Vec<_> {
        resource.properties.iter().filter(|property| keep(property)).map(|property| property.name.clone()).collect()
    };
    found["name"] = resource.name.clone().into();
    found["className"] = class_name.clone().into();
    found["classVersion"] = resource.version.clone().into();
    found["baseClass"] = class.base.clone().into();
    found["key"] = names(|property| property.key).into();
    if let Some(description) = &resource.description {
        found["description"] = description.clone().into();
    }
    let all = |properties: &[Property], declared: &[PropertyDeclaration]| -> Vec<Json> {
        properties.iter().zip(declared).map(|(property, declared)| entry(property, declared)).collect()
    };
    found["properties"] = all(&resource.properties, &class.properties).into();
    if expected.get("embeddedClasses").is_some() {
        let embedded = schema.classes.iter().filter(|other| other.name != class.name).map(|other| {
            let class = embedded(&resource.properties, &other.name).unwrap();
            json!({ "className": class.name, "properties": all(&class.properties, &other.properties) })
        });
        found["embeddedClasses"] = embedded.collect();
    }
    found
}

fn embedded(properties: &[Property], name: &str) -> Option<Arc<Class>> {
    properties.iter().find_map(|property| {
        let ty = if let Type::Array(element) = &property.ty { element } else { &property.ty };
        let Type::CimInstance(class) = ty else { return None };
        if class.name == name { Some(class.clone()) } else { embedded(&class.properties, name) }
    })
}

fn entry(property: &Property, declared: &PropertyDeclaration) -> Json {
    let qualifiers = &declared.qualifiers;
    let mut entry = json!({
        "name": property.name,
        "type": declared.written,
        "mofType": declared.written.to_lowercase(),
        "array": declared.shape != Shape::Single,
        "psType": shown(&property.ty),
        "key": property.key,
        "required": property.mandatory,
        "write": qualifiers.is("Write"),
        "read": qualifiers.is("Read"),
        "mandatory": property.key || property.mandatory,
    });
    let mut optional = Map::new();
    optional.insert("description".to_owned(), property.description.clone().into());
    optional
        .insert("arraySize".to_owned(), if let Shape::Fixed(size) = declared.shape { json!(size) } else { Json::Null });
    optional.insert("embedded".to_owned(), qualifiers.text("EmbeddedInstance").into());
    optional.insert("values".to_owned(), qualifiers.texts("Values").into());
    optional.insert("valueMap".to_owned(), qualifiers.texts("ValueMap").into());
    optional.retain(|_, value| !value.is_null());
    optional.extend(declared.default.as_ref().map(|(value, _)| ("default".to_owned(), constant(value))));
    entry.as_object_mut().unwrap().extend(optional);
    entry
}

fn constant(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Boolean(value) => json!(value),
        Value::Integer(value) => json!(i64::try_from(*value).unwrap()),
        Value::Real(value) => json!(value),
        Value::Text(value) => json!(value),
        Value::Character(value) => json!(value),
        Value::Array(values) => values.iter().map(constant).collect(),
    }
}

/// The type as `Get-DscResource` shows it.
fn shown(ty: &Type) -> String {
    match ty {
        Type::String => "string".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::Char => "char".to_owned(),
        Type::Single => "Single".to_owned(),
        Type::Double => "Double".to_owned(),
        Type::DateTime => "DateTime".to_owned(),
        Type::Integer { bits: 8, signed: false } => "Byte".to_owned(),
        Type::Integer { bits: 8, signed: true } => "SByte".to_owned(),
        Type::Integer { bits, signed } => format!("{}Int{bits}", if *signed { "" } else { "U" }),
        Type::Hashtable => "HashTable".to_owned(),
        Type::Credential => "PSCredential".to_owned(),
        Type::CimInstance(class) => class.name.clone(),
        Type::Array(element) => format!("{}[]", shown(element)),
        other => format!("{other:?}"),
    }
}
