//! Where in its loops an instance is.

use std::sync::Arc;

use crate::value::Value;

/// One iteration of a `copy` loop.
#[derive(Clone, PartialEq, Debug)]
pub struct Iteration {
    /// The name of the loop.
    pub name: Arc<str>,
    /// From 0.
    pub index: i64,
    /// What it is for, in a loop over items.
    pub item: Option<LoopItem>,
    /// That of the loop around.
    pub outer: Option<Arc<Iteration>>,
}

/// The item of an iteration.
#[derive(Clone, PartialEq, Debug)]
pub struct LoopItem {
    /// What expressions call it.
    pub called: Arc<str>,
    /// Its value; `None` while it is not known.
    pub value: Option<Arc<Value>>,
}

impl Iteration {
    /// This iteration and those around it, from the inside out.
    pub fn outward(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |iteration| iteration.outer.as_deref())
    }

    /// Returns whether it is the first of its loop, and of those around it.
    pub fn is_first(&self) -> bool {
        self.outward().all(|iteration| iteration.index == 0)
    }

    /// Returns whether it has an item that is not known yet.
    pub fn is_open(&self) -> bool {
        self.item.as_ref().is_some_and(|item| item.value.is_none())
    }

    /// The part of a name that tells it from the others of its loop: a text or number itself, of an object its `name` or `key`,
    /// else the index.
    pub fn key(&self) -> String {
        let text = |value: &Value| match value {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let value = self.item.as_ref().and_then(|item| item.value.as_deref());
        let key = value.and_then(|value| {
            text(value).or_else(|| ["name", "key"].into_iter().find_map(|member| text(value.get(member)?)))
        });
        key.unwrap_or_else(|| self.index.to_string())
    }
}
