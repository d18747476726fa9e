//! Positions as editors count them, and bytes.

use crate::protocol::{Position, PositionEncoding, Range};

/// How characters of a line are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encoding {
    /// In bytes.
    Utf8,
    /// In units of UTF-16, which every editor can.
    Utf16,
}

impl Encoding {
    /// The one that costs least of those that an editor offers.
    pub(crate) fn choose(offered: Option<&[PositionEncoding]>) -> Self {
        let has_utf8 = offered.is_some_and(|all| all.contains(&PositionEncoding::Utf8));
        if has_utf8 { Self::Utf8 } else { Self::Utf16 }
    }

    pub(crate) fn kind(self) -> PositionEncoding {
        match self {
            Self::Utf8 => PositionEncoding::Utf8,
            Self::Utf16 => PositionEncoding::Utf16,
        }
    }

    fn width(self, letter: char) -> usize {
        match self {
            Self::Utf8 => letter.len_utf8(),
            Self::Utf16 => letter.len_utf16(),
        }
    }
}

/// Where the lines of a text begin.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    starts: Vec<usize>,
    encoding: Encoding,
    /// How wide the byte order mark is that stands before the text in the editor.
    mark: usize,
}

impl Lines {
    pub(crate) fn of(text: &str, encoding: Encoding, has_mark: bool) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let mark = if has_mark { encoding.width('\u{feff}') } else { 0 };
        Self { starts: std::iter::once(0).chain(breaks).collect(), encoding, mark }
    }

    /// The lines of the same text with its mark as a part of it, if it has one.
    pub(crate) fn without_mark(&self) -> Option<Self> {
        let moved = self.starts.iter().map(|start| if *start == 0 { 0 } else { start + '\u{feff}'.len_utf8() });
        (self.mark > 0).then(|| Self { starts: moved.collect(), encoding: self.encoding, mark: 0 })
    }

    /// Returns how much wider a line is in the editor.
    fn hidden(&self, line: usize) -> usize {
        if line == 0 { self.mark } else { 0 }
    }

    /// The byte at a position; the end of the line or of the text where there is none.
    pub(crate) fn offset(&self, text: &str, position: Position) -> usize {
        let line = position.line as usize;
        let Some(start) = self.starts.get(line).copied() else { return text.len() };
        let end = self.starts.get(line + 1).map_or(text.len(), |next| next - 1);
        let content = text.get(start..end).unwrap_or_default();
        let hidden = self.hidden(line);
        let (mut left, mut at) = ((position.character as usize).saturating_sub(hidden), start);
        for letter in content.trim_end_matches('\r').chars() {
            let width = self.encoding.width(letter);
            if width > left {
                break;
            }
            left -= width;
            at += letter.len_utf8();
        }
        at
    }

    /// The position of a byte.
    pub(crate) fn position(&self, text: &str, offset: usize) -> Position {
        let offset = offset.min(text.len());
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or_default();
        let before = (start..=offset).rev().find_map(|end| text.get(start..end)).unwrap_or_default();
        let width = before.chars().map(|letter| self.encoding.width(letter)).sum::<usize>();
        let character = width + self.hidden(line);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Position { line: number(line), character: number(character) }
    }

    pub(crate) fn range(&self, text: &str, (start, end): (usize, usize)) -> Range {
        Range { start: self.position(text, start), end: self.position(text, end.max(start)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_editors() {
        let text = "ab\r\nä😀x\n";
        for (encoding, places) in [
            (Encoding::Utf16, [(0, (0, 0)), (2, (0, 2)), (4, (1, 0)), (6, (1, 1)), (10, (1, 3)), (12, (2, 0))]),
            (Encoding::Utf8, [(0, (0, 0)), (2, (0, 2)), (4, (1, 0)), (6, (1, 2)), (10, (1, 6)), (12, (2, 0))]),
        ] {
            let lines = Lines::of(text, encoding, false);
            for (offset, (line, character)) in places {
                let position = Position { line, character };
                assert_eq!(lines.position(text, offset), position, "{encoding:?} {offset}");
                assert_eq!(lines.offset(text, position), offset, "{encoding:?} {position:?}");
            }
            assert_eq!(lines.offset(text, Position { line: 0, character: 99 }), 2);
            assert_eq!(lines.offset(text, Position { line: 99, character: 0 }), text.len());
        }
    }
}
