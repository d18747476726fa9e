//! From a template and variables to a text, within limits.

use std::io;
use std::path::Path;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};
use serde_json::{Map, Value as Json};
use stead_core::call::Failure;
use stead_host::fs::Status;
use stead_host::provider::Plain;

use crate::file::content::is_public;
use crate::input::invalid;

/// How many instructions a template may take: about a second.
const FUEL: u64 = 10_000_000;

/// How many bytes a template may yield.
const MAX_OUTPUT: usize = 16 << 20;

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
    let environment = environment();
    environment.template_from_str(source.text).map(|_| ()).map_err(|error| source.failure(&error))
}

/// What a template makes of variables.
pub(super) fn render(source: &Source<'_>, variables: &Map<String, Json>) -> Result<String, Failure> {
    let environment = environment();
    let failed = |error: Error| source.failure(&error);
    let template = environment.template_from_str(source.text).map_err(failed)?;
    let mut output = Output(Vec::new());
    template.render_captured_to(Value::from(Serde(variables)), &mut output).map_err(failed)?;
    Ok(String::from_utf8_lossy(&output.0).into_owned())
}

fn environment<'t>() -> Environment<'t> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    // It can only be refused for delimiters, which are the usual ones.
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).trim_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_fuel(Some(FUEL));
    environment.set_debug(true);
    environment
}

/// Takes text up to a limit.
struct Output(Vec<u8>);

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source<'_> {
    fn failure(&self, error: &Error) -> Failure {
        let line = error.line().map(|line| format!("line {line}")).unwrap_or_default();
        let (property, place) = match self.origin {
            Origin::Document => ("template", format!("{line} of the template")),
            Origin::File(path) => ("source", format!("{line} of '{}'", path.display())),
        };
        invalid(property, format!("{}: {}", place.trim_start_matches(" of "), self.reason(error)))
    }

    fn reason(&self, error: &Error) -> String {
        let is_shown = self.visibility == Visibility::Shown;
        // The expression, which is the author's text; a detail may quote values.
        let expression = error.range().and_then(|range| self.text.get(range)).map(str::trim);
        let expression = expression.filter(|text| is_shown && !text.is_empty());
        let about = expression.map(|expression| format!("'{expression}': ")).unwrap_or_default();
        match error.kind() {
            ErrorKind::UndefinedError => match expression {
                Some(expression) => format!("'{expression}' is not defined; add it to 'variables'"),
                None => "a variable is not defined; add it to 'variables'".to_owned(),
            },
            ErrorKind::OutOfFuel => format!("rendering takes more than {FUEL} steps"),
            ErrorKind::WriteFailure => format!("the text has more than {} MiB", MAX_OUTPUT >> 20),
            // Its detail quotes words of the template.
            ErrorKind::SyntaxError => {
                error.detail().filter(|_| is_shown).unwrap_or("it is not a valid template").to_owned()
            }
            kind => format!("{about}{kind}"),
        }
    }
}
