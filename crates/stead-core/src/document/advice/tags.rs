//! Tags that are several in one text.

use super::{Document, codes};
use crate::diag::Diagnostic;
use crate::text::{Kind, Node, Sources};

/// A warning for each tag with a comma: nobody selects it by its whole name.
pub(super) fn with_commas(document: &Document, sources: &Sources) -> Vec<Diagnostic> {
    let tags = document.resources.iter().filter_map(|instance| instance.metadata.as_deref()?.get("tags"));
    tags.flat_map(|tags| of_one(tags, sources)).collect()
}

fn of_one(tags: &Node, sources: &Sources) -> Vec<Diagnostic> {
    let (nodes, is_list) = match &tags.kind {
        Kind::Array(items) => (&**items, true),
        _ => (std::slice::from_ref(tags), false),
    };
    let with_comma = nodes.iter().filter_map(|node| Some((node, node.as_str().filter(|tag| tag.contains(','))?)));
    let warning = |(node, tag): (&Node, &str)| {
        let each: Vec<&str> = tag.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
        // In JSON, each is in quotes as the text is.
        let quote = if sources.text(node.span).is_some_and(|text| text.starts_with('"')) { "\"" } else { "" };
        let list =
            format!("[{}]", each.iter().map(|tag| format!("{quote}{tag}{quote}")).collect::<Vec<_>>().join(", "));
        let finding = Diagnostic::warning(&codes::TAG, node.span, "this is one tag, whose name has a comma");
        let is_word = |tag: &&str| tag.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
        let finding = finding.with_help(format!("write {list}"));
        let is_plain = each.iter().all(is_word) && sources.text(node.span).is_some_and(|text| text.contains(tag));
        if is_plain && !is_list { finding.with_fix(node.span, list) } else { finding }
    };
    with_comma.map(warning).collect()
}
