//! An environment made of data, for tests of expressions.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use stead_core::document::{DataType, Named, UserFunction};
use stead_core::expr::{Answer, Environment, Expression, FactKey, Template, UnsealError, is_expression, open};
use stead_core::id::{ResourceId, SecretName};
use stead_core::text::node::{Entry, Kind};
use stead_core::text::{Span, Spanned};
use stead_core::value::{Seal, Value};

#[path = "../support/seal.rs"]
mod seal;

use seal::Legible;

/// The environment of an expression, read from JSON. A key that is absent means that the function cannot be used.
///
/// `parameters`, `secure` (parameters that are sealed), `variables`, `references`, `changed`, `unknown` (ids), `restarts`,
/// `copy` (loops; the one being unrolled is `""`), `stdout`, `now`, `variables of the environment`, `executables`,
/// `context`, `root`, `secrets`, `functions`.
#[derive(Default)]
pub(crate) struct World {
    json: Json,
    functions: BTreeMap<String, UserFunction>,
}

impl World {
    pub(crate) fn new(json: Json) -> Result<Self, String> {
        let mut functions = BTreeMap::new();
        for (name, function) in json["functions"].as_object().into_iter().flatten() {
            functions.insert(name.clone(), user_function(name, function)?);
        }
        Ok(Self { json, functions })
    }

    fn lookup(&self, kind: &str, name: &str) -> Answer {
        let Some(named) = self.json[kind].as_object() else { return Answer::NotHere };
        match named.get(name) {
            Some(value) => Answer::Value(value.clone().into()),
            None => Answer::Absent { known: named.keys().cloned().collect() },
        }
    }

    fn instance(&self, kind: &str, id: &ResourceId) -> Answer {
        let unknown = self.json["unknown"].as_array().into_iter().flatten();
        if unknown.filter_map(Json::as_str).any(|each| each == id.to_string()) {
            return Answer::Unknown(id.clone());
        }
        self.lookup(kind, &id.to_string())
    }

    /// The plaintext of a value that was written down and read again, with the secrets of this world.
    pub(crate) fn open(&self, value: &Value) -> Result<Value, UnsealError> {
        let written = serde_json::to_string(value).expect("every value can be written");
        let read: Value = serde_json::from_str(&written).expect("what was written can be read");
        assert!(read == *value, "{written} is another value than was written");
        open(&read, &|name: &SecretName| match self.json["secrets"].get(&*name.0) {
            Some(plaintext) if !plaintext.is_null() => Ok(plaintext.clone().into()),
            _ => Legible::reveal(name),
        })
    }
}

/// Seals plaintext as the default of a secure parameter is sealed.
pub(crate) fn sealed(plaintext: Value) -> Value {
    Value::secret(Legible.seal(plaintext))
}

impl Environment for World {
    fn parameter(&self, name: &str) -> Answer {
        match self.json["secure"].get(name) {
            Some(plaintext) => Answer::Value(sealed(plaintext.clone().into())),
            None => self.lookup("parameters", name),
        }
    }
    fn variable(&self, name: &str) -> Answer {
        self.lookup("variables", name)
    }
    fn reference(&self, id: &ResourceId) -> Answer {
        self.instance("references", id)
    }
    fn state_changed(&self, id: &ResourceId) -> Answer {
        self.instance("changed", id)
    }
    fn restart_required(&self, kind: &str, name: Option<&str>) -> Answer {
        let Some(restarts) = self.json["restarts"].as_array() else { return Answer::NotHere };
        let wanted = name.map_or(kind.to_owned(), |name| format!("{kind} {name}"));
        Answer::Value(restarts.iter().any(|each| each.as_str() == Some(&wanted)).into())
    }
    fn copy_index(&self, loop_name: Option<&str>) -> Answer {
        self.lookup("copy", loop_name.unwrap_or(""))
    }
    fn stdout(&self) -> Answer {
        self.json["stdout"].as_str().map_or(Answer::NotHere, |text| Answer::Value(text.into()))
    }
    fn allows_now(&self) -> bool {
        self.json.get("now").is_some()
    }
    fn fact(&self, key: &FactKey) -> Option<Value> {
        let fact = match key {
            FactKey::Now => self.json["now"].as_str().filter(|now| !now.is_empty()).map(Json::from),
            FactKey::EnvironmentVariable(name) => self.json["variables of the environment"].get(name).cloned(),
            FactKey::Executable(name) => self.json["executables"].get(name).cloned(),
            FactKey::Machine => self.json.get("facts").cloned(),
            FactKey::Context => self.json.get("context").cloned(),
            FactKey::SystemRoot => self.json.get("root").cloned(),
            FactKey::Secret(name, vault) => {
                let names = self.json["secrets"].as_object()?;
                let key = vault.as_ref().map_or(name.clone(), |vault| format!("{vault}/{name}"));
                Some(if names.contains_key(&key) { key.into() } else { Json::Null })
            }
            FactKey::Document(path) => self.json["files"].get(path).cloned(),
        };
        fact.map(Value::from)
    }
    fn seal(&self, plaintext: Value) -> Option<Value> {
        Some(sealed(plaintext))
    }
    fn function(&self, name: &str) -> Option<&UserFunction> {
        self.functions.get(name)
    }
    fn function_names(&self) -> Vec<String> {
        self.functions.keys().cloned().collect()
    }
}

fn spanned<T>(value: T) -> Spanned<T> {
    Spanned::new(value, Span::default())
}

fn data_type(word: &Json) -> Result<DataType, String> {
    let known = DataType::ALL.iter().find(|(each, _)| Some(*each) == word.as_str());
    known.map(|(_, data_type)| *data_type).ok_or_else(|| format!("{word} is not a type"))
}

fn user_function(name: &str, json: &Json) -> Result<UserFunction, String> {
    let mut parameters = Vec::new();
    for (name, word) in json["parameters"].as_object().into_iter().flatten() {
        parameters.push(Named { name: spanned(name.clone()), value: data_type(word)? });
    }
    Ok(UserFunction {
        is_readable: true,
        name: spanned(name.to_owned()),
        parameters,
        output_type: spanned(data_type(&json["output"])?),
        output: node(&json["value"])?,
    })
}

fn node(json: &Json) -> Result<Template, String> {
    let kind = match json {
        Json::Null => Kind::Null,
        Json::Bool(truth) => Kind::Bool(*truth),
        Json::Number(number) => Kind::Number(number.clone()),
        Json::String(text) if is_expression(text) => {
            Kind::Compiled(Box::new(Expression::parse(text).map_err(|fault| format!("{text}: {}", fault.message))?))
        }
        Json::String(text) => Kind::String(text.as_str().into()),
        Json::Array(items) => Kind::Array(items.iter().map(node).collect::<Result<_, _>>()?),
        Json::Object(members) => {
            let entries = members.iter().map(|(key, value)| {
                Ok(Entry { key: key.as_str().into(), key_span: Span::default(), value: node(value)? })
            });
            Kind::Object(entries.collect::<Result<_, String>>()?)
        }
    };
    Ok(Template { span: Span::default(), kind })
}
