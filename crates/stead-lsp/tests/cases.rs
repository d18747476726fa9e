//! Cases of `corpus/lsp`: what an editor asks about a document, and what it is answered.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "support/editor.rs"]
mod editor;

use std::fmt::Write as _;
use std::process::ExitCode;

use editor::{Editor, URI, edited};
use serde_json::{Value as Json, json};
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "lsp", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    let mark = if case.has("byte order mark") { "\u{feff}" } else { "" };
    let text = &format!("{mark}{}", case.section("main.yaml"));
    let mut editor = Editor::open(text);
    let mut answers = String::new();
    for line in case.section("ask").lines() {
        let mut words = line.split(' ');
        let method = words.next().unwrap_or_default();
        let place = words.next().map(|place| place_of(text, place)).transpose()?.unwrap_or_default();
        let answer = match method {
            "findings" => findings(&editor),
            "complete" => completions(&mut editor, place),
            "hover" => hover(&mut editor, place),
            "definition" => places(&editor.ask("textDocument/definition", at(place))),
            "references" => {
                let mut params = at(place);
                params["context"] = json!({ "includeDeclaration": true });
                places(&editor.ask("textDocument/references", params))
            }
            "rename" => {
                let mut params = at(place);
                params["newName"] = words.next().unwrap_or_default().into();
                match editor.try_ask("textDocument/rename", params) {
                    Ok(edit) => changed(text, &edit),
                    Err(message) => format!("error: {message}\n"),
                }
            }
            "symbols" => symbols(&mut editor),
            "format" => {
                let edits = editor.format();
                let new = edited(text, &edits);
                format!("{} edits\n{}", edits.len(), new.strip_prefix(mark).ok_or("the mark is lost")?)
            }
            "actions" => actions(&mut editor, text, place),
            other => return Err(format!("unknown: {other}")),
        };
        let _ = write!(answers, "> {line}\n{answer}");
    }
    Ok(vec![("answers", answers)])
}

/// `LINE:WORD` as a position from 0: behind the first letter of the word, or with `$` behind its last one.
fn place_of(text: &str, place: &str) -> Result<(u64, u64), String> {
    let (number, word) = place.split_once(':').ok_or("LINE:WORD")?;
    let number: u64 = number.parse().map_err(|_| "not a line")?;
    let line = text.lines().nth(usize::try_from(number).unwrap() - 1).ok_or("no such line")?;
    let (word, at_end) = word.strip_suffix('$').map_or((word, false), |word| (word, true));
    let start = line.find(word).ok_or_else(|| format!("'{word}' is not in line {number}"))?;
    let end = start + if at_end { word.len() } else { 1 };
    let units: usize = line[..end].chars().map(char::len_utf16).sum();
    Ok((number - 1, units as u64))
}

fn at((line, character): (u64, u64)) -> Json {
    Editor::place(line, character)
}

fn shown(range: &Json) -> String {
    let place = |end: &str| {
        let number = |of: &str| range[end][of].as_u64().unwrap() + 1;
        format!("{}:{}", number("line"), number("character"))
    };
    format!("{}-{}", place("start"), place("end"))
}

fn findings(editor: &Editor) -> String {
    let lines = editor.findings().into_iter().map(|finding| {
        let message = finding["message"].as_str().unwrap().replace('\n', "; ");
        format!("{} {} {message}\n", shown(&finding["range"]), finding["code"].as_str().unwrap())
    });
    lines.collect()
}

/// Returns the list that an editor would show: the items that begin with what was typed.
fn completions(editor: &mut Editor, place: (u64, u64)) -> String {
    let items = editor.ask("textDocument/completion", at(place));
    let line = editor.text.lines().nth(usize::try_from(place.0).unwrap()).unwrap_or_default().to_owned();
    let letters: Vec<u16> = line.encode_utf16().collect();
    let fits = |item: &&Json| {
        let range = &item["textEdit"]["range"];
        let start = usize::try_from(range["start"]["character"].as_u64().unwrap()).unwrap();
        let end = usize::try_from(range["end"]["character"].as_u64().unwrap()).unwrap();
        let typed = String::from_utf16(&letters[start..end]).unwrap().to_lowercase();
        item["label"].as_str().unwrap().to_lowercase().starts_with(&typed)
    };
    let shown = |item: &Json| {
        let detail = item["detail"].as_str().map(|detail| format!("  ({detail})")).unwrap_or_default();
        format!("{}{detail}\n", item["textEdit"]["newText"].as_str().unwrap())
    };
    items.as_array().unwrap().iter().filter(fits).map(shown).collect()
}

fn hover(editor: &mut Editor, place: (u64, u64)) -> String {
    let answer = editor.ask("textDocument/hover", at(place));
    match answer["contents"]["value"].as_str() {
        None => "nothing\n".to_owned(),
        Some(text) => {
            let head: Vec<&str> = text.lines().take(6).collect();
            format!("{} {}\n", shown(&answer["range"]), head.join("\n"))
        }
    }
}

fn places(locations: &Json) -> String {
    let all = locations.as_array().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() { "nothing\n".to_owned() } else { all.iter().map(|each| shown(&each["range"]) + "\n").collect() }
}

fn symbols(editor: &mut Editor) -> String {
    let answer = editor.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": URI } }));
    let line = |symbol: &Json| {
        let text = |key: &str| symbol[key].as_str().unwrap().to_owned();
        format!("{} {} ({})\n", shown(&symbol["range"]), text("name"), text("detail"))
    };
    answer.as_array().unwrap().iter().map(line).collect()
}

fn actions(editor: &mut Editor, text: &str, place: (u64, u64)) -> String {
    let position = at(place)["position"].clone();
    let params = json!({
        "textDocument": { "uri": URI },
        "range": { "start": position, "end": position },
        "context": { "diagnostics": [] },
    });
    let answer = editor.ask("textDocument/codeAction", params);
    let action = |action: &Json| format!("{}:\n{}", action["title"].as_str().unwrap(), changed(text, &action["edit"]));
    let all = answer.as_array().unwrap();
    if all.is_empty() { "nothing\n".to_owned() } else { all.iter().map(action).collect() }
}

/// The lines that an edit changes, afterwards.
fn changed(text: &str, edit: &Json) -> String {
    let mut edits = edit["changes"][URI].as_array().unwrap().clone();
    edits.sort_by_key(|edit| {
        let start = &edit["range"]["start"];
        std::cmp::Reverse((start["line"].as_u64(), start["character"].as_u64()))
    });
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for edit in &edits {
        let (start, end) = (&edit["range"]["start"], &edit["range"]["end"]);
        assert_eq!(start["line"], end["line"], "{edit}");
        let line = &mut lines[usize::try_from(start["line"].as_u64().unwrap()).unwrap()];
        let letters: Vec<u16> = line.encode_utf16().collect();
        let part = |from: usize, to: usize| String::from_utf16(&letters[from..to]).unwrap();
        let number = |of: &Json| usize::try_from(of["character"].as_u64().unwrap()).unwrap();
        *line = part(0, number(start)) + edit["newText"].as_str().unwrap() + &part(number(end), letters.len());
    }
    let news = lines.iter().zip(text.lines()).enumerate().filter(|(_, (new, old))| new != old);
    news.map(|(at, (new, _))| format!("{}: {new}\n", at + 1)).collect::<Vec<String>>().concat()
}
