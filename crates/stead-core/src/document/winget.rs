//! Configurations of `WinGet` in the schema that came before documents of DSC v3, written as documents.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::diag::any_error;
use crate::id::TypeName;
use crate::text::{Entry, Kind, Limits, Node, Span, read};

/// The type of the group that an assertion becomes.
const ASSERTION: &str = "Microsoft.DSC/Assertion";
/// How much deeper an assertion stands in its group.
const DEPTH: usize = 4;

/// Returns where a configuration of schema 0.2 stands, from its key `properties` on, and the document that it is: comments, layout
/// and order stay as they are. `None` where its parts are neither below each other, each on lines of its own, nor all in brackets,
/// or where one of them says what this does not know.
pub(super) fn correction(text: &str, key: Span, properties: &Node) -> Option<(Span, String)> {
    let lines = Lines(text);
    let members = properties.entries()?;
    let is_known = |member: &Entry| matches!(&*member.key, "resources" | "assertions" | "configurationVersion");
    if !members.iter().all(is_known) {
        return None;
    }
    let mut rewriting = Rewriting { lines, units: units(text, members)?, ..Rewriting::default() };
    let region = if lines.is_flow(properties) {
        rewriting.unwrap(key, properties)?;
        key.start as usize..lines.end_of(properties)
    } else {
        let outer = lines.indentation(key.start)?;
        let inner = lines.indentation(members.first()?.key_span.start).filter(|inner| *inner > outer)?;
        let are_aligned = members.iter().all(|member| lines.indentation(member.key_span.start) == Some(inner));
        rewriting.outdent = are_aligned.then_some(inner - outer)?;
        rewriting.erase(key.start as usize..rewriting.behind_colon(key)?);
        rewriting.lists(members)?;
        lines.start(key.start as usize)..lines.end_of(properties)
    };
    let new = rewriting.applied(&region)?;
    let whole = format!("{}{new}{}", text.get(..region.start)?, text.get(region.end..)?);
    let (root, findings) = read(key.source, &whole, &Limits::default());
    let is_document = !any_error(&findings) && root.is_some_and(|root| root.get("resources").is_some());
    let place = Span { start: u32::try_from(region.start).ok()?, end: u32::try_from(region.end).ok()?, ..key };
    is_document.then_some((place, new))
}

/// A resource of a configuration, and what it is as an instance.
#[derive(Clone, Debug)]
struct Unit {
    type_name: String,
    name: String,
    /// The name is written here, as `id`.
    is_named: bool,
    is_assertion: bool,
}

/// The resources and assertions, in order. One without an id is named by its type.
fn units(text: &str, members: &[Entry]) -> Option<Vec<Unit>> {
    let mut units = Vec::new();
    for list in members {
        for item in list.value.items().unwrap_or_default() {
            let resource = item.get("resource")?.as_str()?;
            let module = item.get("directives").and_then(|directives| directives.get("module")).and_then(Node::as_str);
            let type_name = match module {
                Some(module) if !resource.contains('/') => format!("{module}/{resource}"),
                _ => resource.to_owned(),
            };
            let id = item.get("id").and_then(|id| text.get(id.span.start as usize..id.span.end as usize));
            let name = id.map(|id| id.trim_matches(['"', '\'']).to_owned());
            let (is_named, is_assertion) = (name.is_some(), &*list.key == "assertions");
            units.push(Unit { type_name, name: name.unwrap_or_default(), is_named, is_assertion });
        }
    }
    let mut taken: BTreeSet<String> = units.iter().map(|unit| unit.name.clone()).collect();
    for unit in units.iter_mut().filter(|unit| !unit.is_named) {
        let short =
            TypeName::parse(&unit.type_name).map_or_else(|_| unit.type_name.clone(), |name| name.short().into());
        let mut names = std::iter::once(short.clone()).chain((2..).map(|number| format!("{short} {number}")));
        unit.name = names.find(|name| !taken.contains(name))?;
        taken.insert(unit.name.clone());
    }
    Some(units)
}

