//! The desired state with its secrets in the clear, in the two forms that resources take.

use std::cell::RefCell;
use std::sync::Arc;

use stead_core::call::{Failure, FailureKind};
use stead_core::expr::{self, UnsealError};
use stead_core::id::SecretName;
use stead_core::value::{Object, Seal, Sealed, Sensitive, Value};

use crate::provider::Plain;
use crate::redactor::Redactor;
use crate::vault::Vault;

/// A value whose sealed parts were opened.
pub(super) struct Opened {
    /// The value itself, with arrays that are sealed as a whole taken apart: resources cover and report their elements one
    /// by one.
    pub(super) parted: Arc<Value>,
    /// Secrets as they are.
    pub(super) bare: Plain,
    /// Secrets as `{"secureString": …}` and `{"secureObject": …}`; `None` when there are none.
    pub(super) wrapped: Option<Plain>,
    /// Every secret in it, to be found again in what comes back.
    pub(super) secrets: Redactor,
}

impl Opened {
    /// Opens all sealed parts of a value.
    pub(super) fn open(value: &Arc<Value>, vault: &dyn Vault) -> Result<Self, Failure> {
        if !value.has_sealed() {
            let bare = Plain::shared(Arc::clone(value));
            return Ok(Self { parted: Arc::clone(value), bare, wrapped: None, secrets: Redactor::default() });
        }
        let secrets = RefCell::new(Redactor::default());
        let opener = Opener { vault, secrets: &secrets };
        let bare = opener.open(value, &|plain| plain)?;
        let wrapped = opener.open(value, &wrapped)?;
        let parted = Arc::new(parted(value, &bare, vault));
        let (bare, wrapped) = (Plain::secret(bare), Some(Plain::secret(wrapped)));
        Ok(Self { parted, bare, wrapped, secrets: secrets.into_inner() })
    }
}

/// A value with its sealed arrays as arrays of what is sealed; `bare` is the same in the clear.
fn parted(value: &Value, bare: &Value, seal: &dyn Seal) -> Value {
    match (value, bare) {
        (Value::Sealed(_), Value::Array(items)) => Value::Array(items.iter().map(|item| sealed(item, seal)).collect()),
        (Value::Array(items), Value::Array(bare)) => {
            Value::Array(items.iter().zip(bare).map(|(item, bare)| parted(item, bare, seal)).collect())
        }
        (Value::Object(members), Value::Object(bare)) => {
            let part = |(name, value): (&String, &Value)| match bare.get(name) {
                Some(bare) => (name.clone(), parted(value, bare, seal)),
                None => (name.clone(), value.clone()),
            };
            Value::Object(members.iter().map(part).collect())
        }
        _ => value.clone(),
    }
}

/// An element of a secret array.
fn sealed(item: &Value, seal: &dyn Seal) -> Value {
    match item {
        Value::Null => Value::Null,
        Value::Array(items) => Value::Array(items.iter().map(|item| sealed(item, seal)).collect()),
        item => Value::secret(seal.seal(item.clone())),
    }
}

struct Opener<'a> {
    vault: &'a dyn Vault,
    secrets: &'a RefCell<Redactor>,
}

impl Opener<'_> {
    fn open(&self, value: &Value, form: &dyn Fn(Value) -> Value) -> Result<Value, Failure> {
        Ok(match value {
            Value::Sealed(sealed) => {
                let plain = Sensitive::new(open_sealed(sealed, self.vault).map_err(|error| unavailable(&error))?);
                self.secrets.borrow_mut().add(plain.expose());
                self.add_ingredients(value);
                form(plain.expose().clone())
            }
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.open(item, form)).collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| Ok((name.clone(), self.open(value, form)?));
                Value::Object(members.iter().map(member).collect::<Result<Object, Failure>>()?)
            }
            plain => plain.clone(),
        })
    }
}

impl Opener<'_> {
    /// A resource that is given `user:password` may well say `password`.
    fn add_ingredients(&self, value: &Value) {
        for name in value.secrets() {
            // One that cannot be read was not needed, or opening would have failed.
            if let Ok(plain) = self.vault.reveal(&name) {
                self.secrets.borrow_mut().add(plain.expose());
            }
        }
    }
}

/// Computes a sealed value. What it returns holds no sealed value.
fn open_sealed(sealed: &Sealed, vault: &dyn Vault) -> Result<Value, UnsealError> {
    let reveal = |name: &SecretName| match vault.reveal(name) {
        Ok(secret) => Ok(secret.expose().clone()),
        Err(error) => Err(UnsealError::Unavailable { name: name.clone(), reason: error.to_string() }),
    };
    expr::open(&Value::Sealed(sealed.clone()), &reveal)
}

fn unavailable(error: &UnsealError) -> Failure {
    Failure::new(FailureKind::Invalid, error.to_string())
}

/// Text and objects in the wrapping that says that they are secret; arrays element by element, the rest as it is.
fn wrapped(plain: Value) -> Value {
    let wrap = |name: &str, plain| Value::Object(Object::from([(name.to_owned(), plain)]));
    match plain {
        Value::String(_) => wrap("secureString", plain),
        Value::Object(_) => wrap("secureObject", plain),
        Value::Array(items) => Value::Array(items.into_iter().map(wrapped).collect()),
        other => other,
    }
}
