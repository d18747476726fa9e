//! Texts as lines, for files with an entry on each.

use std::ops::Range;

use similar::DiffOp;

use crate::edit::line_steps;

/// A line of a text and where it is.
pub(crate) struct Line<'t> {
    /// Without its ending.
    pub(crate) text: &'t str,
    /// With its ending.
    pub(crate) range: Range<usize>,
}

/// The lines of a text, in order.
pub(crate) fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let line = |piece: &'_ str| {
        let range = start..start + piece.len();
        start = range.end;
        range
    };
    let ranges: Vec<_> = text.split_inclusive('\n').map(line).collect();
    text.lines().zip(ranges).map(|(text, range)| Line { text, range }).collect()
}

fn texts<'t>(lines: &[Line<'t>]) -> Vec<&'t str> {
    lines.iter().map(|line| line.text).collect()
}

/// The ending that new lines of a text get: that of its first line.
pub(crate) fn ending(text: &str) -> &'static str {
    let first = text.split_inclusive('\n').next().unwrap_or_default();
    if first.ends_with("\r\n") { "\r\n" } else { "\n" }
}

/// A text whose lines end as they do in another one, which it was made of: those that are new end as its first line does.
pub(crate) fn with_endings(former: &str, text: &str) -> String {
    if !former.contains("\r\n") {
        return text.to_owned();
    }
    let (old, new) = (lines(former), lines(text));
    let mut endings: Vec<&str> = vec![ending(former); new.len()];
    for step in line_steps(&texts(&old), &texts(&new)) {
        let DiffOp::Equal { old_index, new_index, len } = step else { continue };
        for (line, ending) in old.iter().skip(old_index).zip(endings.iter_mut().skip(new_index)).take(len) {
            *ending = former.get(line.range.start + line.text.len()..line.range.end).unwrap_or("\n");
        }
    }
    let is_finished = text.ends_with('\n');
    let last = new.len().saturating_sub(1);
    let ended = new.iter().zip(endings).enumerate();
    ended
        .flat_map(|(at, (line, ending))| match ending {
            _ if at == last && !is_finished => [line.text, ""],
            "" => [line.text, self::ending(former)],
            ending => [line.text, ending],
        })
        .collect()
}

/// A text with other bytes in place of a range of it.
///
/// Assumptions: the range lies on borders of characters.
pub(crate) fn replaced(text: &str, range: &Range<usize>, new: &str) -> String {
    let (front, back) = (text.get(..range.start).unwrap_or(text), text.get(range.end..).unwrap_or_default());
    [front, new, back].concat()
}

/// A text with lines, each with its ending, put where a line begins, or at its end.
pub(crate) fn inserted(text: &str, at: usize, new: &str) -> String {
    let unfinished = at >= text.len() && !text.is_empty() && !text.ends_with('\n');
    let glue = if unfinished { ending(text) } else { "" };
    replaced(text, &(at..at), &[glue, new].concat())
}

/// Which of several lines with the same entry is in force.
#[derive(Clone, Copy)]
pub(crate) enum InForce {
    First,
    Last,
}

/// The line in force among those that an entry is on.
pub(crate) fn entry(text: &str, in_force: InForce, is_entry: impl Fn(&str) -> bool) -> Option<Line<'_>> {
    let mut found = lines(text).into_iter().filter(|line| is_entry(line.text));
    match in_force {
        InForce::First => found.next(),
        InForce::Last => found.next_back(),
    }
}

/// The text with an entry: in place of the line in force, or at the end.
pub(crate) fn put_entry(text: &str, in_force: InForce, is_entry: impl Fn(&str) -> bool, new: &str) -> String {
    match entry(text, in_force, is_entry) {
        Some(Line { text: old, range }) => replaced(text, &(range.start..range.start + old.len()), new),
        None => inserted(text, text.len(), &[new, ending(text)].concat()),
    }
}

/// The text without the lines that an entry is on.
pub(crate) fn without_entry(text: &str, is_entry: impl Fn(&str) -> bool) -> String {
    let kept = lines(text).into_iter().filter(|line| !is_entry(line.text));
    kept.filter_map(|line| text.get(line.range)).collect()
}
