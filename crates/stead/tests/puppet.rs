//! The Puppet modules: the style of their Ruby, the specs of the support module, and real runs of Puppet with this program as
//! the engine. What is not installed is skipped.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fs;
use std::path::Path;
use std::process::Command;

use stead_testkit::{repository, skip};

/// Returns whether programs are installed; where one is not, the test is reported as skipped.
fn has(test: &str, programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| Command::new(program).arg("--version").output().is_err());
    if let Some(program) = missing {
        skip(test, &format!("{program} is not installed"));
    }
    missing.is_none()
}

fn succeed(command: &mut Command) {
    // Ruby reads texts as the locale says.
    let output = command.env("LC_ALL", "C.UTF-8").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}");
}

/// Runs specs below `puppet/` against the fake engine, and against this program where they ask for an engine.
fn specs(folder: &str, spec: &str) {
    specs_with(folder, spec, None);
}

/// The same with a PowerShell.
fn specs_with(folder: &str, spec: &str, pwsh: Option<&Path>) {
    if !has(spec, &["puppet", "rspec", "puppet-lint", "metadata-json-lint"]) {
        return;
    }
    // The support module refuses an engine in a directory that others may write, where this one was possibly built.
    let private = tempfile::tempdir().unwrap();
    let engine = private.path().join("stead");
    fs::copy(env!("CARGO_BIN_EXE_stead"), &engine).unwrap();
    let folder = repository().join("puppet").join(folder);
    assert!(folder.join(spec).exists(), "{spec} is there");
    let mut rspec = Command::new("rspec");
    rspec.arg(Path::new(".").join(spec)).env("STEAD_TEST_ENGINE", engine).current_dir(folder);
    if let Some(pwsh) = pwsh {
        rspec.env("STEAD_TEST_PWSH", pwsh);
    }
    succeed(&mut rspec);
}

#[test]
fn rubocop_has_no_objection() {
    if has("rubocop_has_no_objection", &["rubocop"]) {
        succeed(Command::new("rubocop").args(["--cache", "false"]).current_dir(repository().join("puppet")));
    }
}

#[test]
fn the_support_module_meets_its_specs() {
    specs("steadlib", "spec");
}

#[test]
fn puppet_manages_resources() {
    specs("tests", "apply_spec.rb");
}

#[test]
fn puppet_manages_all_built_in_resources() {
    specs("tests", "builtins_spec.rb");
}

#[test]
fn puppet_shows_what_happens() {
    specs("tests", "behaviour_spec.rb");
}

#[test]
fn puppet_manages_resources_of_powershell() {
    if let Some(pwsh) = stead_testkit::powershell("puppet_manages_resources_of_powershell") {
        specs_with("tests", "powershell_spec.rb", Some(&pwsh));
    }
}

#[test]
fn the_guide_is_right() {
    let pwsh = stead_testkit::powershell("the_guide_is_right");
    specs_with("tests", "guide_spec.rb", pwsh.as_deref());
}

#[test]
fn puppet_keeps_secrets() {
    specs("tests", "secrets_spec.rb");
}

#[test]
fn modules_are_installed_and_documented() {
    specs("tests", "module_spec.rb");
}

#[test]
fn types_of_puppet_are_resources_of_documents() {
    specs("tests", "adapter_spec.rb");
}
