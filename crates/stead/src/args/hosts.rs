//! `hosts`, and the options of commands that are for many machines.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use stead_hosts::Rule;

use super::values::{at_least_one, seconds};
use crate::request::{FleetRequest, HostsRequest};
use crate::terminal::Output;

#[derive(Debug, Args)]
pub(crate) struct Hosts {
    /// The inventory: YAML, an inventory of Ansible, or a program that prints one; - reads standard input
    #[arg(value_name = "FILE", default_value = "hosts.yaml")]
    inventory: PathBuf,
    /// Only machines that match a filter, such as 'role=web and site!=lab'
    #[arg(long = "where", value_name = "FILTER")]
    filter: Option<String>,
    /// Try the connection to each machine
    #[arg(long)]
    check: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

impl From<Hosts> for HostsRequest {
    fn from(Hosts { inventory, filter, check, output }: Hosts) -> Self {
        Self { inventory, filter, tries: check, output }
    }
}

/// The options for machines other than this one.
#[derive(Debug, Args)]
#[command(next_help_heading = "Many machines", group(ArgGroup::new("machines").args(["host", "hosts"]).multiple(true)))]
pub(super) struct Fleet {
    /// Work on this machine over SSH instead of this one; repeatable
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Work on the machines of an inventory over SSH
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Only machines of the inventory that match a filter, such as 'role=web and site!=lab'
    #[arg(long = "where", value_name = "FILTER", requires = "hosts")]
    filter: Option<String>,
    /// How many machines are worked on at once [default: 25]
    #[arg(long, value_name = "COUNT", value_parser = at_least_one, requires = "machines")]
    at_once: Option<NonZeroUsize>,
    /// Begin no other machine after so many failures
    #[arg(long, value_name = "COUNT", value_parser = at_least_one, requires = "machines")]
    halt_after: Option<NonZeroUsize>,
}

impl Fleet {
    /// The machines, where it is not this one.
    pub(super) fn request(self, deadline: Option<Duration>) -> Option<FleetRequest> {
        const AT_ONCE: NonZeroUsize = match NonZeroUsize::new(25) {
            Some(usual) => usual,
            None => NonZeroUsize::MIN,
        };
        let Self { host: names, hosts: inventory, filter, at_once, halt_after } = self;
        let rule = Rule { at_once: at_once.unwrap_or(AT_ONCE), halt_after };
        (!names.is_empty() || inventory.is_some()).then_some(FleetRequest { names, inventory, filter, rule, deadline })
    }
}

#[derive(Debug, Args)]
pub(crate) struct Remote {
    /// Time limit of one program, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) deadline: Option<Duration>,
}
