//! Where secrets are while a run lasts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use stead_core::id::SecretName;
use stead_core::value::{Sensitive, Value};

/// Opens sealed values at the last moment.
pub trait Vault: Send + Sync {
    /// The plaintext of a secret.
    fn reveal(&self, name: &SecretName) -> Result<Sensitive<Value>, VaultError>;
}

/// Why a secret cannot be had.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VaultError {
    /// The vault does not hold it.
    #[error("there is no secret '{0}'")]
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
