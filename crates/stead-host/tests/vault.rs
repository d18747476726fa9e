//! Secrets among the parameters, and the vault that keeps them.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use serde_json::json;
use stead_core::document::{DataType, Parameter};
use stead_core::expr::Recipe;
use stead_core::id::SecretName;
use stead_core::text::{Span, Spanned};
use stead_core::value::{Object, Value};
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
    let Recipe::Secret(name) = sealed.recipe() else { panic!("it is no secret of the vault") };
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
fn all_findings_are_told_and_none_shows_a_secret() {
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
    let name = SecretName("nope".into());
    assert_eq!(MemoryVault::default().reveal(&name).err(), Some(VaultError::Unknown("nope".to_owned())));
}
