//! Tokens of PowerShell text.
//!
//! The meaning of a character depends on where it stands, so whoever reads says in which [`Mode`] the next token is:
//! `a-b` is
//! one word as an argument and a name, an operator and a name as a member. A token that was peeked in one mode is read
//! again when another is asked for. Each character is looked at a bounded number of times.

mod chars;
mod number;
mod operator;
mod strings;

pub(crate) use chars::{is_dash, is_double_quote, is_name, is_single_quote};
pub(crate) use number::Number;
pub(crate) use operator::Level;
pub(crate) use strings::{Nested, StringPart, parts, unquote, variable_name};

use chars::{blank_width, ends_word};

/// How the next token is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// The start of a statement and everything in an expression: operators, numbers, variables; a word is the name of a
    /// command or a keyword.
    Expression,
    /// After the name of a command: a word goes up to the next blank or bracket.
    Argument,
    /// Between the brackets of a type: a word is a name with namespaces.
    Type,
    /// After `.` and `::`, in a class, and as a key of a table: a word is a plain name.
    Member,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TokenKind {
    /// The end of the text.
    End,
    /// The end of a line.
    NewLine,
    /// `;`
    Semicolon,
    /// `,`
    Comma,
    /// `(`
    ParenOpen,
    /// `)`
    ParenClose,
    /// `{`
    BraceOpen,
    /// `}`
    BraceClose,
    /// `[`
    BracketOpen,
    /// `]`
    BracketClose,
    /// `$(`
    SubOpen,
    /// `@(`
    ArrayOpen,
    /// `@{`
    TableOpen,
    /// `|`
    Pipe,
    /// `&&` and `||`
    Chain,
    /// `&`
    Ampersand,
    /// `.`
    Dot,
    /// `::`
    ColonColon,
    /// `:`
    Colon,
    /// `?`
    Question,
    /// `?.`
    QuestionDot,
    /// `?[`
    QuestionBracket,
    /// `=`, `+=` and the like.
    Assign,
    /// `++` and `--`
    Step,
    /// `+` and `-`
    Sign,
    /// `!`, `-not` and `-bnot`
    Not,
    /// `-split` and `-join`, with an operand before them or without.
    SplitJoin,
    /// Any other operator between two operands.
    Binary(Level),
    /// `>`, `2>>` and the like; what follows names a file.
    Redirect,
    /// `2>&1` and the like.
    Merge,
    /// `<`
    Input,
    /// A number.
    Number,
    /// Text in single quotes, here-strings included.
    Literal,
    /// Text in double quotes, here-strings included; see [`parts`].
    Expandable,
    /// `$name`, `${name}`, `$scope:name`.
    Variable,
    /// `@name`
    Splat,
    /// A name, a keyword, a bare argument; see [`parts`] for one with `$` or a quote inside.
    Word,
    /// `-Name` or `-Name:`
    Parameter,
    /// `:name` before a loop.
    Label,
    /// `--%` and the rest of the line.
    Verbatim,
    /// A character that starts nothing.
    Unknown,
}

impl TokenKind {
    /// Returns whether a token of this kind in one mode is the same in the other.
    fn is_shared(self, one: Mode, other: Mode) -> bool {
        match self {
            Self::End
            | Self::NewLine
            | Self::Semicolon
            | Self::Comma
            | Self::ParenOpen
            | Self::ParenClose
            | Self::BraceOpen
            | Self::BraceClose
            | Self::SubOpen
            | Self::ArrayOpen
            | Self::TableOpen
            | Self::Literal
            | Self::Expandable => true,
            Self::BracketOpen | Self::BracketClose | Self::Variable => ![one, other].contains(&Mode::Argument),
            _ => false,
        }
    }
}

/// A token: what it is and the bytes that it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// The offset of its first byte.
    pub(crate) start: usize,
    /// The offset behind its last byte.
    pub(crate) end: usize,
    /// True if a blank or a comment stands before it.
    pub(crate) spaced: bool,
}

