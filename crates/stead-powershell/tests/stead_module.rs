//! The PowerShell module `Stead` of this repository, as this program reads it, and on PowerShell where there is one.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use stead_host::fs::Trust;
use stead_host::process::Environment;
use stead_powershell::class::File;
use stead_powershell::module::{Disk, Modules};

const EXPORTED: [&str; 2] = ["Get-DscResource", "Invoke-DscResource"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../powershell").canonicalize().unwrap()
}

#[test]
fn its_manifest_is_valid_and_its_script_parses() {
    let (files, directories) = (Disk::new(Trust::Everyone), [folder()]);
    let modules = Modules { files: &files, environment: &|_| None, directories: &directories };
    let (found, unreadable) = modules.read();
    let [module] = found.as_slice() else { panic!("{} modules", found.len()) };
    assert!(unreadable.is_empty());
    assert_eq!(module.findings, Vec::new());
    assert_eq!(module.manifest.as_ref().and_then(|manifest| manifest.root.as_deref()), Some("Stead.psm1"));
}

#[test]
fn what_it_exports_is_defined() {
    let folder = folder().join("Stead");
    let script = folder.join("Stead.psm1");
    let file = File::read(Arc::new(script.clone()), &std::fs::read(script).unwrap());
    assert_eq!(file.script.problems, Vec::new());
    let manifest = std::fs::read_to_string(folder.join("Stead.psd1")).unwrap();
    for name in EXPORTED {
        assert!(file.script.functions.iter().any(|function| function.name == name), "{name} is not defined");
        assert!(manifest.contains(&format!("'{name}'")), "{name} is not exported");
    }
}

#[test]
fn it_is_imported_on_real_powershell() {
    let Some(pwsh) = Environment::of_this_process(&[]).find_on_path("pwsh") else {
        eprintln!("skipped: it_is_imported_on_real_powershell needs 'pwsh' in PATH");
        return;
    };
    let command = "Import-Module -Name $env:STEAD_MODULE -ErrorAction Stop
        (Get-Command -Module Stead | Sort-Object Name).Name -join ','
        try { Invoke-DscResource -Name NoSuch -Method Test -Property @{ A = 1 } } catch { $_.FullyQualifiedErrorId }";
    let stand_in = tempfile::tempdir().unwrap();
    let program = stand_in.path().join("stead");
    let answer = "#!/bin/sh\ncat >/dev/null\n\
        echo \"error[Microsoft.PowerShell.Commands.WriteErrorException,CheckResourceFound]: there is no resource 'NoSuch'\" >&2\n\
        exit 3\n";
    std::fs::write(&program, answer).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = Command::new(pwsh)
        .args(["-NoLogo", "-NoProfile", "-NonInteractive", "-Command", command])
        .env("STEAD_MODULE", folder().join("Stead/Stead.psd1"))
        .env("STEAD", &program)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = "Get-DscResource,Invoke-DscResource\n\
        Microsoft.PowerShell.Commands.WriteErrorException,CheckResourceFound\n";
    assert_eq!(text.replace('\r', ""), expected, "{}", String::from_utf8_lossy(&output.stderr));
}
