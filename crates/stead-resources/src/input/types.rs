//! Types of properties: what is read has been checked, and their JSON Schemas say the same.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use stead_core::value::Value;
use stead_host::fs::parse_mode;
use stead_host::provider::Context;
use url::Url;

use crate::checksum::Checksum;
use crate::cron::is_schedule;
use crate::package::Requirement;

/// A text that is checked when it is read.
trait Text<'a>: Sized {
    /// Takes the text, or says what it must be, as in "must be a path".
    fn check(text: &'a str) -> Result<Self, &'static str>;
}

/// Visits a string and checks it.
struct TextVisitor<T>(PhantomData<T>);

impl<'de, T: Text<'de>> Visitor<'de> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<T, E> {
        T::check(text).map_err(E::custom)
    }
}

/// Makes a [`Text`] readable, and gives it its JSON Schema.
macro_rules! text_type {
    ($name:ident, $schema:tt) => {
        impl<'de: 'a, 'a> serde::Deserialize<'de> for $name<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(TextVisitor::<$name<'de>>(std::marker::PhantomData))
            }
        }

        impl schemars::JsonSchema for $name<'_> {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}
/// A path.
#[derive(Clone, Copy)]
pub(crate) struct PathText<'a>(pub(crate) &'a str);
text_type!(PathText, { "type": "string", "minLength": 1 });

impl<'a> Text<'a> for PathText<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("must not be empty");
        }
        if text.contains('\0') {
            return Err("must not contain a NUL character");
        }
        if text == "~" || text.starts_with("~/") {
            return Err("begins with '~', which is not expanded. Write \"[path(envvar('HOME'), ...)]\" for a home \
                        directory, or './~' for a file of that name");
        }
        Ok(Self(text))
    }
}

impl PathText<'_> {
    /// The path that is meant.
    pub(crate) fn resolve(self, cx: &Context) -> PathBuf {
        cx.resolve(self.0)
    }
}

/// A text that says something.
#[derive(Clone, Copy)]
pub(crate) struct NonEmpty<'a>(pub(crate) &'a str);
text_type!(NonEmpty, { "type": "string", "minLength": 1 });

impl<'a> Text<'a> for NonEmpty<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.is_empty() { Err("must not be empty") } else { Ok(Self(text)) }
    }
}

/// The path of something that is not a directory.
#[derive(Clone, Copy)]
pub(crate) struct FilePath<'a>(pub(crate) PathText<'a>);
text_type!(FilePath, { "type": "string", "minLength": 1 });

impl<'a> Text<'a> for FilePath<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.len() > 1 && text.ends_with('/') {
            return Err("ends with '/', which only the path of a directory may");
        }
        PathText::check(text).map(Self)
    }
}

/// What a symbolic link leads to.
#[derive(Clone, Copy)]
pub(crate) struct LinkTarget<'a>(pub(crate) &'a str);
text_type!(LinkTarget, { "type": "string", "minLength": 1 });

impl<'a> Text<'a> for LinkTarget<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.is_empty() || text.contains('\0') { Err("must be a path") } else { Ok(Self(text)) }
    }
}

/// Permissions as octal digits.
#[derive(Clone, Copy)]
pub(crate) struct Mode<'a> {
    pub(crate) text: &'a str,
    pub(crate) bits: u32,
}
text_type!(Mode, { "type": "string", "pattern": "^[0-7]{3,4}$" });

impl<'a> Text<'a> for Mode<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let bits = parse_mode(text).ok_or("must be three or four octal digits: write \"0644\"")?;
        Ok(Self { text, bits })
    }
}

/// The name or number of a user or group.
#[derive(Clone, Copy)]
pub(crate) struct AccountName<'a>(pub(crate) &'a str);
text_type!(AccountName, { "type": "string", "minLength": 1 });

impl<'a> Text<'a> for AccountName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.is_empty() || text.contains('\0') { Err("must be a name or a number") } else { Ok(Self(text)) }
    }
}

/// The name of a user or group that can be made: what shadow-utils of Debian accept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewAccountName<'a>(pub(crate) &'a str);
text_type!(NewAccountName, { "type": "string", "pattern": "^[^-+~:,/\\s\\p{Cc}][^:,/\\s\\p{Cc}]{0,31}$", "not": { "pattern": "^[0-9]+$" } });

impl<'a> Text<'a> for NewAccountName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let has_bad_begin = text.starts_with(['-', '+', '~']) || text.is_empty();
        let is_bad = |char: char| char.is_whitespace() || char.is_control() || matches!(char, ':' | ',' | '/');
        if has_bad_begin || text.chars().any(is_bad) || text.chars().count() > 32 {
            return Err(
                "must be a name of at most 32 characters, without ':', ',', '/' and spaces, that does not begin with '-', '+' or '~'",
            );
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            Err("must be a name, not a number")
        } else {
            Ok(Self(text))
        }
    }
}

