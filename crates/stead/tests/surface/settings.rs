use super::{Place, answer};

/// Something that traces at every level: a resource that is not there is an error, and the rest says how it was looked
/// for.
const ASK: [&str; 4] = ["resource", "get", "-r", "No/Such"];

fn manifest(type_name: &str, more: &str) -> String {
    format!(
        r#"{{"$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json", "type": "{type_name}",
            "version": "1.0.0", "get": {{"executable": "true"}}, "schema": {{"embedded": {{}}}}{more}}}"#
    )
}

#[test]
fn the_level_comes_from_the_argument_then_the_environment_then_the_file() {
    let place = Place::new();
    place.write("dsc_default.settings.json", r#"{"1": {"tracing": {"level": "ERROR", "format": "Json"}}}"#);
    let level = |arguments: &[&str], environment: Option<&str>| {
        let mut command = place.command(arguments);
        // Programs are handed the level that counts.
        place.write("t.dsc.resource.json", &manifest("Test/Level", "").replace(r#""true""#, r#""./level.sh""#));
        let script = place.write("level.sh", "#!/bin/sh\necho \"{\\\"level\\\": \\\"$DSC_TRACE_LEVEL\\\"}\"\n");
        std::fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        environment.map(|level| command.env("DSC_TRACE_LEVEL", level));
        let answer = answer(&mut command);
        assert_eq!(answer.exit, 0, "{}", answer.stderr);
        answer.stdout.split('"').nth(5).unwrap().to_owned()
    };
    let get = ["resource", "get", "-r", "Test/Level"];
    assert_eq!(level(&get, None), "error");
    assert_eq!(level(&get, Some("INFO")), "info");
    assert_eq!(level(&[&["-l", "debug"][..], &get].concat(), Some("INFO")), "debug");
    assert_eq!(level(&[&["--ignore-settings-file"][..], &get].concat(), None), "warn");
    place.write("dsc.settings.json", r#"{"tracing": {"level": "TRACE"}}"#);
    assert_eq!(level(&get, None), "trace");
    place.write("dsc.settings.json", r#"{"tracing": {"level": "TRACE", "allowOverride": false}}"#);
    assert_eq!(level(&get, Some("INFO")), "trace");
}

#[test]
fn the_format_comes_from_the_file() {
    let place = Place::new();
    place.write("dsc.settings.json", r#"{"tracing": {"format": "Json"}}"#);
    let output = place.run(&ASK).stderr;
    assert!(output.starts_with('{') && output.contains(r#""level":"ERROR""#), "{output}");
    let output = place.run(&["-t", "plaintext", ASK[0], ASK[1], ASK[2], ASK[3]]).stderr;
    assert!(output.contains(" ERROR ") && !output.starts_with('{'), "{output}");
}

#[test]
fn what_is_ignored_is_reported() {
    let place = Place::new();
    place.write("dsc.settings.json", r#"{"tracng": {"level": "ERROR"}}"#);
    let output = place.run(&ASK).stderr;
    assert!(
        output.contains("WARN Ignoring the settings file") && output.contains("unknown setting 'tracng'"),
        "{output}"
    );
    let output = place.run(&["--ignore-settings-file", ASK[0], ASK[1], ASK[2], ASK[3]]).stderr;
    assert!(output.contains("WARN Ignoring settings file") && !output.contains("tracng"), "{output}");
    let output = answer(place.command(&ASK).env("DSC_TRACE_LEVEL", "loud")).stderr;
    assert!(output.contains("DSC_TRACE_LEVEL is 'loud', but must be one of ERROR, WARN"), "{output}");
}

#[test]
fn resources_are_looked_for_where_the_file_says() {
    let place = Place::new();
    place.write("elsewhere/x.dsc.resource.json", &manifest("Test/Elsewhere", ""));
    let list = |place: &Place| place.run(&["resource", "list", "Test/*"]).stdout;
    assert_eq!(list(&place), "");
    let elsewhere = place.path().join("elsewhere");
    let setting = format!(r#"{{"resourcePath": {{"directories": ["{}"]}}}}"#, elsewhere.display());
    place.write("dsc.settings.json", &setting);
    assert!(list(&place).contains("Test/Elsewhere"));
    assert_eq!(answer(place.command(&["resource", "list", "Test/*"]).env("DSC_RESOURCE_PATH", "/nowhere")).stdout, "");
}

#[test]
fn problems_of_the_search_are_reported_to_programs() {
    let place = Place::new();
    place.write("bad.dsc.resource.json", r#"{"type": "Test/Bad", "verson": "1.0.0"}"#);
    let answer = place.run(&["resource", "list", "Test/*"]);
    assert!(answer.exit == 0 && answer.stderr.contains(" WARN ") && answer.stderr.contains("bad.dsc.resource.json"));
}

#[test]
fn users_see_problems_that_may_explain_an_unknown_type() {
    let place = Place::new();
    place.write("bad.dsc.resource.json", r#"{"type": "Test/Bad", "verson": "1.0.0"}"#);
    let document = |name: &str| {
        let text = format!(
            "$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json\n\
             resources:\n- {{name: a, type: {name}, properties: {{}}}}\n"
        );
        place.write("document.yaml", &text);
        place.run(&["lint", "document.yaml"])
    };
    let answer = document("Test/Bad");
    assert!(answer.exit == 3 && answer.stderr.contains("warning: ") && answer.stderr.contains("bad.dsc.resource.json"));
    assert!(!document("Test/Other").stderr.contains("bad.dsc.resource.json"));
}
