//! Which thing an instance is about, whatever it is called and whatever else it states.

use serde_json::Value as Json;
use stead_core::value::{Object, Value};

use crate::BuiltIn;
use crate::declared::Tells;

/// The thing that an instance manages.
#[derive(Clone, PartialEq, Debug)]
pub struct Thing {
    /// The properties that tell it from others of its type.
    pub key: Object,
    /// The properties by which just this thing is removed, without `_exist`: what tells it, and the options that are declared for
    /// that, of which none makes room for anything else. They are recorded.
    pub removal: Object,
    /// The property whose value is its path; `None` where it has none, as swap space.
    pub place: Option<&'static str>,
}

/// The properties of a type without a key whose instances are known by what they look for, or else by what they add.
const LINE: (&str, [&str; 3]) = ("Stead/Line", ["path", "match", "line"]);

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
        let is_so = |each: &&Tells| stated.get(each.beside).is_some_and(|value| each.value.is(value));
        let telling: Vec<&Tells> = self.tells.iter().filter(is_so).collect();
        for each in &telling {
            let value = of(&[each.beside, each.name]);
            key.extend(value.iter().map(|(name, value)| (name.clone(), value.clone())));
            removal.extend(value);
        }
        let is_identified = || self.is_identified_by(&key) && telling.iter().all(|each| key.contains_key(each.name));
        let is_complete = if is_line { removal.len() > 1 } else { is_identified() };
        if !is_complete || [&key, &removal].into_iter().any(|each| each.values().any(Value::has_sealed)) {
            return None;
        }
        removal.extend(of(self.removal).into_iter().filter(|(_, value)| !value.has_sealed()));
        let place = self.place.filter(|place| telling.iter().all(|each| each.beside != *place));
        Some(Thing { key, removal, place })
    }

    /// The properties without which it is not known where the thing of an instance is, given which are stated, and which of
    /// these are known.
    pub fn known_by<'a>(
        &self,
        is_stated: impl Fn(&str) -> bool,
        known: impl Fn(&str) -> Option<&'a Value>,
    ) -> impl Iterator<Item = &'static str> {
        let (line, [path, ..]) = LINE;
        let of_line = (self.manifest.type_name.as_str() == line).then_some(path);
        let may_tell =
            |each: &&Tells| is_stated(each.beside) && known(each.beside).is_none_or(|value| each.value.is(value));
        let telling: Vec<&str> = self.tells.iter().filter(may_tell).map(|each| each.name).collect();
        self.identity.iter().copied().chain(of_line).chain(telling)
    }

    /// Returns whether properties tell the thing: every one that must be stated is there, and at least one is.
    fn is_identified_by(&self, key: &Object) -> bool {
        let required = self.schema()["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_stated = |name: &Json| name.as_str().is_none_or(|name| key.contains_key(name));
        let own = required.iter().filter(|name| name.as_str().is_some_and(|name| self.identity.contains(&name)));
        !key.is_empty() && own.into_iter().all(is_stated)
    }
}
