//! `get`, `set` and `export`: resources without a document.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use stead_core::call::{Execution, Exported, Failure, FailureKind, Operation, Outcome};
use stead_core::event::Mode;
use stead_core::export::escaped;
use stead_core::value::{Object, Value};
use stead_core::wire::results::{DOCUMENT_SCHEMA, exported_instance};
use stead_engine::{
    InvokeError, Planned, ReconcileOptions, ResourceCall, RunOptions, Session, error_chain, finding_line,
};

use super::confirm::confirm;
use super::ready::get_ready;
use super::{Task, carry_out};
use crate::exit::Exit;
use crate::input;
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::{AboutRun, DocumentRequest, ExportRequest, GetRequest, SetRequest};
use crate::terminal::{Output, complain, data_as};

/// Shows one instance as a document has it, or all that exist.
pub(crate) fn get(request: &GetRequest, env: &ProcessEnv) -> Exit {
    let session = session(env);
    let cancel = session.cancel().clone();
    let shown = find(session, &request.resource).and_then(|resource| {
        if request.words.is_empty() {
            return resource.all(Value::Null);
        }
        let (name, properties) = resource.stated(&request.words)?;
        resource.one(name, properties).map(|instance| vec![instance])
    });
    interrupt::exit(&cancel, shown.map_or_else(|exit| exit, |instances| show(&instances, request.output)))
}

/// Writes a document of all instances that exist.
pub(crate) fn export(request: &ExportRequest, env: &ProcessEnv) -> Exit {
    let session = session(env);
    let cancel = session.cancel().clone();
    let exported = exported(&session, &request.words);
    interrupt::exit(&cancel, exported.map_or_else(|exit| exit, |instances| show(&instances, request.output)))
}

/// The instances of each resource that is named, of which the assignments behind its name are the filter.
fn exported(session: &Session, words: &[String]) -> Result<Vec<Json>, Exit> {
    let mut instances = Vec::new();
    let mut seen = BTreeSet::new();
    let mut rest = words;
    while let Some((resource, behind)) = rest.split_first() {
        let filter = behind.iter().take_while(|word| assignment(word).is_some()).count();
        let (filter, next) = behind.split_at(filter);
        rest = next;
        let resource = find(session.beside(session.cancel().clone()), resource)?;
        let filter = if filter.is_empty() { Value::Null } else { Value::Object(resource.stated(filter)?.1) };
        if seen.insert((resource.0.manifest.type_name.clone(), filter.to_redacted_json().to_string())) {
            instances.extend(resource.all(filter)?);
        }
    }
    Ok(instances)
}

/// Brings one instance into the desired state, as `apply` does with a document of it.
pub(crate) fn set(request: &SetRequest, env: &ProcessEnv) -> Exit {
    applied(request, env).unwrap_or_else(|exit| exit)
}

fn applied(request: &SetRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let resource = find(session(env), &request.resource)?;
    let (name, properties) = resource.stated(&request.words)?;
    let text = document(resource.0.manifest.type_name.as_str(), name, properties);
    let mode = if request.execution == Execution::WhatIf { Mode::PLAN } else { Mode::APPLY };
    let (document, view) = (DocumentRequest::on_command_line(text), request.view);
    let ready = get_ready(&document, view, resource.0.session, (mode, &ReconcileOptions::none()))?;
    let asks = request.asks && mode == Mode::APPLY;
    let planned = if asks { confirm(view, &ready)? } else { Planned::default() };
    let nothing = AboutRun::default();
    Ok(carry_out(&ready, view, Task { planned, ..Task::new(mode, &nothing) }, env)?.end(ready))
}

fn session(env: &ProcessEnv) -> Session {
    let session = env.host.session(input::current_folder());
    interrupt::catch(&session);
    session
}

fn show(instances: &[Json], output: Output) -> Exit {
    let document = json!({ "$schema": DOCUMENT_SCHEMA, "resources": instances });
    data_as(&document, if output == Output::Text { Output::Yaml } else { output });
    Exit::Success
}

/// The text of a document of one instance, a line for each property, so that findings point at one.
fn document(type_name: &str, name: String, properties: Object) -> String {
    let mut text = format!("resources:\n- name: {}\n  type: {type_name}\n", literal(Value::from(name)));
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  properties:{}", if properties.is_empty() { " {}" } else { "" });
    for (name, value) in properties {
        let _ = writeln!(text, "    {}: {}", key(&name), literal(value));
    }
    text
}

/// The name of a property in YAML.
pub(super) fn key(name: &str) -> String {
    let is_plain = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    if is_plain { name.to_owned() } else { literal(Value::from(name)) }
}

/// A value in a line of YAML that is read as that value: JSON, in which text that YAML does not take is escaped as well.
pub(super) fn literal(value: Value) -> String {
    let json = escaped(value).to_redacted_json().to_string();
    json.chars().fold(String::with_capacity(json.len()), |mut text, char| {
        if matches!(char, '\u{7f}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') {
            let _ = write!(text, "\\u{:04x}", u32::from(char));
        } else {
            text.push(char);
        }
        text
    })
}

/// The name and the text of `NAME=VALUE`, where the name is one that a property may have.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    word.split_once('=').filter(|(name, _)| is_name(name))
}

fn find(session: Session, name: &str) -> Result<ResourceInstances, Exit> {
    ResourceCall::named(session, name).map(ResourceInstances).map_err(|error| match error {
        InvokeError::Implementation(name) => {
            let message = format!("'{name}' is an adapter, a group or a composite resource");
            refused(&message, Some("use it in a document"))
        }
        error => refused(&error.to_string(), error.help()),
    })
}

/// The instances of one resource.
struct ResourceInstances(ResourceCall);

