//! The fast way for JSON: programs write large documents in it, and users write `[]` and `["[resourceId('a', 'b')]"]`.
//!
//! It reads what is certainly plain JSON and leaves everything else, and everything that is wrong, to the front end for
//! all of YAML, which reads JSON as well. So there is one place that finds faults, and this one has none to report.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::keys::Keys;
use super::node::are_distinct;
use super::scalar::{self, Plain};
use super::{Entry, Kind, Limits, Node, SourceId, Span, Takes};

/// Returns whether a text begins like JSON, and not like YAML in blocks.
pub(super) fn may_be(text: &str) -> bool {
    text.trim_start_matches([' ', '\n', '\r', '\t']).starts_with('{')
}

/// The tree of a text that is plain JSON; `None` for every other.
pub(super) fn read(source: SourceId, text: &str, limits: &Limits, takes: Option<Takes<'_>>) -> Option<Node> {
    if !may_be(text) || has_special(text) {
        return None;
    }
    let is_blank = |byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    let mut reader = Reader { takes, ..Reader::new(source, text, limits.nodes, limits.depth, is_blank) };
    reader.skip_blanks();
    let root = reader.value(0)?;
    reader.skip_blanks();
    reader.peek().is_none().then_some(root)
}

/// Returns whether a text has any of these. Most have no character beyond ASCII's, which is found out many bytes at a time.
fn has_special(text: &str) -> bool {
    memchr(0x7f, text.as_bytes()).is_some() || (!text.is_ascii() && text.contains(is_special))
}

/// Characters beyond ASCII's that are not read as they are: JSON takes them, YAML refuses them or reads them in another way.
pub(super) fn is_special(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Reads JSON out of a text.
pub(super) struct Reader<'t, 'e> {
    source: SourceId,
    text: &'t str,
    /// Where the next character is.
    pub(super) at: usize,
    /// How many values more there may be.
    pub(super) left: usize,
    deepest: usize,
    /// The characters that may stand between two pieces.
    is_blank: fn(u8) -> bool,
    /// The members of objects and elements of lists that have not ended: they take their own from the top.
    members: Vec<Entry>,
    elements: Vec<Node>,
    keys: Keys,
    takes: Option<Takes<'e>>,
}

impl<'t> Reader<'t, '_> {
    /// Reads from the start of a text, with room for so many values and so many levels.
    pub(super) fn new(source: SourceId, text: &'t str, left: usize, deepest: usize, is_blank: fn(u8) -> bool) -> Self {
        let (members, elements, keys) = (Vec::new(), Vec::new(), Keys::default());
        Self { source, text, at: 0, left, deepest, is_blank, members, elements, keys, takes: None }
    }

    /// The value that starts here, within so many levels.
    pub(super) fn value(&mut self, depth: usize) -> Option<Node> {
        self.left = self.left.checked_sub(1)?;
        let start = self.at;
        let kind = match self.peek()? {
            b'{' | b'[' if depth >= self.deepest => return None,
            b'{' => self.object(depth)?,
            b'[' => self.array(depth)?,
            b'"' => Kind::String(self.quoted()?.into()),
            _ => self.word()?,
        };
        Some(Node { span: self.span(start)?, kind })
    }

    fn array(&mut self, depth: usize) -> Option<Kind> {
        let base = self.elements.len();
        let is_taken = depth == 1 && self.takes.as_mut().is_some_and(Takes::begin);
        self.pieces(b']', |reader| {
            let element = reader.value(depth + 1)?;
            match reader.takes.as_mut().filter(|_| is_taken) {
                Some(takes) => takes.take(element)?,
                None => reader.elements.push(element),
            }
            Some(())
        })?;
        Some(Kind::Array(self.elements.drain(base..).collect()))
    }

    fn object(&mut self, depth: usize) -> Option<Kind> {
        let base = self.members.len();
        self.pieces(b'}', |reader| {
            let start = reader.at;
            let key = reader.quoted()?;
            let key = reader.keys.shared(&key);
            if let Some(takes) = reader.takes.as_mut().filter(|_| depth == 0) {
                takes.note_member(&key);
            }
            // The quotes belong to the name, as they belong to every text.
            let key_span = reader.span(start)?;
            reader.skip_blanks();
            reader.take(b':')?;
            reader.skip_blanks();
            let value = reader.value(depth + 1)?;
            reader.members.push(Entry { key, key_span, value });
            Some(())
        })?;
        let members: Box<[Entry]> = self.members.drain(base..).collect();
        // A name that occurs twice is a finding.
        are_distinct(&members).then_some(Kind::Object(members))
    }

    /// An opening bracket, pieces with commas between them, and the closing bracket.
    fn pieces(&mut self, closing: u8, mut piece: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.skip_blanks();
        if self.take(closing).is_some() {
            return Some(());
        }
        loop {
            piece(self)?;
            self.skip_blanks();
            if self.take(closing).is_some() {
                return Some(());
            }
            self.take(b',')?;
            self.skip_blanks();
        }
    }

    /// Text in quotes.
    fn quoted(&mut self) -> Option<Cow<'t, str>> {
        self.take(b'"')?;
        let rest = self.text.as_bytes().get(self.at..)?;
        let mut escapes = 0;
        let mut length = memchr2(b'"', b'\\', rest)?;
        while rest.get(length) == Some(&b'\\') {
            escapes += 1;
            // What is behind it belongs to it, whatever it is.
            let behind = length + 2;
            length = behind + memchr2(b'"', b'\\', rest.get(behind..)?)?;
        }
        let inner = self.text.get(self.at..self.at + length)?;
        self.at += length + 1;
        // Over all bytes, without an end at the first: that is done many at a time.
        let is_control = |byte: u8| byte < b' ';
        let controls = inner.bytes().fold(false, |found, byte| found | is_control(byte));
        match (controls, escapes) {
            (true, _) => None,
            (false, 0) => Some(Cow::Borrowed(inner)),
            (false, _) => unescaped(inner, escapes).map(Cow::Owned),
        }
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Option<Kind> {
        let rest = self.text.get(self.at..)?;
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let length = rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        self.at += length;
        match scalar::plain(rest.get(..length).filter(|word| !word.is_empty())?) {
            Plain::Value(kind) => Some(kind),
            Plain::Text | Plain::Unkept | Plain::NotFinite | Plain::TooLarge => None,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek() == Some(byte)).then(|| self.at += 1)
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(self.is_blank) {
            self.at += 1;
        }
    }

    fn span(&self, start: usize) -> Option<Span> {
        Some(Span::new(self.source, u32::try_from(start).ok()?, u32::try_from(self.at).ok()?))
    }
}

