//! Templates in the language of Jinja2: text and variables in, text out, within limits.

use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};
use serde::Serialize;

mod bounds;

/// How many steps a template may take. One is an instruction, or 64 bytes of a text that it makes: so what it makes on its way
/// is at most 64 MB, and it takes a fraction of a second.
const FUEL: u64 = 1_000_000;

/// How many bytes a template may yield.
const MAX_OUTPUT: usize = 16 << 20;

/// Why a template yields nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TemplateError {
    /// The line of the template, from 1, where it is known.
    pub line: Option<usize>,
    /// True if a variable is not defined.
    pub is_undefined: bool,
    /// The mistake in words, without any part of the template.
    plain: String,
    /// The mistake in words, with the part that it is about. Values of variables are not in it.
    quoted: Option<String>,
}

impl TemplateError {
    /// Returns the mistake in one sentence; parts of the template are in it only if it may be shown.
    pub fn message(&self, is_shown: bool) -> &str {
        self.quoted.as_deref().filter(|_| is_shown).unwrap_or(&self.plain)
    }

    fn of(text: &str, error: &Error) -> Self {
        if let Some(line) = open_comment(text).filter(|_| error.kind() == ErrorKind::SyntaxError) {
            let plain = "'{#' begins a comment that no '#}' ends; write {{ '{#' }} for these two characters";
            return Self { line: Some(line), is_undefined: false, plain: plain.to_owned(), quoted: None };
        }
        // The expression, which is the author's text; a detail may quote values.
        let expression = error.range().and_then(|range| text.get(range)).map(bounds::as_written);
        let expression = expression.map(|text| text.trim().to_owned());
        let expression = expression.filter(|text| !text.is_empty() && !text.starts_with("__stead"));
        let (plain, quoted) = match error.kind() {
            _ if let Some(limit) = bounds::message(error) => (limit.to_owned(), None),
            ErrorKind::UndefinedError => {
                let quoted = expression.map(|expression| format!("'{expression}' is not defined"));
                ("a variable is not defined".to_owned(), quoted)
            }
            ErrorKind::OutOfFuel => (format!("rendering takes more than {FUEL} steps"), None),
            ErrorKind::WriteFailure => (format!("the text has more than {} MiB", MAX_OUTPUT >> 20), None),
            // Its detail quotes words of the template.
            ErrorKind::SyntaxError => ("it is not a valid template".to_owned(), error.detail().map(str::to_owned)),
            kind => (kind.to_string(), expression.map(|expression| format!("'{expression}': {kind}"))),
        };
        let is_undefined = error.kind() == ErrorKind::UndefinedError;
        Self { line: error.line(), is_undefined, plain, quoted }
    }
}

/// The line of a comment that is not closed, as a shell has in `${#words[@]}`.
fn open_comment(text: &str) -> Option<usize> {
    let closed = text.rfind("#}").map_or(0, |at| at + 2);
    let at = closed + text.get(closed..)?.find("{#")?;
    Some(text.get(..at)?.matches('\n').count() + 1)
}

/// Refuses what is not a template.
pub fn check(text: &str) -> Result<(), TemplateError> {
    let text = bounded(text)?;
    environment().template_from_str(&text).map(|_| ()).map_err(|error| TemplateError::of(&text, &error))
}

/// The text with the limits that the engine lacks.
fn bounded(text: &str) -> Result<String, TemplateError> {
    bounds::bounded(text).map_err(|(line, problem)| TemplateError {
        line: Some(line),
        is_undefined: false,
        plain: problem.to_owned(),
        quoted: None,
    })
}

/// Renders a template with variables, an object. A variable that is not defined is an error.
///
/// Guarantees: it ends, within limits of time and size that are the same everywhere.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::template::render;
///
/// let text = "listen {{ port }};\n{% for host in hosts %}allow {{ host }};\n{% endfor %}";
/// let rendered = render(text, &json!({ "port": 80, "hosts": ["a", "b"] })).map_err(|error| error.message(true).to_owned())?;
/// assert_eq!(rendered, "listen 80;\nallow a;\nallow b;\n");
///
/// let error = render("first\n{{ prot }}", &json!({ "port": 80 })).unwrap_err();
/// assert!(error.is_undefined);
/// assert_eq!(error.line, Some(2));
/// // A template may hold secrets: its words are shown only where it may be.
/// assert!(error.message(true).contains("prot") && !error.message(false).contains("prot"));
/// # Ok::<(), String>(())
/// ```
pub fn render(text: &str, variables: &impl Serialize) -> Result<String, TemplateError> {
    let environment = environment();
    let text = bounded(text)?;
    let failed = |error: Error| TemplateError::of(&text, &error);
    let template = environment.template_from_str(&text).map_err(failed)?;
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
    bounds::enable(&mut environment);
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
