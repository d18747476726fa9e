//! The cases of `corpus/puppet`: schemas in, files out.

mod support;

use serde_json::Value as Json;
use stead_puppet::generate;
use stead_testkit::{Case, Computed, Suite};

fn main() -> std::process::ExitCode {
    stead_testkit::main(&[Suite { folder: "puppet", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    let options = json(case, "options.json")?;
    let resources = support::resources(&json(case, "resources.json")?);
    let module = match generate(&resources, &support::options(&options)) {
        Ok(module) => module,
        Err(error) => return Ok(vec![("error", format!("{error}\n"))]),
    };
    let mut computed = Computed::new();
    if !module.warnings.is_empty() {
        let warnings: Vec<_> = module.warnings.iter().map(ToString::to_string).collect();
        computed.push(("warnings", warnings.join("\n") + "\n"));
    }
    let mut shown = support::texts(&options, "show");
    if shown.is_empty() {
        shown.push("lib/puppet/type/".to_owned());
    }
    for (path, content) in module.files {
        if shown.iter().any(|start| path.starts_with(start)) {
            let text = String::from_utf8(content).map_err(|error| error.to_string())?;
            computed.push((path.leak(), text));
        }
    }
    Ok(computed)
}

fn json(case: &Case, section: &str) -> Result<Json, String> {
    let text = case.section(section);
    if text.trim().is_empty() { Ok(Json::Null) } else { serde_json::from_str(text).map_err(|error| error.to_string()) }
}