impl ResourceInstances {
    fn schema(&self) -> Result<Json, Exit> {
        self.0.schema().map_err(|refusal| failed(&InvokeError::from(refusal).to_string()))
    }

    /// The name and the properties of an instance: assignments to properties, and before them the value of the key.
    fn stated(&self, words: &[String]) -> Result<(String, Object), Exit> {
        let schema = self.schema()?;
        let no_properties = Map::new();
        let declared = schema.get("properties").and_then(Json::as_object).unwrap_or(&no_properties);
        let (key, rest) = match words.split_first() {
            Some((first, rest)) if assignment(first).is_none() => (Some(first), rest),
            _ => (None, words),
        };
        let mut properties = Object::new();
        if let Some(key) = key {
            properties.insert(self.key(key)?, Value::from(key.as_str()));
        }
        for word in rest {
            let not_one = || refused(&format!("'{word}' is not an assignment"), Some("write NAME=VALUE"));
            let (name, text) = assignment(word).ok_or_else(not_one)?;
            let known = declared.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            let (name, kind) = known.map_or((name, None), |(known, property)| (known.as_str(), property.get("type")));
            let value = input::single(text, kind.is_some_and(|kind| kind == "string"));
            if properties.insert(name.to_owned(), value).is_some() {
                return Err(refused(&format!("'{name}' is given twice"), None));
            }
        }
        let name = key.cloned().unwrap_or_else(|| self.0.manifest.type_name.short().to_owned());
        Ok((name, properties))
    }

    /// The property that tells one instance from another.
    fn key(&self, stated: &str) -> Result<String, Exit> {
        let keys = self.0.keys();
        if let [key] = keys.as_slice() {
            return Ok(key.clone());
        }
        let message =
            format!("'{}' has no single key, so '{stated}' cannot name an instance", self.0.manifest.type_name);
        let assignments: Vec<String> = keys.iter().map(|key| format!("{key}=VALUE")).collect();
        let help =
            if keys.is_empty() { "write NAME=VALUE".to_owned() } else { format!("write {}", assignments.join(" ")) };
        Err(refused(&message, Some(&help)))
    }

    fn one(&self, name: String, properties: Object) -> Result<Json, Exit> {
        let plan = RunOptions::new(Mode::direct(Operation::Get, Execution::Actual), NonZeroUsize::MIN);
        let attempt = self.0.attempt(Value::Object(properties), plan);
        let (record, sources) = attempt.map_err(|error| failed(&error_chain(&error)))?;
        if let Some(failure) = record.failure() {
            return Err(not_read(failure));
        }
        let state = match record.response.as_deref().map(|response| &response.outcome) {
            Some(Outcome::Got(state)) => (**state).clone(),
            _ => return Err(failed(&record.finding().map_or_else(String::new, |it| finding_line(it, &sources)))),
        };
        let (type_name, depends_on, metadata) = (None, Vec::new(), None);
        let found = Exported { type_name, name: Some(name), properties: escaped(state), depends_on, metadata };
        self.instance(0, &found, &mut BTreeMap::new())
    }

    fn all(&self, filter: Value) -> Result<Vec<Json>, Exit> {
        let manifest = &self.0.manifest;
        if !manifest.capabilities.export {
            let message = format!("'{}' cannot list its instances", manifest.type_name);
            return Err(refused(&message, Some(&format!("'stead get {} KEY' shows one", manifest.type_name))));
        }
        let found = self.0.exported(filter).map_err(|refusal| failed(&InvokeError::from(refusal).to_string()))?;
        let mut schemas = BTreeMap::new();
        found.iter().enumerate().map(|(at, each)| self.instance(at, each, &mut schemas)).collect()
    }

    /// An instance as a document has it, which its properties are for already: without what can only be read, by the schema of its
    /// type.
    fn instance(&self, at: usize, found: &Exported, schemas: &mut BTreeMap<String, Json>) -> Result<Json, Exit> {
        let mut whole = exported_instance(&self.0.manifest.type_name, at, found, Duration::ZERO);
        let type_name = whole["type"].as_str().unwrap_or_default().to_owned();
        if !schemas.contains_key(&type_name) {
            schemas.insert(type_name.clone(), self.schema_of(&type_name)?);
        }
        let declared = &schemas[&type_name]["properties"];
        if let Some(members) = whole["properties"].as_object_mut() {
            members.retain(|name, _| declared[name.as_str()]["readOnly"] != true);
        }
        let mut instance = Map::new();
        for name in ["name", "type", "dependsOn", "properties", "metadata"] {
            let Some(value) = whole.get_mut(name).map(Json::take) else { continue };
            let value = if name == "name" { escaped(Value::from(value)).to_redacted_json() } else { value };
            instance.insert(name.to_owned(), value);
        }
        Ok(Json::Object(instance))
    }

    fn schema_of(&self, type_name: &str) -> Result<Json, Exit> {
        if type_name == self.0.manifest.type_name.as_str() {
            return self.schema();
        }
        let session = self.0.session.beside(self.0.session.cancel().clone());
        find(session, type_name)?.schema()
    }
}

/// A property that is not valid is a mistake of the command line.
fn not_read(failure: &Failure) -> Exit {
    complain(&format!("error: {}", failure.message.trim_end()));
    if failure.kind == FailureKind::Invalid { Exit::Unusable } else { Exit::Failed }
}

fn refused(message: &str, help: Option<&str>) -> Exit {
    complain(&format!("error: {message}"));
    if let Some(help) = help {
        complain(&format!("help: {help}"));
    }
    Exit::Unusable
}

fn failed(message: &str) -> Exit {
    complain(&format!("error: {message}"));
    Exit::Failed
}
