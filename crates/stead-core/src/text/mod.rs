//! Text with places: sources, spans, and the tree that YAML and JSON are read into.

mod anchors;
mod block;
mod build;
mod characters;
pub use crate::diag::codes::text as codes;
mod flow;
mod foreign_tags;
mod form;
mod format;
mod keys;
mod limits;
mod locate;
pub mod node;
mod read;
mod scalar;
mod syntax;
mod tabs;
mod takes;
mod unquoted;

pub use crate::source::{Source, SourceId, Sources, Span, Spanned};
pub(crate) use build::shown;
pub use foreign_tags::is_of_ansible_vault;
pub(crate) use foreign_tags::mentions_ansible_vault;
pub use form::Form;
pub use format::{FormatError, Formatted, format};
pub use limits::{Limits, json_values};
pub use locate::locate;
pub(crate) use locate::locate_in;
pub use node::{Entry, Kind, Leaf, Never, Node};
pub use read::read;
pub(crate) use read::read_taking;
pub(crate) use takes::Takes;
