//! The schemas are about the same things as the readers, and what is printed fits them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};
use stead_core::diag::Diagnostic;
use stead_core::document;
use stead_core::manifest::{self, ManifestForm};
use stead_core::schema::Schema;
use stead_core::text::{Limits, SourceId};

use super::{Place, answer};

fn types() -> Vec<String> {
    let help = Place::new().run(&["schema", "--help"]).stdout;
    let words = help.split_once("[possible values: ").unwrap().1.split_once(']').unwrap().0;
    words.split(',').map(|word| word.trim().to_owned()).collect()
}

fn printed(place: &Place, type_name: &str) -> Json {
    let answer = place.run(&["schema", "-t", type_name]);
    assert_eq!(answer.exit, 0, "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

fn compiled(place: &Place, type_name: &str) -> Schema {
    Schema::compile(printed(place, type_name)).unwrap_or_else(|error| panic!("{type_name}: {error}"))
}

/// Says what of a value does not fit.
fn mismatches(schema: &Schema, value: &Json) -> Vec<String> {
    schema.validate(value).iter().map(|mismatch| format!("{mismatch:?}")).collect()
}

#[test]
fn every_schema_stands_for_itself() {
    let place = Place::new();
    let folder = stead_testkit::repository().join("schemas");
    let files: BTreeSet<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    let types = types();
    assert_eq!(files.len(), types.len() + 1, "a file each, and definitions.json");
    for type_name in types {
        let schema = printed(&place, &type_name);
        Schema::compile(schema.clone()).unwrap_or_else(|error| panic!("{type_name}: {error}"));
        each_reference(&schema, &mut |reference| {
            assert!(
                reference.starts_with('#') && schema.pointer(&reference[1..]).is_some(),
                "{type_name}: {reference}"
            );
        });
        each_definition_is_used(&type_name, &schema);
    }
}

fn each_reference(json: &Json, see: &mut dyn FnMut(&str)) {
    match json {
        Json::Array(items) => items.iter().for_each(|item| each_reference(item, see)),
        Json::Object(members) => members.iter().for_each(|(key, value)| match value {
            Json::String(reference) if key == "$ref" => see(reference),
            other => each_reference(other, see),
        }),
        _ => {}
    }
}

fn each_definition_is_used(type_name: &str, schema: &Json) {
    let mut used = BTreeSet::new();
    each_reference(schema, &mut |reference| {
        used.insert(reference.to_owned());
    });
    for name in schema["$defs"].as_object().into_iter().flatten().map(|(name, _)| format!("#/$defs/{name}")) {
        assert!(used.contains(&name), "{type_name} carries {name} for nothing");
    }
}

#[test]
fn recorded_results_fit() {
    let folder = stead_testkit::repository().join("../shared/reference/dsc/shapes");
    if !folder.is_dir() {
        let reason = format!("there are no recorded results at {}", folder.display());
        return stead_testkit::skip("recorded_results_fit", &reason);
    }
    let place = Place::new();
    for (file, type_name) in [
        ("config-export", "configuration-export-result"),
        ("config-get", "configuration-get-result"),
        ("config-get-restart", "configuration-get-result"),
        ("config-resolve", "resolve-result"),
        ("config-set", "configuration-set-result"),
        ("config-set-restart", "configuration-set-result"),
        ("config-set-whatif", "configuration-set-result"),
        ("config-test", "configuration-test-result"),
        ("resource-export", "configuration"),
        ("resource-get", "get-result"),
        ("resource-set", "set-result"),
        ("resource-test", "test-result"),
    ] {
        let text = fs::read_to_string(folder.join(file).with_extension("json")).unwrap();
        let schema = compiled(&place, type_name);
        for value in serde_json::Deserializer::from_str(&text).into_iter::<Json>() {
            assert_eq!(mismatches(&schema, &value.unwrap()), [""; 0], "{file} as {type_name}");
        }
    }
}

const DOCUMENT: &str = "\
$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json
resources:
- {name: echo, type: Microsoft.DSC.Debug/Echo, properties: {output: hi}}
- name: group
  type: Microsoft.DSC/Group
  properties:
    resources: [{name: inner, type: Microsoft.DSC.Debug/Echo, properties: {output: there}}]
- {name: fails, type: Microsoft.DSC.Debug/Echo, properties: {output: \"[secret('none')]\"}}
outputs:
  said: {type: string, value: \"[reference(resourceId('Microsoft.DSC.Debug/Echo', 'echo')).actualState.output]\"}
";

/// Instances that end in every way.
const EVERYTHING: &str = "\
parameters:
  password: {type: secureString, defaultValue: hidden-from-all}
resources:
- {name: made, type: Stead/File, properties: {path: made, content: \"[parameters('password')]\"}}
- {name: former, type: Stead/File, properties: {path: former, _exist: false}}
- {name: said, type: Stead/Command, properties: {set: echo hi}}
- {name: fails, type: Stead/Command, properties: {test: 'false', set: exit 1}}
- {name: behind, type: Stead/File, properties: {path: behind}, dependsOn: [\"[resourceId('Stead/Command', 'fails')]\"]}
- {name: never, type: Stead/File, condition: \"[equals(1, 2)]\", properties: {path: never}}
- {name: notified, type: Stead/Command, directives: {onChanges: [\"[resourceId('Stead/File', 'made')]\"]}, properties: {set: 'true'}}
- name: group
  type: Microsoft.DSC/Group
  properties:
    resources: [{name: os, type: Microsoft/OSInfo}]
outputs:
  said: {type: string, value: \"[parameters('password')]\"}
";

#[test]
fn what_is_printed_fits() {
    let place = Place::new();
    place.write("document.yaml", DOCUMENT);
    let export = DOCUMENT.split("- {name").next().unwrap().to_owned() + "- {name: os, type: Microsoft/OSInfo}\n";
    place.write("export.yaml", &export);
    let echo = ["-r", "Microsoft.DSC.Debug/Echo", "-i", "output: hi"];
    let resource = |operation: &'static str| [&["resource", operation][..], &echo].concat();
    let calls: Vec<(Vec<&str>, &str)> = vec![
        (vec!["config", "get", "-f", "document.yaml"], "configuration-get-result"),
        (vec!["config", "test", "-f", "document.yaml"], "configuration-test-result"),
        (vec!["config", "set", "-f", "document.yaml"], "configuration-set-result"),
        (vec!["config", "set", "-w", "-f", "document.yaml"], "configuration-set-result"),
        (vec!["config", "export", "-f", "export.yaml"], "configuration-export-result"),
        (resource("get"), "get-result"),
        (resource("set"), "set-result"),
        (resource("test"), "test-result"),
        (vec!["resource", "export", "-r", "Microsoft/OSInfo"], "configuration"),
        (vec!["resource", "list"], "dsc-resource"),
        (vec!["function", "list"], "function-definition"),
        (vec!["plan", "run.yaml", "-o", "json", "--timings"], "run-report"),
        (vec!["apply", "run.yaml", "-o", "json", "--reconcile", "none"], "run-report"),
        (vec!["check", "run.yaml", "-o", "json", "-v"], "run-report"),
    ];
    place.write("run.yaml", EVERYTHING);
    place.write("former", "x");
    for (arguments, type_name) in calls {
        let resources = stead_testkit::repository().join("corpus/compat/resources");
        let output = answer(place.command(&arguments).env("DSC_RESOURCE_PATH", resources)).stdout;
        let schema = compiled(&place, type_name);
        let values: Vec<Json> = serde_json::Deserializer::from_str(&output).into_iter().map(Result::unwrap).collect();
        assert!(!values.is_empty(), "{arguments:?} printed nothing");
        for value in values {
            assert_eq!(mismatches(&schema, &value), [""; 0], "{arguments:?} as {type_name}: {value}");
        }
    }
    for verb in ["plan", "check", "apply"] {
        let lines = answer(&mut place.command(&[verb, "run.yaml", "-o", "ndjson"])).stdout;
        let mut report: Json = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert_eq!(report.as_object_mut().unwrap().remove("event"), Some(Json::from("report")), "{lines}");
        assert_eq!(mismatches(&compiled(&place, "run-report"), &report), [""; 0], "{verb}: {report}");
    }
}

#[test]
fn documents_and_manifests_of_the_repository_fit() {
    let place = Place::new();
    let root = stead_testkit::repository();
    let mut seen = 0;
    for folder in ["corpus/compat/resources", "corpus/compat/extensions", "corpus/compat/extensions/discovered"] {
        for file in fs::read_dir(root.join(folder)).unwrap().map(|file| file.unwrap().path()) {
            let Some(form) = ManifestForm::of(file.file_name().unwrap().to_str().unwrap()) else { continue };
            let text = fs::read_to_string(&file).unwrap();
            let node = stead_core::text::read(SourceId::default(), &text, &Limits::default()).0.unwrap();
            let found = mismatches(&compiled(&place, manifest_type(form)), &manifest::plain(&node));
            assert_eq!(found, [""; 0], "{}", file.display());
            seen += 1;
        }
    }
    assert!(seen > 5);
}

fn manifest_type(form: ManifestForm) -> &'static str {
    match form {
        ManifestForm::Resource => "resource-manifest",
        ManifestForm::Adapted => "adapted-dsc-resource-manifest",
        ManifestForm::Extension => "extension-manifest",
        ManifestForm::List => "manifest-list",
    }
}

/// A key that nothing is near to, so that the reader says which keys there are.
const NO_KEY: &str = "qqqqqqqqqqqqqqqq";

/// The keys that the reader says there are, in the finding about the key that is none.
fn known_keys(findings: &[Diagnostic]) -> BTreeSet<String> {
    let finding = findings.iter().find(|finding| finding.message.contains(NO_KEY)).expect("a finding about the key");
    let help = finding.help.as_deref().unwrap_or_default();
    let keys = help.rsplit_once(" are ").unwrap_or_else(|| panic!("no keys in: {help}")).1;
    keys.split(", ").map(str::to_owned).collect()
}

/// The keys of the schema at a place; alternatives and references are looked through.
fn schema_keys(root: &Json, at: &Json) -> BTreeSet<String> {
    let mut keys: BTreeSet<String> =
        at["properties"].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    if let Some(reference) = at["$ref"].as_str() {
        keys.extend(schema_keys(root, root.pointer(&reference[1..]).unwrap()));
    }
    for word in ["anyOf", "oneOf"] {
        at[word].as_array().into_iter().flatten().for_each(|each| keys.extend(schema_keys(root, each)));
    }
    keys
}

/// Follows keys through properties, `[]` into elements and `*` into any member.
fn step<'a>(root: &'a Json, at: &'a Json, step: &str) -> Option<&'a Json> {
    if let Some(reference) = at["$ref"].as_str() {
        return self::step(root, root.pointer(&reference[1..])?, step);
    }
    let here = match step {
        "[]" => at.get("items"),
        "*" => at.get("additionalProperties").filter(|next| next.is_object()),
        key => at.get("properties").and_then(|properties| properties.get(key)),
    };
    here.or_else(|| {
        let alternatives = ["anyOf", "oneOf"].into_iter().filter_map(|word| at[word].as_array()).flatten();
        alternatives.into_iter().find_map(|each| self::step(root, each, step))
    })
}

fn check_keys(place: &Place, type_name: &str, path: &str, findings: &[Diagnostic]) {
    let root = printed(place, type_name);
    let at = path.split('/').filter(|step| !step.is_empty()).try_fold(&root, |at, step| self::step(&root, at, step));
    let at = at.unwrap_or_else(|| panic!("{type_name} has no {path}"));
    assert_eq!(schema_keys(&root, at), known_keys(findings), "the keys of {type_name}{path}");
}

#[test]
fn the_schema_of_documents_has_the_keys_of_the_reader() {
    let place = Place::new();
    for (path, text) in [
        ("", format!("{NO_KEY}: 1")),
        ("/directives", format!("directives: {{{NO_KEY}: 1}}")),
        ("/parameters/*", format!("parameters: {{a: {{type: int, {NO_KEY}: 1}}}}")),
        ("/outputs/*", format!("outputs: {{a: {{type: int, value: 1, {NO_KEY}: 1}}}}")),
        ("/functions/[]", format!("functions: [{{namespace: a, members: {{}}, {NO_KEY}: 1}}]")),
        ("/functions/[]/members/*", format!("functions: [{{namespace: a, members: {{b: {{{NO_KEY}: 1}}}}}}]")),
        (
            "/functions/[]/members/*/parameters/[]",
            format!("functions: [{{namespace: a, members: {{b: {{parameters: [{{{NO_KEY}: 1}}]}}}}}}]"),
        ),
        (
            "/functions/[]/members/*/output",
            format!("functions: [{{namespace: a, members: {{b: {{output: {{{NO_KEY}: 1}}}}}}}}]"),
        ),
        ("/resources/[]", format!("resources: [{{type: A/B, {NO_KEY}: 1}}]")),
        ("/resources/[]/directives", format!("resources: [{{type: A/B, directives: {{{NO_KEY}: 1}}}}]")),
        ("/resources/[]/copy", format!("resources: [{{type: A/B, copy: {{name: a, count: 1, {NO_KEY}: 1}}}}]")),
    ] {
        let (_, findings) = document::parse(SourceId::default(), &text, &Limits::default());
        check_keys(&place, "configuration", path, &findings);
        if let Some(path) = path.strip_prefix("/resources/[]") {
            check_keys(&place, "resource", path, &findings);
        }
    }
}

#[test]
fn the_schemas_of_manifests_have_the_keys_of_the_reader() {
    let place = Place::new();
    let no_key = json!({ NO_KEY: 1 });
    let argument = |key: &str| json!({ "executable": "x", "args": [{ key: "x", NO_KEY: 1 }] });
    let within = |path: &str, inner: Json| {
        let keys = path.split('/').filter(|key| !key.is_empty() && *key != "args" && *key != "[]").rev();
        keys.fold(inner, |inner, key| json!({ key: inner }))
    };
    for path in ["", "/get", "/set", "/whatIf", "/test", "/delete", "/export", "/resolve", "/validate", "/adapter"] {
        check_manifest(&place, ManifestForm::Resource, path, &within(path, no_key.clone()));
    }
    for path in ["/schema/command", "/adapter/list"] {
        check_manifest(&place, ManifestForm::Resource, path, &within(path, no_key.clone()));
    }
    check_manifest(&place, ManifestForm::Resource, "/schema", &json!({"schema": {"embedded": {}, NO_KEY: 1}}));
    for path in ["", "/discover", "/import", "/secret"] {
        check_manifest(&place, ManifestForm::Extension, path, &within(path, no_key.clone()));
    }
    check_manifest(&place, ManifestForm::Adapted, "", &no_key);
    check_manifest(&place, ManifestForm::List, "", &no_key);
    // Arguments: each form by itself, since a schema says which keys go together.
    for (form, path, key) in [
        (ManifestForm::Resource, "/set/args/[]", "jsonInputArg"),
        (ManifestForm::Resource, "/set/args/[]", "resourcePathArg"),
        (ManifestForm::Resource, "/set/args/[]", "whatIfArg"),
        (ManifestForm::Extension, "/discover/args/[]", "extensionsArg"),
        (ManifestForm::Extension, "/import/args/[]", "fileArg"),
        (ManifestForm::Extension, "/secret/args/[]", "vaultArg"),
    ] {
        let node = manifest::unplaced(&within(path, argument(key)));
        let known = known_keys(&manifest::parse(form, &node, Path::new("x")).1);
        let root = printed(&place, manifest_type(form));
        let at = path
            .split('/')
            .filter(|step| !step.is_empty())
            .fold(&root, |at, step| self::step(&root, at, step).unwrap());
        let forms = at["anyOf"].as_array().unwrap().iter().map(|each| schema_keys(&root, each));
        assert!(forms.into_iter().any(|keys| keys == known), "{key}: {known:?}");
    }
}

fn check_manifest(place: &Place, form: ManifestForm, path: &str, manifest: &Json) {
    let (_, findings) = manifest::parse(form, &manifest::unplaced(manifest), Path::new("x"));
    check_keys(place, manifest_type(form), path, &findings);
}

#[test]
fn built_in_resources_have_schemas() {
    let place = Place::new();
    let listed = place.run(&["resource", "list"]).stdout;
    let mut seen = 0;
    for line in listed.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()) {
        let type_name = line["type"].as_str().unwrap();
        let answer = place.run(&["resource", "schema", "-r", type_name]);
        assert_eq!(answer.exit, 0, "{type_name}: {}", answer.stderr);
        Schema::compile(serde_json::from_str(&answer.stdout).unwrap()).unwrap();
        seen += 1;
    }
    assert!(seen > 5);
}

#[test]
fn types_that_are_none_are_refused() {
    let answer = Place::new().run(&["schema", "-t", "configuratoin"]);
    assert!(answer.exit == 2 && answer.stderr.contains("'configuration'"), "{}", answer.stderr);
}
