//! Texts: where they end, and what they say.

use super::chars::{is_double_quote, is_name, is_single_quote};

/// A part of an expandable text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum StringPart {
    /// Text as it is, escapes resolved.
    Text(String),
    /// The name of a variable, with its scope or drive, without `$` and braces.
    Variable(String),
    /// A sub-expression.
    SubExpression(Nested),
}

/// The script in a sub-expression of a text: without the quotes and backticks that the text needs in front of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Nested {
    /// The script.
    pub(crate) script: String,
    /// The offset of its first byte in the text around it.
    start: usize,
    /// Offsets in the script before which that many bytes were left out, in rising order.
    left_out: Vec<(usize, usize)>,
}

impl Nested {
    /// The offset in the text around it of an offset in the script.
    pub(crate) fn origin(&self, offset: usize) -> usize {
        let count = self.left_out.partition_point(|(at, _)| *at <= offset);
        let left_out = count.checked_sub(1).and_then(|last| self.left_out.get(last)).map_or(0, |(_, total)| *total);
        self.start + offset + left_out
    }
}

fn char(text: &str, at: usize) -> char {
    text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('\0')
}

/// The end of the variable whose name, or brace, starts there; that offset itself when none does, `None` for a brace that
/// is not closed.
pub(super) fn variable_end(text: &str, start: usize) -> Option<usize> {
    let rest = text.get(start..).unwrap_or_default();
    match rest.chars().next() {
        Some('{') => braces_end(rest).map(|length| start + length),
        Some('$' | '^') => Some(start + 1),
        Some(c) if is_name(c) || c == '?' || c == ':' => Some(start + name_length(rest)),
        _ => Some(start),
    }
}

/// The length of a name such as `a`, `global:a` or `env:a`; a colon counts with a name behind it only.
fn name_length(rest: &str) -> usize {
    let belongs = |c: char| is_name(c) || c == '?';
    let length = |text: &str| text.find(|c| !belongs(c)).unwrap_or(text.len());
    let mut end = length(rest);
    while rest.as_bytes().get(end) == Some(&b':') {
        let next = rest.get(end + 1..).map_or(0, length);
        if next == 0 {
            break;
        }
        end += 1 + next;
    }
    end
}

/// The length of a name in braces.
fn braces_end(rest: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'`' => escaped = true,
            b'}' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The end of the `$(` there, in a text: only parentheses count.
pub(super) fn sub_expression_end(text: &str, at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, byte) in text.bytes().enumerate().skip(at + 1) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(offset + 1),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The end of the text in single quotes that starts there.
pub(super) fn literal_end(text: &str, start: usize) -> Option<usize> {
    let mut at = start + char(text, start).len_utf8();
    loop {
        let rest = text.get(at..)?;
        let quote = at + rest.find(is_single_quote)?;
        let behind = quote + char(text, quote).len_utf8();
        if !is_single_quote(char(text, behind)) {
            return Some(behind);
        }
        at = behind + char(text, behind).len_utf8();
    }
}

/// Returns the text that a [`Literal`](super::Kind::Literal) stands for.
pub(crate) fn unquote(token: &str) -> String {
    if let Some(body) = here_body(token) {
        return body.to_owned();
    }
    let mut chars = token.chars();
    chars.next();
    if chars.clone().next_back().is_some_and(is_single_quote) {
        chars.next_back();
    }
    let mut text = String::with_capacity(token.len());
    while let Some(c) = chars.next() {
        text.push(c);
        if is_single_quote(c) {
            chars.next();
        }
    }
    text
}

/// Returns the text between the first and last line of a here-string.
fn here_body(token: &str) -> Option<&str> {
    let body = token.strip_prefix('@')?;
    let first = body.find(['\r', '\n'])?;
    let body = body.get(first..)?;
    let body = body.strip_prefix("\r\n").or_else(|| body.strip_prefix(['\r', '\n']))?;
    let body = body.strip_suffix('@').map_or(body, |body| body.get(..body.len() - last_width(body)).unwrap_or(body));
    Some(body.strip_suffix("\r\n").or_else(|| body.strip_suffix(['\r', '\n'])).unwrap_or(body))
}

fn last_width(text: &str) -> usize {
    text.chars().next_back().map_or(0, char::len_utf8)
}

/// The parts of an [`Expandable`](super::Kind::Expandable) or a [`Word`](super::Kind::Word), given its text. Texts in
/// single quotes within a word are texts.
pub(crate) fn parts(token: &str) -> Vec<StringPart> {
    let here = token.starts_with('@').then(|| here_body(token)).flatten();
    let quoted = token.starts_with(is_double_quote);
    let (body, start) = match here {
        Some(body) => (body, body.as_ptr().addr() - token.as_ptr().addr()),
        None if quoted => inside(token),
        None => (token, 0),
    };
    let mut reader = Parts { body, start, quotes: quoted, bare: here.is_none() && !quoted, found: Vec::new() };
    reader.read();
    reader.found
}

/// Returns the text in double quotes, and where it starts.
fn inside(token: &str) -> (&str, usize) {
    let first = char(token, 0).len_utf8();
    let last = token.char_indices().next_back().filter(|(at, c)| *at >= first && is_double_quote(*c));
    (token.get(first..last.map_or(token.len(), |(at, _)| at)).unwrap_or_default(), first)
}

struct Parts<'a> {
    body: &'a str,
    start: usize,
    /// True if two quotes stand for one.
    quotes: bool,
    /// True if quotes only group.
    bare: bool,
    found: Vec<StringPart>,
}

