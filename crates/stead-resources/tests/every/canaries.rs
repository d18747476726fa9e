//! Nothing that comes of a resource shows a secret that it was given, in whichever property, or that it never shows.
//!
//! The properties are those of the schemas: a new one is tested as it is added.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use stead_core::call::{Call, Execution, Operation, Outcome, Response};
use stead_core::id::{NodeId, ResourceId};
use stead_core::instance_path::InstancePath;
use stead_core::value::{Object, Seal, Value};
use stead_host::operate::carry_out;
use stead_host::provider::Context;
use stead_host::vault::MemoryVault;
use stead_resources::BuiltIn;

use super::support::World;
use super::{carried_out, example};

/// What is looked for.
const CANARY: &str = "Canary";

/// Secrets in forms that properties accept: a name, a path, the content of a unit file. None has a directory in it: a part of a
/// secret that a resource takes apart is not recognized.
const SECRETS: [&str; 3] = ["CanaryInTheMine", "/CanaryInTheMine", "[Service]\nExecStart=/Canary\n"];

/// What is in the description of a property whose plain value is a secret, or may hold one.
const SECRET: &str = "never shown";

const OPERATIONS: [(Operation, Execution); 5] = [
    (Operation::Get, Execution::Actual),
    (Operation::Test, Execution::Actual),
    (Operation::Set, Execution::WhatIf),
    (Operation::Set, Execution::Actual),
    (Operation::Export, Execution::Actual),
];

/// A value of such a property with canaries in all that is secret, and another one. A new one must be listed here.
fn secret_values(type_name: &str, property: &str) -> [Json; 2] {
    match (type_name, property) {
        ("Stead/User", "passwordHash") => {
            let hash = |salt| json!(format!("$6$CanarySalt{salt}$CanaryHash"));
            [hash(1), hash(2)]
        }
        ("Stead/AptRepository", "uris") => {
            let uris = |number| json!([format!("https://CanaryUser{number}:CanaryWord@example.com/debian")]);
            [uris(1), uris(2)]
        }
        ("Stead/Download", "url") => {
            let url = |number| json!(format!("https://CanaryUser{number}:CanaryWord@localhost:1/f?CanaryQuery"));
            [url(1), url(2)]
        }
        ("Stead/Download", "headers") => {
            let headers = |number| json!({"Authorization": format!("Bearer CanaryWord{number}")});
            [headers(1), headers(2)]
        }
        ("Stead/Git", "repository") => {
            let address = |number| json!(format!("https://CanaryUser{number}:CanaryWord@localhost:1/r.git"));
            [address(1), address(2)]
        }
        other => panic!("{other:?} has no secret values"),
    }
}

/// The secret in each form that the schema of a property may allow.
fn stated(secret: &Value) -> [Value; 3] {
    let member = Object::from_iter([("member".to_owned(), secret.clone())]);
    [secret.clone(), Value::Array(vec![secret.clone()]), Value::Object(member)]
}

#[test]
fn no_property_of_a_resource_shows_a_secret() {
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        for property in built_in.schema()["properties"].as_object().unwrap().keys() {
            for secret in SECRETS {
                let vault = MemoryVault::default();
                for value in stated(&Value::secret(vault.seal(Value::from(secret)))) {
                    let Value::Object(mut desired) = Value::from(example(name)) else { panic!("an object") };
                    desired.insert(property.clone(), value);
                    let world = World::system();
                    for operation in OPERATIONS {
                        let shown = shown(&built_in, operation, &desired, &vault, &world);
                        assert!(!shown.contains(CANARY), "{name}: {property}: {operation:?} shows {shown}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_never_shown_is_not_shown_where_it_is_no_secret_of_the_document() {
    let mut kept = Vec::new();
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        for (property, schema) in built_in.schema()["properties"].as_object().unwrap() {
            if !schema["description"].as_str().is_some_and(|text| text.contains(SECRET)) {
                continue;
            }
            let (world, vault) = (World::system(), MemoryVault::default());
            for value in secret_values(name, property) {
                let Value::Object(mut desired) = Value::from(example(name)) else { panic!("an object") };
                desired.insert(property.clone(), Value::from(value));
                for operation in OPERATIONS {
                    let shown = shown(&built_in, operation, &desired, &vault, &world);
                    assert!(!shown.contains(CANARY), "{name}: {property}: {operation:?} shows {shown}");
                }
            }
            kept.extend(world.tree().contains(CANARY).then(|| format!("{name}: {property}")));
        }
    }
    assert_eq!(
        kept,
        ["Stead/AptRepository: uris", "Stead/User: passwordHash"],
        "what is in files of the machine by now"
    );
}

/// Everything that can be read of an operation.
fn shown(
    built_in: &BuiltIn,
    (operation, execution): (Operation, Execution),
    desired: &Object,
    vault: &MemoryVault,
    world: &World,
) -> String {
    let type_name = built_in.manifest.type_name.clone();
    // Nothing of the system that runs the test can be reached.
    let cx = Context { system_root: Some(world.root.path().into()), ..world.context() };
    let call = Call {
        instance: InstancePath::new(None, ResourceId { type_name, name: "instance".into() }, NodeId(0)),
        manifest: Arc::clone(&built_in.manifest),
        operation,
        execution,
        desired: Arc::new(Value::Object(desired.clone())),
        tested: None,
        pending: None,
        metadata: None,
    };
    let answer = carry_out(&call, &*built_in.provider, vault, &cx);
    let traced = world.trace.lock().unwrap().join("\n");
    readable(&answer) + &traced
}

/// Everything that can be read of an answer.
fn readable(answer: &Response) -> String {
    let values: Vec<&Value> = match &answer.outcome {
        Outcome::Got(state) => vec![&**state],
        Outcome::Tested(tested) => tested.states().collect(),
        Outcome::Changed(changed) => vec![&*changed.before, &*changed.after],
        Outcome::Exported(all) => {
            all.iter().flat_map(|each| std::iter::once(&each.properties).chain(&each.metadata)).collect()
        }
        Outcome::Deleted(_) | Outcome::Pending(_) | Outcome::Failed(_) => Vec::new(),
    };
    let json = values.into_iter().chain(answer.metadata.as_deref()).map(|value| value.to_redacted_json().to_string());
    format!("{answer:?}\n{}", json.collect::<Vec<_>>().join("\n"))
}
