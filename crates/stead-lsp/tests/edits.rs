//! Whatever is typed, the server goes on, and knows the text as the editor does.

#[path = "support/editor.rs"]
mod editor;

use editor::{Editor, URI, edited};
use proptest::prelude::*;
use serde_json::json;
use stead_core::text::{FormatError, Limits, format};

const DOCUMENT: &str = "$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json
parameters:
  päth: {type: string, defaultValue: /srv/😀}
resources:
- name: page
  type: Stead/File
  properties: {path: \"[concat(parameters('päth'), 'x')]\", content: \"a\", mode: '0644'}
- name: group
  type: Microsoft.DSC/Group
  dependsOn: [\"[resourceId('Stead/File', 'page')]\"]
  properties:
    resources:
    - {name: inner, type: Microsoft.DSC.Debug/Echo, properties: {output: {a: [1, 2]}}}
";

/// An edit: where it begins, how many letters go, and what comes.
fn edit() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
    let pieces = prop::sample::select(vec![
        "",
        "a",
        " ",
        "\n",
        "  ",
        "- ",
        ": ",
        "'",
        "\"",
        "[",
        "]",
        "{",
        "}",
        "\"[",
        "parameters('",
        "type: Stead/",
        "#",
        "é😀",
        "resources:\n",
        "stead.",
        "|",
        "&a ",
        "*a",
        "\t",
        "\r\n",
        "\u{feff}",
    ]);
    (any::<prop::sample::Index>(), 0..12_usize, prop::collection::vec(pieces, 0..4).prop_map(|all| all.concat()))
}

/// The position of a byte, in units of UTF-16.
fn position(text: &str, offset: usize) -> serde_json::Value {
    let before = &text[..offset];
    let line = before.matches('\n').count();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    json!({ "line": line, "character": before[start..].encode_utf16().count() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(stead_testkit::cases("STEAD_EDITS", 40)))]

    #[test]
    fn any_edits_leave_the_server_as_it_would_be_without_them(edits in prop::collection::vec(edit(), 1..12)) {
        let mut editor = Editor::open(DOCUMENT);
        let mut text = DOCUMENT.to_owned();
        for (start, gone, new) in edits {
            let borders: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let first = start.index(borders.len());
            let last = (first + gone).min(borders.len() - 1);
            // Editors place no edit between the two letters of a line break.
            let splits = |at: usize| text[..at].ends_with('\r');
            let (start, end) = (borders[first], borders[last]);
            if splits(start) || splits(end) {
                continue;
            }
            editor.edit(&json!({ "start": position(&text, start), "end": position(&text, end) }), &new);
            text.replace_range(start..end, &new);
            let cursor = position(&text, start + new.len());
            let place = json!({ "textDocument": { "uri": URI }, "position": cursor });
            for method in ["textDocument/completion", "textDocument/hover", "textDocument/definition"] {
                let _ = editor.try_ask(method, place.clone());
            }
        }
        let formatted = match format(&text, &Limits::default()) {
            Ok(formatted) => formatted.text,
            Err(_) => text.clone(),
        };
        if !matches!(format(&text, &Limits::default()), Err(FormatError::Meaning)) {
            prop_assert_eq!(edited(&text, &editor.format()), formatted);
        }
        // A finding more, so that something is published however it ended.
        let end = position(&text, text.len());
        editor.edit(&json!({ "start": end, "end": end }), "\n");
        text.push('\n');
        let findings = editor.findings();
        let fresh = Editor::open(&text).findings();
        prop_assert_eq!(findings, fresh);
    }
}

#[test]
fn facts_are_completed_and_shown_with_their_values() {
    let text = "resources:\n- name: a\n  type: Stead/File\n  properties: {path: \"[facts('os.family')]\"}\n";
    let mut editor = Editor::open(text);
    let column = "  properties: {path: \"[facts('os.".len() as u64;
    let answer = editor.ask("textDocument/completion", Editor::place(3, column)).to_string();
    let session = stead_engine::Host::new(stead_engine::HostOptions::default()).session("/");
    let known = session.machine().facts().unwrap_or_else(|_| panic!("no facts")).to_redacted_json();
    let family = known["os"]["family"].to_string();
    assert!(answer.contains("\"os.family\"") && answer.contains("\"memory\""), "{answer}");
    assert!(answer.contains(&json!(format!("{family} on this machine")).to_string()), "{answer}");
    let shown = editor.ask("textDocument/hover", Editor::place(3, column)).to_string();
    assert!(shown.contains("**os.family**") && shown.contains(family.trim_matches('"')), "{shown}");
}
