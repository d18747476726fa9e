//! What was wrong while the machine was searched. None of it ends the search.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use stead_core::diag::{Diagnostic, any_error};
use stead_core::id::TypeName;
use stead_core::text::{Source, Sources};

use crate::fs::Untrusted;

/// Something that was left out of the catalog, or is doubtful, and why.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The file or directory.
    pub path: PathBuf,
    /// Why.
    pub reason: Reason,
}

/// Why something was left out.
#[derive(Clone, Debug)]
pub enum Reason {
    /// The system refused to read it.
    Unreadable(io::ErrorKind),
    /// It has the name of a manifest, but is no file.
    NoFile,
    /// It is larger than that many bytes.
    TooLarge(u64),
    /// It is not UTF-8.
    Encoding,
    /// Others than root could change it, or something on the way to it.
    Untrusted(Untrusted),
    /// There are findings about its text. Where none is an error, it is used all the same.
    Invalid {
        /// The text; source 0 of the findings.
        source: Source,
        /// The findings.
        findings: Vec<Diagnostic>,
    },
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

impl Problem {
    pub(super) fn new(path: &Path, reason: Reason) -> Self {
        Self { path: path.to_owned(), reason }
    }

    /// Whether something was left out because of it.
    pub fn is_error(&self) -> bool {
        if let Reason::Invalid { findings, .. } = &self.reason { any_error(findings) } else { true }
    }

    /// Whether it may be the reason why there is no resource of that type.
    pub fn may_explain(&self, missing: &TypeName) -> bool {
        match &self.reason {
            Reason::Condition(name, _) | Reason::Adapter(name, _) | Reason::Implementation(name, _) => name == missing,
            Reason::Invalid { source, .. } => {
                let has = |text: &str| text.to_lowercase().contains(&missing.as_str().to_lowercase());
                self.is_error() && has(&source.text)
            }
            // What was not read may have held anything.
            Reason::Unreadable(_)
            | Reason::NoFile
            | Reason::TooLarge(_)
            | Reason::Encoding
            | Reason::Untrusted(_)
            | Reason::List(..)
            | Reason::Discover(..) => true,
        }
    }

    /// Whether somebody should be told without having asked. Directories of `PATH` that are not for everyone, and notes
    /// on manifests that are used all the same, are usual.
    pub fn is_notable(&self) -> bool {
        self.is_error() && !matches!(self.reason, Reason::Unreadable(_) | Reason::NoFile)
    }

    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match &self.reason {
            Reason::Untrusted(untrusted) => Some(untrusted.help()),
            Reason::Invalid { findings, .. } => findings.iter().find_map(|finding| finding.help.clone()),
            Reason::Adapter(_, adapter) => {
                Some(format!("install the adapter '{adapter}', or add its directory to the search path"))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.reason {
            Reason::Unreadable(kind) => write!(f, "{path} cannot be read: {kind}"),
            Reason::NoFile => write!(f, "{path} is not a file"),
            Reason::TooLarge(limit) => write!(f, "{path} is larger than {limit} bytes"),
            Reason::Encoding => write!(f, "{path} is not UTF-8"),
            Reason::Untrusted(untrusted) => write!(f, "{path} is not trusted: {untrusted}"),
            Reason::Invalid { source, findings } => write_findings(f, source, findings),
            Reason::Condition(name, message) => write!(f, "{path}: the condition of '{name}' {message}"),
            Reason::Adapter(name, adapter) => write!(f, "{path}: '{name}' needs the adapter '{adapter}'"),
            Reason::Implementation(name, file) => {
                write!(f, "{path}: '{name}' is implemented in {}, which is not there", file.display())
            }
            Reason::List(adapter, message) => write!(f, "the adapter '{adapter}' cannot list its resources: {message}"),
            Reason::Discover(extension, message) => write!(f, "the extension '{extension}': {message}"),
        }
    }
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
