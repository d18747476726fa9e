//! A set does what was shown: it reads what the plan read, and destroys nothing else.

use stead_core::call::{Call, Execution, Failure, FailureKind, Outcome};
use stead_core::destruction::{Effects, may_destroy};
use stead_host::operate::carry_out;
use stead_host::provider::{Context, Plain, Provider};
use stead_system::fs::SystemPath;

use super::SessionCalls;

impl SessionCalls {
    /// Why a set would read something else than the plan did that the run is to do.
    pub(super) fn stale(&self, call: &Call) -> Option<Failure> {
        let id = call.instance.node();
        let is_other = |path: &SystemPath| {
            let planned = self.planned.digest_of(id, &path.display().to_string());
            planned.is_some_and(|planned| stead_system::fs::digest(path).ok().flatten() != *planned)
        };
        let paths = if self.planned.has_reads() {
            self.read_by(id, &call.manifest, &Plain::covered(&call.desired))
        } else {
            Vec::new()
        };
        let path = paths.into_iter().find(is_other)?;
        let message = format!("'{}' has changed since the plan was shown", path.display());
        Some(Failure::new(FailureKind::Refused, message))
    }

    /// Why a set would destroy something that the plan has not shown: what it would do is asked right before.
    pub(super) fn unshown(&self, call: &Call, provider: &dyn Provider, cx: &Context) -> Option<Failure> {
        let shown = self.planned.destroyed_with(call.instance.node())?;
        if !shown.is_destructive() && !may_destroy(&call.desired) {
            return None;
        }
        let what_if = Call { execution: Execution::WhatIf, ..call.clone() };
        let now = match carry_out(&what_if, provider, &*self.vault, cx).outcome {
            Outcome::Changed(now) => now,
            // Nobody knows what would be removed.
            Outcome::Failed(failure) => return Some(*failure),
            _ => return None,
        };
        let now = Effects { effect: Some(now.effect()), ..now.effects };
        now.unshown(&shown).map(|why| Failure::new(FailureKind::Refused, why))
    }
}
