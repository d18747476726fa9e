//! Which provider carries out a resource, and what it says of instances before anything is called.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use stead_core::call::{Execution, Exported, Failure, FailureKind};
use stead_core::claims::{Claim, Claims, Extent, Ties};
use stead_core::manifest::{CommandResource, Implementation, Manifest, SchemaSource, SecretPlaces};
use stead_core::statements::Statement;
use stead_host::command::{CommandProvider, CommandSettings, Residents};
use stead_host::provider::{Context, LineTest, Plain, Provider, SetReply, State, TestReply};
use stead_powershell::transitional::{self, Scripts};
use stead_resources::builtin_of;

use crate::host::Host;

/// The providers of the resources; each is made once.
pub(crate) struct Providers {
    host: Host,
    settings: Arc<CommandSettings>,
    /// The programs that stay for as long as this is there.
    residents: Residents,
    /// Few, so that a search is faster than hashing a name for each call. Each holds its manifest: the same allocation is the
    /// same resource.
    made: RwLock<Vec<Made>>,
    /// Manifests, and the same with the marks of a schema that is elsewhere.
    marked: Mutex<Vec<(Arc<Manifest>, Arc<Manifest>)>>,
}

/// Returns whether the schema of a resource can be obtained only from a program that carries the resource out.
fn has_schema_elsewhere(manifest: &Manifest) -> bool {
    let printed = |resource: &CommandResource| matches!(resource.schema, Some(SchemaSource::Command { .. }));
    manifest.secret_places.is_none()
        && match &manifest.implementation {
            Implementation::Command(resource) => printed(resource),
            Implementation::Adapted { adapter, resource } => {
                resource.schema.is_none() && matches!(adapter.implementation, Implementation::Command(_))
            }
            _ => false,
        }
}

/// A resource and what carries it out.
pub(crate) type Made = (Arc<Manifest>, Arc<dyn Provider>);

impl Providers {
    pub(crate) fn new(host: &Host, settings: Arc<CommandSettings>) -> Self {
        Self {
            host: host.clone(),
            settings,
            residents: host.residents(),
            made: RwLock::default(),
            marked: Mutex::default(),
        }
    }

    /// Has programs looked for again: a call changes something.
    pub(crate) fn forget_programs(&self) {
        self.settings.environment.forget_programs();
    }

    pub(crate) fn of(&self, manifest: &Arc<Manifest>) -> Arc<dyn Provider> {
        let find = |made: &[Made]| {
            made.iter().find(|(known, _)| Arc::ptr_eq(known, manifest)).map(|(_, provider)| Arc::clone(provider))
        };
        let known = find(&self.made.read().unwrap_or_else(PoisonError::into_inner));
        known.unwrap_or_else(|| {
            let mut all = self.made.write().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have been faster.
            find(&all).unwrap_or_else(|| {
                let provider = self.make(manifest);
                all.push((Arc::clone(manifest), Arc::clone(&provider)));
                provider
            })
        })
    }

