//! Inventories of Ansible in its own kind of INI.

use stead_core::text::{SourceId, Span};
use stead_core::value::Value;

use crate::finding::Findings;
use crate::inventory::{Inventory, MOST_MACHINES};

use super::groups::{ALL, Groups, Variable};

/// Returns whether a text is in this form: its name says so, or its first line is a section or begins with a name that
/// neither YAML nor JSON would have there.
pub(crate) fn is_ini(name: &str, text: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    if matches!(extension, Some("yaml" | "yml" | "json")) {
        return false;
    }
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with(['#', ';']);
    let first = text.lines().map(str::trim).find(is_text).unwrap_or_default();
    let is_section = first.starts_with('[') && first.ends_with(']') && !first.contains(['"', ',']);
    let word = first.split_whitespace().next().unwrap_or_default();
    let is_machine = !word.is_empty() && !word.ends_with(':') && !word.starts_with(['{', '"', '\'', '-', '%', '[']);
    extension == Some("ini") || is_section || is_machine
}

/// What the lines of a section are.
enum Section {
    Machines(String),
    Children(String),
    Variables(String),
    /// It was refused.
    Unknown,
}

/// Reads machines, groups and variables.
pub(crate) fn of_ini(source: SourceId, text: &str, findings: &mut Findings) -> Inventory {
    let mut groups = Groups::default();
    let mut section = Section::Machines("ungrouped".to_owned());
    let mut start = 0;
    for whole in text.split_inclusive('\n') {
        let line = Line { source, start, text: whole.trim_end() };
        start += whole.len();
        let content = line.text.trim_start();
        if content.is_empty() || content.starts_with(['#', ';']) {
            continue;
        }
        if content.starts_with('[') && content.contains(']') && !content.contains('=') && begins_section(content) {
            section = line.section(findings);
            if let Section::Machines(name) | Section::Children(name) | Section::Variables(name) = &section {
                groups.group(name);
            }
            continue;
        }
        match &section {
            Section::Machines(group) => line.machine(group, &mut groups, findings),
            Section::Children(group) => {
                let name = without_comment(content).to_owned();
                groups.group(&name);
                groups.group(group).children.insert(name, line.span());
            }
            Section::Variables(group) => line.variable(group, &mut groups, findings),
            Section::Unknown => {}
        }
    }
    groups.inventory(findings)
}

/// Returns whether a line that begins with a bracket is a section, not a pattern of names such as `[a:c]web`.
fn begins_section(content: &str) -> bool {
    content.split_once(']').is_some_and(|(_, rest)| rest.trim_start().is_empty() || rest.trim_start().starts_with('#'))
}

fn without_comment(text: &str) -> &str {
    text.split(" #").next().unwrap_or_default().trim()
}

struct Line<'a> {
    source: SourceId,
    /// Where it begins in the text.
    start: usize,
    text: &'a str,
}

impl Line<'_> {
    fn span(&self) -> Span {
        let start = self.start + self.text.len() - self.text.trim_start().len();
        self.part(start - self.start, self.text.len())
    }

    fn part(&self, from: usize, to: usize) -> Span {
        let byte = |at: usize| u32::try_from(self.start + at).unwrap_or(u32::MAX);
        Span::new(self.source, byte(from), byte(to))
    }

    fn section(&self, findings: &mut Findings) -> Section {
        let inner = self.text.trim_start().trim_start_matches('[');
        let inner = inner.split_once(']').map_or(inner, |(inner, _)| inner).trim();
        match inner.split_once(':') {
            None => Section::Machines(inner.to_owned()),
            Some((group, "children")) => Section::Children(group.to_owned()),
            Some((group, "vars")) => Section::Variables(group.to_owned()),
            Some((_, other)) => {
                let message = format!("there are no sections '{}'", other.escape_debug());
                findings.wrong(self.span(), message, "write [GROUP], [GROUP:children] or [GROUP:vars]");
                Section::Unknown
            }
        }
    }

    fn machine(&self, group: &str, groups: &mut Groups, findings: &mut Findings) {
        let words = match words(self.text) {
            Ok(words) => words,
            Err(at) => {
                let span = self.part(at, self.text.len());
                return findings.wrong(span, "the quote is not closed", "add it behind the value");
            }
        };
        let Some((first, rest)) = words.split_first() else { return };
        let first_span = self.part(first.from, first.to);
        let (pattern, port) = with_port(&first.text);
        let mut variables: Vec<(String, Value, Span)> = Vec::new();
        variables.extend(port.map(|port| ("ansible_port".to_owned(), value(port), first_span)));
        for word in rest {
            let span = self.part(word.from, word.to);
            match word.text.split_once('=') {
                Some((name, text)) => variables.push((name.to_owned(), value(text), span)),
                None => findings.wrong(span, "expected a variable", "write NAME=VALUE behind the name of a machine"),
            }
        }
        for name in expanded(pattern, first_span, findings) {
            groups.add(group, &name, first_span);
            let own = variables.iter().map(|(name, value, span)| Variable {
                name: name.clone(),
                value: value.clone(),
                span: *span,
            });
            groups.set(&name, first_span, own.collect::<Vec<_>>());
        }
        if group == ALL {
            groups.group(ALL);
        }
    }

    fn variable(&self, group: &str, groups: &mut Groups, findings: &mut Findings) {
        match self.text.split_once('=') {
            Some((name, text)) => {
                let (name, value) = (name.trim().to_owned(), value(without_comment(text).trim_matches(['"', '\''])));
                groups.group(group).variables.push(Variable { name, value, span: self.span() });
            }
            None => findings.wrong(self.span(), "expected a variable", "write NAME=VALUE"),
        }
    }
}

