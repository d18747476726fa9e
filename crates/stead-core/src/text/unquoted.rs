//! Expressions that stand in a document without quotes, which YAML takes for lists.

use super::{Span, codes};
use crate::diag::Diagnostic;

/// The finding about an expression without quotes, which `text` is.
pub(super) fn unquoted(text: &str, span: Span) -> Diagnostic {
    let message = "an expression must be in quotes: YAML reads '[' as the start of a list";
    let finding = Diagnostic::error(&codes::UNQUOTED, span, message);
    if text.contains(['\n', '\r']) {
        return finding.with_help("put it on one line and in double quotes");
    }
    let quoted =
        if text.contains(['"', '\\']) { format!("'{}'", text.replace('\'', "''")) } else { format!("\"{text}\"") };
    finding.with_help(format!("write {quoted}")).with_fix(span, quoted)
}

/// The text between double braces, the inner of which are the key `key`, and the text behind them in their line.
fn in_braces(text: &str, key: Span) -> Option<(&str, &str)> {
    let (start, end) = (key.start as usize, key.end as usize);
    let inner = text.get(start..end)?.strip_prefix('{')?.strip_suffix('}')?.trim();
    let behind =
        text.get(end..)?.strip_prefix('}').filter(|_| text.get(..start).is_some_and(|text| text.ends_with('{')))?;
    Some((inner, behind.lines().next().unwrap_or_default()))
}

/// Returns whether a key is what stands between double braces, as in `{{ NAME }}`.
pub(super) fn is_placeholder(text: &str, key: Span) -> bool {
    in_braces(text, key).is_some()
}

/// The finding about `{{ NAME }}` without quotes. `None` where more text follows: that is a fault of its own.
pub(super) fn placeholder(text: &str, key: Span) -> Option<Diagnostic> {
    let (inner, rest) = in_braces(text, key)?;
    let is_whole =
        rest.trim_start().is_empty() || rest.starts_with([',', '}', ']']) || rest.trim_start().starts_with('#');
    let is_name = !inner.is_empty() && inner.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    let name = if is_name { inner } else { "NAME" };
    let span = Span { start: key.start - 1, end: key.end + 1, ..key };
    let finding = Diagnostic::error(&codes::SYNTAX, span, PLACEHOLDER);
    is_whole.then(|| finding.with_help(format!("write \"[parameters('{name}')]\", or \"[variables('{name}')]\"")))
}

/// The message about braces that are meant as a placeholder.
pub(super) const PLACEHOLDER: &str = "'{{' starts an object in YAML; it is not a placeholder";

/// Returns where an expression ends that `text` starts with, behind its last bracket. It is one if it is a call: a
/// name and a parenthesis, which no list of words starts with.
pub(super) fn expression_end(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let name = inner.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))?;
    if name == 0 || !inner.get(name..)?.starts_with('(') {
        return None;
    }
    let mut depth = 0_usize;
    let mut quoted = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\'' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth = depth.checked_sub(1)?,
            // Between the elements of a list, not between the arguments of a call.
            b',' if depth == 1 => return None,
            _ => {}
        }
        if depth == 0 {
            return (byte == b']').then_some(at + 1);
        }
    }
    None
}

/// A line of keys and texts without quotes, without the comment behind it.
pub(super) fn without_comment(line: &str) -> &str {
    let comment = [" #", "\t#"].iter().filter_map(|begin| line.find(begin)).min();
    line.get(..comment.unwrap_or(line.len())).unwrap_or_default().trim_end()
}
