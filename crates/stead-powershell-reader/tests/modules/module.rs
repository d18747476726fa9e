//! Modules as `Get-Module -ListAvailable` lists them, and the resources in them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use stead_core::diag::Severity;
use stead_powershell_reader::module::{Disk, Exports, Module, Modules};
use stead_powershell_reader::resource::DefinitionKind;
use stead_system::fs::Trust;

/// The modules by the folder of their case.
fn modules() -> BTreeMap<String, Vec<Module>> {
    let folder = super::discovery().join("modules");
    let environment = |name: &str| (name == "HOME").then(|| "${WORK}/home".to_owned());
    let directories = [folder.clone()];
    let modules = Modules { files: &Disk::new(Trust::Everyone), environment: &environment, directories: &directories };
    let mut cases = BTreeMap::<_, Vec<_>>::new();
    let (modules, errors) = modules.read();
    assert!(errors.is_empty(), "{errors:?}");
    for module in modules {
        let case = module.file.strip_prefix(&folder).unwrap().components().next().unwrap();
        cases.entry(case.as_os_str().to_str().unwrap().to_owned()).or_default().push(module);
    }
    cases
}

#[test]
fn every_module_is_listed_as_powershell_lists_it() {
    let Some(rows) = super::recorded("every_module_is_listed_as_powershell_lists_it", "discovery.jsonl") else {
        return;
    };
    let mut deviations = super::deviations("module");
    let (cases, deviating) = (modules(), deviations.len());
    let (mut wrong, mut count) = (String::new(), 0);
    for row in rows {
        count += 1;
        let name = row["module"].as_str().unwrap();
        let mut expected = row["listed"].clone();
        let mut found: Vec<Json> = cases.get(name).into_iter().flatten().map(|module| listed(module, name)).collect();
        for (found, expected) in found.iter_mut().zip(expected.as_array_mut().unwrap()) {
            // What Get-Module could not load has neither, whatever its manifest says.
            if found["version"] == "0.0" && expected["rootModule"].is_null() {
                found["rootModule"] = Json::Null;
                found["moduleType"] = expected["moduleType"].clone();
            }
        }
        if json!(found) != expected && deviations.remove(name).is_none() {
            writeln!(wrong, "{name}\n  expected {expected}\n  found    {}", json!(found)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(deviations.is_empty(), "these do not deviate: {deviations:?}");
    eprintln!("{count} modules, {deviating} of them deviate");
}

/// A module in the form of the recording.
fn listed(module: &Module, case: &str) -> Json {
    let folder = super::discovery().join("modules");
    let below = |path: &Path, root: &Path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    let manifest = module.manifest.clone().unwrap_or_default();
    let root = manifest.root.clone().unwrap_or_else(|| format!("${{MODULES}}/{}", below(&module.file, &folder)));
    let nested: Vec<_> = manifest.nested.iter().map(|name| nested(module.folder(), name)).collect();
    json!({
        "name": module.name,
        "version": module.version.to_string(),
        "prerelease": manifest.prerelease,
        "path": below(&module.file, &folder.join(case)),
        "moduleType": module_type(&root),
        "rootModule": root,
        "nestedModules": nested,
        "scriptsToProcess": manifest.scripts,
        "exportedDscResources": match &manifest.exports {
            Exports::Unstated => json!([]),
            Exports::All => {
                let classes = module.resources.iter().filter(|resource| resource.kind == DefinitionKind::Class);
                classes.map(|resource| resource.name.clone()).collect()
            }
            Exports::Named(names) => json!(names),
        },
        "compatibleEditions": manifest.editions,
        "powerShellVersion": manifest.powershell.as_ref().map(ToString::to_string),
        "requiredModules": manifest.required,
        "guid": manifest.guid.unwrap_or_else(|| "00000000-0000-0000-0000-000000000000".to_owned()),
        "author": manifest.author,
        "companyName": manifest.company,
        "copyright": manifest.copyright,
        "description": manifest.description.unwrap_or_default().replace(folder.to_str().unwrap(), "${MODULES}"),
    })
}

/// A nested module is listed by its name, and as written where it is not there.
fn nested(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    let there = path.is_file() || ["psd1", "psm1"].iter().any(|extension| path.with_extension(extension).is_file());
    if there { path.file_stem().unwrap().to_str().unwrap().to_owned() } else { name.to_owned() }
}

fn module_type(root: &str) -> &'static str {
    match Path::new(root).extension().and_then(|extension| extension.to_str()).map(str::to_lowercase).as_deref() {
        Some("psm1") => "Script",
        Some("dll") => "Binary",
        _ => "Manifest",
    }
}

#[test]
fn every_resource_with_a_folder_of_its_own_is_found() {
    let Some(rows) = super::recorded("every_resource_with_a_folder_of_its_own_is_found", "script-expected.jsonl")
    else {
        return;
    };
    let cases = modules();
    let (mut wrong, mut count) = (String::new(), 0);
    for row in rows {
        let name = row["module"].as_str().unwrap();
        let folder = super::discovery().join("modules").join(name);
        let modules = cases.get(name).map(Vec::as_slice).unwrap_or_default();
        let resources = modules.iter().flat_map(|module| module.resources.iter().map(move |each| (module, each)));
        for expected in row["script"].as_array().into_iter().flatten().filter(|_| name != "MixedLooseSchema") {
            count += 1;
            let file = folder.join(expected["schema"].as_str().unwrap());
            let mut named =
                resources.clone().filter(|(_, resource)| resource.name == expected["name"] && *resource.file == file);
            let found = named.next().map(|(module, resource)| {
                let implementation = (resource.implementation != resource.file || expected["kind"] == "composite")
                    .then(|| resource.implementation.strip_prefix(&folder).unwrap().to_owned());
                (module.exports(resource), implementation)
            });
            let implementation = expected["implementation"].as_str().map(PathBuf::from);
            if found != Some((expected["exported"].as_bool().unwrap(), implementation)) {
                writeln!(wrong, "{name}: expected {expected}\n  found {found:?}").unwrap();
            }
        }
        for expected in row["errors"].as_array().into_iter().flatten() {
            count += 1;
            let file = folder.join(expected["file"].as_str().unwrap());
            let mut findings = modules.iter().flat_map(|module| &module.findings);
            if !findings.any(|finding| *finding.file == file && finding.severity == Severity::Error) {
                writeln!(wrong, "{name}: expected {expected}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    eprintln!("{count} resources and errors, none deviates");
}
