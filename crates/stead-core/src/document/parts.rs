//! `parameters`, `variables`, `functions` and `outputs`.

use std::collections::BTreeSet;

use super::fields::{Owner, PARAMETER, Reader};
use super::foreign::Site;
use super::{DataType, Named, Output, Parameter, Template, UserFunction, codes};
use crate::diag::{Diagnostic, Meant};
use crate::expr::NAMESPACE;
use crate::text::{Entry, Kind, Node, Span, Spanned, shown};

/// The keys of a parameter.
pub(super) const PARAMETER_KEYS: &[&str] = &[
    "allowedValues",
    "defaultValue",
    "description",
    "maxLength",
    "maxValue",
    "metadata",
    "minLength",
    "minValue",
    "type",
];

impl Reader<'_> {
    pub(super) fn variables(&mut self, node: Node) -> Vec<Named<Template>> {
        let entries = self.entries(node, "'variables'");
        let mut variables = Vec::with_capacity(entries.len());
        for entry in entries {
            if !self.is_copy(&entry) {
                let Entry { key, key_span, value } = entry;
                self.parameter_as_variable(&key, key_span, &value);
                variables.push(Named { name: named(&key, key_span), value: self.variable(value) });
            }
        }
        variables
    }

    /// Reports a variable that is written like a parameter: an object of a type and a default.
    fn parameter_as_variable(&mut self, name: &str, span: Span, value: &Node) {
        const KEYS: [&str; 5] = ["type", "default", "defaultValue", "description", "sensitive"];
        let entries = value.entries().unwrap_or_default();
        let word = value.get("type").and_then(Node::as_str).unwrap_or_default();
        let data_type = DataType::ALL.iter().find(|(each, _)| *each == word).map(|(_, data_type)| *data_type);
        let Some(data_type) = data_type.or_else(|| type_of_others(word)) else { return };
        let has_default = value.get("default").or_else(|| value.get("defaultValue")).is_some();
        if has_default && entries.iter().all(|entry| KEYS.contains(&&*entry.key)) {
            let message =
                format!("the variable '{}' has the form of a parameter: its value is this object", shown(name));
            let help = format!(
                "declare it below `parameters:` as `{}: {{type: {}, defaultValue: …}}`, or write the value alone",
                shown(name),
                data_type.as_str()
            );
            self.report(Diagnostic::warning(&codes::PARAMETER_FORM, span, message).with_help(help));
        }
    }

    /// Returns whether a variable is the loop that ARM templates have for variables, and reports it as not supported.
    fn is_copy(&mut self, entry: &Entry) -> bool {
        let is_loop = |item: &Node| ["name", "count", "input"].iter().all(|key| item.get(key).is_some());
        let is_copy = match &entry.value.kind {
            Kind::Array(items) => &*entry.key == "copy" && !items.is_empty() && items.iter().all(is_loop),
            _ => false,
        };
        if is_copy {
            let message = "'copy' of variables is not supported, the variables are left out";
            let finding = Diagnostic::warning(&codes::OUTPUT_COPY, entry.key_span, message);
            self.report(finding.with_help("use map() to compute a list"));
        }
        is_copy
    }

    /// The parameters, and the names of those that cannot be read.
    pub(super) fn parameters(&mut self, node: Node) -> (Vec<Parameter>, BTreeSet<String>) {
        let (mut parameters, mut unreadable) = (Vec::new(), BTreeSet::new());
        for entry in self.entries(node, "'parameters'") {
            let name = entry.key.to_string();
            match self.parameter(entry) {
                Some(parameter) => parameters.push(parameter),
                None => drop(unreadable.insert(name)),
            }
        }
        (parameters, unreadable)
    }

    fn parameter(&mut self, Entry { key: name, key_span: name_span, value }: Entry) -> Option<Parameter> {
        let written = value.as_str().unwrap_or_default();
        let is_type = DataType::ALL.iter().any(|(word, _)| *word == written);
        // The value may be a secret.
        let form = if is_type {
            format!("{}: {{type: {written}}}", shown(&name))
        } else {
            format!("{}: {{type: {}, defaultValue: …}}", shown(&name), type_of(&value))
        };
        let entries = self.object_like(value, "a parameter", &form)?;
        let mut data_type = None;
        let mut has_type = false;
        let mut parameter = Parameter {
            name: named(&name, name_span),
            data_type: Spanned::new(DataType::String, name_span),
            default: None,
            allowed: None,
            min_value: None,
            max_value: None,
            min_length: None,
            max_length: None,
            description: None,
        };
        for Entry { key, key_span, value } in entries {
            match &*key {
                "type" => {
                    has_type = true;
                    data_type = self.data_type(value, "'type' of a parameter");
                }
                _ if value.kind == Kind::Null && PARAMETER_KEYS.contains(&&*key) => {}
                "defaultValue" => parameter.default = Some(self.value(value)),
                "allowedValues" => {
                    let span = value.span;
                    parameter.allowed = Some(Spanned::new(self.array(value, "'allowedValues'").into(), span));
                }
                "minValue" => parameter.min_value = self.integer(&value, "'minValue'"),
                "maxValue" => parameter.max_value = self.integer(&value, "'maxValue'"),
                "minLength" => parameter.min_length = self.size(&value, "'minLength'"),
                "maxLength" => parameter.max_length = self.size(&value, "'maxLength'"),
                "description" => parameter.description = self.string(value, "'description'").map(|text| text.value),
                "metadata" => {}
                _ => {
                    let owner = Owner::Part(PARAMETER);
                    let site = || Site { value: Some(&value), type_name: None };
                    self.unknown_key_at(&key, key_span, (owner, PARAMETER_KEYS), site());
                    // It has a default, although under another name: nobody needs to supply it.
                    if Self::meant_key(owner, &key, PARAMETER_KEYS, site()).is_some_and(|meant| meant == "defaultValue")
                    {
                        parameter.default = Some(self.value(value));
                    }
                }
            }
        }
        if !has_type {
            self.missing(name_span, PARAMETER, "type", &format!("it is one of {}", type_words()));
        }
        parameter.data_type = data_type?;
        self.check_bounds(&parameter);
        Some(parameter)
    }

    /// A type of values. Those of other tools are reported and read as the ones that they are.
    fn data_type(&mut self, node: Node, what: &str) -> Option<Spanned<DataType>> {
        let span = node.span;
        let Some(meant) = node.as_str().and_then(type_of_others) else {
            return self.word(node, what, &DataType::ALL);
        };
        let written = node.as_str().unwrap_or_default();
        let finding = Diagnostic::error(&codes::WORD, span, format!("{what} cannot be '{}'", shown(written)));
        self.report(finding.with_meant(written, &Meant::only(meant.as_str()), self.written(span)));
        Some(Spanned::new(meant, span))
    }

    fn check_bounds(&mut self, parameter: &Parameter) {
        let data_type = parameter.data_type.value;
        if let Some(none) = parameter.allowed.as_ref().filter(|allowed| allowed.value.is_empty()) {
            let finding =
                Diagnostic::error(&codes::BOUNDS, none.span, "'allowedValues' is empty, so no value is allowed");
            self.report(finding.with_help("list the values, or remove it"));
        }
        let values = bounds("minValue", parameter.min_value.as_ref(), "maxValue", parameter.max_value.as_ref());
        let lengths = bounds("minLength", parameter.min_length.as_ref(), "maxLength", parameter.max_length.as_ref());
        let has_length = matches!(data_type, DataType::String | DataType::SecureString | DataType::Array);
        for (bounds, applies) in [(values, data_type == DataType::Int), (lengths, has_length)] {
            for (key, span) in bounds.stated.iter().filter(|_| !applies) {
                let message = format!("'{key}' does not apply to a parameter of the type '{}'", data_type.as_str());
                self.report(Diagnostic::error(&codes::BOUNDS, *span, message).with_help("remove it"));
            }
            if let (true, Some((lower, upper))) = (bounds.crossed, bounds.pair()) {
                let message = format!("'{}' is greater than '{}', so no value is allowed", lower.0, upper.0);
                let finding = Diagnostic::error(&codes::BOUNDS, lower.1, message);
                self.report(finding.with_label(upper.1, "the upper bound"));
            }
        }
    }

    pub(super) fn outputs(&mut self, node: Node) -> Vec<Output> {
        let entries = self.entries(node, "'outputs'");
        entries.into_iter().filter_map(|entry| self.output(entry)).collect()
    }

    fn output(&mut self, Entry { key: name, key_span: name_span, value }: Entry) -> Option<Output> {
        let form = format!("{}: {{type: {}, value: …}}", shown(&name), type_of(&value));
        let entries = self.object_like(value, "an output", &form)?;
        let (mut data_type, mut condition, mut output, mut copied, mut has_type) = (None, None, None, false, false);
        for Entry { key, key_span, value } in entries {
            match &*key {
                "type" => {
                    has_type = true;
                    data_type = self.data_type(value, "'type' of an output");
                }
                "condition" if value.kind == Kind::Null => {}
                "condition" => condition = self.condition(value),
                "value" => output = Some(self.value(value)),
                "copy" => {
                    copied = true;
                    let message = "'copy' of an output is not supported, the output is left out";
                    let finding = Diagnostic::warning(&codes::OUTPUT_COPY, key_span, message);
                    self.report(finding.with_help("use map() to compute a list"));
                }
                _ => self.unknown_key(&key, key_span, "an output", &["type", "condition", "value", "copy"]),
            }
        }
        if !has_type {
            self.missing(name_span, "an output", "type", &format!("it is one of {}", type_words()));
        }
        if output.is_none() && !copied {
            self.missing(name_span, "an output", "value", "say what it is: \"value: '[…]'\"");
        }
        let output = output.filter(|_| !copied);
        Some(Output { name: named(&name, name_span), data_type: data_type?, condition, value: output? })
    }

    pub(super) fn functions(&mut self, node: Node) -> Vec<UserFunction> {
        if node.kind == Kind::Null {
            return Vec::new();
        }
        let mut functions = Vec::new();
        for item in self.array(node, "'functions'") {
            self.namespace(item, &mut functions);
        }
        let mut seen = BTreeSet::new();
        for function in &functions {
            if !seen.insert(function.name.value.clone()) {
                let message = format!("the function '{}' is defined twice", shown(&function.name.value));
                self.report(Diagnostic::error(&codes::FUNCTION_NAME, function.name.span, message));
            }
        }
        functions
    }

    fn namespace(&mut self, node: Node, functions: &mut Vec<UserFunction>) {
        let Some((span, entries)) = self.object(node, "an element of 'functions'") else { return };
        let (mut namespace, mut members, mut has_namespace) = (None, None, false);
        for Entry { key, key_span, value } in entries {
            match &*key {
                "namespace" => {
                    has_namespace = true;
                    namespace = self.string(value, "'namespace'");
                }
                "members" => members = Some(self.entries(value, "'members'")),
                _ => self.unknown_key(&key, key_span, "an element of 'functions'", &["namespace", "members"]),
            }
        }
        for (key, _) in [("namespace", has_namespace), ("members", members.is_some())].iter().filter(|(_, has)| !has) {
            self.missing(span, "an element of 'functions'", key, "functions are called as 'namespace.member'");
        }
        if let Some(namespace) = &namespace {
            self.check_name(&namespace.value, namespace.span, "a namespace");
            if namespace.value == NAMESPACE {
                let message = format!("the namespace '{NAMESPACE}' is reserved for built-in functions");
                let help = "choose another namespace";
                self.report(Diagnostic::error(&codes::FUNCTION_NAME, namespace.span, message).with_help(help));
            }
        }
        // Members are checked even if they cannot be called.
        let space = namespace.map(|namespace| namespace.value).unwrap_or_default();
        functions.extend(members.unwrap_or_default().into_iter().map(|member| self.function(&space, member)));
    }

    fn check_name(&mut self, name: &str, span: Span, what: &str) {
        let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !letters || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            let message = format!("'{}' cannot be the name of {what}", shown(name));
            let help = "names consist of letters, digits and underscores and start with no digit";
            self.report(Diagnostic::error(&codes::FUNCTION_NAME, span, message).with_help(help));
        }
    }

    fn function(&mut self, namespace: &str, Entry { key, key_span, value }: Entry) -> UserFunction {
        self.check_name(&key, key_span, "a function");
        let name = Spanned::new(format!("{namespace}.{key}"), key_span);
        let value_span = value.span;
        let (mut parameters, mut output) = (Some(Vec::new()), None);
        let Some((span, entries)) = self.object(value, "a function") else { return unreadable(name, value_span) };
        let mut has_output = false;
        for Entry { key, key_span, value } in entries {
            match &*key {
                "parameters" if value.kind == Kind::Null => {}
                "parameters" => parameters = self.function_parameters(value),
                "output" => {
                    has_output = true;
                    output = self.function_output(value);
                }
                _ => self.unknown_key(&key, key_span, "a function", &["parameters", "output"]),
            }
        }
        if !has_output {
            self.missing(span, "a function", "output", "say what it returns: type and value");
        }
        match (parameters, output) {
            (Some(parameters), Some((output_type, output))) => {
                UserFunction { name, parameters, output_type, output, is_readable: true }
            }
            _ => unreadable(name, span),
        }
    }

    /// `None` where one of them cannot be read.
    fn function_parameters(&mut self, node: Node) -> Option<Vec<Named<DataType>>> {
        let items = self.array(node, "'parameters' of a function");
        let read: Vec<_> = items.into_iter().map(|item| self.function_parameter(item)).collect();
        read.into_iter().collect()
    }

    fn function_parameter(&mut self, node: Node) -> Option<Named<DataType>> {
        let (span, entries) = self.object(node, "a parameter of a function")?;
        let (mut name, mut data_type) = (None, None);
        let (mut has_name, mut has_type) = (false, false);
        for Entry { key, key_span, value } in entries {
            match &*key {
                "name" => {
                    has_name = true;
                    name = self.string(value, "'name'");
                }
                "type" => {
                    has_type = true;
                    data_type = self.data_type(value, "'type' of a parameter");
                }
                _ => self.unknown_key(&key, key_span, "a parameter of a function", &["name", "type"]),
            }
        }
        for (key, _) in [("name", has_name), ("type", has_type)].iter().filter(|(_, present)| !present) {
            self.missing(span, "a parameter of a function", key, "parameters have a name and a type");
        }
        Some(Named { name: name?, value: data_type?.value })
    }

    fn function_output(&mut self, node: Node) -> Option<(Spanned<DataType>, Template)> {
        let (span, entries) = self.object(node, "'output' of a function")?;
        let (mut data_type, mut output, mut has_type) = (None, None, false);
        for Entry { key, key_span, value } in entries {
            match &*key {
                "type" => {
                    has_type = true;
                    data_type = self.data_type(value, "'type' of an output");
                }
                "value" => output = Some(self.value(value)),
                _ => self.unknown_key(&key, key_span, "'output' of a function", &["type", "value"]),
            }
        }
        for (key, _) in [("type", has_type), ("value", output.is_some())].iter().filter(|(_, present)| !present) {
            self.missing(span, "'output' of a function", key, "an output has a type and a value");
        }
        Some((data_type?, output?))
    }
}

