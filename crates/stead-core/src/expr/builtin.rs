//! The declaration of a function of the language: data that the parser, the evaluator and the listing read.

use std::fmt;

use super::{Help, codes};
use crate::diag::Code;
use crate::value::{Object, Value};

/// A kind of value that functions accept and return.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ValueKind {
    /// A sequence
    Array,
    /// `true` or `false`
    Boolean,
    /// A function without a name; only as an argument of `map` and `filter`
    Lambda,
    /// `null`
    Null,
    /// A number
    Number,
    /// Named values
    Object,
    /// Text
    String,
}

impl ValueKind {
    /// Every kind of value.
    pub const VALUES: &[Self] = &[Self::Array, Self::Boolean, Self::Null, Self::Number, Self::Object, Self::String];

    /// The word that listings and messages use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Boolean => "boolean",
            Self::Lambda => "lambda",
            Self::Null => "null",
            Self::Number => "number",
            Self::Object => "object",
            Self::String => "string",
        }
    }

    /// The kind of a value; `None` when it is sealed.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Null),
            Value::Bool(_) => Some(Self::Boolean),
            Value::Number(_) => Some(Self::Number),
            Value::String(_) => Some(Self::String),
            Value::Array(_) => Some(Self::Array),
            Value::Object(_) => Some(Self::Object),
            Value::Sealed(_) => None,
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A function of the language.
///
/// Invariant: there is one of each name, and `accepts` is no longer than `max`.
#[derive(Clone, Copy)]
pub struct Builtin {
    /// Its name; case matters.
    pub name: &'static str,
    /// The subjects it belongs to; a function may belong to several categories.
    pub categories: &'static [&'static str],
    /// The result, in one sentence.
    pub description: &'static str,
    /// How it is called.
    pub syntax: &'static str,
    /// The restrictions that the types do not express, in one sentence.
    pub constraints: Option<&'static str>,
    /// The fewest arguments.
    pub min: usize,
    /// The most arguments; `None` when there may be any number.
    pub max: Option<usize>,
    /// The kinds that each of the first arguments may be.
    pub accepts: &'static [&'static [ValueKind]],
    /// The kinds that each argument behind those may be.
    pub rest: Option<&'static [ValueKind]>,
    /// The kinds that the result may be.
    pub returns: &'static [ValueKind],
    pub(super) run: Run,
    pub(super) sight: Sight,
}

impl PartialEq for Builtin {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// How a function is computed.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// From the values of its arguments alone; there is a result for all of the right types.
    Total(fn(Arguments) -> Value),
    /// From the values of its arguments alone.
    Pure(fn(Arguments) -> BuiltinResult),
    /// Decides itself which arguments are computed.
    Lazily(Lazy),
    /// Asks the environment.
    Asks(Ask),
    /// `lambda`, which is syntax.
    Lambda,
}

impl Run {
    pub(super) fn is_lambda(self) -> bool {
        matches!(self, Self::Lambda)
    }
}

/// The functions that do not compute all of their arguments, or some of them often.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lazy {
    If,
    And,
    Or,
    Coalesce,
    Map,
    Filter,
}

/// The functions that depend on more than their arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Parameter,
    Variable,
    LambdaVariable,
    Reference,
    StateChanged,
    RestartRequired,
    CopyIndex,
    Stdout,
    UtcNow,
    EnvironmentVariable,
    Executable,
    SystemRoot,
    Context,
    Facts,
    File,
    Secret,
}

/// How deep a function looks into its arguments; below that, sealed values are carried along unopened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// All of it: one sealed part anywhere seals the result.
    Whole,
    /// Only what kind of value each argument is, and which elements or members it has.
    Shape,
    /// As [`Sight::Shape`], also of the elements of an array.
    Elements,
    /// Only the names of members: every other argument.
    Names,
    /// Nothing.
    Blind,
}

impl Sight {
    /// Returns whether something sealed hides what the function needs to see.
    pub(super) fn is_blocked(self, arguments: &[Value]) -> bool {
        let sealed = |value: &Value| matches!(value, Value::Sealed(_));
        match self {
            Self::Whole => arguments.iter().any(Value::has_sealed),
            Self::Shape => arguments.iter().any(sealed),
            Self::Elements => {
                arguments.iter().any(|each| sealed(each) || each.as_array().is_some_and(|all| all.iter().any(sealed)))
            }
            Self::Names => arguments.iter().step_by(2).any(sealed),
            Self::Blind => false,
        }
    }
}

/// The result of a function, or what is wrong with its arguments.
pub(super) type BuiltinResult = Result<Value, Wrong>;

/// A mistake in the arguments of a function.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) code: Code,
    pub(super) message: String,
    /// The argument that it is about, from 0.
    pub(super) argument: Option<usize>,
    pub(super) help: Option<Help>,
}

impl Wrong {
    /// The value of an argument is refused.
    pub(super) fn value(argument: usize, message: impl Into<String>) -> Self {
        Self { code: &codes::ARGUMENT_VALUE, message: message.into(), argument: Some(argument), help: None }
    }

    /// The type of an argument, or of a part of it, is refused.
    pub(super) fn kind(argument: usize, message: impl Into<String>) -> Self {
        Self { code: &codes::ARGUMENT_TYPE, ..Self::value(argument, message) }
    }

