//! Resources of the program that embeds this library.

use std::sync::Arc;

use stead_core::id::TypeName;
use stead_core::manifest::{Implementation, Manifest, Promises, ResourceKind, SecretPlaces, Version};
use stead_host::provider::{Context, Provider};
use stead_resources::builtin;

/// A resource that the program which embeds this library carries out itself; see [`crate::HostOptions::resources`].
///
/// Documents use it like every other: it is found and listed, properties are checked by its schema, values with the format
/// `password` are secrets, and what its instances claim gives them an order and conflicts. The newest version of a type is
/// the one that counts, also of a program that is installed.
#[derive(Clone)]
pub struct EmbeddedResource {
    manifest: Arc<Manifest>,
    provider: Arc<dyn Provider>,
}

/// Why a resource is not one that can be embedded.
#[derive(Debug, thiserror::Error)]
pub enum NotEmbedded {
    /// The manifest says that something else carries it out, or that it holds other instances.
    #[error("'{0}' must be of the kind 'resource', and carried out in this process")]
    Kind(TypeName),
    /// A type that is built in has another version, which documents may rely on.
    #[error("'{type_name}' {built_in} is built in: only a newer version can replace it, which {version} is not")]
    NotNewer {
        /// The type.
        type_name: TypeName,
        /// The version that is refused.
        version: Version,
        /// The version that is built in.
        built_in: Version,
    },
    /// The provider returns no schema, by which properties are checked and secrets are known.
    #[error("'{0}' has no schema")]
    NoSchema(TypeName),
    /// The provider cannot tell its schema.
    #[error("the schema of '{type_name}' cannot be used: {message}")]
    Schema {
        /// The type.
        type_name: TypeName,
        /// The failure, in words.
        message: String,
    },
}

impl EmbeddedResource {
    /// A resource with this manifest, whose implementation is `InProcess`. [`Provider::schema`] is asked once.
    ///
    /// # Errors
    /// When it is none that can be embedded: the error says what to change.
    pub fn new(manifest: Manifest, provider: Arc<dyn Provider>) -> Result<Self, NotEmbedded> {
        let type_name = manifest.type_name.clone();
        let is_own = manifest.is_in_process() && !matches!(manifest.implementation, Implementation::Engine);
        if manifest.kind != ResourceKind::Resource || !is_own {
            return Err(NotEmbedded::Kind(type_name));
        }
        let built_in = builtin(&type_name).map(|own| own.manifest.version.clone());
        if let Some(built_in) = built_in.filter(|own| manifest.version <= *own) {
            return Err(NotEmbedded::NotNewer { type_name, version: manifest.version, built_in });
        }
        let schema = match provider.schema(&Context::new(std::path::Path::new("/"))) {
            Ok(Some(schema)) => schema,
            Ok(None) => return Err(NotEmbedded::NoSchema(type_name)),
            Err(failure) => return Err(NotEmbedded::Schema { type_name, message: failure.message }),
        };
        let manifest = Manifest {
            promises: Promises { claims: true, ..manifest.promises },
            secret_places: SecretPlaces::of_schema(schema.json()).map(Arc::new),
            ..manifest
        };
        Ok(Self { manifest: Arc::new(manifest), provider })
    }

    /// The manifest, with what follows from the schema.
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// The provider.
    pub fn provider(&self) -> &Arc<dyn Provider> {
        &self.provider
    }

    /// Returns whether it is the resource of a manifest.
    pub(crate) fn carries_out(&self, manifest: &Manifest) -> bool {
        let is_same = self.manifest.type_name == manifest.type_name && self.manifest.version == manifest.version;
        is_same && manifest.is_in_process()
    }
}