/// The text of a field of a database whose fields have colons between them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field<'a>(pub(crate) &'a str);
text_type!(Field, { "type": "string", "pattern": "^[^:\\p{Cc}]*$" });

impl<'a> Text<'a> for Field<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.contains(|char: char| char == ':' || char.is_control()) {
            Err("must not contain ':', a line break or another control character")
        } else {
            Ok(Self(text))
        }
    }
}

/// The absolute path of a home directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct HomePath<'a>(pub(crate) &'a str);
text_type!(HomePath, { "type": "string", "pattern": "^/[^:\\p{Cc}]*$" });

impl<'a> Text<'a> for HomePath<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.starts_with('/') && !text.contains(|char: char| char == ':' || char.is_control()) {
            Ok(Self(text))
        } else {
            Err("must be an absolute path without ':'")
        }
    }
}

/// The hash of a password.
#[derive(Clone, Copy)]
pub(crate) struct PasswordHash<'a>(pub(crate) &'a str);
text_type!(PasswordHash, { "type": "string", "pattern": "^([*]|[$_][^:\\s]+)$" });

impl<'a> Text<'a> for PasswordHash<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_hash = text.starts_with(['$', '_']) && text.len() > 1 && !text.contains([':', ' ', '\n', '\r', '\t']);
        if is_hash || text == "*" {
            Ok(Self(text))
        } else {
            Err("must be the hash of a password, as 'mkpasswd' prints it, or '*' for none; not the password itself")
        }
    }
}

/// The day on which an account expires, if it does.
#[derive(Clone, Copy)]
pub(crate) struct Expiry<'a> {
    pub(crate) text: &'a str,
    pub(crate) day: Option<jiff::civil::Date>,
}
text_type!(Expiry, { "type": "string", "pattern": "^(never|[0-9]{4}-[0-9]{2}-[0-9]{2})$" });

impl<'a> Text<'a> for Expiry<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text == "never" {
            return Ok(Self { text, day: None });
        }
        let day = Some(text).filter(|text| text.len() == 10).and_then(|text| text.parse().ok());
        day.map(|day| Self { text, day: Some(day) }).ok_or("must be a day such as 2027-12-31, or never")
    }
}

/// The name of a unit of systemd, with or without the ending that says its kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnitName<'a>(pub(crate) &'a str);
text_type!(UnitName, { "type": "string", "pattern": "^[A-Za-z0-9:_.\\\\@-]{1,245}$", "not": { "pattern": "^\\.|@(\\.[a-z]+)?$" } });

impl<'a> Text<'a> for UnitName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b":_.\\@-".contains(&byte);
        if text.is_empty() || text.len() > 245 || text.starts_with('.') || !text.bytes().all(is_good) {
            return Err("must be the name of a service, such as \"ssh\", \"ssh.service\" or \"getty@tty1\"");
        }
        let stem = text
            .rsplit_once('.')
            .map_or(text, |(stem, end)| if end.bytes().all(|byte| byte.is_ascii_lowercase()) { stem } else { text });
        if stem.ends_with('@') {
            Err("is the name of a template; write the instance behind the '@'")
        } else {
            Ok(Self(text))
        }
    }
}

impl UnitName<'_> {
    const KINDS: [&'static str; 10] =
        ["service", "socket", "timer", "target", "path", "mount", "automount", "swap", "slice", "scope"];

    /// The whole name: that of a service where no kind is stated.
    pub(crate) fn whole(self) -> String {
        let kind = self.0.rsplit_once('.').map(|(_, kind)| kind);
        if kind.is_some_and(|kind| Self::KINDS.contains(&kind)) {
            self.0.to_owned()
        } else {
            format!("{}.service", self.0)
        }
    }
}

/// The name of a package, which may have an architecture behind a colon.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackageName<'a>(pub(crate) &'a str);
text_type!(PackageName, { "type": "string", "pattern": "^[A-Za-z0-9]([A-Za-z0-9+._-]*[A-Za-z0-9+._])?(:[a-z0-9_-]*[a-z0-9_])?$" });

impl<'a> Text<'a> for PackageName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+._-".contains(&byte);
        let is_architecture = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        let (name, architecture) = text.split_once(':').unwrap_or((text, "any"));
        // Behind a name, package managers take a hyphen for the wish to remove it.
        let is_name = name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.bytes().all(is_part);
        let is_complete = !architecture.is_empty() && architecture.bytes().all(is_architecture);
        if is_name && is_complete && !name.ends_with('-') && !architecture.ends_with('-') {
            Ok(Self(text))
        } else {
            Err("must be the name of a package, such as nginx, libc6:i386 or g++")
        }
    }
}

/// What is required of the version of a package.
#[derive(Clone)]
pub(crate) struct PackageVersion<'a> {
    pub(crate) text: &'a str,
    pub(crate) requirement: Requirement<'a>,
}
text_type!(PackageVersion, {
    "type": "string",
    "pattern": "^(([A-Za-z0-9][A-Za-z0-9.+:~_^-]*)|((>=|<=|>|<|=) ?[A-Za-z0-9][A-Za-z0-9.+:~_^-]*(, ?(>=|<=|>|<|=) ?[A-Za-z0-9][A-Za-z0-9.+:~_^-]*)*))$"
});

