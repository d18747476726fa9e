//! A document that is open in an editor, and what is wrong with it.

use std::path::PathBuf;

use stead_core::diag::{Diagnostic, Severity};
use stead_core::event::Mode;
use stead_core::graph::Values;
use stead_core::text::{self, Limits, Node, SourceId, Span};
use stead_core::value::Object;
use stead_engine::{Host, Session, folder_of};

use crate::path_of;
use crate::position::{Encoding, Lines};
use crate::protocol::{
    self, DiagnosticRelatedInformation, DiagnosticSeverity, Location, Range, TextDocumentContentChangeEvent, Uri,
};

/// A byte order mark.
const MARK: char = '\u{feff}';

/// A text without its byte order mark, and its lines. Two marks are a mistake, which is reported.
fn split(mut text: String, encoding: Encoding) -> (String, Lines) {
    let has_mark = text.starts_with(MARK) && !text.starts_with("\u{feff}\u{feff}");
    if has_mark {
        text.remove(0);
    }
    let lines = Lines::of(&text, encoding, has_mark);
    (text, lines)
}

/// A document that is open.
pub(crate) struct File {
    pub(crate) uri: Uri,
    pub(crate) version: i32,
    /// The text without its byte order mark, which no place counts.
    pub(crate) text: String,
    pub(crate) lines: Lines,
    encoding: Encoding,
    /// The session that its resources are looked for with. They are looked for once, as long as it is open.
    session: Session,
    /// The findings of the last check.
    findings: Vec<Diagnostic>,
    /// True if it has changed since.
    pub(crate) is_dirty: bool,
    /// The last text that could be read, and its tree: names are known while the text is broken.
    read: Option<(String, Node)>,
}

impl File {
    pub(crate) fn open(host: &Host, uri: Uri, version: i32, text: String, encoding: Encoding) -> Self {
        let path = path_of(&uri);
        let root = path.as_deref().map_or_else(|| PathBuf::from("/"), folder_of);
        let (text, lines) = split(text, encoding);
        let session = host.session(root);
        Self { uri, version, text, lines, encoding, session, findings: Vec::new(), is_dirty: true, read: None }
    }

    /// Makes the changes of an editor, each on the text that the one before left.
    pub(crate) fn change(&mut self, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        for change in changes {
            let mut text = std::mem::take(&mut self.text);
            match change.range {
                None => text = change.text,
                Some(Range { start, end }) => {
                    // The mark is a part of the text of the editor, and may be what is changed.
                    if let Some(lines) = self.lines.without_mark() {
                        text.insert(0, MARK);
                        self.lines = lines;
                    }
                    let start = self.lines.offset(&text, start);
                    let end = self.lines.offset(&text, end).max(start);
                    text.replace_range(start..end, &change.text);
                }
            }
            (self.text, self.lines) = split(text, self.encoding);
        }
        (self.version, self.is_dirty) = (version, true);
    }

    /// Returns the mistakes in it, for the editor.
    pub(crate) fn check(&mut self) -> Vec<protocol::Diagnostic> {
        self.is_dirty = false;
        let mut session = self.beside().with(|options| options.values = Values::Open);
        let (tree, findings) = text::read(SourceId(0), &self.text, &Limits::default());
        let read = (tree.clone(), findings);
        if let Some(tree) = tree {
            self.read = Some((self.text.clone(), tree));
        }
        self.findings = match session.prepare_read(&self.uri, &self.text, read, Object::new()) {
            Ok(prepared) => {
                let mismatches = session.check_properties(&prepared, Mode::PLAN);
                let advice = prepared.advice();
                prepared.warnings.into_iter().chain(mismatches).chain(advice).collect()
            }
            Err(unusable) => session.with_properties(unusable, Mode::PLAN).findings,
        };
        self.findings.iter().map(|finding| self.shown(finding)).collect()
    }

    /// The last text that could be read and its tree.
    pub(crate) fn last_read(&self) -> Option<(&str, &Node)> {
        self.read.as_ref().map(|(text, root)| (text.as_str(), root))
    }

    /// Returns the findings of the last check.
    pub(crate) fn findings(&self) -> &[Diagnostic] {
        &self.findings
    }

    /// Another piece of work, which looks for no resources again.
    pub(crate) fn beside(&self) -> Session {
        self.session.beside(self.session.cancel().clone())
    }

    pub(crate) fn range(&self, span: Span) -> Range {
        self.lines.range(&self.text, (span.start as usize, span.end as usize))
    }

    /// A finding as editors show it. What is wrong with an included document stands at the beginning of this one.
    pub(crate) fn shown(&self, finding: &Diagnostic) -> protocol::Diagnostic {
        let own = |span: &Span| span.source == SourceId(0);
        let range = finding.span.filter(own).map(|span| self.range(span)).unwrap_or_default();
        let severity = match finding.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
        };
        let help = finding.help.iter().map(|help| format!("\n{help}"));
        let labels = finding.labels.iter().filter(|(span, _)| own(span)).map(|(span, message)| {
            let location = Location { uri: self.uri.clone(), range: self.range(*span) };
            DiagnosticRelatedInformation { location, message: message.clone() }
        });
        protocol::Diagnostic {
            range,
            severity,
            code: finding.code.id,
            source: "stead",
            message: std::iter::once(finding.message.clone()).chain(help).collect(),
            related_information: labels.collect(),
        }
    }
}
