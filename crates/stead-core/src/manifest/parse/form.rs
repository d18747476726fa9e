//! The form of a manifest file, by its name or by its content.

use crate::manifest::read::present;
use crate::text::Node;

/// The form of a manifest file, by its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ManifestForm {
    /// `*.dsc.resource.*`
    Resource,
    /// `*.dsc.adaptedResource.*`
    Adapted,
    /// `*.dsc.extension.*`
    Extension,
    /// `*.dsc.manifests.*`: several of the others
    List,
}

impl ManifestForm {
    /// How the names of manifests end: what an extension that searches for manifests looks for.
    pub const ENDINGS: [&str; 12] = [
        ".dsc.resource.json",
        ".dsc.resource.yaml",
        ".dsc.resource.yml",
        ".dsc.adaptedResource.json",
        ".dsc.adaptedResource.yaml",
        ".dsc.adaptedResource.yml",
        ".dsc.extension.json",
        ".dsc.extension.yaml",
        ".dsc.extension.yml",
        ".dsc.manifests.json",
        ".dsc.manifests.yaml",
        ".dsc.manifests.yml",
    ];

    /// The form of a file of that name; `None` when it is not a manifest. Case does not matter.
    pub fn of(file_name: &str) -> Option<Self> {
        // Most names of a search path are programs without any dot, so the cheap test comes first.
        let (stem, ending) = file_name.rsplit_once('.')?;
        if !["json", "yaml", "yml"].iter().any(|each| ending.eq_ignore_ascii_case(each)) {
            return None;
        }
        let (stem, form) = stem.rsplit_once('.')?;
        let (_, dsc) = stem.rsplit_once('.')?;
        let forms = [
            ("resource", Self::Resource),
            ("adaptedResource", Self::Adapted),
            ("extension", Self::Extension),
            ("manifests", Self::List),
        ];
        let known = forms.iter().find(|(word, _)| form.eq_ignore_ascii_case(word));
        known.filter(|_| dsc.eq_ignore_ascii_case("dsc")).map(|(_, form)| *form)
    }

    /// The form of a manifest that has no file name, by what it holds.
    pub fn guess(manifest: &Node) -> Self {
        let has = |keys: &[&str]| keys.iter().any(|key| present(manifest, key).is_some());
        if has(&["resources", "adaptedResources", "extensions"]) {
            Self::List
        } else if has(&["requireAdapter"]) {
            Self::Adapted
        } else if has(&["discover", "import", "secret"]) {
            Self::Extension
        } else {
            Self::Resource
        }
    }
}
