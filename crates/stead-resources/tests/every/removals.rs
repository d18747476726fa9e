//! Removals: each works.

use serde_json::{Map, Value as Json, json};
use stead_core::call::Execution;
use stead_host::provider::Plain;

use super::support::World;
use super::{carried_out, example};

/// The properties that say which thing is meant where the schema does not require them.
fn names_besides_the_required(type_name: &str) -> &'static [&'static str] {
    match type_name {
        "Stead/Archive" => &["source", "creates"],
        "Stead/Ini" => &["section", "key"],
        "Stead/Line" => &["line"],
        _ => &[],
    }
}

/// Each thing that can be stated as absent is gone after a set that states it, and a set of its own did that.
#[test]
fn each_can_be_removed() {
    let mut all = Vec::new();
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        let schema = built_in.schema();
        // The programs of packages need a whole system to remove anything: tests/packages.rs has one.
        let is_elsewhere = !built_in.manifest.capabilities.set || name == "Stead/Package";
        if is_elsewhere || schema.pointer("/properties/_exist").is_none() {
            continue;
        }
        let (world, stated) = (World::system(), example(name));
        let (cx, provider) = (world.context_for(name), &built_in.provider);
        let set = |desired: &Json| provider.set(&cx, &Plain::new(desired.clone()), Execution::Actual);
        let exists = |desired: &Json| {
            let got = provider.get(&cx, &Plain::new(desired.clone())).map(|state| state.to_json());
            got.map(|state| state.get("_exist") != Some(&json!(false))).map_err(|failure| failure.message)
        };
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
        let names = required.chain(names_besides_the_required(name).iter().copied());
        let mut absent: Map<String, Json> =
            names.filter_map(|key| Some((key.to_owned(), stated.get(key)?.clone()))).collect();
        absent.insert("_exist".to_owned(), json!(false));
        let absent = Json::Object(absent);
        let walked = set(&stated).map_err(|failure| failure.message).and_then(|_| {
            let was = exists(&absent)?;
            let changed = set(&absent).map_err(|failure| failure.message)?.changed.unwrap_or_default();
            Ok((was, changed, exists(&absent)?))
        });
        match walked {
            Ok((true, changed, false)) if changed.iter().any(|it| it == "_exist") => {}
            other => all.push(format!("{name}: {other:?}")),
        }
    }
    assert!(all.is_empty(), "{all:#?}");
}
