//! The messages of programs besides their result: standard error, line by line.

use serde_json::Value as Json;

use super::secrets::Secrets;
use crate::provider::TraceLevel;

/// The longest line that is handed on as one; what is behind it is left out.
const LONGEST_LINE: usize = 64 << 10;

/// How much of the plain text is kept for the message of a failure: the end, where programs say what stopped them.
const KEPT: usize = 16 << 10;

/// One message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// How much it matters.
    pub level: TraceLevel,
    /// The text of the message.
    pub text: String,
    /// True if it is text that follows no protocol.
    pub plain: bool,
}

/// Reads one line: a tracing event as JSON, an object such as `{"warn": ".."}`, or else plain text.
pub fn read_line(line: &str) -> Message {
    structured(line).unwrap_or_else(|| Message { level: TraceLevel::Trace, text: line.to_owned(), plain: true })
}

fn structured(line: &str) -> Option<Message> {
    let json: Json = if line.starts_with('{') { serde_json::from_str(line).ok()? } else { return None };
    let members = json.as_object()?;
    let message = |level, text: &str| Message { level, text: text.to_owned(), plain: false };
    if let (Some(level), Some(fields)) = (members.get("level"), members.get("fields")) {
        let text = fields.get("message")?.as_str()?;
        return Some(message(level_of(level.as_str()?)?, text));
    }
    let (name, text) = members.iter().next().filter(|_| members.len() == 1)?;
    Some(message(level_of(name)?, text.as_str()?))
}

fn level_of(word: &str) -> Option<TraceLevel> {
    // Resources write this word, too, which settings do not take.
    if word.eq_ignore_ascii_case("warning") { Some(TraceLevel::Warn) } else { TraceLevel::parse(word) }
}

/// Cuts a stream of bytes into lines.
#[derive(Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    cut: bool,
}

impl Lines {
    /// Takes the next bytes, and hands on each line that they end.
    pub(super) fn hear(&mut self, bytes: &[u8], line: &mut dyn FnMut(&str)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(part.get(..room).unwrap_or(part));
            self.cut |= part.len() > room;
            if part.ends_with(b"\n") {
                self.end(line);
            }
        }
    }

    /// The line is at its end; one without a text is not handed on.
    pub(super) fn end(&mut self, line: &mut dyn FnMut(&str)) {
        let bytes = std::mem::take(&mut self.line);
        let mut text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if std::mem::take(&mut self.cut) {
            text.push('…');
        }
        if !text.is_empty() {
            line(&text);
        }
    }
}

/// Reads the lines of a stream of bytes, hands each on without secrets, and keeps what a failure would say.
pub(super) struct Listener<'a> {
    lines: Lines,
    said: Said<'a>,
}

struct Said<'a> {
    forward: &'a dyn Fn(TraceLevel, &str),
    secrets: &'a Secrets,
    plain: String,
    errors: String,
}

impl<'a> Listener<'a> {
    pub(super) fn new(forward: &'a dyn Fn(TraceLevel, &str), secrets: &'a Secrets) -> Self {
        let said = Said { forward, secrets, plain: String::new(), errors: String::new() };
        Self { lines: Lines::default(), said }
    }

    /// Takes the next bytes.
    pub(super) fn hear(&mut self, bytes: &[u8]) {
        let Self { lines, said } = self;
        lines.hear(bytes, &mut |line| said.line(line));
    }

    /// The stream is at its end. Returns what a failure would say: the plain text, or else the errors.
    pub(super) fn finish(self) -> String {
        let Self { mut lines, mut said } = self;
        lines.end(&mut |line| said.line(line));
        let text = if said.plain.trim().is_empty() { said.errors } else { said.plain };
        // Once more over the lines together: a secret may stretch over several of them.
        said.secrets.scrub(text.trim()).into_owned()
    }
}

impl Said<'_> {
    fn line(&mut self, text: &str) {
        let message = read_line(text);
        let clean = self.secrets.scrub(&message.text);
        (self.forward)(message.level, &clean);
        if message.plain {
            keep(&mut self.plain, &message.text);
        } else if message.level == TraceLevel::Error {
            keep(&mut self.errors, &message.text);
        }
    }
}

/// Appends a line; what is too much goes from the start.
pub(super) fn keep(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
    if text.len() > 2 * KEPT {
        let from = text.ceil_char_boundary(text.len() - KEPT);
        text.drain(..from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn every_form_is_read() {
        let event = r#"{"timestamp":"t","level":"WARN","fields":{"message":"hot"},"target":"x","line_number":4}"#;
        for (line, level, text, plain) in [
            (event, TraceLevel::Warn, "hot", false),
            (r#"{"error":"bad"}"#, TraceLevel::Error, "bad", false),
            (r#"{"trace":"detail"}"#, TraceLevel::Trace, "detail", false),
            (r#"{"error":"bad","code":1}"#, TraceLevel::Trace, r#"{"error":"bad","code":1}"#, true),
            (r#"{"error":1}"#, TraceLevel::Trace, r#"{"error":1}"#, true),
            ("just text", TraceLevel::Trace, "just text", true),
            ("{", TraceLevel::Trace, "{", true),
        ] {
            assert_eq!(read_line(line), Message { level, text: text.to_owned(), plain }, "{line}");
        }
    }

    fn hear(chunks: &[&[u8]]) -> (Vec<(TraceLevel, String)>, String) {
        let heard = RefCell::new(Vec::new());
        let forward = |level, text: &str| heard.borrow_mut().push((level, text.to_owned()));
        let secrets = Secrets::default();
        let mut listener = Listener::new(&forward, &secrets);
        for chunk in chunks {
            listener.hear(chunk);
        }
        let text = listener.finish();
        (heard.into_inner(), text)
    }

    #[test]
    fn chunks_are_put_together_and_bad_bytes_replaced() {
        let (heard, text) = hear(&[b"fir", b"st\nsec\xff", b"ond\n\n{\"warn\":\"w\"}"]);
        assert_eq!(heard.len(), 3);
        assert_eq!(heard.last(), Some(&(TraceLevel::Warn, "w".to_owned())));
        assert_eq!(text, "first\nsec\u{fffd}ond");
    }

    #[test]
    fn errors_speak_where_nothing_else_does() {
        assert_eq!(hear(&[b"{\"error\":\"no disk\"}\n{\"info\":\"x\"}\n"]).1, "no disk");
    }

    #[test]
    fn memory_stays_bounded() {
        let flood = vec![b'x'; 1 << 20];
        let (heard, text) = hear(&[&flood, &flood, b"\nend\n"]);
        assert!(heard.iter().all(|(_, text)| text.len() < LONGEST_LINE + 8));
        assert!(text.len() <= 2 * LONGEST_LINE && text.ends_with("end"));
    }
}
