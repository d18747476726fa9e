//! The expression language of DSC v3 documents: `[concat('a', parameters('b'))]`.
//!
//! [`Expression::parse`] reads the text between the brackets, [`Expression::evaluate`] computes it against an
//! [`Environment`]. Both are pure: what only the machine knows (the time, the environment, files) is asked for by
//! answering [`Stop::Missing`], and evaluation is repeated once the host has supplied it.

mod ask;
mod builtin;
mod builtins;
mod capture;
mod check;
mod conditions;
pub use crate::diag::codes::expr as codes;
mod evaluate;
mod facts;
mod placed;
mod sealed;
mod syntax;
mod user;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use builtin::{Builtin, ValueKind};
pub use builtins::{NAMESPACE, functions};
pub(crate) use check::kinds_of;
pub use conditions::condition_of_others;
pub(crate) use evaluate::fits;
pub use facts::{DISTRIBUTIONS, FAMILIES, FactPath, fact_of_others, fact_path};
pub use placed::{Placed, expressions};
pub use sealed::{UnsealError, open};
pub(crate) use syntax::filtered;
pub use user::{Named, UserFunction};

use crate::budget::Budget;
use crate::bundle::path::within;
use crate::diag::{Code, Diagnostic, Meant};
use crate::id::ResourceId;
use crate::text::{self, Leaf, Span};
use crate::value::Value;
use evaluate::{Evaluator, exceeded};
use syntax::{ExpressionForm, IsItem, Node};

/// A parsed expression: what is wrong with it whatever it is given has been found already.
#[derive(Clone, PartialEq)]
pub struct Expression {
    /// The text as written in the document, brackets included.
    pub text: Arc<str>,
    root: Arc<Node>,
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

/// A value of a document in which the strings of the form `[…]` are expressions.
pub type Template = text::Node<Box<Expression>>;

impl Leaf for Box<Expression> {
    fn written(&self) -> &str {
        &self.text
    }
}

/// A fact that only the machine knows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FactKey {
    /// The instant at which the run began, as RFC 3339 text in UTC with nanoseconds.
    Now,
    /// An environment variable; null when it is not set.
    EnvironmentVariable(String),
    /// The path of an executable; null when there is none.
    Executable(String),
    /// The answer of `context()`: operating system and security context.
    Context,
    /// The answer of `facts()`: an object of all that is known about the machine.
    Machine,
    /// The root of the system that is managed, `/` unless the caller says otherwise.
    SystemRoot,
    /// The existence of that secret (name, vault): the `SecretName` under which it can be opened, as text.
    Secret(String, Option<String>),
    /// The text of a file, by its path from the folder of the outermost document: one that is included or read.
    Document(String),
}

impl FactKey {
    /// The text of the file that a document in `folder` names with a path.
    pub fn document(folder: &str, path: &str) -> Self {
        Self::Document(within(folder, path))
    }
}

/// The fact that a path of names with dots between them leads to.
///
/// Errors: the first name that is not there, and the paths that are where it was looked for.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::expr::{UnknownFact, fact_at};
/// use stead_core::value::Value;
///
/// let facts = Value::from(json!({ "os": { "name": "debian", "release": "13" } }));
/// assert_eq!(fact_at(&facts, "os.name"), Ok(&"debian".into()));
/// let known = vec!["os.name".to_owned(), "os.release".to_owned()];
/// assert_eq!(fact_at(&facts, "os.family"), Err(UnknownFact { known }));
/// ```
pub fn fact_at<'f>(facts: &'f Value, path: &str) -> Result<&'f Value, UnknownFact> {
    let (mut found, mut above) = (facts, String::new());
    for name in path.split('.') {
        found = found.get(name).ok_or_else(|| {
            let members = found.as_object().into_iter().flat_map(crate::value::Object::keys);
            UnknownFact { known: members.map(|member| format!("{above}{member}")).collect() }
        })?;
        above.extend([name, "."]);
    }
    Ok(found)
}

/// There is no fact at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownFact {
    /// The paths that are there, as far as the path leads.
    pub known: Vec<String>,
}

/// Why an evaluation did not end in a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Stop {
    /// The host must supply this fact first; then evaluation is repeated.
    Missing(FactKey),
    /// It depends on an instance whose outcome is not known yet.
    Unknown(ResourceId),
    /// It depends on a value that is not known yet, of one of these kinds.
    Open(&'static [ValueKind]),
    /// It is wrong.
    Fault(Fault),
}

/// A mistake in an expression, or in the values that it was given.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// The stable code.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// The bytes of [`Expression::text`] that it is about.
    pub at: std::ops::Range<usize>,
    /// The advice about it.
    pub help: Option<Help>,
}

