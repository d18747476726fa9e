//! Mismatches of a value, in words about properties: the texts of the library quote the value, and speak of schemas.

use std::fmt::{self, Display};

use jsonschema::JsonType;
use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind as Kind};
use serde_json::Value as Json;

use super::reason::{Reason, Spelling, Type, alternatives, listed};
use crate::diag::{Meant, counted};
use crate::value::{Value, pointer};

/// One way in which a value does not fit a schema. Shown, it is a sentence that names what it is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaMismatch {
    /// Where in the value, as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// The mismatch there.
    pub reason: Reason,
    /// How it is written, if that is all that is wrong.
    pub form: Option<Spelling>,
    /// True if it holds whatever the members or elements of the value are.
    pub is_shallow: bool,
    /// When it is wrong, such as "when 'after' is used"; `None` for always.
    when: Option<String>,
}

impl Display for SchemaMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, .. } = self;
        let mut steps: Vec<_> = pointer::steps(&self.pointer).collect();
        if matches!(reason, Reason::Unknown { .. }) {
            // The pointer leads to the member that the reason names.
            steps.pop();
        }
        match (reason.names_member(), steps.join(".").as_str()) {
            (true, "") => write!(f, "{reason}")?,
            (true, outer) => write!(f, "{reason} in '{outer}'")?,
            (false, "") => write!(f, "the properties {reason}")?,
            (false, name) => write!(f, "'{name}' {reason}")?,
        }
        self.when.iter().try_for_each(|when| write!(f, " {when}"))
    }
}

impl SchemaMismatch {
    /// Returns the advice about it.
    pub fn help(&self) -> Option<String> {
        self.reason.help().or_else(|| self.form.map(|form| form.help().to_owned()))
    }

    /// The sentence and what to do about it, in one line.
    pub fn line(&self) -> String {
        match self.help() {
            Some(help) => format!("{self}; {help}"),
            None => self.to_string(),
        }
    }

    /// A property that the schema does not have.
    pub(super) fn unknown_property(outer: &str, name: &str, known: &[&str]) -> Self {
        let known = known.iter().map(|&name| name.to_owned()).collect();
        Self {
            pointer: pointer::within(outer, name),
            reason: Reason::Unknown { name: name.to_owned(), known },
            form: None,
            is_shallow: true,
            when: None,
        }
    }

