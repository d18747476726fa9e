//! The context of a position in a document.

use stead_core::document::{Part, Relation};
use stead_core::text::{self, Kind, Limits, Node, SourceId};

/// The context of a position: the thing that is, or is to be, written there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum CursorContext {
    /// A key of a part of a document; the path leads to the object that it is in, such as `reconcile` of directives.
    Key { part: Part, path: Vec<String> },
    /// The value of such a key, by its path.
    KeyValue { part: Part, path: Vec<String> },
    /// An element of a list of instances, `dependsOn` or one of the directives, by the name of the list.
    Instances { list: String },
    /// The type of an instance.
    Type,
    /// A key among the properties of an instance of this type; the path leads to the object that it is in.
    Property { type_name: String, path: Vec<String> },
    /// The value of a property, by its path.
    Value { type_name: String, path: Vec<String> },
    /// The name of a function.
    Function,
    /// The name of a parameter, within `parameters('`.
    Parameter,
    /// The path of a fact, within `facts('`.
    Fact,
    /// The name of a variable, within `variables('`.
    Variable,
    /// The type of an instance, within `resourceId('`.
    IdType,
    /// The name of an instance of this type, within `resourceId('TYPE', '`.
    IdName { type_name: String },
    /// Nothing that is known.
    Nothing,
}

/// Returns the context of a position, and where the word begins that stands there.
pub(crate) fn at(text: &str, offset: usize) -> (CursorContext, usize) {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    if let Some(expression) = open_expression(line) {
        return in_expression(expression, offset);
    }
    let start = offset - trailing(before, is_of_word).len();
    let rest = text.get(offset..).unwrap_or_default();
    let end = offset + rest.find(|letter| !is_of_word(letter)).unwrap_or(rest.len());
    (in_tree(text, (start, end)), start)
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | '$')
}

/// The end of a text as far as all letters are wanted.
fn trailing(text: &str, is_wanted: impl Fn(char) -> bool) -> &str {
    let start = text.char_indices().rev().take_while(|(_, letter)| is_wanted(*letter)).last();
    start.and_then(|(at, _)| text.get(at..)).unwrap_or_default()
}

/// The beginning of an expression that the line ends in, from behind its bracket.
fn open_expression(line: &str) -> Option<&str> {
    let quoted = line.rfind("\"[").filter(|at| !line.get(at + 2..).is_some_and(|rest| rest.contains('"')));
    let from = quoted?;
    line.get(from + 2..).filter(|rest| !rest.starts_with('['))
}

fn in_expression(expression: &str, offset: usize) -> (CursorContext, usize) {
    // Quotes in pairs are text that has ended.
    let open = (expression.matches('\'').count() % 2 == 1).then(|| expression.rfind('\'')).flatten();
    let Some(quote) = open else {
        let word = trailing(expression, |letter| letter.is_alphanumeric() || letter == '.');
        return (CursorContext::Function, offset - word.len());
    };
    let (call, word) = (expression.get(..quote).unwrap_or_default(), expression.get(quote + 1..).unwrap_or_default());
    let call = call.trim_end();
    let place = if call.ends_with("parameters(") {
        CursorContext::Parameter
    } else if call.ends_with("variables(") && !call.ends_with("lambdaVariables(") {
        CursorContext::Variable
    } else if call.ends_with("facts(") {
        CursorContext::Fact
    } else if call.ends_with("resourceId(") {
        CursorContext::IdType
    } else {
        id_name(call).unwrap_or(CursorContext::Nothing)
    };
    (place, offset - word.len())
}

/// Of `resourceId('TYPE',` the name of an instance of that type.
fn id_name(call: &str) -> Option<CursorContext> {
    let arguments = call.rsplit_once("resourceId(")?.1.trim_start();
    let (type_name, rest) = arguments.strip_prefix('\'')?.split_once('\'')?;
    (rest.trim() == ",").then(|| CursorContext::IdName { type_name: type_name.to_owned() })
}

