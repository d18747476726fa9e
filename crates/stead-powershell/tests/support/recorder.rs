//! Records what the worker sends on PowerShell itself: a program between the two that writes the lines down.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::kept::kept;
use serde_json::Value as Json;
use stead_powershell::convert::Wire;
use stead_powershell::worker::{Call, Deadline, Limits, Method, Module, Pool, Records, Settings};
use stead_powershell_reader::resource::DefinitionKind;
use stead_system::Cancel;
use stead_system::process::Environment;
use stead_testkit::Case;

const ENDPOINT: &str = "STEAD_POWERSHELL_ENDPOINT";

/// The version that was recorded: others word their messages differently.
const VERSION: &str = "7.6.9";

/// The PowerShell to record, and the file for its lines.
const PROGRAM: &str = "STEAD_RECORDER_PROGRAM";
const FILE: &str = "STEAD_RECORDER_FILE";

/// Returns whether this process is started as a worker that is to be recorded.
pub(crate) fn is_asked_for() -> bool {
    std::env::var_os(FILE).is_some() && std::env::args().any(|argument| argument == "-Command")
}

/// Starts PowerShell with the same arguments, hands on what both say, and writes down what PowerShell says.
pub(crate) fn main() {
    let [program, file, endpoint] = [PROGRAM, FILE, ENDPOINT].map(|name| std::env::var(name).unwrap());
    let own = format!("{endpoint}-recorded");
    let listener = UnixListener::bind(&own).unwrap();
    let mut command = Command::new(program);
    command.args(std::env::args().skip(1)).env(ENDPOINT, own).env_remove(PROGRAM).env_remove(FILE);
    let mut child = command.spawn().unwrap();
    let (asker, (worker, _)) = (UnixStream::connect(endpoint).unwrap(), listener.accept().unwrap());
    let (mut from, mut to) = (asker.try_clone().unwrap(), worker.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    let (mut written, mut asker) = (std::fs::File::create(file).unwrap(), asker);
    for line in BufReader::new(worker).lines().map_while(Result::ok) {
        writeln!(written, "{line}").unwrap();
        // Whoever asked may be gone.
        let _ = writeln!(asker, "{line}");
    }
    let _ = child.wait();
}

/// The lines that PowerShell answers a call of the `resource` with, without their ids and with `/m` as the folder of the module;
/// `None` where it is not at hand.
pub(crate) fn lines(case: &Case, method: Method) -> Result<Option<String>, String> {
    // A section is known to the harness also where there is no PowerShell.
    let text = case.section("resource");
    let stated = if case.has("properties") { case.section("properties") } else { "{}" };
    let Some(program) = stead_testkit::powershell(&case.name) else { return Ok(None) };
    let folder = tempfile::tempdir().unwrap();
    let [module, file] = ["R.psm1", "lines"].map(|name| folder.path().join(name));
    std::fs::write(&module, text).unwrap();
    let stated: serde_json::Map<String, Json> = serde_json::from_str(stated).map_err(|error| error.to_string())?;
    let wire = |value: &Json| Wire::String(value.as_str().unwrap_or_default().to_owned());
    let properties: Vec<_> = stated.iter().map(|(name, value)| (name.clone(), wire(value))).collect();
    let is_class = text.contains("[DscResource()]");
    let call = Call {
        kind: if is_class { DefinitionKind::Class } else { DefinitionKind::Script },
        module: Module { path: &module, stamp: "" },
        resource: "R",
        method,
        properties: &properties,
        records: Records::Debug,
        progress: None,
        directory: Path::new("/"),
        root: Path::new("/"),
    };
    carry_out(&call, program, &file);
    let folder = folder.path().to_string_lossy().into_owned();
    let answered = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let mut lines = answered.lines();
    let hello: Json = serde_json::from_str(lines.next().unwrap_or_default()).map_err(|error| error.to_string())?;
    if hello["hello"]["version"] != VERSION {
        stead_testkit::skip(&case.name, &format!("PowerShell is not the {VERSION} that was recorded"));
        return Ok(None);
    }
    Ok(Some(lines.map(|line| without_id(&line.replace(&folder, "/m"))).collect()))
}

fn carry_out(call: &Call<'_>, program: PathBuf, file: &Path) {
    // Whoever starts the worker has no other way to hand anything to it.
    let mut environment = Environment::of_this_process(&[]);
    environment.set(PROGRAM, program);
    environment.set(FILE, file);
    let pool = Pool::new(kept(Settings::new(std::env::current_exe().unwrap(), environment, 1)));
    let (cancel, deadline) = (Cancel::default(), Deadline::after(Duration::from_mins(1)));
    let limits = Limits { deadline, output: 1 << 20, cancel: &cancel, inherited: &[], to_come: 0 };
    // What it comes to is judged by the lines.
    let _ = pool.call(call, &limits, &mut |_| {});
}

/// Without what changes with the worker's own text: the id, and where in it a call was made.
fn without_id(line: &str) -> String {
    let mut message: serde_json::Map<String, Json> = serde_json::from_str(line).unwrap();
    message.shift_remove("id");
    if let Some(Json::String(stack)) = message.get_mut("error").and_then(|error| error.get_mut("stack")) {
        let frames = stack.lines().filter(|frame| !frame.contains("<No file>"));
        *stack = frames.collect::<Vec<_>>().join("\n");
    }
    serde_json::to_string(&message).unwrap() + "\n"
}
