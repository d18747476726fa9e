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
    let is_harmless = |character: char| !is_obeyed(character) || matches!(character, '\n' | '\t');
    if text.bytes().all(|byte| is_plain(byte) || byte == b'\t') || text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len() + 64), text);
    while let Some(character) = rest.chars().next() {
        let style = style_at(rest);
        let length = style.unwrap_or(character.len_utf8());
        let (head, tail) = rest.split_at(length);
        if style.is_some() || is_harmless(character) {
            out.push_str(head);
        } else {
            out.extend(character.escape_default());
        }
        rest = tail;
    }
    Cow::Owned(out)
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
}
