//! Texts of units of systemd.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use stead_core::value::Value;

use super::calendar::is_calendar_event;
use super::{CHECKED, Checked, Text, text_type};

/// The name of a unit of systemd, with or without the ending that says its kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnitName<'a>(pub(crate) &'a str, Checked);
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
            Ok(Self(text, CHECKED))
        }
    }
}

impl UnitName<'_> {
    /// The whole name: that of a service where no kind is stated.
    pub(crate) fn whole(self) -> String {
        whole_name(self.0)
    }
}

const KINDS: [&str; 10] =
    ["service", "socket", "timer", "target", "path", "mount", "automount", "swap", "slice", "scope"];

/// The whole name of a unit: that of a service where no kind is stated.
pub(crate) fn whole_name(name: &str) -> String {
    let kind = name.rsplit_once('.').map(|(_, kind)| kind);
    if kind.is_some_and(|kind| KINDS.contains(&kind)) { name.to_owned() } else { format!("{name}.service") }
}

/// Returns whether a text is a complete name of a unit with its suffix, which `[Install]` may name.
pub(crate) fn is_whole_name(text: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b":_.\\@-".contains(&byte);
    // Device units have no files, but others can be wanted by them.
    let is_kind = |kind: &str| KINDS.contains(&kind) || kind == "device";
    let stem = text.rsplit_once('.').filter(|(_, kind)| is_kind(kind)).map(|(stem, _)| stem);
    let has_stem = stem.is_some_and(|stem| !stem.is_empty() && !stem.starts_with('@'));
    has_stem && text.len() <= 255 && text.bytes().all(is_good)
}

/// The message about an assignment of a unit file that is not valid.
const LINE: &str = "must be a single line without spaces around it, that does not end with '\\'";

/// The value of a setting of a unit of systemd.
#[derive(Clone, Copy)]
pub(crate) struct UnitLine<'a>(pub(crate) &'a str, Checked);
text_type!(UnitLine, {
    "type": "string",
    "pattern": "^[^\\s\\p{Cc}]([^\\p{Cc}]*[^\\s\\p{Cc}\\\\])?$",
    "not": { "pattern": "^\\\\$|^([^%]|%[aAbBCdDEfgGhHiIjJlLmMnNopPqrRsStTuUvVwWyY%])*%([^aAbBCdDEfgGhHiIjJlLmMnNopPqrRsStTuUvVwWyY%]|$)" }
});

impl<'a> Text<'a> for UnitLine<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        // A backslash would have the next line belong to it.
        let has_good_edges = text == text.trim() && !text.is_empty() && !text.ends_with('\\');
        if !has_good_edges || text.contains(char::is_control) {
            Err(LINE)
        } else if has_bare_percent(text) {
            Err("must have '%%' for a literal '%', which begins a specifier of systemd")
        } else {
            Ok(Self(text, CHECKED))
        }
    }
}

/// The letters that follow '%' in the specifiers of systemd.unit(5), and the second '%' of a literal one.
const SPECIFIERS: &str = "aAbBCdDEfgGhHiIjJlLmMnNopPqrRsStTuUvVwWyY%";

/// Returns whether a '%' begins something that is not a specifier: systemd ignores such a setting.
fn has_bare_percent(text: &str) -> bool {
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        if sign == '%' && !signs.next().is_some_and(|next| SPECIFIERS.contains(next)) {
            return true;
        }
    }
    false
}

/// The user or group that a service runs as.
#[derive(Clone, Copy)]
pub(crate) struct UnitAccount<'a>(pub(crate) &'a str, Checked);
text_type!(UnitAccount, {
    "type": "string",
    "pattern": "^[^\\s\\p{Cc}#:/]*[^\\s\\p{Cc}#:/\\\\]$",
    "not": { "pattern": "^\\.\\.?$|^-[0-9]*$|^([^%]|%%)*%([^%]|$)" }
});

impl<'a> Text<'a> for UnitAccount<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_odd = |each: char| each.is_whitespace() || each.is_control() || matches!(each, '#' | ':' | '/');
        let is_negative = text.strip_prefix('-').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let is_name = !text.is_empty() && !text.contains(is_odd) && !matches!(text, "." | "..") && !is_negative;
        if is_name && !text.ends_with('\\') && !text.replace("%%", "").contains('%') {
            Ok(Self(text, CHECKED))
        } else {
            Err(
                "must be the name or number of an account, without spaces, ':', '/' and '#', that does not end with '\\'; write '%%' for '%'",
            )
        }
    }
}

