//! Builds the tree from the events of the parser.

use std::collections::HashMap;
use std::sync::Arc;

use granit_parser::{Event, ScalarStyle, Tag};

use super::anchors::{Anchors, Repeated, TooMuch};
use super::limits::Limits;
use super::node::are_distinct;
use super::scalar::{self, Plain};
use super::{Entry, Kind, Node, SourceId, Span, characters, codes, foreign_tags, unquoted};
use crate::diag::{Diagnostic, Findings};
use crate::value::Number;

/// Reading must end here; the reason has been reported.
pub(super) struct Stop;

/// Finished values lie on two stacks, one for elements and one for members; a list or an object that ends takes its
/// own from the top. So every vector of the tree has exactly the size it needs, and nothing is held twice.
pub(super) struct Builder<'t> {
    text: &'t str,
    source: SourceId,
    limits: &'t Limits,
    findings: Findings,
    frames: Vec<Frame>,
    elements: Vec<Node>,
    members: Vec<Entry>,
    root: Option<Node>,
    anchors: Anchors<'t>,
    nodes: usize,
    /// The last piece that was read: a scalar, an alias, an opening or a whole list or object.
    last: Span,
    /// True of a word that begins with a no-break space.
    has_no_break: bool,
}

/// A list or an object that has not ended.
struct Frame {
    start: u32,
    end: u32,
    flow: bool,
    anchor: usize,
    tag: Option<(String, Span)>,
    content: Content,
}

enum Content {
    Array { base: usize },
    Object { base: usize, key: Option<(Arc<str>, Span)> },
}

impl<'t> Builder<'t> {
    pub(super) fn new(source: SourceId, text: &'t str, limits: &'t Limits, findings: Findings) -> Self {
        Self {
            text,
            source,
            limits,
            findings,
            frames: Vec::new(),
            elements: Vec::new(),
            members: Vec::new(),
            root: None,
            anchors: Anchors::new(text, limits.aliases),
            nodes: 0,
            last: Span::new(source, 0, 0),
            has_no_break: false,
        }
    }

    /// Takes the next event.
    pub(super) fn event(&mut self, event: Event<'_>, span: granit_parser::Span) -> Result<(), Stop> {
        let at = self.place(&span);
        match event {
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, at, anchor, tag.as_deref(), &span),
            Event::SequenceStart(style, anchor, tag) => {
                let content = Content::Array { base: self.elements.len() };
                self.open(content, style, at, anchor, self.tag(tag.as_deref(), &span))
            }
            Event::MappingStart(style, anchor, tag) => {
                let content = Content::Object { base: self.members.len(), key: None };
                self.open(content, style, at, anchor, self.tag(tag.as_deref(), &span))
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(at),
            Event::Anchor(id, name) => {
                self.anchors.name(id, &name);
                Ok(())
            }
            Event::Alias(id) => self.alias(id, at),
            Event::UnresolvedAlias(name) => self.unknown_alias(&name, at),
            Event::DocumentStart(..) => self.document(at),
            _ => Ok(()),
        }
    }

    /// Returns the tree and the findings. Without `complete` there is no tree.
    pub(super) fn finish(mut self, complete: bool) -> (Option<Node>, Vec<Diagnostic>) {
        if complete && self.root.is_none() {
            let help = "a document is an object with the key 'resources'";
            self.report(
                Diagnostic::error(&codes::EMPTY, self.span(0, 0), "the text holds no document").with_help(help),
            );
        }
        (self.root.filter(|_| complete), self.findings.into_vec())
    }

    /// The text that is read.
    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the number of levels that are allowed.
    pub(super) fn depth(&self) -> usize {
        self.limits.depth
    }

    /// Returns whether a key or a value begins with a no-break space.
    pub(super) fn has_no_break(&self) -> bool {
        self.has_no_break
    }

    /// The last complete piece.
    pub(super) fn last(&self) -> Span {
        self.last
    }

    /// The place of bytes `start` to `end`.
    pub(super) fn span(&self, start: u32, end: u32) -> Span {
        Span::new(self.source, start, end)
    }

