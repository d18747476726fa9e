//! Reads what a module is generated from out of JSON.

use semver::Version;
use serde_json::{Map, Value as Json};
use stead_puppet::{
    Example, LetterCase, ListingWay, ModuleOptions, ModuleVersion, PlainSecrets, ResourceToGenerate, Timestamps,
};

/// The resources of a list, each with `type`, `schema` and what else is not usual.
pub(crate) fn resources(list: &Json) -> Vec<ResourceToGenerate> {
    list.as_array().expect("a list of resources").iter().map(resource).collect()
}

fn resource(json: &Json) -> ResourceToGenerate {
    let version = Version::parse(&text(json, "version").unwrap_or("1.0.0".to_owned())).expect("a version");
    ResourceToGenerate {
        description: text(json, "description"),
        keys: texts(json, "keys"),
        case: if json["case"] == "insensitive" { LetterCase::Insensitive } else { LetterCase::Sensitive },
        secrets: texts(json, "secrets").into_iter().collect(),
        listing: if json["listing"] == true { ListingWay::Supported } else { ListingWay::Unsupported },
        examples: json["examples"].as_array().into_iter().flatten().map(example).collect(),
        ..ResourceToGenerate::new(text(json, "type").expect("a type"), version, json["schema"].clone())
    }
}

fn example(json: &Json) -> Example {
    Example { title: text(json, "title").expect("a title"), properties: object(&json["properties"]) }
}

/// The options of a module; all of them have a usual value.
pub(crate) fn options(json: &Json) -> ModuleOptions {
    let source = text(json, "sourceVersion").map(|version| ModuleVersion::Source { version, build: 0 });
    let version = source.unwrap_or(ModuleVersion::Own(Version::new(0, 1, 0)));
    let name = text(json, "name").unwrap_or("example".to_owned());
    let usual = ModuleOptions::new(name, version, Version::new(0, 1, 0), Version::new(0, 1, 0));
    let usual = if json["dialect"] == "dsc" { usual.dsc_compatible() } else { usual };
    ModuleOptions {
        author: text(json, "author").unwrap_or(usual.author),
        summary: text(json, "summary"),
        source: text(json, "source"),
        project_page: text(json, "projectPage"),
        issues_url: text(json, "issuesUrl"),
        tags: texts(json, "tags"),
        changelog: text(json, "changelog"),
        prefix: text(json, "prefix").unwrap_or(usual.prefix),
        timestamps: match json["timestamps"].as_bool() {
            Some(true) => Timestamps::Timestamp,
            Some(false) => Timestamps::Text,
            None => usual.timestamps,
        },
        plain_secrets: if json["plainSecrets"] == true { PlainSecrets::Accepted } else { PlainSecrets::Refused },
        ..usual
    }
}

fn text(json: &Json, name: &str) -> Option<String> {
    json[name].as_str().map(str::to_owned)
}

/// The texts of a list that may not be there.
pub(crate) fn texts(json: &Json, name: &str) -> Vec<String> {
    json[name].as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
}

fn object(json: &Json) -> Map<String, Json> {
    json.as_object().cloned().unwrap_or_default()
}
