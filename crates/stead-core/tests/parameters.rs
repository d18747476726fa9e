//! Parameters that callers may supply.

use serde_json::json;
use stead_core::document::{DataType, Parameter};
use stead_core::parameters::{Finding, check, supplied, unknown};
use stead_core::text::{Kind, Node, Span, Spanned};
use stead_core::value::Value;

fn spanned<T>(value: T) -> Spanned<T> {
    Spanned::new(value, Span::default())
}

fn parameter(name: &str, data_type: DataType) -> Parameter {
    Parameter {
        name: spanned(name.to_owned()),
        data_type: spanned(data_type),
        default: None,
        allowed: None,
        min_value: None,
        max_value: None,
        min_length: None,
        max_length: None,
        description: None,
    }
}

fn value(json: serde_json::Value) -> Value {
    Value::from(json)
}

fn id(result: Result<(), Finding>) -> &'static str {
    result.map_or_else(|finding| finding.code.id, |()| "")
}

#[test]
fn both_forms_are_understood() {
    let plain = supplied(value(json!({"parameters": {"a": 1, "b": {"value": 2}}}))).unwrap();
    assert_eq!(plain.get("b"), Some(&value(json!({"value": 2}))), "not all have a value of their own");
    let arm =
        supplied(value(json!({"$schema": "x", "parameters": {"a": {"value": 1}, "b": {"value": null}}}))).unwrap();
    assert_eq!(Value::Object(arm), value(json!({"a": 1, "b": null})));
    assert_eq!(supplied(value(json!({"parameters": {}}))).unwrap().len(), 0);
    for wrong in [json!(null), json!([]), json!({"a": 1}), json!({"parameters": [1]}), json!({"parameters": null})] {
        assert_eq!(supplied(value(wrong.clone())).unwrap_err().code.id, "E0701", "{wrong}");
    }
}

#[test]
fn unknown_names_are_found_with_a_hint() {
    let known = [parameter("userName", DataType::String), parameter("port", DataType::Int)];
    let supplied = supplied(value(json!({"parameters": {"username": "a", "port": 1, "other": 2}}))).unwrap();
    let helps: Vec<_> = unknown(&known, &supplied.into()).into_iter().map(|finding| finding.help.unwrap()).collect();
    assert_eq!(helps, ["did you mean 'userName'?", "it has: userName, port"]);
}

#[test]
fn values_are_of_their_type_and_nothing_is_converted() {
    let samples =
        [json!("a"), json!(1), json!(true), json!({"a": 1}), json!([1]), json!(1.5), json!(null), json!(u64::MAX)];
    let fitting = [
        (DataType::String, 0),
        (DataType::SecureString, 0),
        (DataType::Int, 1),
        (DataType::Bool, 2),
        (DataType::Object, 3),
        (DataType::SecureObject, 3),
        (DataType::Array, 4),
    ];
    for (data_type, fits) in fitting {
        for (at, sample) in samples.iter().enumerate() {
            let expected = if at == fits { "" } else { "E0703" };
            assert_eq!(
                id(check(&parameter("p", data_type), &value(sample.clone()))),
                expected,
                "{data_type:?} {sample}"
            );
        }
    }
}

#[test]
fn bounds_include_themselves() {
    let mut int = parameter("p", DataType::Int);
    (int.min_value, int.max_value) = (Some(spanned(-1)), Some(spanned(3)));
    let of_int = [-2, -1, 3, 4].map(|each| id(check(&int, &Value::from(each))));
    assert_eq!(of_int, ["E0705", "", "", "E0706"]);

    let mut text = parameter("p", DataType::String);
    (text.min_length, text.max_length) = (Some(spanned(2)), Some(spanned(3)));
    let of_text = ["a", "ä", "abc", "äö"].map(|each| id(check(&text, &Value::from(each))));
    assert_eq!(of_text, ["E0707", "", "", "E0708"], "lengths of text are bytes");

    let mut array = parameter("p", DataType::Array);
    (array.min_length, array.max_length) = (Some(spanned(1)), Some(spanned(1)));
    let of_array = [json!([]), json!(["abc"]), json!([1, 2])].map(|each| id(check(&array, &value(each))));
    assert_eq!(of_array, ["E0707", "", "E0708"]);
}

#[test]
fn allowed_values_are_compared_exactly() {
    let node = |text: &str| Node { span: Span::default(), kind: Kind::String(text.into()) };
    let mut text = parameter("p", DataType::String);
    text.allowed = Some(spanned(vec![node("one"), node("two")]));
    assert_eq!(["one", "two", "One", ""].map(|each| id(check(&text, &Value::from(each)))), ["", "", "E0704", "E0704"]);
    assert_eq!(check(&text, &Value::from("x")).unwrap_err().help.unwrap(), "allowed are \"one\", \"two\"");
}

#[test]
fn findings_about_secrets_do_not_show_them() {
    let node = Node { span: Span::default(), kind: Kind::String("allowed-secret".into()) };
    let bounded = |set: &dyn Fn(&mut Parameter)| {
        let mut parameter = parameter("p", DataType::SecureString);
        set(&mut parameter);
        parameter
    };
    let cases = [
        bounded(&|parameter| parameter.allowed = Some(spanned(vec![node.clone()]))),
        bounded(&|parameter| parameter.min_length = Some(spanned(100))),
        bounded(&|parameter| parameter.max_length = Some(spanned(1))),
    ];
    for parameter in cases {
        let shown = format!("{:?}", check(&parameter, &Value::from("hunter22")).unwrap_err());
        assert!(!shown.contains("hunter22") && !shown.contains("allowed-secret") && !shown.contains(" 8"), "{shown}");
    }
}
