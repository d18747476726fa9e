//! Expressions and placeholders in places where they stay text.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::{Document, codes, texts};
use crate::diag::Diagnostic;
use crate::diag::secret_forms::pattern;
use crate::document::Instance;
use crate::expr::Template;
use crate::text::{Kind, Sources, locate};
use crate::value::DataType;

/// Properties that are paths, or lists of them.
const PATHS: [&str; 9] = [
    "path",
    "source",
    "target",
    "creates",
    "workingDirectory",
    "configurationFile",
    "home",
    "restartedAfter",
    "reloadedAfter",
];
/// Types whose texts are templates themselves.
const TEMPLATE: &str = "Stead/Template";
/// Up to this many bytes, the whole of a text is shown as the expression that computes it.
const SHORT: usize = 80;

/// The forms of what was meant as an expression.
struct Forms {
    /// `[parameters('port')]` and its like.
    call: Regex,
    /// `{{ port }}`, with what stands between.
    braces: Regex,
    /// `${HOME}` or `$HOME`, but neither `$Inner` nor `$A` of a class of Java.
    variable: Regex,
}

/// A part of a text that was meant as an expression.
struct Meant {
    range: Range<usize>,
    expression: String,
}

static FORMS: LazyLock<Forms> = LazyLock::new(|| Forms {
    call: pattern(r"\[((parameters|variables|facts|secret)\('([^']*)'\))\]"),
    braces: pattern(r"\{\{-?\s*([^{}]*?)\s*-?\}\}"),
    variable: pattern(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Z_][A-Z0-9_]+)\b)"),
});

/// A warning for the first one in each text, but for texts in which there are secrets: it repeats the text.
pub(super) fn expressions_as_text(document: &Document, sources: &Sources, secrets: &[Diagnostic]) -> Vec<Diagnostic> {
    let of = |instance| document.of_instance_as_text(instance, sources, secrets);
    document.resources.iter().flat_map(of).collect()
}

impl Document {
    fn of_instance_as_text(&self, instance: &Instance, sources: &Sources, secrets: &[Diagnostic]) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let is_template = instance.type_name.value.as_str().eq_ignore_ascii_case(TEMPLATE);
        let entries = instance.properties.iter().flat_map(|properties| properties.entries().unwrap_or_default());
        for entry in entries {
            let is_path = PATHS.contains(&&*entry.key);
            if is_template && !is_path {
                continue;
            }
            texts(&entry.value, &mut |node, text| {
                // An expression is computed, and '[[' says that a bracket is meant.
                let has_secret = secrets.iter().any(|found| found.span.is_some_and(|found| node.span.holds(found)));
                let is_literal = matches!(node.kind, Kind::String(_)) && !text.starts_with('[') && !has_secret;
                let meant = if is_literal { self.meant(text, is_path) } else { Vec::new() };
                found.extend((!meant.is_empty()).then(|| warning(node, text, &meant, sources)));
            });
        }
        found
    }

    fn meant(&self, text: &str, is_path: bool) -> Vec<Meant> {
        let forms = &*FORMS;
        let of = |captures: &Captures<'_>, expression: Option<String>| {
            let range = captures.get(0).map(|found| found.range())?;
            Some(Meant { range, expression: expression? })
        };
        let group = |captures: &Captures<'_>, at: usize| captures.get(at).map(|found| found.as_str().to_owned());
        let calls = forms.call.captures_iter(text).filter_map(|captures| {
            let (word, name) = (group(&captures, 2)?, group(&captures, 3)?);
            let expression = match word.as_str() {
                "parameters" | "variables" => self.read_of(&name),
                _ => group(&captures, 1),
            };
            of(&captures, expression)
        });
        let mut found: Vec<Meant> = calls.collect();
        let braces: Vec<_> = forms.braces.captures_iter(text).collect();
        let names = || braces.iter().map(|captures| self.read_of(&group(captures, 1).unwrap_or_default()));
        // Where one of them is of another program, all are.
        if is_path || !text.contains("{%") && names().all(|name| name.is_some()) {
            found.extend(braces.iter().zip(names()).filter_map(|(captures, name)| {
                of(captures, name.or_else(|| is_path.then(|| "parameters('NAME')".to_owned())))
            }));
        }
        if is_path {
            found.extend(forms.variable.captures_iter(text).filter_map(|captures| {
                let name = group(&captures, 1).or_else(|| group(&captures, 2))?;
                of(&captures, Some(format!("envvar('{name}')")))
            }));
        }
        found.sort_by_key(|meant| meant.range.start);
        found
    }

    /// The expression for a parameter or a variable as text; `None` where there is none of that name.
    fn read_of(&self, name: &str) -> Option<String> {
        if let Some(parameter) = self.parameters.iter().find(|parameter| parameter.name.value == name) {
            let read = format!("parameters('{name}')");
            let is_text = [DataType::String, DataType::SecureString].contains(&parameter.data_type.value);
            return Some(if is_text { read } else { format!("string({read})") });
        }
        let is_variable = self.variables.iter().any(|variable| variable.name.value == name);
        is_variable.then(|| format!("variables('{name}')"))
    }
}

fn warning(node: &Template, text: &str, meant: &[Meant], sources: &Sources) -> Diagnostic {
    let range = meant.first().map(|first| first.range.clone()).unwrap_or_default();
    let written = text.get(range.clone()).unwrap_or_default();
    let message = format!("'{written}' is not evaluated here: it stays literal text");
    let finding = Diagnostic::warning(&codes::STAYS_TEXT, locate(sources, node.span, range), message);
    let first = meant.first().map_or("", |first| first.expression.as_str());
    finding.with_help(match whole(text, meant) {
        Some(whole) => format!("write \"{whole}\""),
        None => {
            format!("an expression is the whole value: write \"[concat('...', {first}, '...')]\", or use {TEMPLATE}")
        }
    })
}

/// A short text as the expression that was meant.
fn whole(text: &str, meant: &[Meant]) -> Option<String> {
    if text.len() > SHORT || text.contains(['\n', '"', '\\']) {
        return None;
    }
    let (mut parts, mut end) = (Vec::new(), 0);
    let literal = |part: &str, parts: &mut Vec<String>| {
        if !part.is_empty() {
            parts.push(format!("'{}'", part.replace('\'', "''")));
        }
    };
    for Meant { range, expression } in meant {
        literal(text.get(end..range.start)?, &mut parts);
        parts.push(expression.clone());
        end = range.end;
    }
    literal(text.get(end..)?, &mut parts);
    Some(match parts.as_slice() {
        [one] => format!("[{one}]"),
        several => format!("[concat({})]", several.join(", ")),
    })
}