impl Parts<'_> {
    fn read(&mut self) {
        let mut at = 0;
        let mut grouped = false;
        while at < self.body.len() {
            let c = char(self.body, at);
            at = match c {
                '`' => self.escape(at + 1),
                '$' => self.reference(at),
                _ if self.bare && is_single_quote(c) && !grouped => self.group(at),
                _ if self.bare && is_double_quote(c) => {
                    grouped = !grouped;
                    at + c.len_utf8()
                }
                _ => {
                    self.push(c);
                    let behind = at + c.len_utf8();
                    let next = char(self.body, behind);
                    let double = self.quotes && is_double_quote(c) && is_double_quote(next);
                    if double { behind + next.len_utf8() } else { behind }
                }
            };
        }
    }

    fn push(&mut self, c: char) {
        match self.found.last_mut() {
            Some(StringPart::Text(text)) => text.push(c),
            _ => self.found.push(StringPart::Text(c.into())),
        }
    }

    fn group(&mut self, at: usize) -> usize {
        let end = literal_end(self.body, at).unwrap_or(self.body.len());
        for c in unquote(self.body.get(at..end).unwrap_or_default()).chars() {
            self.push(c);
        }
        end
    }

    fn escape(&mut self, at: usize) -> usize {
        let c = char(self.body, at);
        if at >= self.body.len() {
            return at;
        }
        if let Some((scalar, length)) = self.body.get(at..).and_then(scalar) {
            self.push(scalar);
            return at + length;
        }
        self.push(match c {
            '0' => '\0',
            'a' => '\x07',
            'b' => '\x08',
            'e' => '\x1B',
            'f' => '\x0C',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0B',
            c => c,
        });
        at + c.len_utf8()
    }

    fn reference(&mut self, at: usize) -> usize {
        if self.body.as_bytes().get(at + 1) == Some(&b'(') {
            let end = sub_expression_end(self.body, at).unwrap_or(self.body.len());
            let script = self.body.get(at + 2..end.saturating_sub(1).max(at + 2)).unwrap_or_default();
            let nested = nested(script, self.start + at + 2, self.quotes);
            self.found.push(StringPart::SubExpression(nested));
            return end;
        }
        let end = variable_end(self.body, at + 1).unwrap_or(self.body.len());
        if end == at + 1 {
            self.push('$');
            return end;
        }
        let name = self.body.get(at + 1..end).unwrap_or_default();
        self.found.push(StringPart::Variable(variable_name(name)));
        end
    }
}

/// The name of a variable, given its text without `$`.
pub(crate) fn variable_name(text: &str) -> String {
    match text.strip_prefix('{') {
        Some(name) => name.strip_suffix('}').unwrap_or(name).replace('`', ""),
        None => text.to_owned(),
    }
}

/// The character that `u{..}` names, and the length of that.
fn scalar(rest: &str) -> Option<(char, usize)> {
    let digits = rest.strip_prefix("u{")?;
    let length = digits.find('}').filter(|length| (1..=6).contains(length))?;
    let scalar = u32::from_str_radix(digits.get(..length)?, 16).ok().and_then(char::from_u32)?;
    Some((scalar, length + 3))
}

fn nested(text: &str, start: usize, quotes: bool) -> Nested {
    let mut nested = Nested { script: String::with_capacity(text.len()), start, left_out: Vec::new() };
    let mut chars = text.chars().peekable();
    let mut total = 0;
    while let Some(c) = chars.next() {
        let drop = quotes && (is_double_quote(c) || c == '`') && chars.peek().copied().is_some_and(is_double_quote);
        if drop {
            total += c.len_utf8();
            nested.left_out.push((nested.script.len(), total));
            nested.script.extend(chars.next());
        } else {
            nested.script.push(c);
        }
    }
    nested
}
