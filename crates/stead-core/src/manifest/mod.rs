//! Manifests: what a resource says about itself, and the catalog of all that are known.
//!
//! The keys are those of DSC v3 resource manifests. These types are what the engine works with; the wire format is
//! converted at the border.

mod catalog;
mod claimed;
pub use crate::diag::codes::manifest as codes;
mod extension;
mod lane;
mod listing;
mod marked;
mod parse;
mod read;
mod secret;
mod version;
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::diff::Existence;
use crate::document::SecurityContext;
use crate::id::TypeName;
use crate::wait::Wait;

pub use catalog::{Catalog, NotChosen};
pub use claimed::{ClaimedAccess, ClaimedExtent, ClaimedProperty};
pub use extension::{
    DiscoverArgument, DiscoverMethod, Extension, ImportArgument, ImportMethod, SecretArgument, SecretMethod,
};
pub use lane::{BatchKey, Lane};
pub use listing::{ResourceListing, extension_listing, listing};
pub use marked::SecretPlaces;
pub use parse::{Declaration, Declared, ManifestForm, parse, parse_listed};
pub use read::{plain, unplaced};
pub use secret::{SecretForm, SecretProperty};
pub use version::{InvalidRequirement, InvalidVersion, Version, VersionRequirement};

/// The role of a resource for the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResourceKind {
    /// It manages something itself.
    Resource,
    /// It carries out resources of another kind.
    Adapter,
    /// It holds nested instances.
    Group,
    /// It resolves something external to nested instances.
    Importer,
    /// It lists instances of other types.
    Exporter,
}

/// The capabilities of a resource. One that is missing is either made up for by the engine or refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a set of independent abilities, each named by the protocol")]
pub struct Capabilities {
    /// `get`
    pub get: bool,
    /// `set`
    pub set: bool,
    /// `set` deletes when `_exist` is false
    pub set_handles_exist: bool,
    /// `set` can say what it would do
    pub set_what_if: bool,
    /// `set` tests by itself and does nothing when in the desired state
    pub implements_pretest: bool,
    /// The answer to a `set` has the state before it as well
    pub reports_before: bool,
    /// `test`
    pub test: bool,
    /// `delete`
    pub delete: bool,
    /// `delete` can say what it would do
    pub delete_what_if: bool,
    /// `export`
    pub export: bool,
    /// `export` filters by itself
    pub export_filters: bool,
    /// `resolve`
    pub resolve: bool,
}

/// Guarantees beyond what the protocol names. A resource that does not say so gives none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a set of independent guarantees, each asked for by itself")]
pub struct Promises {
    /// It says what its instances manage, use and state before anything is called, so that they have an order and conflicts.
    pub claims: bool,
    /// A look at the state costs next to nothing, and a test tells more of it than other operations.
    pub cheap_test: bool,
    /// Its states hold the verdict of a test, `_inDesiredState`, which is not part of what is there.
    pub verdict_in_state: bool,
    /// True if its messages hold no secret but those that it was given.
    pub covers_secrets: bool,
    /// A set of it changes nothing but what it claims, and starts nothing that may change more once the set is over.
    pub bounded: bool,
    /// Where the system below a folder is managed, it changes nothing outside that folder.
    pub below_root: bool,
}

impl Promises {
    /// All of them.
    pub const ALL: Self = Self {
        claims: true,
        cheap_test: true,
        verdict_in_state: true,
        covers_secrets: true,
        bounded: true,
        below_root: true,
    };
}

/// How what a set changed is taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UndoWay {
    /// It cannot be.
    #[default]
    Cannot,
    /// Files that it changed hold all of it: they are put back.
    Files,
    /// The state that it had before is set again, and files that it changed are put back.
    State,
}

