//! The answer of a resource, with its secrets sealed again.

use std::sync::Arc;

use stead_core::diff::{Case, Rules, contains};
use stead_core::value::{Object, REDACTED, Seal, Sealed, Sensitive, Value};

use super::cover::Cover;

/// Seals what came back from a resource.
///
/// Guarantees: no secret of the call is left in it in the clear, unless the document states the same text in the clear
/// at the same place; nor is a secret of another instance, unless the document states it in the clear of this one.
///
/// - Where the desired state is sealed, an equal actual value becomes that sealed value, so that the two compare equal;
///   any other becomes a sealed value of its own. A resource that covers the value by itself counts as equal: it does
///   not tell.
/// - A value in the wrapping of secrets is sealed wherever it stands.
/// - Everywhere else secrets within texts are covered.
pub(super) struct Resealer<'v> {
    /// Where secrets are kept that the machine has and the document has not.
    pub(super) seal: &'v dyn Seal,
    /// The desired state.
    pub(super) desired: Arc<Value>,
    /// The value with its secrets in the clear; `None` when it has none.
    pub(super) plain: Option<Arc<Sensitive<Value>>>,
    /// All secrets that there are.
    pub(super) secrets: Cover,
    /// How values of the resource are compared.
    pub(super) case: Case,
}

/// The desired value at a place: as the document has it, and in the clear.
type Wanted<'a> = Option<(&'a Value, &'a Value)>;

impl Resealer<'_> {
    /// Seals a state.
    pub(super) fn state(&self, actual: Value) -> Value {
        if self.is_plain(&actual) { actual } else { self.value(Some((&self.desired, self.plain())), actual) }
    }

    /// Reseals a state that others may hold as well.
    pub(super) fn shared(&self, actual: Arc<Value>) -> Arc<Value> {
        if self.is_plain(&actual) { actual } else { Arc::new(self.state(Arc::unwrap_or_clone(actual))) }
    }

    /// Returns whether there is nothing to seal in a state.
    fn is_plain(&self, actual: &Value) -> bool {
        self.secrets.is_empty() && !self.desired.has_sealed() && !holds_wrapped(actual)
    }

    /// The desired state in the clear.
    pub(super) fn plain(&self) -> &Value {
        self.plain.as_ref().map_or(&*self.desired, |plain| plain.expose())
    }

    /// Covers the secrets of the call in a text.
    pub(super) fn text(&self, text: &str) -> String {
        self.secrets.scrub(text).into_owned()
    }

    fn rules(&self) -> Rules<'static> {
        Rules { case: self.case, schema: None }
    }

    fn value(&self, wanted: Wanted<'_>, actual: Value) -> Value {
        if let Some((Value::Sealed(sealed), plain)) = wanted {
            return self.seal_like(sealed, plain, unwrapped(actual));
        }
        if is_wrapped(&actual) {
            let inner = unwrapped(actual);
            // The document states it in the clear: nothing is kept by hiding it.
            let stated = wanted.is_some_and(|(_, plain)| contains(&inner, plain, &Rules::default()));
            return if stated { inner } else { Value::secret(self.seal.seal(inner)) };
        }
        match actual {
            Value::Object(members) => Value::Object(self.members(wanted, members)),
            Value::Array(items) => Value::Array(self.elements(wanted, items)),
            Value::String(text) if wanted.and_then(|(_, plain)| plain.as_str()) == Some(&text) => Value::String(text),
            Value::String(text) if self.secrets.is_empty() => Value::String(text),
            Value::String(text) => Value::String(self.secrets.scrub_state(text, |text| states(&self.desired, text))),
            Value::Number(number) if !self.secrets.is_empty() => {
                let value = Value::Number(number.clone());
                let stated = wanted.is_some_and(|(_, plain)| *plain == value);
                if !stated && self.secrets.has(&number.to_string()) { Value::from(REDACTED) } else { value }
            }
            other => other,
        }
    }

    fn seal_like(&self, sealed: &Sealed, plain: &Value, actual: Value) -> Value {
        match actual {
            Value::Null => Value::Null,
            actual if agrees(&actual, plain, self.rules()) => Value::Sealed(sealed.clone()),
            actual => Value::secret(self.seal.seal(actual)),
        }
    }

    fn members(&self, wanted: Wanted<'_>, members: Object) -> Object {
        let of = |name: &str| {
            let (desired, plain) = wanted?;
            entry(desired.as_object()?, name).zip(entry(plain.as_object()?, name))
        };
        let member = |(name, value): (String, Value)| match of(&name) {
            Some(wanted) => (name, self.value(Some(wanted), value)),
            None if self.secrets.is_empty() => (name, self.value(None, value)),
            None => (self.secrets.scrub(&name).into_owned(), self.value(None, value)),
        };
        members.into_iter().map(member).collect()
    }

    /// Elements may come in another order: each is taken for the desired one that it has everything of, else for one
    /// that has secrets, so that an old secret is not shown because it stands at another place.
    fn elements(&self, wanted: Wanted<'_>, items: Vec<Value>) -> Vec<Value> {
        let (desired, plain) = match wanted {
            Some((Value::Array(desired), Value::Array(plain))) => (desired.as_slice(), plain.as_slice()),
            _ => (&[][..], &[][..]),
        };
        let pairs: Vec<(&Value, &Value)> = desired.iter().zip(plain).collect();
        let secret = pairs.iter().find(|(desired, _)| desired.has_sealed()).copied();
        let mut free = vec![true; pairs.len()];
        let element = |(at, item): (usize, Value)| {
            let own = pairs.get(at).copied();
            let counterpart = match secret {
                Some(secret) => take_equal(&pairs, &mut free, at, &item, self.rules())
                    .or(own.filter(|(desired, _)| desired.has_sealed()))
                    .or(Some(secret)),
                None => own,
            };
            self.value(counterpart, item)
        };
        items.into_iter().enumerate().map(element).collect()
    }
}

