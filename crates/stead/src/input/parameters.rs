//! Reading parameters: from files, in layers as well, from the environment and the command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stead_core::diag::{Diagnostic, Meant, did_you_mean, nearest};
use stead_core::parameters::Supplied;
use stead_core::text::{self, Limits, Node, Source, SourceId, Span};
use stead_core::value::{Object, Value};
use stead_engine::Session;
use stead_hosts::{LayerValue, ParameterLayers};

use super::{STANDARD_INPUT, Text, Unreadable, inline_parameters, read, tree};
use crate::request;

/// Why parameters cannot be used.
pub(crate) enum BadParameters {
    Unreadable(Unreadable),
    Findings(Vec<Diagnostic>),
}

/// Who parameters are for.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Recipient {
    /// A program, such as one that expects dsc: files have the parameters of one document.
    #[default]
    Program,
    /// A command for users on this machine: files may be in layers, and have parameters of other documents as well.
    ThisMachine,
    /// A command for users on other machines, of which nothing is known here: files may not be in layers.
    OtherMachines,
}

/// Where parameters come from, later ones winning over earlier ones name by name.
#[derive(Clone, Copy, Default)]
pub(crate) struct ParameterSources<'a> {
    /// Whether the environment is one, for what the document declares.
    pub(crate) environment: bool,
    pub(crate) recipient: Recipient,
    pub(crate) files: &'a [PathBuf],
    pub(crate) inline: Option<&'a str>,
    pub(crate) single: &'a [(String, String)],
    /// The document, which declares what is text.
    pub(crate) document: Option<&'a Text>,
    /// True if the document was read from standard input.
    pub(crate) takes_input: bool,
    /// True if an object without the key `parameters` is refused, as by dsc.
    pub(crate) needs_key: bool,
}

impl<'a> ParameterSources<'a> {
    /// Those of a command for users.
    pub(crate) fn of(supplied: &'a request::Supplied, document: &'a Text) -> Self {
        Self {
            environment: true,
            recipient: Recipient::ThisMachine,
            files: &supplied.files,
            inline: supplied.parameters.as_deref(),
            single: &supplied.single,
            document: Some(document),
            takes_input: document.name == STANDARD_INPUT,
            needs_key: false,
        }
    }
}

/// Reads all parameters. A bare object counts as `parameters` itself when it has no member of that name, unless that key is needed.
pub(crate) fn parameters(session: &mut Session, from: &ParameterSources<'_>) -> Result<Supplied, BadParameters> {
    let mut all = Supplied::default();
    for contribution in contributions(session, from)? {
        for warning in &contribution.warnings {
            tracing::warn!("{warning}");
        }
        all.extend(contribution.supplied);
    }
    Ok(all)
}

/// The parameters of one place, and of a file in layers the values of each layer.
#[derive(Default)]
pub(crate) struct Contribution {
    pub(crate) supplied: Supplied,
    pub(crate) layers: Vec<LayerValue>,
    /// What of it is not used, for users.
    pub(crate) warnings: Vec<String>,
}

/// Reads the parameters of each place, in the order in which later ones win.
pub(crate) fn contributions(
    session: &mut Session,
    from: &ParameterSources<'_>,
) -> Result<Vec<Contribution>, BadParameters> {
    let mut all = Vec::new();
    let environment = if from.environment { of_environment() } else { Vec::new() };
    // A large document is read twice only where that is needed.
    let is_needed = !environment.is_empty() || !from.single.is_empty();
    let declared = if is_needed { declared(from.document) } else { BTreeMap::new() };
    let set: Vec<String> = environment.iter().map(|(name, _)| name.clone()).collect();
    for (name, value) in environment {
        all.extend(
            near_variable(&name, &declared, &set)
                .map(|warning| Contribution { warnings: vec![warning], ..Contribution::default() }),
        );
        if let Some(is_text) = declared.get(&name) {
            let place = format!("<environment variable {VARIABLE}{name}>");
            all.push(one_parameter(session, place, &name, (&value, *is_text)).into());
        }
    }
    let readers = from.files.iter().filter(|path| path.as_os_str() == "-").count();
    if readers + usize::from(from.takes_input) > 1 {
        return Err(BadParameters::Unreadable(Unreadable::StandardInputTwice));
    }
    for path in from.files {
        let mut contribution = of_file(session, path, from)?;
        if from.recipient != Recipient::Program {
            contribution.warnings = leave_out_others(path, &mut contribution.supplied, from.document);
        }
        all.push(contribution);
    }
    if let Some(text) = from.inline {
        let text = inline_parameters(text).map_err(BadParameters::Unreadable)?;
        let node = tree(session, &text).map_err(BadParameters::Findings)?;
        all.push(of_tree(&node, from.needs_key)?.into());
    }
    for (name, value) in from.single {
        let is_text = declared.get(name).copied().unwrap_or_default();
        all.push(one_parameter(session, format!("<--set {name}>"), name, (value, is_text)).into());
    }
    Ok(all)
}

impl From<Supplied> for Contribution {
    fn from(supplied: Supplied) -> Self {
        Self { supplied, ..Self::default() }
    }
}

/// Leaves out what the document does not declare: a file of parameters may be for several documents. What looks like an error
/// of typing stays, and is refused.
fn leave_out_others(path: &Path, supplied: &mut Supplied, document: Option<&Text>) -> Vec<String> {
    let declared = declared(document);
    let is_other = |name: &str| !declared.is_empty() && nearest(name, declared.keys().map(String::as_str)).is_none();
    let mut warnings = Vec::new();
    supplied.values.retain(|name, _| {
        let is_other = is_other(name);
        if is_other {
            let path = path.display();
            warnings.push(format!("{path}: the document has no parameter '{name}'; its value is not used"));
        }
        !is_other
    });
    warnings
}

