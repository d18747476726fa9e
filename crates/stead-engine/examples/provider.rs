//! stead as a library: a resource of one's own, a secret, and a journal.
//!
//! A program lets documents manage its settings. It says what a setting is, with a manifest and a schema, and how one is read
//! and changed, with a provider; the host is given both. The values are secrets: no event, no message and no line of the
//! journal holds one.
//!
//! `cargo run -p stead-engine --example provider -- settings.yaml journal < token`

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Write as _, read_to_string, stderr, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use stead_engine::journal::FileJournal;
use stead_engine::provider::{
    Capabilities, Context, EmbeddedResource, Execution, Failure, Implementation, Manifest, Plain, Provider, Schema,
    SetReply, State, TypeName, Version,
};
use stead_engine::{Host, HostOptions, Mode, Object, Run, RunOptions, Value, failure_lines, folder_of};

/// The settings of this program, by their names.
pub(crate) type Settings = Arc<Mutex<BTreeMap<String, String>>>;

/// Carries out instances of `Example.App/Setting`.
struct Setting {
    settings: Settings,
    schema: Arc<Schema>,
}

impl Provider for Setting {
    fn schema(&self, _: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        Ok(Some(Arc::clone(&self.schema)))
    }

    /// Reads the state as it is. stead compares it with the document, and asks for a `set` where they differ.
    fn get(&self, _: &Context, desired: &Plain) -> Result<State, Failure> {
        let name = text(desired, "name");
        let value =
            self.settings.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned().unwrap_or_default();
        Ok(Plain::new(json!({ "name": name, "value": value })))
    }

    /// Changes it. Not called by a plan: the manifest declares no what-if, so stead predicts the change itself.
    fn set(&self, _: &Context, desired: &Plain, _: Execution) -> Result<SetReply, Failure> {
        let (name, value) = (text(desired, "name"), text(desired, "value"));
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).insert(name, value);
        Ok(SetReply::default())
    }
}

/// A property, which the schema says is there and a text. Providers alone see secrets as they are.
fn text(desired: &Plain, property: &str) -> String {
    desired.expose().get(property).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The resource as documents know it.
pub(crate) fn setting(settings: &Settings) -> Result<EmbeddedResource, Box<dyn Error>> {
    let schema = Schema::compile(json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "value": { "type": "string", "format": "password" } },
        "required": ["name", "value"],
        "additionalProperties": false,
    }))?;
    let (name, version) = (TypeName::parse("Example.App/Setting")?, Version::parse("1.0.0")?);
    let capabilities = Capabilities { get: true, set: true, ..Capabilities::default() };
    let manifest = Manifest { capabilities, ..Manifest::new(name, version, Implementation::InProcess) };
    let provider = Setting { settings: Arc::clone(settings), schema: Arc::new(schema) };
    Ok(EmbeddedResource::new(manifest, Arc::new(provider))?)
}

/// Applies a document with the parameter `token`. Fails where it cannot be used, and then says what is wrong with it.
pub(crate) fn apply(file: &Path, token: &str, journal: &Path, settings: &Settings) -> Result<Run, Box<dyn Error>> {
    let host = Host::new(HostOptions { resources: vec![setting(settings)?], ..HostOptions::default() });
    let mut session = host.session(folder_of(file));
    let supplied = Object::from_iter([("token".to_owned(), Value::from(token))]);
    let text = std::fs::read_to_string(file)?;
    let prepared = session.prepare_checked(&file.to_string_lossy(), text, supplied, Mode::APPLY)?;
    let journal = Box::new(FileJournal::create(journal)?);
    Ok(session.run(&prepared, RunOptions { journal, ..RunOptions::new(Mode::APPLY, host.width()) })?)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut files = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(document), Some(journal)) = (files.next(), files.next()) else {
        return Err("usage: provider DOCUMENT JOURNAL < TOKEN".into());
    };
    let token = read_to_string(stdin())?;
    let run = apply(&document, token.trim_end(), &journal, &Settings::default())?;
    for line in failure_lines(&run) {
        writeln!(stderr(), "{line}")?;
    }
    writeln!(stdout(), "{:?}", run.totals())?;
    Ok(if run.totals().failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