    /// There is no such number.
    pub(super) fn arithmetic(message: impl Into<String>) -> Self {
        Self { code: &codes::ARITHMETIC, message: message.into(), argument: None, help: None }
    }

    /// The result would be too large.
    pub(super) fn limit() -> Self {
        let message = "the result of the expression grows too large".to_owned();
        Self { code: &codes::LIMIT, message, argument: None, help: None }
    }

    /// Returns it with the name of the function in front, unless it is there.
    pub(super) fn of(mut self, builtin: &Builtin) -> Self {
        if !self.message.starts_with("Function '") {
            self.message = format!("Function '{}': {}", builtin.name, self.message);
        }
        self
    }

    pub(super) fn with_help(self, help: impl Into<Help>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

impl Builtin {
    /// Returns whether DSC v3 does not have it.
    pub fn is_own(&self) -> bool {
        self.name == "facts" || self.name.contains('.')
    }

    /// Returns the kinds that the argument at a position, from 0, may be.
    pub(super) fn accepts_at(&self, position: usize) -> &'static [ValueKind] {
        self.accepts.get(position).copied().or(self.rest).unwrap_or_default()
    }

    /// Checks the type of one argument; a sealed one is checked when it is opened.
    pub(super) fn check(&self, position: usize, value: &Value) -> Result<(), Wrong> {
        match ValueKind::of(value) {
            Some(kind) => self.check_kinds(position, &[kind]),
            None => Ok(()),
        }
    }

    /// Checks an argument of which only the kinds are known that it can be of.
    pub(super) fn check_kinds(&self, position: usize, kinds: &[ValueKind]) -> Result<(), Wrong> {
        let accepted = self.accepts_at(position);
        let Some(&kind) = kinds.first().filter(|_| !kinds.iter().any(|kind| accepted.contains(kind))) else {
            return Ok(());
        };
        let names: Vec<&str> = accepted.iter().map(|each| each.as_str()).collect();
        let message = format!(
            "Function '{}' does not accept {kind} arguments, accepted types are: {} (argument {})",
            self.name,
            names.join(", "),
            position + 1
        );
        let wrong = Wrong::kind(position, message);
        Err(match conversion(kind, accepted) {
            Some(function) => wrong.with_help(format!("convert it with {function}()")),
            None => wrong.with_help(format!("it is used as {}", self.syntax)),
        })
    }

    /// Computes a pure function; every argument has the right type and hides nothing that it needs to see.
    pub(super) fn compute(&self, arguments: Vec<Value>) -> Option<BuiltinResult> {
        let arguments = Arguments { values: arguments.into_iter(), taken: 0 };
        match self.run {
            Run::Total(run) => Some(Ok(run(arguments))),
            Run::Pure(run) => Some(run(arguments)),
            Run::Lazily(_) | Run::Asks(_) | Run::Lambda => None,
        }
    }
}

fn conversion(from: ValueKind, to: &[ValueKind]) -> Option<&'static str> {
    match from {
        ValueKind::String if to.contains(&ValueKind::Number) => Some("int"),
        ValueKind::String | ValueKind::Number if to.contains(&ValueKind::Boolean) => Some("bool"),
        // What takes numbers as well does not mean any text.
        ValueKind::Number | ValueKind::Boolean | ValueKind::Array | ValueKind::Object
            if to.contains(&ValueKind::String) && !to.contains(&ValueKind::Number) =>
        {
            Some("string")
        }
        _ => None,
    }
}

/// The arguments of a pure function, taken one by one.
pub(super) struct Arguments {
    values: std::vec::IntoIter<Value>,
    taken: usize,
}

impl Arguments {
    /// Returns the number of arguments that are left.
    pub(super) fn left(&self) -> usize {
        self.values.len()
    }

    /// The next, whatever it is; null behind the last.
    pub(super) fn any(&mut self) -> Value {
        self.taken += 1;
        self.values.next().unwrap_or_default()
    }

    /// The next, which is text.
    pub(super) fn text(&mut self) -> Result<String, Wrong> {
        match self.any() {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong("a string")),
        }
    }

    /// The next, which is an integer.
    pub(super) fn integer(&mut self) -> Result<i64, Wrong> {
        match self.any() {
            Value::Number(number) => number.as_i64().ok_or_else(|| self.wrong("an integer of at most 64 bits")),
            _ => Err(self.wrong("an integer")),
        }
    }

    /// The next, which is an array.
    pub(super) fn array(&mut self) -> Result<Vec<Value>, Wrong> {
        match self.any() {
            Value::Array(items) => Ok(items),
            _ => Err(self.wrong("an array")),
        }
    }

    /// The next, which is an object.
    pub(super) fn object(&mut self) -> Result<Object, Wrong> {
        match self.any() {
            Value::Object(members) => Ok(members),
            _ => Err(self.wrong("an object")),
        }
    }

    fn wrong(&self, wanted: &str) -> Wrong {
        Wrong::kind(self.taken.saturating_sub(1), format!("argument {} must be {wanted}", self.taken))
    }
}

impl Iterator for Arguments {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        self.taken += 1;
        self.values.next()
    }
}
