//! Modules of PowerShell that a document uses, and that cannot be loaded.

use std::collections::BTreeSet;

use stead_core::diag::codes::powershell::module as codes;
use stead_core::diag::{Diagnostic, Severity};
use stead_core::manifest::Implementation;
use stead_core::text::Span;

use crate::prepared::Prepared;
use crate::session::Session;

impl Session {
    /// A warning for each file in the modules of PowerShell that a document uses whose text keeps PowerShell from loading a resource,
    /// and for all else that does, as far as files show it.
    pub fn module_warnings(&mut self, prepared: &Prepared) -> Vec<Diagnostic> {
        let Some(powershell) = self.shared.host.powershell().cloned() else { return Vec::new() };
        let (mut seen, mut warnings) = (BTreeSet::new(), Vec::new());
        let mut files = BTreeSet::new();
        for (_, node) in prepared.graph.iter().filter(|(_, node)| node.manifest.is_powershell()) {
            let Implementation::Adapted { resource, .. } = &node.manifest.implementation else { continue };
            if !seen.insert((&node.manifest.type_name, resource.path.as_ref())) {
                continue;
            }
            for (text, finding) in powershell.obstacles(&node.manifest.type_name, resource) {
                // What follows the first mistake in a text is a consequence of it as a rule.
                let is_warning = finding.severity == Severity::Warning;
                if !is_warning && !files.insert(finding.file.clone()) {
                    continue;
                }
                let source = self.sources.add_once(&finding.file.to_string_lossy(), text.as_str());
                let start = text.offset(finding.place);
                let width = text.as_str().get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
                let [start, end] = [start, start + width].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
                let span = Span::new(source, start, end);
                warnings.push(if is_warning {
                    Diagnostic::warning(finding.code, span, finding.message)
                } else {
                    let message = format!("{} [{}]", finding.message, finding.code.id);
                    Diagnostic::warning(&codes::NOT_LOADED, span, message)
                });
            }
        }
        warnings
    }
}
