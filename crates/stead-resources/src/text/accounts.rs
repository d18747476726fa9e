//! Fields of the databases of users and groups.

use super::{CHECKED, Checked, Text, text_type};

/// The name or number of a user or group.
#[derive(Clone, Copy)]
pub(crate) struct AccountName<'a>(pub(crate) &'a str, Checked);
text_type!(AccountName, { "type": "string", "pattern": "^[^:\\p{Cc}]+$" });

impl<'a> Text<'a> for AccountName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.is_empty() || text.contains(char::is_control) {
            return Err("must be a name or a number");
        }
        // No name has one: it is between the fields of the databases.
        if text.contains(':') {
            return Err("must be one name or number, without ':'; user and group are two properties");
        }
        Ok(Self(text, CHECKED))
    }
}

/// The name of a user or group that can be made: what shadow-utils of Debian accept, and no reader of the databases
/// takes for a comment or for an entry of NIS.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewAccountName<'a>(pub(crate) &'a str, Checked);
text_type!(NewAccountName, { "type": "string", "pattern": "^[^-+~#:,/\\s\\p{Cc}][^:,/\\s\\p{Cc}]{0,31}$", "not": { "pattern": "^[0-9]+$" } });

impl<'a> Text<'a> for NewAccountName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let has_bad_begin = text.starts_with(['-', '+', '~', '#']) || text.is_empty();
        let is_bad = |char: char| char.is_whitespace() || char.is_control() || matches!(char, ':' | ',' | '/');
        if has_bad_begin || text.chars().any(is_bad) || text.chars().count() > 32 {
            return Err(
                "must be a name of at most 32 characters, without ':', ',', '/' and spaces, that does not begin with '-', '+', '~' or '#'",
            );
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            Err("must be a name, not a number")
        } else {
            Ok(Self(text, CHECKED))
        }
    }
}

/// The text of a field of a database whose fields have colons between them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field<'a>(pub(crate) &'a str, Checked);
text_type!(Field, { "type": "string", "pattern": "^[^:\\p{Cc}]*$" });

impl<'a> Text<'a> for Field<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.contains(|char: char| char == ':' || char.is_control()) {
            Err("must not contain ':', a line break or another control character")
        } else {
            Ok(Self(text, CHECKED))
        }
    }
}

/// The absolute path of a home directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct HomePath<'a>(pub(crate) &'a str, Checked);
text_type!(HomePath, { "type": "string", "pattern": "^/[^:\\p{Cc}]*$" });

impl<'a> Text<'a> for HomePath<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.starts_with('/') && !text.contains(|char: char| char == ':' || char.is_control()) {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be an absolute path without ':'")
        }
    }
}

/// The hash of a password.
#[derive(Clone, Copy)]
pub(crate) struct PasswordHash<'a>(pub(crate) &'a str, Checked);
text_type!(PasswordHash, { "type": "string", "pattern": "^([*]|[$_][^:\\s\\p{Cc}]+)$" });

impl<'a> Text<'a> for PasswordHash<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_hash = text.starts_with(['$', '_'])
            && text.len() > 1
            && !text.contains(|each: char| each == ':' || each.is_whitespace() || each.is_control());
        if is_hash || text == "*" {
            Ok(Self(text, CHECKED))
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
