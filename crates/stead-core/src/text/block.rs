//! The fast way for YAML: most documents are nothing but blocks of `key: value` and lists of them.
//!
//! It reads what is certainly plain and leaves everything else, and everything that is wrong, to the front end for all
//! of YAML. So there is one place that finds faults, and this one has none to report. What it reads:
//! - objects and lists in blocks, also a list as deep as the key above it, and an object that starts behind a dash;
//! - keys of letters, digits and `_ $ . / -`;
//! - values on one line: without quotes, in single quotes without a quote within, as JSON; and text behind `|` and `|-`;
//! - lines of comments, comments behind values, and one `---` above everything.

use memchr::{memchr, memchr2_iter};

use super::keys::Keys;
use super::node::are_distinct;
use super::scalar::{self, Plain};
use super::{Entry, Kind, Limits, Node, SourceId, Span, Takes, flow};

/// The recursion is bounded by this, or by a lower limit.
const DEEPEST: usize = 32;

/// The tree of a text that is plain YAML; `None` for every other.
pub(super) fn read(source: SourceId, text: &str, limits: &Limits, takes: Option<Takes<'_>>) -> Option<Node> {
    if !is_readable(text) {
        return None;
    }
    let (members, elements, keys) = (Vec::new(), Vec::new(), Keys::default());
    let (left, deepest) = (limits.nodes, limits.depth.min(DEEPEST));
    let mut reader =
        Reader { source, text, at: 0, line: Line::default(), left, deepest, members, elements, keys, takes };
    reader.next_line();
    if reader.line.text == "---" && reader.line.indent == 0 {
        reader.next_line();
    }
    let root = reader.block(0)?;
    reader.line.is_end().then_some(root)
}

/// Returns whether a text holds none of the characters that are read in ways of their own.
fn is_readable(text: &str) -> bool {
    let is_control = |byte: u8| (byte < b' ' && byte != b'\n') || byte == 0x7f;
    // Over all bytes, without an end at the first: that is done many at a time.
    let controls = text.bytes().fold(false, |found, byte| found | is_control(byte));
    !controls && (text.is_ascii() || !text.contains(flow::is_special))
}

/// A line that holds more than blanks and a comment.
#[derive(Clone, Copy, Default)]
struct Line<'t> {
    /// Where its text starts.
    start: usize,
    /// By how many spaces it is indented.
    indent: usize,
    /// Without the indentation; empty behind the last line.
    text: &'t str,
}

impl Line<'_> {
    fn is_end(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns whether a list has an element here.
    fn is_element(&self) -> bool {
        self.text.starts_with("- ") || self.text == "-"
    }
}

struct Reader<'t, 'e> {
    source: SourceId,
    text: &'t str,
    /// Where the line behind the current one starts.
    at: usize,
    line: Line<'t>,
    /// How many values more there may be.
    left: usize,
    deepest: usize,
    /// The members of objects and elements of lists that have not ended: they take their own from the top.
    members: Vec<Entry>,
    elements: Vec<Node>,
    keys: Keys,
    takes: Option<Takes<'e>>,
}

