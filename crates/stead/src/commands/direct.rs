//! `get`, `set` and `export`: resources by the command line alone.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};
use stead_core::call::Exported;
use stead_core::event::Mode;
use stead_core::export::escaped;
use stead_core::value::{Object, Value};
use stead_core::wire::results::DOCUMENT_SCHEMA;
use stead_engine::{Refusal, ResourceCall, ResourceSpecification, Session};

use super::{Consent, carry_out};
use crate::args::{Document, Export, Get, Output, Set};
use crate::exit::Exit;
use crate::input;
use crate::interrupt;
use crate::output::{complain, data_as};
use crate::process_env::ProcessEnv;
use stead_engine::ReconcileOptions;

/// Shows one instance as a document has it, or all instances that there are.
pub(crate) fn get(arguments: &Get, env: &ProcessEnv) -> Exit {
    let session = session(env);
    let cancel = session.cancel.clone();
    let shown = ResourceInstances::find(session, &arguments.resource).and_then(|resource| {
        if arguments.words.is_empty() {
            return resource.all(ReadOnly::Shown);
        }
        let (name, properties) = resource.stated(&arguments.words)?;
        resource.one(&name, properties).map(|instance| vec![instance])
    });
    interrupt::exit(&cancel, shown.map_or_else(|exit| exit, |instances| show(&instances, arguments.output)))
}

/// Writes a document of all instances that there are.
pub(crate) fn export(arguments: &Export, env: &ProcessEnv) -> Exit {
    let mut instances = Vec::new();
    let session = session(env);
    let cancel = session.cancel.clone();
    for resource in &arguments.resources {
        match ResourceInstances::find(session.beside(cancel.clone()), resource)
            .and_then(|resource| resource.all(ReadOnly::LeftOut))
        {
            Ok(found) => instances.extend(found),
            Err(exit) => return interrupt::exit(&cancel, exit),
        }
    }
    interrupt::exit(&cancel, show(&instances, arguments.output))
}

/// Brings one instance into the state of the command line, as `apply` does with a document of it.
pub(crate) fn set(arguments: &Set, env: &ProcessEnv) -> Exit {
    let text = ResourceInstances::find(session(env), &arguments.resource).and_then(|resource| {
        let (name, properties) = resource.stated(&arguments.words)?;
        Ok(document(resource.0.manifest.type_name.as_str(), &name, properties))
    });
    let text = match text {
        Ok(text) => text,
        Err(exit) => return exit,
    };
    let mode = if arguments.what_if { Mode::PLAN } else { Mode::APPLY };
    let consent = if arguments.yes || arguments.what_if { Consent::Given } else { Consent::Asked };
    let document = Document::on_command_line(text, arguments);
    carry_out(&document, mode, consent, &ReconcileOptions::none(), None, env)
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
fn document(type_name: &str, name: &str, properties: Object) -> String {
    let mut text = format!("resources:\n- name: {}\n  type: {type_name}\n", Json::from(name));
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  properties:{}", if properties.is_empty() { " {}" } else { "" });
    for (name, value) in properties {
        let is_plain = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
        let name = if is_plain { name } else { Json::from(name).to_string() };
        let _ = writeln!(text, "    {name}: {}", escaped(value).to_redacted_json());
    }
    text
}

/// Whether properties that can only be read are shown: a document must not state them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadOnly {
    Shown,
    LeftOut,
}

/// The instances of one resource.
struct ResourceInstances(ResourceCall);

impl ResourceInstances {
    fn find(session: Session, name: &str) -> Result<Self, Exit> {
        let wanted = ResourceSpecification { name: name.to_owned(), module: None, version: None };
        ResourceCall::specified(session, &wanted).map(Self).map_err(|error| {
            let help = error.help().map(str::to_owned);
            refused(&error.to_string(), help.as_deref())
        })
    }

