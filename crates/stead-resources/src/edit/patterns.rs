//! Regular expressions of users, compiled once.

use globset::{GlobBuilder, GlobMatcher};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use regex::bytes::Regex;
use stead_core::call::Failure;

use crate::input::invalid;

/// Expressions that were compiled: compiling one takes longer than a search in a file.
#[derive(Default)]
pub(crate) struct Patterns {
    compiled: Mutex<BTreeMap<String, Regex>>,
}

impl Patterns {
    const MAX: usize = 1024;

    /// Compiles what a property holds.
    pub(crate) fn compile(&self, property: &str, pattern: &str) -> Result<Regex, Failure> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(regex) = compiled.get(pattern) {
            return Ok(regex.clone());
        }
        let regex = compile(property, pattern)?;
        if compiled.len() >= Self::MAX {
            compiled.clear();
        }
        compiled.insert(pattern.to_owned(), regex.clone());
        Ok(regex)
    }
}

/// Compiles what a property holds, for whoever needs it once.
pub(crate) fn compile(property: &str, pattern: &str) -> Result<Regex, Failure> {
    Regex::new(pattern).map_err(|error| not_usable(property, &error))
}

fn not_usable(property: &str, error: &regex::Error) -> Failure {
    if let regex::Error::CompiledTooBig(limit) = error {
        let limit = limit >> 20;
        return invalid(property, format!("'{property}' is too large: compiled, it takes more than {limit} MiB"));
    }
    // The message of the parser quotes the expression, which may be secret; its last line has the reason alone.
    let reason = error.to_string();
    let reason = reason.rsplit_once("error: ").map(|(_, reason)| format!(": {reason}")).unwrap_or_default();
    invalid(property, format!("'{property}' is not a valid regular expression{reason}"))
}

/// Where something new goes in a text.
pub(crate) enum Position {
    Begin,
    End,
    /// Behind a line that it matches, or at the end.
    After(Regex, Match),
    /// In front of a line that it matches, or at the end.
    Before(Regex, Match),
}

/// Which of several lines that match.
#[derive(Clone, Copy)]
pub(crate) enum Match {
    First,
    Last,
}

impl Match {
    /// The match that the property 'firstMatch' selects.
    pub(crate) fn of(first: bool) -> Self {
        if first { Self::First } else { Self::Last }
    }

    /// Selects the first or the last item.
    pub(crate) fn among<T>(self, mut all: impl DoubleEndedIterator<Item = T>) -> Option<T> {
        match self {
            Self::First => all.next(),
            Self::Last => all.next_back(),
        }
    }
}

impl Position {
    /// What the properties 'after' and 'before' say, of which one is stated at most.
    pub(crate) fn of(
        after: Option<&str>,
        before: Option<&str>,
        which: Match,
        compile: impl Fn(&str, &str) -> Result<Regex, Failure>,
    ) -> Result<Self, Failure> {
        let position = |name, text, make: fn(Regex, Match) -> Self| match text {
            "BOF" => Ok(Self::Begin),
            "EOF" => Ok(Self::End),
            pattern => compile(name, pattern).map(|regex| make(regex, which)),
        };
        match (after, before) {
            (Some(text), _) => position("after", text, Self::After),
            (None, Some(text)) => position("before", text, Self::Before),
            (None, None) => Ok(Self::End),
        }
    }
}

/// A pattern of names as glob(3) reads it: braces mean nothing, and a backslash takes the meaning of a sign. `None` where it is none.
pub(crate) fn glob(pattern: &str) -> Option<GlobMatcher> {
    let plain = pattern.replace('{', "[{]").replace('}', "[}]");
    let glob = GlobBuilder::new(&plain).literal_separator(true).backslash_escape(true).build();
    glob.ok().map(|glob| glob.compile_matcher())
}