impl<'a> Text<'a> for PackageVersion<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let requirement = Requirement::parse(text);
        let requirement = requirement.ok_or("must be a version, latest, or comparisons such as \">= 1.2, < 2\"")?;
        Ok(Self { text, requirement })
    }
}

/// The name of a release of a distribution, or of a repository.
#[derive(Clone, Copy)]
pub(crate) struct ReleaseName<'a>(pub(crate) &'a str);
text_type!(ReleaseName, { "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._/=~+-]*$" });

impl<'a> Text<'a> for ReleaseName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._/=~+-".contains(&byte);
        if text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_part) {
            Ok(Self(text))
        } else {
            Err("must be the name of a release, such as bookworm-backports")
        }
    }
}

/// The name of a file that apt reads, without its ending.
#[derive(Clone, Copy)]
pub(crate) struct RepositoryName<'a>(pub(crate) &'a str);
text_type!(RepositoryName, { "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$" });

impl<'a> Text<'a> for RepositoryName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_part) {
            Ok(Self(text))
        } else {
            Err("must be a name of letters, digits, '_', '.' and '-': apt ignores other files")
        }
    }
}

/// A word of a field in a description of a repository.
#[derive(Clone, Copy)]
pub(crate) struct SourceWord<'a>(pub(crate) &'a str);
text_type!(SourceWord, { "type": "string", "pattern": "^[!-~]+$" });

impl<'a> Text<'a> for SourceWord<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text))
        } else {
            Err("must be a list of words without spaces")
        }
    }
}

/// What a repository is signed by.
#[derive(Clone, Copy)]
pub(crate) enum SigningKey<'a> {
    /// The path of a keyring.
    Path(&'a str),
    /// The key itself.
    Armored(&'a str),
}
text_type!(SigningKey, {
    "type": "string",
    "pattern": "^(/[!-~]+|-----BEGIN PGP PUBLIC KEY BLOCK-----\\n[^\\r]*\\n-----END PGP PUBLIC KEY BLOCK-----\\n?)$"
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
        match lines.filter(|lines| !lines.contains('\r')) {
            Some(_) => Ok(Self::Armored(text)),
            None => Err("must be the path of a keyring, or an armored public key from its BEGIN line to its END line"),
        }
    }
}

/// The digest that a file must have.
#[derive(Clone)]
pub(crate) struct ChecksumText<'a> {
    pub(crate) text: &'a str,
    pub(crate) checksum: Checksum,
}
text_type!(ChecksumText, { "type": "string", "pattern": "^(sha256:[0-9A-Fa-f]{64}|sha512:[0-9A-Fa-f]{128})$" });

impl<'a> Text<'a> for ChecksumText<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let checksum = Checksum::parse(text);
        let checksum = checksum.ok_or("must be \"sha256:\" and 64 hexadecimal digits, or \"sha512:\" and 128")?;
        Ok(Self { text, checksum })
    }
}

/// Where a file is downloaded from.
#[derive(Clone)]
pub(crate) struct DownloadUrl<'a>(pub(crate) Url, PhantomData<&'a str>);
text_type!(DownloadUrl, { "type": "string", "pattern": "^(https?://[^/]|file:///)" });

impl<'a> Text<'a> for DownloadUrl<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let begins = ["https://", "http://", "file:///"].iter().any(|begin| text.starts_with(begin));
        let url = Url::parse(text).ok().filter(|_| begins).map(|url| Self(url, PhantomData));
        url.ok_or("must be a URL that begins with https://, http:// or file:///")
    }
}

/// Where a repository of Git is fetched from: a URL that can be parsed, of SSH `user@host:path`, or a path.
#[derive(Clone, Copy)]
pub(crate) struct RepositoryAddress<'a>(pub(crate) &'a str);
text_type!(RepositoryAddress, {
    "type": "string",
    "pattern": "^((https?|ssh|git)://[!-~]+|file:///[!-~]+|[^-:\\p{Cc}][^:\\p{Cc}]*(:[^:\\p{Cc}]+)?)$",
    "not": { "pattern": "^(ssh|git)://[^/]*:[^/]*@|^[a-z]+://[^#?]*[#?]|^[^/:]+:[^/]*@" },
});

impl<'a> RepositoryAddress<'a> {
    const FORMS: &'static str = "must be a URL with https, http, ssh, git or file, or a path";

    /// Arguments and settings of git have the address: what is secret in it must be what can be taken out.
    const PASSWORD: &'static str =
        "must be without a password: only https and http have one, SSH uses the keys of the user who runs stead";

