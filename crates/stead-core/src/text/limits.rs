//! Limits of reading a text.

use granit_parser::Options;

/// Limits of the cost of a text. Every limit holds before memory is spent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of text. At most 4 GiB are read whatever it says, because places are kept in 32 bits.
    pub bytes: usize,
    /// Lists and objects within each other.
    pub depth: usize,
    /// Values, keys not counted.
    pub nodes: usize,
    /// Values that aliases repeat, and those kept to be repeated; 64 bytes of text count as one more.
    pub aliases: usize,
    /// Findings that are reported.
    pub findings: usize,
}

/// Returns the number of values that JSON holds at most, names of members among them: counted without reading it, so
/// that it can be refused before it takes memory.
pub fn json_values(json: &[u8]) -> usize {
    let (mut values, mut in_text, mut is_escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            // Each begins a value, as does the text itself.
            b',' | b':' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    values
}

impl Default for Limits {
    /// 16 MiB, 128 levels, 1,000,000 values, of which 100,000 by aliases, and 1000 findings.
    ///
    /// A hundred thousand files make about 11 MiB and 700,000 values. So many values take less than 256 MiB of memory
    /// together with the text, even as members of one object. The depth keeps every recursion over a tree within a small
    /// stack. Nobody reads more than the first dozens of findings.
    fn default() -> Self {
        Self { bytes: 16 << 20, depth: 128, nodes: 1_000_000, aliases: 100_000, findings: 1000 }
    }
}

/// Returns the options with which the parser reads every text.
pub(super) fn options(limits: &Limits, emit_comments: bool) -> Options {
    granit_parser::options! {
        emit_anchor_events: true,
        emit_unresolved_aliases: true,
        emit_comments: emit_comments,
        max_buffered_comment_events: limits.bytes,
        // YAML's own limit of 1024 would refuse JSON with longer keys.
        simple_key_max_lookahead: 1 << 16,
        flow_nesting_limit: limits.depth,
        block_nesting_limit: limits.depth,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_before_they_are_read() {
        for (json, most) in [("1", 1), ("[]", 2), (r#"{"a,b": "[\",[\\"}"#, 3), ("[1,[2,3],{}]", 7)] {
            assert_eq!(json_values(json.as_bytes()), most, "{json}");
        }
    }
}
