//! Opening sealed values: the computations that waited for their secrets.
//!
//! A function that is given a sealed value is not computed but remembered, with its arguments, as a [`Recipe`]. The host
//! [`open`]s a value at the last moment; the same functions are computed then.
//!
//! Invariant: where there is a result for the plaintext, opening what was computed from the sealed values gives the same.
//! Where there is none, opening fails as well, unless the part that fails turns out not to be needed.

use serde_json::Value as Json;

use super::builtin::{Builtin, Lazy, Run, ValueKind};
use super::builtins::find;
use super::codes;
use super::evaluate::{Evaluator, MAX_NESTING, access, fits, shallow};
use super::syntax::ExpressionForm;
use super::{Environment, Expression, Named, Stop, Template, UserFunction, is_expression};
use crate::budget::Budget;
use crate::id::SecretName;
use crate::text::{Span, Spanned};
use crate::value::{Closure, Function, Key, Recipe, SealedStep, Value};

/// Why a sealed value could not be opened.
///
/// Guarantees: it contains no plaintext, whatever the functions found wrong with it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnsealError {
    /// The vault did not give a secret.
    #[error("the secret '{}' cannot be opened: {reason}", name.0)]
    Unavailable {
        /// Which one.
        name: SecretName,
        /// Why, without any plaintext.
        reason: String,
    },
    /// The secrets do not suit a function that is computed from them.
    #[error("'{function}' has no result for what the secrets hold; it is not shown, because it is secret")]
    Refused {
        /// The function, or what else was computed.
        function: &'static str,
    },
    /// The value was sealed by a version that had more functions.
    #[error("'{function}' is not a function of this version")]
    UnknownFunction {
        /// Its name.
        function: String,
    },
    /// The result would be too large.
    #[error("what is computed from the secrets grows too large")]
    TooLarge,
}

/// The plaintext of a value.
///
/// Guarantees: what is not sealed is returned as it is; the result holds no sealed part. Errors contain no plaintext.
/// Caveats: the result is plaintext; keep it in a `Sensitive` or a `Plain`.
///
/// # Examples
/// ```
/// use stead_core::expr::open;
/// use stead_core::id::SecretName;
/// use stead_core::value::{SealedStep, Value};
///
/// // The core computes with a secret that it cannot see: the result is sealed as well.
/// let password = Value::secret(SecretName("vault-1".into()));
/// let arguments = vec![Value::from("user:"), password];
/// let credentials = Value::deferred(SealedStep::Apply { function: "concat".into(), arguments });
/// assert!(credentials.has_sealed());
/// // Only a host that has the plaintext can open it.
/// let opened = open(&credentials, &|_: &SecretName| Ok(Value::from("hunter2")))?;
/// assert_eq!(opened, Value::from("user:hunter2"));
/// # Ok::<(), stead_core::expr::UnsealError>(())
/// ```
pub fn open(value: &Value, secret: &dyn Fn(&SecretName) -> Result<Value, UnsealError>) -> Result<Value, UnsealError> {
    Opener { secret, budget: Budget::new(Budget::EVALUATION) }.value(value)
}

struct Opener<'o> {
    secret: &'o dyn Fn(&SecretName) -> Result<Value, UnsealError>,
    budget: Budget,
}

fn refused(function: &'static str) -> UnsealError {
    UnsealError::Refused { function }
}

