//! Corrections of texts that are refused.

/// A text that may be accepted in place of another one.
pub(super) struct Correction {
    pub(super) text: String,
    /// Advice, without the text where that may hold a password.
    pub(super) help: String,
}

/// The texts that may have been meant by one that is refused, of which the first one that is accepted is.
pub(super) fn of(text: &str) -> Vec<Correction> {
    let mut found = Vec::new();
    let mut write = |text: String| found.push(Correction { help: format!("write \"{text}\""), text });
    match text.len() {
        64 => write(format!("sha256:{text}")),
        128 => write(format!("sha512:{text}")),
        _ => {}
    }
    if let Some(rest) = text.strip_prefix('%').filter(|rest| is_word(rest)) {
        write(rest.to_owned());
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|inner| is_word(inner)) {
        write(inner.to_owned());
    }
    if text.contains(' ') {
        let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
        found.push(Correction {
            text: parts.collect::<Vec<_>>().join(","),
            help: "leave the spaces out, with one comma between two".to_owned(),
        });
    }
    found
}

/// Advice about a text that names several things, or one of another kind.
pub(super) fn several(property: &str, text: &str, has: &dyn Fn(&str) -> bool) -> Option<String> {
    let is_package = property == "name" && has("version") && has("hold");
    match text {
        _ if !is_package => None,
        _ if text.contains('*') => Some("list the packages in 'names'".to_owned()),
        _ if text.rsplit_once('.').is_some_and(|(_, end)| matches!(end, "deb" | "rpm")) => Some(
            "add the repository that has the package, with Stead/AptRepository where that is one of apt".to_owned(),
        ),
        _ => None,
    }
}

/// Advice about a text that holds the values of two properties.
pub(super) fn apart(
    property: &str,
    text: &str,
    has: &dyn Fn(&str) -> bool,
    accepts: &dyn Fn(&str) -> bool,
) -> Option<String> {
    const PAIRS: [(&str, char, &str); 4] =
        [("owner", ':', "group"), ("owner", '.', "group"), ("name", '=', "version"), ("name", '@', "version")];
    PAIRS.into_iter().find_map(|(first, between, second)| {
        let (one, other) = text.split_once(between)?;
        let is_both = property == first && has(second) && is_word(one) && is_word(other) && accepts(one);
        is_both.then(|| format!("write `{first}: {one}` and `{second}: {other}`"))
    })
}

/// Returns whether a text is a word that no password would be part of.
fn is_word(text: &str) -> bool {
    let is_part = |each: char| each.is_alphanumeric() || matches!(each, '_' | '-' | '.' | '+' | ' ' | '/');
    !text.is_empty() && text.chars().all(is_part)
}
