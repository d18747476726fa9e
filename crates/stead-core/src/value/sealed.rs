//! Sealed values: handles of secrets, and what is computed from them, as data.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{DataType, Object, Value};
use crate::id::SecretName;

/// Keeps secrets outside of the core: plaintext goes in, and only a handle comes back.
///
/// It has no way to read, so that whoever holds it can add secrets and learn none.
pub trait Seal: Send + Sync {
    /// Keeps `plaintext` and returns the handle under which the host can open it.
    ///
    /// Guarantees: equal plaintexts have the same handle, so that sealed values can be compared without opening them.
    /// Assumptions: no part of `plaintext` is sealed.
    fn seal(&self, plaintext: Value) -> SecretName;
}

/// A value that only the host can open.
///
/// Invariant: it holds no secret in the clear. A [`Recipe`] is a handle or a computation over values, and no function of
/// the core turns a handle into what it stands for: [`Seal`] can only be written to. What is in the clear in a computation
/// was written in the clear, such as the first argument of `concat('user:', parameters('password'))`.
#[derive(Clone, PartialEq)]
pub struct Sealed(Recipe);

impl Sealed {
    /// Seals what a recipe will compute.
    pub fn new(recipe: Recipe) -> Self {
        Self(recipe)
    }

    /// Returns how it is computed.
    pub fn recipe(&self) -> &Recipe {
        &self.0
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(sealed)")
    }
}

/// How a sealed value is computed once its secrets are known.
#[derive(Clone, PartialEq)]
pub enum Recipe {
    /// A secret that the host keeps.
    Secret(SecretName),
    /// A value that is computed from such values.
    Computed(Computed),
}

/// A step and the values that it waits for; clones share them.
#[derive(Clone)]
pub struct Computed(Arc<Computation>);

struct Computation {
    depth: usize,
    step: SealedStep,
}

impl Computed {
    /// A step to be computed when the host opens it.
    pub fn new(step: SealedStep) -> Self {
        let depth = 1 + step.values().map(Value::depth).max().unwrap_or(0);
        Self(Arc::new(Computation { depth, step }))
    }

    /// The last step; those before it are the computed parts of its values.
    pub fn step(&self) -> &SealedStep {
        &self.0.step
    }

    /// Returns the number of steps and levels of values to the deepest secret.
    pub fn depth(&self) -> usize {
        self.0.depth
    }

    /// Returns the address that all clones share, and nothing else as long as one of them lives.
    pub(super) fn address(&self) -> *const () {
        Arc::as_ptr(&self.0).cast()
    }
}

impl PartialEq for Computed {
    fn eq(&self, other: &Self) -> bool {
        Comparison::default().computed(self, other)
    }
}

/// Recipes share their parts: comparing a shared part each time it occurs could take exponential time.
#[derive(Default)]
struct Comparison {
    /// Pairs that are equal, or of which the comparison is under way.
    seen: BTreeSet<(*const (), *const ())>,
}

impl Comparison {
    fn computed(&mut self, one: &Computed, other: &Computed) -> bool {
        if one.address() == other.address() || !self.seen.insert((one.address(), other.address())) {
            return true;
        }
        one.depth() == other.depth()
            && one.step().shape() == other.step().shape()
            && one.step().values().zip(other.step().values()).all(|(one, other)| self.values(one, other))
    }

    fn values(&mut self, one: &Value, other: &Value) -> bool {
        match (one, other) {
            (Value::Array(one), Value::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| self.values(one, other))
            }
            (Value::Object(one), Value::Object(other)) => {
                let mut members = one.iter();
                one.len() == other.len()
                    && members.all(|(name, one)| other.get(name).is_some_and(|other| self.values(one, other)))
            }
            (Value::Sealed(Sealed(Recipe::Computed(one))), Value::Sealed(Sealed(Recipe::Computed(other)))) => {
                self.computed(one, other)
            }
            _ => one == other,
        }
    }
}

/// One deferred step over values of type `V`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum SealedStep<V = Value> {
    /// A function of the language, by its name.
    Apply {
        /// The function.
        function: Cow<'static, str>,
        /// The arguments that it is given.
        arguments: Vec<V>,
    },
    /// A member or an element.
    Access {
        /// Of what.
        of: V,
        /// Which one.
        key: Key<V>,
    },
    /// The values whose verdict is true: each value is followed by its verdict.
    Keep(Vec<(V, V)>),
    /// A function over the elements of an array that is sealed as a whole.
    Each {
        /// The array.
        array: V,
        /// The closure that is computed of it.
        closure: Closure<V>,
    },
    /// A value that must have a given type once it is opened.
    Typed {
        /// The value.
        value: V,
        /// The type.
        #[serde(rename = "type")]
        data_type: DataType,
    },
    /// Something that is wrong, should it be needed.
    Failed,
}

/// The selector of a part of a value.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Key<V = Value> {
    /// `.name`
    Member(Box<str>),
    /// `.actualState` directly behind `reference()`.
    State,
    /// `[value]`
    Index(V),
}

/// An expression over a sealed array with all that it needs besides, so that it is computed without its document.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Closure<V = Value> {
    /// The expression. In it, `lambdaVariables(0)` is the array, and `lambdaVariables(n)` the n-th captured value.
    pub source: String,
    /// The values that were computed already.
    pub captured: Vec<V>,
    /// The functions of the document that are called in `source`.
    pub functions: Vec<Function>,
}

/// A function of a document that a [`Closure`] calls.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Function {
    /// `namespace.name`
    pub name: String,
    /// Its parameters in order.
    pub parameters: Vec<(String, DataType)>,
    /// The type of what it returns.
    pub returns: DataType,
    /// The result, with expressions as text, the way documents have it.
    pub output: serde_json::Value,
}

