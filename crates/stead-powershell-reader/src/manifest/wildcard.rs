//! Patterns with `*`, `?` and `[a-z]`.

/// Returns whether a text fits a pattern.
pub(crate) fn matches(pattern: &str, text: &str, cased: bool) -> bool {
    let fold = |text: &str| if cased { text.to_owned() } else { text.to_lowercase() };
    let pattern: Vec<char> = fold(pattern).chars().collect();
    let text: Vec<char> = fold(text).chars().collect();
    let (mut at, mut from) = (0, 0);
    // Where the last star stands, and up to where it takes.
    let mut star: Option<(usize, usize)> = None;
    while let Some(c) = text.get(at) {
        match single(pattern.get(from..).unwrap_or_default(), *c) {
            _ if pattern.get(from) == Some(&'*') => {
                star = Some((from, at));
                from += 1;
            }
            Some(width) => {
                from += width;
                at += 1;
            }
            None => {
                let Some((behind, taken)) = star else { return false };
                star = Some((behind, taken + 1));
                (from, at) = (behind + 1, taken + 1);
            }
        }
    }
    pattern.get(from..).unwrap_or_default().iter().all(|c| *c == '*')
}

/// Returns whether a text has a character with a meaning in patterns.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Returns the number of characters of a pattern that the character takes, if it fits.
fn single(pattern: &[char], c: char) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['`', escaped, ..] => (*escaped == c).then_some(2),
        ['[', rest @ ..] => {
            let end = rest.iter().skip(1).position(|c| *c == ']')? + 1;
            let set = rest.get(..end)?;
            let within = |at: usize| match set.get(at..) {
                Some([low, '-', high, ..]) => (*low..=*high).contains(&c),
                Some([one, ..]) => *one == c,
                _ => false,
            };
            (0..set.len()).any(within).then_some(end + 2)
        }
        [plain, ..] => (*plain == c).then_some(1),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_texts() {
        for (pattern, text) in [("a*c", "ABBC"), ("*", ""), ("w?b[a-z]ite", "WebSite"), ("*b*b", "abcbab")] {
            assert!(matches(pattern, text, false), "{pattern} {text}");
        }
        for (pattern, text) in [("a*c", "abcd"), ("?", ""), ("[a-c]", "d"), ("a", "A")] {
            assert!(!matches(pattern, text, true), "{pattern} {text}");
        }
    }
}
