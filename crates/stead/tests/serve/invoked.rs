//! Resources that a caller invokes by their names, lists and compares, those of PowerShell modules too.

use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};

use super::Server;

#[test]
fn a_resource_is_invoked_by_its_name() {
    let mut server = Server::start();
    let call = |name: &str, method: &str, properties: Json| json!({ "name": name, "method": method, "properties": properties });
    let tested = server.ask(1, "invoke", &call("file", "test", json!({ "path": "x", "content": "5" })));
    assert_eq!(tested["result"], json!({ "inDesiredState": false }), "{tested}");
    let set = server.ask(2, "invoke", &call("Stead/File", "set", json!({ "path": "x", "content": "5" })));
    assert_eq!(set["result"], json!({ "rebootRequired": false }), "{set}");
    let got = server.ask(3, "invoke", &call("file", "get", json!({ "path": "x" })));
    assert_eq!((&got["result"]["state"]["size"], &got["result"]["types"]), (&json!(1), &json!({})), "{got}");
    let mut only_said = call("file", "set", json!({ "path": "x", "content": "6" }));
    only_said["whatIf"] = true.into();
    assert_eq!(server.ask(4, "invoke", &only_said)["result"]["after"]["content"], "6");
    assert_eq!(std::fs::read_to_string(server.folder.path().join("x")).unwrap(), "5");

    let unknown = server.ask(5, "invoke", &call("nothing", "get", json!({})));
    let found = (&unknown["error"]["code"], &unknown["error"]["data"]["category"]);
    assert_eq!(found, (&json!(-32003), &json!("ObjectNotFound")), "{unknown}");
    let refused = server.ask(6, "invoke", &call("file", "get", json!({ "path": "x", "PsDscRunAsCredential": null })));
    let id = &refused["error"]["data"]["id"];
    assert_eq!(id, "PsDscRunAsCredentialNotSupport,Invoke-DscResource", "{refused}");
    // The rules of a call hold for what is only said.
    let mut as_another = call("file", "set", json!({ "path": "x", "content": "6", "PsDscRunAsCredential": null }));
    as_another["whatIf"] = true.into();
    let refused = server.ask(8, "invoke", &as_another);
    assert_eq!(&refused["error"]["data"]["id"], id, "{refused}");
    as_another["ignoreRunAsCredential"] = true.into();
    let said = server.ask(9, "invoke", &as_another);
    assert_eq!(said["result"]["after"]["content"], "6", "{said}");
    as_another["properties"]["path"] = 5.into();
    let failed = server.ask(10, "invoke", &as_another);
    assert_eq!(failed["error"]["data"]["id"], "ResourceFailed,Invoke-DscResource", "{failed}");

    let failed = server.ask(7, "invoke", &call("file", "set", json!({ "path": "x/y", "content": "5" })));
    let data = &failed["error"]["data"];
    assert_eq!(
        (&data["id"], &data["category"]),
        (&json!("ResourceFailed,Invoke-DscResource"), &json!("ResourceUnavailable")),
        "{failed}"
    );
}

#[test]
fn what_there_is_is_listed_as_it_is_now() {
    let mut server = Server::start();
    let names = |answer: &Json| -> Vec<String> {
        let all = answer["result"]["resources"].as_array().unwrap();
        all.iter().map(|each| each["type"].as_str().unwrap().to_owned()).collect()
    };
    let before = names(&server.ask(1, "list", &json!({})));
    assert!(before.iter().any(|name| name == "Stead/File"), "{before:?}");
    let manifest = json!({
        "$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json", "type": "Late/Comer", "version": "1.0.0",
        "get": { "executable": "true" }, "schema": { "embedded": { "type": "object" } },
    });
    std::fs::write(server.folder.path().join("late.dsc.resource.json"), manifest.to_string()).unwrap();
    let after = names(&server.ask(2, "list", &json!({})));
    assert_eq!((before.contains(&"Late/Comer".to_owned()), after.contains(&"Late/Comer".to_owned())), (false, true));
}

/// Its processes of PowerShell are those of whoever names no path of modules.
#[test]
fn a_path_of_modules_that_is_its_own_ends_no_process_of_others() {
    let test = "a_path_of_modules_that_is_its_own_ends_no_process_of_others";
    let Some(pwsh) = stead_testkit::powershell(test) else { return };
    let mut server = Server::with_modules(Some(&pwsh));
    server.class("Which", "1.0", "$this.Seen = [Environment]::ProcessId");
    let (modules, folder) = (server.folder.path().join("modules"), server.folder.path().to_path_buf());
    let call = json!({ "name": "Which", "method": "get", "properties": { "Name": "a" }, "modulePath": modules });
    let mut process = |id| server.ask(id, "invoke", &call)["result"]["state"]["Seen"].clone();
    let first = process(1);
    assert!(first.is_string(), "{first}");
    for id in 2..=18 {
        let other = folder.join(id.to_string());
        std::fs::create_dir(&other).unwrap();
        let file = json!({ "type": "Stead/File", "properties": { "path": "x" }, "directory": other });
        assert_eq!(server.ask(id, "get", &file)["result"]["exists"], false);
    }
    assert_eq!(server.ask(19, "invoke", &call)["result"]["state"]["Seen"], first);
}

