//! The secrets of one call: found in what goes to a program, and kept out of what is said about it.

use std::borrow::Cow;

use serde_json::Value as Json;
use stead_core::value::{REDACTED, Value};

use crate::provider::Plain;

/// Below this length a secret is found in innocent words, and what is left of a text gives it away.
const SHORTEST_TO_REPLACE: usize = 4;

/// The plaintext secrets of one input: what is below `{"secureString": ..}` and `{"secureObject": ..}`.
///
/// Secrets that came without this wrapping are known to be there, but not which they are: whoever opened them covers
/// them in what is said.
#[derive(Default)]
pub struct Secrets {
    texts: Vec<String>,
    any: bool,
}

impl Secrets {
    /// Finds every secret of an input.
    pub fn of(input: &Plain) -> Self {
        let mut secrets = Self { any: input.is_secret(), ..Self::default() };
        secrets.look(input.expose());
        // The longest first: a secret may be part of another.
        secrets.texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        secrets.texts.dedup();
        secrets
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// Adds those of another input.
    pub(super) fn add(&mut self, others: &Self) {
        if others.any {
            self.any = true;
            self.texts.extend(others.texts.iter().cloned());
            self.texts.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
            self.texts.dedup();
        }
    }

    /// How many texts are secret.
    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The text without any secret; nothing of it, when that could not be separated from the rest.
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut clean = Cow::Borrowed(text);
        for secret in &self.texts {
            if !clean.contains(secret.as_str()) {
                continue;
            }
            if secret.len() < SHORTEST_TO_REPLACE {
                return Cow::Borrowed(REDACTED);
            }
            clean = Cow::Owned(clean.replace(secret.as_str(), REDACTED));
        }
        clean
    }

    fn look(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.look(item)),
            Value::Object(members) => {
                for (key, value) in members {
                    if members.len() == 1 && (key == "secureString" || key == "secureObject") {
                        self.any = true;
                        self.keep(value);
                    } else {
                        self.look(value);
                    }
                }
            }
            _ => {}
        }
    }

    fn keep(&mut self, secret: &Value) {
        match secret {
            Value::String(text) => self.keep_text(text),
            Value::Number(number) => self.keep_text(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.keep(item)),
            Value::Object(members) => members.values().for_each(|value| self.keep(value)),
            Value::Null | Value::Bool(_) | Value::Sealed(_) => {}
        }
    }

    /// Also as it looks within JSON, and each line by itself: programs quote, and messages come line by line.
    fn keep_text(&mut self, text: &str) {
        let quoted = Json::from(text).to_string();
        let lines = text.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_TO_REPLACE);
        let forms = [text, quoted.trim_matches('"')].into_iter().chain(lines).filter(|form| !form.is_empty());
        self.texts.extend(forms.map(str::to_owned));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_found_at_any_depth() {
        let input =
            json!({"a": [{"b": {"secureString": "hunter2!"}}], "c": {"secureObject": {"k": "pa\"ss", "n": 12345}}});
        let secrets = Secrets::of(&Plain::new(input));
        assert!(!secrets.is_empty());
        let text = r#"hunter2! pa"ss pa\"ss 12345 other"#;
        assert_eq!(secrets.scrub(text), "<secureValue> <secureValue> <secureValue> <secureValue> other");
    }

    #[test]
    fn short_secrets_take_the_text_with_them() {
        let secrets = Secrets::of(&Plain::new(json!({"p": {"secureString": "ab"}})));
        assert_eq!(secrets.scrub("a cab"), REDACTED);
        assert_eq!(secrets.scrub("nothing"), "nothing");
    }

    #[test]
    fn lines_of_a_secret_are_secret() {
        let secrets = Secrets::of(&Plain::new(json!({"p": {"secureString": "-----BEGIN\nMIIEvQ\n-----END"}})));
        assert_eq!(secrets.scrub("x MIIEvQ y"), "x <secureValue> y");
    }

    #[test]
    fn an_object_of_more_members_is_no_wrapper() {
        let json = json!({"secureString": "a", "other": 1});
        assert!(Secrets::of(&Plain::new(json.clone())).is_empty());
        assert!(!Secrets::of(&Plain::secret(json)).is_empty(), "but it may be known to be secret");
    }
}
