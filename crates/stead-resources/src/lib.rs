//! The resources that are built into stead, one folder each.

use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::id::TypeName;
use stead_core::manifest::{Capabilities, Implementation, Kind, Manifest, OperationSecurity, Version};
use stead_host::provider::Provider;

pub mod directory;
pub mod file;
mod input;
pub mod line;
mod permissions;
pub mod symlink;

/// A resource that this program carries out itself.
#[derive(Clone)]
pub struct BuiltIn {
    /// What it says of itself.
    pub manifest: Arc<Manifest>,
    /// The JSON Schema of its properties. Providers check them by themselves; this is for people and editors.
    pub schema: Json,
    /// What carries it out.
    pub provider: Arc<dyn Provider>,
}

/// Every built-in resource, in the order of the type names.
pub fn builtins() -> Vec<BuiltIn> {
    [directory::built_in(), file::built_in(), line::built_in(), symlink::built_in()].into_iter().flatten().collect()
}

/// What the manifests of built-in resources differ in.
struct Profile {
    type_name: &'static str,
    description: &'static str,
    tags: &'static [&'static str],
    capabilities: Capabilities,
    /// Text of a JSON Schema.
    schema: &'static str,
}

impl Profile {
    /// `None` when the type name or the schema is not valid; a test makes sure that all are.
    fn built_in(&self, provider: Arc<dyn Provider>) -> Option<BuiltIn> {
        let manifest = Manifest {
            type_name: TypeName::parse(self.type_name).ok()?,
            version: Version::Semantic(semver::Version::new(1, 0, 0)),
            kind: Kind::Resource,
            capabilities: self.capabilities,
            description: Some(self.description.to_owned()),
            deprecation: None,
            tags: self.tags.iter().map(|tag| (*tag).to_owned()).collect(),
            author: None,
            require_adapter: None,
            security: OperationSecurity::default(),
            implementation: Implementation::BuiltIn,
        };
        Some(BuiltIn { manifest: Arc::new(manifest), schema: serde_json::from_str(self.schema).ok()?, provider })
    }
}

/// What a resource can do that reads, compares, changes and removes by itself.
const ALL_BUT_EXPORT: Capabilities = Capabilities {
    get: true,
    set: true,
    set_handles_exist: true,
    set_what_if: true,
    implements_pretest: true,
    test: true,
    delete: true,
    delete_what_if: true,
    export: false,
    export_filters: false,
    resolve: false,
};
