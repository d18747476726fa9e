//! Requests about many machines.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stead_hosts::{Rule, UserName};

use crate::terminal::Output;

/// `hosts`
#[derive(Debug)]
pub(crate) struct HostsRequest {
    /// A file, a program that prints one, or standard input for `-`.
    pub(crate) inventory: PathBuf,
    /// The filter that the machines must match.
    pub(crate) filter: Option<String>,
    /// True if the connection to each is tried.
    pub(crate) tries: bool,
    pub(crate) output: Output,
}

/// `artifacts`
#[derive(Debug)]
pub(crate) struct ArtifactsRequest {
    /// The folder of the programs, where it is not one of those where they are installed.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) output: Output,
}

/// `facts`
#[derive(Debug)]
pub(crate) struct FactsRequest {
    /// One fact; all without it.
    pub(crate) path: Option<String>,
    pub(crate) output: Output,
    /// The machines that it is about, where it is not this one.
    pub(crate) fleet: Option<FleetRequest>,
}

/// The machines that a command is for, and how many at once.
#[derive(Debug)]
pub(crate) struct FleetRequest {
    /// Names: of the inventory, where there is one.
    pub(crate) names: Vec<String>,
    /// A file, a program that prints one, or standard input for `-`.
    pub(crate) inventory: Option<PathBuf>,
    /// The filter that machines of the inventory must match.
    pub(crate) filter: Option<String>,
    /// Who logs in, where that is stated for all.
    pub(crate) user: Option<UserName>,
    pub(crate) elevation: Elevation,
    pub(crate) rule: Rule,
    /// The folder of the programs that are sent.
    pub(crate) artifacts: Option<PathBuf>,
    /// How long one program may take there.
    pub(crate) deadline: Option<Duration>,
}

impl FleetRequest {
    /// The machines of a plan, so many at once as usual.
    pub(crate) fn of_plan(deadline: Option<Duration>) -> Self {
        let (names, inventory, filter, user, artifacts) = (Vec::new(), None, None, None, None);
        let rule = Rule { at_once: AT_ONCE, halt_after: None };
        Self { names, inventory, filter, user, elevation: Elevation::None, rule, artifacts, deadline }
    }

    /// Returns whether it names no machine, as is enough for a plan of many.
    pub(crate) fn is_of_nobody(&self) -> bool {
        self.names.is_empty() && self.inventory.is_none()
    }

    /// The same with the rights that a plan was made with; `None` where it was made with fewer than are asked for.
    pub(crate) fn elevated(mut self, of_plan: Elevation) -> Option<Self> {
        match (self.elevation, of_plan) {
            (Elevation::None, _) => self.elevation = of_plan,
            (_, Elevation::None) => return None,
            _ => {}
        }
        Some(self)
    }
}

/// How many machines are worked on at once, unless that is stated.
pub(crate) const AT_ONCE: NonZeroUsize = match NonZeroUsize::new(25) {
    Some(usual) => usual,
    None => NonZeroUsize::MIN,
};

/// How the account there gets the rights of root.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Elevation {
    /// It does not.
    None,
    /// By sudo, which asks for nothing.
    Sudo,
    /// By sudo, and with a password where sudo asks for one.
    SudoWithPassword,
}
