//! The forms that secrets have in text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// The programs that take a password as an argument.
pub(crate) const MYSQL: [&str; 7] =
    ["mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump", "mariadb-admin"];

/// The forms that secrets have in text, each with the secret as its first group or as all of it.
pub(crate) static FORMS: LazyLock<[(&str, Regex); 6]> = LazyLock::new(|| {
    let mysql = MYSQL.join("|");
    [
        // In prose no line ends behind it.
        ("a private key", pattern(r"(-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----)\s*?(?:\n|\\n)")),
        ("an AWS access key", pattern(r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b")),
        (
            "an access token",
            pattern(r"\b(?:gh[opsur]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,})"),
        ),
        ("the password in a URL", pattern(r#"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@:'"]*:([^\s/?#@'"]+)@"#)),
        (
            "the token in a URL",
            pattern(
                r#"(?i)[?&;](?:[a-z0-9_.-]*(?:token|secret|signature|passw(?:or)?d|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)|sig|auth|session(?:_id)?|pass|pwd|jwt)=([^\s&;#'"<>]+)"#,
            ),
        ),
        ("a MySQL password", pattern(&format!(r#"\b(?:{mysql})\s(?:[^|;&\n]*\s)?(?:-p|--password=)['"]?([^\s'"]+)"#))),
    ]
});

/// The default of a secret parameter in one line with its type, as in JSON that is one line: also where the text has
/// mistakes for which it cannot be read.
static DEFAULTS: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    let default = r#"\bdefaultValue["']?\s*:\s*("(?:[^"\\]|\\.)*"|'[^']*'|\{[^{}]*\}|[^\s,{}"'][^,{}]*)"#;
    let secure = r"\bsecure(?:String|Object)\b";
    [format!("(?i){secure}[^{{}}]*{default}"), format!("(?i){default}[^{{}}]*{secure}")].map(|form| pattern(&form))
});

/// A text in which each letter of what has the form of a secret is a star; no place in it moves.
///
/// # Examples
/// ```
/// use stead_core::diag::covered;
///
/// assert_eq!(covered("https://ada:correct@h/?token=horse&port=1"), "https://ada:*******@h/?token=*****&port=1");
/// ```
pub fn covered(text: &str) -> Cow<'_, str> {
    let mut covered = Cow::Borrowed(text);
    let forms = FORMS.iter().map(|(_, form)| form).chain(DEFAULTS.iter());
    for range in forms.flat_map(|form| matches(form, text)) {
        covered.to_mut().replace_range(range.clone(), &"*".repeat(range.len()));
    }
    covered
}

/// Where the secrets of a form are in a text.
pub(crate) fn matches(form: &Regex, text: &str) -> impl Iterator<Item = Range<usize>> {
    form.captures_iter(text)
        .filter_map(|captures| captures.get(1).or_else(|| captures.get(0)))
        .filter(|found| is_value(found.as_str()))
        .map(|found| found.range())
}

/// Returns whether a text may be a secret: not a variable, and not a word that stands for one, such as `PASSWORD` or `<token>`.
pub(crate) fn is_value(text: &str) -> bool {
    let is_example = text.ends_with("EXAMPLE");
    let is_name = text.chars().all(|c| c.is_ascii_uppercase() || c == '_') && !text.starts_with("-----");
    !is_example && !is_name && !text.starts_with(['$', '<', '{', '[', '%', '*', '`'])
}

/// A pattern that is written out.
#[expect(clippy::expect_used, reason = "each pattern is written out, and compiled by every test of advice")]
pub(crate) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern that is written out")
}
