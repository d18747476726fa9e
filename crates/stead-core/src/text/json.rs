//! The fast way for JSON: programs write large documents in it.
//!
//! It reads what is plain JSON beyond doubt and leaves everything else, and everything that is wrong, to the front end for
//! YAML, which reads JSON as well. So there is one place that finds faults, and this one has none to report.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::scalar::{Plain, number};
use super::{Entry, Kind, Limits, Node, SourceId, Span};

/// Every level is scanned once for each level around it, so that deep texts are left to the other way.
const DEEPEST: usize = 16;

/// The tree of a text that is plain JSON; `None` for every other.
pub(super) fn read(source: SourceId, text: &str, limits: &Limits) -> Option<Node> {
    if !text.trim_start_matches([' ', '\n', '\r', '\t']).starts_with('{') || text.contains(is_special) {
        return None;
    }
    let root: &RawValue = serde_json::from_str(text).ok()?;
    Reader { source, text, left: limits.nodes, deepest: limits.depth.min(DEEPEST) }.value(root, 0)
}

/// Characters beyond ASCII's that are not read as they are: JSON takes them, YAML refuses them or reads them in another way.
pub(super) fn is_special(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

struct Reader<'t> {
    source: SourceId,
    text: &'t str,
    /// How many values more there may be.
    left: usize,
    deepest: usize,
}

impl<'t> Reader<'t> {
    fn value(&mut self, raw: &'t RawValue, depth: usize) -> Option<Node> {
        self.left = self.left.checked_sub(1)?;
        let json = raw.get();
        let span = self.span(json)?;
        let kind = match json.as_bytes().first()? {
            b'{' if depth < self.deepest => self.object(json, depth)?,
            b'[' if depth < self.deepest => self.array(json, depth)?,
            b'{' | b'[' => return None,
            b'"' => Kind::String(serde_json::from_str::<Box<str>>(json).ok()?),
            b't' => Kind::Bool(true),
            b'f' => Kind::Bool(false),
            b'n' => Kind::Null,
            _ => match number(json) {
                Plain::Value(kind @ Kind::Number(_)) => kind,
                _ => return None,
            },
        };
        Some(Node { span, kind })
    }

    /// Where a part of the text stands.
    fn span(&self, part: &str) -> Option<Span> {
        let start = part.as_ptr().addr().checked_sub(self.text.as_ptr().addr())?;
        let place = |at: usize| u32::try_from(at).ok();
        Some(Span::new(self.source, place(start)?, place(start + part.len())?))
    }

    fn array(&mut self, json: &'t str, depth: usize) -> Option<Kind> {
        let items: Vec<&'t RawValue> = serde_json::from_str(json).ok()?;
        items.into_iter().map(|item| self.value(item, depth + 1)).collect::<Option<_>>().map(Kind::Array)
    }

    fn object(&mut self, json: &'t str, depth: usize) -> Option<Kind> {
        let Members(members) = serde_json::from_str(json).ok()?;
        // A name that occurs twice is a finding, and so is the merge key of older YAML.
        let names: BTreeSet<&str> = members.iter().map(|(name, _)| *name).collect();
        if names.len() < members.len() || names.contains("<<") {
            return None;
        }
        let entry = |(name, raw): (&'t str, &'t RawValue)| {
            let key_span = self.span(name)?;
            // The quotes belong to the name, as they belong to every text.
            let key_span = Span::new(key_span.source, key_span.start - 1, key_span.end + 1);
            Some(Entry { key: name.into(), key_span, value: self.value(raw, depth + 1)? })
        };
        members.into_iter().map(entry).collect::<Option<_>>().map(Kind::Object)
    }
}

/// The members of an object, names without escapes.
struct Members<'t>(Vec<(&'t str, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::with_capacity(4);
        // A name with an escape cannot be borrowed, which is an error here and leaves the text to the other way.
        while let Some(member) = map.next_entry::<&'de str, &'de RawValue>()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read(text: &str) -> bool {
        read(SourceId::default(), text, &Limits::default()).is_some()
    }

    #[test]
    fn what_programs_write_is_read() {
        assert!(is_read(r#"{"a": [1, -2.5, "\u00e4\n", true, null, {}], "b c": {"d": "ö"}}"#));
        assert!(is_read("\n{\r\n\t\"a\": 1\r\n}\n"));
    }

    #[test]
    fn what_has_rules_of_its_own_is_left() {
        let texts = [
            "[1]",
            "{\"a\": 1, \"a\": 2}",
            "{\"\\u0061\": 1}",
            "{\"<<\": 1}",
            "{\"a\": \"\u{85}\"}",
            "{a: 1}",
            "{\"a\": 1",
            "{} # why",
        ];
        for text in texts {
            assert!(!is_read(text), "{text}");
        }
    }
}
