//! One method of one resource, found by its short name, as `Invoke-DscResource` does; see RFC0047 of PowerShell.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value as Json;
use stead_core::call::{Execution, Failure, FailureKind, Operation, Outcome, Restart};
use stead_core::diag::{did_you_mean, nearest};
use stead_core::event::Mode;
use stead_core::id::TypeName;
use stead_core::manifest::{Implementation, Manifest, ResourceKind, Version};
use stead_core::report::Record;
use stead_core::value::{Object, Value};

use crate::execution::{RunOptions, RunWatch};
use crate::resource::{CallRefusal, ResourceCall, carried_out};
use crate::session::Session;

/// A method that every resource has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Reads the actual state.
    Get,
    /// Compares it with the desired one.
    Test,
    /// Reaches the desired state. Nothing is tested before.
    Set,
}

/// Which resource is meant. Names are compared without regard to case.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ResourceSpecification {
    /// The type `Owner/Name`, or the part behind the slash.
    pub name: String,
    /// The part in front of the slash: for PowerShell the module.
    pub module: Option<String>,
    /// The version, exactly.
    pub version: Option<String>,
    /// The limits that the version is within, besides.
    pub within: VersionLimits,
}

impl ResourceSpecification {
    /// Returns whether a version of a resource is the one that is asked for, and within the limits.
    pub fn admits(&self, session: &Session, manifest: &Manifest) -> bool {
        self.within.hold(session, manifest) && self.version.as_deref().is_none_or(|text| is_version(manifest, text))
    }
}

/// Returns whether a version is that of a text, which may leave out numbers that are 0.
fn is_version(manifest: &Manifest, text: &str) -> bool {
    let parsed = Version::parse(text).ok().or_else(|| Version::parse_module(text));
    Some(&manifest.version) == parsed.as_ref()
        || parts(text).is_some_and(|of| parts(&manifest.version.to_string()) == Some(of))
}

/// The limits of a `ModuleSpecification`: as there, what a version does not state is 0.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct VersionLimits {
    /// The lowest version.
    pub minimum: Option<String>,
    /// The highest version; `*` stands for any number.
    pub maximum: Option<String>,
    /// The `GUID` in the manifest of the module.
    pub guid: Option<String>,
}

impl VersionLimits {
    fn are_none(&self) -> bool {
        *self == Self::default()
    }

    fn hold(&self, session: &Session, manifest: &Manifest) -> bool {
        let there = parts(&manifest.version.to_string());
        let holds = |limit: &Option<String>, compare: fn(&[u64; 4], &[u64; 4]) -> bool| {
            limit.as_deref().is_none_or(|limit| parts(limit).zip(there).is_some_and(|(limit, at)| compare(&at, &limit)))
        };
        let guid = || session.declaration(manifest).and_then(|declared| declared.guid().map(same_guid));
        holds(&self.minimum, |at, limit| at >= limit)
            && holds(&self.maximum, |at, limit| at <= limit)
            && self.guid.as_deref().is_none_or(|wanted| guid() == Some(same_guid(wanted)))
    }
}

fn same_guid(text: &str) -> String {
    text.trim().trim_matches(['{', '}', '(', ')']).to_lowercase()
}

/// The four numbers of a version of a module: what is not stated is 0, and what comes behind `*` is any number, too.
fn parts(text: &str) -> Option<[u64; 4]> {
    const ANY: u64 = u64::MAX;
    let text = text.split('-').next()?.replace('+', ".");
    let mut parts = [0; 4];
    let mut stated = text.split('.');
    let mut before = 0;
    for part in &mut parts {
        before = match stated.next() {
            _ if before == ANY => ANY,
            None => 0,
            Some("*") => ANY,
            Some(digits) => digits.trim().parse().ok()?,
        };
        *part = before;
    }
    stated.next().is_none().then_some(parts)
}

/// The answer of a method.
#[derive(Clone, PartialEq, Debug)]
pub enum Invoked {
    /// To get: the properties, secrets covered.
    State(Json),
    /// To test.
    InDesiredState(bool),
    /// To set: whether the machine must be restarted before the state has effect.
    RebootRequired(bool),
}

