//! The cases of `corpus/resources`: a tree, a desired state, and all that the operations make of them.
//!
//! Besides what the cases say, for each of them: a what-if changes nothing and predicts what the set does; after a set
//! the test is content; a second set changes nothing at all.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod support;

use std::process::ExitCode;
use std::sync::Arc;

use stead_core::call::{Execution, Failure};
use stead_host::provider::{Context, Plain, Provider, SetReply, TestReply};
use stead_testkit::{Case, Computed, Suite};
use support::{World, lasting, plain, provider};

fn main() -> ExitCode {
    stead_testkit::main(&[
        Suite { folder: "resources/file", run: |case| run("Stead/File", case) },
        Suite { folder: "resources/directory", run: |case| run("Stead/Directory", case) },
        Suite { folder: "resources/symlink", run: |case| run("Stead/Symlink", case) },
        Suite { folder: "resources/line", run: |case| run("Stead/Line", case) },
        Suite { folder: "resources/export", run: |case| Ok(export("Stead/Directory", case)) },
    ])
}

struct Subject<'a> {
    world: World,
    cx: Context,
    provider: Arc<dyn Provider>,
    desired: &'a Plain,
}

fn run(type_name: &str, case: &Case) -> Result<Computed, String> {
    let desired = plain(case.section("desired"));
    let world = World::build(case.section("given"));
    let subject = Subject { cx: world.context(), world, provider: provider(type_name), desired: &desired };
    let untouched = subject.world.imprint();
    let get = subject.get();
    let test = subject.test(&subject.provider.test(&subject.cx, &desired));
    let what_if = subject.provider.set(&subject.cx, &desired, Execution::WhatIf);
    if subject.world.imprint() != untouched {
        return Err("get, test or what-if changed something".to_owned());
    }
    let set = subject.provider.set(&subject.cx, &desired, Execution::Actual);
    let after = subject.world.tree();
    subject.check_laws(&what_if, &set)?;
    let what_if = subject.show(&what_if, |reply| reply.what_if.iter().flat_map(|text| [text, "\n"]).collect());
    let set = subject.show(&set, |reply| subject.set(reply));
    let trace: String = subject.world.trace.lock().unwrap().iter().flat_map(|text| ["trace: ", text, "\n"]).collect();
    Ok(vec![("get", get), ("test", test), ("what-if", what_if), ("set", set + &trace), ("after", after)])
}

impl Subject<'_> {
    fn show<T>(&self, result: &Result<T, Failure>, show: impl Fn(&T) -> String) -> String {
        match result {
            Ok(reply) => self.world.neutral(&show(reply)),
            Err(failure) => self.world.show_failure(failure),
        }
    }

    fn get(&self) -> String {
        self.show(&self.provider.get(&self.cx, self.desired), |state| lasting(state, self.desired))
    }

    fn test(&self, reply: &Result<TestReply, Failure>) -> String {
        self.show(reply, |reply| {
            let verdict = match reply.differing.as_deref().unwrap_or_default() {
                [] => "in desired state".to_owned(),
                differing => format!("differs: {}", differing.join(", ")),
            };
            format!(
                "{verdict}\n{}",
                reply.actual.as_ref().map(|state| lasting(state, self.desired)).unwrap_or_default()
            )
        })
    }

    fn set(&self, reply: &SetReply) -> String {
        let changed = reply.changed.as_deref().unwrap_or_default().join(", ");
        format!(
            "changed: {changed}\n{}",
            reply.after.as_ref().map(|state| lasting(state, self.desired)).unwrap_or_default()
        )
    }

    fn check_laws(&self, what_if: &Result<SetReply, Failure>, set: &Result<SetReply, Failure>) -> Result<(), String> {
        let Ok(set) = set else { return Ok(()) };
        let Ok(what_if) = what_if else { return Err("the what-if failed, the set did not".to_owned()) };
        if self.set(what_if) != self.set(set) {
            return Err(format!("what-if predicted\n{}and set did\n{}", self.set(what_if), self.set(set)));
        }
        let settled = self.world.imprint();
        let again = self.provider.set(&self.cx, self.desired, Execution::Actual);
        if self.world.imprint() != settled || !again.is_ok_and(|reply| reply.changed.is_some_and(|it| it.is_empty())) {
            return Err("a second set changed something".to_owned());
        }
        match self.provider.test(&self.cx, self.desired) {
            Ok(reply) if reply.in_desired_state == Some(true) => Ok(()),
            other => Err(format!("after the set, the test says: {}", self.test(&other))),
        }
    }
}

fn export(type_name: &str, case: &Case) -> Computed {
    let world = World::build(case.section("given"));
    let filter = plain(case.section("filter"));
    let cx = world.context();
    let mut text = match provider(type_name).export(&cx, &filter) {
        Err(failure) => world.show_failure(&failure),
        Ok(found) => found
            .iter()
            .map(|each| {
                let type_name = each.type_name.as_ref().map_or("-", stead_core::id::TypeName::as_str);
                let properties = Plain::new(each.properties.to_redacted_json());
                format!("{type_name} {} {}", each.name.as_deref().unwrap_or("-"), lasting(&properties, &plain("{}")))
            })
            .collect::<Vec<_>>()
            .concat(),
    };
    world.trace.lock().unwrap().iter().for_each(|line| text += &world.neutral(&format!("trace: {line}\n")));
    vec![("exported", text)]
}
