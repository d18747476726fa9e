//! Manifest text to the types of the engine.
//!
//! Everything that is wrong is said at once; a manifest with an error is left out, the others of its file stay.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;

use super::read::{Reader, Unknown, head, plain, present, text_of};
use super::{
    AdaptedResource, AdapterInput, AdapterMethods, Argument, Capabilities, CommandResource, DiscoverArgument,
    DiscoverMethod, Extension, Implementation, ImportArgument, ImportMethod, Input, InvalidVersion, Kind, Manifest,
    Method, OperationSecurity, Returns, SchemaSource, SecretArgument, SecretMethod, Version, codes,
};
use crate::diag::Diagnostic;
use crate::document::SecurityContext;
use crate::id::TypeName;
use crate::text::{Node, Span};

/// What a manifest file is, by its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Form {
    /// `*.dsc.resource.*`
    Resource,
    /// `*.dsc.adaptedResource.*`
    Adapted,
    /// `*.dsc.extension.*`
    Extension,
    /// `*.dsc.manifests.*`: several of the others
    List,
}

impl Form {
    /// How the names of manifests of resources end: what an extension that searches for some has to look for.
    pub const ENDINGS: [&str; 9] = [
        ".dsc.resource.json",
        ".dsc.resource.yaml",
        ".dsc.resource.yml",
        ".dsc.adaptedResource.json",
        ".dsc.adaptedResource.yaml",
        ".dsc.adaptedResource.yml",
        ".dsc.manifests.json",
        ".dsc.manifests.yaml",
        ".dsc.manifests.yml",
    ];

    /// The form of a file of that name; `None` when it is no manifest. Case does not matter.
    pub fn of(file_name: &str) -> Option<Self> {
        // Most names of a search path are programs without any dot, so the cheap test comes first.
        let (stem, ending) = file_name.rsplit_once('.')?;
        if !["json", "yaml", "yml"].iter().any(|each| ending.eq_ignore_ascii_case(each)) {
            return None;
        }
        let (stem, form) = stem.rsplit_once('.')?;
        let (_, dsc) = stem.rsplit_once('.')?;
        let forms = [
            ("resource", Self::Resource),
            ("adaptedResource", Self::Adapted),
            ("extension", Self::Extension),
            ("manifests", Self::List),
        ];
        let known = forms.iter().find(|(word, _)| form.eq_ignore_ascii_case(word));
        known.filter(|_| dsc.eq_ignore_ascii_case("dsc")).map(|(_, form)| *form)
    }

    /// The form of a manifest that has no file name, by what it holds.
    pub fn guess(manifest: &Node) -> Self {
        let has = |keys: &[&str]| keys.iter().any(|key| present(manifest, key).is_some());
        if has(&["resources", "adaptedResources", "extensions"]) {
            Self::List
        } else if has(&["requireAdapter"]) {
            Self::Adapted
        } else if has(&["discover", "import", "secret"]) {
            Self::Extension
        } else {
            Self::Resource
        }
    }
}

/// One manifest of a file.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The expression that has to be true on a machine for the manifest to count there.
    pub condition: Option<Node>,
    /// What is declared.
    pub declaration: Declaration,
}

/// What a manifest declares.
#[derive(Clone, Debug)]
pub enum Declaration {
    /// A resource.
    Resource(Box<Manifest>),
    /// A resource whose adapter has yet to be found.
    Adapted(Box<AdaptedManifest>),
    /// An extension.
    Extension(Box<Extension>),
}

