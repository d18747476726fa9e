//! Each resource beside its states: its defaults, the accounts that it names, and the list of changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};
use stead_core::call::Execution;
use stead_core::claims::{Claim, Provision};
use stead_host::provider::Plain;
use stead_resources::BuiltIn;

use super::support::World;
use super::{carried_out, example};

#[test]
fn each_is_in_the_list_of_changes() {
    let changes = fs::read_to_string(stead_testkit::repository().join("CHANGELOG.md")).unwrap();
    let is_named = |name: &str| {
        changes
            .split(|each: char| !each.is_alphanumeric() && !"./".contains(each))
            .any(|word| word.trim_end_matches('.') == name)
    };
    let names = carried_out().into_iter().map(|built_in| built_in.manifest.type_name.as_str());
    let missing: Vec<&str> = names.filter(|name| name.starts_with("Stead/") && !is_named(name)).collect();
    assert_eq!(missing, [""; 0], "those that CHANGELOG.md does not name");
}

/// Those whose examples no set can be predicted of here, and the failure that they end with.
const UNPREDICTED: &[(&str, &str)] = &[
    ("Microsoft/OSInfo", "the resource does not support 'set'"),
    ("Microsoft/Process", "the resource does not support 'set'"),
];

/// The outcome of a set that is only predicted, without the time, or its failure.
fn predicted(built_in: &BuiltIn, stated: &Json) -> Result<String, String> {
    let world = World::system();
    let cx = world.context_for(built_in.manifest.type_name.as_str());
    match built_in.provider.set(&cx, &Plain::new(stated.clone()), Execution::WhatIf) {
        Ok(reply) => {
            let after = reply.after.map(|after| after.to_json());
            Ok(world.neutral(&format!("{after:?} {:?} {:?} {:?}", reply.changed, reply.effects, reply.what_if)))
        }
        Err(failure) => Err(world.neutral(&failure.message)),
    }
}

/// What cannot be predicted is compared with nothing.
#[test]
fn each_is_predicted_or_fails_as_it_is_known_to() {
    let known: BTreeMap<&str, &str> = UNPREDICTED.iter().copied().collect();
    let mut others = Vec::new();
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        let failure = predicted(built_in, &example(name)).err();
        if failure.as_deref() != known.get(name).copied() {
            others.push(format!("{name}: {failure:?}"));
        }
    }
    assert_eq!(others, [""; 0], "those that fail otherwise than UNPREDICTED says, or do not fail");
}

#[test]
fn each_default_is_what_counts_where_nothing_is_stated() {
    let mut others = Vec::new();
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        for (property, schema) in built_in.schema()["properties"].as_object().unwrap() {
            let Some(default) = schema.get("default") else { continue };
            let (mut without, mut with) = (example(name), example(name));
            without.as_object_mut().unwrap().remove(property);
            with[property] = default.clone();
            if predicted(built_in, &without) != predicted(built_in, &with) {
                others.push(format!("{name}: {property}: {default}"));
            }
        }
    }
    assert_eq!(others, [""; 0], "those where stating the default makes a difference");
}

/// Properties that name accounts, and the databases that have these.
const ACCOUNTS: [(&str, &str); 3] = [("owner", "passwd"), ("user", "passwd"), ("group", "group")];

#[test]
fn each_waits_for_the_accounts_that_it_names() {
    let mut missing = Vec::new();
    for built_in in carried_out() {
        let (name, schema) = (built_in.manifest.type_name.as_str(), &built_in.schema()["properties"]);
        for (property, database) in ACCOUNTS {
            if schema[property].is_null() || schema[property]["readOnly"] == true {
                continue;
            }
            let mut stated = example(name);
            stated[property] = json!("web");
            let (input, record) = (Plain::new(stated), format!("/etc/{database}/web"));
            let uses = built_in.provider.ties(&input).uses.contains(&Provision::Path(Path::new(&record).into()));
            let claims = built_in.provider.claims(&input).unwrap_or_default();
            let reads = claims.0.iter().any(|Claim::Path { path, .. }| **path == *Path::new(&record));
            if !uses && !reads {
                missing.push(format!("{name}: {property}"));
            }
        }
    }
    assert_eq!(missing, [""; 0], "those that do not wait for the account in a property");
}
