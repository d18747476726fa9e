//! Laws of comparisons, for arbitrary states.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use proptest::prelude::*;
use stead_core::diff::{Alteration, Case, Rules, changes, contains, differing, overlaid, respelled};
use stead_core::value::{Number, Object, Value};

const POWERSHELL: Rules<'static> = Rules { case: Case::PowerShell, schema: None };

/// Few different values, so that equal ones meet.
fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-1i64..3).prop_map(Value::from),
        prop_oneof![Just(0.5), Just(1.0), Just(-0.0), Just(2e60)]
            .prop_map(|float| Value::Number(Number::from_f64(float).unwrap())),
        "[abA]{0,2}".prop_map(Value::from),
    ];
    scalar.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            members(inner).prop_map(Value::Object),
        ]
    })
}

fn members(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Object> {
    let name = prop_oneof![4 => "[abc]", 1 => Just("_exist".to_owned()), 1 => Just("$schema".to_owned())];
    prop::collection::vec((name, inner), 0..4).prop_map(|members| members.into_iter().collect())
}

fn state() -> impl Strategy<Value = Value> {
    members(value()).prop_map(Value::Object)
}

fn objects() -> impl Strategy<Value = Vec<Value>> {
    let small = prop_oneof![Just(Value::from(1)), Just(Value::from(2)), Just(Value::Object(Object::new()))];
    let inner = prop::collection::vec(("[ab]", small), 0..3).prop_map(|all| Value::Object(all.into_iter().collect()));
    let object = prop::collection::vec(("[ab]", inner), 0..3).prop_map(|all| Value::Object(all.into_iter().collect()));
    prop::collection::vec(object, 0..6)
}

/// Returns whether a pairing exists, by trying all of them.
fn can_be_paired(wanted: &[Value], free: &[Value]) -> bool {
    let Some((first, rest)) = wanted.split_first() else { return true };
    (0..free.len()).any(|at| {
        let mut free = free.to_vec();
        contains(&free.remove(at), first, &Rules::default()) && can_be_paired(rest, &free)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: stead_testkit::cases(stead_testkit::ALL_LAWS, 1500), ..ProptestConfig::default() })]

    #[test]
    fn nothing_differs_from_itself(state in state()) {
        let none: Vec<String> = Vec::new();
        prop_assert_eq!(differing(&state, &state, &Rules::default()), none.clone());
        prop_assert_eq!(differing(&state, &state, &Rules { case: Case::Ignored, schema: None }), none.clone());
        prop_assert_eq!(differing(&state.clone(), &state, &POWERSHELL), none);
        prop_assert_eq!(changes(&state, &state), Vec::new());
    }

    #[test]
    fn what_is_added_to_the_actual_state_does_not_matter(desired in state(), actual in state(), more in value()) {
        let before = differing(&desired, &actual, &Rules::default());
        let Value::Object(mut members) = actual else { return Ok(()) };
        members.insert("another".to_owned(), more);
        prop_assert_eq!(differing(&desired, &Value::Object(members), &Rules::default()), before);
    }

    #[test]
    fn what_is_not_desired_does_not_differ(desired in state(), actual in state()) {
        let known = desired.as_object().unwrap();
        let names = differing(&desired, &actual, &Rules::default());
        prop_assert!(names.iter().all(|name| name == "_exist" || known.contains_key(name)));
    }

    #[test]
    fn fewer_wishes_differ_in_less(desired in state(), actual in state()) {
        let before = differing(&desired, &actual, &Rules::default());
        let Value::Object(mut members) = desired else { return Ok(()) };
        prop_assume!(!members.contains_key("_exist"));
        members.pop();
        let after = differing(&Value::Object(members), &actual, &Rules::default());
        prop_assert!(after.iter().all(|name| before.contains(name)));
    }

    #[test]
    fn an_exact_comparison_is_the_stricter_one(desired in state(), actual in state()) {
        let exact = differing(&desired, &actual, &Rules::default());
        let ignored = differing(&desired, &actual, &Rules { case: Case::Ignored, schema: None });
        prop_assert!(ignored.iter().all(|name| exact.contains(name)), "{exact:?} {ignored:?}");
        let powershell = differing(&desired, &actual, &POWERSHELL);
        prop_assert!(powershell.iter().all(|name| ignored.contains(name)), "{ignored:?} {powershell:?}");
    }

    #[test]
    fn spelling_changes_nothing_that_is_compared(desired in state(), actual in state()) {
        let spelled = respelled(&desired, &actual, &POWERSHELL);
        prop_assert_eq!(differing(&spelled, &actual, &POWERSHELL), differing(&desired, &actual, &POWERSHELL));
        prop_assert_eq!(differing(&desired, &spelled, &POWERSHELL), Vec::<String>::new());
    }

    #[test]
    fn containing_each_other_is_equal_for_users_too(one in value(), other in value()) {
        let both = contains(&one, &other, &Rules::default()) && contains(&other, &one, &Rules::default());
        prop_assert_eq!(both, changes(&one, &other).is_empty());
    }

    #[test]
    fn changes_say_the_same_in_both_directions(one in value(), other in value()) {
        let mut there: Vec<_> = changes(&one, &other).into_iter().map(|change| (change.path, turned(change.what))).collect();
        let mut back: Vec<_> = changes(&other, &one).into_iter().map(|change| (change.path, change.what)).collect();
        there.sort_by(|one, other| one.0.cmp(&other.0));
        back.sort_by(|one, other| one.0.cmp(&other.0));
        prop_assert_eq!(there, back);
    }

    #[test]
    fn a_predicted_state_is_the_desired_one(desired in state(), actual in state()) {
        let after = overlaid(&actual, &desired, &Rules::default());
        prop_assert_eq!(differing(&desired, &after, &Rules::default()), Vec::<String>::new());
        let after = overlaid(&actual, &desired, &POWERSHELL);
        prop_assert_eq!(differing(&desired, &after, &POWERSHELL), Vec::<String>::new());
    }

    #[test]
    fn order_of_arrays_does_not_matter(items in prop::collection::vec(value(), 0..8), iteration in 0usize..8) {
        let mut turned = items.clone();
        turned.rotate_left(iteration.min(items.len()));
        prop_assert!(contains(&Value::Array(turned.clone()), &Value::Array(items.clone()), &Rules::default()));
        prop_assert!(contains(&Value::Array(items), &Value::Array(turned), &Rules::default()));
    }

    #[test]
    fn elements_are_paired_exactly_when_they_can_be(wanted in objects(), actual in objects()) {
        let possible = wanted.len() == actual.len() && can_be_paired(&wanted, &actual);
        let (wanted, actual) = (Value::Array(wanted), Value::Array(actual));
        prop_assert_eq!(contains(&actual, &wanted, &Rules::default()), possible);
    }
}

