//! Bundles: which files a document can read, and working from those that came with it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stead_core::bundle::path::{folder_of, normal, within};
use stead_core::bundle::{Bundle, BundleError, Reach};
use stead_core::claims::{Claim, Extent};
use stead_core::diag::Diagnostic;
use stead_core::document::{self, Document, Instance, SecretsFrom};
use stead_core::expr::{FunctionCall, expressions};
use stead_core::graph::MAX_NESTING;
use stead_core::graph::codes::NOT_IN_BUNDLE;
use stead_core::identity::DocumentIdentity;
use stead_core::manifest::{Implementation, Manifest, ResourceKind};
use stead_core::text::{Limits, Source, Sources, Span, locate};
use stead_core::value::Value;
use stead_host::bundle::{BundleFiles, Gathering, Missing, UnpackError};
use stead_host::provider::Plain;

use crate::conflicts::written_out;
use crate::opened::OpenedFiles;
use crate::session::Session;

/// A bundle that was made of a document.
pub struct Bundled {
    /// The bundle.
    pub bundle: Bundle,
    /// The absolute paths that the document reads on the machine, whatever is delivered.
    pub on_machine: BTreeSet<String>,
}

/// Why a document cannot be made a bundle.
pub enum NotBundled {
    /// Errors of the document.
    Findings(Vec<Diagnostic>),
    /// It would not be a bundle.
    Bundle(BundleError),
}

/// Why a bundle cannot be worked from.
#[derive(Debug, thiserror::Error)]
pub enum NotOpened {
    /// It contradicts itself.
    #[error("cannot use the bundle")]
    Bundle(#[from] BundleError),
    /// Its files cannot be unpacked.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
}

/// A secret as a document names it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VaultEntry {
    /// Its name.
    pub name: String,
    /// The vault that it is looked for in, where that is stated.
    pub vault: Option<String>,
}

impl Session {
    /// The bundle of a document: it, and every file that it names by a relative path under any condition, and those that its
    /// `directives.files` are about. With [`Reach::Machine`] also the files that it names by absolute paths, as far as they
    /// are there and the document does not create them itself.
    ///
    /// A document that cannot be read is a bundle as well: what is wrong with it is found when it is prepared.
    pub fn bundle(&mut self, name: &str, text: &str, reach: Reach) -> Result<Bundled, NotBundled> {
        let root = Arc::clone(&self.shared.root);
        let mut sources = std::mem::take(&mut self.sources);
        let mut gathering = Gathering::default();
        let mut read = |path: &str| gather_text(&mut gathering, path, &root, reach);
        let named = Named::by(self, (name, text), &mut sources, &mut read);
        let identity = named.identity.clone();
        let mut gathered =
            Gathered { gathering, findings: Vec::new(), on_machine: BTreeSet::new(), reach, root: &root };
        for want in &named.wants {
            gathered.add(want, &named.made);
        }
        self.sources = sources;
        let Gathered { gathering, findings, on_machine, .. } = gathered;
        if !findings.is_empty() {
            return Err(NotBundled::Findings(findings));
        }
        let label = Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name);
        let bundle = Bundle::new(identity, (label.to_owned(), text.into()), gathering.into_entries());
        Ok(Bundled { bundle: bundle.map_err(NotBundled::Bundle)?, on_machine })
    }

    /// Has the documents of this session read their files of a bundle, and not of the folder of the document.
    ///
    /// Guarantees: what is unpacked is removed when this session is dropped, whoever else still holds it.
    /// Assumptions: nothing was prepared yet; sessions beside this one end before it.
    pub fn open_bundle(&mut self, bundle: &Arc<Bundle>) -> Result<(), NotOpened> {
        let named = self.named_in(bundle);
        if named.identity.as_ref() != bundle.identity() {
            return Err(BundleError::Identity.into());
        }
        let files = Arc::new(BundleFiles::unpack(Arc::clone(bundle), named.made)?);
        self.change_machine(|machine| machine.files = Some(Arc::clone(&files)));
        self.opened = Some(OpenedFiles(Arc::clone(&files)));
        self.files = Some(files);
        Ok(())
    }

    /// The secrets that the document of a bundle, and those that it includes, name by literal texts under any condition; `None`
    /// where they are found on the machine that it is for.
    pub fn secrets_of_caller(&self, bundle: &Bundle) -> Option<BTreeSet<VaultEntry>> {
        let Named { secrets_from, secrets, .. } = self.named_in(bundle);
        (secrets_from == SecretsFrom::Caller).then_some(secrets)
    }

    fn named_in(&self, bundle: &Bundle) -> Named {
        let text_of = |path: &str| bundle.file(path).and_then(|content| String::from_utf8(content.to_vec()).ok());
        let (name, text) = bundle.document();
        Named::by(self, (name, text), &mut Sources::default(), &mut |path| text_of(path))
    }

    /// The bundle that its documents read their files of.
    pub fn opened_bundle(&self) -> Option<&Arc<Bundle>> {
        self.files.as_ref().map(|files| files.bundle())
    }
}

