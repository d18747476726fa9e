//! Operators.

use super::TokenKind;
use super::chars::is_dash;

/// How tightly an operator binds its operands, the loosest first. `,` binds tighter than all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    /// `-and`, `-or`, `-xor`
    Logical,
    /// `-band`, `-bor`, `-bxor`
    Bitwise,
    /// `-eq`, `-like`, `-replace`, `-is`, `-shl` and the like.
    Comparison,
    /// `??`
    Coalesce,
    /// `+` and `-`, which are [`TokenKind::Sign`].
    Sum,
    /// `*`, `/`, `%`
    Product,
    /// `-f`
    Format,
    /// `..`
    Range,
}

/// Comparisons that also exist with the prefixes `i` and `c`.
const CASED: &[&str] = &[
    "eq",
    "ne",
    "gt",
    "ge",
    "lt",
    "le",
    "like",
    "notlike",
    "match",
    "notmatch",
    "replace",
    "contains",
    "notcontains",
    "in",
    "notin",
];

/// The operator at the start of a text, and its length.
pub(super) fn scan(text: &str) -> Option<(TokenKind, usize)> {
    let first = text.chars().next()?;
    if is_dash(first) {
        return dash(text, first.len_utf8());
    }
    let bytes = text.as_bytes();
    let next = bytes.get(1).copied().unwrap_or(0);
    let third = bytes.get(2).copied().unwrap_or(0);
    Some(match (first, next) {
        ('=', _) => (TokenKind::Assign, 1),
        ('+' | '*' | '/' | '%', b'=') => (TokenKind::Assign, 2),
        ('+', b'+') => (TokenKind::Step, 2),
        ('+', _) => (TokenKind::Sign, 1),
        ('*' | '/' | '%', _) => (TokenKind::Binary(Level::Product), 1),
        ('!', _) => (TokenKind::Not, 1),
        ('.', b'.') => (TokenKind::Binary(Level::Range), 2),
        ('.', _) => (TokenKind::Dot, 1),
        (':', b':') => (TokenKind::ColonColon, 2),
        (':', _) => (TokenKind::Colon, 1),
        ('?', b'?') if third == b'=' => (TokenKind::Assign, 3),
        ('?', b'?') => (TokenKind::Binary(Level::Coalesce), 2),
        ('?', b'.') => (TokenKind::QuestionDot, 2),
        ('?', b'[') => (TokenKind::QuestionBracket, 2),
        ('?', _) => (TokenKind::Question, 1),
        ('[', _) => (TokenKind::BracketOpen, 1),
        (']', _) => (TokenKind::BracketClose, 1),
        _ => return None,
    })
}

/// Reads a token that starts with a dash: `-`, `--`, `-=`, or an operator that is a word. `None` when it is another
/// word.
fn dash(text: &str, width: usize) -> Option<(TokenKind, usize)> {
    let rest = text.get(width..).unwrap_or_default();
    let next = rest.chars().next().unwrap_or('\0');
    if is_dash(next) {
        return Some((TokenKind::Step, width + next.len_utf8()));
    }
    if next == '=' {
        return Some((TokenKind::Assign, width + 1));
    }
    let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    if length == 0 && !matches!(next, '_' | '?') {
        return Some((TokenKind::Sign, width));
    }
    let word = rest.get(..length).filter(|word| word.len() <= "inotcontains".len())?;
    Some((named(&word.to_ascii_lowercase())?, width + length))
}

/// The operator of that name, in lower case and without its dash.
fn named(word: &str) -> Option<TokenKind> {
    let bare = word.strip_prefix(['i', 'c']).unwrap_or(word);
    let level = match word {
        "not" | "bnot" => return Some(TokenKind::Not),
        "split" | "isplit" | "csplit" | "join" => return Some(TokenKind::SplitJoin),
        "and" | "or" | "xor" => Level::Logical,
        "band" | "bor" | "bxor" => Level::Bitwise,
        "is" | "isnot" | "as" | "shl" | "shr" => Level::Comparison,
        "f" => Level::Format,
        _ if CASED.contains(&word) || CASED.contains(&bare) => Level::Comparison,
        _ => return None,
    };
    Some(TokenKind::Binary(level))
}
