//! Arrays, and what works on arrays, objects and strings alike.

use std::collections::BTreeSet;

use super::super::builtin::{Arguments, BuiltinResult, Wrong};
use super::logic::{identity, same};
use super::text::to_text;
use crate::value::{Object, Value};

/// The most elements that `range` makes, and the largest integer in it; both as in DSC v3.
const RANGE_COUNT: i64 = 10_000;
const RANGE_END: i64 = 2_147_483_647;

pub(super) fn array(mut arguments: Arguments) -> Value {
    Value::Array(vec![arguments.any()])
}

pub(super) fn create(arguments: Arguments) -> Value {
    Value::Array(arguments.collect())
}

pub(super) fn range(mut arguments: Arguments) -> BuiltinResult {
    let (start, count) = (arguments.integer()?, arguments.integer()?);
    if count < 0 {
        return Err(Wrong::value(1, "Count must not be negative"));
    }
    if count > RANGE_COUNT {
        return Err(Wrong::value(1, format!("Count must not exceed {RANGE_COUNT}")));
    }
    match start.checked_add(count) {
        Some(end) if end <= RANGE_END => Ok(Value::Array((start..end).map(Value::from).collect())),
        _ => Err(Wrong::value(0, format!("Sum of startIndex and count must not exceed {RANGE_END}"))),
    }
}

pub(super) fn try_index_from_end(mut arguments: Arguments) -> BuiltinResult {
    let (mut items, position) = (arguments.array()?, arguments.integer()?);
    let index = usize::try_from(position).ok().filter(|position| *position > 0);
    let index = index.and_then(|position| items.len().checked_sub(position));
    Ok(index.map_or(Value::Null, |index| items.remove(index)))
}

pub(super) fn try_get(mut arguments: Arguments) -> BuiltinResult {
    match (arguments.any(), arguments.any()) {
        (Value::Array(mut items), Value::Number(index)) => {
            let index = index.as_i64().ok_or_else(|| Wrong::kind(1, "Invalid index type: it must be an integer"))?;
            let index = usize::try_from(index).ok().filter(|index| *index < items.len());
            Ok(index.map_or(Value::Null, |index| items.remove(index)))
        }
        (Value::Object(mut members), Value::String(key)) => Ok(members.remove(&key).unwrap_or_default()),
        (Value::Array(_), _) => Err(Wrong::kind(1, "Invalid index type: an array is indexed with an integer")),
        _ => Err(Wrong::kind(1, "Invalid key type: an object is indexed with a string")),
    }
}

pub(super) fn intersection(arguments: Arguments) -> BuiltinResult {
    match alike(arguments)? {
        Alike::Arrays(first, others) => {
            let others: Vec<BTreeSet<String>> =
                others.iter().map(|other| other.iter().map(identity).collect()).collect();
            let is_shared = |item: &Value| {
                let identity = identity(item);
                others.iter().all(|other| other.contains(&identity))
            };
            Ok(Value::Array(distinct(first.into_iter().filter(is_shared))))
        }
        Alike::Objects(mut first, others) => {
            first.retain(|key, value| {
                others.iter().all(|other| other.get(key).is_some_and(|theirs| same(theirs, value)))
            });
            Ok(Value::Object(first))
        }
        Alike::Strings(..) => Err(not_alike()),
    }
}

pub(super) fn union(arguments: Arguments) -> BuiltinResult {
    match alike(arguments)? {
        Alike::Arrays(first, others) => {
            Ok(Value::Array(distinct(first.into_iter().chain(others.into_iter().flatten()))))
        }
        Alike::Objects(mut first, others) => {
            first.extend(others.into_iter().flatten());
            Ok(Value::Object(first))
        }
        Alike::Strings(..) => Err(not_alike()),
    }
}

pub(super) fn concat(arguments: Arguments) -> BuiltinResult {
    match alike(arguments)? {
        Alike::Arrays(mut first, others) => {
            first.extend(others.into_iter().flatten());
            Ok(Value::Array(first))
        }
        Alike::Strings(mut first, others) => {
            first.reserve(others.iter().map(String::len).sum());
            first.extend(others);
            Ok(first.into())
        }
        Alike::Objects(..) => Err(not_alike()),
    }
}

/// Arguments of one kind: the first, and the others.
enum Alike {
    Arrays(Vec<Value>, Vec<Vec<Value>>),
    Objects(Object, Vec<Object>),
    Strings(String, Vec<String>),
}

