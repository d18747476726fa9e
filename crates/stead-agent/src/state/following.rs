//! The fleet whose releases are followed, in the record.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stead_release::{Digest, FleetMemory, Name};

use super::AgentState;
use crate::follow::SourceAddress;

/// A source of releases that is followed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Following {
    /// What is followed.
    #[serde(flatten)]
    pub followed: Followed,
    /// What is known of the fleet. It only grows.
    #[serde(default)]
    pub memory: FleetMemory,
    /// The release that was staged last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<StagedRelease>,
}

/// What is followed, as whom.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Followed {
    /// Where the releases are.
    pub source: SourceAddress,
    /// The digest of the root statement of the fleet.
    pub root: Digest,
    /// The name of this machine in the roster.
    pub machine: String,
    /// How it joins, where the source is a controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joining: Option<Joining>,
}

/// How a machine joins a controller.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Joining {
    /// The labels that it asks for.
    pub labels: BTreeMap<String, String>,
    /// The certificates that are trusted besides those of the system, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<String>,
}

/// A release that was staged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StagedRelease {
    /// The generation that it became.
    pub generation: u64,
    /// Its channel.
    pub channel: Name,
    /// Its number.
    pub number: u64,
    /// Its digest.
    pub digest: Digest,
    /// When it is no longer staged.
    pub expires: Timestamp,
}

impl Following {
    /// True if the newest release that is known here is over: nothing newer came in time.
    pub fn is_frozen(&self, now: Timestamp) -> bool {
        self.staged.as_ref().is_some_and(|staged| staged.expires <= now.max(self.memory.time))
    }
}

impl AgentState {
    /// Follows a source. What is known of its fleet is kept, wherever that fleet was followed before.
    pub fn follow(&mut self, followed: Followed) {
        match &mut self.following {
            Some(following) if following.followed.root == followed.root => following.followed = followed,
            _ => {
                self.following = Some(Following { followed, memory: FleetMemory::default(), staged: None });
                self.taken = None;
            }
        }
    }

    /// Follows nothing any more. What is staged stays.
    pub fn unfollow(&mut self) -> Option<Followed> {
        let former = self.following.take()?;
        self.taken = None;
        Some(former.followed)
    }

    /// Returns whether this is what is followed.
    pub fn follows(&self, followed: &Followed) -> bool {
        self.following.as_ref().is_some_and(|following| following.followed == *followed)
    }

    /// Takes in what a look at the source showed.
    pub fn remember(&mut self, memory: FleetMemory) {
        if let Some(following) = &mut self.following {
            following.memory = memory;
        }
    }

    /// Notes which release became a generation.
    pub fn staged_release(&mut self, release: StagedRelease) {
        if let Some(following) = &mut self.following {
            following.staged = Some(release);
        }
    }
}