/// A member, in whatever case its name is: one that was covered too much shows nothing.
fn entry<'v>(members: &'v Object, name: &str) -> Option<&'v Value> {
    let in_any_case = || members.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    members.get(name).or_else(in_any_case)
}

/// The desired element that an actual one has everything of, taken out of those that are free.
fn take_equal<'v>(
    pairs: &[(&'v Value, &'v Value)],
    free: &mut [bool],
    at: usize,
    item: &Value,
    rules: Rules<'_>,
) -> Option<(&'v Value, &'v Value)> {
    let actual = Sensitive::new(unwrapped(item.clone()));
    let order = std::iter::once(at).chain(0..pairs.len());
    for place in order {
        let (Some(pair), Some(free)) = (pairs.get(place), free.get_mut(place)) else { continue };
        if *free && contains(actual.expose(), pair.1, &rules) {
            *free = false;
            return Some(*pair);
        }
    }
    None
}

/// Returns whether a state matches a secret, of which any part may be redacted: a redacted part matches anything but
/// null.
fn agrees(actual: &Value, plain: &Value, rules: Rules<'_>) -> bool {
    match (actual, plain) {
        (Value::String(text), plain) if text == REDACTED => !plain.is_null(),
        (Value::Object(actual), Value::Object(plain)) => {
            plain.iter().all(|(name, plain)| entry(actual, name).is_some_and(|actual| agrees(actual, plain, rules)))
        }
        (Value::Array(items), Value::Array(wanted))
            if items.len() == wanted.len()
                && items.iter().zip(wanted).all(|(actual, plain)| agrees(actual, plain, rules)) =>
        {
            true
        }
        _ => contains(actual, plain, &rules),
    }
}

/// Returns whether any part of a value says by its form that it is secret.
fn holds_wrapped(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_wrapped),
        Value::Object(members) => is_wrapped(value) || members.values().any(holds_wrapped),
        _ => false,
    }
}

/// Returns whether a part of the desired state is that text in the clear.
fn states(desired: &Value, text: &str) -> bool {
    match desired {
        Value::String(stated) => stated == text,
        Value::Array(items) => items.iter().any(|item| states(item, text)),
        Value::Object(members) => members.values().any(|member| states(member, text)),
        _ => false,
    }
}

/// Returns whether a value says by its form that it is secret.
fn is_wrapped(value: &Value) -> bool {
    let members = value.as_object().filter(|members| members.len() == 1);
    members.is_some_and(|members| {
        members.get("secureString").is_some_and(|text| text.as_str().is_some()) || members.get("secureObject").is_some()
    })
}

/// The value without the wrapping of secrets, at any depth.
fn unwrapped(value: Value) -> Value {
    match value {
        Value::Object(members) if members.len() == 1 => {
            let keep = |(name, value)| match name {
                name if name == "secureString" || name == "secureObject" => Err(value),
                name => Ok((name, unwrapped(value))),
            };
            match members.into_iter().map(keep).collect::<Result<Object, _>>() {
                Ok(members) => Value::Object(members),
                Err(secret) => secret,
            }
        }
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, value)| (name, unwrapped(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(unwrapped).collect()),
        other => other,
    }
}
