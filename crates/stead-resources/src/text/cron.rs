//! Tables of cron, as the cron of Debian and its relatives read them: what they do not understand makes them ignore the
//! whole table.

use std::borrow::Cow;

use super::schedule::refusal;
use super::{CHECKED, Checked, Text, breaks_line, is_blank, text_type};

/// The longest command, or variable with its value, that cron keeps whole, in bytes: it cuts off the rest.
const LONGEST: usize = 998;

/// The name of a job of cron.
#[derive(Clone, Copy)]
pub(crate) struct JobName<'a>(pub(crate) &'a str, Checked);
text_type!(JobName, { "type": "string", "pattern": "^[^\\s\\p{Cc}]([^\\p{Cc}]*[^\\s\\p{Cc}])?$" });

impl<'a> Text<'a> for JobName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.is_empty() || text.trim() != text || text.contains(char::is_control) {
            return Err("must be a name in a single line, without spaces around it");
        }
        Ok(Self(text, CHECKED))
    }
}

/// When a job of cron runs.
#[derive(Clone, Copy)]
pub(crate) struct Schedule<'a>(pub(crate) &'a str, Checked);
text_type!(Schedule, { "type": "string", "minLength": 1 });

impl<'a> Text<'a> for Schedule<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        refusal(text).map_or(Ok(Self(text, CHECKED)), Err)
    }
}

/// The command of a job.
#[derive(Clone, Copy)]
pub(crate) struct CronCommand<'a>(pub(crate) &'a str, Checked);
text_type!(CronCommand, { "type": "string", "pattern": "^[\\t ]*[^\\p{Cc} *](\\t|\\P{Cc})*$", "maxLength": 998 });

impl<'a> Text<'a> for CronCommand<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let command = text.trim_matches(is_blank);
        if text.contains(breaks_line) {
            Err("must be a single line without control characters")
        } else if command.is_empty() {
            Err("must not be empty")
        } else if command.starts_with('*') {
            // It may be a sixth column by mistake.
            Err("must not begin with '*', which cron refuses")
        } else if text.len() > LONGEST {
            Err("must be at most 998 bytes; cron cuts off the rest. Put the command into a script")
        } else {
            Ok(Self(command, CHECKED))
        }
    }
}

/// The value of a variable.
#[derive(Clone, Copy)]
pub(crate) struct CronValue<'a>(pub(crate) &'a str, Checked);
text_type!(CronValue, { "type": "string", "pattern": "^((\\t|\\P{Cc})*[^\\p{Cc} ])?$", "maxLength": 998 });

impl<'a> Text<'a> for CronValue<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.contains(breaks_line) {
            Err("must have values that are single lines without control characters")
        } else if text.ends_with(is_blank) {
            Err("must not have values that end with a space or a tab, which cron drops even within quotes")
        } else if text.len() > LONGEST {
            Err("must have values of at most 998 bytes; cron cuts off the rest")
        } else if is_within_quotes(text) {
            Err("must not have a value that begins and ends with the same quote: cron takes both off, even within \
                 other quotes")
        } else if needs_quotes(text) && text.contains('"') && text.contains('\'') {
            Err("must not have a value that begins with a quote or a space and has both kinds of \
                 quotes: cron cannot hold it")
        } else {
            Ok(Self(text, CHECKED))
        }
    }
}

impl<'a> CronValue<'a> {
    /// As it is in a table. Cron knows no way to write a quote within quotes.
    pub(crate) fn quoted(self) -> Cow<'a, str> {
        match (needs_quotes(self.0), self.0.contains('"')) {
            (false, _) => self.0.into(),
            (true, false) => format!("\"{}\"", self.0).into(),
            (true, true) => format!("'{}'", self.0).into(),
        }
    }
}

/// Returns whether a value needs quotes, because cron would read it as another value or, if it is empty, as a job.
fn needs_quotes(text: &str) -> bool {
    text.is_empty() || text.starts_with(['"', '\'', ' ', '\t'])
}

/// Returns whether a text begins with a quote that it ends with as well: cron looks for quotes once more in what it found
/// within quotes.
fn is_within_quotes(text: &str) -> bool {
    text.len() > 1 && ['"', '\''].iter().any(|quote| text.starts_with(*quote) && text.ends_with(*quote))
}

/// The name and the value of a variable that a line sets, as cron reads it; `None` of a line that sets none.
pub(crate) fn variable(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(is_blank);
    let (name, rest) =
        quoted(line).or_else(|| line.split_at_checked(line.find(|each| each == '=' || is_blank(each))?))?;
    let rest = rest.trim_start_matches(is_blank).strip_prefix('=')?;
    let rest = rest.trim_matches(is_blank);
    let value = match quoted(rest) {
        // Something behind the second quote makes it no value.
        Some((value, behind)) => Some(value.trim_end_matches(is_blank)).filter(|_| behind.is_empty()),
        None => Some(rest).filter(|rest| !rest.is_empty() && !rest.starts_with(['"', '\''])),
    };
    (!name.is_empty() || line.starts_with(['"', '\''])).then_some(name).zip(value)
}

/// Splits a text that begins with a quote into the quoted part and the rest behind it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    text.get(1..)?.split_once(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_were() {
        for value in ["", "a b", " x", "\"q", "'q", "'q' x", "\"", "a'b\"c", "it's", "#", "a=b", "\tx", "%", "x\""] {
            let held = CronValue::check(value).unwrap_or_else(|reason| panic!("{value}: {reason}"));
            let line = format!("A={}", held.quoted());
            assert_eq!(variable(&line), Some(("A", value)), "{line}");
        }
        for value in [" ", "x ", "x\t", "'\"", " '\"", "\"it's\"", "a\0", "a\nb", "\"q\"", "'q'", "''"] {
            assert!(CronValue::check(value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn what_sets_no_variable_is_none() {
        for line in ["A=", "A", "A = ", "A b=c", "A=\"b\" c", "A=\"b", "* * * * * x=y", "@daily x=y", "="] {
            assert_eq!(variable(line), None, "{line}");
        }
        for line in ["A=b", " A = b ", "\"A\"=b", "A='b'", "A= \"b\" "] {
            assert_eq!(variable(line), Some(("A", "b")), "{line}");
        }
    }
}
