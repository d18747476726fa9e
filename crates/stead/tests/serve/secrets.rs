//! Secrets: those that are never shown, and those that a resource keeps to itself.

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::Server;

#[test]
fn a_secret_goes_in_and_never_comes_back() {
    const SECRET: &str = "correct-horse-battery";
    let mut server = Server::start();
    let file = |content: &Json| json!({ "type": "Stead/File", "properties": { "path": "x", "content": content } });
    let secret = json!({ "secureString": SECRET });
    let set = server.ask(1, "set", &file(&secret));
    assert_eq!(std::fs::read_to_string(server.folder.path().join("x")).unwrap(), SECRET);
    assert_eq!(set["result"]["after"]["content"], json!({ "$secret": true }));
    let same = server.ask(2, "test", &file(&secret));
    let other = server.ask(3, "test", &file(&json!({ "secureString": "another" })));
    assert_eq!((&same["result"]["inDesiredState"], &other["result"]["inDesiredState"]), (&true.into(), &false.into()));
    let mut nowhere = file(&secret);
    nowhere["properties"]["path"] = "no/such/folder".into();
    let failed = server.ask(4, "set", &nowhere);
    assert_eq!(failed["error"]["data"]["code"], "E0812", "{failed}");
    let (_, log, _) = server.end();
    for text in [set.to_string(), same.to_string(), other.to_string(), failed.to_string(), log] {
        assert!(!text.contains(SECRET), "{text}");
    }
}

