//! Sealed values: computations that wait for their secrets.
//!
//! A function that is given a sealed value is not computed but remembered, with its arguments, as a [`Recipe`]. The host
//! [`open`]s a value at the last moment; the same functions are computed then.
//!
//! Invariant: where there is a result for the plaintext, opening what was computed from the sealed values gives the same.
//! Where there is none, opening fails as well, unless the part that fails turns out not to be needed.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::builtin::{Builtin, Kind, Lazy, Run};
use super::codes;
use super::evaluate::{Budget, Evaluator, Key, MAX_NESTING, access, fits};
use super::syntax::Lambda;
use super::{Environment, Stop};
use crate::document::DataType;
use crate::id::SecretName;
use crate::value::{Sealed, Sensitive, Value};

/// How a sealed value is computed once its secrets are known.
#[derive(Clone, PartialEq)]
pub enum Recipe {
    /// A secret of the host's vault.
    Secret(SecretName),
    /// Plaintext that the document itself states, such as the default of a secure parameter.
    Literal(Sensitive<Value>),
    /// What a function makes of such values.
    Computed(Computed),
}

/// A function and the values that it waits for.
#[derive(Clone)]
pub struct Computed(Arc<Computation>);

impl PartialEq for Computed {
    fn eq(&self, other: &Self) -> bool {
        // Recipes share their parts, so that comparing the shared ones again could take exponential time.
        Arc::ptr_eq(&self.0, &other.0) || (self.0.depth == other.0.depth && self.0.step == other.0.step)
    }
}

#[derive(PartialEq)]
struct Computation {
    depth: usize,
    step: Deferred,
}

/// One deferred step.
#[derive(PartialEq)]
pub(super) enum Deferred {
    /// A function of the language, strict or lazy.
    Apply { builtin: &'static Builtin, arguments: Vec<Value> },
    /// A member or an element.
    Access { of: Value, key: Key },
    /// The values whose verdict is true.
    Keep(Vec<(Value, Value)>),
    /// `map` or `filter` over an array that is sealed itself.
    Each { builtin: &'static Builtin, array: Value, lambda: Arc<Lambda> },
    /// A value that has to be of a type.
    Typed { value: Value, data_type: DataType },
    /// What is wrong already, should it be needed.
    Failed,
}

impl Deferred {
    fn values(&self) -> Vec<&Value> {
        match self {
            Self::Apply { arguments, .. } => arguments.iter().collect(),
            Self::Access { of, key: Key::Index(index) } => vec![of, index],
            Self::Access { of, .. } => vec![of],
            Self::Keep(items) => items.iter().flat_map(|(item, verdict)| [item, verdict]).collect(),
            Self::Each { array, lambda, .. } => {
                let mut values = vec![array];
                lambda.body.walk(&mut |node| {
                    if let super::syntax::Form::Constant(value) = &node.kind {
                        values.push(value);
                    }
                });
                values
            }
            Self::Typed { value, .. } => vec![value],
            Self::Failed => Vec::new(),
        }
    }
}

/// Seals a step.
pub(super) fn defer(step: Deferred) -> Value {
    let depth = 1 + step.values().into_iter().map(depth).max().unwrap_or(0);
    Value::Sealed(Sealed::new(Recipe::Computed(Computed(Arc::new(Computation { depth, step })))))
}

/// How deep a value is nested, sealed computations included.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Sealed(sealed) => match sealed.recipe() {
            Recipe::Computed(computed) => computed.0.depth,
            _ => 1,
        },
        _ => 1,
    }
}

/// Why a sealed value could not be opened.
///
/// Guarantees: it contains no plaintext, whatever the functions found wrong with it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// The vault did not give a secret.
    #[error("the secret '{}' cannot be opened: {reason}", name.0)]
    Unavailable {
        /// Which one.
        name: SecretName,
        /// Why, without any plaintext.
        reason: String,
    },
    /// What the secrets hold does not suit a function that is computed from them.
    #[error("'{function}' has no result for what the secrets hold; it is not shown, because it is secret")]
    Refused {
        /// The function, or what else was computed.
        function: &'static str,
    },
    /// The result would be too large.
    #[error("what is computed from the secrets grows too large")]
    TooLarge,
}

/// The plaintext of a value.
///
/// Guarantees: what is not sealed is returned as it is; the result holds no sealed part. Errors contain no plaintext.
/// Caveats: the result is plaintext; keep it in a `Sensitive` or a `Plain`.
pub fn open(value: &Value, secret: &dyn Fn(&SecretName) -> Result<Value, OpenError>) -> Result<Value, OpenError> {
    Opener { secret, budget: Budget::default() }.value(value)
}

/// The secrets that opening a value may ask for.
pub fn secrets(value: &Value) -> BTreeSet<SecretName> {
    let name = |recipe: &Recipe| if let Recipe::Secret(name) = recipe { Some(name.clone()) } else { None };
    ingredients(value).into_iter().filter_map(name).collect()
}

