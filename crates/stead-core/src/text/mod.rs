//! Text with places: sources, spans, and the tree that YAML and JSON are read into.

mod anchors;
mod block;
mod build;
pub mod codes;
mod flow;
mod locate;
pub mod node;
mod read;
mod scalar;
pub mod source;
mod syntax;

pub(crate) use build::shown;
pub use locate::locate;
pub(crate) use locate::locate_in;
pub use node::{Entry, Kind, Node};
pub use read::{Limits, read};
pub use source::{Source, SourceId, Sources, Span, Spanned};