/// The text of an included document, which is added to a bundle where it belongs into it.
fn gather_text(gathering: &mut Gathering, path: &str, root: &Path, reach: Reach) -> Option<String> {
    if path.starts_with('/') && reach == Reach::Folder {
        return None;
    }
    gathering.add(path, &root.join(path)).ok()?;
    String::from_utf8(gathering.file(path)?.to_vec()).ok()
}

/// The files of a bundle, while they are read.
struct Gathered<'r> {
    gathering: Gathering,
    findings: Vec<Diagnostic>,
    on_machine: BTreeSet<String>,
    reach: Reach,
    root: &'r Path,
}

impl Gathered<'_> {
    fn add(&mut self, want: &Want, made: &BTreeSet<String>) {
        if want.is_pattern {
            let added = self.gathering.add_matching(&want.folder, self.root, &want.path);
            return match added {
                Ok(0) => self.refuse(want, "no file matches the pattern", "remove the pattern, or correct it"),
                Ok(_) => {}
                Err(missing) => self.refuse(want, missing.reason(), "correct the pattern"),
            };
        }
        let Some(path) = normal(&want.folder, &want.path) else {
            let help =
                "move it into the folder of the document, or give an absolute path, which is read on the machine";
            return self.refuse(want, "it leads out of the folder of the document", help);
        };
        if made.iter().any(|made| Path::new(&path).starts_with(made)) {
            return;
        }
        let is_absolute = path.starts_with('/');
        if is_absolute && self.reach == Reach::Folder {
            self.on_machine.insert(path);
            return;
        }
        match self.gathering.add(&path, &self.root.join(&path)) {
            Ok(()) => {}
            Err(_) if is_absolute => drop(self.on_machine.insert(path)),
            Err(Missing::Absent) => {
                let help = "a delivery holds every file that the document names by a relative path, whatever its \
                            conditions say; an absolute path is read on the machine";
                self.refuse(want, Missing::Absent.reason(), help);
            }
            Err(missing) => {
                self.refuse(want, missing.reason(), "give an absolute path, which is read on the machine");
            }
        }
    }

    fn refuse(&mut self, want: &Want, reason: &str, help: &str) {
        let path = within(&want.folder, &want.path);
        let finding =
            Diagnostic::error(&NOT_IN_BUNDLE, want.span, format!("cannot add '{path}' to the bundle: {reason}"));
        self.findings.push(finding.with_help(help));
    }
}

/// A path that a document names.
struct Want {
    folder: Arc<str>,
    path: String,
    /// True if it is an entry of `directives.files`, which may be a pattern.
    is_pattern: bool,
    span: Span,
}

/// The paths and secrets that a document and the documents it includes name, under any condition.
#[derive(Default)]
struct Named {
    identity: Option<DocumentIdentity>,
    secrets_from: SecretsFrom,
    secrets: BTreeSet<VaultEntry>,
    /// The paths that are read.
    wants: Vec<Want>,
    /// The paths, relative and absolute, that its instances create.
    made: BTreeSet<String>,
}

impl Named {
    /// `read` gives the texts of included documents, by their paths.
    fn by(
        session: &Session,
        (name, text): (&str, &str),
        sources: &mut Sources,
        read: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Self {
        let mut walk =
            Walk { session, sources, read, named: Self::default(), seen: BTreeSet::new(), depth: MAX_NESTING };
        walk.text(name, text, &Arc::from(""));
        walk.named
    }
}

/// A walk over a document and those that it includes.
struct Walk<'a> {
    session: &'a Session,
    sources: &'a mut Sources,
    read: &'a mut dyn FnMut(&str) -> Option<String>,
    named: Named,
    /// The included documents that were walked over.
    seen: BTreeSet<String>,
    depth: usize,
}

