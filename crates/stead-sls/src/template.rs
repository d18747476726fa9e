//! Jinja in an SLS file: parameters are replaced by marks, everything else is refused.

use super::codes;
use stead_core::diag::Diagnostic;
use stead_core::text::{Entry, Kind, Node, SourceId, Span};
use stead_core::value::Value;

/// Marks a parameter in text: between them stands its place in the list of uses.
const MARK: (char, char) = ('\u{e000}', '\u{e001}');

/// The most bytes that a parameter takes where it is used: what has not ended by then is not looked through to the end of the file.
const LONGEST: usize = 4096;

/// So many bytes of what is not supported are shown.
const SHOWN: usize = 200;

/// So many templates that are not supported are reported.
const MOST_WRONG: usize = 100;

/// A parameter where it is used.
#[derive(Clone, Debug)]
pub(super) struct Use {
    pub(super) name: String,
    pub(super) default: Option<Value>,
    pub(super) span: Span,
    /// As it was written.
    text: String,
}

/// The text with each parameter replaced by a mark of the same length, so that places stay what they are.
pub(super) fn mask(source: SourceId, text: &str, uses: &mut Vec<Use>, findings: &mut Vec<Diagnostic>) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    let mut wrong = 0;
    while let Some(at) = next_tag(rest) {
        let (before, tag) = rest.split_at(at);
        masked.push_str(before);
        let near = tag.get(..tag.floor_char_boundary(LONGEST)).unwrap_or_default();
        let end = near.find("}}").map_or(near.len(), |end| end + 2);
        let parameter = tag.get(2..end.saturating_sub(2)).filter(|_| tag.starts_with("{{")).and_then(parameter);
        let length = if parameter.is_some() { end } else { 2 };
        let (tag, behind) = tag.split_at(length);
        let span = Span::new(source, offset(masked.len()), offset(masked.len() + length));
        if let Some((name, default)) = parameter {
            masked.push_str(&mark(uses.len(), length));
            uses.push(Use { name, default, span, text: tag.to_owned() });
        } else {
            wrong += 1;
            if wrong > MOST_WRONG {
                return masked + tag + behind;
            }
            let message = format!("unsupported Jinja: '{}'", line_of(tag, behind));
            let help = "convert the rendered file; {{ params.get('name') }} within a value becomes a parameter";
            findings.push(Diagnostic::error(&codes::TEMPLATE, span, message).with_help(help));
            masked.push_str(tag);
        }
        rest = behind;
    }
    masked + rest
}

pub(super) fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn next_tag(text: &str) -> Option<usize> {
    let opens = text.match_indices('{').map(|(at, _)| at);
    opens.into_iter().find(|at| matches!(text.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#')))
}

/// The template as far as a message shows it.
fn line_of(tag: &str, behind: &str) -> String {
    let near = behind.get(..behind.floor_char_boundary(SHOWN)).unwrap_or_default();
    let line = near.lines().next().unwrap_or_default();
    let end = ["}}", "%}", "#}"].iter().filter_map(|end| line.find(end)).min().map_or(line.len(), |end| end + 2);
    format!("{tag}{}", line.get(..end).unwrap_or_default())
}

fn mark(index: usize, length: usize) -> String {
    let digits = index.to_string();
    let padding = length.saturating_sub(digits.len() + MARK.0.len_utf8() + MARK.1.len_utf8());
    format!("{}{digits}{}{}", MARK.0, "_".repeat(padding), MARK.1)
}

/// `params.get('name', default)`, `params.name` or `params['name']`.
fn parameter(text: &str) -> Option<(String, Option<Value>)> {
    let rest = text.trim().strip_prefix("params")?;
    if let Some(arguments) = rest.strip_prefix(".get(").and_then(|rest| rest.strip_suffix(')')) {
        let (name, rest) = quoted(arguments.trim())?;
        return match rest.trim() {
            "" => Some((name.to_owned(), None)),
            rest => Some((name.to_owned(), Some(literal(rest.strip_prefix(',')?.trim())?))),
        };
    }
    if let Some(key) = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return quoted(key.trim()).filter(|(_, rest)| rest.is_empty()).map(|(name, _)| (name.to_owned(), None));
    }
    let name = rest.strip_prefix('.')?;
    let is_name = !name.is_empty() && name.chars().all(|each| each.is_ascii_alphanumeric() || each == '_');
    is_name.then(|| (name.to_owned(), None))
}

/// Returns the text in quotes, and the rest behind it. Text with escapes is not taken.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let (inside, rest) = text.get(1..)?.split_once(quote)?;
    (!inside.contains('\\') && !inside.is_empty()).then_some((inside, rest))
}

fn literal(text: &str) -> Option<Value> {
    match text {
        "True" | "true" => Some(true.into()),
        "False" | "false" => Some(false.into()),
        "''" | "\"\"" => Some("".into()),
        _ => match text.parse::<i64>() {
            Ok(number) => Some(number.into()),
            Err(_) => quoted(text).filter(|(_, rest)| rest.is_empty()).map(|(inside, _)| inside.into()),
        },
    }
}

/// A text at its first mark: what is before, the place in the list of uses, what is behind.
pub(super) fn split(text: &str) -> Option<(&str, usize, &str)> {
    let (before, rest) = text.split_once(MARK.0)?;
    let (digits, behind) = rest.split_once(MARK.1)?;
    Some((before, digits.trim_end_matches('_').parse().ok()?, behind))
}

/// A text with the parameters as they were written.
pub(super) fn restored(text: &str, uses: &[Use]) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, at, behind)) = split(rest) {
        written.push_str(before);
        written.extend(uses.get(at).map(|used| used.text.as_str()));
        rest = behind;
    }
    written + rest
}

/// Puts the parameters back as they were written, in values and keys.
pub(super) fn restore(node: &mut Node, uses: &[Use]) {
    match &mut node.kind {
        Kind::String(text) => *text = restored(text, uses).into(),
        Kind::Array(items) => items.iter_mut().for_each(|item| restore(item, uses)),
        Kind::Object(entries) => {
            for entry in entries {
                entry.key = restored(&entry.key, uses).into();
                restore(&mut entry.value, uses);
            }
        }
        _ => {}
    }
}

/// Returns where parameters are used in a value or its keys.
pub(super) fn marked(node: &Node) -> Vec<Span> {
    match &node.kind {
        Kind::String(text) if is_marked(text) => vec![node.span],
        Kind::Array(items) => items.iter().flat_map(marked).collect(),
        Kind::Object(entries) => {
            let key = |entry: &Entry| is_marked(&entry.key).then_some(entry.key_span);
            entries.iter().flat_map(|entry| key(entry).into_iter().chain(marked(&entry.value))).collect()
        }
        _ => Vec::new(),
    }
}

/// That a parameter stands where the document can have none.
pub(super) fn misplaced(span: Span) -> Diagnostic {
    Diagnostic::error(&codes::TEMPLATE, span, "a parameter can stand only in the value of an argument")
}

/// Returns whether a parameter is used in a text.
pub(super) fn is_marked(text: &str) -> bool {
    text.contains(MARK.0)
}
