//! Which thing an instance is about, whatever it is called and whatever else it states.

use serde_json::Value as Json;
use stead_core::value::{Object, Value};

use crate::BuiltIn;

/// The thing that an instance manages.
#[derive(Clone, PartialEq, Debug)]
pub struct Thing {
    /// The properties that tell it from others of its type.
    pub key: Object,
    /// The properties by which just this thing is removed, without `_exist`: what tells it, and the options that are declared for
    /// that, of which none makes room for anything else. They are recorded.
    pub removal: Object,
}

/// The properties of a type without a key whose instances are known by what they look for, or else by what they add.
const LINE: (&str, [&str; 3]) = ("Stead/Line", ["path", "match", "line"]);

/// The property by which one instance manages one of several values of a key, so that the value is a part of the key.
const SEVERAL: (&str, &str) = ("multiple", "value");

impl BuiltIn {
    /// The thing that an instance with these properties manages; `None` where they do not tell, or only by a secret.
    pub fn thing(&self, stated: &Object) -> Option<Thing> {
        let of = |names: &[&str]| -> Object {
            let found = names.iter().filter_map(|name| stated.get_key_value(name));
            found.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        let is_line = self.manifest.type_name.as_str() == LINE.0;
        let (mut key, mut removal) = if is_line {
            let (_, [path, pattern, line]) = LINE;
            let by = if stated.contains_key(pattern) { pattern } else { line };
            (of(&[path, by]), of(&[path, line]))
        } else {
            (of(self.identity), of(self.identity))
        };
        if stated.get(SEVERAL.0) == Some(&Value::Bool(true)) {
            let value = of(&[SEVERAL.0, SEVERAL.1]);
            key.extend(value.iter().map(|(name, value)| (name.clone(), value.clone())));
            removal.extend(value);
        }
        let is_complete = if is_line { removal.len() > 1 } else { self.tells(&key) };
        if !is_complete || [&key, &removal].into_iter().any(|each| each.values().any(Value::has_sealed)) {
            return None;
        }
        removal.extend(of(self.removal).into_iter().filter(|(_, value)| !value.has_sealed()));
        Some(Thing { key, removal })
    }

    /// The properties without which it is not known where the thing of an instance is, given which are stated.
    pub fn known_by(&self, is_stated: impl Fn(&str) -> bool) -> impl Iterator<Item = &'static str> {
        let (several, value) = SEVERAL;
        let (line, [path, ..]) = LINE;
        let besides = [is_stated(several).then_some(value), (self.manifest.type_name.as_str() == line).then_some(path)];
        self.identity.iter().copied().chain(besides.into_iter().flatten())
    }

    /// Returns whether properties tell the thing: every one that must be stated is there, and at least one is.
    fn tells(&self, key: &Object) -> bool {
        let required = self.schema()["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_stated = |name: &Json| name.as_str().is_none_or(|name| key.contains_key(name));
        let own = required.iter().filter(|name| name.as_str().is_some_and(|name| self.identity.contains(&name)));
        !key.is_empty() && own.into_iter().all(is_stated)
    }
}