/// Why nothing was invoked, or how it failed.
#[derive(Debug, thiserror::Error)]
pub enum InvokeError {
    /// There is no such resource.
    #[error("there is no resource '{name}'")]
    NotFound {
        /// The name that was asked for.
        name: String,
        /// The advice about it.
        help: Option<String>,
    },
    /// There are several, or none of that version.
    #[error("{message}")]
    Specification {
        /// The mistake, in one sentence.
        message: String,
        /// The advice about it.
        help: String,
    },
    /// The resource is none that has methods: an adapter or a composite.
    #[error("'{0}' cannot be invoked: an adapter, a group or a composite resource has no methods of its own")]
    Implementation(TypeName),
    /// The properties name another user.
    #[error("'PsDscRunAsCredential' cannot be used with a resource that is invoked directly")]
    RunAsCredential,
    /// The resource refused its properties, or failed.
    #[error("{message}")]
    Failed {
        /// The failure of the resource, where it was called.
        failure: Option<Box<Failure>>,
        /// Why.
        message: String,
    },
}

impl InvokeError {
    /// The fully qualified id of the error that PowerShell gives; that of stead for what only stead finds.
    pub fn id(&self) -> &str {
        match self {
            Self::NotFound { .. } => "Microsoft.PowerShell.Commands.WriteErrorException,CheckResourceFound",
            Self::Specification { .. } => "InvalidResourceSpecification,Invoke-DscResource",
            Self::Implementation(_) => "UnsupportedResourceImplementation,Invoke-DscResource",
            Self::RunAsCredential => "PsDscRunAsCredentialNotSupport,Invoke-DscResource",
            Self::Failed { failure, .. } => {
                let own = failure.as_ref().and_then(|failure| failure.error_id.as_deref());
                own.unwrap_or("ResourceFailed,Invoke-DscResource")
            }
        }
    }

    /// The failure of the resource, where it was called.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed { failure, .. } => failure.as_deref(),
            _ => None,
        }
    }

    /// The `ErrorCategory` of PowerShell: that of the error in the resource, else the one that says most of it.
    pub fn category(&self) -> &str {
        match self {
            Self::NotFound { .. } => "ObjectNotFound",
            Self::Specification { .. } | Self::RunAsCredential => "InvalidArgument",
            Self::Implementation(_) => "InvalidOperation",
            Self::Failed { failure: None, .. } => "NotSpecified",
            Self::Failed { failure: Some(failure), .. } => match (&failure.raised, &failure.kind) {
                (Some(raised), _) => &raised.category,
                (None, FailureKind::Invalid) => "InvalidArgument",
                (None, FailureKind::Unsupported) => "NotImplemented",
                (None, FailureKind::Deadline) => "OperationTimeout",
                (None, FailureKind::Cancelled) => "OperationStopped",
                (None, FailureKind::Start | FailureKind::Blocked) => "ResourceUnavailable",
                (None, FailureKind::Protocol | FailureKind::OutputLimit) => "InvalidResult",
                (None, _) => "NotSpecified",
            },
        }
    }

    /// Returns the advice about it.
    pub fn help(&self) -> Option<&str> {
        match self {
            Self::NotFound { help, .. } => help.as_deref(),
            Self::Specification { help, .. } => Some(help),
            Self::RunAsCredential => Some("'--ignore-run-as-credential' ignores it"),
            Self::Implementation(_) | Self::Failed { .. } => None,
        }
    }
}

impl InvokeError {
    fn of(refusal: CallRefusal, failure: Option<Failure>) -> Self {
        let message = match refusal {
            CallRefusal::NotFound(message) | CallRefusal::Failed(message) => message,
            CallRefusal::Input(findings) => {
                findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; ")
            }
        };
        Self::Failed { failure: failure.map(Box::new), message }
    }
}

impl From<CallRefusal> for InvokeError {
    fn from(refusal: CallRefusal) -> Self {
        Self::of(refusal, None)
    }
}

impl ResourceCall {
    /// The one resource that a specification means.
    pub fn specified(session: Session, wanted: &ResourceSpecification) -> Result<Self, InvokeError> {
        let manifest = chosen(&session, wanted)?;
        session.trace_problems();
        Self { session, manifest }.callable()
    }

