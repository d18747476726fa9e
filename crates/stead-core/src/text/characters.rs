//! Characters that look like what YAML reads, and are text to it: no-break spaces and typographic quotes.

use super::{Span, codes};
use crate::diag::Diagnostic;

const NO_BREAK: char = '\u{a0}';
const OPENING: [char; 5] = ['\u{201c}', '\u{201d}', '\u{201e}', '\u{2018}', '\u{201a}'];
const CLOSING: [char; 4] = ['\u{201d}', '\u{201c}', '\u{2019}', '\u{2018}'];

/// Returns whether a text has characters of these.
pub(super) fn are_in(text: &str) -> bool {
    !text.is_ascii() && text.contains(|c| c == NO_BREAK || OPENING.contains(&c))
}

/// Returns whether a word without quotes begins with a no-break space.
pub(super) fn begins_with_no_break(word: &str) -> bool {
    word.starts_with(NO_BREAK)
}

/// The finding about a value, without quotes, that stands between typographic ones.
pub(super) fn between_quotes(written: &str, place: Span) -> Option<Diagnostic> {
    let (first, last) = (written.chars().next()?, written.chars().next_back()?);
    let inner = written.strip_prefix(OPENING)?.strip_suffix(CLOSING)?;
    if inner.contains(OPENING) || inner.contains(CLOSING) || inner.contains(['"', '\\', '\n', '\r']) {
        return None;
    }
    let message = format!("{first} and {last} are not quotes to YAML: they are a part of the text");
    let finding = Diagnostic::warning(&codes::TYPOGRAPHIC, place, message).with_help("write \" in place of each");
    Some(finding.with_fix(place, format!("\"{inner}\"")))
}

/// The findings about no-break spaces where a space is meant: in front of a key or an element, and in front of its value. What is in
/// a text of several lines is text.
pub(super) fn no_breaks(text: &str, span: impl Fn(usize, usize) -> Span) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if !text.contains(NO_BREAK) {
        return found;
    }
    // The indentation of the line that a text of several lines belongs to.
    let mut block: Option<usize> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let at = start;
        start += line.len();
        let line = line.trim_end_matches(['\n', '\r']);
        let spaces = line.len() - line.trim_start_matches(' ').len();
        if block.is_some_and(|depth| spaces > depth || line.is_empty()) {
            continue;
        }
        block = begins_text(line).then_some(spaces);
        found.extend(in_line(line, |from, to| span(at + from, at + to)));
    }
    found
}

/// Returns whether a text of several lines begins behind a line.
fn begins_text(line: &str) -> bool {
    let header = line.trim_end().trim_end_matches(['-', '+']).trim_end_matches(|c: char| c.is_ascii_digit());
    header.ends_with([':', '-', '|', '>', ' ']) && header.ends_with(['|', '>'])
}

fn in_line(line: &str, span: impl Fn(usize, usize) -> Span) -> Vec<Diagnostic> {
    let is_blank = |c: char| c == ' ' || c == NO_BREAK;
    let mut found = Vec::new();
    let content = line.trim_start_matches(is_blank);
    let depth = line.len() - content.len();
    let indentation = line.get(..depth).unwrap_or_default();
    let colon = content.find(':').filter(|colon| content.get(..*colon).is_some_and(is_key));
    if indentation.contains(NO_BREAK) && (colon.is_some() || content.starts_with('-')) {
        let message = "the line is indented with no-break spaces (U+00A0)";
        let finding = Diagnostic::error(&codes::NO_BREAK, span(0, depth), message)
            .with_help("write spaces: to YAML a no-break space is text, and a part of the key");
        found.push(finding.with_fix(span(0, depth), " ".repeat(indentation.chars().count())));
    }
    let element = content.strip_prefix('-').filter(|rest| rest.starts_with(is_blank)).map(|_| depth + 1);
    let behind = colon.map(|colon| depth + colon + 1).or(element);
    let Some((behind, rest)) = behind.and_then(|behind| Some((behind, line.get(behind..)?))) else { return found };
    let end = behind + (rest.len() - rest.trim_start_matches(is_blank).len());
    if line.get(behind..end).is_some_and(|blank| blank.contains(NO_BREAK)) && end < line.len() {
        let message = "the value begins with a no-break space (U+00A0)";
        let finding = Diagnostic::error(&codes::NO_BREAK, span(behind, end), message)
            .with_help("write a space: to YAML a no-break space is text, and a part of the value");
        found.push(finding.with_fix(span(behind, end), " "));
    }
    found
}

/// Returns whether the text in front of a colon is a key, perhaps behind a dash.
fn is_key(before: &str) -> bool {
    let key = before.trim_start_matches(['-', ' ', NO_BREAK]);
    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.' | '"' | '\''))
}
