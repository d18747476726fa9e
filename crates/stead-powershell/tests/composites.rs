//! The recorded composite resources, expanded. The recordings lie outside of the repository.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use stead_core::diag::Diagnostic;
use stead_core::graph::Expansion;
use stead_core::id::TypeName;
use stead_core::manifest::{Manifest, parse_listed};
use stead_core::text::Sources;
use stead_core::value::Value;
use stead_host::fs::User;
use stead_host::process::Environment;
use stead_powershell::adapter::{ADAPTERS, Options, PowerShell, adapters};

/// The instances that an instance of a composite resource consists of, or why it has none.
fn expanded(modules: &Path, type_name: &str, properties: Json) -> Result<Expansion, Vec<Diagnostic>> {
    let powershell = PowerShell::new(Options {
        executable: None,
        module_path: vec![modules.to_owned()],
        cache: None,
        environment: Environment::of_this_process(&[]),
        user: User::current(),
        width: 1,
        isolated: false,
    });
    let listed = powershell.list(&mut powershell.search(), &TypeName::parse(ADAPTERS[0]).unwrap());
    let listing = listed.iter().find(|each| each["type"] == type_name).unwrap();
    let manifest: Manifest = parse_listed(listing).unwrap().into_manifest(Arc::new(adapters().remove(0)));
    assert!(manifest.is_composite());
    let Value::Object(properties) = Value::from(properties) else { panic!("properties are an object") };
    powershell.expand(&manifest, &properties, &mut Sources::default())
}

#[test]
fn recorded_composites_are_expanded_or_refused() {
    let modules = stead_testkit::repository().join("../shared/corpus/powershell/discovery/modules");
    if !modules.is_dir() {
        stead_testkit::skip("recorded_composites_are_expanded_or_refused", "the recorded modules are not there");
        return;
    }
    let instances = |type_name, properties| -> Result<Vec<String>, String> {
        let expansion = expanded(&modules, type_name, properties).map_err(|findings| findings[0].message.clone())?;
        let instance = |each: &stead_core::document::Instance| {
            format!("{} {}", each.type_name.value, each.name.literal().as_str().unwrap_or_default())
        };
        Ok(expansion.document.resources.iter().map(instance).collect())
    };
    let credential = json!({ "username": "u", "password": "p" });
    let basic = instances("CompositeBasic/CompositeBasic", json!({ "names": ["a", "b"], "Credential": credential }));
    assert_eq!(basic.unwrap(), ["ScriptBasic/Basic one_a", "ScriptBasic/Basic one_b"]);
    let missing = instances("CompositeBasic/CompositeBasic", json!({ "Names": ["a"] }));
    assert_eq!(missing.unwrap_err(), "'properties.Credential' is required");
    assert!(instances("MixedModule/MixedComposite", json!({ "Name": "x" })).unwrap().is_empty());
    assert!(instances("CompositeOther/Outer", json!({})).unwrap().is_empty());
    let refused = instances("CompositePlain/CompositePlain", json!({})).unwrap_err();
    assert!(refused.contains("'Node' is not supported"), "{refused}");
}
