//! Descriptions of repositories, as apt reads them.

use super::{CHECKED, Checked, Text, is_name, text_type};

/// The name of a file that apt reads, without its ending.
#[derive(Clone, Copy)]
pub(crate) struct RepositoryName<'a>(pub(crate) &'a str, Checked);
text_type!(RepositoryName, { "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$" });

impl<'a> Text<'a> for RepositoryName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if is_name(text, b"_.-") {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be a name of letters, digits, '_', '.' and '-': apt ignores other files")
        }
    }
}

/// A word of a field in a description of a repository.
#[derive(Clone, Copy)]
pub(crate) struct SourceWord<'a>(pub(crate) &'a str, Checked);
text_type!(SourceWord, { "type": "string", "pattern": "^[!-~]+$" });

impl<'a> Text<'a> for SourceWord<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be a list of words without spaces")
        }
    }
}

/// The key that signs a repository.
#[derive(Clone, Copy)]
pub(crate) enum SigningKey<'a> {
    /// The path of a keyring.
    Path(&'a str),
    /// The key itself.
    Armored(&'a str),
}
text_type!(SigningKey, {
    "type": "string",
    "pattern": "^(/[!-~]+|-----BEGIN PGP PUBLIC KEY BLOCK-----\\n(\\n|\\P{Cc})*\\n-----END PGP PUBLIC KEY BLOCK-----\\n?)$"
});

impl SigningKey<'_> {
    /// As it is stated.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Path(text) | Self::Armored(text) => text,
        }
    }
}

impl<'a> Text<'a> for SigningKey<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        const BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n";
        const END: &str = "\n-----END PGP PUBLIC KEY BLOCK-----";
        let is_path = text.starts_with('/') && text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_path {
            return Ok(Self::Path(text));
        }
        let lines = text.strip_suffix('\n').unwrap_or(text).strip_suffix(END).and_then(|text| text.strip_prefix(BEGIN));
        match lines.filter(|lines| !lines.contains(|each: char| each.is_control() && each != '\n')) {
            Some(_) => Ok(Self::Armored(text)),
            None => Err("must be the path of a keyring, or an armored public key from its BEGIN line to its END line"),
        }
    }
}
