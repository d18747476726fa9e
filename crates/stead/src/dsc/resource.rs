//! `resource list|get|set|test|delete|export|schema`

use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Exported, Operation, Outcome};
use stead_core::event::{Mode, Verify};
use stead_core::export::unescaped;
use stead_core::value::{Object, Value};
use stead_core::wire::results::{got, stated};

use super::progress::Progress;
use super::{check, describe, given, listing, refused, session_here, tell};
use crate::exit::Exit;
use crate::input::{self, Text};
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::{GetFormat, Given, ProgressFormat, ResourceRequest, Target};
use crate::terminal::{OutputFormat, data, data_item, print};
use stead_engine::Session;
use stead_engine::{CallRefusal, ResourceCall, set_mode};

/// Does something with one resource, or lists resources.
pub(crate) fn resource(request: &ResourceRequest, progress: ProgressFormat, env: &ProcessEnv) -> Exit {
    let session = session_here(env);
    if progress == ProgressFormat::Json {
        Progress::of_search(|| _ = session.discovery().discovered());
    }
    let cancel = session.cancel().clone();
    let done = match request {
        ResourceRequest::List(list) => {
            listing::resources(list, &session);
            Ok(())
        }
        ResourceRequest::Get { target, input, all, format } => get(session, *all, target, input.as_ref(), *format),
        ResourceRequest::Set { target, input, execution, format } => {
            set(session, (target, input.as_ref()), *execution, *format, env.settings.verification)
        }
        ResourceRequest::Test { target, input, format } => test(session, target, input.as_ref(), *format),
        ResourceRequest::Delete { target, input, execution, format } => {
            remove(session, (target, input.as_ref()), *execution, *format)
        }
        ResourceRequest::Check(check) => Err(check::check(session, check)),
        ResourceRequest::Export { target, input, format } => export(session, target, input.as_ref(), *format),
        ResourceRequest::Describe(target) => describe(session, target),
        ResourceRequest::Schema { target, format } => schema(session, target, *format),
    };
    interrupt::exit(&cancel, done.err().unwrap_or(Exit::Success))
}

fn find(session: Session, target: &Target) -> Result<ResourceCall, Exit> {
    interrupt::catch(&session);
    ResourceCall::find(session, &target.resource, target.required_version.as_deref()).map_err(refused)
}

fn callable(session: Session, target: &Target) -> Result<ResourceCall, Exit> {
    find(session, target)?.not_an_adapter().map_err(refused)
}

/// The resource and the desired state that the command line names.
fn called(session: Session, target: &Target, text: Option<&Text>) -> Result<(ResourceCall, Value), Exit> {
    let mut called = callable(session, target)?;
    let desired = desired(&mut called, text)?;
    Ok((called, desired))
}

/// The desired state that a text states; null when there is none.
fn desired(called: &mut ResourceCall, text: Option<&Text>) -> Result<Value, Exit> {
    let Some(text) = text else { return Ok(Value::Null) };
    input::value(&mut called.session, text).map_err(|findings| refused_in(called, CallRefusal::Input(findings)))
}

/// What is done with a resource that contains others: its result, or `None` when it contains none.
fn nested(called: &mut ResourceCall, properties: &Value, mode: Mode) -> Result<Option<Json>, Exit> {
    if !called.is_container() {
        return Ok(None);
    }
    let empty = Value::Object(Object::new());
    let properties = if *properties == Value::Null { &empty } else { properties };
    called.nested(properties, mode).map(Some).map_err(|refusal| refused_in(called, refusal))
}

fn refused_in(called: &ResourceCall, refusal: CallRefusal) -> Exit {
    if let CallRefusal::Input(findings) = &refusal {
        tell(findings, &called.session.sources);
        return Exit::DscInput;
    }
    refused(refusal)
}

fn get(
    session: Session,
    all: bool,
    target: &Target,
    input: Option<&Given>,
    format: Option<GetFormat>,
) -> Result<(), Exit> {
    if format == Some(GetFormat::JsonArray) && !all {
        tracing::error!("The 'json-array' output format is only supported with '--all'");
        return Err(Exit::DscArguments);
    }
    let text = given(&session, input)?;
    let mut called = callable(session, target)?;
    let desired = desired(&mut called, text.as_ref())?;
    if let Some(result) = nested(&mut called, &desired, Mode::GET)? {
        data(&result, plain_format(format));
        return Ok(());
    }
    if all {
        return get_all(&called, desired, format);
    }
    let record = called.ask(Operation::Get, Execution::Actual, desired).map_err(refused)?;
    let Some(response) = &record.response else { return Ok(()) };
    let Outcome::Got(actual) = &response.outcome else { return Ok(()) };
    // In a document, metadata stands beside the state; here there is no other place for it.
    let state =
        with(actual.to_redacted_json(), [("_metadata", response.metadata.as_deref().map(Value::to_redacted_json))]);
    let shown = match format {
        Some(GetFormat::PassThrough) => state,
        _ => got(state, actual),
    };
    data(&shown, plain_format(format));
    Ok(())
}

