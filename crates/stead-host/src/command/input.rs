//! How a program gets its input: arguments, environment and standard input, made from a manifest.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::Value as Json;
use stead_core::call::{Execution, Failure, FailureKind};
use stead_core::manifest::{Argument, Input, ProgramCall};
use stead_core::value::pointer;

use super::secrets::Secrets;
use stead_system::process::LONGEST_ARGUMENT;

/// The subject that a program is called about, for the arguments that name it.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) type_name: String,
    pub(super) version: String,
    pub(super) path: Option<PathBuf>,
    pub(super) content: Option<Json>,
}

/// The arguments, input and environment that a program is started with.
#[derive(Default)]
pub(super) struct Prepared {
    pub(super) arguments: Vec<OsString>,
    /// Those of the arguments that may name files for the program to run: what the manifest states, and the path of an
    /// adapted resource. Values of a document are data.
    pub(super) stated: Vec<String>,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) stdin: Option<Vec<u8>>,
}

/// Prepares a call of a method. `wanted` is null when nothing is said.
///
/// Guarantees: no secret is in the arguments or the environment. Both can be read by other processes of the machine
/// while the program runs, and the environment is handed down to whatever it starts; a method must take secrets from
/// its standard input.
pub(super) fn prepare(
    method: &ProgramCall,
    subject: &Subject,
    wanted: &Json,
    secrets: &Secrets,
    execution: Execution,
) -> Result<Prepared, Failure> {
    let mut prepared = Prepared::default();
    for argument in &method.arguments {
        let rendered = render(argument, subject, wanted, execution);
        if matches!(argument, Argument::Json { .. }) && !secrets.is_empty() {
            shield(argument, method)?;
            continue;
        }
        prepared.stated.extend(stated(argument, &rendered, subject));
        prepared.arguments.extend(rendered.into_iter().map(OsString::from));
    }
    match method.input {
        Input::None => {}
        Input::Stdin => prepared.stdin = Some(text_of(wanted).into_bytes()),
        Input::Environment if !secrets.is_empty() => return Err(exposes(method, "its environment")),
        Input::Environment => prepared.variables = variables(wanted)?,
    }
    check_sizes(method, &prepared)?;
    Ok(prepared)
}

/// The desired state may be left out of the arguments when it also comes by standard input.
fn shield(argument: &Argument, method: &ProgramCall) -> Result<(), Failure> {
    let optional = matches!(argument, Argument::Json { mandatory: false, .. });
    if optional && method.input == Input::Stdin { Ok(()) } else { Err(exposes(method, "its arguments")) }
}

fn exposes(method: &ProgramCall, place: &str) -> Failure {
    let program = &method.executable;
    Failure::new(
        FailureKind::Unsupported,
        format!(
            "the properties hold secrets, and '{program}' takes them in {place}, where others on the machine can read \
             them. A manifest with '\"input\": \"stdin\"' for this operation keeps them secret"
        ),
    )
}

fn text_of(wanted: &Json) -> String {
    if wanted.is_null() { String::new() } else { wanted.to_string() }
}

fn render(argument: &Argument, subject: &Subject, wanted: &Json, execution: Execution) -> Vec<String> {
    let pair = |name: &String, value: String| vec![name.clone(), value];
    match argument {
        Argument::Literal(text) => vec![text.clone()],
        Argument::Json { mandatory: false, .. } if wanted.is_null() => Vec::new(),
        Argument::Json { name, .. } => pair(name, text_of(wanted)),
        Argument::AdaptedContent(name) => {
            subject.content.iter().flat_map(|content| pair(name, content.to_string())).collect()
        }
        Argument::ResourceType(name) => pair(name, subject.type_name.clone()),
        Argument::ResourceVersion(name) => pair(name, subject.version.clone()),
        Argument::ResourcePath { name, quoted } => {
            let path = subject.path.iter().map(|path| path.display().to_string());
            path.flat_map(|path| pair(name, if *quoted { format!("\"{path}\"") } else { path })).collect()
        }
        Argument::WhatIf(text) => match execution {
            Execution::WhatIf => vec![text.clone()],
            Execution::Actual => Vec::new(),
        },
    }
}

/// Returns the parts of an argument that may name a file for the program to run.
fn stated(argument: &Argument, rendered: &[String], subject: &Subject) -> Vec<String> {
    match argument {
        Argument::Literal(_) | Argument::WhatIf(_) => rendered.to_vec(),
        Argument::ResourcePath { .. } => {
            subject.path.iter().filter_map(|path| path.to_str().map(str::to_owned)).collect()
        }
        Argument::Json { .. }
        | Argument::AdaptedContent(_)
        | Argument::ResourceType(_)
        | Argument::ResourceVersion(_) => Vec::new(),
    }
}

/// Each property as a variable; null is left out.
fn variables(wanted: &Json) -> Result<Vec<(OsString, OsString)>, Failure> {
    let members = wanted.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    members.map(|(name, value)| Ok((variable_name(name)?, variable_text(name, value)?))).collect()
}