fn turned(what: Alteration) -> Alteration {
    match what {
        Alteration::Added(value) => Alteration::Removed(value),
        Alteration::Removed(value) => Alteration::Added(value),
        Alteration::Replaced { old, new } => Alteration::Replaced { old: new, new: old },
    }
}

/// Comparing 20 000 elements in another order pair by pair would take 10^8 steps and minutes in a debug build.
#[test]
fn big_arrays_are_no_trouble() {
    let object = |id: i64, more: bool| {
        let mut members =
            Object::from_iter([("id".to_owned(), Value::from(id)), ("tags".to_owned(), Value::Array(vec![]))]);
        if more {
            members.insert("size".to_owned(), Value::from(id * 2));
        }
        Value::Object(members)
    };
    let texts =
        |ids: &mut dyn Iterator<Item = i64>| Value::Array(ids.map(|id| Value::from(format!("n{id}"))).collect());
    let forward = texts(&mut (0..20_000));
    let backward = texts(&mut (0..20_000).rev());
    assert!(contains(&backward, &forward, &Rules::default()));
    let wanted = Value::Array((0..20_000).map(|id| object(id, false)).collect());
    let actual = Value::Array((0..20_000).rev().map(|id| object(id, true)).collect());
    assert!(contains(&actual, &wanted, &Rules::default()));
    let other = Value::Array((1..20_001).rev().map(|id| object(id, true)).collect());
    assert!(!contains(&other, &wanted, &Rules::default()));
}
