//! `Stead/Json`, `Stead/Toml` and `Stead/Yaml`: one value of a structured file, found by a JSON Pointer.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value as Json;
use stead_core::call::Failure;
use stead_core::claims::Extent;
use stead_core::manifest::SecretForm;
use stead_core::value::{Object, Value, pointer};
use stead_declare::resource;
use stead_host::provider::Context;

use crate::declared::{Declared, States, Tells};
use crate::edit::{FileLocks, Missing};
use crate::guard::Guard;
use crate::input::{AnyValue, FilePath, Pointer, blocked, invalid};
use crate::part::{Location, Part, Parts, Stated};
use crate::{BuiltIn, Profile, schema};

mod json;
mod toml;
mod yaml;

/// A format of files: read into a value, and edited in the text.
trait Format: Send + Sync + 'static {
    /// The resource for it.
    const PROFILE: Profile;

    /// How messages call it.
    const NAME: &'static str;

    /// True if 1 and 1.0 are different values.
    const NUMBERS_HAVE_TYPES: bool = false;

    /// True if an existing key without a value is an object that has no members yet.
    const NULL_IS_EMPTY: bool = false;

    /// What a value must not contain, as in "must not contain null".
    fn check(_value: &Value) -> Result<(), &'static str> {
        Ok(())
    }

    /// The value of a text that is not empty, or why it has none.
    fn parse(text: &str) -> Result<Value, String>;

    /// The text with another value, which is not there or differs, at the steps from the root; `None` where it cannot be
    /// edited. Objects on the way that do not exist are created.
    fn put(text: &str, steps: &[Cow<'_, str>], value: &Value) -> Option<String>;

    /// The text without what is at the steps from the root, which is there; `None` where it cannot be edited.
    fn remove(text: &str, steps: &[Cow<'_, str>]) -> Option<String>;
}

/// One value of a structured file. Many instances may share a file. Comments, order and spacing of the rest stay as
/// they are; what cannot be edited without another value changing as well is refused.
#[resource(
    "Stead/Json",
    about = "A value in a JSON file, with comments or without.",
    tags("file", "json", "text", "linux"),
    example = "json.yaml",
    state
)]
struct Properties<'a> {
    /// Where the file is. A relative path starts at the directory of the document, or at the system root that was given.
    #[property(key, place)]
    path: FilePath<'a>,
    /// Which value, as a JSON Pointer: '/a/0' is the first element of the array 'a'. '~1' stands for '/' in a name, and '~0'
    /// for '~'. Objects on the way that do not exist are created.
    #[property(key)]
    pointer: Pointer<'a>,
    /// The value. Required unless '_exist' is false.
    #[property(required)]
    value: Option<AnyValue>,
    /// Whether the file is created, with mode 0644, when it is not there; with 0600 where the properties hold a secret.
    #[property(option)]
    create: bool,
    /// A command that must accept the whole file as it is to be before it is in place, such as 'nginx -t -c %s': words without a shell, with %s
    /// where the path of that goes, which is a file of the same name that only this user can read. If it ends with another
    /// exit code than 0, the file stays as it is. It is run where something is changed, not for a plan, and is a program of the
    /// running system.
    #[property(option, removal)]
    validate: Option<Guard<'a>>,
    /// Whether the value exists.
    exist: bool,
}

/// `Stead/Json`, `Stead/Toml` and `Stead/Yaml` as they are registered.
pub(crate) fn built_ins(locks: &FileLocks) -> [Option<BuiltIn>; 3] {
    [built_in::<json::Format>(locks), built_in::<toml::Format>(locks), built_in::<yaml::Format>(locks)]
}

fn built_in<F: Format>(locks: &FileLocks) -> Option<BuiltIn> {
    Of::<'_, F>::built_in(Arc::new(Parts::<Key<F>>::new(locks)))
}

const JSON: Profile = Properties::PROFILE;

const TOML: Profile = Profile {
    type_name: "Stead/Toml",
    description: "A value in a TOML file.",
    example: include_str!("toml.yaml"),
    tags: &["file", "toml", "text", "linux"],
    schema: || titled("Stead/Toml"),
    ..JSON
};

const YAML: Profile = Profile {
    type_name: "Stead/Yaml",
    description: "A value in a YAML file.",
    example: include_str!("yaml.yaml"),
    tags: &["file", "yaml", "text", "linux"],
    schema: || titled("Stead/Yaml"),
    ..JSON
};

fn titled(type_name: &str) -> Json {
    let mut schema = schema::of::<Properties<'_>>();
    if let Some(title) = schema.get_mut("title") {
        *title = type_name.into();
    }
    schema
}

struct Key<F>(PhantomData<fn() -> F>);

