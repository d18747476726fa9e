//! Faults of syntax in words that help, and the ones that reading can go on behind.

use std::ops::Range;

use granit_parser::{ErrorKind, ScanError};

use super::build::Builder;
use super::tabs::in_spaces;
use super::unquoted::{PLACEHOLDER, expression_end, unquoted, without_comment};
use super::{Span, codes};
use crate::diag::Diagnostic;

/// A change of the same length that lets the parser go on behind a fault that has been reported.
pub(super) struct Patch {
    range: Range<usize>,
}

impl Patch {
    fn of(span: Span) -> Self {
        Self { range: span.start as usize..span.end as usize }
    }
}

/// Makes quoted text of what must be in quotes.
pub(super) fn apply(text: &mut String, patch: &Patch) {
    let Some(old) = text.get(patch.range.clone()) else { return };
    let inner = old.get(1..old.len().saturating_sub(1)).unwrap_or_default();
    let quoted = format!("\"{}\"", inner.replace(['"', '\\'], "'"));
    text.replace_range(patch.range.clone(), &quoted);
}

/// Explains a fault in words, and how to read on if the fault is understood.
pub(super) fn explain(error: &ScanError, builder: &Builder<'_>) -> (Diagnostic, Option<Patch>) {
    let text = builder.text();
    let at = char_border(text, error.marker().byte_offset().unwrap_or(0));
    if let Some(range) = unquoted_around(text, at) {
        let span = builder.span(position(range.start), position(range.end));
        let finding = unquoted(text.get(range.clone()).unwrap_or_default(), span);
        let one_line = finding.fix.is_some();
        return (finding, one_line.then_some(Patch { range }));
    }
    if let Some(range) = asterisk_before(text, at, builder.open_bracket().is_some() || is_in_brackets(text, at)) {
        let span = builder.span(position(range.start), position(range.end));
        let written = text.get(range).unwrap_or_default();
        let message = "text that starts with '*' must be in quotes: YAML reads it as an alias";
        let finding = Diagnostic::error(&codes::ALIAS, span, message).with_help("put it in quotes");
        let finding = finding.with_fix(span, format!("'{}'", written.replace('\'', "''")));
        return (finding, Some(Patch::of(span)));
    }
    (Fault { builder, text, at }.finding(error.kind()), None)
}

