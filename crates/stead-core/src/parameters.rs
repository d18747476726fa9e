//! Parameters: what a caller supplies, and whether it is what the document asks for.

pub use crate::diag::codes::parameters::*;

use std::collections::BTreeMap;

use crate::diag::{Code, Diagnostic, did_you_mean, nearest};
use crate::diff::{Rules, contains};
use crate::document::{DataType, Parameter};
use crate::schema::{Spelling, Type};
use crate::text::{Node, Span, is_of_ansible_vault};
use crate::value::{Object, Value};

/// The values that a caller supplies for parameters.
#[derive(Clone, Default, Debug)]
pub struct Supplied {
    /// The values by name.
    pub values: Object,
    /// Where they stand, by name; not all stand in a text.
    pub places: BTreeMap<String, Span>,
}

impl From<Object> for Supplied {
    fn from(values: Object) -> Self {
        Self { values, places: BTreeMap::new() }
    }
}

impl Supplied {
    /// Adds what is supplied besides, which wins where both have a value.
    pub fn extend(&mut self, other: Self) {
        for (name, value) in other.values {
            self.places.remove(&name);
            self.values.insert(name, value);
        }
        self.places.extend(other.places);
    }

    /// Returns what a text supplies; see [`supplied`].
    pub fn of_tree(tree: &Node) -> Result<Self, Finding> {
        Self::of(tree.literal(), tree.get("parameters"))
    }

    /// Reads a parameters file, or an object of the parameters themselves: one without a member `parameters` counts
    /// as that member.
    pub fn of_tree_or_members(tree: &Node) -> Result<Self, Finding> {
        if tree.entries().is_none() || tree.get("parameters").is_some() {
            return Self::of_tree(tree);
        }
        let wrapped = Object::from_iter([("parameters".to_owned(), tree.literal())]);
        Self::of(Value::Object(wrapped), Some(tree))
    }

    fn of(value: Value, members: Option<&Node>) -> Result<Self, Finding> {
        let values = supplied(value)?;
        let entries = members.and_then(Node::entries).unwrap_or_default();
        Ok(Self { values, places: entries.iter().map(|entry| (entry.key.to_string(), entry.key_span)).collect() })
    }
}

/// A mistake in a parameter that a caller supplied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The name of the parameter; `None` of what is wrong with all.
    pub parameter: Option<String>,
    /// The kind of finding.
    pub code: Code,
    /// One sentence. Guarantees: no value of a secure parameter is in it.
    pub message: String,
    /// The advice, in one sentence.
    pub help: Option<String>,
}

impl Finding {
    fn new(code: Code, message: String) -> Self {
        Self { parameter: None, code, message, help: None }
    }

    /// Returns it as a diagnostic: at the place where the parameter is declared, with the one where it was supplied;
    /// at that one where there is no other.
    pub fn placed(self, declared: Option<Span>, supplied: &Supplied) -> Diagnostic {
        let supplied = self.parameter.and_then(|name| supplied.places.get(&name).copied());
        let mut diagnostic = Diagnostic::error(self.code, Span::default(), self.message);
        diagnostic.span = declared.or(supplied);
        diagnostic.labels = declared.and(supplied).map(|span| (span, "supplied here".to_owned())).into_iter().collect();
        diagnostic.help = self.help;
        diagnostic
    }
}

/// The values by name, out of `{"parameters": {"name": value}}` or of a parameter file of ARM templates, in which every
/// value stands in `{"value": …}`.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::parameters::supplied;
/// use stead_core::value::Value;
///
/// let plain = supplied(json!({ "parameters": { "port": 80 } }).into()).map_err(|finding| finding.message)?;
/// let of_arm = supplied(json!({ "parameters": { "port": { "value": 80 } } }).into()).map_err(|finding| finding.message)?;
/// assert_eq!(plain.get("port"), of_arm.get("port"));
/// let refused = supplied(Value::from("port=80")).unwrap_err();
/// assert_eq!(refused.message, "parameters must be an object, found a string");
/// # Ok::<(), String>(())
/// ```
pub fn supplied(input: Value) -> Result<Object, Finding> {
    let kind = described(&input);
    if let Some(name) = input.as_str().and_then(assigned) {
        let finding = wrong_form(format!("parameters must be an object, found {kind}"));
        return Err(Finding {
            help: Some(format!("a colon stands between name and value: write '{name}: …'")),
            ..finding
        });
    }
    if input.as_str().is_some_and(is_of_ansible_vault) {
        let help = "it is not decrypted here: `ansible-vault view FILE | stead plan DOCUMENT --parameters-file -` reads what is in it";
        let finding = wrong_form("these parameters are encrypted by ansible-vault".to_owned());
        return Err(Finding { help: Some(help.to_owned()), ..finding });
    }
    let Value::Object(mut members) = input else {
        return Err(wrong_form(format!("parameters must be an object, found {kind}")));
    };
    let parameters = match members.remove("parameters") {
        Some(Value::Object(parameters)) => parameters,
        Some(other) => return Err(wrong_form(format!("'parameters' must be an object, found {}", described(&other)))),
        None => return Err(wrong_form(NOT_THERE.to_owned())),
    };
    let is_arm = |value: &Value| value.as_object().is_some_and(|members| members.contains_key("value"));
    if !parameters.values().all(is_arm) {
        return Ok(parameters);
    }
    let value = |value| match value {
        Value::Object(mut members) => members.remove("value").unwrap_or_default(),
        other => other,
    };
    Ok(parameters.into_iter().map(|(name, each)| (name, value(each))).collect())
}

