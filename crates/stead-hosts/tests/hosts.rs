//! Cases of `corpus/hosts`: inventories, and the machines that they come to.

#[path = "../../stead-core/tests/support/brief.rs"]
mod brief;

use std::process::ExitCode;

use stead_core::text::{Source, Sources};
use stead_hosts::{Filter, Inventory, Machine, read};
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "hosts", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    let mut sources = Sources::default();
    let (name, text) = case.files().next().ok_or("the case has no inventory")?;
    let source = sources.add(Source::new(name, text));
    let (inventory, findings) = read(source, &sources);
    let inventory = inventory.unwrap_or_default();
    let mut computed = vec![("findings", brief::findings(&findings, &sources))];
    computed.push(("machines", inventory.machines.iter().map(shown).collect()));
    if case.has("filters") {
        computed.push(("filters", filters(case, &inventory)?));
    }
    Ok(computed)
}

fn shown(machine: &Machine) -> String {
    let Machine { name, destination, labels, parameters } = machine;
    let user = destination.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
    let port = destination.port.map(|port| format!(" port {port}")).unwrap_or_default();
    let labels: String = labels.iter().map(|(label, value)| ["  ", label, "=", value, "\n"].concat()).collect();
    let parameters = parameters.iter().map(|(name, value)| format!("  {name}: {}\n", value.to_redacted_json()));
    format!("{name} at {user}{}{port}\n{labels}{}", destination.address, parameters.collect::<String>())
}

/// Behind each filter, the machines that it means; a line of the section is a filter up to ` -> `.
fn filters(case: &Case, inventory: &Inventory) -> Result<String, String> {
    let lines = case.section("filters").lines().map(|line| {
        let text = line.split(" -> ").next().unwrap_or_default();
        let filter = Filter::parse(text).map_err(|error| format!("{text}: {}", error.message))?;
        let names: Vec<&str> = inventory.select(Some(&filter)).map(|machine| machine.name.as_str()).collect();
        Ok(format!("{text} -> {}\n", names.join(" ")))
    });
    lines.collect()
}