/// The lines of a text.
#[derive(Clone, Copy, Debug, Default)]
struct Lines<'t>(&'t str);

impl<'t> Lines<'t> {
    /// The start of the line that a place is in.
    fn start(self, at: usize) -> usize {
        self.0.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |found| found + 1)
    }

    /// The end of that line, in front of its break.
    fn end(self, at: usize) -> usize {
        self.0.get(at..).and_then(|behind| behind.find('\n')).map_or(self.0.len(), |found| at + found)
    }

    /// Returns the end of its lines.
    fn line_break(self) -> &'static str {
        if self.0.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// Returns how far the first thing on a line is indented; `None` where something else stands in front of it.
    fn indentation(self, at: u32) -> Option<usize> {
        let before = self.0.get(self.start(at as usize)..at as usize)?;
        before.bytes().all(|byte| byte == b' ').then_some(before.len())
    }

    /// Returns where a value ends, without the white space behind it.
    fn end_of(self, node: &Node) -> usize {
        self.0.get(..node.span.end as usize).map_or(0, |text| text.trim_end().len())
    }

    /// The starts of the lines of a part of the text.
    fn starts(self, of: Range<usize>) -> impl Iterator<Item = usize> + 't {
        let text = self.0.get(of.clone()).unwrap_or_default();
        std::iter::once(of.start).chain(text.match_indices('\n').map(move |(at, _)| of.start + at + 1))
    }

    /// The dash of an element, where it is the first thing on its line.
    fn dash(self, item: &Node) -> Option<usize> {
        let before = self.0.get(..item.span.start as usize)?.trim_end();
        let dash = before.len().checked_sub(1).filter(|_| before.ends_with('-'))?;
        self.indentation(u32::try_from(dash).ok()?).map(|_| dash)
    }

    /// Returns whether a value is written in brackets.
    fn is_flow(self, node: &Node) -> bool {
        self.0.get(node.span.start as usize..).is_some_and(|text| text.starts_with(['{', '[']))
    }
}

/// The changes that make a document of a configuration.
#[derive(Debug, Default)]
struct Rewriting<'t> {
    lines: Lines<'t>,
    units: Vec<Unit>,
    /// By how much every line moves to the left.
    outdent: usize,
    /// By how much lines move to the right besides, by where they start.
    indented: BTreeMap<usize, usize>,
    /// Where the lines start that are no longer there.
    erased: BTreeSet<usize>,
    edits: Vec<(Range<usize>, String)>,
}