/// A function of which only the name is known.
fn unreadable(name: Spanned<String>, span: Span) -> UserFunction {
    let output = Template { span, kind: Kind::Null };
    let output_type = Spanned::new(DataType::Object, span);
    UserFunction { name, parameters: Vec::new(), output_type, output, is_readable: false }
}

fn named(name: &str, span: Span) -> Spanned<String> {
    Spanned::new(name.to_owned(), span)
}

fn type_words() -> String {
    DataType::ALL.map(|(word, _)| word).join(", ")
}

/// The bounds that are stated, by key and place, and whether the lower is above the upper.
struct Bounds {
    stated: Vec<(&'static str, Span)>,
    crossed: bool,
}

type Bound = (&'static str, Span);

impl Bounds {
    fn pair(&self) -> Option<(Bound, Bound)> {
        if let [lower, upper] = self.stated.as_slice() { Some((*lower, *upper)) } else { None }
    }
}

fn bounds<T: PartialOrd>(
    lower_key: &'static str,
    lower: Option<&Spanned<T>>,
    upper_key: &'static str,
    upper: Option<&Spanned<T>>,
) -> Bounds {
    let stated = lower.map(|bound| (lower_key, bound.span)).into_iter();
    let stated = stated.chain(upper.map(|bound| (upper_key, bound.span))).collect();
    let crossed = lower.zip(upper).is_some_and(|(lower, upper)| lower.value > upper.value);
    Bounds { stated, crossed }
}

/// The type of parameters and outputs that has such a value.
fn type_of(value: &Node) -> &'static str {
    let data_type = match &value.kind {
        Kind::Bool(_) => DataType::Bool,
        Kind::Number(_) => DataType::Int,
        Kind::Array(_) => DataType::Array,
        _ => DataType::String,
    };
    data_type.as_str()
}

/// Returns the type that other tools call by a word.
fn type_of_others(word: &str) -> Option<DataType> {
    let lower = word.to_lowercase();
    let outer = lower.split_once(['(', '[', '<']).map_or(lower.as_str(), |(outer, _)| outer);
    match outer {
        "str" | "text" => Some(DataType::String),
        "number" | "integer" | "int32" | "int64" => Some(DataType::Int),
        "boolean" => Some(DataType::Bool),
        "list" | "tuple" | "set" => Some(DataType::Array),
        "map" | "dict" | "hash" | "hashtable" | "mapping" | "json" => Some(DataType::Object),
        "password" | "secret" | "sensitive" | "pscredential" => Some(DataType::SecureString),
        _ => None,
    }
}
