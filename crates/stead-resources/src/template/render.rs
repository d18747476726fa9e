//! From a template and variables to a text, and how much of either may be shown.

use std::path::Path;

use serde_json::{Map, Value as Json};
use stead_core::call::Failure;
use stead_core::template::{self, TemplateError};
use stead_host::provider::Plain;
use stead_system::fs::Status;

use super::Properties;
use crate::file::content::is_public;
use crate::input::invalid;

/// Where a template is from, for messages.
pub(super) enum Origin<'a> {
    /// The property 'template'.
    Document,
    /// This file.
    File(&'a Path),
}

/// How much of a template, and of what it yields, may be shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Visibility {
    /// Nothing but sizes: it holds secrets.
    Hidden,
    /// Sizes and digests: not everyone may read it.
    Digest,
    /// All of it.
    Shown,
}

impl Visibility {
    /// Of what is made of these properties.
    pub(super) fn of(input: &Plain) -> Self {
        if input.is_secret() { Self::Hidden } else { Self::Shown }
    }

    /// Of the content of a file.
    pub(super) fn of_file(status: &Status) -> Self {
        if is_public(status) { Self::Shown } else { Self::Digest }
    }
}

/// A template.
pub(super) struct Source<'a> {
    pub(super) origin: Origin<'a>,
    pub(super) text: &'a str,
    pub(super) visibility: Visibility,
}

/// Refuses what is not a template, with the line.
pub(super) fn check(source: &Source<'_>) -> Result<(), Failure> {
    template::check(source.text).map_err(|error| source.failure(&error))
}

/// What a template makes of variables.
pub(super) fn render(source: &Source<'_>, variables: &Map<String, Json>) -> Result<String, Failure> {
    template::render(source.text, variables).map_err(|error| source.failure(&error))
}

impl Source<'_> {
    fn failure(&self, error: &TemplateError) -> Failure {
        let line = error.line.map(|line| format!("line {line}")).unwrap_or_default();
        let (property, place) = match self.origin {
            Origin::Document => (Properties::TEMPLATE, format!("{line} of the template")),
            Origin::File(path) => (Properties::SOURCE, format!("{line} of '{}'", path.display())),
        };
        let advice = if error.is_undefined { "; add it to 'variables'" } else { "" };
        let reason = error.message(self.visibility == Visibility::Shown);
        invalid(property, format!("{}: {reason}{advice}", place.trim_start_matches(" of ")))
    }
}
