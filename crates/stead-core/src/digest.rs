//! Digests as texts.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::value::Value;

/// The SHA-256 of bytes, as 64 hexadecimal digits.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The SHA-256 of texts, numbers and values: where one ends and the next begins counts.
#[derive(Default)]
pub struct DigestOfParts(Sha256);

impl DigestOfParts {
    /// Adds a number.
    pub fn number(&mut self, number: usize) {
        self.0.update((number as u64).to_le_bytes());
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.update(text);
    }

    /// Adds a value. What is sealed counts as that alone.
    pub fn value(&mut self, value: &Value) {
        let kind = match value {
            Value::Null => 1,
            Value::Bool(false) => 2,
            Value::Bool(true) => 3,
            Value::Number(_) => 4,
            Value::String(_) => 5,
            Value::Array(_) => 6,
            Value::Object(_) => 7,
            Value::Sealed(_) => 8,
        };
        self.0.update([kind]);
        match value {
            Value::Null | Value::Bool(_) | Value::Sealed(_) => {}
            Value::Number(_) => self.text(&value.to_redacted_json().to_string()),
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                self.number(items.len());
                for item in items {
                    self.value(item);
                }
            }
            Value::Object(members) => {
                self.number(members.len());
                for (name, value) in members {
                    self.text(name);
                    self.value(value);
                }
            }
        }
    }

    /// The digest, as 64 hexadecimal digits.
    pub fn end(self) -> String {
        hex(&self.0.finalize())
    }
}
