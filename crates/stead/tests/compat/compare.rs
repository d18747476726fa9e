//! Compares an answer with the recorded one: by value and order of keys where it is JSON, by substance where it is an
//! error message.

use serde_json::{Map, Value as Json};
use stead_core::manifest;
use stead_core::text::{self, Limits, SourceId};

use crate::case::{Answer, Run};
use crate::{listing, processes};

/// Says in what `actual` differs from what was recorded; `None` when it agrees.
pub(crate) fn difference(run: &Run, actual: &Answer) -> Option<String> {
    let recorded = &run.answer;
    if recorded.exit != actual.exit {
        let last = actual.stderr.lines().last().unwrap_or("(nothing on stderr)");
        return Some(format!("exit code {} instead of {}: {last}", code(actual), code(recorded)));
    }
    stdout(run, &actual.stdout).or_else(|| match recorded.exit {
        Some(0) => missing_warning(&recorded.stderr, &actual.stderr),
        _ => missing_substance(&recorded.stderr, &actual.stderr),
    })
}

/// An answer that is one JSON object, corrupted in ways that must be found, each with what was done to it.
pub(crate) fn corrupted(answer: &Answer) -> impl Iterator<Item = (&'static str, Answer)> {
    let corrupt = |change: fn(Map<String, Json>) -> Map<String, Json>| {
        let mut values = json_values(&answer.stdout);
        let Some(Json::Object(members)) = values.pop().filter(|_| values.is_empty()) else { return None };
        let members = (members.len() > 1).then_some(members)?;
        let stdout = Json::Object(change(members)).to_string() + "\n";
        Some(Answer { exit: answer.exit, stdout, stderr: answer.stderr.clone() })
    };
    let reversed =
        corrupt(|members| members.into_iter().rev().collect()).map(|answer| ("with its keys reversed", answer));
    let cut =
        corrupt(|members| members.into_iter().skip(1).collect()).map(|answer| ("without its first member", answer));
    reversed.into_iter().chain(cut)
}

/// Returns whether a failed run tells what it did before, where the recorded one printed nothing. It does not when it
/// is to be strict, and must be compared in that mode.
pub(crate) fn keeps_results(recorded: &Answer, actual: &Answer) -> bool {
    let tells = || json_values(&actual.stdout).iter().any(|value| value.get("hadErrors") == Some(&Json::Bool(true)));
    recorded.exit != Some(0) && recorded.stdout.is_empty() && tells()
}

fn code(answer: &Answer) -> String {
    answer.exit.map_or_else(|| "(none)".to_owned(), |code| code.to_string())
}

/// A recorded text without its last newline was cut off when it was recorded.
fn is_cut(recorded: &str) -> bool {
    !recorded.is_empty() && !recorded.ends_with('\n')
}

fn stdout(run: &Run, actual: &str) -> Option<String> {
    let recorded = run.answer.stdout.as_str();
    let mut documents = run.args.iter().chain(&run.stdin);
    let text_of = if documents.any(|text| text.contains("utcNow(")) { timeless } else { normal_text };
    for read in [json_values, yaml_values] {
        let expected = read(recorded);
        if !expected.is_empty() && expected.iter().all(|value| value.is_object() || value.is_array()) {
            let normal = |text: &str| {
                let values = read(text).iter().map(|value| normal(value, text_of)).collect();
                processes::comparable(run, listing::comparable(run, values))
            };
            return values_difference(&normal(recorded), &normal(actual), is_cut(recorded));
        }
    }
    if listing::is_table(run) {
        return headings_difference(recorded, actual);
    }
    text_difference(recorded, actual)
}

fn headings_difference(recorded: &str, actual: &str) -> Option<String> {
    let (expected, found) = (plain_lines(recorded), plain_lines(actual));
    let (expected, found) = (listing::headings(&expected), listing::headings(&found));
    (expected != found).then(|| format!("stdout: headings {found:?} instead of {expected:?}"))
}

fn values_difference(expected: &[Json], found: &[Json], cut: bool) -> Option<String> {
    for (index, value) in expected.iter().enumerate() {
        let Some(other) = found.get(index) else {
            return Some(format!("stdout: value {} of {} is missing", index + 1, expected.len()));
        };
        if let Some(difference) = value_difference(value, other, "") {
            return Some(format!("stdout, value {}: {difference}", index + 1));
        }
    }
    (found.len() > expected.len() && !cut)
        .then(|| format!("stdout: {} values instead of {}", found.len(), expected.len()))
}

/// The JSON values that a text starts with, one after the other.
fn json_values(text: &str) -> Vec<Json> {
    serde_json::Deserializer::from_str(text).into_iter().map_while(Result::ok).collect()
}