    /// The resource of a type, or of the only one with that name behind its slash: its newest version, as a document takes it.
    /// Adapters are asked only for what was not found without them.
    pub fn named(session: Session, name: &str) -> Result<Self, InvokeError> {
        if name.contains('/') {
            let found = Self::find(session, name, None)?;
            return found.callable();
        }
        let wanted = ResourceSpecification { name: name.to_owned(), ..ResourceSpecification::default() };
        let is_meant = |manifest: &Manifest| {
            is_named(&manifest.type_name, &wanted) && !matches!(manifest.implementation, Implementation::Engine)
        };
        let newest = session.discovery().discovered().catalog.iter().filter_map(|(_, versions)| versions.first());
        let found: Vec<Arc<Manifest>> = newest.filter(|manifest| is_meant(manifest)).cloned().collect();
        match found.as_slice() {
            [only] => {
                session.trace_problems();
                Self { manifest: Arc::clone(only), session }.callable()
            }
            _ => Self::specified(session, &wanted),
        }
    }

    /// Refuses what has no methods of its own.
    fn callable(self) -> Result<Self, InvokeError> {
        match (self.manifest.kind, &self.manifest.implementation) {
            (ResourceKind::Adapter | ResourceKind::Importer, _) | (_, Implementation::Engine) => {
                Err(InvokeError::Implementation(self.manifest.type_name.clone()))
            }
            _ => Ok(self),
        }
    }

    /// Calls one method with these properties.
    ///
    /// `PsDscRunAsCredential` is refused, whatever its case, or left out where `ignore_run_as` says so: what is invoked
    /// directly runs as the user who invokes it.
    pub fn invoke(&self, method: Method, properties: Object, ignore_run_as: bool) -> Result<Invoked, InvokeError> {
        self.invoke_watched(method, properties, ignore_run_as, None)
    }

    /// The same for a caller that answers for it when it hangs.
    pub fn invoke_watched(
        &self,
        method: Method,
        properties: Object,
        ignore_run_as: bool,
        watch: Option<Arc<RunWatch>>,
    ) -> Result<Invoked, InvokeError> {
        let operation = match method {
            Method::Get => Operation::Get,
            Method::Test => Operation::Test,
            Method::Set => Operation::Set,
        };
        let record = self.answer(Mode::alone(operation), properties, ignore_run_as, watch)?;
        let response = record.response.as_deref();
        Ok(match (method, response.map(|response| &response.outcome)) {
            (Method::Test, Some(Outcome::Tested(tested))) => Invoked::InDesiredState(tested.in_desired_state),
            (Method::Get, Some(Outcome::Got(actual))) => Invoked::State(actual.to_redacted_json()),
            (Method::Set, Some(_)) => {
                let restarts = response.map_or(&[][..], |response| &response.restarts);
                Invoked::RebootRequired(restarts.iter().any(|restart| matches!(restart, Restart::System(_))))
            }
            _ => return Err(CallRefusal::Failed("the resource gave no answer".to_owned()).into()),
        })
    }

    /// Returns what Set would do, by the rules of [`ResourceCall::invoke`]. Nothing is changed.
    pub fn predict_watched(
        &self,
        properties: Object,
        ignore_run_as: bool,
        watch: Option<Arc<RunWatch>>,
    ) -> Result<Record, InvokeError> {
        self.answer(Mode::direct(Operation::Set, Execution::WhatIf), properties, ignore_run_as, watch)
    }

    fn answer(
        &self,
        mode: Mode,
        properties: Object,
        ignore_run_as: bool,
        watch: Option<Arc<RunWatch>>,
    ) -> Result<Record, InvokeError> {
        let is_run_as = |name: &str| name.eq_ignore_ascii_case("PsDscRunAsCredential");
        if !ignore_run_as && properties.keys().any(|name| is_run_as(name)) {
            return Err(InvokeError::RunAsCredential);
        }
        let properties = properties.into_iter().filter(|(name, _)| !is_run_as(name)).collect();
        let plan = RunOptions { watch, ..RunOptions::new(mode, NonZeroUsize::MIN) };
        let (record, sources) = self.attempt(Value::Object(properties), plan).map_err(CallRefusal::from)?;
        let failure = record.failure().cloned();
        carried_out(record, &sources).map_err(|refusal| InvokeError::of(refusal, failure))
    }
}

/// All versions of each type that fits.
type Candidates = BTreeMap<TypeName, Vec<Arc<Manifest>>>;

