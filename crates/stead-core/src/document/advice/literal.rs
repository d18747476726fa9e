//! Expressions and placeholders in places where they stay text.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::{Document, codes, texts};
use crate::diag::Diagnostic;
use crate::diag::secret_forms::pattern;
use crate::document::{Instance, Over};
use crate::expr::{Builtin, Expression, FunctionCall, Template, ValueKind, fact_of_others, filtered};
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
/// Types of this owner have texts for programs in few properties: those of other owners may have them in any.
const OWNER: &str = "Stead/";
/// Those of that owner that have texts for programs with a `$` of their own.
const RUNNERS: [&str; 5] = ["Command", "Cron", "Nftables", "Service", "Timer"];
/// Properties that are commands, and what those read.
const COMMANDS: [&str; 3] = ["validate", "verify", "environment"];
/// Up to this many bytes, the whole of a text is shown as the expression that computes it.
const SHORT: usize = 80;

/// The reader of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Nothing: it is a path.
    Path,
    /// Perhaps a program that has placeholders of its own.
    Program,
    /// Nothing that has any.
    Plain,
}

impl Reader {
    fn of(type_name: &str, property: &str) -> Self {
        let own = type_name.get(..OWNER.len()).is_some_and(|owner| owner.eq_ignore_ascii_case(OWNER));
        let name = type_name.get(OWNER.len()..).unwrap_or_default();
        let is_runner = RUNNERS.iter().any(|runner| runner.eq_ignore_ascii_case(name));
        match property {
            _ if PATHS.contains(&property) => Self::Path,
            _ if own && !is_runner && !COMMANDS.contains(&property) => Self::Plain,
            _ => Self::Program,
        }
    }
}

/// The forms of what was meant as an expression.
struct Forms {
    /// The beginning of a call in brackets, as in `[parameters('port')]`.
    call: Regex,
    /// `{{ port }}` and `${{ port }}`, with what stands between.
    braces: Regex,
    /// `${parameters('port')}`, with what stands between.
    call_in_braces: Regex,
    /// `${HOME}` or `$HOME`, but neither `$Inner` nor `$A` of a class of Java.
    variable: Regex,
    /// `${var.port}`, as Terraform has it, and what reads a member of something alike.
    member: Regex,
    /// `${each.value}` and `${count.index}`, as Terraform has them.
    item: Regex,
    /// `$port` in a path.
    lower: Regex,
    /// `%{port}` and `<%= port %>`, as Puppet and templates of Ruby have them.
    ruby: Regex,
    /// `${port}` and `$port`, as shells have them.
    shell: Regex,
}

/// A part of a text that was meant as an expression.
struct Meant {
    range: Range<usize>,
    expression: String,
}

static FORMS: LazyLock<Forms> = LazyLock::new(|| Forms {
    call: pattern(r"\[[A-Za-z][A-Za-z0-9.]*\("),
    braces: pattern(r"\$?\{\{-?\s*([^{}]*?)\s*-?\}\}"),
    call_in_braces: pattern(r"\$\{\s*([A-Za-z][A-Za-z0-9.]*\([^{}]*?)\s*\}"),
    variable: pattern(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Z_][A-Z0-9_]+)\b)"),
    member: pattern(
        r"\$\{\s*(?:var|vars|local|locals|param|params|parameter|parameters|variables)\.([A-Za-z_][A-Za-z0-9_-]*)\s*\}",
    ),
    item: pattern(r"\$\{\s*((?:each|count|item)\.[A-Za-z_.]+)\s*\}"),
    lower: pattern(r"\$([a-z_][a-z0-9_]*)\b"),
    ruby: pattern(r"%\{\s*(?:::|@)?([a-z_][A-Za-z0-9_]*)\s*\}|<%=\s*@?([a-z_][A-Za-z0-9_]*)\s*-?%>"),
    shell: pattern(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))"),
});

/// Functions that no other language has: only with one of them a text in brackets was certainly meant as an expression.
const OWN: [&str; 7] = ["parameters", "variables", "facts", "secret", "envvar", "reference", "resourceId"];
/// Functions that return text, of which one that stands alone without brackets was meant as an expression as well.
const ALSO_ALONE: [&str; 10] =
    ["base64", "concat", "format", "join", "replace", "string", "substring", "toLower", "toUpper", "trim"];
