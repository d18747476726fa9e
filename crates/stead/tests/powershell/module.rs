//! The module `Stead`: its own suite, on PowerShell with Pester.

use std::process::Command;

/// The suite is `powershell/tests`; this runs it with the program that was built.
#[test]
fn the_module_does_what_its_suite_says() {
    let Some(pwsh) = stead_testkit::powershell("the_module_does_what_its_suite_says") else { return };
    let pester = "if (-not (Get-Module -ListAvailable Pester | Where-Object Version -ge '5.0')) { exit 99 }";
    let there = Command::new(&pwsh).args(["-NoLogo", "-NoProfile", "-NonInteractive", "-Command", pester]).status();
    if there.unwrap().code() == Some(99) {
        stead_testkit::skip("the_module_does_what_its_suite_says", "Pester 5 is not there");
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let suite = stead_testkit::repository().join("powershell/tests/Stead.Tests.ps1").canonicalize().unwrap();
    let command = "$run = Invoke-Pester -Path $env:STEAD_SUITE -Output Detailed -PassThru
        if ($run.FailedCount -or $run.SkippedCount -or $run.PassedCount -lt 50) { exit 1 }";
    let output = Command::new(&pwsh)
        .args(["-NoLogo", "-NoProfile", "-NonInteractive", "-Command", command])
        .env("STEAD_SUITE", suite)
        .env("STEAD", env!("CARGO_BIN_EXE_stead"))
        .env("STEAD_STATE", folder.path().join("state"))
        .env("HOME", folder.path())
        .env("PATH", std::env::join_paths([pwsh.parent().unwrap(), "/usr/bin".as_ref(), "/bin".as_ref()]).unwrap())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
}
