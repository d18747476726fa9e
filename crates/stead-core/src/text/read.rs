//! YAML 1.2 and JSON in one front end: events of the parser in, one spanned tree out.

use std::borrow::Cow;

use granit_parser::{Parser, ScanError};

use super::build::{Builder, Stop};
use super::limits::{Limits, options};
use super::{Node, SourceId, Span, Takes, block, characters, codes, flow, syntax};
use crate::diag::{Diagnostic, Findings};

/// Reads one YAML or JSON document.
///
/// Guarantees:
/// - There is a tree if and only if the text could be read to its end; it may be there next to errors.
/// - Places are those of the text without its byte order mark, as [`super::Source`] keeps it. They lie on borders of
///   characters, and the place of a value lies within that of the value around it, except for what an alias repeats,
///   which keeps the place where it was written.
/// - Findings are in the order of the text.
///
/// # Examples
/// ```
/// use stead_core::text::{Limits, SourceId, read};
/// use stead_core::value::Value;
///
/// let (tree, findings) = read(SourceId::default(), "port: 80\nenabled: yes\n", &Limits::default());
/// let tree = tree.ok_or("the text cannot be read")?;
/// assert!(findings.is_empty());
/// assert_eq!(tree.get("port").map(|node| node.literal()), Some(Value::from(80)));
/// // As in YAML 1.2, `yes` is text.
/// assert_eq!(tree.get("enabled").and_then(|node| node.as_str()), Some("yes"));
/// // Of what cannot be read there is no tree, but there is a place.
/// let (tree, findings) = read(SourceId::default(), "port: [80\n", &Limits::default());
/// assert!(tree.is_none() && findings[0].span.is_some());
/// # Ok::<(), &str>(())
/// ```
pub fn read(source: SourceId, text: &str, limits: &Limits) -> (Option<Node>, Vec<Diagnostic>) {
    let mut text = Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text));
    if text.len() > limits.bytes.min(u32::MAX as usize) {
        return (None, vec![too_long(source, &text, limits)]);
    }
    if text.starts_with('\u{feff}') {
        let message = "the text starts with two byte order marks";
        let finding = Diagnostic::error(&codes::SYNTAX, Span::new(source, 0, 3), message);
        return (None, vec![finding.with_help("remove both")]);
    }
    if let Some(tree) = read_plain(source, &text, limits, None) {
        return (Some(tree), Vec::new());
    }
    let mut passes = passes(text.len());
    let mut faults: Vec<Diagnostic> = Vec::new();
    loop {
        let (tree, findings, patch) = pass(source, &text, limits, &mut faults);
        passes -= 1;
        match patch {
            Some(patch) if passes > 0 => syntax::apply(text.to_mut(), &patch),
            _ => return (tree, in_order(findings, faults)),
        }
    }
}

/// The tree of a text that is plain YAML or JSON, but for the elements of a list that are taken; `None` for every other text,
/// of which some may have been taken by then.
pub(crate) fn read_taking(source: SourceId, text: &str, limits: &Limits, takes: Takes<'_>) -> Option<Node> {
    let is_within = text.len() <= limits.bytes.min(u32::MAX as usize) && !text.starts_with('\u{feff}');
    is_within.then(|| read_plain(source, text, limits, Some(takes))).flatten()
}

fn read_plain(source: SourceId, text: &str, limits: &Limits, takes: Option<Takes<'_>>) -> Option<Node> {
    match () {
        () if characters::are_in(text) => None,
        () if flow::may_be(text) => flow::read(source, text, limits, takes),
        () => block::read(source, text, limits, takes),
    }
}

/// Returns how often a text may be read again past a fault that is understood: less often the longer it is.
fn passes(bytes: usize) -> usize {
    ((16 << 20) / bytes.max(1)).clamp(2, 200)
}

fn too_long(source: SourceId, text: &str, limits: &Limits) -> Diagnostic {
    let at = (0..=limits.bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let at = offset(at);
    let message = format!("the text has {} bytes, the limit is {}", text.len(), limits.bytes);
    Diagnostic::error(&codes::LIMIT, Span::new(source, at, at), message)
        .with_help("split the document; the mark shows where the limit is reached")
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

type Pass = (Option<Node>, Vec<Diagnostic>, Option<syntax::Patch>);

/// Reads the text once. Faults of syntax are added to `faults`, for the other findings come again in the next pass.
fn pass(source: SourceId, text: &str, limits: &Limits, faults: &mut Vec<Diagnostic>) -> Pass {
    let mut builder = Builder::new(source, text, limits, Findings::new(&codes::TOO_MANY, limits.findings));
    let mut patch = None;
    let root = match feed(&mut builder, text, limits) {
        Ok(()) => true,
        Err(Ended::Stopped) => false,
        Err(Ended::Fault(error)) => {
            let (finding, fixed) = syntax::explain(&error, &builder);
            faults.push(finding);
            patch = fixed;
            false
        }
    };
    let is_suspect = !root || builder.has_no_break();
    let span = |start, end| builder.span(offset(start), offset(end));
    let mut no_breaks = if is_suspect { characters::no_breaks(text, span) } else { Vec::new() };
    no_breaks.truncate(limits.findings);
    if !no_breaks.is_empty() {
        faults.clear();
        return (None, no_breaks, None);
    }
    let (tree, findings) = builder.finish(root);
    (tree, findings, patch)
}

enum Ended {
    Stopped,
    Fault(ScanError),
}

fn feed(builder: &mut Builder<'_>, text: &str, limits: &Limits) -> Result<(), Ended> {
    for event in Parser::new_from_str_with_options(text, options(limits, false)) {
        let (event, span) = event.map_err(Ended::Fault)?;
        builder.event(event, span).map_err(|Stop| Ended::Stopped)?;
    }
    Ok(())
}

fn in_order(mut findings: Vec<Diagnostic>, faults: Vec<Diagnostic>) -> Vec<Diagnostic> {
    findings.extend(faults);
    findings.sort_by_key(|finding| finding.span.map(|span| span.start));
    findings
}
