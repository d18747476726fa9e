//! The roles of single characters.

/// The width in bytes of the blank there, or 0; a line end is none.
pub(super) fn blank_width(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at..) {
        Some([b' ' | b'\t' | 0x0B | 0x0C, ..]) => 1,
        Some([first @ 0xC2..=0xE3, ..]) => {
            let length = if *first < 0xE0 { 2 } else { 3 };
            let text = bytes.get(at..at + length).and_then(|bytes| std::str::from_utf8(bytes).ok());
            text.filter(|text| text.starts_with(is_blank)).map_or(0, str::len)
        }
        _ => 0,
    }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() && !matches!(c, '\r' | '\n')
}

/// Returns whether a word ends before it.
pub(super) fn ends_word(c: char) -> bool {
    match c {
        '\0'..='\x7F' => {
            matches!(c, '\0' | '\t'..='\r' | ' ' | '&' | '(' | ')' | ',' | ';' | '<' | '>' | '{' | '|' | '}')
        }
        _ => is_blank(c),
    }
}

/// Returns whether a number in an expression may end before it.
pub(super) fn ends_number(c: char) -> bool {
    ends_word(c) || matches!(c, '!' | '#' | '%' | '*' | '+' | '.' | '/' | '=' | ']' | '?' | ':') || is_dash(c)
}

/// Returns whether it may be part of a plain name.
pub(crate) fn is_name(c: char) -> bool {
    match c {
        '\0'..='\x7F' => c.is_ascii_alphanumeric() || c == '_',
        _ => c.is_alphanumeric(),
    }
}

/// Returns whether it may be part of the full name of a type.
pub(super) fn is_type_name(c: char) -> bool {
    is_name(c) || matches!(c, '.' | '`' | '+' | '#' | '\\')
}

/// `'` and what word processors make of it.
pub(crate) fn is_single_quote(c: char) -> bool {
    matches!(c, '\'' | '\u{2018}'..='\u{201B}')
}

/// `"` and what word processors make of it.
pub(crate) fn is_double_quote(c: char) -> bool {
    matches!(c, '"' | '\u{201C}'..='\u{201E}')
}

/// `-` and what word processors make of it.
pub(crate) fn is_dash(c: char) -> bool {
    matches!(c, '-' | '\u{2013}'..='\u{2015}')
}