/// A parameter that stands alone, and what messages call its place. It may be a secret: the place holds nothing of it.
fn one_parameter(session: &mut Session, place: String, name: &str, (text, is_text): (&str, bool)) -> Supplied {
    let source = session.sources.add(Source::new(place, "").private());
    let places = BTreeMap::from([(name.to_owned(), Span { source, ..Span::default() })]);
    Supplied { values: Object::from_iter([(name.to_owned(), single(text, is_text))]), places }
}

/// What the names of variables begin with that hold parameters.
const VARIABLE: &str = "STEAD_PARAM_";

/// The variables `STEAD_PARAM_NAME` by name. Others may be for other documents.
pub(crate) fn of_environment() -> Vec<(String, String)> {
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.to_str()?.strip_prefix(VARIABLE)?.to_owned();
        let value = value.into_string();
        if value.is_err() {
            tracing::warn!("The environment variable '{VARIABLE}{name}' is not UTF-8 text; ignored");
        }
        Some((name, value.ok()?))
    });
    variables.collect()
}

/// A warning about a variable that hardly is for another document: it is near to a parameter of this one, which has none.
fn near_variable(name: &str, declared: &BTreeMap<String, bool>, set: &[String]) -> Option<String> {
    if declared.contains_key(name) {
        return None;
    }
    let meant = Meant::name(name, declared.keys().map(String::as_str))?.into_words();
    let is_free = meant.iter().all(|meant| !set.contains(meant));
    let meant: Vec<String> = meant.iter().map(|meant| format!("{VARIABLE}{meant}")).collect();
    let hint = did_you_mean(&meant.join("' or '"));
    is_free.then(|| format!("{VARIABLE}{name}: the document has no parameter '{name}'; its value is not used; {hint}"))
}

/// The parameters that a document declares, and which of them are text. A document that cannot be read declares none: it
/// is refused later.
fn declared(document: Option<&Text>) -> BTreeMap<String, bool> {
    let Some(document) = document else { return BTreeMap::new() };
    let (node, _) = text::read(SourceId::default(), &document.text, &Limits::default());
    let declared = node.as_ref().and_then(|node| node.get("parameters")?.entries()).unwrap_or_default();
    let is_text = |kind: &str| kind.eq_ignore_ascii_case("string") || kind.eq_ignore_ascii_case("secureString");
    let is_declared_text = |entry: &Node| entry.get("type").and_then(Node::as_str).is_some_and(is_text);
    declared.iter().map(|entry| (entry.key.to_string(), is_declared_text(&entry.value))).collect()
}

/// A value of the command line: JSON, or text. For what is declared as text only JSON in quotes is JSON.
pub(crate) fn single(text: &str, is_text: bool) -> Value {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(json) if !is_text || json.is_string() => Value::from(json),
        _ => Value::from(text),
    }
}

/// Reads a file of parameters. For a command for users it may be in layers, of which those of this machine count.
fn of_file(session: &mut Session, path: &Path, from: &ParameterSources<'_>) -> Result<Contribution, BadParameters> {
    let text = read(path).map_err(BadParameters::Unreadable)?;
    let node = tree(session, &text).map_err(BadParameters::Findings)?;
    if from.recipient == Recipient::Program || !ParameterLayers::are_in(&node) {
        return Ok(of_tree(&node, from.needs_key)?.into());
    }
    if from.recipient == Recipient::OtherMachines {
        let message = "layers of a file are for the machine that the command runs on";
        let finding = Diagnostic::error(&stead_hosts::codes::LAYERS, node.span, message);
        return Err(BadParameters::Findings(vec![finding.with_help("write them as 'layers' of the inventory")]));
    }
    let all = ParameterLayers::read(&node, &session.sources).map_err(BadParameters::Findings)?;
    let facts = session.machine().facts().map_err(|error| {
        let finding = Diagnostic::error(&stead_hosts::codes::LAYERS, node.span, error.to_string());
        BadParameters::Findings(vec![finding])
    })?;
    let known = flat(facts);
    let label = |name: &str| known.get(name).map(String::as_str);
    for name in all.labels().into_iter().filter(|name| label(name).is_none()) {
        tracing::debug!("{}: this machine has no label and no fact '{name}'", path.display());
    }
    let layered = all.resolve(&label).map_err(|finding| BadParameters::Findings(vec![*finding]))?;
    let supplied = Supplied { values: layered.values, places: layered.places };
    Ok(Contribution { supplied, layers: layered.layers, warnings: Vec::new() })
}

/// The facts of a machine by their paths, as text, and its labels and its name by those alone.
fn flat(facts: &Value) -> BTreeMap<String, String> {
    fn walk(path: &str, value: &Value, found: &mut BTreeMap<String, String>) {
        let text = match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    walk(&below, value, found);
                }
                return;
            }
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_redacted_json().to_string(),
            _ => return,
        };
        found.insert(path.to_owned(), text);
    }
    let mut found = BTreeMap::new();
    walk("", facts, &mut found);
    let name = found.get("machine.name").map(|name| ("name".to_owned(), name.clone()));
    let short = found.iter().filter_map(|(path, text)| Some((path.strip_prefix("labels.")?.to_owned(), text.clone())));
    let short: Vec<_> = short.chain(name).collect();
    found.extend(short);
    found
}

/// The parameters of a file or an argument.
fn of_tree(node: &Node, needs_key: bool) -> Result<Supplied, BadParameters> {
    let supplied = if needs_key { Supplied::of_tree(node) } else { Supplied::of_tree_or_members(node) };
    supplied.map_err(|finding| BadParameters::Findings(vec![finding.placed(Some(node.span), &Supplied::default())]))
}
