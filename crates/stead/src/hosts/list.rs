//! `hosts`: the machines of an inventory, and whether each is reached.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use stead_hosts::Machine;
use stead_system::Cancel;

use super::inventory;
use super::ssh::Ssh;
use crate::exit::Exit;
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::HostsRequest;
use crate::terminal::{Output, complain, data_as, print, print_coloured, table, width};

/// Lists the machines of an inventory.
pub(crate) fn list(request: &HostsRequest, env: &ProcessEnv) -> Exit {
    listed(request, env).unwrap_or_else(|exit| exit)
}

fn listed(request: &HostsRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let cancel = Cancel::default();
    interrupt::catch_with(&cancel);
    let machines = inventory::selected(&request.inventory, request.filter.as_deref(), env, &cancel)?;
    let found = if request.tries { Some(connections(&machines, env, &cancel)?) } else { None };
    match request.output {
        Output::Text if machines.is_empty() => print("no machine matches\n"),
        Output::Text => print_coloured(&listing(&machines, found.as_deref())),
        output => {
            let found = found.iter().flatten().map(Some).chain(std::iter::repeat(None));
            let machines: Vec<_> =
                machines.iter().zip(found).map(|(machine, found)| of_machine(machine, found)).collect();
            data_as(&json!({ "version": 1, "machines": machines }), output);
        }
    }
    let is_reached = found.iter().flatten().all(Result::is_ok);
    Ok(interrupt::exit(&cancel, if is_reached { Exit::Success } else { Exit::Failed }))
}

/// The connection to a machine: why there is none.
type Connection = Result<(), String>;

/// Tries the connections, some at once.
fn connections(machines: &[Machine], env: &ProcessEnv, cancel: &Cancel) -> Result<Vec<Connection>, Exit> {
    const AT_ONCE: usize = 25;
    let ssh = Ssh::find(env).map_err(|why| {
        complain(&format!("error: {why}"));
        Exit::Failed
    })?;
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(machines.len()) {
            scope.spawn(|| {
                let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !cancel.is_cancelled());
                while let Some((at, machine)) = take().and_then(|at| Some((at, machines.get(at)?))) {
                    let connection = ssh.try_connection(&machine.destination, cancel);
                    found.lock().unwrap_or_else(PoisonError::into_inner).insert(at, connection);
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let connection = |at: usize| found.remove(&at).unwrap_or_else(|| Err("it was not tried".to_owned()));
    Ok((0..machines.len()).map(connection).collect())
}

fn listing(machines: &[Machine], found: Option<&[Connection]>) -> String {
    let mut rows: Vec<Vec<String>> = machines.iter().map(row).collect();
    let mut headings = vec!["Name", "Address", "Labels"];
    if let Some(found) = found {
        headings.push("Connection");
        for (row, connection) in rows.iter_mut().zip(found) {
            row.push(connection.as_ref().map_or_else(Clone::clone, |()| "ok".to_owned()));
        }
    }
    table(&headings, &rows, width(&std::io::stdout()))
}

fn row(machine: &Machine) -> Vec<String> {
    let Machine { name, destination, labels, .. } = machine;
    let user = destination.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
    let port = destination.port.map(|port| format!(" port {port}")).unwrap_or_default();
    let labels: Vec<String> = labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
    vec![name.to_string(), format!("{user}{}{port}", destination.address), labels.join(" ")]
}

/// A machine as data. Of parameters only the names: a value may be a secret.
fn of_machine(machine: &Machine, connection: Option<&Connection>) -> serde_json::Value {
    let Machine { name, destination, labels, parameters } = machine;
    let mut data = json!({
        "name": name.as_str(),
        "address": destination.address.as_str(),
        "user": destination.user.as_ref().map(stead_hosts::UserName::as_str),
        "port": destination.port,
        "labels": labels,
        "parameters": parameters.keys().collect::<Vec<_>>(),
    });
    if let (Some(members), Some(connection)) = (data.as_object_mut(), connection) {
        members.insert("reached".to_owned(), connection.is_ok().into());
        members.extend(connection.as_ref().err().map(|why| ("message".to_owned(), why.as_str().into())));
    }
    data
}
