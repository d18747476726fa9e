//! The program as others see it: settings files, extensions, schemas, the server, checks of resources, completions, the manual.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod browser;
mod budgets;
mod check;
mod completions;
mod escapes;
mod examples;
mod extensions;
#[path = "../support/forms.rs"]
mod forms;
mod guide;
mod lsp;
mod manual;
mod mcp;
mod new;
mod proxies;
mod report;
mod schemas;
mod secret_kinds;
mod settings;
mod streams;
#[path = "../support/terminal.rs"]
mod terminal;
mod vscode;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A folder with a copy of the program, so that settings files can stand beside it, and nothing else to be found.
struct Place {
    folder: TempDir,
}

/// The answer of the program.
struct Answer {
    exit: i32,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let place = Self { folder };
        fs::hard_link(env!("CARGO_BIN_EXE_stead"), place.program()).unwrap();
        place
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn program(&self) -> PathBuf {
        self.path().join("stead")
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A call of the program that finds no resources but built-in ones and those beside it.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.path())
            .env("STEAD_STATE", self.path().join("state"))
            .env("PATH", "/usr/bin:/bin");
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Answer {
        answer(&mut self.command(arguments))
    }
}

fn answer(command: &mut Command) -> Answer {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Answer { exit: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// docs/decisions/0026: minimal images of containers do not have the shared library.
#[test]
fn the_unwinder_is_in_the_program() {
    let found = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    let path = found.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    if !cfg!(all(target_os = "linux", target_env = "gnu")) || !path.starts_with('/') {
        return stead_testkit::skip("the_unwinder_is_in_the_program", "libgcc_eh.a is not there");
    }
    let program = fs::read(env!("CARGO_BIN_EXE_stead")).expect("the program");
    assert!(!program.windows(11).any(|bytes| bytes == b"libgcc_s.so"));
}