/// A pattern of names, and the port behind it. The colon of a range is none, nor are those of an address.
fn with_port(text: &str) -> (&str, Option<&str>) {
    let behind_ranges = text.rfind(']').map_or(0, |end| end + 1);
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match text.get(behind_ranges..).and_then(|rest| rest.split_once(':')) {
        Some((_, port)) if is_port(port) => (text.get(..text.len() - port.len() - 1).unwrap_or_default(), Some(port)),
        _ => (text, None),
    }
}

/// A word of a line without its quotes, and where it stands.
struct Word {
    text: String,
    from: usize,
    to: usize,
}

/// The words of a line up to a comment; where a quote is not closed, its place.
fn words(line: &str) -> Result<Vec<Word>, usize> {
    let mut words: Vec<Word> = Vec::new();
    let mut current: Option<Word> = None;
    let mut quote: Option<(char, usize)> = None;
    for (at, character) in line.char_indices() {
        match quote {
            Some((open, _)) if open == character => quote = None,
            None if character == '#' && current.is_none() => break,
            None if character.is_whitespace() => words.extend(current.take()),
            within => {
                let word = current.get_or_insert_with(|| Word { text: String::new(), from: at, to: at });
                if within.is_none() && matches!(character, '"' | '\'') {
                    quote = Some((character, at));
                } else {
                    word.text.push(character);
                }
            }
        }
        if let Some(word) = &mut current {
            word.to = at + character.len_utf8();
        }
    }
    words.extend(current);
    quote.map_or(Ok(words), |(_, at)| Err(at))
}

/// A value as Ansible reads it: a number, a boolean of Python, JSON, or else text.
fn value(text: &str) -> Value {
    match text {
        "True" | "true" => Value::Bool(true),
        "False" | "false" => Value::Bool(false),
        "None" => Value::Null,
        // With a leading zero it is the text of a mode, or a serial number.
        text if text.len() > 1 && text.starts_with('0') && !text.starts_with("0.") => Value::from(text),
        text => serde_json::from_str::<serde_json::Value>(text).map_or_else(|_| Value::from(text), Value::from),
    }
}

/// The names that a pattern such as `web[01:50].example.org` or `db-[a:c]` stands for.
pub(super) fn expanded(pattern: &str, span: Span, findings: &mut Findings) -> Vec<String> {
    if parts(pattern).is_none() {
        return vec![pattern.to_owned()];
    }
    if pattern.len() > LONGEST_PATTERN || pattern.matches('[').count() > MOST_RANGES {
        let message = format!("a pattern has at most {MOST_RANGES} ranges and {LONGEST_PATTERN} characters");
        findings.wrong(span, message, "write several patterns");
        return Vec::new();
    }
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some((head, range, tail)) = parts(rest) {
        let Some(parts) = range_of(range) else {
            let message = format!("'[{}]' is not a range", range.escape_debug());
            findings.wrong(span, message, "write [01:50], [a:f] or [0:50:2]");
            return Vec::new();
        };
        let longer = names.iter().flat_map(|name| parts.iter().map(move |part| format!("{name}{head}{part}")));
        names = longer.take(MOST_MACHINES + 1).collect();
        rest = tail;
    }
    for name in &mut names {
        name.push_str(rest);
    }
    names
}

/// The most ranges of a pattern.
const MOST_RANGES: usize = 8;

/// The longest pattern: no name is as long.
const LONGEST_PATTERN: usize = 1000;

/// The most digits of a bound.
const MOST_DIGITS: usize = 10;

fn parts(pattern: &str) -> Option<(&str, &str, &str)> {
    let (head, rest) = pattern.split_once('[')?;
    let (range, tail) = rest.split_once(']')?;
    Some((head, range, tail))
}

fn range_of(range: &str) -> Option<Vec<String>> {
    let mut bounds = range.split(':');
    let (from, to) = (bounds.next()?, bounds.next()?);
    let step = bounds.next().map_or(Some(1), |step| step.parse::<usize>().ok().filter(|step| *step > 0))?;
    if bounds.next().is_some() || from.len().max(to.len()) > MOST_DIGITS {
        return None;
    }
    if let (Ok(first), Ok(last)) = (from.parse::<u32>(), to.parse::<u32>()) {
        let width = if from.starts_with('0') { from.len() } else { 0 };
        let numbers = (first..=last).step_by(step).take(MOST_MACHINES + 1);
        return Some(numbers.map(|number| format!("{number:0width$}")).collect()).filter(|_| first <= last);
    }
    let letter = |text: &str| text.chars().next().filter(|c| text.len() == 1 && c.is_ascii_alphabetic());
    let (first, last) = (letter(from)?, letter(to)?);
    Some((first..=last).step_by(step).map(String::from).collect()).filter(|_| first <= last)
}
