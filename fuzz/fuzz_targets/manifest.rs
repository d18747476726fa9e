//! No text makes the reading of manifests, versions or requirements panic, and what is read can be listed.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use stead_core::manifest::{Declaration, Form, Version, VersionRequirement, extension_listing, listing, parse};
use stead_core::text::{Limits, SourceId, read};

fuzz_target!(|text: &str| {
    if let Ok(version) = Version::parse(text) {
        assert_eq!(Version::parse(&version.to_string()), Ok(version));
    }
    let _ = VersionRequirement::parse(text);
    let (Some(node), _) = read(SourceId::default(), text, &Limits::default()) else { return };
    for form in [Form::Resource, Form::Adapted, Form::Extension, Form::List] {
        for declared in parse(form, &node, Path::new("/manifests/fuzz.json")).0 {
            match declared.declaration {
                Declaration::Resource(manifest) => drop(listing(&manifest)),
                Declaration::Extension(extension) => drop(extension_listing(&extension)),
                Declaration::Adapted(_) => {}
            }
        }
    }
});