/// A mistake in a single token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flaw {
    /// A text without an end.
    UnterminatedString,
    /// A comment without an end.
    UnterminatedComment,
    /// `$(` or `${` without an end.
    UnterminatedReference,
    /// Characters behind the `@"` that opens a here-string.
    HereStringHeader,
    /// A character that starts nothing.
    UnknownCharacter,
    /// `"$name: "`, a colon with no name behind it.
    VariableReference,
}

/// Reads tokens one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    peeked: Option<(Mode, Token)>,
    flaws: Vec<(Flaw, usize)>,
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of a text.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, peeked: None, flaws: Vec::new() }
    }

    /// The next token, which is then passed. At the end of the text there is an [`TokenKind::End`] each time.
    pub(crate) fn next(&mut self, mode: Mode) -> Token {
        let token = self.peek(mode);
        self.at = token.end;
        self.peeked = None;
        token
    }

    /// The next token, which stays the next.
    pub(crate) fn peek(&mut self, mode: Mode) -> Token {
        match self.peeked {
            Some((read, token)) if read == mode || token.kind.is_shared(read, mode) => token,
            _ => {
                let token = self.read(mode);
                self.peeked = Some((mode, token));
                token
            }
        }
    }

    /// Passes line ends. What follows is not read as a token, since nobody has said in which mode.
    pub(crate) fn skip_lines(&mut self) {
        if self.peeked.is_some_and(|(_, token)| token.kind != TokenKind::NewLine) {
            return;
        }
        loop {
            let start = self.skip_blanks();
            let width = self.newline(start);
            if width == 0 {
                return;
            }
            self.reset(start + width);
        }
    }

    /// Returns where the next token is looked for, to come back to with [`Self::reset`].
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Goes back to an offset that [`Self::offset`] or a token gave.
    pub(crate) fn reset(&mut self, offset: usize) {
        self.at = offset;
        self.peeked = None;
    }

    pub(crate) fn text(&self, token: Token) -> &'a str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    /// The whole text.
    pub(crate) fn source(&self) -> &'a str {
        self.text
    }

    /// Returns the mistakes in the tokens so far, each once, in the order of the text.
    pub(crate) fn into_flaws(mut self) -> Vec<(Flaw, usize)> {
        self.flaws.sort_by_key(|(flaw, at)| (*at, *flaw as u8));
        self.flaws.dedup();
        self.flaws
    }

    fn flaw(&mut self, flaw: Flaw, at: usize) {
        // A token that is read again in another mode reports the same again, at once.
        if !self.flaws.iter().rev().take(4).any(|known| *known == (flaw, at)) {
            self.flaws.push((flaw, at));
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn char(&self, at: usize) -> char {
        self.text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('\0')
    }

    fn read(&mut self, mode: Mode) -> Token {
        let start = self.skip_blanks();
        let spaced = start > self.at;
        if start >= self.text.len() {
            return Token { kind: TokenKind::End, start: self.text.len(), end: self.text.len(), spaced };
        }
        let (kind, end) = self.scan(start, mode);
        Token { kind, start, end, spaced }
    }

    /// The offset of the next character that is not a blank, comment or continued line.
    fn skip_blanks(&mut self) -> usize {
        let mut at = self.at;
        loop {
            let width = match self.byte(at) {
                b'#' => self.line_end(at) - at,
                b'<' if self.byte(at + 1) == b'#' => self.comment_end(at) - at,
                b' ' => 1 + self.text.as_bytes().iter().skip(at + 1).take_while(|byte| **byte == b' ').count(),
                b'`' if matches!(self.byte(at + 1), b'\r' | b'\n') => 1 + self.newline(at + 1),
                _ => blank_width(self.text.as_bytes(), at),
            };
            if width == 0 {
                return at;
            }
            at += width;
        }
    }

    fn line_end(&self, at: usize) -> usize {
        let rest = self.text.as_bytes().get(at..).unwrap_or_default();
        rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')).map_or(self.text.len(), |length| at + length)
    }

    fn comment_end(&mut self, at: usize) -> usize {
        let rest = self.text.get(at + 2..).unwrap_or_default();
        if let Some(length) = rest.find("#>") {
            return at + length + 4;
        }
        self.flaw(Flaw::UnterminatedComment, at);
        self.text.len()
    }

    /// The width of the line end there, or 0.
    fn newline(&self, at: usize) -> usize {
        match (self.byte(at), self.byte(at + 1)) {
            (b'\r', b'\n') => 2,
            (b'\r' | b'\n', _) => 1,
            _ => 0,
        }
    }

    /// The kind of the token at that offset, and where it ends.
    fn scan(&mut self, at: usize, mode: Mode) -> (TokenKind, usize) {
        let one = |kind| (kind, at + 1);
        match self.byte(at) {
            b'\r' | b'\n' => (TokenKind::NewLine, at + self.newline(at)),
            b';' => one(TokenKind::Semicolon),
            b',' => one(TokenKind::Comma),
            b'(' => one(TokenKind::ParenOpen),
            b')' => one(TokenKind::ParenClose),
            b'{' => one(TokenKind::BraceOpen),
            b'}' => one(TokenKind::BraceClose),
            b'|' if self.byte(at + 1) == b'|' => (TokenKind::Chain, at + 2),
            b'|' => one(TokenKind::Pipe),
            b'&' if self.byte(at + 1) == b'&' => (TokenKind::Chain, at + 2),
            b'&' => one(TokenKind::Ampersand),
            b'<' => one(TokenKind::Input),
            b'>' => self.redirect(at),
            b'0'..=b'9' | b'*' if self.byte(at + 1) == b'>' => self.redirect(at + 1),
            b'$' => self.dollar(at, mode),
            b'@' => self.at_sign(at),
            _ => match self.char(at) {
                quote if is_single_quote(quote) => (TokenKind::Literal, self.literal_end(at)),
                quote if is_double_quote(quote) => (TokenKind::Expandable, self.expandable_end(at)),
                _ => match mode {
                    Mode::Argument => self.argument(at),
                    Mode::Type => self.name_or_operator(at, chars::is_type_name),
                    Mode::Member => self.name_or_operator(at, is_name),
                    Mode::Expression => self.expression(at),
                },
            },
        }
    }

    fn redirect(&self, arrow: usize) -> (TokenKind, usize) {
        match (self.byte(arrow + 1), self.byte(arrow + 2)) {
            (b'>', _) => (TokenKind::Redirect, arrow + 2),
            (b'&', b'1' | b'2') => (TokenKind::Merge, arrow + 3),
            _ => (TokenKind::Redirect, arrow + 1),
        }
    }

    fn at_sign(&mut self, at: usize) -> (TokenKind, usize) {
        match self.char(at + 1) {
            '{' => (TokenKind::TableOpen, at + 2),
            '(' => (TokenKind::ArrayOpen, at + 2),
            quote if is_single_quote(quote) => (TokenKind::Literal, self.here_end(at)),
            quote if is_double_quote(quote) => (TokenKind::Expandable, self.here_end(at)),
            first if is_name(first) || first == '?' => (TokenKind::Splat, self.variable_end(at + 1)),
            _ => {
                self.flaw(Flaw::UnknownCharacter, at);
                (TokenKind::Unknown, at + 1)
            }
        }
    }

    fn dollar(&mut self, at: usize, mode: Mode) -> (TokenKind, usize) {
        if self.byte(at + 1) == b'(' {
            return (TokenKind::SubOpen, at + 2);
        }
        let end = self.variable_end(at + 1);
        if end == at + 1 {
            return (TokenKind::Word, self.word_end(at));
        }
        // As an argument, `$a/b` is one text; what may select a member of the value is a token of its own.
        let goes_on = !ends_word(self.char(end)) && !matches!(self.byte(end), b'.' | b'[' | b':' | b'?' | b'#' | 0);
        let joined = mode == Mode::Argument && goes_on && self.byte(at + 1) != b'{';
        if joined { (TokenKind::Word, self.word_end(at)) } else { (TokenKind::Variable, end) }
    }

    /// The end of the variable whose name starts there: the same offset when none does.
    fn variable_end(&mut self, start: usize) -> usize {
        strings::variable_end(self.text, start).unwrap_or_else(|| {
            self.flaw(Flaw::UnterminatedReference, start);
            self.text.len()
        })
    }

    fn argument(&mut self, at: usize) -> (TokenKind, usize) {
        if is_dash(self.char(at)) {
            return self.dash_argument(at);
        }
        match number::end(self.text, at).filter(|end| ends_word(self.char(*end))) {
            Some(end) => (TokenKind::Number, end),
            None => (TokenKind::Word, self.word_end(at)),
        }
    }

    fn dash_argument(&mut self, at: usize) -> (TokenKind, usize) {
        let rest = self.text.get(at..).unwrap_or_default();
        if rest.starts_with("--%") && ends_word(self.char(at + 3)) {
            return (TokenKind::Verbatim, self.verbatim_end(at + 3));
        }
        let name = at + self.char(at).len_utf8();
        if !matches!(self.char(name), '_' | '?') && !self.char(name).is_alphabetic() {
            return (TokenKind::Word, self.word_end(at));
        }
        let rest = self.text.get(name..).unwrap_or_default();
        let stops = |c: char| ends_word(c) || matches!(c, ':' | '.' | '[') || is_single_quote(c) || is_double_quote(c);
        let end = rest.find(stops).map_or(self.text.len(), |length| name + length);
        match self.char(end) {
            ':' => (TokenKind::Parameter, end + 1),
            c if is_single_quote(c) || is_double_quote(c) => (TokenKind::Word, self.word_end(at)),
            _ => (TokenKind::Parameter, end),
        }
    }

    /// The end of what `--%` takes: the line, or up to a pipe outside of double quotes.
    fn verbatim_end(&self, start: usize) -> usize {
        let mut quoted = false;
        for (at, byte) in self.text.bytes().enumerate().skip(start) {
            match byte {
                b'\r' | b'\n' => return at,
                b'"' => quoted = !quoted,
                b'|' if !quoted => return at,
                b'&' if !quoted && self.byte(at + 1) == b'&' => return at,
                _ => {}
            }
        }
        self.text.len()
    }

    fn name_or_operator(&mut self, at: usize, belongs: fn(char) -> bool) -> (TokenKind, usize) {
        let rest = self.text.get(at..).unwrap_or_default();
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        let name = rest.get(..length).unwrap_or_default();
        let number = name.starts_with(|c: char| c.is_ascii_digit()) && !belongs('.');
        let kind = match length {
            0 => {
                let width = self.char(at).len_utf8();
                return operator::scan(rest)
                    .map_or((TokenKind::Unknown, at + width), |(kind, length)| (kind, at + length));
            }
            _ if !number => TokenKind::Word,
            _ if name.bytes().all(|byte| byte.is_ascii_digit()) => TokenKind::Number,
            _ => TokenKind::Unknown,
        };
        (kind, at + length)
    }

    fn expression(&mut self, at: usize) -> (TokenKind, usize) {
        let rest = self.text.get(at..).unwrap_or_default();
        if matches!(self.byte(at), b'0'..=b'9' | b'.')
            && let Some(end) = number::end(self.text, at).filter(|end| chars::ends_number(self.char(*end)))
        {
            return (TokenKind::Number, end);
        }
        if self.byte(at) == b':' && (self.byte(at + 1) == b'_' || self.char(at + 1).is_alphabetic()) {
            return (TokenKind::Label, self.word_end(at + 1));
        }
        if let Some((kind, length)) = operator::scan(rest) {
            return (kind, at + length);
        }
        if is_dash(self.char(at)) {
            return self.dash_argument(at);
        }
        (TokenKind::Word, self.word_end(at))
    }

    /// The end of a word: up to a blank or a bracket, with quotes, escapes and sub-expressions as parts of it.
    fn word_end(&mut self, start: usize) -> usize {
        let mut at = start;
        while at < self.text.len() {
            let c = self.char(at);
            at = match c {
                '`' if self.newline(at + 1) > 0 => return at,
                '`' => at + 1 + self.char(at + 1).len_utf8().min(self.text.len() - at - 1),
                '$' if self.byte(at + 1) == b'(' => self.reference_end(at),
                '$' if self.byte(at + 1) == b'{' => self.variable_end(at + 1),
                _ if is_single_quote(c) => self.literal_end(at),
                _ if is_double_quote(c) => self.expandable_end(at),
                _ if ends_word(c) && at > start => return at,
                _ => at + c.len_utf8(),
            };
        }
        self.text.len()
    }

    fn reference_end(&mut self, at: usize) -> usize {
        strings::sub_expression_end(self.text, at).unwrap_or_else(|| {
            self.flaw(Flaw::UnterminatedReference, at);
            self.text.len()
        })
    }

    fn unterminated(&mut self, start: usize) -> usize {
        self.flaw(Flaw::UnterminatedString, start);
        self.text.len()
    }

    fn literal_end(&mut self, start: usize) -> usize {
        strings::literal_end(self.text, start).unwrap_or_else(|| self.unterminated(start))
    }

    fn expandable_end(&mut self, start: usize) -> usize {
        let mut at = start + self.char(start).len_utf8();
        while at < self.text.len() {
            let c = self.char(at);
            at = match c {
                '`' => at + 1 + self.char(at + 1).len_utf8(),
                '$' if self.byte(at + 1) == b'(' => self.reference_end(at),
                '$' => self.variable_in_string(at),
                _ if is_double_quote(c) && is_double_quote(self.char(at + c.len_utf8())) => {
                    at + c.len_utf8() + self.char(at + c.len_utf8()).len_utf8()
                }
                _ if is_double_quote(c) => return at + c.len_utf8(),
                _ => at + c.len_utf8(),
            };
        }
        self.unterminated(start)
    }

    fn variable_in_string(&mut self, at: usize) -> usize {
        let end = self.variable_end(at + 1);
        let colon = end > at + 1 && self.byte(end) == b':' && self.byte(at + 1) != b'{';
        if colon && self.byte(end + 1) != b':' {
            self.flaw(Flaw::VariableReference, at);
        }
        end
    }

    /// The end of the here-string that starts with the `@` there.
    fn here_end(&mut self, start: usize) -> usize {
        let quote = self.char(start + 1);
        let header = start + 1 + quote.len_utf8();
        let bytes = self.text.as_bytes();
        let mut at = header;
        while self.newline(at) == 0 && blank_width(bytes, at) > 0 {
            at += blank_width(bytes, at);
        }
        if self.newline(at) == 0 {
            let flaw = if at < bytes.len() { Flaw::HereStringHeader } else { Flaw::UnterminatedString };
            self.flaw(flaw, start);
            let line = self.text.get(at..self.line_end(at)).unwrap_or_default();
            return line.find("'@").or_else(|| line.find("\"@")).map_or(at, |length| at + length + 2);
        }
        self.here_body_end(start, at, is_double_quote(quote))
    }

    fn here_body_end(&mut self, start: usize, body: usize, expands: bool) -> usize {
        let mut at = body;
        while at < self.text.len() {
            let line = self.newline(at);
            if line > 0 {
                at += line;
                let quote = self.char(at);
                let closes = if expands { is_double_quote(quote) } else { is_single_quote(quote) };
                if closes && self.byte(at + quote.len_utf8()) == b'@' {
                    return at + quote.len_utf8() + 1;
                }
                continue;
            }
            at = match self.byte(at) {
                b'`' if expands && self.newline(at + 1) == 0 => at + 1 + self.char(at + 1).len_utf8(),
                b'$' if expands && self.byte(at + 1) == b'(' => self.reference_end(at),
                b'$' if expands => self.variable_in_string(at),
                _ => at + self.char(at).len_utf8(),
            };
        }
        self.unterminated(start)
    }
}

#[cfg(test)]
mod tests;
