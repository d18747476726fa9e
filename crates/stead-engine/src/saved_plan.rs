//! A plan in a file: a document with everything that decides what it does, and what a run of it was predicted to do.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use stead_core::digest::sha256;
use stead_core::identity::DocumentIdentity;
use stead_core::run::Run;
use stead_core::text::Sources;

use crate::json;
use crate::parts::Parts;
use crate::session::{Prepared, Session};

/// A plan that can be applied later, if it still holds then.
///
/// It holds no secret that the document does not state in the clear: secret parameters are given anew when it is applied.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedPlan {
    /// The form of the file.
    stead_plan: u32,
    /// The version of the engine that made it.
    engine: String,
    /// What the document is called in messages.
    pub name: String,
    /// What it is called between runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<DocumentIdentity>,
    /// The document.
    pub document: String,
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
    /// Whether applying it changes anything.
    pub changes: bool,
    /// What is to be done, as it was shown.
    pub text: String,
    /// The same for programs, in the order of the document.
    pub instances: Vec<Json>,
}

/// The form of the file that this program writes and reads.
const FORM: u32 = 1;

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
    /// It is damaged.
    #[error("the plan cannot be read: {0}")]
    Damaged(#[from] serde_json::Error),
}

/// An instance for which something else would be done than was planned.
#[derive(Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Its name and type.
    pub instance: String,
    /// What was planned; `None` where the plan does not have it.
    pub planned: Option<String>,
    /// What would be done; `None` where the document does not have it any more.
    pub now: Option<String>,
}

impl SavedPlan {
    /// How a file with a plan begins; no document does.
    pub const BEGIN: &str = "{\"steadPlan\":";

    /// The plan that a what-if run came to, and the text that users were shown of it.
    pub fn new(session: &Session, prepared: &Prepared, run: &Run, parts: Parts, shown: (String, bool)) -> Self {
        let (text, changes) = shown;
        let (parameters, secrets) = parameters(prepared);
        Self {
            stead_plan: FORM,
            engine: VERSION.to_owned(),
            name: prepared.origin.to_string(),
            identity: prepared.memory.as_ref().map(|memory| memory.identity().clone()),
            document: main_text(prepared, &prepared.sources),
            root: session.root().to_path_buf(),
            system_root: session.system_root().map(Path::to_path_buf),
            parameters: Json::Object(parameters),
            secrets,
            only: parts.only,
            skip: parts.skip,
            documents: documents(prepared),
            changes,
            text,
            instances: predictions(run),
        }
    }

    /// Reads what [`Self::to_text`] made.
    ///
    /// # Errors
    /// When it is damaged, or another version made it.
    pub fn read(text: &str) -> Result<Self, PlanError> {
        let any: Map<String, Json> = serde_json::from_str(text)?;
        if let Some(form) = any.get("steadPlan").and_then(Json::as_u64).filter(|form| *form != u64::from(FORM)) {
            return Err(PlanError::Form(u32::try_from(form).unwrap_or(u32::MAX)));
        }
        let plan: Self = serde_json::from_value(Json::Object(any))?;
        if plan.engine != VERSION {
            return Err(PlanError::Engine(plan.engine));
        }
        Ok(plan)
    }

    /// What is written into a file.
    pub fn to_text(&self) -> String {
        // Strings, numbers and JSON: that cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The part of the document that it is about.
    pub fn parts(&self) -> Parts {
        Parts { only: self.only.clone(), skip: self.skip.clone() }
    }

    /// Whether a document was made of the same texts.
    pub fn is_of(&self, prepared: &Prepared) -> bool {
        self.documents == documents(prepared)
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

fn deviation(planned: Option<&Json>, now: Option<&Json>) -> Deviation {
    let same = planned.zip(now).is_none_or(|(planned, now)| label(planned) == label(now));
    let (mut before, mut after) = (planned.map(in_words), now.filter(|_| same).map(in_words));
    if before == after {
        let desired = |instance: &Json| shortened(&format!("desired state: {}", instance["desired"]));
        (before, after) = (planned.map(desired), now.map(desired));
    }
    Deviation { instance: planned.or(now).map(label).unwrap_or_default(), planned: before, now: after }
}

fn label(instance: &Json) -> String {
    let text = |name: &str| instance[name].as_str().unwrap_or_default();
    format!("{} '{}'", text("type"), text("name"))
}

/// What is done with an instance: an action and the properties that change, or how it ends.
fn in_words(instance: &Json) -> String {
    let Some(action) = instance["action"].as_str() else {
        let status = instance["status"].as_str().unwrap_or_default();
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

/// What a line has room for.
fn shortened(text: &str) -> String {
    const MOST: usize = 100;
    if text.chars().count() <= MOST { text.to_owned() } else { text.chars().take(MOST).chain(['…']).collect() }
}

/// What a run does or did, as far as it is shown: without times, and without what programs printed.
fn predictions(run: &Run) -> Vec<Json> {
    let selected = run.graph().iter().map(|(id, _)| id).filter(|id| run.report().is_selected(*id));
    let prediction = |id| {
        let mut instance = json::instance(run, id);
        if let Some(members) = instance.as_object_mut() {
            members.retain(|name, _| !["duration", "output", "reRuns"].contains(&name.as_str()));
            let record = run.report().record(id);
            // What a command does is not among its changes, and a path is not compared.
            let desired = record.desired.as_ref().map(|desired| ("desired", desired.to_redacted_json()));
            let words = record.changed().map(|changed| &changed.what_if).filter(|words| !words.is_empty());
            let words = words.map(|words| ("words", Json::from(words.clone())));
            members.extend(desired.into_iter().chain(words).map(|(name, value)| (name.to_owned(), value)));
        }
        instance
    };
    selected.map(prediction).collect()
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
    let is_needed = |name: &String| prepared.supplied.contains(name) || !has_default(name);
    let needed = secret.into_iter().map(|(name, _)| name.clone()).filter(is_needed).collect();
    (plain.into_iter().map(|(name, value)| (name.clone(), value.to_redacted_json())).collect(), needed)
}

fn main_text(prepared: &Prepared, sources: &Sources) -> String {
    let source = prepared.graph.scopes.first().and_then(|scope| sources.get(scope.document.source));
    source.map(|source| source.text.to_string()).unwrap_or_default()
}