fn get_all(called: &ResourceCall, filter: Value, format: Option<GetFormat>) -> Result<(), Exit> {
    let found = called.exported(filter).map_err(refused)?;
    let states: Vec<Json> = found.into_iter().map(as_listed).collect();
    if format == Some(GetFormat::JsonArray) {
        data(&Json::Array(states), Some(OutputFormat::Json));
        return Ok(());
    }
    for (at, state) in states.into_iter().enumerate() {
        let shown = if format == Some(GetFormat::PassThrough) { state } else { json!({ "actualState": state }) };
        data_item(&shown, plain_format(format), at == 0);
    }
    Ok(())
}

/// The state of an instance as its resource listed it, before it was made fit for a document.
fn as_listed(found: Exported) -> Json {
    let mut metadata = found.metadata.as_ref().map(Value::to_redacted_json).unwrap_or_default();
    let own = metadata.as_object_mut().and_then(|members| members.shift_remove("Microsoft.DSC"));
    let context = own.and_then(|own| own.get("securityContext").cloned());
    let metadata = metadata.as_object().filter(|members| !members.is_empty()).map(|members| json!(members));
    let taken_out = [("_name", found.name.map(Json::from)), ("_securityContext", context), ("_metadata", metadata)];
    with(unescaped(found.properties).to_redacted_json(), taken_out)
}

/// A state with members that were taken out of it, as far as there are any.
fn with<const N: usize>(mut state: Json, taken_out: [(&str, Option<Json>); N]) -> Json {
    if let Some(members) = state.as_object_mut() {
        members.extend(taken_out.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    }
    state
}

fn plain_format(format: Option<GetFormat>) -> Option<OutputFormat> {
    format.map(|format| match format {
        GetFormat::Json | GetFormat::JsonArray | GetFormat::PassThrough => OutputFormat::Json,
        GetFormat::PrettyJson => OutputFormat::PrettyJson,
        GetFormat::Yaml => OutputFormat::Yaml,
    })
}

fn set(
    session: Session,
    (target, input): (&Target, Option<&Given>),
    execution: Execution,
    format: Option<OutputFormat>,
    verification: Verify,
) -> Result<(), Exit> {
    let text = required(&session, input, "Desired input is empty")?;
    let mut called = callable(session, target)?;
    let desired = desired(&mut called, Some(&text))?;
    if let Some(result) = nested(&mut called, &desired, set_mode(execution))? {
        data(&result, format);
        return Ok(());
    }
    let record = called.ask(Operation::Set, execution, desired).map_err(refused)?;
    let result = record.response.as_deref().map_or(Json::Null, |response| stated(response, "afterState"));
    data(&result, format);
    record.not_converged().map_or(Ok(()), |properties| unreached(target, properties, verification))
}

/// Reports a set that did not reach the desired state: a warning, or a failure where the settings require it.
fn unreached(target: &Target, properties: &[String], verification: Verify) -> Result<(), Exit> {
    let (resource, properties) = (&target.resource, properties.join(", "));
    let message = format!("{resource} is not in the desired state after set; these properties differ: {properties}");
    if verification == Verify::Strict {
        tracing::error!("{message}");
        return Err(Exit::DscError);
    }
    tracing::warn!("{message}");
    Ok(())
}

fn test(session: Session, target: &Target, input: Option<&Given>, format: Option<OutputFormat>) -> Result<(), Exit> {
    let text = required(&session, input, "Expected input is required")?;
    let mut called = callable(session, target)?;
    let desired = desired(&mut called, Some(&text))?;
    if let Some(result) = nested(&mut called, &desired, Mode::TEST)? {
        data(&result, format);
        return Ok(());
    }
    data(&called.test(desired).map_err(refused)?, format);
    Ok(())
}

fn required(session: &Session, input: Option<&Given>, otherwise: &str) -> Result<Text, Exit> {
    given(session, input)?.ok_or_else(|| {
        tracing::error!("{otherwise}");
        Exit::DscArguments
    })
}

fn remove(
    session: Session,
    (target, input): (&Target, Option<&Given>),
    execution: Execution,
    format: Option<OutputFormat>,
) -> Result<(), Exit> {
    let text = given(&session, input)?;
    let (called, desired) = called(session, target, text.as_ref())?;
    if let Some(predicted) = called.delete(desired, execution).map_err(refused)? {
        data(&predicted, format);
    }
    Ok(())
}

fn export(session: Session, target: &Target, input: Option<&Given>, format: Option<OutputFormat>) -> Result<(), Exit> {
    let text = given(&session, input)?;
    let (called, filter) = called(session, target, text.as_ref())?;
    data(&called.export(filter).map_err(refused)?, format);
    Ok(())
}

fn describe(session: Session, target: &Target) -> Result<(), Exit> {
    let called = find(session, target)?;
    let schema = called.schema().map_err(refused)?;
    print(&describe::syntax(called.manifest.type_name.short(), &schema, called.manifest.is_powershell()));
    Ok(())
}

fn schema(session: Session, target: &Target, format: Option<OutputFormat>) -> Result<(), Exit> {
    data(&find(session, target)?.schema().map_err(refused)?, format);
    Ok(())
}