    fn check_url(text: &'a str) -> Result<Self, &'static str> {
        let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        let url = Url::parse(text).ok().filter(|_| is_printable).ok_or(Self::FORMS)?;
        match url.scheme() {
            "ssh" | "git" if url.password().is_some() => return Err(Self::PASSWORD),
            "https" | "http" | "ssh" | "git" if url.has_host() => {}
            "file" if text.starts_with("file:///") => {}
            _ => return Err(Self::FORMS),
        }
        let is_bare = url.query().is_none() && url.fragment().is_none();
        if is_bare { Ok(Self(text)) } else { Err("must be a URL without '?' and '#'") }
    }
}

impl<'a> Text<'a> for RepositoryAddress<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.contains("://") {
            return Self::check_url(text);
        }
        let (host, path) = text.split_once(':').unwrap_or((text, "path"));
        let plain = |text: &str| !text.is_empty() && !text.contains(|each: char| each == ':' || each.is_control());
        if !plain(host) || !plain(path) || text.starts_with('-') {
            Err(Self::FORMS)
        } else if !host.contains('/') && path.split('/').next().is_some_and(|begin| begin.contains('@')) {
            Err(Self::PASSWORD)
        } else {
            Ok(Self(text))
        }
    }
}

/// A branch, a tag or a commit: a name that git-check-ref-format(1) allows, and that is not taken for an option.
#[derive(Clone, Copy)]
pub(crate) struct Revision<'a>(pub(crate) &'a str);
text_type!(Revision, {
    "type": "string",
    "pattern": "^[^-./\\p{Cc} ~^:?*\\[\\\\][^\\p{Cc} ~^:?*\\[\\\\]*$",
    "not": { "pattern": "\\.\\.|@\\{|//|/\\.|[/.]$|\\.lock(/|$)|(^|/)@(/|$)|^refs/" },
});

impl<'a> Text<'a> for Revision<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_odd = |each: char| each.is_control() || " ~^:?*[\\".contains(each);
        let is_lock = |part: &str| part.strip_suffix(".lock").is_some();
        let is_part = |part: &str| !part.is_empty() && part != "@" && !part.starts_with('.') && !is_lock(part);
        let is_name = text.split('/').all(is_part) && !text.contains(is_odd) && !text.starts_with('-');
        if !is_name || text.ends_with('.') || text.contains("..") || text.contains("@{") {
            Err("must be the name of a branch or tag, or a commit")
        } else if text.starts_with("refs/") {
            Err("must be the name of a branch or tag as 'git branch' and 'git tag' list it, without 'refs/'")
        } else {
            Ok(Self(text))
        }
    }
}

/// The name of one entry of a directory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryName<'a>(pub(crate) &'a str);
text_type!(EntryName, { "type": "string", "pattern": "^[^/]+$" });

impl<'a> Text<'a> for EntryName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.is_empty() || text.contains('/') {
            Err("must be a list of names, each without '/'")
        } else {
            Ok(Self(text))
        }
    }
}

/// A line without its ending.
#[derive(Clone, Copy)]
pub(crate) struct SingleLine<'a>(pub(crate) &'a str);
text_type!(SingleLine, { "type": "string", "pattern": "^[^\\r\\n]*$" });

impl<'a> Text<'a> for SingleLine<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.contains(['\n', '\r']) {
            Err("must be a single line; use one instance per line")
        } else {
            Ok(Self(text))
        }
    }
}

/// The name of a section or a key of an INI file.
#[derive(Clone, Copy)]
pub(crate) struct IniName<'a>(pub(crate) &'a str);
text_type!(IniName, { "type": "string", "pattern": "^[^\\r\\n=\\[\\]#; \\t]([^\\r\\n=\\[\\]]*[^\\r\\n=\\[\\] \\t])?$" });

impl<'a> Text<'a> for IniName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let edges = text.starts_with([' ', '\t', '#', ';']) || text.ends_with([' ', '\t']);
        if text.is_empty() || edges || text.contains(['\n', '\r', '=', '[', ']']) {
            return Err(
                "must be a name without '=', '[', ']', line breaks, spaces around it, or the sign of a comment",
            );
        }
        Ok(Self(text))
    }
}

/// One word, as the files of the system have it in their columns.
#[derive(Clone, Copy)]
pub(crate) struct Word<'a>(pub(crate) &'a str);
text_type!(Word, { "type": "string", "pattern": "^[^\\s#]+$" });

impl<'a> Text<'a> for Word<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_word = !text.is_empty() && !text.contains(|each: char| each.is_whitespace() || each == '#');
        if is_word { Ok(Self(text)) } else { Err("must be one word, without spaces and '#'") }
    }
}

/// The name of a parameter of the kernel.
#[derive(Clone, Copy)]
pub(crate) struct SysctlName<'a>(pub(crate) &'a str);
text_type!(SysctlName, { "type": "string", "pattern": "^[A-Za-z0-9_-]+([./][A-Za-z0-9_:@-]+)+$" });

