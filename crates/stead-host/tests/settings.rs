//! Settings files, as cases under `corpus/settings`: what is wrong with them, and what counts of them.

use std::process::ExitCode;

use stead_core::text::{Source, Sources};
use stead_host::settings::{Layers, Place, Stated, read_layer, resolve};
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "settings", run }])
}

#[expect(clippy::unnecessary_wraps, reason = "the signature is that of every suite")]
fn run(case: &Case) -> Result<Computed, String> {
    let text = case.section("settings.json");
    let mut sources = Sources::default();
    let id = sources.add(Source::new("settings.json", text));
    let (layer, findings) = read_layer(id, text, Place::Settings);
    let lines = findings.iter().map(|finding| {
        let help = finding.help.as_ref().map(|help| format!("  help: {help}\n")).unwrap_or_default();
        format!("{}\n{help}", finding.brief(&sources))
    });
    let layers = Layers { settings: layer, ..Layers::default() };
    let counts = format!("{:#?}\n", resolve(&layers, &Stated::default()));
    Ok(vec![("findings", lines.collect()), ("settings", counts)])
}
