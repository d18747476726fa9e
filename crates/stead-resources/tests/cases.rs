//! Cases of `corpus/resources`: a tree, a desired state or a filter of an export, and what operations make of them.
//!
//! Besides what the cases say, for each of them: a what-if changes nothing and predicts what the set does; after a set
//! the test finds the desired state; a second set changes nothing at all.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod support;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use stead_core::call::{Execution, Failure};
use stead_core::destruction::Effects;
use stead_host::provider::{Context, Plain, Provider, SetReply, TestReply};
use stead_testkit::{Case, Computed, Suite};
use support::{World, lasting, plain, provider, without_today};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "resources", run: run_case }])
}

fn run_case(case: &Case) -> Result<Computed, String> {
    let type_name = case.section("resource").trim();
    if case.has("filter") { Ok(export(type_name, case)) } else { run(type_name, case) }
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
    let subject = Subject { cx: world.context_for(type_name), world, provider: provider(type_name), desired: &desired };
    let untouched = subject.world.imprint();
    let before = subject.world.tree();
    let get = subject.get();
    let test = subject.test(&subject.provider.test(&subject.cx, &desired));
    let what_if = subject.provider.set(&subject.cx, &desired, Execution::WhatIf);
    if subject.world.imprint() != untouched {
        return Err("get, test or what-if changed something".to_owned());
    }
    let set = subject.provider.set(&subject.cx, &desired, Execution::Actual);
    let after = without_today(&changes(&before, &subject.world.tree()));
    subject.check_laws(&what_if, &set)?;
    let what_if = subject.show(&what_if, predicted);
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
            let predicted = reply.predicted.as_ref();
            let after = predicted
                .map(|predicted| format!("a set: {}", lasting(&predicted.after, self.desired)))
                .unwrap_or_default();
            let effects = predicted.map(|predicted| effects(&predicted.effects).concat()).unwrap_or_default();
            let actual = reply.actual.as_ref().map(|state| lasting(state, self.desired)).unwrap_or_default();
            format!("{verdict}\n{actual}{after}{effects}")
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
        let Ok(set) = set else {
            let predicted = what_if.as_ref().map_or(true, |reply| reply.presumed.is_some());
            return if predicted { Ok(()) } else { Err("the set failed, and the what-if did not say so".to_owned()) };
        };
        let Ok(what_if) = what_if else { return Err("the what-if failed, the set did not".to_owned()) };
        if self.set(what_if) != self.set(set) {
            return Err(format!("what-if predicted\n{}and set did\n{}", self.set(what_if), self.set(set)));
        }
        if what_if.effects != set.effects {
            return Err(format!("what-if predicted {:?} and set did {:?}", what_if.effects, set.effects));
        }
        let settled = self.world.imprint();
        let again = self.provider.set(&self.cx, self.desired, Execution::Actual);
        if self.world.imprint() != settled || !again.is_ok_and(|reply| reply.changed.is_some_and(|it| it.is_empty())) {
            return Err("a second set changed something".to_owned());
        }
        // Whether somebody reads the state or not, the verdict is the same.
        let unread = Context { verdict_suffices: true, trace: Arc::new(|_, _| {}), ..self.cx.clone() };
        [&self.cx, &unread].into_iter().try_for_each(|cx| match self.provider.test(cx, self.desired) {
            Ok(reply) if reply.in_desired_state == Some(true) => Ok(()),
            other => Err(format!("after the set, the test says: {}", self.test(&other))),
        })?;
        self.check_members()
    }

    /// The state has the same members after every operation, so that a document may refer to them.
    fn check_members(&self) -> Result<(), String> {
        let members = |state: &Plain| -> BTreeSet<String> {
            state.expose().as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
        };
        let (got, tested) = (self.provider.get(&self.cx, self.desired), self.provider.test(&self.cx, self.desired));
        let (Ok(got), Some(tested)) = (got, tested.ok().and_then(|reply| reply.actual)) else { return Ok(()) };
        let left_out: Vec<String> = members(&got).difference(&members(&tested)).cloned().collect();
        if left_out.is_empty() || self.provider.get_tells_all() {
            return Ok(());
        }
        Err(format!("get reports what test leaves out: {}", left_out.join(", ")))
    }
}

/// Returns the prediction of a what-if: in words, what is created and destroyed, and what the set would fail for as
/// things are.
fn predicted(reply: &SetReply) -> String {
    let mut lines: Vec<String> = reply.what_if.iter().map(|words| format!("{words}\n")).collect();
    lines.extend(effects(&reply.effects));
    lines.extend(reply.presumed.as_ref().map(|presumed| format!("would fail: {}\n", presumed.failure.message)));
    lines.concat()
}

/// A line for the instance itself, and one for each thing that is created or destroyed.
fn effects(Effects { effect, creates, destroys, place }: &Effects) -> Vec<String> {
    let mut lines: Vec<String> = effect.iter().map(|effect| format!("effect: {}\n", effect.word())).collect();
    lines.extend(place.iter().map(|place| format!("place: {place}\n")));
    for (word, listing) in [("creates", creates), ("destroys", destroys)] {
        for item in listing.items() {
            lines.push(format!("{word}: {item}\n"));
            lines.extend(item.kind.entries().names().iter().map(|name| format!("  {name}\n")));
        }
        lines.extend((listing.more() > 0).then(|| format!("{word}: {} more\n", listing.more())));
    }
    lines
}

/// The lines of a tree that are gone and those that are new.
fn changes(before: &str, after: &str) -> String {
    let of = |sign: char, own: &str, other: &str| -> String {
        let has = |line: &&str| other.lines().any(|each| each == *line);
        let own = own.lines().filter(|line| !has(line));
        own.fold(String::new(), |text, line| text + &format!("{sign} {line}\n"))
    };
    of('-', before, after) + &of('+', after, before)
}

fn export(type_name: &str, case: &Case) -> Computed {
    let world = World::build(case.section("given"));
    let filter = plain(case.section("filter"));
    let cx = world.context_for(type_name);
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
