//! A plan in a file: a document with everything that decides what it does, and what a run of it was predicted to do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use stead_core::bundle::{Bundle, BundleError, Reach};
use stead_core::destruction::Effect;
use stead_core::digest::sha256;
use stead_core::event::Status;
use stead_core::id::NodeId;
use stead_core::identity::DocumentIdentity;
use stead_core::manifest::Implementation;
use stead_core::report::Totals;
use stead_core::run::Run;
use stead_core::text::Sources;
use stead_host::facts::machine_id;
use stead_host::store::{self, SealingPurpose, StoreError};
use stead_system::fs::SystemRoot;

use crate::difference::words;
use crate::json;
use crate::parts::Parts;
use crate::planned::Planned;
use crate::prepared::Prepared;
use crate::session::Session;

/// A plan that can be applied later, if it still holds then.
///
/// It holds no secret in the clear: secret parameters are given anew when it is applied, and what a document states for
/// a property that is secret by its resource is sealed with the key of the store, with all of the text.
///
/// Guarantees: what there is to show of it is in `instances`, and a plan is applied only where [`Self::deviations`] finds that
/// planning again comes to just these. So it cannot show one thing and do another, whoever wrote the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedPlan {
    /// The version of the engine that made it.
    engine: String,
    /// The machine that it was made on, if that has an identity.
    machine: Option<String>,
    /// The name of the document in messages.
    pub name: String,
    /// Its identity between runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<DocumentIdentity>,
    /// The document.
    pub document: String,
    /// The bundle that it came in, in base64: what its runs read besides what lies on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bundle: Option<String>,
    /// Where relative paths start.
    pub root: PathBuf,
    /// The root of the operating system, if it is not the one that runs.
    pub system_root: Option<PathBuf>,
    /// The values of its parameters, as an object, without those that are secret.
    pub parameters: Json,
    /// The secret parameters that must be given.
    pub secrets: Vec<String>,
    /// The instances that it is limited to.
    pub only: Vec<String>,
    /// The instances that it leaves out.
    pub skip: Vec<String>,
    /// The SHA-256 of the texts that it was made of: the document, and those that it includes.
    pub documents: Vec<String>,
    /// The planned outcome of each instance, in the order of the run: everything that is shown of the plan.
    pub instances: Vec<Json>,
    /// The digests of the files and directories that the instances read, by path; `None` where there was nothing to read.
    reads: BTreeMap<String, Option<String>>,
    /// The document, the parameters and the bundle, where they state secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<SealedTexts>,
    #[serde(skip)]
    states_secrets: bool,
}

/// The part of a plan that only the user who made it can read.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SealedTexts {
    name: String,
    base64: String,
}

impl SealedTexts {
    fn new(plan: &SavedPlan) -> Result<Self, PlanError> {
        let keys = store::keys()?.ok_or(PlanError::NoStore)?;
        let (name, sealed) = keys.seal(SealingPurpose::PLAN, &(&plan.document, &plan.parameters, &plan.bundle))?;
        Ok(Self { name, base64: STANDARD.encode(sealed) })
    }

    fn open(&self) -> Result<(String, Json, Option<String>), PlanError> {
        let keys = store::keys()?.ok_or(PlanError::NoStore)?;
        let sealed = STANDARD.decode(&self.base64).map_err(|_| PlanError::Damaged)?;
        keys.unseal(SealingPurpose::PLAN, &self.name, &sealed).ok_or(PlanError::Sealed)
    }
}

/// The form of the file that this program writes and reads.
const FORM: u32 = 3;

/// The text between the number of the form and the digest of the rest.
const DIGEST: &str = "\"sha256\":\"";

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why a text is not a plan that can be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// It is of another form.
    #[error("the plan has form {0}, and this version of stead reads form {FORM}")]
    Form(u32),
    /// It was made by another version, whose predictions may differ.
    #[error("the plan was made by stead {0}, and this is stead {VERSION}")]
    Engine(String),
    /// It is of another machine.
    #[error("the plan was made on another machine")]
    Machine,
    /// It is not as it was written.
    #[error("the plan was changed or damaged after it was made")]
    Damaged,
    /// The bundle in it is none.
    #[error("the bundle in the plan cannot be used: {0}")]
    Bundle(#[from] BundleError),
    /// It states secrets, and the key that they are sealed with is not there.
    #[error("the plan states secrets, and they are sealed with the key of another user or store")]
    Sealed,
    /// It states secrets, and there is no key to seal them with.
    #[error("the plan states secrets, and there is no store with a key: set STEAD_STATE to a folder")]
    NoStore,
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its digest is right, and it has other members than plans have.
    #[error("the plan cannot be read")]
    Members(#[from] serde_json::Error),
}

/// An instance for which something else would be done than was planned.
#[derive(Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Its name and type.
    pub instance: String,
    /// The planned action; `None` where the plan does not have it.
    pub planned: Option<String>,
    /// The present action; `None` where the document does not have it any more.
    pub now: Option<String>,
}

