//! Edits that format a document.

use std::ops::Range;

use stead_core::text::{FormatError, Limits, format};

/// The edits that make a text what [`format()`] makes of it: each replaces blanks and line ends only, so that cursors and marks
/// stay where they are. None for a text that cannot be read.
pub(crate) fn edits(text: &str) -> Result<Vec<(Range<usize>, String)>, FormatError> {
    match format(text, &Limits::default()) {
        Ok(formatted) => Ok(between(text, &formatted.text)),
        Err(FormatError::Unreadable(_)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The edits between texts that differ in blanks only.
fn between(old: &str, new: &str) -> Vec<(Range<usize>, String)> {
    let mut edits = Vec::new();
    let (mut at, mut rest, mut wanted) = (0, old, new);
    while !rest.is_empty() || !wanted.is_empty() {
        let ((blanks, behind), (new_blanks, new_behind)) = (split(rest, true), split(wanted, true));
        if blanks != new_blanks {
            edits.push((at..at + blanks.len(), new_blanks.to_owned()));
        }
        // A word ends where it does in one of the texts.
        let length = split(behind, false).0.len().min(split(new_behind, false).0.len());
        if length == 0 && blanks.is_empty() && new_blanks.is_empty() {
            break;
        }
        at += blanks.len() + length;
        (rest, wanted) = (behind.get(length..).unwrap_or_default(), new_behind.get(length..).unwrap_or_default());
    }
    edits
}

/// The blanks at the beginning of a text, or what is before the first one, and the rest.
fn split(text: &str, is_blank: bool) -> (&str, &str) {
    let end = text.find(|letter| matches!(letter, ' ' | '\t' | '\r' | '\n') != is_blank).unwrap_or(text.len());
    text.split_at(end)
}
