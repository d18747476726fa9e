//! Changes of keys that would have two keys of an object become one.

use std::collections::BTreeMap;

use crate::diag::{Diagnostic, Fix};
use crate::text::{Entry, Kind, Limits, Node, SourceId, Span, read};

/// Takes back each change of a key to one that its object has already, or that another change makes of another key: one of
/// the values would be lost. Two lists beside each other become one instead.
///
/// # Examples
/// ```
/// use stead_core::diag::Fix;
/// use stead_core::document::parse;
/// use stead_core::text::{Limits, SourceId};
///
/// let text = "resources: [{name: a, type: A/B, params: {path: a}, properties: {}}]";
/// let (_, findings) = parse(SourceId::default(), text, &Limits::default());
/// assert_eq!(findings[0].fix, None);
/// assert_eq!(findings[0].help.as_deref(), Some("'properties' would be here twice: keep one of them"));
/// ```
pub fn keep_apart(findings: &mut [Diagnostic], source: SourceId, text: &str) {
    let fixes = findings.iter().enumerate().filter_map(|(at, finding)| Some((at, finding.fix.as_ref()?)));
    // What is inserted changes no key.
    let changes = fixes.filter(|(_, fix)| fix.span.source == source && fix.span.start < fix.span.end);
    let changes: BTreeMap<u32, usize> = changes.map(|(at, fix)| (fix.span.start, at)).collect();
    if changes.is_empty() {
        return;
    }
    let (Some(root), _) = read(source, text, &Limits::default()) else { return };
    let mut open = vec![&root];
    while let Some(node) = open.pop() {
        match &node.kind {
            Kind::Array(items) => open.extend(items),
            Kind::Object(entries) => {
                let renamed: Vec<Renamed<'_>> =
                    entries.iter().map(|entry| Renamed::of(entry, &changes, findings, text)).collect();
                settle(&renamed, findings, text);
                open.extend(entries.iter().map(|entry| &entry.value));
            }
            _ => {}
        }
    }
}

/// A member of an object, and what it is called when the changes are made.
struct Renamed<'n> {
    entry: &'n Entry,
    key: String,
    /// The finding that changes its name.
    by: Option<usize>,
}

impl<'n> Renamed<'n> {
    fn of(entry: &'n Entry, by_place: &BTreeMap<u32, usize>, findings: &[Diagnostic], text: &str) -> Self {
        let place = entry.key_span;
        let mut within = by_place.range(place.start..place.end.max(place.start)).map(|(_, at)| *at);
        let changed = within.next().and_then(|at| {
            let fix = findings.get(at)?.fix.as_ref().filter(|fix| fix.span.end <= place.end)?;
            let before = text.get(place.start as usize..fix.span.start as usize)?;
            let behind = text.get(fix.span.end as usize..place.end as usize)?;
            let key = format!("{before}{}{behind}", fix.replacement);
            Some((key.trim_matches(['"', '\'']).to_owned(), at))
        });
        match changed {
            Some((key, at)) => Self { entry, key, by: Some(at) },
            None => Self { entry, key: entry.key.to_string(), by: None },
        }
    }
}

fn settle(members: &[Renamed<'_>], findings: &mut [Diagnostic], text: &str) {
    for (at, member) in members.iter().enumerate() {
        let Some(finding) = member.by.and_then(|by| findings.get_mut(by)) else { continue };
        let is_same = |other: &&Renamed<'_>| other.key == member.key && !std::ptr::eq(*other, member);
        if !members.iter().any(|other| is_same(&other)) {
            continue;
        }
        let neighbours = [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| members.get(at));
        finding.fix = neighbours.filter(is_same).find_map(|other| merged(member, other, text));
        let all_lists =
            members.iter().filter(|other| other.key == member.key).all(|each| each.entry.value.items().is_some());
        let advice = if all_lists { "make one list of them" } else { "keep one of them" };
        finding.help = Some(format!("'{}' would be here twice: {advice}", member.key));
    }
}

/// One list of two in brackets that nothing but white space stands between.
fn merged(one: &Renamed<'_>, other: &Renamed<'_>, text: &str) -> Option<Fix> {
    let is_first = one.entry.key_span.start < other.entry.key_span.start;
    let (first, second) = if is_first { (one, other) } else { (other, one) };
    let (former, latter) = (items(first.entry, text)?, items(second.entry, text)?);
    let end = |node: &Node| node.span.end as usize;
    let between = text.get(end(&first.entry.value)..second.entry.key_span.start as usize)?;
    between.chars().all(|c| c.is_whitespace() || c == ',').then_some(())?;
    let span = Span { end: second.entry.value.span.end, ..first.entry.key_span };
    let written = text.get(first.entry.key_span.start as usize..first.entry.key_span.end as usize)?;
    let quote = if written.starts_with('"') { "\"" } else { "" };
    let all: Vec<&str> = [former, latter].into_iter().filter(|items| !items.is_empty()).collect();
    Some(Fix { span, replacement: format!("{quote}{}{quote}: [{}]", one.key, all.join(", ")) })
}

/// Returns what stands between the brackets of a list on one line, which has no anchor.
fn items<'t>(entry: &Entry, text: &'t str) -> Option<&'t str> {
    let node = &entry.value;
    node.items()?;
    let colon = text.get(entry.key_span.end as usize..node.span.start as usize)?;
    (colon.trim() == ":").then_some(())?;
    let written = text.get(node.span.start as usize..node.span.end as usize)?;
    let inner = written.strip_prefix('[')?.strip_suffix(']')?;
    (!inner.contains('\n')).then(|| inner.trim().trim_end_matches(','))
}
