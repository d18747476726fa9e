//! Problems of searching the machine. None of them ends the search.

use std::fmt;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use stead_core::diag::{Diagnostic, Severity, any_error};
use stead_core::id::TypeName;
use stead_core::text::{Limits, Node, Source, SourceId, Sources, Span, read};

use stead_system::fs::{Status, Untrusted};

/// Something that was left out of the catalog, or is suspicious, and why.
#[derive(Clone, Debug)]
pub struct CatalogProblem {
    /// The file or directory.
    pub path: PathBuf,
    /// Why.
    pub reason: ProblemReason,
}

/// Why something was left out.
#[derive(Clone, Debug)]
pub enum ProblemReason {
    /// The system refused to read it.
    Unreadable(io::ErrorKind),
    /// It has the name of a manifest, but is not a file.
    NoFile,
    /// It is larger than that many bytes.
    TooLarge(u64),
    /// It is not UTF-8.
    Encoding,
    /// Others than root could change it, or something on the way to it.
    Untrusted(Untrusted),
    /// Root was to search a directory by a relative path: what that means now, and whose it is.
    Relative(PathBuf, u32),
    /// There are findings about its text. Where none is an error, it is used all the same.
    Invalid {
        /// The text; source 0 of the findings.
        source: Source,
        /// The findings.
        findings: Vec<Diagnostic>,
    },
    /// The type is one that only this program carries out.
    Reserved(TypeName),
    /// The condition of a manifest cannot be evaluated, or is neither true nor false.
    Condition(TypeName, String),
    /// The adapter that a resource needs is not there, or is none.
    Adapter(TypeName, TypeName),
    /// The file that an adapted resource is implemented in is not there.
    Implementation(TypeName, PathBuf),
    /// An adapter could not list its resources.
    List(TypeName, String),
    /// An extension could not discover resources, or what it printed makes no sense.
    Discover(TypeName, String),
}

impl CatalogProblem {
    pub(super) fn new(path: &Path, reason: ProblemReason) -> Self {
        Self { path: path.to_owned(), reason }
    }

    /// That root does not search a directory that is relative; `None` where there is none.
    pub fn relative(path: &Path) -> Option<Self> {
        let means = std::path::absolute(path).ok()?.canonicalize().ok()?;
        let owner = Status::from(&means.metadata().ok().filter(Metadata::is_dir)?).uid;
        Some(Self::new(path, ProblemReason::Relative(means, owner)))
    }

    /// Returns whether something was left out because of it.
    pub fn is_error(&self) -> bool {
        if let ProblemReason::Invalid { findings, .. } = &self.reason { any_error(findings) } else { true }
    }

    /// Returns whether it may be the reason why there is no resource of that type.
    pub fn may_explain(&self, missing: &TypeName) -> bool {
        match &self.reason {
            ProblemReason::Reserved(name)
            | ProblemReason::Condition(name, _)
            | ProblemReason::Adapter(name, _)
            | ProblemReason::Implementation(name, _) => name == missing,
            ProblemReason::Invalid { source, .. } => self.is_error() && mentions(source, missing),
            // What was not read may have held anything.
            ProblemReason::Unreadable(_)
            | ProblemReason::NoFile
            | ProblemReason::TooLarge(_)
            | ProblemReason::Encoding
            | ProblemReason::Untrusted(_)
            | ProblemReason::Relative(..)
            | ProblemReason::List(..)
            | ProblemReason::Discover(..) => true,
        }
    }

    /// True if it left out a manifest that may be that of an extension.
    pub fn may_hide_extension(&self) -> bool {
        let is_extension = self.path.to_str().is_some_and(|path| path.contains(".dsc.extension."));
        match &self.reason {
            ProblemReason::Untrusted(_) | ProblemReason::TooLarge(_) | ProblemReason::Encoding => true,
            ProblemReason::Invalid { .. } => self.is_error() && is_extension,
            ProblemReason::Unreadable(_) | ProblemReason::Condition(..) => is_extension,
            _ => false,
        }
    }

    /// The path of a manifest that is there and was not read, since others could have changed it.
    pub fn untrusted(&self) -> Option<&Path> {
        matches!(self.reason, ProblemReason::Untrusted(_)).then_some(&*self.path)
    }