impl<F: Format> Part for Key<F> {
    type Stated<'a> = Of<'a, F>;
    const NOUN: &'static str = "value";
    const HAS_LINES: bool = false;

    fn key(stated: &Value) -> Option<String> {
        let pointer = stated.get(Properties::POINTER).and_then(Value::as_str)?;
        Some(pointer.replace('/', Extent::WITHIN.encode_utf8(&mut [0; 4])))
    }
}

/// Returns whether two instances agree, of which one manages a part of the value that the other manages in the same
/// file.
pub fn agree_on_part(one: &Value, other: &Value) -> bool {
    let pointer = |stated: &Value| stated.get(Properties::POINTER).and_then(Value::as_str).unwrap_or_default().len();
    let (outer, inner) = if pointer(one) < pointer(other) { (one, other) } else { (other, one) };
    says(outer, inner).unwrap_or(false)
}

/// Returns whether the value of the outer instance has the value of the inner one at its pointer; `None` if the
/// pointers do not nest.
fn says(outer: &Value, inner: &Value) -> Option<bool> {
    let pointer = |stated: &Value| Some(stated.get(Properties::POINTER)?.as_str()?.to_owned());
    let exists = |stated: &Value| stated.get(Properties::EXIST) != Some(&Value::Bool(false));
    let below = pointer(inner)?.strip_prefix(&pointer(outer)?)?.to_owned();
    let value = outer.get(Properties::VALUE).filter(|_| exists(outer));
    let found = value.and_then(|value| pointer::steps(&below).try_fold(value, |value, step| member(value, &step)));
    Some(found == inner.get(Properties::VALUE).filter(|_| exists(inner)))
}

/// Properties of a value in a file of this format.
#[derive(Deserialize)]
#[serde(transparent, bound(deserialize = "'de: 'a"))]
struct Of<'a, F> {
    #[serde(borrow)]
    stated: Properties<'a>,
    #[serde(skip)]
    format: PhantomData<fn() -> F>,
}

impl<F: Format> Declared for Of<'_, F> {
    const PROFILE: Profile = F::PROFILE;
    const KEYS: &'static [&'static str] = Properties::KEYS;
    const IDENTITY: &'static [&'static str] = Properties::IDENTITY;
    const PLACE: Option<&'static str> = Properties::PLACE;
    const TELLS: &'static [Tells] = Properties::TELLS;
    const REMOVAL: &'static [&'static str] = Properties::REMOVAL;
    const PRINTED: Option<&'static str> = Properties::PRINTED;
    const SHOWN: &'static [&'static str] = Properties::SHOWN;
    const SECRETS: &'static [(&'static str, SecretForm)] = Properties::SECRETS;

    fn exists(&self) -> bool {
        self.stated.exists()
    }

    fn related(&self) -> Result<(), Failure> {
        self.stated.related()
    }
}

impl<F: Format> States for Of<'_, F> {
    fn identified(&self) -> Object {
        self.stated.identified()
    }

    fn stated(&self) -> Object {
        self.stated.stated()
    }
}

impl<'a, F: Format> crate::input::Properties<'a> for Of<'a, F> {
    fn check(&self) -> Result<(), Failure> {
        let Some(AnyValue(value)) = &self.stated.value else { return Ok(()) };
        F::check(value).map_err(|what| invalid(Properties::VALUE, format!("'value' {what}")))?;
        // Those that are not there yet become names of the file as well.
        let names = self.steps().into_iter().map(|step| (step.into_owned(), Value::from(true)));
        let names = Value::Object(names.collect());
        F::check(&names).map_err(|what| invalid(Properties::POINTER, format!("'pointer' {what}")))
    }
}

impl<'a, F: Format> Stated<'a> for Of<'a, F> {
    fn guard(&self) -> Option<Guard<'a>> {
        self.stated.validate
    }

    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure> {
        Ok(Location::stated(cx, self.stated.path.0.0, Missing::create_if(self.stated.create)))
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        let root = parse::<F>(text)?;
        let found = self.steps().iter().try_fold(&root, |value, step| member(value, step));
        let stated = self.stated.value.as_ref().map(|AnyValue(value)| value);
        let alike = |found: &&Value| stated.filter(|stated| !F::NUMBERS_HAVE_TYPES && is_alike(stated, found));
        Ok(found.map(|found| [(Properties::VALUE.to_owned(), alike(&found).unwrap_or(found).clone())].into()))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        let Some(AnyValue(value)) = &self.stated.value else { return Ok(text.to_owned()) };
        let (mut expected, steps) = (parse::<F>(text)?, self.steps());
        put_at::<F>(&mut expected, &steps, value)?;
        checked::<F>(F::put(text, &steps, value), &expected)
    }

    fn remove(&self, text: &str) -> Result<String, Failure> {
        let (mut expected, steps) = (parse::<F>(text)?, self.steps());
        remove_at(&mut expected, &steps)?;
        checked::<F>(F::remove(text, &steps), &expected)
    }
}

