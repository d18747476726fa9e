//! Any text is read as a document without a panic, every place lies within it, and reading is deterministic.
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

    let (_, found) = document::parse(source, text, &limits);
    assert_eq!(found, document::parse(source, text, &limits).1);
    found.iter().for_each(|finding| check_finding(finding, &read, &sources));
});

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