/// How many brackets that close are tried for one that opens, and how many of those in one text.
const MOST_ENDS: usize = 8;
const MOST_BEGINS: usize = 256;
/// The longest expression that is looked for within a text, in bytes.
const LONGEST: usize = 512;

/// The context of texts that are looked at.
struct About<'a> {
    sources: &'a Sources,
    secrets: &'a [Diagnostic],
    /// The names of the items of the loops around.
    items: Vec<&'a str>,
    is_in_loop: bool,
    /// True if the innermost loop goes over the members of an object, which have `key` and `value`.
    is_over_object: bool,
}

impl About<'_> {
    /// The expression for what other tools have for the item of a loop, or its index, as text.
    fn item(&self, name: &str) -> Option<String> {
        let (word, members) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
        let called = self.items.iter().find(|item| **item == word);
        let innermost = || self.items.last();
        let item = match (called, word, members) {
            (Some(called), _, members) => format!("{called}(){members}"),
            (None, "each", ".value") if !self.is_over_object => format!("{}()", innermost()?),
            (None, "item", "") => format!("{}()", innermost()?),
            (None, "item" | "each", members) => format!("{}(){members}", innermost()?),
            (None, "count", ".index") | (None, "loop", ".index0") if self.is_in_loop => "copyIndex()".to_owned(),
            (None, "loop", ".index") if self.is_in_loop => "copyIndex(1)".to_owned(),
            _ => return None,
        };
        let is_path = members.chars().all(|c| c.is_alphanumeric() || "._[]'".contains(c));
        is_path.then(|| format!("string({item})"))
    }
}

/// A warning for the first one in each text, but for texts in which there are secrets: it repeats the text.
pub(super) fn expressions_as_text(document: &Document, sources: &Sources, secrets: &[Diagnostic]) -> Vec<Diagnostic> {
    let of = |instance| document.of_instance_as_text(instance, sources, secrets);
    let nowhere = About { sources, secrets, items: Vec::new(), is_in_loop: false, is_over_object: false };
    let values = document.variables.iter().map(|variable| &variable.value);
    let values = values.chain(document.outputs.iter().map(|output| &output.value));
    // Of most instances that was seen where they were read.
    let instances = || document.resources.iter().filter(|instance| instance.may_compute);
    let mut found: Vec<Diagnostic> = instances().flat_map(of).collect();
    for value in values {
        document.of_value(value, &|| Reader::Program, &nowhere, &mut found);
    }
    for instance in instances() {
        document.of_value(&instance.name, &|| Reader::Plain, &about(instance, sources, secrets), &mut found);
    }
    found
}

/// Returns whether a text has a character of one of the forms. It is asked of each text of each run, and few have one.
pub(in crate::document) fn has_any_form(text: &str) -> bool {
    // Over all bytes, without an end at the first: that is done many at a time.
    let begins = |byte: u8| matches!(byte, b'[' | b'{' | b'$' | b'<');
    text.bytes().fold(false, |found, byte| found | begins(byte)) || text.ends_with(')')
}

fn about<'a>(instance: &'a Instance, sources: &'a Sources, secrets: &'a [Diagnostic]) -> About<'a> {
    let items = instance.copy.iter().filter_map(|copy| match &copy.over {
        Over::Each { called, .. } => Some(&*called.value),
        Over::Count(_) => None,
    });
    let is_over_object = instance.copy.last().is_some_and(|copy| matches!(copy.over.template().kind, Kind::Object(_)));
    About { sources, secrets, items: items.collect(), is_in_loop: !instance.copy.is_empty(), is_over_object }
}

