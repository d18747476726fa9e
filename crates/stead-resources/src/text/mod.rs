//! Texts that become part of a configuration file, or of a name in a folder of one: one type for each kind of place that a
//! format has for a text, and the rules of the program that reads it.
//!
//! Parsing is the only way to get one. What its reader would take for something else than is meant cannot be one: it is
//! refused with what it must be, and never cut, replaced or left out. No place holds NUL or another control character that
//! the format gives no meaning: a reader that is written in C sees less of it than a plan shows.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Visitor};
use stead_core::value::Value;

use crate::declared::ToValue;

mod accounts;
mod apt;
mod calendar;
mod columns;
mod cron;
mod fstab;
mod ini;
mod line;
mod locale;
mod nft;
mod schedule;
mod ssh;
mod sudoers;
mod unit;
mod unit_file;

pub(crate) use accounts::{AccountName, Expiry, Field, HomePath, NewAccountName, PasswordHash};
pub(crate) use apt::{RepositoryName, SigningKey, SourceWord};
pub(crate) use columns::{Address, HostName, LimitValue, ModuleName, ModuleOptions, SysctlName, Word};
pub(crate) use cron::{CronCommand, CronValue, JobName, Schedule, variable};
pub(crate) use fstab::{MountOptions, MountPoint, MountText, decoded, encoded, fields, stray};
pub(crate) use ini::{IniKey, IniSection, IniValue};
pub(crate) use line::{FileText, SingleLine, TextBlock};
pub(crate) use locale::{GeneratedLocale, LocaleName, LocaleVariable, ZoneName};
pub(crate) use nft::{TableName, TableText};
pub(crate) use ssh::{KeyFault, KeyOptions, KeyType, PublicKey};
pub(crate) use sudoers::{SudoersCommand, SudoersGroup, SudoersName, SudoersWord};
pub(crate) use unit::{
    CalendarEvents, DropInName, TimeSpan, UnitAccount, UnitCommand, UnitDirectory, UnitLine, UnitName, is_whole_name,
    whole_name,
};
pub(crate) use unit_file::{NAMES, Setting, assignments, settings, unit_file_flaw};

/// Proof that a text was checked: only this module can make one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Checked(());

const CHECKED: Checked = Checked(());

/// A text that is checked when it is read.
pub(crate) trait Text<'a>: Sized {
    /// Checks the text, or returns what it must be, as in "must be a path".
    fn check(text: &'a str) -> Result<Self, &'static str>;
}

/// Visits a string and checks it.
pub(crate) struct TextVisitor<T>(pub(crate) PhantomData<T>);

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
                deserializer.deserialize_str($crate::text::TextVisitor::<$name<'de>>(std::marker::PhantomData))
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
pub(crate) use text_type;

/// Declares the words of which a property is one: for reading, for the schema, for states and for messages.
macro_rules! words {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
        #[schemars(inline)]
        $vis enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant),*
        }

        impl $name {
            /// The word.
            $vis fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),*
                }
            }
        }

        impl $crate::declared::ToValue for $name {
            fn to_value(&self) -> Option<stead_core::value::Value> {
                Some(stead_core::value::Value::from(self.word()))
            }
        }
    };
}
pub(crate) use words;

/// Makes what a text type holds its value in states.
macro_rules! text_values {
    ($($name:ident),* $(,)?) => {
        $(impl ToValue for $name<'_> {
            fn to_value(&self) -> Option<Value> {
                Some(Value::from(self.0))
            }
        })*
    };
}

text_values!(
    CronCommand,
    CronValue,
    HostName,
    IniKey,
    IniSection,
    IniValue,
    JobName,
    KeyOptions,
    KeyType,
    LimitValue,
    PublicKey,
    Schedule,
    SingleLine,
    SysctlName,
    TextBlock,
    Word,
);

impl ToValue for Address<'_> {
    fn to_value(&self) -> Option<Value> {
        Some(Value::from(self.text))
    }
}

/// Returns whether a text is a name of ASCII letters, digits and some other signs, none of which it begins with.
fn is_name(text: &str, signs: &[u8]) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || signs.contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_part)
}

/// Returns whether a character is not allowed in a line: every control character but the tab.
fn breaks_line(each: char) -> bool {
    each.is_control() && each != '\t'
}

/// Returns whether the C library treats a character as a blank, as readers do in front of and behind words.
pub(crate) fn is_blank(each: char) -> bool {
    matches!(each, ' ' | '\t')
}
