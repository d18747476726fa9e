//! Constants: what arguments of attributes and values of enumerations may be.

use crate::token::{Level, Lexer, Mode, Number, StringPart, Token, TokenKind, parts, unquote, variable_name};

/// How deeply a constant may be nested.
const MAX_DEPTH: usize = 50;

/// The value of a constant expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Constant {
    /// `$null`
    Null,
    /// `$true`, `$false`, and what becomes one.
    Boolean(bool),
    /// An integer.
    Integer(i128),
    /// Any other number.
    Real(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Constant>),
    /// `[type]`, by its text.
    Type(String),
    /// `[type]::Name`, by both texts.
    Member(String, String),
}

impl Constant {
    /// The value of an expression; `None` when it is not a constant.
    pub(super) fn evaluate(text: &str) -> Option<Self> {
        let mut reader = Reader { lexer: Lexer::new(text), depth: 0 };
        let value = reader.list()?;
        reader.skip_lines();
        (reader.lexer.peek(Mode::Expression).kind == TokenKind::End).then_some(value)
    }

    /// Returns whether it counts as true.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Boolean(value) => *value,
            Self::Integer(value) => *value != 0,
            Self::Real(value) => *value != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(values) => values.len() > 1 || values.first().is_some_and(Self::is_true),
            Self::Type(_) | Self::Member(..) => true,
        }
    }

    /// Its text, as a conversion to one gives it.
    pub fn to_text(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Boolean(true) => "True".to_owned(),
            Self::Boolean(false) => "False".to_owned(),
            Self::Integer(value) => value.to_string(),
            Self::Real(value) => value.to_string(),
            Self::Text(text) | Self::Type(text) => text.clone(),
            Self::List(values) => values.iter().map(Self::to_text).collect::<Vec<_>>().join(" "),
            Self::Member(ty, name) => format!("[{ty}]::{name}"),
        }
    }

    /// The integer that it says or converts to.
    pub fn to_integer(&self) -> Option<i128> {
        match self {
            Self::Null => Some(0),
            Self::Boolean(value) => Some(i128::from(*value)),
            Self::Integer(value) => Some(*value),
            #[expect(clippy::cast_possible_truncation, reason = "what is out of range is refused by its type")]
            Self::Real(value) => Some(value.round_ties_even() as i128),
            Self::Text(text) if text.trim().is_empty() => Some(0),
            Self::Text(text) => {
                let text = text.trim();
                let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
                Self::number(digits)?.to_integer().map(|value| sign * value)
            }
            Self::Member(ty, name) => limit(ty, name),
            Self::List(_) | Self::Type(_) => None,
        }
    }

    fn number(text: &str) -> Option<Self> {
        Some(match Number::parse(text)? {
            Number::Integer { value, .. } => Self::Integer(value),
            Number::Decimal { mantissa, scale: 0 } => Self::Integer(mantissa),
            #[expect(clippy::cast_precision_loss, reason = "bounds and members need no more than a double holds")]
            Number::Decimal { mantissa, scale } => {
                Self::Real(mantissa as f64 / 10_f64.powi(i32::try_from(scale).unwrap_or(i32::MAX)))
            }
            Number::Double(value) => Self::Real(value),
            Number::Big(digits) => digits.parse().map_or(Self::Text(digits), Self::Integer),
        })
    }
}

