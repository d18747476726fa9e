//! A folder that is taken for a machine, with an agent of its own.

#[path = "../support/restart.rs"]
mod restart;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use stead_testkit::until;
use tempfile::TempDir;

/// The machine.
pub(crate) struct Machine {
    folder: TempDir,
    agent: Option<Child>,
    boots: u32,
}

/// The resources of the machine that a process uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) resident_kib: u64,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    /// Children that have ended and were not waited for.
    pub(crate) zombies: usize,
}

/// A resource that exists as a file, and asks for a restart when it is created.
const RESTART: &str = r#"
path=$(sed 's/.*"path":"\([^"]*\)".*/\1/')
case $1 in
get) if test -e "$path"; then exist=true; else exist=false; fi; echo "{\"path\":\"$path\",\"_exist\":$exist}" ;;
set) touch "$path"; echo "{\"path\":\"$path\",\"_exist\":true,\"_restartRequired\":[{\"system\":\"this\"}]}" ;;
esac
"#;

impl Machine {
    pub(crate) fn new() -> Self {
        stead_testkit::let_programs_be_interrupted();
        let folder = TempDir::new().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let mut machine = Self { folder, agent: None, boots: 0 };
        machine.reboot();
        machine.write("restart.sh", RESTART);
        let manifest = restart::manifest(&machine.path("restart.sh").display().to_string());
        machine.write("restart.dsc.resource.json", &manifest.to_string());
        machine
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn fifo(&self, name: &str) {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, self.path(name), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }

    /// Everything below a folder, and itself.
    pub(crate) fn everything(&self, name: &str) -> Vec<PathBuf> {
        fn walk(path: &Path, found: &mut Vec<PathBuf>) {
            found.push(path.to_owned());
            for entry in std::fs::read_dir(path).into_iter().flatten() {
                walk(&entry.unwrap().path(), found);
            }
        }
        let mut found = Vec::new();
        walk(&self.path(name), &mut found);
        found
    }

    /// Another boot of the machine, in order or not.
    pub(crate) fn reboot(&mut self) {
        self.boots += 1;
        self.write("boot_id", &format!("boot {}\n", self.boots));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
        command
            .args(["agent", "--state"])
            .arg(self.path("state"))
            .args(arguments)
            .env("HOME", self.folder.path())
            .env("STEAD_STATE", self.folder.path().join("state"))
            .env("DSC_RESOURCE_PATH", self.folder.path())
            .env_remove("INVOCATION_ID")
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts the agent, and waits until it answers.
    pub(crate) fn start(&mut self) {
        self.start_with(&[]);
    }

    /// Like [`Self::start`], with more arguments.
    pub(crate) fn start_with(&mut self, arguments: &[&str]) {
        let boot_id = self.path("boot_id").display().to_string();
        let command = self.command(&[&["run", "--boot-id", &boot_id], arguments].concat());
        self.start_command(command);
    }

    /// Like [`Self::start`], with variables of the environment.
    pub(crate) fn start_with_variables(&mut self, variables: &[(&str, &str)]) {
        let boot_id = self.path("boot_id").display().to_string();
        let mut command = self.command(&["run", "--boot-id", &boot_id]);
        command.envs(variables.iter().copied());
        self.start_command(command);
    }

    /// Like [`Self::start`], where the id of the machine is that of a file in its folder.
    pub(crate) fn start_with_id(&mut self, name: &str) {
        let agent = self.command(&["run"]);
        let mut command = Command::new("unshare");
        let script = r#"mount --bind "$0" /etc/machine-id && exec "$@""#;
        command.args(["--mount", "sh", "-c", script]).arg(self.path(name)).arg(agent.get_program());
        command.args(agent.get_args()).env("HOME", self.folder.path()).env_remove("NOTIFY_SOCKET");
        self.start_command(command);
    }

    /// Like [`Self::start`], as a service that reports to a socket as that of systemd.
    pub(crate) fn start_reporting_to(&mut self, socket: &Path) {
        let mut command = self.command(&["run"]);
        command.env("NOTIFY_SOCKET", socket);
        self.start_command(command);
    }

    /// Like [`Self::start`], as systemd starts a service.
    pub(crate) fn start_as_service(&mut self) {
        let mut command = self.command(&["run"]);
        command.env("INVOCATION_ID", "1").env_remove("SYSTEMD_EXEC_PID");
        self.start_command(command);
    }

    /// Like [`Self::start`], with the program `stead` in the folder of the machine.
    pub(crate) fn start_program(&mut self) {
        let program = self.path("stead");
        let _ = std::fs::hard_link(env!("CARGO_BIN_EXE_stead"), &program)
            .or_else(|_| std::fs::copy(env!("CARGO_BIN_EXE_stead"), &program).map(drop));
        let mut command = Command::new(program);
        command.args(["agent", "--state"]).arg(self.path("state")).arg("run");
        command.env("HOME", self.folder.path()).env("STEAD_STATE", self.folder.path().join("state"));
        command.env_remove("INVOCATION_ID").env_remove("NOTIFY_SOCKET").stdin(Stdio::null());
        self.start_command(command);
    }

    /// Like [`Self::start`], as another user, whose the folder of the machine is from then on.
    pub(crate) fn start_as_user(&mut self, user: u32) {
        std::fs::copy(env!("CARGO_BIN_EXE_stead"), self.path("stead")).unwrap();
        for path in self.everything(".") {
            std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
        }
        let command = self.as_user(user, &["run"]);
        self.begin(command);
        until(|| self.as_user(user, &["history"]).status().unwrap().success().then_some(()));
    }

    /// A command of another user, who has the program in the folder of the machine.
    pub(crate) fn as_user(&self, user: u32, arguments: &[&str]) -> Command {
        let own = self.command(arguments);
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]);
        command.arg(self.path("stead")).args(own.get_args());
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start_command(&mut self, command: Command) {
        self.begin(command);
        until(|| self.run(&["history"]).status.success().then_some(()));
    }

    fn begin(&mut self, mut command: Command) {
        let log = std::fs::File::create(self.path("agent.log")).unwrap();
        self.agent = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    /// Returns the resources of the machine that the agent uses.
    pub(crate) fn usage(&self) -> Usage {
        let id = self.agent.as_ref().unwrap().id();
        let entries = |name: &str| std::fs::read_dir(format!("/proc/{id}/{name}")).unwrap();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let children = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children")).ok();
        let children: Vec<String> = entries("task").filter_map(|thread| children(thread.unwrap())).collect();
        let is_zombie = |child: &&str| {
            let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
            status.lines().any(|line| line.starts_with("State:") && line.contains('Z'))
        };
        Usage {
            resident_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(),
            descriptors: entries("fd").count(),
            threads: entries("task").count(),
            zombies: children.iter().flat_map(|each| each.split_whitespace()).filter(is_zombie).count(),
        }
    }

    /// The memory of the agent, as far as it can be read.
    pub(crate) fn memory(&self) -> Vec<u8> {
        use std::os::unix::fs::FileExt as _;
        let id = self.agent.as_ref().unwrap().id();
        let memory = std::fs::File::open(format!("/proc/{id}/mem")).unwrap();
        let maps = std::fs::read_to_string(format!("/proc/{id}/maps")).unwrap();
        let ranges = maps.lines().filter(|line| line.contains(" rw"));
        let (mut bytes, zeros) = (Vec::new(), vec![0; 1 << 20]);
        for range in ranges.filter_map(|line| line.split(' ').next()?.split_once('-')) {
            let [mut from, to] = [range.0, range.1].map(|digits| u64::from_str_radix(digits, 16).unwrap());
            while from < to {
                let length = usize::try_from(to - from).unwrap().min(zeros.len());
                let mut part = vec![0; length];
                // Most of what is reserved was never used.
                if memory.read_exact_at(&mut part, from).is_ok() && part != zeros[..length] {
                    bytes.extend(part);
                }
                from += length as u64;
            }
        }
        bytes
    }

    pub(crate) fn kill(&mut self) {
        let mut agent = self.agent.take().unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
    }

    /// A command that goes on while others are run.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Asks the agent to end, and does not wait for that.
    pub(crate) fn ask_to_end(&self) {
        kill_process(Pid::from_child(self.agent.as_ref().unwrap()), Signal::TERM).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.agent.as_ref().unwrap()), signal).unwrap();
    }

