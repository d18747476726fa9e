//! Laws of reading text: nothing panics, places are where they say, and every code has a case.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;

use serde_json::Value as Json;
use stead_core::diag::{self, Code, Diagnostic};
use stead_core::manifest::plain;
use stead_core::text::{self, Entry, Kind, Limits, Node, Source, SourceId, Sources, Span, locate};
use stead_core::{document, value::Value};

const SOURCE: SourceId = SourceId(0);

fn read(text: &str) -> (Option<Node>, Vec<Diagnostic>) {
    text::read(SOURCE, text, &Limits::default())
}

fn sources(text: &str) -> Sources {
    let mut sources = Sources::default();
    sources.add(Source::new("main.yaml", text));
    sources
}

/// Asserts that a place lies within the text, on borders of characters.
fn assert_inside(span: Span, text: &str) {
    assert!(span.start <= span.end, "{span:?}");
    assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} in {text:?}");
}

/// Asserts that every place lies within that of what is around it.
fn assert_nested(node: &Node, text: &str) {
    assert_inside(node.span, text);
    let within = |span: Span| {
        assert_inside(span, text);
        assert!(node.span.start <= span.start && span.end <= node.span.end, "{span:?} in {:?}: {text:?}", node.span);
    };
    for item in node.items().unwrap_or_default() {
        within(item.span);
        assert_nested(item, text);
    }
    for entry in node.entries().unwrap_or_default() {
        within(entry.key_span);
        within(entry.value.span);
        assert_nested(&entry.value, text);
    }
}

fn assert_findings_inside(found: &[Diagnostic], text: &str) {
    for finding in found {
        let labels = finding.labels.iter().map(|(span, _)| *span);
        finding.span.into_iter().chain(labels).chain(finding.fix.iter().map(|fix| fix.span)).for_each(|span| {
            assert_inside(span, text);
        });
    }
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        prop::num::f64::NORMAL.prop_map(Json::from),
        any::<String>().prop_map(Json::from),
        "[-+.~0-9a-fox_: ]{0,8}".prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

/// Text in blocks, as users write it; about half of it has something unusual or wrong.
fn plain_yaml() -> impl Strategy<Value = String> {
    let line =
        (key(), colon(), scalar(), ending()).prop_map(|(key, colon, value, end)| format!("{key}{colon}{value}{end}"));
    let item = (scalar(), ending()).prop_map(|(value, ending)| format!("- {value}{ending}"));
    let lines = prop::collection::vec(line, 1..4).prop_map(|lines| lines.concat());
    let items = prop::collection::vec(item, 1..4).prop_map(|items| items.concat());
    prop_oneof![3 => lines, 2 => items].prop_recursive(4, 20, 3, |inner| {
        let member = (key(), opening(), indentation(), inner.clone())
            .prop_map(|(key, opening, pad, inner)| format!("{key}{opening}\n{}", indented(&inner, pad)));
        let compact = inner.clone().prop_map(|inner| format!("- {}", indented(&inner, 2).trim_start()));
        let below = (indentation(), inner).prop_map(|(pad, inner)| format!("-\n{}", indented(&inner, pad)));
        let elements = prop_oneof![3 => compact, 1 => below];
        prop_oneof![
            3 => prop::collection::vec(member, 1..4).prop_map(|members| members.concat()),
            2 => prop::collection::vec(elements, 1..4).prop_map(|elements| elements.concat()),
        ]
    })
}

fn indented(text: &str, spaces: usize) -> String {
    text.split_inclusive('\n').flat_map(|line| [" ".repeat(spaces), line.to_owned()]).collect()
}

fn indentation() -> impl Strategy<Value = usize> {
    prop_oneof![1 => Just(0), 1 => Just(1), 30 => Just(2), 10 => Just(4)]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![60 => "[a-z$_][a-z0-9./-]{0,6}", 1 => "[0-9\"'a-c ?-]{1,4}", 1 => Just("<<".to_owned())]
}

fn colon() -> impl Strategy<Value = &'static str> {
    prop_oneof![40 => Just(": "), 10 => Just(":  "), 1 => Just(":"), 1 => Just(" : ")]
}

fn opening() -> impl Strategy<Value = &'static str> {
    prop_oneof![20 => Just(":"), 2 => Just(": |"), 2 => Just(": |-"), 2 => Just(": # why"), 1 => Just(": |+"), 1 => Just("")]
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        30 => "[a-zA-Z/][a-zA-Z0-9/._~+-]{0,6}",
        10 => "[0-9.+-]?[0-9][0-9a-fx.]{0,3}",
        10 => "\"([a-z ':#{}ä-]|\\\\[nt\"/b]){0,8}\"",
        10 => "'[a-z \":#{}ä\\\\-]{0,8}'",
        1 => "\"([a-z]|\\\\[xu0N]){0,8}\"",
        1 => "[-a-z0-9 :#,\\[\\]{}&*!|>'\"%@`?~.ö]{0,8}",
        1 => Just("[concat('a', 'b')]".to_owned()),
        1 => Just("{a: 1}".to_owned()),
        1 => Just("99999999999999999999".to_owned()),
    ]
}

