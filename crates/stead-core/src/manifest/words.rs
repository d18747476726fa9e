//! Words that are both read and printed: each stands here once.

use super::{Capabilities, ResourceKind};

/// The kinds of resources.
pub(super) const KINDS: [(&str, ResourceKind); 5] = [
    ("resource", ResourceKind::Resource),
    ("adapter", ResourceKind::Adapter),
    ("group", ResourceKind::Group),
    ("importer", ResourceKind::Importer),
    ("exporter", ResourceKind::Exporter),
];

/// The former name of the kind `importer`, still read.
pub(super) const IMPORT: (&str, ResourceKind) = ("import", ResourceKind::Importer);

/// Where a capability is kept.
type CapabilityField = fn(&mut Capabilities) -> &mut bool;

/// The capabilities, in the order in which they are listed.
pub(super) const CAPABILITIES: [(&str, CapabilityField); 9] = [
    ("get", |can| &mut can.get),
    ("set", |can| &mut can.set),
    ("setHandlesExist", |can| &mut can.set_handles_exist),
    ("setWhatIf", |can| &mut can.set_what_if),
    ("test", |can| &mut can.test),
    ("delete", |can| &mut can.delete),
    ("deleteWhatIf", |can| &mut can.delete_what_if),
    ("export", |can| &mut can.export),
    ("resolve", |can| &mut can.resolve),
];
