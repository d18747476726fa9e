//! Generated modules and the programs that read them: Ruby, Puppet, and what modules are checked with. What is not installed is
//! skipped.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value as Json, json};
use stead_puppet::{
    Dialect, GeneratedFiles, Module, ModuleOptions, ResourceToGenerate, Staleness, generate, stale_files,
};
use stead_testkit::{Case, repository, skip};

/// Returns whether a program is there; where it is not, the test is reported as skipped.
fn has(test: &str, program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    if found.is_err() {
        skip(test, &format!("{program} is not installed"));
    }
    found.is_ok()
}

/// The input of a case.
struct Input {
    resources: Vec<ResourceToGenerate>,
    options: ModuleOptions,
}

/// All cases that are modules, by name.
fn inputs() -> BTreeMap<String, Input> {
    let folder = repository().join("corpus/puppet");
    let mut inputs = BTreeMap::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_str().unwrap().replace('-', "_");
        let case = Case::parse(&name, &fs::read_to_string(&path).unwrap());
        if !case.has("resources.json") || case.has("error") {
            continue;
        }
        let read = |section| serde_json::from_str(case.section(section)).unwrap_or(Json::Null);
        let resources = support::resources(&read("resources.json"));
        let options = ModuleOptions { name: name.clone(), ..support::options(&read("options.json")) };
        inputs.insert(name, Input { resources, options });
    }
    assert!(inputs.len() > 10, "the cases are there");
    inputs
}

/// The modules of all cases, by name.
fn modules() -> BTreeMap<String, Module> {
    let module = |input: &Input| generate(&input.resources, &input.options).unwrap();
    inputs().iter().map(|(name, input)| (name.clone(), module(input))).collect()
}

/// One module of the resources of all cases with the same dialect.
fn all_in_one(dialect: Dialect) -> Module {
    let mut resources: BTreeMap<String, ResourceToGenerate> = BTreeMap::new();
    let inputs = inputs().into_values().filter(|input| input.options.dialect == dialect);
    for resource in inputs.flat_map(|input| input.resources) {
        resources.insert(resource.type_name.to_lowercase(), resource);
    }
    let resources: Vec<_> = resources.into_values().collect();
    let options = json!({ "dialect": if dialect == Dialect::DscCompatible { "dsc" } else { "native" } });
    generate(&resources, &support::options(&options)).unwrap()
}

fn write(files: &GeneratedFiles, folder: &Path) {
    for (path, content) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

#[track_caller]
fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    output
}

/// All modules in one folder, and the paths of their files that end so.
fn on_disk(ending: &str) -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (name, module) in modules() {
        write(&module.files, &folder.path().join(&name));
        let ours = module.files.keys().filter(|path| path.ends_with(ending));
        paths.extend(ours.map(|path| folder.path().join(&name).join(path).display().to_string()));
    }
    (folder, paths)
}

#[test]
fn ruby_reads_every_file() {
    if !has("ruby_reads_every_file", "ruby") {
        return;
    }
    let (_folder, paths) = on_disk(".rb");
    let check = "ARGV.each { |path| RubyVM::InstructionSequence.compile_file(path) }";
    let output = succeed(Command::new("ruby").args(["-w", "-e", check]).args(paths));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "warnings");
}

/// Registers every type, and prints what the Resource API has of each attribute.
const REGISTER: &str = r"
require 'json'
require 'puppet'
require 'puppet/resource_api'
Puppet.initialize_settings(['--confdir', ARGV[0], '--vardir', ARGV[0], '--strict', 'error'])
found = {}
ARGV[1..].each do |path|
  name = File.basename(path, '.rb')
  load path
  type = Puppet::Type.type(name.to_sym)
  definition = type.type_definition.definition
  found[path] = {
    docs: definition[:desc],
    attributes: definition[:attributes].map { |key, value| [key, value.transform_values { |v| v.is_a?(Symbol) ? v.to_s : v }] }.to_h,
    stead: definition[:stead],
  }
  Puppet::Type.rmtype(name.to_sym)
end
puts JSON.generate(found)
";

#[test]
fn the_resource_api_accepts_every_type() {
    if !has("the_resource_api_accepts_every_type", "puppet") {
        return;
    }
    let (folder, paths) = on_disk(".rb");
    let types: Vec<_> = paths.iter().filter(|path| path.contains("/lib/puppet/type/")).collect();
    let output = succeed(Command::new("ruby").args(["-e", REGISTER]).arg(folder.path()).args(&types));
    let found: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found.as_object().unwrap().len(), types.len());
    let hostile = types.iter().find(|path| path.ends_with("stead_example_hostile.rb")).unwrap();
    assert_eq!(
        found[hostile.as_str()]["docs"],
        "It's #{`id`} \\ \" $x\n`@`example run\n=begin\n__END__\nabc end'",
        "text of others is text"
    );
    assert_eq!(found[hostile.as_str()]["attributes"]["it_s_x"]["property"], "it's #{x}");
}

