//! The machines that a command is for: an inventory is read, or printed by a program, and a filter chooses among them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use stead_core::diag::{Diagnostic, any_error, did_you_mean, nearest};
use stead_core::text::{Source, Sources, Span};
use stead_hosts::{Address, Destination, Filter, Inventory, Machine, MachineName, UserName, codes};
use stead_system::Cancel;
use stead_system::process::{self, Environment, Executable, Limits, Program, is_program};

use crate::exit::Exit;
use crate::input::{self, Text};
use crate::process_env::ProcessEnv;
use crate::request::FleetRequest;
use crate::terminal::{complain, complain_text, show_findings};

/// The machines of an inventory that match a filter. What is wrong has been said.
pub(super) fn selected(
    path: &Path,
    filter: Option<&str>,
    env: &ProcessEnv,
    cancel: &Cancel,
) -> Result<Vec<Machine>, Exit> {
    let mut sources = Sources::default();
    let filter = filter.map(|text| parsed(text, &mut sources)).transpose()?;
    let inventory = load(path, env, &mut sources, cancel)?;
    warn_of_unknown_labels(filter.as_ref(), &inventory);
    Ok(inventory.select(filter.as_ref()).cloned().collect())
}

/// The machines that a command is for: of the inventory those that are named and match, or else those that are named.
pub(super) fn of_fleet(fleet: &FleetRequest, env: &ProcessEnv, cancel: &Cancel) -> Result<Vec<Machine>, Exit> {
    if fleet.is_of_nobody() {
        let help = "name machines with '--host', or an inventory with '--hosts'; a plan of many machines has its own";
        return Err(refused("an option for many machines is stated, and no machine", help));
    }
    let machines = match &fleet.inventory {
        Some(path) => selected(path, fleet.filter.as_deref(), env, cancel)?,
        None => named(&fleet.names, fleet.user.as_ref())?,
    };
    let known = |name: &str| machines.iter().any(|machine| machine.name.as_str() == name);
    if let Some(name) = fleet.names.iter().find(|name| fleet.inventory.is_some() && !known(name)) {
        let near = nearest(name, machines.iter().map(|machine| machine.name.as_str())).map(did_you_mean);
        let help = near.unwrap_or_else(|| "'stead hosts' lists the machines".to_owned());
        return Err(refused(&format!("no selected machine is named '{name}'"), &help));
    }
    let is_named = |machine: &Machine| {
        fleet.inventory.is_none()
            || fleet.names.is_empty()
            || fleet.names.iter().any(|name| machine.name.as_str() == name)
    };
    let mut machines: Vec<Machine> = machines.into_iter().filter(is_named).collect();
    if let (Some(user), true) = (&fleet.user, fleet.inventory.is_some()) {
        for machine in &mut machines {
            machine.destination.user = Some(user.clone());
        }
    }
    if machines.is_empty() {
        return Err(refused("no machine matches", "'stead hosts' lists the machines"));
    }
    Ok(machines)
}

fn refused(message: &str, help: &str) -> Exit {
    complain(&format!("error: {message}"));
    complain(&format!("help: {help}"));
    Exit::Unusable
}

/// The machines of these names, each once. One name is one machine, whoever logs in there.
pub(super) fn named(texts: &[String], usual: Option<&UserName>) -> Result<Vec<Machine>, Exit> {
    let mut machines: Vec<Machine> = Vec::new();
    for text in texts {
        const HELP: &str =
            "names have letters, digits, '.', '_' and '-'; for any other name, add a Host entry to ~/.ssh/config";
        let parts: Vec<&str> = text.split([',', ' ']).filter(|part| !part.is_empty()).collect();
        let are_names = parts.len() > 1 && parts.iter().all(|part| alone(part).is_ok());
        let several = are_names.then(|| format!("write '--host {}'", parts.join(" --host ")));
        let mut machine = alone(text).map_err(|why| refused(&why, several.as_deref().unwrap_or(HELP)))?;
        machine.destination.user = machine.destination.user.or_else(|| usual.cloned());
        match machines.iter().find(|known| known.name == machine.name) {
            None => machines.push(machine),
            Some(known) if known.destination == machine.destination => {}
            Some(_) => {
                let message = format!("'{}' is named with more than one user", machine.name);
                return Err(refused(&message, "name each machine once"));
            }
        }
    }
    Ok(machines)
}

/// A machine of which only the name is stated, or a user and the name.
fn alone(text: &str) -> Result<Machine, String> {
    let (user, address) = text.rsplit_once('@').map_or((None, text), |(user, address)| (Some(user), address));
    let wrong = |why| format!("'{}' is not a name of a machine: {why}", text.escape_debug());
    let user = user.map(UserName::parse).transpose().map_err(wrong)?;
    let name = MachineName::parse(address).map_err(wrong)?;
    let address = Address::parse(address).map_err(wrong)?;
    Ok(Machine::at(name, Destination { address, user, port: None }))
}

fn parsed(text: &str, sources: &mut Sources) -> Result<Filter, Exit> {
    Filter::parse(text).map_err(|error| {
        let source = sources.add(Source::new("<--where>", text));
        let byte = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let span = Span::new(source, byte(error.range.start), byte(error.range.end));
        let finding = Diagnostic::error(&codes::FILTER, span, error.message).with_help(error.help);
        show_findings(&[finding], sources);
        Exit::Unusable
    })
}

