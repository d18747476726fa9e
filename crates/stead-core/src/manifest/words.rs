//! Words that are both read and printed: each stands here once.

use super::{Capabilities, Kind};

/// The kinds of resources.
pub(super) const KINDS: [(&str, Kind); 5] = [
    ("resource", Kind::Resource),
    ("adapter", Kind::Adapter),
    ("group", Kind::Group),
    ("importer", Kind::Importer),
    ("exporter", Kind::Exporter),
];

/// The former name of the kind `importer`, still read.
pub(super) const IMPORT: (&str, Kind) = ("import", Kind::Importer);

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