impl Document {
    fn of_instance_as_text(&self, instance: &Instance, sources: &Sources, secrets: &[Diagnostic]) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        if let Some(properties) = &instance.properties {
            let about = about(instance, sources, secrets);
            self.of_properties(instance.type_name.value.as_str(), properties, &about, &mut found);
        }
        found
    }

    fn of_properties(&self, type_name: &str, properties: &Template, about: &About<'_>, found: &mut Vec<Diagnostic>) {
        let is_template = type_name.eq_ignore_ascii_case(TEMPLATE);
        for entry in properties.entries().unwrap_or_default() {
            let reader = || Reader::of(type_name, &entry.key);
            match &entry.value.kind {
                Kind::Array(nested) if &*entry.key == "resources" => {
                    for nested in nested {
                        let type_name = nested.get("type").and_then(Template::as_str).unwrap_or_default();
                        if let Some(properties) = nested.get("properties") {
                            self.of_properties(type_name, properties, about, found);
                        }
                    }
                }
                _ if is_template && reader() != Reader::Path => {}
                _ => self.of_value(&entry.value, &reader, about, found),
            }
        }
    }

    fn of_value(&self, value: &Template, reader: &dyn Fn() -> Reader, about: &About<'_>, found: &mut Vec<Diagnostic>) {
        texts(value, &mut |node, text| {
            if !has_any_form(text) {
                return;
            }
            // An expression is computed, and '[[' says that a bracket is meant.
            let has_secret = about.secrets.iter().any(|found| found.span.is_some_and(|found| node.span.holds(found)));
            let is_literal = matches!(node.kind, Kind::String(_)) && !text.starts_with('[') && !has_secret;
            let meant = if is_literal { self.meant(text, reader(), about) } else { Vec::new() };
            found.extend((!meant.is_empty()).then(|| warning(node, text, &meant, about.sources)));
        });
    }

    fn meant(&self, text: &str, reader: Reader, about: &About<'_>) -> Vec<Meant> {
        let forms = &*FORMS;
        // Two brackets say that one is meant, although only at the beginning of a text they mean it.
        let is_single = |begin: &usize| !text.get(..*begin).is_some_and(|before| before.ends_with('['));
        let begins = forms.call.find_iter(text).map(|begin| begin.start()).filter(is_single).take(MOST_BEGINS);
        let calls = begins.filter_map(|begin| self.call_at(text, begin, &OWN));
        let mut found: Vec<Meant> = calls.chain(self.call_without_brackets(text)).collect();
        let name_or = |other: fn(&str) -> Option<String>| move |name: &str| self.read_of(name).or_else(|| other(name));
        let known = |name: &str| self.read_of(name).or_else(|| about.item(name)).or_else(|| self.expression_of(name));
        if reader == Reader::Path {
            let named = |name: &str| known(name).or_else(|| Some("parameters('NAME')".to_owned()));
            found.extend(each_of(&forms.braces, text, named));
            found.extend(each_of(&forms.variable, text, name_or(|name| Some(format!("envvar('{name}')")))));
            found.extend(all_of(&forms.lower, text, known));
        } else if !text.contains("{%") {
            found.extend(all_of(&forms.braces, text, known));
        }
        found.extend(each_of(&forms.member, text, known));
        found.extend(each_of(&forms.item, text, |name| about.item(name)));
        found.extend(each_of(&forms.call_in_braces, text, |call| self.expression_of(call)));
        found.extend(all_of(&forms.ruby, text, known));
        if reader == Reader::Plain && is_no_program(text) {
            found.extend(all_of(&forms.shell, text, known));
        }
        found.sort_by_key(|meant| meant.range.start);
        found.dedup_by(|next, one| next.range.start < one.range.end);
        found
    }

    /// A text that is nothing but a call, without the brackets that would make it an expression.
    fn call_without_brackets(&self, text: &str) -> Option<Meant> {
        let is_one = text.ends_with(')') && !text.contains(['[', '{']) && text.len() <= SHORT;
        let bracketed = is_one.then(|| format!("[{text}]"))?;
        let known: Vec<&str> = OWN.into_iter().chain(ALSO_ALONE).collect();
        let meant = self.call_at(&bracketed, 0, &known).filter(|meant| meant.range.end == bracketed.len())?;
        Some(Meant { range: 0..text.len(), ..meant })
    }

    /// The expression in brackets that begins at a place, if the document can have it and calls nothing but these functions, or what it
    /// declares.
    fn call_at(&self, text: &str, start: usize, known: &[&str]) -> Option<Meant> {
        let behind = text.get(start..)?;
        let behind = behind.get(..behind.floor_char_boundary(LONGEST))?;
        let mut ends = behind.match_indices(']').map(|(end, _)| start..start + end + 1).take(MOST_ENDS);
        let (range, expression) =
            ends.find_map(|range| Some((range.clone(), Expression::parse(text.get(range)?).ok()?)))?;
        let name_in = |call: &FunctionCall<'_>| call.arguments().next()?.text().map(str::to_owned);
        let reads = |(builtin, call): (&Builtin, FunctionCall<'_>)| match builtin.name {
            "parameters" | "variables" => Some(name_in(&call).is_none_or(|name| self.read_of(&name).is_some())),
            other => known.contains(&other).then_some(true),
        };
        let known: Vec<bool> = expression.all_calls().filter_map(reads).collect();
        let is_meant = !known.is_empty() && known.iter().all(|known| *known);
        let inner = text.get(range.start + 1..range.end - 1).filter(|_| is_meant)?;
        let expression = match expression.whole().call() {
            Some((Builtin { name: "parameters" | "variables", .. }, call)) => self.read_of(&name_in(&call)?)?,
            Some((builtin, _)) if builtin.returns == [ValueKind::String] || builtin.name == "concat" => {
                inner.to_owned()
            }
            _ => format!("string({inner})"),
        };
        Some(Meant { range, expression })
    }

    /// The expression for what stands between braces: a call as it is written in brackets, or `parameters.NAME`.
    fn expression_of(&self, inner: &str) -> Option<String> {
        let bracketed = format!("[{inner}]");
        if let Some(meant) = self.call_at(&bracketed, 0, &OWN).filter(|meant| meant.range.end == bracketed.len()) {
            return Some(meant.expression);
        }
        if let Some((value, filter)) = inner.split_once('|') {
            let read = self.read_of(value.trim())?;
            return Some(filtered(&read, filter).unwrap_or_else(|| format!("FUNCTION({read})")));
        }
        if inner.starts_with("ansible_") {
            return fact_of_others(inner).map(|fact| format!("string(facts('{fact}'))"));
        }
        let (of, name) = inner.split_once('.')?;
        ["parameters", "variables", "params", "vars"].contains(&of).then(|| self.read_of(name))?
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

/// Placeholders of one form, with the expressions that they are.
fn each_of(form: &Regex, text: &str, expression: impl Fn(&str) -> Option<String>) -> Vec<Meant> {
    form.captures_iter(text).filter_map(|captures| placeholder(&captures, &expression)).collect()
}

/// Placeholders of one form, if each is one of the document: where one is of another program, all are.
fn all_of(form: &Regex, text: &str, expression: impl Fn(&str) -> Option<String>) -> Vec<Meant> {
    let all: Option<Vec<Meant>> =
        form.captures_iter(text).map(|captures| placeholder(&captures, &expression)).collect();
    // What Apache writes to its logs is `%{name}i`.
    let is_format = |meant: &Meant| {
        text.get(meant.range.start..).is_some_and(|found| found.starts_with('%'))
            && text.get(meant.range.end..).is_some_and(|behind| behind.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    all.filter(|all| !all.iter().any(is_format)).unwrap_or_default()
}

fn placeholder(captures: &Captures<'_>, expression: &impl Fn(&str) -> Option<String>) -> Option<Meant> {
    let name = captures.get(1).or_else(|| captures.get(2)).map_or("", |name| name.as_str());
    Some(Meant { range: captures.get(0)?.range(), expression: expression(name)? })
}

/// Returns whether a text is a line of prose or of settings: neither of a script, nor of a program that has variables of its own.
fn is_no_program(text: &str) -> bool {
    const OF_PROGRAMS: [char; 8] = ['\n', ';', '|', '`', '&', '(', '<', '\\'];
    !text.trim_end_matches('\n').contains(OF_PROGRAMS) && !text.starts_with("#!")
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
        [one] => match one.strip_prefix("string(").and_then(|one| one.strip_suffix(')')) {
            // An item may be of any kind, and so may the value.
            Some(item) if item.ends_with("()") => format!("[{item}]"),
            _ => format!("[{one}]"),
        },
        several => format!("[concat({})]", several.join(", ")),
    })
}
