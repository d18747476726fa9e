//! Findings for users.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Patch, Renderer, Snippet};

use super::secret_forms::covered;
use super::{Diagnostic, Fix, Severity, codes};
use crate::source::{Source, SourceId, Sources, Span};
use crate::visible::{is_obeyed, visible};

/// A finding as [`snippet`] shows it, and where more is written about it.
///
/// # Examples
/// ```
/// use stead_core::diag::render;
/// use stead_core::document::parse;
/// use stead_core::text::{Limits, Source, Sources};
///
/// let text = "resourcs: []\n";
/// let mut sources = Sources::default();
/// let id = sources.add(Source::new("main.yaml", text));
/// let (_, findings) = parse(id, text, &Limits::default());
/// let shown = render(&findings[0], &sources, false);
/// assert!(shown.contains("main.yaml:1:1"), "{shown}");
/// assert!(shown.contains("resourcs: []"), "{shown}");
/// assert!(shown.contains("did you mean 'resources'?"), "{shown}");
/// ```
pub fn render(finding: &Diagnostic, sources: &Sources, color: bool) -> String {
    render_all(std::slice::from_ref(finding), sources, color)
}

/// Of so many findings with one code the text is shown: whoever has seen these knows what the others look like.
const SHOWN_IN_FULL: usize = 20;

/// Findings one after the other, and at the end where more is written about them. Of many with one code, most have one line.
pub fn render_all(findings: &[Diagnostic], sources: &Sources, color: bool) -> String {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let secret = lines_of_secrets(findings, sources);
    let each = findings.iter().map(|finding| {
        let before = seen.entry(finding.code.id).or_default();
        *before += 1;
        if *before <= SHOWN_IN_FULL {
            snippet_without(&secret, finding, sources, color)
        } else {
            line(finding, sources)
        }
    });
    each.collect::<String>() + reason_for_stars(&secret, findings, sources) + &references(findings)
}

/// Says why lines have stars, where a line that is shown has some that the text does not have.
fn reason_for_stars(secret: &Lines, findings: &[Diagnostic], sources: &Sources) -> &'static str {
    let has_stars = |span: Span| {
        let Some(excerpt) = excerpt(sources, span) else { return false };
        let is_shown = !excerpt.source.is_private && !secret.contains(&(span.source, excerpt.line));
        let start = (span.start as usize).saturating_sub(excerpt.mark.start);
        let written = excerpt.source.text.get(start..start + excerpt.text.len()).unwrap_or_default();
        is_shown && excerpt.text.matches('*').count() > written.matches('*').count()
    };
    let mut spans = findings.iter().take(SHOWN_IN_FULL).filter_map(|finding| finding.span);
    if spans.any(has_stars) { "Stars stand for text that may be a secret\n" } else { "" }
}

/// A finding in one line, its place first.
fn line(finding: &Diagnostic, sources: &Sources) -> String {
    let place = finding.span.map(|span| format!("{}: ", sources.place(span))).unwrap_or_default();
    let Diagnostic { severity, code, message, .. } = finding;
    format!("{}{}[{}]: {}\n", visible(&place), severity.as_str(), code.id, visible(message))
}

/// Returns the line that says where more is written about findings.
fn references(findings: &[Diagnostic]) -> String {
    let codes: BTreeSet<&str> = findings.iter().map(|finding| finding.code.id).collect();
    match Vec::from_iter(codes).as_slice() {
        [] => String::new(),
        [code] => format!("More about it: stead explain {code}\n"),
        codes => format!("More about each: stead explain CODE ({})\n", codes.join(", ")),
    }
}

/// A finding with the text that it is about: place, lines, marks, help, and the change that fixes it.
///
/// Guarantees: it costs as much as the lines it shows, however long the source is; control characters of the text and
/// of names in it reach the terminal as visible signs. It ends with a line break.
pub fn snippet(finding: &Diagnostic, sources: &Sources, color: bool) -> String {
    snippet_without(&lines_of_secrets(std::slice::from_ref(finding), sources), finding, sources, color)
}

/// Lines of sources.
type Lines = BTreeSet<(SourceId, usize)>;

/// The lines of which findings say that they have a secret in clear.
fn lines_of_secrets(findings: &[Diagnostic], sources: &Sources) -> Lines {
    let secrets = findings.iter().filter(|finding| finding.code == &codes::document::SECRET_IN_CLEAR);
    let lines = secrets.filter_map(|finding| finding.span).filter_map(|span| {
        let source = sources.get(span.source)?;
        let [first, last] = [span.start, span.end].map(|at| source.line_column(at).0);
        Some((first..=last).map(move |line| (span.source, line)))
    });
    lines.flatten().collect()
}

/// A finding as [`snippet`] shows it, without the text of some lines.
fn snippet_without(secret: &Lines, finding: &Diagnostic, sources: &Sources, color: bool) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut main =
        level.primary_title(visible(&finding.message)).id(finding.code.id).elements(places(secret, finding, sources));
    let mut suggestion = None;
    match (&finding.help, suggested(secret, finding, sources)) {
        (help, Some(snippet)) => {
            let title = help.as_deref().map_or(Cow::Borrowed("change it"), visible);
            suggestion = Some(Level::HELP.secondary_title(title).element(snippet));
        }
        (Some(help), None) => main = main.element(Level::HELP.message(visible(help))),
        (None, None) => {}
    }
    let groups: Vec<Group<'_>> = std::iter::once(main).chain(suggestion).collect();
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    renderer.decor_style(DecorStyle::Ascii).render(&groups) + "\n"
}

