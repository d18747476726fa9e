//! The resources that the engine carries out itself: their nested instances are a part of the run.
//!
//! Here is only what they say of themselves.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value as Json;
use stead_core::manifest::{Capabilities, Implementation, Kind, Manifest};
use stead_host::provider::Provider;

use crate::{BuiltIn, NOTHING, Profile, schema, with_version};

/// `Microsoft.DSC/Group`, `Microsoft.DSC/Assertion` and `Microsoft.DSC/Include`.
pub(crate) fn built_ins() -> [Option<BuiltIn>; 3] {
    let capabilities = Capabilities { get: true, set: true, test: true, ..NOTHING };
    let profile = |type_name, description, example, schema: fn() -> Json| Profile {
        type_name,
        description,
        example,
        tags: &[],
        capabilities,
        schema,
    };
    [
        built_in(
            &profile(
                "Microsoft.DSC/Assertion",
                "`test` will be invoked for all resources in the supplied configuration.",
                include_str!("assertion.yaml"),
                schema::of::<Nested>,
            ),
            Kind::Group,
        ),
        built_in(
            &profile(
                "Microsoft.DSC/Group",
                "All resources in the supplied configuration is treated as a group.",
                include_str!("group.yaml"),
                schema::of::<Nested>,
            ),
            Kind::Group,
        ),
        built_in(
            &profile(
                "Microsoft.DSC/Include",
                "Allows including a configuration file with optional parameter file.",
                include_str!("include.yaml"),
                schema::of::<Include>,
            ),
            Kind::Importer,
        ),
    ]
}

fn built_in(profile: &Profile, kind: Kind) -> Option<BuiltIn> {
    let built_in = with_version(profile.built_in(Arc::new(Engine))?, semver::Version::new(0, 1, 0));
    let manifest = Manifest { kind, implementation: Implementation::Engine, ..(*built_in.manifest).clone() };
    Some(BuiltIn { manifest: Arc::new(manifest), ..built_in })
}

/// A document within a document: its instances can refer to each other and to nothing outside.
#[derive(JsonSchema)]
#[schemars(title = "Group")]
#[expect(dead_code, reason = "the engine reads them as part of the document")]
struct Nested {
    /// The schema of the document.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// The nested instances.
    resources: Vec<Instance>,
}

#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "the engine reads them as part of the document")]
struct Instance {
    #[serde(rename = "type")]
    type_name: Anything,
}

/// What the engine checks by itself, in its place in the document.
struct Anything;

impl JsonSchema for Anything {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Anything".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        true.into()
    }
}

/// A document in another file, whose instances become a part of this one.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(
    title = "Include",
    extend(
        "oneOf" = [{ "required": ["configurationFile"] }, { "required": ["configurationContent"] }],
        "not" = { "required": ["parametersFile", "parametersContent"] },
    )
)]
#[expect(dead_code, reason = "the engine reads them as part of the document")]
struct Include {
    /// The document. A relative path starts at the directory of this document and must not leave it.
    #[schemars(length(min = 1))]
    configuration_file: Option<String>,
    /// The text of the document.
    configuration_content: Option<String>,
    /// The values of its parameters. A relative path starts at the directory of this document and must not leave it.
    #[schemars(length(min = 1))]
    parameters_file: Option<String>,
    /// The text of the values of its parameters.
    parameters_content: Option<String>,
}

/// Never called: the engine does not hand on what it carries out itself.
struct Engine;

impl Provider for Engine {}
