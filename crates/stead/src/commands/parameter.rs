//! `stead explain parameter NAME`: the value of a parameter, and where it comes from.

use stead_core::diag::{did_you_mean, nearest};
use stead_core::event::Mode;
use stead_core::graph::Values;
use stead_core::parameters::Supplied;
use stead_core::value::{REDACTED, Value};
use stead_core::visible::visible;
use stead_engine::Session;
use stead_hosts::{LayerValue, Merge};

use super::ready::{prepare, session_for};
use crate::exit::Exit;
use crate::input::{self, BadParameters, ParameterSources};
use crate::process_env::ProcessEnv;
use crate::request::{DocumentRequest, ParameterRequest};
use crate::terminal::{Output, complain, json, print, show_findings};

/// A place that has a value for the parameter.
struct Stated {
    place: String,
    value: Value,
    /// Of a layer: its filter, and what becomes of its value beside others.
    layer: Option<(Option<String>, Merge)>,
}

/// Prints the value that a parameter of a document has here, and every place that has one, the one that counts first.
pub(crate) fn parameter(request: &ParameterRequest, env: &ProcessEnv) -> Exit {
    explained(request, env).unwrap_or_else(|exit| exit)
}

fn explained(request: &ParameterRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let document = &request.document;
    let (mut session, prepared) =
        prepare(document, Output::Text, session_for(document, env), Values::Open, Mode::PLAN)?;
    let scope = prepared.graph.scopes.first().ok_or(Exit::Unusable)?;
    let declared = &scope.document.parameters;
    let Some(parameter) = declared.iter().find(|parameter| parameter.name.value == request.name) else {
        complain(&format!("error: the document has no parameter '{}'", visible(&request.name)));
        let near = nearest(&request.name, declared.iter().map(|parameter| parameter.name.value.as_str()));
        if let Some(near) = near {
            complain(&format!("help: {}", did_you_mean(near)));
        }
        return Err(Exit::Unusable);
    };
    let is_secret = parameter.data_type.value.is_secure();
    let shown = |value: &Value| if is_secret { REDACTED.to_owned() } else { json(&value.to_redacted_json()) };
    let mut stated = all_stated(&mut session, document, &request.name)?;
    let counts = stated.pop();
    let is_merged =
        counts.as_ref().and_then(|counts| counts.layer.as_ref()).is_some_and(|(_, merge)| *merge != Merge::Last);
    let value = scope.parameters.get(&request.name).map(shown);
    let head = format!("{} = {}\n", visible(&request.name), value.as_deref().unwrap_or("(no value)"));
    let first = counts.iter().map(|counts| line("from", counts, &shown));
    let others = stated.iter().rev().map(|other| {
        let takes_part = is_merged && other.layer.is_some();
        line(if takes_part { "and" } else { "over" }, other, &shown)
    });
    let default = parameter.default.as_ref().map(|default| {
        let word = if counts.is_some() { "over" } else { "from" };
        format!("  {word:<5} {}, the default of the document\n", session.sources.place(default.span))
    });
    print(&[head].into_iter().chain(first).chain(others).chain(default).collect::<String>());
    Ok(Exit::Success)
}

fn line(word: &str, stated: &Stated, shown: &dyn Fn(&Value) -> String) -> String {
    let layer = match &stated.layer {
        None => String::new(),
        Some((None, merge)) => format!(", the layer of all{}", merged(*merge)),
        Some((Some(filter), merge)) => format!(", the layer where {}{}", visible(filter), merged(*merge)),
    };
    format!("  {word:<5} {}{layer}: {}\n", visible(&stated.place), shown(&stated.value))
}

fn merged(merge: Merge) -> String {
    if merge == Merge::Last { String::new() } else { format!(", merged by {}", merge.word()) }
}

/// Every place besides the document that has a value for a parameter, the one that counts last.
fn all_stated(session: &mut Session, document: &DocumentRequest, name: &str) -> Result<Vec<Stated>, Exit> {
    let text = input::requested(session, &document.origin).map_err(|error| unreadable(&error))?;
    let usual = ParameterSources::of(&document.supplied, &text);
    let none = ParameterSources { environment: false, files: &[], inline: None, single: &[], ..usual };
    let mut all = Vec::new();
    all.extend(of_part(session, ParameterSources { environment: true, ..none }, name)?);
    for path in usual.files {
        let file = input::of_file(session, path, &usual).map_err(|error| refused(error, session))?;
        let layers = file.layers.into_iter().filter(|value| value.name == name);
        let layers: Vec<Stated> = layers.map(|value| of_layer(session, value)).collect();
        if layers.is_empty() {
            all.extend(stated(session, &file.supplied, name));
        }
        all.extend(layers);
    }
    all.extend(of_part(session, ParameterSources { inline: usual.inline, ..none }, name)?);
    all.extend(of_part(session, ParameterSources { single: usual.single, ..none }, name)?);
    Ok(all)
}

fn of_part(session: &mut Session, part: ParameterSources<'_>, name: &str) -> Result<Option<Stated>, Exit> {
    let supplied = input::parameters(session, &part).map_err(|error| refused(error, session))?;
    Ok(stated(session, &supplied, name))
}

fn stated(session: &Session, supplied: &Supplied, name: &str) -> Option<Stated> {
    let place = session.sources.place(*supplied.places.get(name)?);
    // Of what is stated alone the place has a name that says it all.
    let place =
        if place.name.starts_with("<-") || place.name.starts_with("<env") { place.name } else { place.to_string() };
    Some(Stated { place, value: supplied.values.get(name)?.clone(), layer: None })
}

fn of_layer(session: &Session, value: LayerValue) -> Stated {
    let place = session.sources.place(value.span).to_string();
    Stated { place, value: value.value, layer: Some((value.condition, value.merge)) }
}

fn unreadable(error: &input::Unreadable) -> Exit {
    complain(&format!("error: {error}"));
    Exit::Unusable
}

fn refused(error: BadParameters, session: &Session) -> Exit {
    match error {
        BadParameters::Unreadable(error) => unreadable(&error),
        BadParameters::Findings(findings) => {
            show_findings(&findings, &session.sources);
            Exit::Unusable
        }
    }
}
