//! Requests of a machine and their answers, without a connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stead_release::{BadForm, MachineReport, Name, Signed};

use crate::{CHECK, EPOCH, HOLD, LIFE, SESSION};

/// The condition of a machine, as it says it with each request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Condition {
    /// The version of its program.
    pub version: String,
    /// `converged`, `drifted`, `failing` or `held`, as its status says.
    pub health: String,
    /// The release that it has.
    #[serde(rename = "applied", with = "applied", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<applied::Applied>")]
    pub release: Option<(Name, u64)>,
    /// The code of what it refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuses: Option<String>,
    /// The number of its last report.
    pub report: u64,
    /// The number of the last request to check that it did.
    #[serde(skip_serializing_if = "is_zero")]
    pub checked: u64,
}

/// A release as it is said: `{"channel": "web", "number": 3}`.
mod applied {
    use schemars::JsonSchema;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Name;

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Applied {
        #[schemars(with = "String")]
        channel: Name,
        number: u64,
    }

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(release: &Option<(Name, u64)>, to: S) -> Result<S::Ok, S::Error> {
        let applied = |(channel, number): &(Name, u64)| Applied { channel: channel.clone(), number: *number };
        release.as_ref().map(applied).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<(Name, u64)>, D::Error> {
        Ok(Option::<Applied>::deserialize(from)?.map(|applied| (applied.channel, applied.number)))
    }
}

/// The words of a machine with a request: its condition, its life, and the time by its clock in milliseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Heartbeat {
    /// Its condition.
    #[serde(flatten)]
    pub condition: Condition,
    /// Its life.
    #[serde(flatten)]
    pub life: Life,
    /// The time by its clock.
    pub clock: i64,
}

/// A life of a machine: its process from a start to its end, by a random number; 0 stands for none.
///
/// Law: a process that was answered since another one was heard is alive beside it or was restored behind it. Two that say so of each
/// other are two machines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Life {
    /// The number of the life.
    pub life: u64,
    /// The life that the last answer named, if it is another one.
    #[serde(skip_serializing_if = "is_zero")]
    pub beside: u64,
}

impl Life {
    /// Takes in which life an answer named. Returns true if that is another one, and was not known.
    pub(crate) fn named(&mut self, life: u64) -> bool {
        let beside = if life == self.life { 0 } else { life };
        std::mem::replace(&mut self.beside, beside) != beside && beside != 0
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A report as a machine sends it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SentReport {
    /// Its number.
    pub number: u64,
    /// The text of a [`MachineReport`] that the key of the machine signed: whoever has the roster can check it.
    pub signed: String,
}

impl SentReport {
    /// The report, of which the signature is not checked.
    pub fn parse(&self) -> Result<Signed<MachineReport>, BadForm> {
        Signed::parse(self.signed.as_bytes())
    }

    /// The report of a run or a job in what a machine sent: in what it signed or as the member `report`, or that alone.
    pub fn within(sent: &Value) -> Value {
        let signed = Self::deserialize(sent).ok().and_then(|sent| sent.parse().ok());
        let sent = signed.map_or_else(|| sent.clone(), |signed| signed.statement().report.clone());
        sent.get("report").filter(|report| report.is_object()).cloned().unwrap_or(sent)
    }
}

/// A request that is to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineCall {
    /// Its number; no other request of the machine has it.
    pub number: u64,
    /// True if the answer is waited for while others are sent: it takes a connection of its own.
    pub waits: bool,
    /// The method of HTTP.
    pub method: &'static str,
    /// The path, with what is behind `?`.
    pub path: String,
    /// The headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body; a GET has none.
    pub body: Vec<u8>,
}

/// The answer to a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MachineAnswer {
    /// The number of the request.
    pub number: u64,
    /// The status of HTTP.
    pub status: u16,
    /// The history of the store that answers. What has none is not from a controller.
    pub epoch: Option<u64>,
    /// A key for the session.
    pub session: Option<String>,
    /// By which an answer of `desired` differs from others.
    pub tag: Option<String>,
    /// How long whoever answers is to be left alone, in seconds.
    pub retry_after: Option<u64>,
    /// Until when the machine stays as it is, in milliseconds, and why.
    pub hold: Option<(u64, String)>,
    /// The life of the machine that the controller heard last.
    pub life: Option<u64>,
    /// The number of a request to check that the machine has not said to have done.
    pub check: Option<u64>,
    /// The body.
    pub body: Vec<u8>,
}

impl MachineAnswer {
    /// Takes an answer out of one of HTTP. `header` gives a header by its name in small letters.
    pub fn of<'h>(number: u64, status: u16, header: impl Fn(&str) -> Option<&'h str>, body: Vec<u8>) -> Self {
        let hold = header(HOLD).and_then(|hold| {
            let (until, why) = hold.split_once(' ')?;
            Some((until.parse().ok()?, why.to_owned()))
        });
        Self {
            number,
            status,
            epoch: header(EPOCH).and_then(|epoch| epoch.parse().ok()),
            session: header(SESSION).map(str::to_owned),
            tag: header("etag").map(str::to_owned),
            retry_after: header("retry-after").and_then(|seconds| seconds.parse().ok()),
            hold,
            life: header(LIFE).and_then(|life| life.parse().ok()),
            check: header(CHECK).and_then(|check| check.parse().ok()),
            body,
        }
    }

    /// The words of the answer, in one line.
    pub fn words(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let is_shown = |letter: &char| !letter.is_control();
        text.lines().next().unwrap_or_default().chars().filter(is_shown).take(200).collect()
    }
}

/// The header [`HOLD`] of a machine that is held.
pub fn hold_header(until: u64, why: &str) -> String {
    let visible = |letter: char| if letter == ' ' || letter.is_ascii_graphic() { letter } else { '?' };
    format!("{until} {}", why.chars().map(visible).collect::<String>())
}
