//! The restricted language of manifests, parsed, and what configurations may use besides. What the language does not allow
//! is refused here, also where it would not be evaluated.

use super::syntax::{Entry, Expression, Link, Piece, Unary};
use super::value::Value;
use super::{ManifestFault, same};
use crate::token::{Flaw, Level, Lexer, Mode, Number, StringPart, Token, TokenKind, parts, unquote, variable_name};

/// Which language a text is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    /// The restricted language of manifests.
    Manifest,
    /// The restricted language with variables, members and indexes: the part of a configuration that is evaluated.
    Configuration,
}

impl Dialect {
    /// Returns why something is refused.
    fn refusal(self) -> &'static str {
        match self {
            Self::Manifest => "not allowed in a manifest",
            Self::Configuration => "not evaluated in a composite resource",
        }
    }
}

/// The commands that a manifest may name.
const COMMANDS: &[&str] = &["Import-LocalizedData", "ConvertFrom-StringData", "Write-Host", "Out-Host", "Join-Path"];

/// The variables that a manifest may read, besides those of the environment.
const VARIABLES: &[&str] = &["true", "false", "null", "PSScriptRoot", "PSEdition", "PSCulture", "PSUICulture"];

/// Operators that a manifest may not use.
const REFUSED: &[&str] = &["match", "notmatch", "replace", "as", "f", ".."];

/// Deeper nesting is refused.
const DEEPEST: usize = 100;

/// Parses the statements of a text.
pub(super) fn parse(text: &str) -> Result<Vec<Expression>, ManifestFault> {
    Parser::parse(text, Dialect::Manifest, 0, |parser| parser.statements(TokenKind::End))
}

fn describe(flaw: Flaw) -> &'static str {
    match flaw {
        Flaw::UnterminatedString => "the string is not closed",
        Flaw::UnterminatedComment => "the comment is not closed",
        Flaw::UnterminatedReference => "'$(' or '${' is not closed",
        Flaw::HereStringHeader => "a here-string must begin on the line after its quote",
        Flaw::UnknownCharacter => "unexpected character",
        Flaw::VariableReference => "the ':' must be followed by the name of a variable; write '${name}:'",
    }
}

/// Reads values by recursive descent.
pub(crate) struct Parser<'a> {
    pub(crate) lexer: Lexer<'a>,
    dialect: Dialect,
    depth: usize,
}

pub(crate) type Parse<T> = Result<T, ManifestFault>;

pub(crate) fn fail<T>(token: Token, message: impl Into<String>) -> Parse<T> {
    Err(ManifestFault { offset: token.start, message: message.into() })
}

impl<'a> Parser<'a> {
    /// Applies a rule to a text, and returns the result unless a token of it is broken.
    pub(crate) fn parse<T>(
        text: &'a str,
        dialect: Dialect,
        depth: usize,
        rule: impl FnOnce(&mut Self) -> Parse<T>,
    ) -> Parse<T> {
        let mut parser = Self { lexer: Lexer::new(text), dialect, depth };
        let parsed = rule(&mut parser);
        match parser.lexer.into_flaws().into_iter().next() {
            Some((flaw, offset)) => Err(ManifestFault { offset, message: describe(flaw).to_owned() }),
            None => parsed,
        }
    }

    pub(crate) fn peek(&mut self) -> Token {
        self.lexer.peek(Mode::Expression)
    }

    pub(crate) fn next(&mut self) -> Token {
        self.lexer.next(Mode::Expression)
    }

