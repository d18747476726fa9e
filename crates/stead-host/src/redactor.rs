//! Finding secrets in texts, in the forms in which programs write them, and covering them.
//!
//! Secrets that were changed in another way are not found: reversed, split, compressed, encrypted or hashed. Short
//! secrets of other instances are not looked for: see [`Redactor::of_session`].

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::borrow::Cow;
use std::fmt;

use hashbrown::HashMap;
use serde_json::Value as Json;
use stead_core::value::{REDACTED, Sensitive, Value};

/// Shorter secrets are covered only where they are the whole text, since they occur in too much that is not secret.
const SHORTEST_WITHIN: usize = 4;

/// A line of a longer secret is covered on its own from this length on, since programs report line by line.
const SHORTEST_LINE: usize = 8;

/// The characters that URI encoders leave as they are.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The characters that encoders of whole addresses leave as they are, which keep what separates their parts.
const ADDRESS: &AsciiSet = &UNRESERVED
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// Where every instance is covered, a part of a secret counts from this length on.
const SHORTEST_IN_SESSION: usize = 8;

/// Of longer parts of the secrets of a session only the forms of plain text and JSON are looked for: each other one takes
/// as much memory again.
const LONGEST_ENCODED: usize = 4096;

/// Secrets in every form in which they are looked for.
///
/// Adding one costs time and memory for its forms alone, so that a vault which grows while a run goes on is cheap. Looking
/// costs one bit for each byte of the text, and more only where a secret may begin.
#[derive(Clone, Default)]
pub struct Redactor {
    reach: Reach,
    starts: Starts,
    /// Looked for within any text, by their first bytes, so that a text is gone through once for all of them.
    within: HashMap<[u8; START], Vec<Sensitive<String>>>,
    /// Looked for as whole texts.
    whole: Vec<Sensitive<String>>,
}

/// Whose texts are covered.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Reach {
    /// Those of the one call that was given the secrets.
    #[default]
    Call,
    /// Those of all calls.
    Session,
}

/// The least number of bytes of what is looked for within texts.
const START: usize = SHORTEST_WITHIN;

/// How many bits the hash of a start has.
const HASH_BITS: u32 = 16;

/// The starts of what is looked for, a bit for the hash of each, so that hardly another start is looked up.
#[derive(Clone, Default)]
struct Starts(Vec<u64>);

impl Starts {
    fn add(&mut self, start: [u8; START]) {
        self.0.resize(1 << HASH_BITS >> 6, 0);
        let (word, bit) = Self::place(start);
        if let Some(word) = self.0.get_mut(word) {
            *word |= bit;
        }
    }

    fn may_have(&self, start: [u8; START]) -> bool {
        let (word, bit) = Self::place(start);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    /// The hash is the upper bits of a product with the golden ratio, which spreads texts that differ in one letter.
    fn place(start: [u8; START]) -> (usize, u64) {
        let hash = u32::from_le_bytes(start).wrapping_mul(0x9E37_79B1) >> (u32::BITS - HASH_BITS);
        ((hash >> 6) as usize, 1 << (hash & 63))
    }
}

impl Redactor {
    /// For the secrets of a session, which are covered in what is said of any instance.
    ///
    /// A text of fewer than eight characters is not looked for, neither a secret nor a line of one: it would cover
    /// words in texts that have nothing to do with it.
    pub fn of_session() -> Self {
        Self { reach: Reach::Session, ..Self::default() }
    }

    /// Adds every text and number in a value.
    pub fn add(&mut self, plain: &Value) {
        match plain {
            Value::String(text) => self.add_text(text),
            Value::Number(number) => {
                let text = number.to_string();
                // A short number is everywhere.
                if text.len() >= SHORTEST_WITHIN {
                    self.add_text(&text);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(members) => members.values().for_each(|value| self.add(value)),
            Value::Null | Value::Bool(_) | Value::Sealed(_) => {}
        }
    }

    /// Returns whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.within.is_empty() && self.whole.is_empty()
    }

    /// Returns whether the text is one of the secrets.
    pub fn has(&self, text: &str) -> bool {
        self.whole.iter().any(|secret| secret.expose() == text)
    }

    /// Returns whether a text has one of the secrets in it, however short that is.
    pub fn occurs_in(&self, text: &str) -> bool {
        self.whole.iter().any(|secret| text.contains(secret.expose())) || !self.places(text).is_empty()
    }

    /// The text with every secret in it covered.
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.has(text) {
            return Cow::Owned(REDACTED.to_owned());
        }
        match &*self.places(text) {
            [] => Cow::Borrowed(text),
            places => Cow::Owned(cover(text, places)),
        }
    }

