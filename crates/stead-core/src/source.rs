//! Sources and places in them.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// One of the texts that a run is made from: the document, or one that it includes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct SourceId(pub u16);

/// A stretch of one source, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Span {
    /// The source.
    pub source: SourceId,
    /// The first byte.
    pub start: u32,
    /// The byte behind the last.
    pub end: u32,
}

impl Span {
    /// The bytes from `start` to `end` of `source`.
    pub fn new(source: SourceId, start: u32, end: u32) -> Self {
        Self { source, start, end }
    }

    /// Returns whether another one lies within it, or is the same.
    pub fn holds(self, other: Span) -> bool {
        self.source == other.source && self.start <= other.start && other.end <= self.end
    }

    /// The span of both and what lies between.
    #[must_use]
    pub fn to(self, other: Span) -> Self {
        Self { source: self.source, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// Something and where it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spanned<T> {
    /// The value, as it was read.
    pub value: T,
    /// Where.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// `value` as written at `span`.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

/// A text and the name that messages call it by.
#[derive(Clone, Debug)]
pub struct Source {
    /// A path, or a word such as `<input>`.
    pub name: String,
    /// The text, without a byte order mark.
    pub text: Arc<String>,
    /// True if messages show nothing of the text: it may hold secrets.
    pub is_private: bool,
    /// Stretches of the text that messages do not show: secrets that the document states.
    hidden: Vec<(u32, u32)>,
    lines: Arc<OnceLock<Vec<u32>>>,
}

impl Source {
    /// A source of that name. A leading byte order mark is dropped.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        Self { name: name.into(), text: Arc::new(text), is_private: false, hidden: Vec::new(), lines: Arc::default() }
    }

    /// Returns it marked private, so that messages show nothing of its text.
    #[must_use]
    pub fn private(self) -> Self {
        Self { is_private: true, ..self }
    }

    /// The stretches of a part of the text that messages do not show, as bytes of that part.
    pub(crate) fn hidden_in(&self, part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let within = move |at: u32| (at as usize).clamp(part.start, part.end) - part.start;
        self.hidden.iter().map(move |(start, end)| within(*start)..within(*end)).filter(|found| !found.is_empty())
    }

    /// Returns whether it has no text, only a name, such as an argument whose value nobody is to see.
    pub fn is_place_alone(&self) -> bool {
        self.is_private && self.text.is_empty()
    }

    /// Line and column of a byte, both from 1; the column counts characters.
    pub fn line_column(&self, offset: u32) -> (usize, usize) {
        let starts = self.lines.get_or_init(|| line_starts(&self.text));
        let line = starts.partition_point(|start| *start <= offset).max(1);
        let from = starts.get(line - 1).copied().unwrap_or(0) as usize;
        let upto = (offset as usize).min(self.text.len());
        let column = self.text.get(from..upto).map_or(0, |text| text.chars().count());
        (line, column + 1)
    }
}

fn line_starts(text: &str) -> Vec<u32> {
    let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    std::iter::once(0).chain(breaks.map(|(at, _)| u32::try_from(at + 1).unwrap_or(u32::MAX))).collect()
}

/// Every source of a run; spans are read against it.
///
/// # Examples
/// ```
/// use stead_core::text::{Source, Sources, Span};
///
/// let mut sources = Sources::default();
/// let id = sources.add(Source::new("main.yaml", "name: Zoë\nport: 80\n"));
/// let port = Span::new(id, 11, 15);
/// assert_eq!(sources.text(port), Some("port"));
/// assert_eq!(sources.place(port).to_string(), "main.yaml:2:1");
/// // Columns count characters, not bytes.
/// assert_eq!(sources.place(Span::new(id, 10, 10)).column, 10);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<Source>);

/// `name:line:column`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourcePosition {
    /// The name of the source.
    pub name: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.name, self.line, self.column)
    }
}

impl Sources {
    /// Adds a source and returns its number.
    ///
    /// Assumptions: there are fewer than 65,536; the reader of includes sees to that.
    pub fn add(&mut self, source: Source) -> SourceId {
        let id = SourceId(u16::try_from(self.0.len()).unwrap_or(u16::MAX));
        self.0.push(source);
        id
    }

    /// The number of a source, added when it is not there already.
    pub fn add_once(&mut self, name: &str, text: &str) -> SourceId {
        self.add_if_new(Source::new(name, text))
    }

    /// Adds a source like [`Sources::add`], of which messages show nothing.
    pub fn add_private(&mut self, name: &str, text: &str) -> SourceId {
        self.add_if_new(Source::new(name, text).private())
    }

    fn add_if_new(&mut self, new: Source) -> SourceId {
        let is_new = |(_, known): &(_, &Source)| {
            (&known.name, &known.text, known.is_private) == (&new.name, &new.text, new.is_private)
        };
        let known = self.iter().find(is_new).map(|(id, _)| id);
        known.unwrap_or_else(|| self.add(new))
    }

    /// Has messages show stars for stretches of text: secrets that a document states.
    pub fn hide(&mut self, spans: impl IntoIterator<Item = Span>) {
        for span in spans {
            if let Some(source) = self.0.get_mut(usize::from(span.source.0)) {
                let place = (span.start, span.end);
                source.hidden.extend((!source.hidden.contains(&place)).then_some(place));
            }
        }
    }

    /// Has messages show the text of a private source, with stars for stretches of it.
    pub fn show_without(&mut self, id: SourceId, hidden: impl IntoIterator<Item = Span>) {
        self.hide(hidden);
        if let Some(source) = self.0.get_mut(usize::from(id.0)) {
            source.is_private = false;
        }
    }

    /// The source of that number, if there is one.
    pub fn get(&self, id: SourceId) -> Option<&Source> {
        self.0.get(usize::from(id.0))
    }

    /// Every source with its number.
    pub fn iter(&self) -> impl Iterator<Item = (SourceId, &Source)> {
        self.0.iter().enumerate().map(|(at, source)| (SourceId(u16::try_from(at).unwrap_or(u16::MAX)), source))
    }

    /// Returns the text at a place.
    pub fn text(&self, span: Span) -> Option<&str> {
        self.get(span.source)?.text.get(span.start as usize..span.end as usize)
    }

    /// Returns where a span starts, as users write it.
    pub fn place(&self, span: Span) -> SourcePosition {
        match self.get(span.source) {
            Some(source) => {
                let (line, column) = source.line_column(span.start);
                SourcePosition { name: source.name.clone(), line, column }
            }
            None => SourcePosition { name: "<unknown>".to_owned(), line: 1, column: 1 },
        }
    }
}
