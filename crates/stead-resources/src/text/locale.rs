//! Names of time zones and locales.

use super::{CHECKED, Checked, Text, text_type};

/// The name of a time zone.
#[derive(Clone, Copy)]
pub(crate) struct ZoneName<'a>(pub(crate) &'a str, Checked);
text_type!(ZoneName, { "type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$" });

impl<'a> Text<'a> for ZoneName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
        };
        if text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.split('/').all(is_part) {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be the name of a time zone, such as \"Europe/Berlin\" or \"UTC\"")
        }
    }
}

/// A variable of the settings of a locale.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LocaleVariable<'a>(pub(crate) &'a str, Checked);
text_type!(LocaleVariable, { "type": "string", "pattern": "^(LANG|LANGUAGE|LC_[A-Z]+)$" });

impl<'a> Text<'a> for LocaleVariable<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let category = text.strip_prefix("LC_");
        let is_category =
            category.is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase()));
        if is_category || matches!(text, "LANG" | "LANGUAGE") {
            Ok(Self(text, CHECKED))
        } else {
            Err("must have the names LANG, LANGUAGE, or those of categories, such as LC_TIME")
        }
    }
}

/// The name of a locale, or several with colons between them.
#[derive(Clone, Copy)]
pub(crate) struct LocaleName<'a>(pub(crate) &'a str, Checked);
text_type!(LocaleName, { "type": "string", "pattern": "^[A-Za-z0-9_.@:+-]*$" });

impl<'a> Text<'a> for LocaleName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.@:+-".contains(&byte)) {
            Ok(Self(text, CHECKED))
        } else {
            Err("must have names of locales, such as \"de_DE.UTF-8\"")
        }
    }
}

/// The name of a locale that can be generated.
#[derive(Clone, Copy)]
pub(crate) struct GeneratedLocale<'a>(pub(crate) &'a str, Checked);
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
            Ok(Self(text, CHECKED))
        } else {
            Err("must be a list of locales, such as \"de_DE.UTF-8\"")
        }
    }
}
