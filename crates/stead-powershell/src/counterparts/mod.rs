//! Counterparts of the resources that Windows PowerShell has built in: `File`, `Log` and `Script` of the module
//! `PSDesiredStateConfiguration`, with the properties of their MOF schemas.

mod file;
mod log;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stead_core::call::{Failure, FailureKind};
use stead_host::provider::{Plain, Provider};
use stead_powershell_reader::manifest::same;
use stead_powershell_reader::module::{Exports, Manifest, Module, Version};
use stead_powershell_reader::resource::{Methods, Resource};
use stead_powershell_reader::types::Type;
use stead_powershell_reader::types::{Property, Rule};

use crate::convert::{self, Json, Purpose};
use crate::provider::{PowerShellProvider, Source};
use crate::worker::Pool;

/// The module that Windows PowerShell has them in.
pub(crate) const MODULE: &str = "PSDesiredStateConfiguration";

/// Their names.
pub(crate) const NAMES: [&str; 3] = ["File", "Log", "Script"];

/// The module that the worker imports for `Script`; see `load.ps1`.
const SCRIPT: &str = concat!("text:", include_str!("script.ps1"));

/// The module, as one that is found on the disk. It has no file.
pub(crate) fn module() -> Module {
    let text = |name, key| property(name, Type::String, key);
    let script = |name| Property { rules: vec![Rule::NotEmpty], ..text(name, true) };
    let resources = vec![
        resource("File", "A file or a directory.", file::properties()),
        resource("Log", "Writes a message to the log.", vec![text("Message", true)]),
        resource(
            "Script",
            "Runs scripts to get, test and set a state.",
            vec![
                script("GetScript"),
                script("SetScript"),
                script("TestScript"),
                Property { read_only: true, ..text("Result", false) },
            ],
        ),
    ];
    Module {
        name: MODULE.to_owned(),
        version: Version::parse("1.1").unwrap_or_else(Version::none),
        file: place(),
        manifest: Some(Manifest { exports: Exports::All, ..Manifest::default() }),
        scripts: Vec::new(),
        resources,
        findings: Vec::new(),
    }
}

fn place() -> Arc<PathBuf> {
    Arc::new(PathBuf::from(MODULE))
}

fn resource(name: &str, description: &str, properties: Vec<Property>) -> Arc<Resource> {
    Arc::new(Resource {
        file: place(),
        implementation: place(),
        description: Some(description.to_owned()),
        methods: Methods { what_if: name != "Script", ..Methods::default() },
        ..Resource::built_in(name, properties)
    })
}

fn property(name: &str, ty: Type, key: bool) -> Property {
    Property { key, ..Property::new(name, ty) }
}

/// Returns whether the resources of a module are counterparts.
pub(crate) fn is_counterpart(module: &Module) -> bool {
    module.file.as_path() == Path::new(MODULE)
}

/// Returns the provider of a counterpart.
pub(crate) fn provider(resource: &Arc<Resource>, pool: Option<Pool>) -> Option<Arc<dyn Provider>> {
    Some(match resource.name.as_str() {
        "File" => Arc::new(file::Counterpart::new(Arc::clone(resource))?),
        "Log" => Arc::new(log::Counterpart::new(Arc::clone(resource))),
        _ => Arc::new(PowerShellProvider::new(pool, Arc::clone(resource), Source::built_in(SCRIPT))),
    })
}

/// Returns the properties that an instance states, checked, by the names as they are declared.
fn stated(resource: &Resource, input: &Plain) -> Result<StatedProperties, Failure> {
    let Json::Object(stated) = Json::from(input.expose()) else { return Ok(StatedProperties(Vec::new())) };
    convert::properties(&resource.properties, &stated, Purpose::Instance).map_err(|refusals| {
        let messages: Vec<String> = refusals.iter().map(|refusal| format!("{refusal} [{}]", refusal.code.id)).collect();
        Failure::new(FailureKind::Invalid, messages.join("; "))
    })?;
    let declared = |name: String| {
        let found = resource.properties.iter().find(|property| same(&property.name, &name));
        found.map_or(name, |property| property.name.clone())
    };
    Ok(StatedProperties(stated.into_iter().map(|(name, value)| (declared(name), value)).collect()))
}

/// Properties that were checked.
struct StatedProperties(Vec<(String, Json)>);

impl StatedProperties {
    fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value).filter(|value| **value != Json::Null)
    }

    fn text(&self, name: &str) -> Option<&str> {
        if let Json::String(text) = self.get(name)? { Some(text) } else { None }
    }

    fn is(&self, name: &str, word: &str) -> bool {
        self.text(name).is_some_and(|text| same(text, word))
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some(&Json::Bool(true))
    }
}