impl Walk<'_> {
    fn text(&mut self, name: &str, text: &str, folder: &Arc<str>) {
        let source = self.sources.add(Source::new(name, text));
        let (document, _) = document::parse(source, text, &Limits::default());
        if self.depth == MAX_NESTING {
            self.named.identity = document.identity();
            self.named.secrets_from =
                document.directives.secrets_from.as_ref().map(|from| from.value).unwrap_or_default();
        }
        self.document(&document, folder);
    }

    fn document(&mut self, document: &Document, folder: &Arc<str>) {
        let Some(depth) = self.depth.checked_sub(1) else { return };
        self.depth = depth;
        for placed in document.all_values().flat_map(expressions) {
            for call in placed.expression.calls("stead.file") {
                if let Some(argument) = call.arguments().next()
                    && let Some(path) = argument.text()
                {
                    let span = locate(self.sources, placed.span, argument.at());
                    self.want(folder, path, span);
                }
            }
            self.named.secrets.extend(placed.expression.calls("secret").filter_map(|call| vault_entry(&call)));
        }
        for pattern in &document.directives.files {
            let (path, span) = (pattern.value.clone(), pattern.span);
            self.named.wants.push(Want { folder: Arc::clone(folder), path, is_pattern: true, span });
        }
        for instance in &document.resources {
            self.instance(instance, folder);
        }
        self.depth += 1;
    }

    fn want(&mut self, folder: &Arc<str>, path: &str, span: Span) {
        self.named.wants.push(Want { folder: Arc::clone(folder), path: path.to_owned(), is_pattern: false, span });
    }

    fn instance(&mut self, instance: &Instance, folder: &Arc<str>) {
        let Some(properties) = &instance.properties else { return };
        let catalog = self.session.shared.host.catalog();
        let found = catalog.find(&instance.type_name.value, None).ok();
        let is_include = |manifest: &Manifest| {
            manifest.kind == ResourceKind::Importer && matches!(manifest.implementation, Implementation::Engine)
        };
        if found.as_ref().is_some_and(|manifest| is_include(manifest)) {
            return self.include(instance, folder);
        }
        if properties.get("resources").is_some() {
            let (nested, _) = document::read(properties.span.source, properties.clone());
            for instance in &nested.resources {
                self.instance(instance, folder);
            }
            return;
        }
        let Some(manifest) = found.filter(|manifest| manifest.promises.claims) else { return };
        let (provider, stated) = (self.session.provider(manifest), Value::Object(written_out(properties)));
        let stated = Plain::covered(&Arc::new(stated));
        for path in provider.reads(&stated) {
            let stated = properties.get("source").filter(|node| node.as_str() == Some(&path));
            let span = stated.map_or(instance.span, |node| node.span);
            self.want(folder, &path, span);
        }
        for Claim::Path { path, extent } in provider.claims(&stated).unwrap_or_default().0 {
            let made = path.to_str().and_then(|path| normal(folder, path)).filter(|_| is_made(&extent));
            self.named.made.extend(made.filter(|made| !matches!(made.as_str(), "" | "/")));
        }
    }

    fn include(&mut self, instance: &Instance, folder: &Arc<str>) {
        let literal = |name: &str| {
            let node = instance.properties.as_ref()?.get(name)?;
            Some((node.span, node.as_str()?.to_owned()))
        };
        for (is_document, name) in [(true, "configurationFile"), (false, "parametersFile")] {
            let Some((span, path)) = literal(name) else { continue };
            self.want(folder, &path, span);
            let Some(whole) = normal(folder, &path).filter(|_| is_document) else { continue };
            if self.seen.insert(whole.clone())
                && let Some(text) = (self.read)(&whole)
            {
                self.text(&whole, &text, &Arc::from(folder_of(&whole)));
            }
        }
        if let Some((_, text)) = literal("configurationContent") {
            self.text("<configurationContent>", &text, folder);
        }
    }
}

/// The secret that a call names; `None` where any part of that is computed.
fn vault_entry(call: &FunctionCall<'_>) -> Option<VaultEntry> {
    let literals: Option<Vec<String>> = call.arguments().map(|argument| argument.text().map(str::to_owned)).collect();
    let mut literals = literals?.into_iter();
    Some(VaultEntry { name: literals.next()?, vault: literals.next() })
}

/// Returns whether an instance that manages this extent of a path determines what is read there or below it.
fn is_made(extent: &Extent) -> bool {
    matches!(
        extent,
        Extent::Whole | Extent::Part { .. } | Extent::Tree { .. } | Extent::Attributes | Extent::Link { .. }
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use stead_core::bundle::Entry;
    use stead_system::Cancel;

    use super::*;
    use crate::host::{Host, HostOptions};

    #[test]
    fn files_are_removed_with_the_session_whoever_holds_them() {
        let entry = Entry::File { mode: 0o600, content: Arc::from(&b"secret"[..]) };
        let entries = BTreeMap::from([("key".to_owned(), entry)]);
        let bundle = Bundle::new(None, ("site.yaml".to_owned(), Arc::from("resources: []")), entries).unwrap();
        let mut session = Host::new(HostOptions::default()).session("/");
        session.open_bundle(&Arc::new(bundle)).unwrap();
        // What a thread holds that carries out a call.
        let context = session.context("");
        drop(session.beside(Cancel::default()));
        assert!(context.program_root().join("key").exists());
        drop(session);
        assert!(!context.program_root().exists());
    }
}
