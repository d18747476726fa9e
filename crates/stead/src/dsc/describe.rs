//! `resource describe`: what can be stated of a resource, in the form of `Get-DscResource -Syntax`.

use std::fmt::Write;

use serde_json::{Map, Value as Json};

/// What `Get-DscResource` lists for every resource of PowerShell, with their types.
const OF_POWERSHELL: [(&str, &str); 2] = [("DependsOn", "[string[]]"), ("PsDscRunAsCredential", "[PSCredential]")];

/// One property a line, with its type and its values; those that need not be stated in brackets. What can only be read is
/// left out. Those of a resource of PowerShell are in the order of their names, as there.
pub(super) fn syntax(name: &str, schema: &Json, is_powershell: bool) -> String {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Json::as_object).unwrap_or(&empty);
    let required: Vec<&str> = strings(schema.get("required"));
    let can_be_stated = |(_, property): &(&String, &Json)| property.get("readOnly") != Some(&Json::Bool(true));
    let stated = properties.iter().filter(can_be_stated);
    let mut lines: Vec<(bool, &str, String)> = stated
        .map(|(name, property)| (!required.contains(&name.as_str()), name.as_str(), type_of(schema, property)))
        .collect();
    if is_powershell {
        lines.extend(OF_POWERSHELL.map(|(name, ty)| (true, name, ty.to_owned())));
        lines.sort_by_cached_key(|(is_optional, name, _)| (*is_optional, name.to_lowercase()));
    } else {
        lines.sort_by_key(|(is_optional, ..)| *is_optional);
    }
    let mut text = format!("{name} [String] #ResourceName\n{{\n");
    for (is_optional, name, ty) in lines {
        let (open, close) = if is_optional { ("[", "]") } else { ("", "") };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "    {open}{name} = {ty}{close}");
    }
    text + "}\n"
}

fn strings(list: Option<&Json>) -> Vec<&str> {
    list.and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect()
}

/// The type in brackets, and in braces the values that there are.
fn type_of(schema: &Json, property: &Json) -> String {
    let property = resolved(schema, property);
    let elements = property.get("items").map(|items| resolved(schema, items));
    let values = strings(elements.unwrap_or(property).get("enum"));
    let values = if values.is_empty() { String::new() } else { format!("{{ {} }}", values.join(" | ")) };
    match elements {
        Some(elements) => format!("[{}[]]{values}", name_of(elements)),
        None => format!("[{}]{values}", name_of(property)),
    }
}

/// What a reference within the schema leads to.
fn resolved<'a>(schema: &'a Json, property: &'a Json) -> &'a Json {
    let target = property.get("$ref").and_then(Json::as_str).and_then(|target| target.strip_prefix('#'));
    target.and_then(|pointer| schema.pointer(pointer)).unwrap_or(property)
}

fn name_of(property: &Json) -> &str {
    let is_credential = || {
        let members = property.get("properties").and_then(Json::as_object);
        members.is_some_and(|members| {
            members.len() == 2 && members.contains_key("username") && members.contains_key("password")
        })
    };
    let kind = property.get("type");
    match kind.and_then(Json::as_str).or_else(|| strings(kind).into_iter().find(|kind| *kind != "null")) {
        Some("string") => match property.get("format").and_then(Json::as_str) {
            Some("date-time") => "DateTime",
            _ => "string",
        },
        Some("boolean") => "bool",
        Some("integer") => integer(property),
        Some("number") => "double",
        Some("object") if is_credential() => "PSCredential",
        Some("object") => property.get("title").and_then(Json::as_str).unwrap_or("hashtable"),
        _ if property.get("enum").is_some() => "string",
        _ => "object",
    }
}

/// The integers of .NET, with the least and the greatest.
const INTEGERS: [(&str, i128, i128); 8] = [
    ("SByte", i8::MIN as i128, i8::MAX as i128),
    ("Byte", 0, u8::MAX as i128),
    ("Int16", i16::MIN as i128, i16::MAX as i128),
    ("UInt16", 0, u16::MAX as i128),
    ("Int32", i32::MIN as i128, i32::MAX as i128),
    ("UInt32", 0, u32::MAX as i128),
    ("Int64", i64::MIN as i128, i64::MAX as i128),
    ("UInt64", 0, u64::MAX as i128),
];

/// The narrowest type of .NET with these bounds.
fn integer(property: &Json) -> &'static str {
    let bound =
        |name| property.get(name).and_then(|bound| bound.as_i64().map(i128::from).or(bound.as_u64().map(i128::from)));
    let exact =
        INTEGERS.iter().find(|(_, low, high)| bound("minimum") == Some(*low) && bound("maximum") == Some(*high));
    exact.map_or("int", |(name, _, _)| name)
}