impl<'a> Text<'a> for SysctlName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let mut parts = text.split(['.', '/']);
        let is_part = |part: &str, signs: &str| {
            !part.is_empty() && part.chars().all(|each| each.is_ascii_alphanumeric() || signs.contains(each))
        };
        let first = parts.next().is_some_and(|first| is_part(first, "_-"));
        if first && text.contains(['.', '/']) && parts.all(|part| is_part(part, "_:@-")) {
            Ok(Self(text))
        } else {
            Err("must be a name such as \"net.ipv4.ip_forward\"")
        }
    }
}

/// The name of a machine.
#[derive(Clone, Copy)]
pub(crate) struct HostName<'a>(pub(crate) &'a str);
text_type!(HostName, { "type": "string", "maxLength": 64, "pattern": "^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$" });

impl<'a> Text<'a> for HostName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let plain = text.chars().all(|each| each.is_ascii_alphanumeric() || matches!(each, '.' | '-'));
        let edges = text.starts_with(['.', '-']) || text.ends_with(['.', '-']);
        if plain && !edges && (1..=64).contains(&text.len()) {
            Ok(Self(text))
        } else {
            Err("must be letters, digits, '-' and '.', at most 64 of them")
        }
    }
}

/// The name of a job of cron.
#[derive(Clone, Copy)]
pub(crate) struct JobName<'a>(pub(crate) &'a str);
text_type!(JobName, { "type": "string", "pattern": "^[^\\s\\p{Cc}]([^\\p{Cc}]*[^\\s\\p{Cc}])?$" });

impl<'a> Text<'a> for JobName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.is_empty() || text.trim() != text || text.contains(char::is_control) {
            return Err("must be a name in a single line, without spaces around it");
        }
        Ok(Self(text))
    }
}

/// When a job of cron runs.
#[derive(Clone, Copy)]
pub(crate) struct Schedule<'a>(pub(crate) &'a str);
text_type!(Schedule, { "type": "string", "minLength": 1 });

impl<'a> Text<'a> for Schedule<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let message =
            "must be a schedule of cron: five fields such as \"*/5 4 * * mon-fri\", or a word such as \"@daily\"";
        if is_schedule(text) { Ok(Self(text)) } else { Err(message) }
    }
}

/// A limit as PAM takes it.
#[derive(Clone, Copy)]
pub(crate) struct LimitValue<'a>(pub(crate) &'a str);
text_type!(LimitValue, { "type": "string", "pattern": "^(-?[0-9]+|unlimited|infinity)$" });

impl<'a> Text<'a> for LimitValue<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_number || matches!(text, "unlimited" | "infinity") {
            Ok(Self(text))
        } else {
            Err("must be a number in quotes, or \"unlimited\"")
        }
    }
}

/// Where a file system is mounted, or 'none' for swap space.
#[derive(Clone, Copy)]
pub(crate) struct MountPoint<'a>(pub(crate) &'a str);
text_type!(MountPoint, { "type": "string", "pattern": "^(none|/|(/[^/\\p{Cc}]+)+)$", "not": { "pattern": "/\\.\\.?(/|$)" } });

impl<'a> Text<'a> for MountPoint<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let mut names = text.strip_prefix('/').into_iter().flat_map(|rest| rest.split('/')).peekable();
        let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(char::is_control);
        if names.peek().is_some() && names.all(is_name) || matches!(text, "/" | "none") {
            Ok(Self(text))
        } else {
            Err("must be an absolute path without '..' and without '/' at its end, or \"none\" for swap space")
        }
    }
}

/// A field of fstab(5).
#[derive(Clone, Copy)]
pub(crate) struct MountText<'a>(pub(crate) &'a str);
text_type!(MountText, { "type": "string", "pattern": "^[^\\p{Cc}]+$" });

impl<'a> Text<'a> for MountText<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_line = !text.is_empty() && !text.contains(char::is_control);
        if is_line { Ok(Self(text)) } else { Err("must be a single line that is not empty") }
    }
}

/// The value of a setting of a unit of systemd.
#[derive(Clone, Copy)]
pub(crate) struct UnitLine<'a>(pub(crate) &'a str);
text_type!(UnitLine, { "type": "string", "pattern": "^[^\\s\\p{Cc}]([^\\p{Cc}]*[^\\s\\p{Cc}\\\\])?$", "not": { "pattern": "^\\\\$" } });

impl<'a> Text<'a> for UnitLine<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        // A backslash would have the next line belong to it.
        let has_good_edges = text == text.trim() && !text.is_empty() && !text.ends_with('\\');
        if has_good_edges && !text.contains(char::is_control) {
            Ok(Self(text))
        } else {
            Err("must be a single line without spaces around it, that does not end with '\\'")
        }
    }
}

