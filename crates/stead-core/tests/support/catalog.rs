//! A catalog of resources that do not exist, one a line.

use std::sync::Arc;

use stead_core::graph::{FoundResource, Lacks, Resources, Unresolved};
use stead_core::id::TypeName;
use stead_core::manifest::{
    AdaptedResource, Capabilities, Catalog, Implementation, Manifest, ResourceKind, Version, VersionRequirement,
};

/// One of each kind that the engine treats differently.
const DEFAULT: &str = "
Test/Echo resource 1.0.0 get set test
Test/Own resource 1.0.0 get set pretest
Test/Native resource 1.0.0 get set test whatIf
Test/Removable resource 1.0.0 get set test delete
Test/RemovableNative resource 1.0.0 get set test delete deleteWhatIf
Test/Version resource 1.0.0 get
Test/Version resource 1.2.0 get
Test/Version resource 2.0.0 get
Microsoft/OSInfo resource 0.1.0 get export
Microsoft.DSC/Group engineGroup 0.1.0
Microsoft.DSC/Assertion engineGroup 0.1.0
Microsoft.DSC/Include engineImporter 0.1.0
Test/ProgramGroup group 1.0.0 get set test
Test/Adapter adapter 1.0.0 get set test
Adapted/One adapted:Test/Adapter 1.0.0 get set test
Adapted/Two adapted:Test/Adapter 1.0.0 get set test
";

/// A catalog as resolving asks it.
#[derive(Default)]
pub(crate) struct Known(Catalog);

impl Known {
    /// The resources that every case has, and those of these lines: `TYPE KIND VERSION ABILITY…`.
    pub(crate) fn with(lines: &str) -> Result<Self, String> {
        let mut known = Self::default();
        for line in DEFAULT.lines().chain(lines.lines()).filter(|line| !line.is_empty()) {
            let manifest = known.manifest(line).ok_or_else(|| format!("'{line}' is not a resource"))?;
            known.0.add(Arc::new(manifest));
        }
        Ok(known)
    }

    fn manifest(&self, line: &str) -> Option<Manifest> {
        let mut words = line.split(' ');
        let type_name = TypeName::parse(words.next()?).ok()?;
        let (kind, implementation) = self.kind(words.next()?)?;
        let version = Version::parse(words.next()?).ok()?;
        let mut capabilities = Capabilities::default();
        let (deprecated, mut words): (Vec<&str>, Vec<&str>) = words.partition(|word| *word == "deprecated");
        words.drain(..).try_for_each(|word| enable(&mut capabilities, word))?;
        let deprecation = (!deprecated.is_empty()).then(|| "use Test/Echo".to_owned());
        Some(Manifest { kind, capabilities, deprecation, ..Manifest::new(type_name, version, implementation) })
    }

    fn kind(&self, word: &str) -> Option<(ResourceKind, Implementation)> {
        if let Some(by) = word.strip_prefix("adapted:") {
            let adapter = Arc::clone(self.0.versions(&TypeName::parse(by).ok()?).first()?);
            let resource = Arc::new(AdaptedResource {
                require_adapter: adapter.type_name.clone(),
                path: None,
                content: None,
                schema: None,
                manifest_path: None,
                manifest: serde_json::Value::Null,
            });
            return Some((ResourceKind::Resource, Implementation::Adapted { adapter, resource }));
        }
        let command = Implementation::Command(Arc::default());
        Some(match word {
            "resource" => (ResourceKind::Resource, command),
            "adapter" => (ResourceKind::Adapter, command),
            "group" => (ResourceKind::Group, command),
            "exporter" => (ResourceKind::Exporter, command),
            "engineGroup" => (ResourceKind::Group, Implementation::Engine),
            "engineImporter" => (ResourceKind::Importer, Implementation::Engine),
            _ => return None,
        })
    }
}

fn enable(capabilities: &mut Capabilities, word: &str) -> Option<()> {
    let ability = match word {
        "get" => &mut capabilities.get,
        "set" => &mut capabilities.set,
        "test" => &mut capabilities.test,
        "delete" => &mut capabilities.delete,
        "export" => &mut capabilities.export,
        "pretest" => &mut capabilities.implements_pretest,
        "whatIf" => &mut capabilities.set_what_if,
        "deleteWhatIf" => &mut capabilities.delete_what_if,
        _ => return None,
    };
    *ability = true;
    Some(())
}

impl Resources for Known {
    fn find(&self, type_name: &TypeName, requirement: Option<&str>, adapter: Option<&TypeName>) -> FoundResource {
        let nothing = |lacks, message, help| FoundResource::Nothing(Unresolved { lacks, message, help, meant: None });
        let requirement = match requirement.map(VersionRequirement::parse).transpose() {
            Ok(requirement) => requirement,
            Err(error) => return nothing(Lacks::Version, error.to_string(), None),
        };
        match self.0.find(type_name, requirement.as_ref()) {
            Ok(found) if adapter.is_none() || found.require_adapter() == adapter => {
                FoundResource::Resource(Arc::clone(found))
            }
            Ok(_) => {
                let message = format!("Resource not found: '{type_name}' is not carried out by that adapter");
                nothing(Lacks::Adapter, message, None)
            }
            Err(error) => nothing((&error).into(), format!("Resource not found: {type_name}: {error}"), error.help()),
        }
    }
}
