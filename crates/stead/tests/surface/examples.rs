//! The examples of the project have tests, which hold.

use std::process::Command;

use stead_testkit::repository;

#[test]
fn the_tests_of_the_examples_pass() {
    let output = Command::new(env!("CARGO_BIN_EXE_stead"))
        .args(["test", "examples", "--output", "json"])
        .current_dir(repository())
        .output()
        .unwrap();
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let tests = results["tests"].as_array().unwrap();
    let failed: Vec<_> = tests.iter().filter(|test| test["result"] != "passed").collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(output.status.success() && tests.len() >= 9, "{}", tests.len());
}
