//! Values as serialized data.
//!
//! Plain values are written as what they are. A sealed one is an object with the one member [`MARK`]; a member of a
//! plain object that has this name, with any number of `$` in front, is written with one `$` more: the two never mix.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::Error as _;
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

use super::sealed::{Computed, Recipe, Sealed, SealedStep};
use super::{Object, Value};
use crate::id::SecretName;

/// The name of the only member of a sealed value.
const MARK: &str = "$sealed";

/// How deep what is read may be nested: evaluation makes nothing that is deeper, and values are walked recursively.
const MAX_DEPTH: usize = 1024;

/// A sealed value as it is written.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum SerialForm {
    /// A handle.
    Secret(SecretName),
    /// A computation: the last of these steps. Parts that are shared are one step, and what a step needs is before it.
    Steps(Vec<SealedStep<Json>>),
    /// Within such steps: the one at that position.
    Step(usize),
}

/// Why serialized data is not a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
enum Malformed {
    #[error("a sealed value has one member and one of the forms 'secret', 'steps' and 'step'")]
    Form,
    #[error("a step of a sealed value refers to one that is not before it")]
    Reference,
    #[error("a sealed value is nested too deeply")]
    Depth,
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(truth) => serializer.serialize_bool(*truth),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(items) => {
                let mut sequence = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| sequence.serialize_element(item))?;
                sequence.end()
            }
            Self::Object(members) => members.serialize(serializer),
            Self::Sealed(sealed) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(MARK, &form(sealed, None))?;
                map.end()
            }
        }
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        self.iter().try_for_each(|(name, value)| map.serialize_entry(&*escaped(name), value))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(Json::deserialize(deserializer)?, &[]).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Object(members) => Ok(members),
            other => Err(D::Error::custom(format_args!("expected an object, found {}", other.described()))),
        }
    }
}

/// Returns whether a name is the mark of sealed values, with any number of `$` in front.
fn is_mark(name: &str) -> bool {
    name.ends_with(MARK) && name.trim_start_matches('$').len() == MARK.len() - 1
}

/// The name of a member as it is written.
fn escaped(name: &str) -> Cow<'_, str> {
    if is_mark(name) { Cow::Owned(format!("${name}")) } else { Cow::Borrowed(name) }
}

/// The name of a member that was written so.
fn unescaped(mut name: String) -> String {
    if is_mark(&name) {
        name.remove(0);
    }
    name
}

/// The position of each computation among the steps that are written.
type Positions = HashMap<*const (), usize>;

fn form(sealed: &Sealed, positions: Option<&Positions>) -> SerialForm {
    match (sealed.recipe(), positions) {
        (Recipe::Secret(name), _) => SerialForm::Secret(name.clone()),
        (Recipe::Computed(computed), Some(positions)) => {
            SerialForm::Step(positions.get(&computed.address()).copied().unwrap_or(usize::MAX))
        }
        (Recipe::Computed(computed), None) => {
            let mut steps = Steps::default();
            steps.add(computed);
            SerialForm::Steps(steps.written)
        }
    }
}

/// The steps of a computation in the order in which they are computed, each once.
#[derive(Default)]
struct Steps {
    written: Vec<SealedStep<Json>>,
    positions: Positions,
}

impl Steps {
    fn add(&mut self, computed: &Computed) {
        if self.positions.contains_key(&computed.address()) {
            return;
        }
        computed.step().values().for_each(|value| self.add_parts(value));
        let Ok(step) =
            computed.step().map(&mut |value| Ok::<_, std::convert::Infallible>(json(value, &self.positions)));
        self.positions.insert(computed.address(), self.written.len());
        self.written.push(step);
    }

    fn add_parts(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.add_parts(item)),
            Value::Object(members) => members.values().for_each(|member| self.add_parts(member)),
            Value::Sealed(sealed) => {
                if let Recipe::Computed(computed) = sealed.recipe() {
                    self.add(computed);
                }
            }
            _ => {}
        }
    }
}

/// A value within a step.
fn json(value: &Value, positions: &Positions) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => Json::Bool(*truth),
        Value::Number(number) => Json::Number(number.clone()),
        Value::String(text) => Json::String(text.clone()),
        Value::Array(items) => items.iter().map(|item| json(item, positions)).collect(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| (escaped(name).into_owned(), json(value, positions));
            Json::Object(members.iter().map(member).collect())
        }
        Value::Sealed(sealed) => {
            // Only a form that cannot be written as JSON could fail, and there is none.
            let form = serde_json::to_value(form(sealed, Some(positions))).unwrap_or_default();
            Json::Object([(MARK.to_owned(), form)].into_iter().collect())
        }
    }
}

/// The value that was written; within steps, with those before it.
fn read(json: Json, steps: &[Computed]) -> Result<Value, Malformed> {
    Ok(match json {
        Json::Array(items) => Value::Array(items.into_iter().map(|item| read(item, steps)).collect::<Result<_, _>>()?),
        Json::Object(members) if members.contains_key(MARK) => {
            read_sealed(members.into_iter().map(|(_, form)| form), steps)?
        }
        Json::Object(members) => {
            let member = |(name, value): (String, Json)| Ok((unescaped(name), read(value, steps)?));
            Value::Object(members.into_iter().map(member).collect::<Result<_, _>>()?)
        }
        plain => Value::from(plain),
    })
}

fn read_sealed(mut forms: impl Iterator<Item = Json>, steps: &[Computed]) -> Result<Value, Malformed> {
    let form = forms.next().filter(|_| forms.next().is_none()).ok_or(Malformed::Form)?;
    let recipe = match serde_json::from_value(form).map_err(|_| Malformed::Form)? {
        SerialForm::Secret(name) => Recipe::Secret(name),
        SerialForm::Step(position) => Recipe::Computed(steps.get(position).ok_or(Malformed::Reference)?.clone()),
        SerialForm::Steps(written) => Recipe::Computed(read_steps(&written)?),
    };
    Ok(Value::Sealed(Sealed::new(recipe)))
}

