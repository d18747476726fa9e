//! Numbers as PowerShell reads them.

/// The value of a number.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Number {
    /// An integer of a width.
    Integer {
        /// The value.
        value: i128,
        /// 8, 16, 32 or 64.
        bits: u8,
        /// True if its type has negative values.
        signed: bool,
    },
    /// `decimal`: the value is the mantissa with the point moved left by that many digits.
    Decimal {
        /// The digits.
        mantissa: i128,
        /// How many of them follow the point.
        scale: u32,
    },
    /// `double`.
    Double(f64),
    /// `bigint`, by its digits.
    Big(String),
}

const INT: (u8, bool) = (32, true);
const LONG: (u8, bool) = (64, true);
/// The largest `decimal`.
const DECIMAL_MAX: i128 = 79_228_162_514_264_337_593_543_950_335;

/// The parts of a number, as written.
#[derive(Debug)]
struct Written<'a> {
    base: u32,
    whole: &'a str,
    fraction: Option<&'a str>,
    exponent: Option<&'a str>,
    suffix: &'a str,
    multiplier: u32,
    length: usize,
}

/// The end of the number that starts there, if one does.
pub(super) fn end(text: &str, at: usize) -> Option<usize> {
    split(text.get(at..)?).map(|written| at + written.length)
}

fn run(text: &str, belongs: fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

fn split(text: &str) -> Option<Written<'_>> {
    let (base, body) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &text[2..]),
        [b'0', b'b' | b'B', b'0' | b'1', ..] => (2, &text[2..]),
        _ => (10, text),
    };
    let digits = match base {
        16 => |c: char| c.is_ascii_hexdigit(),
        2 => |c: char| matches!(c, '0' | '1'),
        _ => |c: char| c.is_ascii_digit(),
    };
    let (whole, mut rest) = run(body, digits);
    let (mut fraction, mut exponent) = (None, None);
    if base == 10 {
        (fraction, rest) = point(rest);
        (exponent, rest) = power(rest);
    }
    if whole.is_empty() && fraction.is_none_or(str::is_empty) {
        return None;
    }
    let (suffix, rest) = suffix(rest);
    let (multiplier, rest) = multiplier(rest);
    Some(Written { base, whole, fraction, exponent, suffix, multiplier, length: text.len() - rest.len() })
}

/// The digits behind a point; `1..3` and `1.a` hold none.
fn point(text: &str) -> (Option<&str>, &str) {
    match text.strip_prefix('.') {
        Some(after) if !after.starts_with('.') => {
            let (digits, rest) = run(after, |c| c.is_ascii_digit());
            (Some(digits), rest)
        }
        _ => (None, text),
    }
}

fn power(text: &str) -> (Option<&str>, &str) {
    let Some(after) = text.strip_prefix(['e', 'E']) else { return (None, text) };
    let signless = after.strip_prefix(['+', '-']).unwrap_or(after);
    let (digits, rest) = run(signless, |c| c.is_ascii_digit());
    if digits.is_empty() {
        return (None, text);
    }
    (after.get(..after.len() - rest.len()), rest)
}

fn suffix(text: &str) -> (&str, &str) {
    let lower = |at: usize| text.as_bytes().get(at).map_or(0, u8::to_ascii_lowercase);
    let length = match (lower(0), lower(1)) {
        (b'u', b'l' | b's' | b'y') => 2,
        (b'u' | b'l' | b's' | b'y' | b'n' | b'd', _) => 1,
        _ => 0,
    };
    text.split_at(length)
}

/// The power of 1024 that `kb` to `pb` stand for.
fn multiplier(text: &str) -> (u32, &str) {
    let [unit, b'b' | b'B', ..] = text.as_bytes() else { return (0, text) };
    let power = match unit.to_ascii_lowercase() {
        b'k' => 1,
        b'm' => 2,
        b'g' => 3,
        b't' => 4,
        b'p' => 5,
        _ => return (0, text),
    };
    (power, &text[2..])
}

impl Number {
    /// The value of the text of a [`Number`](super::Kind::Number); `None` when it does not fit the type that it asks for.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let written = split(text).filter(|written| written.length == text.len())?;
        let suffix = written.suffix.to_ascii_lowercase();
        if suffix == "d" {
            return written.decimal();
        }
        if written.fraction.is_some() || written.exponent.is_some() {
            return written.real(&suffix);
        }
        written.integer(&suffix)
    }
}

