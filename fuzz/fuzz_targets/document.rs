//! Any text is read as a document without a panic, every place lies within it, reading is deterministic, and the fast way
//! for plain documents comes to what the slow one does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stead_core::diag::{self, Diagnostic};
use stead_core::document;
use stead_core::text::{self, Limits, Node, Source, SourceId, Sources, Span, locate};

fuzz_target!(|text: &str| {
    let limits = Limits { bytes: 1 << 16, aliases: 1000, findings: 50, ..Limits::default() };
    let mut sources = Sources::default();
    let source = sources.add(Source::new("input", text));
    let read = sources.get(source).map(|source| source.text.clone()).unwrap_or_default();

    let (root, found) = text::read(source, text, &limits);
    assert!(root.is_some() || diag::any_error(&found), "no tree and no reason");
    assert_eq!((root.clone(), found), text::read(source, text, &limits));
    if let Some(root) = &root {
        check_node(root, &read, &sources);
    }
    check_slow_way(root.as_ref(), &read, &limits);

    let (_, found) = document::parse(source, text, &limits);
    assert_eq!(found, document::parse(source, text, &limits).1);
    found.iter().for_each(|finding| check_finding(finding, &read, &sources));
});

/// Behind a comment with a tab, no text is read in the fast way.
fn check_slow_way(fast: Option<&Node>, text: &str, limits: &Limits) {
    const COMMENT: &str = "#\t\n";
    if text.len() + COMMENT.len() > limits.bytes || text.starts_with('\u{feff}') {
        return;
    }
    let (slow, _) = text::read(SourceId(0), &format!("{COMMENT}{text}"), limits);
    match (fast, &slow) {
        (Some(fast), Some(slow)) => check_equal(fast, slow, COMMENT.len()),
        (fast, slow) => assert_eq!(fast.is_some(), slow.is_some()),
    }
}

fn check_equal(fast: &Node, slow: &Node, moved: usize) {
    let places = |span: Span, by: usize| [span.start as usize + by, span.end as usize + by];
    assert_eq!(places(fast.span, moved), places(slow.span, 0), "{fast:?} {slow:?}");
    match (fast.entries(), slow.entries(), fast.items(), slow.items()) {
        (Some(left), Some(right), ..) => {
            assert_eq!(left.len(), right.len());
            for (left, right) in left.iter().zip(right) {
                assert_eq!((&left.key, places(left.key_span, moved)), (&right.key, places(right.key_span, 0)));
                check_equal(&left.value, &right.value, moved);
            }
        }
        (_, _, Some(left), Some(right)) => {
            assert_eq!(left.len(), right.len());
            left.iter().zip(right).for_each(|(left, right)| check_equal(left, right, moved));
        }
        _ => assert_eq!(fast.kind, slow.kind),
    }
}

fn check_span(span: Span, text: &str) {
    assert_eq!(span.source, SourceId(0));
    assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?}");
}

fn check_node(node: &Node, text: &str, sources: &Sources) {
    check_span(node.span, text);
    if let Some(string) = node.as_str() {
        let part = locate(sources, node.span, string.len() / 3..string.len() / 2);
        check_span(part, text);
        assert!(node.span.start <= part.start && part.end <= node.span.end);
    }
    node.items().unwrap_or_default().iter().for_each(|item| check_node(item, text, sources));
    for entry in node.entries().unwrap_or_default() {
        check_span(entry.key_span, text);
        check_node(&entry.value, text, sources);
    }
}

fn check_finding(finding: &Diagnostic, text: &str, sources: &Sources) {
    let labels = finding.labels.iter().map(|(span, _)| *span);
    finding.span.into_iter().chain(labels).chain(finding.fix.iter().map(|fix| fix.span)).for_each(|span| {
        check_span(span, text);
    });
    let rendered = diag::render(finding, sources, false);
    assert!(!rendered.contains(|c: char| c.is_control() && c != '\n'), "{rendered:?}");
    diag::to_json(finding, sources);
}
