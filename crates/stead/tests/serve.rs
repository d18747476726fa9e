//! `stead serve` from the side of its caller: order, cancelling, deadlines, the end of the input, secrets.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};
use tempfile::TempDir;

struct Server {
    child: Child,
    requests: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
    folder: TempDir,
}

impl Server {
    fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap())
    }

    fn start_in(folder: TempDir) -> Self {
        Self::start_with(folder, |_| {})
    }

    /// With the module path `modules`, where `class` writes modules to; PowerShell is in the path where it is there.
    fn with_modules(pwsh: Option<&Path>) -> Self {
        Self::start_with(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), |program| {
            let folders = [pwsh.and_then(Path::parent), Some(Path::new("/usr/bin")), Some(Path::new("/bin"))];
            program.env("PATH", std::env::join_paths(folders.into_iter().flatten()).unwrap());
            program.env("PSModulePath", program.get_current_dir().unwrap().join("modules")).env("KIT_ROOT", "/kit");
        })
    }

    /// A module of one class, whose Get does this.
    fn class(&self, module: &str, version: &str, get: &str) -> PathBuf {
        let folder = self.folder.path().join("modules").join(module).join(version);
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "[DscResource()] class {module} {{\n[DscProperty(Key)] [string] $Name\n[DscProperty()] [string] $Seen\n\
             [{module}] Get() {{ {get}; return $this }}\n[bool] Test() {{ return $true }}\n[void] Set() {{ }} }}\n"
        );
        std::fs::write(folder.join(format!("{module}.psm1")), text).unwrap();
        let manifest = format!(
            "@{{ RootModule = '{module}.psm1'; ModuleVersion = '{version}'; DscResourcesToExport = '{module}' }}\n"
        );
        std::fs::write(folder.join(format!("{module}.psd1")), manifest).unwrap();
        folder
    }

    fn start_with(folder: TempDir, set: impl FnOnce(&mut Command)) -> Self {
        let mut program = Command::new(env!("CARGO_BIN_EXE_stead"));
        program.args(["serve", "--stdio"]).current_dir(folder.path());
        program.env("HOME", folder.path()).env("STEAD_STATE", folder.path().join("state"));
        // With PowerShell there is another resource of the name 'File'.
        program.env("DSC_RESOURCE_PATH", folder.path()).env("PATH", "/usr/bin:/bin").env_remove("PSModulePath");
        set(&mut program);
        let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (requests, answers) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()).lines());
        let mut server = Self { child, requests, answers, folder };
        let hello = server.ask(0, "initialize", &json!({ "protocol": 1 }));
        assert_eq!(hello["result"]["protocol"], 1);
        server
    }

    fn send(&mut self, id: u64, method: &str, params: &Json) {
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.requests.as_mut().unwrap(), "{line}").unwrap();
    }

    fn answer(&mut self) -> Json {
        serde_json::from_str(&self.answers.next().unwrap().unwrap()).unwrap()
    }

    fn ask(&mut self, id: u64, method: &str, params: &Json) -> Json {
        self.send(id, method, params);
        self.answer()
    }

    /// Returns the answer, and passes over the messages before it.
    fn ask_for_result(&mut self, id: u64, method: &str, params: &Json) -> Json {
        let mut answer = self.ask(id, method, params);
        while answer["method"] == "$/log" {
            answer = self.answer();
        }
        answer
    }

    /// Ends the input. Returns what was still answered, and what is on standard error.
    fn end(mut self) -> (Vec<Json>, String, bool) {
        drop(self.requests.take());
        let rest = self.answers.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        let output = self.child.wait_with_output().unwrap();
        (rest, String::from_utf8(output.stderr).unwrap(), output.status.success())
    }
}

fn command(test: &str, set: &str) -> Json {
    json!({ "type": "Stead/Command", "properties": { "test": test, "set": set } })
}

#[test]
fn one_that_takes_long_holds_up_no_other() {
    let mut server = Server::start();
    let pipe = server.folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    server.send(1, "test", &command("cat pipe", "true"));
    let quick = server.ask(2, "get", &json!({ "type": "Stead/File", "properties": { "path": "x" } }));
    assert_eq!((&quick["id"], &quick["result"]["exists"]), (&2.into(), &false.into()));
    std::fs::write(&pipe, "").unwrap();
    let slow = server.answer();
    assert_eq!((&slow["id"], &slow["result"]["inDesiredState"]), (&1.into(), &true.into()));
    let (rest, log, success) = server.end();
    assert!(rest.is_empty() && log.is_empty() && success, "{rest:?} {log}");
}

