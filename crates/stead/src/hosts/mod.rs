//! Many machines: inventories of them.

mod inventory;

use serde_json::json;
use stead_hosts::Machine;

use crate::exit::Exit;
use crate::process_env::ProcessEnv;
use crate::request::HostsRequest;
use crate::terminal::{Output, data_as, print, print_coloured, table, width};

/// Lists the machines of an inventory.
pub(crate) fn list(request: &HostsRequest, env: &ProcessEnv) -> Exit {
    listed(request, env).unwrap_or_else(|exit| exit)
}

fn listed(request: &HostsRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let machines = inventory::selected(&request.inventory, request.filter.as_deref(), env)?;
    match request.output {
        Output::Text if machines.is_empty() => print("no machine matches\n"),
        Output::Text => {
            let rows: Vec<Vec<String>> = machines.iter().map(row).collect();
            print_coloured(&table(&["Name", "Address", "Labels"], &rows, width(&std::io::stdout())));
        }
        output => {
            let machines: Vec<_> = machines.iter().map(of_machine).collect();
            data_as(&json!({ "version": 1, "machines": machines }), output);
        }
    }
    Ok(Exit::Success)
}

fn row(machine: &Machine) -> Vec<String> {
    let Machine { name, destination, labels, .. } = machine;
    let user = destination.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
    let port = destination.port.map(|port| format!(" port {port}")).unwrap_or_default();
    let labels: Vec<String> = labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
    vec![name.to_string(), format!("{user}{}{port}", destination.address), labels.join(" ")]
}

/// A machine as data. Of parameters only the names: a value may be a secret.
fn of_machine(machine: &Machine) -> serde_json::Value {
    let Machine { name, destination, labels, parameters } = machine;
    json!({
        "name": name.as_str(),
        "address": destination.address.as_str(),
        "user": destination.user.as_ref().map(stead_hosts::UserName::as_str),
        "port": destination.port,
        "labels": labels,
        "parameters": parameters.keys().collect::<Vec<_>>(),
    })
}