fn char_border(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The expression without quotes that the fault at `at` stands in, if it does.
fn unquoted_around(text: &str, at: usize) -> Option<Range<usize>> {
    /// An expression of more lines is rare, and looking further back would find others.
    const REACH: usize = 2000;
    let from = char_border(text, at.saturating_sub(REACH));
    let before = text.get(from..text.len().min(at + 1)).or_else(|| text.get(from..at))?;
    before.match_indices('[').map(|(found, _)| from + found).filter(|start| starts_value(text, *start)).find_map(
        |start| {
            let end = start + expression_end(text.get(start..)?)?;
            (start <= at && at <= end).then_some(start..end)
        },
    )
}

/// The value that begins with an asterisk and that the fault at `at` stands in, if it does: as the first word it would be an alias.
fn asterisk_before(text: &str, at: usize, is_in_brackets: bool) -> Option<Range<usize>> {
    let line = text.get(..at)?.rfind('\n').map_or(0, |found| found + 1);
    let before = text.get(line..text.len().min(at + 1)).or_else(|| text.get(line..at))?;
    let start = before.rmatch_indices('*').map(|(found, _)| line + found).find(|start| starts_value(text, *start))?;
    let end = value_end(text, start, is_in_brackets);
    (text.get(start..end)?.contains(' ') && at < end).then_some(start..end)
}

/// Where a value without quotes ends that starts at `start`: at the end of its line, at a comment, and in brackets at what separates it.
fn value_end(text: &str, start: usize, is_in_brackets: bool) -> usize {
    let line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let comment = line.find(" #").unwrap_or(line.len());
    let separator = line.find([',', ']', '}']).filter(|_| is_in_brackets).unwrap_or(line.len());
    let value = line.get(..comment.min(separator)).unwrap_or_default();
    start + value.trim_end().len()
}

/// Returns whether a list or an object in brackets is open here, judging by the line.
fn is_in_brackets(text: &str, at: usize) -> bool {
    let line = text.get(..at).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
    let count = |brackets: [char; 2]| line.matches(brackets).count();
    count(['[', '{']) > count([']', '}'])
}

/// Returns whether a value can start here, judging by what stands before it on the line.
fn starts_value(text: &str, at: usize) -> bool {
    let line = text.get(..at).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
    let before = line.trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with([':', '-', ',', '[', '{'])
}

fn closing(open: char) -> char {
    if open == '{' { '}' } else { ']' }
}

/// A syntax error and the text around it.
struct Fault<'b, 't> {
    builder: &'b Builder<'t>,
    text: &'t str,
    at: usize,
}

impl<'t> Fault<'_, 't> {
    fn finding(&self, kind: &ErrorKind) -> Diagnostic {
        use ErrorKind as K;
        match kind {
            K::RecursionLimitExceeded => {
                let message = format!("the text has more than {} levels, which is the limit", self.builder.depth());
                Diagnostic::error(&codes::LIMIT, self.here(), message)
            }
            K::TabNotAllowed
            | K::TabInBlockIndentation
            | K::TabInIndentation
            | K::TabAtBlockScalarStart
            | K::TabInPlainScalar => self.tab(),
            K::UnclosedQuotedScalar | K::InvalidQuotedScalarIndent | K::DocumentIndicatorInQuotedScalar => self.quote(),
            K::UnknownQuotedScalarEscape
            | K::InvalidQuotedScalarHexEscape
            | K::InvalidLowSurrogateHexEscape
            | K::InvalidLowSurrogate
            | K::MissingLowSurrogate
            | K::UnpairedLowSurrogate
            | K::InvalidUnicodeEscape => self.escape(),
            K::MismatchedFlowCollectionEnd { open, close } => {
                self.bracket(&format!("'{open}' is closed by '{close}'"), *open)
            }
            K::UnclosedFlowCollection { open } => self.bracket(&format!("'{open}' is never closed"), *open),
            K::MisplacedFlowCollectionEnd => {
                Diagnostic::error(&codes::BRACKET, self.here(), "this bracket was never opened")
            }
            _ => match (self.control_character(kind), self.builder.end_in_brackets()) {
                (Some(finding), _) => finding,
                (None, _) if self.builder.open_bracket().is_some() => self.in_brackets(),
                (None, Some(end)) => self.behind_brackets(end as usize),
                (None, None) => self.in_block(kind),
            },
        }
    }

    fn span(&self, range: Range<usize>) -> Span {
        self.builder.span(position(range.start), position(range.end))
    }

    /// The character at the fault.
    fn here(&self) -> Span {
        let length = self.text.get(self.at..).and_then(|rest| rest.chars().next()).filter(|c| *c != '\n' && *c != '\r');
        self.span(self.at..self.at + length.map_or(0, char::len_utf8))
    }

    /// The line of the fault and where it starts.
    fn line(&self) -> (usize, &'t str) {
        self.line_of(self.at)
    }

    fn line_of(&self, at: usize) -> (usize, &'t str) {
        let start = self.text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let line = self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        (start, line)
    }

    fn tab(&self) -> Diagnostic {
        const SPACES: &str =
            "use spaces, as deep as the lines that it belongs to: YAML does not allow tabs in indentation";
        let blank = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
        let is_tabbed = |line: &str| line.get(..blank(line)).is_some_and(|indentation| indentation.contains('\t'));
        // The parser marks what stands behind a tab, or the start of text that a tab interrupts.
        let next = self.text.get(self.at..).and_then(|rest| rest.find('\t')).map_or(self.at, |found| self.at + found);
        let tab = if is_tabbed(self.line().1) { self.at } else { next };
        let (start, line) = self.line_of(tab);
        let blank = blank(line);
        if !is_tabbed(line) {
            let span = self.span(tab..(tab + 1).min(self.text.len()));
            return Diagnostic::error(&codes::TAB, span, "a tab is not allowed here").with_help("use spaces");
        }
        let span = self.span(start..start + blank);
        let finding = Diagnostic::error(&codes::TAB, span, "the line is indented with a tab").with_help(SPACES);
        match in_spaces(self.text, start) {
            Some((range, spaced)) if spaced.contains('\n') => finding
                .with_help(format!("{SPACES}. `stead lint --fix` writes spaces in each of these lines"))
                .with_fix(self.span(range), spaced),
            Some((range, spaced)) => finding.with_fix(self.span(range), spaced),
            None => finding,
        }
    }

    fn quote(&self) -> Diagnostic {
        let from = self.builder.last().end as usize;
        let between = self.text.get(from..self.at.max(from)).unwrap_or_default();
        let Some((found, quote)) = between.char_indices().find(|(_, c)| matches!(c, '"' | '\'')) else {
            return Diagnostic::error(&codes::QUOTE, self.here(), "a quote is never closed")
                .with_help("add the closing quote");
        };
        let message = format!("the quote {quote} is never closed");
        Diagnostic::error(&codes::QUOTE, self.span(from + found..from + found + 1), message)
            .with_label(self.span(self.at..self.at), "expected the closing quote before this")
            .with_help(format!("add the closing {quote}"))
    }

    fn escape(&self) -> Diagnostic {
        let (start, _) = self.line();
        let before = self.text.get(start..self.at).unwrap_or_default();
        let backslash = before.rfind('\\').map_or(self.at, |found| start + found);
        let end = self.text.get(backslash + 1..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        let span = self.span(backslash..(backslash + 1 + end).min(self.text.len()));
        Diagnostic::error(&codes::ESCAPE, span, "unknown escape sequence")
            .with_help("write two backslashes, or use single quotes, in which a backslash is an ordinary character")
    }

    fn bracket(&self, message: &str, open: char) -> Diagnostic {
        let help = format!("add the missing '{}'", closing(open));
        Diagnostic::error(&codes::BRACKET, self.here(), message).with_help(help)
    }

    /// A character at the fault that stands nowhere in YAML.
    fn control_character(&self, kind: &ErrorKind) -> Option<Diagnostic> {
        let found = match kind {
            ErrorKind::UnexpectedCharacter { character } => *character,
            _ => self.text.get(self.at..)?.chars().next()?,
        };
        let message = format!("the control character U+{:04X} is not allowed in YAML", u32::from(found));
        let is_refused = found.is_control() && !matches!(found, '\t' | '\n' | '\r' | '\u{85}');
        is_refused.then(|| self.syntax(message, "within double quotes write it as an escape such as \\u0000"))
    }

    fn in_brackets(&self) -> Diagnostic {
        let start = self.builder.open_bracket().unwrap_or_default();
        let open = self.text.get(start as usize..).and_then(|text| text.chars().next()).unwrap_or('[');
        let close = closing(open);
        Diagnostic::error(&codes::BRACKET, self.here(), format!("expected ',' or '{close}' before this"))
            .with_label(self.builder.span(start, start + 1), format!("'{open}' is opened here"))
            .with_help(format!("add the missing ',' or '{close}', or put text that contains brackets in quotes"))
    }

    /// Describes text behind the bracket that closes the text, as where JSON stands line by line.
    fn behind_brackets(&self, end: usize) -> Diagnostic {
        let behind = self.text.get(end..).unwrap_or_default();
        let start = end + (behind.len() - behind.trim_start().len());
        let length = behind.trim_start().chars().next().map_or(0, char::len_utf8);
        Diagnostic::error(&codes::DOCUMENTS, self.span(start..start + length), "unexpected text after the document")
            .with_help("remove it, or put each document into a file of its own")
    }

    fn in_block(&self, kind: &ErrorKind) -> Diagnostic {
        use ErrorKind as K;
        if let Some(finding) = self.missing_space(kind) {
            return finding;
        }
        match kind {
            K::ExpectedBlockMappingKey
            | K::ExpectedBlockSequenceEntry
            | K::InvalidIndentation
            | K::InvalidBlockScalarIndent
            | K::ExpectedDocumentStart => self.indentation(),
            K::BlockSequenceEntryNotAllowed => self.syntax(
                "a dash starts an element of a list, which is not allowed here".to_owned(),
                "put the list on lines of its own, or the dash in quotes if text is meant",
            ),
            K::UnexpectedCharacter { character } => {
                let message = format!("text cannot start with the character {character}");
                self.in_quotes(self.syntax(message, "put the text in quotes"))
            }
            K::MappingValueNotAllowed if self.continues_above() => self.indentation(),
            K::MappingValueNotAllowed => {
                self.syntax("a colon is not allowed here".to_owned(), "put text that holds ': ' in quotes")
            }
            K::SimpleKeyExpected if self.is_below_block() => {
                let finding = self.indentation_of("the text of a block is not indented further than its key");
                finding.with_help("indent each of its lines by two spaces more than the key above")
            }
            K::SimpleKeyExpected if let Some(finding) = self.comment_of_others() => finding,
            K::SimpleKeyExpected => self.missing_colon_in(self.line()).unwrap_or_else(|| {
                self.syntax("expected 'key: value'".to_owned(), "a key requires a colon and a space after it")
            }),
            K::CommentInterceptedScalar => self.comment_in_text(),
            K::InvalidTrailingSingleQuotedScalar | K::InvalidTrailingDoubleQuotedScalar => self.behind_quote(),
            _ => Diagnostic::error(&codes::SYNTAX, self.here(), kind.to_string()),
        }
    }

    /// A comment behind text that the next line goes on with, where that is text for want of a colon as a rule.
    fn comment_in_text(&self) -> Diagnostic {
        let (start, line) = self.line();
        let before = without_comment(line);
        let missing = self.missing_space_in((start, before)).or_else(|| self.missing_space_after_dash());
        missing.or_else(|| self.missing_colon_in((start, before))).unwrap_or_else(|| {
            self.syntax(
                "a comment ends this text, and the next line goes on with it".to_owned(),
                "look for a missing ':' in this line or the next; text of several lines stands behind '|', without comments",
            )
        })
    }

    /// A line that begins like a comment of another language.
    fn comment_of_others(&self) -> Option<Diagnostic> {
        let (start, line) = self.line();
        let text = line.trim_start();
        let sign = ["//", "/*", "--", ";"].into_iter().find(|sign| text.starts_with(sign))?;
        let at = start + line.len() - text.len();
        let finding =
            Diagnostic::error(&codes::SYNTAX, self.span(at..at + sign.len()), "this is not a comment in YAML");
        let finding = finding.with_help("a comment begins with '#'");
        Some(if sign == "/*" { finding } else { finding.with_fix(self.span(at..at + sign.len()), "#") })
    }

    /// Text behind a closing quote: where an expression is in single quotes, those of its strings end it.
    fn behind_quote(&self) -> Diagnostic {
        let finding = self.syntax(
            "unexpected text after the closing quote".to_owned(),
            "put all of the text in quotes; a single quote within single quotes is written twice",
        );
        let (start, line) = self.line();
        let range = line.get(..self.at.saturating_sub(start)).and_then(|before| {
            let open = before.find("'[")?;
            Some(start + open..start + open + line.get(open..)?.rfind("]'")? + 2)
        });
        let inner = range.clone().and_then(|range| self.text.get(range.start + 1..range.end - 1));
        match (range, inner.filter(|inner| !inner.contains(['"', '\\']))) {
            (Some(range), Some(inner)) => Diagnostic::error(
                &codes::SYNTAX,
                self.span(range.clone()),
                "the strings of an expression in single quotes end it",
            )
            .with_help(format!("put the expression in double quotes: \"{inner}\""))
            .with_fix(self.span(range), format!("\"{inner}\"")),
            _ => finding,
        }
    }

    /// Returns whether the text that ends at the fault started on a line above, because its own line is too deep for
    /// a key.
    fn continues_above(&self) -> bool {
        self.builder.last().start < position(self.line().0) && self.builder.last().end > position(self.line().0)
    }

    fn syntax(&self, message: String, help: &str) -> Diagnostic {
        Diagnostic::error(&codes::SYNTAX, self.here(), message).with_help(help)
    }

    /// The finding with the change that puts the text at the fault in quotes, up to the end of its value.
    fn in_quotes(&self, finding: Diagnostic) -> Diagnostic {
        let is_in_brackets = self.builder.open_bracket().is_some() || is_in_brackets(self.text, self.at);
        let end = value_end(self.text, self.at, is_in_brackets);
        let written = self.text.get(self.at..end).filter(|_| starts_value(self.text, self.at));
        match written.filter(|written| !written.is_empty() && !written.contains(": ") && !written.ends_with(':')) {
            Some(written) => finding.with_fix(self.span(self.at..end), format!("'{}'", written.replace('\'', "''"))),
            None => finding,
        }
    }

    fn indentation(&self) -> Diagnostic {
        let missing = self.missing_space_after_dash().or_else(|| self.missing_space_above());
        if let Some(finding) = missing.or_else(|| self.missing_colon_above()) {
            return finding;
        }
        let (start, line) = self.line();
        if let Some((key, behind)) = line.split_once(": {{").filter(|(_, behind)| behind.contains("}}")) {
            let (from, to) =
                (start + key.len() + 2, start + line.len() - behind.len() + behind.find("}}").unwrap_or(0) + 2);
            let help = "write the value as an expression in quotes, such as \"[concat(parameters('NAME'), '/x')]\"";
            return Diagnostic::error(&codes::SYNTAX, self.span(from..to), PLACEHOLDER).with_help(help);
        }
        let blank = line.len() - line.trim_start_matches(' ').len();
        self.indentation_of(&format!("the line is indented by {blank} spaces, which matches no line above it"))
            .with_help("indent it like the lines that it belongs to; if it is right, look for a missing ':' or space in the line above")
    }

    fn indentation_of(&self, message: &str) -> Diagnostic {
        let (start, line) = self.line();
        let word = start + line.len() - line.trim_start_matches(' ').len();
        let end = start + line.trim_end().len();
        Diagnostic::error(&codes::INDENTATION, self.span(word..end.max(word)), message)
    }

    /// Returns whether the line above begins a text of several lines, as `key: |` does.
    fn is_below_block(&self) -> bool {
        let above = self.text.get(..self.line().0).map(str::trim_end).unwrap_or_default();
        above.trim_end_matches(['-', '+', '1', '2', '3', '4', '5', '6', '7', '8', '9']).ends_with(['|', '>'])
    }

    /// `key:value` where only `key: value` can stand.
    fn missing_space(&self, kind: &ErrorKind) -> Option<Diagnostic> {
        if !matches!(kind, ErrorKind::SimpleKeyExpected | ErrorKind::ExpectedBlockMappingKey) {
            return None;
        }
        self.missing_space_in(self.line())
    }

    /// `key:value` in the line above, which then is text that the line at the fault does not continue.
    fn missing_space_above(&self) -> Option<Diagnostic> {
        let (start, _) = self.line();
        let above = self.text.get(..start)?.trim_end();
        let (start, line) = self.line_of(above.len());
        line.trim_start().starts_with("- ").then(|| self.missing_space_in((start, line)))?
    }

    /// `key value` in the line above, where the line at the fault is a key or an element behind a dash.
    fn missing_colon_above(&self) -> Option<Diagnostic> {
        let (start, line) = self.line();
        let above = self.text.get(..start)?.trim_end();
        let (above_start, above) = self.line_of(above.len());
        let is_element = line.trim_start().starts_with("- ");
        let is_key = line.split_once(':').is_some_and(|(key, _)| is_key(key.trim_start_matches([' ', '-'])));
        (is_element || is_key).then(|| self.missing_colon_in((above_start, above)))?
    }

    /// `key value` or `key`, in a line that has nothing else.
    fn missing_colon_in(&self, (start, line): (usize, &str)) -> Option<Diagnostic> {
        if let Some(finding) = self.missing_bar_above(start, line) {
            return Some(finding);
        }
        let written = without_comment(line).trim_start_matches([' ', '-']);
        let (key, value) = written.split_once(' ').unwrap_or((written, ""));
        // More words are rather text that was meant to go on.
        if !is_key(key) || value.trim_start().contains([' ', ':', '"', '\'', '[', ']', '{', '}', '#']) {
            return None;
        }
        let key_start = start + (line.len() - line.trim_start_matches([' ', '-']).len());
        let at = key_start + key.len();
        let missing = format!("a colon is missing after '{key}'");
        // The value may be a secret, and other words may be text that was meant to go on.
        let form = if value.is_empty() { format!("write '{key}:'") } else { format!("write '{key}: …'") };
        if let Some((owner, indent)) = self.text_above(start, line) {
            let message = format!("{missing}, or the line belongs to the text of '{owner}' and is indented too little");
            let help = format!("indent it by {indent} spaces if it is a part of the text; else {form}");
            return Some(Diagnostic::error(&codes::COLON, self.span(key_start..at), message).with_help(help));
        }
        let finding = Diagnostic::error(&codes::COLON, self.span(key_start..at), missing).with_help(form);
        Some(if KEYS.contains(&key) { finding.with_fix(self.span(at..at), ":") } else { finding })
    }

    /// A text of several lines whose key above has no `|`.
    fn missing_bar_above(&self, start: usize, line: &str) -> Option<Diagnostic> {
        let width = |line: &str| line.len() - line.trim_start_matches(' ').len();
        // The line that it lies below, and no line further in.
        let (at, above) = self.lines_above(start).find(|(_, above)| width(above) < width(line))?;
        let above = without_comment(above);
        let key = above.trim_start_matches(['-', ' ']).strip_suffix(':')?;
        let end = at + above.len();
        let finding =
            Diagnostic::error(&codes::SYNTAX, self.span(end - 1..end), format!("'|' is missing after '{key}:'"));
        let help = format!("write '{key}: |' before text of several lines");
        TEXTS.contains(&key).then(|| finding.with_help(help).with_fix(self.span(end..end), " |"))
    }

    /// The lines with text above a place, the nearest first, and where each starts.
    fn lines_above(&self, start: usize) -> impl Iterator<Item = (usize, &'t str)> {
        let mut end = start;
        let lines = self.text.get(..start).unwrap_or_default().split_inclusive('\n').rev();
        let placed = lines.map(move |line| {
            end -= line.len();
            (end, line.trim_end_matches(['\n', '\r']))
        });
        placed.filter(|(_, line)| !line.trim().is_empty())
    }

    /// `-key: value` in a line above, which the line at the fault goes on.
    fn missing_space_after_dash(&self) -> Option<Diagnostic> {
        let width = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let (start, line) = self.line();
        let is_pair = |(_, line): &(usize, &str)| {
            let pair = line.trim_start().strip_prefix('-').and_then(|word| word.split_once(':'));
            pair.is_some_and(|(key, rest)| is_key(key) && !key.starts_with('-') && rest.starts_with(' '))
        };
        let above = self.lines_above(start).find(|(_, above)| width(above) < width(line));
        let (from, first) = std::iter::once((start, line)).chain(above).find(is_pair)?;
        let at = from + width(first) + 1;
        let finding = Diagnostic::error(&codes::SYNTAX, self.span(at - 1..at), "a space is missing after the dash");
        let finding = finding
            .with_help("write '- ' in front of each element of a list, and the keys of one element below each other");
        let goes_on = width(line) > width(first) + 1 || from == start;
        Some(if goes_on { finding.with_fix(self.span(at..at), " ") } else { finding })
    }

    /// The key of the block of text (`|` or `>`) that ends right above a line, and the indentation of its first line.
    fn text_above(&self, start: usize, line: &str) -> Option<(&str, usize)> {
        let width = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let (own, mut first) = (width(line), None);
        for above in self.text.get(..start)?.lines().rev().filter(|above| !above.trim().is_empty()) {
            let is_header = above.trim_end().trim_end_matches(['+', '-']).ends_with(" |")
                || above.trim_end().trim_end_matches(['+', '-']).ends_with(" >");
            match first {
                Some(indent) if is_header && width(above) < indent => {
                    let (key, _) = above.trim_start_matches([' ', '-']).split_once(':')?;
                    return (own <= width(above)).then_some((key, indent));
                }
                _ if width(above) <= own => return None,
                _ => first = Some(width(above)),
            }
        }
        None
    }

    fn missing_space_in(&self, (start, line): (usize, &str)) -> Option<Diagnostic> {
        let word = line.trim_start_matches([' ', '-']);
        let colon = word.find(':')?;
        let key = word.get(..colon)?;
        let value = word.get(colon + 1..)?;
        if !is_key(key) || value.is_empty() || value.starts_with([' ', '\t', '/', ':']) {
            return None;
        }
        let at = start + (line.len() - word.len()) + colon + 1;
        let finding = Diagnostic::error(&codes::COLON, self.span(at - 1..at), "a space is missing after the colon");
        Some(finding.with_help(format!("write '{key}: …'")).with_fix(self.span(at..at), " "))
    }
}

/// Keys of documents and of instances that are certainly meant where they stand alone or in front of one word.
const KEYS: [&str; 15] = [
    "condition",
    "content",
    "copy",
    "defaultValue",
    "dependsOn",
    "directives",
    "metadata",
    "name",
    "outputs",
    "parameters",
    "path",
    "properties",
    "resources",
    "type",
    "variables",
];

/// Keys whose values are text, often of several lines.
const TEXTS: [&str; 7] = ["content", "set", "test", "script", "command", "text", "description"];

/// Returns whether a word can be a key without quotes.
fn is_key(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.'))
}