fn read_steps(written: &[SealedStep<Json>]) -> Result<Computed, Malformed> {
    let mut steps: Vec<Computed> = Vec::with_capacity(written.len());
    for step in written {
        let computed = Computed::new(step.map(&mut |value| read(value.clone(), &steps))?);
        if computed.depth() > MAX_DEPTH {
            return Err(Malformed::Depth);
        }
        steps.push(computed);
    }
    steps.pop().ok_or(Malformed::Form)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Closure, DataType, Function, Key};
    use super::*;

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![Just(MARK.to_owned()), Just("$$sealed".to_owned()), Just("$$$sealed".to_owned()), "[a-c]{0,2}"]
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(|number| Value::Number(number.into())),
            // Numbers that every reader of JSON gets right to the last bit.
            any::<i32>().prop_map(|number| Value::from(Json::from(f64::from(number) / 4.0))),
            any::<String>().prop_map(Value::from),
            "[a-f0-9]{4}/[0-9]".prop_map(|name| Value::secret(SecretName(name.into()))),
        ];
        leaf.prop_recursive(5, 40, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec((name(), inner.clone()), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
                deferred(inner.clone()),
                (inner).prop_map(|shared| {
                    let sealed = Value::deferred(SealedStep::Typed { value: shared, data_type: DataType::Int });
                    Value::deferred(SealedStep::Keep(vec![(sealed.clone(), sealed)]))
                }),
            ]
        })
    }

    fn deferred(value: impl Strategy<Value = Value> + Clone + 'static) -> impl Strategy<Value = Value> {
        let values = prop::collection::vec(value.clone(), 0..3);
        let access = |of, key| Value::deferred(SealedStep::Access { of, key });
        prop_oneof![
            values
                .clone()
                .prop_map(|arguments| Value::deferred(SealedStep::Apply { function: "concat".into(), arguments })),
            (value.clone(), name()).prop_map(move |(of, name)| access(of, Key::Member(name.into()))),
            value.clone().prop_map(move |of| access(of, Key::State)),
            (value.clone(), value.clone()).prop_map(move |(of, index)| access(of, Key::Index(index))),
            (value, values).prop_map(|(array, captured)| {
                let function = Function {
                    name: "a.b".to_owned(),
                    parameters: vec![("c".to_owned(), DataType::SecureString)],
                    returns: DataType::Array,
                    output: serde_json::json!(["[parameters('c')]", "[[text", 1]),
                };
                let source = "[map(lambdaVariables(0), lambda('x', 1))]".to_owned();
                Value::deferred(SealedStep::Each {
                    array,
                    closure: Closure { source, captured, functions: vec![function] },
                })
            }),
            Just(Value::deferred(SealedStep::Failed)),
        ]
    }

    proptest! {
        #[test]
        fn values_that_are_read_are_those_that_were_written(value in value()) {
            let written = serde_json::to_string(&value).unwrap();
            let read: Value = serde_json::from_str(&written).unwrap();
            prop_assert!(read == value, "{}", written);
            prop_assert_eq!(serde_json::to_string(&read).unwrap(), written);
        }

        #[test]
        fn plain_values_are_written_as_they_are(value in value()) {
            let looks_sealed = serde_json::to_string(&value).unwrap().contains(MARK);
            if !looks_sealed {
                prop_assert_eq!(serde_json::to_value(&value).unwrap(), value.to_redacted_json());
            }
        }
    }

    #[test]
    fn parts_that_are_shared_are_written_once() {
        let mut value = Value::secret(SecretName("v/0".into()));
        for _ in 0..200 {
            value =
                Value::deferred(SealedStep::Apply { function: "concat".into(), arguments: vec![value.clone(), value] });
        }
        let written = serde_json::to_string(&value).unwrap();
        assert!(written.len() < 200 * 120, "{} bytes", written.len());
        assert!(serde_json::from_str::<Value>(&written).unwrap() == value);
    }

    #[test]
    fn what_is_no_sealed_value_is_refused() {
        let step = |of: &str| format!(r#"{{"typed": {{"value": {of}, "type": "int"}}}}"#);
        let chain: Vec<String> = (0..=MAX_DEPTH)
            .map(|at| step(&if at == 0 { "1".to_owned() } else { format!(r#"{{"$sealed": {{"step": {}}}}}"#, at - 1) }))
            .collect();
        let cases = [
            (r#"{"$sealed": 1}"#.to_owned(), Malformed::Form),
            (r#"{"$sealed": {"literal": "a"}}"#.to_owned(), Malformed::Form),
            (r#"{"$sealed": {"steps": []}}"#.to_owned(), Malformed::Form),
            (r#"{"$sealed": {"secret": "a"}, "b": 1}"#.to_owned(), Malformed::Form),
            (r#"[{"$sealed": {"step": 0}}]"#.to_owned(), Malformed::Reference),
            (format!(r#"{{"$sealed": {{"steps": [{}]}}}}"#, step(r#"{"$sealed": {"step": 0}}"#)), Malformed::Reference),
            (format!(r#"{{"$sealed": {{"steps": [{}]}}}}"#, chain.join(",")), Malformed::Depth),
        ];
        for (written, wrong) in cases {
            let found = serde_json::from_str::<Value>(&written).err().map(|error| error.to_string());
            assert_eq!(found, Some(wrong.to_string()), "{written}");
        }
    }
}
