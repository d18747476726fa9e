//! The manifest of a module.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Environment, Version};
use crate::manifest::{self, Context, ManifestFault, Value, same, wildcard};

/// The manifest of a module, evaluated.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// `ModuleVersion`.
    pub version: Option<Version>,
    /// `PrivateData.PSData.Prerelease`.
    pub prerelease: Option<String>,
    /// `PrivateData.Stead.Undo`.
    #[serde(default)]
    pub undo: StatedUndo,
    /// `RootModule`, or `ModuleToProcess`.
    pub root: Option<String>,
    /// The paths and names in `NestedModules`.
    pub nested: Vec<String>,
    /// Those of them that are given with a version: PowerShell refuses a module that lacks one of these.
    pub specified: Vec<String>,
    /// `ScriptsToProcess`.
    pub scripts: Vec<String>,
    /// The names in `RequiredModules`.
    pub required: Vec<String>,
    /// `DscResourcesToExport`.
    pub exports: Exports,
    /// `GUID`.
    pub guid: Option<String>,
    /// `Author`.
    pub author: Option<String>,
    /// `CompanyName`.
    pub company: Option<String>,
    /// `Copyright`.
    pub copyright: Option<String>,
    /// `Description`.
    pub description: Option<String>,
    /// `CompatiblePSEditions`.
    pub editions: Vec<String>,
    /// `PowerShellVersion`.
    pub powershell: Option<Version>,
}

/// Which resources a module exports.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Exports {
    /// It does not say: none of its classes.
    #[default]
    Unstated,
    /// All: the list is empty or has a wildcard, whatever else is in it.
    All,
    /// These, whatever their case.
    Named(Vec<String>),
}

/// Of which resources of a module a former state can be set again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StatedUndo {
    /// It does not say: of none.
    #[default]
    Unstated,
    /// Of all.
    State,
    /// Of these, whatever their case.
    StateOf(Vec<String>),
}

impl StatedUndo {
    /// Returns whether the former state of a resource of this name can be set again.
    pub fn is_by_state(&self, resource: &str) -> bool {
        match self {
            Self::Unstated => false,
            Self::State => true,
            Self::StateOf(names) => names.iter().any(|name| same(name, resource)),
        }
    }
}

/// The members that a manifest may have.
const MEMBERS: &[&str] = &[
    "AliasesToExport",
    "Author",
    "CLRVersion",
    "CmdletsToExport",
    "CompanyName",
    "CompatiblePSEditions",
    "Copyright",
    "DefaultCommandPrefix",
    "Description",
    "DotNetFrameworkVersion",
    "DscResourcesToExport",
    "FileList",
    "FormatsToProcess",
    "FunctionsToExport",
    "GUID",
    "HelpInfoURI",
    "ModuleList",
    "ModuleToProcess",
    "ModuleVersion",
    "NestedModules",
    "PowerShellHostName",
    "PowerShellHostVersion",
    "PowerShellVersion",
    "PrivateData",
    "ProcessorArchitecture",
    "RequiredAssemblies",
    "RequiredModules",
    "RootModule",
    "ScriptsToProcess",
    "TypesToProcess",
    "VariablesToExport",
];

/// The newest PowerShell that is known; a manifest that asks for a later one is not valid.
const POWERSHELL: [u32; 2] = [7, 99];

/// Reads the manifest of a module. `folder` is the one that it lies in.
pub(super) fn read(text: &str, folder: &Path, environment: &Environment<'_>) -> Result<Manifest, ManifestFault> {
    let folder = folder.to_string_lossy();
    let table = manifest::read(text, &Context { folder: &folder, environment, variables: None })?;
    let place = |key: &str| MemberOffsets { text }.of(key);
    let fault = |key: &str, message: String| ManifestFault { offset: place(key), message };
    if let Value::Table(entries) = &table {
        let unknown =
            entries.iter().map(|(key, _)| key.to_text()).find(|key| !MEMBERS.iter().any(|known| same(known, key)));
        if let Some(key) = unknown {
            return Err(fault(&key, format!("'{key}' is not a member of a module manifest")));
        }
    }
    let version = |key: &str| match table.get(key).filter(|value| **value != Value::Null) {
        None => Ok(None),
        Some(value) => match Version::parse(&value.to_text()) {
            Some(version) => Ok(Some(version)),
            None => Err(fault(key, format!("'{key}' must be a version such as '1.0.0', found '{}'", value.to_text()))),
        },
    };
    let Some(module) = version("ModuleVersion")? else {
        return Err(fault("ModuleVersion", "'ModuleVersion' is missing".to_owned()));
    };
    let powershell = version("PowerShellVersion")?;
    if let Some(wanted) = powershell.as_ref().filter(|wanted| **wanted > Version::of(&POWERSHELL)) {
        return Err(fault("PowerShellVersion", format!("the module requires PowerShell {wanted}")));
    }
    let text_of = |key: &str| table.get(key).filter(|value| **value != Value::Null).map(Value::to_text);
    let root = text_of("RootModule").filter(|root| !root.is_empty());
    let older = text_of("ModuleToProcess").filter(|root| !root.is_empty());
    if table.get("RootModule").is_some() && table.get("ModuleToProcess").is_some() {
        return Err(fault("ModuleToProcess", "'RootModule' and 'ModuleToProcess' cannot be used together".to_owned()));
    }
    Ok(Manifest {
        version: Some(module),
        prerelease: prerelease(&table),
        undo: undo(&table).map_err(|message| fault("PrivateData", message))?,
        root: root.or(older),
        nested: modules(&table, "NestedModules"),
        specified: specified(&table),
        scripts: texts(&table, "ScriptsToProcess"),
        required: modules(&table, "RequiredModules"),
        exports: exports(table.get("DscResourcesToExport")),
        guid: text_of("GUID"),
        author: text_of("Author"),
        company: text_of("CompanyName"),
        copyright: text_of("Copyright"),
        description: text_of("Description"),
        editions: texts(&table, "CompatiblePSEditions"),
        powershell,
    })
}