#[test]
fn what_is_cancelled_or_too_slow_is_answered_and_leaves_nothing() {
    let mut server = Server::start();
    server.send(1, "set", &command("false", "echo $$ > first; sleep 1000"));
    let first = server.folder.path().join("first");
    while std::fs::read_to_string(&first).unwrap_or_default().is_empty() {
        std::thread::yield_now();
    }
    let line = json!({ "jsonrpc": "2.0", "method": "$/cancel", "params": { "id": 1 } });
    writeln!(server.requests.as_mut().unwrap(), "{line}").unwrap();
    assert_eq!(server.answer()["error"]["code"], -32002);
    let process = std::fs::read_to_string(&first).unwrap();
    assert!(!std::path::Path::new("/proc").join(process.trim()).exists());

    let mut late = command("sleep 1000", "true");
    late["deadline"] = 0.1.into();
    let late = server.ask(2, "test", &late);
    assert_eq!(late["error"]["code"], -32001, "{late}");
    assert_eq!(late["error"]["data"]["code"], "E0806", "{late}");
}

#[test]
fn an_id_is_one_request_until_it_is_answered() {
    let mut server = Server::start();
    assert!(Command::new("mkfifo").arg(server.folder.path().join("pipe")).status().unwrap().success());
    server.send(1, "test", &command("cat pipe", "true"));
    let second = server.ask(1, "get", &json!({ "type": "Stead/File", "properties": { "path": "x" } }));
    assert_eq!(second["error"]["code"], -32600, "{second}");
    // The first one can still be cancelled.
    let line = json!({ "jsonrpc": "2.0", "method": "$/cancel", "params": { "id": 1 } });
    writeln!(server.requests.as_mut().unwrap(), "{line}").unwrap();
    assert_eq!(server.answer()["error"]["code"], -32002);
    let again = server.ask(1, "get", &json!({ "type": "Stead/File", "properties": { "path": "x" } }));
    assert_eq!(again["result"]["exists"], false, "{again}");
}

/// It is a request with an id that cannot be one, not a notification, which is never answered.
#[test]
fn a_request_whose_id_is_null_is_refused() {
    let mut server = Server::start();
    writeln!(server.requests.as_mut().unwrap(), r#"{{"jsonrpc": "2.0", "id": null, "method": "get"}}"#).unwrap();
    let answer = server.answer();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Json::Null, &json!(-32600)), "{answer}");
}

/// A caller that is killed leaves nothing at work.
#[test]
fn the_end_of_the_input_ends_what_is_under_way() {
    let mut server = Server::start();
    server.send(1, "set", &command("false", "echo $$ > first; sleep 1000"));
    let first = server.folder.path().join("first");
    while std::fs::read_to_string(&first).unwrap_or_default().is_empty() {
        std::thread::yield_now();
    }
    let folder = std::fs::read_to_string(&first).unwrap();
    let (rest, _, _) = server.end();
    assert_eq!(rest[0]["error"]["code"], -32002, "{rest:?}");
    assert!(!std::path::Path::new("/proc").join(folder.trim()).exists());
}

#[test]
fn each_of_many_requests_is_answered_once() {
    let mut server = Server::start();
    for id in 1..=200 {
        let params = json!({ "type": "Stead/File", "properties": { "path": format!("f{id}"), "content": "x" } });
        server.send(id, if id % 2 == 0 { "set" } else { "test" }, &params);
    }
    let mut answered: BTreeMap<u64, usize> = BTreeMap::new();
    for _ in 1..=200 {
        let answer = server.answer();
        assert!(answer["error"].is_null(), "{answer}");
        *answered.entry(answer["id"].as_u64().unwrap_or_else(|| panic!("{answer}"))).or_default() += 1;
    }
    assert!((1..=200).all(|id| answered.get(&id) == Some(&1)));
    let made = std::fs::read_dir(server.folder.path()).unwrap().flatten();
    assert_eq!(made.filter(|entry| entry.file_name().to_string_lossy().starts_with('f')).count(), 100);
}

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

#[test]
fn a_change_is_verified_by_the_same_request() {
    let mut server = Server::start();
    let file = json!({ "type": "Stead/File", "properties": { "path": "x", "content": "one" }, "verify": true });
    let set = server.ask(1, "set", &file);
    assert_eq!(set["result"]["verification"]["inDesiredState"], true, "{set}");
    let mut stubborn = command("false", "true");
    stubborn["verify"] = true.into();
    let set = server.ask(2, "set", &stubborn);
    assert_eq!(set["result"]["verification"]["inDesiredState"], false, "{set}");
    let mut predicted = file;
    predicted["whatIf"] = true.into();
    let set = server.ask(3, "set", &predicted);
    assert!(set["result"]["verification"].is_null(), "{set}");
}

