//! Text of others, of which nothing reaches a terminal that it would obey.

use std::borrow::Cow;

use stead_core::visible::{is_obeyed, visible_but};

/// Returns whether nothing of it is ever stripped.
pub(super) fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n')
}

/// Text for users: what a terminal would obey is written in visible signs, but for line breaks and tabs.
pub(crate) fn for_users(text: &str) -> Cow<'_, str> {
    visible_but(text, &['\n', '\t'])
}

/// Like [`for_users`], but leaves colours as they are, which may be those of this program.
pub(super) fn coloured(text: &str) -> Cow<'_, str> {
    with_styles(text, |style| style)
}

/// Like [`coloured`], without the colours.
pub(super) fn uncoloured(text: &str) -> Cow<'_, str> {
    with_styles(text, |_| "")
}

/// Text with what a terminal would obey in visible signs, and what is to stand in place of each sequence that sets a style.
fn with_styles<'t>(text: &'t str, style: impl Fn(&'t str) -> &'t str) -> Cow<'t, str> {
    let is_harmless = |character: char| !is_obeyed(character) || matches!(character, '\n' | '\t');
    let is_striking = |byte: u8| !is_plain(byte) && byte != b'\t';
    if !text.bytes().any(is_striking) || text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len() + 64), text);
    loop {
        let plain = rest.bytes().position(is_striking).unwrap_or(rest.len());
        let (head, tail) = rest.split_at(plain);
        out.push_str(head);
        let Some(character) = tail.chars().next() else { return Cow::Owned(out) };
        let length = style_at(tail);
        let (head, tail) = tail.split_at(length.unwrap_or(character.len_utf8()));
        match length {
            Some(_) => out.push_str(style(head)),
            None if is_harmless(character) => out.push_str(head),
            None => out.extend(character.escape_default()),
        }
        rest = tail;
    }
}

/// How long the sequence is that begins a text and sets a colour or a weight in which text can still be read.
fn style_at(text: &str) -> Option<usize> {
    const LONGEST: usize = 16;
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find('m').filter(|end| *end <= LONGEST)?;
    let is_style =
        |number: &str| matches!(number.parse(), Ok(0..=4 | 22 | 24 | 30..=37 | 39 | 90..=97_u8)) || number.is_empty();
    parameters.get(..end)?.split(';').all(is_style).then_some("\x1b[".len() + end + 1)
}

/// One line of text: what a terminal would take for a command is written in visible signs, but for tabs.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    visible_but(text, &['\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_reach_the_screen_and_nothing_else_that_is_obeyed() {
        let text = "\x1b[1m\x1b[31m- old\x1b[0m\n\tא ü\x1b[92;1mx\x1b[m";
        assert_eq!(coloured(text), text);
        assert_eq!(for_users("\x1b[1mא\tü\n"), "\\u{1b}[1mא\tü\n");
        assert_eq!(
            coloured("\x1b]0;t\x07\x1b[2J\x1b[8mh\r\u{9b}\u{202e}"),
            r"\u{1b}]0;t\u{7}\u{1b}[2J\u{1b}[8mh\r\u{9b}\u{202e}"
        );
    }

    #[test]
    fn without_colours_is_what_is_left_where_they_are_stripped() {
        let pieces = [
            "\x1b[1m",
            "\x1b[91m",
            "\x1b[m",
            "\x1b[0;39m",
            "\x1b[8m",
            "\x1b[2J",
            "\x1b",
            "\t",
            "ü",
            "a b",
            "\n",
            "\u{9b}",
        ];
        for first in pieces {
            for (second, third) in pieces.iter().flat_map(|second| pieces.map(|third| (second, third))) {
                let text = [first, second, third, "x"].concat();
                let stripped = anstream::adapter::strip_str(&coloured(&text)).to_string();
                assert_eq!(uncoloured(&text), stripped, "{text:?}");
            }
        }
    }
}
