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
