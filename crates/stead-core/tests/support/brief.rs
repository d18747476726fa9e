//! Findings as text.

use stead_core::diag::Diagnostic;
use stead_core::text::Sources;

/// Each finding on a line, with its labels and help on lines of their own.
pub(crate) fn findings(found: &[Diagnostic], sources: &Sources) -> String {
    found.iter().map(|finding| one(finding, sources)).collect()
}

fn one(finding: &Diagnostic, sources: &Sources) -> String {
    let mut out = vec![format!("{}\n", finding.brief(sources))];
    out.extend(finding.labels.iter().map(|(span, text)| format!("  {}: {text}\n", sources.place(*span))));
    out.extend(finding.help.iter().map(|help| format!("  help: {help}\n")));
    out.concat()
}
