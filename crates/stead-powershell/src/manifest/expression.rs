//! The restricted language of manifests, parsed. What it does not allow is refused here, also where it would not be
//! evaluated.

use super::value::Value;
use super::{Fault, same};
use crate::token::{Flaw, Kind, Level, Lexer, Mode, Number, Part, Token, parts, unquote};

/// What gives values.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Expression {
    Constant(Value),
    Variable(String),
    /// Text in double quotes.
    Expandable(Vec<Piece>),
    /// `a, b`
    List(Vec<Expression>),
    /// `@( )`
    Array(Vec<Expression>),
    /// `$( )`
    Sub(Vec<Expression>),
    /// `@{ }`
    Table(Vec<(Expression, Expression)>),
    Unary(Unary, Box<Expression>),
    /// The operator in lower case, without its dash.
    Binary(String, Box<[Expression; 2]>),
    Ternary(Box<[Expression; 3]>),
    Cast(String, Box<Expression>),
    /// Conditions with what they guard; the last may be without a condition.
    If(Vec<(Option<Expression>, Vec<Expression>)>),
    /// One of [`COMMANDS`], its arguments with the parameters that name them.
    Command(String, Vec<(Option<String>, Expression)>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unary {
    Plus,
    Minus,
    Not,
    BitwiseNot,
}

/// A part of a text in double quotes.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Piece {
    Text(String),
    Value(Expression),
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
pub(super) fn parse(text: &str) -> Result<Vec<Expression>, Fault> {
    parse_at(text, 0)
}

fn parse_at(text: &str, depth: usize) -> Result<Vec<Expression>, Fault> {
    let mut parser = Parser { lexer: Lexer::new(text), depth };
    let statements = parser.statements(Kind::End);
    let flaw = parser.lexer.into_flaws().into_iter().next();
    match (statements, flaw) {
        (_, Some((flaw, offset))) => Err(Fault { offset, message: describe(flaw).to_owned() }),
        (statements, None) => statements,
    }
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

struct Parser<'a> {
    lexer: Lexer<'a>,
    depth: usize,
}

type Parse<T> = Result<T, Fault>;

fn fail<T>(token: Token, message: impl Into<String>) -> Parse<T> {
    Err(Fault { offset: token.start, message: message.into() })
}

impl Parser<'_> {
    fn peek(&mut self) -> Token {
        self.lexer.peek(Mode::Expression)
    }

    fn next(&mut self) -> Token {
        self.lexer.next(Mode::Expression)
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.peek().kind == kind;
        if found {
            self.next();
        }
        found
    }

    fn unexpected<T>(&self, token: Token) -> Parse<T> {
        match token.kind {
            Kind::End => fail(token, "unexpected end of the file"),
            Kind::NewLine => fail(token, "unexpected end of the line"),
            _ => fail(token, format!("unexpected '{}'", self.lexer.text(token))),
        }
    }

    fn expect(&mut self, kind: Kind) -> Parse<()> {
        let token = self.peek();
        if self.eat(kind) { Ok(()) } else { self.unexpected(token) }
    }

    fn skip_lines(&mut self) {
        while self.eat(Kind::NewLine) {}
    }

    /// Statements up to a token, which is read.
    fn statements(&mut self, end: Kind) -> Parse<Vec<Expression>> {
        let mut statements = Vec::new();
        loop {
            while self.eat(Kind::NewLine) || self.eat(Kind::Semicolon) {}
            if self.peek().kind == end {
                self.next();
                return Ok(statements);
            }
            statements.push(self.statement()?);
            let token = self.peek();
            if token.kind != end && !matches!(token.kind, Kind::NewLine | Kind::Semicolon) {
                return self.unexpected(token);
            }
        }
    }

    fn statement(&mut self) -> Parse<Expression> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let token = self.peek();
            return fail(token, "values are nested too deeply");
        }
        let token = self.peek();
        let statement = match token.kind {
            Kind::Word if same(self.lexer.text(token), "if") => self.condition(),
            _ => self.pipeline(),
        };
        self.depth -= 1;
        statement
    }

    fn condition(&mut self) -> Parse<Expression> {
        let mut branches = Vec::new();
        loop {
            self.next();
            self.skip_lines();
            self.expect(Kind::ParenOpen)?;
            self.skip_lines();
            let condition = self.statement()?;
            self.skip_lines();
            self.expect(Kind::ParenClose)?;
            branches.push((Some(condition), self.block()?));
            let after = self.lexer.offset();
            self.skip_lines();
            let token = self.peek();
            if token.kind == Kind::Word && same(self.lexer.text(token), "elseif") {
                continue;
            }
            if token.kind == Kind::Word && same(self.lexer.text(token), "else") {
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
        self.expect(Kind::BraceOpen)?;
        self.statements(Kind::BraceClose)
    }

    /// A value, or commands that it is piped to.
    fn pipeline(&mut self) -> Parse<Expression> {
        let token = self.peek();
        let mut value = if token.kind == Kind::Word { self.command()? } else { self.expression()? };
        while self.eat(Kind::Pipe) {
            self.skip_lines();
            value = match self.command()? {
                Expression::Command(name, mut arguments) => {
                    arguments.push((Some("|".to_owned()), value));
                    Expression::Command(name, arguments)
                }
                other => other,
            };
        }
        Ok(value)
    }

    fn command(&mut self) -> Parse<Expression> {
        let token = self.next();
        let name = self.lexer.text(token).to_owned();
        if token.kind != Kind::Word || !COMMANDS.iter().any(|known| same(known, &name)) {
            return fail(token, format!("'{name}' is not allowed in a manifest; write text in quotes"));
        }
        let (mut arguments, mut named) = (Vec::new(), None);
        loop {
            let token = self.lexer.peek(Mode::Argument);
            let value = match token.kind {
                Kind::NewLine | Kind::Semicolon | Kind::BraceClose | Kind::ParenClose | Kind::Pipe | Kind::End => break,
                Kind::Parameter => {
                    self.lexer.next(Mode::Argument);
                    named = Some(self.lexer.text(token).trim_matches(['-', ':']).to_ascii_lowercase());
                    continue;
                }
                Kind::Word => {
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
        if !self.eat(Kind::Question) {
            let token = self.peek();
            let refused = matches!(
                token.kind,
                Kind::Assign | Kind::Redirect | Kind::Merge | Kind::SplitJoin | Kind::Step | Kind::Chain
            );
            return if refused { self.refused(token) } else { Ok(condition) };
        }
        self.skip_lines();
        let yes = self.expression()?;
        self.skip_lines();
        self.expect(Kind::Colon)?;
        self.skip_lines();
        let no = self.expression()?;
        Ok(Expression::Ternary(Box::new([condition, yes, no])))
    }

    fn refused<T>(&self, token: Token) -> Parse<T> {
        fail(token, format!("'{}' is not allowed in a manifest", self.lexer.text(token)))
    }

    /// Operators that bind at least that tightly.
    fn binary(&mut self, least: Level) -> Parse<Expression> {
        let mut left = self.comma()?;
        loop {
            let token = self.peek();
            let level = match token.kind {
                Kind::Binary(level) => level,
                Kind::Sign => Level::Sum,
                _ => return Ok(left),
            };
            if level < least {
                return Ok(left);
            }
            self.next();
            let operator = self
                .lexer
                .text(token)
                .trim_start_matches(|c: char| token.kind != Kind::Sign && crate::token::is_dash(c));
            let operator = if token.kind == Kind::Sign && operator != "+" {
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
            left = Expression::Binary(operator, Box::new([left, right]));
        }
    }

    fn comma(&mut self) -> Parse<Expression> {
        let leading = self.eat(Kind::Comma);
        if leading {
            self.skip_lines();
        }
        let first = self.unary()?;
        if leading {
            return Ok(Expression::List(vec![first]));
        }
        let mut items = vec![first];
        while self.eat(Kind::Comma) {
            self.skip_lines();
            items.push(self.unary()?);
        }
        Ok(if items.len() == 1 { items.remove(0) } else { Expression::List(items) })
    }

    fn unary(&mut self) -> Parse<Expression> {
        self.depth += 1;
        let token = self.peek();
        if self.depth > DEEPEST {
            return fail(token, "values are nested too deeply");
        }
        let unary = match (token.kind, self.lexer.text(token)) {
            (Kind::Sign, "+") => Some(Unary::Plus),
            (Kind::Sign, _) => Some(Unary::Minus),
            (Kind::Not, text) if text.to_ascii_lowercase().ends_with("bnot") => Some(Unary::BitwiseNot),
            (Kind::Not, _) => Some(Unary::Not),
            _ => None,
        };
        let value = match unary {
            Some(unary) => {
                self.next();
                self.skip_lines();
                Expression::Unary(unary, Box::new(self.unary()?))
            }
            None if token.kind == Kind::BracketOpen => self.cast()?,
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
        if self.eat(Kind::BracketOpen) {
            self.expect(Kind::BracketClose)?;
            name.push_str("[]");
        }
        self.expect(Kind::BracketClose)?;
        if word.kind != Kind::Word || !is_simple(&name) {
            return fail(open, format!("type '[{name}]' is not allowed in a manifest"));
        }
        let token = self.peek();
        let operand = matches!(
            token.kind,
            Kind::Number
                | Kind::Literal
                | Kind::Expandable
                | Kind::Variable
                | Kind::ParenOpen
                | Kind::SubOpen
                | Kind::ArrayOpen
                | Kind::TableOpen
                | Kind::BracketOpen
                | Kind::Sign
                | Kind::Not
        );
        if !operand {
            Self::no_member(token)?;
            return Ok(Expression::Constant(Value::Type(name)));
        }
        Ok(Expression::Cast(name, Box::new(self.unary()?)))
    }

    fn no_member(token: Token) -> Parse<()> {
        let selects = matches!(
            token.kind,
            Kind::Dot | Kind::ColonColon | Kind::QuestionDot | Kind::BracketOpen | Kind::QuestionBracket
        );
        if selects && !token.spaced { fail(token, "members and indexes are not allowed in a manifest") } else { Ok(()) }
    }

    fn primary(&mut self) -> Parse<Expression> {
        let token = self.next();
        let text = self.lexer.text(token);
        let value = match token.kind {
            Kind::Number => match Number::parse(text) {
                Some(number) => Expression::Constant(number.into()),
                None => return fail(token, format!("'{text}' is not a valid number")),
            },
            Kind::Literal => Expression::Constant(Value::Text(unquote(text))),
            Kind::Expandable => self.expandable(token)?,
            Kind::Variable => Self::variable(token, &variable_name(text))?,
            Kind::ParenOpen => {
                self.skip_lines();
                let value = self.statement()?;
                self.skip_lines();
                self.expect(Kind::ParenClose)?;
                value
            }
            Kind::ArrayOpen => Expression::Array(self.statements(Kind::ParenClose)?),
            Kind::SubOpen => Expression::Sub(self.statements(Kind::ParenClose)?),
            Kind::TableOpen => self.table()?,
            Kind::BraceOpen => return fail(token, "script blocks are not allowed in a manifest"),
            _ => return self.unexpected(token),
        };
        let after = self.peek();
        Self::no_member(after)?;
        Ok(value)
    }

    fn variable(token: Token, name: &str) -> Parse<Expression> {
        let allowed = VARIABLES.iter().any(|known| same(known, name)) || environment(name).is_some();
        if allowed {
            return Ok(Expression::Variable(name.to_owned()));
        }
        fail(token, format!("variable '${name}' is not allowed in a manifest"))
    }

    fn expandable(&mut self, token: Token) -> Parse<Expression> {
        let mut pieces = Vec::new();
        for part in parts(self.lexer.text(token)) {
            pieces.push(match part {
                Part::Text(text) => Piece::Text(text),
                Part::Variable(name) => Piece::Value(Self::variable(token, &name)?),
                Part::SubExpression(nested) => {
                    let statements = parse_at(&nested.script, self.depth + 1).map_err(|fault| Fault {
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
        let mut entries: Vec<(Expression, Expression)> = Vec::new();
        loop {
            while self.eat(Kind::NewLine) || self.eat(Kind::Semicolon) {}
            if self.eat(Kind::BraceClose) {
                return Ok(Expression::Table(entries));
            }
            let token = self.lexer.peek(Mode::Member);
            let key = self.key(token)?;
            if entries.iter().any(|(known, _)| is_same_key(known, &key)) {
                return fail(token, format!("key '{}' is there twice", self.lexer.text(token)));
            }
            self.expect(Kind::Assign)?;
            self.skip_lines();
            entries.push((key, self.statement()?));
            let token = self.peek();
            if !matches!(token.kind, Kind::NewLine | Kind::Semicolon | Kind::BraceClose) {
                return self.unexpected(token);
            }
        }
    }

    fn key(&mut self, token: Token) -> Parse<Expression> {
        if token.kind == Kind::Word {
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

fn variable_name(text: &str) -> String {
    let name = text.strip_prefix('$').unwrap_or(text);
    match name.strip_prefix('{') {
        Some(name) => name.strip_suffix('}').unwrap_or(name).replace('`', ""),
        None => name.to_owned(),
    }
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
