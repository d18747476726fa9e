//! What to do about properties that do not fit.

use stead_core::diag::nearest;
use stead_core::expr::Template;
use stead_core::text::Kind;

/// What instances have besides their properties.
const BESIDE: [&str; 7] = ["type", "name", "condition", "copy", "dependsOn", "directives", "requireVersion"];
/// What other tools call whether something should exist.
const STATES: [&str; 6] = ["ensure", "state", "exists", "exist", "present", "absent"];

/// The hint at a name that was probably meant.
pub(super) fn did_you_mean(name: &str) -> String {
    format!("did you mean '{name}'?")
}

/// What to do about a property that the resource does not have.
pub(super) fn of_unknown(name: &str, known: &[String]) -> String {
    let has = |name: &str| known.iter().any(|each| each == name);
    if BESIDE.contains(&name) {
        return format!("'{name}' belongs to the instance: write it beside 'properties', not inside");
    }
    if STATES.contains(&name.to_lowercase().as_str()) && has("_exist") {
        return "write '_exist: true' or '_exist: false' to say whether it should exist".to_owned();
    }
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => did_you_mean(near),
        None => format!("its properties are {}", known.join(", ")),
    }
}

/// What to do about a value that is not allowed.
pub(super) fn of_value(value: &Template, message: &str) -> Option<String> {
    let wants = |what: &str| message.ends_with(&format!("must be {what}"));
    match &value.kind {
        _ if message.contains("read-only") => Some("it is only reported; remove it".to_owned()),
        _ if message.ends_with("cannot be used together") => Some("remove one of them".to_owned()),
        Kind::Number(number) if wants("a string") => Some(format!("write it in quotes: \"{number}\"")),
        Kind::Bool(truth) if wants("a string") => Some(format!("write it in quotes: \"{truth}\"")),
        Kind::Null if wants("a string") => Some("leave it out, or write an empty string: \"\"".to_owned()),
        Kind::String(text) if wants("true or false") => Some(match &**text {
            "true" | "false" => "write it without quotes".to_owned(),
            _ => "write true or false, without quotes; YAML 1.2 reads yes, no, on and off as strings".to_owned(),
        }),
        Kind::String(text) if wants("a number") || wants("an integer") => Some(match text.parse::<f64>() {
            Ok(_) => "write it without quotes".to_owned(),
            Err(_) => "write a number without a unit".to_owned(),
        }),
        _ => None,
    }
}
