//! Resources of PowerShell through the program, on PowerShell itself: what root trusts, what is left, and whose code runs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod leaving;
mod logging;
mod module;
mod siblings;
mod trust;
mod undo;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;
use tempfile::TempDir;

/// A folder with modules, and the program with PowerShell on its path.
struct Place {
    folder: TempDir,
    pwsh: PathBuf,
}

impl Place {
    /// `None` without PowerShell, and where this is not root.
    fn new(test: &str) -> Option<Self> {
        let pwsh = stead_testkit::powershell(test)?;
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        stead_testkit::is_root(test).then_some(Self { folder, pwsh })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A module of one class below `modules`, whose Get does this; its result is `Seen`.
    fn class(&self, module: &str, get: &str) {
        self.module(module, &format!("modules/{module}"), "1.0.0", "", get);
    }

    /// A module in a folder, with some text before its class.
    fn module(&self, module: &str, folder: &str, version: &str, before: &str, get: &str) {
        let class = format!(
            "{before}\n[DscResource()] class {module} {{\n[DscProperty(Key)] [string] $Name\n[DscProperty()] [string] $Seen\n\
             [DscProperty()] [pscredential] $Login\n[{module}] Get() {{ {get}\nreturn $this }}\n[bool] Test() {{ return $true }}\n\
             [void] Set() {{ }} }}\n"
        );
        self.write(&format!("{folder}/{module}.psm1"), &class);
        let manifest = format!(
            "@{{ RootModule = '{module}.psm1'; ModuleVersion = '{version}'; DscResourcesToExport = '{module}' }}\n"
        );
        self.write(&format!("{folder}/{module}.psd1"), &manifest);
    }

    fn path_variable(&self) -> String {
        format!("{}:/usr/bin:/bin", self.pwsh.parent().unwrap().display())
    }

    fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
        command.args(arguments).env_clear().stdin(Stdio::null()).current_dir(self.folder.path());
        let own = ["HOME", "XDG_CACHE_HOME"].map(|name| (name, self.path("home")));
        fs::create_dir_all(self.path("home")).unwrap();
        command.envs(own).env("STEAD_STATE", self.path("state")).env("PATH", self.path_variable());
        command.env("PSModulePath", self.path("modules"));
        command
    }

    /// Returns the text that an instance of a resource sees in Get.
    fn seen(&self, resource: &str, name: &str, set: impl FnOnce(&mut Command)) -> String {
        let property = format!("Name={name}");
        let mut command = self.command(&["invoke", resource, "--method", "get", "--property", &property]);
        set(&mut command);
        let output = command.output().unwrap();
        let state: Json = serde_json::from_str(&printed(&output)).unwrap_or_default();
        assert!(state["Seen"].is_string(), "{output:?}");
        state["Seen"].as_str().unwrap().to_owned()
    }
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns whether a process is there that has not ended.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// What PowerShell compiles is written there, by a path that is a pattern to it.
#[test]
fn temporary_files_can_be_in_a_folder_of_any_name() {
    let Some(place) = Place::new("temporary_files_can_be_in_a_folder_of_any_name") else { return };
    place.class("Any", "$this.Seen = [IO.Path]::GetTempPath()");
    for name in ["[a", "[b]", "c*?"] {
        let folder = tempfile::Builder::new().prefix(name).tempdir_in("/run").unwrap();
        let _ = fs::remove_dir_all(place.path("home"));
        let seen = place.seen("Any/Any", "n", |command| {
            command.env("TMPDIR", folder.path());
        });
        assert!(seen.starts_with(folder.path().to_str().unwrap()), "{seen}");
    }
}
