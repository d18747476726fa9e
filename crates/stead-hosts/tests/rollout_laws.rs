//! Laws of what begins when, over random sizes, rules, failures and orders of answers.

use std::num::NonZeroUsize;

use proptest::prelude::*;
use stead_hosts::{MachineEnd, Rollout, Rule};

/// What happened in a rollout whose answers come in an order that `picks` say.
#[derive(PartialEq, Eq, Debug)]
struct Seen {
    begun: Vec<usize>,
    failed: usize,
    most_under_way: usize,
}

fn carried_out(machines: usize, rule: Rule, fails: &[bool], picks: &[usize]) -> Seen {
    let mut rollout = Rollout::new(machines, rule);
    let (mut begun, mut under_way, mut failed, mut most) = (Vec::new(), Vec::new(), 0, 0);
    let mut picks = picks.iter().cycle();
    // Every step begins or ends a machine: there are no more of them than twice the machines.
    for _ in 0..=2 * machines {
        while let Some(machine) = rollout.begin() {
            begun.push(machine);
            under_way.push(machine);
        }
        most = most.max(under_way.len());
        if under_way.is_empty() {
            assert!(rollout.is_over());
            assert_eq!(rollout.not_begun(), begun.len()..machines);
            return Seen { begun, failed, most_under_way: most };
        }
        assert!(!rollout.is_over());
        let at = picks.next().map_or(0, |pick| pick % under_way.len());
        let machine = under_way.swap_remove(at);
        let is_failed = fails.get(machine).copied().unwrap_or_default();
        failed += usize::from(is_failed);
        rollout.end(machine, if is_failed { MachineEnd::Badly } else { MachineEnd::Well });
        // An answer that comes twice, or of nobody, changes nothing.
        rollout.end(machine, MachineEnd::Badly);
        rollout.end(machines + 1, MachineEnd::Badly);
    }
    panic!("the rollout does not end");
}

fn at_least_one(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(stead_testkit::cases(stead_testkit::ALL_LAWS, 10_000)))]

    #[test]
    fn never_more_is_broken_than_the_rule_allows_and_there_is_an_end(
        fails in prop::collection::vec(prop::bool::weighted(0.2), 0..60),
        at_once in 1..12_usize,
        halt_after in prop::option::of(1..6_usize),
        picks in prop::collection::vec(0..12_usize, 1..40),
        others in prop::collection::vec(0..12_usize, 1..40),
    ) {
        let rule = Rule { at_once: at_least_one(at_once), halt_after: halt_after.map(at_least_one) };
        let seen = carried_out(fails.len(), rule, &fails, &picks);
        prop_assert!(seen.most_under_way <= at_once);
        prop_assert!(seen.begun.iter().copied().eq(0..seen.begun.len()));
        // The same answers in the same order come to the same, and without failures any order does.
        prop_assert_eq!(&seen, &carried_out(fails.len(), rule, &fails, &picks));
        let all_fail = fails.iter().filter(|fails| **fails).count();
        if let Some(most) = halt_after {
            prop_assert!(seen.failed < most + at_once);
        }
        // Nothing is left out without a reason, and what is not left out does not depend on the order of answers.
        for seen in [&seen, &carried_out(fails.len(), rule, &fails, &others)] {
            let is_halted = halt_after.is_some_and(|most| seen.failed >= most);
            prop_assert!(is_halted || (seen.begun.len(), seen.failed) == (fails.len(), all_fail));
        }
    }
}
