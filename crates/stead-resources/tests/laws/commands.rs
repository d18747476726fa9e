//! Laws of commands, whatever is there and whatever they do.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value as Json, json};
use stead_core::call::Execution;
use stead_core::destruction::Effect;
use stead_core::value::Value;
use stead_host::provider::Plain;

use crate::support::{World, provider};
use crate::{answered, members, states};

/// Some of the files that the commands look at.
fn start() -> impl Strategy<Value = String> {
    let files = vec!["file c 0644 \"c\"\n", "file f 0644 \"a\\n\"\n", "dir d 0755\n", "link l -> nowhere\n"];
    subsequence(files, 0..=4).prop_map(|files| files.concat())
}

fn command() -> impl Strategy<Value = Json> {
    let table = vec![
        ("creates", vec![json!("c"), json!("made"), json!("l")]),
        ("test", vec![json!("test -e c"), json!("grep -qx a f"), json!("exit 127"), json!(["test", "-d", "d"])]),
        (
            "set",
            vec![
                json!("touch c"),
                json!("echo a >f; echo done"),
                json!("touch made; exit 4"),
                json!(["touch", "made"]),
                json!(["./made"]),
            ],
        ),
        ("get", vec![json!("cat f"), json!("echo $WORD")]),
        ("environment", vec![json!({ "WORD": "word" })]),
        ("workingDirectory", vec![json!("d"), json!("e")]),
    ];
    members(table).prop_map(Json::Object)
}

/// A state without what the last command printed, and without what only a test tells.
fn settled(state: &Plain) -> Value {
    let mut state = state.expose().clone();
    if let Value::Object(members) = &mut state {
        members.retain(|name, _| !["output", "exitCode", "test"].contains(&name));
    }
    state
}

proptest! {
    // Each starts several programs.
    #![proptest_config(states(100))]

    /// A prediction says what a set does, and a set is made where a test finds that it is needed, and not again.
    #[test]
    fn every_command_does_what_was_predicted(given in start(), stated in command()) {
        let world = World::build_in_memory(&given);
        let (provider, cx) = (provider("Stead/Command"), world.context());
        let (sets, tests) = (stated.get("set").is_some(), stated.get("test").is_some());
        let ends_well = !stated["set"].as_str().is_some_and(|script| script.contains("exit"));
        let desired = Plain::new(stated);
        let before = world.imprint();
        let (read, tested) = (provider.get(&cx, &desired), provider.test(&cx, &desired));
        let predicted = provider.set(&cx, &desired, Execution::WhatIf);
        prop_assert_eq!(&world.imprint(), &before, "a get, a test or a what-if changed something");
        let Ok(tested) = tested else {
            prop_assert!(predicted.is_err(), "what cannot be tested cannot be predicted");
            return Ok(());
        };
        prop_assert_eq!(settled(&answered(read)?), settled(tested.actual.as_ref().unwrap()));
        let in_state = tested.in_desired_state == Some(true);
        prop_assert_eq!(tested.differing.unwrap().is_empty(), in_state);
        // As the engine does: what is in the desired state is not set.
        if in_state {
            prop_assert!(!sets || answered(predicted)?.changed == Some(Vec::new()));
            return Ok(());
        }
        let set = provider.set(&cx, &desired, Execution::Actual);
        let Ok(set) = set else {
            let fails = predicted.as_ref().map_or(true, |predicted| predicted.presumed.is_some());
            prop_assert!(fails || !ends_well, "it failed, and the what-if did not say so");
            prop_assert!(sets || world.imprint() == before);
            return Ok(());
        };
        let predicted = answered(predicted)?;
        prop_assert!(ends_well && predicted.presumed.is_none(), "it was predicted to fail");
        prop_assert_eq!(&predicted.changed, &set.changed);
        prop_assert_eq!(&predicted.effects, &set.effects);
        prop_assert_eq!(predicted.what_if.len(), 1);
        // What the state after it has is so; what it leaves out is tested again.
        let after = answered(provider.test(&cx, &desired))?;
        let (state, found) = (settled(&set.after.unwrap()), settled(after.actual.as_ref().unwrap()));
        let unguarded = !tests && desired.expose().get("creates").is_none();
        prop_assert_eq!(after.in_desired_state == Some(true) && unguarded, false, "nothing says that it need not run");
        prop_assert!(unguarded || state == found, "the state after it is not what a test finds");
        if after.in_desired_state == Some(true) && !tests {
            let reached = world.imprint();
            let again = answered(provider.set(&cx, &desired, Execution::Actual))?;
            prop_assert_eq!(again.changed, Some(Vec::new()));
            prop_assert_eq!(world.imprint(), reached, "a second set changed something");
        }
    }

    /// It is run by every set and by nothing else, and its exit code decides.
    #[test]
    fn a_program_is_run_by_every_set(code in 0..3_i64, expected in proptest::option::of(0..3_i64), by in select(vec!["sh", "./run", "./none"])) {
        let script = format!("echo run >> log; exit {code}");
        let world = World::build_in_memory(&format!("file run 0755 {}\n", json!(format!("#!/bin/sh\n{script}\n"))));
        let (provider, cx) = (provider("Microsoft.DSC.Transitional/RunCommandOnSet"), world.context());
        let mut stated = json!({ "executable": by });
        if by == "sh" {
            stated["arguments"] = json!(["-c", script]);
        }
        if let Some(expected) = expected {
            stated["exitCode"] = json!(expected);
        }
        let desired = Plain::new(stated);
        let before = world.imprint();
        prop_assert!(answered(provider.get(&cx, &desired))?.expose() == desired.expose());
        let predicted = answered(provider.set(&cx, &desired, Execution::WhatIf))?;
        prop_assert_eq!(&world.imprint(), &before, "a get or a what-if changed something");
        prop_assert_eq!(predicted.presumed.is_some(), by == "./none");
        prop_assert_eq!(predicted.effects.effect, Some(Effect::Change));
        for times in 1..=2 {
            let set = provider.set(&cx, &desired, Execution::Actual);
            let log = std::fs::read_to_string(world.root.path().join("log")).unwrap_or_default();
            prop_assert_eq!(log, "run\n".repeat(if by == "./none" { 0 } else { times }));
            prop_assert_eq!(set.is_ok(), by != "./none" && code == expected.unwrap_or(0));
            if let Ok(set) = set {
                prop_assert_eq!(&set.changed, &predicted.changed);
                prop_assert_eq!(&set.effects, &predicted.effects);
                let after = set.after.unwrap().expose().to_redacted_json();
                prop_assert_eq!(after, predicted.after.as_ref().unwrap().expose().to_redacted_json());
            }
        }
    }
}
