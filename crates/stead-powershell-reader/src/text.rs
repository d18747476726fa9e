//! Text of scripts, as PowerShell decodes it, and places in it.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A place in a file, as editors count: line and column from 1, the column in characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(into = "(u32, u32)", from = "(u32, u32)")]
pub struct LineColumn {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl LineColumn {
    /// The start of a file.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl From<LineColumn> for (u32, u32) {
    fn from(LineColumn { line, column }: LineColumn) -> Self {
        (line, column)
    }
}

impl From<(u32, u32)> for LineColumn {
    fn from((line, column): (u32, u32)) -> Self {
        Self { line, column }
    }
}

/// The text of a script or data file.
///
/// # Examples
/// ```
/// use stead_powershell_reader::text::{LineColumn, Text};
///
/// // `ä` and a line end of Windows, as UTF-16 with a byte order mark.
/// let text = Text::decode(&[0xFF, 0xFE, 0xE4, 0, 0x0D, 0, 0x0A, 0, 0x62, 0]);
/// assert_eq!(text.as_str(), "ä\r\nb");
/// assert_eq!(text.place(4), LineColumn { line: 2, column: 1 });
/// ```
#[derive(Clone, Debug)]
pub struct Text {
    text: String,
    /// The offset of the first byte of each line, once a place was asked for.
    lines: OnceLock<Vec<u32>>,
}

impl Text {
    /// Decodes a file as PowerShell does: a byte order mark decides between UTF-8, UTF-16 and UTF-32, without one it is
    /// UTF-8, and what is not valid becomes U+FFFD.
    pub fn decode(bytes: &[u8]) -> Self {
        Self::new(match bytes {
            [0xFF, 0xFE, 0, 0, rest @ ..] => utf32(rest, u32::from_le_bytes),
            [0, 0, 0xFE, 0xFF, rest @ ..] => utf32(rest, u32::from_be_bytes),
            [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
            [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
            [0xEF, 0xBB, 0xBF, rest @ ..] | rest => match std::str::from_utf8(rest) {
                Ok(text) => text.to_owned(),
                Err(_) => String::from_utf8_lossy(rest).into_owned(),
            },
        })
    }

    /// A text that is decoded.
    pub fn new(text: String) -> Self {
        Self { text, lines: OnceLock::new() }
    }

    fn lines(&self) -> &[u32] {
        self.lines.get_or_init(|| {
            let bytes = self.text.as_bytes();
            let ends = |at: usize, byte: u8| byte == b'\n' || (byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
            let starts = bytes.iter().enumerate().filter(|(at, byte)| ends(*at, **byte)).map(|(at, _)| at + 1);
            std::iter::once(0).chain(starts).map(|at| u32::try_from(at).unwrap_or(u32::MAX)).collect()
        })
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the byte at which the character at a place is; the end of the text, where there is none.
    pub fn offset(&self, place: LineColumn) -> usize {
        let line = self.lines().get((place.line as usize).saturating_sub(1));
        let start = line.map_or(self.text.len(), |start| *start as usize);
        let before = self.text.get(start..).unwrap_or_default().chars().take((place.column as usize).saturating_sub(1));
        start + before.map(char::len_utf8).sum::<usize>()
    }

    /// The place of the character at that byte; of the end, when it lies behind it.
    pub fn place(&self, offset: usize) -> LineColumn {
        let line = self.lines().partition_point(|start| *start as usize <= offset).saturating_sub(1);
        let start = self.lines().get(line).map_or(0, |start| *start as usize);
        let column = self.text.get(start..offset.min(self.text.len())).map_or(0, |before| before.chars().count());
        let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
        LineColumn { line: number(line), column: number(column) }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (units, rest) = bytes.as_chunks();
    let units = units.iter().map(|pair| unit(*pair));
    let decoded = char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER));
    decoded.chain((!rest.is_empty()).then_some(char::REPLACEMENT_CHARACTER)).collect()
}

fn utf32(bytes: &[u8], unit: fn([u8; 4]) -> u32) -> String {
    let (units, rest) = bytes.as_chunks();
    let decoded = units.iter().map(|four| char::from_u32(unit(*four)).unwrap_or(char::REPLACEMENT_CHARACTER));
    decoded.chain((!rest.is_empty()).then_some(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_decides() {
        let text = |bytes: &[u8]| Text::decode(bytes).as_str().to_owned();
        assert_eq!(text(b"a\xFF"), "a\u{FFFD}");
        assert_eq!(text(b"\xEF\xBB\xBFa"), "a");
        assert_eq!(text(b"\xFF\xFEa\0\x3d\xd8\0\xde"), "a😀");
        assert_eq!(text(b"\xFE\xFF\0a\0"), "a\u{FFFD}");
        assert_eq!(text(b"\xFF\xFE\0\0a\0\0\0"), "a");
    }

    #[test]
    fn each_way_to_end_a_line_counts_once() {
        let text = Text::new("a\r\nb\rc\nä😀d".to_owned());
        let place = |offset| (text.place(offset).line, text.place(offset).column);
        assert_eq!([place(0), place(3), place(5), place(7), place(13)], [(1, 1), (2, 1), (3, 1), (4, 1), (4, 3)]);
        assert_eq!(place(1000), (4, 4));
        assert_eq!([0, 3, 5, 7, 13].map(|offset| text.offset(text.place(offset))), [0, 3, 5, 7, 13]);
    }
}
