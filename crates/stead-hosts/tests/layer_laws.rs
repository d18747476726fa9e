//! Laws of layers, over random ones.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use proptest::prelude::*;
use stead_core::text::{Limits, Source, Sources, read};
use stead_core::value::{Object, Value};
use stead_hosts::{Layered, ParameterLayers};

/// A layer: the role that it is for, and the parameters, each a name and a value.
type Written = (Option<&'static str>, Vec<(String, serde_json::Value)>);

fn layered(layers: &[Written], merge: &str, role: &str) -> Layered {
    let layer = |(condition, parameters): &Written| {
        let parameters: serde_json::Map<String, serde_json::Value> = parameters.iter().cloned().collect();
        let mut layer = serde_json::json!({ "parameters": parameters });
        if let Some(role) = condition {
            layer["where"] = format!("role={role}").into();
        }
        layer
    };
    // A way to merge what no layer has is refused.
    let is_stated = |name: &&&str| {
        layers.iter().any(|(_, parameters)| parameters.iter().any(|(known, _)| known.as_str() == **name))
    };
    let merges: serde_json::Map<String, serde_json::Value> =
        NAMES.iter().filter(is_stated).map(|name| ((*name).to_owned(), merge.into())).collect();
    let layers: Vec<serde_json::Value> = layers.iter().map(layer).collect();
    let text = serde_json::json!({ "layers": layers, "merge": merges }).to_string();
    let mut sources = Sources::default();
    let source = sources.add(Source::new("layers.json", &text));
    let tree = read(source, &text, &Limits::default()).0.unwrap();
    let layers = ParameterLayers::read(&tree, &sources).unwrap();
    layers.resolve(&|label| (label == "role").then_some(role)).unwrap()
}

const NAMES: [&str; 3] = ["a", "b", "c"];
const ROLES: [&str; 2] = ["web", "db"];

fn object() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![any::<u8>().prop_map(Into::into), "[xy]".prop_map(Into::into)];
    let value = leaf.prop_recursive(2, 8, 3, |inner| {
        prop::collection::btree_map("[mno]", inner, 0..3).prop_map(|map| serde_json::json!(map))
    });
    prop::collection::btree_map("[mno]", value, 0..3).prop_map(|map| serde_json::json!(map))
}

fn written() -> impl Strategy<Value = Written> {
    let parameters =
        prop::collection::btree_map(prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned), object(), 0..3);
    let role = prop::option::of(prop::sample::select(ROLES.to_vec()));
    (role, parameters.prop_map(|map| map.into_iter().collect()))
}

fn sorted(values: &Object) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        values.iter().map(|(name, value)| (name.clone(), sorted_text(value))).collect();
    all.sort();
    all
}

/// Members in the order of their names, as their order counts for nothing.
fn sorted_text(value: &Value) -> String {
    match value {
        Value::Object(members) => format!("{:?}", sorted(members)),
        other => format!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(stead_testkit::cases("STEAD_LAYERS", 256)))]

    #[test]
    fn the_last_layer_of_a_machine_counts(layers in prop::collection::vec(written(), 0..6), role in prop::sample::select(ROLES.to_vec())) {
        let found = layered(&layers, "last", role);
        for name in NAMES {
            let is_for = |layer: &&Written| layer.0.is_none_or(|wanted| wanted == role);
            let mut stated = layers.iter().filter(is_for).flat_map(|layer| &layer.1).filter(|(known, _)| known == name);
            let last = stated.next_back().map(|(_, value)| value.clone());
            prop_assert_eq!(found.values.get(name).map(Value::to_redacted_json), last);
        }
    }

    #[test]
    fn the_order_of_layers_with_other_parameters_does_not_matter(
        values in prop::collection::vec((prop::option::of(prop::sample::select(ROLES.to_vec())), object()), 3),
        order in Just([0, 1, 2]).prop_shuffle(),
        merge in prop::sample::select(vec!["last", "hash", "deep"]),
        role in prop::sample::select(ROLES.to_vec()),
    ) {
        let layers: Vec<Written> =
            values.iter().zip(NAMES).map(|((role, value), name)| (*role, vec![(name.to_owned(), value.clone())])).collect();
        let shuffled: Vec<Written> = order.iter().map(|at| layers[*at].clone()).collect();
        prop_assert_eq!(sorted(&layered(&layers, merge, role).values), sorted(&layered(&shuffled, merge, role).values));
    }

    #[test]
    fn layers_of_other_machines_change_nothing(
        layers in prop::collection::vec(written(), 0..6),
        merge in prop::sample::select(vec!["last", "hash", "deep"]),
    ) {
        let own: Vec<Written> = layers.iter().filter(|layer| layer.0 != Some("db")).cloned().collect();
        prop_assert_eq!(sorted(&layered(&layers, merge, "web").values), sorted(&layered(&own, merge, "web").values));
    }

    #[test]
    fn merged_members_are_those_of_all_layers(layers in prop::collection::vec(object(), 1..5)) {
        let written: Vec<Written> = layers.iter().map(|value| (None, vec![("a".to_owned(), value.clone())])).collect();
        for merge in ["hash", "deep"] {
            let found = layered(&written, merge, "web");
            let members = found.values.get("a").and_then(Value::as_object).unwrap();
            let known: std::collections::BTreeSet<&String> = layers.iter().flat_map(|layer| layer.as_object().unwrap().keys()).collect();
            prop_assert_eq!(members.keys().collect::<std::collections::BTreeSet<_>>(), known);
            // Once more the same changes nothing.
            let twice: Vec<Written> = written.iter().chain(written.last()).cloned().collect();
            prop_assert_eq!(sorted(&layered(&twice, merge, "web").values), sorted(&found.values));
        }
    }
}
