//! SLS files of Idem as documents.
//!
//! ```text
//! texts ──mask, read──▶ declarations ──compile──▶ states ──write──▶ instances
//! ```
//!
//! A state of the module `a.b.c` becomes an instance of the type `Idem.a.b/c`. `present` is what an instance is, `absent` is
//! `_exist: false`, and any other function is the property `fun`. Requisites become `dependsOn` and directives. Nothing is
//! looked at but the texts, and Jinja is not evaluated. What has no counterpart is a finding with its place.

pub use stead_core::diag::codes::sls as codes;
mod binding;
mod compile;
mod glob;
mod keyword;
mod own;
mod read;
mod template;
mod write;

use std::collections::BTreeSet;

use read::FileView;
use stead_core::diag::{Diagnostic, any_error};
use stead_core::text::{SourceId, Sources};
use stead_core::value::{Object, Value};

/// An SLS file.
#[derive(Clone, Debug)]
pub struct Sls {
    /// The name by which others include and require it: `a.b` for `a/b.sls` and `a/b/init.sls`.
    pub reference: String,
    /// Which of these files it is.
    pub layout: Layout,
    /// Its text, or why there is none.
    pub text: Result<SourceId, String>,
}

/// Which file has a reference; a leading dot in its includes stands for the directory of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// `a/b.sls`
    Single,
    /// `a/b/init.sls`
    Init,
}

impl Layout {
    /// Returns the suffix that a path adds to the reference with its dots as slashes.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Single => ".sls",
            Self::Init => "/init.sls",
        }
    }
}

/// The result of converting SLS files.
#[derive(Debug)]
pub enum Conversion {
    /// These included files are to be added behind the others; then convert them again.
    Needs(BTreeSet<String>),
    /// They were read.
    Done {
        /// `None` where something is wrong with them.
        document: Option<Converted>,
        /// The mistakes, and as warnings the features that could not be carried over exactly.
        findings: Vec<Diagnostic>,
    },
}

/// A document made from SLS files.
#[derive(Clone, PartialEq, Debug)]
pub struct Converted {
    /// The comment that the first file begins with, with its line breaks.
    comment: String,
    /// The keys of the document before `resources`.
    head: Object,
    /// The instances, each with the comment above it.
    resources: Vec<(String, Value)>,
}

impl Converted {
    /// The document as a value.
    pub fn value(&self) -> Value {
        let mut document = self.head.clone();
        let resources = self.resources.iter().map(|(_, instance)| instance.clone()).collect();
        document.insert("resources".to_owned(), Value::Array(resources));
        Value::Object(document)
    }

    /// The document as text with the comments of the files; `yaml` writes one value, ending in a line break.
    pub fn text(&self, yaml: impl Fn(&Value) -> String) -> String {
        let mut text = self.comment.clone();
        text += &yaml(&Value::Object(self.head.clone()));
        if self.resources.is_empty() {
            return text + "resources: []\n";
        }
        text += "resources:\n";
        for (comment, instance) in &self.resources {
            text += comment;
            text += &yaml(&Value::Array(vec![instance.clone()]));
        }
        text
    }
}

/// Converts SLS files into one document, as Idem makes one run of them.
///
/// Guarantees: it depends on nothing but its arguments. All that is wrong with the texts is found at once, and then all that is
/// wrong between their states, in the order of the files. The document can be read without findings.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_sls::{Conversion, Layout, Sls, convert};
/// use stead_core::text::{Source, Sources};
///
/// let mut sources = Sources::default();
/// let id = sources.add(Source::new("web.sls", "include: [base]\nvm:\n  cloud.vm.present:\n  - size: small\n"));
/// let web = Sls { reference: "web".to_owned(), layout: Layout::Single, text: Ok(id) };
/// // Nothing is fetched: the caller reads what is included, and asks again.
/// let Conversion::Needs(needed) = convert(&[web.clone()], &sources) else { return Err("it includes another") };
/// assert!(needed.contains("base"));
/// let id = sources.add(Source::new("base.sls", "{}\n"));
/// let base = Sls { reference: "base".to_owned(), layout: Layout::Single, text: Ok(id) };
/// let Conversion::Done { document: Some(document), .. } = convert(&[web, base], &sources) else { return Err("it is valid") };
/// let instance = &document.value().to_redacted_json()["resources"][0];
/// assert_eq!(instance["type"], json!("Idem.cloud/vm"));
/// # Ok::<(), &str>(())
/// ```
pub fn convert(files: &[Sls], sources: &Sources) -> Conversion {
    let mut read = read::read(files, sources);
    let mut needed = BTreeSet::new();
    for include in &read.includes {
        match files.iter().find(|file| file.reference == include.reference) {
            None => drop(needed.insert(include.reference.clone())),
            Some(Sls { text: Err(reason), .. }) => {
                let message = format!("cannot load '{}': {reason}", include.reference);
                let help =
                    "references start from the directory of the first file; a leading dot stands for that of this file";
                read.findings.push(Diagnostic::error(&codes::INCLUDE, include.span, message).with_help(help));
            }
            Some(_) => {}
        }
    }
    if !needed.is_empty() {
        return Conversion::Needs(needed);
    }
    let mut document = None;
    if !any_error(&read.findings) {
        let (converted, findings) = write::write(&read, &compile::compile(&read), sources);
        document = Some(converted);
        read.findings.extend(findings);
    }
    let mut findings = read.findings;
    findings.sort_by_key(|finding| finding.span);
    findings.dedup();
    Conversion::Done { document: document.filter(|_| !any_error(&findings)), findings }
}

/// Returns the absolute form of a reference in a file that may begin with dots; `None` when it leads outside.
fn absolute(written: &str, from: &FileView<'_>) -> Option<String> {
    let rest = written.trim_start_matches('.');
    let levels = written.len() - rest.len();
    let is_word = |part: &str| !part.is_empty() && !part.contains(['/', '\\']);
    if rest.is_empty() || !rest.split('.').all(is_word) {
        return None;
    }
    let file = (from.layout == Layout::Init).then_some("init");
    let parents: Vec<&str> = from.reference.split('.').chain(file).collect();
    let kept = parents.get(..parents.len().checked_sub(levels)?).filter(|_| levels > 0).unwrap_or_default();
    Some(kept.iter().copied().chain([rest]).collect::<Vec<_>>().join("."))
}
