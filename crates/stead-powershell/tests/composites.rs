//! The recorded composite resources, expanded. The recordings lie outside of the repository.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use stead_core::graph::{Expansion, ExpansionFinding};
use stead_core::id::TypeName;
use stead_core::manifest::{Manifest, parse_listed};
use stead_core::text::Sources;
use stead_core::value::Value;
use stead_powershell::adapter::{ADAPTERS, PowerShell, PowerShellOptions, adapters};
use stead_powershell::index::ModuleInventory;
use stead_system::fs::User;
use stead_system::process::Environment;

/// The resources of modules, as one piece of work sees them.
struct Installed {
    powershell: PowerShell,
    inventory: ModuleInventory,
}

impl Installed {
    fn below(modules: &Path) -> Self {
        let powershell = PowerShell::new(PowerShellOptions {
            executable: None,
            module_path: vec![modules.to_owned()],
            cache: None,
            environment: Environment::of_this_process(&[]),
            user: User::current(),
            width: 1,
            isolated: false,
        });
        Self { inventory: powershell.search(), powershell }
    }

    fn manifest(&mut self, type_name: &str) -> Manifest {
        let listed = self.powershell.list(&mut self.inventory, &TypeName::parse(ADAPTERS[0]).unwrap());
        let listing = listed.into_iter().find(|each| each["type"] == type_name).unwrap();
        parse_listed(listing).unwrap().into_manifest(Arc::new(adapters().remove(0)))
    }

    /// The instances that an instance of a composite resource consists of, or why it has none.
    fn expand(&mut self, manifest: &Manifest, properties: Json) -> Result<Expansion, Vec<ExpansionFinding>> {
        assert!(manifest.is_composite());
        let Value::Object(properties) = Value::from(properties) else { panic!("properties are an object") };
        self.powershell.expand(&mut self.inventory, manifest, &properties, &mut Sources::default())
    }
}

fn expanded(modules: &Path, type_name: &str, properties: Json) -> Result<Expansion, Vec<ExpansionFinding>> {
    let mut installed = Installed::below(modules);
    let manifest = installed.manifest(type_name);
    installed.expand(&manifest, properties)
}

/// A module with a composite resource `Shop/All`, which uses the class `Door/Door` as often as is asked for.
fn shop(modules: &Path) {
    let write = |file: &str, text: &str| {
        let path = modules.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("Door/Door.psd1", "@{ ModuleVersion = '1.0'; RootModule = 'Door.psm1'; DscResourcesToExport = 'Door' }");
    let class = "[DscResource()] class Door { [DscProperty(Key)] [string] $Name
        [Door] Get() { return $this } [bool] Test() { return $true } [void] Set() { } }";
    write("Door/Door.psm1", class);
    write("Shop/Shop.psd1", "@{ ModuleVersion = '1.0' }");
    let composite = "Configuration All { param([int[]] $Numbers, [hashtable[]] $Extra)
        Import-DscResource -ModuleName Door
        foreach ($n in $Numbers) { Door \"d$n\" { Name = \"d$n\"; DependsOn = \"[Door]d$n\" } } }";
    write("Shop/DscResources/All/All.schema.psm1", composite);
}

#[test]
fn modules_are_read_once_for_all_instances() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path());
    let mut installed = Installed::below(folder.path());
    let manifest = installed.manifest("Shop/All");
    for _ in 0..2 {
        let expansion = installed.expand(&manifest, json!({ "Numbers": [1] })).unwrap();
        assert_eq!(expansion.document.resources.len(), 1);
        // Nothing of it is looked at again.
        let _ = fs::remove_dir_all(folder.path().join("Door"));
        let _ = fs::remove_dir_all(folder.path().join("Shop"));
    }
}

#[test]
fn a_refused_property_is_named_by_a_pointer() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path());
    let pointers = |properties| -> Vec<String> {
        let refused = expanded(folder.path(), "Shop/All", properties).unwrap_err();
        refused.into_iter().map(|refused| refused.property).collect()
    };
    assert_eq!(pointers(json!({ "numbers": [1, "one"], "A/B": 1 })), ["/numbers/1", "/A~1B"]);
    assert_eq!(pointers(json!({ "Extra": [{}, 1] })), ["/Extra/1"]);
}

/// One of them that compared each instance with all before it would take minutes.
#[test]
fn thousands_of_instances_that_depend_on_each_other_are_expanded() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path());
    let numbers: Vec<u32> = (0..20_000).collect();
    let expansion = expanded(folder.path(), "Shop/All", json!({ "Numbers": numbers })).unwrap();
    assert_eq!(expansion.document.resources.len(), 20_000);
}

/// Each of these was evaluated or dropped by recursion.
#[test]
fn chains_and_nesting_in_a_composite_end_no_process() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path());
    let all = folder.path().join("Shop/DscResources/All/All.schema.psm1");
    let expand = |body: &str| {
        fs::write(&all, format!("Configuration All {{ param([int[]] $Numbers)\n{body} }}")).unwrap();
        expanded(folder.path(), "Shop/All", json!({ "Numbers": [1] }))
    };
    for (first, link) in [("1", "+1"), ("1", " -eq 1"), ("1", " -and 1"), ("1", " -bor 1"), ("'a'", "+'a'")] {
        let read = expand(&format!("$a = {first}{}", link.repeat(10_000)));
        assert!(read.unwrap().document.resources.is_empty());
    }
    for (first, link) in [("@{a=1}", ".Count"), ("@{a=1}", "['a']"), ("@{a=1}", ".ContainsKey('a')")] {
        let refused = expand(&format!("$a = {first}; $b = $a{}", link.repeat(10_000))).unwrap_err();
        assert!(refused[0].finding.message.contains("cannot be expanded"), "{}", refused[0].finding.message);
    }
    for grown in ["@{a=$a}", "@(,$a)"] {
        let refused = expand(&format!("$a = 1; foreach ($n in @(1) * 9000) {{ $a = {grown} }}")).unwrap_err();
        assert!(refused[0].finding.message.contains("levels of values"), "{}", refused[0].finding.message);
    }
}

#[test]
fn recorded_composites_are_expanded_or_refused() {
    let modules = stead_testkit::repository().join("../shared/corpus/powershell/discovery/modules");
    if !modules.is_dir() {
        stead_testkit::skip("recorded_composites_are_expanded_or_refused", "the recorded modules are not there");
        return;
    }
    let instances = |type_name, properties| -> Result<Vec<String>, String> {
        let expansion =
            expanded(&modules, type_name, properties).map_err(|findings| findings[0].finding.message.clone())?;
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