    pub(crate) fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.peek().kind == kind;
        if found {
            self.next();
        }
        found
    }

    pub(crate) fn unexpected<T>(&self, token: Token) -> Parse<T> {
        match token.kind {
            TokenKind::End => fail(token, "unexpected end of the file"),
            TokenKind::NewLine => fail(token, "unexpected end of the line"),
            _ => fail(token, format!("unexpected '{}'", self.lexer.text(token))),
        }
    }

    pub(crate) fn expect(&mut self, kind: TokenKind) -> Parse<()> {
        let token = self.peek();
        if self.eat(kind) { Ok(()) } else { self.unexpected(token) }
    }

    pub(crate) fn skip_lines(&mut self) {
        while self.eat(TokenKind::NewLine) {}
    }

    /// Statements up to a token, which is read.
    fn statements(&mut self, end: TokenKind) -> Parse<Vec<Expression>> {
        let mut statements = Vec::new();
        loop {
            while self.eat(TokenKind::NewLine) || self.eat(TokenKind::Semicolon) {}
            if self.peek().kind == end {
                self.next();
                return Ok(statements);
            }
            statements.push(self.statement()?);
            let token = self.peek();
            if token.kind != end && !matches!(token.kind, TokenKind::NewLine | TokenKind::Semicolon) {
                return self.unexpected(token);
            }
        }
    }

    /// Runs a rule one level deeper, unless that is too deep.
    pub(crate) fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.deepen()?;
        let parsed = rule(self);
        self.depth -= 1;
        parsed
    }

    fn deepen(&mut self) -> Parse<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let token = self.peek();
            return fail(token, "values are nested too deeply");
        }
        Ok(())
    }

    pub(crate) fn statement(&mut self) -> Parse<Expression> {
        self.nested(|parser| {
            let token = parser.peek();
            match token.kind {
                TokenKind::Word if same(parser.lexer.text(token), "if") => parser.condition(),
                _ => parser.pipeline(),
            }
        })
    }

    fn condition(&mut self) -> Parse<Expression> {
        let mut branches = Vec::new();
        loop {
            self.next();
            self.skip_lines();
            self.expect(TokenKind::ParenOpen)?;
            self.skip_lines();
            let condition = self.statement()?;
            self.skip_lines();
            self.expect(TokenKind::ParenClose)?;
            branches.push((Some(condition), self.block()?));
            let after = self.lexer.offset();
            self.skip_lines();
            let token = self.peek();
            if token.kind == TokenKind::Word && same(self.lexer.text(token), "elseif") {
                continue;
            }
            if token.kind == TokenKind::Word && same(self.lexer.text(token), "else") {
                self.next();
                branches.push((None, self.block()?));
            } else {
                self.lexer.reset(after);
            }
            return Ok(Expression::If(branches));
        }
    }

    fn block(&mut self) -> Parse<Vec<Expression>> {
        self.skip_lines();
        self.expect(TokenKind::BraceOpen)?;
        self.statements(TokenKind::BraceClose)
    }

    /// A value, or commands that it is piped to.
    fn pipeline(&mut self) -> Parse<Expression> {
        let token = self.peek();
        let mut value = if token.kind == TokenKind::Word { self.command()? } else { self.expression()? };
        let depth = self.depth;
        while self.eat(TokenKind::Pipe) {
            self.skip_lines();
            self.deepen()?;
            value = match self.command()? {
                Expression::Command(name, mut arguments) => {
                    arguments.push((Some("|".to_owned()), value));
                    Expression::Command(name, arguments)
                }
                other => other,
            };
        }
        self.depth = depth;
        Ok(value)
    }

    fn command(&mut self) -> Parse<Expression> {
        let token = self.next();
        let name = self.lexer.text(token).to_owned();
        if token.kind != TokenKind::Word || !COMMANDS.iter().any(|known| same(known, &name)) {
            let (refusal, help) = (self.dialect.refusal(), "write text in quotes");
            return fail(token, format!("'{name}' is {refusal}; {help}"));
        }
        let (mut arguments, mut named) = (Vec::new(), None);
        loop {
            let token = self.lexer.peek(Mode::Argument);
            let value = match token.kind {
                TokenKind::NewLine
                | TokenKind::Semicolon
                | TokenKind::BraceClose
                | TokenKind::ParenClose
                | TokenKind::Pipe
                | TokenKind::End => break,
                TokenKind::Parameter => {
                    self.lexer.next(Mode::Argument);
                    named = Some(self.lexer.text(token).trim_matches(['-', ':']).to_ascii_lowercase());
                    continue;
                }
                TokenKind::Word => {
                    self.lexer.next(Mode::Argument);
                    self.expandable(token)?
                }
                _ => self.primary()?,
            };
            arguments.push((named.take(), value));
        }
        Ok(Expression::Command(name.to_ascii_lowercase(), arguments))
    }

    fn expression(&mut self) -> Parse<Expression> {
        let condition = self.binary(Level::Logical)?;
        if !self.eat(TokenKind::Question) {
            let token = self.peek();
            let refused = matches!(
                token.kind,
                TokenKind::Assign
                    | TokenKind::Redirect
                    | TokenKind::Merge
                    | TokenKind::SplitJoin
                    | TokenKind::Step
                    | TokenKind::Chain
            );
            return if refused { self.refused(token) } else { Ok(condition) };
        }
        self.skip_lines();
        let yes = self.nested(Self::expression)?;
        self.skip_lines();
        self.expect(TokenKind::Colon)?;
        self.skip_lines();
        let no = self.nested(Self::expression)?;
        Ok(Expression::Ternary(Box::new([condition, yes, no])))
    }

    fn refused<T>(&self, token: Token) -> Parse<T> {
        fail(token, format!("'{}' is {}", self.lexer.text(token), self.dialect.refusal()))
    }

    /// Operators that bind at least that tightly.
    fn binary(&mut self, least: Level) -> Parse<Expression> {
        let mut left = self.comma()?;
        loop {
            let token = self.peek();
            let level = match token.kind {
                TokenKind::Binary(level) => level,
                TokenKind::Sign => Level::Sum,
                _ => return Ok(left),
            };
            if level < least {
                return Ok(left);
            }
            self.next();
            let operator = self
                .lexer
                .text(token)
                .trim_start_matches(|c: char| token.kind != TokenKind::Sign && crate::token::is_dash(c));
            let operator = if token.kind == TokenKind::Sign && operator != "+" {
                "-".to_owned()
            } else {
                operator.to_ascii_lowercase()
            };
            let bare = operator.strip_prefix(['i', 'c']).unwrap_or(&operator);
            if REFUSED.contains(&operator.as_str()) || REFUSED.contains(&bare) {
                return self.refused(token);
            }
            self.skip_lines();
            let right = self.binary(tighter(level))?;
            left = left.with(Link::Binary(operator, right));
        }
    }

    fn comma(&mut self) -> Parse<Expression> {
        let leading = self.eat(TokenKind::Comma);
        if leading {
            self.skip_lines();
        }
        let first = self.unary()?;
        if leading {
            return Ok(Expression::List(vec![first]));
        }
        let mut items = vec![first];
        while self.eat(TokenKind::Comma) {
            self.skip_lines();
            items.push(self.unary()?);
        }
        Ok(if items.len() == 1 { items.remove(0) } else { Expression::List(items) })
    }

    fn unary(&mut self) -> Parse<Expression> {
        self.deepen()?;
        let token = self.peek();
        let unary = match (token.kind, self.lexer.text(token)) {
            (TokenKind::Sign, "+") => Some(Unary::Plus),
            (TokenKind::Sign, _) => Some(Unary::Minus),
            (TokenKind::Not, text) if text.to_ascii_lowercase().ends_with("bnot") => Some(Unary::BitwiseNot),
            (TokenKind::Not, _) => Some(Unary::Not),
            _ => None,
        };
        let value = match unary {
            Some(unary) => {
                self.next();
                self.skip_lines();
                Expression::Unary(unary, Box::new(self.unary()?))
            }
            None if token.kind == TokenKind::BracketOpen => self.cast()?,
            None => self.primary()?,
        };
        self.depth -= 1;
        Ok(value)
    }

    /// `[type] value`, or `[type]` alone.
    fn cast(&mut self) -> Parse<Expression> {
        let open = self.next();
        let word = self.lexer.next(Mode::Type);
        let mut name = self.lexer.text(word).to_owned();
        if self.eat(TokenKind::BracketOpen) {
            self.expect(TokenKind::BracketClose)?;
            name.push_str("[]");
        }
        self.expect(TokenKind::BracketClose)?;
        if word.kind != TokenKind::Word || !is_simple(&name) {
            return fail(open, format!("type '[{name}]' is {}", self.dialect.refusal()));
        }
        let token = self.peek();
        let operand = matches!(
            token.kind,
            TokenKind::Number
                | TokenKind::Literal
                | TokenKind::Expandable
                | TokenKind::Variable
                | TokenKind::ParenOpen
                | TokenKind::SubOpen
                | TokenKind::ArrayOpen
                | TokenKind::TableOpen
                | TokenKind::BracketOpen
                | TokenKind::Sign
                | TokenKind::Not
        );
        if !operand {
            self.no_member(token)?;
            return Ok(Expression::Constant(Value::Type(name)));
        }
        Ok(Expression::Cast(name, Box::new(self.unary()?)))
    }

    fn no_member(&self, token: Token) -> Parse<()> {
        if selects(token) { fail(token, format!("members and indexes are {}", self.dialect.refusal())) } else { Ok(()) }
    }

    /// Members and indexes behind a value.
    fn selected(&mut self, mut value: Expression) -> Parse<Expression> {
        loop {
            let token = self.peek();
            if !selects(token) {
                return Ok(value);
            }
            value = match token.kind {
                TokenKind::Dot if self.dialect == Dialect::Configuration => self.member(value)?,
                TokenKind::BracketOpen if self.dialect == Dialect::Configuration => {
                    self.next();
                    let index = self.statement()?;
                    self.expect(TokenKind::BracketClose)?;
                    value.with(Link::Index(index))
                }
                _ => return self.no_member(token).map(|()| value),
            };
        }
    }

    fn member(&mut self, value: Expression) -> Parse<Expression> {
        self.next();
        let token = self.lexer.next(Mode::Member);
        let name = self.lexer.text(token).to_owned();
        let call = self.peek();
        let calls = call.kind == TokenKind::ParenOpen && !call.spaced;
        if token.kind != TokenKind::Word || calls && !same(&name, "ContainsKey") {
            return self.refused(token);
        }
        if !calls {
            return Ok(value.with(Link::Member(name)));
        }
        self.next();
        let key = self.statement()?;
        self.expect(TokenKind::ParenClose)?;
        Ok(value.with(Link::ContainsKey(key)))
    }

    pub(crate) fn primary(&mut self) -> Parse<Expression> {
        let token = self.next();
        let text = self.lexer.text(token);
        let value = match token.kind {
            TokenKind::Number => match Number::parse(text) {
                Some(number) => Expression::Constant(number.into()),
                None => return fail(token, format!("'{text}' is not a valid number")),
            },
            TokenKind::Literal => Expression::Constant(Value::Text(unquote(text))),
            TokenKind::Expandable => self.expandable(token)?,
            TokenKind::Variable => self.variable(token, &variable_name(text.get(1..).unwrap_or_default()))?,
            TokenKind::ParenOpen => {
                self.skip_lines();
                let value = self.statement()?;
                self.skip_lines();
                self.expect(TokenKind::ParenClose)?;
                value
            }
            TokenKind::ArrayOpen => Expression::Array(self.statements(TokenKind::ParenClose)?),
            TokenKind::SubOpen => Expression::Sub(self.statements(TokenKind::ParenClose)?),
            TokenKind::TableOpen => self.table()?,
            TokenKind::BraceOpen => return fail(token, format!("script blocks are {}", self.dialect.refusal())),
            _ => return self.unexpected(token),
        };
        self.selected(value)
    }

    fn variable(&self, token: Token, name: &str) -> Parse<Expression> {
        let allowed = match self.dialect {
            Dialect::Manifest => VARIABLES.iter().any(|known| same(known, name)) || environment(name).is_some(),
            Dialect::Configuration => !name.contains(':'),
        };
        if allowed {
            return Ok(Expression::Variable(name.to_owned()));
        }
        fail(token, format!("variable '${name}' is {}", self.dialect.refusal()))
    }

    pub(crate) fn expandable(&mut self, token: Token) -> Parse<Expression> {
        let mut pieces = Vec::new();
        for part in parts(self.lexer.text(token)) {
            pieces.push(match part {
                StringPart::Text(text) => Piece::Text(text),
                StringPart::Variable(name) => Piece::Value(self.variable(token, &name)?),
                StringPart::SubExpression(nested) => {
                    let statements = Parser::parse(&nested.script, self.dialect, self.depth + 1, |parser| {
                        parser.statements(TokenKind::End)
                    });
                    let statements = statements.map_err(|fault| ManifestFault {
                        offset: token.start + nested.origin(fault.offset),
                        message: fault.message,
                    })?;
                    Piece::Value(Expression::Sub(statements))
                }
            });
        }
        Ok(Expression::Expandable(pieces))
    }

    /// A table, behind `@{`.
    fn table(&mut self) -> Parse<Expression> {
        let entries = self.entries(Self::statement)?.into_iter().map(|entry| (entry.key, entry.value));
        Ok(Expression::Table(entries.collect()))
    }

    /// Entries up to the brace that closes them, which is read.
    pub(crate) fn entries(&mut self, value_of: fn(&mut Self) -> Parse<Expression>) -> Parse<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            while self.eat(TokenKind::NewLine) || self.eat(TokenKind::Semicolon) {}
            if self.eat(TokenKind::BraceClose) {
                return Ok(entries);
            }
            let token = self.lexer.peek(Mode::Member);
            let key = self.key(token)?;
            if entries.iter().any(|known| is_same_key(&known.key, &key)) {
                return fail(token, format!("duplicate key '{}'", self.lexer.text(token)));
            }
            self.expect(TokenKind::Assign)?;
            self.skip_lines();
            let start = self.peek().start;
            let value = value_of(self)?;
            let value_at = start..self.lexer.offset();
            entries.push(Entry { key, key_at: token.start..token.end, value, value_at });
            let token = self.peek();
            if !matches!(token.kind, TokenKind::NewLine | TokenKind::Semicolon | TokenKind::BraceClose) {
                return self.unexpected(token);
            }
        }
    }

    fn key(&mut self, token: Token) -> Parse<Expression> {
        if token.kind == TokenKind::Word {
            self.lexer.next(Mode::Member);
            return Ok(Expression::Constant(Value::from(self.lexer.text(token))));
        }
        self.unary()
    }
}

