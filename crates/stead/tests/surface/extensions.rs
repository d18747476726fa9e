use std::path::PathBuf;

use super::{Answer, Place, answer};

fn extensions() -> PathBuf {
    stead_testkit::repository().join("corpus/compat/extensions")
}

fn run(place: &Place, arguments: &[&str]) -> Answer {
    answer(place.command(arguments).env("DSC_RESOURCE_PATH", extensions()))
}

fn document(output: &str) -> String {
    format!(
        "$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json\nresources:\n- name: echo\n  \
         type: Microsoft.DSC.Debug/Echo\n  properties:\n    output: \"{output}\"\n    showSecrets: true\n"
    )
}

#[test]
fn resources_are_discovered() {
    let place = Place::new();
    assert!(run(&place, &["resource", "list", "*Discovered*"]).stdout.contains("Test/DiscoveredOne"));
}

#[test]
fn secrets_are_opened_and_never_shown() {
    let place = Place::new();
    let opened = |call: &str| {
        place.write("document.yaml", &document(call));
        let program = run(&place, &["-l", "trace", "config", "get", "-f", "document.yaml"]);
        let person = run(&place, &["check", "document.yaml", "--verbose"]);
        for output in [&program.stdout, &program.stderr, &person.stdout, &person.stderr] {
            for plaintext in ["Hello", "World", "SameSecret", "Duplicate1", "first"] {
                assert!(!output.contains(plaintext), "'{plaintext}' of {call} is in: {output}");
            }
        }
        (program.exit, program.stdout + &program.stderr)
    };
    let known = ["MySecret'", "MySecret', 'VaultB'", "DuplicateSame'", "MultiLine'"];
    for known in known.map(|call| format!("[secret('{call})]")) {
        let (exit, output) = opened(&known);
        assert!(exit == 0 && output.contains("<secureValue>"), "{output}");
    }
    let refused = [
        (
            "[secret('None')]",
            "Secret 'None' not found (store it in the vault under this name, or correct the name) [E0522]",
        ),
        ("[secret('MySecret', 'None')]", "Secret 'MySecret' not found in vault 'None'"),
        ("[secret('DuplicateSecret')]", "Multiple secrets with the same name 'DuplicateSecret'"),
    ];
    for (call, message) in refused {
        let (exit, output) = opened(call);
        assert!(exit == 2 && output.contains(message), "{call}: {output}");
    }
}

#[test]
fn without_extensions_there_is_no_secret() {
    let place = Place::new();
    place.write("document.yaml", &document("[secret('MySecret')]"));
    let answer = place.run(&["config", "get", "-f", "document.yaml"]);
    assert!(answer.exit == 2 && answer.stderr.contains("No extensions supporting secrets was found"));
}

/// `printf hi | base64` and the like would tie the test to more programs than the extension needs.
const IN_BASE64: &str = "\
JHNjaGVtYTogaHR0cHM6Ly9ha2EubXMvZHNjL3NjaGVtYXMvdjMvYnVuZGxlZC9jb25maWcvZG9jdW1lbnQuanNvbgpyZXNvdXJjZXM6Ci0ge25hbWU6
IGVjaG8sIHR5cGU6IE1pY3Jvc29mdC5EU0MuRGVidWcvRWNobywgcHJvcGVydGllczoge291dHB1dDogaW1wb3J0ZWR9fQo=\n";

#[test]
fn files_of_other_formats_are_imported() {
    let place = Place::new();
    place.write("document.import", IN_BASE64);
    let program = run(&place, &["config", "get", "-f", "document.import"]);
    assert!(program.exit == 0 && program.stdout.contains(r#""output":"imported""#), "{}", program.stderr);
    assert_eq!(run(&place, &["check", "document.import"]).exit, 0);
    // Without the extension it is what it looks like: no document.
    assert_eq!(place.run(&["check", "document.import"]).exit, 3);
    place.write("document.import", "?");
    let failed = run(&place, &["check", "document.import"]);
    assert!(failed.exit == 3 && failed.stderr.contains("the extension 'Test/Import' cannot read it"));
}

#[test]
fn output_says_which_part_is_the_document() {
    let place = Place::new();
    let manifest = |output: &str| {
        let text = format!(
            r#"{{"$schema": "https://aka.ms/dsc/schemas/v3/bundled/extension/manifest.json", "type": "Test/Cut",
                "version": "1.0.0", "import": {{"fileExtensions": [".cut"], "executable": "cat",
                "args": [{{"fileArg": ""}}], "output": "{output}"}}}}"#
        );
        place.write("cut.dsc.extension.json", &text);
        place.run(&["config", "get", "-f", "document.cut"])
    };
    place.write("document.cut", &serde_json::json!({ "document": document("cut out") }).to_string());
    let good = manifest("[json(stdout()).document]");
    assert!(good.exit == 0 && good.stdout.contains("cut out"), "{}", good.stderr);
    let bad = manifest("[json(stdout()).nothing]");
    assert!(bad.exit == 2 && bad.stderr.contains("'output' of its manifest"), "{}", bad.stderr);
}
