//! The order of texts.

use std::cmp::Ordering;

/// The printable characters of ASCII in the order of the invariant culture, which is that of the root of CLDR: PowerShell
/// compares with it whatever the culture of the user is.
const ORDER: &[u8] = b" _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz";

/// Compares two texts as `-lt` and its like do, with case or without. Other characters have an order that depends on the
/// release of ICU, and are refused.
pub(super) fn order(left: &str, right: &str, cased: bool) -> Result<Ordering, String> {
    let order = weights(left)?.cmp(&weights(right)?);
    // Case decides where nothing else does: small letters come first.
    let capitals = |text: &str| text.bytes().map(|byte| byte.is_ascii_uppercase()).collect::<Vec<_>>();
    Ok(if cased { order.then_with(|| capitals(left).cmp(&capitals(right))) } else { order })
}

fn weights(text: &str) -> Result<Vec<usize>, String> {
    let weight = |byte: u8| ORDER.iter().position(|known| *known == byte.to_ascii_lowercase());
    let weights: Option<_> = text.bytes().map(weight).collect();
    weights.ok_or_else(|| "the order of texts is only evaluated for printable ASCII".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_ordered_as_the_invariant_culture_has_them() {
        let sorted = |cased| {
            let mut texts = ["b", "A", "a-b", "a_b", "a1", "a", "Ab", "10", "9", "$x", "aB", ""];
            texts.sort_by(|left, right| order(left, right, cased).unwrap_or(Ordering::Equal));
            texts
        };
        assert_eq!(sorted(true), ["", "$x", "10", "9", "a", "A", "a_b", "a-b", "a1", "aB", "Ab", "b"]);
        assert_eq!(order("AB", "ab", false), Ok(Ordering::Equal));
        assert!(order("ä", "b", false).is_err() && order("a", "\t", true).is_err());
        assert!((b' '..=b'~').all(|byte| ORDER.contains(&byte.to_ascii_lowercase())));
    }
}