/// An adapted resource whose adapter is known by its type only.
#[derive(Clone, Debug)]
pub struct AdaptedManifest {
    /// Its type.
    pub type_name: TypeName,
    /// Its version.
    pub version: Version,
    /// Its kind.
    pub kind: Kind,
    /// What it can do.
    pub capabilities: Capabilities,
    /// What it says of itself.
    pub description: Option<String>,
    /// What to use instead, when it is deprecated.
    pub deprecation: Option<String>,
    /// Who made it.
    pub author: Option<String>,
    /// The type of its adapter.
    pub require_adapter: TypeName,
    /// The file that it is implemented in; relative paths have been resolved against the manifest.
    pub path: Option<PathBuf>,
    /// What its adapter is handed instead of a path.
    pub content: Option<Json>,
    /// Its schema.
    pub schema: Option<Json>,
    /// The names of its properties, where there is no schema.
    pub properties: Vec<String>,
    /// What the listing shows as `implementedAs`.
    pub implemented_as: Option<Json>,
    /// The manifest file, if it came from one.
    pub manifest_path: Option<PathBuf>,
    /// The manifest as written, or what the adapter listed.
    pub manifest: Json,
}

impl AdaptedManifest {
    /// The resource, now that its adapter is found.
    pub fn into_manifest(self, adapter: Arc<Manifest>) -> Manifest {
        Manifest {
            type_name: self.type_name,
            version: self.version,
            kind: self.kind,
            capabilities: self.capabilities,
            description: self.description,
            deprecation: self.deprecation,
            tags: Vec::new(),
            author: self.author,
            require_adapter: Some(self.require_adapter),
            security: OperationSecurity::default(),
            implementation: Implementation::Adapted(Arc::new(AdaptedResource {
                adapter,
                path: self.path,
                content: self.content,
                schema: self.schema,
                properties: self.properties,
                implemented_as: self.implemented_as,
                manifest_path: self.manifest_path,
                manifest: self.manifest,
            })),
        }
    }
}

/// Reads a manifest file: what it declares, and everything that is wrong with it.
///
/// `path` is where the file lies; paths in it are relative to its directory. Nothing is looked up on disk.
pub fn parse(form: Form, node: &Node, path: &Path) -> (Vec<Declared>, Vec<Diagnostic>) {
    let mut parser = Parser { reader: Reader::default(), path };
    let mut declared = Vec::new();
    match form {
        Form::List => parser.list(node, &mut declared),
        form => declared.extend(parser.one(form, node)),
    }
    let mut found = parser.reader.found;
    found.sort_by_key(|finding| finding.span);
    (declared, found)
}

/// Reads one object that an adapter listed. A relative `path` stays as it is: only the adapter knows what it means.
pub fn parse_listed(listed: &Json) -> Result<AdaptedManifest, Vec<Diagnostic>> {
    let node = super::unplaced(listed);
    let mut parser = Parser { reader: Reader::default(), path: Path::new("") };
    let manifest = parser.listed(&node);
    let found = parser.reader.found;
    manifest.filter(|_| !crate::diag::any_error(&found)).ok_or(found)
}

struct Parser<'a> {
    reader: Reader,
    path: &'a Path,
}

const RESOURCE_KEYS: [&str; 20] = [
    "$schema",
    "type",
    "kind",
    "version",
    "description",
    "tags",
    "condition",
    "deprecationMessage",
    "get",
    "set",
    "whatIf",
    "test",
    "delete",
    "export",
    "resolve",
    "validate",
    "adapter",
    "exitCodes",
    "schema",
    "metadata",
];
const ADAPTED_KEYS: [&str; 13] = [
    "$schema",
    "type",
    "kind",
    "version",
    "capabilities",
    "condition",
    "deprecationMessage",
    "path",
    "content",
    "description",
    "author",
    "requireAdapter",
    "schema",
];
const EXTENSION_KEYS: [&str; 13] = [
    "$schema",
    "type",
    "version",
    "condition",
    "deprecationMessage",
    "description",
    "tags",
    "discover",
    "import",
    "importParameters",
    "secret",
    "exitCodes",
    "metadata",
];
const LIST_KEYS: [&str; 3] = ["adaptedResources", "resources", "extensions"];
const LISTED_KEYS: [&str; 15] = [
    "type",
    "kind",
    "version",
    "capabilities",
    "deprecationMessage",
    "path",
    "description",
    "directory",
    "implementedAs",
    "author",
    "properties",
    "requireAdapter",
    "schema",
    "manifest",
    "targetResource",
];

