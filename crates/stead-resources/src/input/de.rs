//! From JSON to Rust types, with errors that name the property and quote no value.

use std::fmt::{self, Display};
use std::slice;

use serde::de::{self, DeserializeSeed, Deserializer, Expected, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use stead_core::call::{Failure, FailureKind};
use stead_core::diag::Meant;
use stead_core::schema::{Reason, Type};
use stead_core::value::{Iter, Number, REDACTED, Value, pointer};

/// A value that types are read from.
pub(super) struct Reader<'de> {
    value: &'de Value,
    numbers: Numbers,
}

/// How numbers without a fraction are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// As integers however they are written, as in JSON Schema.
    Converted,
    /// As they are written: 1.0 is not 1.
    Exact,
}

/// The name of a newtype within which numbers stay as they are written.
pub(super) const EXACT: &str = "stead::Exact";

impl<'de> Reader<'de> {
    /// Of a value, whose integers may be written with a point.
    pub(super) fn new(value: &'de Value) -> Self {
        Self { value, numbers: Numbers::Converted }
    }
}

/// What is wrong with a value, and where.
#[derive(Debug)]
pub(super) struct Fault {
    /// The steps from the value outwards: names and indices.
    path: Vec<String>,
    reason: Reason,
}

impl Fault {
    fn new(reason: Reason) -> Self {
        Self { path: Vec::new(), reason }
    }

    fn within(mut self, step: &dyn Display) -> Self {
        if let (Reason::Unknown { known, .. }, [_]) = (&self.reason, self.path.as_slice()) {
            // A name that is further within may be a value that was put in the wrong place.
            let known: Vec<String> = known.iter().map(|name| format!("'{name}'")).collect();
            self =
                Self::new(Reason::Other(format!("has a property that does not exist there; use {}", known.join(", "))));
        }
        self.path.push(step.to_string());
        self
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.last() {
            _ if self.reason.names_member() => write!(f, "{}", self.reason)?,
            Some(property)
                if let (Reason::Type(_), [_, ..]) =
                    (&self.reason, self.path.split_last().map_or(&[][..], |(_, inner)| inner)) =>
            {
                write!(f, "a value in '{property}' {}", self.reason)?;
            }
            Some(property) => write!(f, "'{property}' {}", self.reason)?,
            None => write!(f, "the properties {}", self.reason)?,
        }
        self.reason.meant().map_or(Ok(()), |meant| write!(f, "; {meant}"))
    }
}

impl std::error::Error for Fault {}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let pointer = fault.path.iter().rev().fold(String::new(), |outer, step| pointer::within(&outer, step));
        let property = Some(pointer).filter(|pointer| !pointer.is_empty());
        let message = fault.to_string();
        Self { property, reason: Some(Box::new(fault.reason)), ..Self::new(FailureKind::Invalid, message) }
    }
}

impl de::Error for Fault {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(Reason::Other(message.to_string()))
    }

    fn invalid_type(_unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(must_be(expected))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(out_of_range(unexpected, &expected.to_string()).unwrap_or_else(|| must_be(expected)))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let near = Meant::word(variant, expected.iter().copied());
        let allowed = expected.iter().map(|word| format!("\"{word}\"")).collect();
        Self::new(Reason::OneOf { allowed, near })
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.iter().map(|&name| name.to_owned()).collect();
        Self::new(Reason::Unknown { name: field.to_owned(), known }).within(&field)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(Reason::Missing(vec![field.to_owned()])).within(&field)
    }
}