    /// For a manifest that declares this type and is invalid: its first error with its place, and what to do about it.
    pub fn first_error_of(&self, type_name: &TypeName) -> Option<(String, Option<String>)> {
        let ProblemReason::Invalid { source, findings } = &self.reason else { return None };
        if !mentions(source, type_name) {
            return None;
        }
        let extent = declaration(source, type_name)?;
        let within = |span: Span| extent.start <= span.start && span.end <= extent.end;
        let mut errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
        let error = errors.find(|finding| finding.span.is_none_or(within))?;
        let mut sources = Sources::default();
        sources.add(source.clone());
        Some((error.brief(&sources), error.help.clone()))
    }

    /// Returns whether it is reported without having been asked for. Directories of `PATH` that are not for everyone,
    /// and notes on manifests that are used all the same, are usual.
    pub fn is_notable(&self) -> bool {
        self.is_error() && !matches!(self.reason, ProblemReason::Unreadable(_) | ProblemReason::NoFile)
    }

    /// Returns the advice about it.
    pub fn help(&self) -> Option<String> {
        match &self.reason {
            ProblemReason::Untrusted(untrusted) => Some(untrusted.help()),
            ProblemReason::Relative(means, _) => Some(format!("write '{}'", means.display())),
            ProblemReason::Invalid { findings, .. } => findings.iter().find_map(|finding| finding.help.clone()),
            ProblemReason::Adapter(_, adapter) => {
                Some(format!("install the adapter '{adapter}', or add its directory to the search path"))
            }
            _ => None,
        }
    }
}

impl fmt::Display for CatalogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.reason {
            ProblemReason::Unreadable(kind) => write!(f, "{path} cannot be read: {kind}"),
            ProblemReason::NoFile => write!(f, "{path} is not a file"),
            ProblemReason::Reserved(name) => {
                write!(f, "{path} declares '{name}', which is built in and cannot be replaced")
            }
            ProblemReason::TooLarge(limit) => write!(f, "{path} is larger than {limit} bytes"),
            ProblemReason::Encoding => write!(f, "{path} is not UTF-8"),
            ProblemReason::Untrusted(untrusted) => write!(f, "{path} is not trusted: {untrusted}"),
            ProblemReason::Relative(means, owner) => {
                let means = means.display();
                write!(f, "'{path}' is relative, and not searched as root: it means '{means}', owned by user {owner}")
            }
            ProblemReason::Invalid { source, findings } => write_findings(f, source, findings),
            ProblemReason::Condition(name, message) => write!(f, "{path}: the condition of '{name}' {message}"),
            ProblemReason::Adapter(name, adapter) => write!(f, "{path}: '{name}' needs the adapter '{adapter}'"),
            ProblemReason::Implementation(name, file) => {
                write!(f, "{path}: '{name}' is implemented in {}, which is not there", file.display())
            }
            ProblemReason::List(adapter, message) => {
                write!(f, "the adapter '{adapter}' cannot list its resources: {message}")
            }
            ProblemReason::Discover(extension, message) => write!(f, "the extension '{extension}': {message}"),
        }
    }
}

/// Returns whether a text has the name of a type anywhere. This is so much faster than reading it that it is asked
/// first.
fn mentions(source: &Source, type_name: &TypeName) -> bool {
    let name = type_name.as_str().as_bytes();
    source.text.as_bytes().windows(name.len()).any(|part| part.eq_ignore_ascii_case(name))
}

/// The part of a text that declares a type: one manifest of several, or the whole where it cannot be read.
fn declaration(source: &Source, type_name: &TypeName) -> Option<Span> {
    let is_it = |text: &str| text.eq_ignore_ascii_case(type_name.as_str());
    let (Some(node), _) = read(SourceId::default(), &source.text, &Limits::default()) else {
        let mut words = source.text.split(|c: char| c.is_whitespace() || "\"',{}[]".contains(c));
        let end = u32::try_from(source.text.len()).unwrap_or(u32::MAX);
        return words.any(is_it).then(|| Span { end, ..Span::default() });
    };
    let lists = ["resources", "adaptedResources", "extensions"].iter().filter_map(|key| node.get(key)?.items());
    let mut manifests = lists.flatten().chain([&node]);
    manifests
        .find(|manifest| manifest.get("type").and_then(Node::as_str).is_some_and(is_it))
        .map(|manifest| manifest.span)
}

fn write_findings(f: &mut fmt::Formatter<'_>, source: &Source, findings: &[Diagnostic]) -> fmt::Result {
    let mut sources = Sources::default();
    sources.add(source.clone());
    for (at, finding) in findings.iter().enumerate() {
        let line_break = if at > 0 { "\n" } else { "" };
        write!(f, "{line_break}{}", finding.brief(&sources))?;
    }
    Ok(())
}