fn alike(mut arguments: Arguments) -> Result<Alike, Wrong> {
    match arguments.any() {
        Value::Array(first) => {
            let mut others = Vec::with_capacity(arguments.left());
            for other in arguments {
                let Value::Array(other) = other else { return Err(not_alike()) };
                others.push(other);
            }
            Ok(Alike::Arrays(first, others))
        }
        Value::Object(first) => {
            let mut others = Vec::with_capacity(arguments.left());
            for other in arguments {
                let Value::Object(other) = other else { return Err(not_alike()) };
                others.push(other);
            }
            Ok(Alike::Objects(first, others))
        }
        Value::String(first) => {
            let mut others = Vec::with_capacity(arguments.left());
            for other in arguments {
                let Value::String(other) = other else { return Err(not_alike()) };
                others.push(other);
            }
            Ok(Alike::Strings(first, others))
        }
        _ => Err(not_alike()),
    }
}

fn not_alike() -> Wrong {
    Wrong { argument: None, ..Wrong::kind(0, "All arguments must be of the same type") }
}

/// Each once, where it was first.
pub(super) fn distinct(items: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    items.filter(|item| seen.insert(identity(item))).collect()
}

pub(super) fn contains(mut arguments: Arguments) -> BuiltinResult {
    let (container, item) = (arguments.any(), arguments.any());
    if let Value::Array(items) = &container {
        return Ok(items.iter().any(|each| same(each, &item)).into());
    }
    let item = to_text(&item)?;
    Ok(match container {
        Value::Object(members) => members.contains_key(&item),
        Value::String(text) => text.contains(&item),
        _ => false,
    }
    .into())
}

pub(super) fn empty(mut arguments: Arguments) -> Value {
    (size(&arguments.any()) == 0).into()
}

pub(super) fn length(mut arguments: Arguments) -> BuiltinResult {
    let size = size(&arguments.any());
    i64::try_from(size).map(Value::from).map_err(|_| Wrong::limit())
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        Value::String(text) => text.chars().count(),
        _ => 0,
    }
}

pub(super) fn first(mut arguments: Arguments) -> BuiltinResult {
    match arguments.any() {
        Value::Array(items) => {
            items.into_iter().next().ok_or_else(|| Wrong::value(0, "Cannot get first element of empty array"))
        }
        Value::String(text) => match text.chars().next() {
            Some(first) => Ok(first.to_string().into()),
            None => Err(Wrong::value(0, "Cannot get first character of empty string")),
        },
        _ => Ok(Value::Null),
    }
}

/// Unlike `first`, an empty value has a last element: null, or an empty string.
pub(super) fn last(mut arguments: Arguments) -> Value {
    match arguments.any() {
        Value::Array(mut items) => items.pop().unwrap_or_default(),
        Value::String(text) => text.chars().next_back().map(String::from).unwrap_or_default().into(),
        _ => Value::Null,
    }
}

pub(super) fn index_of(arguments: Arguments) -> BuiltinResult {
    index(arguments, |items, item| items.iter().position(|each| same(each, item)))
}

pub(super) fn last_index_of(arguments: Arguments) -> BuiltinResult {
    index(arguments, |items, item| items.iter().rposition(|each| same(each, item)))
}

fn index(mut arguments: Arguments, find: fn(&[Value], &Value) -> Option<usize>) -> BuiltinResult {
    let (items, item) = (arguments.array()?, arguments.any());
    let index = find(&items, &item).and_then(|index| i64::try_from(index).ok());
    Ok(index.unwrap_or(-1).into())
}

pub(super) fn skip(arguments: Arguments) -> BuiltinResult {
    part(arguments, |items, count| items.skip(count).collect(), |text, count| text.chars().skip(count).collect())
}

pub(super) fn take(arguments: Arguments) -> BuiltinResult {
    part(arguments, |items, count| items.take(count).collect(), |text, count| text.chars().take(count).collect())
}

fn part(
    mut arguments: Arguments,
    of_array: fn(std::vec::IntoIter<Value>, usize) -> Vec<Value>,
    of_text: fn(&str, usize) -> String,
) -> BuiltinResult {
    let (whole, count) = (arguments.any(), arguments.integer()?);
    // A negative count is none; one that exceeds every length is all.
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    match whole {
        Value::Array(items) => Ok(Value::Array(of_array(items.into_iter(), count))),
        Value::String(text) => Ok(of_text(&text, count).into()),
        _ => Ok(Value::Null),
    }
}
