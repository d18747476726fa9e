//! A program that stands in for PowerShell: it speaks the protocol of the worker, and what it is asked for says how it
//! behaves. It cannot show what PowerShell does, only what becomes of it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "resources print")]

#[path = "request.rs"]
mod request;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use request::request;
use serde_json::{Value as Json, json};

/// Returns whether this process is started as a worker, by the argument that PowerShell is given last but one.
pub(crate) fn is_asked_for() -> bool {
    std::env::args().any(|argument| argument == "-Command")
}

/// Carries out requests until the socket is closed.
pub(crate) fn main() {
    let socket = UnixStream::connect(std::env::var_os("STEAD_POWERSHELL_ENDPOINT").unwrap()).unwrap();
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
    let mut stand_in = StandIn { socket, script: String::new(), line: String::new(), calls: 0 };
    let home = std::env::var("STEAD_STAND_IN_HOME").unwrap_or_else(|_| "/nowhere".to_owned());
    let hello = json!({ "protocol": 1, "version": "7.6.5", "edition": "Core", "home": home });
    stand_in.send(&json!({ "id": "0", "hello": hello }));
    let Some(Ok(script)) = lines.next() else { return };
    stand_in.script = script;
    while let Some(Ok(line)) = lines.next() {
        stand_in.calls += 1;
        let request = request(&line);
        stand_in.line = line;
        stand_in.call(&request);
    }
}

struct StandIn {
    socket: UnixStream,
    script: String,
    line: String,
    calls: u32,
}

impl StandIn {
    fn send(&mut self, message: &Json) {
        // Whoever asked may be gone.
        let _ = writeln!(self.socket, "{message}");
    }

    fn call(&mut self, request: &Json) {
        let id = request["id"].as_str().unwrap().to_owned();
        // A recorded call, whatever is asked for.
        if let Ok(file) = std::env::var("STEAD_STAND_IN_CASE") {
            return self.replay(&id, &serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap());
        }
        let property = |name: &str| request["properties"][name].as_str().unwrap_or_default().to_owned();
        match request["resource"].as_str().unwrap() {
            "Replay" => return self.replay(&id, &serde_json::from_str(&property("case")).unwrap()),
            "Lines" => return property("lines").lines().for_each(|line| self.send_as(&id, line)),
            "Raw" => return self.send_raw(&id, &property("lines"), property("split").parse().unwrap()),
            "Hang" => std::thread::sleep(Duration::from_hours(1)),
            "Exit" => std::process::exit(4),
            "Abort" => {
                eprintln!("Stack overflow.");
                std::process::abort();
            }
            "Flood" => print_flood(10 << 20),
            "Child" => {
                #[expect(clippy::zombie_processes, reason = "it is left behind")]
                let child = std::process::Command::new("sleep").arg("3600").spawn().unwrap();
                self.output(&id, "Child", &json!({ "pid": child.id() }));
            }
            "Noise" => {
                println!("from standard output");
                eprintln!("from standard error");
            }
            "Garbage" => self.send(&json!({ "id": "17" })),
            "Pid" => self.output(&id, "Pid", &json!({ "pid": std::process::id(), "calls": self.calls })),
            "RebootAndFail" if request["method"] == "Get" => {
                return self.error(&id, &json!({ "id": "E", "message": "no" }));
            }
            "Kept" if request["method"] == "Export" => {
                for name in ["a", "b"] {
                    self.output(&id, "Kept", &json!({ "Name": name }));
                }
            }
            "Kept" if request["method"] == "Delete" => self.record(&id, "verbose", "it was removed"),
            "WouldSet" => self.output(&id, "System.String", &json!(format!("would set {}", property("Password")))),
            "Seen" => {
                let seen = [std::fs::read("/proc/self/cmdline").unwrap(), std::fs::read("/proc/self/environ").unwrap()];
                let seen = seen.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                self.output(&id, "Seen", &json!({ "process": seen, "script": self.script, "line": self.line.len() }));
            }
            "Echo" => {
                println!("{}", property("Password"));
                self.record(&id, "verbose", &format!("the password is {}", property("Password")));
                let message = format!("{} was refused", property("Password"));
                return self.error(&id, &json!({ "id": message, "message": message }));
            }
            _ => {}
        }
        if request["method"] == "Test" {
            self.output(&id, "System.Boolean", &json!(false));
        }
        self.done(&id, true, request["resource"].as_str().unwrap().starts_with("Reboot"));
    }

    /// A line of which the id is that of the call.
    fn send_as(&mut self, id: &str, line: &str) {
        let mut message: Json = serde_json::from_str(line).unwrap();
        message["id"] = json!(id);
        self.send(&message);
    }