impl SavedPlan {
    /// How a file with a plan begins; no document does.
    pub const BEGIN: &str = stead_core::document::SAVED_PLAN;

    /// The plan that a what-if run came to.
    pub fn new(session: &Session, prepared: &Prepared, run: &Run, parts: Parts) -> Self {
        let (parameters, secrets) = parameters(prepared);
        Self {
            engine: VERSION.to_owned(),
            machine: own_id(),
            name: prepared.origin.to_string(),
            identity: prepared.memory.as_ref().map(|memory| memory.identity().clone()),
            document: main_text(prepared, &prepared.sources),
            bundle: session.opened_bundle().map(|bundle| STANDARD.encode(bundle.encode())),
            root: session.root().to_path_buf(),
            system_root: session.system_root().map(Path::to_path_buf),
            parameters: Json::Object(parameters),
            secrets,
            only: parts.only,
            skip: parts.skip,
            documents: documents(prepared),
            instances: predictions(run),
            reads: session.digests_of_reads(run),
            sealed: None,
            states_secrets: states_secrets(prepared),
        }
    }

    /// Reads what [`Self::to_text`] made.
    ///
    /// # Errors
    /// When another version made it, or anything in it is not as it was written.
    pub fn read(text: &str) -> Result<Self, PlanError> {
        let behind = text.strip_prefix(Self::BEGIN).ok_or(PlanError::Damaged)?;
        let (form, behind) = behind.split_once(',').ok_or(PlanError::Damaged)?;
        let form: u32 = form.parse().map_err(|_| PlanError::Damaged)?;
        if form != FORM {
            return Err(PlanError::Form(form));
        }
        let sealed = behind.strip_prefix(DIGEST).and_then(|behind| behind.split_once("\",\"plan\":"));
        let (digest, plan) = sealed.ok_or(PlanError::Damaged)?;
        let plan = plan.strip_suffix('}').filter(|plan| sha256(plan) == digest).ok_or(PlanError::Damaged)?;
        let mut plan: Self = serde_json::from_str(plan)?;
        if plan.engine != VERSION {
            return Err(PlanError::Engine(plan.engine));
        }
        plan.instances.iter().try_for_each(|instance| end_of(instance).map(|_| ()))?;
        if let Some(sealed) = plan.sealed.take() {
            (plan.document, plan.parameters, plan.bundle) = sealed.open()?;
            plan.states_secrets = true;
        }
        Ok(plan)
    }

    /// The bundle that the document came in, whose files it is applied with.
    ///
    /// # Errors
    /// When it is not one.
    pub fn bundle(&self) -> Result<Option<Arc<Bundle>>, PlanError> {
        let Some(bundle) = &self.bundle else { return Ok(None) };
        let bytes = STANDARD.decode(bundle).map_err(|_| BundleError::NotABundle)?;
        Ok(Some(Arc::new(Bundle::decode(&bytes, Reach::Folder, None)?)))
    }

    /// Returns whether the plan was made on a machine without an identity, so that it cannot be compared with this machine.
    pub fn is_of_unknown_machine(&self) -> bool {
        self.machine.is_none()
    }

    /// Checks that the plan was made on this machine.
    ///
    /// # Errors
    /// When it was not.
    pub fn check_machine(&self) -> Result<(), PlanError> {
        if self.machine == own_id() { Ok(()) } else { Err(PlanError::Machine) }
    }

    /// Returns the text of the plan for a file. Its digest is not a signature: it detects damage; the comparisons made when the
    /// plan is applied detect the rest.
    ///
    /// # Errors
    /// When it states secrets that cannot be sealed.
    pub fn to_text(&self) -> Result<String, PlanError> {
        let plan = if self.states_secrets {
            let sealed = Some(SealedTexts::new(self)?);
            serde_json::to_string(&Self {
                document: String::new(),
                parameters: Json::Null,
                bundle: None,
                sealed,
                ..self.clone()
            })?
        } else {
            serde_json::to_string(self)?
        };
        Ok(format!("{}{FORM},{DIGEST}{}\",\"plan\":{plan}}}", Self::BEGIN, sha256(&plan)))
    }