fn ending() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        30 => Just("\n"),
        10 => Just(" # why\n"),
        5 => Just("  \n"),
        5 => Just("\n\n"),
        5 => Just("\n  # why\n"),
        1 => Just("#x\n"),
        1 => Just("\n---\n"),
        1 => Just(""),
    ]
}

/// Checks that a text is read alike in the fast way, if that takes it, and in the one for all of YAML.
fn both_ways(text: &str) {
    // At the start of a text it is not a part of it.
    let text = text.trim_start_matches('\u{feff}');
    let (fast, found) = read(text);
    let (slow, also_found) = read(&format!("#\t\n{text}"));
    assert_eq!(fast, slow.map(|node| moved(node, 3)), "{text}");
    let codes = |found: &[Diagnostic]| found.iter().map(|finding| finding.code.id).collect::<Vec<_>>();
    assert_eq!(codes(&found), codes(&also_found), "{text}");
}

/// The tree of a text that begins so many bytes earlier.
fn moved(node: Node, bytes: u32) -> Node {
    let back = |span: Span| Span::new(span.source, span.start - bytes, span.end - bytes);
    let kind = match node.kind {
        Kind::Array(items) => Kind::Array(items.into_iter().map(|item| moved(item, bytes)).collect()),
        Kind::Object(entries) => {
            let entry =
                |entry: Entry| Entry { key_span: back(entry.key_span), value: moved(entry.value, bytes), ..entry };
            Kind::Object(entries.into_iter().map(entry).collect())
        }
        other => other,
    };
    Node { span: back(node.span), kind }
}

/// Text that gets further into the reader than random characters do.
fn yamlish() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n"),
        Just("\n  "),
        Just("\n- "),
        Just("\r\n"),
        Just("\t"),
        Just(" "),
        Just("a: "),
        Just("b:\n"),
        Just("- "),
        Just("? "),
        Just(": "),
        Just("'"),
        Just("\""),
        Just("''"),
        Just("\\n"),
        Just("\\"),
        Just("["),
        Just("]"),
        Just("{"),
        Just("}"),
        Just(", "),
        Just("|\n  "),
        Just(">-\n "),
        Just("&a "),
        Just("*a"),
        Just("*b "),
        Just("!!str "),
        Just("!x "),
        Just("# c\n"),
        Just("---\n"),
        Just("...\n"),
        Just("%YAML 1.2\n"),
        Just("ä"),
        Just("日本 "),
        Just("\u{feff}"),
        Just("\u{2028}"),
        Just("\0"),
        Just("1"),
        Just("0x1F"),
        Just("[f("),
        Just("'x')]"),
        Just("resources: "),
        Just("type: "),
        Just("A/B"),
        Just("<<: "),
        Just("\"[f('x')]\""),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn check_text(text: &str) {
    let text_without_mark = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (root, found) = read(text);
    assert_eq!(root.is_none(), root.is_none() && diag::any_error(&found), "no tree without an error: {text:?}");
    assert_findings_inside(&found, text_without_mark);
    if let Some(root) = &root
        && !text.contains('*')
    {
        assert_nested(root, text_without_mark);
    }
    assert_eq!(read(text), (root.clone(), found), "reading twice gives the same");
    let (document, found) = document::parse(SOURCE, text, &Limits::default());
    let whole = document::of_tree(SOURCE, text, read(text), &Limits::default());
    assert_eq!(format!("{:?}", (document, &found)), format!("{whole:?}"), "by instance and by tree: {text:?}");
    assert_findings_inside(&found, text_without_mark);
    let sources = sources(text);
    for finding in &found {
        let rendered = diag::render(finding, &sources, false);
        assert!(!rendered.contains(|c: char| c.is_control() && c != '\n'), "{rendered:?}");
        diag::to_json(finding, &sources);
    }
    if let Some(root) = &root {
        check_located(root, text_without_mark, &sources);
    }
}

/// Any part of any string lies within the place of the string.
fn check_located(root: &Node, text: &str, sources: &Sources) {
    let children = root.entries().unwrap_or_default().iter().map(|entry| &entry.value);
    for node in std::iter::once(root).chain(children).chain(root.items().unwrap_or_default()) {
        let length = node.as_str().map_or(0, str::len);
        for range in [0..length, 0..1, length / 2..length, length..length, 0..length + 9] {
            let span = locate(sources, node.span, range);
            assert!(node.span.start <= span.start && span.end <= node.span.end, "{span:?} in {:?}", node.span);
            assert_inside(span, text);
        }
    }
}