/// Text with its escapes replaced, of which there are so many. Halves of characters have rules of their own and are left.
fn unescaped(text: &str, escapes: usize) -> Option<String> {
    // Exact for the short escapes, of which there are most.
    let mut plain = String::with_capacity(text.len().saturating_sub(escapes));
    let mut rest = text;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        let (before, behind) = (rest.get(..at)?, rest.get(at + 1..)?);
        plain.push_str(before);
        let mut length = 1;
        plain.push(match behind.as_bytes().first()? {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                length = 5;
                let digits = behind.get(1..5).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            _ => return None,
        });
        rest = behind.get(length..)?;
    }
    plain.push_str(rest);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read(text: &str) -> bool {
        read(SourceId::default(), text, &Limits::default(), None).is_some()
    }

    #[test]
    fn what_programs_write_is_read() {
        assert!(is_read(r#"{"a": [1, -2.5, "\u00e4\n", true, null, {}], "b c": {"d": "ö"}, "\"": []}"#));
        assert!(is_read("\n{\r\n\t\"a\" : 1\r\n}\n"));
    }

    #[test]
    fn what_has_rules_of_its_own_is_left() {
        let texts = [
            "[1]",
            r#"{"a": 1, "a": 2}"#,
            r#"{"a": "\ud83d\ude00"}"#,
            "{\"a\": \"\u{85}\"}",
            "{\"a\": \"\u{7f}\"}",
            "{\"a\": \"x\ny\"}",
            "{a: 1}",
            r#"{"a": 1"#,
            r#"{"a": [1,]}"#,
            r#"{"a": 0x1ffffffffffffffff}"#,
            r#"{"a": word}"#,
            "{} # why",
        ];
        for text in texts {
            assert!(!is_read(text), "{text}");
        }
    }
}