/// A resource as the engine knows it, and `I`, how it is carried out.
#[derive(Clone, Debug)]
pub struct Manifest<I = Implementation> {
    /// Its type.
    pub type_name: TypeName,
    /// Its version.
    pub version: Version,
    /// Its kind.
    pub kind: ResourceKind,
    /// The operations that it supports.
    pub capabilities: Capabilities,
    /// The guarantees that it gives beyond the protocol.
    pub promises: Promises,
    /// How what it changes is taken back.
    pub undo: UndoWay,
    /// The description by its author.
    pub description: Option<String>,
    /// The replacement, when it is deprecated.
    pub deprecation: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Who made it.
    pub author: Option<String>,
    /// With what rights its operations must run.
    pub security: OperationSecurity,
    /// How long is waited before an instance that is pending is run again.
    pub reconcile_wait: Option<Wait>,
    /// The rule that says whether an instance is pending, by its name.
    pub reconcile_pending: Option<String>,
    /// Its properties whose values are secret however they are stated.
    pub secrets: Vec<SecretProperty>,
    /// How its states say whether an instance exists.
    pub existence: Existence,
    /// Where its schema says that values are secret; `None` where it does not, or only a program knows the schema.
    pub secret_places: Option<Arc<SecretPlaces>>,
    /// How it is carried out.
    pub implementation: I,
}

/// An adapted resource whose adapter is known by its type only.
pub type AdaptedManifest = Manifest<AdaptedResource>;

impl<I> Manifest<I> {
    /// A resource that can do nothing, and says nothing of itself.
    pub fn new(type_name: TypeName, version: Version, implementation: I) -> Self {
        Self {
            type_name,
            version,
            kind: ResourceKind::Resource,
            capabilities: Capabilities::default(),
            promises: Promises::default(),
            undo: UndoWay::default(),
            description: None,
            deprecation: None,
            tags: Vec::new(),
            author: None,
            security: OperationSecurity::default(),
            reconcile_wait: None,
            reconcile_pending: None,
            secrets: Vec::new(),
            existence: Existence::default(),
            secret_places: None,
            implementation,
        }
    }

    /// Returns the same resource, carried out otherwise.
    fn carried_out<J>(self, how: impl FnOnce(I) -> J) -> Manifest<J> {
        Manifest {
            type_name: self.type_name,
            version: self.version,
            kind: self.kind,
            capabilities: self.capabilities,
            promises: self.promises,
            undo: self.undo,
            description: self.description,
            deprecation: self.deprecation,
            tags: self.tags,
            author: self.author,
            security: self.security,
            reconcile_wait: self.reconcile_wait,
            reconcile_pending: self.reconcile_pending,
            secrets: self.secrets,
            existence: self.existence,
            secret_places: self.secret_places,
            implementation: how(self.implementation),
        }
    }
}

impl Manifest {
    /// Stands for a resource that is not there yet. What that can do is not known, so that everything may be asked of it.
    pub fn late(type_name: TypeName, late: Late) -> Self {
        let capabilities = Capabilities { get: true, set: true, test: true, export: true, ..Capabilities::default() };
        let version = Version::Semantic(semver::Version::new(0, 0, 0));
        Self { capabilities, ..Self::new(type_name, version, Implementation::Late(Arc::new(late))) }
    }

    /// The type of the adapter that carries it out, as the resource names it.
    pub fn require_adapter(&self) -> Option<&TypeName> {
        match &self.implementation {
            Implementation::Adapted { resource, .. } => Some(&resource.require_adapter),
            _ => None,
        }
    }

    /// Returns whether its instances consist of others, which its adapter knows before anything runs.
    pub fn is_composite(&self) -> bool {
        self.kind == ResourceKind::Importer && self.is_powershell()
    }

    /// True if its instances stand for documents, which its program says before anything runs.
    pub fn resolves(&self) -> bool {
        let is_command = matches!(self.implementation, Implementation::Command(_));
        self.kind == ResourceKind::Importer && is_command && self.capabilities.resolve
    }

    /// Names what it or its adapter lacks, without which its kind is not carried out as it is meant; in one sentence.
    pub fn lack(&self) -> Option<String> {
        let programs = match &self.implementation {
            Implementation::Adapted { adapter, .. } => adapter,
            _ => self,
        };
        let Implementation::Command(command) = &programs.implementation else { return None };
        let name = &programs.type_name;
        match programs.kind {
            ResourceKind::Adapter if command.validate.is_none() => {
                Some(format!("the adapter '{name}' has no 'validate': properties are not checked before they are set"))
            }
            ResourceKind::Importer if command.resolve.is_none() => {
                Some(format!("the importer '{name}' has no 'resolve': it is called as a resource"))
            }
            _ => None,
        }
    }

