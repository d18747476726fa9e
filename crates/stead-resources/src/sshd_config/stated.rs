//! What an instance states of keywords: values of JSON, and the lines that they come to.

use std::borrow::Cow;
use std::sync::OnceLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use stead_core::call::Failure;
use stead_core::value::{Object, Value, pointer};

use super::keyword::{Form, accumulates, form, is_list, known_as, spelled};
use super::reading::{Files, Section, arguments, meant};
use crate::input::{AnyValue, has_fraction, invalid};

/// Keywords with their values, in the order in which they are stated.
pub(super) struct Keywords(pub(super) Vec<(String, Value)>);

/// The properties beside the keywords.
pub(super) const OWN: &[&str] =
    &["path", "_metadata", "create", "validate", "_purge", "_clobber", "_includeDefaults", "match"];

/// The name of a keyword, as a JSON Schema says it.
const NAME: &str = "^[A-Za-z][A-Za-z0-9]*$";

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(|each| each.is_ascii_alphanumeric())
}

impl<'de> Deserialize<'de> for Keywords {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Keywords;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Keywords, A::Error> {
                let mut all = Vec::new();
                while let Some((name, AnyValue(value))) = members.next_entry::<String, AnyValue>()? {
                    if !is_name(&name) {
                        return Err(de::Error::unknown_field(&name, OWN));
                    }
                    all.push((name, value));
                }
                Ok(Keywords(all))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// Such names, and those of the other properties that begin with a sign.
const NAME_OR_OWN: &str = "^(_metadata|_purge|_clobber|_includeDefaults|[A-Za-z][A-Za-z0-9]*)$";

/// A value, or several.
fn value_schema() -> serde_json::Value {
    let one = serde_json::json!({ "type": ["string", "integer", "boolean"] });
    let named = serde_json::json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "value": { "type": "string" } },
        "required": ["name", "value"],
        "additionalProperties": false,
    });
    let extending = serde_json::json!({
        "type": "object",
        "properties": {
            "operator": { "enum": ["+", "-", "^"] },
            "value": { "anyOf": [one, { "type": "array", "minItems": 1, "items": one }] },
        },
        "required": ["operator", "value"],
        "additionalProperties": false,
    });
    let list = serde_json::json!({ "type": "array", "minItems": 1, "items": { "anyOf": [one, named] } });
    let one = serde_json::json!({ "type": ["string", "integer", "boolean", "null"] });
    serde_json::json!({ "anyOf": [one, list, named, extending] })
}

impl JsonSchema for Keywords {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Keywords".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "propertyNames": { "pattern": NAME_OR_OWN },
            "additionalProperties": value_schema(),
        })
    }
}

/// The keywords of an instance, and what is read with its file once that is known.
pub(super) struct Settings {
    pub(super) keywords: Keywords,
    pub(super) files: OnceLock<Files>,
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { keywords: Keywords::deserialize(deserializer)?, files: OnceLock::new() })
    }
}

impl JsonSchema for Settings {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Settings".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Keywords::json_schema(generator)
    }
}

/// A `Match`: what must hold of a connection, and what counts then.
#[derive(serde::Deserialize)]
pub(super) struct Block {
    criteria: AnyValue,
    #[serde(flatten)]
    keywords: Keywords,
}

impl JsonSchema for Block {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Block".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        let one = serde_json::json!({ "type": ["string", "integer", "boolean"] });
        let value = serde_json::json!({ "anyOf": [one, { "type": "array", "minItems": 1, "items": one }] });
        let criteria = serde_json::json!({
            "type": "object",
            "minProperties": 1,
            "propertyNames": { "pattern": "^[A-Za-z-]+$" },
            "additionalProperties": value,
        });
        json_schema!({
            "type": "object",
            "properties": { "criteria": criteria },
            "required": ["criteria"],
            "propertyNames": { "pattern": NAME },
            "additionalProperties": value_schema(),
        })
    }
}

/// A keyword that is to have a value.
pub(super) struct Wanted<'s> {
    pub(super) section: Section,
    /// The keyword as [`known_as`] has it.
    pub(super) keyword: String,
    /// As it is stated.
    pub(super) name: &'s str,
    pub(super) value: &'s Value,
    /// What is behind the keyword on each of its lines; none where it is to have no value.
    pub(super) lines: Vec<String>,
}

