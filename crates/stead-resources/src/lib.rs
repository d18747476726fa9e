//! The resources that are built into stead, one folder each.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes"))]

use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::Value as Json;
use stead_core::id::TypeName;
use stead_core::manifest::{Capabilities, Manifest, Promises, UndoWay, Version};
use stead_core::schema::Schema;
use stead_host::provider::Provider;

mod accounts;
mod apt_repository;
mod archive;
mod block;
mod checksum;
pub mod command;
mod credentials;
mod cron;
mod declared;
pub mod directory;
mod download;
pub mod echo;
mod edit;
pub mod engine;
pub mod exchange;
pub mod file;
mod git;
mod group;
mod guard;
mod headline;
mod host;
mod hostname;
mod ini;
mod input;
mod kernel_module;
mod keys;
mod known;
mod limit;
mod line;
mod locale;
mod mount;
mod nftables;
pub mod osinfo;
mod package;
mod parents;
mod part;
mod pending;
mod permissions;
pub mod process;
mod program;
mod reach;
mod removal;
mod reply;
pub mod run_command_on_set;
mod schema;
mod service;
mod ssh_key;
mod sshd_config;
mod sudoers;
pub mod symlink;
mod sysctl;
mod template;
mod text;
mod thing;
mod timer;
mod timezone;
pub mod transfer;
mod user;

pub use accounts::account_at;
pub use git::isolation;
pub use keys::agree_on_part;
pub use reach::{Reach, reach};
pub use thing::Thing;

/// A resource that this program carries out itself.
#[derive(Clone)]
pub struct BuiltIn {
    /// The manifest of the resource.
    pub manifest: Arc<Manifest>,
    /// The provider of the resource.
    pub provider: Arc<dyn Provider>,
    /// The property in which a state has what a program printed, for users who ask for it.
    pub printed: Option<&'static str>,
    /// The properties that are reported and cannot be stated, and whose changes users are shown as if they were: what an
    /// instance is about is stated by another one.
    pub shown: &'static [&'static str],
    /// The properties that tell one instance from another; empty where none do.
    pub keys: &'static [&'static str],
    /// The properties that tell which thing an instance is about; empty where none do.
    pub identity: &'static [&'static str],
    /// The property whose value is the path of that thing, if it has one.
    pub place: Option<&'static str>,
    /// The properties that tell it as well, where another one has a value.
    tells: &'static [declared::Tells],
    /// The options by which such a thing is removed, and which are recorded for that.
    removal: &'static [&'static str],
    /// A document, YAML, with an instance as it occurs in practice.
    pub example: &'static str,
    /// True if its state is in the running system as well as in a line of a file: undo sets it without restoring the file.
    pub is_apart: bool,
    /// The property with the command that every set runs, followed by those that say when it is not needed; empty for other types.
    pub repeated: &'static [&'static str],
    /// Made when it is first asked for: most runs ask for none.
    schema: Arc<LazyLock<Json>>,
    compiled: Arc<OnceLock<Option<Arc<Schema>>>>,
}

impl BuiltIn {
    /// The JSON Schema of its properties. Providers check them by themselves; this is for users and editors.
    pub fn schema(&self) -> &Json {
        &self.schema
    }

    /// Its [`Self::schema`], compiled, to check values with; a test makes sure that each compiles.
    pub fn compiled(&self) -> Option<Arc<Schema>> {
        self.compiled.get_or_init(|| Schema::compile(self.schema().clone()).ok().map(Arc::new)).clone()
    }

    /// Returns whether a failure can be about this property, a JSON pointer. What resources share names the property that most of
    /// them have, and not all.
    pub fn has(&self, pointer: &str) -> bool {
        let name = pointer.trim_start_matches('/').split('/').next().unwrap_or_default();
        self.schema["properties"].get(name).is_some() || self.schema["additionalProperties"].is_object()
    }