proptest! {
    #[test]
    fn json_is_read_as_it_was_printed(json in json()) {
        for text in [json.to_string(), format!("{json:#}")] {
            let (root, found) = read(&text);
            prop_assert_eq!(&found, &[], "{}", text);
            prop_assert_eq!(root.as_ref().map(plain), Some(json.clone()));
            prop_assert_eq!(Value::from(json.clone()).to_redacted_json(), json.clone());
            assert_nested(&root.unwrap(), &text);
        }
    }

    /// Plain JSON is read in a way of its own; behind a comment it is read as YAML. Both come to the same tree, and to the
    /// same places but for the comment.
    #[test]
    fn both_ways_to_read_json_are_one(json in json(), names in any::<[String; 2]>()) {
        let root = Json::Object([(names[0].clone(), json.clone()), (names[1].clone(), json)].into_iter().collect());
        for text in [root.to_string(), format!("{root:#}")] {
            let (fast, found) = read(&text);
            let (slow, also_found) = read(&format!("#\n{text}"));
            prop_assert_eq!((found.len(), also_found.len()), (0, 0), "{}", text);
            prop_assert_eq!(fast, slow.map(|node| moved(node, 2)), "{}", text);
        }
    }

    /// Plain YAML is read in a way of its own, too, but for text with a tab.
    #[test]
    fn both_ways_to_read_yaml_are_one(text in plain_yaml()) {
        both_ways(&text);
    }

    #[test]
    fn both_ways_to_read_what_looks_like_yaml_are_one(text in yamlish()) {
        both_ways(&text);
    }

    #[test]
    fn any_text_is_read_without_panic(text in any::<String>()) {
        check_text(&text);
    }

    #[test]
    fn text_like_yaml_is_read_without_panic(text in yamlish()) {
        check_text(&text);
    }

    /// Every letter of a quoted string is found where it was written.
    #[test]
    fn letters_of_quoted_strings_are_located(text in "[ -~äö日\n\t]{0,30}") {
        let quoted = Json::from(text.as_str()).to_string();
        let sources = sources(&quoted);
        let span = Span::new(SOURCE, 0, u32::try_from(quoted.len()).unwrap());
        for (at, c) in text.char_indices() {
            let found = locate(&sources, span, at..at + c.len_utf8());
            let alone = Json::from(c.to_string()).to_string();
            prop_assert_eq!(&quoted[found.start as usize..found.end as usize], &alone[1..alone.len() - 1]);
        }
    }
}

#[test]
fn large_texts_are_refused_at_once() {
    let flow = "[".repeat(100_000);
    let block: String = (0..3000).flat_map(|depth| [" ".repeat(depth), "a:\n".to_owned()]).collect();
    let laugh = |level: usize| format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 9].join(", "));
    let mut laughs = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned()];
    laughs.extend((1..40).map(laugh));
    let laughs = laughs.concat();
    let dashes = "- ".repeat(100_000);
    let strings = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), "*a, ".repeat(10_000));
    for text in [&flow, &block, &laughs, &dashes, &strings] {
        let (root, found) = read(text);
        assert!(root.is_none());
        assert_eq!(found.iter().map(|finding| finding.code.id).collect::<Vec<_>>(), ["E0117"], "{found:?}");
    }
    let long = format!("a: {}", "x".repeat(17 << 20));
    let (root, found) = read(&long);
    assert_eq!((root, found.len()), (None, 1));
    assert_eq!(found[0].message, format!("the text has {} bytes, the limit is 16777216", long.len()));
}

#[test]
fn many_findings_are_cut_and_stay_errors() {
    let text = format!("resources: []\n{}", "x: 1\n".repeat(5000));
    let (_, found) = document::parse(SOURCE, &text, &Limits::default());
    assert!(found.len() < 2100, "{}", found.len());
    assert!(diag::any_error(&found));
}

#[test]
fn codes_are_unique_and_explained() {
    let codes = diag::all();
    let ids: BTreeSet<&str> = codes.iter().map(|code| code.id).collect();
    assert_eq!(ids.len(), codes.len());
    for code in codes {
        let number = code.id.strip_prefix(['E', 'W']).unwrap();
        assert!(number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit()), "{code}");
        assert!(code.explanation.len() > 80 && code.explanation.ends_with(['\n', '.']), "{code}");
        assert_eq!(diag::explain(&code.id.to_lowercase()), Some(code));
    }
    assert_eq!(diag::explain("E9999"), None);
}

/// A code without a case is a code that nobody has seen.
#[test]
fn every_code_of_text_and_documents_has_a_case() {
    let corpus = ["corpus/document", "corpus/mistakes"].map(|folder| cases(&stead_testkit::repository().join(folder)));
    let has_case = |code: &Code| corpus.iter().any(|cases| cases.contains(&format!("[{}]", code.id)));
    let codes = text::codes::CODES.iter().chain(document::codes::CODES);
    let missing: Vec<&str> = codes.filter(|code| !has_case(code)).map(|code| code.id).collect();
    assert_eq!(missing, [""; 0]);
}

#[expect(clippy::disallowed_methods, reason = "the test reads the corpus, which the core does not")]
fn cases(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        all += &if path.is_dir() { cases(&path) } else { std::fs::read_to_string(&path).unwrap_or_default() };
    }
    all
}
