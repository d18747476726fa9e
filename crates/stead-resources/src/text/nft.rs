//! Tables of nftables.

use super::{CHECKED, Checked, Text, breaks_line, text_type};

/// The name of a table, which is a part of the name of a file as well.
#[derive(Clone, Copy)]
pub(crate) struct TableName<'a>(pub(crate) &'a str, Checked);
text_type!(TableName, { "type": "string", "maxLength": 200, "pattern": "^[A-Za-z_][A-Za-z0-9_.-]*$" });

impl TableName<'_> {
    /// Returns whether a text is a valid name.
    pub(crate) fn is_valid(text: &str) -> bool {
        let is_first = |first: char| first.is_ascii_alphabetic() || first == '_';
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        text.len() <= 200 && text.starts_with(is_first) && text.bytes().all(is_part)
    }
}

impl<'a> Text<'a> for TableName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if Self::is_valid(text) {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be letters, digits, '_', '.' and '-', beginning with a letter or '_', at most 200 characters")
        }
    }
}

/// What is between the braces of a table: nothing in it ends the table or reads another file.
#[derive(Clone, Copy)]
pub(crate) struct TableText<'a>(pub(crate) &'a str, Checked);
text_type!(TableText, { "type": "string", "pattern": "^([\\t\\n]|\\P{Cc})*$" });

impl<'a> Text<'a> for TableText<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.contains(|each| breaks_line(each) && each != '\n') {
            return Err("must not contain a control character other than line breaks and tabs");
        }
        match whole_file(text).or_else(|| bare_rule(text)).or_else(|| flaw(text)) {
            Some(flaw) => Err(flaw),
            None => Ok(Self(text, CHECKED)),
        }
    }
}

impl<'a> TableText<'a> {
    /// The line and the name of the first chain that a rule jumps to and the table lacks.
    pub(crate) fn missing_chain(self) -> Option<(usize, &'a str)> {
        let (mut chains, mut jumps) = (Vec::new(), Vec::new());
        let (mut rest, mut former) = (self.0, "");
        while let Some(piece) = piece(rest).filter(|piece| !piece.is_empty()) {
            let is_name = piece.starts_with(is_of_word);
            if is_name && former == "chain" {
                chains.push(piece);
            } else if is_name && matches!(former, "jump" | "goto") {
                jumps.push((self.0.get(..self.0.len() - rest.len()).unwrap_or_default().lines().count(), piece));
            }
            if !piece.starts_with(char::is_whitespace) {
                former = piece;
            }
            rest = rest.get(piece.len()..).unwrap_or_default();
        }
        jumps.into_iter().find(|(_, name)| !chains.contains(name))
    }
}

/// The first piece of a text, as nft takes it apart: a quoted string goes to the next quote, a comment to the end of its line. `None`
/// for a quote that is left open.
fn piece(rest: &str) -> Option<&str> {
    let first = rest.chars().next();
    let length = match first {
        Some('#') => rest.find('\n').unwrap_or(rest.len()),
        Some('"') => rest.get(1..)?.find('"')? + 2,
        Some(first) if is_of_word(first) => rest.find(|each| !is_of_word(each)).unwrap_or(rest.len()),
        other => other.map_or(0, char::len_utf8),
    };
    rest.get(..length)
}

fn is_of_word(each: char) -> bool {
    each.is_ascii_alphanumeric() || matches!(each, '_' | '.' | '/' | '-')
}

/// How a rule begins; in a table nothing else does.
const RULES: [&str; 22] = [
    "tcp", "udp", "th", "sctp", "ip", "ip6", "icmp", "icmpv6", "meta", "iif", "iifname", "oif", "oifname", "ether",
    "fib", "accept", "drop", "reject", "jump", "goto", "log", "policy",
];

/// Says that a text begins with a rule, which stands in a chain.
fn bare_rule(text: &str) -> Option<&'static str> {
    let lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut words = lines.flat_map(str::split_whitespace);
    let (first, second) = (words.next()?.trim_end_matches(';'), words.next().unwrap_or_default());
    // Helpers, timeouts and expectations of conntrack are things in a table.
    let is_of_packets = first == "ct" && matches!(second, "state" | "status" | "mark" | "direction");
    let is_hook = first == "type" && matches!(second, "filter" | "nat" | "route");
    (RULES.contains(&first) || is_of_packets || is_hook)
        .then_some("must have its rules in a chain, as in `chain input { type filter hook input priority 0; tcp dport 22 accept; }`")
}

/// Says that a text is a file of nft, which has tables, if it begins like one. In a table no statement does.
fn whole_file(text: &str) -> Option<&'static str> {
    let lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut words = lines.flat_map(str::split_whitespace);
    matches!(words.next()?, "table" | "flush" | "add" | "create" | "delete" | "destroy").then_some(
        "must be what is between the braces of one table: leave out 'table FAMILY NAME {' with its '}', and commands such as 'flush ruleset'; \
         'family' and 'name' are properties",
    )
}

/// Why a text is not the inside of one table.
fn flaw(text: &str) -> Option<&'static str> {
    let (mut rest, mut depth) = (text, 0_usize);
    while !rest.is_empty() {
        let Some(piece) = piece(rest) else { return Some("has an unclosed quote") };
        match piece {
            "{" => depth += 1,
            "}" if depth == 0 => {
                return Some("must be what is between the braces of one table: a '}' in it has no '{'");
            }
            "}" => depth -= 1,
            "include" => return Some("must not include files; state what is in them"),
            _ => {}
        }
        rest = rest.get(piece.len()..).unwrap_or_default();
    }
    (depth > 0).then_some("must be what is between the braces of one table: a '{' in it has no '}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_inside_of_one_table() {
        let good = [
            "",
            "chain c {\n\ttcp dport { 22, 80 } accept comment \"} include\" # } include \"x\"\n}\n",
            "set included { type ipv4_addr\n}",
            "define a = 1; chain b { tcp dport $a accept; }",
        ];
        assert_eq!(good.into_iter().find(|text| flaw(text).is_some()), None);
        let bad = [
            "}\nflush ruleset\ntable inet x {\n",
            "chain c {\n",
            "chain c { accept comment \"}",
            "include \"/etc/x\"",
            "chain c { };include \"x\"",
            "# \"\n}\n#\"",
        ];
        assert_eq!(bad.into_iter().find(|text| flaw(text).is_none()), None);
        let files = ["#!/usr/sbin/nft -f\n\nflush ruleset\n", "  table inet filter {\n}\n", "add table ip a"];
        assert_eq!(files.into_iter().find(|text| whole_file(text).is_none()), None);
        assert_eq!(good.into_iter().find(|text| whole_file(text).is_some()), None);
    }

    #[test]
    fn a_chain_that_is_missing_is_found() {
        let missing = |text| TableText::check(text).ok().and_then(TableText::missing_chain);
        let good = [
            "chain a {\n  jump b\n}\nchain b {\n}\n",
            "chain a { tcp dport vmap { 22 : jump b, 23 : goto a }; } chain b { }",
            "define c = b\nchain a { jump $c; } chain b { } # jump d",
            "chain a { accept comment \"jump d\"; jump { accept; }; }",
        ];
        assert_eq!(good.into_iter().find(|text| missing(text).is_some()), None);
        assert_eq!(missing("chain a {\n  jump nowhere\n}\n"), Some((2, "nowhere")));
        assert_eq!(missing("chain a { tcp dport vmap { 22 : goto b }; }"), Some((1, "b")));
    }
}