    /// Returns whether a property only follows from others, such as the size of a content.
    pub fn is_derived(&self, property: &str) -> bool {
        let is_read_only = self.schema["properties"][property]["readOnly"] == true;
        is_read_only && !self.shown.contains(&property)
    }
}

/// Every built-in resource, in the order of the type names, made once per process.
pub fn builtins() -> &'static [BuiltIn] {
    static ALL: LazyLock<Vec<BuiltIn>> = LazyLock::new(make_all);
    &ALL
}

/// The built-in resource of a type.
pub fn builtin(type_name: &TypeName) -> Option<&'static BuiltIn> {
    let all = builtins();
    all.binary_search_by(|each| each.manifest.type_name.cmp(type_name)).ok().and_then(|at| all.get(at))
}

/// The built-in resource that carries out a manifest; `None` where another one of the type takes its place.
pub fn builtin_of(manifest: &Manifest) -> Option<&'static BuiltIn> {
    builtin(&manifest.type_name).filter(|own| manifest.is_in_process() && own.manifest.version == manifest.version)
}

fn make_all() -> Vec<BuiltIn> {
    let accounts = accounts::AccountLock::default();
    let locks = edit::FileLocks::default();
    let mut all: Vec<BuiltIn> = [
        block::built_in(&locks),
        apt_repository::built_in(),
        archive::built_in(),
        cron::built_in(&locks),
        directory::built_in(),
        download::built_in(),
        echo::built_in(),
        file::built_in(),
        git::built_in(),
        group::built_in(&accounts),
        host::built_in(&locks),
        hostname::built_in(&locks),
        ini::built_in(&locks),
        kernel_module::built_in(&locks),
        limit::built_in(&locks),
        line::built_in(&locks),
        mount::built_in(&locks),
        nftables::built_in(&locks),
        locale::built_in(&locks),
        osinfo::built_in(),
        ssh_key::built_in(&locks),
        sshd_config::built_in(&locks),
        sudoers::built_in(),
        symlink::built_in(),
        template::built_in(),
        user::built_in(&accounts),
        sysctl::built_in(&locks),
        timezone::built_in(&locks),
    ]
    .into_iter()
    .chain(keys::built_ins(&locks))
    .chain(engine::built_ins())
    .chain(open_ended())
    .flatten()
    .collect();
    all.sort_by(|left, right| left.manifest.type_name.cmp(&right.manifest.type_name));
    all
}

/// The resources whose sets run or start what may change anything, also once the set is over.
fn open_ended() -> impl Iterator<Item = Option<BuiltIn>> {
    let all = [
        command::built_in(),
        package::built_in(),
        process::built_in(),
        run_command_on_set::built_in(),
        service::built_in(),
        timer::built_in(),
    ];
    all.into_iter().map(|built_in| {
        let built_in = built_in?;
        let promises = Promises { bounded: false, ..built_in.manifest.promises };
        Some(BuiltIn { manifest: Arc::new(Manifest { promises, ..(*built_in.manifest).clone() }), ..built_in })
    })
}

/// What the manifests of built-in resources differ in.
struct Profile {
    type_name: &'static str,
    description: &'static str,
    /// A document with an instance of it.
    example: &'static str,
    tags: &'static [&'static str],
    capabilities: Capabilities,
    undo: UndoWay,
    is_apart: bool,
    repeated: &'static [&'static str],
    /// Makes the JSON Schema of its properties.
    schema: fn() -> Json,
}

impl Profile {
    /// `None` when the type name is not valid; a test makes sure that all are.
    fn built_in(&self, provider: Arc<dyn Provider>) -> Option<BuiltIn> {
        let version = Version::Semantic(semver::Version::new(1, 0, 0));
        let type_name = TypeName::parse(self.type_name).ok()?;
        let manifest = Manifest {
            capabilities: self.capabilities,
            promises: Promises { below_root: reach(&type_name) != Reach::Outside, ..Promises::ALL },
            undo: self.undo,
            description: Some(self.description.to_owned()),
            tags: self.tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ..Manifest::in_process(type_name, version)
        };
        Some(BuiltIn {
            manifest: Arc::new(manifest),
            schema: Arc::new(LazyLock::new(self.schema)),
            compiled: Arc::default(),
            is_apart: self.is_apart,
            repeated: self.repeated,
            provider,
            printed: None,
            shown: &[],
            keys: &[],
            identity: &[],
            place: None,
            tells: &[],
            removal: &[],
            example: self.example,
        })
    }
}

