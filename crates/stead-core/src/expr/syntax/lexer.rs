//! From text to tokens.

use std::ops::Range;

use super::{codes, fault, hints};
use crate::expr::Fault;
use crate::visible::is_obeyed;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
    OpenBracket,
    CloseBracket,
    Open,
    Close,
    Comma,
    Dot,
    Word,
    Integer,
    /// Its content, quotes removed.
    Text(String),
    End,
}

pub(super) struct Lexer<'t> {
    pub(super) text: &'t str,
    pub(super) next: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.next..).unwrap_or("")
    }

    pub(super) fn token(&mut self) -> Result<(Token, Range<usize>), Fault> {
        let skipped = self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\r', '\n']).len();
        self.next += skipped;
        let start = self.next;
        let Some(first) = self.rest().chars().next() else { return Ok((Token::End, start..start)) };
        let token = match first {
            '[' => self.single(Token::OpenBracket),
            ']' => self.single(Token::CloseBracket),
            '(' => self.single(Token::Open),
            ')' => self.single(Token::Close),
            ',' => self.single(Token::Comma),
            '.' => self.single(Token::Dot),
            '\'' => self.quoted()?,
            '-' | '0'..='9' => self.integer()?,
            _ if is_word(first) => {
                self.next += self.rest().find(|c| !is_word(c)).unwrap_or(self.rest().len());
                Token::Word
            }
            other => return Err(self.stray(other, start)),
        };
        Ok((token, start..self.next))
    }

    fn stray(&self, found: char, start: usize) -> Fault {
        let (before, rest) = self.text.split_at(start);
        let behind = rest.get(found.len_utf8()..).unwrap_or_default();
        let fault = stray(found, start);
        match hints::of_sign(found, before, behind) {
            Some(help) => Fault { help: Some(help.into()), ..fault },
            None => fault,
        }
    }

    fn single(&mut self, token: Token) -> Token {
        self.next += 1;
        token
    }

    fn quoted(&mut self) -> Result<Token, Fault> {
        let start = self.next;
        let mut content = String::new();
        self.next += 1;
        loop {
            let Some(length) = self.rest().find('\'') else {
                return Err(fault(
                    &codes::UNCLOSED_TEXT,
                    start..self.text.len(),
                    "Unable to parse: this string has no closing quote",
                    "end it with a single quote; a quote inside of it is written twice: 'it''s'",
                ));
            };
            content.push_str(self.rest().get(..length).unwrap_or(""));
            self.next += length + 1;
            if !self.rest().starts_with('\'') {
                return Ok(Token::Text(content));
            }
            content.push('\'');
            self.next += 1;
        }
    }

    fn integer(&mut self) -> Result<Token, Fault> {
        let start = self.next;
        self.next += usize::from(self.rest().starts_with('-'));
        let digits = self.rest().find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest().len());
        self.next += digits;
        if digits == 0 {
            return Err(fault(
                &codes::UNEXPECTED,
                start..self.next,
                "Unable to parse: '-' without digits behind it",
                "subtraction is written sub(a, b)",
            ));
        }
        let fraction = self.rest().strip_prefix('.').unwrap_or("");
        let digits = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
        if digits > 0 {
            return Err(fault(
                &codes::UNEXPECTED,
                start..self.next + 1 + digits,
                "Unable to parse: numbers in expressions are integers",
                "write a number with a fraction as json('1.5')",
            ));
        }
        Ok(Token::Integer)
    }
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn stray(found: char, start: usize) -> Fault {
    let help = match found {
        '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' => {
            "this is a typographic quote; strings are written in plain single quotes, as in 'a'"
        }
        '"' | '`' => "strings are written in single quotes; for text that begins with '[' write '[['",
        '+' => "there are no operators; use add(a, b), or concat(a, b) for strings",
        '*' => "there are no operators; use mul(a, b)",
        '/' => "there are no operators; use div(a, b)",
        '%' => "there are no operators; use mod(a, b)",
        '=' => "there are no operators; use equals(a, b)",
        '!' => "there are no operators; use not(a), or not(equals(a, b))",
        '<' => "there are no operators; use less(a, b) or lessOrEquals(a, b)",
        '>' => "there are no operators; use greater(a, b) or greaterOrEquals(a, b)",
        '&' => "there are no operators; use and(a, b)",
        '|' => "there are no operators; use or(a, b)",
        '?' => "there is no conditional operator; use if(condition, then, otherwise)",
        '$' => "a parameter is read with parameters('name'), an environment variable with envvar('NAME')",
        '{' => "objects are made with createObject('key', value)",
        _ => "an expression is a function call such as concat('a', 'b'); for text that begins with '[' write '[['",
    };
    let shown = if is_obeyed(found) { found.escape_unicode().to_string() } else { found.to_string() };
    let message = format!("Unable to parse: unexpected '{shown}'");
    fault(&codes::UNEXPECTED, start..start + found.len_utf8(), message, help)
}
