//! From places within the text that a scalar stands for to places in the source.

use std::ops::Range;

use super::{Sources, Span};

/// Returns where bytes `range` of the text that a scalar stands for were written. `node_span` is the place of the
/// scalar.
///
/// Guarantees: the answer lies within `node_span` and on borders of characters. It is exact for plain and quoted
/// scalars and for literal and folded ones, folding included; where the source is not what the span says, it is
/// `node_span` itself.
///
/// # Examples
/// ```
/// use stead_core::text::{Limits, Source, Sources, Span, locate, read};
///
/// let text = r#"content: "a\tb""#;
/// let mut sources = Sources::default();
/// let id = sources.add(Source::new("main.yaml", text));
/// let (tree, _) = read(id, text, &Limits::default());
/// let scalar = tree.as_ref().and_then(|tree| tree.get("content")).ok_or("it has no content")?;
/// // The third byte of the value is the `b`, which four characters of the text precede.
/// let b = locate(&sources, scalar.span, 2..3);
/// assert_eq!(sources.text(b), Some("b"));
/// # Ok::<(), &str>(())
/// ```
pub fn locate(sources: &Sources, node_span: Span, range: Range<usize>) -> Span {
    match sources.get(node_span.source) {
        Some(source) => locate_in(&source.text, node_span, range),
        None => node_span,
    }
}

/// Locates a range like [`locate`], where the text of the source is at hand.
pub(crate) fn locate_in(text: &str, node_span: Span, range: Range<usize>) -> Span {
    let Some(written) = text.get(node_span.start as usize..node_span.end as usize) else { return node_span };
    let map = match written.chars().next() {
        Some('"') => double_quoted(written),
        Some('\'') => single_quoted(written),
        Some('|') => block(written, false),
        Some('>') => block(written, true),
        _ => folded_lines(written, 0, written.len(), &|_, _| None),
    };
    map.find(node_span, written, &range)
}

/// Pieces of text and where they were written, in order.
#[derive(Default)]
struct Map {
    pieces: Vec<Piece>,
    decoded: usize,
}

/// `decoded` bytes that were written as bytes `written`. Of equal length: byte by byte. Else: as one.
struct Piece {
    at: usize,
    decoded: usize,
    written: Range<usize>,
}

impl Map {
    fn push(&mut self, decoded: usize, written: Range<usize>) {
        if decoded == 0 {
            return;
        }
        let same = written.len() == decoded;
        match self.pieces.last_mut() {
            Some(last) if same && last.written.end == written.start && last.written.len() == last.decoded => {
                last.decoded += decoded;
                last.written.end = written.end;
            }
            _ => self.pieces.push(Piece { at: self.decoded, decoded, written }),
        }
        self.decoded += decoded;
    }

    /// The byte of the source at which the decoded byte `at` starts, or behind which the one before `at` ends.
    fn border(&self, at: usize, ends: bool) -> Option<usize> {
        let holds = |piece: &&Piece| {
            if ends {
                piece.at < at && at <= piece.at + piece.decoded
            } else {
                piece.at <= at && at < piece.at + piece.decoded
            }
        };
        let piece = self.pieces.iter().find(holds)?;
        let exact = piece.written.len() == piece.decoded;
        Some(match (exact, ends) {
            (true, _) => piece.written.start + (at - piece.at),
            (false, true) => piece.written.end,
            (false, false) => piece.written.start,
        })
    }

    fn find(&self, node: Span, written: &str, range: &Range<usize>) -> Span {
        let length = written.len();
        let border = |at: usize| (0..=at.min(length)).rev().find(|at| written.is_char_boundary(*at)).unwrap_or(0);
        let last = self.pieces.last().map_or(length, |piece| piece.written.end);
        let start = self.border(range.start, false).unwrap_or(last);
        let end = if range.end <= range.start { start } else { self.border(range.end, true).unwrap_or(last) };
        let (start, end) = (border(start), border(end));
        let offset = |at: usize| node.start.saturating_add(u32::try_from(at).unwrap_or(u32::MAX)).min(node.end);
        Span::new(node.source, offset(start), offset(end.max(start)))
    }
}

/// Reads an escape at a byte: how many bytes it stands for, and how many it is written with.
type Escape<'a> = &'a dyn Fn(&str, usize) -> Option<(usize, usize)>;

