//! Nothing that comes of a resource shows a secret that it was given, in whichever property, or that it never shows.
//!
//! The properties are those of the schemas: a new one is tested as it is added.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use stead_core::call::{Call, Execution, Operation, Outcome, Response, Wanted};
use stead_core::id::{NodeId, ResourceId};
use stead_core::instance_path::InstancePath;
use stead_core::value::{Object, Seal, Value};
use stead_host::operate::carry_out;
use stead_host::provider::Context;
use stead_host::vault::MemoryVault;
use stead_resources::BuiltIn;
use stead_system::fs::SystemRoot;

use super::support::World;
use super::{carried_out, example};

/// The text that is looked for.
const CANARY: &str = "Canary";

/// Secrets in forms that properties accept: a name, a path, the content of a unit file. None has a directory in it: a part of a
/// secret that a resource takes apart is not recognized.
const SECRETS: [&str; 3] = ["CanaryInTheMine", "/CanaryInTheMine", "[Service]\nExecStart=/Canary\n"];

const OPERATIONS: [(Operation, Execution); 5] = [
    (Operation::Get, Execution::Actual),
    (Operation::Test, Execution::Actual),
    (Operation::Set, Execution::WhatIf),
    (Operation::Set, Execution::Actual),
    (Operation::Export, Execution::Actual),
];

/// Properties with canaries in all that is secret of one of them, and with other canaries; and whether a set writes them to the
/// machine. A new property of a manifest's secrets must be listed here.
fn secret_values(type_name: &str, property: &str) -> ([Json; 2], bool) {
    match (type_name, property) {
        ("Stead/User", "passwordHash") => {
            let hash = |number| format!("$6$CanarySalt{number}$CanaryHash");
            ([1, 2].map(|number| json!({"passwordHash": hash(number)})), true)
        }
        ("Stead/AptRepository", "uris") => {
            let uri = |number| format!("https://CanaryUser{number}:CanaryWord@example.com/debian");
            ([1, 2].map(|number| json!({"uris": [uri(number)]})), true)
        }
        ("Stead/Download", "url") => {
            let url = |number| format!("https://CanaryUser{number}:CanaryWord@localhost:1/f?CanaryQuery");
            ([1, 2].map(|number| json!({"url": url(number)})), false)
        }
        ("Stead/Download", "headers") => {
            let headers = |number| json!({"Authorization": format!("Bearer CanaryWord{number}")});
            ([1, 2].map(|number| json!({"url": "http://localhost:1/f", "headers": headers(number)})), false)
        }
        ("Stead/Download", "proxy") => {
            let proxy = |number| format!("http://CanaryUser{number}:CanaryWord@localhost:1");
            ([1, 2].map(|number| json!({"url": "http://localhost:1/f", "proxy": proxy(number)})), false)
        }
        ("Stead/Git", "repository") => {
            let address = |number| format!("https://CanaryUser{number}:CanaryWord@localhost:1/r.git");
            ([1, 2].map(|number| json!({"repository": address(number)})), false)
        }
        ("Stead/Mount", "options") => {
            let options = |number| format!("username=user,password=CanaryWord{number}");
            ([1, 2].map(|number| json!({"fstype": "cifs", "options": options(number)})), true)
        }
        other => panic!("{other:?} is secret: add two values with a canary to this function"),
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
                        let shown = shown(built_in, operation, &desired, &vault, &world);
                        assert!(!shown.contains(CANARY), "{name}: {property}: {operation:?} shows {shown}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_never_shown_is_not_shown_where_it_is_no_secret_of_the_document() {
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        for property in built_in.manifest.secrets.iter().map(|secret| secret.name) {
            let (world, vault) = (World::system(), MemoryVault::default());
            let (values, is_kept) = secret_values(name, property);
            for value in values {
                let [Value::Object(mut desired), Value::Object(secret)] = [example(name), value].map(Value::from)
                else {
                    panic!("objects")
                };
                desired.extend(secret);
                for operation in OPERATIONS {
                    let shown = shown(built_in, operation, &desired, &vault, &world);
                    assert!(!shown.contains(CANARY), "{name}: {property}: {operation:?} shows {shown}");
                }
            }
            assert_eq!(world.tree().contains(CANARY), is_kept, "{name}: {property}: in files of the machine");
        }
    }
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
    let cx = Context { system_root: SystemRoot::below(world.root.path()), ..world.context() };
    let call = Call {
        instance: InstancePath::new(None, ResourceId { type_name, name: "instance".into() }, NodeId(0)),
        manifest: Arc::clone(&built_in.manifest),
        operation,
        execution,
        desired: Arc::new(Value::Object(desired.clone())),
        tested: None,
        pending: None,
        export_filter: None,
        metadata: None,
        wanted: Wanted::Reported,
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