    /// A resource that code of this program carries out, which can do nothing yet.
    pub fn in_process(type_name: TypeName, version: Version) -> Self {
        Self::new(type_name, version, Implementation::InProcess)
    }

    /// Returns whether it is a resource of PowerShell: those are adapted by this program itself.
    pub fn is_powershell(&self) -> bool {
        matches!(&self.implementation, Implementation::Adapted { adapter, .. } if adapter.is_own_adapter())
    }

    /// True of an adapter that is a part of this program, which finds what it adapts by itself.
    pub fn is_own_adapter(&self) -> bool {
        self.kind == ResourceKind::Adapter && self.is_in_process()
    }

    /// True if it is carried out within this process: by a provider that is part of the program, or by the engine itself. Asked to
    /// find the provider of a resource; what resources can do and what is expected of them is said by other members.
    pub fn is_in_process(&self) -> bool {
        matches!(self.implementation, Implementation::InProcess | Implementation::Engine)
    }
}

impl AdaptedManifest {
    /// The resource, now that its adapter is found: how a set is answered is said by that, and how it is taken back where it does not say
    /// so itself.
    pub fn into_manifest(mut self, adapter: Arc<Manifest>) -> Manifest {
        let Capabilities { implements_pretest, reports_before, .. } = adapter.capabilities;
        let capabilities = &mut self.capabilities;
        capabilities.reports_before = reports_before && capabilities.set;
        // What cannot say what it would do is tested first, and a plan predicts it from that.
        capabilities.implements_pretest = implements_pretest && capabilities.reports_before && capabilities.set_what_if;
        if self.undo == UndoWay::Cannot && self.capabilities.get {
            self.undo = adapter.undo;
        }
        self.carried_out(|resource| Implementation::Adapted { adapter, resource: Arc::new(resource) })
    }
}

/// `requireSecurityContext` of each operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OperationSecurity {
    /// For `get`
    pub get: Option<SecurityContext>,
    /// For `set`
    pub set: Option<SecurityContext>,
    /// For `test`
    pub test: Option<SecurityContext>,
    /// For `delete`
    pub delete: Option<SecurityContext>,
    /// For `export`
    pub export: Option<SecurityContext>,
}

/// How a resource is carried out.
#[derive(Clone, Debug)]
pub enum Implementation {
    /// By code of this program.
    InProcess,
    /// By the engine itself: its nested instances are part of the run.
    Engine,
    /// By programs.
    Command(Arc<CommandResource>),
    /// By its adapter.
    Adapted {
        /// The adapter.
        adapter: Arc<Manifest>,
        /// The adapted resource that it is handed.
        resource: Arc<AdaptedResource>,
    },
    /// By a resource that is searched for when an instance is reached: there was none when the run began.
    Late(Arc<Late>),
}

/// The search that is made once an instance is reached, in a document that has resources looked for during its run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Late {
    /// The versions that it accepts; `None` for any.
    pub requirement: Option<VersionRequirement>,
    /// The adapter that must carry it out.
    pub adapter: Option<TypeName>,
}

/// A resource whose operations are programs.
#[derive(Clone, Debug, Default)]
pub struct CommandResource {
    /// The manifest file; programs run in its directory and are looked for there first.
    pub manifest_path: PathBuf,
    /// The manifest as written, for listings.
    pub manifest: serde_json::Value,
    /// `get`
    pub get: Option<ProgramCall>,
    /// `set`
    pub set: Option<ProgramCall>,
    /// `whatIf`, which is deprecated
    pub what_if: Option<ProgramCall>,
    /// `test`
    pub test: Option<ProgramCall>,
    /// `delete`
    pub delete: Option<ProgramCall>,
    /// `export`
    pub export: Option<ProgramCall>,
    /// `validate`
    pub validate: Option<ProgramCall>,
    /// `resolve`
    pub resolve: Option<ProgramCall>,
    /// `schema`
    pub schema: Option<SchemaSource>,
    /// `export.schema`
    pub export_schema: Option<SchemaSource>,
    /// `adapter`
    pub adapter: Option<AdapterMethods>,
    /// `exitCodes`
    pub exit_codes: BTreeMap<i32, String>,
    /// `metadata.stead.claims`
    pub claims: Vec<ClaimedProperty>,
    /// `metadata.stead.resident`: the program that stays and carries out all methods.
    pub resident: Option<ResidentProgram>,
}