/// Returns the context of the word at a position as if it were written out: a key or a value.
fn in_tree(text: &str, (start, end): (usize, usize)) -> CursorContext {
    const WORD: &str = "steadcursor";
    let (Some(before), Some(behind)) = (text.get(..start), text.get(end..)) else { return CursorContext::Nothing };
    let is_key = behind.trim_start_matches(' ').starts_with(':');
    let forms = [WORD.to_owned(), format!("{WORD}: 0")];
    let forms = if is_key { &forms[..1] } else { &forms[..] };
    let found = forms.iter().filter_map(|form| {
        let (root, findings) = text::read(SourceId(0), &format!("{before}{form}{behind}"), &Limits::default());
        let place = classified(&path_to(&root?, WORD)?);
        (place != CursorContext::Nothing).then_some((findings.len(), place))
    });
    // What can be read best was probably meant; of a word that begins its line, the key that it will be.
    let begins_line =
        before.rsplit('\n').next().is_some_and(|line| line.chars().all(|letter| matches!(letter, ' ' | '-')));
    let is_less_likely = |place: &CursorContext| begins_line && matches!(place, CursorContext::KeyValue { .. });
    let best = found.min_by_key(|(faults, place)| (*faults, is_less_likely(place)));
    best.map_or(CursorContext::Nothing, |(_, place)| place)
}

/// One step from the root of a tree to a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TreeStep {
    /// Into the member of that name of an object whose `type`, if it has one, is this.
    Member { name: String, type_name: Option<String> },
    /// Into an element of a list.
    Element,
    /// To the key of a member of an object, itself.
    Key { type_name: Option<String> },
}

/// The way to the part that is a word, or that has it as its key.
fn path_to(node: &Node, word: &str) -> Option<Vec<TreeStep>> {
    match &node.kind {
        Kind::String(text) if **text == *word => Some(Vec::new()),
        Kind::Array(items) => {
            let path = items.iter().find_map(|item| path_to(item, word))?;
            Some(std::iter::once(TreeStep::Element).chain(path).collect())
        }
        Kind::Object(entries) => entries.iter().find_map(|entry| {
            if *entry.key == *word {
                return Some(vec![TreeStep::Key { type_name: type_of(node) }]);
            }
            let path = path_to(&entry.value, word)?;
            let step = TreeStep::Member { name: entry.key.to_string(), type_name: type_of(node) };
            Some(std::iter::once(step).chain(path).collect())
        }),
        _ => None,
    }
}

/// The way to the innermost part of a tree around a position, with its key or value.
pub(crate) fn path_at(node: &Node, offset: u32) -> Option<Vec<TreeStep>> {
    let holds = |start: u32, end: u32| start <= offset && offset <= end;
    match &node.kind {
        Kind::Object(entries) => entries.iter().find_map(|entry| {
            if holds(entry.key_span.start, entry.key_span.end) {
                let step = TreeStep::Member { name: entry.key.to_string(), type_name: type_of(node) };
                return Some(vec![step, TreeStep::Key { type_name: None }]);
            }
            let path = holds(entry.value.span.start, entry.value.span.end).then(|| path_at(&entry.value, offset))??;
            let step = TreeStep::Member { name: entry.key.to_string(), type_name: type_of(node) };
            Some(std::iter::once(step).chain(path).collect())
        }),
        Kind::Array(items) => {
            let item = items.iter().find(|item| holds(item.span.start, item.span.end))?;
            Some(std::iter::once(TreeStep::Element).chain(path_at(item, offset)?).collect())
        }
        _ => holds(node.span.start, node.span.end).then(Vec::new),
    }
}

fn type_of(node: &Node) -> Option<String> {
    node.get("type").and_then(Node::as_str).map(str::to_owned)
}

