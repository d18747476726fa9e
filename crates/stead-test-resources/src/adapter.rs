//! Adapters: one that is given single instances, two that are given documents.

use serde_json::{Value as Json, json};

use crate::states::Size;
use crate::{Args, Lines};

/// The adapted types: the property that each has, and the number that its values end with.
const ADAPTED: &[(&str, &str, &str)] = &[
    ("Adapted/One", "one", "1"),
    ("Adapted/Two", "two", "2"),
    ("Adapted/Three", "one", "3"),
    ("Adapted/Four", "one", "4"),
];

/// Carries out one instance of a type that `--resource-type` names, from the file of `--resource-path`.
pub(crate) fn single(args: &Args) -> Lines {
    let wanted = args.option("--resource-type").unwrap_or_default();
    let known = ADAPTED.iter().find(|(name, ..)| name.eq_ignore_ascii_case(wanted));
    match (args.operation(), known) {
        ("list", _) => vec![listed_one()],
        ("validate", _) => vec![json!({"valid": true})],
        ("export", Some((_, property, number))) => {
            ["first", "second"].map(|name| json!({*property: format!("{name}{number}"), "_name": name})).into()
        }
        (_, Some((_, property, number))) => {
            let path = args.option("--resource-path").unwrap_or_default().trim_matches('"');
            vec![json!({*property: format!("value{number}"), "path": path})]
        }
        (_, None) => Lines::new(),
    }
}

fn listed_one() -> Json {
    json!({
        "type": "Adapted/One", "kind": "resource", "version": "1.0.0",
        "capabilities": ["get", "set", "test", "export"],
        "path": "path/to/adapted/one", "directory": "path/to/adapted", "implementedAs": "TestAdapted",
        "author": null, "properties": ["one"], "requireAdapter": "Test/Adapter",
    })
}

/// Lists two types, and answers to all their instances at once with what it is given.
pub(crate) fn group(args: &Args) -> Lines {
    if args.operation() == "list" {
        return vec![listed_in_group("1", "1.0.0"), listed_in_group("2", "1.0.1")];
    }
    vec![json!({"result": args.input.get("resources")})]
}

/// Carries out what it is given as a document, as the adapters of PowerShell do: `Adapted/Size` is a [`Size`]. The verdict
/// of a test stands beside the instances.
pub(crate) fn document(args: &Args) -> Lines {
    let wanted = args.input.get("resources").and_then(|all| all.pointer("/0/properties/size")).and_then(Json::as_u64);
    let kept = Size::of_document();
    if args.operation() == "set" {
        kept.keep(wanted);
    }
    let size = kept.read();
    let instance = |name: &str| json!({"name": name, "type": "Adapted/Size", "properties": {"size": size}});
    match args.operation() {
        "list" => vec![listed_size()],
        "validate" => vec![json!({"valid": true})],
        "test" => {
            let same = wanted.is_none_or(|wanted| wanted == size);
            vec![json!({"result": [instance("Adapted/Size")], "_inDesiredState": same})]
        }
        "export" => vec![json!({"result": [{"size": size}, {"size": size, "_name": "second"}]})],
        _ => vec![json!({"result": [instance("Adapted/Size")]})],
    }
}

fn listed_size() -> Json {
    json!({
        "type": "Adapted/Size", "kind": "resource", "version": "1.2.0", "capabilities": ["get", "set", "test", "export"],
        "path": "/adapted/size.psd1", "directory": "/adapted", "implementedAs": "ClassBased", "author": "",
        "properties": ["size"], "requireAdapter": "Test/DocumentAdapter", "description": "",
    })
}

fn listed_in_group(number: &str, version: &str) -> Json {
    let (name, description) = (format!("Test/TestResource{number}"), "This is a test resource.");
    json!({
        "type": name, "kind": "resource", "version": version, "capabilities": ["get", "set"],
        "description": description, "path": format!("test_resource{number}"), "directory": "test_directory",
        "implementedAs": "TestResource", "author": "Microsoft", "properties": ["Property1", "Property2"],
        "requireAdapter": "Test/TestGroup",
        "manifest": {
            "$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json",
            "type": name, "kind": "resource", "version": version, "description": description,
            "get": {"executable": "", "args": null},
        },
    })
}
