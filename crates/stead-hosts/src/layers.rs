//! Parameters in layers: those for all machines, and those for the machines that a filter means.

use std::collections::BTreeMap;

use stead_core::diag::{Diagnostic, did_you_mean, nearest};
use stead_core::text::{Entry, Form, Node, Sources, Span, locate};
use stead_core::value::{Object, Value};

use crate::codes;
use crate::filter::Filter;
use crate::finding::stated;

/// The key by which a file of parameters is one of layers.
const LAYERS: &str = "layers";
const OF_FILE: &[&str] = &[LAYERS, "merge"];
const OF_LAYER: &[&str] = &["parameters", "where"];

/// Parameters in layers, each for the machines that its filter means.
///
/// Guarantees: layers of which no two have the same parameter come to the same in any order.
///
/// # Examples
/// ```
/// use stead_core::text::{Limits, Source, Sources, read};
/// use stead_core::value::Value;
/// use stead_hosts::ParameterLayers;
///
/// let mut sources = Sources::default();
/// let text = "layers: [{parameters: {port: 80}}, {where: role=web, parameters: {port: 8080}}]";
/// let source = sources.add(Source::new("site.yaml", text));
/// let tree = read(source, text, &Limits::default()).0.unwrap();
/// let layers = ParameterLayers::read(&tree, &sources).unwrap();
/// let web = layers.resolve(&|label| (label == "role").then_some("web")).unwrap();
/// assert_eq!(web.values.get("port"), Some(&Value::from(8080)));
/// assert_eq!(web.layers.len(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ParameterLayers {
    layers: Vec<Layer>,
    merges: BTreeMap<String, Merge>,
}

#[derive(Clone, Debug)]
struct Layer {
    /// The filter, and its text; `None` for all machines.
    condition: Option<(Filter, String)>,
    parameters: Vec<Entry>,
}

/// How the values of several layers become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merge {
    /// The last one counts.
    Last,
    /// The items of all, each once, those of earlier layers first.
    Unique,
    /// The members of all; of one that several have, the last.
    Hash,
    /// The members of all, at any depth, and the items of arrays as with [`Merge::Unique`].
    Deep,
}

impl Merge {
    const ALL: [Self; 4] = [Self::Last, Self::Unique, Self::Hash, Self::Deep];

    /// The word that files have for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Unique => "unique",
            Self::Hash => "hash",
            Self::Deep => "deep",
        }
    }

    /// The value that two come to, of which the second is of the later layer; `None` where they cannot be merged.
    fn merged(self, one: Value, other: Value) -> Option<Value> {
        match (self, one, other) {
            (Self::Last, _, other) => Some(other),
            (Self::Unique, Value::Array(one), Value::Array(other)) => Some(Value::Array(united(one, other))),
            (Self::Hash, Value::Object(mut one), Value::Object(other)) => {
                one.extend(other);
                Some(Value::Object(one))
            }
            (Self::Deep, one @ Value::Object(_), other @ Value::Object(_))
            | (Self::Deep, one @ Value::Array(_), other @ Value::Array(_)) => Some(deeply(one, other)),
            _ => None,
        }
    }

    /// The value that one comes to alone.
    fn alone(self, value: Value) -> Value {
        match (self, value) {
            (Self::Unique, Value::Array(items)) => Value::Array(united(Vec::new(), items)),
            (_, value) => value,
        }
    }

    /// The kind of value that it merges.
    fn takes(self) -> &'static str {
        match self {
            Self::Last => "any value",
            Self::Unique => "arrays",
            Self::Hash => "objects",
            Self::Deep => "objects, or arrays",
        }
    }
}

fn united(mut one: Vec<Value>, other: Vec<Value>) -> Vec<Value> {
    let mut all = Vec::with_capacity(one.len() + other.len());
    for item in one.drain(..).chain(other) {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}

fn deeply(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            for (name, value) in other {
                let merged = match one.remove(&name) {
                    Some(former) => deeply(former, value),
                    None => value,
                };
                one.insert(name, merged);
            }
            Value::Object(one)
        }
        (Value::Array(one), Value::Array(other)) => Value::Array(united(one, other)),
        (_, other) => other,
    }
}

/// The parameters of one machine.
#[derive(Clone, Debug, Default)]
pub struct Layered {
    /// The values by name.
    pub values: Object,
    /// Where the last layer has each, by name.
    pub places: BTreeMap<String, Span>,
    /// Each value that a layer of this machine has, in the order of the layers.
    pub layers: Vec<LayerValue>,
}

/// A value in a layer.
#[derive(Clone, Debug)]
pub struct LayerValue {
    /// The name of the parameter.
    pub name: String,
    /// Where the layer has it.
    pub span: Span,
    /// The filter of the layer; `None` for all machines.
    pub condition: Option<String>,
    /// The value there.
    pub value: Value,
    /// How it is merged with those of other layers.
    pub merge: Merge,
}

impl ParameterLayers {
    /// Returns whether a file of parameters has layers.
    pub fn are_in(tree: &Node) -> bool {
        tree.get(LAYERS).is_some()
    }

