//! A place for secrets that needs no memory.

use stead_core::expr::UnsealError;
use stead_core::id::SecretName;
use stead_core::value::{Seal, Value};

const MARK: &str = "sealed in a test: ";

/// Handles are the plaintext as JSON, so that anybody can open them.
pub(crate) struct Legible;

impl Seal for Legible {
    fn seal(&self, plaintext: Value) -> SecretName {
        SecretName(format!("{MARK}{}", plaintext.to_redacted_json()).into())
    }
}

impl Legible {
    /// The plaintext of a handle that [`Legible`] made.
    #[allow(dead_code, reason = "not every test opens what it seals")]
    pub(crate) fn reveal(name: &SecretName) -> Result<Value, UnsealError> {
        let json = name.0.strip_prefix(MARK).and_then(|json| serde_json::from_str::<serde_json::Value>(json).ok());
        let unknown = || UnsealError::Unavailable { name: name.clone(), reason: "the vault is locked".to_owned() };
        json.map(Value::from).ok_or_else(unknown)
    }
}
