//! JSON, with the comments and trailing commas that many programs accept.

use std::borrow::Cow;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObjectProp, CstRootNode};
use stead_core::value::Value;

use super::index;

pub(super) struct Format;

impl super::Format for Format {
    const PROFILE: super::Profile = super::JSON;
    const NAME: &'static str = "JSON";

    fn parse(text: &str) -> Result<Value, String> {
        let root = read(text).map_err(|error| error.to_string())?;
        root.to_serde_value().map(Value::from).ok_or_else(|| "it has no value".to_owned())
    }

    fn put(text: &str, steps: &[Cow<'_, str>], value: &Value) -> Option<String> {
        let root = read(if text.trim().is_empty() { "{}\n" } else { text }).ok()?;
        put_at(&root.value()?, steps, input(value))?;
        Some(root.to_string())
    }

    fn remove(text: &str, steps: &[Cow<'_, str>]) -> Option<String> {
        let root = read(text).ok()?;
        let (last, above) = steps.split_last()?;
        let container = above.iter().try_fold(root.value()?, |node, step| child(&node, step)?.value())?;
        match child(&container, last)? {
            Child::Member(member) => member.remove(),
            Child::Item(item) => item.remove(),
        }
        Some(root.to_string())
    }
}

fn read(text: &str) -> Result<CstRootNode, jsonc_parser::errors::ParseError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options)
}

/// What is below an object or an array.
enum Child {
    Member(CstObjectProp),
    Item(CstNode),
}

impl Child {
    fn value(self) -> Option<CstNode> {
        match self {
            Self::Member(member) => member.value(),
            Self::Item(item) => Some(item),
        }
    }
}

fn child(node: &CstNode, step: &str) -> Option<Child> {
    match node.as_object() {
        Some(object) => object.get(step).map(Child::Member),
        None => node.as_array()?.elements().into_iter().nth(index(step)?).map(Child::Item),
    }
}

fn put_at(node: &CstNode, steps: &[Cow<'_, str>], value: CstInputValue) -> Option<()> {
    let (step, rest) = steps.split_first()?;
    match child(node, step) {
        Some(child) if !rest.is_empty() => return put_at(&child.value()?, rest, value),
        Some(Child::Member(member)) => member.set_value(value),
        Some(Child::Item(item)) => _ = replace(&item, value),
        None => {
            let wrap = |value, step: &Cow<'_, str>| CstInputValue::Object(vec![(step.to_string(), value)]);
            let value = rest.iter().rev().fold(value, wrap);
            match node.as_object() {
                Some(object) => _ = object.append(step, value),
                None => _ = node.as_array()?.append(value),
            }
        }
    }
    Some(())
}

fn replace(item: &CstNode, value: CstInputValue) -> Option<CstNode> {
    if let Some(object) = item.as_object() {
        return object.replace_with(value);
    }
    if let Some(array) = item.as_array() {
        return array.replace_with(value);
    }
    match (item.as_string_lit(), item.as_number_lit(), item.as_boolean_lit()) {
        (Some(text), _, _) => text.replace_with(value),
        (_, Some(number), _) => number.replace_with(value),
        (_, _, Some(truth)) => truth.replace_with(value),
        _ => item.as_null_keyword()?.replace_with(value),
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(truth) => CstInputValue::Bool(*truth),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.to_owned(), input(value))).collect())
        }
        // What a resource is given holds none.
        Value::Sealed(_) => CstInputValue::String(stead_core::value::REDACTED.to_owned()),
    }
}
