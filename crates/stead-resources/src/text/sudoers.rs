//! Rules of sudoers(5).

use std::sync::LazyLock;

use regex::Regex;

use super::{CHECKED, Checked, Text, text_type};

/// The name of a file that sudo reads.
#[derive(Clone, Copy)]
pub(crate) struct SudoersName<'a>(pub(crate) &'a str, Checked);
text_type!(SudoersName, { "type": "string", "pattern": "^[A-Za-z0-9_@%+,=:-]+$" });

impl SudoersName<'_> {
    /// Returns whether a text is a valid name.
    pub(crate) fn is_valid(text: &str) -> bool {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+,=:-".contains(&byte);
        !text.is_empty() && text.bytes().all(is_good)
    }
}

impl<'a> Text<'a> for SudoersName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if Self::is_valid(text) {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be a name without '.', '/', '~' and spaces: sudo ignores other files")
        }
    }
}

/// A user, a group or a host in a rule of sudo. A backslash stands before each character that has a meaning there.
#[derive(Clone, Copy)]
pub(crate) struct SudoersWord<'a>(pub(crate) &'a str, Checked);
text_type!(SudoersWord, { "type": "string", "pattern": SudoersWord::PATTERN });

impl SudoersWord<'_> {
    /// A colon stands in front of a group that is none of the system, and in addresses; elsewhere it would begin another list.
    /// An exclamation mark in front excludes; elsewhere it would exclude what follows.
    const PATTERN: &'static str =
        r#"^!*(:?([^\s!,:=()#"\\\p{Cc}]|\\\P{Cc})+|([0-9A-Fa-f]*:){2,}[0-9A-Fa-f.:]*(/[0-9]+)?)$"#;
}

impl<'a> Text<'a> for SudoersWord<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SudoersWord::PATTERN).ok());
        if matches(&PATTERN, text) {
            Ok(Self(text, CHECKED))
        } else {
            Err(
                "must have names of users, groups and hosts, each by itself; write a backslash in front of ' ', ',', ':', '=' and '!'",
            )
        }
    }
}

/// A group in a rule of sudo, without the '%' that stands in front of it there.
#[derive(Clone, Copy)]
pub(crate) struct SudoersGroup<'a>(pub(crate) SudoersWord<'a>);
text_type!(SudoersGroup, { "type": "string", "pattern": SudoersWord::PATTERN, "not": { "pattern": "^%" } });

impl<'a> Text<'a> for SudoersGroup<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.starts_with('%') {
            return Err("must have groups without '%' in front, which is added");
        }
        SudoersWord::check(text).map(Self)
    }
}

/// A command in a rule of sudo, as sudoers(5) has it.
#[derive(Clone, Copy)]
pub(crate) struct SudoersCommand<'a>(pub(crate) &'a str, Checked);
text_type!(SudoersCommand, { "type": "string", "pattern": SudoersCommand::PATTERN, "not": { "pattern": "[\\s\\\\]$" } });

impl SudoersCommand<'_> {
    /// A digest, then a path with arguments, or the name of an alias. Each of them may be a regular expression, in which nothing needs a backslash;
    /// elsewhere a bare ',', ':', '=' or '#' would end the command, so that any arguments were allowed.
    const PATTERN: &'static str = concat!(
        r"^(sha(224|256|384|512):[A-Za-z0-9+/=]+ +)?",
        r#"([ !]*(["/*A-Z]|sudoedit|list|\\\P{Cc})([^\p{Cc}\\,:=#]|\\\P{Cc})*"#,
        r#"|(!*\^([^\p{Cc}\\$#]|\\\P{Cc})*\$|!*(["/*A-Z]|sudoedit|list|\\\P{Cc})([^\s\p{Cc}\\,:=#]|\\\P{Cc})*)"#,
        r"( +(\^([^\p{Cc}\\$#]|\\\P{Cc})*\$|([^\p{Cc}\\,:=#]|\\\P{Cc})*))?)$"
    );
}

impl<'a> Text<'a> for SudoersCommand<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SudoersCommand::PATTERN).ok());
        let is_whole = !text.ends_with(|last: char| last.is_whitespace() || last == '\\');
        if is_whole && matches(&PATTERN, text) {
            Ok(Self(text, CHECKED))
        } else if !begins_a_command(text) {
            Err(
                "must have commands that begin with an absolute path, such as /usr/bin/systemctl; sudo takes no others but ALL, \
                 'sudoedit' and names of aliases",
            )
        } else {
            Err("must have commands that are single lines, each by itself, and do not end with a space or '\\'; write \
                 ',', ':', '=' and '#' with a backslash in front")
        }
    }
}

/// Returns whether a command begins as one that sudo takes, behind its digest and '!'.
fn begins_a_command(text: &str) -> bool {
    let digest = text.strip_prefix("sha").and_then(|rest| rest.split_once(' ')).map(|(_, rest)| rest);
    let command = digest.unwrap_or(text).trim_start_matches([' ', '!']);
    let begins = |first: char| first.is_ascii_uppercase() || matches!(first, '/' | '^' | '"' | '*' | '\\');
    command.is_empty() || command.starts_with(begins) || command.starts_with("sudoedit") || command.starts_with("list")
}

fn matches(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}
