//! Laws of resources that change nothing.

use std::process::{Child, Command, Stdio};

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value as Json, json};
use stead_core::call::Execution;
use stead_core::diff::{Rules, differing};
use stead_core::value::{REDACTED, Value};
use stead_host::provider::{Context, Plain};
use stead_system::fs::SystemRoot;

use crate::support::{World, provider};
use crate::{answered, members, states};

fn output() -> impl Strategy<Value = Json> {
    let leaf = select(vec![
        json!(null),
        json!(true),
        json!(-7),
        json!("text"),
        json!({ "secureString": "s3cret" }),
        json!({ "secureObject": { "key": "s3cret" } }),
    ]);
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Json::Array),
            proptest::collection::btree_map("[a-c]", inner, 0..3).prop_map(|members| json!(members)),
        ]
    })
}

/// Draws the content of `/etc/os-release`.
fn os_release() -> impl Strategy<Value = String> {
    let lines = vec![
        "VERSION_ID=\"12\"\n",
        "VERSION_CODENAME=bookworm\n",
        "VARIANT='Server Edition'\n",
        "# comment\n",
        "junk\n",
    ];
    subsequence(lines, 0..=5).prop_map(|lines| json!(lines.concat()).to_string())
}

fn os_properties() -> impl Strategy<Value = Json> {
    let table = vec![
        ("family", vec![json!("Linux"), json!("Windows")]),
        ("version", vec![json!("12.0.0"), json!("Unknown"), json!("13")]),
        ("edition", vec![json!("Server Edition"), json!("")]),
        ("codename", vec![json!("bookworm"), json!("trixie")]),
        ("bitness", vec![json!(32), json!(64), json!(64.0)]),
        ("architecture", vec![json!(std::env::consts::ARCH), json!("other")]),
    ];
    members(table).prop_map(Json::Object)
}

/// Processes that do nothing and end with the test.
struct Idle(Vec<Child>);

impl Idle {
    /// The arguments are found nowhere else on the machine.
    fn start(world: &World) -> Self {
        let mark = world.root.path().display().to_string();
        let start = |number: usize| {
            let mut command = Command::new("/bin/cat");
            command.args(["-", &mark]).args(vec!["-"; number / 2]).stdin(Stdio::piped()).stdout(Stdio::null());
            let child = command.spawn().unwrap();
            // A process has the name of its parent for a moment after it was started.
            let name = format!("/proc/{}/comm", child.id());
            while !std::fs::read_to_string(&name).is_ok_and(|name| name == "cat\n") {
                std::thread::yield_now();
            }
            child
        };
        Self((0..3).map(start).collect())
    }

