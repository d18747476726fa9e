//! Values of manifests.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use stead_powershell_reader::manifest::{self, Context, Value};

#[test]
fn every_value_is_what_powershell_makes_of_it() {
    let Some(rows) = super::recorded("every_value_is_what_powershell_makes_of_it", "expressions.jsonl") else { return };
    let mut deviations = super::deviations("manifest");
    let (mut wrong, mut count, deviating) = (String::new(), 0, deviations.len());
    let environment = |name: &str| (name == "M_TEST").then(|| "from the environment".to_owned());
    for row in rows {
        count += 1;
        let text = row["text"].as_str().unwrap();
        let context = Context { folder: "${MODULE}", environment: &environment, variables: None };
        let read = manifest::read(&format!("@{{\nValue = {text}\n}}"), &context);
        let expected = row["manifest"].as_bool().unwrap().then(|| row["manifestValue"].clone());
        let found = read.as_ref().ok().map(|table| shown(table.get("Value").unwrap()));
        if found != expected && deviations.remove(text).is_none() {
            writeln!(wrong, "{text:?}\n  expected {expected:?}\n  found    {found:?} {read:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(deviations.is_empty(), "these do not deviate: {deviations:?}");
    eprintln!("{count} values, {deviating} of them deviate");
}

/// A value in the form of the recordings.
fn shown(value: &Value) -> Json {
    let typed = |name: &str| json!({ "$type": name, "text": value.to_text() });
    match value {
        Value::Null => Json::Null,
        Value::Boolean(value) => json!(value),
        Value::Integer { value, bits: 32 | 64, signed: true } => json!(i64::try_from(*value).unwrap()),
        Value::Integer { bits, signed, .. } => match (bits, signed) {
            (8, true) => typed("System.SByte"),
            (8, false) => typed("System.Byte"),
            (bits, signed) => typed(&format!("System.{}Int{bits}", if *signed { "" } else { "U" })),
        },
        Value::Decimal(..) => typed("System.Decimal"),
        Value::Double(value) if value.is_infinite() => json!("Infinity"),
        Value::Double(value) => json!(value),
        Value::Big(_) => typed("System.Numerics.BigInteger"),
        Value::Character(_) => typed("System.Char"),
        Value::Text(text) => json!(text),
        Value::Date(_) => typed("System.DateTime"),
        Value::Type(_) | Value::Opaque { .. } => typed("System.RuntimeType"),
        Value::List(values) => values.iter().map(shown).collect(),
        Value::Table(entries) => entries.iter().map(|(key, value)| (key.to_text(), shown(value))).collect(),
    }
}