fn exports(value: Option<&Value>) -> Exports {
    let Some(value) = value.filter(|value| **value != Value::Null) else { return Exports::Unstated };
    let names: Vec<String> =
        value.clone().elements().iter().map(Value::to_text).filter(|name| !name.is_empty()).collect();
    if names.is_empty() || names.iter().any(|name| wildcard::is_pattern(name)) {
        return Exports::All;
    }
    Exports::Named(names)
}

fn prerelease(table: &Value) -> Option<String> {
    let data = table.get("PrivateData")?.get("PSData")?;
    data.get("Prerelease")?.as_text().filter(|label| !label.is_empty()).map(str::to_owned)
}

/// `PrivateData.Stead.Undo`: a word for all resources, or a table with a word for each of some.
fn undo(table: &Value) -> Result<StatedUndo, String> {
    let stead = table.get("PrivateData").and_then(|data| data.get("Stead"));
    let Some(stated) = stead.and_then(|stead| stead.get("Undo")).filter(|value| **value != Value::Null) else {
        return Ok(StatedUndo::Unstated);
    };
    let is_state = |value: &Value| value.as_text().is_some_and(|word| same(word, "State"));
    match stated {
        Value::Table(entries) if entries.iter().all(|(_, value)| is_state(value)) => {
            Ok(StatedUndo::StateOf(entries.iter().map(|(name, _)| name.to_text()).collect()))
        }
        word if is_state(word) => Ok(StatedUndo::State),
        _ => {
            Err("'PrivateData.Stead.Undo' must be 'State', or a table with 'State' for each of some resources"
                .to_owned())
        }
    }
}

fn texts(table: &Value, key: &str) -> Vec<String> {
    let values = table.get(key).cloned().map(Value::elements).unwrap_or_default();
    values.iter().map(Value::to_text).filter(|text| !text.is_empty()).collect()
}

/// Names and paths of modules, of which each may be a table with a version.
fn modules(table: &Value, key: &str) -> Vec<String> {
    let values = table.get(key).cloned().map(Value::elements).unwrap_or_default();
    let name = |value: &Value| match value {
        Value::Table(_) => value.get("ModuleName").map(Value::to_text),
        other => Some(other.to_text()),
    };
    let mut names: Vec<String> = Vec::new();
    for name in values.iter().filter_map(name).filter(|name| !name.is_empty()) {
        if !names.iter().any(|known| same(known, &name)) {
            names.push(name);
        }
    }
    names
}

/// The nested modules that are tables.
fn specified(table: &Value) -> Vec<String> {
    let values = table.get("NestedModules").cloned().map(Value::elements).unwrap_or_default();
    values.iter().filter_map(|value| value.get("ModuleName").map(Value::to_text)).collect()
}

/// Returns the offset at which the text of a manifest names the first of these members.
pub(super) fn member_offset(text: &str, keys: &[&str]) -> usize {
    keys.iter().map(|key| MemberOffsets { text }.of(key)).find(|offset| *offset > 0).unwrap_or_default()
}

/// The modules in `RequiredModules` of a manifest: names, or tables with versions.
pub(super) fn required(text: &str, folder: &Path, environment: &Environment<'_>) -> Vec<Value> {
    let folder = folder.to_string_lossy();
    let table = manifest::read(text, &Context { folder: &folder, environment, variables: None });
    table.ok().and_then(|table| table.get("RequiredModules").cloned()).map(Value::elements).unwrap_or_default()
}

/// Where the text of a manifest names a member.
struct MemberOffsets<'a> {
    text: &'a str,
}

impl MemberOffsets<'_> {
    /// The offset of the first line that begins with the key; 0 when none does.
    fn of(&self, key: &str) -> usize {
        let mut offset = 0;
        for line in self.text.split_inclusive(['\n', '\r']) {
            let bare = line.trim_start().trim_start_matches(['\'', '"', '@', '{', ' ']);
            if bare.get(..key.len()).is_some_and(|start| same(start, key)) {
                return offset + line.len() - line.trim_start().len();
            }
            offset += line.len();
        }
        0
    }
}
