//! What is wrong with a value, in words about properties: the texts of the library quote the value, and speak of schemas.

use jsonschema::JsonType;
use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind as Kind};
use serde_json::Value as Json;

use crate::diag::nearest;

/// One way in which a value does not fit a schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Where in the value, as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// What is wrong, without the name of what it is about: "must be a string"; or a whole sentence that begins with a
    /// name. Guarantees: no part of the value is quoted, because it may be secret.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Whether it holds whatever the members or elements of the value are.
    pub is_shallow: bool,
}

impl Mismatch {
    /// What is wrong, with the name of what it is about.
    pub fn sentence(&self) -> String {
        let readable =
            |pointer: &str| pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~");
        let (name, Self { message, .. }) = (readable(&self.pointer), self);
        let (around, last) = self.pointer.rsplit_once('/').unwrap_or_default();
        match name.as_str() {
            _ if message.starts_with('\'') || message.starts_with("there is") => {
                // It names a member itself: of what the pointer leads to, or what it leads to.
                let is_last = message.split('\'').nth(1) == Some(&*readable(last));
                match readable(if is_last { around } else { &self.pointer }).as_str() {
                    "" => message.clone(),
                    outer => format!("{message} in '{outer}'"),
                }
            }
            "" if message.starts_with("must") => format!("the properties {message}"),
            "" => message.clone(),
            _ => format!("'{name}' {message}"),
        }
    }

    /// The sentence and what to do about it, in one line.
    pub fn line(&self) -> String {
        match &self.help {
            Some(help) => format!("{}; {help}", self.sentence()),
            None => self.sentence(),
        }
    }

    /// A property that the schema does not have.
    pub(super) fn unknown_property(pointer: &str, name: &str, known: &[&str]) -> Self {
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => Some(format!("did you mean '{near}'?")),
            None if known.is_empty() => None,
            None => Some(format!("the properties are {}", known.join(", "))),
        };
        let name_in_pointer = name.replace('~', "~0").replace('/', "~1");
        Self {
            pointer: format!("{pointer}/{name_in_pointer}"),
            message: format!("there is no property '{name}'"),
            help,
            is_shallow: true,
        }
    }

    /// What one error of the library says, about a value of this schema.
    pub(super) fn of(error: &ValidationError<'_>, schema: &Json) -> Self {
        let path = error.schema_path().as_str();
        let kind = error.kind();
        let message = match kind {
            Kind::OneOfMultipleValid { .. } => conflict(error, schema.pointer(path)),
            kind => message(kind),
        };
        // What holds only if something else does is said with that.
        let message = match circumstance(error, schema) {
            Some(when) => format!("{message} {when}"),
            None => message,
        };
        let is_conditional = ["then", "else", "dependentSchemas"].iter().any(|word| has_step(path, word));
        Self {
            pointer: error.instance_path().as_str().to_owned(),
            message,
            help: help(kind, error.instance()),
            is_shallow: !is_conditional && is_shallow(kind),
        }
    }
}

fn has_step(path: &str, word: &str) -> bool {
    path.split('/').any(|step| step == word)
}

fn is_shallow(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Type { .. }
            | Kind::Required { .. }
            | Kind::FalseSchema
            | Kind::MaxItems { .. }
            | Kind::MinItems { .. }
            | Kind::MaxProperties { .. }
            | Kind::MinProperties { .. }
            | Kind::AdditionalItems { .. }
            | Kind::PropertyNames { .. }
    )
}

fn help(kind: &Kind, found: &Json) -> Option<String> {
    match kind {
        Kind::Type { kind } => quotes(kind, found).map(str::to_owned),
        Kind::Enum { options } => {
            let options = options.as_array()?.iter().filter_map(Json::as_str);
            // Names of one or two letters are all near to each other.
            let found = found.as_str().filter(|found| found.len() > 2)?;
            nearest(found, options).map(|near| format!("did you mean '{near}'?"))
        }
        _ => None,
    }
}

