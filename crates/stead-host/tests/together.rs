//! Several instances in one call of an adapter: how much it may print.

#![expect(clippy::unwrap_used, reason = "a test fails where something that it relies on does")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use stead_core::call::{Execution, Failure, FailureKind};
use stead_core::id::TypeName;
use stead_core::manifest::{Declaration, ManifestForm, parse, unplaced};
use stead_core::planner::Method;
use stead_host::command::{CommandProvider, CommandSettings};
use stead_host::provider::{Asked, Context, MethodAnswer, Plain, Provider};
use stead_system::fs::User;
use stead_system::process::Environment;

/// Prints for each instance as much as its properties say, and notes its calls.
const PROGRAM: &str = r#"
import json, sys
asked = json.load(sys.stdin)["resources"]
with open("calls", "a") as calls:
    calls.write(f"{sys.argv[1]} {len(asked)}\n")
print(json.dumps({"result": [{"name": one["name"], "type": one["type"], "properties": {"text": "x" * one["properties"]["size"]}} for one in asked]}))
"#;

fn provider(folder: &Path) -> CommandProvider {
    fs::write(folder.join("program"), PROGRAM).unwrap();
    let call = |method: &str| json!({"executable": "python3", "args": ["program", method], "input": "stdin"});
    let mut set = call("set");
    set["return"] = json!("state");
    let declared = |form, json: serde_json::Value| {
        let (found, findings) = parse(form, &unplaced(&json), &folder.join("test.dsc.resource.json"));
        found.into_iter().next().unwrap_or_else(|| panic!("{findings:?}")).declaration
    };
    let adapter = json!({
        "$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json",
        "type": "Test/Adapter", "version": "1.0.0", "kind": "adapter", "adapter": {"inputKind": "full"},
        "metadata": {"stead": {"batch": true}}, "get": call("get"), "set": set,
    });
    let item = json!({
        "$schema": "https://aka.ms/dsc/schemas/v3/bundled/adaptedresource/manifest.json",
        "type": "Shop/Item", "version": "1.0.0", "kind": "resource", "capabilities": ["get", "set"],
        "requireAdapter": "Test/Adapter", "content": {}, "schema": {},
    });
    let Declaration::Resource(adapter) = declared(ManifestForm::Resource, adapter) else { panic!("an adapter") };
    let Declaration::Adapted(item) = declared(ManifestForm::Adapted, item) else { panic!("an adapted resource") };
    let path = ("PATH".into(), "/usr/bin:/bin".into());
    let environment = Environment::of([path], &[]).trusting(User::current().trust());
    let (grace, settle) = (Duration::from_millis(300), Duration::from_millis(200));
    let settings = CommandSettings { environment, grace, settle, elevated: true };
    CommandProvider::new(&Arc::new(item.into_manifest(Arc::new(*adapter))), settings).unwrap()
}

#[test]
fn each_instance_may_print_what_a_call_of_its_own_may() {
    let folder = tempfile::tempdir().unwrap();
    let provider = provider(folder.path());
    let name = TypeName::parse("Shop/Item").unwrap();
    let asked = |method: Method, sizes: &[usize]| -> Vec<Result<(), Failure>> {
        let named =
            |at: usize| Context { name: at.to_string().into(), output_limit: 4000, ..Context::new(folder.path()) };
        let contexts: Vec<Context> = (0..sizes.len()).map(named).collect();
        let inputs: Vec<Plain> = sizes.iter().map(|size| Plain::new(json!({ "size": size }))).collect();
        let all = contexts.iter().zip(&inputs).map(|(cx, input)| Asked { type_name: &name, cx, input });
        let answers = provider.together().unwrap().answer_all(method, &all.collect::<Vec<_>>());
        answers.into_iter().map(|answer: Result<MethodAnswer, Failure>| answer.map(|_| ())).collect()
    };
    let calls = || {
        let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
        fs::remove_file(folder.path().join("calls")).unwrap();
        calls
    };
    // What all of them print is more than one may.
    assert!(asked(Method::Get, &[3000, 3000, 3000, 3000]).iter().all(Result::is_ok));
    assert_eq!(calls(), "get 4\n");
    let too_much =
        |answer: &Result<(), Failure>| answer.as_ref().is_err_and(|failure| failure.kind == FailureKind::OutputLimit);
    // One that prints too much has failed, and no other.
    let answers = asked(Method::Get, &[10, 20_000, 10, 10]);
    assert_eq!(answers.iter().map(too_much).collect::<Vec<_>>(), [false, true, false, false], "{answers:?}");
    assert_eq!(calls(), "get 4\nget 2\nget 1\nget 1\nget 2\n");
    // A set is made once.
    let answers = asked(Method::Set(Execution::Actual), &[10, 20_000, 10, 10]);
    assert!(answers.iter().all(too_much), "{answers:?}");
    assert_eq!(calls(), "set 4\n");
}
