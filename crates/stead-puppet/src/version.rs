//! Versions of modules.

use std::fmt;

use semver::Version;

use crate::Error;

/// The version of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleVersion {
    /// A version of the module's own. The versions of its resources are in its metadata.
    Own(Version),
    /// The version of the module of resources that it was made from, as the modules of Puppet.Dsc have it.
    Source {
        /// `1.2.3` or `1.2.3.4`.
        version: String,
        /// How many times a module was made from this version before.
        build: u32,
    },
}

impl ModuleVersion {
    /// The version as Semantic Versioning has it: `1.2.3.4` is `1.2.3-4-0`.
    ///
    /// # Errors
    /// When the version of the source has not two to four numbers.
    pub(crate) fn resolve(&self) -> Result<Version, Error> {
        let (source, build) = match self {
            Self::Own(version) => return Ok(version.clone()),
            Self::Source { version, build } => (version, build),
        };
        let refuse = || Error::SourceVersion(source.clone());
        let numbers = source.split('.').map(str::parse).collect::<Result<Vec<u64>, _>>().map_err(|_| refuse())?;
        let (major, minor, patch, revision) = match *numbers.as_slice() {
            [major, minor] => (major, minor, 0, 0),
            [major, minor, patch] => (major, minor, patch, 0),
            [major, minor, patch, revision] => (major, minor, patch, revision),
            _ => return Err(refuse()),
        };
        let release = semver::Prerelease::new(&format!("{revision}-{build}")).map_err(|_| refuse())?;
        Ok(Version { pre: release, ..Version::new(major, minor, patch) })
    }

    /// The version that the module carries of its source.
    pub(crate) fn source(&self) -> Option<&str> {
        match self {
            Self::Own(_) => None,
            Self::Source { version, .. } => Some(version),
        }
    }
}

/// `>= 1.2.3 < 2.0.0`: what Puppet understands of a range. Displayed from the version that was used to generate.
pub(crate) struct Compatible<'v>(pub(crate) &'v Version);

impl fmt::Display for Compatible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version { major, minor, .. } = *self.0;
        // Below 1.0.0 a new minor version may change everything.
        let end = if major == 0 { format!("0.{}.0", minor + 1) } else { format!("{}.0.0", major + 1) };
        write!(f, ">= {} < {end}", self.0)
    }
}
