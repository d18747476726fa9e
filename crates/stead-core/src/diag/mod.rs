//! Findings about the user's text: a stable code, a place, a message, and what to do about it.

pub mod codes;
mod json;
mod meant;
mod render;
pub(crate) mod secret_forms;

pub use json::to_json;
pub use meant::{Meant, did_you_mean, likeliest, nearest};
pub use render::{render, render_all, snippet};
pub use secret_forms::covered;

use std::fmt;

use crate::source::{Sources, Span};

/// The stable identity of a kind of finding, with the text that `stead explain` shows.
#[derive(Debug)]
pub struct CodeInfo {
    /// `E` or `W` and four digits; never reused.
    pub id: &'static str,
    /// The mistake, in a few words.
    pub title: &'static str,
    /// The meaning, why it is refused, and how it is fixed; Markdown.
    pub explanation: &'static str,
}

/// A stable code of a finding.
pub type Code = &'static CodeInfo;

impl PartialEq for CodeInfo {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}
impl Eq for CodeInfo {}

impl serde::Serialize for CodeInfo {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id)
    }
}

/// By its id; one that this version does not have is an error.
impl<'de> serde::Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = String::deserialize(deserializer)?;
        let unknown = || serde::de::Error::custom(format_args!("there is no code '{id}'"));
        all().into_iter().find(|code| code.id == id).ok_or_else(unknown)
    }
}

impl fmt::Display for CodeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

/// Every code there is, in the order of the pipeline.
pub fn all() -> Vec<Code> {
    [
        codes::text::CODES,
        codes::document::CODES,
        codes::expr::CODES,
        codes::graph::CODES,
        codes::run::CODES,
        codes::manifest::CODES,
        codes::parameters::CODES,
        codes::call::CODES,
        codes::sls::CODES,
        codes::powershell::script::CODES,
        codes::powershell::module::CODES,
        codes::powershell::call::CODES,
        codes::hosts::CODES,
        codes::release::CODES,
        codes::test::CODES,
    ]
    .concat()
}

/// The code of that id, whatever its case.
///
/// # Examples
/// ```
/// use stead_core::diag::explain;
///
/// let code = explain("e0101").ok_or("there is no such code")?;
/// assert_eq!(code.id, "E0101");
/// assert!(!code.explanation.is_empty());
/// assert!(explain("E9999").is_none());
/// # Ok::<(), &str>(())
/// ```
pub fn explain(id: &str) -> Option<Code> {
    all().into_iter().find(|code| code.id.eq_ignore_ascii_case(id))
}

/// Declares the codes of a module, and `CODES`, the list of them.
#[macro_export]
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $id:literal, $title:literal, $explanation:literal;)*) => {
        $(
            $(#[$doc])*
            #[doc = concat!($id, ": ", $title, ".")]
            pub static $name: $crate::diag::CodeInfo =
                $crate::diag::CodeInfo { id: $id, title: $title, explanation: $explanation };
        )*
        /// Every code of this module.
        pub static CODES: &[$crate::diag::Code] = &[$(&$name),*];
    };
}

/// How much a finding matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Nothing runs before it is fixed.
    Error,
    /// It runs, but probably not as meant.
    Warning,
}

impl Severity {
    /// The word that messages use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// A change to the text that fixes a finding.
///
/// Guarantees: it is what was meant, whoever wrote the text and whatever else is in it. There is one only where what is
/// written has one meaning: a name in another case, a missing bracket or quote, a word of the language with one letter wrong
/// and no other near. A name of the author's own that is near is advice, and so is the type of a resource that is not there.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Fix {
    /// The place that is replaced.
    pub span: Span,
    /// The text that replaces it.
    pub replacement: String,
}

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Diagnostic {
    /// The kind of finding.
    pub code: Code,
    /// How much it matters.
    pub severity: Severity,
    /// The mistake, in one sentence, with the names involved.
    pub message: String,
    /// Where; absent only when the finding is about something that is not text.
    pub span: Option<Span>,
    /// Other places that explain it, such as the first of two equal names.
    pub labels: Vec<(Span, String)>,
    /// The advice, in one sentence.
    pub help: Option<String>,
    /// The change that does it, where a machine can make it.
    pub fix: Option<Fix>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: without_url_secrets(message.into()),
            span: Some(span),
            labels: Vec::new(),
            help: None,
            fix: None,
        }
    }

    /// A warning without a place.
    fn plain(code: Code, message: String) -> Self {
        Self { span: None, ..Self::warning(code, Span::default(), message) }
    }

    /// A warning at a place.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// Returns the finding with a hint.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(without_url_secrets(help.into())), ..self }
    }

    /// Returns the finding with another place that explains it.
    #[must_use]
    pub fn with_label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push((span, text.into()));
        self
    }

    /// Returns the finding with a change that fixes it.
    #[must_use]
    pub fn with_fix(self, span: Span, replacement: impl Into<String>) -> Self {
        Self { fix: Some(Fix { span, replacement: replacement.into() }), ..self }
    }

    /// Adds the words that were probably meant. A certain one comes with the change that puts it there, if what is
    /// written at the place has the wrong one just once and as it is.
    #[must_use]
    pub fn with_meant(self, wrong: &str, meant: &Meant, written: Option<&str>) -> Self {
        let change = self.span.and_then(|span| Some((only(written?, wrong)?, span)));
        let finding = self.with_help(meant.to_string());
        match change.zip(meant.certain()).filter(|(_, meant)| !wrong.is_empty() && is_plain(meant)) {
            Some(((at, span), meant)) => {
                let start = span.start.saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
                let end = start.saturating_add(u32::try_from(wrong.len()).unwrap_or(u32::MAX));
                finding.with_fix(Span::new(span.source, start, end), meant)
            }
            None => finding,
        }
    }

    /// Takes out the change where it would alter a value that an alias repeats elsewhere, given the places of such values.
    pub fn spare(&mut self, repeated: &[Span]) {
        if self.fix.take_if(|fix| repeated.iter().any(|place| place.holds(fix.span))).is_some() {
            self.help = Some("an alias repeats the value: write it out where it is to be another".to_owned());
        }
    }

    /// Takes out words of the line that the finding is about: a message that has one gives way to the title of the code.
    #[must_use]
    pub fn without_words_of(self, text: &str) -> Self {
        // It has no word but that of a known tag.
        if self.code.id == codes::text::TAG_FOREIGN.id {
            return self;
        }
        let from = self.span.map_or(0, |span| span.start as usize);
        let before = text.get(..from).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |found| found + 1);
        let line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let words = || line.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2);
        // A message may shorten a long word.
        let begin = |word: &str| word.chars().take(6).collect::<String>();
        let is_safe = |said: &str| words().all(|word| !said.contains(&begin(word)));
        Self {
            message: if is_safe(&self.message) { self.message } else { self.code.title.to_owned() },
            help: self.help.filter(|help| is_safe(help)),
            labels: self.labels.into_iter().filter(|(_, label)| is_safe(label)).collect(),
            fix: None,
            ..self
        }
    }

    /// `path:line:column: error[E0101]: message`, one line without the text around it.
    pub fn brief(&self, sources: &Sources) -> String {
        let place = self.span.map(|span| format!("{}: ", sources.place(span))).unwrap_or_default();
        format!("{place}{}[{}]: {}", self.severity.as_str(), self.code, self.message)
    }
}

