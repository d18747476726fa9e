//! Reading the desired state: from JSON to the type that declares the properties of a resource.
//!
//! Guarantees: no message quotes a value, because any value may be a secret that was put in the wrong place.

use std::io;
use std::path::Path;

use serde::Deserialize;
use serde::de::value::MapDeserializer;
use stead_core::call::{Failure, FailureKind};
use stead_core::schema::Reason;
use stead_core::value::pointer;
use stead_host::provider::Plain;

use crate::declared::Declared;

mod de;
mod types;

pub(crate) use de::has_fraction;
pub(crate) use types::{
    AnyValue, Backup, Base64, ChecksumText, DownloadUrl, EntryName, FilePath, LinkTarget, Mode, NonEmpty, PackageName,
    PathText, Pointer, ProxyUrl, ReadOnly, ReleaseName, RepositoryAddress, Revision,
};

/// The properties of a resource, declared once: names, kinds and constraints are those of the type, from which the JSON
/// Schema is generated as well.
pub(crate) trait Properties<'a>: Deserialize<'a> + Declared {
    /// What must hold besides what is declared.
    fn check(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Reads the properties of an instance that is to be compared or set.
pub(crate) fn read<'a, T: Properties<'a>>(input: &'a Plain) -> Result<T, Failure> {
    let properties: T = read_each(input)?;
    properties.check()?;
    properties.related()?;
    Ok(properties)
}

/// Reads properties each by itself, for a look at what is there: what only a comparison needs may be missing.
pub(crate) fn read_each<'a, T: Deserialize<'a>>(input: &'a Plain) -> Result<T, Failure> {
    if input.expose().is_null() {
        // Without properties, those that are required are what is missing.
        let none = std::iter::empty::<(&str, &str)>();
        return T::deserialize(MapDeserializer::<_, de::Fault>::new(none)).map_err(Failure::from);
    }
    T::deserialize(de::Reader::new(input.expose())).map_err(Failure::from)
}

/// A failure about a property, or about the whole when its name is empty.
pub(crate) fn failure(kind: FailureKind, property: &str, message: impl Into<String>) -> Failure {
    let property = (!property.is_empty()).then(|| pointer::within("", property));
    Failure { property, ..Failure::new(kind, message) }
}

/// The failure that a property is not valid.
pub(crate) fn invalid(property: &str, message: impl Into<String>) -> Failure {
    failure(FailureKind::Invalid, property, message)
}

/// The failure that a property is required: any of these. It is about the first one.
pub(crate) fn required(any_of: &[&str]) -> Failure {
    let reason = Reason::Missing(any_of.iter().map(|&name| name.to_owned()).collect());
    because(any_of.first().unwrap_or(&""), reason)
}

/// Fails when a property that an instance needs in order to exist is missing.
pub(crate) fn required_if(exist: bool, stated: &[(&str, bool)]) -> Result<(), Failure> {
    let missing = stated.iter().find(|(_, is_stated)| exist && !is_stated);
    missing.map_or(Ok(()), |(name, _)| Err(required(&[name])))
}

fn because(property: &str, reason: Reason) -> Failure {
    let failure = invalid(property, reason.to_string());
    Failure { reason: Some(Box::new(reason)), ..failure }
}

/// Refuses two properties that contradict each other. The failure is about the second one.
pub(crate) fn exclusive(first: (&str, bool), second: (&str, bool)) -> Result<(), Failure> {
    match (first, second) {
        ((first, true), (second, true)) => {
            Err(because(second, Reason::Excluded(vec![second.to_owned(), first.to_owned()])))
        }
        _ => Ok(()),
    }
}

/// The failure that something is missing or in the way, until another instance or an administrator changes that.
pub(crate) fn blocked(property: &str, message: impl Into<String>) -> Failure {
    failure(FailureKind::Blocked, property, message)
}

/// The failure that the system refused something which it may do in a moment.
pub(crate) fn transient(property: &str, message: impl Into<String>) -> Failure {
    failure(FailureKind::System, property, message)
}

/// The failure of a request that cannot be met, however often it is tried.
pub(crate) fn impossible(property: &str, message: impl Into<String>) -> Failure {
    failure(FailureKind::Refused, property, message)
}

/// The failure that the system refused something, with what it said.
pub(crate) fn cannot(doing: &str, path: &Path, error: impl Into<io::Error>) -> Failure {
    let error = error.into();
    let (reason, advice) = (stead_system::fs::reason(&error), stead_system::fs::advice(&error));
    let message = format!("cannot {doing} '{}': {reason}{advice}", path.display());
    failure(stead_system::fs::failure_kind(&error), "path", message)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn every_failure_says_whether_trying_again_helps() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let of_this_module = root.join("input/mod.rs");
        for path in sources(&root).into_iter().filter(|path| *path != of_this_module) {
            let text = fs::read_to_string(&path).unwrap();
            for made in ["Failure::new(FailureKind::System", "failure(FailureKind::System"] {
                assert!(!text.contains(made), "{}: write blocked, transient or impossible", path.display());
            }
        }
    }

    /// A name that is written out is not renamed with its property, and may never have been one.
    #[test]
    fn properties_are_named_by_their_constants() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let folders = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let declared: Vec<PathBuf> = folders.filter(|it| text(&it.join("mod.rs")).contains("\n#[resource(")).collect();
        assert!(declared.len() > 30, "{declared:?}");
        for path in declared.iter().flat_map(|folder| sources(folder)) {
            let text = text(&path);
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for failure in ["blocked(", "invalid(", "impossible(", "transient(", "required(&["] {
                // A failure of the whole has no property.
                let names = code.split(failure).skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"'));
                let written = names.filter(|rest| !rest.starts_with('"')).count();
                assert_eq!(written, 0, "{}: {failure}…: name the property by its constant", path.display());
            }
        }
    }
}
