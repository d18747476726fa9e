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
        match flaw(text) {
            Some(flaw) => Err(flaw),
            None => Ok(Self(text, CHECKED)),
        }
    }
}

/// Why a text is not the inside of one table, as nft takes it apart: a quoted string goes to the next quote, a comment to the end of
/// its line.
fn flaw(text: &str) -> Option<&'static str> {
    let (mut rest, mut depth) = (text, 0_usize);
    while let Some(first) = rest.chars().next() {
        let is_of_word = |each: char| each.is_ascii_alphanumeric() || matches!(each, '_' | '.' | '/' | '-');
        let length = match first {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' => match rest.split_once('"').and_then(|(_, quoted)| quoted.find('"')) {
                Some(end) => end + 2,
                None => return Some("has an unclosed quote"),
            },
            '{' => {
                depth += 1;
                1
            }
            '}' if depth == 0 => {
                return Some("must be what is between the braces of one table: a '}' in it has no '{'");
            }
            '}' => {
                depth -= 1;
                1
            }
            _ if is_of_word(first) => {
                let word = rest.split(|each| !is_of_word(each)).next().unwrap_or_default();
                if word == "include" {
                    return Some("must not include files; state what is in them");
                }
                word.len()
            }
            other => other.len_utf8(),
        };
        rest = rest.get(length..).unwrap_or_default();
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
        for text in good {
            assert_eq!(flaw(text), None, "{text}");
        }
        let bad = [
            "}\nflush ruleset\ntable inet x {\n",
            "chain c {\n",
            "chain c { accept comment \"}",
            "include \"/etc/x\"",
            "chain c { };include \"x\"",
            "# \"\n}\n#\"",
        ];
        for text in bad {
            assert!(flaw(text).is_some(), "{text}");
        }
    }
}
