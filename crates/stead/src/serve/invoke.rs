//! Calls by the names that resources have in PowerShell, and the list of them.

use serde_json::{Map, Value as Json, json};
use stead_core::call::{Failure, Raised, code};
use stead_core::manifest::{Catalog, Implementation, Manifest, listing};
use stead_core::value::Object;
use stead_engine::{InvokeError, Invoked, Method, ResourceCall, ResourceSpecification, Session, VersionLimits};

use super::calls::{failure_number, prepared, result};
use super::places::{Look, Places};
use super::protocol::{InvokeParams, ListParams, MethodName, ModuleParams};
use super::secrets::{noted, stated_secrets};
use crate::dsc::listing::fits;
use crate::rpc::{Problem, Request, Work, object};

/// Calls a method of a resource as `stead invoke` does.
pub(super) fn invoke(places: &Places, work: Work<Request>) -> Result<Json, Problem> {
    let params: InvokeParams = work.call.params()?;
    let called = find(places, &params, &work)?;
    let method = match params.method {
        MethodName::Get => Method::Get,
        MethodName::Test => Method::Test,
        MethodName::Set => Method::Set,
    };
    let (properties, ignored) = (params.properties, params.ignore_run_as_credential);
    if params.what_if && method == Method::Set {
        let predicted = called.predict_watched(properties, ignored, Some(work.watch));
        return predicted.map(|record| result(&called, &record)).map_err(|error| problem(&error, &params.name));
    }
    let secrets = match method {
        Method::Set => stated_secrets(&called, &of_the_instance(&properties))?,
        Method::Get | Method::Test => None,
    };
    let invoke = || called.invoke_watched(method, properties, ignored, Some(work.watch));
    match noted(&called, secrets, || invoke().map_err(|error| problem(&error, &params.name)))? {
        Invoked::State(state) => Ok(object([("state", state), ("types", types(&called))])),
        Invoked::InDesiredState(is_so) => Ok(object([("inDesiredState", is_so.into())])),
        Invoked::RebootRequired(is_so) => Ok(object([("rebootRequired", is_so.into())])),
    }
}