/// The advice about a fault.
#[derive(Clone, PartialEq, Debug)]
pub enum Help {
    /// In words.
    Advice(String),
    /// This is missing at the place.
    Missing(&'static str),
    /// A word is the item of a loop, which is called like a function.
    Item {
        /// The word that is there, with members behind it.
        wrong: String,
        /// The call, with the same members.
        called: String,
    },
    /// Other words were probably meant.
    Meant {
        /// The word that is there.
        wrong: String,
        /// The words that were meant.
        meant: Meant,
    },
}

impl From<&str> for Help {
    fn from(advice: &str) -> Self {
        Self::Advice(advice.to_owned())
    }
}

impl From<String> for Help {
    fn from(advice: String) -> Self {
        Self::Advice(advice)
    }
}

impl fmt::Display for Help {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Advice(advice) => f.write_str(advice),
            Self::Missing(text) => write!(f, "add the missing '{text}'"),
            Self::Item { called, .. } => write!(f, "the item of a loop is called like a function: write {called}"),
            Self::Meant { meant, .. } => meant.fmt(f),
        }
    }
}

impl Fault {
    /// The fault of text without a call, such as `[1.0.0,2.0.0)`: it was never meant as an expression. What stands between two
    /// words is an operator.
    fn of_plain_text(self, text: &str) -> Self {
        let is_operator = || {
            let sides = text.get(1..self.at.start).zip(text.get(self.at.end..));
            let is_word =
                |side: &str| side.trim().chars().all(|c| c.is_alphanumeric() || c == '_') && !side.trim().is_empty();
            sides.is_some_and(|(before, behind)| is_word(before) && is_word(behind.trim_end_matches(']')))
        };
        let is_item = matches!(self.help, Some(Help::Item { .. }));
        let is_of_others = || text.get(self.at.clone()).is_some_and(syntax::is_of_others);
        let is_expression = is_item
            || is_of_others()
            || text.contains(['(', '\'', '"', '$', '?'])
            || self.code != &codes::UNEXPECTED
            || is_operator();
        if is_expression {
            return self;
        }
        let line = text.lines().next().unwrap_or_default();
        let literal = format!("for literal text write '[{}'", text::shown(line));
        let is_number = line.trim_matches(['[', ']']).parse::<f64>().is_ok();
        let number = if is_number { "; a number with a fraction is json('1.5')" } else { "" };
        Self {
            help: Some(Help::Advice(format!("text that begins with '[' is an expression; {literal}{number}"))),
            ..self
        }
    }

    /// The finding, at a place at which `written` stands.
    pub fn finding(&self, span: Span, written: Option<&str>) -> Diagnostic {
        let finding = Diagnostic::error(self.code, span, self.message.clone());
        match &self.help {
            Some(Help::Advice(advice)) => finding.with_help(advice.clone()),
            Some(help @ Help::Missing(text)) => {
                let place = Span::new(span.source, span.start, span.start);
                finding.with_help(help.to_string()).with_fix(place, *text)
            }
            Some(help @ Help::Item { wrong, called }) => {
                let finding = finding.with_help(help.to_string());
                if written == Some(wrong.as_str()) { finding.with_fix(span, called.clone()) } else { finding }
            }
            Some(Help::Meant { wrong, meant }) => finding.with_meant(wrong, meant, written),
            None => finding,
        }
    }
}

/// An answer of an [`Environment`].
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// The value.
    Value(Value),
    /// It will be known once that instance has run.
    Unknown(ResourceId),
    /// It is not known yet, but will be of one of these kinds.
    Open(&'static [ValueKind]),
    /// There is nothing of that name; these are the names that there are.
    Absent {
        /// For a hint at what was meant.
        known: Vec<String>,
    },
    /// The function cannot be used at this place of a document.
    NotHere,
}