impl Wanted<'_> {
    /// The lines of it, as they are written.
    pub(super) fn written<'l>(&self, lines: impl Iterator<Item = &'l String>) -> Vec<String> {
        lines.map(|rest| format!("{} {rest}", spelled(self.name))).collect()
    }

    /// What the lines come to: of a list its arguments, otherwise each line by itself.
    pub(super) fn meant(&self) -> Vec<String> {
        self.lines.iter().flat_map(|rest| units(&self.keyword, rest)).collect()
    }
}

/// What a line counts for among others with its keyword.
pub(super) fn units(keyword: &str, rest: &str) -> Vec<String> {
    let arguments = meant(keyword, rest);
    if is_list(keyword) { arguments } else { vec![arguments.join("\0")] }
}

impl Keywords {
    /// What they state for a section; the failures are about properties below `within`.
    pub(super) fn wanted(&self, section: &Section, within: &str) -> Result<Vec<Wanted<'_>>, Failure> {
        let mut all: Vec<Wanted<'_>> = Vec::new();
        for (name, value) in &self.0 {
            let about = pointer::within(within, name);
            let keyword = known_as(name);
            if !within.is_empty() && matches!(keyword.as_str(), "match" | "include") {
                return Err(at(&about, format!("'{name}' is not allowed in a block of 'match'")));
            }
            if keyword == "match" {
                return Err(at(&about, format!("'{name}' is not a keyword; use 'match' with a list of blocks")));
            }
            if all.iter().any(|other| other.keyword == keyword) {
                return Err(at(
                    &about,
                    format!("'{name}' is another name of a keyword that is also stated; remove one"),
                ));
            }
            let lines = lines_of(&keyword, value).map_err(|why| at(&about, format!("'{name}' {why}")))?;
            all.push(Wanted { section: section.clone(), keyword, name, value, lines });
        }
        Ok(all)
    }
}

impl Block {
    /// The line that begins it, behind its keyword, and what it states.
    pub(super) fn wanted(&self, number: usize) -> Result<(String, Vec<Wanted<'_>>), Failure> {
        let within = pointer::within("/match", &number.to_string());
        let line = self.line().map_err(|why| at(&pointer::within(&within, "criteria"), format!("'criteria' {why}")))?;
        let wanted = self.keywords.wanted(&super::reading::criteria(&line), &within)?;
        Ok((line, wanted))
    }

    fn line(&self) -> Result<String, &'static str> {
        let named = "must be an object with criteria of a Match, such as {\"user\": [\"deploy\"]}";
        let criteria = self.criteria.0.as_object().filter(|criteria| !criteria.is_empty()).ok_or(named)?;
        let mut words = Vec::new();
        for (name, value) in criteria {
            if name.is_empty() || !name.bytes().all(|each| each.is_ascii_alphabetic() || each == b'-') {
                return Err(named);
            }
            words.push(spelled(name).to_owned());
            let values: Vec<String> = match value {
                Value::Bool(true) => continue,
                Value::Bool(false) | Value::Null => return Err(named),
                Value::Array(items) if !items.is_empty() => items.iter().map(plain).collect::<Result<_, _>>()?,
                one => vec![plain(one)?],
            };
            words.push(quoted_criterion(&values.join(","))?);
        }
        Ok(words.join(" "))
    }

    /// The block as it is stated.
    pub(super) fn stated(&self) -> Value {
        self.with(self.keywords.0.iter().cloned())
    }

    /// The block with other values of its keywords.
    pub(super) fn with(&self, found: impl Iterator<Item = (String, Value)>) -> Value {
        let mut members = Object::from([("criteria".to_owned(), self.criteria.0.clone())]);
        members.extend(found);
        Value::Object(members)
    }
}

/// A failure about a property that has no constant.
fn at(pointer: &str, message: String) -> Failure {
    Failure { property: Some(pointer.to_owned()), ..invalid("", message) }
}

const KINDS: &str = "must be a string, an integer, true, false, null or a list";

/// The text of one value.
fn plain(value: &Value) -> Result<String, &'static str> {
    let text = match value {
        Value::Bool(truth) => if *truth { "yes" } else { "no" }.to_owned(),
        Value::Number(number) if !has_fraction(number) => number
            .as_i64()
            .map_or_else(|| number.to_string().trim_end_matches(".0").to_owned(), |number| number.to_string()),
        Value::String(text) => text.trim().to_owned(),
        _ => return Err(KINDS),
    };
    if text.is_empty() {
        return Err("must not be empty; use null for no value");
    }
    if text.chars().any(char::is_control) {
        return Err("must be a single line without control characters");
    }
    Ok(text)
}