    /// Reads layers.
    ///
    /// # Errors
    /// All that is wrong with their form, with places.
    pub fn read(tree: &Node, sources: &Sources) -> Result<Self, Vec<Diagnostic>> {
        let mut reader = Reader { sources, form: Form::new(&codes::LAYERS) };
        let layers = reader.file(tree);
        if reader.form.findings.is_empty() { Ok(layers) } else { Err(reader.form.findings) }
    }

    /// The names of the labels and facts that their filters are about.
    pub fn labels(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for (filter, _) in self.layers.iter().filter_map(|layer| layer.condition.as_ref()) {
            filter.labels(&mut |name| names.push(name));
        }
        names
    }

    /// Returns the parameters of a machine, whose labels and facts `label` gives by name.
    ///
    /// # Errors
    /// When a parameter has values that cannot be merged as it is to be.
    pub fn resolve<'l>(&self, label: &impl Fn(&str) -> Option<&'l str>) -> Result<Layered, Box<Diagnostic>> {
        let mut layered = Layered::default();
        let means = |layer: &&Layer| layer.condition.as_ref().is_none_or(|(filter, _)| filter.matches(label));
        for layer in self.layers.iter().filter(means) {
            for entry in &layer.parameters {
                let (name, value) = (entry.key.to_string(), entry.value.literal());
                let merge = self.merges.get(&name).copied().unwrap_or(Merge::Last);
                let condition = layer.condition.as_ref().map(|(_, text)| text.clone());
                let found =
                    LayerValue { name: name.clone(), span: entry.key_span, condition, value: value.clone(), merge };
                layered.layers.push(found);
                let merged = match layered.values.remove(&name) {
                    Some(former) => merge.merged(former, value).ok_or_else(|| not_merged(entry, merge))?,
                    None => merge.alone(value),
                };
                layered.values.insert(name.clone(), merged);
                layered.places.insert(name, entry.key_span);
            }
        }
        Ok(layered)
    }
}

fn not_merged(entry: &Entry, merge: Merge) -> Box<Diagnostic> {
    let message = format!("'{}' cannot be merged with what an earlier layer has", entry.key.escape_debug());
    let help = format!("'{}' merges {}, found {}", merge.word(), merge.takes(), entry.value.kind_name());
    Box::new(Diagnostic::error(&codes::LAYERS, entry.value.span, message).with_help(help))
}

struct Reader<'a> {
    sources: &'a Sources,
    form: Form,
}

impl Reader<'_> {
    fn file(&mut self, tree: &Node) -> ParameterLayers {
        self.form.check_members(tree, OF_FILE, "a file of layers");
        let Some(items) = tree.get(LAYERS).and_then(Node::items) else {
            self.form.wrong(tree.span, "'layers' must be a list", "write each layer behind a '-'");
            return ParameterLayers::default();
        };
        let layers: Vec<Layer> = items.iter().map(|item| self.layer(item)).collect();
        let merges = self.form.members(stated(tree.get("merge")), "'merge'").iter();
        let names = || layers.iter().flat_map(|layer| &layer.parameters).map(|entry| &*entry.key);
        for entry in merges.clone().filter(|entry| names().all(|name| name != &*entry.key)) {
            let message = format!("no layer has '{}'", entry.key.escape_debug());
            let near = nearest(&entry.key, names()).map(did_you_mean);
            self.form.wrong(entry.key_span, message, &near.unwrap_or_else(|| "take it out of 'merge'".to_owned()));
        }
        ParameterLayers {
            layers,
            merges: merges.filter_map(|entry| Some((entry.key.to_string(), self.merge(entry)?))).collect(),
        }
    }

    fn layer(&mut self, node: &Node) -> Layer {
        self.form.check_members(node, OF_LAYER, "a layer");
        let parameters = self.form.members(stated(node.get("parameters")), "'parameters'").to_vec();
        Layer { condition: node.get("where").and_then(|node| self.filter(node)), parameters }
    }

    fn filter(&mut self, node: &Node) -> Option<(Filter, String)> {
        let Some(text) = node.as_str() else {
            self.form.wrong(node.span, "'where' must be a string", "write a comparison such as role=web");
            return None;
        };
        let parsed = Filter::parse(text).map_err(|error| {
            let span = locate(self.sources, node.span, error.range);
            self.form.findings.push(Diagnostic::error(&codes::FILTER, span, error.message).with_help(error.help));
        });
        Some((parsed.ok()?, text.to_owned()))
    }

    fn merge(&mut self, entry: &Entry) -> Option<Merge> {
        let word = entry.value.as_str().unwrap_or_default();
        let found = Merge::ALL.into_iter().find(|merge| merge.word() == word);
        if found.is_none() {
            let words = Merge::ALL.map(Merge::word);
            let near = nearest(word, words).map(did_you_mean);
            let help = near.unwrap_or_else(|| format!("values are merged by {}", words.join(", ")));
            self.form.wrong(entry.value.span, "this is not a way to merge values", &help);
        }
        found
    }
}
