//! `invoke`: one method of one resource.

use std::path::Path;

use serde_json::{Value as Json, json};
use stead_core::diag::render_all;
use stead_core::value::{Object, Value};
use stead_engine::{InvokeError, Invoked, Method, ResourceCall, ResourceSpecification};

use crate::args::{Invoke, Method as MethodName};
use crate::exit::Exit;
use crate::input;
use crate::interrupt;
use crate::output::{complain, complain_text, data};
use crate::process_env::ProcessEnv;

/// Calls one method of one resource, and prints what it answers.
pub(crate) fn invoke(arguments: &Invoke, env: &ProcessEnv) -> Exit {
    let session = env.host.session(input::current_folder());
    interrupt::catch(&session);
    let cancel = session.cancel().clone();
    let called = ResourceCall::specified(session, &specification(arguments));
    let refused = |error: InvokeError| refused(&error, arguments);
    let invoked = called.map_err(refused).and_then(|mut called| {
        let properties = properties(&mut called, arguments)?;
        let method = match arguments.method {
            MethodName::Get => Method::Get,
            MethodName::Test => Method::Test,
            MethodName::Set => Method::Set,
        };
        called.invoke(method, properties, arguments.ignore_run_as_credential).map_err(refused)
    });
    let exit = invoked.map_or_else(|exit| exit, |invoked| show(invoked, arguments));
    interrupt::exit(&cancel, exit)
}

fn specification(arguments: &Invoke) -> ResourceSpecification {
    let (module, version) = match arguments.module.as_deref().map(|module| module.split_once('@')) {
        Some(Some((module, version))) => (Some(module.to_owned()), Some(version.to_owned())),
        _ => (arguments.module.clone(), None),
    };
    ResourceSpecification { name: arguments.resource.clone(), module, version }
}

fn show(invoked: Invoked, arguments: &Invoke) -> Exit {
    let (answer, exit) = match invoked {
        Invoked::State(state) => (state, Exit::Success),
        Invoked::InDesiredState(is_so) => {
            (json!({ "InDesiredState": is_so }), if is_so { Exit::Success } else { Exit::Drifted })
        }
        Invoked::RebootRequired(is_so) => (json!({ "RebootRequired": is_so }), Exit::Success),
    };
    data(&answer, arguments.output_format);
    exit
}

/// In words on standard error, and as data where a format was asked for: an id may be any text.
fn refused(error: &InvokeError, arguments: &Invoke) -> Exit {
    let id = error.id();
    let is_word = !id.contains(|it: char| it.is_whitespace() || it == ']');
    let shown = if is_word { format!("[{id}]") } else { String::new() };
    complain(&format!("error{shown}: {error}"));
    if let Some(help) = error.help() {
        complain(&format!("help: {help}"));
    }
    if let Some(format) = arguments.output_format {
        let error = json!({ "id": id, "message": error.to_string(), "help": error.help() });
        data(&json!({ "error": error }), Some(format));
    }
    if matches!(error, InvokeError::Failed { .. }) { Exit::Failed } else { Exit::Unusable }
}

/// The properties of the command line: single ones win over those of the input.
fn properties(called: &mut ResourceCall, arguments: &Invoke) -> Result<Object, Exit> {
    let mut all = stated(called, arguments.input.as_deref())?;
    let schema = if arguments.properties.is_empty() { None } else { called.schema().ok() };
    for (name, text) in &arguments.properties {
        all.insert(name.clone(), input::single(text, schema.as_ref().is_some_and(|schema| is_text(schema, name))));
    }
    Ok(all)
}

/// Whether a schema declares a property as a string and nothing else.
fn is_text(schema: &Json, name: &str) -> bool {
    let properties = schema.get("properties").and_then(Json::as_object);
    let property = properties.and_then(|all| all.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)));
    property.is_some_and(|(_, property)| property.get("type").is_some_and(|kind| kind == "string"))
}

fn stated(called: &mut ResourceCall, input: Option<&str>) -> Result<Object, Exit> {
    let Some(inline) = input else { return Ok(Object::new()) };
    let text = if inline == "-" { input::read(Path::new("-")) } else { input::inline(inline) };
    let text = text.map_err(|error| {
        complain(&format!("error: {error}"));
        Exit::Unusable
    })?;
    match input::value(&mut called.session, &text) {
        Ok(Value::Object(properties)) => Ok(properties),
        Ok(_) => {
            complain("error: the properties must be an object");
            complain("help: write '{\"NAME\": VALUE}'");
            Err(Exit::Unusable)
        }
        Err(findings) => {
            complain_text(&render_all(&findings, &called.session.sources, false));
            Err(Exit::Unusable)
        }
    }
}
