//! The parts of an inventory that messages may show: passwords stand in inventories.

use std::collections::BTreeSet;
use std::ops::Range;

use stead_core::diag::Diagnostic;
use stead_core::text::{self, Kind, Limits, Node, SourceId, Sources, Span};

use crate::ansible;
use crate::name::{Address, MachineName};

/// Of so many lines, and of lines so long, the text is shown.
const MOST_LINES: usize = 200;
const LONGEST: usize = 4 << 10;

/// The role of a value, by the keys above it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The inventory itself.
    Inventory,
    /// All machines.
    Machines,
    /// One machine, or a layer.
    Machine,
    /// A value that a message may show.
    Shown,
    /// One that may be a secret.
    Secret,
}

/// The stretches of the lines with findings that messages do not show: all but keys, names, addresses, labels and filters. `None`
/// where that is not known, and nothing of the text is to be shown.
pub fn hidden(source: SourceId, sources: &Sources, findings: &[Diagnostic]) -> Option<Vec<Span>> {
    let found = sources.get(source)?;
    let spans = findings.iter().filter_map(|finding| finding.span).filter(|span| span.source == source);
    let lines: BTreeSet<(usize, usize)> = spans.map(|span| line_at(&found.text, span.start as usize)).collect();
    let is_too_much = lines.len() > MOST_LINES || lines.iter().any(|(start, end)| end - start > LONGEST);
    if is_too_much || ansible::is_ini(&found.name, &found.text) {
        return None;
    }
    let (root, _) = text::read(source, &found.text, &Limits::default());
    let mut shown = Vec::new();
    collect(&root?, Part::Inventory, &mut shown);
    shown.sort_unstable_by_key(|range| range.start);
    let ranges = lines.into_iter().flat_map(|(start, end)| uncovered(&found.text, start..end, &shown));
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Some(ranges.map(|range| Span::new(source, number(range.start), number(range.end))).collect())
}

/// The line in which a byte is, without its end.
fn line_at(text: &str, at: usize) -> (usize, usize) {
    let at = text.floor_char_boundary(at);
    let start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |found| found + 1);
    let end = text.get(at..).and_then(|behind| behind.find('\n')).map_or(text.len(), |found| at + found);
    (start, end)
}

/// Notes the places of what may be shown.
fn collect(node: &Node, part: Part, shown: &mut Vec<Range<usize>>) {
    let range = |span: Span| span.start as usize..span.end as usize;
    match &node.kind {
        Kind::Object(entries) => {
            for entry in entries {
                shown.push(range(entry.key_span));
                let is_object = entry.value.entries().is_some();
                let inner = inner(part, &entry.key);
                // At the top only what has members may be a machine.
                let inner =
                    if part == Part::Inventory && inner == Part::Machine && !is_object { Part::Secret } else { inner };
                collect(&entry.value, inner, shown);
            }
        }
        Kind::Array(items) => items.iter().for_each(|item| {
            let is_of_machines = matches!(part, Part::Inventory | Part::Machines);
            let name = item.as_str().filter(|name| is_of_machines && MachineName::parse(name).is_ok());
            shown.extend(name.map(|_| range(item.span)));
            let inner = match part {
                Part::Inventory | Part::Machines => Part::Machine,
                // A label is not a secret, also where there are several in a list.
                Part::Shown => Part::Shown,
                Part::Machine | Part::Secret => Part::Secret,
            };
            collect(item, inner, shown);
        }),
        _ if part == Part::Shown || part == Part::Machine && is_address(node) => shown.push(range(node.span)),
        _ => {}
    }
}

/// The part that a member is.
fn inner(part: Part, key: &str) -> Part {
    match (part, key) {
        (Part::Inventory, "parameters" | "vars") | (Part::Machines, "parameters") => Part::Secret,
        (Part::Inventory, "machines" | "layers") => Part::Machines,
        (Part::Inventory, "user" | "port")
        | (Part::Machines, "where")
        | (Part::Machine, "labels" | "user" | "port" | "name" | "host" | "where")
        | (Part::Shown, _) => Part::Shown,
        (Part::Inventory | Part::Machines, _) | (Part::Machine, "address" | "ip" | "ansible_host") => Part::Machine,
        _ => Part::Secret,
    }
}

/// Returns whether a value is an address, and not a word that may be a password.
fn is_address(node: &Node) -> bool {
    node.as_str().is_some_and(|text| text.contains(['.', ':']) && Address::parse(text).is_ok())
}

/// The stretches of a line that are neither shown nor signs of the form: values, and comments.
fn uncovered(text: &str, line: Range<usize>, shown: &[Range<usize>]) -> Vec<Range<usize>> {
    let is_sign = |character: char| character.is_whitespace() || "-:{}[],\"'".contains(character);
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut comment = false;
    for (at, character) in text.get(line.clone()).unwrap_or_default().char_indices() {
        let at = line.start + at;
        let before = shown.partition_point(|range| range.start <= at);
        let is_shown = before.checked_sub(1).and_then(|last| shown.get(last)).is_some_and(|range| range.contains(&at));
        comment |= character == '#' && !is_shown;
        if is_shown || is_sign(character) && !comment {
            continue;
        }
        let end = at + character.len_utf8();
        match found.last_mut() {
            Some(last) if last.end == at => last.end = end,
            _ => found.push(at..end),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use stead_core::text::Source;

    use super::*;
    use crate::read;

    /// The lines with findings as messages show them.
    fn shown(text: &str) -> Option<String> {
        let mut sources = Sources::default();
        let source = sources.add(Source::new("hosts.yaml", text));
        let (_, findings) = read(source, &sources);
        let mut bytes = text.as_bytes().to_vec();
        for span in hidden(source, &sources, &findings)? {
            bytes.get_mut(span.start as usize..span.end as usize)?.fill(b'*');
        }
        String::from_utf8(bytes).ok()
    }

    #[test]
    fn keys_names_and_addresses_are_shown() {
        let text = "machines:\n  web1: {ip: 192.0.2.11, labels: {role: web}, rol: x, user: kim}\n";
        let expected = "machines:\n  web1: {ip: 192.0.2.11, labels: {role: web}, rol: *, user: kim}\n";
        assert_eq!(shown(text).as_deref(), Some(expected));
        for labels in ["[web]", "{tier: [a, b]}", "[{role: web}]"] {
            let text = format!("machines:\n  web1: {{labels: {labels}}}\n");
            assert_eq!(shown(&text), Some(text));
        }
    }

    #[test]
    fn secrets_are_not() {
        let secrets = [
            "machines:\n  web1: {parametrs: {password: hunter2}, port: no}\n",
            "machines:\n  web1: {password: hunter2, x: 1} # hunter2: hunter2\n",
            "machines:\n  web1: {layers: {a: [hunter2]}, x: 1}\n",
            "machines:\n  web1: {address: \"deploy:hunter2@10.0.0.1\"}\n",
            "machines:\n- {name: web1, password: hunter2}\n",
            "web1: {password: hunter2}\nweb2: hunter2\n",
            "machines: {web1: {x: &a hunter2, y: !t hunter2}}\n",
        ];
        for text in secrets {
            let line_of_findings = shown(text).unwrap_or_default();
            let first = line_of_findings.lines().find(|line| line.contains('*'));
            assert!(first.is_some_and(|line| !line.contains("hunter2")), "{text}\n{line_of_findings}");
        }
    }
}
