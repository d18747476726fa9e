//! The tokens of a schema.

use super::MofFault;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token<'a> {
    /// A name or a keyword.
    Word(&'a str),
    /// `"text"`, without escapes.
    Text(String),
    /// `'c'`.
    Character(char),
    Integer(i128),
    Real(f64),
    /// A character that stands for itself.
    Symbol(char),
    /// `#pragma`.
    Pragma,
    End,
}

/// Splits a text into tokens, one at a time.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Escapes that PowerShell refuses and the standard allows.
    pub(super) refused: Vec<MofFault>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, refused: Vec::new() }
    }

    /// The next token, and where it starts and ends.
    pub(super) fn token(&mut self) -> Result<(Token<'a>, usize, usize), MofFault> {
        self.skip_blank()?;
        let start = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok((Token::End, start, start)) };
        let next = rest[first.len_utf8()..].chars().next();
        let numeric = |c: char| c.is_ascii_digit() || c == '.';
        let token = match first {
            '"' => Token::Text(self.string(start)?),
            '\'' => self.character(start)?,
            '#' => self.pragma(start)?,
            '+' | '-' if next.is_some_and(numeric) => self.number(start)?,
            '.' if next.is_some_and(|c| c.is_ascii_digit()) => self.number(start)?,
            _ if first.is_ascii_digit() => self.number(start)?,
            _ if is_name(first) => Token::Word(self.take_while(|c| is_name(c) || c.is_ascii_digit())),
            '{' | '}' | '[' | ']' | '(' | ')' | ';' | ':' | ',' | '=' | '$' => {
                self.at += 1;
                Token::Symbol(first)
            }
            other => return Err(MofFault::syntax(start, format!("unexpected character '{}'", other.escape_default()))),
        };
        Ok((token, start, self.at))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take_while(&mut self, matches: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !matches(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Blanks and comments.
    fn skip_blank(&mut self) -> Result<(), MofFault> {
        loop {
            self.take_while(|c| c.is_whitespace() || c == '\u{FEFF}' || c == '\u{1A}');
            if self.rest().starts_with("//") {
                self.take_while(|c| c != '\n' && c != '\r');
            } else if let Some(inner) = self.rest().strip_prefix("/*") {
                let end = inner
                    .find("*/")
                    .ok_or_else(|| MofFault::syntax(self.at, "the comment is not closed".to_owned()))?;
                self.at += end + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn pragma(&mut self, start: usize) -> Result<Token<'a>, MofFault> {
        self.at += 1;
        let word = self.take_while(is_name);
        let pragma = word.eq_ignore_ascii_case("pragma");
        pragma.then_some(Token::Pragma).ok_or_else(|| MofFault::syntax(start, format!("unknown directive '#{word}'")))
    }

    fn string(&mut self, start: usize) -> Result<String, MofFault> {
        let mut text = String::new();
        self.at += 1;
        loop {
            text.push_str(self.take_while(|c| c != '"' && c != '\\'));
            match self.rest().as_bytes().first() {
                Some(b'"') => break,
                Some(_) => text.push(self.escape()?),
                None => return Err(MofFault::syntax(start, "the string is not closed".to_owned())),
            }
        }
        self.at += 1;
        Ok(text)
    }

    fn character(&mut self, start: usize) -> Result<Token<'a>, MofFault> {
        let wrong = || {
            MofFault::syntax(start, "single quotes hold exactly one character".to_owned())
                .help("write strings in double quotes")
        };
        self.at += 1;
        let character = match self.rest().chars().next() {
            Some('\\') => self.escape()?,
            Some('\'') | None => return Err(wrong()),
            Some(other) => {
                self.at += other.len_utf8();
                other
            }
        };
        self.at += 1;
        let closed = self.text.get(self.at - 1..self.at) == Some("'");
        closed.then_some(Token::Character(character)).ok_or_else(wrong)
    }

    /// Reads the character behind a backslash.
    fn escape(&mut self) -> Result<char, MofFault> {
        let start = self.at;
        self.at += 1;
        let letter = self.rest().chars().next().unwrap_or('\0');
        self.at += letter.len_utf8();
        Ok(match letter {
            'b' => '\u{8}',
            't' => '\t',
            'n' => '\n',
            'f' => '\u{C}',
            'r' => '\r',
            '"' | '\'' | '\\' => letter,
            'x' | 'X' => self.hexadecimal(start)?,
            _ => {
                let message = format!("unknown escape '\\{}'", letter.escape_default());
                return Err(MofFault::syntax(start, message).help("write a backslash as '\\\\'"));
            }
        })
    }

    fn hexadecimal(&mut self, start: usize) -> Result<char, MofFault> {
        let digits = self.rest().chars().take(4).take_while(char::is_ascii_hexdigit).count();
        let number = u32::from_str_radix(&self.rest()[..digits], 16).ok();
        self.at += digits;
        if digits < 4 {
            let message = "PowerShell refuses '\\x' with less than four hexadecimal digits".to_owned();
            self.refused.push(MofFault::refused(start, message));
        }
        let number =
            number.ok_or_else(|| MofFault::syntax(start, "'\\x' must be followed by hexadecimal digits".to_owned()))?;
        Ok(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn number(&mut self, start: usize) -> Result<Token<'a>, MofFault> {
        self.take_while(|c| c == '+' || c == '-');
        let word = self.take_while(|c| c.is_ascii_alphanumeric() || c == '.');
        if word.ends_with(['e', 'E']) && word.contains('.') {
            self.take_while(|c| c == '+' || c == '-');
            self.take_while(|c| c.is_ascii_digit());
        }
        let written = &self.text[start..self.at];
        let number = if written.contains('.') {
            written.parse().ok().map(Token::Real)
        } else {
            integer(written).map(Token::Integer)
        };
        number.ok_or_else(|| MofFault::syntax(start, format!("'{written}' is not a number")))
    }
}

/// A decimal, hexadecimal (`0x1F`), octal (`017`) or binary (`101b`) number.
fn integer(written: &str) -> Option<i128> {
    let (negative, digits) = match written.strip_prefix(['+', '-']) {
        Some(rest) => (written.starts_with('-'), rest),
        None => (false, written),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = if let Some(hexadecimal) = lower.strip_prefix("0x") {
        (hexadecimal, 16)
    } else if let Some(binary) = lower.strip_suffix('b') {
        (binary, 2)
    } else {
        (lower.as_str(), if lower.len() > 1 && lower.starts_with('0') { 8 } else { 10 })
    };
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let number = i128::from_str_radix(digits, radix).ok()?;
    Some(if negative { -number } else { number })
}

fn is_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}
