//! The filter language: which machines are meant, by their labels.
//!
//! ```text
//! role=web and site!=lab
//! (role=web or role in (db, cache)) and not old
//! name=web* and os="Debian 12"
//! ```

use std::fmt;
use std::ops::Range;

/// The deepest nesting of parentheses and `not`: what is deeper was not written by anybody.
const DEEPEST: usize = 64;

/// A filter, which a machine matches or not.
///
/// A comparison with a label that a machine does not have is false, and so `site!=lab` is true of a machine without a
/// `site`. `*` in a value stands for any text unless the value is in quotes.
///
/// # Examples
/// ```
/// use stead_hosts::Filter;
///
/// let filter = Filter::parse("role=web and site!=lab").map_err(|error| error.message)?;
/// let web = |label: &str| (label == "role").then_some("web");
/// assert!(filter.matches(&web));
/// assert!(!filter.matches(&|label: &str| Some(if label == "role" { "web" } else { "lab" })));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Filter {
    /// All of these.
    And(Box<[Filter]>),
    /// At least one of these.
    Or(Box<[Filter]>),
    /// The opposite.
    Not(Box<Filter>),
    /// There is a label of that name, whatever its value.
    Has(String),
    /// The label has one of these values.
    Is(String, Box<[Pattern]>),
}

/// A value that a label is compared with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// That text.
    Text(String),
    /// A text in which each `*` stands for any text.
    Wild(String),
}

/// The reason why a text is not a filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilterError {
    /// Which bytes of the text are wrong; empty at its end.
    pub range: Range<usize>,
    /// One sentence.
    pub message: String,
    /// The advice, in one sentence.
    pub help: String,
}

impl Filter {
    /// Reads a filter.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let mut parser = Parser { tokens: tokens(text)?, at: 0, end: text.len() };
        let filter = parser.any(0)?;
        match parser.peek() {
            None => Ok(filter),
            Some(Token { kind: Kind::Close, .. }) => Err(parser.wrong("this ')' closes nothing", "remove it")),
            Some(_) => Err(parser.wrong("expected 'and' or 'or'", "join comparisons with 'and' or 'or'")),
        }
    }

    /// Returns whether a machine with these labels is meant.
    pub fn matches<'a>(&self, label: &impl Fn(&str) -> Option<&'a str>) -> bool {
        match self {
            Self::And(all) => all.iter().all(|each| each.matches(label)),
            Self::Or(any) => any.iter().any(|each| each.matches(label)),
            Self::Not(inner) => !inner.matches(label),
            Self::Has(name) => label(name).is_some(),
            Self::Is(name, values) => label(name).is_some_and(|value| values.iter().any(|each| each.matches(value))),
        }
    }

    /// Calls `see` with the name of each label that it is about.
    pub fn labels<'f>(&'f self, see: &mut impl FnMut(&'f str)) {
        match self {
            Self::And(all) | Self::Or(all) => all.iter().for_each(|each| each.labels(see)),
            Self::Not(inner) => inner.labels(see),
            Self::Has(name) | Self::Is(name, _) => see(name),
        }
    }
}

impl Pattern {
    fn matches(&self, value: &str) -> bool {
        match self {
            Self::Text(text) => text == value,
            Self::Wild(pattern) => is_like(pattern, value),
        }
    }
}

/// Returns whether a text is like a pattern: the first piece begins it, the last ends it, and the others come in their order.
fn is_like(pattern: &str, value: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == value };
    let Some(mut left) = value.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*').filter(|piece| !piece.is_empty()) {
        match left.split_once(piece) {
            Some((_, behind)) => left = behind,
            None => return false,
        }
    }
    left.ends_with(last)
}

impl fmt::Display for Filter {
    /// Writes it so that it is read as the same filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::And(all) => joined(f, all, " and ", |each| matches!(each, Self::Or(_) | Self::And(_))),
            Self::Or(any) => joined(f, any, " or ", |each| matches!(each, Self::Or(_))),
            Self::Not(inner) => match &**inner {
                Self::Is(name, values) if values.len() == 1 => write!(f, "{name}!={}", List(values)),
                Self::Is(name, values) => write!(f, "{name} not in ({})", List(values)),
                Self::And(_) | Self::Or(_) => write!(f, "not ({inner})"),
                Self::Not(_) | Self::Has(_) => write!(f, "not {inner}"),
            },
            Self::Has(name) => f.write_str(name),
            Self::Is(name, values) if values.len() == 1 => write!(f, "{name}={}", List(values)),
            Self::Is(name, values) => write!(f, "{name} in ({})", List(values)),
        }
    }
}

