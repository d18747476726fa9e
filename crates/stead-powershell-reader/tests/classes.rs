//! Classes, enumerations and configurations of recorded modules, as PowerShell's parser and loader see them.
//!
//! The recordings lie outside of the repository; `corpus/powershell/script/deviations.json` lists where stead differs.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "support/recordings.rs"]
mod recordings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use stead_powershell_reader::class::{File, Inherited, Modules, VisibleTypes, declared};
use stead_powershell_reader::resource::Resource;
use stead_powershell_reader::script::{Attribute, Constant, Function, MemberKind, TypeDefinition};
use stead_powershell_reader::types::Rule;
use stead_powershell_reader::types::Type;

/// Modules of the recording, found as `using module` finds them.
struct Recorded;

impl Modules for Recorded {
    fn using(&self, from: &Path, name: &str) -> Option<Arc<File>> {
        let path = if name.starts_with("@{") {
            let name = name.split('\'').nth(1)?;
            modules().join(name).join(format!("{name}.psm1"))
        } else {
            from.parent()?.join(name.replace('\\', "/"))
        };
        read(&path).map(Arc::new)
    }
}

fn modules() -> PathBuf {
    recordings::folder().join("modules")
}

fn read(path: &Path) -> Option<File> {
    let bytes = std::fs::read(path).ok().or_else(|| generated(path))?;
    Some(File::read(Arc::new(path.to_owned()), &bytes))
}

/// A file that is too long to be kept.
fn generated(path: &Path) -> Option<Vec<u8>> {
    let all: Value = serde_json::from_slice(&std::fs::read(recordings::folder().join("generated.json")).ok()?).ok()?;
    let file = all.as_array()?.iter().find(|file| path.ends_with(file["file"].as_str().unwrap()))?;
    let mut text = String::new();
    for part in file["parts"].as_array()? {
        for number in 1..=part["count"].as_u64()? {
            text += &part["text"].as_str()?.replace("{n}", &number.to_string());
        }
    }
    Some(text.into_bytes())
}

#[test]
fn modules_declare_what_powershell_finds() {
    let Some(rows) = recordings::lines("modules_declare_what_powershell_finds", "discovery.jsonl") else { return };
    let mut found = BTreeMap::new();
    for row in &rows {
        let name = row["module"].as_str().unwrap();
        let mut differences = BTreeSet::new();
        for file in row["files"].as_array().unwrap() {
            let relative = file["file"].as_str().unwrap();
            match read(&modules().join(name).join(relative)) {
                Some(file) => compare(row, relative, &file, &mut differences),
                None => drop(differences.insert(format!("{relative} is not there"))),
            }
        }
        if !differences.is_empty() {
            found.insert(name.to_owned(), differences);
        }
    }
    recordings::check("modules", rows.len(), found);
}

