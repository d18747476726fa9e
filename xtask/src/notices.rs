//! The libraries that are in the program: their names, versions, licences, and the notices that must go with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::repository::{Package, Repository};
use crate::tidy::reach;

/// One text with all of them, the same for the same libraries.
pub(crate) fn notices(repository: &Repository) -> Result<String, String> {
    let program = repository.members().find(|member| member.name() == "stead").ok_or("there is no package stead")?;
    let names = reach(repository, program.id());
    let linked = repository.packages().filter(|each| each.source().is_some() && names.contains(each.name()));
    let mut list = BTreeSet::new();
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in linked {
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
    Ok(format!("stead contains libraries of others:\n\n{list}{}", texts.collect::<String>()))
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