/// The documents of a YAML text. What was cut off is left out.
fn yaml_values(text: &str) -> Vec<Json> {
    let mut documents: Vec<&str> = text.split("\n---\n").collect();
    if is_cut(text) {
        documents.pop();
    }
    let read = |document: &str| text::read(SourceId::default(), document, &Limits::default()).0;
    documents.into_iter().filter_map(read).map(|node| manifest::plain(&node)).collect()
}

/// The value with everything replaced that changes from run to run.
fn normal(value: &Json, text_of: fn(&str) -> String) -> Json {
    match value {
        Json::String(text) => Json::String(text_of(text)),
        Json::Array(items) => Json::Array(items.iter().map(|item| normal(item, text_of)).collect()),
        Json::Object(members) => Json::Object(
            members
                .iter()
                .map(|(key, value)| {
                    let value = normal(value, text_of);
                    let information = key == "executionInformation" || key == "Microsoft.DSC";
                    (key.clone(), if information { without_version(value) } else { value })
                })
                .collect(),
        ),
        other => other.clone(),
    }
}

/// The version of the program is reported with each result, and differs rightly.
fn without_version(mut information: Json) -> Json {
    if let Some(version) = information.get_mut("version") {
        *version = Json::from("${VERSION}");
    }
    information
}

fn normal_text(text: &str) -> String {
    if is_timestamp(text) {
        "${TIME}".to_owned()
    } else if is_duration(text) {
        "${DURATION}".to_owned()
    } else if is_search_path(text) {
        "${PATH}".to_owned()
    } else {
        text.to_owned()
    }
}

/// The names that the formats of dates have in them.
const NAMES: &str = "January February March April May June July August September October November December \
    Jan Feb Mar Apr Jun Jul Aug Sep Oct Nov Dec Monday Tuesday Wednesday Thursday Friday Saturday Sunday \
    Mon Tue Wed Thu Fri Sat Sun AM PM";

/// The text of a document that formats the time of its run: `#` for each number, `@` for each month and such.
fn timeless(text: &str) -> String {
    let kind = |c: char| (c.is_ascii_digit(), c.is_alphabetic());
    let mut words: Vec<String> = Vec::new();
    for character in normal_text(text).chars() {
        match words.last_mut() {
            Some(word) if word.chars().next_back().map(kind) == Some(kind(character)) => word.push(character),
            _ => words.push(character.to_string()),
        }
    }
    let masked = |word: &String| match word.chars().next() {
        Some(first) if first.is_ascii_digit() => "#".to_owned(),
        _ if NAMES.split_whitespace().any(|name| name == word) => "@".to_owned(),
        _ => word.clone(),
    };
    words.iter().map(masked).collect()
}

/// Such as `2026-11-21T01:58:16.890689816+00:00`.
fn is_timestamp(text: &str) -> bool {
    text.len() >= 20
        && text.split_once('T').is_some_and(|(date, time)| {
            let digits = |text: &str, mark: char| text.chars().all(|c| c.is_ascii_digit() || c == mark);
            date.len() == 10 && digits(date, '-') && time.get(..8).is_some_and(|time| digits(time, ':'))
        })
}

/// Such as `PT1M0.5S`.
fn is_duration(text: &str) -> bool {
    text.strip_prefix("PT").is_some_and(|rest| {
        rest.ends_with(['S', 'M', 'H'])
            && rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'S' | 'M' | 'H'))
    })
}

/// Such as `/usr/bin:/sbin:/bin`.
fn is_search_path(text: &str) -> bool {
    let folders: Vec<&str> = text.split(':').collect();
    folders.len() > 2 && folders.iter().all(|folder| folder.starts_with('/') || folder.starts_with("${"))
}

/// The first place where two values differ, and how. Objects must have the same keys in the same order.
fn value_difference(expected: &Json, actual: &Json, place: &str) -> Option<String> {
    match (expected, actual) {
        (Json::Object(left), Json::Object(right)) => {
            let missing = left.keys().find(|key| !right.contains_key(*key));
            let extra = right.keys().find(|key| !left.contains_key(*key));
            missing.map(|key| format!("{place}/{key} is missing")).or_else(|| {
                left.iter()
                    .find_map(|(key, value)| value_difference(value, right.get(key)?, &format!("{place}/{key}")))
                    .or_else(|| extra.map(|key| format!("{place}/{key} is there and should not be")))
                    .or_else(|| order_difference(left, right, place))
            })
        }
        (Json::Array(left), Json::Array(right)) if left.len() == right.len() => left
            .iter()
            .zip(right)
            .enumerate()
            .find_map(|(index, (left, right))| value_difference(left, right, &format!("{place}/{index}"))),
        (left, right) => (left != right).then(|| format!("{place} is {} instead of {}", short(right), short(left))),
    }
}

