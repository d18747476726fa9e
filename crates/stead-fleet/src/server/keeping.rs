//! Retention of a controller.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;

use super::Controller;
use super::reply::Reply;
use crate::store::{FleetStore, Heartbeat, StoreWrite, Written};

/// How often what machines said is written: so much of it a power cut can take.
const FLUSH: Duration = Duration::from_secs(10);
/// How often what is too old is removed.
const TIDYING: Duration = Duration::from_mins(1);
/// How many reports are removed in one commit. A report that comes meanwhile waits for as long as this takes.
const MOST_AT_ONCE: u64 = 200;
/// How long it is between two such commits.
const BETWEEN: Duration = Duration::from_millis(20);
/// How old content is at least that nobody needs: it is stored before what names it is published.
const OLD_CONTENT: u64 = 86_400_000;

/// The limits of what a controller keeps.
#[derive(Clone, Copy, Debug)]
pub struct ControllerLimits {
    /// How many machines may wait for an operator.
    pub most_waiting: u64,
    /// How long reports are kept.
    pub reports: Duration,
}

/// The usual limits, with this many machines that wait.
impl From<u64> for ControllerLimits {
    fn from(most_waiting: u64) -> Self {
        Self { most_waiting, reports: Duration::from_hours(30 * 24) }
    }
}

impl Controller {
    /// Writes what machines said since the last time, every ten seconds, until the controller ends.
    pub async fn keep_heard(self: Arc<Self>) {
        let mut stop = self.stop.clone();
        loop {
            let is_last = tokio::select! {
                biased;
                () = sleep(FLUSH) => false,
                _ = stop.wait_for(|stop| *stop) => true,
            };
            let heard: Vec<Heartbeat> = self.each_machine(|machine| machine.unsaid());
            if !heard.is_empty() {
                // Lost, it is said again by the machines.
                let _ = self.write(vec![StoreWrite::Heard(heard)]).await;
            }
            if is_last {
                return;
            }
        }
    }

    /// Removes what is too old, at once and every minute, until the controller ends.
    pub async fn keep_tidy(self: Arc<Self>) {
        let mut stop = self.stop.clone();
        loop {
            let tidied = tokio::select! {
                tidied = self.tidy() => tidied,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            if tidied.is_err() {
                tracing::warn!("what is too old could not be removed: the store does not answer");
            }
            tokio::select! {
                () = sleep(TIDYING) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Removes what is too old, a little at a time.
    async fn tidy(&self) -> Result<(), Box<Reply>> {
        let now = self.read(FleetStore::now).await?;
        let age = u64::try_from(self.limits.reports.as_millis()).unwrap_or(u64::MAX);
        let (before, most) = (now.saturating_sub(age), MOST_AT_ONCE);
        loop {
            let gone = changed(&self.write(vec![StoreWrite::Forget { before, most }]).await?);
            self.counters.forgotten.fetch_add(gone, Ordering::Relaxed);
            if gone < most {
                break;
            }
            sleep(BETWEEN).await;
        }
        while changed(&self.write(vec![StoreWrite::Sweep { before: now.saturating_sub(OLD_CONTENT) }]).await?) > 0 {
            sleep(BETWEEN).await;
        }
        Ok(())
    }
}

fn changed(written: &[Written]) -> u64 {
    written.iter().map(|written| if let Written::Changed(count) = written { *count } else { 0 }).sum()
}
