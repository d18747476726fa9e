//! Manifest text to the types of the engine.
//!
//! Everything that is wrong is said at once; a manifest with an error is left out, the others of its file stay.

mod adapted;
mod extension;
mod form;
mod method;
mod resource;

use std::path::Path;

use serde_json::Value as Json;

use super::read::{Reader, Unknown};
use super::{AdaptedManifest, Extension, InvalidVersion, Manifest, ResourceKind, Version, codes, words};
use crate::diag::Diagnostic;
use crate::expr::Expression;
use crate::text::{Node, Span};

pub use form::ManifestForm;

/// One manifest of a file.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The expression that must be true on a machine for the manifest to count there.
    pub condition: Option<Expression>,
    /// The resource or extension that is declared.
    pub declaration: Declaration,
}

/// A declaration of a manifest.
#[derive(Clone, Debug)]
pub enum Declaration {
    /// A resource.
    Resource(Box<Manifest>),
    /// A resource whose adapter has yet to be found.
    Adapted(Box<AdaptedManifest>),
    /// An extension.
    Extension(Box<Extension>),
}

/// Reads a manifest file: what it declares, and everything that is wrong with it.
///
/// `path` is where the file lies; paths in it are relative to its directory. Nothing is looked up on disk.
pub fn parse(form: ManifestForm, node: &Node, path: &Path) -> (Vec<Declared>, Vec<Diagnostic>) {
    let mut parser = Parser { reader: Reader::default(), path };
    let mut declared = Vec::new();
    match form {
        ManifestForm::List => parser.list(node, &mut declared),
        form => declared.extend(parser.one(form, node)),
    }
    let mut found = parser.reader.found;
    found.sort_by_key(|finding| finding.span);
    (declared, found)
}

/// Reads one object that an adapter listed. A relative `path` stays as it is: only the adapter knows what it means.
pub fn parse_listed(listed: Json) -> Result<AdaptedManifest, Vec<Diagnostic>> {
    let node = super::unplaced(&listed);
    let mut parser = Parser { reader: Reader::default(), path: Path::new("") };
    let manifest = parser.listed(&node, listed);
    let found = parser.reader.found;
    manifest.filter(|_| !crate::diag::any_error(&found)).ok_or(found)
}

struct Parser<'a> {
    reader: Reader,
    path: &'a Path,
}

const LIST_KEYS: [&str; 3] = ["adaptedResources", "resources", "extensions"];

impl Parser<'_> {
    fn list(&mut self, node: &Node, declared: &mut Vec<Declared>) {
        // Whatever else such a file holds is for others to read.
        if self.reader.members(node, "a list of manifests", &LIST_KEYS, Unknown::Ignored).is_none() {
            return;
        }
        for (key, form) in [
            ("resources", ManifestForm::Resource),
            ("adaptedResources", ManifestForm::Adapted),
            ("extensions", ManifestForm::Extension),
        ] {
            let each = self.reader.elements(node, key).iter();
            declared.extend(each.filter_map(|manifest| self.one(form, manifest)).collect::<Vec<_>>());
        }
    }

    /// One manifest; `None` when anything is wrong with it.
    fn one(&mut self, form: ManifestForm, node: &Node) -> Option<Declared> {
        let before = self.reader.errors();
        let declaration = match form {
            ManifestForm::Adapted => self.adapted(node).map(|manifest| Declaration::Adapted(Box::new(manifest))),
            ManifestForm::Extension => {
                self.extension(node).map(|extension| Declaration::Extension(Box::new(extension)))
            }
            ManifestForm::Resource | ManifestForm::List => {
                self.resource(node).map(|manifest| Declaration::Resource(Box::new(manifest)))
            }
        };
        node.entries()?;
        let condition = self.reader.expression(node, "condition");
        self.reader.optional_text(node, "$schema");
        declaration.filter(|_| self.reader.errors() == before).map(|declaration| Declared { condition, declaration })
    }

    /// `kind`, without regard to case: adapters of early previews list resources of kind `Resource`.
    fn stated_kind(&mut self, node: &Node) -> Option<ResourceKind> {
        let text = super::read::present(node, "kind").and_then(Node::as_str);
        let same = |(word, _): &&(&str, ResourceKind)| text.is_some_and(|text| text.eq_ignore_ascii_case(word));
        let known = words::KINDS.iter().chain([&words::IMPORT]).find(same).map(|(_, kind)| *kind);
        known.or_else(|| self.reader.optional_word(node, "kind", &words::KINDS))
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
}