    /// How many instances end how.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for instance in self.instances.iter().filter(|instance| is_single(instance)) {
            // Those that were read have one.
            let Ok((end, effect)) = end_of(instance) else { continue };
            *match end {
                End::Changed => &mut totals.changed,
                End::Drifted => &mut totals.drifted,
                End::Unknown => &mut totals.unknown,
                End::Failed => &mut totals.failed,
                End::Pending => &mut totals.pending,
                End::Unchanged | End::Read => &mut totals.unchanged,
                End::Skipped | End::SkippedByCondition | End::NotRun => &mut totals.skipped,
            } += 1;
            match effect.filter(|_| end == End::Changed) {
                Some(Effect::Create) => totals.created += 1,
                Some(Effect::Remove) => totals.removed += 1,
                Some(Effect::Replace) => totals.replaced += 1,
                Some(Effect::Change) | None => {}
            }
        }
        totals
    }

    /// Returns whether applying the plan changes anything, or may: what is unknown counts as a change.
    pub fn has_changes(&self) -> bool {
        let totals = self.totals();
        totals.changed + totals.drifted + totals.unknown > 0
    }

    /// The part of the document that it is about.
    pub fn parts(&self) -> Parts {
        Parts { only: self.only.clone(), skip: self.skip.clone() }
    }

    /// Returns whether a document was made of the same texts.
    pub fn is_of(&self, prepared: &Prepared) -> bool {
        self.documents == documents(prepared)
    }

    /// The paths of what the instances of a run read and that is not as it was when the plan was made.
    pub fn changed_reads(&self, session: &Session, run: &Run) -> Vec<String> {
        let now = session.digests_of_reads(run);
        let paths: BTreeSet<&String> = self.reads.keys().chain(now.keys()).collect();
        paths.into_iter().filter(|path| self.reads.get(*path) != now.get(*path)).cloned().collect()
    }

    /// Returns the predictions that a run of this plan is held to, which another what-if run has shown again.
    pub fn binding(&self, again: &Run) -> Planned {
        Planned::by(again, self.reads.clone())
    }

    /// For which instances another run would do, or did, something else than is planned. What was unknown must be so still: a
    /// run that acts deviates in what became of it.
    pub fn deviations(&self, run: &Run) -> Vec<Deviation> {
        let now = predictions(run);
        let longest = self.instances.len().max(now.len());
        let pairs = (0..longest).map(|at| (self.instances.get(at), now.get(at)));
        pairs.filter(|(planned, now)| planned != now).map(|(planned, now)| deviation(planned, now)).collect()
    }
}

/// How an instance ends.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum End {
    Read,
    Unchanged,
    Drifted,
    Changed,
    Failed,
    Pending,
    Skipped,
    SkippedByCondition,
    Unknown,
    NotRun,
}

/// How an instance of a plan ends, and what is done to it.
/// The id of this machine, whatever root it works below.
fn own_id() -> Option<String> {
    machine_id(&SystemRoot::running())
}

fn end_of(instance: &Json) -> Result<(End, Option<Effect>), serde_json::Error> {
    Ok((End::deserialize(&instance["status"])?, Option::deserialize(&instance["action"])?))
}

fn deviation(planned: Option<&Json>, now: Option<&Json>) -> Deviation {
    let same = planned.zip(now).is_none_or(|(planned, now)| label(planned) == label(now));
    let (mut before, mut after) = (planned.map(in_words), now.filter(|_| same).map(in_words));
    for (label, member) in [("desired state", "desired"), ("effects", "effects"), ("in words", "words")] {
        if before != after {
            break;
        }
        let shown = |instance: &Json| shortened(&format!("{label}: {}", instance[member]));
        (before, after) = (planned.map(shown), now.map(shown));
    }
    if before == after {
        before = Some("other values, behind what is shown of them".to_owned());
    }
    Deviation { instance: planned.or(now).map(label).unwrap_or_default(), planned: before, now: after }
}

fn label(instance: &Json) -> String {
    let text = |name: &str| instance[name].as_str().unwrap_or_default();
    format!("{} '{}'", text("type"), text("name"))
}

