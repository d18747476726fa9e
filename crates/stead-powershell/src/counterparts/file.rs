//! `File`: a file or a directory, by what `Stead/File` and `Stead/Directory` do.

use std::sync::Arc;

use serde_json::Value as PlainJson;
use stead_core::call::{Execution, Failure, FailureKind};
use stead_core::claims::Claims;
use stead_core::value::{Object, Value};
use stead_host::provider::{Context, Cost, Plain, Prediction, Provider, SetReply, State, TestReply};
use stead_powershell_reader::resource::Resource;
use stead_powershell_reader::schema::json_schema;
use stead_powershell_reader::types::Type;
use stead_powershell_reader::types::{Property, Rule};
use stead_resources::{directory, file};

use super::{StatedProperties, property, stated};

/// The properties as the MOF schema has them.
pub(super) fn properties() -> Vec<Property> {
    let text = |name| property(name, Type::String, false);
    let one_of = |name, words: &[&str]| Property {
        rules: vec![Rule::OneOf(words.iter().map(|&word| word.to_owned()).collect())],
        ..text(name)
    };
    let flag = |name| property(name, Type::Boolean, false);
    let attributes = property("Attributes", Type::Array(Box::new(Type::String)), false);
    let read_only = |name| Property { read_only: true, ..text(name) };
    vec![
        property("DestinationPath", Type::String, true),
        one_of("Ensure", &["Present", "Absent"]),
        one_of("Type", &["File", "Directory"]),
        text("SourcePath"),
        text("Contents"),
        one_of("Checksum", &["SHA-1", "SHA-256", "SHA-512", "CreatedDate", "ModifiedDate"]),
        flag("Recurse"),
        flag("Force"),
        attributes,
        property("Credential", Type::Credential, false),
        flag("MatchSource"),
        read_only("CreatedDate"),
        read_only("ModifiedDate"),
    ]
}

/// Carries out `File`.
pub(super) struct Counterpart {
    resource: Arc<Resource>,
    files: Arc<dyn Provider>,
    directories: Arc<dyn Provider>,
}

impl Counterpart {
    /// `None` without the resources that it is made of, which are always there.
    pub(super) fn new(resource: Arc<Resource>) -> Option<Self> {
        let (files, directories) = (file::built_in()?.provider, directory::built_in()?.provider);
        Some(Self { resource, files, directories })
    }

    fn desired(&self, input: &Plain) -> Result<Desired, Failure> {
        let stated = stated(&self.resource, input)?;
        check(&stated)?;
        let is_directory = stated.is("Type", "Directory");
        Ok(Desired {
            provider: Arc::clone(if is_directory { &self.directories } else { &self.files }),
            kind: if is_directory { "Directory" } else { "File" },
            properties: translated(&stated, is_directory),
            follows_source: stated.text("Checksum").is_some(),
        })
    }
}

/// An instance in the words of the resource that carries it out.
struct Desired {
    provider: Arc<dyn Provider>,
    kind: &'static str,
    properties: Object,
    /// True if the content of a source is compared, and not only copied once.
    follows_source: bool,
}

impl Desired {
    /// Returns the properties that it is carried out with: without a checksum, a file that exists is not compared
    /// with its source.
    fn input(&self, cx: &Context) -> Plain {
        let mut properties = self.properties.clone();
        let path = properties.get("path").and_then(Value::as_str).map(|path| cx.resolve(path));
        if !self.follows_source && path.is_some_and(|path| path.symlink_metadata().is_ok()) {
            properties.remove("source");
        }
        Plain::new(Value::Object(properties))
    }

    fn state(&self, state: &Plain) -> State {
        let state = state.expose();
        let exist = state.get("_exist") != Some(&Value::Bool(false));
        let mut members = Object::new();
        let mut add = |name: &str, value: Option<&Value>| {
            members.extend(value.map(|value| (name.to_owned(), value.clone())));
        };
        add("DestinationPath", state.get("path"));
        add("Ensure", Some(&Value::from(if exist { "Present" } else { "Absent" })));
        add("Type", Some(&Value::from(self.kind)));
        add("Contents", state.get("content"));
        add("SourcePath", state.get("source"));
        add("ModifiedDate", state.get("modified"));
        Plain::new(Value::Object(members))
    }

    fn set(&self, reply: SetReply) -> SetReply {
        let changed = reply.changed.map(|names| renamed(&names));
        SetReply { after: reply.after.map(|after| self.state(&after)), changed, ..reply }
    }
}