impl<V> SealedStep<V> {
    /// Every value in it.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        let values: Vec<&V> = match self {
            Self::Apply { arguments, .. } => arguments.iter().collect(),
            Self::Access { of, key: Key::Index(index) } => vec![of, index],
            Self::Access { of, .. } => vec![of],
            Self::Keep(items) => items.iter().flat_map(|(item, verdict)| [item, verdict]).collect(),
            Self::Each { array, closure } => std::iter::once(array).chain(&closure.captured).collect(),
            Self::Typed { value, .. } => vec![value],
            Self::Failed => Vec::new(),
        };
        values.into_iter()
    }

    /// The step without its values.
    fn shape(&self) -> SealedStep<()> {
        let Ok(shape) = self.map(&mut |_| Ok::<_, std::convert::Infallible>(()));
        shape
    }

    /// Returns the same step over other values.
    pub(super) fn map<W, E>(&self, of: &mut dyn FnMut(&V) -> Result<W, E>) -> Result<SealedStep<W>, E> {
        Ok(match self {
            Self::Apply { function, arguments } => SealedStep::Apply {
                function: function.clone(),
                arguments: arguments.iter().map(of).collect::<Result<_, _>>()?,
            },
            Self::Access { of: whole, key } => {
                let whole = of(whole)?;
                let key = match key {
                    Key::Member(name) => Key::Member(name.clone()),
                    Key::State => Key::State,
                    Key::Index(index) => Key::Index(of(index)?),
                };
                SealedStep::Access { of: whole, key }
            }
            Self::Keep(items) => SealedStep::Keep(
                items.iter().map(|(item, verdict)| Ok((of(item)?, of(verdict)?))).collect::<Result<_, _>>()?,
            ),
            Self::Each { array, closure } => {
                let array = of(array)?;
                let captured = closure.captured.iter().map(of).collect::<Result<_, _>>()?;
                let (source, functions) = (closure.source.clone(), closure.functions.clone());
                SealedStep::Each { array, closure: Closure { source, captured, functions } }
            }
            Self::Typed { value, data_type } => SealedStep::Typed { value: of(value)?, data_type: *data_type },
            Self::Failed => SealedStep::Failed,
        })
    }
}

impl Value {
    /// Returns how deep it is nested, sealed computations included.
    pub fn depth(&self) -> usize {
        match self {
            Self::Array(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(members) => 1 + members.values().map(Self::depth).max().unwrap_or(0),
            Self::Sealed(Sealed(Recipe::Computed(computed))) => computed.depth(),
            _ => 1,
        }
    }

    /// The handle of a secret as a value.
    pub fn secret(name: SecretName) -> Self {
        Self::Sealed(Sealed(Recipe::Secret(name)))
    }

    /// Returns the result of a step that is yet to be computed, as a value.
    pub fn deferred(step: SealedStep) -> Self {
        Self::Sealed(Sealed(Recipe::Computed(Computed::new(step))))
    }

    /// The value with all of it sealed, to be of that type when it is opened.
    ///
    /// Parts that are sealed already are not put into `seal` a second time.
    #[must_use]
    pub fn sealed_as(self, data_type: DataType, seal: &dyn Seal) -> Self {
        if self.has_sealed() {
            return Self::deferred(SealedStep::Typed { value: self, data_type });
        }
        Self::secret(seal.seal(self))
    }

    /// The secrets that opening the value may ask for: every one that it holds or is computed from.
    pub fn secrets(&self) -> BTreeSet<SecretName> {
        let mut found = BTreeSet::new();
        collect(self, &mut found, &mut BTreeSet::new());
        found
    }
}

fn collect(value: &Value, found: &mut BTreeSet<SecretName>, seen: &mut BTreeSet<*const ()>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found, seen)),
        Value::Object(members) => members.values().for_each(|member| collect(member, found, seen)),
        Value::Sealed(Sealed(Recipe::Secret(name))) => {
            found.insert(name.clone());
        }
        Value::Sealed(Sealed(Recipe::Computed(computed))) if seen.insert(computed.address()) => {
            computed.step().values().for_each(|part| collect(part, found, seen));
        }
        _ => {}
    }
}

/// The value with every part sealed that says by its form that it is secret: `{"secureString": text}` or
/// `{"secureObject": value}`.
#[must_use]
pub fn sealing_wrapped(mut value: Value, seal: &dyn Seal) -> Value {
    replace_wrapped(&mut value, &mut |plaintext| Value::secret(seal.seal(plaintext)));
    value
}

/// The value with every such part replaced by [`super::REDACTED`], to be shown.
#[must_use]
pub fn redacting_wrapped(mut value: Value) -> Value {
    replace_wrapped(&mut value, &mut |_| Value::from(super::REDACTED));
    value
}

fn replace_wrapped(value: &mut Value, replacement: &mut dyn FnMut(Value) -> Value) {
    match value {
        Value::Object(members) if is_wrapped(members) => {
            let plaintext = members.pop().map(|(_, plaintext)| plaintext).unwrap_or_default();
            *value = replacement(plaintext);
        }
        Value::Object(members) => members.values_mut().for_each(|member| replace_wrapped(member, replacement)),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_wrapped(item, replacement)),
        _ => {}
    }
}

/// Returns whether an object is the wrapping in which secrets come from and go to programs. A part that is sealed
/// within it already is left to its recipe.
fn is_wrapped(members: &Object) -> bool {
    match members.first() {
        Some((name, value)) if members.len() == 1 && !value.has_sealed() => {
            name == "secureObject" || (name == "secureString" && value.as_str().is_some())
        }
        _ => false,
    }
}