impl Rewriting<'_> {
    /// Takes the brackets away from a configuration that is in brackets as a whole, and its version with them.
    fn unwrap(&mut self, key: Span, properties: &Node) -> Option<()> {
        let end = self.lines.end_of(properties);
        self.edits.push((key.start as usize..properties.span.start as usize + 1, String::new()));
        self.edits.push((end.checked_sub(1)?..end, String::new()));
        let members = properties.entries()?;
        let resources = members.iter().find(|member| &*member.key == "resources")?;
        for member in members.iter().filter(|member| !std::ptr::eq(*member, resources)) {
            (&*member.key == "configurationVersion").then(|| self.remove(members, &[member], true))?;
        }
        let mut units = self.units.clone().into_iter();
        resources.value.items()?.iter().try_for_each(|item| self.unit(item, &units.next()?))
    }

    /// Makes one list of the resources and the assertions, whichever comes first.
    fn lists(&mut self, members: &[Entry]) -> Option<()> {
        let mut units = self.units.clone().into_iter();
        let (mut first, mut column) = (true, None);
        for member in members {
            let items = match &member.value.kind {
                Kind::Array(items) if !items.is_empty() => items,
                _ => {
                    self.erase(member.key_span.start as usize..self.lines.end_of(&member.value));
                    continue;
                }
            };
            if std::mem::take(&mut first) {
                self.rename(member, "resources")?;
            } else {
                self.erase(member.key_span.start as usize..self.behind_colon(member.key_span)?);
            }
            for item in items {
                let unit = units.next()?;
                if let Some(dash) = self.lines.dash(item) {
                    let found = dash - self.lines.start(dash);
                    // Two lists become one only where their dashes are below each other.
                    (*column.get_or_insert(found) == found).then_some(())?;
                }
                self.unit(item, &unit)?;
            }
        }
        let is_one_list = members.iter().filter(|member| member.value.items().is_some_and(|items| !items.is_empty()));
        (is_one_list.count() < 2 || column.is_some()).then_some(())
    }

    fn unit(&mut self, item: &Node, unit: &Unit) -> Option<()> {
        if unit.is_assertion {
            self.group(item, unit)?;
        }
        let is_flow = self.lines.is_flow(item);
        for member in item.entries()? {
            match &*member.key {
                "resource" => {
                    if !unit.is_named {
                        self.insert(member, is_flow, ("name", &unit.name))?;
                    }
                    self.rename(member, "type")?;
                    if member.value.as_str() != Some(&unit.type_name) {
                        let is_quoted = self.starts_with_quote(member.value.span);
                        let quote = if is_quoted { "\"" } else { "" };
                        self.replace(member.value.span, format!("{quote}{}{quote}", unit.type_name));
                    }
                }
                "id" => {
                    self.literals(&member.value)?;
                    self.rename(member, "name")?;
                }
                "settings" => {
                    self.literals(&member.value)?;
                    self.rename(member, "properties")?;
                }
                "dependsOn" if !unit.is_assertion => self.depends_on(&member.value),
                "directives" => self.directives(member, is_flow)?,
                "dependsOn" | "metadata" | "name" | "type" | "properties" => return None,
                _ => {}
            }
        }
        Some(())
    }

    /// Puts an assertion into a group of its own, for what depends on it to find it beside itself.
    fn group(&mut self, item: &Node, unit: &Unit) -> Option<()> {
        let dash = self.lines.dash(item)?;
        let start = self.lines.start(dash);
        let margin = " ".repeat((dash - start).checked_sub(self.outdent)?);
        let is_plain = unit.name.chars().all(|c| c.is_alphanumeric() || "_-. ".contains(c));
        let name = is_plain.then_some(&unit.name)?;
        let head = [
            format!("{margin}- name: {name}"),
            format!("{margin}  type: {ASSERTION}"),
            format!("{margin}  properties:"),
            format!("{margin}    resources:"),
            String::new(),
        ];
        let head = head.join(self.lines.line_break());
        self.edits.push((start..start, head));
        self.indented.extend(self.lines.starts(start..self.lines.end_of(item)).map(|line| (line, DEPTH)));
        Some(())
    }

    /// Keeps every text as it is: a configuration computes none, and in a document one that begins with a bracket is computed.
    fn literals(&mut self, value: &Node) -> Option<()> {
        match &value.kind {
            Kind::Array(items) => items.iter().try_for_each(|item| self.literals(item)),
            Kind::Object(members) => members.iter().try_for_each(|member| self.literals(&member.value)),
            Kind::String(text) if text.starts_with('[') => {
                let written = self.lines.0.get(value.span.start as usize..value.span.end as usize)?;
                let is_margin = |c: char| c.is_whitespace() || c.is_ascii_digit() || "\"'|>+-".contains(c);
                let bracket = written
                    .find('[')
                    .filter(|at| written.get(..*at).is_some_and(|before| before.chars().all(is_margin)))?;
                let at = value.span.start as usize + bracket;
                // What an alias repeats is written once.
                let edit = (at..at, "[".to_owned());
                if !self.edits.contains(&edit) {
                    self.edits.push(edit);
                }
                Some(())
            }
            _ => Some(()),
        }
    }

    /// Names as instances what the configuration names by id.
    fn depends_on(&mut self, value: &Node) {
        let single = std::slice::from_ref(value);
        let (ids, is_list) = value.items().map_or((single, false), |items| (items, true));
        for id in ids {
            let Some(meant) = id.as_str().and_then(|id| self.id_of(id)) else { continue };
            let quoted = format!("\"{meant}\"");
            self.replace(id.span, if is_list { quoted } else { format!("[{quoted}]") });
        }
    }

    fn id_of(&self, id: &str) -> Option<String> {
        let mut named = self.units.iter().filter(|unit| unit.is_named && unit.name.eq_ignore_ascii_case(id));
        let (unit, None) = (named.next()?, named.next()) else { return None };
        let type_name = if unit.is_assertion { ASSERTION } else { &unit.type_name };
        let is_plain = !unit.name.contains(['"', '\\']);
        is_plain.then(|| format!("[resourceId('{type_name}', '{}')]", unit.name.replace('\'', "''")))
    }

    /// The directives of a configuration are notes about an instance, but for the rights and the version that it needs.
    fn directives(&mut self, member: &Entry, is_flow: bool) -> Option<()> {
        let Some(members) = member.value.entries() else { return Some(()) };
        let find = |key: &str| members.iter().find(|each| &*each.key == key);
        let (version, context) = (find("version"), find("securityContext"));
        let notes = members.len() - usize::from(version.is_some()) - usize::from(context.is_some());
        let requirement = match version {
            Some(version) => Some(self.requirement(version)?),
            None => None,
        };
        let is_here = |each: &&Entry| (member.value.span.start..member.value.span.end).contains(&each.key_span.start);
        version.iter().chain(&context).all(is_here).then_some(())?;
        let mut moved = Vec::new();
        match (&requirement, version) {
            (Some(requirement), Some(_)) if members.len() == 1 => {
                let end = u32::try_from(self.lines.end_of(&member.value)).ok()?;
                self.replace(Span { end, ..member.value.span }, format!("\"{requirement}\""));
                return self.rename(member, "requireVersion");
            }
            (Some(requirement), Some(version)) => {
                self.insert(member, is_flow, ("requireVersion", requirement))?;
                moved.push(version);
            }
            _ => {}
        }
        if let Some(context) = context.filter(|_| notes > 0) {
            let word = context.value.as_str()?;
            self.insert(member, is_flow, ("directives", &format!("{{\"securityContext\": \"{word}\"}}")))?;
            moved.push(context);
        }
        self.remove(members, &moved, self.lines.is_flow(&member.value));
        if notes > 0 { self.rename(member, "metadata") } else { Some(()) }
    }

    /// The requirement that only one version satisfies.
    fn requirement(&self, version: &Entry) -> Option<String> {
        let written = self.lines.0.get(version.value.span.start as usize..self.lines.end_of(&version.value))?;
        let version = written.trim_matches(['"', '\'']);
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_version = version.split('.').count() <= 3 && version.split('.').all(is_number);
        is_version.then(|| format!("={version}"))
    }

    /// Removes some members, of which others stay.
    fn remove(&mut self, members: &[Entry], gone: &[&Entry], is_flow: bool) {
        let is_gone = |member: &Entry| gone.iter().any(|each| std::ptr::eq(*each, member));
        for (at, member) in members.iter().enumerate().filter(|(_, member)| is_gone(member)) {
            let (from, to) = (member.key_span.start as usize, self.lines.end_of(&member.value));
            let mut behind = members.iter().skip(at + 1).peekable();
            let next = behind.peek().map(|next| next.key_span.start as usize);
            let before = at.checked_sub(1).and_then(|at| members.get(at));
            match (is_flow, next, before) {
                (true, Some(next), _) if !behind.all(is_gone) => self.edits.push((from..next, String::new())),
                (true, _, Some(before)) => self.edits.push((self.lines.end_of(&before.value)..to, String::new())),
                _ => self.erase(from..to),
            }
        }
    }

    /// Writes a member in front of another.
    fn insert(&mut self, member: &Entry, is_flow: bool, (key, value): (&str, &str)) -> Option<()> {
        let at = member.key_span.start as usize;
        let line = self.lines.start(at);
        let indented = self.indented.get(&line).copied().unwrap_or_default();
        let column = (at - line + indented).checked_sub(self.outdent)?;
        let line_break = self.lines.line_break();
        let between = if is_flow { ", ".to_owned() } else { format!("{line_break}{}", " ".repeat(column)) };
        let new = match (self.starts_with_quote(member.key_span), value.starts_with('{')) {
            (true, true) => format!("\"{key}\": {value}"),
            (true, false) => format!("\"{key}\": \"{value}\""),
            (false, _) => format!("{key}: {}", value.replace('"', "")),
        };
        self.edits.push((at..at, format!("{new}{between}")));
        Some(())
    }

    /// Gives a key another name, if it is written where it is said to be: that of an alias is elsewhere.
    fn rename(&mut self, member: &Entry, new: &str) -> Option<()> {
        let written = self.lines.0.get(member.key_span.start as usize..member.key_span.end as usize)?;
        (written.trim_matches(['"', '\'']) == &*member.key).then_some(())?;
        let new = if self.starts_with_quote(member.key_span) { format!("\"{new}\"") } else { new.to_owned() };
        self.replace(member.key_span, new);
        Some(())
    }

    fn starts_with_quote(&self, span: Span) -> bool {
        self.lines.0.get(span.start as usize..).is_some_and(|text| text.starts_with('"'))
    }

    fn replace(&mut self, span: Span, new: String) {
        self.edits.push((span.start as usize..span.end as usize, new));
    }

    fn behind_colon(&self, key: Span) -> Option<usize> {
        let end = key.end as usize;
        Some(end + self.lines.0.get(end..)?.find(':')? + 1)
    }

    /// Erases a part of the text, and the lines on which nothing else stands.
    fn erase(&mut self, part: Range<usize>) {
        let whole = self.lines.start(part.start)..self.lines.end(part.end);
        let is_blank = |range: Range<usize>| self.lines.0.get(range).is_some_and(|text| text.trim().is_empty());
        if is_blank(whole.start..part.start) && is_blank(part.end..whole.end) {
            self.erased.extend(self.lines.starts(part.clone()).map(|at| self.lines.start(at)));
            self.edits.push((whole.start..(whole.end + 1).min(self.lines.0.len()), String::new()));
        } else {
            // A comment behind it stays, where it stood.
            let behind = self.lines.0.get(part.end..).unwrap_or_default();
            let blank = behind.len() - behind.trim_start_matches(' ').len();
            self.edits.push((part.start..part.end + blank, String::new()));
        }
    }

    /// The region with all changes made, and every line moved to where it belongs. `None` where one of them belongs elsewhere, as to
    /// the text that an alias stands for.
    fn applied(mut self, region: &Range<usize>) -> Option<String> {
        let is_here = |(part, _): &(Range<usize>, String)| (region.start..=region.end).contains(&part.start);
        self.edits.iter().all(is_here).then_some(())?;
        let starts: Vec<usize> = self.lines.starts(region.clone()).skip(1).collect();
        for start in starts.into_iter().filter(|start| !self.erased.contains(start)) {
            let line = self.lines.0.get(start..self.lines.end(start))?;
            let found = line.len() - line.trim_start_matches(' ').len();
            let deeper = self.indented.get(&start).copied().unwrap_or_default();
            let margin = found.saturating_sub(self.outdent) + if line.trim().is_empty() { 0 } else { deeper };
            self.edits.push((start..start + found, " ".repeat(margin)));
        }
        self.edits.sort_by_key(|(part, _)| (part.start, part.end));
        // What aliases stand for is changed once.
        self.edits.dedup();
        let (mut new, mut at) = (String::new(), region.start);
        for (part, replacement) in &self.edits {
            // The margin of a line that is gone.
            if part.start < at {
                continue;
            }
            new.push_str(self.lines.0.get(at..part.start)?);
            new.push_str(replacement);
            at = part.end;
        }
        new.push_str(self.lines.0.get(at.min(region.end)..region.end)?);
        // Of a last line that is erased, the break in front of it goes and the one behind it stays.
        let is_gone = self.lines.0.get(region.end..at).is_some_and(|behind| behind.contains('\n'));
        Some(if is_gone { new.trim_end().to_owned() } else { new })
    }
}