/// The names and facts that an expression can see. Every answer is a value; nothing is fetched.
///
/// The default bodies answer that the function cannot be used here, so that a place of a document states what it allows.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::expr::{Answer, Environment, Expression, FactKey, Stop};
/// use stead_core::value::Value;
///
/// /// Has one parameter and knows no facts.
/// struct OfACall;
///
/// impl Environment for OfACall {
///     fn parameter(&self, name: &str) -> Answer {
///         match name {
///             "port" => Answer::Value(json!(80).into()),
///             _ => Answer::Absent { known: vec!["port".to_owned()] },
///         }
///     }
/// }
///
/// let evaluated = |text: &str| Expression::parse(text).map_err(Stop::Fault)?.evaluate(&OfACall);
/// assert_eq!(evaluated("[concat('listen ', string(parameters('port')))]")?, Value::from("listen 80"));
/// // Evaluating fetches nothing: it names what the host must supply.
/// assert_eq!(evaluated("[envvar('HOME')]"), Err(Stop::Missing(FactKey::EnvironmentVariable("HOME".to_owned()))));
/// // What is wrong is placed within the text, and says what was meant.
/// let Err(Stop::Fault(fault)) = evaluated("[parameters('prot')]") else { return Err(Stop::Missing(FactKey::Now)) };
/// assert!(fault.message.contains("prot"));
/// # Ok::<(), Stop>(())
/// ```
pub trait Environment {
    /// `parameters(name)`
    fn parameter(&self, _name: &str) -> Answer {
        Answer::NotHere
    }
    /// `variables(name)`
    fn variable(&self, _name: &str) -> Answer {
        Answer::NotHere
    }
    /// Returns whether a variable of that name is declared, if only behind the place.
    fn is_declared(&self, _variable: &str) -> bool {
        false
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
    /// The item of a loop around, by what the loop calls it.
    fn item(&self, _called: &str) -> Answer {
        Answer::NotHere
    }
    /// `stdout()`
    fn stdout(&self) -> Answer {
        Answer::NotHere
    }
    /// Returns whether `utcNow()` may be used: only in defaults of parameters, so that a document means the same in
    /// every pass.
    fn allows_now(&self) -> bool {
        false
    }
    /// A fact that the host has supplied.
    fn fact(&self, _key: &FactKey) -> Option<Value> {
        None
    }
    /// The folder of the document that the expression stands in, from that of the outermost one, where it is empty.
    fn folder(&self) -> Arc<str> {
        Arc::default()
    }
    /// Returns the value that stands from here on for plaintext that the document declares to be secret:
    /// [`Value::secret`] of where the
    /// host keeps it. `None` where no secrets can be kept; then it is a fault to declare any.
    fn seal(&self, _plaintext: Value) -> Option<Value> {
        None
    }
    /// A function that the document defines, by `namespace.name`.
    fn function(&self, _name: &str) -> Option<&UserFunction> {
        None
    }
    /// Returns the budget that all evaluations of the document share; each has a limit of its own besides.
    fn budget(&self) -> Option<&Budget> {
        None
    }
    /// The names of all functions that the document defines, for hints.
    fn function_names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Returns whether text is to be read as an expression: it starts with `[`, but not with `[[`.
///
/// How it ends does not matter: `[concat('a', 'b'` and `[a] b` are mistakes, not text.
///
/// # Examples
/// ```
/// use stead_core::expr::is_expression;
///
/// assert!(is_expression("[parameters('port')]"));
/// assert!(!is_expression("[[Unit]"));
/// assert!(!is_expression("see [1]"));
/// ```
pub fn is_expression(text: &str) -> bool {
    text.starts_with('[') && !text.starts_with("[[")
}

impl Expression {
    /// Reads the text of an expression, brackets included.
    ///
    /// Guarantees: the names and the number of arguments of the functions of the language are right, and no part is nested
    /// so deeply that walking it could exhaust the stack.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        Self::parse_in_loops(text, &|_| false)
    }

    /// Reads the text of an expression that stands in loops, as [`Self::parse`] does: a word for which `is_item` holds is called
    /// for the item of one.
    pub fn parse_in_loops(text: &str, is_item: IsItem<'_>) -> Result<Self, Fault> {
        let root = syntax::parse(text, is_item).map_err(|fault| fault.of_plain_text(text))?;
        Ok(Self { text: text.into(), root: Arc::new(root) })
    }

    /// The items of loops that it reads, with the bytes of [`Expression::text`] that each takes, in the order written.
    pub fn items(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        let mut found: Vec<(&str, Range<usize>)> = Vec::new();
        self.root.walk(&mut |node| {
            if let ExpressionForm::Item(called) = &node.kind {
                found.push((called, node.at.clone()));
            }
        });
        found.into_iter()
    }

    /// Computes it.
    ///
    /// Guarantees: it ends, in time and memory that are bounded whatever the expression is. Nothing is computed that is
    /// not needed: of `if`, `and`, `or` and `coalesce` only the arguments that decide.
    pub fn evaluate(&self, environment: &dyn Environment) -> Result<Value, Stop> {
        self.whole().evaluate(environment)
    }

    /// The expression as a part of itself.
    pub fn whole(&self) -> Subexpression<'_> {
        Subexpression { node: &self.root }
    }