/// A label that no machine has is probably one that was mistyped: with `!=` it would be true of all of them.
fn warn_of_unknown_labels(filter: Option<&Filter>, inventory: &Inventory) {
    let known: BTreeSet<&str> =
        inventory.machines.iter().flat_map(|each| each.labels.keys().map(String::as_str)).collect();
    let mut named = BTreeSet::new();
    if let Some(filter) = filter {
        filter.labels(&mut |label| named.extend([label]));
    }
    for label in named.into_iter().filter(|label| *label != "name" && !known.contains(label)) {
        complain(&format!("warning: no machine has the label '{label}'"));
        let labels = || match examples(inventory).as_slice() {
            [] => "no machine has labels: `labels: {role: web}` at a machine gives it one".to_owned(),
            all @ [first, ..] => format!("the labels are {}: write, for example, --where {first}", all.join(", ")),
        };
        complain(&format!("help: {}", inventory.advice_about_label(label).unwrap_or_else(labels)));
    }
    warn_of_unknown_values(filter, inventory);
}

/// The labels with their values, as filters compare them: some of many.
fn examples(inventory: &Inventory) -> Vec<String> {
    const MOST: usize = 8;
    let labels = inventory.machines.iter().flat_map(|machine| &machine.labels);
    // Groups of Ansible are labels that say nothing but that they are there.
    let written = |(name, value): (&String, &String)| match value.as_str() {
        "true" => name.clone(),
        value => format!("{name}={value}"),
    };
    let all: BTreeSet<String> = labels.map(written).collect();
    all.into_iter().take(MOST).collect()
}

/// A value that no machine has is probably mistyped as well, where nothing matches.
fn warn_of_unknown_values(filter: Option<&Filter>, inventory: &Inventory) {
    const MOST: usize = 8;
    let Some(filter) = filter.filter(|filter| inventory.select(Some(filter)).next().is_none()) else { return };
    let mut named = BTreeSet::new();
    filter.labels(&mut |label| named.extend([label]));
    if named
        .iter()
        .all(|label| *label == "name" || inventory.machines.iter().any(|each| each.labels.contains_key(*label)))
    {
        complain(&format!("warning: no machine matches '--where {filter}'"));
    }
    for label in named {
        let values: BTreeSet<&str> = match label {
            "name" => inventory.machines.iter().map(|machine| machine.name.as_str()).collect(),
            label => {
                inventory.machines.iter().filter_map(|machine| machine.labels.get(label)).map(String::as_str).collect()
            }
        };
        if !values.is_empty() {
            let more = if values.len() > MOST { ", …" } else { "" };
            let some: Vec<&str> = values.into_iter().take(MOST).collect();
            complain(&format!("help: the values of '{label}' are {}{more}", some.join(", ")));
        }
    }
}

fn load(path: &Path, env: &ProcessEnv, sources: &mut Sources, cancel: &Cancel) -> Result<Inventory, Exit> {
    let Text { name, text } = if prints(path) {
        printed(path, env, cancel)?
    } else {
        input::read(path).map_err(|error| {
            complain(&format!("error: {error}"));
            let name = path.to_str().filter(|name| !name.contains('/') && MachineName::parse(name).is_ok());
            if let Some(name) = name.filter(|_| !path.exists() && path.extension().is_none()) {
                complain(&format!("help: '--hosts' names an inventory, and '--host {name}' a machine"));
            }
            Exit::Unusable
        })?
    };
    // Passwords stand in inventories.
    let source = sources.add(Source::new(name, text).private());
    let (inventory, findings) = stead_hosts::read(source, sources);
    if let Some(hidden) = stead_hosts::hidden(source, sources, &findings).filter(|_| !findings.is_empty()) {
        sources.show_without(source, hidden);
    }
    show_findings(&findings, sources);
    warn_of_folders(path);
    inventory.filter(|_| !any_error(&findings)).ok_or(Exit::Unusable)
}

/// Returns whether a file is a program that prints an inventory. Where every file may be run, as on disks of other systems,
/// its name says that it is not.
fn prints(path: &Path) -> bool {
    let is_data = |extension| matches!(extension, "yaml" | "yml" | "json" | "ini");
    !input::is_standard(path)
        && !path.extension().and_then(|name| name.to_str()).is_some_and(is_data)
        && is_program(path)
}

/// What a program prints when it is called as Ansible does.
fn printed(path: &Path, env: &ProcessEnv, cancel: &Cancel) -> Result<Text, Exit> {
    let name = path.display().to_string();
    let failed = |why: &dyn std::fmt::Display| {
        complain(&format!("error: cannot read the inventory that '{name}' prints: {why}"));
        Exit::Failed
    };
    let mut environment = Environment::of_this_process(&[]);
    environment.add_of_this_process(&env.environment);
    let absolute = std::path::absolute(path).map_err(|error| failed(&error))?;
    let executable = Executable::open(absolute, &environment).map_err(|refused| failed(&refused.reason()))?;
    let folder = input::current_folder();
    let program = Program {
        executable: &executable,
        arguments: &[OsString::from("--list")],
        directory: &folder,
        environment: &environment,
        variables: &[],
        input: None,
    };
    let limits = Limits { deadline: Duration::from_mins(1), changes: false, ..Limits::default() };
    let finished = process::run(&program, &limits, cancel, &mut |bytes| complain_text(&String::from_utf8_lossy(bytes)));
    let finished = finished.map_err(|error| failed(&error))?;
    if finished.exit != process::Exit::Code(0) {
        return Err(failed(&format!("it ended with {}", finished.exit)));
    }
    let text = String::from_utf8(finished.stdout).map_err(|_| failed(&"it is not UTF-8 text"))?;
    Ok(Text { name: format!("<{name} --list>"), text })
}

/// Ansible reads variables from folders beside an inventory.
fn warn_of_folders(path: &Path) {
    for name in ["group_vars", "host_vars"] {
        if !input::is_standard(path) && input::folder(path).join(name).is_dir() {
            complain(&format!("warning: the folder '{name}' beside the inventory is not read"));
        }
    }
}
