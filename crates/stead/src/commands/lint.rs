//! `stead lint`: what is wrong with a document, without a look at the machine.

use std::path::Path;

use serde_json::{Value as Json, json};
use stead_core::diag::{Diagnostic, Fix, Severity, counted};
use stead_core::event::Mode;
use stead_core::graph::Values;
use stead_core::text::{Source, Sources};
use stead_engine::{Session, json as forms};

use super::files;
use super::ready::{Refusal, distinct, load, refuse, session_for};
use crate::exit::Exit;
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::{LintForm, LintRequest, Origin, Volume};
use crate::terminal::{Output, complain, data_as, print, show_findings};

/// How often a document is read again after a correction, which may show others.
const MOST_ROUNDS: usize = 20;

/// What was found.
struct Found {
    session: Session,
    findings: Vec<Diagnostic>,
    /// How many instances there are, of a document that can be used.
    instances: Option<usize>,
}

/// Checks a document without looking at the machine.
pub(crate) fn lint(mut request: LintRequest, env: &ProcessEnv) -> Exit {
    if !request.document.parts.only.is_empty() || !request.document.parts.skip.is_empty() {
        complain("error: 'lint' checks the whole document: it takes neither '--only' nor '--skip'");
        return Exit::Unusable;
    }
    let mut found = match look(&request, env) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    if request.fix {
        found = match fix(&mut request, found, env) {
            Ok(found) => found,
            Err(exit) => return exit,
        };
    }
    report(&request, &found)
}

fn look(request: &LintRequest, env: &ProcessEnv) -> Result<Found, Exit> {
    let document = &request.document;
    let (session, findings, instances) = match load(document, session_for(document, env), Values::Open, Mode::PLAN) {
        Err(Refusal::Findings(findings, session)) => (*session, findings, None),
        Err(refusal) => return Err(refusal.report(request.form.output())),
        Ok((mut session, prepared)) => {
            let mismatches = session.check_properties(&prepared, Mode::PLAN);
            let is_usable = mismatches.is_empty();
            let portable = if request.portable { prepared.not_portable() } else { Vec::new() };
            let modules = session.module_warnings(&prepared);
            let advice = prepared.advice();
            let warnings = prepared.warnings.iter().cloned();
            let loops = session.loop_conflicts(&prepared);
            let all = warnings.chain(loops).chain(mismatches).chain(advice).chain(portable).chain(modules).collect();
            (session, all, is_usable.then_some(prepared.graph.nodes.len()))
        }
    };
    if session.cancel().is_cancelled() {
        return Err(interrupt::exit(session.cancel(), Exit::Unusable));
    }
    Ok(Found { findings: distinct(&findings), session, instances })
}

/// Corrects the document in its file, and looks at it again.
fn fix(request: &mut LintRequest, mut found: Found, env: &ProcessEnv) -> Result<Found, Exit> {
    let path = request.document.path().to_owned();
    let Some(written) = document_text(&path, &found.session) else {
        complain("error: '--fix' requires a document that is read directly from a file");
        return Err(Exit::Unusable);
    };
    let (mark, first) = without_mark(&written);
    let (mut text, mut corrected) = (first.to_owned(), 0);
    for _ in 0..MOST_ROUNDS {
        let (new, count) = applied(&text, &path, &found);
        if count == 0 {
            break;
        }
        (text, corrected) = (new, corrected + count);
        request.document.origin = Origin::of_text(&path, text.clone());
        found = look(request, env)?;
    }
    if text != first {
        files::correct(&path, &written, &format!("{mark}{text}"))?;
    }
    if corrected > 0 {
        complain(&format!("{}: fixed {}", path.display(), counted(corrected, "mistake")));
    }
    Ok(found)
}

/// Returns what is written in the file of the document, if that was read.
fn document_text(path: &Path, session: &Session) -> Option<String> {
    let written = std::fs::read_to_string(path).ok()?;
    let text = without_mark(&written).1;
    session.sources.iter().any(|(_, source)| is_document(source, path, text)).then_some(written)
}

/// True for the document among what was read: parameters are read before it.
fn is_document(source: &Source, path: &Path, text: &str) -> bool {
    source.text.as_str() == text && source.name == path.display().to_string()
}

/// A byte order mark, and the text behind it.
fn without_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { 3 } else { 0 })
}