/// However many requests there are, and wherever from.
#[test]
fn a_variable_that_is_not_handed_on_is_named_once() {
    let Some(pwsh) = stead_testkit::powershell("a_variable_that_is_not_handed_on_is_named_once") else { return };
    let mut server = Server::with_modules(Some(&pwsh));
    server.class("Reads", "1.0", "$this.Seen = $env:KIT_ROOT");
    let folder = server.folder.path().to_path_buf();
    let call = |directory: &Path| json!({ "name": "Reads", "method": "get", "properties": { "Name": "a" }, "directory": directory });
    let said = server.ask(1, "invoke", &call(&folder));
    let expected = "'Reads' reads environment variables that are not passed to it: 'KIT_ROOT'; add '--env KIT_ROOT', the document \
                    directive 'environment', or the setting 'environment'";
    assert_eq!(said["params"], json!({ "id": 1, "level": "warning", "message": expected }), "{said}");
    assert_eq!(server.answer()["result"]["state"]["Name"], "a");
    for (id, directory) in [(2, &*folder), (3, Path::new("/"))] {
        let answer = server.ask(id, "invoke", &call(directory));
        assert_eq!(answer["result"]["state"]["Name"], "a", "{answer}");
    }
}

#[test]
fn a_module_that_is_gone_is_looked_for_anew() {
    let mut server = Server::with_modules(None);
    let folder = server.class("Which", "1.0", "");
    let call = json!({ "name": "Which", "method": "get", "properties": { "Name": "a" } });
    let there = server.ask(1, "invoke", &call);
    assert_eq!(there["error"]["code"], -32000, "there is no PowerShell: {there}");
    std::fs::remove_dir_all(folder).unwrap();
    let gone = server.ask(2, "invoke", &call);
    assert_eq!(gone["error"]["code"], -32003, "{gone}");
}

#[test]
fn resources_of_one_module_are_listed() {
    let mut server = Server::with_modules(None);
    for (module, version) in [("One", "1.0"), ("One", "1.2"), ("Other", "1.2")] {
        server.class(module, version, "");
    }
    for (id, (module, expected)) in [
        (json!({ "name": "one" }), "One 1.0.0 One 1.2.0"),
        (json!({ "name": "o*", "version": "1.2.0.0" }), "One 1.2.0 Other 1.2.0"),
        (json!({ "name": "One", "minimum": "1.1" }), "One 1.2.0"),
        (json!({ "name": "One", "maximum": "1.1.*" }), "One 1.0.0"),
        (json!({ "name": "*", "guid": "e2b1f6a0-4a55-4d1e-8f6c-0d6f6d2a7c11" }), ""),
    ]
    .into_iter()
    .enumerate()
    {
        let params = json!({ "adapter": "Microsoft.Adapter/PowerShell", "module": module });
        let answer = server.ask(id as u64, "list", &params);
        let all = answer["result"]["resources"].as_array().unwrap();
        let text = |each: &Json, name: &str| each[name].as_str().unwrap().to_owned();
        let mut found: Vec<String> = all
            .iter()
            .map(|each| format!("{} {}", text(each, "type").rsplit('/').next().unwrap(), text(each, "version")))
            .collect();
        found.sort();
        assert_eq!(found.join(" "), expected, "{params}");
    }
}

/// A file of requests changes nothing unless that is asked for, whatever the request is called.
#[test]
fn a_replay_invokes_no_set() {
    let folder = tempfile::tempdir().unwrap();
    let set = json!({ "name": "file", "method": "set", "properties": { "path": "x", "content": "5" } });
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "invoke", "params": set });
    std::fs::write(folder.path().join("requests"), line.to_string()).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_stead"));
    program
        .args(["serve", "--replay", "requests"])
        .current_dir(folder.path())
        .env("STEAD_STATE", folder.path().join("state"));
    program.env("PATH", "/usr/bin:/bin").env_remove("PSModulePath");
    let output = program.env("HOME", folder.path()).output().unwrap();
    let answer: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["result"]["after"]["content"], "5", "{answer}");
    assert!(!folder.path().join("x").exists());
}

/// A class of PowerShell is known without PowerShell.
#[test]
fn what_a_caller_knows_is_compared_as_powershell_does() {
    let mut server = Server::with_modules(None);
    server.class("Shown", "1.0", "");
    let params = json!({
        "type": "Shown/Shown",
        "properties": { "Name": "a", "Seen": "Hello", "Other": ["b", "A"], "Pin": { "secureString": "1" } },
        "found": { "name": "A", "Seen": "hello ", "Other": ["a", "B"], "Pin": "2" },
    });
    let compared = server.ask(1, "compare", &params);
    let spelled = json!({ "name": "A", "Seen": "hello ", "Other": ["a", "B"], "Pin": "1" });
    let differing = json!([{ "property": "/Pin" }]);
    let expected = json!({ "inDesiredState": false, "exists": true, "differing": differing, "spelled": spelled });
    assert_eq!(compared["result"], expected, "{compared}");
    let exact = json!({ "type": "Stead/File", "properties": { "path": "a" }, "found": { "path": "A" } });
    assert_eq!(server.ask(2, "compare", &exact)["result"]["inDesiredState"], false);
}