/// A message without the passwords and tokens of addresses that it repeats.
fn without_url_secrets(message: String) -> String {
    if message.contains("://") { covered(&message).into_owned() } else { message }
}

/// Returns whether any of them keeps a document from being used.
pub fn any_error(findings: &[Diagnostic]) -> bool {
    count_errors(findings) > 0
}

/// Returns the number of those that keep a document from being used.
pub fn count_errors(findings: &[Diagnostic]) -> usize {
    findings.iter().filter(|finding| finding.severity == Severity::Error).count()
}

/// A number of things: `1 error`, `2 errors`.
pub fn counted<N: fmt::Display + PartialEq + From<u8> + Copy>(number: N, thing: &str) -> String {
    let ending = if number == N::from(1) { "" } else { "s" };
    format!("{number} {thing}{ending}")
}

/// Returns whether a word stands for itself in quotes and without, whatever the language.
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
}

/// Returns where the only occurrence of a word in a text is, as a word of its own.
fn only(text: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let stands_alone = |at: &usize| {
        let (before, behind) = (text.get(..*at), text.get(at + word.len()..));
        !before.is_some_and(|text| text.ends_with(is_part)) && !behind.is_some_and(|text| text.starts_with(is_part))
    };
    let mut places = text.match_indices(word).map(|(at, _)| at).filter(stands_alone);
    let first = places.next()?;
    places.next().is_none().then_some(first)
}

/// Findings as they are collected, up to a number that is worth reading.
///
/// Guarantees: whether there was an error is never lost, even when the finding itself is.
#[derive(Debug)]
pub struct Findings {
    list: Vec<Diagnostic>,
    limit: usize,
    overflow: Code,
}

impl Extend<Diagnostic> for Findings {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, findings: I) {
        findings.into_iter().for_each(|finding| self.push(finding));
    }
}

impl Findings {
    /// Collects up to `limit` findings; more are replaced by one of the code `overflow`.
    pub fn new(overflow: Code, limit: usize) -> Self {
        Self { list: Vec::new(), limit, overflow }
    }

    /// Adds a finding.
    pub fn push(&mut self, finding: Diagnostic) {
        if self.list.len() < self.limit {
            self.list.push(finding);
            return;
        }
        if self.list.len() == self.limit {
            let message = format!("there are more than {} findings, the rest is left out", self.limit);
            self.list.push(Diagnostic { span: finding.span, ..Diagnostic::plain(self.overflow, message) });
        }
        if let Some(last) = self.list.last_mut() {
            last.severity = last.severity.min(finding.severity);
        }
    }

    /// Returns whether there was an error.
    pub fn any_error(&self) -> bool {
        any_error(&self.list)
    }

    /// Returns whether there is a finding at exactly this place.
    pub fn any_at(&self, span: Option<Span>) -> bool {
        self.list.iter().any(|finding| finding.span == span)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns whether more findings are only counted.
    pub fn is_full(&self) -> bool {
        self.list.len() >= self.limit
    }

    /// Returns whether errors are being left out: then there is no need to look for more of them.
    pub fn leave_out_errors(&self) -> bool {
        self.list.len() > self.limit && self.any_error()
    }

    /// Everything that was collected.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceId;

    #[test]
    fn findings_that_are_read_are_those_that_were_written() {
        let span = Span::new(SourceId(3), 4, 9);
        for code in all() {
            let finding =
                Diagnostic::error(code, span, "wrong").with_help("do").with_label(span, "a").with_fix(span, "b");
            let written = serde_json::to_string(&finding).unwrap();
            assert_eq!(serde_json::from_str::<Diagnostic>(&written).unwrap(), finding);
            let later = written.replace(code.id, "E9999");
            let wrong = serde_json::from_str::<Diagnostic>(&later).unwrap_err().to_string();
            assert!(wrong.starts_with("there is no code 'E9999'"), "{wrong}");
        }
    }
}