fn compare(row: &Value, relative: &str, file: &File, differences: &mut BTreeSet<String>) {
    let types = VisibleTypes::new(file, &Recorded);
    let declared = declared(file, &Recorded);
    let of_file = |key: &str| -> Vec<Value> {
        row[key].as_array().unwrap().iter().filter(|entry| entry["file"] == relative).cloned().collect()
    };
    let mut differ = |what: &str, expected: Value, found: Value| {
        if expected != found {
            differences.insert(format!("{relative}: {what}\n  expected {expected}\n  found    {found}"));
        }
    };
    let is_resource = |ty: &&TypeDefinition| {
        let names = ["dscresource", "dscresourceattribute", "system.management.automation.dscresource"];
        let is = |name: &str| names.contains(&name.trim_end_matches("attribute")) || names.contains(&name);
        ty.attributes.iter().any(|attribute| is(&attribute.name.to_lowercase()))
    };
    let all = &file.script.types;
    let resources: Vec<_> = all.iter().filter(is_resource).collect();
    let recorded = of_file("resources");
    differ("names", names(&recorded), resources.iter().map(|ty| json!(ty.name)).collect());
    for (expected, ty) in recorded.iter().zip(&resources) {
        let mut found = class(&types, file, ty, true);
        let members = (expected["properties"].as_array().unwrap(), found["properties"].as_array().unwrap());
        for (expected, property) in members.0.iter().zip(members.1) {
            resolved(&types, file, ty, expected, property, !declared.findings.is_empty(), &mut differ);
        }
        found["key"] = keys(&found);
        differ("resource", picked(expected, &found), found);
    }
    for (expected, resource) in recorded.iter().zip(&declared.resources) {
        let (expected, found) = keys_of(expected, resource);
        differ("keys of the resource", expected, found);
    }
    let classes: Vec<_> = all.iter().filter(|ty| !ty.enumeration && !is_resource(ty)).collect();
    let recorded = of_file("classes");
    differ("classes", names(&recorded), classes.iter().map(|ty| json!(ty.name)).collect());
    for (expected, ty) in recorded.iter().zip(classes) {
        let found = class(&types, file, ty, false);
        differ("class", picked(expected, &found), found);
    }
    let enums: Value = all.iter().filter(|ty| ty.enumeration).map(|ty| enum_of(&types, file, ty)).collect();
    let recorded: Value = of_file("enums").into_iter().map(without_unknown).collect();
    differ("enums", recorded.clone(), valued(&recorded, enums));
    let configurations: Value = file.script.configurations.iter().map(|found| configuration(file, found)).collect();
    differ(
        "configurations",
        of_file("configurations").iter().map(|c| picked(c, &configurations[0])).collect(),
        configurations,
    );
    let errors = of_file("parseErrors");
    let platform = errors.iter().any(|error| error["message"].as_str().unwrap().contains("schema store"));
    let loaded = row["load"]["ok"] != false;
    let refused = (!errors.is_empty() && !platform) || (!loaded && !declared.findings.is_empty());
    let messages: Vec<_> =
        declared.findings.iter().map(|found| format!("{}: {}", found.place.line, found.message)).collect();
    differ("refused", json!(refused), json!(!declared.findings.is_empty()));
    if refused == declared.findings.is_empty() {
        differ("messages", json!(errors), json!(messages));
    }
}

/// The keys of a resource as recorded and as found; static ones are none to stead.
fn keys_of(expected: &Value, resource: &Resource) -> (Value, Value) {
    let found = resource.properties.iter().filter(|property| property.key);
    let mut found: BTreeSet<_> = found.map(|property| property.name.to_lowercase()).collect();
    let of_static = expected["properties"].as_array().unwrap().iter().filter(|property| property["static"] == true);
    found.extend(of_static.filter(|p| p["key"] == true).map(|p| p["name"].as_str().unwrap().to_lowercase()));
    let recorded = expected["key"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_lowercase());
    (json!(recorded.collect::<BTreeSet<_>>()), json!(found))
}

/// Returns the members of an expected object that are also in the found one.
fn picked(expected: &Value, found: &Value) -> Value {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            found.keys().filter_map(|key| Some((key.clone(), picked(expected.get(key)?, &found[key])))).collect()
        }
        (Value::Array(expected), Value::Array(found)) => expected
            .iter()
            .enumerate()
            .map(|(at, value)| found.get(at).map_or(value.clone(), |found| picked(value, found)))
            .collect(),
        _ => expected.clone(),
    }
}

fn names(recorded: &[Value]) -> Value {
    recorded.iter().map(|entry| entry["name"].clone()).collect()
}

fn keys(found: &Value) -> Value {
    let mut seen = BTreeSet::new();
    let keys = found["properties"].as_array().unwrap().iter().filter(|property| property["key"] == true);
    keys.filter(|property| seen.insert(property["name"].to_string())).map(|property| property["name"].clone()).collect()
}