impl<F> Of<'_, F> {
    fn steps(&self) -> Vec<Cow<'_, str>> {
        pointer::steps(self.stated.pointer.0).collect()
    }
}

/// Returns whether two values are equal when 1 and 1.0 are one number.
fn is_alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.is_f64() != other.is_f64() && one.as_f64() == other.as_f64()
        }
        (Value::Array(ones), Value::Array(others)) => {
            ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| is_alike(one, other))
        }
        (Value::Object(ones), Value::Object(others)) => {
            let is_in_others =
                |(name, one): (&String, &Value)| others.get(name).is_some_and(|other| is_alike(one, other));
            ones.len() == others.len() && ones.iter().all(is_in_others)
        }
        (one, other) => one == other,
    }
}

/// The value of a text; an empty one is an empty object.
fn parse<F: Format>(text: &str) -> Result<Value, Failure> {
    if text.trim().is_empty() {
        return Ok(Object::new().into());
    }
    F::parse(text).map_err(|reason| blocked(Properties::PATH, format!("the file is not valid {}: {reason}", F::NAME)))
}

/// An edited text, if it has exactly the value that it should have, everything beside the edited part included.
fn checked<F: Format>(edited: Option<String>, expected: &Value) -> Result<String, Failure> {
    let is_exact = |edited: &String| parse::<F>(edited).is_ok_and(|value| value == *expected);
    edited.filter(is_exact).ok_or_else(|| {
        let hint = "Edit it by hand once, or manage the whole file with Stead/File";
        blocked(
            Properties::POINTER,
            format!("the value cannot be changed by itself in the form in which the file has it. {hint}"),
        )
    })
}

fn member<'v>(value: &'v Value, step: &str) -> Option<&'v Value> {
    match value {
        Value::Array(items) => items.get(index(step)?),
        value => value.get(step),
    }
}

/// The index that a step of a pointer into an array names.
fn index(step: &str) -> Option<usize> {
    let canonical = step == "0" || !step.starts_with(['0', '+']);
    step.parse().ok().filter(|_| canonical)
}

fn put_at<F: Format>(root: &mut Value, steps: &[Cow<'_, str>], value: &Value) -> Result<(), Failure> {
    let Some((step, rest)) = steps.split_first() else {
        *root = value.clone();
        return Ok(());
    };
    if F::NULL_IS_EMPTY && *root == Value::Null {
        *root = Object::new().into();
    }
    match root {
        Value::Object(members) => {
            if !members.contains_key(step) {
                members.insert(step.to_string(), Object::new().into());
            }
            members.get_mut(step).map_or(Ok(()), |member| put_at::<F>(member, rest, value))
        }
        Value::Array(items) => {
            let at = index(step).filter(|at| *at <= items.len());
            let length = items.len();
            let at = at.ok_or_else(|| no_way(step, &format!("is not an index of an array of {length}")))?;
            if at == length {
                items.push(Object::new().into());
            }
            items.get_mut(at).map_or(Ok(()), |item| put_at::<F>(item, rest, value))
        }
        other => Err(no_way(step, &format!("is below a value that is {}", other.described()))),
    }
}

fn no_way(step: &str, why: &str) -> Failure {
    blocked(Properties::POINTER, format!("'{step}' {why}"))
}

fn remove_at(root: &mut Value, steps: &[Cow<'_, str>]) -> Result<(), Failure> {
    let Some((step, rest)) = steps.split_first() else { return Ok(()) };
    match root {
        Value::Object(members) if rest.is_empty() => _ = members.remove(step),
        Value::Array(items) if rest.is_empty() => {
            // Another one would take its place, so that it is never gone.
            if index(step).is_none_or(|at| at + 1 != items.len()) {
                let hint = "Only the last one can be removed; state the whole array instead";
                return Err(no_way(step, &format!("is not the last element of the array. {hint}")));
            }
            items.pop();
        }
        Value::Object(members) => return members.get_mut(step).map_or(Ok(()), |member| remove_at(member, rest)),
        Value::Array(items) => {
            let item = index(step).and_then(|at| items.get_mut(at));
            return item.map_or(Ok(()), |item| remove_at(item, rest));
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_into_an_array_is_a_plain_number() {
        assert_eq!(
            ["0", "12", "012", "+1", "-1", "-", "x"].map(index),
            [Some(0), Some(12), None, None, None, None, None]
        );
    }
}