fn is_same_key(left: &Expression, right: &Expression) -> bool {
    match (left, right) {
        (Expression::Constant(Value::Text(left)), Expression::Constant(Value::Text(right))) => same(left, right),
        (Expression::Constant(left), Expression::Constant(right)) => left == right,
        _ => false,
    }
}

/// Returns whether a token takes a part of the value before it.
fn selects(token: Token) -> bool {
    let kinds = matches!(
        token.kind,
        TokenKind::Dot
            | TokenKind::ColonColon
            | TokenKind::QuestionDot
            | TokenKind::BracketOpen
            | TokenKind::QuestionBracket
    );
    kinds && !token.spaced
}

/// The name of a variable of the environment: of `env:X`.
pub(super) fn environment(name: &str) -> Option<&str> {
    name.get(..4).filter(|scope| scope.eq_ignore_ascii_case("env:")).and_then(|_| name.get(4..))
}

fn tighter(level: Level) -> Level {
    match level {
        Level::Logical => Level::Bitwise,
        Level::Bitwise => Level::Comparison,
        Level::Comparison => Level::Coalesce,
        Level::Coalesce => Level::Sum,
        Level::Sum => Level::Product,
        Level::Product => Level::Format,
        Level::Format | Level::Range => Level::Range,
    }
}

/// The types that a manifest may name: those that .NET has a code for, and lists of them.
fn is_simple(name: &str) -> bool {
    const SIMPLE: &[&str] = &[
        "bool", "boolean", "char", "sbyte", "byte", "short", "int16", "ushort", "uint16", "int", "int32", "uint",
        "uint32", "long", "int64", "ulong", "uint64", "float", "single", "double", "decimal", "datetime", "string",
    ];
    let lower = name.trim_end_matches("[]").to_ascii_lowercase();
    SIMPLE.contains(&lower.strip_prefix("system.").unwrap_or(&lower))
}