    /// Returns where the innermost list or object in brackets starts.
    pub(super) fn open_bracket(&self) -> Option<u32> {
        let bracket = |frame: &&Frame| self.slice(self.span(frame.start, frame.start + 1)).starts_with(['[', '{']);
        // A pair within a list is an object without brackets of its own.
        self.frames.iter().rev().take_while(|frame| frame.flow).find(bracket).map(|frame| frame.start)
    }

    /// Returns where the document ends, once it was read, if it is a list or an object in brackets.
    pub(super) fn end_in_brackets(&self) -> Option<u32> {
        let span = self.root.as_ref()?.span;
        self.slice(span).starts_with(['[', '{']).then_some(span.end)
    }

    fn report(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    fn place(&self, span: &granit_parser::Span) -> Span {
        let start = self.border(span.start);
        self.span(start, self.border(span.end).max(start))
    }

    /// The parser miscounts byte order marks between documents; a place within a character would make slices fail.
    fn border(&self, marker: granit_parser::Marker) -> u32 {
        let mut at = marker.byte_offset().unwrap_or(0).min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        offset(Some(at))
    }

    fn tag(&self, tag: Option<&Tag>, span: &granit_parser::Span) -> Option<(String, Span)> {
        let tag = tag?;
        let name = tag.core_suffix().map_or_else(|| tag.original(), str::to_owned);
        Some((name, span.tag_span().map_or_else(|| self.place(span), |span| self.place(&span))))
    }

    fn document(&mut self, at: Span) -> Result<(), Stop> {
        let Some(first) = self.root.as_ref().map(|root| root.span) else { return Ok(()) };
        let finding = Diagnostic::error(&codes::DOCUMENTS, at, "a second document starts here")
            .with_label(self.span(first.start, first.start), "the first starts here")
            .with_help("remove the line '---', or put each document into a file of its own");
        self.report(finding);
        Err(Stop)
    }

    /// Counts a value before it is made.
    fn count(&mut self, nodes: usize, at: Span) -> Result<(), Stop> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.check(self.nodes, self.limits.nodes, "values", at)
    }

    fn check(&mut self, count: usize, limit: usize, what: &str, at: Span) -> Result<(), Stop> {
        if count <= limit {
            return Ok(());
        }
        let message = format!("the text has more than {limit} {what}, which is the limit");
        self.report(Diagnostic::error(&codes::LIMIT, at, message));
        Err(Stop)
    }

    fn open(
        &mut self,
        content: Content,
        style: granit_parser::StructureStyle,
        at: Span,
        anchor: usize,
        tag: Option<(String, Span)>,
    ) -> Result<(), Stop> {
        self.count(1, at)?;
        self.check(self.frames.len() + 1, self.limits.depth, "levels", at)?;
        if anchor != 0 {
            self.anchors.open(anchor);
        }
        let flow = style == granit_parser::StructureStyle::Flow;
        let dash = !flow && matches!(content, Content::Array { .. });
        let at = if dash { self.with_dash(at) } else { at };
        self.last = at;
        self.frames.push(Frame { start: at.start, end: at.end, flow, anchor, tag, content });
        Ok(())
    }

    /// The parser starts a list that is as deep as the key above it behind its first dash.
    fn with_dash(&self, at: Span) -> Span {
        let is_in_list = matches!(self.frames.last(), Some(Frame { content: Content::Array { .. }, .. }));
        let before = self.text.get(self.last.end as usize..at.start as usize).unwrap_or_default().trim_end();
        let line = before.rsplit('\n').next().unwrap_or_default();
        if is_in_list || line.trim_start() != "-" {
            return at;
        }
        Span { start: offset(Some(self.last.end as usize + before.len() - 1)), ..at }
    }

