//! TOML.

use std::borrow::Cow;

use serde_json::Number;
use stead_core::value::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, value as item};

use super::index;
use crate::part::lines::with_endings;

pub(super) struct Format;

impl super::Format for Format {
    const PROFILE: super::Profile = super::TOML;
    const NAME: &'static str = "TOML";
    const NUMBERS_HAVE_TYPES: bool = true;

    fn check(value: &Value) -> Result<(), &'static str> {
        if to_value(value).is_some() { Ok(()) } else { Err("must not contain null or a number beyond 64 bits") }
    }

    fn parse(text: &str) -> Result<Value, String> {
        let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| reason(&error))?;
        Ok(of_table(document.as_table()))
    }

    fn put(text: &str, steps: &[Cow<'_, str>], value: &Value) -> Option<String> {
        let mut document: DocumentMut = text.parse().ok()?;
        put_at(document.as_item_mut(), steps, value)?;
        Some(with_endings(text, &document.to_string()))
    }

    fn remove(text: &str, steps: &[Cow<'_, str>]) -> Option<String> {
        let mut document: DocumentMut = text.parse().ok()?;
        let (last, above) = steps.split_last()?;
        let container = above.iter().try_fold(document.as_item_mut(), |container, step| child(container, step))?;
        if let Some(array) = container.as_array_mut() {
            array.remove(index(last)?);
        } else if let Some(tables) = container.as_array_of_tables_mut() {
            tables.remove(index(last)?);
        } else {
            container.as_table_like_mut()?.remove(last)?;
        }
        Some(with_endings(text, &document.to_string()))
    }
}

/// The message of the parser without its picture of the text, which may hold secrets.
fn reason(error: &toml_edit::TomlError) -> String {
    error.message().lines().next().unwrap_or_default().to_owned()
}

fn child<'t>(container: &'t mut Item, step: &str) -> Option<&'t mut Item> {
    if container.is_array_of_tables() || container.is_array() {
        return container.get_mut(index(step)?);
    }
    container.as_table_like_mut()?.get_mut(step)
}

fn put_at(container: &mut Item, steps: &[Cow<'_, str>], value: &Value) -> Option<()> {
    let (step, rest) = steps.split_first()?;
    if let Some(array) = container.as_array_mut() {
        return put_in_array(array, index(step)?, rest, value);
    }
    if container.is_array_of_tables() {
        let at = index(step)?;
        return if rest.is_empty() { None } else { put_at(container.get_mut(at)?, rest, value) };
    }
    let in_line = container.is_inline_table();
    let table = container.as_table_like_mut()?;
    if rest.is_empty() {
        put_member(table, step, value, in_line)?;
        container.as_inline_table_mut().map(InlineTable::fmt);
        return Some(());
    }
    if !table.contains_key(step) {
        let mut new = Table::new();
        new.set_implicit(rest.len() > 1);
        table.insert(step, if in_line { item(InlineTable::new()) } else { Item::Table(new) });
    }
    put_at(table.get_mut(step)?, rest, value)
}

/// Puts a value into an array: arrays and tables within a line hold no tables of more lines.
fn put_in_array(array: &mut Array, at: usize, rest: &[Cow<'_, str>], value: &Value) -> Option<()> {
    if !rest.is_empty() {
        let mut inner = Item::Value(array.get(at)?.clone());
        put_at(&mut inner, rest, value)?;
        array.replace(at, inner.into_value().ok()?);
    } else if at < array.len() {
        array.replace(at, to_value(value)?);
    } else {
        array.push(to_value(value)?);
    }
    Some(())
}

fn put_member(table: &mut dyn TableLike, name: &str, value: &Value, in_line: bool) -> Option<()> {
    let mut new = to_value(value)?;
    if let Some(old) = table.get(name).and_then(Item::as_value) {
        *new.decor_mut() = old.decor().clone();
        *table.get_mut(name)? = Item::Value(new);
        return Some(());
    }
    let block = value.as_object().filter(|_| !in_line).map(to_table);
    let new = match block {
        Some(table) => Item::Table(table?),
        None => Item::Value(new),
    };
    match table.get_mut(name) {
        Some(old) => *old = new,
        None => _ = table.insert(name, new),
    }
    Some(())
}

fn to_table(members: &stead_core::value::Object) -> Option<Table> {
    members.iter().map(|(name, value)| Some((name.to_owned(), Item::Value(to_value(value)?)))).collect()
}

/// `None` where TOML has no such value.
fn to_value(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null | Value::Sealed(_) => return None,
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().filter(|_| number.is_f64())?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => toml_edit::Value::Array(items.iter().map(to_value).collect::<Option<Array>>()?),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| Some((name.as_str(), to_value(value)?)));
            toml_edit::Value::InlineTable(members.collect::<Option<InlineTable>>()?)
        }
    })
}

fn of_table(table: &dyn TableLike) -> Value {
    let members = table.iter().filter_map(|(name, item)| Some((name.to_owned(), of_item(item)?)));
    Value::Object(members.collect())
}

fn of_item(item: &Item) -> Option<Value> {
    match item {
        Item::None => None,
        Item::Value(value) => Some(of_value(value)),
        Item::Table(table) => Some(of_table(table)),
        Item::ArrayOfTables(tables) => Some(Value::Array(tables.iter().map(|table| of_table(table)).collect())),
    }
}

fn of_value(value: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => Value::from(text.value().as_str()),
        Toml::Integer(number) => Value::from(*number.value()),
        Toml::Float(number) => {
            Number::from_f64(*number.value()).map_or_else(|| Value::from(number.value().to_string()), Value::Number)
        }
        Toml::Boolean(truth) => Value::from(*truth.value()),
        Toml::Datetime(time) => Value::from(time.value().to_string()),
        Toml::Array(items) => Value::Array(items.iter().map(of_value).collect()),
        Toml::InlineTable(table) => of_table(table),
    }
}
