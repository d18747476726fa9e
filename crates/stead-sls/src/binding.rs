//! Arguments as values of a document: text is escaped, parameters and argument bindings become expressions.

use super::codes;
use super::compile::{Compiled, StateTarget};
use super::read::Read;
use super::template::{self, Use};
use stead_core::diag::Diagnostic;
use stead_core::text::{Kind, Node, Span};
use stead_core::value::{DataType, Object, Value};

/// Makes values, and collects the parameters that they use.
pub(super) struct Binder<'a> {
    uses: &'a [Use],
    compiled: &'a Compiled<'a>,
    /// The text of the files shows which values are in quotes.
    quoted: &'a dyn Fn(Span) -> bool,
    /// By the places of their first uses.
    pub(super) parameters: Vec<BindingParameter>,
    /// The states that refer to others, with these, by their places.
    pub(super) references: Vec<(usize, usize)>,
    pub(super) findings: Vec<Diagnostic>,
}

/// A parameter of the document.
pub(super) struct BindingParameter {
    pub(super) name: String,
    pub(super) data_type: DataType,
    pub(super) default: Option<Value>,
}

/// A part of a text.
enum Piece {
    Text(String),
    /// An expression; whether it is known to be a string.
    Expression(String, bool),
}

impl<'a> Binder<'a> {
    pub(super) fn new(read: &'a Read, compiled: &'a Compiled<'a>, quoted: &'a dyn Fn(Span) -> bool) -> Self {
        let uses = &read.uses;
        Self { uses, compiled, quoted, parameters: Vec::new(), references: Vec::new(), findings: Vec::new() }
    }

    /// The value of an argument of a state.
    pub(super) fn value(&mut self, state: usize, node: &Node) -> Value {
        match &node.kind {
            Kind::String(text) => self.text(state, text, node.span),
            Kind::Array(items) => Value::Array(items.iter().map(|item| self.value(state, item)).collect()),
            Kind::Object(entries) => {
                let members = entries.iter().map(|entry| {
                    if template::is_marked(&entry.key) {
                        self.findings.push(template::misplaced(entry.key_span).with_help("write the key out"));
                    }
                    (entry.key.to_string(), self.value(state, &entry.value))
                });
                Value::Object(members.collect::<Object>())
            }
            _ => node.literal(),
        }
    }