#[test]
fn a_test_that_fails_after_a_change_leaves_the_answer_to_the_change() {
    let folder = tempfile::tempdir().unwrap();
    let script = |text: &str| json!({ "executable": "sh", "args": ["-c", text], "input": "stdin" });
    let manifest = json!({
        "type": "Test/Unreadable", "version": "1.0.0",
        "get": script("test ! -e made || exit 7; echo '{}'"),
        "set": { "executable": "sh", "args": ["-c", r#"cat > made; echo '{"one": 1}'"#], "input": "stdin", "return": "state" },
        "schema": { "embedded": { "type": "object", "properties": { "one": { "type": "integer" } } } },
    });
    std::fs::write(folder.path().join("unreadable.dsc.resource.json"), manifest.to_string()).unwrap();
    let mut server = Server::start_in(folder);
    let params = json!({ "type": "Test/Unreadable", "properties": { "one": 1 }, "verify": true });
    let mut set = server.ask(1, "set", &params);
    while set["method"] == "$/log" {
        set = server.answer();
    }
    assert_eq!(set["result"]["after"]["one"], 1, "{set}");
    let error = &set["result"]["verification"]["error"];
    assert_eq!(error["code"], -32000, "{set}");
    assert!(error["message"].as_str().unwrap().contains('7'), "{set}");
}

#[test]
fn names_of_properties_are_json_pointers() {
    let mut server = Server::start();
    let file = json!({ "type": "Stead/File", "properties": { "path": "x", "content": "one" } });
    let test = server.ask(1, "test", &file);
    let differing = test["result"]["differing"].as_array().unwrap();
    assert!(differing.iter().all(|one| one["property"].as_str().unwrap().starts_with('/')), "{test}");
}

#[test]
fn schemas_are_those_of_a_version() {
    let mut server = Server::start();
    let schemas = json!({ "Stead/File": "", "Stead/File@=1.0.0": "", "Stead/File@=9.0.0": "", "Stead/Nosuch": "" });
    let hello = server.ask(1, "initialize", &json!({ "protocol": 1, "schemas": schemas }));
    let digests = &hello["result"]["schemas"];
    assert!(digests["Stead/File"].is_string() && digests["Stead/File"] == digests["Stead/File@=1.0.0"], "{hello}");
    assert!(digests["Stead/File@=9.0.0"].is_null() && digests["Stead/Nosuch"].is_null(), "{hello}");
}

#[test]
fn messages_of_a_resource_come_before_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = json!({
        "type": "Test/Warning", "version": "1.0.0", "deprecationMessage": "use another",
        "get": { "executable": "sh", "args": ["-c", r#"echo '{"warn": "careful"}' >&2; echo '{"one": 1}'"#] },
    });
    std::fs::write(folder.path().join("warning.dsc.resource.json"), manifest.to_string()).unwrap();
    let mut server = Server::start_in(folder);
    for id in [1, 2] {
        let log = server.ask(id, "get", &json!({ "type": "Test/Warning" }));
        assert_eq!(log["method"], "$/log", "{log}");
        assert_eq!(log["params"], json!({ "id": id, "level": "warning", "message": "careful" }));
        assert_eq!(server.answer()["result"]["actual"]["one"], 1);
    }
    let (_, errors, _) = server.end();
    assert_eq!(errors.matches("is deprecated").count(), 1, "{errors}");
}

#[test]
fn shutdown_waits_for_what_is_under_way() {
    let mut server = Server::start();
    let pipe = server.folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    server.send(1, "test", &command("cat pipe", "true"));
    server.send(2, "shutdown", &Json::Null);
    std::fs::write(&pipe, "").unwrap();
    assert_eq!(server.answer()["id"], 1);
    assert_eq!(server.answer(), json!({ "jsonrpc": "2.0", "id": 2, "result": null }));
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn a_request_that_is_too_long_is_answered() {
    let mut server = Server::start();
    // It is not read to its end.
    let sent = server.requests.take().unwrap().write_all(&vec![b'a'; 17 << 20]);
    let (rest, log, success) = server.end();
    assert_eq!((rest.len(), rest[0]["error"]["code"].as_i64()), (1, Some(-32005)), "{rest:?}");
    assert!(sent.is_err() && !success && log.contains("a request is too long"), "{log}");
}

#[test]
fn the_end_of_its_reader_ends_the_server() {
    let Server { mut child, requests, answers, folder: _folder } = Server::start();
    drop(answers);
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "nothing" });
    // It ends with a request after the one whose answer could not be written, although its input is open.
    while writeln!(requests.as_ref().unwrap(), "{line}").is_ok() {}
    child.wait().unwrap();
}

/// The end of the input comes when most requests have not been begun: they are answered all the same, as cancelled.
#[test]
fn every_request_is_answered_when_the_input_ends() {
    let mut server = Server::start();
    let count = 60;
    for id in 1..=count {
        server.send(id, "get", &json!({ "type": "Stead/Command", "properties": { "get": "echo x" } }));
    }
    let (rest, log, success) = server.end();
    let mut ids: Vec<u64> = rest.iter().filter_map(|answer| answer["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=count).collect::<Vec<_>>());
    let is_answered = |answer: &Json| answer["result"].is_object() || answer["error"]["code"] == -32002;
    assert!(rest.iter().all(is_answered) && log.is_empty() && success, "{rest:?} {log}");
}

/// Nothing of a server is left when whoever started it reads nothing more, whatever it would say.
#[test]
fn a_reader_that_stops_keeps_no_server() {
    let long = "head -c 300000 /dev/zero | tr '\\0' a";
    let noisy = r#"{"$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json", "type": "Test/Noisy",
        "version": "1.0.0", "get": {"executable": "./noisy.sh"}, "schema": {"embedded": {}}}"#;
    let script = "#!/bin/sh\ni=0\nwhile [ $i -lt 3000 ]; do i=$((i+1))\n\
        echo '{\"info\": \"a message that is long enough to fill a pipe when it is written so often\"}' >&2\ndone\necho '{}'\n";
    let last = json!({ "jsonrpc": "2.0", "id": 99, "method": "shutdown" }).to_string();
    for (what, method, params, ends_with) in [
        ("answers", "get", json!({ "type": "Stead/Command", "properties": { "get": long } }), None),
        (
            "answers before shutdown",
            "get",
            json!({ "type": "Stead/Command", "properties": { "get": long } }),
            Some(&last),
        ),
        ("messages", "get", json!({ "type": "Test/Noisy" }), None),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("noisy.dsc.resource.json"), noisy).unwrap();
        let program = folder.path().join("noisy.sh");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut server = Server::start_in(folder);
        (1..=4).for_each(|id| server.send(id, method, &params));
        if let Some(last) = ends_with {
            writeln!(server.requests.as_mut().unwrap(), "{last}").unwrap();
        }
        drop(server.requests.take());
        let asked = std::time::Instant::now();
        let ended = stead_testkit::until(|| server.child.try_wait().unwrap());
        assert!(ended.success(), "{what}: {ended}");
        println!("{what}: ended after {} ms", asked.elapsed().as_millis());
    }
}

/// Two callers share the process: each has its own directory, and answers by its own ids.
#[test]
fn each_request_has_a_directory_of_its_own() {
    let mut server = Server::start();
    for (id, name) in [(1, "one"), (2, "two")] {
        let folder = server.folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let properties = json!({ "path": "x", "content": name });
        let set =
            server.ask(id, "set", &json!({ "type": "Stead/File", "properties": properties, "directory": folder }));
        assert!(set["error"].is_null(), "{set}");
    }
    for name in ["one", "two"] {
        assert_eq!(std::fs::read_to_string(server.folder.path().join(name).join("x")).unwrap(), name);
    }
    let relative = json!({ "type": "Stead/File", "properties": { "path": "x" }, "directory": "one" });
    assert_eq!(server.ask(3, "get", &relative)["error"]["code"], -32602);
    assert!(!server.folder.path().join("x").exists());
}

/// More places than are kept: each is found all the same.
#[test]
fn a_caller_goes_through_many_directories() {
    let mut server = Server::start();
    for id in 1..=40 {
        let folder = server.folder.path().join(id.to_string());
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("x"), "").unwrap();
        let got =
            server.ask(id, "get", &json!({ "type": "Stead/File", "properties": { "path": "x" }, "directory": folder }));
        assert_eq!(got["result"]["exists"], true, "{got}");
    }
}

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

#[test]
fn a_change_that_waits_for_another_run_says_so() {
    let mut server = Server::start();
    let folder = server.folder.path().to_path_buf();
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let slow = json!({ "test": "test -e done", "set": format!("echo > {0}; cat {0}; touch done", pipe.display()) });
    let document = json!({ "resources": [{ "name": "slow", "type": "Stead/Command", "properties": slow }] });
    std::fs::write(folder.join("slow.json"), document.to_string()).unwrap();
    let mut other = Command::new(env!("CARGO_BIN_EXE_stead"))
        .args(["apply", "--yes", "slow.json"])
        .current_dir(&folder)
        .envs([("HOME", folder.as_path()), ("STEAD_STATE", &folder.join("state"))])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It has the lock once its set runs.
    std::fs::read_to_string(&pipe).unwrap();
    let file = json!({ "type": "Stead/File", "properties": { "path": "x", "content": "one" } });
    let said = server.ask(1, "set", &file);
    std::fs::write(&pipe, "").unwrap();
    let answer = server.answer();
    other.wait().unwrap();
    assert_eq!((&said["method"], &said["params"]["level"]), (&"$/log".into(), &"warning".into()), "{said}");
    assert!(said["params"]["message"].as_str().unwrap().starts_with("waiting for 'stead apply"), "{said}");
    assert_eq!(answer["result"]["after"]["content"], "one", "{answer}");
}
