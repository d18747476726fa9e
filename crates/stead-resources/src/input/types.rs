//! Types of properties: what is read has been checked, and their JSON Schemas say the same.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use stead_core::call::Failure;
use stead_core::value::Value;
use stead_host::provider::Context;
use stead_system::fs::{SystemPath, parse_mode};
use url::Url;

use super::de::EXACT;
use crate::checksum::Checksum;
use crate::declared::ToValue;
use crate::text::{Text, TextVisitor, text_type};

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
        if is_of_windows(text) {
            return Err(OF_WINDOWS);
        }
        if ["https://", "http://", "ftp://"].iter().any(|begin| text.starts_with(begin)) {
            return Err(
                "is a URL, where a path is needed. Have Stead/Download bring the file, and write the path that it has there",
            );
        }
        Ok(Self(text))
    }
}

/// Returns whether a text is a Windows path: of a drive or of a share.
fn is_of_windows(text: &str) -> bool {
    let is_of_drive = matches!(text.as_bytes(), [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    is_of_drive || text.starts_with(r"\\")
}

const OF_WINDOWS: &str = "is a Windows path. Write one that begins with '/', or one relative to the directory of the document; for a \
                          file of that name, put './' in front";

impl PathText<'_> {
    /// The path that is meant.
    pub(crate) fn resolve(self, cx: &Context) -> SystemPath {
        cx.resolve(self.0)
    }

    /// The path for a property that names a file to read.
    pub(crate) fn source(self, cx: &Context, property: &str) -> Result<SystemPath, Failure> {
        cx.source(self.0).map_err(|failure| Failure { property: Some(format!("/{property}")), ..failure })
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

impl ToValue for Pointer<'_> {
    fn to_value(&self) -> Option<Value> {
        Some(Value::from(self.0))
    }
}

impl ToValue for FilePath<'_> {
    fn to_value(&self) -> Option<Value> {
        Some(Value::from(self.0.0))
    }
}

/// What a symbolic link leads to.
#[derive(Clone, Copy)]
pub(crate) struct LinkTarget<'a>(pub(crate) &'a str);
text_type!(LinkTarget, { "type": "string", "minLength": 1 });

impl<'a> Text<'a> for LinkTarget<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        match text {
            _ if text.is_empty() || text.contains('\0') => Err("must be a path"),
            _ if is_of_windows(text) => Err(OF_WINDOWS),
            _ => Ok(Self(text)),
        }
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
        let bits =
            parse_mode(text).ok_or("must be three or four octal digits in quotes, such as \"0640\" for rw-r-----")?;
        Ok(Self { text, bits })
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
        } else if text.contains('*') {
            Err("must be the name of one package: wildcards are not expanded")
        } else if text.contains('/') || [".deb", ".rpm"].iter().any(|end| text.ends_with(end)) {
            Err("must be the name of a package in a repository, and not of a file")
        } else {
            Err("must be the name of a package, such as nginx, libc6:i386 or g++")
        }
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

/// The digest that a file must have.
#[derive(Clone)]
pub(crate) struct ChecksumText<'a> {
    pub(crate) text: &'a str,
    pub(crate) checksum: Checksum,
}
text_type!(ChecksumText, { "type": "string", "pattern": "^(sha256:[0-9A-Fa-f]{64}|sha512:[0-9A-Fa-f]{128})$" });

impl<'a> Text<'a> for ChecksumText<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        Checksum::parse(text).map(|checksum| Self { text, checksum }).ok_or_else(|| checksum_fault(text))
    }
}

/// Why a text is not the digest that a file must have.
fn checksum_fault(text: &str) -> &'static str {
    let is_hexadecimal = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let (algorithm, digits) = text.split_once(':').unwrap_or(("", text));
    match (algorithm, digits.len()) {
        ("sha256", _) if is_hexadecimal(digits) => "must have 64 hexadecimal digits behind \"sha256:\"",
        ("sha512", _) if is_hexadecimal(digits) => "must have 128 hexadecimal digits behind \"sha512:\"",
        ("", 64) if is_hexadecimal(digits) => "must begin with the algorithm: \"sha256:\" and the digits",
        ("", 128) if is_hexadecimal(digits) => "must begin with the algorithm: \"sha512:\" and the digits",
        _ => "must be \"sha256:\" and 64 hexadecimal digits, or \"sha512:\" and 128",
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

/// The address of an HTTP proxy: a URL of a host, with or without a port, a user and a password. Without a scheme it is http.
#[derive(Clone, Copy)]
pub(crate) struct ProxyUrl<'a>(pub(crate) &'a str);
text_type!(ProxyUrl, { "type": "string", "pattern": "^(https?://)?[!-.0-~]+/?$" });

impl<'a> Text<'a> for ProxyUrl<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let url = if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("http://{text}")) };
        let is_proxy = |url: &Url| {
            let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
            matches!(url.scheme(), "http" | "https") && url.has_host() && is_bare
        };
        let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        let valid = url.is_ok_and(|url| is_proxy(&url)) && is_printable;
        if valid {
            Ok(Self(text))
        } else {
            Err("must be the URL of an HTTP proxy: http://HOST:PORT or https://HOST:PORT")
        }
    }
}

/// Where a repository of Git is fetched from: a URL that can be parsed, of SSH `user@host:path`, or a path.
#[derive(Clone, Copy)]
pub(crate) struct RepositoryAddress<'a>(pub(crate) &'a str);
text_type!(RepositoryAddress, {
    "type": "string",
    "pattern": "^((https?|ssh|git)://[!-~]+|file:///[!-~]+|[^-:\\p{Cc}][^:\\p{Cc}]*(:[^:\\p{Cc}]+)?)$",
    "not": { "pattern": "^(ssh|git)://[^/]*:[^/]*@|^[a-z]+://[^#?]*[#?]|^[^/:]+:[^/]*@|^([A-Za-z]:\\\\|\\\\\\\\)" },
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
        // `c:/srv` is a path of the host c.
        if is_of_windows(text) && !text.contains(":/") {
            return Err(OF_WINDOWS);
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

/// Any value, with its numbers as they are written: 1.0 is not 1.
pub(crate) struct AnyValue(pub(crate) Value);

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(EXACT, AnyValueVisitor)
    }
}

struct AnyValueVisitor;

impl<'de> Visitor<'de> for AnyValueVisitor {
    type Value = AnyValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<AnyValue, D::Error> {
        serde_json::Value::deserialize(deserializer).map(|json| AnyValue(json.into()))
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

impl ToValue for AnyValue {
    fn to_value(&self) -> Option<Value> {
        Some(self.0.clone())
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
