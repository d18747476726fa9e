//! Exports: which instances a filter keeps, and text that must not turn into expressions in a document.

use crate::diff::{Case, Rules, contains};
use crate::value::{Object, Value};

/// Which instances are wanted: any that fit one of the patterns.
///
/// A pattern is an object; all its members must fit. Text fits without regard to case, `*` stands for any text.
/// Objects fit in part. Of an array of objects only the elements that fit are kept, and at least one must fit.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::export::ExportFilter;
/// use stead_core::value::Value;
///
/// let filter = ExportFilter::parse(&json!([{ "name": "ssh*" }, { "enabled": false }]).into())?;
/// let kept = |service: serde_json::Value| filter.apply(&Value::from(service)).is_some();
/// assert!(kept(json!({ "name": "SSHD", "enabled": true })));
/// assert!(kept(json!({ "name": "cron", "enabled": false })));
/// assert!(!kept(json!({ "name": "cron", "enabled": true })));
/// # Ok::<(), stead_core::export::InvalidFilter>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct ExportFilter {
    patterns: Vec<Object>,
}

/// A filter that is neither an object nor an array of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("Export filter input must be a JSON object or an array of JSON objects")]
pub struct InvalidFilter;

impl ExportFilter {
    /// Reads a filter; null keeps everything.
    pub fn parse(value: &Value) -> Result<Self, InvalidFilter> {
        let patterns = match value {
            Value::Null => vec![Object::new()],
            Value::Object(pattern) => vec![pattern.clone()],
            Value::Array(patterns) => {
                let patterns = patterns.iter().map(|each| each.as_object().cloned().ok_or(InvalidFilter));
                patterns.collect::<Result<_, _>>()?
            }
            _ => return Err(InvalidFilter),
        };
        Ok(Self { patterns })
    }

    /// Returns whether nothing fits, since there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The instance as far as it fits, or nothing when it does not.
    pub fn apply(&self, instance: &Value) -> Option<Value> {
        let members = instance.as_object()?;
        self.patterns.iter().find_map(|pattern| kept_members(pattern, members)).map(Value::Object)
    }
}

fn kept_members(pattern: &Object, members: &Object) -> Option<Object> {
    let mut kept = members.clone();
    for (name, wanted) in pattern {
        let value = kept_value(wanted, members.get(name)?)?;
        kept.insert(name.clone(), value);
    }
    Some(kept)
}

fn kept_value(wanted: &Value, actual: &Value) -> Option<Value> {
    match (wanted, actual) {
        (Value::Object(pattern), Value::Object(members)) => kept_members(pattern, members).map(Value::Object),
        (Value::Object(_), Value::Array(items)) => kept_elements(std::slice::from_ref(wanted), items),
        (Value::Array(patterns), Value::Array(items)) if patterns.iter().any(|each| each.as_object().is_some()) => {
            kept_elements(patterns, items)
        }
        (Value::Array(wanted), Value::Array(items)) => {
            let held = |each: &Value| items.iter().any(|item| kept_value(each, item).is_some());
            wanted.iter().all(held).then(|| actual.clone())
        }
        (Value::String(pattern), Value::String(text)) => text_fits(pattern, text).then(|| actual.clone()),
        _ => {
            let rules = Rules { case: Case::Ignored, schema: None };
            contains(actual, wanted, &rules).then(|| actual.clone())
        }
    }
}

fn kept_elements(patterns: &[Value], items: &[Value]) -> Option<Value> {
    let fit = |item: &Value| patterns.iter().find_map(|pattern| kept_value(pattern, item));
    let kept: Vec<Value> = items.iter().filter_map(fit).collect();
    (!kept.is_empty()).then_some(Value::Array(kept))
}

/// Returns whether text fits a pattern in which `*` stands for any text, without regard to case.
///
/// The text between two stars is looked for as early as possible; taking it later never helps.
fn text_fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in between.split('*') {
        let Some((_, behind)) = text.split_once(part) else { return false };
        text = behind;
    }
    text.ends_with(last)
}

/// The value with one more `[` in front of every text that starts with one, so that a document reads it as that text.
///
/// # Examples
/// ```
/// use stead_core::export::{escaped, unescaped};
/// use stead_core::expr::is_expression;
/// use stead_core::value::Value;
///
/// let actual = Value::from("[Unit]\nDescription=web\n");
/// let written = escaped(actual.clone());
/// assert!(!is_expression(written.as_str().unwrap_or_default()));
/// assert_eq!(unescaped(written), actual);
/// ```
#[must_use]
pub fn escaped(value: Value) -> Value {
    in_texts(value, &|text| if text.starts_with('[') { format!("[{text}") } else { text })
}

/// The value that was [`escaped`].
#[must_use]
pub fn unescaped(value: Value) -> Value {
    in_texts(value, &|text| match text.strip_prefix('[') {
        Some(rest) if rest.starts_with('[') => rest.to_owned(),
        _ => text,
    })
}

fn in_texts(value: Value, change: &dyn Fn(String) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| in_texts(item, change)).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, value)| (name, in_texts(value, change))).collect())
        }
        other => other,
    }
}
