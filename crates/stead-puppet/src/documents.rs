//! The files of a module that are about all of its types: metadata, texts, what specs need.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use semver::Version;
use serde_json::{Map, Value as Json, json};

use crate::input::{Dialect, ListingWay, ModuleOptions};
use crate::resource_type::ResourceType;
use crate::version::Compatible;
use crate::{example, text};

/// The account that publishes the support module, and its name.
const SUPPORT: (&str, &str) = ("stead", "steadlib");

/// The longest summary that is shown whole.
const SUMMARY: usize = 144;

pub(crate) fn files(
    types: &[ResourceType<'_>],
    options: &ModuleOptions,
    version: &Version,
) -> BTreeMap<String, String> {
    let files = [
        ("metadata.json", json_text(&metadata(types, options, version))),
        ("README.md", readme(types, options)),
        ("CHANGELOG.md", changelog(types, options, version)),
        ("LICENSE", include_str!("../../../LICENSE-APACHE").to_owned()),
        (".fixtures.yml", fixtures(options)),
        (".sync.yml", SYNC.to_owned()),
        (".pdkignore", PDKIGNORE.to_owned()),
        ("spec/spec_helper.rb", SPEC_HELPER.to_owned()),
        ("spec/default_facts.yml", DEFAULT_FACTS.to_owned()),
    ];
    files.into_iter().map(|(path, text)| (path.to_owned(), text)).collect()
}

fn json_text(json: &Json) -> String {
    format!("{json:#}\n")
}

fn metadata(types: &[ResourceType<'_>], options: &ModuleOptions, version: &Version) -> Json {
    let mut metadata = Map::new();
    let mut add = |name: &str, value: Json| drop(metadata.insert(name.to_owned(), value));
    add("name", json!(format!("{}-{}", options.author, options.name)));
    add("version", json!(version.to_string()));
    add("author", json!(options.author));
    add("summary", json!(summary(types, options)));
    add("license", json!("Apache-2.0"));
    add("source", json!(options.source.as_deref().unwrap_or(env!("CARGO_PKG_REPOSITORY"))));
    for (name, address) in [("project_page", &options.project_page), ("issues_url", &options.issues_url)] {
        if let Some(address) = address {
            add(name, json!(address));
        }
    }
    let support = format!("{}-{}", SUPPORT.0, SUPPORT.1);
    let range = Compatible(&options.support).to_string();
    add("dependencies", json!([{ "name": support, "version_requirement": range }]));
    // Where the engine runs.
    let systems = ["Debian", "RedHat", "Ubuntu"].map(|name| json!({ "operatingsystem": name }));
    add("operatingsystem_support", json!(systems));
    add("requirements", json!([{ "name": "puppet", "version_requirement": ">= 7.0.0 < 9.0.0" }]));
    let mut tags = vec!["stead".to_owned()];
    tags.extend(options.tags.iter().filter(|tag| *tag != "stead").cloned());
    add("tags", json!(tags));
    add("stead_metadata", stead_metadata(types, options));
    Json::Object(metadata)
}

fn summary(types: &[ResourceType<'_>], options: &ModuleOptions) -> String {
    let given = options.summary.as_deref().map(text::plain).filter(|summary| !summary.is_empty());
    let summary = given.unwrap_or_else(|| match types {
        [only] => format!("Puppet types for {}, managed by the stead engine.", only.resource.type_name),
        _ => format!("Puppet types for {} resources, managed by the stead engine.", types.len()),
    });
    text::summary(&summary, SUMMARY)
}

/// Returns the resources that the types were made from.
fn stead_metadata(types: &[ResourceType<'_>], options: &ModuleOptions) -> Json {
    let resource = |each: &ResourceType<'_>| json!({ "type": each.resource.type_name, "version": each.resource.version.to_string() });
    let mut members = Map::new();
    members.insert("engine".to_owned(), json!(options.engine.to_string()));
    if let Some(source) = options.version.source() {
        members.insert("source_version".to_owned(), json!(source));
    }
    members.insert("resources".to_owned(), types.iter().map(resource).collect());
    Json::Object(members)
}

fn changelog(types: &[ResourceType<'_>], options: &ModuleOptions, version: &Version) -> String {
    if let Some(changelog) = options.changelog.as_deref().map(text::plain) {
        return changelog + "\n";
    }
    let types =
        types.iter().map(|each| format!("- `{}`: {} {}\n", each.name, each.resource.type_name, each.resource.version));
    format!("# Changelog\n\n## {version}\n\n{}", types.collect::<String>())
}

fn fixtures(options: &ModuleOptions) -> String {
    format!(
        "---\nfixtures:\n  forge_modules:\n    {name}:\n      repo: \"{author}/{name}\"\n      ref: \"{version}\"\n",
        author = SUPPORT.0,
        name = SUPPORT.1,
        version = options.support,
    )
}

/// The configuration of `pdk update`: files that it leaves alone.
const SYNC: &str = "\
---
.pdkignore:
  unmanaged: true
spec/default_facts.yml:
  unmanaged: true
spec/spec_helper.rb:
  unmanaged: true
";

const PDKIGNORE: &str = "/.fixtures.yml\n/.pdkignore\n/.sync.yml\n/pkg/\n/spec/\n";

const SPEC_HELPER: &str = "\
# frozen_string_literal: true

RSpec.configure { |config| config.mock_with :rspec }

require 'puppetlabs_spec_helper/module_spec_helper'
require 'yaml'

RSpec.configure do |config|
  config.default_facts = YAML.safe_load(File.read(File.join(__dir__, 'default_facts.yml')))
end
";

const DEFAULT_FACTS: &str = "---\nnetworking:\n  fqdn: \"host.example.com\"\n  hostname: \"host\"\n";

fn readme(types: &[ResourceType<'_>], options: &ModuleOptions) -> String {
    let mut readme = format!("# {}\n\n{}\n\n", options.name, summary(types, options));
    readme.push_str(
        "Everything in this module is generated by `stead puppetize` from the schemas of resources; what its types do is\n\
         done by the module `stead-steadlib` and the stead engine. Attributes, data types and defaults are in\n\
         [REFERENCE.md](REFERENCE.md).\n\n",
    );
    write_requirements(&mut readme, options);
    write_types(&mut readme, types);
    write_usage(&mut readme, types, options);
    write_secrets(&mut readme, types);
    write_validation(&mut readme, options);
    readme.push_str(TROUBLESHOOTING);
    write_names(&mut readme, types, options.dialect);
    readme
}

fn write_requirements(readme: &mut String, options: &ModuleOptions) {
    let _ = write!(
        readme,
        "## Requirements\n\n\
         - Puppet 7 or 8 with its Resource API\n\
         - the module `{}-{}` {}\n\
         - the stead engine {} on every managed node; servers and CI do not need it\n\n",
        SUPPORT.0,
        SUPPORT.1,
        Compatible(&options.support),
        Compatible(&options.engine),
    );
}

fn write_types(readme: &mut String, types: &[ResourceType<'_>]) {
    readme.push_str("## Types\n\n| type | resource | version | manages |\n|---|---|---|---|\n");
    for each in types {
        let manages = text::summary(&each.docs, 100).replace('|', "\\|");
        let _ = writeln!(
            readme,
            "| `{}` | {} | {} | {manages} |",
            each.name, each.resource.type_name, each.resource.version
        );
    }
    readme.push('\n');
}

/// How many examples are in the text; all of them are below `examples/`.
const SHOWN: usize = 3;

fn write_usage(readme: &mut String, types: &[ResourceType<'_>], options: &ModuleOptions) {
    readme.push_str("## Usage\n\n");
    for each in types.iter().take(SHOWN) {
        let example = example::declarations(each, options.dialect).into_iter().next().unwrap_or_default();
        let _ = write!(readme, "```puppet\n{example}```\n\n");
    }
    if types.len() > SHOWN {
        readme.push_str("There is an example of each type in [examples](examples).\n\n");
    }
    if let Some(each) = types.iter().find(|each| each.resource.listing == ListingWay::Supported) {
        let _ = write!(
            readme,
            "`puppet resource {name}` lists what is there; `resources {{ '{name}': purge => true }}` removes what no\n\
             manifest mentions.\n\n",
            name = each.name
        );
    }
}

fn write_secrets(readme: &mut String, types: &[ResourceType<'_>]) {
    let mut secrets = String::new();
    for each in types {
        for attribute in each.attributes.iter().filter(|attribute| attribute.secret) {
            let _ = writeln!(secrets, "- `{}`: `{}`", each.name, attribute.name);
        }
    }
    if secrets.is_empty() {
        return;
    }
    let _ = write!(
        readme,
        "## Secrets\n\n\
         These attributes take values of the type `Sensitive`, or have members that do. Such a value is never printed and\n\
         never sent back to Puppet: the engine compares it.\n\n{secrets}\n\
         Catalogs contain secrets in plain text, as Puppet writes them: protect the places where they are stored.\n\n",
    );
}

fn write_validation(readme: &mut String, options: &ModuleOptions) {
    let timeout = match options.dialect {
        Dialect::Native => "stead_timeout",
        Dialect::DscCompatible => "dsc_timeout",
    };
    let _ = write!(
        readme,
        "## Attributes of every type\n\n\
         - `validation_mode`: with `property`, the default, each property is compared. With `resource` the test of the\n\
         \x20 resource alone decides.\n\
         - `{timeout}`: seconds that each request for the resource may take.\n\
         - `stead_verify`: whether the resource is tested again after a change. One that still differs fails.\n\n"
    );
}

const TROUBLESHOOTING: &str = "## Troubleshooting\n\n\
    `puppet apply --debug` prints each request to the engine, without secrets. Write such lines to a file and run\n\
    `stead serve --replay FILE` to repeat them without Puppet.\n\n\
    A warning that the schema of a resource differs means that the resource on the node is not the one that this module was\n\
    generated from: generate the module again, and compare with `stead puppetize --check`.\n";

fn write_names(readme: &mut String, types: &[ResourceType<'_>], dialect: Dialect) {
    let renamed = types.iter().flat_map(|each| {
        let renamed = each.attributes.iter().filter_map(|attribute| Some((attribute, attribute.renamed(dialect)?)));
        renamed.map(|(attribute, property)| {
            format!("- `{}`: `{}` is the property '{}'\n", each.name, attribute.name, text::plain(property))
        })
    });
    let renamed: String = renamed.collect();
    if !renamed.is_empty() {
        let _ = write!(
            readme,
            "\n## Names\n\nThese attributes have another name than their property, because Puppet uses that one or another\n\
             property has it:\n\n{renamed}"
        );
    }
}
