//! The PowerShell module: calls of a session, beside the empty call through a pipe that each of them needs.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::meter::Sample;

/// Figures by their names: milliseconds, but for `found`.
pub(crate) type Figures = BTreeMap<String, f64>;

/// The program of PowerShell, which is looked for in `PATH`.
pub(crate) const PWSH: &str = "pwsh";

/// The script that measures.
const SCRIPT: &str = include_str!("module.ps1");

/// Measures one session; says why not where there is no PowerShell.
pub(crate) fn session(stead: &Path, folder: &Path, modules: &Path) -> io::Result<Result<Figures, String>> {
    let script = folder.join("module.ps1");
    std::fs::write(&script, SCRIPT)?;
    let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../powershell"));
    let paths = format!("{}:{}", repository.join("tests/modules").display(), modules.display());
    let output = Command::new(PWSH)
        .args(["-NoLogo", "-NoProfile", "-NonInteractive", "-File"])
        .arg(script)
        .arg(repository.join("Stead"))
        .arg(paths)
        .env("STEAD", stead)
        .env("STEAD_STATE", folder.join("STATE"))
        .env("HOME", folder)
        .output();
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Err(format!("no {PWSH} in PATH"))),
        output => output?,
    };
    if !output.status.success() {
        return Ok(Err(String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let figure = |line: &str| line.split_once(' ').and_then(|(name, time)| Some((name.to_owned(), time.parse().ok()?)));
    Ok(Ok(text.lines().filter_map(figure).collect()))
}

/// A time on the clock.
pub(crate) fn wall(milliseconds: f64) -> Sample {
    Sample { wall: Duration::from_secs_f64(milliseconds / 1000.0), ..Sample::default() }
}