    fn text(&mut self, state: usize, text: &str, span: Span) -> Value {
        let is_whole = template::split(text).is_some_and(|(before, _, behind)| before.is_empty() && behind.is_empty());
        let is_typed = is_whole && !(self.quoted)(span);
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, expression, behind)) = next_expression(rest) {
            pieces.push(Piece::Text(before.to_owned()));
            pieces.extend(match expression {
                Expression::Parameter(at) => self.parameter(at, is_typed),
                Expression::Binding(inside) => self.binding(state, inside, span),
            });
            rest = behind;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        joined(pieces, is_typed)
    }

    /// The use of a parameter; unquoted and alone it has the type of what is supplied.
    fn parameter(&mut self, at: usize, is_typed: bool) -> Option<Piece> {
        let used = self.uses.get(at)?;
        let data_type = match &used.default {
            Some(Value::Bool(_)) => DataType::Bool,
            Some(Value::Number(_)) => DataType::Int,
            _ => DataType::String,
        };
        let mut differs = |message: String| {
            let finding = Diagnostic::warning(&codes::DIFFERENT, used.span, message);
            let help = "set its 'type' and 'defaultValue' below 'parameters' if this is wrong";
            self.findings.push(finding.with_help(help));
        };
        let name = &used.name;
        if is_typed && used.default.is_none() {
            differs(format!("parameter '{name}' is declared as a string: the SLS file does not state its type"));
        }
        match self.parameters.iter_mut().find(|each| each.name == used.name) {
            None => {
                let default = used.default.clone();
                self.parameters.push(BindingParameter { name: used.name.clone(), data_type, default });
            }
            Some(known) if used.default.is_some() && known.default != used.default => {
                let other = if known.default.is_some() { "another default" } else { "no default" };
                differs(format!(
                    "parameter '{name}' has {other} elsewhere in these files; the default here is not used"
                ));
            }
            Some(_) => {}
        }
        let is_string = self.parameters.iter().any(|each| each.name == used.name && each.data_type == DataType::String);
        Some(Piece::Expression(format!("parameters({})", quoted(&used.name)), is_string))
    }

    /// The value that `module:id:path` stands for.
    fn binding(&mut self, state: usize, inside: &str, span: Span) -> Option<Piece> {
        let mut parts = inside.splitn(3, ':');
        let parts = (parts.next(), parts.next(), parts.next());
        let (Some(module), Some(target), Some(path), false) = (parts.0, parts.1, parts.2, template::is_marked(inside))
        else {
            let message = format!("'${{{}}}' is not a binding", template::restored(inside, self.uses));
            let finding = Diagnostic::error(&codes::BINDING, span, message);
            self.findings.push(finding.with_help("write ${module:id:path}"));
            return None;
        };
        let expression = self.reference(state, &StateTarget { module: Some(module), target, span }, path)?;
        Some(Piece::Expression(expression, false))
    }

    /// The value at a path of what another state resulted in.
    fn reference(&mut self, from: usize, named: &StateTarget<'_>, path: &str) -> Option<String> {
        let found = self.compiled.find(named.module, named.target);
        let Some((at, state)) = found.first().and_then(|at| Some((*at, self.compiled.states.get(*at)?))) else {
            self.findings.push(self.compiled.unknown("a binding names", named));
            return None;
        };
        if found.len() > 1 {
            let message = format!("a binding names '{}', which stands for {} states", named.target, found.len());
            let finding = Diagnostic::error(&codes::BINDING, named.span, message);
            self.findings.push(finding.with_help("name one state; one of 'names' is 'ID[NAME]'"));
            return None;
        }
        self.references.push((from, at));
        let Some(steps) = steps(path) else {
            let finding = Diagnostic::error(&codes::BINDING, named.span, format!("'{path}' is not a path"));
            self.findings.push(finding.with_help("a path is made of keys and indexes: a:b[0]:[*]:c"));
            return None;
        };
        Some(access(format!("reference({})", quoted(&state.id().to_string())), &steps, 0))
    }

    /// Sets what `arg_bind` says: `- module: [{id: [{path: argument}]}]`.
    pub(super) fn bind(&mut self, state: usize, node: &Node, properties: &mut Object) {
        let mut bindings = Vec::new();
        for (module, states) in members(node) {
            for (target, pairs) in members(states) {
                for (path, argument) in members(pairs) {
                    let named = StateTarget { module: Some(module), target, span: argument.span };
                    if let Some(to) = argument.as_str().filter(|text| !text.contains('[')) {
                        bindings.push((to, self.reference(state, &named, path)));
                    } else {
                        let message = "a binding sets an argument, by its keys";
                        let finding = Diagnostic::error(&codes::BINDING, argument.span, message);
                        self.findings.push(finding.with_help("write 'path: argument' or 'path: argument:key'"));
                    }
                }
            }
        }
        if bindings.is_empty() {
            let finding = Diagnostic::error(&codes::BINDING, node.span, "'arg_bind' binds nothing");
            self.findings.push(finding.with_help("write '- module: [{id: [{path: argument}]}]'"));
        }
        for (to, expression) in bindings {
            let keys: Vec<&str> = to.split(':').collect();
            set(properties, &keys, expression.map(|text| format!("[{text}]")).unwrap_or_default().into());
        }
    }
}

/// A piece of a text that is not literal.
enum Expression<'t> {
    /// A parameter, by its place in the list of uses.
    Parameter(usize),
    /// The text between `${` and `}`.
    Binding(&'t str),
}

/// A text at its first expression: what is before, the expression, what is behind.
fn next_expression(text: &str) -> Option<(&str, Expression<'_>, &str)> {
    let parameter = template::split(text).map(|(before, at, behind)| (before, Expression::Parameter(at), behind));
    // What begins behind the parameter is not looked for: with thousands of both that would take minutes.
    let begins = parameter.as_ref().map_or(text, |(before, ..)| before).find("${");
    let binding = begins.and_then(|at| {
        let (before, from) = (text.get(..at)?, text.get(at + "${".len()..)?);
        let (inside, behind) = from.split_once('}')?;
        Some((before, Expression::Binding(inside), behind))
    });
    binding.or(parameter)
}

/// A string of an expression.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The members of an object, or of the objects of a list.
fn members(node: &Node) -> Vec<(&str, &Node)> {
    match &node.kind {
        Kind::Array(items) => items.iter().flat_map(members).collect(),
        Kind::Object(entries) => entries.iter().map(|entry| (&*entry.key, &entry.value)).collect(),
        _ => Vec::new(),
    }
}

