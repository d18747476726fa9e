//! Texts for users: findings, failures and errors, a line each.

use stead_core::diag::Diagnostic;
use stead_core::event::Status;
use stead_core::run::Run;
use stead_core::text::Sources;
use stead_core::wire::results::reason;
use stead_host::catalog::CatalogProblem;
pub use stead_system::error_chain;

/// Returns the failures of a run, one line each, outputs included.
pub fn failure_lines(run: &Run) -> Vec<String> {
    let (graph, report, sources) = (run.graph(), run.report(), run.sources());
    let failed = graph.order.iter().filter(|id| report.status(**id).is_some_and(Status::blocks));
    let why = failed.map(|id| {
        if let Some(finding) = report.record(*id).finding() {
            return finding_line(finding, sources);
        }
        let place = sources.place(graph.declaration(*id).name.span);
        let why = reason(graph, report, *id).unwrap_or_default();
        format!("{place}: {}: {}", graph.label(*id), why.trim_end())
    });
    let bad_outputs = run.outputs().into_iter().filter_map(|(_, value)| value.err());
    why.chain(bad_outputs.map(|finding| finding_line(&finding, sources))).collect()
}

/// A finding in one line.
pub fn finding_line(finding: &Diagnostic, sources: &Sources) -> String {
    let help = finding.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    let place = finding.span.map(|span| format!("{}: ", sources.place(span))).unwrap_or_default();
    format!("{place}{}{help} [{}]", finding.message, finding.code)
}

/// A problem in one line.
pub fn problem_text(problem: &CatalogProblem) -> String {
    let help = problem.help().map(|help| format!(" ({help})")).unwrap_or_default();
    format!("{problem}{help}").replace('\n', "; ")
}