    /// Those that were made so far.
    pub(crate) fn made(&self) -> Vec<Made> {
        self.made.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The manifest with the marks of secrets of a schema that is not in it, but printed by a program or that of the adapter. Where
    /// that schema cannot be obtained, every property is secret.
    pub(crate) fn marked(&self, manifest: &Arc<Manifest>, cx: &Context) -> Arc<Manifest> {
        if !has_schema_elsewhere(manifest) {
            return Arc::clone(manifest);
        }
        let known = |marked: &[(Arc<Manifest>, Arc<Manifest>)]| {
            let mut all =
                marked.iter().filter(|(plain, marked)| [plain, marked].iter().any(|one| Arc::ptr_eq(one, manifest)));
            all.next().map(|(_, marked)| Arc::clone(marked))
        };
        // One thread asks the program, the others wait for its answer.
        let mut all = self.marked.lock().unwrap_or_else(PoisonError::into_inner);
        known(&all).unwrap_or_else(|| {
            let provider = self.of(manifest);
            let places = match provider.schema(cx) {
                Ok(schema) => schema.and_then(|schema| SecretPlaces::of_schema(schema.json())),
                Err(_) => Some(SecretPlaces::everywhere()),
            };
            let marked = match places {
                Some(places) => {
                    Arc::new(Manifest { secret_places: Some(Arc::new(places)), ..Manifest::clone(manifest) })
                }
                None => Arc::clone(manifest),
            };
            if !Arc::ptr_eq(&marked, manifest) {
                self.made.write().unwrap_or_else(PoisonError::into_inner).push((Arc::clone(&marked), provider));
            }
            all.push((Arc::clone(manifest), Arc::clone(&marked)));
            marked
        })
    }

    fn make(&self, manifest: &Arc<Manifest>) -> Arc<dyn Provider> {
        if let Some(built_in) = builtin_of(manifest) {
            return Arc::clone(&built_in.provider);
        }
        if let Some(provider) = self.host.embedded(manifest) {
            return Arc::clone(provider);
        }
        if transitional::carries_out(manifest) {
            return Arc::new(self.host.powershell().map_or_else(|| Scripts::new(None), |it| it.scripts()));
        }
        if let Implementation::Adapted { resource, .. } = &manifest.implementation
            && manifest.is_powershell()
        {
            let found = self.host.powershell().map(|powershell| powershell.provider(&manifest.type_name, resource));
            return match found {
                Some(found) => found.unwrap_or_else(|why| Arc::new(Missing(why))),
                None => Arc::new(Incapable),
            };
        }
        let provider = CommandProvider::new(manifest, (*self.settings).clone());
        match provider.map(|provider| provider.with_residents(&self.residents)) {
            Some(provider) => Arc::new(provider),
            None => Arc::new(Incapable),
        }
    }

    /// Returns the claims of an instance of a resource with this desired state, with absolute paths.
    pub(crate) fn claims_of(&self, manifest: &Arc<Manifest>, desired: &Plain, cx: &Context) -> Option<Claims> {
        Some(resolved(self.of(manifest).claims_there(cx, desired)?, manifest, cx))
    }

    /// Returns all that an instance with this desired state manages, creates, uses and states.
    pub(crate) fn managed_by(&self, manifest: &Arc<Manifest>, desired: &Plain, cx: &Context) -> Managed {
        let provider = self.of(manifest);
        let resolve = |path: &Path| cx.meant(path).into_owned().into();
        Managed {
            claims: provider.manages(cx, desired).map(|claims| resolved(claims, manifest, cx)),
            ties: provider.ties(desired).resolved(resolve),
            states: provider.states(cx, desired),
            removed_lines: provider.removed_lines(desired),
        }
    }
}

/// All that is known of what an instance has to do with others.
pub(crate) struct Managed {
    /// See [`Provider::manages`].
    pub(crate) claims: Option<Claims>,
    /// See [`Provider::ties`].
    pub(crate) ties: Ties,
    /// See [`Provider::states`].
    pub(crate) states: Vec<Statement>,
    /// See [`Provider::removed_lines`].
    pub(crate) removed_lines: Option<LineTest>,
}

/// Claims with absolute paths. What is read of a bundle does not change, and nobody else creates it. Programs know of no root
/// but that of the system that runs.
fn resolved(mut claims: Claims, manifest: &Manifest, cx: &Context) -> Claims {
    if matches!(manifest.implementation, Implementation::Command(_)) {
        return claims.resolved(|path| path.into());
    }
    claims.0.retain(|Claim::Path { path, extent }| *extent != Extent::Read || !cx.is_bundled(path));
    // What lies beside the document is not a part of another system, and of the one that runs there is no other part.
    if cx.manages_running_system() {
        return claims.resolved(|path| cx.meant(path));
    }
    let is_beside = |Claim::Path { path, extent }: &mut Claim| *extent == Extent::Read && cx.beside(path).is_some();
    let beside = Claims(claims.0.extract_if(.., is_beside).collect());
    let mut claims = claims.resolved(|path| cx.meant(path));
    claims.0.extend(beside.resolved(|path| cx.root.join(path).into()).0);
    claims
}

/// Carries out nothing.
struct Incapable;

impl Provider for Incapable {}

/// Fails with the reason why nothing carries out a resource that is declared.
struct Missing(String);

impl Missing {
    fn failure(&self) -> Failure {
        Failure::new(FailureKind::Start, self.0.clone())
    }
}

impl Provider for Missing {
    fn get(&self, _cx: &Context, _input: &Plain) -> Result<State, Failure> {
        Err(self.failure())
    }

    fn test(&self, _cx: &Context, _input: &Plain) -> Result<TestReply, Failure> {
        Err(self.failure())
    }

    fn set(&self, _cx: &Context, _input: &Plain, _execution: Execution) -> Result<SetReply, Failure> {
        Err(self.failure())
    }

    fn delete(&self, _cx: &Context, _input: &Plain, _execution: Execution) -> Result<Vec<String>, Failure> {
        Err(self.failure())
    }

    fn export(&self, _cx: &Context, _input: &Plain) -> Result<Vec<Exported>, Failure> {
        Err(self.failure())
    }
}