impl<'t> Reader<'t, '_> {
    /// Goes on to the next line that holds something.
    fn next_line(&mut self) {
        self.line = loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let length = memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
            let whole = rest.get(..length).unwrap_or_default();
            let indent = whole.bytes().position(|byte| byte != b' ').unwrap_or(length);
            let text = whole.get(indent..).unwrap_or_default();
            let start = self.at + indent;
            self.at = (self.at + whole.len() + 1).min(self.text.len());
            if rest.is_empty() || !(text.is_empty() || text.starts_with('#')) {
                break Line { start, indent, text: text.trim_end_matches(' ') };
            }
        };
    }

    /// The object or the list that starts on the current line.
    fn block(&mut self, depth: usize) -> Option<Node> {
        if self.line.is_element() { self.list(depth) } else { self.object(depth) }
    }

    fn list(&mut self, depth: usize) -> Option<Node> {
        let (start, indent) = (self.line.start, self.line.indent);
        self.enter(depth)?;
        let (base, mut end) = (self.elements.len(), None);
        let is_taken = depth == 1 && self.takes.as_mut().is_some_and(Takes::begin);
        while self.line.indent == indent && self.line.is_element() {
            let element = self.element(depth + 1)?;
            end = Some(element.span.end as usize);
            match self.takes.as_mut().filter(|_| is_taken) {
                Some(takes) => takes.take(element)?,
                None => self.elements.push(element),
            }
        }
        self.leave(indent)?;
        let span = self.span(start, end?)?;
        Some(Node { span, kind: Kind::Array(self.elements.drain(base..).collect()) })
    }

    /// Reads the value behind a dash.
    fn element(&mut self, depth: usize) -> Option<Node> {
        let Line { start, indent, text } = self.line;
        let inner = text.get(1..)?.trim_start_matches(' ');
        if inner.is_empty() {
            self.next_line();
            return if self.line.indent > indent { self.block(depth) } else { None };
        }
        let blank = text.len() - inner.len();
        let line = Line { start: start + blank, indent: indent + blank, text: inner };
        if line.is_element() || key(inner).is_some() {
            self.line = line;
            return self.block(depth);
        }
        self.scalar(line.start, inner, indent, depth)
    }

    fn object(&mut self, depth: usize) -> Option<Node> {
        let (start, indent) = (self.line.start, self.line.indent);
        self.enter(depth)?;
        let base = self.members.len();
        while self.line.indent == indent && !self.line.is_end() {
            let member = self.member(depth + 1)?;
            self.members.push(member);
        }
        self.leave(indent)?;
        let members: Box<[Entry]> = self.members.drain(base..).collect();
        let span = self.span(start, members.last()?.value.span.end as usize)?;
        are_distinct(&members).then_some(Node { span, kind: Kind::Object(members) })
    }

    fn member(&mut self, depth: usize) -> Option<Entry> {
        let Line { start, indent, text } = self.line;
        let (key, rest) = key(text)?;
        let key_span = self.span(start, start + key.len())?;
        if let Some(takes) = self.takes.as_mut().filter(|_| depth == 1) {
            takes.note_member(key);
        }
        let value = rest.trim_start_matches(' ');
        let value = if value.is_empty() || value.starts_with('#') {
            self.next_line();
            let below = self.line.indent > indent || (self.line.indent == indent && self.line.is_element());
            if !below || self.line.is_end() {
                return None;
            }
            self.block(depth)?
        } else {
            self.scalar(start + text.len() - value.len(), value, indent, depth)?
        };
        Some(Entry { key: self.keys.shared(key), key_span, value })
    }

    /// The value that starts at `start` on the current line, which `text` is the rest of; goes on to the next line.
    /// Whatever is deeper than `indent` would belong to it.
    fn scalar(&mut self, start: usize, text: &'t str, indent: usize, depth: usize) -> Option<Node> {
        let node = match text.as_bytes().first()? {
            b'|' => return self.literal(start, text, indent),
            b'"' | b'[' | b'{' => self.json(start, text, depth)?,
            b'\'' => self.word(start, single_quoted(text)?)?,
            _ => self.word(start, unquoted(text)?)?,
        };
        let rest = text.get(node.span.end as usize - start..)?;
        if !is_comment(rest) {
            return None;
        }
        self.next_line();
        self.leave(indent)?;
        Some(node)
    }

    fn word(&mut self, start: usize, (kind, written): (Kind, &str)) -> Option<Node> {
        self.left = self.left.checked_sub(1)?;
        Some(Node { span: self.span(start, start + written.len())?, kind })
    }

    /// A value in the form of JSON, on one line.
    fn json(&mut self, start: usize, text: &str, depth: usize) -> Option<Node> {
        let line = self.text.get(..start + text.len())?;
        let mut reader = flow::Reader::new(self.source, line, self.left, self.deepest, |byte| byte == b' ');
        reader.at = start;
        let node = reader.value(depth)?;
        self.left = reader.left;
        Some(node)
    }

    /// Text in lines of its own.
    fn literal(&mut self, start: usize, header: &str, indent: usize) -> Option<Node> {
        let keep_end = match header {
            "|" => true,
            "|-" => false,
            _ => return None,
        };
        let lines = Lines::below(self.text.get(self.at..)?, indent)?;
        let mut text = String::with_capacity(lines.text.len());
        for line in lines.text.lines() {
            text.push_str(line.get(lines.indent..).unwrap_or_default());
            text.push('\n');
        }
        if !keep_end {
            text.pop();
        }
        let (kind, written) = (Kind::String(text.into()), self.at + lines.text.trim_end().len() - start);
        let node = self.word(start, (kind, self.text.get(start..start + written)?))?;
        self.at += lines.length;
        self.next_line();
        Some(node)
    }

    /// Counts an object or a list before it is made.
    fn enter(&mut self, depth: usize) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        (depth < self.deepest).then_some(())
    }

    /// Requires that the next line belongs to something around the value that ended, which was as deep as this.
    fn leave(&self, indent: usize) -> Option<()> {
        (self.line.indent <= indent || self.line.is_end()).then_some(())
    }

    fn span(&self, start: usize, end: usize) -> Option<Span> {
        Some(Span::new(self.source, u32::try_from(start).ok()?, u32::try_from(end).ok()?))
    }
}

/// The lines of a literal text.
struct Lines<'t> {
    /// Up to the last one that is not blank.
    text: &'t str,
    /// By how much all of them are indented.
    indent: usize,
    /// With the blank lines behind them.
    length: usize,
}