/// A span of time, as systemd reads it.
#[derive(Clone, Copy)]
pub(crate) struct TimeSpan<'a>(pub(crate) &'a str);
text_type!(TimeSpan, {
    "type": "string",
    "pattern": "^([0-9]+|[0-9]+ ?(us|ms|s|sec|m|min|h|hr|d|w|M|y|(second|minute|hour|day|week|month|year)s?)( ?[0-9]+ ?(us|ms|s|sec|m|min|h|hr|d|w|M|y|(second|minute|hour|day|week|month|year)s?))*)$"
});

impl<'a> Text<'a> for TimeSpan<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let message = "must be a span of time with a unit, such as \"15min\" or \"1h 30s\"";
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let mut rest = text;
        while !is_number && !rest.is_empty() {
            rest = behind_span(rest).ok_or(message)?;
            rest = rest.strip_prefix(' ').filter(|rest| !rest.is_empty()).unwrap_or(rest);
        }
        if text.is_empty() { Err(message) } else { Ok(Self(text)) }
    }
}

/// What is behind the first number and its unit.
fn behind_span(text: &str) -> Option<&str> {
    const SHORT: [&str; 12] = ["us", "ms", "s", "sec", "m", "min", "h", "hr", "d", "w", "M", "y"];
    const LONG: [&str; 7] = ["second", "minute", "hour", "day", "week", "month", "year"];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.get(digits..).filter(|_| digits > 0)?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let (unit, rest) = rest.split_at(rest.bytes().take_while(u8::is_ascii_alphabetic).count());
    let is_unit = SHORT.contains(&unit) || LONG.contains(&unit.strip_suffix('s').unwrap_or(unit));
    is_unit.then_some(rest)
}

/// A line, or several.
pub(crate) enum OneOrMore<'a> {
    One(&'a str),
    More(Vec<&'a str>),
}

impl OneOrMore<'_> {
    /// As it is stated.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::One(line) => Value::from(*line),
            Self::More(lines) => Value::Array(lines.iter().map(|line| Value::from(*line)).collect()),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for OneOrMore<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMoreVisitor)
    }
}

struct OneOrMoreVisitor;

impl<'de> Visitor<'de> for OneOrMoreVisitor {
    type Value = OneOrMore<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or a list of strings that is not empty")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<OneOrMore<'de>, E> {
        UnitLine::check(text).map(|line| OneOrMore::One(line.0)).map_err(E::custom)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<OneOrMore<'de>, A::Error> {
        let mut lines = Vec::new();
        while let Some(UnitLine(line)) = items.next_element()? {
            lines.push(line);
        }
        if lines.is_empty() { Err(de::Error::invalid_length(0, &self)) } else { Ok(OneOrMore::More(lines)) }
    }
}

impl JsonSchema for OneOrMore<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OneOrMore".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let line = UnitLine::json_schema(generator);
        schemars::json_schema!({ "oneOf": [line, { "type": "array", "items": line, "minItems": 1 }] })
    }
}

/// The name of a file that sudo reads.
#[derive(Clone, Copy)]
pub(crate) struct SudoersName<'a>(pub(crate) &'a str);
text_type!(SudoersName, { "type": "string", "pattern": "^[A-Za-z0-9_@%+,=:-]+$" });

impl SudoersName<'_> {
    /// Whether a text is such a name.
    pub(crate) fn is_valid(text: &str) -> bool {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+,=:-".contains(&byte);
        !text.is_empty() && text.bytes().all(is_good)
    }
}

impl<'a> Text<'a> for SudoersName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if Self::is_valid(text) {
            Ok(Self(text))
        } else {
            Err("must be a name without '.', '/', '~' and spaces: sudo ignores other files")
        }
    }
}

/// A user, a group or a host in a rule of sudo. A backslash stands before each character that has a meaning there.
#[derive(Clone, Copy)]
pub(crate) struct SudoersWord<'a>(pub(crate) &'a str);
text_type!(SudoersWord, { "type": "string", "pattern": SudoersWord::PATTERN });

impl SudoersWord<'_> {
    /// A colon stands in front of a group that is none of the system, and in addresses; elsewhere it would begin another list.
    const PATTERN: &'static str = r#"^(:?([^\s,:=()#"\\]|\\[^\r\n])+|([0-9A-Fa-f]*:){2,}[0-9A-Fa-f.:]*(/[0-9]+)?)$"#;
}

impl<'a> Text<'a> for SudoersWord<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SudoersWord::PATTERN).ok());
        if matches(&PATTERN, text) {
            Ok(Self(text))
        } else {
            Err(
                "must have names of users, groups and hosts, each by itself; write a backslash in front of ' ', ',', ':' and '='",
            )
        }
    }
}

/// A command in a rule of sudo, as sudoers(5) has it.
#[derive(Clone, Copy)]
pub(crate) struct SudoersCommand<'a>(pub(crate) &'a str);
text_type!(SudoersCommand, { "type": "string", "pattern": SudoersCommand::PATTERN, "not": { "pattern": "[\\s\\\\]$" } });

