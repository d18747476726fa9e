//! The resources and extensions that a piece of work finds, and what was wrong with others.

use std::sync::{Arc, PoisonError};

use stead_core::diag::Diagnostic;
use stead_core::graph::{FoundResource, Resources as _, Unresolved, codes};
use stead_core::id::TypeName;
use stead_core::manifest::{Extension, Manifest};
use stead_host::catalog::{CatalogProblem, ProblemReason};
use stead_host::provider::Provider;
use stead_powershell::adapter::module_search;

use crate::known::{Known, NotFound};
use crate::messages::problem_text;
use crate::session::Session;

impl Session {
    /// Tells what was found wrong while resources were looked for, if that was done; everything once.
    pub fn trace_problems(&self) {
        for problem in self.shared.discovery.problems() {
            let text = problem_text(&problem);
            if let ProblemReason::Invalid { .. } = problem.reason
                && problem.is_error()
            {
                let path = problem.path.display();
                tracing::info!("Failed to load manifest: Invalid manifest for resource '{path}': {text}");
            }
            if problem.is_notable() {
                self.warn_once(&text);
            } else if self.is_new(&text) {
                tracing::info!("{text}");
            }
        }
        if self.shared.discovery.has_searched() {
            let deprecated =
                self.shared.discovery.extensions().values().filter_map(|each| Some((each, each.deprecation.as_ref()?)));
            for (extension, advice) in deprecated {
                self.warn_once(&format!("Extension '{}' is deprecated: {advice}", extension.type_name));
            }
        }
    }

    /// The extensions, with the search for manifests within PowerShell modules where there may be modules.
    pub fn listed_extensions(&self) -> Vec<Extension> {
        let known = self.shared.discovery.extensions();
        let is_new = |extension: &Extension| !known.values().any(|each| each.type_name == extension.type_name);
        let search = self.shared.modules.host.powershell().and_then(|_| module_search()).filter(is_new);
        let mut listed: Vec<Extension> = known.values().map(|each| Extension::clone(each)).chain(search).collect();
        listed.sort_by(|one, other| one.type_name.cmp(&other.type_name));
        listed
    }

    /// Warns of what holds for every session beside this one, too.
    pub(crate) fn warn_once(&self, text: &str) {
        if self.is_new(text) {
            tracing::warn!("{text}");
        }
    }

    fn is_new(&self, text: &str) -> bool {
        self.shared.traced.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned())
    }

    /// Returns the problems that may be why types are unknown, for the findings that say so.
    pub fn explanations(&self, findings: &[Diagnostic]) -> Vec<String> {
        let missing: Vec<TypeName> = findings.iter().filter_map(|finding| self.missing_type(finding)).collect();
        let problems = self.shared.discovery.problems();
        let explain = |problem: &&CatalogProblem| missing.iter().any(|name| problem.may_explain(name));
        problems.iter().filter(explain).map(problem_text).collect()
    }

    fn missing_type(&self, finding: &Diagnostic) -> Option<TypeName> {
        let span = finding.span.filter(|_| *finding.code == codes::UNKNOWN_TYPE)?;
        let text = self.sources.get(span.source)?.text.get(span.start as usize..span.end as usize)?;
        TypeName::parse(text.trim_matches(['"', '\''])).ok()
    }

    /// The resource of that type, looked for on the machine if it is not built in.
    pub fn find(&self, type_name: &TypeName, version: Option<&str>) -> Result<Arc<Manifest>, NotFound> {
        let usual = self.context(type_name.as_str());
        let known =
            Known { discovery: &self.shared.discovery, expanding: None, marks: (&self.shared.providers, &usual) };
        match known.find(type_name, version, None) {
            FoundResource::Resource(manifest) => Ok(manifest),
            FoundResource::Nothing(Unresolved { message, help, .. }) => Err(NotFound { message, help }),
        }
    }

    /// Returns the provider of a resource; each is made once.
    pub fn provider(&self, manifest: &Arc<Manifest>) -> Arc<dyn Provider> {
        self.shared.providers.of(manifest)
    }
}