/// `_exist`, when it is not mentioned.
fn is_wanted() -> bool {
    true
}

/// A resource of DSC v3 keeps the version that it has there: documents may require it.
fn with_version(built_in: BuiltIn, version: semver::Version) -> BuiltIn {
    let manifest = Manifest { version: Version::Semantic(version), ..(*built_in.manifest).clone() };
    BuiltIn { manifest: Arc::new(manifest), ..built_in }
}

/// A resource that can do nothing.
const NOTHING: Capabilities = Capabilities {
    get: false,
    set: false,
    set_handles_exist: false,
    set_what_if: false,
    implements_pretest: false,
    reports_before: false,
    test: false,
    delete: false,
    delete_what_if: false,
    export: false,
    export_filters: false,
    resolve: false,
};

/// What a resource can do that reads, compares, changes and removes by itself.
const ALL_BUT_EXPORT: Capabilities = Capabilities {
    get: true,
    set: true,
    set_handles_exist: true,
    set_what_if: true,
    implements_pretest: true,
    reports_before: false,
    test: true,
    delete: true,
    delete_what_if: true,
    export: false,
    export_filters: false,
    resolve: false,
};

/// What a resource can do that lists its instances as well.
const ALL: Capabilities = Capabilities { export: true, export_filters: true, ..ALL_BUT_EXPORT };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_valid() {
        let names: Vec<String> = builtins().iter().map(|each| each.manifest.type_name.to_string()).collect();
        let expected = [
            "Microsoft.DSC.Debug/Echo",
            "Microsoft.DSC.Transitional/RunCommandOnSet",
            "Microsoft.DSC/Assertion",
            "Microsoft.DSC/Group",
            "Microsoft.DSC/Include",
            "Microsoft/OSInfo",
            "Microsoft/Process",
            "Stead/Block",
            "Stead/AptRepository",
            "Stead/Archive",
            "Stead/Command",
            "Stead/Cron",
            "Stead/Directory",
            "Stead/Download",
            "Stead/File",
            "Stead/Git",
            "Stead/Group",
            "Stead/Host",
            "Stead/Hostname",
            "Stead/Ini",
            "Stead/Json",
            "Stead/KernelModule",
            "Stead/Limits",
            "Stead/Locale",
            "Stead/Line",
            "Stead/Mount",
            "Stead/Nftables",
            "Stead/SshKey",
            "Stead/SshdConfig",
            "Stead/Sudoers",
            "Stead/Service",
            "Stead/Package",
            "Stead/Symlink",
            "Stead/User",
            "Stead/Sysctl",
            "Stead/Timer",
            "Stead/Timezone",
            "Stead/Template",
            "Stead/Toml",
            "Stead/Yaml",
        ];
        for name in expected {
            assert!(names.iter().any(|each| each == name), "{name} is missing");
        }
        assert!(names.is_sorted_by_key(|name| name.to_lowercase()));
    }

    #[test]
    fn what_is_never_shown_is_declared_as_secret() {
        for built_in in builtins() {
            for (name, property) in built_in.schema()["properties"].as_object().into_iter().flatten() {
                let says_so = property["description"].as_str().is_some_and(|text| text.contains("never shown"));
                let is_declared = built_in.manifest.secrets.iter().any(|secret| secret.name == name);
                assert!(is_declared || !says_so, "{}: {name}", built_in.manifest.type_name);
            }
        }
    }

    #[test]
    fn every_schema_compiles() {
        for built_in in builtins() {
            assert!(built_in.compiled().is_some(), "{}", built_in.manifest.type_name);
        }
    }
}
