//! The resources that the engine carries out itself: their nested instances are a part of the run.
//!
//! Here is only what they say of themselves.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value as Json;
use stead_core::manifest::{Capabilities, Implementation, Manifest, Promises, ResourceKind, UndoWay};
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
        undo: UndoWay::Files,
        is_apart: false,
        repeated: &[],
        schema,
    };
    [
        built_in(
            &profile(
                "Microsoft.DSC/Assertion",
                "Tests instances, and fails if any of them is not in its desired state.",
                include_str!("assertion.yaml"),
                || nested("Assertion", ASSERTION),
            ),
            ResourceKind::Group,
        ),
        built_in(
            &profile(
                "Microsoft.DSC/Group",
                "Instances that others depend on as a whole.",
                include_str!("group.yaml"),
                || nested("Group", GROUP),
            ),
            ResourceKind::Group,
        ),
        built_in(
            &profile(
                "Microsoft.DSC/Include",
                "Includes another document, with parameters.",
                include_str!("include.yaml"),
                schema::of::<Include>,
            ),
            ResourceKind::Importer,
        ),
    ]
}

fn built_in(profile: &Profile, kind: ResourceKind) -> Option<BuiltIn> {
    let built_in = with_version(profile.built_in(Arc::new(Engine))?, semver::Version::new(0, 1, 0));
    let manifest = Manifest {
        kind,
        promises: Promises::default(),
        implementation: Implementation::Engine,
        ..(*built_in.manifest).clone()
    };
    Some(BuiltIn { manifest: Arc::new(manifest), ..built_in })
}

const ASSERTION: &str = "\
Tests its nested instances and changes none of them, whatever the operation. The assertion fails if any of them is not in its \
desired state, and instances that depend on the assertion are then skipped. Nested instances can depend on and refer to each other, \
and to nothing outside of the assertion.";

const GROUP: &str = "\
Processes its nested instances as a unit: an instance that depends on the group waits for all of them, and is skipped if any of them \
fails. Nested instances can depend on and refer to each other, and to nothing outside of the group.";

fn nested(title: &str, description: &str) -> Json {
    let mut schema = schema::of::<Nested>();
    schema["title"] = title.into();
    schema["description"] = description.into();
    schema
}

/// A document within a document.
#[derive(JsonSchema)]
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
    /// The type of the resource. An instance has the same members as in a document.
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

/// Includes another document, from a file or as text, with values for its parameters. Its instances are processed as those of a
/// group: an instance that depends on the include waits for all of them. They can depend on and refer to each other, and to
/// nothing outside of the included document.
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
    /// The file of the document. A relative path starts at the directory of this document and must not leave it. Either this or
    /// 'configurationContent' is required.
    #[schemars(length(min = 1))]
    configuration_file: Option<String>,
    /// The text of the document, in place of 'configurationFile'.
    configuration_content: Option<String>,
    /// A file with the values of its parameters. A relative path starts at the directory of this document and must not leave it.
    #[schemars(length(min = 1))]
    parameters_file: Option<String>,
    /// The text of the values of its parameters, in place of 'parametersFile'.
    parameters_content: Option<String>,
}

/// Never called: the engine does not hand on what it carries out itself.
struct Engine;

impl Provider for Engine {}
