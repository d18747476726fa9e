//! `stead explain parameter NAME`: the value of a parameter, and where it comes from.

use stead_core::diag::{did_you_mean, nearest};
use stead_core::graph::Values;
use stead_core::parameters::Supplied;
use stead_core::value::{REDACTED, Value};
use stead_core::visible::visible;
use stead_engine::Session;
use stead_hosts::{LayerValue, Merge};

use super::ready::{refuse, session_for};
use crate::exit::Exit;
use crate::input::{self, BadParameters, Contribution, ParameterSources};
use crate::process_env::ProcessEnv;
use crate::request::{Origin, ParameterRequest};
use crate::terminal::{Output, complain, json, print, show_findings};

/// A place that has a value for the parameter.
struct Stated {
    place: String,
    value: Value,
    /// Of a layer: its file, its filter, and what becomes of its value beside others.
    layer: Option<(usize, Option<String>, Merge)>,
}

/// Prints the value that a parameter of a document has here, and every place that supplies one, the one that counts first.
pub(crate) fn parameter(request: &ParameterRequest, env: &ProcessEnv) -> Exit {
    explained(request, env).unwrap_or_else(|exit| exit)
}

fn explained(request: &ParameterRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let document = &request.document;
    let mut session = session_for(document, env).with(|options| {
        (options.values, options.system_root) = (Values::Open, document.system_root.clone());
    });
    let text = input::requested(&mut session, &document.origin).map_err(|error| unreadable(&error))?;
    let takes_input = matches!(&document.origin, Origin::Path(path) if input::is_standard(path));
    let from = ParameterSources { takes_input, ..ParameterSources::of(&document.supplied, &text) };
    let contributions = input::contributions(&mut session, &from).map_err(|error| refused(error, &session))?;
    let mut stated = stated(&session, &contributions, &request.name);
    let mut supplied = Supplied::default();
    for contribution in contributions {
        supplied.extend(contribution.supplied);
    }
    let prepared = session.prepare_values(&text.name, text.text, supplied);
    let prepared = prepared.map_err(|unusable| refuse(&unusable.findings, &session, Output::Text))?;
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
    let counts = stated.pop();
    let merged = counts.as_ref().and_then(|counts| counts.layer.as_ref());
    let merged = merged.filter(|(_, _, merge)| *merge != Merge::Last).map(|(file, ..)| *file);
    let value = scope.parameters.get(&request.name).map(shown);
    let head = format!("{} = {}\n", visible(&request.name), value.as_deref().unwrap_or("(no value)"));
    let first = counts.iter().map(|counts| line("from", counts, &shown));
    let others = stated.iter().rev().map(|other| {
        let takes_part = merged.is_some() && other.layer.as_ref().map(|(file, ..)| *file) == merged;
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
        Some((_, None, merge)) => format!(", the layer for all machines{}", merged(*merge)),
        Some((_, Some(filter), merge)) => format!(", the layer where {}{}", visible(filter), merged(*merge)),
    };
    format!("  {word:<5} {}{layer}: {}\n", visible(&stated.place), shown(&stated.value))
}

fn merged(merge: Merge) -> String {
    if merge == Merge::Last { String::new() } else { format!(", merged by {}", merge.word()) }
}

/// Every place besides the document that has a value for a parameter, the one that counts last.
fn stated(session: &Session, contributions: &[Contribution], name: &str) -> Vec<Stated> {
    let of = |(file, contribution): (usize, &Contribution)| {
        let layers = contribution.layers.iter().filter(|value| value.name == name);
        let layers: Vec<Stated> = layers.map(|value| of_layer(session, file, value)).collect();
        if layers.is_empty() { alone(session, &contribution.supplied, name).into_iter().collect() } else { layers }
    };
    contributions.iter().enumerate().flat_map(of).collect()
}

fn alone(session: &Session, supplied: &Supplied, name: &str) -> Option<Stated> {
    let place = session.sources.place(*supplied.places.get(name)?);
    // Of what is not a text the name says it all.
    let of_text = place.to_string();
    let whole = place.name.strip_prefix('<').and_then(|name| name.strip_suffix('>'));
    let place = whole.filter(|name| name.contains(' ')).map_or(of_text, str::to_owned);
    Some(Stated { place, value: supplied.values.get(name)?.clone(), layer: None })
}

fn of_layer(session: &Session, file: usize, value: &LayerValue) -> Stated {
    let place = session.sources.place(value.span).to_string();
    Stated { place, value: value.value.clone(), layer: Some((file, value.condition.clone(), value.merge)) }
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
