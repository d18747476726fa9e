//! What adapters of PowerShell have among their properties besides their instances.

use crate::expr::Template;
use crate::text::Kind;

const MODULES: &str = "psmodulepath";

/// The folders of modules that an adapter of PowerShell states, as they are written; `None` where they are not plain text.
pub fn modules_of(properties: &Template) -> Option<&str> {
    match &properties.get(MODULES)?.kind {
        Kind::String(text) => Some(text),
        _ => None,
    }
}

/// Leaves the properties of an adapter with what is read as a document.
pub(crate) fn leave_out_modules(properties: &mut Template) {
    if modules_of(properties).is_none() {
        return;
    }
    if let Kind::Object(entries) = &mut properties.kind {
        *entries = std::mem::take(entries).into_iter().filter(|entry| &*entry.key != MODULES).collect();
    }
}