/// The limits of the integer types.
fn limit(ty: &str, name: &str) -> Option<i128> {
    let ty = ty.to_ascii_lowercase();
    let (bits, signed) = match ty.strip_prefix("system.").unwrap_or(&ty) {
        "sbyte" => (8, true),
        "byte" => (8, false),
        "int16" | "short" => (16, true),
        "uint16" | "ushort" => (16, false),
        "int" | "int32" => (32, true),
        "uint" | "uint32" => (32, false),
        "long" | "int64" => (64, true),
        "ulong" | "uint64" => (64, false),
        _ => return None,
    };
    let (low, high) = if signed { (-(1_i128 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    match name.to_ascii_lowercase().as_str() {
        "minvalue" => Some(low),
        "maxvalue" => Some(high),
        _ => None,
    }
}

struct Reader<'a> {
    lexer: Lexer<'a>,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> Token {
        self.lexer.peek(Mode::Expression)
    }

    fn take(&mut self) -> Token {
        self.lexer.next(Mode::Expression)
    }

    fn skip_lines(&mut self) {
        while self.peek().kind == TokenKind::NewLine {
            self.take();
        }
    }

    fn expect(&mut self, kind: TokenKind) -> Option<()> {
        self.skip_lines();
        (self.take().kind == kind).then_some(())
    }

    /// Values with commas between them.
    fn list(&mut self) -> Option<Constant> {
        let first = self.binary(0)?;
        if self.peek().kind != TokenKind::Comma {
            return Some(first);
        }
        let mut values = vec![first];
        while self.peek().kind == TokenKind::Comma {
            self.take();
            self.skip_lines();
            values.push(self.binary(0)?);
        }
        Some(Constant::List(values))
    }

    /// Operators that bind at least that tightly.
    fn binary(&mut self, least: u8) -> Option<Constant> {
        let mut left = self.unary()?;
        loop {
            let operator = self.peek();
            let level = match operator.kind {
                TokenKind::Binary(level) => level,
                TokenKind::Sign => Level::Sum,
                _ => return Some(left),
            };
            if (level as u8) < least {
                return Some(left);
            }
            self.take();
            self.skip_lines();
            let right = self.binary(level as u8 + 1)?;
            left = compute(self.lexer.text(operator), &left, &right)?;
        }
    }

    fn unary(&mut self) -> Option<Constant> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let value = self.unary_here();
        self.depth -= 1;
        value
    }

    fn unary_here(&mut self) -> Option<Constant> {
        let token = self.take();
        let text = self.lexer.text(token);
        match token.kind {
            TokenKind::Number => Constant::number(text),
            TokenKind::Literal => Some(Constant::Text(unquote(text))),
            TokenKind::Expandable => plain(text).map(Constant::Text),
            TokenKind::Variable => variable(text),
            TokenKind::Sign if text == "+" => self.unary(),
            TokenKind::Sign => match self.unary()? {
                Constant::Integer(value) => Some(Constant::Integer(value.checked_neg()?)),
                Constant::Real(value) => Some(Constant::Real(-value)),
                other => other.to_integer().map(|value| Constant::Integer(-value)),
            },
            TokenKind::Not if text.len() == 5 => self.unary()?.to_integer().map(|value| Constant::Integer(!value)),
            TokenKind::Not => self.unary().map(|value| Constant::Boolean(!value.is_true())),
            TokenKind::ParenOpen => self.inside(false),
            TokenKind::SubOpen | TokenKind::ArrayOpen => self.inside(token.kind == TokenKind::ArrayOpen),
            TokenKind::BracketOpen => self.of_type(),
            _ => None,
        }
    }

    fn inside(&mut self, list: bool) -> Option<Constant> {
        self.skip_lines();
        if list && self.peek().kind == TokenKind::ParenClose {
            self.take();
            return Some(Constant::List(Vec::new()));
        }
        let value = self.list()?;
        self.expect(TokenKind::ParenClose)?;
        Some(match value {
            value if !list || matches!(value, Constant::List(_)) => value,
            value => Constant::List(vec![value]),
        })
    }

    /// `[type]`, `[type]::Name` or `[type] value`.
    fn of_type(&mut self) -> Option<Constant> {
        let start = self.lexer.peek(Mode::Type).start;
        let mut depth = 1_usize;
        let mut end = start;
        while depth > 0 {
            let token = self.lexer.next(Mode::Type);
            match token.kind {
                TokenKind::BracketOpen => depth += 1,
                TokenKind::BracketClose => depth -= 1,
                TokenKind::Word | TokenKind::Comma => {}
                _ => return None,
            }
            end = token.start;
        }
        let ty = self.lexer.source().get(start..end)?.trim().to_owned();
        match self.peek().kind {
            TokenKind::ColonColon => {
                self.take();
                let name = self.lexer.next(Mode::Member);
                (name.kind == TokenKind::Word).then(|| Constant::Member(ty, self.lexer.text(name).to_owned()))
            }
            TokenKind::End | TokenKind::Comma | TokenKind::ParenClose | TokenKind::NewLine => Some(Constant::Type(ty)),
            _ => self.unary(),
        }
    }
}

fn variable(text: &str) -> Option<Constant> {
    match variable_name(text.get(1..)?).to_ascii_lowercase().as_str() {
        "true" => Some(Constant::Boolean(true)),
        "false" => Some(Constant::Boolean(false)),
        "null" => Some(Constant::Null),
        _ => None,
    }
}

/// An expandable text in which only constants are named.
fn plain(text: &str) -> Option<String> {
    let parts = parts(text).into_iter().map(|part| match part {
        StringPart::Text(text) => Some(text),
        StringPart::Variable(name) => variable(&format!("${name}")).map(|value| value.to_text()),
        StringPart::SubExpression(_) => None,
    });
    parts.collect()
}

fn compute(operator: &str, left: &Constant, right: &Constant) -> Option<Constant> {
    if operator == "+"
        && let Constant::Text(text) = left
    {
        return Some(Constant::Text(format!("{text}{}", right.to_text())));
    }
    let (a, b) = (left.to_integer()?, right.to_integer()?);
    Some(Constant::Integer(match operator.to_ascii_lowercase().as_str() {
        "+" => a.checked_add(b)?,
        "*" => a.checked_mul(b)?,
        "/" if b != 0 && a % b == 0 => a / b,
        "%" if b != 0 => a % b,
        "-bor" => a | b,
        "-band" => a & b,
        "-bxor" => a ^ b,
        "-shl" => a.checked_mul(1_i128 << u32::try_from(b).ok().filter(|bits| *bits < 64)?)?,
        "-shr" => a >> u32::try_from(b).ok().filter(|bits| *bits < 64)?,
        operator if operator.chars().all(crate::token::is_dash) => a.checked_sub(b)?,
        _ => return None,
    }))
}