/// Where dsc lists members in an order that is another one in each run: it keeps outputs in a table without order.
const HAS_NO_ORDER: [&str; 1] = ["/outputs"];

fn order_difference(expected: &Map<String, Json>, actual: &Map<String, Json>, place: &str) -> Option<String> {
    let keys = |members: &Map<String, Json>| members.keys().cloned().collect::<Vec<_>>().join(", ");
    let (left, right) = (keys(expected), keys(actual));
    (left != right && !HAS_NO_ORDER.contains(&place))
        .then(|| format!("{place} has the keys in the order {right} instead of {left}"))
}

fn short(value: &Json) -> String {
    let text = value.to_string();
    if text.chars().count() > 200 { text.chars().take(200).chain("...".chars()).collect() } else { text }
}

/// Compares texts line by line, without colours and trailing spaces.
fn text_difference(recorded: &str, actual: &str) -> Option<String> {
    let (mut expected, mut found) = (plain_lines(recorded), plain_lines(actual));
    if is_cut(recorded) {
        expected.pop();
        found.truncate(expected.len());
    }
    let first = (0..expected.len().max(found.len())).find(|index| expected.get(*index) != found.get(*index))?;
    let line = |lines: &[String]| lines.get(first).map_or_else(|| "(nothing)".to_owned(), |line| format!("'{line}'"));
    Some(format!("stdout, line {}: {} instead of {}", first + 1, line(&found), line(&expected)))
}

fn plain_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = without_colours(text).lines().map(|line| line.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn without_colours(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}

/// Says which warning that was recorded is not given: one with the same quoted words and numbers, but for those of
/// addresses, or any when it has none.
fn missing_warning(recorded: &str, actual: &str) -> Option<String> {
    let warnings = |text: &str| -> Vec<String> {
        let warnings = text.lines().filter_map(|line| line.split_once(" WARN "));
        warnings.map(|(_, message)| message.to_owned()).collect()
    };
    let given = warnings(actual);
    warnings(recorded).into_iter().find_map(|warning| {
        let words: Vec<&str> = warning.split(' ').filter(|word| !word.contains("://")).collect();
        let wanted = substance(&words.join(" "));
        let is_given = given.iter().any(|each| wanted.iter().all(|word| each.contains(word.as_str())));
        (!is_given).then(|| format!("stderr does not warn: {warning}"))
    })
}

/// Says which quoted word or number of the last recorded error message is not in the actual messages.
fn missing_substance(recorded: &str, actual: &str) -> Option<String> {
    let whole = if is_cut(recorded) { recorded.rsplit_once('\n').map_or("", |(whole, _)| whole) } else { recorded };
    let is_error = |line: &&str| line.contains(" ERROR ") || line.starts_with("error:");
    let line = whole.lines().rfind(is_error)?;
    let message = line.split_once(" ERROR ").map_or(line, |(_, message)| message);
    if actual.trim().is_empty() {
        return Some(format!("stderr says nothing instead of: {message}"));
    }
    let absent = substance(message).into_iter().find(|word| !actual.contains(word.as_str()))?;
    Some(format!("stderr does not name {absent}: {}", actual.lines().last().unwrap_or_default()))
}

/// The quoted words and the numbers of a message, but not its examples and positions.
///
/// Positions are left out since the recorded ones refer to a text that only the recorded program has.
fn substance(message: &str) -> Vec<String> {
    let message = message.split_once(" at line ").map_or(message, |(message, _)| message);
    let message = message.split_once("(e.g.").map_or(message, |(message, _)| message);
    let mut words = Vec::new();
    let mut rest = message;
    while let Some(start) = rest.find(['\'', '"']) {
        let (before, quoted) = rest.split_at(start);
        words.extend(numbers(before));
        let quote = quoted.chars().next().unwrap_or('\'');
        let inside = quoted.get(1..).unwrap_or_default();
        match closing(inside, quote) {
            Some(end) => {
                words.push(inside.get(..end).unwrap_or_default().to_owned());
                rest = inside.get(end + 1..).unwrap_or_default();
            }
            None => rest = inside,
        }
    }
    words.extend(numbers(rest));
    words
}

/// A quote ends where no word goes on behind it.
fn closing(text: &str, quote: char) -> Option<usize> {
    text.match_indices(quote)
        .map(|(index, _)| index)
        .find(|index| !text.get(index + 1..).and_then(|rest| rest.chars().next()).is_some_and(char::is_alphanumeric))
}

fn numbers(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit())).map(str::to_owned).collect()
}