/// The name in the first line of a text of `name = value`, as files of Terraform and of shells have it.
fn assigned(text: &str) -> Option<&str> {
    let name = text.lines().next()?.split_once('=')?.0.trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    is_name.then_some(name)
}

/// The message about an object without the member `parameters`.
pub const NOT_THERE: &str = "'parameters' is missing";

fn wrong_form(message: String) -> Finding {
    let help = "write {\"parameters\": {\"name\": \"value\"}}".to_owned();
    Finding { help: Some(help), ..Finding::new(&WRONG_FORM, message) }
}

/// The names supplied that the document does not have.
pub fn unknown(parameters: &[Parameter], supplied: &Supplied) -> Vec<Finding> {
    let known = || parameters.iter().map(|parameter| parameter.name.value.as_str());
    let unknown = supplied.values.keys().filter(|name| known().all(|each| each != *name));
    let finding = |name: &String| Finding {
        parameter: Some(name.clone()),
        code: &UNKNOWN,
        message: format!("the document has no parameter '{name}'"),
        help: Some(match nearest(name, known()) {
            Some(meant) => did_you_mean(meant),
            None if parameters.is_empty() => "it has no parameters at all".to_owned(),
            None => format!("it has: {}", known().collect::<Vec<_>>().join(", ")),
        }),
    };
    unknown.map(finding).collect()
}

/// A parameter that has neither a value nor a default.
pub fn missing(parameter: &Parameter) -> Finding {
    let name = &parameter.name.value;
    let message = format!("parameter '{name}' has no value and no default");
    let help = if parameter.data_type.value.is_secure() {
        format!("supply '{name}' with '--parameters-file FILE', or as STEAD_PARAM_{name} in the environment")
    } else {
        format!("pass --set {name}=VALUE, supply it in a parameters file, or declare a 'defaultValue'")
    };
    Finding { help: Some(help), ..Finding::new(&MISSING, message) }
}

/// A parameter of an included document that has neither a value nor a default.
pub fn not_included(parameter: &Parameter) -> Finding {
    let name = &parameter.name.value;
    let advice = if parameter.data_type.value.is_secure() {
        format!("supply '{name}' in the 'parametersFile' of the include")
    } else {
        format!("supply '{name}' in the include, as in {}, or declare a 'defaultValue'", included(name))
    };
    Finding { help: Some(advice), ..missing(parameter) }
}

/// The property of an include that has a value for a parameter.
pub(crate) fn included(name: &str) -> String {
    format!("parametersContent: '{{parameters: {{{name}: VALUE}}}}'")
}

/// How many parameters a message names.
const MOST_NAMED: usize = 20;

/// Parameters whose defaults need each other.
pub fn circular(parameters: &[&Parameter]) -> Finding {
    let (first, more) = parameters.split_at(parameters.len().min(MOST_NAMED));
    let quoted: Vec<String> = first.iter().map(|parameter| format!("'{}'", parameter.name.value)).collect();
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let names = quoted.join(", ") + &more;
    let (message, help) = match parameters {
        [_] => (format!("the default of parameter {names} depends on itself"), "give it a value".to_owned()),
        _ => (
            format!("the defaults of parameters {names} depend on each other"),
            "give one of them a default that uses none of the others".to_owned(),
        ),
    };
    let set = parameters.first().map(|first| format!(", or pass `--set {}=VALUE`", first.name.value));
    Finding { help: Some(help + &set.unwrap_or_default()), ..Finding::new(&CIRCULAR, message) }
}

