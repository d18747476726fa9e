//! Lines of authorized keys, as sshd(8) reads them.

use super::{CHECKED, Checked, Text, text_type};

/// A public key in Base64.
#[derive(Clone, Copy)]
pub(crate) struct PublicKey<'a>(pub(crate) &'a str, Checked);
text_type!(PublicKey, { "type": "string", "pattern": "^[A-Za-z0-9+/]+=*$" });

impl<'a> Text<'a> for PublicKey<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let letters = text.trim_end_matches('=');
        let is_base64 = letters.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
        if is_base64 && !letters.is_empty() {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be the key in Base64 alone, without its type and its comment")
        }
    }
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

/// The options in front of a key, or none.
#[derive(Clone, Copy)]
pub(crate) struct KeyOptions<'a>(pub(crate) &'a str, Checked);
text_type!(KeyOptions, { "type": "string", "pattern": "^([A-Za-z@](\\\\*[^\"\\s\\\\\\p{Cc}]|\\\\+\"|\"(\\\\*[^\"\\\\\\p{Cc}]|\\\\+\")*\")*\\\\*)?$" });

impl<'a> Text<'a> for KeyOptions<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let begins = text.is_empty() || text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '@');
        let (mut quoted, mut escaped, mut single) = (false, false, true);
        for each in text.chars() {
            single &= !each.is_control() && (quoted || !each.is_whitespace());
            quoted ^= each == '"' && !escaped;
            // As sshd reads it: several backslashes do not pair up.
            escaped = each == '\\';
        }
        if begins && single && !quoted {
            Ok(Self(text, CHECKED))
        } else {
            Err(
                "must be options with commas between them, without spaces outside of quotes, and with every quote closed",
            )
        }
    }
}
