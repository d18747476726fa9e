//! `stead serve` from the side of its caller: order, cancelling, deadlines, the end of the input.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "serve/invoked.rs"]
mod invoked;
#[path = "serve/secrets.rs"]
mod secrets;

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
