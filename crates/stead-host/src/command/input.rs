//! How a program is told what is wanted: arguments, environment and standard input, made from a manifest.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::Value as Json;
use stead_core::call::{Execution, Failure, FailureKind};
use stead_core::manifest::{Argument, Input, Method, Version};

use super::failure;
use super::secrets::Secrets;
use crate::process::LONGEST_ARGUMENT;

/// What a program is called about, for the arguments that say so.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) type_name: String,
    pub(super) version: String,
    pub(super) path: Option<PathBuf>,
    pub(super) content: Option<Json>,
}

/// The text of a version, as it stands in manifests.
pub(super) fn version_text(version: &Version) -> String {
    match version {
        Version::Date(date) => date.clone(),
        Version::Semantic(version) => version.to_string(),
    }
}

/// What a program is started with.
#[derive(Default)]
pub(super) struct Prepared {
    pub(super) arguments: Vec<OsString>,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) stdin: Option<Vec<u8>>,
}

/// Prepares a call of a method. `wanted` is null when nothing is said.
///
/// Guarantees: no secret is in the arguments or the environment. Both can be read by other processes of the machine
/// while the program runs, and the environment is handed down to whatever it starts; a method has to take secrets from
/// its standard input.
pub(super) fn prepare(
    method: &Method,
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
fn shield(argument: &Argument, method: &Method) -> Result<(), Failure> {
    let optional = matches!(argument, Argument::Json { mandatory: false, .. });
    if optional && method.input == Input::Stdin { Ok(()) } else { Err(exposes(method, "its arguments")) }
}

fn exposes(method: &Method, place: &str) -> Failure {
    let program = &method.executable;
    failure(
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
    let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    let message = format!("the program of the resource takes properties as environment variables, and {why}");
    Failure { property: Some(pointer), ..failure(FailureKind::Invalid, message) }
}

/// Says what the kernel would only call "argument list too long".
fn check_sizes(method: &Method, prepared: &Prepared) -> Result<(), Failure> {
    let arguments = prepared.arguments.iter().map(|argument| ("an argument", argument.len()));
    let variables = prepared
        .variables
        .iter()
        .map(|(name, value)| ("an environment variable", name.len() + "=".len() + value.len()));
    let too_long = arguments.chain(variables).find(|(_, length)| *length > LONGEST_ARGUMENT);
    if let Some((what, length)) = too_long {
        let program = &method.executable;
        return Err(failure(
            FailureKind::Unsupported,
            format!(
                "{what} of '{program}' would be {length} bytes long, and the system allows {LONGEST_ARGUMENT}. A \
                 manifest with '\"input\": \"stdin\"' for this operation has no such limit"
            ),
        ));
    }
    if prepared.arguments.iter().any(|argument| argument.as_encoded_bytes().contains(&0)) {
        let program = &method.executable;
        return Err(failure(FailureKind::Invalid, format!("an argument of '{program}' would hold a NUL character")));
    }
    Ok(())
}