/// Returns the context at the end of a path.
pub(crate) fn classified(path: &[TreeStep]) -> CursorContext {
    let is_resources = |step: &TreeStep| matches!(step, TreeStep::Member { name, .. } if name == "resources");
    let instance = path.windows(2).rposition(|pair| is_resources(&pair[0]) && pair[1] == TreeStep::Element);
    let Some(instance) = instance else { return at_document(path) };
    match path.get(instance + 2..).unwrap_or_default() {
        [TreeStep::Member { name, .. }] if name == "type" => CursorContext::Type,
        [TreeStep::Member { name, type_name: Some(type_name) }, inner @ ..] if name == "properties" => {
            let (type_name, path) = (type_name.clone(), names(inner));
            match inner.last() {
                None | Some(TreeStep::Key { .. }) => CursorContext::Property { type_name, path },
                _ => CursorContext::Value { type_name, path },
            }
        }
        own @ [TreeStep::Member { name, .. }, inner @ ..] if !inner.is_empty() => match &**name {
            "dependsOn" => of_part(Part::Instance, own),
            "copy" => of_part(Part::Loop, inner),
            "directives" => of_part(Part::Directive, inner),
            "metadata" => of_part(Part::Metadata, inner),
            _ => CursorContext::Nothing,
        },
        [] => CursorContext::Key { part: Part::Instance, path: Vec::new() },
        own => of_part(Part::Instance, own),
    }
}

/// The context of a path that leads to no instance.
fn at_document(path: &[TreeStep]) -> CursorContext {
    let [TreeStep::Member { name, .. }, inner @ ..] = path else { return of_part(Part::Document, path) };
    match (&**name, inner) {
        // What begins there will be a name of the user's choice.
        ("parameters" | "outputs" | "variables", []) => CursorContext::Nothing,
        (_, []) => of_part(Part::Document, path),
        ("directives", inner) => of_part(Part::DocumentDirective, inner),
        ("metadata", inner) => of_part(Part::Metadata, inner),
        ("functions", [TreeStep::Element, inner @ ..]) => of_part(Part::Function, inner),
        // What is between has a name of the user's choice.
        ("parameters", [TreeStep::Member { .. }, inner @ ..]) => of_part(Part::Parameter, inner),
        ("outputs", [TreeStep::Member { .. }, inner @ ..]) => of_part(Part::Output, inner),
        _ => CursorContext::Nothing,
    }
}

/// The context at the end of a path that begins at a part of a document.
fn of_part(part: Part, path: &[TreeStep]) -> CursorContext {
    let mut named = names(path);
    if part == Part::Function && named.first().is_some_and(|name| name == "members") && named.len() > 1 {
        // The second half of the name of the function.
        named.remove(1);
    }
    match path.last() {
        Some(TreeStep::Key { .. }) => CursorContext::Key { part, path: named },
        Some(TreeStep::Element) if is_of_instances(part, &named) => {
            CursorContext::Instances { list: named.pop().unwrap_or_default() }
        }
        Some(_) if !named.is_empty() => CursorContext::KeyValue { part, path: named },
        _ => CursorContext::Nothing,
    }
}

/// Returns whether a key of a part has a list of instances.
fn is_of_instances(part: Part, path: &[String]) -> bool {
    match (part, path) {
        (Part::Instance, [name]) => name == "dependsOn",
        (Part::Directive, [name]) => Relation::ALL.iter().any(|(word, _)| name == word),
        _ => false,
    }
}

