//! Adapted resources, from a manifest and from the list of an adapter.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;

use super::Parser;
use crate::diag::Diagnostic;
use crate::diff::Existence;
use crate::id::TypeName;
use crate::manifest::read::{Unknown, head, plain, present};
use crate::manifest::{AdaptedManifest, AdaptedResource, Capabilities, Manifest, SecretPlaces, Version, codes, words};
use crate::text::Node;

const ADAPTED_KEYS: [&str; 13] = [
    "$schema",
    "type",
    "kind",
    "version",
    "capabilities",
    "condition",
    "deprecationMessage",
    "path",
    "content",
    "description",
    "author",
    "requireAdapter",
    "schema",
];
const LISTED_KEYS: [&str; 17] = [
    "type",
    "kind",
    "version",
    "capabilities",
    "deprecationMessage",
    "path",
    "description",
    "directory",
    "implementedAs",
    "author",
    "properties",
    "requireAdapter",
    "schema",
    "manifest",
    "targetResource",
    "adaptedContent",
    "metadata",
];

impl Parser<'_> {
    pub(super) fn adapted(&mut self, node: &Node) -> Option<AdaptedManifest> {
        self.reader.members(node, "the manifest of an adapted resource", &ADAPTED_KEYS, Unknown::Refused)?;
        for key in ["kind", "capabilities", "schema"] {
            self.reader.required(node, key, "the manifest");
        }
        let content = self.reader.object(node, "content");
        let path = self.reader.optional_text(node, "path");
        self.path_or_content(node);
        let directory = self.path.parent().unwrap_or(Path::new(""));
        let path = path.map(|path| directory.join(path));
        let schema = self.reader.object(node, "schema");
        let secret_places = schema.as_ref().and_then(SecretPlaces::of_schema).map(Arc::new);
        let version = self.version(node);
        let (about, require_adapter) = (self.about(node, version), self.adapter_type(node)?);
        let (manifest_path, manifest) = (Some(self.path.to_owned()), plain(node));
        let resource = AdaptedResource { require_adapter, path, content, schema, manifest_path, manifest };
        Some(Manifest { secret_places, ..about?.carried_out(|()| resource) })
    }

    fn path_or_content(&mut self, node: &Node) {
        let (span, message) = match (present(node, "path"), present(node, "content")) {
            (Some(_), Some(content)) => (content.span, "an adapted resource cannot have both 'path' and 'content'"),
            (None, None) => (head(node), "an adapted resource requires 'path' or 'content'"),
            _ => return,
        };
        self.reader.note(Diagnostic::error(&codes::PATH_OR_CONTENT, span, message));
    }

    /// A listed resource, of which the node is the tree.
    pub(super) fn listed(&mut self, node: &Node, manifest: Json) -> Option<AdaptedManifest> {
        self.reader.members(node, "a listed resource", &LISTED_KEYS, Unknown::Ignored)?;
        let version = self.listed_version(node);
        let (about, require_adapter) = (self.about(node, version), self.adapter_type(node)?);
        self.reader.texts(node, "properties");
        let resource = AdaptedResource {
            require_adapter,
            path: self.reader.optional_text(node, "path").map(PathBuf::from),
            content: self.reader.object(node, "adaptedContent"),
            schema: self.reader.object(node, "schema"),
            manifest_path: None,
            manifest,
        };
        // A schema that only describes what an adapter takes is not stated as that of the resource.
        let described = resource.content.as_ref().and_then(|content| content.get("secrets"));
        let mut schemas = resource.schema.iter().chain(described);
        let secret_places = schemas.find_map(SecretPlaces::of_schema).map(Arc::new);
        let ensures =
            resource.content.as_ref().is_some_and(|content| content.get("ensures") == Some(&Json::Bool(true)));
        let existence = if ensures { Existence::Ensure } else { Existence::Exist };
        let about = about?;
        let undo = self.undo(node, about.capabilities.get);
        Some(Manifest { undo, existence, secret_places, ..about.carried_out(|()| resource) })
    }

    /// The version of a listed resource. Modules of PowerShell have two to four numbers.
    fn listed_version(&mut self, node: &Node) -> Option<Version> {
        let text = present(node, "version").and_then(Node::as_str);
        text.and_then(Version::parse_module).or_else(|| self.version(node))
    }

    fn adapter_type(&mut self, node: &Node) -> Option<TypeName> {
        self.reader.type_name(node, "requireAdapter", "the manifest")
    }

    /// Reads the members that the manifest of an adapted resource and the list of an adapter have in common.
    fn about(&mut self, node: &Node, version: Option<Version>) -> Option<Manifest<()>> {
        let type_name = self.reader.type_name(node, "type", "the manifest");
        let kind = self.stated_kind(node);
        let capabilities = self.capabilities(node);
        let description = self.reader.optional_text(node, "description");
        let deprecation = self.reader.optional_text(node, "deprecationMessage");
        let author = self.reader.optional_text(node, "author");
        let nothing_else = Manifest::new(type_name?, version?, ());
        let kind = kind.unwrap_or(nothing_else.kind);
        Some(Manifest { kind, capabilities, description, deprecation, author, ..nothing_else })
    }

    fn capabilities(&mut self, node: &Node) -> Capabilities {
        let mut capabilities = Capabilities::default();
        for element in self.reader.elements(node, "capabilities") {
            if let Some(place) = self.reader.word(element, "a capability", &words::CAPABILITIES) {
                *place(&mut capabilities) = true;
            }
        }
        // What filters is the adapter's export; it is given the filter as any program is.
        capabilities.export_filters = capabilities.export;
        capabilities
    }
}