fn variable_name(name: &str) -> Result<OsString, Failure> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(unfit(name, "its name cannot be the name of an environment variable"));
    }
    Ok(name.into())
}

fn variable_text(name: &str, value: &Json) -> Result<OsString, Failure> {
    let text = match value {
        Json::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(element).collect();
            items.ok_or_else(|| unfit(name, "an environment variable can hold an array of strings and numbers only"))?
        }
        Json::Bool(truth) => vec![truth.to_string()],
        // What it handed back when it was still working is in there.
        Json::Object(_) if name == "_metadata" => vec![value.to_string()],
        other => vec![element(other).ok_or_else(|| unfit(name, "an environment variable cannot hold an object"))?],
    };
    let text = text.join(",");
    if text.contains('\0') {
        return Err(unfit(name, "an environment variable cannot hold a NUL character"));
    }
    Ok(text.into())
}

fn element(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn unfit(name: &str, why: &str) -> Failure {
    let message = format!("the program of the resource takes properties as environment variables, and {why}");
    Failure { property: Some(pointer::within("", name)), ..Failure::new(FailureKind::Invalid, message) }
}

/// Says what the kernel would only call "argument list too long".
fn check_sizes(method: &ProgramCall, prepared: &Prepared) -> Result<(), Failure> {
    let arguments = prepared.arguments.iter().map(|argument| ("an argument", argument.len()));
    let variables = prepared
        .variables
        .iter()
        .map(|(name, value)| ("an environment variable", name.len() + "=".len() + value.len()));
    let too_long = arguments.chain(variables).find(|(_, length)| *length > LONGEST_ARGUMENT);
    if let Some((what, length)) = too_long {
        let program = &method.executable;
        return Err(Failure::new(
            FailureKind::Unsupported,
            format!(
                "{what} of '{program}' would be {length} bytes long, and the system allows {LONGEST_ARGUMENT}. A \
                 manifest with '\"input\": \"stdin\"' for this operation has no such limit"
            ),
        ));
    }
    if prepared.arguments.iter().any(|argument| argument.as_encoded_bytes().contains(&0)) {
        let program = &method.executable;
        return Err(Failure::new(
            FailureKind::Invalid,
            format!("an argument of '{program}' would hold a NUL character"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Plain;
    use proptest::prelude::*;
    use serde_json::json;

    fn subject() -> Subject {
        Subject { type_name: "Test/A".to_owned(), version: "1.0.0".to_owned(), path: None, content: None }
    }

    fn any_method() -> impl Strategy<Value = ProgramCall> {
        let argument = prop_oneof![
            "[a-z]{0,3}".prop_map(Argument::Literal),
            any::<bool>().prop_map(|mandatory| Argument::Json { name: "--input".to_owned(), mandatory }),
            Just(Argument::ResourceType("--type".to_owned())),
            Just(Argument::WhatIf("--what-if".to_owned())),
        ];
        let input = prop_oneof![Just(Input::None), Just(Input::Stdin), Just(Input::Environment)];
        (proptest::collection::vec(argument, 0..5), input).prop_map(|(arguments, input)| ProgramCall {
            executable: "program".to_owned(),
            arguments,
            input,
            returns: None,
            what_if_returns: None,
        })
    }

    proptest! {
        #[test]
        fn no_secret_is_in_sight(method in any_method(), depth in 0..4, wrapper in "secure(String|Object)|bare") {
            let mut wanted = json!({ wrapper.clone(): "canary" });
            for level in 0..depth {
                wanted = if level % 2 == 0 { json!({"k": wanted, "other": 1}) } else { json!([wanted]) };
            }
            let wanted = json!({"property": wanted});
            let plain = if wrapper == "bare" { Plain::secret(wanted.clone()) } else { Plain::new(wanted.clone()) };
            let secrets = Secrets::of(&plain);
            match prepare(&method, &subject(), &wanted, &secrets, Execution::Actual) {
                Ok(prepared) => {
                    let seen = prepared.variables.iter().flat_map(|(name, value)| [name, value]);
                    let mut seen = seen.chain(&prepared.arguments);
                    prop_assert!(seen.all(|text| !text.to_string_lossy().contains("canary")));
                }
                Err(failure) => prop_assert!(!failure.message.contains("canary")),
            }
        }

        #[test]
        fn the_argument_for_a_what_if_is_there_in_one_only(method in any_method()) {
            let count = |execution| {
                let secrets = Secrets::default();
                let prepared = prepare(&method, &subject(), &json!({"a": 1}), &secrets, execution).unwrap();
                prepared.arguments.iter().filter(|argument| *argument == "--what-if").count()
            };
            let expected = method.arguments.iter().filter(|each| matches!(each, Argument::WhatIf(_))).count();
            prop_assert_eq!((count(Execution::Actual), count(Execution::WhatIf)), (0, expected));
        }
    }
}