impl Opener<'_> {
    fn value(&mut self, value: &Value) -> Result<Value, UnsealError> {
        self.budget.work(shallow(value)).map_err(|_| UnsealError::TooLarge)?;
        Ok(match value {
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?),
            Value::Object(members) => {
                let opened = members.iter().map(|(key, value)| Ok((key.clone(), self.value(value)?)));
                Value::Object(opened.collect::<Result<_, _>>()?)
            }
            Value::Sealed(sealed) => match sealed.recipe() {
                Recipe::Secret(name) => (self.secret)(name)?,
                Recipe::Computed(computed) => self.step(computed.step())?,
            },
            other => other.clone(),
        })
    }

    fn step(&mut self, step: &SealedStep) -> Result<Value, UnsealError> {
        match step {
            SealedStep::Apply { function, arguments } => {
                let unknown = || UnsealError::UnknownFunction { function: function.to_string() };
                let builtin = find(function).ok_or_else(unknown)?;
                match builtin.run {
                    Run::Lazily(lazy) => self.lazy(lazy, builtin, arguments),
                    _ => self.strict(builtin, arguments),
                }
            }
            SealedStep::Access { of, key } => {
                let of = self.value(of)?;
                let key = match key {
                    Key::Index(index) => &Key::Index(self.value(index)?),
                    other => other,
                };
                access(of, key).map_err(|_| refused("member access"))
            }
            SealedStep::Keep(items) => {
                let mut kept = Vec::new();
                for (item, verdict) in items {
                    if self.truth(verdict, "filter")? {
                        kept.push(self.value(item)?);
                    }
                }
                Ok(Value::Array(kept))
            }
            SealedStep::Each { array, closure } => self.each(array, closure),
            SealedStep::Typed { value, data_type } => {
                let value = self.value(value)?;
                if fits(*data_type, &value) { Ok(value) } else { Err(refused("user function")) }
            }
            SealedStep::Failed => Err(refused("expression")),
        }
    }

    fn strict(&mut self, builtin: &'static Builtin, arguments: &[Value]) -> Result<Value, UnsealError> {
        let opened: Vec<Value> = arguments.iter().map(|argument| self.value(argument)).collect::<Result<_, _>>()?;
        let mut positions = opened.iter().enumerate();
        positions
            .try_for_each(|(position, value)| builtin.check(position, value))
            .map_err(|_| refused(builtin.name))?;
        let result = builtin.compute(opened).and_then(Result::ok).ok_or_else(|| refused(builtin.name))?;
        self.budget.work(shallow(&result)).map_err(|_| UnsealError::TooLarge)?;
        Ok(result)
    }

    fn truth(&mut self, value: &Value, function: &'static str) -> Result<bool, UnsealError> {
        self.value(value)?.as_bool().ok_or_else(|| refused(function))
    }

    fn lazy(&mut self, lazy: Lazy, builtin: &'static Builtin, arguments: &[Value]) -> Result<Value, UnsealError> {
        match (lazy, arguments) {
            (Lazy::If, [condition, then, otherwise]) => {
                let chosen = if self.truth(condition, builtin.name)? { then } else { otherwise };
                self.value(chosen)
            }
            (Lazy::And | Lazy::Or, _) => {
                let decisive = lazy == Lazy::Or;
                for argument in arguments {
                    if self.truth(argument, builtin.name)? == decisive {
                        return Ok(decisive.into());
                    }
                }
                Ok((!decisive).into())
            }
            (Lazy::Coalesce, _) => {
                for argument in arguments {
                    let value = self.value(argument)?;
                    if ValueKind::of(&value) != Some(ValueKind::Null) {
                        return Ok(value);
                    }
                }
                Ok(Value::Null)
            }
            _ => Err(refused(builtin.name)),
        }
    }

    fn each(&mut self, array: &Value, closure: &Closure) -> Result<Value, UnsealError> {
        let expression = Expression::parse(&closure.source).map_err(|fault| unreadable(&fault, closure))?;
        let function =
            if let ExpressionForm::Call { builtin, .. } = &expression.root.kind { builtin.name } else { "expression" };
        let array @ Value::Array(_) = self.value(array)? else { return Err(refused(function)) };
        let scope = ClosureScope::of(closure).map_err(|fault| unreadable(&fault, closure))?;
        let captured = std::iter::once(array).chain(closure.captured.iter().cloned()).collect();
        let mut evaluator = Evaluator::with_captured(
            &scope,
            std::mem::replace(&mut self.budget, Budget::new(Budget::EVALUATION)),
            captured,
        );
        let computed = evaluator.value(&expression.root);
        self.budget = evaluator.into_budget();
        let computed = computed.map_err(|stop| match stop {
            Stop::Fault(fault) if fault.code == &codes::LIMIT => UnsealError::TooLarge,
            _ => refused(function),
        })?;
        // What the lambda captured may be sealed as well.
        if computed.depth() > 2 * MAX_NESTING {
            return Err(UnsealError::TooLarge);
        }
        self.value(&computed)
    }
}

/// The text of a closure was checked when it was written: only another version can fail to read it.
fn unreadable(fault: &super::Fault, closure: &Closure) -> UnsealError {
    let function = closure.source.get(fault.at.clone()).unwrap_or_default();
    UnsealError::UnknownFunction { function: function.split('(').next().unwrap_or_default().to_owned() }
}

/// The environment of a closure: the functions that it carries along.
struct ClosureScope {
    functions: Vec<UserFunction>,
}

impl ClosureScope {
    fn of(closure: &Closure) -> Result<Self, super::Fault> {
        Ok(Self { functions: closure.functions.iter().map(user_function).collect::<Result<_, _>>()? })
    }
}

impl Environment for ClosureScope {
    fn function(&self, name: &str) -> Option<&UserFunction> {
        self.functions.iter().find(|each| each.name.value == name)
    }

    /// Returns the plaintext itself: a value that is being opened is plaintext already.
    fn seal(&self, plaintext: Value) -> Option<Value> {
        Some(plaintext)
    }
}

fn user_function(function: &Function) -> Result<UserFunction, super::Fault> {
    let named = |name: &str| Spanned::new(name.to_owned(), Span::default());
    let parameters = function.parameters.iter();
    Ok(UserFunction {
        is_readable: true,
        name: named(&function.name),
        parameters: parameters.map(|(name, data_type)| Named { name: named(name), value: *data_type }).collect(),
        output_type: Spanned::new(function.returns, Span::default()),
        output: template(&function.output)?,
    })
}

/// Parses the text of a document into the value that it would state.
fn template(json: &Json) -> Result<Template, super::Fault> {
    use crate::text::{self, Entry};
    let kind = match json {
        Json::Null => text::Kind::Null,
        Json::Bool(truth) => text::Kind::Bool(*truth),
        Json::Number(number) => text::Kind::Number(number.clone()),
        Json::String(text) if is_expression(text) => text::Kind::Compiled(Box::new(Expression::parse(text)?)),
        Json::String(text) => {
            text::Kind::String(text.strip_prefix("[[").map_or_else(|| text.clone(), |rest| format!("[{rest}")).into())
        }
        Json::Array(items) => text::Kind::Array(items.iter().map(template).collect::<Result<_, _>>()?),
        Json::Object(members) => {
            let entry = |(key, value): (&String, &Json)| {
                Ok(Entry { key: key.as_str().into(), key_span: Span::default(), value: template(value)? })
            };
            text::Kind::Object(members.iter().map(entry).collect::<Result<_, _>>()?)
        }
    };
    Ok(Template { span: Span::default(), kind })
}