/// The first line of a stretch of text, cut out of its source.
struct Excerpt<'s> {
    source: &'s Source,
    /// The line, or what is near the mark in a long one.
    text: Cow<'s, str>,
    line: usize,
    column: usize,
    /// The part that is marked, within `text`.
    mark: Range<usize>,
    cut: bool,
}

/// Up to this many bytes a line is left to the renderer, which shows of it what is around the mark.
const LONG: usize = 1 << 16;
/// The number of characters that are kept of a longer one on each side of the mark.
const AROUND: usize = 200;

fn excerpt(sources: &Sources, span: Span) -> Option<Excerpt<'_>> {
    let source = sources.get(span.source)?;
    let at = (span.start as usize).min(source.text.len());
    let before = source.text.get(..at)?.rfind('\n').map_or(0, |found| found + 1);
    let behind = source.text.get(at..)?.find('\n').map_or(source.text.len(), |found| at + found);
    let end = (span.end as usize).clamp(at, behind);
    let cut = behind - before > LONG;
    let border = |at: usize| source.text.floor_char_boundary(at);
    let (from, upto) = if cut {
        (border(at.saturating_sub(AROUND)).max(before), border(at + AROUND).min(behind))
    } else {
        (before, behind)
    };
    // A secret may begin or end beyond what is shown of a long line, so what is around that is looked at as well.
    let around = border(from.saturating_sub(LONG)).max(before)..border(upto + LONG).min(behind);
    let line = without_hidden(source.text.get(around.clone())?, source.hidden_in(around.clone()));
    let shown = from - around.start..upto - around.start;
    let text = match line {
        Cow::Borrowed(line) => Cow::Borrowed(line.get(shown)?.trim_end_matches('\r')),
        Cow::Owned(line) => Cow::Owned(line.get(shown)?.trim_end_matches('\r').to_owned()),
    };
    let length = text.len();
    let mark = (at - from).min(length)..end.saturating_sub(from).min(length);
    let (line, column) = source.line_column(span.start);
    Some(Excerpt { source, text, line, column, mark, cut })
}

/// A line without secrets of the document and what has the form of one, and without what a terminal would obey.
fn without_hidden(text: &str, hidden: impl Iterator<Item = Range<usize>>) -> Cow<'_, str> {
    let mut line = Cow::Borrowed(text);
    for range in hidden {
        line.to_mut().replace_range(range.clone(), &"*".repeat(range.len()));
    }
    match line {
        Cow::Borrowed(text) => shown(text),
        Cow::Owned(text) => Cow::Owned(shown(&text).into_owned()),
    }
}

/// A line without what has the form of a secret, and without what a terminal would obey.
fn shown(text: &str) -> Cow<'_, str> {
    match covered(text) {
        Cow::Borrowed(text) => without_c1(text),
        Cow::Owned(text) => Cow::Owned(without_c1(&text).into_owned()),
    }
}

/// The renderer shows the control characters of ASCII as symbols, but not those from U+0080 on. They take two bytes, and
/// so does what stands for them here: places stay right.
fn without_c1(text: &str) -> Cow<'_, str> {
    let is_c1 = |c: char| ('\u{80}'..='\u{9f}').contains(&c);
    if text.contains(is_c1) { Cow::Owned(text.replace(is_c1, "\u{a4}")) } else { Cow::Borrowed(text) }
}

fn places<'s>(secret: &Lines, finding: &'s Diagnostic, sources: &'s Sources) -> Vec<Element<'s>> {
    let main = finding.span.map(|span| (span, AnnotationKind::Primary, None));
    let others = finding.labels.iter().map(|(span, text)| (*span, AnnotationKind::Context, Some(visible(text))));
    let mut elements = Vec::new();
    for (span, kind, label) in main.into_iter().chain(others) {
        let Some(excerpt) = excerpt(sources, span) else { continue };
        let annotation = kind.span(excerpt.mark.clone()).label(label);
        let snippet = Snippet::source(excerpt.text).line_start(excerpt.line).annotation(annotation);
        let name = visible(&excerpt.source.name);
        if excerpt.source.is_place_alone() {
            elements.push(Origin::path(name).into());
        } else if excerpt.source.is_private || secret.contains(&(span.source, excerpt.line)) {
            elements.push(Origin::path(name).line(excerpt.line).char_column(excerpt.column).into());
        } else if excerpt.cut {
            // The column within what is shown would not be that within the line.
            elements.push(Origin::path(name).line(excerpt.line).char_column(excerpt.column).into());
            elements.push(snippet.into());
        } else {
            elements.push(snippet.path(name).into());
        }
    }
    elements
}

/// The change, if it lies within one line.
fn suggested<'s>(secret: &Lines, finding: &'s Diagnostic, sources: &'s Sources) -> Option<Snippet<'s, Patch<'s>>> {
    let Fix { span, replacement } = finding.fix.as_ref()?;
    let excerpt = excerpt(sources, *span)?;
    let whole = excerpt.mark.len() == (span.end - span.start) as usize;
    let is_shown = !excerpt.source.is_private && !secret.contains(&(span.source, excerpt.line));
    let is_plain = !replacement.contains(is_obeyed) && *covered(replacement) == **replacement;
    let is_hidden = excerpt.source.hidden_in(span.start as usize..span.end as usize).next().is_some();
    let readable = whole && !is_hidden && !excerpt.cut && is_shown && is_plain;
    readable.then(|| {
        Snippet::source(excerpt.text).line_start(excerpt.line).patch(Patch::new(excerpt.mark, replacement.as_str()))
    })
}