/// The bound of a type of integers that a value is beyond.
fn out_of_range(found: Unexpected<'_>, expected: &str) -> Option<Reason> {
    let (least, most) = match expected {
        "u8" => (0, u64::from(u8::MAX)),
        "u16" => (0, u64::from(u16::MAX)),
        "u32" => (0, u64::from(u32::MAX)),
        "u64" | "usize" => (0, u64::MAX),
        "i32" => (i64::from(i32::MIN), u64::from(i32::MAX.unsigned_abs())),
        "i64" => (i64::MIN, i64::MAX.unsigned_abs()),
        _ => return None,
    };
    Some(Reason::Other(match found {
        Unexpected::Signed(number) if number < least => format!("must be at least {least}"),
        Unexpected::Signed(_) | Unexpected::Unsigned(_) => format!("must be at most {most}"),
        _ => return None,
    }))
}

/// What is expected, in the words of those who write documents. All that the types say of it is text.
fn must_be(expected: &dyn Expected) -> Reason {
    let text = expected.to_string();
    Reason::Type(vec![match text.as_str() {
        "a string" | "a borrowed string" => Type::String,
        "a boolean" => Type::Boolean,
        "a sequence" => Type::Array,
        "f64" => Type::Number,
        "i64" | "u64" | "i32" | "u32" | "i16" | "u16" | "i8" | "u8" | "usize" | "isize" => Type::Integer,
        "a map" => Type::Object,
        text if text.starts_with("struct ") => Type::Object,
        text => return Reason::Other(format!("must be {text}")),
    }])
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let numbers = self.numbers;
        match self.value {
            Value::Null => visitor.visit_unit(),
            // What a resource is given holds none.
            Value::Sealed(_) => visitor.visit_borrowed_str(REDACTED),
            Value::Bool(truth) => visitor.visit_bool(*truth),
            Value::Number(number) => visit_number(number, numbers, visitor),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(Items { rest: items.iter(), at: 0, numbers }),
            Value::Object(members) => visitor.visit_map(Members { rest: members.iter(), value: None, numbers }),
        }
    }

    /// What is optional may be left out; null is not the same.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        let numbers = if name == EXACT { Numbers::Exact } else { self.numbers };
        visitor.visit_newtype_struct(Self { numbers, ..self })
    }

    /// A list has no names.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.value {
            Value::Array(_) => Err(Fault::new(Reason::Type(vec![Type::Object]))),
            _ => self.deserialize_any(visitor),
        }
    }

    /// A name without content.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.value {
            Value::String(text) => visitor.visit_enum(de::value::BorrowedStrDeserializer::new(text)),
            _ => Err(Fault::new(Reason::Type(vec![Type::String]))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

/// Beyond that a float does not tell integers apart.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

fn visit_number<'de, V: Visitor<'de>>(number: &Number, numbers: Numbers, visitor: V) -> Result<V::Value, Fault> {
    if let Some(number) = number.as_u64() {
        return visitor.visit_u64(number);
    }
    if let Some(number) = number.as_i64() {
        return visitor.visit_i64(number);
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    if numbers == Numbers::Exact || has_fraction(number) {
        return visitor.visit_f64(float);
    }
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is within the range")]
    visitor.visit_i64(float as i64)
}

/// Returns whether a number is not an integer, or not one that is known exactly.
pub(crate) fn has_fraction(number: &Number) -> bool {
    let is_exact = |number: f64| number.fract() == 0.0 && number.abs() <= LARGEST_EXACT;
    number.is_f64() && !number.as_f64().is_some_and(is_exact)
}

struct Members<'de> {
    rest: Iter<'de>,
    value: Option<(&'de str, &'de Value)>,
    numbers: Numbers,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some((name, value));
        seed.deserialize(de::value::BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((name, value)) = self.value.take() else { return Err(de::Error::custom("has no value")) };
        seed.deserialize(Reader { value, numbers: self.numbers }).map_err(|fault| fault.within(&name))
    }
}

struct Items<'de> {
    rest: slice::Iter<'de, Value>,
    at: usize,
    numbers: Numbers,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(item) = self.rest.next() else { return Ok(None) };
        let at = self.at;
        self.at += 1;
        seed.deserialize(Reader { value: item, numbers: self.numbers }).map(Some).map_err(|fault| fault.within(&at))
    }
}
