//! `hosts`: inventories of machines.

use std::path::PathBuf;

use clap::Args;

use crate::request::HostsRequest;
use crate::terminal::Output;

#[derive(Debug, Args)]
pub(crate) struct Hosts {
    /// The inventory: YAML, an inventory of Ansible, or a program that prints one; - reads standard input
    #[arg(value_name = "FILE", default_value = "hosts.yaml")]
    inventory: PathBuf,
    /// Only machines that match a filter, such as 'role=web and site!=lab'
    #[arg(long = "where", value_name = "FILTER")]
    filter: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

impl From<Hosts> for HostsRequest {
    fn from(Hosts { inventory, filter, output }: Hosts) -> Self {
        Self { inventory, filter, output }
    }
}