    /// Describes one error of the library, about a value of this schema.
    pub(super) fn of(error: &ValidationError<'_>, schema: &Json) -> Self {
        let path = error.schema_path().as_str();
        let kind = error.kind();
        let reason = match kind {
            Kind::OneOfMultipleValid { .. } => conflict(error, schema.pointer(path)),
            kind => reason(kind, error.instance()),
        };
        let is_conditional = ["then", "else", "dependentSchemas"].iter().any(|word| has_step(path, word));
        Self {
            pointer: error.instance_path().as_str().to_owned(),
            form: form(&reason, error.instance()),
            reason,
            is_shallow: !is_conditional && is_shallow(kind),
            when: circumstance(error, schema),
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

fn form(reason: &Reason, found: &Json) -> Option<Spelling> {
    match (reason, found) {
        (Reason::Type(wanted), Json::Bool(_) | Json::Number(_) | Json::String(_)) => {
            Spelling::of(wanted, &Value::from(found.clone()))
        }
        _ => None,
    }
}

fn reason(kind: &Kind, found: &Json) -> Reason {
    match kind {
        Kind::Type { kind } => Reason::Type(types(kind)),
        Kind::Required { property } => Reason::Missing(property.as_str().map(str::to_owned).into_iter().collect()),
        Kind::Enum { options } => Reason::OneOf { allowed: texts(options), near: near(options, found) },
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => none_of(context),
        Kind::Not { schema } => excluded(schema),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            Reason::Other(format!("must not have {}", listed(unexpected, "and")))
        }
        Kind::PropertyNames { error } => {
            let why = reason(error.kind(), error.instance());
            Reason::Other(format!("must not have a property of this name: a name {why}"))
        }
        kind => Reason::Other(predicate(kind)),
    }
}

/// The word that was probably meant.
fn near(options: &Json, found: &Json) -> Option<Meant> {
    let options = options.as_array()?.iter().filter_map(Json::as_str);
    // Names of one or two letters are all near to each other.
    let found = found.as_str().filter(|found| found.len() > 2)?;
    Meant::word(found, options)
}

fn predicate(kind: &Kind) -> String {
    match kind {
        Kind::Constant { expected_value } => format!("must be {expected_value}"),
        Kind::Pattern { pattern } => format!("must match the regular expression {pattern}"),
        Kind::Format { format } => format!("is not a valid {format}"),
        Kind::FalseSchema => "cannot be used here".into(),
        Kind::Contains => "must have an element of the required form".into(),
        Kind::UniqueItems => "must not have equal elements".into(),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::ContentEncoding { content_encoding } => format!("must be encoded as {content_encoding}"),
        Kind::ContentMediaType { content_media_type } => format!("must be {content_media_type}"),
        Kind::FromUtf8 { .. } => "must be encoded UTF-8 text".into(),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "cannot be checked: its regular expression takes too long".into()
        }
        Kind::Referencing(_) => "cannot be checked: its schema refers to one that does not exist".into(),
        Kind::Custom { keyword, .. } => format!("must satisfy '{keyword}'"),
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
        Kind::UnevaluatedItems { .. } => "must not have so many elements".into(),
        other => format!("must satisfy '{}'", other.keyword()),
    }
}

fn types(kind: &TypeKind) -> Vec<Type> {
    match kind {
        TypeKind::Single(single) => vec![type_of(*single)],
        TypeKind::Multiple(several) => several.iter().map(type_of).collect(),
    }
}

fn type_of(name: JsonType) -> Type {
    match name {
        JsonType::Null => Type::Null,
        JsonType::Boolean => Type::Boolean,
        JsonType::Integer => Type::Integer,
        JsonType::Number => Type::Number,
        JsonType::String => Type::String,
        JsonType::Array => Type::Array,
        JsonType::Object => Type::Object,
    }
}

/// Each of several values as JSON.
fn texts(values: &Json) -> Vec<String> {
    values.as_array().into_iter().flatten().map(Json::to_string).collect()
}

/// The properties that a schema requires, if that is all that it says.
fn required(schema: &Json) -> Option<Vec<&str>> {
    let members = schema.as_object()?;
    let says_more = members.keys().any(|key| !matches!(key.as_str(), "required" | "type" | "description" | "title"));
    let names: Vec<&str> = members.get("required")?.as_array()?.iter().filter_map(Json::as_str).collect();
    Some(names).filter(|names| !says_more && !names.is_empty())
}

/// Returns why a value fits none of several schemas.
fn none_of(context: &[Vec<ValidationError<'_>>]) -> Reason {
    let first = || context.iter().filter_map(|errors| errors.first());
    let missing: Vec<String> = first()
        .filter_map(|error| match error.kind() {
            Kind::Required { property } if error.instance_path().as_str().is_empty() => property.as_str(),
            _ => None,
        })
        .map(str::to_owned)
        .collect();
    if missing.len() == context.len() && !missing.is_empty() {
        return Reason::Missing(distinct(missing));
    }
    let reasons = distinct(first().map(|error| reason(error.kind(), error.instance())).collect());
    match reasons.len() {
        1..=4 => Reason::Forms(reasons),
        _ => Reason::Other("must have one of the forms that are allowed".into()),
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

/// Returns why a value may not have a form.
fn excluded(schema: &Json) -> Reason {
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    let any_of = || schema.get("anyOf")?.as_array()?.iter().map(required).collect::<Option<Vec<_>>>();
    match (required(schema), any_of()) {
        (Some(names), _) if names.len() > 1 => Reason::Excluded(owned(names)),
        (Some(names), _) => Reason::NotHere(owned(names)),
        (None, Some(several)) => Reason::NotHere(owned(several.concat())),
        (None, None) => Reason::Other(match (schema.get("const"), schema.get("enum")) {
            (Some(value), _) => format!("must not be {value}"),
            (_, Some(values)) => format!("must not be {}", alternatives(&texts(values))),
            _ => "must not have this value".into(),
        }),
    }
}

/// Returns why a value has several forms of which it may have one.
fn conflict(error: &ValidationError<'_>, forms: Option<&Json>) -> Reason {
    let names: Vec<&str> =
        forms.and_then(Json::as_array).into_iter().flatten().filter_map(required).flatten().collect();
    let present = distinct(names).into_iter().filter(|name| error.instance().get(name).is_some());
    let present: Vec<String> = present.map(str::to_owned).collect();
    if present.len() > 1 {
        Reason::Excluded(present)
    } else {
        Reason::Other("must have only one of the forms that are allowed".into())
    }
}

/// Returns when a part of a schema counts that does not always.
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

/// Returns in words what a condition of a schema asks for.
fn holds(condition: &Json) -> Option<String> {
    let value = |(name, schema): (&String, &Json)| match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(format!("'{name}' is {value}")),
        (_, Some(values)) => Some(format!("'{name}' is {}", alternatives(&texts(values)))),
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
