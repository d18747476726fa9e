//! Manifests as `resource list` and `extension list` print them: the keys and their order are those of DSC v3.

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::{AdaptedResource, Capabilities, Extension, Implementation, Manifest, ResourceKind, words};
use crate::id::TypeName;

/// A resource as one line of `resource list -o json`.
pub fn listing(manifest: &Manifest) -> Json {
    serde_json::to_value(ResourceListing::of(manifest)).unwrap_or_default()
}

const NULL: Cow<'static, Json> = Cow::Borrowed(&Json::Null);

/// A listing of a resource that borrows from its manifest, to be written at once.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceListing<'a> {
    r#type: &'a str,
    kind: Option<&'static str>,
    version: String,
    capabilities: Vec<&'static str>,
    deprecation_message: Option<&'a str>,
    path: Cow<'a, Json>,
    description: Option<&'a str>,
    directory: Cow<'a, Json>,
    implemented_as: &'a Json,
    author: Option<&'a str>,
    properties: &'a Json,
    require_adapter: Option<&'a str>,
    schema: &'a Json,
    target_resource: (),
    manifest: Cow<'a, Json>,
    adapted_content: &'a Json,
}

impl<'a> ResourceListing<'a> {
    /// Returns the listing of a resource.
    pub fn of(manifest: &'a Manifest) -> Self {
        let nothing_else = Self {
            r#type: manifest.type_name.as_str(),
            kind: kind(manifest.kind),
            version: manifest.version.to_string(),
            capabilities: capabilities(manifest.capabilities),
            deprecation_message: manifest.deprecation.as_deref(),
            path: NULL,
            description: manifest.description.as_deref(),
            directory: NULL,
            implemented_as: &Json::Null,
            author: manifest.author.as_deref(),
            properties: &Json::Null,
            require_adapter: manifest.require_adapter().map(TypeName::as_str),
            schema: &Json::Null,
            target_resource: (),
            manifest: NULL,
            adapted_content: &Json::Null,
        };
        match &manifest.implementation {
            Implementation::Command(command) => {
                let (path, directory) = places(&command.manifest_path);
                Self { path, directory, manifest: Cow::Owned(spelled_out(&command.manifest)), ..nothing_else }
            }
            Implementation::Adapted { resource, .. } => nothing_else.adapted(resource),
            _ => nothing_else,
        }
    }

    fn adapted(self, adapted: &'a AdaptedResource) -> Self {
        let path = adapted.path.as_deref().map(path_json);
        let schema = adapted.schema.as_ref().unwrap_or(&Json::Null);
        let Some(manifest_path) = &adapted.manifest_path else {
            let listed = |key: &str| adapted.manifest.get(key).unwrap_or(&Json::Null);
            return Self {
                path: path.unwrap_or(NULL),
                schema,
                directory: Cow::Borrowed(listed("directory")),
                implemented_as: listed("implementedAs"),
                properties: listed("properties"),
                manifest: Cow::Borrowed(listed("manifest")),
                adapted_content: listed("adaptedContent"),
                ..self
            };
        };
        let (file, directory) = places(manifest_path);
        let adapted_content = adapted.content.as_ref().unwrap_or(&Json::Null);
        Self { path: path.unwrap_or(file), directory, schema, adapted_content, ..self }
    }
}

/// An extension as one line of `extension list -o json`.
pub fn extension_listing(extension: &Extension) -> Json {
    let mut able = Vec::new();
    able.extend(extension.discover.as_ref().map(|_| "discover"));
    able.extend(extension.secret.as_ref().map(|_| "secret"));
    able.extend(extension.import.as_ref().map(|_| "import"));
    let is_built_in = extension.manifest_path.as_os_str().is_empty();
    let (path, directory) = if is_built_in { (NULL, NULL) } else { places(&extension.manifest_path) };
    json!({
        "type": extension.type_name.as_str(),
        "version": extension.version.to_string(),
        "capabilities": able,
        "import": extension.manifest.get("import"),
        "path": path,
        "deprecationMessage": extension.deprecation,
        "description": extension.description,
        "directory": directory,
        "author": null,
        "manifest": spelled_out(&extension.manifest),
    })
}

/// A path and its directory.
fn places(path: &Path) -> (Cow<'static, Json>, Cow<'static, Json>) {
    (path_json(path), path.parent().map_or(NULL, path_json))
}

fn path_json(path: &Path) -> Cow<'static, Json> {
    Cow::Owned(Json::String(path.to_string_lossy().into_owned()))
}

fn kind(kind: ResourceKind) -> Option<&'static str> {
    words::KINDS.iter().find(|(_, each)| *each == kind).map(|(word, _)| *word)
}

fn capabilities(mut can: Capabilities) -> Vec<&'static str> {
    words::CAPABILITIES.iter().filter(|(_, place)| *place(&mut can)).map(|(word, _)| *word).collect()
}

/// The keys of a manifest in the order in which DSC prints them.
const ORDER: [&str; 23] = [
    "$schema",
    "type",
    "kind",
    "version",
    "condition",
    "deprecationMessage",
    "description",
    "tags",
    "discover",
    "import",
    "importParameters",
    "secret",
    "get",
    "set",
    "whatIf",
    "test",
    "delete",
    "export",
    "resolve",
    "validate",
    "adapter",
    "exitCodes",
    "schema",
];

/// Keys of an operation that are printed as null when absent, and of `get` only the first.
const SPELLED_OUT: [&str; 2] = ["args", "input"];

/// A manifest as DSC prints it: keys in its order, tags sorted, absent keys of operations as null.
fn spelled_out(manifest: &Json) -> Json {
    let Json::Object(members) = manifest else { return manifest.clone() };
    let mut sorted: Vec<_> = members.iter().filter(|(_, value)| !value.is_null()).collect();
    // The sort is stable: what has no place in the order follows as written.
    sorted.sort_by_key(|(key, _)| ORDER.iter().position(|each| each == key).unwrap_or(ORDER.len()));
    sorted.into_iter().map(|(key, value)| (key.clone(), spelled_out_member(key, value))).collect::<Map<_, _>>().into()
}

fn spelled_out_member(key: &str, value: &Json) -> Json {
    match key {
        "tags" => sorted_tags(value),
        "get" => operation(value, SPELLED_OUT.get(..1).unwrap_or_default()),
        "set" | "whatIf" | "test" | "delete" | "export" | "resolve" | "validate" => operation(value, &SPELLED_OUT),
        "schema" => match value.get("command") {
            Some(command) => json!({"command": operation(command, SPELLED_OUT.get(..1).unwrap_or_default())}),
            None => value.clone(),
        },
        _ => value.clone(),
    }
}

fn sorted_tags(tags: &Json) -> Json {
    let mut tags: Vec<_> = tags.as_array().into_iter().flatten().cloned().collect();
    tags.sort_by_cached_key(|tag| tag.as_str().map(str::to_lowercase));
    Json::Array(tags)
}

/// The program first, then `nullable` keys whether present or not, then the others as written.
fn operation(operation: &Json, nullable: &[&str]) -> Json {
    let Json::Object(members) = operation else { return operation.clone() };
    let mut printed = Map::new();
    let leading = ["executable"].iter().chain(nullable);
    leading.for_each(|key| drop(printed.insert((*key).to_owned(), members.get(*key).cloned().unwrap_or_default())));
    let others = members.iter().filter(|(_, value)| !value.is_null());
    others.for_each(|(key, value)| drop(printed.insert(key.clone(), value.clone())));
    Json::Object(printed)
}
