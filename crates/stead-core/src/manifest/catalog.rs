//! Every resource that is known, and how one of them is chosen.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Manifest, Version, VersionRequirement};
use crate::diag::{did_you_mean, nearest};
use crate::id::TypeName;

/// Every resource that is known, newest version first; an immutable snapshot.
///
/// # Examples
/// ```
/// use std::path::Path;
///
/// use stead_core::id::TypeName;
/// use stead_core::manifest::{Catalog, Declaration, ManifestForm, parse};
/// use stead_core::text::{Limits, SourceId, read};
///
/// let text = "
/// $schema: https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json
/// type: Shop/Till
/// version: 1.2.0
/// get: {executable: till, args: [get]}
/// schema: {embedded: {type: object, properties: {}}}
/// ";
/// assert_eq!(ManifestForm::of("till.dsc.resource.yaml"), Some(ManifestForm::Resource));
/// let (tree, _) = read(SourceId::default(), text, &Limits::default());
/// let tree = tree.ok_or("the manifest cannot be read")?;
/// let (declared, findings) = parse(ManifestForm::Resource, &tree, Path::new("/opt/till.dsc.resource.yaml"));
/// assert!(findings.is_empty(), "{findings:?}");
/// let mut catalog = Catalog::default();
/// for each in declared {
///     if let Declaration::Resource(manifest) = each.declaration {
///         assert!(manifest.capabilities.get && !manifest.capabilities.set);
///         catalog.add(manifest.into());
///     }
/// }
/// let error = catalog.find(&TypeName::parse("Shop/Til")?, None).unwrap_err();
/// assert_eq!(error.help().as_deref(), Some("did you mean 'Shop/Till'?"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    by_type: BTreeMap<TypeName, Vec<Arc<Manifest>>>,
}

/// Why no resource was chosen.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotChosen {
    /// There is none of that type.
    #[error("there is no resource of type '{wanted}'")]
    Type {
        /// The type.
        wanted: TypeName,
        /// The type that was probably meant.
        near: Option<TypeName>,
    },
    /// There are some of that type, but the requirement excludes them.
    #[error("no version of '{wanted}' satisfies '{requirement}'; available: {}", enumerated(there))]
    Version {
        /// The type.
        wanted: TypeName,
        /// The requirement, as it was written.
        requirement: String,
        /// The versions that there are, newest first.
        there: Vec<Version>,
    },
}

impl NotChosen {
    /// The type that was probably meant.
    pub fn meant(&self) -> Option<&TypeName> {
        match self {
            Self::Type { near, .. } => near.as_ref(),
            Self::Version { .. } => None,
        }
    }

    /// Returns the advice about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Type { near, .. } => near.as_ref().map(|near| did_you_mean(near.as_str())),
            Self::Version { there, .. } => match there.first() {
                Some(Version::Semantic(newest)) if !newest.pre.is_empty() => {
                    Some(format!("name the prerelease: '={newest}' or '>={newest}'"))
                }
                Some(newest) => Some(format!("write '={newest}' for the newest version")),
                None => None,
            },
        }
    }
}

fn enumerated(versions: &[Version]) -> String {
    versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Catalog {
    /// Adds a manifest. One of the same type and version that is there already stays and wins.
    pub fn add(&mut self, manifest: Arc<Manifest>) {
        let versions = self.by_type.entry(manifest.type_name.clone()).or_default();
        let at = versions.partition_point(|other| other.version > manifest.version);
        if versions.get(at).is_none_or(|other| other.version != manifest.version) {
            versions.insert(at, manifest);
        }
    }

    /// Every version of a type, newest first.
    pub fn versions(&self, type_name: &TypeName) -> &[Arc<Manifest>] {
        self.by_type.get(type_name).map_or(&[], Vec::as_slice)
    }

    /// Every type in order, and of each its versions, newest first.
    pub fn iter(&self) -> impl Iterator<Item = (&TypeName, &[Arc<Manifest>])> {
        self.by_type.iter().map(|(name, versions)| (name, versions.as_slice()))
    }

    /// Chooses the resource for a type: the newest that satisfies the requirement, prereleases included when there is
    /// none, whether it is built in or was found on the machine.
    pub fn find(
        &self,
        type_name: &TypeName,
        requirement: Option<&VersionRequirement>,
    ) -> Result<&Arc<Manifest>, NotChosen> {
        let versions = self.versions(type_name);
        let fits = |manifest: &&Arc<Manifest>| requirement.is_none_or(|rule| rule.matches(&manifest.version));
        versions.iter().find(fits).ok_or_else(|| self.not_found(type_name, requirement))
    }

    fn not_found(&self, wanted: &TypeName, requirement: Option<&VersionRequirement>) -> NotChosen {
        let wanted = wanted.clone();
        let there: Vec<_> = self.versions(&wanted).iter().map(|manifest| manifest.version.clone()).collect();
        match requirement {
            Some(requirement) if !there.is_empty() => {
                NotChosen::Version { wanted, requirement: requirement.to_string(), there }
            }
            _ => NotChosen::Type { near: self.near(&wanted), wanted },
        }
    }

    /// The type of the same owner that was probably meant. One of another owner is another resource, whatever its name.
    fn near(&self, wanted: &TypeName) -> Option<TypeName> {
        let adjacent = || self.by_type.keys().filter(|known| known.owner().eq_ignore_ascii_case(wanted.owner()));
        let short = nearest(wanted.short(), adjacent().map(TypeName::short))?;
        adjacent().find(|name| name.short() == short).cloned()
    }
}
