//! Foreign text made safe to show: nothing in it moves a cursor, fakes a line or changes the direction of the rest.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Returns whether a terminal obeys a character instead of showing it: control characters (C0 and C1), those that
/// change the direction of text, and line separators.
pub fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text for one line, in which every character that a terminal would obey is written as in Rust: `\u{1b}`.
///
/// # Examples
/// ```
/// use stead_core::visible::{visible, visible_but};
///
/// // A name that would clear the screen.
/// assert_eq!(visible("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
/// assert_eq!(visible_but("a\tb\n", &['\t']), "a\tb\\n");
/// assert_eq!(visible("naïve"), "naïve");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    visible_but(text, &[])
}

/// Like [`visible`], but leaves the characters in `kept` as they are.
pub fn visible_but<'t>(text: &'t str, kept: &[char]) -> Cow<'t, str> {
    let is_hidden = |character: char| is_obeyed(character) && !kept.contains(&character);
    escaped(text, is_hidden, |out, character| out.extend(character.escape_default()))
}

/// A path as text. One that is not UTF-8 is written as a shell takes it, and as `ls` of GNU shows it: no two have the same text,
/// and none has that of a path that begins with '/' and is UTF-8.
///
/// # Examples
/// ```
/// use std::ffi::OsStr;
/// use std::os::unix::ffi::OsStrExt as _;
/// use std::path::Path;
///
/// use stead_core::visible::path_text;
///
/// assert_eq!(path_text(Path::new("/srv/naïve")), "/srv/naïve");
/// assert_eq!(path_text(OsStr::from_bytes(b"/srv/caf\xe9's").as_ref()), r"$'/srv/caf\xe9\'s'");
/// ```
pub fn path_text(path: &Path) -> Cow<'_, str> {
    bytes_text(path.as_os_str().as_encoded_bytes())
}

/// Bytes as [`path_text`] writes them, such as the target of a link.
pub fn bytes_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = "$'".to_owned();
    for chunk in bytes.utf8_chunks() {
        out.push_str(&chunk.valid().replace('\\', r"\\").replace('\'', r"\'"));
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(out, r"\x{byte:02x}");
        }
    }
    out.push('\'');
    Cow::Owned(out)
}

/// JSON or a part of it, in which characters that a terminal would obey are written as JSON does: `\u202e`. It means the same.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    // Line breaks between values are the only ones that JSON leaves as they are.
    let is_hidden = |character: char| is_obeyed(character) && character != '\n';
    escaped(json, is_hidden, |out, character| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

fn escaped(text: &str, is_hidden: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let Some(first) = text.find(&is_hidden) else { return Cow::Borrowed(text) };
    let (head, tail) = text.split_at(first);
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(head);
    for character in tail.chars() {
        if is_hidden(character) { escape(&mut out, character) } else { out.push(character) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_visible() {
        assert_eq!(visible("a\u{1b}[2J\u{9b}b\u{202e}c\td"), r"a\u{1b}[2J\u{9b}b\u{202e}c\td");
        assert_eq!(visible_but("a\tb\nc\r", &['\t', '\n']), "a\tb\nc\\r");
        assert!(matches!(visible("schön, 日本, עברית"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_means_the_same() {
        let value = serde_json::json!({ "a\u{7f}": "\u{1b}\u{9b}\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}é" });
        let text = value.to_string();
        let shown = visible_json(&text);
        assert!(!shown.contains(is_obeyed), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
