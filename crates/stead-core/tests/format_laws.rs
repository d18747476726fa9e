//! Laws of formatting: the meaning stays, every letter stays, and formatting again changes nothing.

#![expect(clippy::disallowed_methods, reason = "the tests read the corpus, which the core does not")]

use std::path::Path;

use proptest::prelude::*;
use stead_core::text::{self, FormatError, Limits, SourceId, format};
use stead_core::value::Value;
use stead_testkit::repository;

/// The value without places.
fn value(text: &str) -> Option<Value> {
    let (root, _) = text::read(SourceId(0), text, &Limits::default());
    root.map(|root| root.literal())
}

/// Returns the text without its blanks.
fn letters(text: &str) -> String {
    text.replace([' ', '\t', '\r', '\n'], "")
}

/// Returns whether a text can be read. A law that does not hold for it when formatted is an error.
fn laws(text: &str) -> Result<bool, String> {
    let formatted = match format(text, &Limits::default()) {
        Err(FormatError::Unreadable(_)) => return Ok(false),
        Err(error) => return Err(format!("{error}: {text:?}")),
        Ok(formatted) => formatted.text,
    };
    let again = format(&formatted, &Limits::default()).map(|again| again.text).map_err(|error| error.to_string());
    let wrong = if value(&formatted) != value(text) {
        "another value"
    } else if letters(&formatted) != letters(text) {
        "other letters"
    } else if again.as_ref() != Ok(&formatted) {
        "again is something else"
    } else if !formatted.ends_with('\n') {
        "no line end at the end"
    } else {
        return Ok(true);
    };
    Err(format!("{wrong}:\n{text}\nformatted:\n{formatted}\nagain:\n{again:?}"))
}

fn files(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if entry.is_dir() {
            files(&entry, found);
        } else if let Ok(text) = std::fs::read_to_string(&entry) {
            found.push((entry.display().to_string(), text));
        }
    }
}

/// Every text below these folders: files, sections of cases, and what is fenced in guides.
fn documents() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["corpus", "examples", "docs", "schemas"] {
        files(&repository().join(folder), &mut found);
    }
    let mut all = Vec::new();
    for (name, text) in found {
        match Path::new(&name).extension().and_then(|extension| extension.to_str()) {
            Some("txt") => all.extend(sections(&text).map(|section| (name.clone(), section))),
            Some("md") => all.extend(
                text.split("```")
                    .skip(1)
                    .step_by(2)
                    .filter_map(|block| Some((name.clone(), block.split_once('\n')?.1.to_owned()))),
            ),
            _ => all.push((name, text)),
        }
    }
    all
}

/// A document with pieces put in, lines moved and parts left out.
fn mutated() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "",
        " ",
        "  ",
        "\n",
        "\n\n\n",
        "\n  ",
        "\n    ",
        "\r\n",
        "\t",
        "- ",
        "? ",
        ": ",
        ":",
        ",",
        "[",
        "]",
        "{",
        "}",
        "[\n",
        "\n}",
        "'",
        "\"",
        "\\",
        "|\n",
        ">-\n",
        "|+\n\n",
        "|2\n   ",
        "# c\n",
        " # c\n",
        "\n # c\n",
        "\n#c\n",
        "&a ",
        "*a ",
        "!!str ",
        "!x ",
        "---\n",
        "...\n",
        "a: ",
        "\na:\n",
        "\n- b",
        "{a: 1, b: [2,3]}",
        "'x\n\n y'",
        "\"x \\\n  y\"",
        "é",
        "\u{2028}",
    ]);
    let edit = (any::<prop::sample::Index>(), prop_oneof![3 => Just(0_usize), 1 => 0..9_usize], piece);
    let start = prop::sample::select(vec![BLOCK, FLOW, ODD]);
    (start, prop::collection::vec(edit, 0..6)).prop_map(|(start, edits)| {
        let mut text = start.to_owned();
        for (at, gone, new) in edits {
            let borders: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let first = at.index(borders.len());
            let last = (first + gone).min(borders.len() - 1);
            text.replace_range(borders[first]..borders[last], new);
        }
        text
    })
}

const BLOCK: &str = "\
# A document.
$schema: x   # as it is

parameters:
    folder: {type: string,   defaultValue: /srv }
    # port: {type: int}


resources:
  # The page.
  - name: page
    type: Stead/File
    properties:
        path: \"[concat(parameters('folder'), '/x')]\"
        content: |
            a
              b

        # about nothing
  - name: other
    type:   Stead/Line
    properties: { line: 'a

        b' }
";

const FLOW: &str = "\
{\"resources\":[{\"name\":\"a\", \"type\":\"T/A\",
 \"properties\":{\"x\":[1,2 , {}],\"y\": [ ], \"z\" :null}}, # why
 {\"name\": \"b\"}],
\"outputs\":
{}
}
";

const ODD: &str = "\
--- # start
base: &base
  ? &k
    a
  :
    - c
  d: &e !!str text
    over lines
  *e : 1
list:
-   - 1
    -  2
-
    x: |2+
        deep

    y: >

      folded
       more
...
";

fn sections(text: &str) -> impl Iterator<Item = String> {
    text.split("\n-- ").skip(1).filter_map(|section| Some(section.split_once(" --\n")?.1.to_owned() + "\n"))
}

proptest! {
    #[test]
    fn mutated_documents_keep_their_meaning(text in mutated()) {
        if let Err(message) = laws(&text) {
            prop_assert!(false, "{message}");
        }
    }
}

#[test]
fn what_is_written_here_keeps_its_meaning() {
    let documents = documents();
    let mut read = 0;
    let mut wrong = Vec::new();
    for (name, text) in &documents {
        match laws(text) {
            Ok(can_be_read) => read += usize::from(can_be_read),
            Err(message) => wrong.push(format!("{name}: {message}\n")),
        }
    }
    println!("{read} of {} texts can be read", documents.len());
    assert!(wrong.is_empty(), "{}: {}", wrong.len(), wrong.concat());
    assert!(read > 1000, "{read}");
}

#[test]
fn what_could_not_be_read_again_is_not_made() {
    let text = "a: {b: {c: [1,2,3,4],d:\n1}}";
    let limits = Limits { bytes: text.len(), ..Limits::default() };
    assert!(matches!(format(text, &limits), Err(FormatError::TooLong(_))));
}

#[test]
fn many_comments_in_a_row_are_formatted() {
    let comments = |depth: usize| format!("{:depth$}# why\n", "").repeat(20_000);
    let text = format!("a:\n{}    b: 1\n{}c: {{ # d\n{}}}\n", comments(4), comments(4), comments(0));
    let formatted = format(&text, &Limits::default()).map(|formatted| formatted.text);
    let expected = format!("a:\n{}  b: 1\n{}c: {{ # d\n{}}}\n", comments(2), comments(2), comments(2));
    assert!(formatted.is_ok_and(|formatted| formatted == expected));
}