#[test]
fn puppet_reads_every_example() {
    if !has("puppet_reads_every_example", "puppet") {
        return;
    }
    let (folder, paths) = on_disk(".pp");
    // The support module is not needed: manifests are only read.
    succeed(Command::new("puppet").args(["parser", "validate"]).args(settings(folder.path())).args(paths));
}

#[test]
fn puppet_generates_and_describes_types() {
    if !has("puppet_generates_and_describes_types", "puppet") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let modules = modules();
    let environment = folder.path().join("environments/production");
    write(&support_module(), &environment.join("modules/steadlib"));
    write(&modules["file"].files, &environment.join("modules/file"));
    write(&modules["file_dsc"].files, &environment.join("modules/file_dsc"));
    let environments = folder.path().join("environments").display().to_string();
    let mut command = Command::new("puppet");
    command.args(["generate", "types", "--environmentpath", &environments, "--environment", "production"]);
    succeed(command.args(settings(folder.path())));
    let types = environment.join(".resource_types");
    for name in ["stead_file", "dsc_file"] {
        let text = fs::read_to_string(types.join(format!("{name}.pp"))).unwrap();
        assert!(text.contains("Puppet::Resource::ResourceType3.new("), "{text}");
    }
    let mut command = Command::new("puppet");
    command.args(["describe", "stead_file", "--environment", "production", "--environmentpath", &environments]);
    let output = succeed(command.args(settings(folder.path())));
    let text = String::from_utf8_lossy(&output.stdout).replace("\n    ", " ");
    assert!(text.contains("A file with its content, mode and owner."), "{text}");
    assert!(text.contains("content_base64"), "{text}");
}

/// Names of properties: usual ones, those that Puppet has for itself, and those that are hard to write down.
const NAMES: &[&str] = &[
    "name",
    "path",
    "title",
    "ensure",
    "_exist",
    "Ensure",
    "fooBar",
    "foo_bar",
    "foo-bar",
    "it's",
    "#{x}",
    "\\",
    "\"",
    "$x",
    "",
    "a b",
    "\n",
    "\u{7}",
    "é",
    "日本",
    "require",
    "__END__",
    "1",
    "%q(",
    "validation_mode",
    "stead_timeout",
];

fn schema() -> impl Strategy<Value = Json> {
    let word = proptest::sample::select(NAMES);
    let leaf = prop_oneof![
        (0_u64..3, 3_u64..9)
            .prop_map(|(least, most)| json!({ "type": "string", "minLength": least, "maxLength": most })),
        any::<(i64, u64)>().prop_map(|(least, most)| json!({ "type": "integer", "minimum": least, "maximum": most })),
        any::<(f64, f64)>().prop_map(
            |(least, most)| json!({ "type": "number", "minimum": least.min(most), "maximum": most.max(least) })
        ),
        proptest::collection::vec(word.clone(), 1..4)
            .prop_map(|words| json!({ "enum": words, "description": words[0], "default": words[0] })),
        word.prop_map(|word| json!({ "const": word, "writeOnly": true })),
        "[a-c^$\\[\\](|)+*?{}0-9/#\\\\.-]{0,8}"
            .prop_map(|pattern| json!({ "type": "string", "pattern": pattern, "default": pattern })),
        Just(json!({ "type": ["boolean", "null"], "readOnly": true, "default": false })),
        Just(json!({ "type": "string", "format": "password" })),
        Just(json!(true)),
        Just(json!({ "$ref": "#" })),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let properties = proptest::collection::btree_map(proptest::sample::select(NAMES), inner.clone(), 0..6);
        prop_oneof![
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items, "minItems": 1 })),
            proptest::collection::vec(inner.clone(), 1..4).prop_map(|each| json!({ "oneOf": each })),
            (properties, any::<bool>()).prop_map(|(properties, open)| {
                let required: Vec<_> = properties.keys().take(2).collect();
                json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": open })
            }),
            inner.prop_map(|each| json!({ "type": "object", "additionalProperties": each })),
        ]
    })
}

