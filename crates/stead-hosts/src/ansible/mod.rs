//! Inventories of Ansible: groups of machines, with variables.

mod groups;
mod ini;
mod tree;

pub(crate) use ini::{is_ini, of_ini};
pub(crate) use tree::{is_tree, of_tree};
