//! The resources that there are, as the core asks for them.

use std::path::Path;

use stead_core::diag::Diagnostic;
use stead_core::document::type_of_others;
use stead_core::graph::{Expansion, ExpansionFinding, FoundResource, Lacks, Resources, Unresolved};
use stead_core::id::TypeName;
use stead_core::manifest::{self, Manifest, ResourceKind, VersionRequirement};
use stead_core::text::{Sources, Span};
use stead_core::value::Object;
use stead_host::catalog::{Discovery, WantedType};
use stead_host::provider::Context;

use crate::importing::Importers;
use crate::modules::Modules;
use crate::providers::Providers;

/// A resource that is not there.
#[derive(Debug)]
pub struct NotFound {
    /// One sentence.
    pub message: String,
    /// The advice about it.
    pub help: Option<String>,
}

/// Discovery as the core asks it.
pub(crate) struct Known<'a> {
    pub(crate) discovery: &'a Discovery,
    pub(crate) expanding: Option<&'a Expanding<'a>>,
    /// The providers that ask programs for the marks of their schemas, and the context of those calls.
    pub(crate) marks: (&'a Providers, &'a Context),
}

/// The parts of the host that expand instances.
pub(crate) struct Expanding<'a> {
    pub(crate) modules: &'a Modules,
    pub(crate) importers: Importers<'a>,
}

impl Known<'_> {
    /// Why nothing was found: a manifest that declares the type and is invalid says more than a similar name.
    fn nothing(&self, type_name: &TypeName, version: &str, error: &manifest::NotChosen) -> FoundResource {
        let invalid = match error {
            manifest::NotChosen::Type { .. } => {
                self.discovery.find_problem(|problem| problem.first_error_of(type_name))
            }
            manifest::NotChosen::Version { .. } => None,
        };
        let of_others = || type_of_others(type_name.as_str()).and_then(|known| TypeName::parse(known).ok());
        let meant = match error {
            manifest::NotChosen::Type { .. } => of_others().or_else(|| error.meant().cloned()),
            manifest::NotChosen::Version { .. } => error.meant().cloned(),
        };
        let meant = meant.filter(|_| invalid.is_none());
        let (why, help) = match (invalid, error) {
            (Some((finding, help)), _) => (format!(": its manifest is invalid: {finding}"), help),
            (None, manifest::NotChosen::Version { .. }) => (format!(": {error}"), error.help()),
            (None, manifest::NotChosen::Type { .. }) => {
                let module = |why| format!("DSC resource '{type_name}' module not found: {why}");
                let why_missing = || self.missing_module(type_name).map(|why| (module(why), None));
                let missing = self.missing_resource(type_name).map(|(why, help)| (why, Some(help)));
                let (why, help) = missing.or_else(why_missing).unwrap_or_default();
                let usual = || error.help().or_else(|| Some(self.advice_on_unknown(type_name)));
                (if why.is_empty() { why } else { format!(": {why}") }, help.or_else(usual))
            }
        };
        let message = format!("Resource not found: {type_name}{version}{why}");
        FoundResource::Nothing(Unresolved { lacks: error.into(), message, help, meant })
    }

    /// Returns advice about a type that nothing declares, and to which none is near.
    fn advice_on_unknown(&self, type_name: &TypeName) -> String {
        let list = "`stead resource list` shows which there are";
        if type_name.as_str().to_lowercase().starts_with("microsoft.windows") {
            return format!("it is a resource for Windows; {list}");
        }
        match self.discovery.find_problem(|problem| problem.untrusted().map(Path::to_owned)) {
            Some(path) => format!(
                "the type may be declared in '{}', which was not read because others can change it; {list}",
                path.display()
            ),
            None => list.to_owned(),
        }
    }

    /// The reason why a PowerShell module that is there does not have a resource, and the advice about it.
    fn missing_resource(&self, type_name: &TypeName) -> Option<(String, String)> {
        self.expanding?.modules.missing_resource(type_name)
    }

    /// Where a PowerShell module was looked for, in vain: where another owner has resources, it is not that of a module.
    fn missing_module(&self, type_name: &TypeName) -> Option<String> {
        let owner = |name: &TypeName| name.as_str().split(['.', '/']).next().unwrap_or_default().to_lowercase();
        let mut known = self.discovery.discovered().catalog.iter();
        if known.any(|(name, _)| owner(name) == owner(type_name)) {
            return None;
        }
        self.expanding?.modules.with(|powershell, inventory| powershell.missing_module(inventory, type_name))?
    }

    fn has_adapter(&self, type_name: &TypeName) -> bool {
        self.discovery.discovered().catalog.find(type_name, None).is_ok_and(|found| found.kind == ResourceKind::Adapter)
    }
}

impl Resources for Known<'_> {
    fn expand(
        &self,
        manifest: &Manifest,
        properties: &Object,
        sources: &mut Sources,
    ) -> Result<Expansion, Vec<ExpansionFinding>> {
        if let Some(expanding) = self.expanding.filter(|_| manifest.resolves()) {
            return expanding.importers.expand(manifest, properties, sources);
        }
        let expanded = self.expanding.and_then(|expanding| {
            expanding.modules.with(|powershell, inventory| powershell.expand(inventory, manifest, properties, sources))
        });
        if let Some(expanded) = expanded {
            return expanded;
        }
        let message = format!("'{}' is a composite resource of PowerShell, which is not used", manifest.type_name);
        let finding = Diagnostic::error(&stead_core::graph::codes::UNKNOWN_TYPE, Span::default(), message);
        Err(vec![Diagnostic { span: None, ..finding }.into()])
    }

    fn find(&self, type_name: &TypeName, requirement: Option<&str>, adapter: Option<&TypeName>) -> FoundResource {
        let requirement = match requirement.map(VersionRequirement::parse).transpose() {
            Ok(requirement) => requirement,
            Err(error) => {
                let help = Some("write a requirement such as '=1.2.0' or '>=1.2.0'".to_owned());
                let message = error.to_string();
                return FoundResource::Nothing(Unresolved { lacks: Lacks::Version, message, help, meant: None });
            }
        };
        let version = requirement.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        match self.discovery.find(&WantedType { type_name: type_name.clone(), requirement, adapter: adapter.cloned() })
        {
            Ok(manifest) => {
                let (providers, cx) = self.marks;
                FoundResource::Resource(providers.marked(&manifest, cx))
            }
            Err(error) => match adapter.filter(|adapter| !self.has_adapter(adapter)) {
                Some(adapter) => {
                    let message = format!("Adapter not found: {adapter}, which is required for '{type_name}'");
                    let help = Some("install the adapter, or remove 'requireAdapter'".to_owned());
                    FoundResource::Nothing(Unresolved { lacks: Lacks::Adapter, message, help, meant: None })
                }
                None => match (adapter, self.nothing(type_name, &version, &error)) {
                    (Some(adapter), FoundResource::Nothing(why)) if why.lacks == Lacks::Type => {
                        let message = format!("{}: the adapter '{adapter}' does not list it", why.message);
                        let help = Some(format!("`stead resource list --adapter {adapter}` shows what it lists"));
                        FoundResource::Nothing(Unresolved {
                            message,
                            help: why.meant.is_none().then_some(help).flatten(),
                            ..why
                        })
                    }
                    (_, found) => found,
                },
            },
        }
    }
}
