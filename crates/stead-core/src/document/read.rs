//! The tree of a document, taken apart into its parts.

use std::sync::Arc;

use super::apart::keep_apart;
use super::fields::{Expected, Owner, Reader};
use super::foreign::Site;
use super::handlers::Neighbour;
use super::{
    ConfigurationMode, Copy, Directives, DiscoveryTime, Document, Exclusive, Instance, InstanceDirectives, Meaning,
    Relation, Removed, SecretsFrom, SecurityContext, Template, codes, foreign, handlers, tools, winget,
};
use crate::bundle;
use crate::diag::{Diagnostic, Meant};
use crate::export::ExportFilter;
use crate::text::{self, Entry, Kind, Limits, Node, SourceId, Span, Spanned, shown};
use crate::value::Value;

/// Reads the document of a text by the tree that the text was read into, as [`super::parse`] does.
pub fn of_tree(
    source: SourceId,
    text: &str,
    (root, mut findings): (Option<Node>, Vec<Diagnostic>),
    limits: &Limits,
) -> (Document, Vec<Diagnostic>) {
    // Places do not count a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.starts_with(bundle::BEGIN) {
        findings = vec![is_bundle(source)];
    }
    if let Some(begin) = [SAVED_PLAN, PLAN_OF_ALL].into_iter().find(|begin| text.starts_with(begin)) {
        let end = u32::try_from(begin.len()).unwrap_or_default();
        let place = Span { source, start: 0, end };
        let finding = Diagnostic::error(&text::codes::SYNTAX, place, "this is a saved plan, not a document");
        return (Document { source, ..Document::default() }, vec![finding.with_help("'show' and 'apply' take it")]);
    }
    if let Some(finding) = tools::of_another(source, text, root.as_ref()) {
        return (Document { source, ..Document::default() }, vec![finding]);
    }
    let Some(root) = root else { return (Document { source, ..Document::default() }, findings) };
    let mut reader = Reader::new(Some(text), limits.findings);
    let document = reader.document(source, root);
    findings.extend(reader.findings.into_vec());
    (document, in_order(findings, source, text))
}

pub(super) fn in_order(mut findings: Vec<Diagnostic>, source: SourceId, text: &str) -> Vec<Diagnostic> {
    findings.sort_by_key(|finding| finding.span.map(|span| span.start));
    keep_apart(&mut findings, source, text);
    findings
}

/// How the file of a saved plan begins; no document does.
pub const SAVED_PLAN: &str = "{\"steadPlan\":";

/// How the file of a plan of many machines begins.
pub(super) const PLAN_OF_ALL: &str = "{\"steadPlanOfAll\":";

/// Returns the error for a bundle that is read as a document, in place of the errors in its YAML.
fn is_bundle(source: SourceId) -> Diagnostic {
    let end = u32::try_from(bundle::BEGIN.trim_end().len()).unwrap_or_default();
    let finding =
        Diagnostic::error(&text::codes::SYNTAX, Span { source, start: 0, end }, "this is a bundle, not a document");
    finding
        .with_help("plan, apply, check, graph, lint and 'agent apply' take the file of a bundle in place of a document")
}

/// Takes a document from a value that was compiled already, such as the properties of a group.
pub fn read(source: SourceId, root: Template) -> (Document, Vec<Diagnostic>) {
    let mut reader = Reader::new(None, Limits::default().findings);
    let document = reader.document(source, super::compile::written(root));
    (document, reader.findings.into_vec())
}

/// The keys of a document.
pub(super) const DOCUMENT_KEYS: &[&str] = &[
    "$schema",
    "contentVersion",
    "directives",
    "executionInformation",
    "functions",
    "metadata",
    "outputs",
    "parameters",
    "resources",
    "variables",
];

/// The keys of an instance.
pub const INSTANCE_KEYS: &[&str] = &[
    "apiVersion",
    "condition",
    "copy",
    "dependsOn",
    "directives",
    "executionInformation",
    "metadata",
    "name",
    "properties",
    "requireVersion",
    "resources",
    "type",
];

const CONTEXTS: &[(&str, SecurityContext)] = &[
    ("current", SecurityContext::Current),
    ("elevated", SecurityContext::Elevated),
    ("restricted", SecurityContext::Restricted),
];

