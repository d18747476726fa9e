//! The secrets of one call, and how they are found and covered in what comes back.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::BTreeMap;

use serde_json::Value as Json;
use stead_core::value::{REDACTED, Sensitive, Value};

/// Shorter secrets are covered only where they are the whole text: they occur in too much that is none.
const SHORTEST_WITHIN: usize = 4;

/// A line of a longer secret is covered on its own from this length on, since programs report line by line.
const SHORTEST_LINE: usize = 8;

/// What URI encoders leave as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The same for encoders of whole addresses, which keep what separates their parts.
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

/// The secrets of one call, in every form in which they are looked for.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    /// Looked for within any text, by their first bytes, so that a text is gone through once for all of them.
    within: BTreeMap<[u8; START], Vec<Sensitive<String>>>,
    /// Looked for as whole texts.
    whole: Vec<Sensitive<String>>,
}

/// How many bytes all that is looked for within texts has at least.
const START: usize = SHORTEST_WITHIN;

impl Secrets {
    /// Adds every text and number in a value.
    pub(super) fn add(&mut self, plain: &Value) {
        match plain {
            Value::String(text) => self.add_text(text),
            Value::Number(number) => {
                // A short number is everywhere.
                Some(number.to_string())
                    .filter(|text| text.len() >= SHORTEST_WITHIN)
                    .iter()
                    .for_each(|text| self.add_text(text));
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(members) => members.values().for_each(|value| self.add(value)),
            Value::Null | Value::Bool(_) | Value::Sealed(_) => {}
        }
    }

    /// Whether there is nothing to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.within.is_empty() && self.whole.is_empty()
    }

    /// Whether the text is one of the secrets.
    pub(super) fn has(&self, text: &str) -> bool {
        self.whole.iter().any(|secret| secret.expose() == text)
    }

    /// The text with every secret in it covered.
    pub(super) fn scrub(&self, text: &str) -> String {
        if self.has(text) {
            return REDACTED.to_owned();
        }
        cover(text, &self.places(text))
    }

    /// Where the text has secrets, from the first byte to the one behind the last, in order; they may overlap.
    fn places(&self, text: &str) -> Vec<(usize, usize)> {
        let starts = text.as_bytes().windows(START).enumerate();
        let known = starts.filter_map(|(at, start)| Some((at, self.within.get(start)?)));
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
        self.whole.push(Sensitive::new(text.to_owned()));
        let lines = text.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST_LINE);
        let trimmed = Some(text.trim()).filter(|trimmed| trimmed.chars().count() >= SHORTEST_WITHIN);
        for part in trimmed.into_iter().chain(lines) {
            for form in forms(part) {
                self.add_form(form);
            }
        }
    }
}

impl Secrets {
    fn add_form(&mut self, form: String) {
        let Some(start) = form.as_bytes().first_chunk::<START>().copied() else { return };
        let known = self.within.entry(start).or_default();
        if !known.iter().any(|each| *each.expose() == form) {
            known.push(Sensitive::new(form));
        }
    }
}

/// The text as it is, and as it looks inside JSON, addresses and base64.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned(), json_escaped(text), ascii_escaped(text)];
    for set in [NON_ALPHANUMERIC, UNRESERVED, ADDRESS] {
        let encoded = utf8_percent_encode(text, set).to_string();
        let lower = lower_hex(&encoded);
        // Forms of the web write a space as a plus sign.
        forms.extend([encoded.replace("%20", "+"), lower.replace("%20", "+"), encoded, lower]);
    }
    forms.extend([STANDARD_NO_PAD.encode(text), URL_SAFE_NO_PAD.encode(text)]);
    forms.extend((0..3).flat_map(|offset| base64_core(text, offset)));
    forms
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
fn base64_core(text: &str, offset: usize) -> Vec<String> {
    let mut bytes = vec![0; offset];
    bytes.extend_from_slice(text.as_bytes());
    let first = (offset * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    let core = |encoded: String| encoded.get(first..last).map(str::to_owned);
    let cores = [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)].map(core);
    cores.into_iter().flatten().filter(|core| core.len() >= SHORTEST_WITHIN).collect()
}

/// The text with the stretches replaced; those that touch or overlap become one. They have to be sorted.
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
