//! Questions to an agent, each with the form of its answer.

mod comparison;
mod replies;

pub use comparison::*;
pub use replies::*;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

use stead_core::value::Sensitive;

use crate::state::{Followed, Joining, Stage};
use crate::store::Delivered;

/// A question to an agent. Its type tells the form of the answer, on both sides.
pub trait Ask: Into<Request> {
    /// The answer.
    type Answer: Serialize + DeserializeOwned;
}

/// Declares the questions: the word for each on the wire, and its answer.
macro_rules! questions {
    ($($name:ident as $word:literal -> $answer:ty),* $(,)?) => {
        /// A question as it is sent.
        #[derive(Clone, Serialize, Deserialize)]
        #[serde(tag = "request")]
        pub enum Request {
            $(#[doc = concat!("See [`", stringify!($name), "`].")]
            #[serde(rename = $word)]
            $name($name),)*
        }

        $(impl Ask for $name {
            type Answer = $answer;
        }

        impl From<$name> for Request {
            fn from(question: $name) -> Self {
                Self::$name(question)
            }
        })*
    };
}

questions! {
    Submit as "submit" -> Staged,
    UseExisting as "useExisting" -> Affected,
    Check as "check" -> Inspected,
    Get as "get" -> Inspected,
    ReadStatus as "status" -> AgentStatus,
    Wait as "wait" -> Waited,
    Stop as "stop" -> Stopping,
    ReadHistory as "history" -> History,
    Restore as "restore" -> Staged,
    Compare as "texts" -> Comparison,
    Remove as "remove" -> Affected,
    Acknowledge as "acknowledge" -> Acknowledged,
    ReadSettings as "settings" -> SettingsNow,
    ChangeSettings as "change" -> SettingsNow,
    LoadSettings as "load" -> SettingsNow,
    ListReports as "reports" -> Listing,
    ReadReport as "report" -> Document<JobReport>,
    SignReports as "signReports" -> SignedReports,
    ReadLog as "log" -> LogLines,
    Follow as "follow" -> Followed,
    Unfollow as "unfollow" -> Unfollowed,
}

/// Stage a document as pending, after it was validated.
#[derive(Clone, Serialize, Deserialize)]
pub struct Submit {
    /// The document.
    pub delivered: Delivered,
    /// True if it takes the place of a pending one whatever the settings say, and ends the job under way.
    pub force: bool,
    /// True if it is only staged, and held until an operator asks for it.
    pub publish: bool,
    /// True if no source of releases is followed any more.
    #[serde(default)]
    pub unfollow: bool,
}

/// Work on what is staged at once: the pending document, else the current one.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct UseExisting {}

/// Test the current document, and the pending one if there is one. Nothing is changed or recorded.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Check {}

/// Read the state of every instance of the current document, else of the pending one.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Get {}

/// Where things stand.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct ReadStatus {}

/// Answers when something has happened, or after a while. Whoever wants to wait for longer asks again.
#[derive(Clone, Serialize, Deserialize)]
pub struct Wait {
    /// The goal that is waited for.
    pub goal: Goal,
    /// At most so long; the agent may answer earlier.
    pub milliseconds: u64,
    /// How many entries of the feed the caller has seen; later entries are an answer as well.
    #[serde(default)]
    pub seen: Option<u64>,
    /// True to keep waiting after a failed attempt, and for maintenance windows.
    #[serde(default)]
    pub patient: bool,
}

/// End the job under way. With `force`, programs of resources are ended at once.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Stop {
    /// True if a job under way is ended, too.
    pub force: bool,
}

/// Every generation that is kept.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct ReadHistory {}

/// Stage a former document once more: the previous one, or that of a generation.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Restore {
    /// The generation.
    pub generation: Option<u64>,
    /// As for a document that is submitted.
    pub force: bool,
    /// As for a document that is submitted.
    #[serde(default)]
    pub unfollow: bool,
}

/// Compare two generations; by default the current and the pending one.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Compare {
    /// The first.
    pub from: Option<u64>,
    /// The second.
    pub to: Option<u64>,
}

/// Take the document of a stage away.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Remove {
    /// The stage.
    pub stage: Stage,
    /// True if a job over it is ended first.
    pub force: bool,
}

