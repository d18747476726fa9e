//! Numbers as texts: what a JSON number means exactly, and what of it a type can hold.

/// The greatest integer up to which every integer is a double.
const EXACT: i128 = 1 << 53;

/// A decimal number: `digits` times ten to the power of `exponent`.
struct Exact<'a> {
    negative: bool,
    digits: String,
    exponent: i64,
    text: &'a str,
}

/// Reads a text by the grammar of JSON numbers, which knows neither spaces nor signs in front nor hexadecimal.
fn exact(text: &str) -> Option<Exact<'_>> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    if !digits(whole) || !digits(fraction) || leading_zero {
        return None;
    }
    let exponent: i64 = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
    let fraction = fraction.trim_end_matches('0');
    let all = format!("{whole}{fraction}");
    let all = all.trim_start_matches('0');
    let short = all.trim_end_matches('0');
    let dropped = all.len() - short.len();
    let exponent =
        exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(i64::try_from(dropped).ok()?)?;
    Some(Exact { negative: text.starts_with('-') && !short.is_empty(), digits: short.to_owned(), exponent, text })
}

impl Exact<'_> {
    /// Its digits without a point, when it has no fraction and they are at most so many.
    fn integer(&self, most: usize) -> Option<String> {
        if self.digits.is_empty() {
            return Some("0".to_owned());
        }
        let zeros = usize::try_from(self.exponent).ok().filter(|zeros| self.digits.len() + zeros <= most)?;
        Some(format!("{}{}{}", if self.negative { "-" } else { "" }, self.digits, "0".repeat(zeros)))
    }
}

/// Returns whether a text is a JSON number.
pub(super) fn is_number(text: &str) -> bool {
    exact(text).is_some()
}

/// The integer that a number is, in plain digits. `1.0` and `1e3` are integers as far as doubles are exact.
pub(super) fn integer(text: &str) -> Option<String> {
    let number = exact(text)?;
    if !text.contains(['.', 'e', 'E']) {
        return number.integer(usize::MAX);
    }
    let plain = number.integer(17)?;
    plain.parse::<i128>().ok().filter(|value| value.abs() <= EXACT).map(|_| plain)
}

/// The number as `[decimal]` holds it: 96 bits and up to 28 digits behind the point. `None` when digits would be lost.
pub(super) fn decimal(text: &str) -> Option<String> {
    let number = exact(text)?;
    if number.exponent < -28 {
        return None;
    }
    let zeros = usize::try_from(number.exponent.max(0)).ok().filter(|zeros| *zeros <= 29)?;
    let coefficient = format!("0{}{}", number.digits, "0".repeat(zeros));
    let fits = coefficient.parse::<u128>().is_ok_and(|value| value < 1 << 96);
    fits.then(|| number.text.to_owned())
}

/// The double nearest to a number, unless it is beyond all of them.
pub(super) fn double(text: &str) -> Option<f64> {
    exact(text)?;
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Returns whether the shortest text of the nearest double means the same number.
pub(super) fn is_double(text: &str) -> bool {
    let same = |number: &Exact<'_>, value: f64| {
        let shortest = format!("{value:e}");
        exact(&shortest).is_some_and(|other| (&other.digits, other.exponent) == (&number.digits, number.exponent))
    };
    exact(text).zip(double(text)).is_some_and(|(number, value)| same(&number, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_exact_or_none() {
        for (text, found) in [
            ("9007199254740993", Some("9007199254740993")),
            ("1.0", Some("1")),
            ("-1e3", Some("-1000")),
            ("-0", Some("0")),
            ("9007199254740993.0", None),
            ("1.5", None),
            ("1e30", None),
            ("01", None),
            (" 1", None),
            ("+1", None),
            ("0x10", None),
            ("1e99999999999999999999", None),
        ] {
            assert_eq!(integer(text).as_deref(), found, "{text}");
        }
    }

    #[test]
    fn decimals_lose_no_digit() {
        assert!(
            decimal("0.1234567890123456789012345678").is_some() && decimal("79228162514264337593543950335").is_some()
        );
        assert!(decimal("79228162514264337593543950336").is_none() && decimal("1e-29").is_none());
        assert!(is_double("0.1") && is_double("1e400").eq(&false) && !is_double("0.1234567890123456789012345678"));
    }
}