/// Refuses a default that is a secret, where the parameter asks for more than text or an object: nobody opens it to look.
pub fn check_sealed(parameter: &Parameter, value: &Value) -> Result<(), Finding> {
    let Value::Sealed(_) = value else { return Ok(()) };
    let Parameter { allowed, min_value, max_value, min_length, max_length, .. } = parameter;
    let is_bounded = min_value.is_some() || max_value.is_some() || min_length.is_some() || max_length.is_some();
    let data_type = parameter.data_type.value;
    let is_any = !matches!(data_type, DataType::Int | DataType::Bool | DataType::Array);
    if is_any && allowed.is_none() && !is_bounded {
        return Ok(());
    }
    let name = &parameter.name.value;
    let help = if data_type.is_secure() {
        format!("declare '{name}' without limits")
    } else {
        format!("declare '{name}' as secureString")
    };
    let message = format!("the default of parameter '{name}' is a secret and cannot be checked");
    Err(Finding { help: Some(help), parameter: Some(name.clone()), ..Finding::new(&WRONG_TYPE, message) })
}

/// Returns whether a value is of the parameter's type and within what it allows. Secrets must be in the clear.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::document::parse;
/// use stead_core::parameters::check;
/// use stead_core::text::{Limits, SourceId};
///
/// let text = "{parameters: {port: {type: int, minValue: 1024}}, resources: []}";
/// let (document, _) = parse(SourceId::default(), text, &Limits::default());
/// let port = &document.parameters[0];
/// assert!(check(port, &json!(8080).into()).is_ok());
/// assert!(check(port, &json!(80).into()).is_err());
/// assert!(check(port, &json!("8080").into()).is_err());
/// ```
pub fn check(parameter: &Parameter, value: &Value) -> Result<(), Finding> {
    let checks = [check_type, check_allowed, check_range, check_length];
    let named = |finding| Finding { parameter: Some(parameter.name.value.clone()), ..finding };
    checks.into_iter().try_for_each(|check| check(parameter, value)).map_err(named)
}

fn check_type(parameter: &Parameter, value: &Value) -> Result<(), Finding> {
    let data_type = parameter.data_type.value;
    let fits = match data_type {
        DataType::String | DataType::SecureString => value.as_str().is_some(),
        DataType::Int => value.as_i64().is_some(),
        DataType::Bool => value.as_bool().is_some(),
        DataType::Object | DataType::SecureObject => value.as_object().is_some(),
        DataType::Array => value.as_array().is_some(),
    };
    if fits {
        return Ok(());
    }
    let (name, wanted) = (&parameter.name.value, article(data_type));
    let help = match Spelling::of(&[type_of(data_type)], value) {
        _ if is_no_json(data_type, value) && data_type == DataType::Array => {
            "a value on the command line is JSON: text is in double quotes, as in '[\"a\", \"b\"]'".to_owned()
        }
        _ if is_no_json(data_type, value) => {
            "a value on the command line is JSON: members are in double quotes, as in '{\"a\": 1}'".to_owned()
        }
        _ if data_type == DataType::Array && value.as_str().is_some() => {
            "write it as a list: [a, b]; on the command line as JSON: '[\"a\", \"b\"]'".to_owned()
        }
        _ if let Some(truth) = truth(data_type, value) => format!("write {truth}"),
        Some(form) => form.help().to_owned(),
        None => format!("the document declares it as '{}'", data_type.as_str()),
    };
    let message = format!("parameter '{name}' must be {wanted}, found {}", described(value));
    Err(Finding { help: Some(help), ..Finding::new(&WRONG_TYPE, message) })
}

/// The truth that a text of YAML 1.1 or of other tools was meant as.
fn truth(data_type: DataType, value: &Value) -> Option<bool> {
    let text = value.as_str().filter(|_| data_type == DataType::Bool)?.to_lowercase();
    match &*text {
        "yes" | "on" | "y" | "true" | "1" | "enabled" => Some(true),
        "no" | "off" | "n" | "false" | "0" | "disabled" => Some(false),
        _ => None,
    }
}

/// Returns whether a text was meant as the object or array that it is not.
fn is_no_json(data_type: DataType, value: &Value) -> bool {
    let opening = match data_type {
        DataType::Object => '{',
        DataType::Array => '[',
        _ => return false,
    };
    value.as_str().is_some_and(|text| text.trim_start().starts_with(opening))
}