    /// Limits the size of files that the agent can write, as a full disk does.
    pub(crate) fn limit_files(&self, bytes: Option<u64>) {
        let limit = rustix::process::Rlimit { current: bytes, maximum: None };
        let agent = Pid::from_child(self.agent.as_ref().unwrap());
        rustix::process::prlimit(Some(agent), rustix::process::Resource::Fsize, limit).unwrap();
    }

    /// The id of the agent.
    pub(crate) fn process(&self) -> u32 {
        self.agent.as_ref().unwrap().id()
    }

    /// Returns whether the agent has ended, also where one of its threads is still held by who traces it.
    pub(crate) fn has_ended(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process())).unwrap_or_default();
        !status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
    }

    /// How the agent ended, once it has.
    pub(crate) fn ended(&mut self) -> std::process::ExitStatus {
        self.agent.take().unwrap().wait().unwrap()
    }

    /// Ends the agent in order.
    pub(crate) fn stop(&mut self) {
        let mut agent = self.agent.take().unwrap();
        kill_process(Pid::from_child(&agent), Signal::TERM).unwrap();
        assert!(agent.wait().unwrap().success(), "{:?}", self.read("agent.log"));
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let log = self.run(&["logs", "-n", "100"]);
        let context = || {
            let texts =
                [&output.stdout, &output.stderr, &log.stdout].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            format!("{arguments:?}: {}", texts.join("\n"))
        };
        assert!(output.status.success(), "{}", context());
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Json {
        serde_json::from_str(&self.ok(&[arguments, &["--output", "json"]].concat())).unwrap()
    }

    pub(crate) fn set(&self, one: &str, other: &str) {
        self.ok(&["settings", "set", one, other]);
    }

    pub(crate) fn deliver(&self, name: &str, resources: &Json) {
        self.deliver_with(name, &json!({}), resources);
    }

    pub(crate) fn deliver_with(&self, name: &str, directives: &Json, resources: &Json) {
        let output = self.try_deliver(name, directives, resources);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn try_deliver(&self, name: &str, directives: &Json, resources: &Json) -> Output {
        let file = format!("{name}.dsc.json");
        self.write(&file, &json!({"directives": directives, "resources": resources}).to_string());
        self.run(&["apply", &self.path(&file).display().to_string()])
    }

    /// Waits until nothing more happens by itself; `code` is how `wait` ends.
    pub(crate) fn wait(&self, code: i32) {
        let output = self.run(&["wait", "--timeout", "300", "--until-converged"]);
        let log = self.run(&["logs", "-n", "100"]).stdout;
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&log));
    }

    pub(crate) fn status(&self) -> Json {
        self.status_and_code().0
    }

    /// Where things stand, and the exit code that says it in short.
    pub(crate) fn status_and_code(&self) -> (Json, Option<i32>) {
        let output = self.run(&["status", "--output", "json"]);
        (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
    }

    /// The known problems of the document of a stage: kinds, instances and messages.
    pub(crate) fn troubles(&self, stage: &str) -> Vec<String> {
        let status = self.status();
        let stages = status["Stages"].as_array().unwrap();
        let found = stages.iter().find(|each| each["Stage"] == stage);
        let troubles = found.into_iter().flat_map(|found| found["Troubles"].as_array().unwrap());
        let text = |each: &Json, name: &str| each[name].as_str().unwrap().to_owned();
        troubles.map(|it| ["kind", "instance", "message"].map(|name| text(it, name)).join(" ")).collect()
    }

    /// How many jobs the agent has ended since it began.
    pub(crate) fn jobs(&self) -> u64 {
        let output = self.run(&["wait", "--timeout", "1", "--output", "json"]);
        let answer: Json = serde_json::from_slice(&output.stdout).unwrap();
        answer["jobs"].as_u64().unwrap()
    }

    /// The program with other arguments, on the same machine.
    pub(crate) fn program(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
        command.args(arguments).env("HOME", self.folder.path()).env("STEAD_STATE", self.folder.path().join("state"));
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// The generation of a stage.
    pub(crate) fn stage(&self, stage: &str) -> Option<u64> {
        let history = self.json(&["history"]);
        let all = history["generations"].as_array().unwrap();
        all.iter().find(|each| each["stage"] == stage).and_then(|each| each["generation"].as_u64())
    }

    /// How many lines of the log are about an event, and an instance if one is named.
    pub(crate) fn count(&self, event: &str, instance: &str) -> usize {
        let log = self.read("state/log.jsonl").unwrap_or_default();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok());
        let is_it = |line: &Json| line["event"] == event && (instance.is_empty() || line["instance"] == instance);
        lines.filter(is_it).count()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}