const DISCOVERIES: &[(&str, DiscoveryTime)] =
    &[("preDeployment", DiscoveryTime::PreDeployment), ("duringDeployment", DiscoveryTime::DuringDeployment)];

const REMOVED: &[(&str, Removed)] =
    &[("report", Removed::Report), ("remove", Removed::Remove), ("keep", Removed::Keep)];

const SECRETS_FROM: &[(&str, SecretsFrom)] = &[("caller", SecretsFrom::Caller), ("machine", SecretsFrom::Machine)];

/// The directives of a document.
pub(super) const DIRECTIVES: &[&str] = &[
    "resourceDiscovery",
    "securityContext",
    "configurationMode",
    "version",
    "reconcile",
    "files",
    "implicitOrder",
    "environment",
    "removed",
    "secretsFrom",
];

/// The directives of an instance.
pub(super) fn instance_directive_names() -> impl Iterator<Item = &'static str> {
    let others = [
        "requireAdapter",
        "securityContext",
        "configurationMode",
        "reconcileWait",
        "reconcilePending",
        "exclusive",
        "exportFilter",
    ];
    others.into_iter().chain(Relation::ALL.map(|(word, _)| word))
}

fn is_variable_name(text: &str) -> bool {
    let name = text.strip_suffix('*').unwrap_or(text);
    !text.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn context_word(context: SecurityContext) -> &'static str {
    CONTEXTS.iter().find(|(_, each)| *each == context).map_or("", |(word, _)| word)
}

