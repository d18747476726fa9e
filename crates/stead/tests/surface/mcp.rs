//! The Model Context Protocol over a real pipe, and the conversations of `corpus/mcp`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value as Json, json};
use stead_testkit::{Case, Suite};

use super::Place;

/// A caller of the server.
struct Caller {
    place: Place,
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    calls: u64,
}

impl Caller {
    fn new() -> Self {
        Self::with(Place::new())
    }

    fn with(place: Place) -> Self {
        let resources = stead_testkit::repository().join("corpus/compat/extensions");
        Self::starting(place, &resources)
    }

    fn starting(place: Place, resources: &std::path::Path) -> Self {
        let mut command = place.command(&["server"]);
        command.env("DSC_RESOURCE_PATH", resources).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut caller = Self { place, child, to, from, calls: 0 };
        let capabilities = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
        let about = caller.ask("initialize", &capabilities);
        assert_eq!(about["result"]["serverInfo"]["name"], "stead", "{about}");
        caller.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        caller
    }

    fn send(&mut self, message: &Json) {
        writeln!(self.to.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, parameters: &Json) -> Json {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        let answer: Json = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn call(&mut self, tool: &str, arguments: &Json) -> Json {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// The structured content of a call that succeeds.
    fn result(&mut self, tool: &str, arguments: &Json) -> Json {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["result"]["isError"], false, "{tool}: {answer}");
        let content = answer["result"]["structuredContent"].clone();
        let text: Json = serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, content, "the text is for callers that cannot read structured content");
        content
    }

    /// Returns the error of a call that fails.
    fn failure(&mut self, tool: &str, arguments: &Json) -> String {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["result"]["isError"], true, "{tool}: {answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Returns the error of the protocol that a call has, with its code.
    fn refusal(&mut self, tool: &str, arguments: &Json) -> (i64, String) {
        let answer = self.call(tool, arguments);
        let error = answer["error"].to_string();
        (answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{tool}: {answer}")), error)
    }

    /// Goes, and says how the server took it.
    fn leave(mut self) -> Option<i32> {
        self.to = None;
        self.child.wait().unwrap().code()
    }
}

#[test]
fn conversations_go_as_recorded() {
    stead_testkit::check_all(&Suite { folder: "mcp", run: |case| Ok(vec![("answers", conversation(case))]) });
}

/// Sends the lines of a case, each request once the one before it is answered.
fn conversation(case: &Case) -> String {
    let place = Place::new();
    let mut child = place.command(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut lines = from.lines();
    let mut answers = Vec::new();
    for line in case.section("conversation").lines() {
        writeln!(to, "{line}").unwrap();
        let sent: Json = serde_json::from_str(line).unwrap_or_default();
        let is_request = sent["method"].is_string() && (sent["id"].is_string() || sent["id"].is_number());
        while is_request && answers.last().is_none_or(|answer: &Json| answer["id"] != sent["id"]) {
            answers.push(serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap());
        }
    }
    drop(to);
    answers.extend(lines.map(|line| serde_json::from_str::<Json>(&line.unwrap()).unwrap()));
    assert_eq!(child.wait().unwrap().code(), Some(0), "the server did not end in order");
    let shown = |mut answer: Json| {
        if let Some(tools) = answer.pointer_mut("/result/tools") {
            *tools = tools.as_array().into_iter().flatten().map(|tool| tool["name"].clone()).collect();
        }
        answer.to_string().replace(env!("CARGO_PKG_VERSION"), "VERSION") + "\n"
    };
    answers.into_iter().map(shown).collect()
}

#[test]
fn tools_are_listed() {
    let mut caller = Caller::new();
    let listed = caller.ask("tools/list", &json!({}));
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str()).collect();
    let expected = [
        "invoke_dsc_config",
        "invoke_dsc_resource",
        "invoke_dsc_expression",
        "invoke_dsc_function",
        "list_dsc_functions",
        "list_dsc_resources",
        "show_dsc_resource",
        "show_dsc_schema",
    ];
    assert_eq!(names, expected.map(Some));
    assert_eq!(caller.leave(), Some(0));
}

#[test]
fn documents_are_carried_out() {
    let mut caller = Caller::new();
    let document = "\
        parameters: {text: {type: string}}\n\
        resources: [{name: echo, type: Microsoft.DSC.Debug/Echo, properties: {output: \"[parameters('text')]\"}}]\n";
    let of =
        |operation: &str| json!({ "operation": operation, "configuration": document, "parameters": "text: hello" });
    let got = caller.result("invoke_dsc_config", &of("get"));
    assert_eq!(got["result"]["results"][0]["result"]["actualState"]["output"], "hello");
    let tested = caller.result("invoke_dsc_config", &of("test"));
    assert_eq!(tested["result"]["results"][0]["result"]["inDesiredState"], true);
    assert_eq!(caller.result("invoke_dsc_config", &of("set"))["result"]["hadErrors"], false);
    let exported = caller.result("invoke_dsc_config", &of("export"));
    assert_eq!(exported["result"]["result"]["resources"][0]["properties"]["output"], "hello");
    let (code, wrong) =
        caller.refusal("invoke_dsc_config", &json!({ "operation": "get", "configuration": "resources: 1" }));
    assert!(code == -32600 && wrong.contains("Invalid configuration: <configuration>:1:12"), "{wrong}");
}

/// The answer about 60,000 instances is 37 MB, and is made while it is written.
#[test]
fn a_document_of_many_instances_costs_little() {
    const COUNT: usize = 60_000;
    let mut caller = Caller::new();
    let echo = |number: usize| {
        let properties = json!({ "output": format!("value {number}") });
        json!({ "name": format!("i{number}"), "type": "Microsoft.DSC.Debug/Echo", "properties": properties })
    };
    let nested = json!({ "resources": (0..COUNT).map(echo).collect::<Vec<_>>() });
    let group = json!({ "name": "g", "type": "Microsoft.DSC/Group", "properties": nested });
    let document = json!({ "resources": [group] }).to_string();
    let tested = caller.result("invoke_dsc_config", &json!({ "operation": "test", "configuration": document }));
    let results = tested["result"]["results"][0]["result"].as_array().unwrap();
    let in_state = results.iter().filter(|result| result["result"]["inDesiredState"] == true).count();
    assert_eq!(in_state, COUNT);
    super::budgets::was_below(caller.child.id(), 256, "a document of 60,000 instances");
}

#[test]
fn what_if_changes_nothing_and_set_does() {
    let place = Place::new();
    let file = place.path().join("made");
    let mut caller = Caller::with(place);
    let properties = json!({ "path": file, "content": "text" }).to_string();
    let call = |operation: &str, what_if: bool| json!({ "operation": operation, "resource_type": "Stead/File", "properties_json": properties, "what_if": what_if });
    caller.result("invoke_dsc_resource", &call("set", true));
    let document = json!({ "resources": [{ "name": "f", "type": "Stead/File", "properties": { "path": file } }] });
    let document = json!({ "operation": "set", "configuration": document.to_string(), "what_if": true });
    caller.result("invoke_dsc_config", &document);
    assert!(!file.exists());
    caller.result("invoke_dsc_resource", &call("set", false));
    assert!(file.exists());
    assert_eq!(caller.result("invoke_dsc_resource", &call("delete", false)), json!({ "result": { "success": true } }));
    assert!(!file.exists());
    let misspelled = json!({ "operation": "set", "resource_type": "Stead/File", "whatif": true });
    let refused = caller.call("invoke_dsc_resource", &misspelled);
    assert_eq!(refused["error"]["message"], "there is no argument 'whatif'");
}

#[test]
fn resources_are_called_and_shown() {
    let mut caller = Caller::new();
    let call = |operation: &str, type_name: &str, properties: &str| json!({ "operation": operation, "resource_type": type_name, "properties_json": properties });
    let got = caller.result("invoke_dsc_resource", &call("get", "Microsoft.DSC.Debug/Echo", r#"{"output": 1}"#));
    assert_eq!(got, json!({ "result": { "actualState": { "output": 1 } } }));
    let exported =
        caller.result("invoke_dsc_resource", &json!({ "operation": "export", "resource_type": "Microsoft/OSInfo" }));
    assert_eq!(exported["result"]["actualState"][0]["family"], "Linux");
    let (code, unknown) = caller.refusal("invoke_dsc_resource", &call("get", "Microsoft.DSC.Debug/Ecco", "{}"));
    assert!(code == -32602 && unknown.contains("did you mean 'Microsoft.DSC.Debug/Echo'?"), "{unknown}");
    let invalid = caller.failure("invoke_dsc_resource", &call("get", "Microsoft.DSC.Debug/Echo", "{"));
    assert!(invalid.contains("<properties_json>:1:"), "{invalid}");
    let listed = caller.result("list_dsc_resources", &json!({}));
    let keys: Vec<_> = listed["resources"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["type", "kind", "description"]);
    let (code, unknown) = caller.refusal("list_dsc_resources", &json!({ "adapter": "No/Such" }));
    assert!(code == -32602 && unknown.contains("Adapter not found: No/Such"), "{unknown}");
    let types: Vec<_> = listed["resources"].as_array().unwrap().iter().map(|each| &each["type"]).collect();
    assert!(types.contains(&&json!("Stead/File")) && types.contains(&&json!("Test/DiscoveredOne")), "{types:?}");
    let shown = caller.result("show_dsc_resource", &json!({ "type": "microsoft.dsc.debug/echo" }));
    assert!(shown["schema"]["properties"]["output"].is_object(), "{shown}");
}

#[test]
fn expressions_and_functions_are_evaluated() {
    let mut caller = Caller::new();
    let evaluated = caller.result("invoke_dsc_expression", &json!({ "expression": "[add(1, mul(2, 3))]" }));
    assert_eq!(evaluated, json!({ "result": 7 }));
    let secret = caller.result("invoke_dsc_expression", &json!({ "expression": "[secret('MySecret')]" }));
    assert_eq!(secret, json!({ "result": "<secureValue>" }));
    let call = |name: &str, parameters: Json| json!({ "function": name, "parameters": parameters });
    let joined = caller.result("invoke_dsc_function", &call("concat", json!(["it's", "')] [secret('MySecret"])));
    assert_eq!(joined, json!({ "result": "it's')] [secret('MySecret" }));
    let length = caller.result("invoke_dsc_function", &call("length", json!([[1, "a'b", { "c": null }]])));
    assert_eq!(length, json!({ "result": 3 }));
    let (code, unknown) = caller.refusal("invoke_dsc_function", &call("concta", json!([])));
    assert!(code == -32600 && unknown.contains("did you mean 'concat'?"), "{unknown}");
    let listed = caller.result("list_dsc_functions", &json!({ "function_filter": "base64*" }));
    let names: Vec<_> = listed["functions"].as_array().unwrap().iter().map(|each| &each["name"]).collect();
    assert_eq!(names, [&json!("base64"), &json!("base64ToString")]);
    let both = json!({ "category_filter": ["array", "string"], "function_filter": "f*" });
    assert_eq!(caller.result("list_dsc_functions", &both)["functions"][0]["name"], "first");
    let (code, unknown) = caller.refusal("list_dsc_functions", &json!({ "category_filter": "Text" }));
    assert!(code == -32602 && unknown.contains("Invalid function category 'Text'"), "{unknown}");
}

#[test]
fn schemas_are_shown() {
    let mut caller = Caller::new();
    let shown = caller.result("show_dsc_schema", &json!({ "type": "configuration" }));
    assert_eq!(shown["schema"]["title"], "Configuration");
    let same = caller.result("show_dsc_schema", &json!({ "type": "Configuration" }));
    assert_eq!(same, shown);
    assert!(caller.refusal("show_dsc_schema", &json!({ "type": "x" })).1.contains("resource-manifest"));
    let unknown = caller.call("no_tool", &json!({}));
    assert_eq!(unknown["error"]["message"], "there is no tool 'no_tool'");
}

/// A resource whose `get` takes far longer than any test waits, and says when it has begun.
const SLOW: &str = r#"{"$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json", "type": "Test/Slow",
    "version": "1.0.0", "get": {"executable": "./slow.sh"}, "schema": {"embedded": {}}}"#;

/// A folder with that resource, and the file in which it writes its process.
fn slow() -> (Place, std::path::PathBuf) {
    let place = Place::new();
    place.write("slow.dsc.resource.json", SLOW);
    let begun = place.path().join("begun");
    let script = place.write("slow.sh", &format!("#!/bin/sh\necho $$ > '{}'\nexec sleep 600\n", begun.display()));
    std::fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    (place, begun)
}

/// The process of that resource, once it has begun.
fn process_of(begun: &std::path::Path) -> std::path::PathBuf {
    let written = stead_testkit::until(|| std::fs::read_to_string(begun).ok().filter(|text| text.ends_with('\n')));
    std::path::Path::new("/proc").join(written.trim())
}

#[test]
fn a_call_that_is_cancelled_ends_and_has_no_answer() {
    let (place, begun) = slow();
    let folder = place.path().to_owned();
    let mut caller = Caller::starting(place, &folder);
    let arguments = json!({ "operation": "get", "resource_type": "Test/Slow" });
    let call = json!({ "name": "invoke_dsc_resource", "arguments": arguments });
    caller.send(&json!({ "jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": call }));
    let process = process_of(&begun);
    let cancel = json!({ "requestId": "slow", "reason": "no longer needed" });
    caller.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel }));
    stead_testkit::until(|| (!process.exists()).then_some(()));
    // Its id is free again once it has ended, and the next line that is read is not about it.
    assert_eq!(caller.ask("ping", &json!({}))["result"], json!({}));
    caller.to = None;
    assert_eq!(caller.from.lines().count(), 0);
}

#[test]
fn what_is_under_way_ends_when_the_caller_goes() {
    let (place, begun) = slow();
    let mut command = place.command(&["mcp"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let about =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    writeln!(to, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about })).unwrap();
    writeln!(to, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
    let call =
        json!({ "name": "invoke_dsc_resource", "arguments": { "operation": "get", "resource_type": "Test/Slow" } });
    writeln!(to, "{}", json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call })).unwrap();
    let process = process_of(&begun);
    drop(to);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!process.exists(), "the resource was left behind");
}

