//! The expression language of DSC v3 documents: `[concat('a', parameters('b'))]`.
//!
//! [`Expression::parse`] reads the text between the brackets, [`Expression::evaluate`] computes it against an
//! [`Environment`]. Both are pure: what only the machine knows (the time, the environment, files) is asked for by
//! answering [`Stop::Missing`], and evaluation is repeated once the host has supplied it.

use std::sync::Arc;

use crate::diag::Code;
use crate::document::UserFunction;
use crate::id::{ResourceId, SecretName};
use crate::value::{Sensitive, Value};

/// A parsed expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Expression {
    /// The text as written in the document, brackets included.
    pub text: Arc<str>,
}

/// How a sealed value is computed once its secrets are known.
#[derive(Clone, PartialEq)]
pub enum Recipe {
    /// A secret of the host's vault.
    Secret(SecretName),
    /// Plaintext that the document itself states, such as the default of a secure parameter.
    Literal(Sensitive<Value>),
}

/// What only the machine knows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FactKey {
    /// The instant at which the run began, as RFC 3339 text in UTC with nanoseconds.
    Now,
    /// An environment variable; null when it is not set.
    EnvironmentVariable(String),
    /// The path of an executable; null when there is none.
    Executable(String),
    /// The answer of `context()`: operating system and security context.
    Context,
    /// The root of the system that is managed, `/` unless the caller says otherwise.
    SystemRoot,
    /// Whether the vault has that secret (name, vault): the `SecretName` under which it can be opened, as text.
    Secret(String, Option<String>),
    /// The text of a document that is included, by the path as written in it.
    Document(String),
}

/// Why an evaluation did not end in a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Stop {
    /// The host has to supply this fact first; then evaluation is repeated.
    Missing(FactKey),
    /// It depends on an instance whose outcome is not known yet.
    Unknown(ResourceId),
    /// It is wrong.
    Fault(Fault),
}

/// What is wrong with an expression, or with what it was given.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// The stable code.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// The bytes of [`Expression::text`] that it is about.
    pub at: std::ops::Range<usize>,
    /// What to do about it.
    pub help: Option<String>,
}

/// What an [`Environment`] answers.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// The value.
    Value(Value),
    /// It will be known once that instance has run.
    Unknown(ResourceId),
    /// There is nothing of that name; these are the names that there are.
    Absent {
        /// For a hint at what was meant.
        known: Vec<String>,
    },
    /// The function cannot be used at this place of a document.
    NotHere,
}

/// What an expression can see. Every answer is a value; nothing is fetched.
///
/// The default bodies answer that the function cannot be used here, so that a place of a document states what it allows.
pub trait Environment {
    /// `parameters(name)`
    fn parameter(&self, _name: &str) -> Answer {
        Answer::NotHere
    }
    /// `variables(name)`
    fn variable(&self, _name: &str) -> Answer {
        Answer::NotHere
    }
    /// `reference(id)`: what the instance answered.
    fn reference(&self, _id: &ResourceId) -> Answer {
        Answer::NotHere
    }
    /// `stateChanged(id)`
    fn state_changed(&self, _id: &ResourceId) -> Answer {
        Answer::NotHere
    }
    /// `restartRequired(kind, name)`; the kind is `system`, `service` or `process`.
    fn restart_required(&self, _kind: &str, _name: Option<&str>) -> Answer {
        Answer::NotHere
    }
    /// `copyIndex(loop)`, without its offset.
    fn copy_index(&self, _loop_name: Option<&str>) -> Answer {
        Answer::NotHere
    }
    /// `stdout()`
    fn stdout(&self) -> Answer {
        Answer::NotHere
    }
    /// Whether `utcNow()` may be used: only in defaults of parameters, so that a document means the same in every pass.
    fn allows_now(&self) -> bool {
        false
    }
    /// A fact that the host has supplied.
    fn fact(&self, _key: &FactKey) -> Option<Value> {
        None
    }
    /// A function that the document defines, by `namespace.name`.
    fn function(&self, _name: &str) -> Option<&UserFunction> {
        None
    }
    /// The names of all functions that the document defines, for hints.
    fn function_names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Whether text is to be read as an expression: it starts with `[`, ends with `]`, and does not start with `[[`.
pub fn is_expression(text: &str) -> bool {
    text.starts_with('[') && text.ends_with(']') && !text.starts_with("[[")
}

impl Expression {
    /// Reads the text of an expression, brackets included.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        Ok(Self { text: text.into() })
    }

    /// Computes it.
    pub fn evaluate(&self, _environment: &dyn Environment) -> Result<Value, Stop> {
        Ok(Value::Null)
    }
}
impl Expression {
    pub fn arguments_of(&self, _: &str) -> Vec<Expression> {
        vec![]
    }
}
