//! Texts of several lines that YAML makes one line of.

use super::{Document, codes};
use crate::diag::Diagnostic;
use crate::expr::Template;
use crate::text::{Kind, Sources};

/// Properties that are texts of several lines as a rule.
const TEXTS: [&str; 3] = ["content", "set", "test"];

/// A warning for each such text that stands on several lines, without a `|` and without quotes.
pub(super) fn joined(document: &Document, sources: &Sources) -> Vec<Diagnostic> {
    let properties = document.resources.iter().filter_map(|instance| instance.properties.as_ref()?.entries());
    let texts = properties.flatten().filter(|entry| TEXTS.contains(&&*entry.key));
    let warning = |entry: &crate::text::Entry<_>| {
        let node: &Template = &entry.value;
        let written = sources.text(node.span)?;
        let is_joined = matches!(node.kind, Kind::String(_))
            && written.contains('\n')
            && !written.starts_with(['|', '>', '"', '\'']);
        let message = || format!("the lines of '{}' are joined: YAML makes one line of them", entry.key);
        let help =
            || format!("write '{}: |' in front of text whose lines stay apart, '>' where one line is meant", entry.key);
        is_joined.then(|| Diagnostic::warning(&codes::JOINED, node.span, message()).with_help(help()))
    };
    texts.filter_map(warning).collect()
}
