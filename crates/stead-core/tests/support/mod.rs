//! Values in the compact forms that cases show them in.

pub(crate) mod document;
pub(crate) mod tree;

use stead_core::diag::Diagnostic;
use stead_core::text::Sources;

/// Each finding on a line, with its labels, help and fix on lines of their own.
pub(crate) fn findings(found: &[Diagnostic], sources: &Sources) -> String {
    let mut out = Vec::new();
    for finding in found {
        out.push(format!("{}\n", finding.brief(sources)));
        out.extend(finding.labels.iter().map(|(span, text)| format!("  {}: {text}\n", sources.place(*span))));
        out.extend(finding.help.iter().map(|help| format!("  help: {help}\n")));
        let fixes = finding.fix.iter();
        out.extend(fixes.map(|fix| format!("  fix: {} -> {}\n", tree::slice(fix.span, sources), fix.replacement)));
    }
    out.concat()
}