    /// Every call of a function of the language, in the order written: also those that will not be computed, and those in
    /// lambdas.
    pub fn calls(&self, function: &str) -> impl Iterator<Item = FunctionCall<'_>> {
        let mut found = Vec::new();
        self.root.walk(&mut |node| {
            if let ExpressionForm::Call { builtin, arguments } = &node.kind
                && builtin.name == function
            {
                found.push(FunctionCall { node, arguments });
            }
        });
        found.into_iter()
    }

    /// Every call of any function of the language with that function, in the order written.
    pub fn all_calls(&self) -> impl Iterator<Item = (&'static Builtin, FunctionCall<'_>)> {
        let mut found = Vec::new();
        self.root.walk(&mut |node| {
            if let ExpressionForm::Call { builtin, arguments } = &node.kind {
                found.push((*builtin, FunctionCall { node, arguments }));
            }
        });
        found.into_iter()
    }

    /// Every access to members of what a function of the language returns that has an argument, in the order written.
    pub fn accesses(&self, function: &str) -> impl Iterator<Item = Access<'_>> {
        let mut found = Vec::new();
        self.root.walk(&mut |node| {
            if let ExpressionForm::Access { of, path } = &node.kind
                && let ExpressionForm::Call { builtin, arguments } = &of.kind
                && builtin.name == function
                && let Some(node) = arguments.first()
            {
                let members =
                    path.iter().map_while(|accessor| Some((accessor.member()?, accessor.at.clone()))).collect();
                found.push(Access { argument: Subexpression { node }, members });
            }
        });
        found.into_iter()
    }

    /// Every call of a function of the language with the bytes of [`Expression::text`] that it takes, in the order written.
    pub fn builtins(&self) -> impl Iterator<Item = (&'static Builtin, Range<usize>)> {
        let mut found = Vec::new();
        self.root.walk(&mut |node| {
            if let ExpressionForm::Call { builtin, .. } = &node.kind {
                found.push((*builtin, node.at.clone()));
            }
        });
        found.into_iter()
    }

    /// The names of the functions of the document that it calls, in the order written.
    pub fn user_functions(&self) -> impl Iterator<Item = &str> {
        let mut found: Vec<&str> = Vec::new();
        self.root.walk(&mut |node| {
            if let ExpressionForm::UserCall { name, .. } = &node.kind {
                found.push(name);
            }
        });
        found.into_iter()
    }
}

/// A call somewhere in an expression.
#[derive(Clone, Copy)]
pub struct FunctionCall<'x> {
    node: &'x Node,
    arguments: &'x [Node],
}

impl<'x> FunctionCall<'x> {
    /// The bytes of [`Expression::text`] that it takes.
    pub fn at(&self) -> Range<usize> {
        self.node.at.clone()
    }

    /// Its arguments.
    pub fn arguments(&self) -> impl ExactSizeIterator<Item = Subexpression<'x>> {
        self.arguments.iter().map(|node| Subexpression { node })
    }
}

/// An access to members of what a function returns.
#[derive(Clone)]
pub struct Access<'x> {
    /// The first argument of the call.
    pub argument: Subexpression<'x>,
    /// The names of the members, each of the one before, as far as they are written; with the bytes of
    /// [`Expression::text`] that they take.
    pub members: Vec<(&'x str, Range<usize>)>,
}

/// A part of an expression, which can be computed by itself.
#[derive(Clone, Copy)]
pub struct Subexpression<'x> {
    node: &'x Node,
}

impl Subexpression<'_> {
    /// The bytes of [`Expression::text`] that it takes.
    pub fn at(&self) -> Range<usize> {
        self.node.at.clone()
    }

    /// The function of the language that it is a call of, with its arguments.
    pub fn call(&self) -> Option<(&'static Builtin, FunctionCall<'_>)> {
        match &self.node.kind {
            ExpressionForm::Call { builtin, arguments } => {
                Some((*builtin, FunctionCall { node: self.node, arguments }))
            }
            _ => None,
        }
    }

    /// The text, if it is written as such.
    pub fn text(&self) -> Option<&str> {
        match &self.node.kind {
            ExpressionForm::Constant(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Computes it. A part of a lambda that reads its parameters is a fault.
    pub fn evaluate(&self, environment: &dyn Environment) -> Result<Value, Stop> {
        let shared = environment.budget();
        let within = |budget: &Budget| budget.check().map_err(|what| exceeded(what, &self.node.at));
        shared.map_or(Ok(()), within)?;
        let mut evaluator = Evaluator::new(environment, Budget::new(Budget::EVALUATION));
        let value = evaluator.value(self.node);
        let spent = evaluator.into_budget().spent();
        if let Some(Err(what)) = shared.map(|budget| budget.spend(spent)) {
            return Err(exceeded(what, &self.node.at));
        }
        value
    }
}