fn joined(
    f: &mut fmt::Formatter<'_>,
    parts: &[Filter],
    word: &str,
    is_wrapped: impl Fn(&Filter) -> bool,
) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            f.write_str(word)?;
        }
        if is_wrapped(part) { write!(f, "({part})")? } else { write!(f, "{part}")? }
    }
    Ok(())
}

struct List<'a>(&'a [Pattern]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, value) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            match value {
                Pattern::Wild(pattern) => f.write_str(pattern)?,
                Pattern::Text(text) => write!(f, "{}", Quoted(text))?,
            }
        }
        Ok(())
    }
}

/// A text in quotes; one of both kinds of them is not in it. [`tokens`] lets no text have both.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = if self.0.contains('"') { '\'' } else { '"' };
        write!(f, "{quote}{}{quote}", self.0)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Kind {
    Word(String),
    Quoted(String),
    Open,
    Close,
    Comma,
    Equal,
    Unequal,
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    range: Range<usize>,
}

/// Returns whether it is in words; other characters are written in quotes.
fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | '/' | ':' | '@' | '+' | '*')
}

fn tokens(text: &str) -> Result<Vec<Token>, FilterError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let blank = rest.len() - rest.trim_start().len();
        if blank > 0 {
            at += blank;
            continue;
        }
        let (kind, length) = token(rest, at)?;
        tokens.push(Token { kind, range: at..at + length });
        at += length;
    }
    Ok(tokens)
}