/// Resources with random schemas, the same in each run.
fn random_resources() -> Vec<ResourceToGenerate> {
    let properties = proptest::collection::btree_map(proptest::sample::select(NAMES), schema(), 0..8);
    let mut runner = TestRunner::deterministic();
    let resource = |number| {
        let schema = properties.new_tree(&mut runner).unwrap().current();
        let schema = json!({ "type": "object", "properties": schema, "required": ["path", "fooBar", "é"] });
        let keys = if number % 2 == 0 { vec!["name".to_owned()] } else { Vec::new() };
        ResourceToGenerate {
            keys,
            ..ResourceToGenerate::new(format!("Example/Random{number}x"), semver::Version::new(1, 0, 0), schema)
        }
    };
    (0..100).map(resource).collect()
}

#[test]
fn the_resource_api_accepts_the_types_of_random_schemas() {
    let resources = random_resources();
    for options in [json!({}), json!({ "dialect": "dsc" })] {
        let module = generate(&resources, &support::options(&options)).unwrap();
        if !has("the_resource_api_accepts_the_types_of_random_schemas", "puppet") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        write(&module.files, &folder.path().join("module"));
        let types = module.files.keys().filter(|path| path.starts_with("lib/puppet/type/"));
        let types: Vec<_> = types.map(|path| folder.path().join("module").join(path)).collect();
        let output = succeed(Command::new("ruby").args(["-e", REGISTER]).arg(folder.path()).args(&types));
        let found: Json = serde_json::from_slice(&output.stdout).unwrap();
        let found = found.as_object().unwrap();
        assert_eq!(found.len(), resources.len());
        for resource in &resources {
            let definition = found.values().find(|each| each["stead"]["type"] == resource.type_name.as_str()).unwrap();
            let attributes = definition["attributes"].as_object().unwrap().values();
            let sent: BTreeSet<_> = attributes.filter_map(|attribute| attribute["property"].as_str()).collect();
            let properties: BTreeSet<_> =
                resource.schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(sent, properties, "every property can be given");
        }
    }
}

fn settings(folder: &Path) -> [String; 4] {
    let folder = folder.display().to_string();
    ["--confdir".to_owned(), folder.clone(), "--vardir".to_owned(), folder]
}

#[test]
fn metadata_is_that_of_a_module() {
    if !has("metadata_is_that_of_a_module", "metadata-json-lint") {
        return;
    }
    let modules = modules();
    for name in ["file", "powershell_dsc"] {
        let folder = tempfile::tempdir().unwrap();
        write(&modules[name].files, folder.path());
        succeed(Command::new("metadata-json-lint").arg(folder.path().join("metadata.json")));
    }
}

#[test]
fn examples_are_in_the_style_of_puppet() {
    if !has("examples_are_in_the_style_of_puppet", "puppet-lint") {
        return;
    }
    let (_folder, paths) = on_disk(".pp");
    // What a case quotes may be long, and is not the style of the generator.
    let paths = paths.iter().filter(|path| !path.contains("hostile"));
    succeed(Command::new("puppet-lint").args(["--fail-on-warnings", "--no-autoloader_layout-check"]).args(paths));
}

/// The style of the modules of Puppet's own authors, where it differs from that of the program.
const STYLE: &str = "
AllCops: { NewCops: enable, TargetRubyVersion: 2.7, SuggestExtensions: false }
Layout/LineLength: { Enabled: false }
Style/TrailingCommaInHashLiteral: { EnforcedStyleForMultiline: comma }
Style/TrailingCommaInArguments: { EnforcedStyleForMultiline: comma }
Style/WordArray: { EnforcedStyle: brackets }
Style/ClassAndModuleChildren: { Enabled: false }
Naming/VariableNumber: { Enabled: false }
";

#[test]
fn rubocop_has_no_objection() {
    if !has("rubocop_has_no_objection", "rubocop") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("style.yml"), STYLE).unwrap();
    let modules = modules();
    for name in ["file", "file_dsc", "powershell_dsc", "types", "versions"] {
        write(&modules[name].files, &folder.path().join(name));
    }
    succeed(Command::new("rubocop").args(["--config", "style.yml", "--cache", "false"]).current_dir(folder.path()));
}