/// Lines that are joined as in plain and quoted scalars: blanks around a break fall away, one break is a space, more
/// are one break less.
fn folded_lines(text: &str, from: usize, upto: usize, escape: Escape<'_>) -> Map {
    let mut map = Map::default();
    let mut at = from;
    while at < upto {
        let Some(c) = text.get(at..upto).and_then(|rest| rest.chars().next()) else { break };
        let blanks = blanks_with_break(text, at, upto);
        if let Some((end, breaks)) = blanks {
            map.push((breaks - 1).max(1), at..end);
            at = end;
        } else if let Some((decoded, written)) = escape(text, at) {
            map.push(decoded, at..(at + written).min(upto));
            at += written.max(1);
        } else {
            map.push(c.len_utf8(), at..at + c.len_utf8());
            at += c.len_utf8();
        }
    }
    map
}

/// A run of blanks and breaks that holds a break: where it ends, and the number of breaks.
fn blanks_with_break(text: &str, at: usize, upto: usize) -> Option<(usize, usize)> {
    let rest = text.get(at..upto)?;
    let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    let breaks = rest.get(..blank)?.matches('\n').count();
    (breaks > 0).then_some((at + blank, breaks))
}

fn single_quoted(text: &str) -> Map {
    folded_lines(text, 1, closing(text, '\''), &|text, at| text.get(at..)?.starts_with("''").then_some((1, 2)))
}

fn double_quoted(text: &str) -> Map {
    folded_lines(text, 1, closing(text, '"'), &escape)
}

fn closing(text: &str, quote: char) -> usize {
    if text.len() > 1 && text.ends_with(quote) { text.len() - 1 } else { text.len() }
}

fn escape(text: &str, at: usize) -> Option<(usize, usize)> {
    let rest = text.get(at..)?.strip_prefix('\\')?;
    let kind = rest.chars().next()?;
    let hex = |digits: usize| u32::from_str_radix(rest.get(1..=digits)?, 16).ok();
    let length = |code: u32| char::from_u32(code).map_or(4, char::len_utf8);
    Some(match kind {
        'x' => (length(hex(2)?), 4),
        // The first half of a pair, which is one character of four bytes.
        'u' if (0xd800..0xdc00).contains(&hex(4)?) => (4, 12),
        'u' => (length(hex(4)?), 6),
        'U' => (length(hex(8)?), 10),
        'N' | '_' => (2, 2),
        'L' | 'P' => (3, 2),
        // A break behind a backslash, and the blanks of the next line, stand for nothing.
        '\n' | '\r' => (0, 1 + rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len()),
        _ => (1, 1 + kind.len_utf8()),
    })
}

fn block(text: &str, folded: bool) -> Map {
    let mut map = Map::default();
    let Some(header) = text.find('\n') else { return map };
    let lines = lines(text, header + 1);
    let depth = indentation(text, header, &lines);
    let mut previous: Option<Range<usize>> = None;
    for line in lines {
        let start = (line.start + depth).min(line.end);
        let body = text.get(start..line.end).unwrap_or_default();
        if let Some(before) = &previous {
            join(&mut map, text, before.clone(), start..line.end, folded);
        }
        map.push(body.len(), start..line.end);
        previous = Some(start..line.end);
    }
    map
}

/// The break between two lines: itself, or a space where lines are folded.
fn join(map: &mut Map, text: &str, before: Range<usize>, after: Range<usize>, folded: bool) {
    let deeper = |line: &Range<usize>| text.get(line.clone()).is_some_and(|text| text.starts_with([' ', '\t']));
    // A break next to an empty line vanishes into those that the empty lines stand for.
    let vanishes = folded && !before.is_empty() && after.is_empty() && !deeper(&before);
    map.push(usize::from(!vanishes), before.end..after.start.max(before.end));
}

fn lines(text: &str, from: usize) -> Vec<Range<usize>> {
    let mut at = from;
    let rest = text.get(from..).unwrap_or_default();
    let measure = |line: &str| {
        let start = at;
        at += line.len();
        start..start + line.trim_end_matches(['\n', '\r']).len()
    };
    rest.split_inclusive('\n').map(measure).collect()
}

/// Returns how deep the content of a block scalar is: that of its first line that is not blank.
fn indentation(text: &str, header: usize, lines: &[Range<usize>]) -> usize {
    let _ = header;
    let depth = |line: &Range<usize>| {
        let line = text.get(line.clone())?;
        let blank = line.len() - line.trim_start_matches(' ').len();
        (blank < line.len()).then_some(blank)
    };
    lines.iter().find_map(depth).unwrap_or(0)
}