impl<'t> Lines<'t> {
    /// The lines at the start of a text that are deeper than `outer`. `None` if there are none, or blank ones first.
    fn below(text: &'t str, outer: usize) -> Option<Self> {
        let first = text.split('\n').next()?;
        let indent = first.len() - first.trim_start_matches(' ').len();
        if indent <= outer || indent == first.len() {
            return None;
        }
        let (mut length, mut end) = (0, 0);
        for line in text.split_inclusive('\n') {
            let content = line.trim_end_matches('\n');
            let blank = content.bytes().all(|byte| byte == b' ');
            if blank && content.len() > indent {
                return None;
            }
            if !blank && !content.as_bytes().get(..indent)?.iter().all(|byte| *byte == b' ') {
                break;
            }
            length += line.len();
            end = if blank { end } else { length };
        }
        let text = text.get(..end)?;
        text.ends_with('\n').then_some(Self { text, indent, length })
    }
}

/// The bytes that keys without quotes are made of.
const IN_KEYS: [bool; 256] = {
    let mut is_in = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        is_in[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'/' | b'-');
        byte += 1;
    }
    is_in
};

/// The key that a line starts with and what stands behind its colon.
fn key(line: &str) -> Option<(&str, &str)> {
    let length = line.bytes().position(|byte| !IN_KEYS[usize::from(byte)])?;
    let (key, rest) = line.split_at_checked(length)?;
    let rest = rest.strip_prefix(':')?;
    let starts_well = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$');
    (starts_well && (rest.is_empty() || rest.starts_with(' '))).then_some((key, rest))
}

/// Returns whether there is nothing but a comment.
fn is_comment(rest: &str) -> bool {
    rest.is_empty() || (rest.starts_with(' ') && matches!(rest.trim_start_matches(' ').as_bytes(), [] | [b'#', ..]))
}

/// Text in single quotes, and as it is written. A quote behind it would stand for one within, and is not a comment.
fn single_quoted(text: &str) -> Option<(Kind, &str)> {
    let end = text.get(1..)?.find('\'')? + 1;
    Some((Kind::String(text.get(1..end)?.into()), text.get(..=end)?))
}

/// Returns the value of a word without quotes, and the word as it is written.
fn unquoted(text: &str) -> Option<(Kind, &str)> {
    let mut bytes = text.bytes();
    match bytes.next()? {
        // A dash starts a number or a word when no blank follows.
        b'-' if bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric()) => {}
        b'-' | b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'%'
        | b'@' | b'`' => return None,
        _ => {}
    }
    let bytes = text.as_bytes();
    let mut end = text.len();
    for at in memchr2_iter(b'#', b':', bytes) {
        match (bytes[at], bytes.get(at.wrapping_sub(1)), bytes.get(at + 1)) {
            (b'#', Some(b' '), _) => {
                end = at;
                break;
            }
            (b':', _, None | Some(b' ')) => return None,
            _ => {}
        }
    }
    let written = text.get(..end)?.trim_end_matches(' ');
    match scalar::plain(written) {
        Plain::Value(kind) => Some((kind, written)),
        Plain::Text => Some((Kind::String(written.into()), written)),
        Plain::Unkept | Plain::NotFinite | Plain::TooLarge => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read(text: &str) -> bool {
        read(SourceId::default(), text, &Limits::default(), None).is_some()
    }

    #[test]
    fn what_users_write_is_read() {
        let text = r#"# yaml-language-server: $schema=https://example.org/document.json
---
$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json
parameters:
  greeting:
    type: string   # of few words
    defaultValue: "hello\tworld"
resources:
- name: the greeting
  type: Stead/File
  properties:
    path: '/tmp/a file'
    mode: "0644"
    content: |
      [section]
        key = value

      # no comment
  dependsOn:
  - "[resourceId('Stead/Directory', 'tmp')]"
-
  name: -1
  type: Microsoft.DSC.Debug/Echo
  properties:
    output:
      - - 1
        - yes: ~
      - text: |-
          x
"#;
        assert!(is_read(text));
    }

    #[test]
    fn what_has_rules_of_its_own_is_left() {
        let texts = [
            "a: [b]",
            "a: {b: 1}",
            "a: &x 1",
            "a: !!str 1",
            "a: *x",
            "a: >\n  x\n",
            "a: 'it''s'",
            "a: \"\\x41\"",
            "a:\n",
            "a: 1\na: 2",
            "a: b\n  c",
            "a:\tb",
            "a: b\r\n",
            "? a\n: b",
            "\"a\": b",
            "a: b: c",
            "a: 1\n---\nb: 2",
            "a: |+\n  x\n",
            "<<: a",
            "a: 0x1ffffffffffffffff",
        ];
        for text in texts {
            assert!(!is_read(text), "{text}");
        }
    }
}