/// The properties without the user that a resource is to run as, who is never part of what is invoked directly.
fn of_the_instance(properties: &Object) -> Object {
    let own = |name: &str| !name.eq_ignore_ascii_case("PsDscRunAsCredential");
    properties.iter().filter(|(name, _)| own(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The resource that is meant. One that was not found may have been installed a moment ago, and a module that is gone may be there in
/// another version.
fn find(places: &Places, params: &InvokeParams, work: &Work<Request>) -> Result<ResourceCall, Problem> {
    let wanted = specification(&params.name, params.module.as_ref());
    let found = |look| {
        let base = places.of(&params.manner.caller, look)?;
        let session = prepared(&base, &params.manner, work)?;
        Ok(ResourceCall::specified(session, &wanted))
    };
    let called = match found(Look::Lately)? {
        Err(InvokeError::NotFound { .. } | InvokeError::Specification { .. }) => found(Look::Now)?,
        Ok(called) if is_gone(&called.manifest) => found(Look::Now)?,
        called => called,
    };
    called.map_err(|error| problem(&error, &params.name))
}

/// Returns whether the file that a resource is implemented in is not there any more. What has no file has no path that is absolute.
fn is_gone(manifest: &Manifest) -> bool {
    let Implementation::Adapted { resource, .. } = &manifest.implementation else { return false };
    resource.path.as_deref().is_some_and(|path| path.is_absolute() && matches!(path.try_exists(), Ok(false)))
}

fn specification(name: &str, module: Option<&ModuleParams>) -> ResourceSpecification {
    let name = name.to_owned();
    let Some(ModuleParams { name: module, version, minimum, maximum, guid }) = module else {
        return ResourceSpecification { name, ..ResourceSpecification::default() };
    };
    let within = VersionLimits { minimum: minimum.clone(), maximum: maximum.clone(), guid: guid.clone() };
    ResourceSpecification { name, module: Some(module.clone()), version: version.clone(), within }
}

/// The types of PowerShell that properties have which JSON has no form for.
fn types(called: &ResourceCall) -> Json {
    let Some(declared) = called.session.declaration(&called.manifest) else { return json!({}) };
    declared.narrower_types().into_iter().map(|(name, ty)| (name.to_owned(), Json::from(ty))).collect()
}

fn problem(error: &InvokeError, name: &str) -> Problem {
    let failure = error.failure();
    let number = match error {
        InvokeError::NotFound { .. } => Problem::NOT_FOUND,
        InvokeError::Failed { .. } => failure.map_or(Problem::FAILED, failure_number),
        _ => Problem::PARAMS,
    };
    let problem = Problem::new(number, error.to_string()).with("type", name).with("id", error.id());
    let problem = problem.with("category", error.category());
    let problem = error.help().into_iter().fold(problem, |problem, help| problem.with("help", help));
    failure.into_iter().fold(problem, of_failure)
}

fn of_failure(problem: Problem, failure: &Failure) -> Problem {
    let problem = problem.with("code", code(&failure.kind).id).with("retryable", failure.can_heal());
    let problem = match &failure.property {
        Some(property) => problem.with("property", property.as_str()),
        None => problem,
    };
    let Some(Raised { exceptions, stack, place, .. }) = failure.raised.as_deref() else { return problem };
    let exceptions: Vec<Json> =
        exceptions.iter().map(|(name, message)| json!({ "type": name, "message": message })).collect();
    problem.with("exceptions", exceptions).with("stack", stack.as_str()).with("place", place.as_str())
}

/// The resources that there are now, all versions.
pub(super) fn list(places: &Places, work: &Work<Request>) -> Result<Json, Problem> {
    let params: ListParams = work.call.params()?;
    let session = prepared(&*places.of(&params.manner.caller, Look::Now)?, &params.manner, work)?;
    let discovery = session.discovery();
    let adapters = discovery.adapters();
    let wanted = |adapter: &str| params.adapter.as_deref().is_some_and(|filter| fits(filter, adapter));
    let adapted: Vec<_> = adapters.iter().filter(|it| wanted(it.type_name.as_str())).collect();
    let catalogs: Vec<_> = adapted.iter().map(|adapter| discovery.adapted_by(adapter)).collect();
    let own = params.adapter.is_none().then(|| &discovery.discovered().catalog);
    let all = own.into_iter().chain(&catalogs).flat_map(Catalog::iter).flat_map(|(_, versions)| versions);
    let listed = all.filter(|it| session.lists(it) && is_of(&session, params.module.as_ref(), it));
    let listed: Vec<Json> = listed.map(|it| described(&session, it)).collect();
    Ok(object([("resources", listed.into())]))
}

/// Returns whether a resource is of the module that is asked for.
fn is_of(session: &Session, module: Option<&ModuleParams>, manifest: &Manifest) -> bool {
    let Some(wanted) = module else { return true };
    let owner = manifest.type_name.as_str().split_once('/').map_or("", |(owner, _)| owner);
    fits(&wanted.name, owner) && specification("", module).admits(session, manifest)
}

/// A resource, as far as its manifest and its module tell.
fn described(session: &Session, manifest: &Manifest) -> Json {
    const WORDS: [&str; 9] =
        ["type", "kind", "version", "description", "path", "directory", "implementedAs", "author", "requireAdapter"];
    let mut all = listing(manifest);
    let mut shown: Map<String, Json> = WORDS
        .into_iter()
        .map(|word| (word.to_owned(), all[word].take()))
        .filter(|(_, value)| !value.is_null())
        .collect();
    if let Some(declared) = session.declaration(manifest) {
        shown.insert("declared".to_owned(), json!(declared.properties()));
        shown.extend(declared.company().map(|company| ("company".to_owned(), company.into())));
        shown.extend(declared.guid().map(|guid| ("guid".to_owned(), guid.into())));
    }
    Json::Object(shown)
}