/// How a value is written that was meant to be of a type.
fn quotes(wanted: &TypeKind, found: &Json) -> Option<&'static str> {
    let wants = |kind: JsonType| match wanted {
        TypeKind::Single(single) => *single == kind,
        TypeKind::Multiple(several) => several.iter().any(|each| each == kind),
    };
    match found {
        Json::Number(_) | Json::Bool(_) if wants(JsonType::String) => Some("write it in quotes"),
        Json::String(text) if wants(JsonType::Boolean) && matches!(text.as_str(), "true" | "false") => {
            Some("write it without quotes")
        }
        Json::String(text) if (wants(JsonType::Integer) || wants(JsonType::Number)) && text.parse::<f64>().is_ok() => {
            Some("write it without quotes")
        }
        Json::String(_) | Json::Number(_) if wants(JsonType::Array) => Some("write it as a list: [VALUE]"),
        _ => None,
    }
}

fn message(kind: &Kind) -> String {
    match kind {
        Kind::Type { kind } => format!("must be {}", types(kind)),
        Kind::Required { property } => format!("'{}' is required", property.as_str().unwrap_or_default()),
        Kind::Enum { options } => format!("must be {}", alternatives(options)),
        Kind::Constant { expected_value } => format!("must be {expected_value}"),
        Kind::Pattern { pattern } => format!("must match the regular expression {pattern}"),
        Kind::Format { format } => format!("is not a valid {format}"),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => none_of(context),
        Kind::Not { schema } => excluded(schema),
        Kind::FalseSchema => "cannot be used here".into(),
        Kind::PropertyNames { error } => format!("has a property whose name {}", message(error.kind())),
        Kind::Contains => "has no element of the required form".into(),
        Kind::UniqueItems => "must not have equal elements".into(),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::ContentEncoding { content_encoding } => format!("must be encoded as {content_encoding}"),
        Kind::ContentMediaType { content_media_type } => format!("must be {content_media_type}"),
        Kind::FromUtf8 { .. } => "must be encoded UTF-8 text".into(),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "cannot be checked: its regular expression takes too long".into()
        }
        Kind::Referencing(_) => "cannot be checked: its schema refers to one that does not exist".into(),
        Kind::Custom { keyword, .. } => format!("does not satisfy '{keyword}'"),
        kind => limit(kind),
    }
}

fn limit(kind: &Kind) -> String {
    match kind {
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}"),
        Kind::MaxLength { limit } => format!("must be at most {limit} characters long"),
        Kind::MinLength { limit: 1 } => "must not be empty".into(),
        Kind::MinLength { limit } => format!("must be at least {limit} characters long"),
        Kind::MaxItems { limit } => format!("must have at most {limit} elements"),
        Kind::AdditionalItems { limit } => format!("must have at most {limit} elements"),
        Kind::MinItems { limit } => format!("must have at least {}", counted(*limit, "element")),
        Kind::MaxProperties { limit } => format!("must have at most {limit} properties"),
        Kind::MinProperties { limit: 1 } => "must have at least 1 property".into(),
        Kind::MinProperties { limit } => format!("must have at least {limit} properties"),
        Kind::UnevaluatedItems { .. } => "has more elements than are allowed".into(),
        other => format!("does not satisfy '{}'", other.keyword()),
    }
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("{count} {what}") } else { format!("{count} {what}s") }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(single) => type_name(*single).to_owned(),
        TypeKind::Multiple(several) => several.iter().map(type_name).collect::<Vec<_>>().join(" or "),
    }
}

fn type_name(name: JsonType) -> &'static str {
    match name {
        JsonType::Null => "null",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "an integer",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "an array",
        JsonType::Object => "an object",
    }
}

fn alternatives(options: &Json) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let options: Vec<String> = options.iter().map(ToString::to_string).collect();
    match options.as_slice() {
        [one] => one.clone(),
        several => format!("one of {}", several.join(", ")),
    }
}

