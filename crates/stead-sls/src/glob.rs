//! The patterns of requisites: `*` for any text, `?` for any character.

/// Returns whether a text matches a pattern.
///
/// Guarantees: the product of both lengths bounds the work.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    if !is_pattern(pattern) {
        return pattern == text;
    }
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // Which prefixes of the text the pattern read so far matches.
    let mut reached: Vec<bool> = (0..=text.len()).map(|length| length == 0).collect();
    for wanted in pattern {
        let mut before = false;
        reached = (0..=text.len())
            .map(|length| {
                let is_reached = reached.get(length).is_some_and(|here| *here);
                let shorter = length.checked_sub(1);
                let last = shorter.and_then(|at| text.get(at));
                let from_shorter = shorter.and_then(|at| reached.get(at)).is_some_and(|here| *here);
                before = match wanted {
                    '*' => is_reached || before,
                    '?' => from_shorter,
                    _ => from_shorter && last == Some(&wanted),
                };
                before
            })
            .collect();
    }
    reached.last().is_some_and(|here| *here)
}

pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_text_and_question_marks_any_character() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("a", "", false),
            ("*", "", true),
            ("w*", "w1", true),
            ("w*", "v", false),
            ("*a*b", "xaxb", true),
            ("*a*b", "xbxa", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("?*", "x", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
