//! The libraries that are in the program: their names, versions, licences, and the notices that must go with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use crate::repository::{Package, Repository};
use crate::tidy::reach;

/// One text with all of them, the same for the same libraries.
pub(crate) fn notices(repository: &Repository, program: &str) -> Result<String, String> {
    let mut list = BTreeSet::new();
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in linked(repository, program)? {
        let name = format!("{} {}", package.name(), package.version());
        for text in texts_of(package)? {
            texts.entry(text).or_default().insert(name.clone());
        }
        list.insert(format!("{name}: {}\n", package.licence()));
    }
    let list: String = list.into_iter().collect();
    let texts = texts.iter().map(|(text, names)| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        format!("\n{}\n{}\n\n{text}\n", "-".repeat(80), names.join(", "))
    });
    Ok(format!("{program} contains libraries of others:\n\n{list}{}", texts.collect::<String>()))
}

/// The libraries that are in the program.
pub(crate) fn linked<'a>(
    repository: &'a Repository,
    program: &str,
) -> Result<impl Iterator<Item = Package<'a>>, String> {
    let mut members = repository.members();
    let program =
        members.find(|member| member.name() == program).ok_or_else(|| format!("there is no package {program}"))?;
    let names = reach(repository, program.id());
    Ok(repository.packages().filter(move |each| each.source().is_some() && names.contains(each.name())))
}

/// The bill of materials of the program, in the form of `CycloneDX`.
pub(crate) fn bill_of_materials(repository: &Repository, program: &str) -> Result<Value, String> {
    let component = |name: &str, version: &str, licence: &str| {
        json!({
            "type": "library",
            "bom-ref": format!("pkg:cargo/{name}@{version}"),
            "name": name,
            "version": version,
            "purl": format!("pkg:cargo/{name}@{version}"),
            "licenses": [{ "expression": licence.replace('/', " OR ") }],
        })
    };
    let mut parts: Vec<Value> =
        linked(repository, program)?.map(|each| component(each.name(), each.version(), each.licence())).collect();
    parts.sort_by_key(|part| part["purl"].as_str().unwrap_or_default().to_owned());
    let mut program = component(program, env!("CARGO_PKG_VERSION"), "MIT OR Apache-2.0");
    program["type"] = "application".into();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": program },
        "components": parts,
    }))
}

/// The licences and notices that come with a package.
fn texts_of(package: Package<'_>) -> Result<Vec<String>, String> {
    let folder = package.directory();
    let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_notice = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
        if is_notice.iter().any(|start| name.starts_with(start)) && entry.path().is_file() {
            let bytes = fs::read(entry.path()).map_err(unreadable)?;
            texts.push(String::from_utf8_lossy(&bytes).trim().replace('\r', ""));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_of_materials_names_each_library_with_its_licence() {
        let repository = Repository::read().unwrap();
        let bill = bill_of_materials(&repository, "stead").unwrap();
        let components = bill["components"].as_array().unwrap();
        assert_eq!(components.len(), linked(&repository, "stead").unwrap().count());
        assert!(components.iter().any(|each| each["name"] == "serde_json"), "{bill}");
        for each in components {
            assert!(!each["licenses"][0]["expression"].as_str().unwrap().is_empty(), "{each}");
        }
    }
}
