//! Names of files in the place of a template, which would be the whole content.

use stead_core::value::{Object, Value};
use stead_host::provider::Lint;

use super::Properties;

/// The ends of the names of templates and of what they make.
const ENDS: [&str; 12] =
    [".j2", ".jinja", ".jinja2", ".erb", ".epp", ".tera", ".tmpl", ".tpl", ".tftpl", ".conf", ".cfg", ".yml"];

/// Finds a template that is the name of a file, or of a language.
pub(super) fn lints(properties: &Object) -> Vec<Lint> {
    let text = properties.get(Properties::TEMPLATE).and_then(Value::as_str).unwrap_or_default();
    let is_word = !text.is_empty() && !text.contains(char::is_whitespace) && !text.contains(['{', '}', '=']);
    let is_file = ENDS.iter().any(|end| text.len() > end.len() && text.ends_with(end));
    let is_language = matches!(text, "jinja" | "jinja2" | "mako" | "erb" | "epp");
    let lint = |message: &str, help: String| vec![Lint::new(&[Properties::TEMPLATE], message, help)];
    match () {
        () if is_word && is_file => {
            let message = "'template' is the text of the template, and this looks like the name of a file with it";
            lint(message, format!("write `source: {text}`"))
        }
        () if is_language => {
            let message = "'template' is the text of the template, and this looks like the language of one";
            lint(message, "write the text itself, or the file that has it as 'source'".to_owned())
        }
        () if text.contains("<%") && text.contains("%>") => {
            let message = "the parts between '<%' and '%>' are plain text: templates are in the syntax of Jinja2";
            lint(message, "write {{ name }} for a value, and {% if name %} ... {% endif %} for conditions".to_owned())
        }
        () => Vec::new(),
    }
}