/// The names of properties that differ, as this resource has them.
fn renamed(names: &[String]) -> Vec<String> {
    let name = |name: &String| match name.as_str() {
        "_exist" => "Ensure".to_owned(),
        "content" => "Contents".to_owned(),
        "source" | "drift" => "SourcePath".to_owned(),
        other => other.to_owned(),
    };
    let mut names: Vec<String> = names.iter().map(name).collect();
    names.dedup();
    names
}

/// Refuses what has no counterpart here, with the reason.
fn check(stated: &StatedProperties) -> Result<(), Failure> {
    let path = stated.text("DestinationPath").unwrap_or_default();
    let is_directory = stated.is("Type", "Directory");
    let source = stated.text("SourcePath").is_some();
    let drive = |text: &str| text.as_bytes().get(1) == Some(&b':') || text.starts_with("\\\\");
    let is_foreign_source = stated.text("SourcePath").is_some_and(drive);
    let copies = is_directory && source;
    let by_date = stated.is("Checksum", "CreatedDate") || stated.is("Checksum", "ModifiedDate");
    let wrong = [
        (drive(path), "DestinationPath", "is a Windows path; use a path such as /srv/share"),
        (is_foreign_source, "SourcePath", "is a Windows path; use a path such as /srv/share"),
        (stated.get("Attributes").is_some(), "Attributes", "is not supported: this system has no such attributes"),
        (stated.get("Credential").is_some(), "Credential", "is not supported: files are read as the user of the run"),
        (by_date, "Checksum", "must be SHA-1, SHA-256 or SHA-512: contents are compared, not dates"),
        (is_directory && stated.get("Contents").is_some(), "Contents", "cannot be used with a directory"),
        (source && stated.get("Contents").is_some(), "Contents", "cannot be used together with 'SourcePath'"),
        (
            copies && !stated.is_true("Recurse"),
            "Recurse",
            "must be true with a 'SourcePath': trees are copied as a whole",
        ),
        (
            copies && !(stated.is_true("MatchSource") && stated.text("Checksum").is_some()),
            "MatchSource",
            "must be true with the 'SourcePath' of a directory, with a 'Checksum': what was copied first is not remembered",
        ),
    ];
    match wrong.into_iter().find(|(is_wrong, ..)| *is_wrong) {
        None => Ok(()),
        Some((_, name, why)) => {
            let failure = Failure::new(FailureKind::Invalid, format!("'{name}' {why}"));
            Err(Failure { property: Some(format!("/{name}")), ..failure })
        }
    }
}

fn translated(stated: &StatedProperties, is_directory: bool) -> Object {
    let absent = stated.is("Ensure", "Absent");
    let mut properties = Object::new();
    let mut add = |name: &str, value: Value| drop(properties.insert(name.to_owned(), value));
    add("path", Value::from(stated.text("DestinationPath").unwrap_or_default()));
    add("_exist", Value::from(!absent));
    if is_directory && stated.is_true("Force") {
        add("recurse", Value::from(true));
    }
    if absent {
        return properties;
    }
    if let Some(contents) = stated.text("Contents") {
        add("content", Value::from(contents));
    }
    if let Some(source) = stated.text("SourcePath") {
        add("source", Value::from(source));
    }
    properties
}

impl Provider for Counterpart {
    fn described_schema(&self, _cx: &Context) -> Result<Option<PlainJson>, Failure> {
        Ok(Some(json_schema(&self.resource)))
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        self.desired(input).map(drop)
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired = self.desired(input)?;
        desired.provider.get(cx, &desired.input(cx)).map(|state| desired.state(&state))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = self.desired(input)?;
        let reply = desired.provider.test(cx, &desired.input(cx))?;
        Ok(TestReply {
            actual: reply.actual.map(|actual| desired.state(&actual)),
            differing: reply.differing.map(|names| renamed(&names)),
            unknown: reply.unknown,
            in_desired_state: reply.in_desired_state,
            pending: reply.pending,
            predicted: reply
                .predicted
                .map(|predicted| Prediction { after: desired.state(&predicted.after), ..predicted }),
        })
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = self.desired(input)?;
        desired.provider.set(cx, &desired.input(cx), execution).map(|reply| desired.set(reply))
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Process
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let desired = self.desired(input).ok()?;
        desired.provider.claims(&Plain::new(Value::Object(desired.properties)))
    }
}