impl SudoersCommand<'_> {
    /// A digest, then a path with arguments. Each of them may be a regular expression, in which nothing needs a backslash;
    /// elsewhere a bare ',', ':', '=' or '#' would end the command, so that any arguments were allowed.
    const PATTERN: &'static str = concat!(
        r"^(sha(224|256|384|512):[A-Za-z0-9+/=]+ +)?",
        r"(([^\r\n\\,:=#]|\\[^\r\n])+",
        r"|(\^([^\r\n\\$#]|\\[^\r\n])*\$|([^\s\\,:=#]|\\[^\r\n])+)",
        r"( +(\^([^\r\n\\$#]|\\[^\r\n])*\$|([^\r\n\\,:=#]|\\[^\r\n])*))?)$"
    );
}

impl<'a> Text<'a> for SudoersCommand<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SudoersCommand::PATTERN).ok());
        let is_whole = !text.ends_with(|last: char| last.is_whitespace() || last == '\\');
        if is_whole && matches(&PATTERN, text) {
            Ok(Self(text))
        } else {
            Err("must have commands that are single lines, each by itself, and do not end with a space or '\\'; write \
                 ',', ':', '=' and '#' with a backslash in front")
        }
    }
}

fn matches(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// A public key in Base64.
#[derive(Clone, Copy)]
pub(crate) struct PublicKey<'a>(pub(crate) &'a str);
text_type!(PublicKey, { "type": "string", "pattern": "^[A-Za-z0-9+/]+=*$" });

impl<'a> Text<'a> for PublicKey<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let letters = text.trim_end_matches('=');
        let is_base64 = letters.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
        if is_base64 && !letters.is_empty() {
            Ok(Self(text))
        } else {
            Err("must be the key in Base64 alone, without its type and its comment")
        }
    }
}

/// The type of a key as OpenSSH writes it.
#[derive(Clone, Copy)]
pub(crate) struct KeyType<'a>(pub(crate) &'a str);
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
            Ok(Self(text))
        } else {
            Err("must be a type as in the key file, such as \"ssh-ed25519\", \"ssh-rsa\" or \"ecdsa-sha2-nistp256\"")
        }
    }
}

/// The options in front of a key, or none.
#[derive(Clone, Copy)]
pub(crate) struct KeyOptions<'a>(pub(crate) &'a str);
text_type!(KeyOptions, { "type": "string", "pattern": "^([A-Za-z@](\\\\*[^\"\\s\\\\]|\\\\+\"|\"(\\\\*[^\"\\\\\\r\\n]|\\\\+\")*\")*\\\\*)?$" });

impl<'a> Text<'a> for KeyOptions<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let begins = text.is_empty() || text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '@');
        let (mut quoted, mut escaped, mut single) = (false, false, true);
        for each in text.chars() {
            single &= !matches!(each, '\r' | '\n') && (quoted || !each.is_whitespace());
            quoted ^= each == '"' && !escaped;
            // As sshd reads it: several backslashes do not pair up.
            escaped = each == '\\';
        }
        if begins && single && !quoted {
            Ok(Self(text))
        } else {
            Err(
                "must be options with commas between them, without spaces outside of quotes, and with every quote closed",
            )
        }
    }
}

/// The name of a time zone.
#[derive(Clone, Copy)]
pub(crate) struct ZoneName<'a>(pub(crate) &'a str);
text_type!(ZoneName, { "type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$" });

impl<'a> Text<'a> for ZoneName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
        };
        if text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.split('/').all(is_part) {
            Ok(Self(text))
        } else {
            Err("must be the name of a time zone, such as \"Europe/Berlin\" or \"UTC\"")
        }
    }
}

/// A variable of the settings of a locale.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LocaleVariable<'a>(pub(crate) &'a str);
text_type!(LocaleVariable, { "type": "string", "pattern": "^(LANG|LANGUAGE|LC_[A-Z]+)$" });

impl<'a> Text<'a> for LocaleVariable<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let category = text.strip_prefix("LC_");
        let is_category =
            category.is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase()));
        if is_category || matches!(text, "LANG" | "LANGUAGE") {
            Ok(Self(text))
        } else {
            Err("must have the names LANG, LANGUAGE, or those of categories, such as LC_TIME")
        }
    }
}

/// The name of a locale, or several with colons between them.
#[derive(Clone, Copy)]
pub(crate) struct LocaleName<'a>(pub(crate) &'a str);
text_type!(LocaleName, { "type": "string", "pattern": "^[A-Za-z0-9_.@:+-]*$" });

impl<'a> Text<'a> for LocaleName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.@:+-".contains(&byte)) {
            Ok(Self(text))
        } else {
            Err("must have names of locales, such as \"de_DE.UTF-8\"")
        }
    }
}

/// The name of a locale that can be generated.
#[derive(Clone, Copy)]
pub(crate) struct GeneratedLocale<'a>(pub(crate) &'a str);
text_type!(GeneratedLocale, { "type": "string", "pattern": "^[A-Za-z]+(_[A-Za-z0-9]+)?(\\.[A-Za-z0-9-]+)?(@[A-Za-z0-9]+)?$" });

