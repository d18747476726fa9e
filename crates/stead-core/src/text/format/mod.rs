//! Formatting: the white space of a text becomes regular, and nothing else changes.
//!
//! ```text
//! text ──tokens──▶ tokens ──layout──▶ text ──same_events──▶ text, or nothing
//! ```
//!
//! Every token is written again as it was, in the order in which it was; only what stands between tokens, and the
//! indentation of text of several lines, is made anew.

mod layout;
mod tokens;

use std::borrow::Cow;

use granit_parser::{Event, Parser, ScanError, StrInput};

use super::limits::options;
use super::read::read;
use super::{Limits, SourceId};
use crate::diag::{Diagnostic, any_error};

/// A text that is formatted.
#[derive(Debug)]
pub struct Formatted {
    /// The text.
    pub text: String,
    /// Warnings about the text as it was.
    pub warnings: Vec<Diagnostic>,
}

/// Why a text is not formatted.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// It cannot be read.
    #[error("the text cannot be read")]
    Unreadable(Vec<Diagnostic>),
    /// It would be longer than a text may be.
    #[error("the formatted text would exceed the limit of {0} bytes; nothing was changed")]
    TooLong(usize),
    /// It would mean something else.
    #[error("internal error: formatting would change the meaning; nothing was changed; please report this bug")]
    Meaning,
}

/// Formats a YAML or JSON document.
///
/// Guarantees:
/// - The parser reports the same for both texts, but for places: values and how they are quoted, keys, anchors, aliases, tags,
///   and every comment, in the same order. This is checked each time, and a text that would not keep to it is not returned.
/// - Formatting a formatted text changes nothing.
/// - A byte order mark stays, and so do line ends, if all are as the first one is.
///
/// # Examples
/// ```
/// use stead_core::text::{Limits, format};
///
/// let text = "resources:\n   -   name: motd   # greeting\n       type:   Stead/File\n";
/// let formatted = format(text, &Limits::default())?.text;
/// assert!(formatted.contains("# greeting"));
/// assert_eq!(format(&formatted, &Limits::default())?.text, formatted);
/// # Ok::<(), stead_core::text::FormatError>(())
/// ```
pub fn format(text: &str, limits: &Limits) -> Result<Formatted, FormatError> {
    let (tree, findings) = read(SourceId::default(), text, limits);
    if tree.is_none() || any_error(&findings) {
        return Err(FormatError::Unreadable(findings));
    }
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let lines = if body.contains('\r') { Cow::Owned(with_line_feeds(body)) } else { Cow::Borrowed(body) };
    let tokens = tokens::of(&lines, limits).ok_or(FormatError::Meaning)?;
    let mut formatted = layout::lay_out(&lines, &tokens);
    if body.find('\n').is_some_and(|at| body.get(..at).is_some_and(|line| line.ends_with('\r'))) {
        formatted = formatted.replace('\n', "\r\n");
    }
    if formatted.len() > limits.bytes {
        return Err(FormatError::TooLong(limits.bytes));
    }
    if !same_letters(body, &formatted) || !same_events(body, &formatted, limits) {
        return Err(FormatError::Meaning);
    }
    Ok(Formatted { text: format!("{mark}{formatted}"), warnings: findings })
}

/// A carriage return ends a line as well, with a line feed or without.
fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Returns whether texts differ in nothing but blanks and line ends.
fn same_letters(one: &str, other: &str) -> bool {
    let is_letter = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    one.bytes().filter(is_letter).eq(other.bytes().filter(is_letter))
}

/// Returns whether the parser reports the same for two texts. Where comments stand between other events depends on
/// how deep they are, and so they are compared by themselves.
fn same_events(one: &str, other: &str, limits: &Limits) -> bool {
    let (mut one, mut other) = (Events::of(one, limits), Events::of(other, limits));
    loop {
        match (one.next(), other.next()) {
            (None, None) => return one.comments == other.comments,
            (Some(Ok(event)), Some(Ok(same))) if event == same => {}
            _ => return false,
        }
    }
}

struct Events<'t> {
    parser: Parser<'t, StrInput<'t>>,
    comments: Vec<String>,
}

impl<'t> Events<'t> {
    fn of(text: &'t str, limits: &Limits) -> Self {
        Self { parser: Parser::new_from_str_with_options(text, options(limits, true)), comments: Vec::new() }
    }

    /// The next one that is not a comment.
    fn next(&mut self) -> Option<Result<Event<'t>, ScanError>> {
        loop {
            match self.parser.next()? {
                Ok((Event::Comment(comment, _), _)) => {
                    self.comments.push(comment.trim_end_matches(tokens::BLANKS).to_owned());
                }
                other => return Some(other.map(|(event, _)| event)),
            }
        }
    }
}