/// Describes the treatment of an instance: an action and the properties that change, or how it ends.
fn in_words(instance: &Json) -> String {
    let status = instance["status"].as_str().unwrap_or_default();
    // What is unknown has an action as well, which nothing is said of.
    let Some(action) = instance["action"].as_str().filter(|_| ["changed", "drifted"].contains(&status)) else {
        return match instance["message"].as_str().map(shortened) {
            // The reason says so itself.
            Some(why) if status == "skipped" => why,
            Some(why) => format!("{status}: {why}"),
            None => status.to_owned(),
        };
    };
    let changes = instance["changes"].as_array().into_iter().flatten();
    let change = |change: &Json| {
        let path = change["path"].as_str().unwrap_or_default().trim_start_matches('/').to_owned();
        change.get("after").map_or(path.clone(), |after| shortened(&format!("{path}: {after}")))
    };
    let changes: Vec<String> = changes.map(change).filter(|change| !change.starts_with("_exist")).collect();
    if changes.is_empty() { action.to_owned() } else { format!("{action} ({})", changes.join(", ")) }
}

/// Returns as much of a text as a line has room for.
fn shortened(text: &str) -> String {
    const MOST: usize = 100;
    if text.chars().count() <= MOST { text.to_owned() } else { text.chars().take(MOST).chain(['…']).collect() }
}

/// Returns whether an entry is an instance and not a container: only instances have changes of their own.
pub fn is_single(instance: &Json) -> bool {
    !instance["changes"].is_null()
}

/// Returns the predictions or results of a run, as far as they are shown: without times, and without the output of
/// programs.
fn predictions(run: &Run) -> Vec<Json> {
    let order = run.graph().order.iter().copied();
    order.filter(|id| run.report().is_selected(*id)).map(|id| prediction(run, id)).collect()
}

fn prediction(run: &Run, id: NodeId) -> Json {
    let mut members = json::instance(run, id);
    members.retain(|name, _| !["duration", "output", "reRuns"].contains(&name.as_str()));
    let (path, record) = (&run.graph().node(id).path, run.report().record(id));
    let mut names: Vec<Json> = path.outward().map(|path| Json::from(&**path.name())).collect();
    names.reverse();
    let until = match record.status() {
        Some(Status::Unknown(because)) => Some(("until", because.label().into())),
        _ => None,
    };
    // What a command does is not among its changes, and a path is not compared.
    let desired = record.desired.as_ref().map(|desired| ("desired", desired.to_redacted_json()));
    let words = Some(words(run, id)).filter(|words| !words.is_empty()).map(|words| ("words", words.into()));
    let more = [Some(("names", Json::from(names))), until, desired, words];
    members.extend(more.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)));
    Json::Object(members)
}

/// The SHA-256 of each text that a scope of the document was declared in, in hexadecimal.
fn documents(prepared: &Prepared) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let own = prepared.graph.scopes.iter().map(|scope| scope.document.source).filter(|source| seen.insert(*source));
    let texts = own.filter_map(|source| prepared.sources.get(source));
    texts.map(|source| sha256(source.text.as_str())).collect()
}

/// The values of the parameters that are not secret, and the names of those that are and were supplied or have no default.
fn parameters(prepared: &Prepared) -> (Map<String, Json>, Vec<String>) {
    let Some(scope) = prepared.graph.scopes.first() else { return (Map::new(), Vec::new()) };
    let is_secret = |name: &str| {
        let declared = scope.document.parameters.iter().find(|parameter| parameter.name.value == name);
        declared.is_some_and(|parameter| parameter.data_type.value.is_secure())
    };
    let (secret, plain): (Vec<_>, Vec<_>) =
        scope.parameters.iter().partition(|(name, value)| is_secret(name) || value.has_sealed());
    let has_default = |name: &str| {
        let declared = scope.document.parameters.iter().find(|parameter| parameter.name.value == name);
        declared.is_some_and(|parameter| parameter.default.is_some())
    };
    let is_needed = |name: &String| prepared.supplied.values.contains_key(name) || !has_default(name);
    let needed = secret.into_iter().map(|(name, _)| name.clone()).filter(is_needed).collect();
    (plain.into_iter().map(|(name, value)| (name.clone(), value.to_redacted_json())).collect(), needed)
}

/// Returns whether a property is stated that the resource marks as secret, even as an expression: that may hold a part of the
/// secret, or name a variable. Any property of a resource that is not there yet may be secret.
fn states_secrets(prepared: &Prepared) -> bool {
    let graph = &prepared.graph;
    graph.iter().any(|(id, node)| {
        let properties = graph.declaration(id).properties.as_ref();
        let is_late = matches!(node.manifest.implementation, Implementation::Late(_));
        properties.is_some_and(|properties| is_late || node.manifest.states_secrets(&properties.literal()))
    })
}

fn main_text(prepared: &Prepared, sources: &Sources) -> String {
    let source = prepared.graph.scopes.first().and_then(|scope| sources.get(scope.document.source));
    source.map(|source| source.text.to_string()).unwrap_or_default()
}