    /// Their states, in the order of their numbers.
    fn states(&self, world: &World) -> Vec<Json> {
        let mark = world.root.path().display();
        let state = |(number, child): (usize, &Child)| {
            let rest = " -".repeat(number / 2);
            json!({ "pid": child.id(), "name": "cat", "cmdline": format!("/bin/cat - {mark}{rest}") })
        };
        let mut states: Vec<Json> = self.0.iter().enumerate().map(state).collect();
        states.sort_by_key(|state| state["pid"].as_u64());
        states
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The attributes that identify an instance: of a process, or of none.
#[derive(Clone, Debug)]
struct Known {
    of: usize,
    members: Vec<&'static str>,
    altered: Option<&'static str>,
}

fn known() -> impl Strategy<Value = Known> {
    let identifying = select(vec!["pid", "cmdline"]);
    let altered = proptest::option::weighted(0.3, select(vec!["pid", "name", "cmdline"]));
    (0..3_usize, identifying, subsequence(vec!["pid", "name", "cmdline"], 0..=3), altered).prop_map(
        |(of, identifying, mut members, altered)| {
            members.retain(|name| *name != identifying);
            members.push(identifying);
            let altered = altered.filter(|name| members.contains(name));
            Known { of, members, altered }
        },
    )
}

impl Known {
    fn properties(&self, states: &[Json]) -> Json {
        let member = |name: &&str| {
            let value = match (*name, self.altered == Some(*name)) {
                // More than the kernel ever gives.
                ("pid", true) => json!(1_u64 << 40),
                (_, true) => json!("something else"),
                (name, false) => states[self.of][name].clone(),
            };
            ((*name).to_owned(), value)
        };
        Json::Object(self.members.iter().map(member).collect())
    }
}

proptest! {
    #![proptest_config(states(200))]

    /// Every property that is given comes back from every operation, but for secrets; and a state that came back does
    /// so, too.
    #[test]
    fn an_echo_gives_back_what_it_is_given(output in output(), shows in proptest::option::of(any::<bool>())) {
        let world = World::build_in_memory("");
        let (provider, cx) = (provider("Microsoft.DSC.Debug/Echo"), world.context());
        let desired = Plain::new(json!({ "output": output, "showSecrets": shows }));
        let got = answered(provider.get(&cx, &desired))?;
        prop_assert_eq!(got.to_json().to_string().contains("s3cret"), false);
        let holds_secret = desired.to_json().to_string().contains("s3cret");
        prop_assert_eq!(got.to_json().to_string().contains(REDACTED), holds_secret);
        prop_assert!(holds_secret || got.expose() == desired.expose());
        for execution in [Execution::WhatIf, Execution::Actual] {
            let set = answered(provider.set(&cx, &desired, execution))?;
            prop_assert!(set.effects.is_empty() && set.after.unwrap().expose() == got.expose());
        }
        let tested = answered(provider.test(&cx, &desired))?;
        prop_assert!(tested.actual.unwrap().expose() == got.expose());
        let exported = answered(provider.export(&cx, &desired))?;
        prop_assert_eq!(exported.iter().map(|each| &each.properties).collect::<Vec<_>>(), [got.expose()]);
        prop_assert!(answered(provider.get(&cx, &got))?.expose() == got.expose());
        prop_assert_eq!(world.tree(), "");
    }

    /// A test is a comparison with what a get finds, and an export lists the same.
    #[test]
    fn the_operating_system_is_compared_with_what_it_says(release in os_release(), stated in os_properties()) {
        let world = World::build_in_memory(&format!("file etc/os-release 0644 {release}\n"));
        let (provider, before) = (provider("Microsoft/OSInfo"), world.imprint());
        let cx = Context { system_root: SystemRoot::below(world.root.path()), ..world.context() };
        let desired = Plain::new(stated);
        let found = answered(provider.get(&cx, &desired))?;
        let tested = answered(provider.test(&cx, &desired))?;
        let differing = differing(desired.expose(), found.expose(), &Rules::default());
        prop_assert_eq!(tested.in_desired_state, Some(differing.is_empty()));
        prop_assert_eq!(tested.differing, Some(differing));
        let mut expected = found.expose().clone();
        if let Value::Object(members) = &mut expected {
            members.insert("_inDesiredState".to_owned(), Value::Bool(tested.in_desired_state == Some(true)));
        }
        prop_assert!(tested.actual.unwrap().expose() == &expected);
        let exported = answered(provider.export(&cx, &Plain::default()))?;
        prop_assert_eq!(exported.iter().map(|each| &each.properties).collect::<Vec<_>>(), [found.expose()]);
        prop_assert_eq!(answered(provider.test(&cx, &found))?.in_desired_state, Some(true), "it is as it says");
        prop_assert_eq!(world.imprint(), before);
    }
}

/// A get finds the first process that an export with the same filter lists, or says that there is none.
#[test]
fn a_process_is_found_by_what_it_is_known_by() {
    let world = World::build("");
    let (idle, provider, cx) = (Idle::start(&world), provider("Microsoft/Process"), world.context());
    let running = idle.states(&world);
    let mut runner = proptest::test_runner::TestRunner::new(states(100));
    let law = |known: Known| {
        let properties = known.properties(&running);
        let desired = Plain::new(properties.clone());
        let fits = |state: &&Json| properties.as_object().unwrap().iter().all(|(name, value)| state[name] == *value);
        let expected: Vec<Json> = running.iter().filter(fits).cloned().collect();
        let exported = answered(provider.export(&cx, &desired))?;
        let exported: Vec<Json> = exported.iter().map(|each| each.properties.to_redacted_json()).collect();
        prop_assert_eq!(&exported, &expected);
        let found = answered(provider.get(&cx, &desired))?;
        if let Some(first) = expected.first() {
            prop_assert_eq!(&found.to_json(), first);
        } else {
            prop_assert_eq!(&found.to_json()["_exist"], &json!(false));
            let kept = differing(desired.expose(), found.expose(), &Rules::default());
            prop_assert_eq!(kept, ["_exist"], "only that it is not there differs");
        }
        prop_assert!(answered(provider.get(&cx, &found))?.expose() == found.expose(), "what was found is found again");
        Ok(())
    };
    runner.run(&known(), law).unwrap();
    assert_eq!(world.tree(), "");
}