impl<'a> Text<'a> for GeneratedLocale<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let (rest, modifier) = text.split_once('@').map_or((text, None), |(rest, modifier)| (rest, Some(modifier)));
        let (rest, codeset) = rest.split_once('.').map_or((rest, None), |(rest, codeset)| (rest, Some(codeset)));
        let (language, territory) =
            rest.split_once('_').map_or((rest, None), |(language, territory)| (language, Some(territory)));
        let is_language = !language.is_empty() && language.bytes().all(|byte| byte.is_ascii_alphabetic());
        let is_codeset =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if is_language && territory.is_none_or(plain) && codeset.is_none_or(is_codeset) && modifier.is_none_or(plain) {
            Ok(Self(text))
        } else {
            Err("must be a list of locales, such as \"de_DE.UTF-8\"")
        }
    }
}

/// The name of a module of the kernel.
#[derive(Clone, Copy)]
pub(crate) struct ModuleName<'a>(pub(crate) &'a str);
text_type!(ModuleName, { "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$" });

impl<'a> Text<'a> for ModuleName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_part) {
            Ok(Self(text))
        } else {
            Err("must be the name of a module, such as br_netfilter")
        }
    }
}

/// An IP address.
#[derive(Clone, Copy)]
pub(crate) struct Address<'a> {
    pub(crate) text: &'a str,
    pub(crate) address: IpAddr,
}
text_type!(Address, { "type": "string", "minLength": 1 });

impl<'a> Text<'a> for Address<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        text.parse().map(|address| Self { text, address }).map_err(|_| "must be an IPv4 or IPv6 address")
    }
}

/// A JSON Pointer to a value below the root.
#[derive(Clone, Copy)]
pub(crate) struct Pointer<'a>(pub(crate) &'a str);
text_type!(Pointer, { "type": "string", "pattern": "^(/([^~]|~[01])*)+$" });

impl<'a> Text<'a> for Pointer<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_escaped = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        if text.starts_with('/') && is_escaped {
            Ok(Self(text))
        } else {
            Err("must be a JSON Pointer, such as \"/server/port\"")
        }
    }
}

/// Any value.
pub(crate) struct AnyValue(pub(crate) Value);

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde_json::Value::deserialize(deserializer).map(|json| Self(json.into()))
    }
}

impl JsonSchema for AnyValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AnyValue".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({})
    }
}

/// Bytes as Base64.
pub(crate) struct Base64(pub(crate) Vec<u8>);

impl<'a> Text<'a> for Base64 {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        STANDARD.decode(text.trim_end()).map(Self).map_err(|_| "is not valid Base64")
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor::<Self>(PhantomData))
    }
}

impl JsonSchema for Base64 {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Base64".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "string", "contentEncoding": "base64" })
    }
}

/// Whether and how former content is kept.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Backup<'a> {
    /// It is not.
    #[default]
    No,
    /// As `name.backup-` and the beginning of the SHA-256 of the content, so that every content is kept once.
    ByDigest,
    /// Under the name with this suffix, the last one only.
    Suffix(&'a str),
}

impl<'a> Backup<'a> {
    /// What comes behind the name of the file in that of its copy, as far as that is known before there is content.
    pub(crate) fn known_suffix(stated: &'a Value) -> Option<&'a str> {
        match stated {
            Value::Bool(true) => Some(".backup-"),
            stated => stated.as_str(),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Backup<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BackupVisitor)
    }
}

struct BackupVisitor;

impl<'de> Visitor<'de> for BackupVisitor {
    type Value = Backup<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false, or a suffix such as \".orig\"")
    }

    fn visit_bool<E: de::Error>(self, keep: bool) -> Result<Backup<'de>, E> {
        Ok(if keep { Backup::ByDigest } else { Backup::No })
    }

    fn visit_borrowed_str<E: de::Error>(self, suffix: &'de str) -> Result<Backup<'de>, E> {
        if suffix.is_empty() || suffix.contains(['/', '\0']) {
            return Err(E::invalid_value(de::Unexpected::Other("a suffix"), &self));
        }
        Ok(Backup::Suffix(suffix))
    }
}

impl JsonSchema for Backup<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Backup".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "oneOf": [{ "type": "boolean" }, { "type": "string", "minLength": 1, "pattern": "^[^/]+$" }]
        })
    }
}

/// What is reported and cannot be asked for.
pub(crate) struct ReadOnly<T>(PhantomData<T>);

impl<'de, T> Deserialize<'de> for ReadOnly<T> {
    fn deserialize<D: Deserializer<'de>>(_deserializer: D) -> Result<Self, D::Error> {
        Err(de::Error::custom("is read-only; remove it"))
    }
}

impl<T: JsonSchema> JsonSchema for ReadOnly<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        schema.insert("readOnly".to_owned(), true.into());
        schema
    }
}
