//! What is nested in an instance: groups, composites and included documents.

use crate::bundle::path::{folder_of, within};
use crate::diag::{Diagnostic, Meant, any_error};
use crate::document::{self, Document, Instance, Meaning, property_meaning};
use crate::expr::FactKey;
use crate::graph::builder::{BuildRoom, Builder};
use crate::graph::scope::stated_at;
use crate::graph::{Expansion, ExpansionFinding, NestingPurpose, Role, ScopeId, codes};
use crate::id::NodeId;
use crate::manifest::{Implementation, Manifest, ResourceKind};
use crate::parameters::{self, Supplied};
use crate::text::{self, Limits, Never, Span};
use crate::value::{Object, Value};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use super::{INCLUDED, MAX_INCLUDED, MAX_NESTING, SUPPLIED};

/// The type that includes a document.
const INCLUDE: &str = "Microsoft.DSC/Include";
/// Words for the values of its parameters.
const PARAMETERS: [&str; 4] = ["parameters", "params", "vars", "variables"];

impl Builder<'_> {
    /// Builds what is nested in an instance, if it is of a kind that holds others.
    pub(super) fn nest(&mut self, id: NodeId, instance: &Instance) {
        let manifest = Arc::clone(&self.graph.node(id).manifest);
        let built_in = matches!(manifest.implementation, Implementation::Engine);
        let expands = manifest.is_composite() || manifest.resolves();
        let holds = instance.properties.as_ref().is_some_and(|properties| properties.get("resources").is_some());
        let purpose = match manifest.kind {
            ResourceKind::Group if built_in && manifest.type_name.short().eq_ignore_ascii_case("Assertion") => {
                NestingPurpose::Assertion
            }
            ResourceKind::Group if built_in => NestingPurpose::Group,
            ResourceKind::Importer if built_in || expands => NestingPurpose::Include,
            ResourceKind::Adapter if holds => NestingPurpose::Adapter,
            _ => return,
        };
        // The outermost document is the first level.
        if self.room.depth <= 1 {
            let message = format!("'{}' is nested more than {MAX_NESTING} deep", self.graph.node(id).name);
            self.room = BuildRoom::NONE;
            let finding = Diagnostic::error(&codes::TOO_DEEP, instance.span, message);
            self.findings.push(match purpose {
                NestingPurpose::Include if !manifest.is_composite() => {
                    finding.with_help("look for a document that includes itself, directly or through others")
                }
                _ => finding,
            });
            return;
        }
        self.room.depth -= 1;
        let inner = ScopeId(u32::try_from(self.graph.scopes.len()).unwrap_or(u32::MAX));
        let scope = self.graph.node(id).scope;
        let built = match purpose {
            NestingPurpose::Include if expands => self.expanded(id, &manifest, instance),
            NestingPurpose::Include => self.include(id, instance),
            _ => self.nested(instance, purpose, &manifest).map(|document| {
                let place = (self.folder(id), Some(id), Some(scope));
                self.scope(&Arc::new(document), place, &Supplied::default());
            }),
        };
        if !self.room.is_used_up() {
            self.room.depth += 1;
        }
        if built.is_none() {
            // What is nested in it is not known.
            self.is_incomplete = true;
        } else {
            self.graph.nodes[id.index()].role = Role::Container { inner, purpose };
            if let Some(wait) = &instance.directives().reconcile_wait {
                self.no_effect(wait.span, "reconcileWait", "state it at the instances in it");
            }
            if let Some(rule) = &instance.directives().reconcile_pending {
                self.no_effect(rule.span, "reconcilePending", "state it at the instances in it");
            }
        }
    }

    /// The document in the properties of a group.
    fn nested(&mut self, instance: &Instance, purpose: NestingPurpose, manifest: &Manifest) -> Option<Document> {
        let Some(properties) = &instance.properties else {
            let message = format!("'{}' needs 'resources' in its properties", instance.type_name.value);
            let finding = Diagnostic::error(&codes::NOT_AN_OBJECT, instance.span, message);
            self.findings.push(finding.with_help("list the nested instances: 'properties: {resources: [...]}'"));
            return None;
        };
        let mut properties = properties.clone();
        if manifest.is_own_adapter() {
            document::leave_out_modules(&mut properties);
        }
        let (mut document, findings) = document::read(properties.span.source, properties);
        let usable = !any_error(&findings);
        self.findings.extend(findings);
        if purpose == NestingPurpose::Adapter {
            for nested in &mut document.resources {
                nested
                    .directives
                    .get_or_insert_default()
                    .require_adapter
                    .get_or_insert_with(|| instance.type_name.clone());
            }
        }
        usable.then_some(document)
    }

    /// The properties of an instance that are needed before anything runs, null where there are none, and where they stand.
    fn early_properties(&mut self, id: NodeId, instance: &Instance) -> Option<(Value, Span)> {
        let Some(node) = &instance.properties else { return Some((Value::Null, instance.span)) };
        let (scope, iteration) = (self.graph.node(id).scope, self.graph.node(id).iteration.clone());
        Some((self.value(scope, iteration.as_deref(), node)?, node.span))
    }

    /// Builds the instances that an instance of a composite resource or of an importer consists of.
    fn expanded(&mut self, id: NodeId, manifest: &Manifest, instance: &Instance) -> Option<()> {
        let (properties, span) = self.early_properties(id, instance)?;
        self.take_included(span)?;
        let none = Object::new();
        let properties = properties.as_object().unwrap_or(&none);
        match self.inputs.catalog.expand(manifest, properties, self.sources) {
            Ok(Expansion { document, parameters }) => {
                self.scope(&Arc::new(document), (self.folder(id), Some(id), None), &parameters.into());
                Some(())
            }
            Err(findings) => {
                let used = instance.type_name.span;
                let place = |property: &str| stated_at(instance.properties.as_ref()?, property)?.1;
                let placed = findings.into_iter().map(|ExpansionFinding { finding, property }| match finding.span {
                    Some(_) => finding.with_label(used, "in an instance of this resource"),
                    None => Diagnostic { span: place(&property).or(Some(span)), ..finding },
                });
                self.findings.extend(placed);
                None
            }
        }
    }

    fn include(&mut self, id: NodeId, instance: &Instance) -> Option<()> {
        let (properties, span) = self.early_properties(id, instance)?;
        let Some(properties) = properties.as_object() else {
            self.error(&codes::BAD_INCLUDE, span, "an include needs 'configurationFile' or 'configurationContent'");
            return None;
        };
        let place = |name: &str| stated_at(instance.properties.as_ref()?, &format!("/{name}"))?.1;
        self.check_include(properties, span, place)?;
        let folder = self.folder(id);
        let document = self.included_text(properties, INCLUDED, (&folder, span))?;
        let Some(Included { name, text, path }) = document else {
            self.error(&codes::BAD_INCLUDE, span, "an include needs 'configurationFile' or 'configurationContent'");
            return None;
        };
        let parameters = self.included_text(properties, SUPPLIED, (&folder, span))?;
        let supplied = match parameters {
            Some(Included { name, text, .. }) => self.included_parameters(&name, &text)?,
            None => Supplied::default(),
        };
        self.take_included(span)?;
        let is_shown = path.as_deref().is_none_or(is_named_like_document);
        let source =
            if is_shown { self.sources.add_once(&name, &text) } else { self.sources.add_private(&name, &text) };
        let (document, findings) = document::parse(source, &text, &Limits::default());
        self.sources.hide(document.secret_defaults());
        let usable = !any_error(&findings);
        let shown = |finding: Diagnostic| if is_shown { finding } else { finding.without_words_of(&text) };
        self.findings.extend(findings.into_iter().map(shown));
        let folder = path.as_deref().map_or(folder, |path| folder_of(path).into());
        usable.then(|| self.scope(&Arc::new(document), (folder, Some(id), None), &supplied))
    }

    pub(super) fn is_include(&self, id: NodeId) -> bool {
        self.graph.declaration(id).type_name.value.as_str().eq_ignore_ascii_case(INCLUDE)
    }

    /// The folder of the document that an instance is declared in.
    fn folder(&self, id: NodeId) -> Arc<str> {
        Arc::clone(&self.graph.scope(self.graph.node(id).scope).folder)
    }

    /// Makes room for an included document, or ends it all.
    fn take_included(&mut self, span: Span) -> Option<()> {
        let Some(included) = self.room.included.checked_sub(1) else {
            self.stop(&codes::TOO_MANY, span, format!("more than {MAX_INCLUDED} documents are included"));
            return None;
        };
        self.room.included = included;
        Some(())
    }

    /// Reports properties of an include that do not exist.
    fn check_include(&mut self, properties: &Object, span: Span, place: impl Fn(&str) -> Option<Span>) -> Option<()> {
        let known = || INCLUDED.into_iter().chain(SUPPLIED);
        let Some(unknown) = properties.keys().find(|key| known().all(|each| each != key.as_str())) else {
            return Some(());
        };
        let span = place(unknown).unwrap_or(span);
        let names: Vec<String> = known().map(str::to_owned).collect();
        let finding = Diagnostic::error(&codes::BAD_INCLUDE, span, format!("an include has no property '{unknown}'"));
        self.findings.push(match Meant::word(unknown, known()) {
            _ if PARAMETERS.contains(&unknown.as_str()) => finding.with_help(format!(
                "the values are a text, as in {}, or in a file that 'parametersFile' names",
                parameters::included("NAME")
            )),
            _ if let Some(Meaning::Property(meant)) = property_meaning::<Never>(unknown, None, &names) => {
                finding.with_meant(unknown, &Meant::only(meant), self.sources.text(span))
            }
            Some(meant) => finding.with_meant(unknown, &meant, self.sources.text(span)),
            None => finding,
        });
        None
    }

    /// Returns the text of an include, from the first of two properties, a path relative to `folder`, or from the
    /// second, the content itself. `Some(None)` if neither is given, `None` after an error or while the text is not
    /// available.
    #[expect(clippy::option_option, reason = "not available and not asked for differ")]
    fn included_text(
        &mut self,
        from: &Object,
        keys: [&str; 2],
        (folder, span): (&str, Span),
    ) -> Option<Option<Included>> {
        match keys.map(|key| from.get(key)) {
            [None | Some(Value::Null), None | Some(Value::Null)] => Some(None),
            [Some(Value::String(path)), None | Some(Value::Null)] => {
                self.document(within(folder, path), span).map(Some)
            }
            [None | Some(Value::Null), Some(Value::String(text))] => {
                Some(Some(Included { name: format!("<{}>", keys[1]), text: text.clone(), path: None }))
            }
            [Some(Value::Sealed(_)), _] | [_, Some(Value::Sealed(_))] => {
                self.error(&codes::SECRET_HERE, span, "what is included cannot be a secret");
                None
            }
            _ => {
                let message = format!("an include takes either '{}' or '{}', as a string", keys[0], keys[1]);
                self.error(&codes::BAD_INCLUDE, span, message);
                None
            }
        }
    }

    fn document(&mut self, path: String, span: Span) -> Option<Included> {
        let key = FactKey::Document(path.clone());
        match self.inputs.facts.get(&key) {
            Some(Ok(Value::String(text))) => {
                Some(Included { name: within(self.inputs.folder, &path), text: text.clone(), path: Some(path) })
            }
            Some(Ok(_)) => None,
            Some(Err(reason)) => {
                let finding = Diagnostic::error(&codes::BAD_INCLUDE, span, reason.clone());
                self.findings
                    .push(finding.with_help("a relative path starts at the folder of the document that includes it"));
                None
            }
            None => {
                self.wants.insert(key);
                None
            }
        }
    }

    fn included_parameters(&mut self, name: &str, text: &str) -> Option<Supplied> {
        let source = self.sources.add_private(name, text);
        let (node, findings) = text::read(source, text, &Limits::default());
        let usable = !any_error(&findings);
        self.findings.extend(findings.into_iter().map(|finding| finding.without_words_of(text)));
        let node = node.filter(|_| usable)?;
        match Supplied::of_tree(&node) {
            Ok(supplied) => Some(supplied),
            Err(finding) => {
                self.findings.push(finding.placed(Some(node.span), &Supplied::default()));
                None
            }
        }
    }
}

/// The text that an include refers to.
struct Included {
    /// Its name in messages.
    name: String,
    text: String,
    /// Where it is, from the folder of the outermost document; `None` of a text that is stated.
    path: Option<String>,
}

/// Returns whether a file is named like a document. Messages show no line of any other: an include can name whatever
/// this process can read, such as a private key, and others may read what is printed.
fn is_named_like_document(path: &str) -> bool {
    let extension = Path::new(path).extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase);
    matches!(extension.as_deref(), Some("yaml" | "yml" | "json" | "jsonc" | "winget"))
}
