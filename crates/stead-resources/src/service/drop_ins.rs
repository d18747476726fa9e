//! Files of a unit that systemd reads after those that are stated, so that they can say otherwise.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use stead_core::call::Failure;
use stead_system::fs::SystemRoot;

use super::meaning;
use super::unit::{ADMINISTRATOR, SEARCHED, template, text_of};
use crate::input::impossible;
use crate::text::{Setting, settings};

/// A file of a unit as an instance states it.
pub(crate) struct StatedFile<'a> {
    /// The property that states it.
    pub(crate) property: &'static str,
    /// Where it is, relative to the root.
    pub(crate) path: String,
    pub(crate) text: &'a str,
}

/// Returns why a part of what the files of a unit state would not be in force: systemd reads another file in place of one of
/// them, or one after it that sets the same otherwise. What they say among themselves is as it was meant.
pub(crate) fn overridden(root: &SystemRoot, unit: &str, stated: &[StatedFile<'_>]) -> Option<Failure> {
    if stated.is_empty() {
        return None;
    }
    let own_unit = format!("{ADMINISTRATOR}/{unit}");
    let read = files(root, unit, stated);
    stated.iter().find_map(|file| {
        let name = Path::new(&file.path).file_name()?;
        let is_unit = file.path == own_unit;
        let in_place = if is_unit { in_front(root, unit) } else { read.get(name).cloned() };
        if let Some(path) = in_place.filter(|path| *path != file.path) {
            let message = format!("'/{path}' has the same name and is read in place of '/{}'. Remove it", file.path);
            return Some(impossible(file.property, message));
        }
        let later = read.iter().filter(|(other, _)| is_unit || other.as_os_str() > name).map(|(_, path)| path);
        let later = later.filter(|path| stated.iter().all(|file| file.path != **path));
        let texts: Vec<_> = later.filter_map(|path| Some((path.as_str(), text_of(root, path)?))).collect();
        taken_back(file, &texts)
    })
}

/// The unit file that is read in place of that of the administrator.
fn in_front(root: &SystemRoot, unit: &str) -> Option<String> {
    let folders = SEARCHED.iter().take_while(|folder| **folder != ADMINISTRATOR);
    folders.map(|folder| format!("{folder}/{unit}")).find(|path| root.at(path).status().is_some())
}

/// The drop-ins that are read for a unit, in the order of their names, each with its path relative to the root; those that are
/// stated as well, which may not be there yet.
fn files(root: &SystemRoot, unit: &str, stated: &[StatedFile<'_>]) -> BTreeMap<OsString, String> {
    let mut found = BTreeMap::new();
    for folder in folders(unit) {
        let own = stated.iter().map(|file| Path::new(&file.path));
        let own = own.filter(|path| path.parent() == Some(Path::new(&folder))).filter_map(Path::file_name);
        let there = root.entries(&folder).unwrap_or_default().into_keys();
        for name in there.chain(own.map(OsStr::to_owned)) {
            if Path::new(&name).extension() == Some(OsStr::new("conf")) {
                let path = format!("{folder}/{}", name.to_string_lossy());
                found.entry(name).or_insert(path);
            }
        }
    }
    found
}

/// The folders of drop-ins of a unit; of files with one name, that of the first folder is read.
fn folders(unit: &str) -> Vec<String> {
    let (stem, kind) = unit.rsplit_once('.').unwrap_or((unit, "service"));
    let mut names: Vec<String> = std::iter::once(unit.to_owned()).chain(template(unit)).collect();
    // 'a-b-c.service' is one of 'a-b-.service' and of 'a-.service' as well.
    let dashes = stem.trim_end_matches('-').rmatch_indices('-');
    names.extend(dashes.filter_map(|(at, _)| Some(format!("{}-.{kind}", stem.get(..at)?))));
    let of_name = SEARCHED.iter().flat_map(|folder| names.iter().map(move |name| format!("{folder}/{name}.d")));
    let of_kind = SEARCHED.iter().map(|folder| format!("{folder}/{kind}.d"));
    of_name.chain(of_kind).collect()
}

/// Why one of the settings of a file would not be in force: what files that are read later, with their paths, say of it.
fn taken_back(file: &StatedFile<'_>, later: &[(&str, String)]) -> Option<Failure> {
    let own = settings(file.text);
    let later: Vec<_> =
        later.iter().flat_map(|(path, text)| settings(text).into_iter().map(move |found| (*path, found))).collect();
    own.iter().enumerate().find_map(|(at, setting)| {
        let is_same = |other: &Setting<'_>| other.section == setting.section && meaning::sets(other.key, setting.key);
        let ends = |other: &Setting<'_>| meaning::replaces(setting.key, &other.value);
        // What the file itself takes back was not meant to be in force, and drop-ins enable nothing.
        let is_meant = !own.iter().skip(at + 1).any(|other| is_same(other) && ends(other));
        if setting.value.is_empty() || setting.section == "Install" || !is_meant {
            return None;
        }
        let mut found = None;
        for (path, other) in later.iter().filter(|(_, other)| is_same(other)) {
            if meaning::is_same(setting.key, &other.value, &setting.value) {
                found = None;
            } else if ends(other) {
                found = Some((path, other));
            }
        }
        let (path, Setting { key, line, value, .. }) = found?;
        let does = if value.is_empty() { format!("takes '{key}' back") } else { format!("sets '{key}' to {value}") };
        let message = format!("'/{path}' {does} in line {line}, which is read later. Remove that line");
        Some(impossible(file.property, message))
    })
}