const KINDS: [(&str, Kind); 5] = [
    ("resource", Kind::Resource),
    ("adapter", Kind::Adapter),
    ("group", Kind::Group),
    ("importer", Kind::Importer),
    ("exporter", Kind::Exporter),
];
const INPUTS: [(&str, Input); 2] = [("stdin", Input::Stdin), ("env", Input::Environment)];
const RETURNS: [(&str, Returns); 2] = [("state", Returns::State), ("stateAndDiff", Returns::StateAndDiff)];
/// `config` is what `full` was called once.
const ADAPTER_INPUTS: [(&str, AdapterInput); 4] = [
    ("full", AdapterInput::Full),
    ("sequence", AdapterInput::Sequence),
    ("single", AdapterInput::Single),
    ("config", AdapterInput::Full),
];
const CONTEXTS: [(&str, SecurityContext); 3] = [
    ("current", SecurityContext::Current),
    ("elevated", SecurityContext::Elevated),
    ("restricted", SecurityContext::Restricted),
];
type Grant = fn(&mut Capabilities);
const CAPABILITIES: [(&str, Grant); 9] = [
    ("get", |can| can.get = true),
    ("set", |can| can.set = true),
    ("setHandlesExist", |can| can.set_handles_exist = true),
    ("setWhatIf", |can| can.set_what_if = true),
    ("test", |can| can.test = true),
    ("delete", |can| can.delete = true),
    ("deleteWhatIf", |can| can.delete_what_if = true),
    ("export", |can| can.export = true),
    ("resolve", |can| can.resolve = true),
];

const METHOD_KEYS: [&str; 4] = ["executable", "args", "input", "requireSecurityContext"];
const PLAIN_METHOD_KEYS: [&str; 3] = ["executable", "args", "input"];
const TEST_KEYS: [&str; 5] = ["executable", "args", "input", "return", "requireSecurityContext"];
const EXPORT_KEYS: [&str; 6] = ["executable", "args", "input", "requireSecurityContext", "schema", "supportsFiltering"];
const SET_KEYS: [&str; 8] = [
    "executable",
    "args",
    "input",
    "implementsPretest",
    "handlesExist",
    "return",
    "requireSecurityContext",
    "whatIfReturns",
];

/// The arguments that an operation takes besides literals.
const CALL_ARGUMENTS: [&str; 5] =
    ["jsonInputArg", "adaptedContentArg", "resourceTypeArg", "resourceVersionArg", "resourcePathArg"];
const CHANGE_ARGUMENTS: [&str; 6] =
    ["jsonInputArg", "adaptedContentArg", "resourceTypeArg", "resourceVersionArg", "resourcePathArg", "whatIfArg"];
const SCHEMA_ARGUMENTS: [&str; 2] = ["resourceTypeArg", "resourceVersionArg"];

