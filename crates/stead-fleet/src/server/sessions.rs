//! The sessions of machines, while the secret that they are derived from changes.

use std::sync::{PoisonError, RwLock};

use stead_protocol::Sessions;
use stead_release::{MachineRequest, PublicKey};

use crate::new_token;
use crate::store::{FleetStore, FleetStoreError, SessionEpoch};

/// The secrets that count: all are accepted, and new sessions are derived from the newest that each controller has read.
#[derive(Default)]
pub(super) struct SessionKeys(RwLock<Vec<(Sessions, u64)>>);

impl SessionKeys {
    /// Reads them.
    pub(super) fn read(&self, store: &mut FleetStore) -> Result<(), FleetStoreError> {
        let epochs = store.sessions(|| new_token().expose().clone())?;
        let keys = epochs.iter().map(|SessionEpoch { secret, since }| (Sessions::new(secret), *since)).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    /// The key of a machine's session at a time, as the header of an answer.
    pub(super) fn header(&self, key: &PublicKey, now: u64) -> Option<String> {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        keys.iter().rfind(|(_, since)| *since <= now).map(|(sessions, _)| sessions.header(key, now))
    }

    /// Returns whether a request is proved by a session of a machine.
    pub(super) fn is_by(&self, tag: &[u8], request: &MachineRequest, key: &PublicKey, now: u64) -> bool {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        keys.iter().rev().any(|(sessions, _)| sessions.is_by(tag, request, key, now))
    }
}