/// The command line of a service.
#[derive(Clone, Copy)]
pub(crate) struct UnitCommand<'a>(pub(crate) &'a str, Checked);
text_type!(UnitCommand, { "type": "string", "pattern": "^[-@:+!]*\"?/" });

impl<'a> Text<'a> for UnitCommand<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        UnitLine::check(text)?;
        let path = text.trim_start_matches(['-', '@', ':', '+', '!']);
        if !path.trim_start_matches(['"', '\'']).starts_with('/') {
            Err("must begin with an absolute path; systemd starts no shell")
        } else if has_open_quote(path) {
            Err("has an unclosed quote")
        } else {
            Ok(Self(text, CHECKED))
        }
    }
}

/// Returns whether a quote in a command line has no partner, by the rules of systemd.
fn has_open_quote(text: &str) -> bool {
    let (mut open, mut escaped) = (None, false);
    for each in text.chars() {
        match each {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' | '\'' if open.is_none() => open = Some(each),
            _ if open == Some(each) => open = None,
            _ => {}
        }
    }
    open.is_some()
}

/// The working directory of a service.
#[derive(Clone, Copy)]
pub(crate) struct UnitDirectory<'a>(pub(crate) &'a str, Checked);
text_type!(UnitDirectory, { "type": "string", "pattern": "^-?(/|~$|%)" });

impl<'a> Text<'a> for UnitDirectory<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        UnitLine::check(text)?;
        let path = text.strip_prefix('-').unwrap_or(text);
        let is_path = path == "~" || path.starts_with(['/', '%']);
        if is_path {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be an absolute path, or '~' for the home directory of 'user'")
        }
    }
}

/// A calendar event.
struct Calendar<'a>(UnitLine<'a>);
text_type!(Calendar, { "type": "string", "minLength": 1 });

impl<'a> Text<'a> for Calendar<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let line = UnitLine::check(text)?;
        let message = "must be a systemd calendar event, such as \"daily\" or \"Mon..Fri *-*-* 04:00\"; \
                       `systemd-analyze calendar` checks one";
        if is_calendar_event(text) { Ok(Self(line)) } else { Err(message) }
    }
}

/// The name of a drop-in file, without its ending.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DropInName<'a>(pub(crate) &'a str, Checked);
text_type!(DropInName, { "type": "string", "pattern": "^[^/.\\p{Cc}][^/\\p{Cc}]*$" });

impl<'a> Text<'a> for DropInName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.is_empty() || text.starts_with('.') || text.contains(|each: char| each == '/' || each.is_control()) {
            Err("must have names without '/' and control characters, that do not begin with '.'")
        } else {
            Ok(Self(text, CHECKED))
        }
    }
}

/// A span of time, as systemd reads it.
#[derive(Clone, Copy)]
pub(crate) struct TimeSpan<'a>(pub(crate) &'a str, Checked);
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
        if text.is_empty() { Err(message) } else { Ok(Self(text, CHECKED)) }
    }
}

/// Returns the rest behind the first number and its unit.
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

/// A calendar event, or several.
pub(crate) enum CalendarEvents<'a> {
    One(&'a str),
    More(Vec<&'a str>),
}

impl CalendarEvents<'_> {
    /// As it is stated.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::One(line) => Value::from(*line),
            Self::More(lines) => Value::Array(lines.iter().map(|line| Value::from(*line)).collect()),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for CalendarEvents<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CalendarEventsVisitor)
    }
}

struct CalendarEventsVisitor;

impl<'de> Visitor<'de> for CalendarEventsVisitor {
    type Value = CalendarEvents<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or a non-empty list of strings")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<CalendarEvents<'de>, E> {
        Calendar::check(text).map(|event| CalendarEvents::One(event.0.0)).map_err(E::custom)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<CalendarEvents<'de>, A::Error> {
        let mut lines = Vec::new();
        while let Some(Calendar(event)) = items.next_element()? {
            lines.push(event.0);
        }
        if lines.is_empty() { Err(de::Error::invalid_length(0, &self)) } else { Ok(CalendarEvents::More(lines)) }
    }
}

impl JsonSchema for CalendarEvents<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "CalendarEvents".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let line = Calendar::json_schema(generator);
        schemars::json_schema!({ "oneOf": [line, { "type": "array", "items": line, "minItems": 1 }] })
    }
}
