//! Cases of `corpus/settings`: settings files, what is wrong with them, and what counts of them.

use std::process::{Command, ExitCode};

use stead_core::diag::Diagnostic;
use stead_core::text::{Source, Sources};
use stead_host::facts::Labels;
use stead_host::settings::{Layers, SettingsPlace, Stated, UnusableFile, read_file, read_layer, resolve};
use stead_system::fs::{Trust, User};
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "settings", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    if case.has("policies") {
        let tried = case.section("policies").lines().filter(|line| !line.starts_with("  ")).map(policy);
        return Ok(vec![("policies", tried.collect::<Result<String, String>>()?)]);
    }
    if case.has("labels.yaml") {
        return Ok(labels(case.section("labels.yaml")));
    }
    let text = case.section("settings.json");
    let mut sources = Sources::default();
    let id = sources.add(Source::new("settings.json", text));
    let (layer, findings) = read_layer(id, text, SettingsPlace::Settings);
    let layers = Layers { settings: layer, ..Layers::default() };
    let counts = format!("{:#?}\n", resolve(&layers, &Stated::default()));
    Ok(vec![("findings", shown(&findings, &sources)), ("settings", counts)])
}

fn labels(text: &str) -> Computed {
    let mut sources = Sources::default();
    let id = sources.add(Source::new("labels.yaml", text));
    let (labels, findings) = Labels::read(id, text);
    let taken = labels.iter().map(|(name, label)| format!("{name} {:?} {:?}\n", label.value, label.provenance));
    vec![("findings", shown(&findings, &sources)), ("labels", taken.collect())]
}

fn shown(findings: &[Diagnostic], sources: &Sources) -> String {
    let lines = findings.iter().map(|finding| {
        let help = finding.help.as_ref().map(|help| format!("  help: {help}\n")).unwrap_or_default();
        format!("{}\n{help}", finding.brief(sources))
    });
    lines.collect()
}

/// Returns the policy that a file made by a shell results in. Who owns it is left out: that depends on who runs this.
fn policy(line: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let made = Command::new("/bin/sh").args(["-c", line]).current_dir(folder.path()).status();
    made.map_err(|error| error.to_string())?;
    let path = folder.path().join("policy.json");
    let described = match read_file(&path, SettingsPlace::Policy, Trust::Everyone, User::current()) {
        Ok(layer) => format!("{layer:?}"),
        Err(reason) => UnusableFile { path, place: SettingsPlace::Policy, reason }.describe(),
    };
    let described = described.replace(&folder.path().display().to_string(), "$HERE");
    let lines = described.lines().map(|line| format!("  {line}\n"));
    Ok(format!("{line}\n{}", lines.collect::<String>()))
}