fn class(types: &VisibleTypes<'_>, file: &File, ty: &TypeDefinition, inherited: bool) -> Value {
    let members = types.members(file, ty);
    let members = members.iter().filter(|member| inherited || std::ptr::eq(member.class, ty));
    let (mut properties, mut methods) = (Vec::new(), Vec::new());
    for Inherited { file, class, member } in members {
        let line = file.text.place(member.at).line;
        match &member.kind {
            MemberKind::Property(default) => properties.push(json!({
                "name": member.name, "type": member.ty.as_ref().map(|ty| &ty.text), "declaredIn": class.name, "line": line,
                "hidden": member.hidden, "static": member.is_static, "default": default,
                "dscProperty": of(&member.attributes, "dscproperty").count() > 0,
                "key": flag(&member.attributes, "key"), "mandatory": flag(&member.attributes, "mandatory"),
                "notConfigurable": flag(&member.attributes, "notconfigurable"),
            })),
            MemberKind::Method(parameters) => methods.push(json!({
                "name": member.name, "returns": member.ty.as_ref().map(|ty| &ty.text), "declaredIn": class.name, "line": line,
                "hidden": member.hidden, "static": member.is_static,
                "constructor": member.name.eq_ignore_ascii_case(&class.name),
                "parameters": parameters.iter().map(|parameter| json!({
                    "name": parameter.name, "type": parameter.ty.as_ref().map(|ty| &ty.text), "default": parameter.default,
                })).collect::<Value>(),
            })),
            MemberKind::Value(_) => {}
        }
    }
    json!({
        "name": ty.name, "line": file.text.place(ty.at).line, "place": ty.scope,
        "baseClasses": ty.bases.iter().map(|base| &base.text).collect::<Vec<_>>(),
        "properties": properties, "methods": methods,
        "attributes": ty.attributes.iter().map(|attribute| json!({
            "name": attribute.name, "line": file.text.place(attribute.at).line,
        })).collect::<Value>(),
    })
}

fn of<'a>(attributes: &'a [Attribute], name: &'a str) -> impl Iterator<Item = &'a Attribute> {
    attributes.iter().filter(move |attribute| {
        let written = attribute.name.to_lowercase();
        written.trim_start_matches("system.management.automation.").trim_end_matches("attribute") == name
    })
}

fn flag(attributes: &[Attribute], name: &str) -> Value {
    let named = of(attributes, "dscproperty").flat_map(|attribute| &attribute.named);
    let last = named.filter(|(found, _)| found.eq_ignore_ascii_case(name)).last();
    last.map_or(json!(false), |(_, argument)| match &argument.value {
        Some(value) => json!(value.is_true()),
        None => json!({ "$expression": argument.text }),
    })
}

/// A collection of a type is read as an array of it: it is given the same values.
fn as_read(name: &str) -> String {
    if let Some(item) = name.strip_suffix("[]") {
        return as_read(item) + "[]";
    }
    let collections = ["List`1[", "HashSet`1[", "Collection`1["];
    let item = collections.iter().find_map(|collection| name.strip_prefix(collection)?.strip_suffix(']'));
    item.map_or_else(|| name.to_owned(), |item| as_read(item) + "[]")
}

/// Compares the type of a property with that of the loaded class, and its values.
fn resolved(
    types: &VisibleTypes<'_>,
    file: &File,
    ty: &TypeDefinition,
    expected: &Value,
    found: &Value,
    refused: bool,
    differ: &mut impl FnMut(&str, Value, Value),
) {
    let members = types.members(file, ty);
    let member = members.iter().map(|inherited| inherited.member).find(|member| {
        matches!(member.kind, MemberKind::Property(_))
            && found["name"] == member.name
            && found["line"] == file.text.place(member.at).line
    });
    let Some(member) = member else { return };
    let ty = types.type_of(member);
    if let Some(name) = expected["resolvedType"].as_str() {
        differ("type", json!([found["name"], as_read(&plain(name))]), json!([found["name"], plain(&dotnet(&ty))]));
    }
    let values = expected["values"]["values"].as_array();
    let plain = values.is_some_and(|values| values.iter().all(Value::is_string) && !values.is_empty());
    if expected["values"]["from"] == "ValidateSet" && plain && !refused {
        let sets = of(&member.attributes, "validateset").flat_map(|attribute| &attribute.positional);
        let found = sets.filter_map(|argument| argument.value.as_ref().map(Constant::to_text)).collect::<Vec<_>>();
        differ("values", expected["values"]["values"].clone(), json!(found));
    } else if expected["values"]["from"] == "enum" && !expected["resolvedType"].is_null() {
        let mut expected: Vec<_> = values.unwrap().iter().map(|value| value.as_str().unwrap()).collect();
        let mut found: Vec<_> = members_of(&ty);
        expected.sort_unstable();
        found.sort_unstable();
        differ("values", json!(expected), json!(found));
    }
}

fn members_of(ty: &Type) -> Vec<&str> {
    match ty {
        Type::Array(element) | Type::Nullable(element) => members_of(element),
        Type::Enumeration(found) => found.members.iter().map(|(name, _)| name.as_str()).collect(),
        _ => Vec::new(),
    }
}

