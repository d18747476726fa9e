//! Adapters: one that is given single instances, one that is given all at once.

use serde_json::{Value as Json, json};

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