    /// JSON with every secret in its texts and numbers covered. The names of members stay.
    pub fn covered(&self, json: Json) -> Json {
        match json {
            Json::String(text) => Json::String(self.scrub(&text).into_owned()),
            Json::Number(number) => match self.scrub(&number.to_string()) {
                Cow::Borrowed(_) => Json::Number(number),
                Cow::Owned(covered) => Json::String(covered),
            },
            Json::Array(items) => items.into_iter().map(|item| self.covered(item)).collect(),
            Json::Object(members) => members.into_iter().map(|(name, value)| (name, self.covered(value))).collect(),
            Json::Null | Json::Bool(_) => json,
        }
    }

    /// Where the text has secrets, from the first byte to the one behind the last, in order; they may overlap.
    fn places(&self, text: &str) -> Vec<(usize, usize)> {
        if self.within.is_empty() {
            return Vec::new();
        }
        let starts = text.as_bytes().windows(START).enumerate();
        let starts = starts.filter_map(|(at, start)| Some((at, *start.first_chunk::<START>()?)));
        let known = starts.filter(|(_, start)| self.starts.may_have(*start));
        let known = known.filter_map(|(at, start)| Some((at, self.within.get(&start)?)));
        let longest = known.filter_map(|(at, secrets)| {
            let rest = text.get(at..)?;
            let lengths = secrets.iter().map(Sensitive::expose).filter(|secret| rest.starts_with(secret.as_str()));
            Some((at, at + lengths.map(String::len).max()?))
        });
        longest.collect()
    }

    fn add_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let shortest = match self.reach {
            Reach::Call => {
                self.whole.push(Sensitive::new(text.to_owned()));
                SHORTEST_WITHIN
            }
            Reach::Session => SHORTEST_IN_SESSION,
        };
        let lines = text.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST_LINE);
        let trimmed = Some(text.trim()).filter(|trimmed| trimmed.chars().count() >= shortest);
        for part in trimmed.into_iter().chain(lines) {
            let forms = match self.reach {
                Reach::Session if part.len() > LONGEST_ENCODED => vec![part.to_owned(), json_escaped(part)],
                _ => forms(part),
            };
            for form in forms {
                self.add_form(form);
            }
        }
    }
}

impl Redactor {
    fn add_form(&mut self, form: String) {
        let Some(start) = form.as_bytes().first_chunk::<START>().copied() else { return };
        self.starts.add(start);
        let known = self.within.entry(start).or_default();
        if !known.iter().any(|each| *each.expose() == form) {
            known.push(Sensitive::new(form));
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

/// The text as it is, in capitals and small letters, and as it looks inside JSON, XML, shells, addresses, base64 and hexadecimal.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned(), json_escaped(text), ascii_escaped(text)];
    for set in [NON_ALPHANUMERIC, UNRESERVED, ADDRESS] {
        let encoded = utf8_percent_encode(text, set).to_string();
        let lower = lower_hex(&encoded);
        // Forms of the web write a space as a plus sign.
        forms.extend([encoded.replace("%20", "+"), lower.replace("%20", "+"), encoded, lower]);
    }
    forms.extend([text.to_uppercase(), text.to_lowercase()]);
    forms.extend([STANDARD_NO_PAD.encode(text), URL_SAFE_NO_PAD.encode(text)]);
    forms.extend((0..3).flat_map(|offset| base64_core(text.as_bytes(), offset)));
    // What PowerShell takes as an encoded command, and how it writes objects and secure strings.
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    forms.extend([text.as_bytes(), &wide].into_iter().flat_map(hexadecimal));
    forms.extend([STANDARD_NO_PAD.encode(&wide), URL_SAFE_NO_PAD.encode(&wide)]);
    forms.extend((0..3).flat_map(|offset| base64_core(&wide, offset)));
    forms.extend([xml_escaped(text), cli_xml(text)]);
    // Within the quotes of shells, of which each writes a quote in another way, and without quotes.
    forms.extend(["'\\''", "'\"'\"'", "''"].map(|quote| text.replace('\'', quote)));
    forms.push(shell_escaped(text));
    forms
}

/// Bytes in hexadecimal, as `BitConverter` of .NET writes them too: with a dash between two.
fn hexadecimal(bytes: &[u8]) -> [String; 4] {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    let byte = |byte: &u8| String::from_iter([digit(byte >> 4), digit(byte & 15)]);
    let pairs: Vec<String> = bytes.iter().map(byte).collect();
    let (plain, dashed) = (pairs.concat(), pairs.join("-"));
    [plain.to_uppercase(), plain, dashed.to_uppercase(), dashed]
}

/// The text as `printf %q` of bash writes it.
fn shell_escaped(text: &str) -> String {
    let is_special = |letter: char| " !\"$&'()*,;<>?[\\]^`{|}".contains(letter);
    text.chars().flat_map(|letter| is_special(letter).then_some('\\').into_iter().chain([letter])).collect()
}

/// The text as it looks inside of XML.
fn xml_escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&apos;")
}

/// The text as PowerShell writes it inside of XML: each unit that XML has no sign for, and what could be taken for such a form, as
/// `_x000A_`.
fn cli_xml(text: &str) -> String {
    let mut written = String::new();
    for (at, letter) in text.char_indices() {
        let looks_so = letter == '_' && text.get(at + 1..).is_some_and(|rest| rest.starts_with(['x', 'X']));
        if letter.is_control() || looks_so || letter.len_utf16() > 1 {
            let mut units = [0; 2];
            written.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("_x{unit:04X}_")));
        } else if matches!(letter, '&' | '<' | '>') {
            written.push_str(&xml_escaped(letter.encode_utf8(&mut [0; 4])));
        } else {
            written.push(letter);
        }
    }
    written
}

