//! Values in the clear.

use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::value::Value;

/// A value that may hold secrets in the clear: what goes to a resource and what comes back. Clones share it.
///
/// It has no `Debug`, no `Display` and no `Serialize`; [`Plain::expose`] and [`Plain::to_json`] are the ways in.
///
/// Invariant: no part of it is sealed.
#[derive(Clone, Default)]
pub struct Plain {
    value: Arc<Value>,
    secret: bool,
}

impl Plain {
    /// Marks a value as such.
    pub fn new(value: impl Into<Value>) -> Self {
        Self::shared(Arc::new(value.into()))
    }

    /// Marks a value as plaintext that others hold as well.
    pub fn shared(value: Arc<Value>) -> Self {
        Self { value, secret: false }
    }

    /// Covers the sealed parts of a value with placeholders: for what needs no secret.
    pub fn covered(value: &Arc<Value>) -> Self {
        if value.has_sealed() { Self::new(value.to_redacted_json()) } else { Self::shared(Arc::clone(value)) }
    }

    /// Marks a value that certainly holds secrets, in whatever form: it is kept out of the arguments and the environment of
    /// programs, and nothing that they make of it is quoted.
    pub fn secret(value: impl Into<Value>) -> Self {
        Self { value: Arc::new(value.into()), secret: true }
    }

    /// Returns whether it is known to hold secrets.
    pub fn is_secret(&self) -> bool {
        self.secret
    }

    /// The value. Every use is a place to review.
    pub fn expose(&self) -> &Value {
        &self.value
    }

    /// The value as it is shared.
    pub fn into_shared(self) -> Arc<Value> {
        self.value
    }

    /// The value itself.
    pub fn into_exposed(self) -> Value {
        Arc::unwrap_or_clone(self.value)
    }

    /// The value as JSON, for what understands nothing else. Every use is a place to review.
    pub fn to_json(&self) -> Json {
        self.value.to_redacted_json()
    }
}