/// Every secret and every literal that a value holds or is computed from; no recipe among them is a computed one.
pub fn ingredients(value: &Value) -> Vec<&Recipe> {
    let mut found = Vec::new();
    collect(value, &mut found, &mut BTreeSet::new());
    found
}

fn collect<'v>(value: &'v Value, found: &mut Vec<&'v Recipe>, seen: &mut BTreeSet<*const Computation>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found, seen)),
        Value::Object(members) => members.values().for_each(|member| collect(member, found, seen)),
        Value::Sealed(sealed) => match sealed.recipe() {
            Recipe::Computed(computed) if seen.insert(Arc::as_ptr(&computed.0)) => {
                computed.0.step.values().into_iter().for_each(|part| collect(part, found, seen));
            }
            Recipe::Computed(_) => {}
            recipe => found.push(recipe),
        },
        _ => {}
    }
}

struct Opener<'o> {
    secret: &'o dyn Fn(&SecretName) -> Result<Value, OpenError>,
    budget: Budget,
}

/// Everything that a captured lambda needs has been put into it.
struct Nothing;

impl Environment for Nothing {}

fn refused(function: &'static str) -> OpenError {
    OpenError::Refused { function }
}

impl Opener<'_> {
    fn value(&mut self, value: &Value) -> Result<Value, OpenError> {
        self.budget.spend_shallow(value).map_err(|_| OpenError::TooLarge)?;
        Ok(match value {
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?),
            Value::Object(members) => {
                let opened = members.iter().map(|(key, value)| Ok((key.clone(), self.value(value)?)));
                Value::Object(opened.collect::<Result<_, _>>()?)
            }
            Value::Sealed(sealed) => match sealed.recipe() {
                Recipe::Secret(name) => (self.secret)(name)?,
                Recipe::Literal(plaintext) => self.value(plaintext.expose())?,
                Recipe::Computed(computed) => self.step(&computed.0.step)?,
            },
            other => other.clone(),
        })
    }

    fn step(&mut self, step: &Deferred) -> Result<Value, OpenError> {
        match step {
            Deferred::Apply { builtin, arguments } => match builtin.run {
                Run::Lazy(lazy) => self.lazy(lazy, builtin, arguments),
                _ => self.strict(builtin, arguments),
            },
            Deferred::Access { of, key } => {
                let of = self.value(of)?;
                let key = match key {
                    Key::Index(index) => &Key::Index(self.value(index)?),
                    other => other,
                };
                access(of, key).map_err(|_| refused("member access"))
            }
            Deferred::Keep(items) => {
                let mut kept = Vec::new();
                for (item, verdict) in items {
                    if self.truth(verdict, "filter")? {
                        kept.push(self.value(item)?);
                    }
                }
                Ok(Value::Array(kept))
            }
            Deferred::Each { builtin, array, lambda } => self.each(builtin, array, lambda),
            Deferred::Typed { value, data_type } => {
                let value = self.value(value)?;
                if fits(*data_type, &value) { Ok(value) } else { Err(refused("user function")) }
            }
            Deferred::Failed => Err(refused("expression")),
        }
    }

    fn strict(&mut self, builtin: &'static Builtin, arguments: &[Value]) -> Result<Value, OpenError> {
        let opened: Vec<Value> = arguments.iter().map(|argument| self.value(argument)).collect::<Result<_, _>>()?;
        let mut positions = opened.iter().enumerate();
        positions
            .try_for_each(|(position, value)| builtin.check(position, value))
            .map_err(|_| refused(builtin.name))?;
        let result = builtin.compute(opened).and_then(Result::ok).ok_or_else(|| refused(builtin.name))?;
        self.budget.spend_shallow(&result).map_err(|_| OpenError::TooLarge)?;
        Ok(result)
    }

    fn truth(&mut self, value: &Value, function: &'static str) -> Result<bool, OpenError> {
        self.value(value)?.as_bool().ok_or_else(|| refused(function))
    }

    fn lazy(&mut self, lazy: Lazy, builtin: &'static Builtin, arguments: &[Value]) -> Result<Value, OpenError> {
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
                    if Kind::of(&value) != Some(Kind::Null) {
                        return Ok(value);
                    }
                }
                Ok(Value::Null)
            }
            _ => Err(refused(builtin.name)),
        }
    }

    fn each(&mut self, builtin: &'static Builtin, array: &Value, lambda: &Lambda) -> Result<Value, OpenError> {
        let Value::Array(items) = self.value(array)? else { return Err(refused(builtin.name)) };
        let budget = std::mem::take(&mut self.budget);
        let mut evaluator = Evaluator::new(&Nothing, budget);
        let computed = evaluator.each(builtin, lambda, items);
        self.budget = evaluator.into_budget();
        let computed = computed.map_err(|stop| match stop {
            Stop::Fault(fault) if fault.code == &codes::LIMIT => OpenError::TooLarge,
            _ => refused(builtin.name),
        })?;
        // What the lambda captured may be sealed as well.
        if depth(&computed) > 2 * MAX_NESTING {
            return Err(OpenError::TooLarge);
        }
        self.value(&computed)
    }
}