/// A resource that takes one secret wrapped and another bare, requires a name, and keeps both secrets to itself. It notes its calls.
/// Its set fails after it wrote where there is a file `fail`, and takes the place of the digests where there is a file `block`.
fn keeper(folder: &TempDir) {
    let script = |text: &str| json!({ "executable": "sh", "args": ["-c", text], "input": "stdin" });
    let set = r#"echo set >> calls; cat > kept; test ! -e fail || exit 3; test ! -e block || touch state/applied; echo '{"name": "a"}'"#;
    let manifest = json!({
        "type": "Test/Keeper", "version": "1.0.0",
        "get": script(r#"echo get >> calls; cat > /dev/null; echo '{"name": "a"}'"#),
        "set": { "executable": "sh", "args": ["-c", set], "input": "stdin", "return": "state" },
        "export": script(r#"echo '{"name": "a"}'; echo '{"name": "b"}'"#),
        "schema": { "embedded": {
            "type": "object", "required": ["name"], "additionalProperties": false,
            "properties": {
                "name": { "type": "string" },
                "token": { "type": "string" },
                "pin": { "type": "object", "required": ["secureString"], "properties": { "secureString": { "type": "string" } } },
            },
        } },
    });
    std::fs::write(folder.path().join("keeper.dsc.resource.json"), manifest.to_string()).unwrap();
}

/// A request about the resource, with a token.
fn stated(token: &str) -> Json {
    let properties =
        json!({ "name": "a", "token": { "secureString": token }, "pin": { "secureString": "CANARY-pin" } });
    json!({ "type": "Test/Keeper", "properties": properties, "found": { "name": "a" } })
}

/// The properties that differ by a test.
fn differing(answer: &Json) -> Vec<String> {
    let all = answer["result"]["differing"].as_array().unwrap_or_else(|| panic!("{answer}"));
    all.iter().map(|one| one["property"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_secret_that_a_failed_set_may_have_replaced_is_set_again() {
    let folder = tempfile::tempdir().unwrap();
    keeper(&folder);
    let mut server = Server::start_in(folder);
    let set = server.ask_for_result(1, "set", &stated("CANARY-one"));
    assert!(set["error"].is_null(), "{set}");
    std::fs::write(server.folder.path().join("fail"), "").unwrap();
    let set = server.ask_for_result(2, "set", &stated("CANARY-two"));
    assert_eq!(set["error"]["code"], -32000, "{set}");
    assert!(std::fs::read_to_string(server.folder.path().join("kept")).unwrap().contains("CANARY-two"));
    assert_eq!(differing(&server.ask_for_result(3, "test", &stated("CANARY-one"))), ["/token"]);
    assert_eq!(differing(&server.ask_for_result(4, "test", &stated("CANARY-two"))), ["/token"]);
}

#[test]
fn a_secret_that_was_set_by_name_is_the_one_that_was_set_last() {
    let folder = tempfile::tempdir().unwrap();
    keeper(&folder);
    let mut server = Server::start_in(folder);
    server.ask_for_result(1, "set", &stated("CANARY-one"));
    let properties = stated("CANARY-two")["properties"].clone();
    let by_name =
        |what_if: bool| json!({ "name": "Keeper", "method": "set", "properties": properties, "whatIf": what_if });
    let predicted = server.ask_for_result(2, "invoke", &by_name(true));
    assert!(predicted["error"].is_null(), "{predicted}");
    assert_eq!(differing(&server.ask_for_result(3, "test", &stated("CANARY-one"))), Vec::<String>::new());
    let invoked = server.ask_for_result(4, "invoke", &by_name(false));
    assert_eq!(invoked["result"]["rebootRequired"], false, "{invoked}");
    assert_eq!(differing(&server.ask_for_result(5, "test", &stated("CANARY-one"))), ["/token"]);
    assert_eq!(differing(&server.ask_for_result(6, "test", &stated("CANARY-two"))), Vec::<String>::new());
}

#[test]
fn secrets_of_which_nothing_can_be_known_are_in_no_desired_state() {
    let folder = tempfile::tempdir().unwrap();
    keeper(&folder);
    let mut server = Server::start_in(folder);
    std::fs::write(server.folder.path().join("block"), "").unwrap();
    let set = server.ask_for_result(1, "set", &stated("CANARY-one"));
    assert!(set["error"].is_null(), "{set}");
    for (id, method) in [(2, "test"), (3, "set")] {
        let answer = server.ask_for_result(id, method, &stated("CANARY-one"));
        let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(
            message.starts_with("stead cannot tell whether the secrets changed since they were last set: "),
            "{message}"
        );
        assert_eq!(answer["error"]["data"]["type"], "Test/Keeper", "{answer}");
    }
    assert_eq!(std::fs::read_to_string(server.folder.path().join("calls")).unwrap().matches("set").count(), 1);
    let (_, said, _) = server.end();
    assert!(said.contains("the secrets were set, but stead could not note which: "), "{said}");
    assert!(said.contains("; the next test may report them as different"), "{said}");
}

#[test]
fn secrets_of_powershell_belong_to_the_instance_and_leave_its_test_alone() {
    let Some(pwsh) = stead_testkit::powershell("secrets_of_powershell_belong_to_the_instance_and_leave_its_test_alone")
    else {
        return;
    };
    let mut server = Server::with_modules(Some(&pwsh));
    server.class("Keeps", "1.0", "");
    let stated = |name: &str, seen: &str, by: &str| {
        let properties = json!({ "Name": { "secureString": name }, "Seen": { "secureString": seen } });
        json!({ "type": "Keeps/Keeps", "properties": properties, "by": by })
    };
    for (id, name, seen) in [(1, "a", "CANARY-one"), (2, "b", "CANARY-two")] {
        let set = server.ask_for_result(id, "set", &stated(name, seen, "properties"));
        assert!(set["error"].is_null(), "{set}");
    }
    let mut test = |id, name, seen, by| {
        let answer = server.ask_for_result(id, "test", &stated(name, seen, by));
        assert_eq!(answer["result"]["inDesiredState"], differing(&answer).is_empty(), "{answer}");
        differing(&answer)
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(test(3, "a", "CANARY-three", "resource"), none, "its own test decides");
    assert_eq!(test(4, "a", "CANARY-one", "properties"), none, "the record of 'b' is another one");
    assert_eq!(test(5, "b", "CANARY-two", "properties"), none);
    assert_eq!(test(6, "a", "CANARY-two", "properties"), ["/Seen"]);
}

#[test]
fn secrets_that_a_resource_keeps_are_set_when_they_changed() {
    let folder = tempfile::tempdir().unwrap();
    keeper(&folder);
    let mut server = Server::start_in(folder);
    let calls = server.folder.path().join("calls");
    let first = server.ask_for_result(1, "test", &stated("CANARY-one"));
    assert_eq!(differing(&first), ["/pin", "/token"], "{first}");
    assert_eq!(first["result"]["inDesiredState"], false, "{first}");
    std::fs::remove_file(&calls).unwrap();
    let set = server.ask_for_result(2, "set", &stated("CANARY-one"));
    assert!(set["error"].is_null(), "{set}");
    assert_eq!(std::fs::read_to_string(&calls).unwrap(), "set\n", "one call, as the caller knows the state");
    let kept: Json =
        serde_json::from_str(&std::fs::read_to_string(server.folder.path().join("kept")).unwrap()).unwrap();
    assert_eq!(kept, json!({ "name": "a", "token": "CANARY-one", "pin": { "secureString": "CANARY-pin" } }));
    assert_eq!(differing(&server.ask_for_result(3, "test", &stated("CANARY-one"))), Vec::<String>::new());
    assert_eq!(differing(&server.ask_for_result(4, "test", &stated("CANARY-two"))), ["/token"]);
    let records = std::fs::read_dir(server.folder.path().join("state/applied")).unwrap().flatten();
    for record in records {
        assert!(!std::fs::read_to_string(record.path()).unwrap().contains("CANARY"), "{record:?}");
    }
}

#[test]
fn instances_are_listed_without_the_properties_that_one_requires() {
    let folder = tempfile::tempdir().unwrap();
    keeper(&folder);
    let mut server = Server::start_in(folder);
    let listed = server.ask_for_result(1, "export", &json!({ "type": "Test/Keeper" }));
    assert_eq!(listed["result"]["instances"].as_array().map(Vec::len), Some(2), "{listed}");
}