fn json_escaped(text: &str) -> String {
    let quoted = Json::String(text.to_owned()).to_string();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// The form of JSON that writes everything beyond ASCII, and `<`, `>`, `&`, `'` and `+`, as `\uXXXX`.
fn ascii_escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in json_escaped(text).chars() {
        if letter.is_ascii() && !"<>&'+".contains(letter) {
            escaped.push(letter);
        } else {
            let mut units = [0; 2];
            escaped.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    escaped
}

/// `%2F` written as `%2f`.
fn lower_hex(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut lower = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (hex, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        lower.push('%');
        lower.push_str(&hex.to_ascii_lowercase());
        lower.push_str(rest);
    }
    lower
}

/// The part of the base64 text that is the same whatever stands in front and behind, so that `user:password` is found.
///
/// Six bits make a letter: the letters that share bits with what stands around are left out.
fn base64_core(text: &[u8], offset: usize) -> Vec<String> {
    let mut bytes = vec![0; offset];
    bytes.extend_from_slice(text);
    let first = (offset * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    let core = |encoded: String| encoded.get(first..last).map(str::to_owned);
    let cores = [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)].map(core);
    cores.into_iter().flatten().filter(|core| core.len() >= SHORTEST_WITHIN).collect()
}

/// The text with the stretches replaced; those that touch or overlap become one. They must be sorted.
fn cover(text: &str, found: &[(usize, usize)]) -> String {
    let mut covered = String::new();
    let mut kept_to = 0;
    let mut end = None;
    for &(from, to) in found {
        if end.is_none_or(|end| from > end) {
            covered.push_str(text.get(kept_to..from).unwrap_or_default());
            covered.push_str(REDACTED);
        }
        end = Some(end.map_or(to, |end: usize| end.max(to)));
        kept_to = end.unwrap_or(kept_to);
    }
    covered.push_str(text.get(kept_to..).unwrap_or_default());
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_powershell_writes_of_bytes_is_covered() {
        let mut redactor = Redactor::default();
        redactor.add(&Value::from("Zoë+1"));
        for said in [
            "5a006f00eb002b003100",
            "5A006F00EB002B003100",
            "5A-6F-C3-AB-2B-31",
            "5a-6f-c3-ab-2b-31",
            "5A-00-6F-00-EB-00-2B-00-31-00",
        ] {
            assert_eq!(redactor.scrub(&format!("00-{said}-0a")), format!("00-{REDACTED}-0a"), "{said}");
        }
        assert_eq!(redactor.scrub("5a006f00eb002b003200"), "5a006f00eb002b003200");
    }

    /// Each form is memory for as long as the session, and a start that is looked for.
    #[test]
    fn forms_are_few_and_short() {
        let text = "correct+horse/battery=staple & 'more' of it";
        let mut redactor = Redactor::of_session();
        redactor.add(&Value::from(text));
        let forms: Vec<usize> = redactor.within.values().flatten().map(|form| form.expose().len()).collect();
        assert!(forms.len() <= 45, "{}", forms.len());
        let bytes: usize = forms.iter().sum();
        assert!(bytes <= text.len() * 100, "{bytes} of {}", text.len());
    }
}