    /// Lines in which `ID` stands for the call, in pieces of so many bytes.
    fn send_raw(&mut self, id: &str, lines: &str, split: usize) {
        for piece in lines.replace("ID", id).as_bytes().chunks(split) {
            // Whoever asked may be gone.
            if self.socket.write_all(piece).is_err() {
                return;
            }
        }
    }

    fn output(&mut self, id: &str, ty: &str, output: &Json) {
        self.send(&json!({ "id": id, "type": ty, "output": output }));
    }

    fn record(&mut self, id: &str, stream: &str, message: &str) {
        self.send(&json!({ "id": id, "stream": stream, "message": message }));
    }

    fn error(&mut self, id: &str, error: &Json) {
        self.send(&json!({ "id": id, "error": error }));
    }

    fn done(&mut self, id: &str, ended: bool, reboot: bool) {
        self.send(&json!({ "id": id, "done": { "ended": ended, "reboot": reboot } }));
    }

    /// Sends the messages of a worker for a recorded call.
    fn replay(&mut self, id: &str, case: &Json) {
        if case["noAnswer"] == true || case["state"] == "no answer" {
            print_flood(case["process"]["stderr"]["length"].as_u64().unwrap_or_default());
            std::process::exit(i32::try_from(case["process"]["exit"].as_i64().unwrap_or(1)).unwrap());
        }
        if case["state"] == "Stopped" {
            std::thread::sleep(Duration::from_hours(1));
        }
        if let Some(error) = failure_of(case) {
            return self.error(id, &error);
        }
        for stream in ["verbose", "warning", "debug", "information"] {
            for record in case["streams"][stream].as_array().into_iter().flatten() {
                let text = record.as_str().or(record["text"].as_str()).unwrap_or_default();
                self.record(id, stream, text);
            }
        }
        let outputs = case["result"].as_array().cloned().unwrap_or_else(|| vec![case["result"].clone()]);
        for output in outputs {
            self.output(id, output["t"].as_str().unwrap_or_default(), &plain(&output));
        }
        self.done(id, !leaves_early(case), case["reboot"]["equalsOne"] == true);
    }
}

fn print_flood(bytes: u64) {
    let line = [b"x".repeat(1023), b"\n".to_vec()].concat();
    let mut errors = std::io::stderr().lock();
    (0..bytes.div_ceil(1024)).for_each(|_| errors.write_all(&line).unwrap());
}

/// A recorded value as JSON.
fn plain(node: &Json) -> Json {
    match &node["v"] {
        Json::Object(members) => members.iter().map(|(name, node)| (name.clone(), plain(node))).collect(),
        Json::Array(items) => items.iter().map(plain).collect(),
        value => value.clone(),
    }
}

/// The error that the worker reports of a recorded call: the one that ended it, or else the first one that a change reported
/// and went on from. What a program of the system writes to its standard error is text.
pub(crate) fn failure_of(case: &Json) -> Option<Json> {
    let written = &case["streams"]["error"];
    // All of them, or how many with the first one or the first few.
    let listed = if written["first"].is_null() { written } else { &written["first"] };
    let first = listed.as_array().map_or_else(|| vec![listed.clone()], Clone::clone);
    let is_failure = |error: &Json| match error {
        Json::Object(error) => !error["id"].as_str().unwrap_or_default().starts_with("NativeCommandError"),
        Json::String(_) => true,
        _ => false,
    };
    // What a get or a test reports by Write-Error fails neither.
    let method = case["method"].as_str().unwrap_or_default().to_lowercase();
    let is_read = case["via"] == "api" && ["get", "test"].contains(&method.as_str());
    let is_survived =
        |error: &Json| is_read && error["id"].as_str().is_some_and(|id| id.contains(".WriteErrorException"));
    let reported = first.into_iter().filter(|error| !is_survived(error));
    let error = std::iter::once(case["error"].clone()).chain(reported).find(is_failure)?;
    let error = if let Json::String(text) = &error { json!({ "id": text }) } else { error };
    let is_text = |field: &str| error[field].as_str().map(str::to_owned).unwrap_or_default();
    Some(
        json!({ "id": is_text("id"), "category": is_text("category"), "message": is_text("message"), "during": "call" }),
    )
}

/// Returns whether the recorded call left its script without an error: nothing of that is in the record.
pub(crate) fn leaves_early(case: &Json) -> bool {
    case["properties"]["How"] == "exit" && failure_of(case).is_none() && case["noAnswer"] != true
}
