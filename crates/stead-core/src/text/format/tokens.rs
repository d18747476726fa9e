//! The tokens of a text that the parser reads without a fault.

use granit_parser::{Event, Parser, ScalarStyle};

use crate::text::Limits;
use crate::text::limits::options;

/// The characters between tokens. Other characters that show nothing are a part of them.
pub(super) const BLANKS: [char; 3] = [' ', '\t', '\n'];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FormatTokenKind {
    /// Text, plain or in quotes.
    Scalar,
    /// Text behind `|` or `>`, whose lines are indented by so many blanks, and whether empty lines at its end are a part of it.
    Block {
        indentation: usize,
        keeps: bool,
    },
    /// `*name`
    Alias,
    /// `&name` or `!tag`
    Property,
    Dash,
    Question,
    Colon,
    Comma,
    Open,
    Close,
    Comment,
    /// `---`, `...` or a directive
    Marker,
}

/// A piece of the text that stays as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: FormatTokenKind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// How many lines end before it, behind the one before.
    pub(super) breaks: usize,
    /// How many bytes stand before it in its line.
    pub(super) column: usize,
    /// True if a key of an object without brackets starts with it.
    pub(super) is_key: bool,
}

/// All tokens of a text, in its order; `None` if there is something that is none of them.
pub(super) fn of(text: &str, limits: &Limits) -> Option<Vec<Token>> {
    let mut tokens = Tokens { text, all: Vec::new(), at: 0, line: 0, depth: 0, node: None };
    for event in Parser::new_from_str_with_options(text, options(limits, false)) {
        let (event, span) = event.ok()?;
        let (start, end) = (span.start.byte_offset()?, span.end.byte_offset()?);
        match event {
            Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..) => tokens.block(start, end)?,
            Event::Scalar(..) if start < end => tokens.word(FormatTokenKind::Scalar, start, end)?,
            Event::Alias(_) | Event::UnresolvedAlias(_) => tokens.word(FormatTokenKind::Alias, start, end)?,
            _ => {}
        }
    }
    (tokens.between(text.len())? == text.len()).then_some(tokens.all)
}

struct Tokens<'t> {
    text: &'t str,
    all: Vec<Token>,
    /// How far the text is read.
    at: usize,
    /// Where the line starts that it is read to.
    line: usize,
    /// How many brackets are open.
    depth: usize,
    /// The token that may turn out to be a key: the first one since an indicator or the beginning of the line.
    node: Option<usize>,
}

impl<'t> Tokens<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// A piece whose place the parser gives.
    fn word(&mut self, kind: FormatTokenKind, start: usize, end: usize) -> Option<()> {
        let written = self.text.get(start..end)?.trim_end_matches(BLANKS);
        (self.between(start)? == start).then(|| self.push(kind, start + written.len()))
    }

    /// Text behind `|` or `>`. The parser gives the place of its content, which may end behind the blanks of the line that
    /// follows.
    fn block(&mut self, start: usize, end: usize) -> Option<()> {
        self.between(start)?;
        let written = self.text.get(self.at..end)?;
        let keeps = written.lines().next()?.split('#').next()?.contains('+');
        // Without content no blank is more than indentation.
        let indentation = match self.text.get(..start)?.rfind('\n') {
            Some(line) if start < end => start - line - 1,
            _ => usize::MAX,
        };
        let is_empty = |line: &str| line.len() <= indentation && line.trim_matches(' ').is_empty();
        let mut written = match written.rsplit_once('\n') {
            Some((lines, last)) if is_empty(last) => lines,
            _ => written,
        };
        while let Some((before, _)) = written.rsplit_once('\n').filter(|(_, last)| !keeps && is_empty(last)) {
            written = before;
        }
        self.push(FormatTokenKind::Block { indentation, keeps }, self.at + written.len());
        Some(())
    }

    /// Reads to a byte, or to the indicator of text in lines before it. Returns how far that is.
    fn between(&mut self, to: usize) -> Option<usize> {
        while self.at < to {
            let rest = self.rest();
            let first = rest.chars().next()?;
            let word = || rest.find(BLANKS).unwrap_or(rest.len());
            let line = || rest.find('\n').unwrap_or(rest.len());
            let starts_line =
                self.text.get(..self.at).is_some_and(|before| before.is_empty() || before.ends_with('\n'));
            let (kind, length) = match first {
                ' ' | '\t' | '\n' => {
                    self.at += 1;
                    continue;
                }
                '|' | '>' => break,
                '#' => (FormatTokenKind::Comment, rest.get(..line())?.trim_end_matches(BLANKS).len()),
                '%' if starts_line => (FormatTokenKind::Marker, rest.get(..line())?.trim_end_matches(BLANKS).len()),
                '-' if starts_line && rest.starts_with("---") => (FormatTokenKind::Marker, 3),
                '.' if starts_line && rest.starts_with("...") => (FormatTokenKind::Marker, 3),
                '-' => (FormatTokenKind::Dash, 1),
                '?' => (FormatTokenKind::Question, 1),
                ':' => (FormatTokenKind::Colon, 1),
                ',' => (FormatTokenKind::Comma, 1),
                '[' | '{' => (FormatTokenKind::Open, 1),
                ']' | '}' => (FormatTokenKind::Close, 1),
                '!' if rest.starts_with("!<") => (FormatTokenKind::Property, rest.find('>')? + 1),
                '&' | '!' => {
                    (FormatTokenKind::Property, rest.find([',', '[', ']', '{', '}']).unwrap_or(rest.len()).min(word()))
                }
                _ => return None,
            };
            self.push(kind, self.at + length);
        }
        Some(self.at)
    }

    fn push(&mut self, kind: FormatTokenKind, end: usize) {
        let start = self.at;
        let before = self.all.last().map_or(0, |token| token.end);
        let between = self.text.get(before..start).unwrap_or_default();
        let breaks = between.matches('\n').count();
        if let Some(last) = between.rfind('\n') {
            self.line = before + last + 1;
            self.node = None;
        }
        let mut token = Token { kind, start, end, breaks, column: start - self.line, is_key: false };
        if self.depth == 0 {
            self.note_key(&mut token);
        }
        match kind {
            FormatTokenKind::Open => self.depth += 1,
            FormatTokenKind::Close => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.all.push(token);
        self.at = end;
    }

    /// A colon makes a key of what stands before it in its line, and `?` or a colon by itself starts a key of its own.
    fn note_key(&mut self, token: &mut Token) {
        match token.kind {
            FormatTokenKind::Scalar
            | FormatTokenKind::Block { .. }
            | FormatTokenKind::Alias
            | FormatTokenKind::Property
            | FormatTokenKind::Open => {
                self.node.get_or_insert(self.all.len());
                return;
            }
            FormatTokenKind::Colon => match self.node.and_then(|node| self.all.get_mut(node)) {
                Some(key) => key.is_key = true,
                None => token.is_key = true,
            },
            FormatTokenKind::Question => token.is_key = true,
            _ => {}
        }
        self.node = None;
    }
}
