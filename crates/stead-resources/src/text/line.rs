//! Lines and blocks of lines of files whose format is not known.

use super::{CHECKED, Checked, Text, breaks_line, text_type};

/// A line without its ending.
#[derive(Clone, Copy)]
pub(crate) struct SingleLine<'a>(pub(crate) &'a str, Checked);
text_type!(SingleLine, { "type": "string", "pattern": "^(\\t|\\P{Cc})*$" });

impl SingleLine<'_> {
    /// The sign that begins a comment in most formats.
    pub(crate) const HASH: SingleLine<'static> = SingleLine("#", CHECKED);
}

impl<'a> Text<'a> for SingleLine<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.contains(['\n', '\r']) {
            Err("must be a single line; use one instance per line")
        } else if text.contains(breaks_line) {
            Err("must not contain a control character other than a tab; use Stead/File for such content")
        } else {
            Ok(Self(text, CHECKED))
        }
    }
}

/// Lines with their endings. A page may begin in between, as it does in some licences.
#[derive(Clone, Copy)]
pub(crate) struct TextBlock<'a>(pub(crate) &'a str, Checked);
text_type!(TextBlock, { "type": "string", "pattern": "^([\\t\\n\\f]|\\r\\n|\\P{Cc})*$" });

impl<'a> Text<'a> for TextBlock<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let mut lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let last_is_bare = !text.ends_with('\r');
        if last_is_bare && lines.all(|line| !line.contains(|each| breaks_line(each) && each != '\u{c}')) {
            Ok(Self(text, CHECKED))
        } else {
            Err("must not contain a control character other than line breaks, tabs and form feeds")
        }
    }
}

/// The content of a configuration file: at least one line.
#[derive(Clone, Copy)]
pub(crate) struct FileText<'a>(pub(crate) &'a str, Checked);
text_type!(FileText, { "type": "string", "minLength": 1, "pattern": "^([\\t\\n\\f]|\\r\\n|\\P{Cc})*$" });

impl<'a> Text<'a> for FileText<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let TextBlock(text, checked) = TextBlock::check(text)?;
        if text.is_empty() { Err("must not be empty") } else { Ok(Self(text, checked)) }
    }
}
