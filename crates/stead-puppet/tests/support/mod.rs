//! Reads what a module is generated from out of JSON.

use std::collections::BTreeSet;

use semver::Version;
use serde_json::{Map, Value as Json};
use stead_puppet::{
    Case, Dialect, Example, Listing, ModuleOptions, ModuleVersion, PlainSecrets, ResourceToGenerate, Timestamps,
};

/// The resources of a list, each with `type`, `schema` and what else is not usual.
pub(crate) fn resources(list: &Json) -> Vec<ResourceToGenerate> {
    list.as_array().expect("a list of resources").iter().map(resource).collect()
}

fn resource(json: &Json) -> ResourceToGenerate {
    ResourceToGenerate {
        type_name: text(json, "type").expect("a type"),
        version: Version::parse(&text(json, "version").unwrap_or("1.0.0".to_owned())).expect("a version"),
        schema: json["schema"].clone(),
        description: text(json, "description"),
        keys: texts(json, "keys"),
        case: if json["case"] == "insensitive" { Case::Insensitive } else { Case::Sensitive },
        secrets: texts(json, "secrets").into_iter().collect::<BTreeSet<_>>(),
        listing: if json["listing"] == true { Listing::Supported } else { Listing::Unsupported },
        examples: json["examples"].as_array().into_iter().flatten().map(example).collect(),
    }
}

fn example(json: &Json) -> Example {
    Example { title: text(json, "title").expect("a title"), properties: object(&json["properties"]) }
}

/// The options of a module; all of them have a usual value.
pub(crate) fn options(json: &Json) -> ModuleOptions {
    let is_dsc = json["dialect"] == "dsc";
    let version = text(json, "sourceVersion").map(|version| ModuleVersion::Source { version, build: 0 });
    ModuleOptions {
        name: text(json, "name").unwrap_or("example".to_owned()),
        author: text(json, "author").unwrap_or("stead".to_owned()),
        version: version.unwrap_or(ModuleVersion::Own(Version::new(0, 1, 0))),
        summary: text(json, "summary"),
        source: text(json, "source"),
        project_page: text(json, "projectPage"),
        issues_url: text(json, "issuesUrl"),
        tags: texts(json, "tags"),
        changelog: text(json, "changelog"),
        engine: Version::new(0, 1, 0),
        support: Version::new(0, 1, 0),
        prefix: text(json, "prefix").unwrap_or(if is_dsc { "dsc_" } else { "stead_" }.to_owned()),
        dialect: if is_dsc { Dialect::DscCompatible } else { Dialect::Native },
        timestamps: if json["timestamps"] == true { Timestamps::Timestamp } else { Timestamps::Text },
        plain_secrets: if json["plainSecrets"] == true { PlainSecrets::Accepted } else { PlainSecrets::Refused },
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