fn names(path: &[TreeStep]) -> Vec<String> {
    let name = |step: &TreeStep| match step {
        TreeStep::Member { name, .. } => Some(name.clone()),
        TreeStep::Element | TreeStep::Key { .. } => None,
    };
    path.iter().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place at `|` in a text.
    fn place(text: &str) -> CursorContext {
        let offset = text.find('|').unwrap_or_default();
        at(&text.replacen('|', "", 1), offset).0
    }

    #[test]
    fn places_follow_from_the_tree_and_from_expressions() {
        let property = |path: &[&str]| CursorContext::Property {
            type_name: "Stead/File".to_owned(),
            path: path.iter().map(|name| (*name).to_owned()).collect(),
        };
        let key = |part: Part, path: &[&str]| CursorContext::Key {
            part,
            path: path.iter().map(|name| (*name).to_owned()).collect(),
        };
        let key_value = |part: Part, name: &str| CursorContext::KeyValue { part, path: vec![name.to_owned()] };
        let value =
            |path: &str| CursorContext::Value { type_name: "Stead/File".to_owned(), path: vec![path.to_owned()] };
        let instance = "resources:\n- name: a\n  type: Stead/File\n";
        for (text, wanted) in [
            ("re|".to_owned(), key(Part::Document, &[])),
            ("resources:\n- name: a\n  type: St|\n".to_owned(), CursorContext::Type),
            ("resources:\n- name: a\n  type: |\n".to_owned(), CursorContext::Type),
            ("resources:\n- {name: a, type: St|}\n".to_owned(), CursorContext::Type),
            (format!("{instance}  pro|\n"), key(Part::Instance, &[])),
            (format!("{instance}  copy: {{name: a, ea|}}\n"), key(Part::Loop, &[])),
            (format!("{instance}  copy:\n  - name: a\n    ea|\n"), key(Part::Loop, &[])),
            (format!("{instance}  directives:\n    on|\n"), key(Part::Directive, &[])),
            (
                format!("{instance}  directives: {{securityContext: e|}}\n"),
                key_value(Part::Directive, "securityContext"),
            ),
            (format!("{instance}  dependsOn: [pa|]\n"), CursorContext::Instances { list: "dependsOn".to_owned() }),
            (
                format!("{instance}  directives:\n    onChanges:\n    - co|\n"),
                CursorContext::Instances { list: "onChanges".to_owned() },
            ),
            (format!("{instance}  metadata:\n    ta|\n"), key(Part::Metadata, &[])),
            ("directives:\n  imp|\n".to_owned(), key(Part::DocumentDirective, &[])),
            ("directives:\n  reconcile:\n    max|\n".to_owned(), key(Part::DocumentDirective, &["reconcile"])),
            ("directives:\n  implicitOrder: t|\n".to_owned(), key_value(Part::DocumentDirective, "implicitOrder")),
            ("parameters:\n  port:\n    def|\n".to_owned(), key(Part::Parameter, &[])),
            ("parameters:\n  port: {type: in|}\n".to_owned(), key_value(Part::Parameter, "type")),
            ("outputs:\n  url:\n    va|\n".to_owned(), key(Part::Output, &[])),
            ("parameters:\n  po|\n".to_owned(), CursorContext::Nothing),
            ("resources:\n- {name: a, type: b, condition: \"[equals(facts('os.|".to_owned(), CursorContext::Fact),
            (format!("{instance}  properties:\n    pa|\n"), property(&[])),
            (format!("{instance}  properties:\n    path: a\n    con|\n"), property(&[])),
            (format!("{instance}  properties: {{path: a, |}}\n"), property(&[])),
            (format!("{instance}  properties:\n    path: a\n    _exist: t|\n"), value("_exist")),
            (format!("{instance}  properties:\n    con|tent: a\n"), property(&[])),
            (format!("{instance}  properties: {{path: \"[con|"), CursorContext::Function),
            (format!("{instance}  properties: {{path: \"[concat(parameters('|"), CursorContext::Parameter),
            (format!("{instance}  properties: {{path: \"[concat(variables('x|"), CursorContext::Variable),
            (format!("{instance}  dependsOn: [\"[resourceId('St|"), CursorContext::IdType),
            (
                format!("{instance}  dependsOn: [\"[resourceId('Stead/File', '|"),
                CursorContext::IdName { type_name: "Stead/File".to_owned() },
            ),
            (format!("{instance}  properties: {{path: \"[[con|"), CursorContext::Nothing),
        ] {
            assert_eq!(place(&text), wanted, "{text}");
        }
    }
}
