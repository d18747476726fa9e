//! A Debian that boots, restarts and loses its power in milliseconds; see `box.sh`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use stead_testkit::until;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

/// The number that systemd takes for a request to restart in order.
const REBOOT_IN_ORDER: i32 = 5;

/// The machine. It is off until it is booted.
pub(crate) struct Debian {
    folder: PathBuf,
    running: Option<Child>,
    /// How often it was booted.
    pub(crate) boots: usize,
}

impl Debian {
    /// The machine of this folder, which is made if `make` says so. An error says what is missing.
    pub(crate) fn of(folder: &Path, make: bool) -> Result<Self, String> {
        for program in ["debootstrap", "dpkg-deb", "unshare", "nsenter", "setpriv", "ip"] {
            let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
            if !found.is_ok_and(|found| found.status.success()) {
                return Err(format!("there is no {program}"));
            }
        }
        if !fs::read_to_string("/proc/self/mounts").is_ok_and(|mounts| mounts.contains(" cgroup2 ")) {
            return Err("no control groups of version 2 are mounted".to_owned());
        }
        let machine = Self { folder: folder.to_owned(), running: None, boots: 0 };
        if machine.root("").is_dir() {
            return Ok(machine);
        }
        if !make {
            return Err("it needs a Debian, which it makes when STEAD_BOOTS asks for boots".to_owned());
        }
        let output = machine.script("make").output().map_err(|error| error.to_string())?;
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(machine) } else { Err(format!("a Debian cannot be made: {why}")) }
    }

    /// The machine of a test in a folder of its own; `None` where the test is skipped.
    pub(crate) fn of_test(test: &str, folder: &str) -> Option<Self> {
        if !stead_testkit::is_root(test) {
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        let machine = Self::of(&folder, stead_testkit::asked("STEAD_BOOTS").is_some());
        machine.map_err(|why| stead_testkit::skip(test, &why)).ok()
    }

    /// Another machine, like this one as it is now, which must be off.
    pub(crate) fn copy(&self, folder: &Path) -> Self {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).unwrap();
        let status = Command::new("cp").arg("-a").arg(self.root("")).arg(folder.join("root")).status();
        assert!(status.unwrap().success(), "{} cannot be copied", self.folder.display());
        Self { folder: folder.to_owned(), running: None, boots: 0 }
    }

    /// Makes a repository of packages and what they require, /srv/mirror in it. An error says why it cannot.
    pub(crate) fn mirror(&self, packages: &[&str]) -> Result<(), String> {
        self.with_packages("mirror", packages)
    }

    /// Installs packages. An error says why it cannot.
    pub(crate) fn install_packages(&self, packages: &[&str]) -> Result<(), String> {
        self.with_packages("install", packages)
    }

    fn with_packages(&self, action: &str, packages: &[&str]) -> Result<(), String> {
        let output = self.script(action).args(packages).output().map_err(|error| error.to_string())?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    }

    /// A path in it, as it is seen from outside.
    pub(crate) fn root(&self, path: &str) -> PathBuf {
        self.folder.join("root").join(path.trim_start_matches('/'))
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root(path)).ok()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Places a program in it.
    pub(crate) fn install(&self, program: &Path, path: &str) {
        let place = self.root(path);
        let _ = fs::remove_file(&place);
        fs::copy(program, &place).unwrap();
        self.make_executable(path);
    }

    pub(crate) fn make_executable(&self, path: &str) {
        fs::set_permissions(self.root(path), PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// Removes a file or a folder of it.
    pub(crate) fn remove(&self, path: &str) {
        let path = self.root(path);
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }

    /// Makes a network of this name that reaches nothing but what is attached to it.
    pub(crate) fn network(&self, name: &str) -> Output {
        self.script("network").arg(name).output().unwrap()
    }

    /// Connects it, while it is on, to a network, where it has these addresses.
    pub(crate) fn attach(&self, network: &str, addresses: &[String]) {
        let output = self.script("attach").arg(network).args(addresses).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The processor time of everything in it since it was booted.
    pub(crate) fn processor_time(&self) -> Duration {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let groups = mounts.lines().find_map(|line| line.split_once(" cgroup2 ")?.0.split(' ').nth(1)).unwrap();
        let group = format!("stead-box-{}/cpu.stat", self.running.as_ref().unwrap().id());
        let stat = fs::read_to_string(Path::new(groups).join(group)).unwrap();
        let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap();
        Duration::from_micros(usage.parse().unwrap())
    }

    /// How many bytes were sent to it over a network since it was connected.
    pub(crate) fn bytes_sent_to(&self, network: &str) -> u64 {
        let link = format!("v{}", self.init().unwrap().as_raw_nonzero());
        let shown = Command::new("ip").args(["-n", network, "-s", "-j", "link", "show", &link]).output().unwrap();
        let shown: Json = serde_json::from_slice(&shown.stdout).unwrap();
        shown[0]["stats64"]["tx"]["bytes"].as_u64().unwrap()
    }

    /// Removes it; it must be off.
    pub(crate) fn delete(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    fn script(&self, action: &str) -> Command {
        let mut command = Command::new(stead_testkit::repository().join("crates/stead/tests/boots/box.sh"));
        command.arg(action).arg(&self.folder).stdin(Stdio::null());
        command
    }

    /// Boots it. It may be off again at any moment.
    pub(crate) fn boot(&mut self) {
        assert!(!self.is_on(), "it is on already");
        let _ = fs::remove_file(self.folder.join("init"));
        self.running = Some(self.script("boot").spawn().unwrap());
        self.boots += 1;
        until(|| self.init());
    }

    /// Waits until its systemd has started everything.
    pub(crate) fn wait_until_started(&self) {
        until(|| {
            let output = self.run(&["systemctl", "is-system-running"]);
            let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            ["running", "degraded"].contains(&state.as_str()).then_some(())
        });
    }

    fn init(&self) -> Option<Pid> {
        let id = fs::read_to_string(self.folder.join("init")).ok()?;
        Pid::from_raw(id.trim().parse().ok()?)
    }

    /// Returns whether it is on.
    pub(crate) fn is_on(&mut self) -> bool {
        self.running.as_mut().is_some_and(|running| running.try_wait().unwrap().is_none())
    }

    fn wait_until_off(&mut self) {
        until(|| (!self.is_on()).then_some(()));
        self.running = None;
    }

    /// Ends it at once.
    pub(crate) fn cut_power(&mut self) {
        if let Some(init) = self.init().filter(|_| self.is_on()) {
            let _ = kill_process(init, Signal::KILL);
        }
        self.wait_until_off();
    }

    /// Ends it in order.
    pub(crate) fn shut_down(&mut self) {
        if let Some(init) = self.init().filter(|_| self.is_on()) {
            let number = (34 + REBOOT_IN_ORDER).to_string();
            let _ = Command::new("kill").args(["-s", &number, &init.to_string()]).status();
        }
        self.wait_until_off();
    }

    /// Runs a command in it.
    pub(crate) fn run(&self, command: &[&str]) -> Output {
        self.script("run").args(command).output().unwrap()
    }

    /// Runs a command in it that must succeed, and returns what it printed.
    pub(crate) fn ok(&self, command: &[&str]) -> String {
        let output = self.run(command);
        let [printed, complained] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(output.status.success(), "{command:?}: {printed}{complained}");
        printed.into_owned()
    }

    /// Runs a command in it, and returns all that it printed.
    pub(crate) fn run_text(&self, command: &[&str]) -> String {
        let output = self.run(command);
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat()
    }

    /// Returns the output of a command of the agent; `None` while nobody answers.
    pub(crate) fn agent(&self, arguments: &[&str]) -> Option<Json> {
        let output = self.run(&[&["stead", "agent", "--output", "json"], arguments].concat());
        serde_json::from_slice(&output.stdout).ok()
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        if let (Some(mut running), Some(init)) = (self.running.take(), self.init()) {
            let _ = kill_process(init, Signal::KILL);
            let _ = running.wait();
        }
    }
}