/// Forget the damage that was found: an operator has taken note of it.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Acknowledge {}

/// The settings.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct ReadSettings {}

/// Change settings: each `NAME=VALUE`. All of them or none.
#[derive(Clone, Serialize, Deserialize)]
pub struct ChangeSettings {
    /// The changes.
    pub changes: Vec<(String, String)>,
}

/// Make the settings those of a file. What it does not name has its default.
#[derive(Clone, Serialize, Deserialize)]
pub struct LoadSettings {
    /// The name that messages call the file by.
    pub name: String,
    /// Its text, YAML or JSON.
    pub text: String,
}

/// The reports of jobs: the last ones, newest first; or behind a cursor the next ones, oldest first.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct ListReports {
    /// At most so many.
    pub most: usize,
    /// The `next` of an earlier answer, or 0 for all that are kept.
    #[serde(default)]
    pub after: Option<u64>,
}

/// The reports from a number on, the oldest first, signed by this machine.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct SignReports {
    /// The `next` of an earlier answer, or 0 for all that are kept.
    pub after: u64,
    /// At most so many.
    pub most: usize,
}

/// The report of one job.
#[derive(Clone, Serialize, Deserialize)]
pub struct ReadReport {
    /// Its id, or a unique part of it.
    pub job: String,
}

/// The last lines of the log.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct ReadLog {
    /// At most so many.
    pub most: usize,
}

/// Follow a source of releases.
#[derive(Clone, Serialize, Deserialize)]
pub struct Follow {
    /// Where it is.
    pub source: String,
    /// The digest of the root statement of its fleet.
    pub root: String,
    /// The name of this machine in the roster.
    pub machine: String,
    /// How it joins, where the source is a controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joining: Option<Join>,
}

/// The part of [`Follow`] that a controller takes.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Join {
    /// The part of it that is not secret.
    #[serde(flatten)]
    pub joining: Joining,
    /// The token, if the machine was given one.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "token")]
    pub token: Option<Sensitive<String>>,
}

/// A token on its way to the agent, whose socket answers its user alone.
mod token {
    use super::{Deserialize, Deserializer, Sensitive, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(token: &Option<Sensitive<String>>, to: S) -> Result<S::Ok, S::Error> {
        token.as_ref().map(Sensitive::expose).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Sensitive<String>>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(Sensitive::new))
    }
}

/// Follow no source of releases any more.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Unfollow {}

/// A goal that is waited for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "camelCase")]
pub enum Goal {
    /// That nothing more happens to the pending document for now.
    Rest,
    /// That this document has converged, or has failed, or waits for something that may take long.
    Generation {
        /// Its number.
        number: u64,
    },
    /// That a job ends after so many, as an earlier answer counted them.
    Job {
        /// How many.
        after: u64,
    },
}

/// An answer of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Response {
    /// It is done: the answer to the question.
    Done(Json),
    /// It was refused, and nothing has changed.
    Refused(Refused),
}

/// Why something was refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// Why, in one sentence.
    pub message: String,
    /// The mistakes in a document, as they are shown to users.
    pub findings: String,
}

impl Refused {
    /// The refusal of what is not about the content of a document.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), findings: String::new() }
    }
}

/// JSON that was made elsewhere, with the members of it that are read here. It is passed on with all that it has, in its order.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_agent::control::{Document, Stopping};
///
/// // A newer agent says more than this caller knows: it is passed on as it came.
/// let answer = json!({ "job": "a", "generation": 3, "since": "yesterday" });
/// let document = Document::<Stopping>::of(answer.clone())?;
/// assert_eq!(document.read.generation, 3);
/// assert_eq!(serde_json::to_value(&document)?, answer);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Document<T> {
    /// The content, as far as it is read.
    pub read: T,
    whole: Json,
}

impl<T: DeserializeOwned> Document<T> {
    /// Reads what is known of it.
    ///
    /// # Errors
    /// When a member is missing or has another form.
    pub fn of(whole: Json) -> Result<Self, serde_json::Error> {
        Ok(Self { read: T::deserialize(&whole)?, whole })
    }
}

impl<T> Serialize for Document<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.whole.serialize(serializer)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Document<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of(Json::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
