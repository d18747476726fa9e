//! Packages of a root of a test's own, by whichever package manager.

use serde_json::Value as Json;
use stead_core::call::Execution;
use stead_host::provider::{Plain, SetReply};

use crate::support::{Tree, World, provider};

/// A system whose packages a test changes.
pub(crate) trait Packages {
    fn world(&self) -> &World;

    /// Returns all files, but for those that the package manager writes whenever it is called.
    fn imprint(&self) -> Tree {
        self.world().imprint()
    }

    fn reply(&self, desired: &Json, execution: Execution) -> Result<SetReply, String> {
        let cx = self.world().context_for("Stead/Package");
        let reply = provider("Stead/Package").set(&cx, &Plain::new(desired.clone()), execution);
        reply.map_err(|failure| failure.message)
    }

    /// Sets as the what-if says, and a second time without an effect. Returns what was done in words, and what was destroyed.
    fn set(&self, desired: &Json) -> (Vec<String>, Vec<String>) {
        let before = self.imprint();
        let predicted = self.reply(desired, Execution::WhatIf).unwrap();
        assert!(self.imprint() == before, "{desired}: the what-if changed something");
        if let Some(presumed) = predicted.presumed {
            panic!("{desired}: {}", presumed.failure.message);
        }
        let done = self.reply(desired, Execution::Actual).unwrap();
        assert_eq!(predicted.changed, done.changed, "{desired}");
        assert_eq!(predicted.effects, done.effects, "{desired}");
        assert_eq!(predicted.after.map(|after| after.to_json()), done.after.map(|after| after.to_json()), "{desired}");
        let settled = self.imprint();
        let again = self.reply(desired, Execution::Actual).unwrap();
        assert!(again.changed.is_none_or(|changed| changed.is_empty()), "{desired}: the second set changed something");
        assert!(self.imprint() == settled, "{desired}: the second set changed files");
        let cx = self.world().context_for("Stead/Package");
        let tested = provider("Stead/Package").test(&cx, &Plain::new(desired.clone())).ok().unwrap();
        assert_eq!(tested.in_desired_state, Some(true), "{desired}");
        (predicted.what_if, done.effects.destroys.items().iter().map(ToString::to_string).collect())
    }

    fn refused(&self, desired: &Json) -> String {
        let predicted = self.reply(desired, Execution::WhatIf);
        let failed = self.reply(desired, Execution::Actual).err().unwrap();
        assert!(predicted.map_or(true, |reply| reply.presumed.is_some()), "{desired}: the failure was not predicted");
        failed
    }
}

pub(crate) fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|&each| each.to_owned()).collect()
}
