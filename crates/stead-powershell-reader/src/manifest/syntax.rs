//! Expressions of the restricted language, and of what configurations may use besides.

use std::ops::Range;

use super::value::Value;

/// An expression of the restricted language.
#[derive(Clone, PartialEq, Debug)]
pub enum Expression {
    /// A value as it is written.
    Constant(Value),
    /// `$Name`
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
    /// An operator with one operand.
    Unary(Unary, Box<Expression>),
    /// `condition ? yes : no`
    Ternary(Box<[Expression; 3]>),
    /// `[Type] value`
    Cast(String, Box<Expression>),
    /// Conditions with what they guard; the last may be without a condition.
    If(Vec<(Option<Expression>, Vec<Expression>)>),
    /// A command that is known, its arguments with the parameters that name them.
    Command(String, Vec<(Option<String>, Expression)>),
    /// A value and what is done to it, link by link. However many there are, they stand side by side: within each other, they
    /// would be evaluated and dropped by recursion.
    Chain(Box<Expression>, Vec<Link>),
}

/// An operation on the value before it in a chain.
#[derive(Clone, PartialEq, Debug)]
pub enum Link {
    /// The operator in lower case, without its dash, and its right side.
    Binary(String, Expression),
    /// `.Name`
    Member(String),
    /// `[index]`
    Index(Expression),
    /// `.ContainsKey(key)`, the one method that is evaluated.
    ContainsKey(Expression),
}

impl Expression {
    pub(super) fn with(self, link: Link) -> Self {
        let (first, mut links) = match self {
            Self::Chain(first, links) => (first, links),
            other => (Box::new(other), Vec::new()),
        };
        links.push(link);
        Self::Chain(first, links)
    }
}

/// An operator with one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `-not`, `!`
    Not,
    /// `-bnot`
    BitwiseNot,
}

/// A part of a text in double quotes.
#[derive(Clone, PartialEq, Debug)]
pub enum Piece {
    /// Text as it is.
    Text(String),
    /// The text of a value.
    Value(Expression),
}

/// An entry of a table or a block.
pub struct Entry {
    /// The key.
    pub key: Expression,
    /// Where the key stands.
    pub key_at: Range<usize>,
    /// The value.
    pub value: Expression,
    /// Where the value stands.
    pub value_at: Range<usize>,
}
