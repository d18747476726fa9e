//! The resources that the engine carries out itself: their nested instances are a part of the run.
//!
//! Here is only what they say of themselves.

use std::sync::Arc;

use stead_core::manifest::{Capabilities, Implementation, Kind, Manifest};
use stead_host::provider::Provider;

use crate::{BuiltIn, NOTHING, Profile, with_version};

/// `Microsoft.DSC/Group`, `Microsoft.DSC/Assertion` and `Microsoft.DSC/Include`.
pub(crate) fn built_ins() -> [Option<BuiltIn>; 3] {
    let capabilities = Capabilities { get: true, set: true, test: true, ..NOTHING };
    let profile = |type_name, description, schema| Profile { type_name, description, tags: &[], capabilities, schema };
    [
        built_in(
            &profile(
                "Microsoft.DSC/Assertion",
                "`test` will be invoked for all resources in the supplied configuration.",
                include_str!("nested.json"),
            ),
            Kind::Group,
        ),
        built_in(
            &profile(
                "Microsoft.DSC/Group",
                "All resources in the supplied configuration is treated as a group.",
                include_str!("nested.json"),
            ),
            Kind::Group,
        ),
        built_in(
            &profile(
                "Microsoft.DSC/Include",
                "Allows including a configuration file with optional parameter file.",
                include_str!("include.json"),
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

/// Never called: the engine does not hand on what it carries out itself.
struct Engine;

impl Provider for Engine {}