/// The token that begins a text, and how long it is.
fn token(rest: &str, at: usize) -> Result<(Kind, usize), FilterError> {
    let first = rest.chars().next().unwrap_or_default();
    let wrong = |length: usize, message: String, help: &str| {
        Err(FilterError { range: at..at + length, message, help: help.to_owned() })
    };
    match first {
        '(' => Ok((Kind::Open, 1)),
        ')' => Ok((Kind::Close, 1)),
        ',' => Ok((Kind::Comma, 1)),
        '=' if rest.starts_with("==") => Ok((Kind::Equal, 2)),
        '=' => Ok((Kind::Equal, 1)),
        '!' if rest.starts_with("!=") => Ok((Kind::Unequal, 2)),
        '!' => wrong(1, "'!' is not an operator".to_owned(), "write 'not'"),
        '&' | '|' => {
            let word = if first == '&' { "and" } else { "or" };
            let length = rest.len() - rest.trim_start_matches(first).len();
            wrong(length, format!("'{first}' is not an operator"), &format!("write '{word}'"))
        }
        '"' | '\'' => match rest.get(1..).and_then(|rest| rest.split_once(first)) {
            Some((text, _)) => Ok((Kind::Quoted(text.to_owned()), text.len() + 2)),
            None => wrong(rest.len(), "the quote is not closed".to_owned(), &format!("add {first} behind the value")),
        },
        _ if is_of_word(first) => {
            let length = rest.find(|character| !is_of_word(character)).unwrap_or(rest.len());
            Ok((Kind::Word(rest.get(..length).unwrap_or_default().to_owned()), length))
        }
        other => {
            let message = format!("'{}' cannot stand here", other.escape_default());
            wrong(other.len_utf8(), message, "put values with other characters in quotes")
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// How long the text is.
    end: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn wrong(&self, message: &str, help: &str) -> FilterError {
        let range = self.peek().map_or(self.end..self.end, |token| token.range.clone());
        FilterError { range, message: message.to_owned(), help: help.to_owned() }
    }

    fn takes(&mut self, kind: &Kind) -> bool {
        let is_it = self.peek().is_some_and(|token| token.kind == *kind);
        self.at += usize::from(is_it);
        is_it
    }

    fn takes_word(&mut self, word: &str) -> bool {
        self.takes(&Kind::Word(word.to_owned()))
    }

    fn any(&mut self, depth: usize) -> Result<Filter, FilterError> {
        self.list(depth, "or", Self::all).map(|parts| one_of(parts, Filter::Or))
    }

    fn all(&mut self, depth: usize) -> Result<Filter, FilterError> {
        self.list(depth, "and", Self::negated).map(|parts| one_of(parts, Filter::And))
    }

    fn list(
        &mut self,
        depth: usize,
        word: &str,
        part: fn(&mut Self, usize) -> Result<Filter, FilterError>,
    ) -> Result<Vec<Filter>, FilterError> {
        let mut parts = vec![part(self, depth)?];
        while self.takes_word(word) {
            parts.push(part(self, depth)?);
        }
        Ok(parts)
    }

    fn negated(&mut self, depth: usize) -> Result<Filter, FilterError> {
        if depth > DEEPEST {
            return Err(self.wrong("the filter is nested too deeply", "use fewer parentheses"));
        }
        if self.takes_word("not") {
            return self.negated(depth + 1).map(|inner| Filter::Not(Box::new(inner)));
        }
        if !self.takes(&Kind::Open) {
            return self.comparison();
        }
        let filter = self.any(depth + 1)?;
        if self.takes(&Kind::Close) { Ok(filter) } else { Err(self.wrong("expected ')'", "close the parenthesis")) }
    }

    fn comparison(&mut self) -> Result<Filter, FilterError> {
        const LABEL: &str = "write a comparison such as role=web";
        let name = match self.peek().map(|token| token.kind.clone()) {
            Some(Kind::Word(word)) if is_keyword(&word) => {
                let message = format!("expected a label before '{word}'");
                return Err(self.wrong(&message, LABEL));
            }
            Some(Kind::Word(word)) if is_label(&word) => word,
            Some(Kind::Word(_) | Kind::Quoted(_)) => {
                let help = "labels begin with a letter, and have letters, digits, '_', '-', '.' and '/'";
                return Err(self.wrong("this is not the name of a label", help));
            }
            _ => return Err(self.wrong("expected a label", LABEL)),
        };
        self.at += 1;
        if self.takes(&Kind::Equal) {
            return Ok(Filter::Is(name, [self.value()?].into()));
        }
        if self.takes(&Kind::Unequal) {
            return Ok(Filter::Not(Box::new(Filter::Is(name, [self.value()?].into()))));
        }
        if self.takes_word("in") {
            return Ok(Filter::Is(name, self.values()?));
        }
        if self.takes_word("not") {
            if !self.takes_word("in") {
                return Err(self.wrong("expected 'in'", "write LABEL not in (VALUE, VALUE), or 'not' before the label"));
            }
            return Ok(Filter::Not(Box::new(Filter::Is(name, self.values()?))));
        }
        Ok(Filter::Has(name))
    }

    fn values(&mut self) -> Result<Box<[Pattern]>, FilterError> {
        const LIST: &str = "write the values as (VALUE, VALUE)";
        if !self.takes(&Kind::Open) {
            return Err(self.wrong("expected '(' behind 'in'", LIST));
        }
        let mut values = vec![self.value()?];
        while self.takes(&Kind::Comma) {
            values.push(self.value()?);
        }
        if self.takes(&Kind::Close) { Ok(values.into()) } else { Err(self.wrong("expected ',' or ')'", LIST)) }
    }

    fn value(&mut self) -> Result<Pattern, FilterError> {
        let value = match self.peek().map(|token| &token.kind) {
            Some(Kind::Word(word)) if is_keyword(word) => {
                let help = format!("put the value in quotes: \"{word}\"");
                return Err(self.wrong("expected a value", &help));
            }
            Some(Kind::Word(word)) if word.contains('*') => Pattern::Wild(word.clone()),
            Some(Kind::Word(text) | Kind::Quoted(text)) => Pattern::Text(text.clone()),
            _ => return Err(self.wrong("expected a value", "write a word, or text in quotes")),
        };
        self.at += 1;
        Ok(value)
    }
}

fn one_of(mut parts: Vec<Filter>, join: fn(Box<[Filter]>) -> Filter) -> Filter {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => join(parts.into_iter().chain(last).collect()),
    }
}

fn is_keyword(word: &str) -> bool {
    matches!(word, "and" | "or" | "not" | "in")
}

/// Returns whether a text can be the name of a label.
pub(crate) fn is_label(text: &str) -> bool {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(is_usual) && !is_keyword(text)
}
