//! INI files, as `configparser` of Python, systemd, Git and Samba read them.

use super::{CHECKED, Checked, Text, breaks_line, is_blank, text_type};

/// The name of a section, which stands in brackets.
#[derive(Clone, Copy)]
pub(crate) struct IniSection<'a>(pub(crate) &'a str, Checked);
text_type!(IniSection, { "type": "string", "pattern": "^[^\\p{Cc}\\[\\]#; ]([^\\p{Cc}\\[\\]]*[^\\p{Cc}\\[\\] ])?$" });

impl<'a> Text<'a> for IniSection<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let edges = text.starts_with(['#', ';', ' ']) || text.ends_with(' ');
        if text.is_empty() || edges || text.contains(|each: char| matches!(each, '[' | ']') || each.is_control()) {
            return Err(
                "must be a name without '[', ']', control characters, spaces around it, or the sign of a comment",
            );
        }
        Ok(Self(text, CHECKED))
    }
}

/// A key: what is in front of the sign behind it.
#[derive(Clone, Copy)]
pub(crate) struct IniKey<'a>(pub(crate) &'a str, Checked);
text_type!(IniKey, { "type": "string", "pattern": "^[^\\p{Cc}=\\[#;: ]([^\\p{Cc}=]*[^\\p{Cc}=: ])?$" });

impl<'a> Text<'a> for IniKey<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let edges = text.starts_with(['#', ';', ':', '[', ' ']) || text.ends_with([':', ' ']);
        if text.is_empty() || edges || text.contains(|each: char| each == '=' || each.is_control()) {
            return Err(
                "must be a name without '=' and control characters, without spaces or ':' around it, that does \
                        not begin with '[' or the sign of a comment",
            );
        }
        Ok(Self(text, CHECKED))
    }
}

/// The value behind the sign, up to the end of the line.
#[derive(Clone, Copy)]
pub(crate) struct IniValue<'a>(pub(crate) &'a str, Checked);
text_type!(IniValue, { "type": "string", "pattern": "^(\\t|\\P{Cc})*$", "not": { "pattern": "\\\\[\\t ]*$" } });

impl<'a> Text<'a> for IniValue<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.contains(breaks_line) {
            Err("must be a single line without control characters; use Stead/File for a file whose values have several")
        } else if text.trim_end_matches(is_blank).ends_with('\\') {
            Err("must not end with '\\': many programs take the next line for a part of such a value")
        } else {
            Ok(Self(text, CHECKED))
        }
    }
}