fn chosen(session: &Session, wanted: &ResourceSpecification) -> Result<Arc<Manifest>, InvokeError> {
    let all = everything(session);
    let fits = |type_name: &TypeName| is_named(type_name, wanted);
    let mut found: Candidates =
        all.iter().filter(|(name, _)| fits(name)).map(|(k, v)| (k.clone(), v.clone())).collect();
    if found.len() > 1 {
        // What the engine carries out itself cannot be called, and so is not meant.
        found.retain(|_, versions| versions.iter().any(|it| !matches!(it.implementation, Implementation::Engine)));
    }
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (None, _) => Err(not_found(session, wanted, all.keys())),
        (Some((type_name, versions)), None) => version(session, &type_name, &versions, wanted),
        (Some((first, _)), Some((second, _))) => {
            let names = [first, second].into_iter().chain(found.map(|(name, _)| name));
            let names = names.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
            let message = format!("'{}' names more than one resource: {names}", wanted.name);
            Err(InvokeError::Specification { message, help: "write the whole type, or name its module".to_owned() })
        }
    }
}

fn everything(session: &Session) -> Candidates {
    let mut all = Candidates::new();
    let discovery = session.discovery();
    let adapted: Vec<_> = discovery.adapters().iter().map(|adapter| discovery.adapted_by(adapter)).collect();
    for catalog in std::iter::once(&discovery.discovered().catalog).chain(&adapted) {
        for (type_name, versions) in catalog.iter() {
            let known = all.entry(type_name.clone()).or_default();
            let is_new = |manifest: &&Arc<Manifest>| known.iter().all(|other| other.version != manifest.version);
            let new: Vec<_> = versions.iter().filter(is_new).cloned().collect();
            known.extend(new);
        }
    }
    all
}

fn is_named(type_name: &TypeName, wanted: &ResourceSpecification) -> bool {
    let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
    let owner = type_name.as_str().split_once('/').map_or("", |(owner, _)| owner);
    let (module, name) = match wanted.name.split_once('/') {
        Some((owner, name)) => (Some(owner), name),
        None => (None, wanted.name.as_str()),
    };
    same(type_name.short(), name)
        && module.into_iter().chain(wanted.module.as_deref()).all(|module| same(owner, module))
}

fn not_found<'a>(
    session: &Session,
    wanted: &ResourceSpecification,
    all: impl Iterator<Item = &'a TypeName> + Clone,
) -> InvokeError {
    let name = match &wanted.module {
        Some(module) if !wanted.name.contains('/') => format!("{module}/{}", wanted.name),
        _ => wanted.name.clone(),
    };
    let near = if name.contains('/') {
        nearest(&name, all.map(TypeName::as_str))
    } else {
        nearest(&name, all.map(TypeName::short))
    };
    let missing = TypeName::parse(&name).ok().and_then(|name| session.shared.modules.missing_resource(&name));
    let help = missing
        .map(|(why, _)| why)
        .or_else(|| near.map(did_you_mean))
        .or_else(|| Some("'stead resource list' lists resources".to_owned()));
    InvokeError::NotFound { name, help }
}

/// The version that is asked for, or the only one.
fn version(
    session: &Session,
    type_name: &TypeName,
    versions: &[Arc<Manifest>],
    wanted: &ResourceSpecification,
) -> Result<Arc<Manifest>, InvokeError> {
    let list = |of: &[Arc<Manifest>]| of.iter().map(|it| it.version.to_string()).collect::<Vec<_>>().join(", ");
    let there = || list(versions);
    let wrong = |message, help| Err(InvokeError::Specification { message, help });
    let fitting: Vec<_> = versions.iter().filter(|it| wanted.within.hold(session, it)).cloned().collect();
    if fitting.is_empty() {
        return wrong(
            format!("no version of '{type_name}' fits the module specification"),
            format!("available: {}", there()),
        );
    }
    let Some(text) = &wanted.version else {
        return match fitting.as_slice() {
            [only] => Ok(Arc::clone(only)),
            several => {
                let fit = if wanted.within.are_none() { "" } else { " that fit" };
                let message = format!("there are {} versions of '{type_name}'{fit}: {}", several.len(), list(several));
                wrong(message, "name one of them: '--module NAME@VERSION'".to_owned())
            }
        };
    };
    match fitting.iter().find(|it| is_version(it, text)) {
        Some(manifest) => Ok(Arc::clone(manifest)),
        None => wrong(format!("there is no version {text} of '{type_name}'"), format!("available: {}", there())),
    }
}
