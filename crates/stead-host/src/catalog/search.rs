//! Where manifests and programs are looked for.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::settings::ResourcePath;
use stead_system::fs::{Trust, User};

/// Where to look, on whose behalf, and where to remember what was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Search {
    /// The directories of manifests; of equal manifests the first counts.
    pub directories: Vec<PathBuf>,
    /// The directories of programs: what resources are run with as `PATH`, and where `tryWhich` looks.
    pub programs: Vec<PathBuf>,
    /// Directories of manifests that were left out because they are relative, which root does not trust: they depend
    /// on the working directory.
    pub relative: Vec<PathBuf>,
    /// Who runs.
    pub user: User,
    /// True if there is nothing but what lies in these directories: neither what is built in nor what modules have.
    pub is_alone: bool,
    /// The directory of the index. `None`: everything is read every time.
    pub cache: Option<PathBuf>,
}

/// The part of the environment of the process that decides where to look.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchEnvironment<'a> {
    /// `PATH`
    pub path: Option<&'a OsStr>,
    /// `DSC_RESOURCE_PATH`: replaces `PATH` for manifests
    pub resource_path: Option<&'a OsStr>,
    /// `DSC_RESTRICTED_PATH`: replaces everything, for manifests and programs; where `allowEnvOverride` is false it only
    /// leaves out directories of manifests
    pub restricted_path: Option<&'a OsStr>,
    /// The directory of this program, which is searched last.
    pub program_directory: Option<&'a Path>,
    /// The directory that relative ones are relative to.
    pub current_directory: Option<&'a Path>,
}

impl Search {
    /// Decides where to look.
    pub fn new(environment: &SearchEnvironment<'_>, setting: &ResourcePath, user: User) -> Self {
        let listed = |paths: Option<&OsStr>| paths.map(|paths| std::env::split_paths(paths).collect::<Vec<_>>());
        let mut programs = listed(environment.path).unwrap_or_default();
        programs.extend(environment.program_directory.map(Path::to_owned));
        let restricted = listed(environment.restricted_path);
        let stated = listed(environment.resource_path).filter(|_| setting.allow_env_override);
        let by_setting = || -> Vec<PathBuf> {
            let path = if setting.append_env_path { listed(environment.path) } else { None };
            let own = environment.program_directory.map(Path::to_owned);
            setting.directories.iter().cloned().chain(path.unwrap_or_default()).chain(own).collect()
        };
        let directories = match (&restricted, stated) {
            (Some(only), _) if setting.allow_env_override => only.clone(),
            (Some(only), _) => by_setting().into_iter().filter(|directory| only.contains(directory)).collect(),
            (None, Some(stated)) => stated,
            (None, None) => by_setting(),
        };
        let is_relative = |directory: &PathBuf| directory.is_relative() && !directory.as_os_str().is_empty();
        let elevated = user.trust() == Trust::Root;
        let relative = directories.iter().filter(|directory| elevated && is_relative(directory)).cloned().collect();
        let current = environment.current_directory.filter(|_| !elevated);
        Self {
            directories: distinct(directories, current),
            programs: distinct(restricted.unwrap_or(programs), current),
            relative,
            user,
            is_alone: false,
            cache: None,
        }
    }

    /// Returns the same search with an index in that directory.
    #[must_use]
    pub fn with_cache(self, cache: PathBuf) -> Self {
        Self { cache: Some(cache), ..self }
    }
}

/// Each directory once, absolute. Empty ones, which shells take for the current directory, are left out: nobody means
/// them, and they differ from one moment to the next.
fn distinct(directories: Vec<PathBuf>, current: Option<&Path>) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    let named = directories.into_iter().filter(|directory| !directory.as_os_str().is_empty());
    let absolute = named.filter_map(|directory| match current {
        Some(current) => Some(current.join(directory)),
        None => Some(directory).filter(|directory| directory.is_absolute()),
    });
    absolute.filter(|directory| seen.insert(directory.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories(environment: &SearchEnvironment<'_>, setting: &ResourcePath) -> String {
        let search = Search::new(environment, setting, User { id: 1 });
        let joined = |paths: &[PathBuf]| std::env::join_paths(paths).unwrap().into_string().unwrap();
        format!("{} | {}", joined(&search.directories), joined(&search.programs))
    }

    #[test]
    fn root_looks_in_no_relative_directories() {
        let environment = SearchEnvironment {
            path: Some(OsStr::new("/a:rel::.")),
            current_directory: Some(Path::new("/here")),
            ..SearchEnvironment::default()
        };
        let search = Search::new(&environment, &ResourcePath::default(), User { id: 0 });
        assert_eq!((search.directories, search.programs), (vec!["/a".into()], vec!["/a".into()]));
        assert_eq!(search.relative, [Path::new("rel"), Path::new(".")]);
    }

    #[test]
    fn variables_and_settings_decide_where_to_look() {
        let usual = SearchEnvironment {
            path: Some(OsStr::new("/a:/b::/a:rel")),
            program_directory: Some(Path::new("/own")),
            current_directory: Some(Path::new("/here")),
            ..SearchEnvironment::default()
        };
        let stated = SearchEnvironment { resource_path: Some(OsStr::new("/r:/s")), ..usual };
        let restricted = SearchEnvironment { restricted_path: Some(OsStr::new("/only")), ..stated };
        let narrowed = SearchEnvironment { restricted_path: Some(OsStr::new("/set:/bad")), ..stated };
        let default = ResourcePath::default();
        let added = ResourcePath { directories: vec!["/set".into()], ..ResourcePath::default() };
        let alone = ResourcePath { append_env_path: false, allow_env_override: false, ..added.clone() };
        let cases = [
            (&usual, &default, "/a:/b:/here/rel:/own | /a:/b:/here/rel:/own"),
            (&usual, &added, "/set:/a:/b:/here/rel:/own | /a:/b:/here/rel:/own"),
            (&usual, &alone, "/set:/own | /a:/b:/here/rel:/own"),
            (&stated, &added, "/r:/s | /a:/b:/here/rel:/own"),
            (&stated, &alone, "/set:/own | /a:/b:/here/rel:/own"),
            (&restricted, &added, "/only | /only"),
            (&restricted, &alone, " | /only"),
            (&narrowed, &alone, "/set | /set:/bad"),
        ];
        for (environment, setting, expected) in cases {
            assert_eq!(directories(environment, setting), expected);
        }
    }
}
