//! Text with places: sources, spans, and the tree that YAML and JSON are read into.

pub mod node;
pub mod source;

pub use node::{Entry, Kind, Node};
pub use source::{Source, SourceId, Sources, Span, Spanned};
