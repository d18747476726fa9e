//! `invoke`: one method of one resource.

use serde_json::{Value as Json, json};
use stead_core::diag::render_all;
use stead_core::value::{Object, Value};
use stead_engine::{InvokeError, Invoked, ResourceCall};

use crate::exit::Exit;
use crate::input;
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::{Given, InvokeRequest};
use crate::terminal::{complain, complain_text, data};

/// Calls one method of one resource, and prints what it answers.
pub(crate) fn invoke(request: &InvokeRequest, env: &ProcessEnv) -> Exit {
    let session = env.host.session(input::current_folder());
    interrupt::catch(&session);
    let cancel = session.cancel().clone();
    let called = ResourceCall::specified(session, &request.resource);
    let refused = |error: InvokeError| refused(&error, request);
    let invoked = called.map_err(refused).and_then(|mut called| {
        let properties = properties(&mut called, request)?;
        called.invoke(request.method, properties, request.ignores_run_as_credential).map_err(refused)
    });
    let exit = invoked.map_or_else(|exit| exit, |invoked| show(invoked, request));
    interrupt::exit(&cancel, exit)
}

fn show(invoked: Invoked, request: &InvokeRequest) -> Exit {
    let (answer, exit) = match invoked {
        Invoked::State(state) => (state, Exit::Success),
        Invoked::InDesiredState(is_so) => {
            (json!({ "InDesiredState": is_so }), if is_so { Exit::Success } else { Exit::Drifted })
        }
        Invoked::RebootRequired(is_so) => (json!({ "RebootRequired": is_so }), Exit::Success),
    };
    data(&answer, request.format);
    exit
}

/// In words on standard error, and as data where a format was asked for: an id may be any text.
fn refused(error: &InvokeError, request: &InvokeRequest) -> Exit {
    let id = error.id();
    let is_word = !id.contains(|it: char| it.is_whitespace() || it == ']');
    let shown = if is_word { format!("[{id}]") } else { String::new() };
    complain(&format!("error{shown}: {error}"));
    if let Some(help) = error.help() {
        complain(&format!("help: {help}"));
    }
    if let Some(format) = request.format {
        let error = json!({ "id": id, "message": error.to_string(), "help": error.help() });
        data(&json!({ "error": error }), Some(format));
    }
    if matches!(error, InvokeError::Failed { .. }) { Exit::Failed } else { Exit::Unusable }
}

/// The properties of the command line: single ones win over those of the input.
fn properties(called: &mut ResourceCall, request: &InvokeRequest) -> Result<Object, Exit> {
    let mut all = stated(called, request.input.as_ref())?;
    let schema = if request.properties.is_empty() { None } else { called.schema().ok() };
    for (name, text) in &request.properties {
        all.insert(name.clone(), input::single(text, schema.as_ref().is_some_and(|schema| is_text(schema, name))));
    }
    Ok(all)
}

/// Returns whether a schema declares a property as a string and nothing else.
fn is_text(schema: &Json, name: &str) -> bool {
    let properties = schema.get("properties").and_then(Json::as_object);
    let property = properties.and_then(|all| all.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)));
    property.is_some_and(|(_, property)| property.get("type").is_some_and(|kind| kind == "string"))
}

fn stated(called: &mut ResourceCall, input: Option<&Given>) -> Result<Object, Exit> {
    let Some(given) = input else { return Ok(Object::new()) };
    let text = input::given(&called.session, given).map_err(|error| {
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
