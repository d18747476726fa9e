//! How many steps runs of many instances take.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stead_core::event::Mode;
use stead_core::manifest::Lane;
use stead_core::run::policy::{Attempt, Policy, Verdict};
use stead_core::run::reconcile::Reconciler;
use stead_core::run::{Room, Run, Setup};
use stead_core::value::Value;

use crate::scenes::setup;
use crate::simulation::{Driver, Thing, World, drive};

/// The dependencies of each instance.
type Shape = fn(usize) -> String;

#[test]
fn a_hundred_thousand_instances_take_linear_time() {
    let count = 100_000;
    let shapes: [(&str, Shape); 2] = [
        ("independent", |_| String::new()),
        ("a chain", |at| at.checked_sub(1).map(|need| format!("'Test/Echo:{need}'")).unwrap_or_default()),
    ];
    for (shape, need) in shapes {
        let mut text = "$schema: s\nresources:\n".to_owned();
        for at in 0..count {
            writeln!(text, "- {{type: Test/Echo, name: '{at}', dependsOn: [{}]}}", need(at)).unwrap();
        }
        let steps = steps(Mode::APPLY, &text, World::default());
        assert!(steps <= 4 * count, "{shape}: {steps} steps");
    }
}

/// An instance that lacks something is looked at once more when all others are done, and not whenever one of them is.
#[test]
fn many_that_are_blocked_take_little() {
    let count = 30_000;
    let mut text = "$schema: s\nresources:\n".to_owned();
    let mut world = World::default();
    for at in 0..count {
        writeln!(text, "- {{type: Test/Echo, name: '{at}'}}").unwrap();
        world.0.insert(at.to_string(), Thing { lacking: 9, ..Thing::default() });
    }
    let asked = Arc::new(AtomicUsize::new(0));
    let policy = Counting { inner: Reconciler::continuous(3), asked: Arc::clone(&asked) };
    let mut run = Run::new(Setup { policy: Arc::new(policy), ..setup(&text, Mode::APPLY) });
    drive_plainly(&mut run, &mut world);
    let asked = asked.load(Ordering::Relaxed);
    assert!(asked <= 8 * count, "asked {asked} times");
}

/// A reconciler that counts how often it is asked for what decides about instances that are blocked.
struct Counting {
    inner: Reconciler,
    asked: Arc<AtomicUsize>,
}

impl Policy for Counting {
    fn after(&self, attempt: &Attempt<'_>) -> Verdict {
        self.inner.after(attempt)
    }

    fn gives_up_blocked(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.inner.gives_up_blocked()
    }
}

/// An instance that waits for any of many looks at each a few times only.
#[test]
fn many_alternatives_that_fail_take_little() {
    let count = 500;
    let mut text = "$schema: s\nresources:\n".to_owned();
    let mut world = World::default();
    for at in 0..count {
        writeln!(text, "- {{type: Test/Echo, name: '{at}'}}").unwrap();
        world.0.insert(at.to_string(), Thing { failures: 1, ..Thing::default() });
    }
    let ids: Vec<String> = (0..count).map(|at| format!("'Test/Echo:{at}'")).collect();
    writeln!(text, "- {{type: Test/Echo, name: last, directives: {{requireAny: [{}]}}}}", ids.join(", ")).unwrap();
    assert!(steps(Mode::APPLY, &text, world) <= 4 * count);
}

/// An instance that is for the failure of the last one of a chain does not look at the whole chain.
#[test]
fn many_that_are_for_a_failure_take_little() {
    let count = 10_000;
    let mut text = "$schema: s\nresources:\n- {type: Test/Echo, name: '0'}\n".to_owned();
    for at in 1..count {
        writeln!(text, "- {{type: Test/Echo, name: '{at}', dependsOn: ['Test/Echo:{}']}}", at - 1).unwrap();
    }
    for at in 0..count {
        let directives = format!("{{onFailure: ['Test/Echo:{}']}}", count - 1);
        writeln!(text, "- {{type: Test/Echo, name: 'r{at}', directives: {directives}}}").unwrap();
    }
    assert!(steps(Mode::PLAN, &text, World::default()) <= 8 * count);
}

/// How often a run is asked what comes next.
fn steps(mode: Mode, text: &str, mut world: World) -> usize {
    let mut run = Run::new(setup(text, mode));
    drive_plainly(&mut run, &mut world)
}

fn drive_plainly(run: &mut Run, world: &mut World) -> usize {
    let mut driver = Driver {
        room: Room { total: 8, lanes: [(Lane::Programs, 2)].into() },
        pick: &mut |_| 0,
        learn: &|_| Ok(Value::Null),
        signal: None,
        wake: &mut |_| None,
        observe: &mut |_, _, _, _| {},
    };
    drive(run, world, &mut driver)
}
