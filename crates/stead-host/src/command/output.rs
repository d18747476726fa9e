//! What programs print, read as the protocol has it: one JSON value a line.
//!
//! Pure, and total: any bytes give values or a typed error with the place.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};

/// How many values are expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// Exactly so many. A single one may be spread over lines.
    Values(usize),
    /// One a line, any number of them.
    Lines,
}

/// Output that is not what the protocol asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Garbage {
    /// Where, counted in bytes from the start of the output.
    pub offset: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with an output.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    /// There is nothing.
    #[error("nothing was printed")]
    Empty,
    /// It is not text.
    #[error("it is not UTF-8")]
    Encoding,
    /// It starts with a byte order mark.
    #[error("it starts with a byte order mark")]
    ByteOrderMark,
    /// It holds the control codes that colour a terminal.
    #[error("it holds control codes of a terminal")]
    ControlCodes,
    /// An object has a name twice. Which of the two is meant nobody can tell.
    #[error("an object has the same name twice")]
    DuplicateName,
    /// It is nested deeper than 128 levels.
    #[error("it is nested too deeply")]
    Depth,
    /// It stops in the middle of a value.
    #[error("it ends in the middle of a value")]
    Incomplete,
    /// It is not JSON; `NaN`, comments and text in front of a value are not either.
    #[error("it is not JSON")]
    Syntax,
    /// There are fewer values than expected.
    #[error("{expected} lines of JSON are expected, and there is only {found}")]
    TooFew {
        /// How many are expected.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// There is something behind the last value.
    #[error("there is more behind the last value")]
    TooMany,
}

/// Reads the output of a program.
///
/// Guarantees: never panics; an error names a byte within the output or its end; a value of the result has no name
/// twice in an object. Time and memory are linear in the size of the output.
pub fn parse(output: &[u8], expected: Expected) -> Result<Vec<Json>, Garbage> {
    let garbage = |offset, problem| Garbage { offset, problem };
    let text = match std::str::from_utf8(output) {
        Ok(text) => text,
        Err(error) => return Err(garbage(error.valid_up_to(), Problem::Encoding)),
    };
    if text.starts_with('\u{feff}') {
        return Err(garbage(0, Problem::ByteOrderMark));
    }
    // Within a string JSON would have it escaped, so it is never part of a value.
    if let Some(offset) = text.find('\u{1b}') {
        return Err(garbage(offset, Problem::ControlCodes));
    }
    match expected {
        Expected::Values(1) => one(text).map(|value| vec![value]),
        Expected::Values(count) => exactly(text, count),
        Expected::Lines => lines(text),
    }
}

fn one(text: &str) -> Result<Json, Garbage> {
    if text.trim().is_empty() {
        return Err(Garbage { offset: 0, problem: Problem::Empty });
    }
    value(text, 0)
}

fn exactly(text: &str, count: usize) -> Result<Vec<Json>, Garbage> {
    let values = lines(text)?;
    match values.len() {
        0 if count > 0 => Err(Garbage { offset: 0, problem: Problem::Empty }),
        found if found < count => {
            Err(Garbage { offset: text.len(), problem: Problem::TooFew { expected: count, found } })
        }
        found if found > count => {
            let offset = filled_lines(text).nth(count).map_or(text.len(), |(offset, _)| offset);
            Err(Garbage { offset, problem: Problem::TooMany })
        }
        _ => Ok(values),
    }
}

fn lines(text: &str) -> Result<Vec<Json>, Garbage> {
    filled_lines(text).map(|(offset, line)| value(line, offset)).collect()
}

fn filled_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    let places = text.split_inclusive('\n').map(move |line| {
        let offset = start;
        start += line.len();
        (offset, line)
    });
    places.filter(|(_, line)| !line.trim().is_empty())
}

/// Reads the one value of a text that starts at `start` of the output.
fn value(text: &str, start: usize) -> Result<Json, Garbage> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = Strict.deserialize(&mut reader).map_err(|error| garbage(text, start, &error))?;
    reader.end().map_err(|error| Garbage { problem: Problem::TooMany, ..garbage(text, start, &error) })?;
    Ok(read)
}

/// The words of the errors of this module and of `serde_json`, of which only the text can be told apart.
const TWICE: &str = "the same name twice";
const TOO_DEEP: &str = "recursion limit exceeded";

fn garbage(text: &str, start: usize, error: &serde_json::Error) -> Garbage {
    let words = error.to_string();
    let problem = match () {
        () if words.starts_with(TWICE) => Problem::DuplicateName,
        () if words.starts_with(TOO_DEEP) => Problem::Depth,
        () if error.is_eof() => Problem::Incomplete,
        () => Problem::Syntax,
    };
    Garbage { offset: start + offset_of(text, error.line(), error.column()), problem }
}

/// The byte that a line and a column, both from one, stand for.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column.saturating_sub(1)).min(text.len())
}

/// JSON in which no object has a name twice.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Json, E> {
        Ok(Json::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Json, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Strict)? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            if members.contains_key(&name) {
                return Err(A::Error::custom(TWICE));
            }
            members.insert(name, access.next_value_seed(Strict)?);
        }
        Ok(Json::Object(members))
    }
}
