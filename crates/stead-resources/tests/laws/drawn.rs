//! Every built-in resource is drawn by a law of states that converge, or named here with where its laws are.

use std::collections::BTreeSet;

use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use stead_core::manifest::Implementation;
use stead_resources::builtins;

use super::*;

/// Those whose laws are in `commands.rs` and `read_only.rs`; those that cases and tests of their own hold, since a tree does not
/// have what they act on: databases of accounts, packages, the network, units. A new resource without a row must be listed here.
const ELSEWHERE: &[&str] = &[
    "Microsoft.DSC.Debug/Echo",
    "Microsoft.DSC.Transitional/RunCommandOnSet",
    "Microsoft/OSInfo",
    "Microsoft/Process",
    "Stead/AptRepository",
    "Stead/Command",
    "Stead/Git",
    "Stead/Group",
    "Stead/Package",
    "Stead/Service",
    "Stead/User",
];

#[test]
fn each_is_drawn_by_a_law() {
    let strategies = [
        desired().boxed(),
        desired_part().boxed(),
        desired_entry().boxed(),
        desired_system().boxed(),
        desired_setting().boxed(),
    ];
    let mut runner = TestRunner::deterministic();
    let mut drawn = BTreeSet::new();
    for strategy in &strategies {
        drawn.extend((0..400).map(|_| strategy.new_tree(&mut runner).unwrap().current().0));
    }
    let all = builtins().iter().filter(|each| matches!(each.manifest.implementation, Implementation::InProcess));
    let missing: Vec<&str> =
        all.map(|each| each.manifest.type_name.as_str()).filter(|name| !drawn.contains(name)).collect();
    assert_eq!(missing, ELSEWHERE, "those that no law draws");
}
