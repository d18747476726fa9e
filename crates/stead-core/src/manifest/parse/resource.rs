//! Resources that are programs.

use std::sync::Arc;

use super::Parser;
use super::method::{CALL_ARGUMENTS, CHANGE_ARGUMENTS, SCHEMA_ARGUMENTS};
use crate::diag::Diagnostic;
use crate::document::SecurityContext;
use crate::manifest::read::{Unknown, plain, present};
use crate::manifest::{
    AdapterInput, AdapterMethods, Argument, Capabilities, ClaimedAccess, ClaimedExtent, ClaimedProperty,
    CommandResource, Implementation, Input, Manifest, OperationSecurity, ProgramCall, Promises, ResidentProgram,
    ResourceKind, SchemaSource, SecretPlaces, UndoWay, codes,
};
use crate::text::Node;
use crate::wait::Wait;

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

const ADAPTER_INPUTS: [(&str, AdapterInput); 3] =
    [("full", AdapterInput::Full), ("sequence", AdapterInput::Sequence), ("single", AdapterInput::Single)];
const CONTEXTS: [(&str, SecurityContext); 3] = [
    ("current", SecurityContext::Current),
    ("elevated", SecurityContext::Elevated),
    ("restricted", SecurityContext::Restricted),
];

const CLAIM_KEYS: [&str; 3] = ["property", "extent", "access"];
const RESIDENT_KEYS: [&str; 2] = ["executable", "args"];
const UNDO_WAYS: [(&str, UndoWay); 1] = [("state", UndoWay::State)];
const EXTENTS: [(&str, ClaimedExtent); 2] = [("file", ClaimedExtent::File), ("tree", ClaimedExtent::Tree)];
const ACCESSES: [(&str, ClaimedAccess); 2] = [("manages", ClaimedAccess::Manages), ("reads", ClaimedAccess::Reads)];

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

/// Returns the places where a schema in a manifest says that values are secret.
fn secret_places(schema: &SchemaSource) -> Option<Arc<SecretPlaces>> {
    match schema {
        SchemaSource::Embedded(schema) => SecretPlaces::of_schema(schema).map(Arc::new),
        SchemaSource::Command { .. } => None,
    }
}

