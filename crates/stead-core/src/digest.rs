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
pub struct DigestOfParts {
    hash: Sha256,
    /// Parts that are not yet in the hash, which takes many small ones at once.
    parts: Vec<u8>,
}

impl DigestOfParts {
    /// How many bytes are collected before they are added.
    const TOGETHER: usize = 4096;

    /// Adds a number: seven bits a byte, the lowest first, and the highest bit says whether more follow.
    pub fn number(&mut self, number: usize) {
        let mut rest = number;
        while rest > 0x7f {
            self.parts.push(rest.to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        self.parts.push(rest.to_le_bytes()[0]);
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str) {
        self.number(text.len());
        if text.len() < Self::TOGETHER {
            self.parts.extend_from_slice(text.as_bytes());
        } else {
            self.add_parts();
            self.hash.update(text);
        }
        if self.parts.len() >= Self::TOGETHER {
            self.add_parts();
        }
    }

    fn add_parts(&mut self) {
        self.hash.update(&self.parts);
        self.parts.clear();
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
        self.parts.push(kind);
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
    pub fn end(mut self) -> String {
        self.add_parts();
        hex(&self.hash.finalize())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn where_a_part_ends_counts() {
        let long = "x".repeat(DigestOfParts::TOGETHER);
        let texts: [&[&str]; 8] =
            [&[], &[""], &["", ""], &["ab"], &["a", "b"], &[&long], &[&long, ""], &[&long[1..], "x"]];
        let of_texts = texts.iter().map(|parts| {
            let mut digest = DigestOfParts::default();
            parts.iter().for_each(|part| digest.text(part));
            digest.end()
        });
        let numbers: [&[usize]; 7] = [&[1], &[127], &[128], &[1, 1], &[129, 1], &[1, 129], &[usize::MAX]];
        let of_numbers = numbers.iter().map(|parts| {
            let mut digest = DigestOfParts::default();
            parts.iter().for_each(|part| digest.number(*part));
            digest.end()
        });
        let digests: HashSet<String> = of_texts.chain(of_numbers).collect();
        assert_eq!(digests.len(), texts.len() + numbers.len());
    }
}
