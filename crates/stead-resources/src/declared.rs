//! The traits that the declaration of a resource implements; see [`stead_declare::resource`].

use std::collections::BTreeMap;
use std::sync::Arc;

use stead_core::call::Failure;
use stead_core::manifest::{Manifest, SecretForm, SecretProperty};
use stead_core::value::{Object, Value};
use stead_host::provider::Provider;

use crate::{BuiltIn, Profile};

/// The properties of a resource as they are declared.
pub(crate) trait Declared {
    /// The texts and abilities of its manifest and its reference.
    const PROFILE: Profile;

    /// The properties that tell one instance from another; empty where none do.
    const KEYS: &'static [&'static str];

    /// The properties that tell which thing an instance is about; empty where none do.
    const IDENTITY: &'static [&'static str];

    /// The property whose value is the path of that thing, if it has one.
    const PLACE: Option<&'static str>;

    /// The properties that are part of its identity if another one has a certain value.
    const TELLS: &'static [Tells];

    /// The options that are stated again when a thing is removed that its document does not have any more.
    const REMOVAL: &'static [&'static str];

    /// The properties that are reported and cannot be stated, and whose changes are shown as if they could.
    const SHOWN: &'static [&'static str];

    /// The property in which a state has what a program printed, for users who ask for it.
    const PRINTED: Option<&'static str>;

    /// The properties whose values are secret however they are stated.
    const SECRETS: &'static [(&'static str, SecretForm)];

    /// Returns whether the instance is to exist.
    fn exists(&self) -> bool;

    /// Fails where properties are stated that exclude each other, or one is missing that the instance needs.
    fn related(&self) -> Result<(), Failure>;

    /// Returns the resource as it is registered; `None` when its type name is not valid.
    fn built_in(provider: Arc<dyn Provider>) -> Option<BuiltIn> {
        let built_in = Self::PROFILE.built_in(provider)?;
        let secrets = Self::SECRETS.iter().map(|(name, form)| SecretProperty { name, form: *form }).collect();
        let manifest = Arc::new(Manifest { secrets, ..(*built_in.manifest).clone() });
        Some(BuiltIn {
            manifest,
            keys: Self::KEYS,
            identity: Self::IDENTITY,
            place: Self::PLACE,
            tells: Self::TELLS,
            removal: Self::REMOVAL,
            shown: Self::SHOWN,
            printed: Self::PRINTED,
            ..built_in
        })
    }
}

/// A property that is part of the identity of a thing if another one has a certain value.
#[derive(Debug)]
pub(crate) struct Tells {
    /// The name of the property.
    pub(crate) name: &'static str,
    /// The name of the other one.
    pub(crate) beside: &'static str,
    /// The value of that.
    pub(crate) value: Literal,
}

/// A value that a declaration names.
#[derive(Debug)]
pub(crate) enum Literal {
    Text(&'static str),
    Bool(bool),
}

impl Literal {
    /// Returns whether it is this value.
    pub(crate) fn is(&self, value: &Value) -> bool {
        match self {
            Self::Text(text) => value.as_str() == Some(text),
            Self::Bool(flag) => value.as_bool() == Some(*flag),
        }
    }
}

/// The values that an instance states, as states have them.
pub(crate) trait States {
    /// The properties that tell which thing it is; they are in every state.
    fn identified(&self) -> Object;

    /// The other properties that it states of the thing.
    fn stated(&self) -> Object;
}

/// A value of a property, as states have it.
pub(crate) trait ToValue {
    /// Returns the value; `None` where none is stated.
    fn to_value(&self) -> Option<Value>;
}

impl ToValue for bool {
    fn to_value(&self) -> Option<Value> {
        Some(Value::from(*self))
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Option<Value> {
        self.as_ref().and_then(T::to_value)
    }
}

impl<T: ToValue> ToValue for Vec<T> {
    fn to_value(&self) -> Option<Value> {
        Some(Value::from(self.iter().filter_map(T::to_value).collect::<Vec<_>>()))
    }
}

impl<K: AsRef<str>, T: ToValue> ToValue for BTreeMap<K, T> {
    fn to_value(&self) -> Option<Value> {
        let members = self.iter().filter_map(|(name, value)| Some((name.as_ref().to_owned(), value.to_value()?)));
        Some(Value::Object(members.collect()))
    }
}