/// A program that stays for a session and is called over its standard input and output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResidentProgram {
    /// The program: a name, or a path relative to the manifest.
    pub executable: String,
    /// The arguments that it is started with.
    pub arguments: Vec<String>,
}

/// A program and how it is called.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgramCall {
    /// The program: a name, or a path relative to the manifest.
    pub executable: String,
    /// The arguments that it is called with.
    pub arguments: Vec<Argument>,
    /// How it gets the desired state besides its arguments.
    pub input: Input,
    /// The form of its output.
    pub returns: Option<Returns>,
    /// The form of its output in what-if, where that differs.
    pub what_if_returns: Option<Returns>,
}

/// One argument of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// The text itself.
    Literal(String),
    /// Two arguments: the name, then the desired state as JSON. Left out when there is none and it is not mandatory.
    Json {
        /// The name.
        name: String,
        /// True if it is passed even without a desired state.
        mandatory: bool,
    },
    /// Two arguments: the name, then the content of the adapted manifest as JSON.
    AdaptedContent(String),
    /// Two arguments: the name, then the type.
    ResourceType(String),
    /// Two arguments: the name, then the version.
    ResourceVersion(String),
    /// Two arguments: the name, then the path of the adapted resource.
    ResourcePath {
        /// The name.
        name: String,
        /// True if the path is put in double quotes.
        quoted: bool,
    },
    /// The text, but only in what-if.
    WhatIf(String),
}

/// How a program gets the desired state besides its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Input {
    /// Not at all.
    #[default]
    None,
    /// As JSON on standard input.
    Stdin,
    /// Each property as an environment variable.
    Environment,
}

/// The form of the output of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returns {
    /// One line: the state.
    State,
    /// Two lines: the state, and an array of the names of differing or changed properties.
    StateAndDiff,
}

/// Where a schema comes from.
#[derive(Clone, PartialEq, Debug)]
pub enum SchemaSource {
    /// It is printed by a program.
    Command {
        /// The program.
        executable: String,
        /// Literals, and the type and version arguments.
        arguments: Vec<Argument>,
    },
    /// It is in the manifest.
    Embedded(serde_json::Value),
}

/// `adapter` of a manifest.
#[derive(Clone, PartialEq, Debug)]
pub struct AdapterMethods {
    /// Lists the adapted resources, one JSON object a line.
    pub list: Option<ProgramCall>,
    /// `metadata.stead.find`: lists one of them, by its type, or that one among others.
    pub find: Option<ProgramCall>,
    /// The input that it is given.
    pub input_kind: AdapterInput,
    /// `metadata.stead.batch`: it takes several instances in one call, and answers for each by itself.
    pub batch: bool,
}

/// The form of the input that an adapter is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdapterInput {
    /// A document with all instances.
    Full,
    /// The instances one after the other, in one process.
    Sequence,
    /// One instance, its type as an argument.
    Single,
}

/// A resource that an adapter carries out.
#[derive(Clone, Debug)]
pub struct AdaptedResource {
    /// The type of its adapter.
    pub require_adapter: TypeName,
    /// The file that it is implemented in; a manifest has it relative to where it lies, an adapter as it likes.
    pub path: Option<PathBuf>,
    /// The content that its adapter is handed instead of a path.
    pub content: Option<serde_json::Value>,
    /// Its schema, where it states one.
    pub schema: Option<serde_json::Value>,
    /// The manifest file, if it came from one.
    pub manifest_path: Option<PathBuf>,
    /// The manifest as written, or what the adapter listed.
    pub manifest: serde_json::Value,
}
