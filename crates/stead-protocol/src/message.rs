//! The messages. A member that is not known is left alone, so that both sides may be a version apart.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest text of a heartbeat, in bytes.
pub const LONGEST_HEARTBEAT: usize = 2048;

/// A machine joins. The request is signed by the key that it names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnrolRequest {
    /// Its public key, as in a file `.pub`.
    pub key: String,
    /// The token that it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The labels that it asks for.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// The answer to a machine that joins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnrolAnswer {
    /// `admitted`, or `waiting` until an operator admits it.
    pub standing: String,
}

/// What a machine should be: signed releases, of which it judges each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DesiredAnswer {
    /// The channel.
    pub channel: String,
    /// The release that it should come to.
    pub number: u64,
    /// The releases behind the one that it stated, in their order, with their signatures.
    pub releases: Vec<String>,
    /// The bundle of the release that it should come to, if that is behind the one that it stated, and the bundle is a short text.
    /// Any other bundle is asked for by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// How many lists of signers there are.
    pub signers: u64,
    /// The number of the roster.
    pub roster: u64,
}

/// The answer to reports, which are on the disk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReportsAnswer {
    /// How many were not there before.
    pub new: u64,
    /// The numbers of those that are there with another content: two machines have one key.
    pub forked: Vec<u64>,
}

/// What a machine is to the fleet from here on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StandingRequest {
    /// `admitted`, `waiting` or `retired`.
    pub standing: String,
}

/// A machine stays as it is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HoldRequest {
    /// For how many seconds from now; 0 lets it go.
    pub seconds: u64,
    /// Why.
    pub why: String,
}

/// Machines were asked to check at once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckAnswer {
    /// The number of the request.
    pub number: u64,
    /// How many machines.
    pub machines: u64,
}

/// An account is offered to whoever has the link first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InviteRequest {
    /// The name of the account. A former token of it counts until the link is used.
    pub name: String,
    /// What it may do: `viewer`, `operator` or `approver`.
    pub role: String,
    /// For how many seconds.
    pub seconds: u64,
}

/// The secret of the link, which is said once.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct InviteAnswer {
    /// Its text.
    pub invitation: String,
}

/// Whoever has the link takes the account.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct AcceptRequest {
    /// The secret of the link.
    pub invitation: String,
    /// The digest of the token that proves from now on who it is. The token itself is sent to nobody.
    pub token: String,
}

/// The account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AcceptAnswer {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub role: String,
}

/// A token is made.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TokenRequest {
    /// How many machines may join with it.
    pub uses: u64,
    /// For how many seconds.
    pub seconds: u64,
    /// The labels that they ask for.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// The token, which is said once.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct TokenAnswer {
    /// Its text.
    pub token: String,
}

/// What was published.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PublishAnswer {
    /// Its name.
    pub digest: String,
    /// False if it was there.
    pub is_new: bool,
}

/// What a signed roster would change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanAnswer {
    /// False if the roster is the one that counts.
    pub is_new: bool,
    /// The changes, those of channels first.
    pub changes: Vec<ChangeShown>,
}

/// A change of what operators state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeShown {
    /// What is changed: `channel`, `machine`, `labels` or `hold`.
    pub kind: String,
    /// The name of the channel or of the machine.
    pub name: String,
    /// What was stated before, if anything.
    pub from: Option<String>,
    /// What is stated from now on, if anything.
    pub to: Option<String>,
}

/// An act of an operator, as it is in the chain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ActShown {
    /// Its number, from 1 on.
    pub number: u64,
    /// The digest of the one before.
    pub parent: String,
    /// Its digest.
    pub digest: String,
    /// What was done, by whom and when, as JSON.
    pub act: String,
}
