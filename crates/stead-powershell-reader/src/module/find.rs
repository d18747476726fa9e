//! Where modules lie below the directories of `PSModulePath`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stead_system::fs::OpenError;

use super::Version;
use super::files::{Files, Names};
use crate::module::Environment;

/// A module that was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FoundModule {
    /// Its name, which is that of its folder.
    pub name: String,
    /// Its manifest, or its script where it has none.
    pub file: PathBuf,
    /// The version that its folder is named by.
    pub folder_version: Option<Version>,
}

/// The endings of the files that a module can consist of; the first that exists counts.
const EXTENSIONS: &[&str] = &["psd1", "psm1", "cdxml", "dll"];

/// Deeper folders are not looked into.
const DEEPEST: usize = 16;

/// The directories that PowerShell looks for modules in, the first first: those of `PSModulePath`, or what it sets where
/// that is missing.
pub fn module_path(environment: &Environment<'_>, pwsh: Option<&Path>) -> Vec<PathBuf> {
    if let Some(path) = (environment)("PSModulePath").filter(|path| !path.is_empty()) {
        return path.split(':').map(PathBuf::from).filter(|path| path.is_absolute()).collect();
    }
    let home = (environment)("XDG_DATA_HOME").map(PathBuf::from);
    let home = home.or_else(|| (environment)("HOME").map(|home| Path::new(&home).join(".local/share")));
    let mut paths: Vec<_> = home.into_iter().map(|home| home.join("powershell/Modules")).collect();
    paths.push(PathBuf::from("/usr/local/share/powershell/Modules"));
    paths.extend(pwsh.and_then(Path::parent).map(|folder| folder.join("Modules")));
    paths
}

/// The modules below a directory, by path; of one name the highest version first.
///
/// A folder is a module when it holds a file of its own name, or a folder that is named by a version and holds a manifest of
/// that name; the second hides the first. Folders inside of a module are not looked into. Directories that cannot be read are
/// reported; one that is not there holds nothing.
pub fn find(root: &Path, files: &dyn Files) -> (Vec<FoundModule>, Vec<OpenError>) {
    let mut search = (Vec::new(), Vec::new());
    below(root, files, 0, &mut search);
    search
}

fn below(folder: &Path, files: &dyn Files, depth: usize, search: &mut (Vec<FoundModule>, Vec<OpenError>)) {
    let (found, errors) = search;
    let names = match files.list(folder) {
        Ok((names, _)) => names,
        Err(error) if error.is_not_found() => return,
        Err(error) => return errors.push(error),
    };
    if depth > 0 && module(folder, &names, files, found) || depth == DEEPEST {
        return;
    }
    for (name, _) in names.iter().filter(|(_, entry)| entry.may_be_directory()) {
        below(&folder.join(name), files, depth + 1, search);
    }
}

/// The module that a folder is, its highest version first.
pub(super) fn module_in(folder: &Path, files: &dyn Files) -> Vec<FoundModule> {
    let mut found = Vec::new();
    if let Ok((names, _)) = files.list(folder) {
        module(folder, &names, files, &mut found);
    }
    found
}

/// Takes up the module that a folder is; false if it is none.
fn module(folder: &Path, names: &Names, files: &dyn Files, found: &mut Vec<FoundModule>) -> bool {
    let Some(name) = folder.file_name().and_then(|name| name.to_str()) else { return false };
    let file = |folder: &Path, extension: &str| folder.join(format!("{name}.{extension}"));
    let mut versions: Vec<_> = names
        .iter()
        .filter(|(_, entry)| entry.may_be_directory())
        .filter_map(|(version, _)| Some((Version::parse(version)?, folder.join(version))))
        .filter(|(_, inner)| holds(files, inner, &format!("{name}.psd1")))
        .collect();
    versions.sort_by(|left, right| right.0.cmp(&left.0));
    let name = name.to_owned();
    if !versions.is_empty() {
        found.extend(versions.into_iter().map(|(version, inner)| FoundModule {
            name: name.clone(),
            file: file(&inner, "psd1"),
            folder_version: Some(version),
        }));
        return true;
    }
    let exists = |extension: &&&str| names.get(&format!("{name}.{extension}")).is_some_and(|entry| entry.may_be_file());
    let Some(extension) = EXTENSIONS.iter().find(exists) else { return false };
    found.push(FoundModule { file: file(folder, extension), name: name.clone(), folder_version: None });
    true
}

/// Returns whether a directory holds a file.
pub(super) fn holds(files: &dyn Files, folder: &Path, name: &str) -> bool {
    files.list(folder).is_ok_and(|(names, _)| names.get(name).is_some_and(|entry| entry.may_be_file()))
}