impl Parser<'_> {
    pub(super) fn resource(&mut self, node: &Node) -> Option<Manifest> {
        let before = self.reader.errors();
        self.reader.members(node, "a resource manifest", &RESOURCE_KEYS, Unknown::Refused)?;
        let type_name = self.reader.type_name(node, "type", "the manifest");
        let version = self.version(node);
        let description = self.reader.optional_text(node, "description");
        let deprecation = self.reader.optional_text(node, "deprecationMessage");
        let tags = self.reader.tags(node);
        self.reader.object(node, "metadata");
        let reconcile_wait = self.reconcile_wait(node);
        let stead = node.get("metadata").and_then(|metadata| metadata.get("stead"));
        let reconcile_pending = stead.and_then(|stead| self.reader.optional_text(stead, "reconcilePending"));
        let mut capabilities = Capabilities::default();
        let mut security = OperationSecurity::default();
        let command = self.command(node, &mut capabilities, &mut security);
        self.check_batch(node, &command);
        let is_read = capabilities.get || command.adapter.is_some();
        let undo = self.undo(node, is_read);
        let kind = self.kind(node);
        // A misspelled operation has been found already.
        if self.reader.errors() == before {
            self.warn_if_idle(node, &command);
        }
        Some(Manifest {
            kind,
            capabilities,
            promises: Promises {
                claims: !command.claims.is_empty(),
                bounded: !command.claims.is_empty(),
                ..Promises::default()
            },
            description,
            undo,
            deprecation,
            tags,
            security,
            reconcile_wait,
            reconcile_pending,
            secret_places: command.schema.as_ref().and_then(secret_places),
            ..Manifest::new(type_name?, version?, Implementation::Command(Arc::new(command)))
        })
    }

    /// `metadata.stead.reconcileWait`: dsc refuses keys of a manifest that it does not know.
    fn reconcile_wait(&mut self, node: &Node) -> Option<Wait> {
        let stated = node.get("metadata")?.get("stead")?.get("reconcileWait")?;
        let wait = Wait::from_json(plain(stated));
        let wait = wait.map_err(|why| {
            let message = format!("'reconcileWait' is not a valid wait: {why}");
            self.reader.note(Diagnostic::error(&crate::diag::codes::document::WAIT, stated.span, message));
        });
        wait.ok()
    }

    /// `metadata.stead.undo`: of a resource whose state is read, it is set again.
    pub(super) fn undo(&mut self, node: &Node, is_read: bool) -> UndoWay {
        let stead = node.get("metadata").and_then(|metadata| present(metadata, "stead"));
        let Some(stated) = stead.and_then(|stead| present(stead, "undo")) else { return UndoWay::default() };
        if !is_read {
            let message = "'undo' requires 'get', which says what there is before a set";
            self.reader.note(Diagnostic::error(&codes::UNDO, stated.span, message));
        }
        self.reader.word(stated, "'undo'", &UNDO_WAYS).unwrap_or_default()
    }

    /// `metadata.stead.claims`
    fn claims(&mut self, node: &Node, schema: Option<&SchemaSource>) -> Vec<ClaimedProperty> {
        let Some(stead) = node.get("metadata").and_then(|metadata| metadata.get("stead")) else { return Vec::new() };
        let stated = self.reader.elements(stead, "claims").iter();
        stated.filter_map(|claim| self.claim(claim, schema)).collect()
    }

    /// `metadata.stead.reportsBefore`
    fn reports_before(&mut self, node: &Node) -> bool {
        let stead = node.get("metadata").and_then(|metadata| metadata.get("stead"));
        stead.and_then(|stead| self.reader.truth(stead, "reportsBefore")).unwrap_or(false)
    }

    /// `metadata.stead.resident`
    fn resident(&mut self, node: &Node) -> Option<ResidentProgram> {
        let stated = present(node.get("metadata")?.get("stead")?, "resident")?;
        self.reader.members(stated, "'resident'", &RESIDENT_KEYS, Unknown::Refused)?;
        let executable = self.executable(stated, "'resident'");
        let arguments = self.reader.texts(stated, "args");
        Some(ResidentProgram { executable: executable?, arguments })
    }

    fn claim(&mut self, node: &Node, schema: Option<&SchemaSource>) -> Option<ClaimedProperty> {
        self.reader.members(node, "a claim", &CLAIM_KEYS, Unknown::Refused)?;
        let name = self.reader.required(node, "property", "a claim");
        let property = name.and_then(|name| self.claimed_property(name, schema));
        let extent = self.reader.required(node, "extent", "a claim");
        let extent = extent.and_then(|extent| self.reader.word(extent, "'extent'", &EXTENTS));
        let access = self.reader.optional_word(node, "access", &ACCESSES).unwrap_or_default();
        Some(ClaimedProperty { property: property?, extent: extent?, access })
    }

    /// The name of a property, which a schema in the manifest must have.
    fn claimed_property(&mut self, name: &Node, schema: Option<&SchemaSource>) -> Option<String> {
        let Some(SchemaSource::Embedded(schema)) = schema else { return self.reader.text(name, "'property'") };
        let properties = schema.get("properties").and_then(serde_json::Value::as_object);
        let Some(properties) = properties else { return self.reader.text(name, "'property'") };
        let words: Vec<(&str, &String)> = properties.keys().map(|name| (name.as_str(), name)).collect();
        self.reader.word(name, "'property'", &words).cloned()
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
            reports_before: set.is_some() && self.reports_before(node),
            test: test.is_some(),
            delete: delete.is_some(),
            delete_what_if: takes_what_if(delete.as_ref()),
            export: export.is_some(),
            export_filters: export.is_some() && self.filters(node),
            resolve: resolve.is_some(),
        };
        *security = self.security(node);
        let schema = present(node, "schema").and_then(|schema| self.schema(schema));
        CommandResource {
            manifest_path: self.path.to_owned(),
            manifest: plain(node),
            claims: self.claims(node, schema.as_ref()),
            resident: self.resident(node),
            schema,
            export_schema: self.export_schema(node),
            adapter: present(node, "adapter").and_then(|adapter| self.adapter(node, adapter)),
            exit_codes: self.reader.exit_codes(node),
            ..CommandResource { get, set, what_if, test, delete, export, validate, resolve, ..Default::default() }
        }
    }

    /// The kind, which must have the operations that are the point of it.
    fn kind(&mut self, node: &Node) -> ResourceKind {
        let stated = self.stated_kind(node);
        let has = |key: &str| present(node, key).is_some();
        let kind = stated.unwrap_or(if has("adapter") { ResourceKind::Adapter } else { ResourceKind::Resource });
        let is_called = ["get", "set", "test"].into_iter().any(has);
        let place = present(node, "kind").or(present(node, "adapter")).map_or(node.span, |value| value.span);
        let problem = match kind {
            ResourceKind::Adapter if !has("adapter") => Some("a manifest of kind 'adapter' requires 'adapter'"),
            kind if kind != ResourceKind::Adapter && has("adapter") => {
                Some("a manifest with 'adapter' must be of kind 'adapter'")
            }
            ResourceKind::Importer if !has("resolve") && !is_called => {
                Some("a manifest of kind 'importer' requires 'resolve'")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            self.reader.note(Diagnostic::error(&codes::ADAPTER, place, problem));
            return ResourceKind::Resource;
        }
        let lacks = match kind {
            ResourceKind::Adapter if !has("validate") => "the adapter has no 'validate'",
            ResourceKind::Importer if !has("resolve") => "the importer has no 'resolve'",
            _ => return kind,
        };
        self.reader.note(Diagnostic::warning(&codes::INCOMPLETE, place, lacks));
        kind
    }

    fn warn_if_idle(&mut self, node: &Node, command: &CommandResource) {
        let methods = [&command.get, &command.set, &command.test, &command.delete, &command.export, &command.resolve];
        let mut named = ["get", "set", "test", "delete", "export", "resolve", "adapter"].iter();
        if methods.iter().all(|method| method.is_none()) && !named.any(|key| present(node, key).is_some()) {
            let span = present(node, "type").map_or(node.span, |value| value.span);
            self.reader.note(Diagnostic::warning(&codes::IDLE, span, "the resource names no operation"));
        }
    }

    fn what_if(&mut self, node: &Node) -> Option<ProgramCall> {
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

    fn export_schema(&mut self, node: &Node) -> Option<SchemaSource> {
        let export = present(node, "export")?;
        let schema = present(export, "schema")?;
        if let Some(filtering) = present(export, "supportsFiltering") {
            let message = "'schema' and 'supportsFiltering' cannot be used together";
            let finding = Diagnostic::error(&codes::EXPORT, filtering.span, message);
            self.reader.note(finding.with_label(schema.span, "the filter is described here"));
        }
        self.schema(schema)
    }

    fn adapter(&mut self, manifest: &Node, node: &Node) -> Option<AdapterMethods> {
        // Until DSC 3.2 the key was `config`, and published adapters still write it.
        let key = if present(node, "inputKind").is_none() && present(node, "config").is_some() {
            "config"
        } else {
            "inputKind"
        };
        self.reader.members(node, "'adapter'", &["list", key], Unknown::Ignored)?;
        let list = self.method(node, "list", &["executable", "args"], &[]);
        let stead = manifest.get("metadata").and_then(|metadata| metadata.get("stead"));
        let find = stead.and_then(|stead| self.method(stead, "find", &["executable", "args"], &SCHEMA_ARGUMENTS));
        let kind = self.reader.required(node, key, "'adapter'")?;
        let input_kind = self.reader.word(kind, &format!("'{key}'"), &ADAPTER_INPUTS)?;
        let batch = stead.and_then(|stead| self.reader.truth(stead, "batch")).unwrap_or(false);
        Some(AdapterMethods { list, find, input_kind, batch })
    }

    /// Reports an adapter that says that it takes several instances in one call, and is called for one.
    fn check_batch(&mut self, manifest: &Node, command: &CommandResource) {
        let Some(adapter) = command.adapter.as_ref().filter(|adapter| adapter.batch) else { return };
        let stated = manifest.get("metadata").and_then(|metadata| metadata.get("stead")?.get("batch"));
        let is_about_all = |method: &ProgramCall| {
            let is_text = |argument: &Argument| matches!(argument, Argument::Literal(_) | Argument::WhatIf(_));
            method.input == Input::Stdin && method.arguments.iter().all(is_text)
        };
        let CommandResource { get, set, what_if, test, delete, validate, .. } = command;
        let methods = [
            ("get", get),
            ("set", set),
            ("whatIf", what_if),
            ("test", test),
            ("delete", delete),
            ("validate", validate),
        ];
        let other = methods.into_iter().find(|(_, method)| method.as_ref().is_some_and(|method| !is_about_all(method)));
        let problem = match other {
            _ if command.resident.is_some() => {
                "'batch' has no effect beside 'resident': what stays is asked for one instance at a time".to_owned()
            }
            _ if adapter.input_kind != AdapterInput::Full => "'batch' requires the 'inputKind' 'full'".to_owned(),
            Some((name, _)) => {
                format!("'batch' requires '\"input\": \"stdin\"' for '{name}', and no arguments about one instance")
            }
            None => return,
        };
        let span = stated.map_or(manifest.span, |stated| stated.span);
        self.reader.note(Diagnostic::error(&codes::ADAPTER, span, problem));
    }
}

fn takes_what_if(method: Option<&ProgramCall>) -> bool {
    method.is_some_and(|method| method.arguments.iter().any(|argument| matches!(argument, Argument::WhatIf(_))))
}
