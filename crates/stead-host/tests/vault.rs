//! Secrets among the parameters, and the vault that keeps them.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use serde_json::json;
use stead_core::document::{DataType, Parameter};
use stead_core::id::SecretName;
use stead_core::text::{Span, Spanned};
use stead_core::value::{Object, Recipe, Seal, Value};
use stead_host::vault::{MemoryVault, Vault, VaultError, take_secrets};

fn parameter(name: &str, data_type: DataType, min_length: Option<u64>) -> Parameter {
    let span = Span::default();
    Parameter {
        name: Spanned::new(name.to_owned(), span),
        data_type: Spanned::new(data_type, span),
        default: None,
        allowed: None,
        min_value: None,
        max_value: None,
        min_length: min_length.map(|length| Spanned::new(length, span)),
        max_length: None,
        description: None,
    }
}

fn object(json: serde_json::Value) -> Object {
    Value::from(json).as_object().unwrap().clone()
}

fn revealed(vault: &MemoryVault, value: &Value) -> serde_json::Value {
    let Value::Sealed(sealed) = value else { panic!("it is not sealed") };
    let Recipe::Secret(name) = sealed.recipe() else { panic!("it is not a secret of the vault") };
    vault.reveal(name).unwrap().expose().to_redacted_json()
}

#[test]
fn secure_parameters_are_taken_and_others_left() {
    let vault = MemoryVault::default();
    let parameters = [
        parameter("plain", DataType::String, None),
        parameter("password", DataType::SecureString, None),
        parameter("login", DataType::SecureObject, None),
        parameter("wrapped", DataType::SecureString, None),
    ];
    let supplied = json!({
        "plain": "a", "password": "hunter22", "login": {"user": "u"}, "wrapped": {"secureString": "inner"}, "unknown": 1
    });
    let taken = take_secrets(&parameters, object(supplied), &vault).unwrap();
    let shown = format!("{taken:?} {vault:?}");
    assert!(!shown.contains("hunter22") && !shown.contains("inner"), "{shown}");
    assert_eq!(taken.get("plain"), Some(&Value::from("a")));
    assert_eq!(taken.get("unknown"), Some(&Value::from(1)));
    assert_eq!(revealed(&vault, taken.get("password").expect("a member")), json!("hunter22"));
    assert_eq!(revealed(&vault, taken.get("login").expect("a member")), json!({"user": "u"}));
    assert_eq!(revealed(&vault, taken.get("wrapped").expect("a member")), json!("inner"));
}

#[test]
fn secrets_within_other_parameters_are_sealed() {
    let vault = MemoryVault::default();
    let parameters = [parameter("list", DataType::Array, None)];
    let list =
        json!([{"secureString": "hunter22"}, {"deep": {"secureObject": {"a": "hunter23"}}}, {"secureString": 1}]);
    let taken = take_secrets(&parameters, object(json!({"list": list})), &vault).unwrap();
    assert!(!format!("{taken:?}").contains("hunter"), "{taken:?}");
    let shown = taken.get("list").expect("a member").to_redacted_json();
    assert_eq!(shown, json!(["<secureValue>", {"deep": "<secureValue>"}, {"secureString": 1}]));
}

#[test]
fn all_findings_are_reported_and_none_shows_a_secret() {
    let vault = MemoryVault::default();
    let parameters =
        [parameter("short", DataType::SecureString, Some(100)), parameter("kind", DataType::SecureObject, None)];
    let findings =
        take_secrets(&parameters, object(json!({"short": "hunter22", "kind": "hunter23"})), &vault).unwrap_err();
    assert_eq!(findings.iter().map(|finding| finding.code.id).collect::<Vec<_>>(), ["E0707", "E0703"]);
    assert!(!format!("{findings:?}").contains("hunter"));
}

#[test]
fn an_unknown_secret_is_an_error() {
    let vault = MemoryVault::default();
    let name = vault.seal("hunter22".into());
    let unused = SecretName(name.0.replace("/0", "/1").into());
    assert_eq!(vault.reveal(&unused).err(), Some(VaultError::Unknown(unused.0.to_string())));
}

#[test]
fn handles_of_another_vault_open_nothing() {
    let (vault, other) = (MemoryVault::default(), MemoryVault::default());
    let (name, others) = (vault.seal("hunter22".into()), other.seal("hunter23".into()));
    assert_ne!(name, others);
    for foreign in [others, SecretName("nope".into()), SecretName("".into())] {
        assert_eq!(vault.reveal(&foreign).err(), Some(VaultError::Foreign(foreign.0.to_string())));
    }
}

#[test]
fn equal_plaintexts_have_the_same_handle() {
    let vault = MemoryVault::default();
    let value = |text: &str| Value::from(serde_json::from_str::<serde_json::Value>(text).unwrap());
    let same = [r#"{"a": 1, "b": [true, null]}"#, r#"{"b": [true, null], "a": 1}"#].map(|text| vault.seal(value(text)));
    assert_eq!(same[0], same[1]);
    let texts =
        [r#""a""#, r#"["a"]"#, r#"{"a": 1}"#, r#"{"a": 1, "b": 1}"#, "1", "1.0", "null", "[]", "{}", r#"[["a"]]"#];
    let names: std::collections::BTreeSet<SecretName> = texts.iter().map(|text| vault.seal(value(text))).collect();
    assert_eq!(names.len(), texts.len());
    assert!(!names.contains(&same[0]));
}

#[test]
fn a_vault_that_was_wiped_opens_nothing_and_gives_out_new_handles() {
    let vault = MemoryVault::default();
    let before = vault.seal("hunter22".into());
    vault.wipe();
    assert_eq!(vault.reveal(&before).err(), Some(VaultError::Unknown(before.0.to_string())));
    let after = vault.seal("hunter23".into());
    assert_ne!(before, after);
    assert_eq!(vault.reveal(&after).unwrap().expose(), &Value::from("hunter23"));
}