impl Written<'_> {
    fn factor(&self) -> i128 {
        1_i128 << (10 * self.multiplier)
    }

    fn double(&self) -> Option<f64> {
        let text = format!("{}.{}e{}", self.whole, self.fraction.unwrap_or("0"), self.exponent.unwrap_or("0"));
        #[expect(clippy::cast_precision_loss, reason = "powers of two up to 2^50 are exact")]
        text.replace(".e", ".0e").parse::<f64>().ok().map(|value| value * self.factor() as f64)
    }

    fn real(&self, suffix: &str) -> Option<Number> {
        let value = self.double()?;
        let Some(ty) = integer_type(suffix) else { return (suffix.is_empty()).then_some(Number::Double(value)) };
        #[expect(clippy::cast_possible_truncation, reason = "what is out of range is refused by its type")]
        fit(value.round_ties_even() as i128, ty)
    }

    fn decimal(&self) -> Option<Number> {
        let fraction = self.fraction.unwrap_or_default();
        let exponent: i32 = self.exponent.map_or(Some(0), |text| text.parse().ok())?;
        let mut mantissa = i128::from_str_radix(&format!("0{}{fraction}", self.whole), self.base).ok()?;
        let mut scale = i32::try_from(fraction.len()).ok()? - exponent;
        while scale < 0 {
            mantissa = mantissa.checked_mul(10)?;
            scale += 1;
        }
        let mantissa = mantissa.checked_mul(self.factor()).filter(|value| *value <= DECIMAL_MAX)?;
        Some(Number::Decimal { mantissa, scale: u32::try_from(scale).ok()? })
    }

    fn integer(&self, suffix: &str) -> Option<Number> {
        let Ok(value) = i128::from_str_radix(self.whole, self.base) else { return self.huge(suffix) };
        let Some(value) = value.checked_mul(self.factor()) else { return self.huge(suffix) };
        match integer_type(suffix) {
            Some(ty) => fit(self.wrapped(value, ty), ty),
            None if suffix == "n" => Some(Number::Big(value.to_string())),
            None if suffix == "u" => fit(value, (32, false)).or_else(|| fit(value, (64, false))),
            None => self.narrowest(value),
        }
    }

    /// A hexadecimal or binary number with all digits of its type stands for its bits: `0xFFFFFFFF` is -1.
    fn wrapped(&self, value: i128, (bits, signed): (u8, bool)) -> i128 {
        let digits = self.whole.len() * if self.base == 16 { 4 } else { 1 };
        let full = self.base != 10 && signed && self.multiplier == 0 && digits == usize::from(bits);
        if full && value >> (bits - 1) == 1 { value - (1 << bits) } else { value }
    }

    fn narrowest(&self, value: i128) -> Option<Number> {
        let integer = fit(self.wrapped(value, INT), INT).or_else(|| fit(self.wrapped(value, LONG), LONG));
        integer.or_else(|| match self.base {
            10 if value <= DECIMAL_MAX => Some(Number::Decimal { mantissa: value, scale: 0 }),
            10 => self.double().map(Number::Double),
            _ => Some(Number::Big(value.to_string())),
        })
    }

    fn huge(&self, suffix: &str) -> Option<Number> {
        match (self.base, suffix, self.multiplier) {
            (10, "n", 0) => Some(Number::Big(self.whole.to_owned())),
            (10, "", _) => self.double().map(Number::Double),
            _ => None,
        }
    }
}

fn integer_type(suffix: &str) -> Option<(u8, bool)> {
    Some(match suffix {
        "l" => LONG,
        "ul" => (64, false),
        "s" => (16, true),
        "us" => (16, false),
        "y" => (8, true),
        "uy" => (8, false),
        _ => return None,
    })
}

fn fit(value: i128, (bits, signed): (u8, bool)) -> Option<Number> {
    let (low, high) = if signed { (-(1_i128 << (bits - 1)), 1_i128 << (bits - 1)) } else { (0, 1_i128 << bits) };
    (low..high).contains(&value).then_some(Number::Integer { value, bits, signed })
}