/// Names of types without their namespaces.
fn plain(name: &str) -> String {
    // What any array and any dictionary may be assigned to is that to stead.
    let name = name.replace("System.Array", "System.Object[]").replace("IDictionary", "Hashtable");
    name.split_inclusive(['[', ']', ',']).map(|part| part.rsplit('.').next().unwrap()).collect()
}

fn dotnet(ty: &Type) -> String {
    match ty {
        Type::Integer { bits: 8, signed } => if *signed { "SByte" } else { "Byte" }.to_owned(),
        Type::Integer { bits, signed } => format!("{}Int{bits}", if *signed { "" } else { "U" }),
        Type::Array(element) => format!("{}[]", dotnet(element)),
        Type::Nullable(element) => format!("Nullable`1[{}]", dotnet(element)),
        Type::Enumeration(found) => found.name.clone(),
        Type::Class(found) => found.name.clone(),
        Type::Other(name) => name.clone(),
        Type::Switch => "SwitchParameter".to_owned(),
        Type::Credential => "PSCredential".to_owned(),
        Type::PsObject => "PSObject".to_owned(),
        other => format!("{other:?}"),
    }
}

fn enum_of(types: &VisibleTypes<'_>, file: &File, ty: &TypeDefinition) -> Value {
    let members = ty.members.iter().zip(types.enumeration(ty).members).map(|(member, (name, value))| {
        let text = match &member.kind {
            MemberKind::Value(Some(argument)) => Some(&argument.text),
            _ => None,
        };
        json!({ "name": name, "text": text, "value": value.to_string() })
    });
    json!({
        "name": ty.name, "line": file.text.place(ty.at).line, "flags": types.enumeration(ty).flags,
        "baseClasses": ty.bases.iter().map(|base| &base.text).collect::<Vec<_>>(),
        "members": members.collect::<Value>(),
    })
}

/// Values that were not recorded, because the file does not load, are not compared.
fn valued(recorded: &Value, mut found: Value) -> Value {
    let types = recorded.as_array().unwrap().iter().zip(found.as_array_mut().unwrap());
    for (recorded, found) in types {
        let members = found["members"].as_array_mut().unwrap().iter_mut();
        for (found, recorded) in members.zip(recorded["members"].as_array().unwrap()) {
            if recorded["value"].is_null() {
                found["value"] = Value::Null;
            }
        }
    }
    found
}

fn without_unknown(mut recorded: Value) -> Value {
    recorded.as_object_mut().unwrap().remove("file");
    recorded
}

fn configuration(file: &File, found: &Function) -> Value {
    let parameters = found.parameters.iter().map(|parameter| {
        let mandatory = of(&parameter.attributes, "parameter").flat_map(|attribute| &attribute.named);
        let mandatory = mandatory.filter(|(name, _)| name.eq_ignore_ascii_case("mandatory"));
        json!({
            "name": parameter.name, "type": parameter.ty.as_ref().map(|ty| &ty.text), "default": parameter.default,
            "mandatory": mandatory.filter_map(|(_, argument)| argument.value.as_ref()).any(Constant::is_true),
        })
    });
    json!({
        "name": found.name, "line": file.text.place(found.at).line, "place": found.scope,
        "parameters": parameters.collect::<Value>(),
    })
}

#[test]
fn rules_of_values_are_read() {
    let text = "[DscResource()] class R { [DscProperty(Key)] [ValidateSet('a', \"b\")] [string] $K\n\
                [DscProperty()] [ValidateRange(-1, [int]::MaxValue)] [int] $N\n\
                [DscProperty()] [ValidateLength(1, 2KB)] [ValidatePattern('^a')] [ValidateNotNullOrEmpty()] [string] $T\n\
                [R] Get() { return $this } [bool] Test() { return $true } [void] Set() { } }";
    let file = File::read(Arc::new(PathBuf::from("R.psm1")), text.as_bytes());
    let found = declared(&file, &Recorded);
    assert_eq!(found.findings, []);
    let rules: Vec<_> = found.resources[0].properties.iter().map(|property| property.rules.clone()).collect();
    assert_eq!(
        rules,
        [
            vec![Rule::OneOf(vec!["a".into(), "b".into()])],
            vec![Rule::Range("-1".into(), "2147483647".into())],
            vec![Rule::Length(1, 2048), Rule::Pattern("^a".into()), Rule::NotEmpty],
        ]
    );
}