impl Reader<'_> {
    pub(super) fn document(&mut self, source: SourceId, root: Node) -> Document {
        let mut document = Document { source, ..Document::default() };
        if let Kind::Array(items) = &root.kind
            && let Some(help) = items.first().and_then(tools::help_for_list)
        {
            let message = "a document must be an object, found a list";
            self.report(Diagnostic::error(&codes::WRONG_KIND, root.span, message).with_help(help));
            return document;
        }
        let Some((span, entries)) = self.object(root, "a document") else { return document };
        let mut has_resources = false;
        for Entry { key, key_span, value } in entries {
            match &*key {
                "$schema" => document.schema = self.optional(value, "'$schema'"),
                "contentVersion" => document.content_version = self.optional(value, "'contentVersion'"),
                "directives" => document.directives = self.directives(value),
                // It says how a result came about; documents made of results carry it.
                "executionInformation" => {}
                "functions" => document.functions = self.functions(value),
                "metadata" => document.metadata = self.metadata(value),
                "outputs" => document.outputs = self.outputs(value),
                "parameters" => {
                    let (parameters, unreadable) = self.parameters(value);
                    document.parameters = parameters;
                    document.unreadable.extend(unreadable);
                }
                "resources" => {
                    has_resources = true;
                    document.resources = self.instances(value);
                }
                "variables" => document.variables = self.variables(value),
                "properties" if value.get("resources").is_some() => {
                    has_resources = true;
                    self.older_configuration(key_span, &value);
                }
                _ => {
                    let site = || Site { value: Some(&value), type_name: None };
                    self.unknown_key_at(&key, key_span, (Owner::Document, DOCUMENT_KEYS), site());
                    let meant = Self::meant_key(Owner::Document, &key, DOCUMENT_KEYS, site());
                    has_resources |= foreign::has_resources(&key) || tools::is_list_of_instances(&value);
                    if meant.is_some_and(|meant| meant == "parameters" || meant == "variables") {
                        let names = value.entries().unwrap_or_default().iter().map(|entry| entry.key.to_string());
                        document.unreadable.extend(names);
                    }
                }
            }
        }
        if !has_resources {
            self.missing(span, "a document", "resources", "a document that manages nothing says 'resources: []'");
        }
        self.older_context(&mut document);
        document
    }

    /// A configuration of `WinGet` in the schema that came before documents of DSC v3.
    fn older_configuration(&mut self, span: Span, properties: &Node) {
        let message = "this is a WinGet configuration of schema 0.2";
        let finding = Diagnostic::error(&codes::UNKNOWN_KEY, span, message);
        if let Some((place, document)) = self.text.and_then(|text| winget::correction(text, span, properties)) {
            let help = "'stead lint --fix FILE' writes the document that it is; comments and layout stay";
            return self.report(finding.with_help(help).with_fix(place, document));
        }
        let help = "write what is in 'properties.resources' as 'resources' of the document: 'resource' becomes 'type' \
                    (Owner/Name), 'id' becomes 'name', 'settings' becomes 'properties', and 'dependsOn' names \
                    [resourceId('Owner/Type', 'name')]";
        let assertions = "; each of 'assertions' becomes an instance of Microsoft.DSC/Assertion before them, which has it in \
                          'properties.resources'";
        let has_assertions = properties.get("assertions").is_some();
        self.report(finding.with_help(format!("{help}{}", if has_assertions { assertions } else { "" })));
    }

    fn metadata(&mut self, node: Node) -> Option<Node> {
        if node.kind == Kind::Null {
            return None;
        }
        if !matches!(node.kind, Kind::Object(_)) {
            self.wrong_kind(&node, "'metadata'", Expected::Object);
            return None;
        }
        // Metadata is never computed.
        Some(node)
    }

    fn directives(&mut self, node: Node) -> Directives {
        let mut directives = Directives::default();
        for Entry { key, key_span, value } in self.entries(node, "'directives'") {
            match &*key {
                _ if value.kind == Kind::Null => {}
                "resourceDiscovery" => directives.discovery = self.word(value, "'resourceDiscovery'", DISCOVERIES),
                "securityContext" => directives.security_context = self.word(value, "'securityContext'", CONTEXTS),
                "configurationMode" => directives.configuration_mode = self.mode(value),
                "version" => directives.version = self.string(value, "'version'"),
                "reconcile" => directives.reconcile = self.reconcile(value),
                "files" => directives.files = self.patterns(value),
                "implicitOrder" => directives.implicit_order = self.boolean(&value, "'implicitOrder'"),
                "removed" => directives.removed = self.word(value, "'removed'", REMOVED),
                "secretsFrom" => directives.secrets_from = self.word(value, "'secretsFrom'", SECRETS_FROM),
                "environment" => directives.environment = self.variable_names(value),
                _ => self.unknown_directive(&key, key_span, (Owner::Document, DIRECTIVES), &value),
            }
        }
        directives
    }

    /// Names of variables of the environment.
    fn variable_names(&mut self, node: Node) -> Vec<Spanned<String>> {
        let items = self.array(node, "'environment'");
        let names = items.into_iter().filter_map(|item| self.string(item, "an element of 'environment'"));
        let names: Vec<_> = names.collect();
        for name in names.iter().filter(|name| !is_variable_name(&name.value)) {
            let message = format!("'{}' is not the name of a variable of the environment", name.value);
            let finding = Diagnostic::error(&codes::WORD, name.span, message);
            self.report(
                finding.with_help("it consists of letters, digits and underscores; '*' at the end is for several"),
            );
        }
        names
    }

    /// Reports a directive that this version does not know: one of a later version of DSC, or misspelt. What can only be another
    /// one is refused, because the run would be another one without it.
    fn unknown_directive(&mut self, key: &str, span: Span, (owner, known): (Owner, &[&str]), value: &Node) {
        let meant = Meant::word(key, known.iter().copied());
        let message = format!("there is no directive '{}' of {owner}", shown(key));
        let finding = match meant.as_ref().and_then(Meant::certain) {
            Some(_) => Diagnostic::error(&codes::UNKNOWN_KEY, span, message),
            None => Diagnostic::warning(&codes::UNKNOWN_DIRECTIVE, span, format!("{message}; ignored")),
        };
        let site = Site { value: Some(value), type_name: None };
        let foreign = foreign::meaning(foreign::AT_INSTANCES, key, site).filter(|_| owner == Owner::Instance);
        self.report(match (meant, foreign) {
            _ if owner == Owner::Instance && INSTANCE_KEYS.contains(&key) => {
                finding.with_help(format!("'{key}' belongs to the instance: write it beside 'directives', not inside"))
            }
            (_, Some(Meaning::Key(meant))) => finding.with_help(format!("write it as '{meant}', beside 'directives'")),
            (Some(meant), _) => finding.with_meant(key, &meant, self.written(span)),
            (None, Some(meaning)) => meaning.explain(finding, key, None),
            (None, None) => finding.with_help(format!("the directives of {owner} are {}", known.join(", "))),
        });
    }

    /// Obeys `metadata."Microsoft.DSC".securityContext` unless the directives contradict it.
    ///
    /// In what a run printed, such as an export, it only records the rights of that run.
    fn older_context(&mut self, document: &mut Document) {
        let metadata = document.metadata.as_ref().and_then(|node| node.get("Microsoft.DSC"));
        let stated = metadata.filter(|metadata| metadata.get("startDatetime").is_none());
        let node = stated.and_then(|metadata| metadata.get("securityContext"));
        let Some(node) = node.filter(|node| node.kind != Kind::Null).cloned() else { return };
        let Some(older) = self.word(node, "'securityContext'", CONTEXTS) else { return };
        match &document.directives.security_context {
            None => {
                let message = "Using 'Microsoft.DSC' metadata to specify required security context is deprecated";
                let finding = Diagnostic::warning(&codes::OLD_CONTEXT, older.span, message);
                self.report(finding.with_help("use the directive 'securityContext'"));
                document.directives.security_context = Some(older);
            }
            Some(directive) if directive.value != older.value => {
                let message = format!(
                    "Conflicting security context specified in configuration document: metadata '{}' and directive '{}'",
                    context_word(older.value),
                    context_word(directive.value)
                );
                let finding = Diagnostic::error(&codes::SECURITY_CONFLICT, older.span, message)
                    .with_label(directive.span, "the directive")
                    .with_help("remove the one in metadata");
                self.report(finding);
            }
            Some(_) => {}
        }
    }

    fn instances(&mut self, node: Node) -> Vec<Instance> {
        if let Kind::Object(_) = node.kind {
            self.instances_by_name(&node);
            return Vec::new();
        }
        let items = self.array(node, "'resources'");
        let is_foreign = |entry: &Entry| !INSTANCE_KEYS.contains(&&*entry.key);
        if items.iter().filter_map(Node::entries).any(|entries| entries.iter().any(is_foreign)) {
            self.neighbours = items.iter().filter_map(|item| Neighbour::of(item.entries()?)).collect();
        }
        let mut instances = Vec::with_capacity(items.len());
        instances.extend(items.into_iter().filter_map(|item| self.instance(item)));
        instances
    }

    /// Reports `resources` that are an object of instances by their names.
    fn instances_by_name(&mut self, node: &Node) {
        let entries = node.entries().unwrap_or_default();
        match entries.iter().find(|entry| entry.value.get("type").is_some()) {
            Some(first) => {
                let message = "'resources' must be a list, found an object";
                let name = shown(&first.key);
                let help =
                    format!("write '- name: {name}' in place of '{name}:', and the keys below it as deep as 'name'");
                self.report(Diagnostic::error(&codes::WRONG_KIND, first.key_span, message).with_help(help));
            }
            None => self.wrong_kind(node, "'resources'", Expected::List),
        }
    }

    pub(super) fn instance(&mut self, node: Node) -> Option<Instance> {
        let (span, mut entries) = self.object(node, "an instance")?;
        let (outer, around) = (self.items.len(), std::mem::take(&mut self.may_compute));
        // Of most instances nothing is foreign, and nothing more is asked.
        let is_foreign = entries.iter().any(|entry| !INSTANCE_KEYS.contains(&&*entry.key));
        let has_type = entries.iter().any(|entry| &*entry.key == "type");
        let is_typed_elsewhere = !has_type && tools::is_typed_elsewhere(&entries);
        // What loops call their items is known in everything else of the instance.
        let copy = entries.iter_mut().find(|entry| &*entry.key == "copy" && entry.value.kind != Kind::Null);
        let copy =
            copy.map(|entry| std::mem::replace(&mut entry.value, Node { span: entry.key_span, kind: Kind::Null }));
        let mut parts =
            InstanceParts { copy: copy.map(|copy| self.loops(copy)).unwrap_or_default(), ..Default::default() };
        if is_foreign
            && parts.copy.is_empty()
            && let Some(other) = entries.iter().find(|entry| foreign::is_loop(&entry.key))
        {
            parts.copy = [self.loop_of_others(other)].into();
        }
        let stated = is_foreign.then(|| entries.iter().find(|entry| &*entry.key == "type")).flatten();
        let stated = stated.and_then(|entry| entry.value.as_str()).map(str::to_owned);
        let own = is_foreign.then(|| Neighbour::of(&entries)).flatten();
        for Entry { key, key_span, value } in entries {
            match &*key {
                "type" => {
                    parts.has_type = true;
                    parts.type_name = self.type_name(value, "'type'");
                }
                "name" => parts.name = self.text_value(value, "'name'"),
                _ if value.kind == Kind::Null && INSTANCE_KEYS.contains(&&*key) => {}
                "condition" => parts.condition = self.condition(value).map(Box::new),
                "requireVersion" | "apiVersion" => self.version(&mut parts.version, value, key_span),
                "directives" => parts.directives = Some(Box::new(self.instance_directives(value))),
                "dependsOn" => parts.depends_on = self.ids(value, ("dependsOn", key_span)),
                "properties" => parts.properties = self.properties(value),
                "metadata" => parts.metadata = self.metadata(value).map(Box::new),
                // The loops were read before.
                "copy" | "executionInformation" => {}
                "resources" => self.child_resources(key_span),
                _ if let Some(help) =
                    own.as_ref().and_then(|own| handlers::advice(&key, Some(&value), own, &self.neighbours)) =>
                {
                    let message = format!("{} has no key '{}'", Owner::Instance, shown(&key));
                    self.report(Diagnostic::error(&codes::UNKNOWN_KEY, key_span, message).with_help(help));
                }
                _ => {
                    let site = Site { value: Some(&value), type_name: stated.as_deref() };
                    self.unknown_key_at(&key, key_span, (Owner::Instance, INSTANCE_KEYS), site);
                }
            }
        }
        if !parts.has_type && !is_typed_elsewhere {
            self.missing(span, "an instance", "type", "say what it is an instance of: 'type: Owner/Name'");
        }
        self.older_adapter(&mut parts);
        self.items.truncate(outer);
        parts.finish(span, std::mem::replace(&mut self.may_compute, around))
    }

    /// Obeys `metadata."Microsoft.DSC".requireAdapter` where the directives name no adapter.
    fn older_adapter(&mut self, parts: &mut InstanceParts) {
        let older = parts.metadata.as_ref().and_then(|metadata| metadata.get("Microsoft.DSC")?.get("requireAdapter"));
        let Some(node) = older.filter(|node| node.as_str().is_some()).cloned() else { return };
        let adapter = self.type_name(node, "'requireAdapter'");
        let directives = parts.directives.get_or_insert_default();
        directives.require_adapter = directives.require_adapter.take().or(adapter);
    }

    /// A boolean, or an expression for one.
    pub(super) fn condition(&mut self, node: Node) -> Option<Template> {
        if matches!(node.kind, Kind::Bool(_) | Kind::String(_)) {
            return Some(self.value(node));
        }
        self.wrong_kind(&node, "'condition'", Expected::Condition);
        None
    }

    fn version(&mut self, version: &mut Option<Spanned<String>>, node: Node, key_span: Span) {
        if let Some(first) = version {
            let message = "'apiVersion' and 'requireVersion' are two names of one key";
            let finding = Diagnostic::error(&codes::TWO_VERSIONS, key_span, message);
            let finding = finding.with_label(first.span, "the version is stated here already");
            self.report(finding.with_help("remove one of them"));
            return;
        }
        if let Kind::Number(number) = &node.kind {
            // Quotes alone would not make a requirement of it.
            let message = format!("'requireVersion' must be a string, found the number {number}");
            let finding = Diagnostic::error(&codes::WRONG_KIND, node.span, message);
            return self.report(finding.with_help(format!("write a requirement in quotes, such as '>={number}'")));
        }
        *version = self.string(node, "'requireVersion'");
    }

    fn instance_directives(&mut self, node: Node) -> InstanceDirectives {
        let mut directives = InstanceDirectives::default();
        for Entry { key, key_span, value } in self.entries(node, "'directives'") {
            match &*key {
                _ if value.kind == Kind::Null => {}
                "requireAdapter" => directives.require_adapter = self.type_name(value, "'requireAdapter'"),
                "securityContext" => directives.security_context = self.word(value, "'securityContext'", CONTEXTS),
                "configurationMode" => directives.configuration_mode = self.mode(value),
                "reconcileWait" => directives.reconcile_wait = self.wait(&value, "'reconcileWait'"),
                "reconcilePending" => directives.reconcile_pending = self.string(value, "'reconcilePending'"),
                "exclusive" => directives.exclusive = self.exclusive(value, key_span),
                "exportFilter" => directives.export_filter = self.export_filter(value),
                _ => {
                    if let Some((word, relation)) = Relation::ALL.iter().find(|(word, _)| *word == &*key) {
                        directives.relations.push((*relation, self.ids(value, (word, key_span))));
                        continue;
                    }
                    let known: Vec<&str> = instance_directive_names().collect();
                    self.unknown_directive(&key, key_span, (Owner::Instance, &known), &value);
                }
            }
        }
        directives
    }

    /// `true`, or a list of names.
    fn exclusive(&mut self, node: Node, key_span: Span) -> Option<Exclusive> {
        match node.kind {
            Kind::Bool(is_exclusive) => is_exclusive.then_some(Exclusive::All),
            Kind::Array(_) => Some(Exclusive::Names(self.ids(node, ("exclusive", key_span)))),
            _ => {
                self.wrong_kind(&node, "'exclusive'", Expected::Exclusive);
                None
            }
        }
    }

    /// A list of objects, of which none keeps everything.
    fn export_filter(&mut self, node: Node) -> Option<Arc<ExportFilter>> {
        let patterns = self.array(node, "'exportFilter'");
        let wrong = patterns.iter().find(|pattern| !matches!(pattern.kind, Kind::Object(_)));
        if let Some(wrong) = wrong {
            self.wrong_kind(wrong, "an element of 'exportFilter'", Expected::Object);
        }
        let patterns = Value::Array(patterns.iter().map(Node::literal).collect());
        ExportFilter::parse(&patterns).ok().filter(|filter| !filter.is_empty()).map(Arc::new)
    }

    fn mode(&mut self, node: Node) -> Option<Spanned<ConfigurationMode>> {
        self.word(node, "'configurationMode'", &ConfigurationMode::ALL)
    }

    /// A list of patterns of paths.
    fn patterns(&mut self, node: Node) -> Vec<Spanned<String>> {
        let items = self.array(node, "'files'");
        items.into_iter().filter_map(|item| self.string(item, "an element of 'files'")).collect()
    }

    fn properties(&mut self, node: Node) -> Option<Template> {
        if matches!(node.kind, Kind::Object(_)) {
            return Some(self.value(node));
        }
        self.wrong_kind(&node, "'properties'", Expected::Object);
        None
    }

    fn child_resources(&mut self, key_span: Span) {
        let message = "'resources' of an instance is ignored";
        let help = "nested instances belong into 'properties.resources' of a group, such as Microsoft.DSC/Group";
        self.report(Diagnostic::warning(&codes::CHILD_RESOURCES, key_span, message).with_help(help));
    }
}

/// The parts of an instance that were read so far.
#[derive(Default)]
struct InstanceParts {
    has_type: bool,
    type_name: Option<Spanned<crate::id::TypeName>>,
    name: Option<Template>,
    condition: Option<Box<Template>>,
    version: Option<Spanned<String>>,
    directives: Option<Box<InstanceDirectives>>,
    depends_on: Vec<Template>,
    copy: Box<[Copy]>,
    properties: Option<Template>,
    metadata: Option<Box<Node>>,
}

impl InstanceParts {
    fn finish(self, span: Span, may_compute: bool) -> Option<Instance> {
        let start = Span::new(span.source, span.start, span.start);
        Some(Instance {
            span,
            type_name: self.type_name?,
            name: self.name.unwrap_or(Template { span: start, kind: Kind::String("".into()) }),
            condition: self.condition,
            require_version: self.version.map(Box::new),
            directives: self.directives,
            depends_on: self.depends_on,
            copy: self.copy,
            properties: self.properties,
            metadata: self.metadata,
            may_compute,
        })
    }
}
