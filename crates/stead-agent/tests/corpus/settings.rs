//! Settings as text.

use stead_agent::Settings;
use stead_core::source::{Source, Sources};
use stead_testkit::{Case, Computed};

pub(crate) fn run(case: &Case) -> Result<Computed, String> {
    if case.has("set") {
        return Ok(vec![("set", set(case.section("set"))?)]);
    }
    let text = case.section("settings.yaml");
    let mut sources = Sources::default();
    let source = sources.add(Source::new("settings.yaml", text));
    let (settings, findings) = Settings::read(source, text);
    let lines = findings.iter().map(|finding| {
        let help = finding.help.as_ref().map(|help| format!("  help: {help}\n")).unwrap_or_default();
        format!("{}\n{help}", finding.brief(&sources))
    });
    Ok(vec![("findings", lines.collect()), ("differs", changed(&Settings::default(), &settings))])
}

/// Lines `NAME=VALUE`, one after the other, and what each changes.
fn set(lines: &str) -> Result<String, String> {
    let mut settings = Settings::default();
    let mut text = String::new();
    for line in lines.lines().filter(|line| !line.starts_with("  ")) {
        let (name, value) = line.split_once('=').ok_or_else(|| format!("'{line}' is not NAME=VALUE"))?;
        let computed = match settings.with(name, value) {
            Ok(new) => {
                let changed = changed(&settings, &new);
                settings = new;
                changed
            }
            Err(error) => {
                let help = error.help.as_ref().map(|help| format!("help: {help}\n")).unwrap_or_default();
                format!("error: {error}\n{help}")
            }
        };
        text.extend([line, "\n"]);
        text.extend(computed.lines().map(|line| format!("  {line}\n")));
    }
    Ok(text)
}

/// The lines of the settings that are others than before.
fn changed(before: &Settings, after: &Settings) -> String {
    let (before, after) = (before.to_yaml(), after.to_yaml());
    let lines = after.lines().zip(before.lines()).filter(|(after, before)| after != before);
    lines.flat_map(|(after, _)| [after, "\n"]).collect()
}
