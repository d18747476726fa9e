//! Values in the compact forms that cases show them in.

pub(crate) mod document;
pub(crate) mod tree;

use stead_core::diag::Diagnostic;
use stead_core::text::Sources;

/// Each finding on a line, with its labels, help and fix on lines of their own.
pub(crate) fn findings(found: &[Diagnostic], sources: &Sources) -> String {
    let mut out = String::new();
    for finding in found {
        out.push_str(&finding.brief(sources));
        out.push('\n');
        for (span, text) in &finding.labels {
            out.push_str(&format!("  {}: {text}\n", sources.place(*span)));
        }
        if let Some(help) = &finding.help {
            out.push_str(&format!("  help: {help}\n"));
        }
        if let Some(fix) = &finding.fix {
            out.push_str(&format!("  fix: {} -> {}\n", tree::slice(fix.span, sources), fix.replacement));
        }
    }
    out
}