/// A criterion as sshd reads it, which knows quotes there and nothing that takes them back.
fn quoted_criterion(text: &str) -> Result<String, &'static str> {
    match text {
        _ if text.contains('"') => Err("must not contain '\"': sshd cannot read it in a Match"),
        _ if text.contains([' ', '=', '#']) => Ok(format!("\"{text}\"")),
        _ => Ok(text.to_owned()),
    }
}

/// A text that sshd reads as one argument.
fn quoted(text: &str) -> String {
    let is_plain = !text.contains([' ', '"', '\'', '\\']) && !text.starts_with('#');
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
}

/// What is behind a keyword on each line of a value.
fn lines_of(keyword: &str, value: &Value) -> Result<Vec<String>, &'static str> {
    let form = form(keyword);
    let lines = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) if items.is_empty() => {
            return Err("must not be empty; use null for no value");
        }
        Value::Array(items) if is_list(keyword) => {
            items.iter().map(|item| plain(item).map(|text| quoted(&text))).collect::<Result<_, _>>()?
        }
        Value::Array(items) if accumulates(keyword) => {
            items.iter().map(|item| item_of(form, item)).collect::<Result<_, _>>()?
        }
        Value::Array(items) => vec![joined(form, items)?],
        Value::Object(members) if members.get("operator").is_some() => vec![extended(members)?],
        one => vec![item_of(form, one)?],
    };
    let is_readable = |line: &String| form == Form::Rest || arguments(line).is_some_and(|found| !found.is_empty());
    if lines.iter().all(is_readable) { Ok(lines) } else { Err("has an unclosed quote or begins with '#'") }
}

/// One line of a keyword. A text is what stands behind the keyword, but for one argument with blanks.
fn item_of(form: Form, value: &Value) -> Result<String, &'static str> {
    if let Value::Object(members) = value {
        let member = |name: &str| members.get(name).filter(|value| value.as_str().is_some());
        let named = member("name").zip(member("value")).filter(|_| members.len() == 2);
        let (name, value) = named.ok_or("must be a string, or an object with 'name' and 'value'")?;
        return Ok(format!("{} {}", quoted(&plain(name)?), plain(value)?));
    }
    let text = plain(value)?;
    Ok(if form == Form::One && !text.contains(['"', '\'', '\\']) { quoted(&text) } else { text })
}

fn joined(form: Form, items: &[Value]) -> Result<String, &'static str> {
    let items = items.iter().map(plain).collect::<Result<Vec<_>, _>>()?;
    Ok(match form {
        Form::One => quoted(&items.join(",")),
        Form::Words => items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(" "),
        Form::Rest => items.join(" "),
    })
}

/// A list that changes the one that sshd has, as DSC v3 states it.
fn extended(members: &Object) -> Result<String, &'static str> {
    let why = "must be an object with 'operator', which is \"+\", \"-\" or \"^\", and 'value'";
    let operator = members.get("operator").and_then(Value::as_str).filter(|sign| ["+", "-", "^"].contains(sign));
    let value = members.get("value").filter(|_| members.len() == 2);
    let (operator, value) = operator.zip(value).ok_or(why)?;
    let list = match value {
        Value::Array(items) if !items.is_empty() => joined(Form::One, items)?,
        one => plain(one)?,
    };
    Ok(format!("{operator}{list}"))
}

/// A value of lines that were found, in the form of the one that is stated.
pub(super) fn value_of(keyword: &str, rests: &[&str], stated: Option<&Value>) -> Value {
    let form = form(keyword);
    let scalar = |text: &str| match text {
        "yes" => Value::Bool(true),
        "no" => Value::Bool(false),
        _ => text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from),
    };
    let own = |rest: &&str| match form {
        Form::Rest => vec![Value::from(*rest)],
        _ if is_list(keyword) || form == Form::Words && !accumulates(keyword) => {
            meant(keyword, rest).iter().map(|word| Value::from(word.as_str())).collect()
        }
        _ => vec![scalar(&meant(keyword, rest).join(" "))],
    };
    match (rests, stated) {
        ([], _) => Value::Null,
        ([rest], Some(Value::String(_))) => Value::from(*rest),
        (rests, _) if accumulates(keyword) || form == Form::Words => {
            Value::from(rests.iter().flat_map(own).collect::<Vec<_>>())
        }
        ([first, ..], _) => own(first).pop().unwrap_or(Value::Null),
    }
}