    fn close(&mut self, at: Span) -> Result<(), Stop> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        let bracket = self.text.get(at.start as usize..at.end as usize).is_some_and(|text| matches!(text, "]" | "}"));
        let end = if bracket { frame.end.max(at.end) } else { frame.end };
        let span = self.span(frame.start, end);
        let kind = match frame.content {
            Content::Array { base } => Kind::Array(self.elements.drain(base..).collect()),
            Content::Object { base, .. } => {
                let members = self.members.drain(base..).collect();
                Kind::Object(self.without_duplicates(members).into())
            }
        };
        if let Kind::Array(items) = &kind
            && frame.flow
        {
            self.check_unquoted(items, span);
        }
        if let Some((tag, place)) = frame.tag {
            self.check_collection_tag(&tag, place, &kind);
        }
        self.last = span;
        self.complete(Node { span, kind }, span, frame.anchor)
    }

    fn check_unquoted(&mut self, items: &[Node], span: Span) {
        let text = self.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        if !items.is_empty() && unquoted::expression_end(text) == Some(text.len()) {
            let finding = unquoted::unquoted(text, span);
            self.report(finding);
        }
    }

    fn check_collection_tag(&mut self, tag: &str, place: Span, kind: &Kind) {
        let fits = match tag {
            "seq" => matches!(kind, Kind::Array(_)),
            "map" => matches!(kind, Kind::Object(_)),
            "str" | "int" | "float" | "bool" | "null" => false,
            _ => return self.unknown_tag(tag, place),
        };
        if !fits {
            let found = if matches!(kind, Kind::Array(_)) { "a list" } else { "an object" };
            self.tag_mismatch(tag, place, found);
        }
    }

    fn unknown_tag(&mut self, tag: &str, place: Span) {
        self.report(foreign_tags::finding(tag, place));
    }

    fn tag_mismatch(&mut self, tag: &str, place: Span, found: &str) {
        let message = format!("the tag '!!{tag}' does not fit {found}");
        self.report(Diagnostic::error(&codes::TAG_MISMATCH, place, message).with_help("leave the tag out"));
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        at: Span,
        anchor: usize,
        tag: Option<&Tag>,
        span: &granit_parser::Span,
    ) -> Result<(), Stop> {
        let at = match style {
            ScalarStyle::Literal | ScalarStyle::Folded => self.block_scalar_place(at),
            _ => at,
        };
        self.last = at;
        if style == ScalarStyle::Plain {
            self.has_no_break |= characters::begins_with_no_break(text);
            if let Some(finding) = characters::between_quotes(self.slice(at), at) {
                self.report(finding);
            }
        }
        let tag = self.tag(tag, span);
        if let Some(key) = self.expected_key() {
            // The parser writes a tilde where nothing stands; as a key, nothing is the empty text.
            let text = if at.start == at.end { "" } else { text };
            *key = Some((text.into(), at));
            if anchor != 0 {
                let node = Node { span: at, kind: Kind::String(text.into()) };
                self.keep(anchor, &node, at)?;
            }
            return Ok(());
        }
        self.count(1, at)?;
        let kind = match tag {
            Some((tag, place)) => self.tagged(&tag, place, text, style, at),
            None if style == ScalarStyle::Plain => self.plain(text, at),
            None => Kind::String(text.into()),
        };
        self.complete(Node { span: at, kind }, at, anchor)
    }

    /// The parser gives the place of the content of a block scalar; ours starts at its `|` or `>` and ends behind the
    /// last character that is not a blank.
    fn block_scalar_place(&self, at: Span) -> Span {
        let (start, end) = (at.start as usize, at.end as usize);
        let from = self.last.end as usize;
        let before = self.text.get(from..start).unwrap_or_default();
        let header = before.find(['|', '>']).map_or(start, |found| from + found);
        let written = self.text.get(header..end).unwrap_or_default().trim_end();
        self.span(offset(Some(header)), offset(Some(header + written.len())))
    }

    fn expected_key(&mut self) -> Option<&mut Option<(Arc<str>, Span)>> {
        match &mut self.frames.last_mut()?.content {
            Content::Object { key, .. } if key.is_none() => Some(key),
            _ => None,
        }
    }

    fn plain(&mut self, text: &str, at: Span) -> Kind {
        match scalar::plain(text) {
            Plain::Value(kind) => return kind,
            Plain::Text => {}
            Plain::NotFinite => {
                let message = format!("'{text}' has no form in JSON, which resources are given");
                self.report(in_quotes(Diagnostic::error(&codes::NUMBER, at, message), text));
            }
            Plain::Unkept => {
                let message = format!("the integer {} does not fit into 64 bits", shown(text));
                self.report(in_quotes(Diagnostic::error(&codes::NUMBER, at, message), text));
            }
            Plain::TooLarge => {
                let message = format!("{} is larger than any number and is read as text", shown(text));
                self.report(in_quotes(Diagnostic::warning(&codes::NUMBER_AS_TEXT, at, message), text));
            }
        }
        Kind::String(text.into())
    }

    fn tagged(&mut self, tag: &str, place: Span, text: &str, style: ScalarStyle, at: Span) -> Kind {
        let kind = match tag {
            "str" | "!" => return Kind::String(text.into()),
            "null" => scalar::is_null(text).then_some(Kind::Null),
            "bool" => scalar::boolean(text).map(Kind::Bool),
            "int" => match scalar::number(text) {
                Plain::Value(Kind::Number(number)) if !number.is_f64() => Some(Kind::Number(number)),
                _ => None,
            },
            "float" => scalar::float(text).and_then(Number::from_f64).map(Kind::Number),
            "seq" | "map" => None,
            _ => {
                self.unknown_tag(tag, place);
                let plain = style == ScalarStyle::Plain && !text.is_empty();
                return if plain { self.plain(text, at) } else { Kind::String(text.into()) };
            }
        };
        kind.unwrap_or_else(|| {
            self.tag_mismatch(tag, place, &format!("'{}'", shown(text)));
            Kind::String(text.into())
        })
    }

    /// Hands a finished value to what holds it. `written` is where it stands, which for an alias is another place
    /// than that of the value.
    fn complete(&mut self, node: Node, written: Span, anchor: usize) -> Result<(), Stop> {
        if anchor != 0 {
            self.keep(anchor, &node, written)?;
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        frame.start = frame.start.min(written.start);
        frame.end = frame.end.max(written.end);
        match &mut frame.content {
            Content::Array { .. } => self.elements.push(node),
            Content::Object { key, .. } => match key.take() {
                Some((key, key_span)) => self.members.push(Entry { key, key_span, value: node }),
                None => self.complex_key(node, written),
            },
        }
        Ok(())
    }

    /// A key that came as a value: an alias, which is fine when it repeats text, or a list or an object.
    fn complex_key(&mut self, node: Node, written: Span) {
        let text: Box<str> = match node.kind {
            Kind::String(text) => text,
            Kind::Number(number) => number.to_string().into(),
            Kind::Bool(truth) => truth.to_string().into(),
            Kind::Null => "null".into(),
            _ => {
                let message = format!("a key must be a string, found {}", article(node.kind_name()));
                let help = "put the key in quotes if text is meant";
                let finding = if unquoted::is_placeholder(self.text, written) {
                    unquoted::placeholder(self.text, written)
                } else {
                    Some(Diagnostic::error(&codes::KEY, written, message).with_help(help))
                };
                if let Some(finding) = finding {
                    self.report(finding);
                }
                self.slice(written).into()
            }
        };
        if let Some(key) = self.expected_key() {
            *key = Some((text.into(), written));
        }
    }

    fn without_duplicates(&mut self, members: Vec<Entry>) -> Vec<Entry> {
        // In quotes it never was a merge key.
        let merges = |member: &&Entry| &*member.key == "<<" && self.slice(member.key_span) == "<<";
        for key_span in members.iter().filter(merges).map(|member| member.key_span).collect::<Vec<Span>>() {
            let message = "the key '<<' merges nothing, it is an ordinary key";
            let finding = Diagnostic::warning(&codes::MERGE, key_span, message);
            self.findings.push(finding.with_help("write the members out"));
        }
        if are_distinct(&members) {
            return members;
        }
        let mut places: HashMap<Arc<str>, usize> = HashMap::new();
        let mut kept: Vec<Entry> = Vec::new();
        for member in members {
            let place = places.get(&member.key).copied();
            let Some(first) = place.and_then(|place| kept.get_mut(place)) else {
                places.insert(Arc::clone(&member.key), kept.len());
                kept.push(member);
                continue;
            };
            let message = format!("the key '{}' occurs twice, the last value counts", shown(&member.key));
            let finding = Diagnostic::warning(&codes::DUPLICATE, member.key_span, message);
            let help = match (&first.value.kind, &member.value.kind) {
                (Kind::Array(_), Kind::Array(_)) => {
                    format!("put the elements of both below one '{}'", shown(&member.key))
                }
                (Kind::Object(_), Kind::Object(_)) => {
                    format!("put the members of both below one '{}'", shown(&member.key))
                }
                _ => "remove one of them".to_owned(),
            };
            self.findings.push(finding.with_label(first.key_span, "this value is ignored").with_help(help));
            *first = member;
        }
        kept
    }

    /// Keeps a marked value for the aliases of it.
    fn keep(&mut self, id: usize, node: &Node, at: Span) -> Result<(), Stop> {
        self.anchors.keep(id, node).map_err(|TooMuch| self.too_much_repeated(at))
    }

    fn too_much_repeated(&mut self, at: Span) -> Stop {
        let message = format!("aliases repeat more than {} values, which is the limit", self.limits.aliases);
        self.report(Diagnostic::error(&codes::LIMIT, at, message));
        Stop
    }

    fn alias(&mut self, id: usize, at: Span) -> Result<(), Stop> {
        self.last = at;
        let node = match self.anchors.repeat(id) {
            Repeated::Node(node, size) => {
                self.count(size.cost, at)?;
                self.check(self.frames.len() + size.depth, self.limits.depth, "levels", at)?;
                node
            }
            Repeated::TooMuch => return Err(self.too_much_repeated(at)),
            Repeated::Open => {
                let message = format!("the alias {} stands inside the value that it repeats", shown(self.slice(at)));
                self.report(Diagnostic::error(&codes::CYCLE, at, message));
                Node { span: at, kind: Kind::Null }
            }
        };
        self.complete(node, at, 0)
    }

    fn slice(&self, at: Span) -> &'t str {
        self.text.get(at.start as usize..at.end as usize).unwrap_or_default()
    }

    fn unknown_alias(&mut self, name: &str, at: Span) -> Result<(), Stop> {
        self.count(1, at)?;
        self.last = at;
        let message = format!("there is no anchor '&{}' before this alias", shown(name));
        let finding = Diagnostic::error(&codes::ALIAS, at, message);
        // What may be the name of an anchor may be meant as one.
        self.report(if name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) {
            finding.with_help("put text that starts with an asterisk in quotes, or mark the value that is meant with '&' and this name")
        } else {
            let fix = format!("'{}'", self.slice(at).replace('\'', "''"));
            finding.with_help("put text that starts with an asterisk in quotes").with_fix(at, fix)
        });
        self.complete(Node { span: at, kind: Kind::Null }, at, 0)
    }
}

fn offset(offset: Option<usize>) -> u32 {
    offset.and_then(|offset| u32::try_from(offset).ok()).unwrap_or(0)
}

/// The finding with the change that makes text of what it is about.
fn in_quotes(finding: Diagnostic, text: &str) -> Diagnostic {
    let finding = finding.with_help("put it in quotes if text is meant");
    match finding.span {
        Some(span) => finding.with_fix(span, format!("\"{text}\"")),
        None => finding,
    }
}

/// A word with its article, for messages.
fn article(word: &str) -> String {
    let vowel = word.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {word}", if vowel { "an" } else { "a" })
}

/// The start of a name as messages show it: a long one would drown them, and control characters would garble them.
pub(crate) fn shown(name: &str) -> String {
    const LONGEST: usize = 60;
    let mut out = String::new();
    for (count, c) in name.chars().enumerate() {
        match c {
            _ if count == LONGEST => return out + "…",
            c if crate::visible::is_obeyed(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}