#[test]
fn the_reference_is_that_of_puppet_strings() {
    if !has("the_reference_is_that_of_puppet_strings", "puppet") {
        return;
    }
    if !Command::new("puppet").args(["strings", "--help"]).output().is_ok_and(|output| output.status.success()) {
        skip("the_reference_is_that_of_puppet_strings", "puppet-strings is not installed");
        return;
    }
    for dialect in [Dialect::Native, Dialect::DscCompatible] {
        let folder = tempfile::tempdir().unwrap();
        let module = all_in_one(dialect);
        write(&module.files, folder.path());
        let mut command = Command::new("puppet");
        command.args(["strings", "generate", "--format", "markdown", "--out", "written.md"]);
        succeed(command.args(["lib/puppet/type/*.rb"]).current_dir(folder.path()));
        let written = fs::read_to_string(folder.path().join("written.md")).unwrap();
        assert_eq!(written, String::from_utf8_lossy(&module.files["REFERENCE.md"]), "{dialect:?}");
    }
}

#[test]
fn rspec_puppet_knows_the_types() {
    let test = "rspec_puppet_knows_the_types";
    let needs = "gem 'rspec-puppet'; gem 'puppetlabs_spec_helper'";
    if !Command::new("ruby").args(["-e", needs]).output().is_ok_and(|output| output.status.success()) {
        return skip(test, "rspec-puppet and puppetlabs_spec_helper are not installed");
    }
    for name in ["file", "file_dsc", "powershell"] {
        let folder = tempfile::tempdir().unwrap();
        let module = &modules()[name];
        write(&module.files, folder.path());
        let fixtures = folder.path().join("spec/fixtures/modules");
        write(&module.files, &fixtures.join(name));
        write(&support_module(), &fixtures.join("steadlib"));
        succeed(Command::new("rspec").arg("spec/types").current_dir(folder.path()));
    }
}

/// Returns the files that a provider needs to be loaded.
fn support_module() -> GeneratedFiles {
    let base = "class Puppet::Provider::SteadBase\n  def self.manages(_name); end\nend\n";
    GeneratedFiles::from([("lib/puppet/provider/stead_base/stead_base.rb".to_owned(), base.into())])
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let (first, second) = (modules(), modules());
    for (name, module) in &first {
        assert_eq!(module.files, second[name].files, "{name}");
    }
    let text = fs::read_to_string(repository().join("corpus/puppet/versions.txt")).unwrap();
    let case = Case::parse("versions", &text);
    let mut resources = support::resources(&serde_json::from_str(case.section("resources.json")).unwrap());
    let options = support::options(&Json::Null);
    let forwards = generate(&resources, &options).unwrap().files;
    resources.reverse();
    assert_eq!(generate(&resources, &options).unwrap().files, forwards, "the order of resources says nothing");
}

#[test]
fn stale_files_are_found() {
    let generated = modules().remove("file").unwrap().files;
    assert_eq!(stale_files(&generated, &generated), []);
    let mut on_disk = generated.clone();
    on_disk.remove("metadata.json");
    on_disk.insert("README.md".to_owned(), b"another".to_vec());
    on_disk.insert("lib/puppet/type/stead_former.rb".to_owned(), generated["lib/puppet/type/stead_file.rb"].clone());
    on_disk.insert("examples/stead_former.pp".to_owned(), Vec::new());
    for path in ["manifests/init.pp", "lib/puppet/type/own.rb", "examples/own.pp"] {
        on_disk.insert(path.to_owned(), b"# unlike what is Generated by `stead puppetize`: of an author".to_vec());
    }
    let stale: Vec<_> = stale_files(&generated, &on_disk).into_iter().map(|file| (file.path, file.reason)).collect();
    let expected = [
        ("README.md", Staleness::Different),
        ("examples/stead_former.pp", Staleness::Obsolete),
        ("lib/puppet/type/stead_former.rb", Staleness::Obsolete),
        ("metadata.json", Staleness::Missing),
    ];
    assert_eq!(stale, expected.map(|(path, reason)| (path.to_owned(), reason)));
}

/// `STEAD_BLESS=1` writes them.
#[test]
fn the_examples_of_the_support_module_are_what_is_generated() {
    let examples = repository().join("puppet/examples");
    if !examples.is_dir() {
        return skip("the_examples_of_the_support_module_are_what_is_generated", "puppet/examples is not there");
    }
    for (case, name) in [("file", "steadfile"), ("file_dsc", "dscfile")] {
        let Input { resources, options } = inputs().remove(case).unwrap();
        let mut files = generate(&resources, &ModuleOptions { name: name.to_owned(), ..options }).unwrap().files;
        files.retain(|path, _| path.starts_with("lib/") || path.starts_with("examples/") || path == "metadata.json");
        if std::env::var_os("STEAD_BLESS").is_some() {
            write(&files, &examples.join(name));
        }
        for (path, content) in files {
            let found = fs::read(examples.join(name).join(&path)).unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&content), "{name}/{path}");
        }
    }
}