    /// The name and the properties of an instance: assignments to properties, and before them the value of the key.
    fn stated(&self, words: &[String]) -> Result<(String, Object), Exit> {
        let schema = self.0.schema().unwrap_or_default();
        let no_properties = Map::new();
        let declared = schema.get("properties").and_then(Json::as_object).unwrap_or(&no_properties);
        let assigned = |word: &str| -> Option<(String, Value)> {
            let (name, text) = word.split_once('=')?;
            let known = declared.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            let (name, kind) = known.map_or((name, None), |(known, property)| (known.as_str(), property.get("type")));
            Some((name.to_owned(), input::single(text, kind.is_some_and(|kind| kind == "string"))))
        };
        let is_declared = |word: &str| {
            let name = word.split('=').next().unwrap_or_default();
            word.contains('=') && declared.keys().any(|known| known.eq_ignore_ascii_case(name))
        };
        let (key, rest) = match words.split_first() {
            Some((first, rest)) if !is_declared(first) => (Some(first), rest),
            _ => (None, words),
        };
        let mut properties = Object::new();
        if let Some(key) = key {
            properties.insert(self.key(key)?, Value::from(key.as_str()));
        }
        for word in rest {
            let (name, value) = assigned(word)
                .ok_or_else(|| refused(&format!("'{word}' is not an assignment"), Some("write NAME=VALUE")))?;
            properties.insert(name, value);
        }
        let name = key.cloned().unwrap_or_else(|| self.0.manifest.type_name.short().to_owned());
        Ok((name, properties))
    }

    /// The property that tells one instance from another.
    fn key(&self, stated: &str) -> Result<String, Exit> {
        match self.0.keys().as_slice() {
            [key] => Ok(key.clone()),
            keys => {
                let type_name = &self.0.manifest.type_name;
                let has = if keys.is_empty() { "no property" } else { "more than one property" };
                let message = format!("'{stated}' is not an assignment, and '{type_name}' has {has} that is its key");
                Err(refused(&message, Some("write NAME=VALUE")))
            }
        }
    }

    fn one(&self, name: &str, properties: Object) -> Result<Json, Exit> {
        let result = self.0.get(Value::Object(properties)).map_err(|refusal| failed(&refusal))?;
        let state = result.get("actualState").cloned().unwrap_or_default();
        Ok(instance(self.0.manifest.type_name.as_str(), name, state))
    }

    fn all(&self, read_only: ReadOnly) -> Result<Vec<Json>, Exit> {
        let manifest = &self.0.manifest;
        if !manifest.capabilities.export {
            let message = format!("'{}' cannot list its instances", manifest.type_name);
            return Err(refused(&message, Some("name one: 'stead get TYPE KEY'")));
        }
        let found = self.0.exported(Value::Null).map_err(|refusal| failed(&refusal))?;
        let schema = if read_only == ReadOnly::LeftOut { self.0.schema().unwrap_or_default() } else { Json::Null };
        Ok(found.iter().enumerate().map(|(at, each)| self.exported(at, each, &schema)).collect())
    }

    /// An instance of an export, without what `schema` says can only be read.
    fn exported(&self, at: usize, each: &Exported, schema: &Json) -> Json {
        let type_name = each.type_name.as_ref().unwrap_or(&self.0.manifest.type_name);
        let name = each.name.clone().unwrap_or_else(|| format!("{}-{at}", type_name.short()));
        let mut state = each.properties.to_redacted_json();
        if let Some(members) = state.as_object_mut() {
            members.retain(|name, _| schema["properties"][name.as_str()]["readOnly"] != true);
        }
        let mut instance = instance(type_name.as_str(), &name, state);
        if !each.depends_on.is_empty() {
            let needs = each.depends_on.iter().map(|id| format!("[resourceId('{}', '{}')]", id.type_name, id.name));
            instance["dependsOn"] = needs.collect();
        }
        instance
    }
}

fn instance(type_name: &str, name: &str, state: Json) -> Json {
    let name = escaped(Value::from(name)).to_redacted_json();
    json!({ "name": name, "type": type_name, "properties": escaped(Value::from(state)).to_redacted_json() })
}

fn refused(message: &str, help: Option<&str>) -> Exit {
    complain(&format!("error: {message}"));
    if let Some(help) = help {
        complain(&format!("help: {help}"));
    }
    Exit::Unusable
}

fn failed(refusal: &Refusal) -> Exit {
    let (Refusal::NotFound(message) | Refusal::Failed(message)) = refusal else { return Exit::Failed };
    complain(&format!("error: {message}"));
    Exit::Failed
}
