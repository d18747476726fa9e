//! Values of options that are more than text, and the completions of some that are.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Arg;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use stead_core::manifest::VersionRequirement;

use super::candidates;

/// `NAME=VALUE`
pub(super) fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ if text.starts_with('@') => {
            Err("expected NAME=VALUE; '--parameters-file FILE' names a file with parameters".to_owned())
        }
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

pub(super) fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "must be a number of at least 1".to_owned())
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    at_least_one(text).map(|seconds| Duration::from_secs(seconds.get() as u64))
}

/// Any text. Completions offer the values that are known.
#[derive(Clone)]
pub(super) struct Known(fn() -> Vec<PossibleValue>);

impl TypedValueParser for Known {
    type Value = String;

    fn parse_ref(&self, command: &clap::Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter()))
    }
}

pub(super) const TYPE_NAMES: Known = Known(candidates::types);

/// A requirement of a version, as it is written.
pub(super) fn required_version(text: &str) -> Result<String, String> {
    VersionRequirement::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}
