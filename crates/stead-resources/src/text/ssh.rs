//! Lines of authorized keys, as sshd(8) reads them.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::{CHECKED, Checked, Text, text_type};

/// A public key in Base64.
#[derive(Clone, Copy)]
pub(crate) struct PublicKey<'a>(pub(crate) &'a str, Checked);
text_type!(PublicKey, { "type": "string", "pattern": "^AAAA[A-Za-z0-9+/]*=*$" });

impl<'a> Text<'a> for PublicKey<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let letters = text.trim_end_matches('=');
        let is_base64 = letters.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
        if !is_base64 || letters.is_empty() {
            return Err("must be the key in Base64 alone, without its type and its comment");
        }
        // The length of its type comes first, in four bytes.
        if letters.starts_with("AAAA") {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be the second word of a .pub file, which begins with \"AAAA\"")
        }
    }
}

/// What is wrong with a key that begins as those of OpenSSH do.
pub(crate) enum KeyFault {
    /// It is of another type, which it names itself.
    Type(String),
    /// It ends too early or too late.
    Length,
}

impl PublicKey<'_> {
    /// Returns what is wrong with it as a key of a type. One that names no type is not judged.
    pub(crate) fn fault(self, kind: KeyType<'_>) -> Option<KeyFault> {
        const LENIENT: GeneralPurpose = GeneralPurpose::new(
            &alphabet::STANDARD,
            GeneralPurposeConfig::new()
                .with_decode_padding_mode(DecodePaddingMode::Indifferent)
                .with_decode_allow_trailing_bits(true),
        );
        let letters = self.0.trim_end_matches('=');
        // Where a letter was cut off, the one before it says nothing.
        let whole = letters.len() - usize::from(letters.len() % 4 == 1);
        let bytes = LENIENT.decode(letters.get(..whole)?).ok()?;
        let (name, rest) = field(&bytes)?;
        let name = std::str::from_utf8(name).ok().filter(|name| KeyType::check(name).is_ok())?;
        if name != kind.0 {
            return Some(KeyFault::Type(name.to_owned()));
        }
        // Certificates have fields of other kinds as well.
        let is_whole = name.contains("-cert-v01") || is_fields(rest);
        (!is_whole || whole != letters.len()).then_some(KeyFault::Length)
    }
}

/// The first field of bytes, which its length is in front of, and what is behind it.
fn field(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

/// Returns whether bytes consist of fields, at least one.
fn is_fields(mut bytes: &[u8]) -> bool {
    while let Some((_, rest)) = field(bytes) {
        if rest.is_empty() {
            return true;
        }
        bytes = rest;
    }
    false
}

/// The type of a key as OpenSSH writes it.
#[derive(Clone, Copy)]
pub(crate) struct KeyType<'a>(pub(crate) &'a str, Checked);
text_type!(KeyType, { "type": "string", "pattern": "^(ssh|ecdsa-sha2|sk-ssh|sk-ecdsa-sha2)-[a-z0-9]+(-cert-v01)?(@openssh\\.com)?$" });

impl<'a> Text<'a> for KeyType<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let name = text.strip_suffix("@openssh.com").unwrap_or(text);
        let name = name.strip_suffix("-cert-v01").unwrap_or(name);
        let kind = ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-sha2-"].iter().find_map(|kind| name.strip_prefix(kind));
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if kind.is_some_and(is_word) {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be a type as in the key file, such as \"ssh-ed25519\", \"ssh-rsa\" or \"ecdsa-sha2-nistp256\"")
        }
    }
}

/// sshd refuses the whole line.
const UNQUOTED: &str = "must have double quotes around each value, such as from=\"10.0.0.1\"";

/// The options in front of a key, or none.
#[derive(Clone, Copy)]
pub(crate) struct KeyOptions<'a>(pub(crate) &'a str, Checked);
text_type!(KeyOptions, { "type": "string", "pattern": "^([A-Za-z@](\\\\*[^\"=\\s\\\\\\p{Cc}]|\\\\+\"|(\\\\*=)?\"(\\\\*[^\"\\\\\\p{Cc}]|\\\\+\")*\")*\\\\*)?$" });

impl<'a> Text<'a> for KeyOptions<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let begins = text.is_empty() || text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '@');
        let (mut quoted, mut escaped, mut single) = (false, false, true);
        let mut is_value = false;
        for each in text.chars() {
            if std::mem::replace(&mut is_value, each == '=' && !quoted) && each != '"' {
                return Err(UNQUOTED);
            }
            single &= !each.is_control() && (quoted || !each.is_whitespace());
            quoted ^= each == '"' && !escaped;
            // As sshd reads it: several backslashes do not pair up.
            escaped = each == '\\';
        }
        if is_value {
            Err(UNQUOTED)
        } else if begins && single && !quoted {
            Ok(Self(text, CHECKED))
        } else {
            Err(
                "must be options with commas between them, without spaces outside of quotes, and with every quote closed",
            )
        }
    }
}