/// `'a'`, `'a' and 'b'`, `'a', 'b' and 'c'`
fn listed(names: &[&str], word: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {word} {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// The properties that a schema requires, if that is all that it says.
fn required(schema: &Json) -> Option<Vec<&str>> {
    let members = schema.as_object()?;
    let says_more = members.keys().any(|key| !matches!(key.as_str(), "required" | "type" | "description" | "title"));
    let names: Vec<&str> = members.get("required")?.as_array()?.iter().filter_map(Json::as_str).collect();
    Some(names).filter(|names| !says_more && !names.is_empty())
}

/// Why a value fits none of several schemas.
fn none_of(context: &[Vec<ValidationError<'_>>]) -> String {
    let first = || context.iter().filter_map(|errors| errors.first());
    let missing: Vec<&str> = first()
        .filter_map(|error| match error.kind() {
            Kind::Required { property } if error.instance_path().as_str().is_empty() => property.as_str(),
            _ => None,
        })
        .collect();
    if missing.len() == context.len() && !missing.is_empty() {
        return format!("{} is required", listed(&distinct(missing), "or"));
    }
    let reasons = distinct(first().map(reason).collect());
    match reasons.len() {
        1..=4 => reasons.join(", or "),
        _ => "has none of the forms that are allowed".into(),
    }
}

fn distinct<T: PartialEq>(all: Vec<T>) -> Vec<T> {
    let mut found = Vec::new();
    for each in all {
        if !found.contains(&each) {
            found.push(each);
        }
    }
    found
}

fn reason(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names: Vec<&str> = unexpected.iter().map(String::as_str).collect();
            format!("must not have {}", listed(&names, "and"))
        }
        kind => message(kind),
    }
}

/// Why a value may not have a form.
fn excluded(schema: &Json) -> String {
    let any_of = || schema.get("anyOf")?.as_array()?.iter().map(required).collect::<Option<Vec<_>>>();
    match (required(schema), any_of()) {
        (Some(names), _) if names.len() > 1 => format!("{} cannot be used together", listed(&names, "and")),
        (Some(names), _) => format!("{} cannot be used here", listed(&names, "and")),
        (None, Some(several)) => format!("{} cannot be used here", listed(&several.concat(), "and")),
        (None, None) => match (schema.get("const"), schema.get("enum")) {
            (Some(value), _) => format!("must not be {value}"),
            (_, Some(values)) => format!("must not be {}", alternatives(values)),
            _ => "has a value that is not allowed".into(),
        },
    }
}

/// Why a value has several forms of which it may have one.
fn conflict(error: &ValidationError<'_>, forms: Option<&Json>) -> String {
    let names: Vec<&str> =
        forms.and_then(Json::as_array).into_iter().flatten().filter_map(required).flatten().collect();
    let names = distinct(names);
    let present: Vec<&str> = names.into_iter().filter(|name| error.instance().get(name).is_some()).collect();
    if present.len() > 1 {
        format!("{} cannot be used together", listed(&present, "and"))
    } else {
        "has several forms of which only one is allowed".into()
    }
}

/// When a part of a schema counts that does not always.
fn circumstance(error: &ValidationError<'_>, schema: &Json) -> Option<String> {
    let steps: Vec<&str> = error.schema_path().as_str().split('/').collect();
    let is_conditional = |step: &&str| matches!(*step, "then" | "else" | "dependentRequired" | "dependentSchemas");
    let at = steps.iter().rposition(is_conditional)?;
    let around = schema.pointer(&steps.get(..at)?.join("/"))?;
    match *steps.get(at)? {
        "then" => Some(format!("when {}", holds(around.get("if")?)?)),
        "else" => Some(format!("unless {}", holds(around.get("if")?)?)),
        "dependentSchemas" => Some(format!("when '{}' is used", steps.get(at + 1)?)),
        _ => {
            let Kind::Required { property } = error.kind() else { return None };
            let needs = |(name, names): &(&String, &Json)| {
                error.instance().get(name).is_some() && names.as_array().is_some_and(|all| all.contains(property))
            };
            let (name, _) = around.get("dependentRequired")?.as_object()?.iter().find(needs)?;
            Some(format!("when '{name}' is used"))
        }
    }
}

/// What a condition of a schema asks for.
fn holds(condition: &Json) -> Option<String> {
    let value = |(name, schema): (&String, &Json)| match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(format!("'{name}' is {value}")),
        (_, Some(values)) => Some(format!("'{name}' is {}", alternatives(values))),
        _ => None,
    };
    let values = condition.get("properties").and_then(Json::as_object).into_iter().flatten();
    let values: Option<Vec<String>> = values.map(value).collect();
    match values {
        Some(values) if !values.is_empty() => Some(values.join(" and ")),
        _ => required(condition).map(|names| {
            let verb = if names.len() == 1 { "is" } else { "are" };
            format!("{} {verb} used", listed(&names, "and"))
        }),
    }
}