/// An instance that acts on a change and failed is due in the next call with the document.
#[test]
fn what_a_call_owes_is_delivered_by_a_later_one() {
    let place = Place::new();
    let (file, allowed, done) = (place.path().join("f"), place.path().join("allowed"), place.path().join("done"));
    let document = json!({"metadata": {"name": "site"}, "resources": [
        {"name": "f", "type": "Stead/File", "properties": {"path": file, "content": "new"}},
        {"name": "acts", "type": "Stead/Command", "directives": {"onChanges": ["Stead/File:f"]},
            "properties": {"set": format!("test -e {} && touch {}", allowed.display(), done.display())}},
    ]});
    let mut caller = Caller::with(place);
    let set = json!({ "operation": "set", "configuration": document.to_string() });
    caller.result("invoke_dsc_config", &set);
    assert!(file.exists() && !done.exists());
    std::fs::write(&allowed, "").unwrap();
    caller.result("invoke_dsc_config", &set);
    assert!(done.exists(), "it was not due");
    assert_eq!(caller.leave(), Some(0));
}

/// A signal ends what is under way in order, and soon.
#[test]
fn a_server_that_is_asked_to_end_ends_its_calls() {
    stead_testkit::let_programs_be_interrupted();
    let mut caller = Caller::new();
    let folder = caller.place.path().to_owned();
    let set = format!(
        "cd '{}'; trap 'touch ended; exit 1' TERM; touch began; while :; do sleep 0.01; done",
        folder.display()
    );
    let command = json!({"name": "c", "type": "Stead/Command", "properties": {"test": "false", "set": set}});
    let document = json!({ "resources": [command] }).to_string();
    caller.send(&json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {
        "name": "invoke_dsc_config", "arguments": { "operation": "set", "configuration": document } } }));
    stead_testkit::until(|| folder.join("began").exists().then_some(()));
    let asked = std::time::Instant::now();
    rustix::process::kill_process(rustix::process::Pid::from_child(&caller.child), rustix::process::Signal::TERM)
        .unwrap();
    assert_eq!(caller.child.wait().unwrap().code(), Some(6));
    let took = asked.elapsed();
    println!("ended after {} ms", took.as_millis());
    assert!(folder.join("ended").exists(), "the program was not asked to end");
    assert!(took < std::time::Duration::from_secs(9), "{took:?}");
}
