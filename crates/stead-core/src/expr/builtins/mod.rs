//! The functions of the language: one table, and a module for each family of them.

mod array;
mod cidr;
pub(super) mod date;
mod declare;
mod encode;
mod format;
pub(super) use format::check_template;
mod logic;
mod number;
mod object;
mod own;
mod table;
mod text;
mod unique;

use super::builtin::Builtin;

pub(super) use table::TABLE;

/// The namespace of the functions that DSC v3 does not have.
pub const NAMESPACE: &str = "stead";

/// Every function of the language, by category and name; at the end those of the [`NAMESPACE`] of stead.
pub fn functions() -> &'static [Builtin] {
    TABLE
}

/// The function of that name.
pub(super) fn find(name: &str) -> Option<&'static Builtin> {
    TABLE.iter().find(|function| function.name == name)
}