/// A text with all corrections that are about it and do not overlap, and how many those are.
fn applied(text: &str, path: &Path, found: &Found) -> (String, usize) {
    let mut fixes: Vec<&Fix> = found.findings.iter().filter_map(|finding| finding.fix.as_ref()).collect();
    let sources = &found.session.sources;
    fixes.retain(|fix| sources.get(fix.span.source).is_some_and(|source| is_document(source, path, text)));
    fixes.sort_by_key(|fix| fix.span);
    let (mut corrected, mut end, mut count) = (String::with_capacity(text.len()), 0, 0);
    for fix in fixes {
        let (from, to) = (fix.span.start as usize, fix.span.end as usize);
        let Some(between) = text.get(end..from).filter(|_| from >= end && text.get(from..to).is_some()) else {
            continue;
        };
        corrected.push_str(between);
        corrected.push_str(&fix.replacement);
        (end, count) = (to, count + 1);
    }
    corrected.push_str(text.get(end..).unwrap_or_default());
    (corrected, count)
}

fn report(request: &LintRequest, found: &Found) -> Exit {
    let findings = &found.findings;
    match (&found.instances, request.form) {
        (_, LintForm::Github) => print(&annotations(findings, &found.session.sources)),
        (_, LintForm::Sarif) => data_as(&sarif(findings, &found.session.sources), Output::Json),
        (None, LintForm::Output(output)) => return refuse(findings, &found.session, output),
        (Some(instances), LintForm::Output(Output::Text)) => {
            show_findings(findings, &found.session.sources);
            if findings.is_empty() && request.volume > Volume::Quiet {
                let instances = counted(*instances, "instance");
                print(&format!("{}: no mistakes found in {instances}\n", request.document.path().display()));
            }
        }
        (Some(_), LintForm::Output(output)) => data_as(&forms::findings(findings, &found.session.sources), output),
    }
    match (found.instances, findings.is_empty()) {
        (None, _) => Exit::Unusable,
        (Some(_), true) => Exit::Success,
        (Some(_), false) => Exit::Drifted,
    }
}

/// Findings as commands of GitHub Actions, which shows them beside the lines that they are about.
///
/// Guarantees: each finding is one line, and no text of a document begins another command.
fn annotations(findings: &[Diagnostic], sources: &Sources) -> String {
    let text = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |value: &str| text(value).replace(':', "%3A").replace(',', "%2C");
    let line = |finding: &Diagnostic| {
        let place = finding
            .span
            .map(|span| sources.place(span))
            .map(|place| format!("file={},line={},col={},", property(&place.name), place.line, place.column));
        let help = finding.help.iter().map(|help| format!("\n{help}"));
        let message = std::iter::once(finding.message.clone()).chain(help).collect::<String>();
        let (place, code) = (place.unwrap_or_default(), finding.code.id);
        format!("::{} {place}title={code}::{}\n", finding.severity.as_str(), text(&message))
    };
    findings.iter().map(line).collect()
}

/// Findings in the form of the Static Analysis Results Interchange Format, version 2.1.0 of OASIS.
fn sarif(findings: &[Diagnostic], sources: &Sources) -> Json {
    let mut rules: Vec<_> = findings.iter().map(|finding| finding.code).collect();
    rules.sort_by_key(|code| code.id);
    rules.dedup_by_key(|code| code.id);
    let rules = rules.iter().map(|code| {
        json!({
            "id": code.id,
            "shortDescription": { "text": code.title },
            "fullDescription": { "text": code.explanation },
        })
    });
    let results = findings.iter().map(|finding| {
        let level = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let help = finding.help.iter().map(|help| format!("\n{help}"));
        let message = std::iter::once(finding.message.clone()).chain(help).collect::<String>();
        let mut result = json!({ "ruleId": finding.code.id, "level": level, "message": { "text": message } });
        if let Some(location) = finding.span.and_then(|span| location(span, sources)) {
            result["locations"] = json!([{ "physicalLocation": location }]);
        }
        if let Some((fix, place)) = finding.fix.as_ref().and_then(|fix| Some((fix, location(fix.span, sources)?))) {
            let replacement = json!({
                "deletedRegion": place["region"],
                "insertedContent": { "text": fix.replacement },
            });
            result["fixes"] = json!([{
                "artifactChanges": [{ "artifactLocation": place["artifactLocation"], "replacements": [replacement] }],
            }]);
        }
        result
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "stead",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.collect::<Vec<Json>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<Json>>(),
        }],
    })
}

fn location(span: stead_core::text::Span, sources: &Sources) -> Option<Json> {
    let source = sources.get(span.source)?;
    let ((line, column), (end_line, end_column)) = (source.line_column(span.start), source.line_column(span.end));
    Some(json!({
        "artifactLocation": { "uri": source.name },
        "region": { "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column },
    }))
}
