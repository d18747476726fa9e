//! Fields of fstab(5), as mount(8) and systemd read them.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{CHECKED, Checked, Text, text_type};

/// Where a file system is mounted, or 'none' for swap space.
#[derive(Clone, Copy)]
pub(crate) struct MountPoint<'a>(pub(crate) &'a str, Checked);
text_type!(MountPoint, { "type": "string", "pattern": "^(none|/|(/[^/\\p{Cc}]+)+)$", "not": { "pattern": "/\\.\\.?(/|$)" } });

impl<'a> Text<'a> for MountPoint<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let mut names = text.strip_prefix('/').into_iter().flat_map(|rest| rest.split('/')).peekable();
        let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(char::is_control);
        if names.peek().is_some() && names.all(is_name) || matches!(text, "/" | "none") {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be an absolute path without '..' and without '/' at its end, or \"none\" for swap space")
        }
    }
}

/// A field of fstab(5).
#[derive(Clone, Copy)]
pub(crate) struct MountText<'a>(pub(crate) &'a str, Checked);
text_type!(MountText, { "type": "string", "pattern": "^[^\\p{Cc}]+$" });

impl<'a> Text<'a> for MountText<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_line = !text.is_empty() && !text.contains(char::is_control);
        if is_line { Ok(Self(text, CHECKED)) } else { Err("must be one non-empty line") }
    }
}

/// The options of fstab(5), with commas between them.
#[derive(Clone, Copy)]
pub(crate) struct MountOptions<'a>(pub(crate) MountText<'a>);
text_type!(MountOptions, { "type": "string", "minLength": 1, "pattern": MountOptions::PATTERN });

impl MountOptions<'_> {
    /// A value may have spaces, and commas within quotes; no name of an option has any.
    const PATTERN: &'static str =
        r#"^[^ ,=\p{Cc}]*(=([^,"\p{Cc}]|"[^"\p{Cc}]*("|$))*)?(,[^ ,=\p{Cc}]*(=([^,"\p{Cc}]|"[^"\p{Cc}]*("|$))*)?)*$"#;
}

impl<'a> Text<'a> for MountOptions<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(MountOptions::PATTERN).ok());
        let line = MountText::check(text)?;
        if PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(text)) {
            Ok(Self(line))
        } else {
            Err("must be options with commas and without spaces between them: \"defaults,noatime\"")
        }
    }
}

/// Where the fields of a line are; none of a comment.
pub(crate) fn fields(line: &str) -> Vec<Range<usize>> {
    let mut fields = Vec::with_capacity(6);
    let mut start = None;
    for (at, char) in line.char_indices().chain([(line.len(), ' ')]) {
        match (char.is_ascii_whitespace(), start) {
            (false, None) => start = Some(at),
            (true, Some(from)) => {
                fields.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    let is_comment = line.trim_start().starts_with('#');
    // What follows the sixth field is a comment.
    if is_comment { Vec::new() } else { fields.into_iter().take(6).collect() }
}

/// Returns the text from the first of the fifth and sixth fields that is not a number to the end of the line: mount(8)
/// ignores such a line, systemd does not.
pub(crate) fn stray(line: &str) -> Option<&str> {
    let is_number = |range: &&Range<usize>| line.get((*range).clone()).is_some_and(|text| text.parse::<i32>().is_ok());
    let fields = fields(line);
    let first = fields.iter().skip(4).find(|range| !is_number(range))?;
    line.get(first.start..).map(str::trim_end)
}

/// A field of a file of the system in which octal numbers stand for blanks and backslashes.
pub(crate) fn decoded(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = (*first == b'\\').then(|| after.get(..3)).flatten().and_then(number);
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| field.to_owned())
}

fn number(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    u8::from_str_radix(digits, 8).ok()
}

/// A text as a field has it.
pub(crate) fn encoded(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    for (at, char) in field.char_indices() {
        match char {
            ' ' => text.push_str("\\040"),
            '\t' => text.push_str("\\011"),
            '\n' => text.push_str("\\012"),
            '\\' => text.push_str("\\134"),
            '#' if at == 0 => text.push_str("\\043"),
            char => text.push(char),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_were() {
        for field in ["a b\tc\\d", "#x#", "\u{fc}", "a\\040b", "plain"] {
            assert_eq!(decoded(&encoded(field)), field);
            assert!(!encoded(field).contains([' ', '\t']));
        }
        assert_eq!(decoded("a\\9"), "a\\9");
    }
}
