//! Where secrets are while a run lasts.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, PoisonError, RwLock};

use crate::redactor::Redactor;
use stead_core::document::{DataType, Parameter};
use stead_core::id::SecretName;
use stead_core::parameters::{Finding, check};
use stead_core::value::{Object, Seal, Sensitive, Value, sealing_wrapped};

/// Keeps secrets, and opens sealed values at the last moment.
pub trait Vault: Seal {
    /// The plaintext of a secret.
    fn reveal(&self, name: &SecretName) -> Result<Sensitive<Value>, VaultError>;

    /// Returns the redactor of the secrets that it holds, also those that are added later.
    fn redactor(&self) -> Arc<RwLock<Redactor>> {
        Arc::default()
    }
}

/// Why a secret cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VaultError {
    /// The handle was made by another vault, such as that of an earlier process.
    #[error("it was sealed by another process")]
    Foreign(String),
    /// The vault does not hold it, or was wiped.
    #[error("the vault does not hold it")]
    Unknown(String),
}

/// A vault in memory, wiped when it is dropped.
///
/// Handles are `<vault>/<n>` with 128 random bits for the vault and each number used once, so that a handle never opens
/// another secret than the one that it was made for.
pub struct MemoryVault {
    id: String,
    keys: RandomState,
    kept: RwLock<Kept>,
    redactor: Arc<RwLock<Redactor>>,
}

#[derive(Default)]
struct Kept {
    next: u64,
    plaintexts: BTreeMap<u64, Sensitive<Value>>,
    /// The numbers of the plaintexts of each fingerprint.
    numbers: HashMap<u64, Vec<u64>>,
}

impl Default for MemoryVault {
    fn default() -> Self {
        let keys = RandomState::new();
        let id = format!("{:016x}{:016x}", keys.hash_one("first half"), keys.hash_one("second half"));
        let redactor = Arc::new(RwLock::new(Redactor::of_session()));
        Self { id, keys, kept: RwLock::default(), redactor }
    }
}

impl MemoryVault {
    /// Forgets every secret. Handles of them stay unknown; none is given out again.
    pub fn wipe(&self) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        *kept = Kept { next: kept.next, ..Kept::default() };
        *self.redactor.write().unwrap_or_else(PoisonError::into_inner) = Redactor::of_session();
    }

    /// Returns a redactor of the secrets that it holds now. Unlike that of the session it looks for short ones as well, so that it
    /// may cover what is none.
    pub fn thorough(&self) -> Redactor {
        let mut redactor = Redactor::default();
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.plaintexts.values().for_each(|plaintext| redactor.add(plaintext.expose()));
        redactor
    }

    fn name(&self, number: u64) -> SecretName {
        SecretName(format!("{}/{number}", self.id).into())
    }
}

impl Seal for MemoryVault {
    fn seal(&self, plaintext: Value) -> SecretName {
        let fingerprint = fingerprint(&plaintext, &self.keys);
        // A panic elsewhere cannot leave it half changed: what is looked up first is changed last.
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let plaintext = Sensitive::new(plaintext);
        let alike = kept.numbers.get(&fingerprint).into_iter().flatten();
        let mut known = alike.filter(|number| kept.plaintexts.get(number) == Some(&plaintext));
        if let Some(number) = known.next() {
            return self.name(*number);
        }
        self.redactor.write().unwrap_or_else(PoisonError::into_inner).add(plaintext.expose());
        let number = kept.next;
        kept.next += 1;
        kept.plaintexts.insert(number, plaintext);
        kept.numbers.entry(fingerprint).or_default().push(number);
        self.name(number)
    }
}

impl Vault for MemoryVault {
    fn reveal(&self, name: &SecretName) -> Result<Sensitive<Value>, VaultError> {
        let (vault, number) = name.0.rsplit_once('/').unwrap_or_default();
        if vault != self.id {
            return Err(VaultError::Foreign(name.0.to_string()));
        }
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let found = number.parse().ok().and_then(|number: u64| kept.plaintexts.get(&number).cloned());
        found.ok_or_else(|| VaultError::Unknown(name.0.to_string()))
    }

    fn redactor(&self) -> Arc<RwLock<Redactor>> {
        Arc::clone(&self.redactor)
    }
}

impl fmt::Debug for MemoryVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryVault")
    }
}

/// Returns the fingerprint that equal values share, which may have their members in another order; no copy of the
/// plaintext is made.
fn fingerprint(value: &Value, keys: &RandomState) -> u64 {
    match value {
        Value::Array(items) => keys.hash_one(items.iter().map(|item| fingerprint(item, keys)).collect::<Vec<_>>()),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| keys.hash_one((name, fingerprint(value, keys)));
            keys.hash_one((members.len(), members.iter().map(member).fold(0, u64::wrapping_add)))
        }
        Value::String(text) => keys.hash_one(text),
        Value::Number(number) => keys.hash_one(number),
        Value::Bool(truth) => keys.hash_one(truth),
        Value::Null | Value::Sealed(_) => 0,
    }
}

/// Puts the secure ones among the supplied parameters into the vault, and leaves sealed values in their place.
///
/// So are the parts of other parameters that say by their form that they are secret, as DSC v3 has it.
///
/// Their values are checked here, on the plaintext, since nothing behind this can. The others are left as they are,
/// to be checked with all else that the document says.
pub fn take_secrets(parameters: &[Parameter], supplied: Object, vault: &dyn Seal) -> Result<Object, Vec<Finding>> {
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
            None => sealing_wrapped(value, vault),
        };
        taken.insert(name, value);
    }
    if findings.is_empty() { Ok(taken) } else { Err(findings) }
}

fn take(parameter: &Parameter, value: Value, vault: &dyn Seal) -> Result<Value, Finding> {
    let plaintext = unwrapped(parameter.data_type.value, value);
    check(parameter, &plaintext)?;
    Ok(plaintext.sealed_as(parameter.data_type.value, vault))
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