impl Parser<'_> {
    fn list(&mut self, node: &Node, declared: &mut Vec<Declared>) {
        // Whatever else such a file holds is for others to read.
        if self.reader.members(node, "a list of manifests", &LIST_KEYS, Unknown::Ignored).is_none() {
            return;
        }
        for (key, form) in
            [("resources", Form::Resource), ("adaptedResources", Form::Adapted), ("extensions", Form::Extension)]
        {
            let each = self.reader.elements(node, key).iter();
            declared.extend(each.filter_map(|manifest| self.one(form, manifest)).collect::<Vec<_>>());
        }
    }

    /// One manifest; `None` when anything is wrong with it.
    fn one(&mut self, form: Form, node: &Node) -> Option<Declared> {
        let before = self.reader.errors();
        let declaration = match form {
            Form::Adapted => self.adapted(node).map(|manifest| Declaration::Adapted(Box::new(manifest))),
            Form::Extension => self.extension(node).map(|extension| Declaration::Extension(Box::new(extension))),
            Form::Resource | Form::List => {
                self.resource(node).map(|manifest| Declaration::Resource(Box::new(manifest)))
            }
        };
        node.entries()?;
        let condition = self.reader.expression(node, "condition");
        self.reader.optional_text(node, "$schema");
        declaration.filter(|_| self.reader.errors() == before).map(|declaration| Declared { condition, declaration })
    }

    fn resource(&mut self, node: &Node) -> Option<Manifest> {
        let before = self.reader.errors();
        self.reader.members(node, "a resource manifest", &RESOURCE_KEYS, Unknown::Refused)?;
        let type_name = self.reader.type_name(node, "type", "the manifest");
        let version = self.version(node);
        let description = self.reader.optional_text(node, "description");
        let deprecation = self.reader.optional_text(node, "deprecationMessage");
        let tags = self.reader.tags(node);
        self.reader.object(node, "metadata");
        let mut capabilities = Capabilities::default();
        let mut security = OperationSecurity::default();
        let command = self.command(node, &mut capabilities, &mut security);
        let kind = self.kind(node, &command);
        // A misspelled operation has been found already.
        if self.reader.errors() == before {
            self.warn_if_idle(node, &command);
        }
        Some(Manifest {
            type_name: type_name?,
            version: version?,
            kind,
            capabilities,
            description,
            deprecation,
            tags,
            author: None,
            require_adapter: None,
            security,
            implementation: Implementation::Command(Arc::new(command)),
        })
    }

    fn command(
        &mut self,
        node: &Node,
        capabilities: &mut Capabilities,
        security: &mut OperationSecurity,
    ) -> CommandResource {
        let get = self.method(node, "get", &METHOD_KEYS, &CALL_ARGUMENTS);
        let set = self.method(node, "set", &SET_KEYS, &CHANGE_ARGUMENTS);
        let what_if = self.what_if(node);
        let test = self.method(node, "test", &TEST_KEYS, &CALL_ARGUMENTS);
        let delete = self.method(node, "delete", &METHOD_KEYS, &CHANGE_ARGUMENTS);
        let export = self.method(node, "export", &EXPORT_KEYS, &CALL_ARGUMENTS);
        let resolve = self.method(node, "resolve", &PLAIN_METHOD_KEYS, &CALL_ARGUMENTS);
        let validate = self.method(node, "validate", &PLAIN_METHOD_KEYS, &CALL_ARGUMENTS);
        *capabilities = Capabilities {
            get: get.is_some(),
            set: set.is_some(),
            set_handles_exist: self.flag(node, "set", "handlesExist"),
            set_what_if: what_if.is_some() || takes_what_if(set.as_ref()),
            implements_pretest: self.flag(node, "set", "implementsPretest"),
            test: test.is_some(),
            delete: delete.is_some(),
            delete_what_if: takes_what_if(delete.as_ref()),
            export: export.is_some(),
            export_filters: export.is_some() && self.filters(node),
            resolve: resolve.is_some(),
        };
        *security = self.security(node);
        CommandResource {
            manifest_path: self.path.to_owned(),
            manifest: plain(node),
            schema: present(node, "schema").and_then(|schema| self.schema(schema)),
            export_schema: self.export_schema(node),
            adapter: present(node, "adapter").and_then(|adapter| self.adapter(adapter)),
            exit_codes: self.reader.exit_codes(node),
            ..CommandResource { get, set, what_if, test, delete, export, validate, resolve, ..Default::default() }
        }
    }

    fn kind(&mut self, node: &Node, command: &CommandResource) -> Kind {
        let stated = self.reader.optional_word(node, "kind", &KINDS);
        let has_adapter = present(node, "adapter").is_some();
        let problem = match (stated, has_adapter) {
            (Some(Kind::Adapter), false) => "a manifest of kind 'adapter' needs 'adapter'",
            (Some(kind), true) if kind != Kind::Adapter => "a manifest with 'adapter' has to be of kind 'adapter'",
            _ => return stated.unwrap_or(if command.adapter.is_some() { Kind::Adapter } else { Kind::Resource }),
        };
        if let Some(kind) = present(node, "kind") {
            self.reader.note(Diagnostic::error(&codes::ADAPTER, kind.span, problem));
        }
        Kind::Resource
    }

    fn warn_if_idle(&mut self, node: &Node, command: &CommandResource) {
        let methods = [&command.get, &command.set, &command.test, &command.delete, &command.export, &command.resolve];
        let mut named = ["get", "set", "test", "delete", "export", "resolve", "adapter"].iter();
        if methods.iter().all(|method| method.is_none()) && !named.any(|key| present(node, key).is_some()) {
            let span = present(node, "type").map_or(node.span, |value| value.span);
            self.reader.note(Diagnostic::warning(&codes::IDLE, span, "the resource names no operation"));
        }
    }

    fn version(&mut self, node: &Node) -> Option<Version> {
        let (version, span) = self.any_version(node)?;
        if let Version::Date(date) = &version {
            let finding = Diagnostic::warning(&codes::DATE_VERSION, span, format!("the version '{date}' is a date"));
            self.reader.note(finding.with_help("use a semantic version such as '1.0.0'"));
        }
        Some(version)
    }

    fn any_version(&mut self, node: &Node) -> Option<(Version, Span)> {
        let value = self.reader.required(node, "version", "the manifest")?;
        let text = self.reader.text(value, "'version'")?;
        let invalid = |error: InvalidVersion| {
            let finding = Diagnostic::error(&codes::VERSION, value.span, error.to_string());
            let help = error.suggestion.map(|suggestion| format!("write '{suggestion}'"));
            self.reader.note(Diagnostic { help, ..finding });
        };
        Version::parse(&text).map(|version| (version, value.span)).map_err(invalid).ok()
    }

    fn method(&mut self, node: &Node, key: &str, keys: &[&str], arguments: &[&'static str]) -> Option<Method> {
        let value = present(node, key)?;
        let what = format!("'{key}'");
        self.reader.members(value, &what, keys, Unknown::Ignored)?;
        let executable = self.executable(value, &what);
        let arguments = self.arguments(value, &what, arguments);
        let input = self.reader.optional_word(value, "input", &INPUTS).unwrap_or_default();
        Some(Method {
            executable: executable?,
            arguments,
            input,
            returns: self.reader.optional_word(value, "return", &RETURNS),
            what_if_returns: self.reader.optional_word(value, "whatIfReturns", &RETURNS),
        })
    }

    fn executable(&mut self, node: &Node, what: &str) -> Option<String> {
        let value = self.reader.required(node, "executable", what)?;
        self.reader.text(value, "'executable'")
    }

    fn what_if(&mut self, node: &Node) -> Option<Method> {
        let entry = node.entries()?.iter().find(|entry| &*entry.key == "whatIf")?;
        let method = self.method(node, "whatIf", &SET_KEYS, &CHANGE_ARGUMENTS)?;
        let finding = Diagnostic::warning(&codes::WHAT_IF, entry.key_span, "'whatIf' is deprecated");
        self.reader.note(finding.with_help("give 'set' an argument such as {\"whatIfArg\": \"--what-if\"} instead"));
        Some(method)
    }

    fn flag(&mut self, node: &Node, method: &str, key: &str) -> bool {
        let value = present(node, method).filter(|value| value.entries().is_some());
        value.and_then(|value| self.reader.truth(value, key)).unwrap_or(false)
    }

    /// A program filters its export unless it says that it does not.
    fn filters(&mut self, node: &Node) -> bool {
        present(node, "export").and_then(|export| self.reader.truth(export, "supportsFiltering")).unwrap_or(true)
    }

    fn security(&mut self, node: &Node) -> OperationSecurity {
        let mut of = |method: &str| {
            let value = present(node, method).filter(|value| value.entries().is_some())?;
            self.reader.optional_word(value, "requireSecurityContext", &CONTEXTS)
        };
        OperationSecurity {
            get: of("get"),
            set: of("set"),
            test: of("test"),
            delete: of("delete"),
            export: of("export"),
        }
    }

    fn arguments(&mut self, node: &Node, what: &str, allowed: &[&'static str]) -> Vec<Argument> {
        let elements = self.reader.elements(node, "args").iter();
        elements.filter_map(|element| self.argument(element, what, allowed)).collect()
    }

    fn argument(&mut self, node: &Node, what: &str, allowed: &[&'static str]) -> Option<Argument> {
        let (key, text) = match self.argument_form(node, what, allowed)? {
            (None, text) => return Some(Argument::Literal(text)),
            (Some(key), text) => (key, text),
        };
        Some(match key {
            "jsonInputArg" => {
                Argument::Json { name: text, mandatory: self.reader.truth(node, "mandatory").unwrap_or(false) }
            }
            "adaptedContentArg" => Argument::AdaptedContent(text),
            "resourceTypeArg" => Argument::ResourceType(text),
            "resourceVersionArg" => Argument::ResourceVersion(text),
            "resourcePathArg" => Argument::ResourcePath { name: text, quoted: self.quoted(node) },
            _ => Argument::WhatIf(text),
        })
    }

    fn quoted(&mut self, node: &Node) -> bool {
        self.reader.truth(node, "includeQuotes").unwrap_or(false)
    }

    /// The key that says what an argument stands for, or none for a literal; and the text.
    fn argument_form(
        &mut self,
        node: &Node,
        what: &str,
        allowed: &[&'static str],
    ) -> Option<(Option<&'static str>, String)> {
        if let Some(text) = text_of(node) {
            return Some((None, text.to_owned()));
        }
        let named: Vec<_> = allowed.iter().filter(|key| present(node, key).is_some()).collect();
        let [key] = *named else {
            let forms = if allowed.is_empty() { String::new() } else { format!(", or one of {}", allowed.join(", ")) };
            let message = format!("this is not an argument of {what}");
            let finding = Diagnostic::error(&codes::ARGUMENT, node.span, message);
            self.reader.note(finding.with_help(format!("an argument of {what} is a string{forms}")));
            return None;
        };
        let keys = [*key, "mandatory", "includeQuotes"];
        let extra = match *key {
            "jsonInputArg" => &keys[..2],
            "resourcePathArg" | "extensionsArg" => &[*key, "includeQuotes"],
            _ => &keys[..1],
        };
        self.reader.members(node, "an argument", extra, Unknown::Ignored)?;
        let text = node.get(key).and_then(|value| self.reader.text(value, &format!("'{key}'")))?;
        Some((Some(*key), text))
    }

    fn schema(&mut self, node: &Node) -> Option<SchemaSource> {
        let command = present(node, "command");
        match (command, node.get("embedded")) {
            (Some(command), None) => {
                self.reader.members(node, "'schema'", &["command", "embedded"], Unknown::Ignored)?;
                self.reader.members(command, "'command'", &["executable", "args"], Unknown::Ignored)?;
                let arguments = self.arguments(command, "'command'", &SCHEMA_ARGUMENTS);
                Some(SchemaSource::Command { executable: self.executable(command, "'command'")?, arguments })
            }
            (None, Some(embedded)) => {
                self.reader.members(node, "'schema'", &["command", "embedded"], Unknown::Ignored)?;
                Some(SchemaSource::Embedded(plain(embedded)))
            }
            _ => {
                let message = "a schema is an object with either 'embedded' or 'command'";
                self.reader.note(Diagnostic::error(&codes::SCHEMA, node.span, message));
                None
            }
        }
    }

    fn export_schema(&mut self, node: &Node) -> Option<SchemaSource> {
        let export = present(node, "export")?;
        let schema = present(export, "schema")?;
        if let Some(filtering) = present(export, "supportsFiltering") {
            let message = "'schema' and 'supportsFiltering' exclude each other";
            let finding = Diagnostic::error(&codes::EXPORT, filtering.span, message);
            self.reader.note(finding.with_label(schema.span, "the filter is described here"));
        }
        self.schema(schema)
    }

    fn adapter(&mut self, node: &Node) -> Option<AdapterMethods> {
        self.reader.members(node, "'adapter'", &["list", "inputKind"], Unknown::Ignored)?;
        let list = self.method(node, "list", &["executable", "args"], &[]);
        let kind = self.reader.required(node, "inputKind", "'adapter'")?;
        let input_kind = self.reader.word(kind, "'inputKind'", &ADAPTER_INPUTS)?;
        Some(AdapterMethods { list, input_kind })
    }
}

/// Adapted resources, from a manifest and from the list of an adapter.
impl Parser<'_> {
    fn adapted(&mut self, node: &Node) -> Option<AdaptedManifest> {
        self.reader.members(node, "the manifest of an adapted resource", &ADAPTED_KEYS, Unknown::Refused)?;
        for key in ["kind", "capabilities", "schema"] {
            self.reader.required(node, key, "the manifest");
        }
        let content = self.reader.object(node, "content");
        let path = self.reader.optional_text(node, "path");
        self.path_or_content(node);
        let directory = self.path.parent().unwrap_or(Path::new(""));
        let path = path.map(|path| directory.join(path));
        let schema = self.reader.object(node, "schema");
        let manifest_path = Some(self.path.to_owned());
        let common = self.adapted_common(node)?;
        Some(AdaptedManifest { path, content, schema, manifest_path, ..common })
    }

    fn path_or_content(&mut self, node: &Node) {
        let (span, message) = match (present(node, "path"), present(node, "content")) {
            (Some(_), Some(content)) => (content.span, "an adapted resource cannot have both 'path' and 'content'"),
            (None, None) => (head(node), "an adapted resource needs 'path' or 'content'"),
            _ => return,
        };
        self.reader.note(Diagnostic::error(&codes::PATH_OR_CONTENT, span, message));
    }

    fn listed(&mut self, node: &Node) -> Option<AdaptedManifest> {
        self.reader.members(node, "a listed resource", &LISTED_KEYS, Unknown::Ignored)?;
        let common = self.adapted_common(node)?;
        Some(AdaptedManifest {
            path: self.reader.optional_text(node, "path").map(PathBuf::from),
            content: self.reader.object(node, "adaptedContent"),
            schema: self.reader.object(node, "schema"),
            properties: self.reader.texts(node, "properties"),
            implemented_as: present(node, "implementedAs").map(plain),
            ..common
        })
    }

    fn adapted_common(&mut self, node: &Node) -> Option<AdaptedManifest> {
        let type_name = self.reader.type_name(node, "type", "the manifest");
        let require_adapter = self.reader.type_name(node, "requireAdapter", "the manifest");
        let version = self.version(node);
        Some(AdaptedManifest {
            kind: self.reader.optional_word(node, "kind", &KINDS).unwrap_or(Kind::Resource),
            capabilities: self.capabilities(node),
            description: self.reader.optional_text(node, "description"),
            deprecation: self.reader.optional_text(node, "deprecationMessage"),
            author: self.reader.optional_text(node, "author"),
            manifest: plain(node),
            type_name: type_name?,
            require_adapter: require_adapter?,
            version: version?,
            path: None,
            content: None,
            schema: None,
            properties: Vec::new(),
            implemented_as: None,
            manifest_path: None,
        })
    }

    fn capabilities(&mut self, node: &Node) -> Capabilities {
        let mut capabilities = Capabilities::default();
        for element in self.reader.elements(node, "capabilities") {
            if let Some(grant) = self.reader.word(element, "a capability", &CAPABILITIES) {
                grant(&mut capabilities);
            }
        }
        // What filters is the adapter's export; it is given the filter as any program is.
        capabilities.export_filters = capabilities.export;
        capabilities
    }
}

impl Parser<'_> {
    fn extension(&mut self, node: &Node) -> Option<Extension> {
        self.reader.members(node, "an extension manifest", &EXTENSION_KEYS, Unknown::Refused)?;
        let type_name = self.reader.type_name(node, "type", "the manifest");
        let version = self.semantic_version(node);
        let description = self.reader.optional_text(node, "description");
        let deprecation = self.reader.optional_text(node, "deprecationMessage");
        let tags = self.reader.tags(node);
        self.reader.object(node, "metadata");
        let discover = present(node, "discover").and_then(|method| self.discover(method));
        let import = present(node, "import").and_then(|method| self.import(method));
        let secret = present(node, "secret").and_then(|method| self.secret(method));
        Some(Extension {
            exit_codes: self.reader.exit_codes(node),
            manifest_path: self.path.to_owned(),
            manifest: plain(node),
            type_name: type_name?,
            version: version?,
            description,
            deprecation,
            tags,
            discover,
            import,
            secret,
        })
    }

    fn semantic_version(&mut self, node: &Node) -> Option<semver::Version> {
        let (version, span) = self.any_version(node)?;
        match version {
            Version::Semantic(version) => Some(version),
            Version::Date(date) => {
                let message = format!("the version of an extension cannot be a date such as '{date}'");
                self.reader.note(Diagnostic::error(&codes::VERSION, span, message));
                None
            }
        }
    }

    fn discover(&mut self, node: &Node) -> Option<DiscoverMethod> {
        self.reader.members(node, "'discover'", &["executable", "args"], Unknown::Ignored)?;
        let arguments =
            self.extension_arguments(node, "'discover'", &["extensionsArg"], |parser, node, key, text| match key {
                Some(_) => DiscoverArgument::Endings { name: text, quoted: parser.quoted(node) },
                None => DiscoverArgument::Literal(text),
            });
        Some(DiscoverMethod { executable: self.executable(node, "'discover'")?, arguments })
    }

    fn import(&mut self, node: &Node) -> Option<ImportMethod> {
        self.reader.members(node, "'import'", &["fileExtensions", "executable", "args", "output"], Unknown::Ignored)?;
        let arguments = self.extension_arguments(node, "'import'", &["fileArg"], |_, _, key, text| match key {
            Some(_) => ImportArgument::File(text),
            None => ImportArgument::Literal(text),
        });
        self.reader.required(node, "fileExtensions", "'import'")?;
        let file_extensions = self.reader.texts(node, "fileExtensions");
        Some(ImportMethod {
            file_extensions: file_extensions.iter().map(|each| each.trim_start_matches('.').to_owned()).collect(),
            executable: self.executable(node, "'import'")?,
            arguments,
            output: self.reader.expression(node, "output"),
        })
    }

    fn secret(&mut self, node: &Node) -> Option<SecretMethod> {
        self.reader.members(node, "'secret'", &["executable", "args"], Unknown::Ignored)?;
        let keys = ["nameArg", "vaultArg"];
        let arguments = self.extension_arguments(node, "'secret'", &keys, |_, _, key, text| match key {
            Some("nameArg") => SecretArgument::Name(text),
            Some(_) => SecretArgument::Vault(text),
            None => SecretArgument::Literal(text),
        });
        Some(SecretMethod { executable: self.executable(node, "'secret'")?, arguments })
    }

    fn extension_arguments<T>(
        &mut self,
        node: &Node,
        what: &str,
        allowed: &[&'static str],
        make: impl Fn(&mut Self, &Node, Option<&'static str>, String) -> T,
    ) -> Vec<T> {
        let mut arguments = Vec::new();
        for element in self.reader.elements(node, "args") {
            if let Some((key, text)) = self.argument_form(element, what, allowed) {
                arguments.push(make(self, element, key, text));
            }
        }
        arguments
    }
}

fn takes_what_if(method: Option<&Method>) -> bool {
    method.is_some_and(|method| method.arguments.iter().any(|argument| matches!(argument, Argument::WhatIf(_))))
}
