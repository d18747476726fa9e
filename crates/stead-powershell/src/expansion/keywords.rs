//! The resources that keywords of a configuration mean.

use std::collections::BTreeSet;
use std::sync::Arc;

use stead_core::diag::{did_you_mean, nearest};
use stead_core::id::TypeName;
use stead_core::manifest::Version;
use stead_powershell_reader::manifest::same;
use stead_powershell_reader::module::Module;
use stead_powershell_reader::resource::Resource;

use super::expand::{Import, Keywords, Target};
use crate::counterparts;

/// The installed modules: the resources that they export.
pub(crate) struct Installed<'a> {
    /// The resources, each with its module.
    pub(crate) resources: Vec<(&'a Arc<Module>, &'a Resource)>,
    /// The adapter that carries them out.
    pub(crate) adapter: &'a TypeName,
}

impl Installed<'_> {
    fn fitting(&self, import: &Import) -> impl Iterator<Item = &(&Arc<Module>, &Resource)> {
        let of_module = |module: &Module| import.module.as_ref().is_none_or(|name| same(name, &module.name));
        let of_version = move |module: &Module| {
            let parsed = import.version.as_deref().map(stead_powershell_reader::module::Version::parse);
            parsed.is_none_or(|version| version.as_ref() == Some(&module.version))
        };
        self.resources.iter().filter(move |(module, resource)| {
            let named = import.names.is_empty() || import.names.iter().any(|name| same(name, &resource.name));
            named && of_module(module) && of_version(module)
        })
    }

    /// The resource that a keyword means without an import.
    fn counterpart(&self, keyword: &str) -> Option<Target> {
        let resource = counterparts::module().resources.into_iter().find(|resource| same(&resource.name, keyword))?;
        let type_name = TypeName::parse(&format!("{}/{}", counterparts::MODULE, resource.name)).ok()?;
        let properties = resource.properties.iter().map(|property| property.name.clone()).collect();
        Some(Target { type_name, version: None, adapter: Some(self.adapter.clone()), properties })
    }

    fn target(&self, module: &Module, resource: &Resource) -> Result<Target, String> {
        let type_name = TypeName::parse(&format!("{}/{}", module.name, resource.name));
        let version = module.version.to_string();
        let version = Version::parse_module(&version).map_or(version, |version| version.to_string());
        Ok(Target {
            type_name: type_name.map_err(|error| error.to_string())?,
            version: Some(format!("={version}")),
            adapter: Some(self.adapter.clone()),
            properties: resource.properties.iter().map(|property| property.name.clone()).collect(),
        })
    }
}

impl Keywords for Installed<'_> {
    fn check(&self, import: &Import) -> Result<(), String> {
        let name = import.module.as_deref().unwrap_or_default();
        let version = import.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        if import.module.is_some() && !same(name, counterparts::MODULE) {
            let any = Import { names: Vec::new(), ..import.clone() };
            let versions: BTreeSet<_> = self.fitting(&any).map(|(module, _)| &module.version).collect();
            match versions.len() {
                0 => return Err(format!("there is no module '{name}'{version} with resources")),
                1 => {}
                many => {
                    return Err(format!("there are {many} versions of the module '{name}'; add '-ModuleVersion'"));
                }
            }
        }
        Ok(())
    }

    fn resolve(&self, imports: &[Import], keyword: &str) -> Result<Target, String> {
        let imported = imports.iter().flat_map(|import| self.fitting(import));
        let mut found: Vec<_> = imported.filter(|(_, resource)| same(&resource.name, keyword)).collect();
        found.dedup_by(|(one, _), (other, _)| one.file == other.file);
        match *found {
            [(module, resource)] => self.target(module, resource),
            [] => self.counterpart(keyword).ok_or_else(|| {
                let known = imports.iter().flat_map(|import| self.fitting(import));
                let known = known.map(|(_, resource)| resource.name.as_str()).chain(counterparts::NAMES);
                let meant = nearest(keyword, known).map(did_you_mean);
                let hint = meant.unwrap_or_else(|| "is an 'Import-DscResource' missing?".to_owned());
                format!("'{keyword}' is not a resource that is imported; {hint}")
            }),
            [..] => Err(format!("'{keyword}' is in several modules that are imported")),
        }
    }
}
