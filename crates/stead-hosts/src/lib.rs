//! Many machines, without any effect: an [`Inventory`] says which there are, a [`Filter`] which of them are meant, and a
//! [`Rollout`] which of those begin.
//!
//! ```text
//! text ──read──▶ Inventory ──select(Filter)──▶ machines
//! ```
//!
//! An inventory is one of stead or one of Ansible; both become the same. A name or an address that a program could take for an
//! option, or a terminal for a command, is not one: see [`MachineName`].

mod ansible;
mod excerpt;
mod filter;
mod finding;
mod inventory;
mod layers;
mod name;
mod program;
mod read;
mod rollout;
mod words;

pub use excerpt::hidden;
pub use filter::{Filter, FilterError};
pub use inventory::{Destination, Inventory, Machine};
pub use layers::{LayerValue, Layered, Merge, ParameterLayers};
pub use name::{Address, BadName, MachineName, UserName};
pub use program::ProgramHeader;
pub use read::read;
pub use rollout::{MachineEnd, Rollout, Rule};
pub use stead_core::diag::codes::hosts as codes;

/// The codes of suspicious values in inventories.
pub mod suspicious {
    stead_core::codes! {
        UNKNOWN_LABEL = "W1206", "a label that no machine has", "\
The filter of a layer names a label that no machine of the inventory has. Such a comparison is false for every machine, so that
the layer counts for none, and with `!=` or `not` for all of them. Most likely the name is misspelt here, or at the machines.";
    }
}
