//! Where secrets are while a run lasts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use stead_core::document::{DataType, Parameter};
use stead_core::expr::Recipe;
use stead_core::id::SecretName;
use stead_core::parameters::{Finding, check};
use stead_core::value::{Object, Sealed, Sensitive, Value, sealing_wrapped};

/// Opens sealed values at the last moment.
pub trait Vault: Send + Sync {
    /// The plaintext of a secret.
    fn reveal(&self, name: &SecretName) -> Result<Sensitive<Value>, VaultError>;
}

/// Why a secret cannot be had.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VaultError {
    /// The vault does not hold it.
    #[error("the vault does not hold '{0}'")]
    Unknown(String),
}

/// A vault in memory, wiped when it is dropped.
#[derive(Default)]
pub struct MemoryVault {
    secrets: RwLock<BTreeMap<SecretName, Sensitive<Value>>>,
}

impl MemoryVault {
    /// Keeps a secret; one of the same name is forgotten.
    pub fn put(&self, name: SecretName, plaintext: Value) {
        // A panic elsewhere cannot leave the map half changed.
        let mut secrets = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        secrets.insert(name, Sensitive::new(plaintext));
    }
}

impl Vault for MemoryVault {
    fn reveal(&self, name: &SecretName) -> Result<Sensitive<Value>, VaultError> {
        let secrets = self.secrets.read().unwrap_or_else(PoisonError::into_inner);
        secrets.get(name).cloned().ok_or_else(|| VaultError::Unknown(name.0.to_string()))
    }
}

impl fmt::Debug for MemoryVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryVault")
    }
}

/// Puts the secure ones among the supplied parameters into the vault, and leaves sealed values in their place.
///
/// So are the parts of other parameters that say by their form that they are secret, as DSC v3 has it.
///
/// What the document says of them is checked here, on the plaintext, since nothing behind this can. The others are left
/// as they are, to be checked with all else that the document says.
pub fn take_secrets(parameters: &[Parameter], supplied: Object, vault: &MemoryVault) -> Result<Object, Vec<Finding>> {
    let mut findings = Vec::new();
    let mut taken = Object::new();
    for (name, value) in supplied {
        let secure = parameters.iter().find(|each| each.name.value == name && each.data_type.value.is_secure());
        let value = match secure {
            Some(parameter) => match take(parameter, value, vault) {
                Ok(sealed) => sealed,
                Err(finding) => {
                    findings.push(finding);
                    continue;
                }
            },
            None => sealing_wrapped(value),
        };
        taken.insert(name, value);
    }
    if findings.is_empty() { Ok(taken) } else { Err(findings) }
}

fn take(parameter: &Parameter, value: Value, vault: &MemoryVault) -> Result<Value, Finding> {
    let plaintext = unwrapped(parameter.data_type.value, value);
    check(parameter, &plaintext)?;
    // The prefix keeps parameters apart from what secret sources supply.
    let name = SecretName(format!("parameters/{}", parameter.name.value).into());
    vault.put(name.clone(), plaintext);
    Ok(Value::Sealed(Sealed::new(Recipe::Secret(name))))
}

/// The value without the wrapping in which a secret may come from another engine.
fn unwrapped(data_type: DataType, value: Value) -> Value {
    match value {
        Value::Object(mut members) if members.len() == 1 && members.contains_key(data_type.as_str()) => {
            members.remove(data_type.as_str()).unwrap_or_default()
        }
        other => other,
    }
}
