//! `hosts`, and the options of commands that are for many machines.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use stead_hosts::{Rule, UserName};

use super::values::{at_least_one, seconds};
use crate::request::{AT_ONCE, ArtifactsRequest, Elevation, FleetRequest, HostsRequest};
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

#[derive(Debug, Args)]
pub(crate) struct Artifacts {
    /// The folder with programs of stead [default: those where they are installed]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

impl From<Artifacts> for ArtifactsRequest {
    fn from(Artifacts { folder, output }: Artifacts) -> Self {
        Self { folder, output }
    }
}

/// The options for machines other than this one.
#[derive(Debug, Args)]
#[command(next_help_heading = "Many machines")]
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
    /// Log in as this user, whatever the inventory says
    #[arg(long, value_name = "NAME", value_parser = user)]
    user: Option<UserName>,
    /// Work as root there, by sudo
    #[arg(long)]
    sudo: bool,
    /// Ask once for the password that sudo wants on all machines; without a terminal it is the first line of standard input
    #[arg(long)]
    ask_sudo_password: bool,
    /// How many machines are worked on at once [default: 25]
    #[arg(long, value_name = "COUNT", value_parser = at_least_one)]
    at_once: Option<NonZeroUsize>,
    /// Begin no other machine after so many failures
    #[arg(long, value_name = "COUNT", value_parser = at_least_one)]
    halt_after: Option<NonZeroUsize>,
    /// Send the programs of this folder to machines that have no stead of this version
    #[arg(long, value_name = "FOLDER")]
    artifacts: Option<PathBuf>,
}

fn user(text: &str) -> Result<UserName, String> {
    UserName::parse(text).map_err(|why| why.to_string())
}

impl Fleet {
    /// The request about other machines, where there is one: of those that are named, or of those of a plan.
    pub(super) fn request(self, deadline: Option<Duration>) -> Option<FleetRequest> {
        let Self {
            host: names,
            hosts: inventory,
            filter,
            user,
            sudo,
            ask_sudo_password,
            at_once,
            halt_after,
            artifacts,
        } = self;
        let rule = Rule { at_once: at_once.unwrap_or(AT_ONCE), halt_after };
        let elevation = match (sudo, ask_sudo_password) {
            (_, true) => Elevation::SudoWithPassword,
            (true, false) => Elevation::Sudo,
            (false, false) => Elevation::None,
        };
        let is_stated = user.is_some() || artifacts.is_some() || elevation != Elevation::None;
        let is_given = !names.is_empty() || inventory.is_some() || is_stated || at_once.or(halt_after).is_some();
        is_given.then_some(FleetRequest { names, inventory, filter, user, elevation, rule, artifacts, deadline })
    }
}

#[derive(Debug, Args)]
pub(crate) struct Remote {
    /// Time limit of one program, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) deadline: Option<Duration>,
}