fn type_of(data_type: DataType) -> Type {
    match data_type {
        DataType::String | DataType::SecureString => Type::String,
        DataType::Int => Type::Integer,
        DataType::Bool => Type::Boolean,
        DataType::Object | DataType::SecureObject => Type::Object,
        DataType::Array => Type::Array,
    }
}

fn article(data_type: DataType) -> &'static str {
    match data_type {
        DataType::String | DataType::SecureString => "a string",
        DataType::Int => "an integer",
        DataType::Bool => "a boolean",
        DataType::Object | DataType::SecureObject => "an object",
        DataType::Array => "an array",
    }
}

fn described(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number)
            if number.as_i64().is_none() && number.as_f64().is_some_and(|size| size.abs() >= 2_f64.powi(63)) =>
        {
            "a number beyond 64 bits"
        }
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
        Value::Sealed(_) => "a secure value",
    }
}

fn check_allowed(parameter: &Parameter, value: &Value) -> Result<(), Finding> {
    let Some(allowed) = &parameter.allowed else { return Ok(()) };
    let rules = Rules::default();
    let allowed: Vec<Value> = allowed.value.iter().map(Node::literal).collect();
    if allowed.iter().any(|each| contains(each, value, &rules) && contains(value, each, &rules)) {
        return Ok(());
    }
    let message = format!("the value of parameter '{}' is not one of the allowed values", parameter.name.value);
    let texts: Vec<String> = allowed.iter().map(|each| each.to_redacted_json().to_string()).collect();
    // The allowed values of a secret narrow it down to a few.
    let help = if parameter.data_type.value.is_secure() {
        "the document lists them in 'allowedValues'".to_owned()
    } else {
        format!("allowed are {}", texts.join(", "))
    };
    Err(Finding { help: Some(help), ..Finding::new(&NOT_ALLOWED, message) })
}

fn check_range(parameter: &Parameter, value: &Value) -> Result<(), Finding> {
    let Some(value) = value.as_i64() else { return Ok(()) };
    let name = &parameter.name.value;
    let (least, most) = (parameter.min_value.as_ref(), parameter.max_value.as_ref());
    let (least, most) = (least.map(|least| least.value), most.map(|most| most.value));
    let (code, message): (Code, String) = match (least, most) {
        (Some(least), _) if value < least => {
            (&TOO_SMALL, format!("parameter '{name}' has a minimum value of {least} but is {value}"))
        }
        (_, Some(most)) if value > most => {
            (&TOO_LARGE, format!("parameter '{name}' has a maximum value of {most} but is {value}"))
        }
        _ => return Ok(()),
    };
    Err(Finding { help: Some(allowed(least, most, "")), ..Finding::new(code, message) })
}

/// Returns what lies between a minimum and a maximum.
fn allowed<T: std::fmt::Display>(least: Option<T>, most: Option<T>, unit: &str) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("the document allows {least} to {most}{unit}"),
        (Some(least), None) => format!("the document allows {least}{unit} or more"),
        (None, Some(most)) => format!("the document allows up to {most}{unit}"),
        (None, None) => "the document allows any".to_owned(),
    }
}

fn check_length(parameter: &Parameter, value: &Value) -> Result<(), Finding> {
    let (length, unit) = match value {
        Value::String(text) => (text.len() as u64, "bytes"),
        Value::Array(items) => (items.len() as u64, "elements"),
        _ => return Ok(()),
    };
    let (name, is_secure) = (&parameter.name.value, parameter.data_type.value.is_secure());
    let (least, most) = (parameter.min_length.as_ref(), parameter.max_length.as_ref());
    let (least, most) = (least.map(|least| least.value), most.map(|most| most.value));
    // The length of a secret says something about it.
    let has = |instead: &str| if is_secure { format!(" but is {instead}") } else { format!(" but has {length}") };
    let (code, message): (Code, String) = match (least, most) {
        (Some(least), _) if length < least => {
            (&TOO_SHORT, format!("parameter '{name}' has a minimum length of {least} {unit}{}", has("shorter")))
        }
        (_, Some(most)) if length > most => {
            (&TOO_LONG, format!("parameter '{name}' has a maximum length of {most} {unit}{}", has("longer")))
        }
        _ => return Ok(()),
    };
    Err(Finding { help: Some(allowed(least, most, &format!(" {unit}"))), ..Finding::new(code, message) })
}