fn set(object: &mut Object, keys: &[&str], value: Value) {
    match keys {
        [] => {}
        [key] => drop(object.insert((*key).to_owned(), value)),
        [key, rest @ ..] => {
            if !matches!(object.get(key), Some(Value::Object(_))) {
                object.insert((*key).to_owned(), Value::Object(Object::new()));
            }
            if let Some(Value::Object(inner)) = object.get_mut(key) {
                set(inner, rest, value);
            }
        }
    }
}

/// A text that holds neither parameters nor bindings.
pub(super) fn literal(text: &str) -> Value {
    joined(vec![Piece::Text(text.to_owned())], false)
}

/// The value of a text of these pieces.
fn joined(pieces: Vec<Piece>, is_typed: bool) -> Value {
    let mut pieces: Vec<Piece> =
        pieces.into_iter().filter(|piece| !matches!(piece, Piece::Text(text) if text.is_empty())).collect();
    match pieces.as_slice() {
        [] => return "".into(),
        [Piece::Text(text)] if text.starts_with('[') => return format!("[{text}").into(),
        [Piece::Text(text)] => return text.as_str().into(),
        [Piece::Expression(text, is_string)] if is_typed || *is_string || text.contains("reference(") => {
            return format!("[{text}]").into();
        }
        [Piece::Expression(text, _)] => return format!("[string({text})]").into(),
        _ => {}
    }
    let parts = pieces.drain(..).map(|piece| match piece {
        Piece::Text(text) => quoted(&text),
        Piece::Expression(text, true) => text,
        Piece::Expression(text, false) => format!("string({text})"),
    });
    format!("[concat({})]", parts.collect::<Vec<_>>().join(", ")).into()
}

/// A step of a path.
#[derive(Clone, PartialEq, Debug)]
enum BindingStep {
    Key(String),
    Index(u32),
    /// The steps behind it are carried out with each element.
    Each,
}

fn steps(path: &str) -> Option<Vec<BindingStep>> {
    let mut steps = Vec::new();
    for part in path.split(':') {
        let (key, mut indexes) = part.find('[').map_or((part, ""), |at| part.split_at(at));
        if !key.is_empty() {
            steps.push(BindingStep::Key(key.to_owned()));
        }
        while let Some((index, rest)) = indexes.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            steps.push(if index == "*" { BindingStep::Each } else { BindingStep::Index(index.parse().ok()?) });
            indexes = rest;
        }
        if !indexes.is_empty() || part.is_empty() {
            return None;
        }
    }
    Some(steps)
}

/// The expression for what lies at the end of a path.
fn access(of: String, steps: &[BindingStep], depth: usize) -> String {
    match steps {
        [] | [BindingStep::Each] => of,
        [BindingStep::Key(key), rest @ ..] => {
            let mut letters = key.chars();
            let is_word = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
                && letters.all(|each| each.is_ascii_alphanumeric() || each == '_');
            let member = if is_word { format!("{of}.{key}") } else { format!("{of}[{}]", quoted(key)) };
            access(member, rest, depth)
        }
        [BindingStep::Index(index), rest @ ..] => access(format!("{of}[{index}]"), rest, depth),
        [BindingStep::Each, rest @ ..] => {
            let item = if depth == 0 { "item".to_owned() } else { format!("item{depth}") };
            let body = access(format!("lambdaVariables('{item}')"), rest, depth + 1);
            format!("map({of}, lambda('{item}', {body}))")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_members_elements_and_maps() {
        for (path, expected) in [
            ("id", "r.id"),
            ("a:b[0]:c", "r.a.b[0].c"),
            ("a-b", "r['a-b']"),
            ("all[*]:id", "map(r.all, lambda('item', lambdaVariables('item').id))"),
            ("[0]:id", "r[0].id"),
            ("all[*]", "r.all"),
            (
                "a[*]:b[*]:c",
                "map(r.a, lambda('item', map(lambdaVariables('item').b, lambda('item1', lambdaVariables('item1').c))))",
            ),
        ] {
            assert_eq!(steps(path).map(|steps| access("r".to_owned(), &steps, 0)).as_deref(), Some(expected), "{path}");
        }
        for wrong in ["", "a:", "a[x]", "a[0", "a[0]b"] {
            assert_eq!(steps(wrong), None, "{wrong}");
        }
    }
}
