//! The output of programs, read as the protocol has it: one JSON value a line.
//!
//! Pure, and total: any bytes give values or a typed error with the place.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
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
    /// The problem.
    pub problem: OutputProblem,
}

/// A problem with an output.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OutputProblem {
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
    /// It holds more values than an answer may have.
    #[error("it holds more than {MAX_VALUES} values")]
    TooLarge,
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

/// How many values an output may hold in all: elements, members, and what holds them.
///
/// A value takes 72 bytes however short it is written, and a member of an object twice as many: with what is made of them,
/// the whole process takes less than 256 MiB. Exports of some ten thousand instances are the largest answers that there are.
const MAX_VALUES: usize = 500_000;

/// Reads the output of a program.
///
/// Guarantees: never panics; an error names a byte within the output or its end; a value of the result has no name
/// twice in an object. Time is linear in the size of the output. Memory is bounded by that and [`MAX_VALUES`].
pub fn parse(output: &[u8], expected: Expected) -> Result<Vec<Json>, Garbage> {
    let garbage = |offset, problem| Garbage { offset, problem };
    let text = match std::str::from_utf8(output) {
        Ok(text) => text,
        Err(error) => return Err(garbage(error.valid_up_to(), OutputProblem::Encoding)),
    };
    if text.starts_with('\u{feff}') {
        return Err(garbage(0, OutputProblem::ByteOrderMark));
    }
    // Within a string JSON would have it escaped, so it is never part of a value.
    if let Some(offset) = text.find('\u{1b}') {
        return Err(garbage(offset, OutputProblem::ControlCodes));
    }
    match expected {
        Expected::Values(1) => one(text).map(|value| vec![value]),
        Expected::Values(count) => exactly(text, count),
        Expected::Lines => lines(text),
    }
}

fn one(text: &str) -> Result<Json, Garbage> {
    if text.trim().is_empty() {
        return Err(Garbage { offset: 0, problem: OutputProblem::Empty });
    }
    value(text, 0, &Limits::default())
}

fn exactly(text: &str, count: usize) -> Result<Vec<Json>, Garbage> {
    let values = lines(text)?;
    match values.len() {
        0 if count > 0 => Err(Garbage { offset: 0, problem: OutputProblem::Empty }),
        found if found < count => {
            Err(Garbage { offset: text.len(), problem: OutputProblem::TooFew { expected: count, found } })
        }
        found if found > count => {
            let offset = filled_lines(text).nth(count).map_or(text.len(), |(offset, _)| offset);
            Err(Garbage { offset, problem: OutputProblem::TooMany })
        }
        _ => Ok(values),
    }
}

fn lines(text: &str) -> Result<Vec<Json>, Garbage> {
    let limits = Limits::default();
    filled_lines(text).map(|(offset, line)| value(line, offset, &limits)).collect()
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

/// The limits of the values of an output, and why one was refused by them.
struct Limits {
    room: Cell<usize>,
    refused: Cell<Option<OutputProblem>>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { room: Cell::new(MAX_VALUES), refused: Cell::default() }
    }
}

impl Limits {
    fn refuse<E: de::Error>(&self, problem: OutputProblem) -> E {
        let error = E::custom(&problem);
        self.refused.set(Some(problem));
        error
    }
}

/// Reads the one value of a text that starts at `start` of the output.
fn value(text: &str, start: usize, limits: &Limits) -> Result<Json, Garbage> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = Strict(limits).deserialize(&mut reader);
    let read = read.map_err(|error| {
        let problem = limits.refused.take().unwrap_or_else(|| problem(&error));
        garbage(text, start, &error, problem)
    })?;
    reader.end().map_err(|error| garbage(text, start, &error, OutputProblem::TooMany))?;
    Ok(read)
}

/// Returns the violation of the rules of JSON. Too deep a value differs from other faults only in the text of the
/// library.
fn problem(error: &serde_json::Error) -> OutputProblem {
    match () {
        () if error.to_string().starts_with("recursion limit exceeded") => OutputProblem::Depth,
        () if error.is_eof() => OutputProblem::Incomplete,
        () => OutputProblem::Syntax,
    }
}

fn garbage(text: &str, start: usize, error: &serde_json::Error, problem: OutputProblem) -> Garbage {
    let within = match problem {
        OutputProblem::Incomplete => text.len(),
        _ => offset_of(text, error.line(), error.column()),
    };
    Garbage { offset: start + within, problem }
}

/// The byte that a line and a column, both from one, stand for.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column.saturating_sub(1)).min(text.len())
}

/// JSON in which no object has a name twice, and of no more values than there is room for.
#[derive(Clone, Copy)]
struct Strict<'l>(&'l Limits);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        let Self(limits) = self;
        let left = limits.room.get().checked_sub(1).ok_or_else(|| limits.refuse(OutputProblem::TooLarge))?;
        limits.room.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
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
        while let Some(item) = access.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            if members.contains_key(&name) {
                return Err(self.0.refuse(OutputProblem::DuplicateName));
            }
            members.insert(name, access.next_value_seed(self)?);
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn fails(output: &[u8], expected: Expected) -> (usize, OutputProblem) {
        let garbage = parse(output, expected).unwrap_err();
        (garbage.offset, garbage.problem)
    }

    #[test]
    fn places_are_counted_from_the_start_of_the_output() {
        for (output, offset, problem) in [
            (&b"{}\n\n  {\"a\": nan}\n"[..], 13, OutputProblem::Syntax),
            (b"{}\n{\"a\":1,\"a\":2}\n", 12, OutputProblem::DuplicateName),
            (b"{}\n{} {}\n", 6, OutputProblem::TooMany),
            (b"{}\n[1,\n", 7, OutputProblem::Incomplete),
            (b"{}\r\n{}\r\nx", 8, OutputProblem::Syntax),
            (b"{}\n\xc3(", 3, OutputProblem::Encoding),
            (b"1e999", 4, OutputProblem::Syntax),
        ] {
            assert_eq!(fails(output, Expected::Lines), (offset, problem), "{}", output.escape_ascii());
        }
    }

    #[test]
    fn counts_are_exact() {
        assert_eq!(parse(b"", Expected::Lines), Ok(Vec::new()));
        assert_eq!(fails(b"", Expected::Values(1)), (0, OutputProblem::Empty));
        assert_eq!(fails(b" \n", Expected::Values(2)), (0, OutputProblem::Empty));
        assert_eq!(fails(b"1\n", Expected::Values(2)), (2, OutputProblem::TooFew { expected: 2, found: 1 }));
        assert_eq!(fails(b"1\n2\n3\n", Expected::Values(2)), (4, OutputProblem::TooMany));
        assert_eq!(parse(b"{\n}\n", Expected::Values(1)), Ok(vec![json!({})]));
        assert_eq!(fails(b"{\n}\n[]\n", Expected::Values(2)), (2, OutputProblem::Incomplete), "one of two is a line");
    }

    #[test]
    fn an_answer_has_so_many_values_and_no_more() {
        let array = |elements: usize| format!("[{}1]", "1,".repeat(elements - 1));
        assert!(parse(array(MAX_VALUES - 1).as_bytes(), Expected::Values(1)).is_ok());
        assert_eq!(fails(array(MAX_VALUES).as_bytes(), Expected::Values(1)).1, OutputProblem::TooLarge);
        let half = array(MAX_VALUES / 2);
        let (offset, problem) = fails(format!("{half}\n{half}").as_bytes(), Expected::Lines);
        assert_eq!(problem, OutputProblem::TooLarge, "lines count together");
        assert!(offset > half.len());
    }

    #[test]
    fn numbers_are_kept() {
        let text = "[18446744073709551615,-9223372036854775808,1.5e-7]";
        assert_eq!(parse(text.as_bytes(), Expected::Values(1)).unwrap()[0].to_string(), text);
    }

    fn any_json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<f64>().prop_map(Json::from),
            any::<String>().prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let members = proptest::collection::vec((any::<String>(), inner.clone()), 0..4);
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(Json::from),
                members.prop_map(|members| Json::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(values in proptest::collection::vec(any_json(), 0..4)) {
            let lines = values.iter().map(Json::to_string).collect::<Vec<_>>().join("\n");
            prop_assert_eq!(parse(lines.as_bytes(), Expected::Lines).unwrap(), values.clone());
            for value in values {
                let pretty = serde_json::to_string_pretty(&value).unwrap();
                prop_assert_eq!(parse(pretty.as_bytes(), Expected::Values(1)).unwrap(), vec![value]);
            }
        }

        #[test]
        fn anything_gives_values_or_a_place(output in "[\\[\\]{}\":,a1 \n\r\\\\ä\u{1b}-]*", count in 0..3_usize) {
            for expected in [Expected::Lines, Expected::Values(count)] {
                if let Err(garbage) = parse(output.as_bytes(), expected) {
                    prop_assert!(garbage.offset <= output.len());
                }
            }
        }

        #[test]
        fn a_cut_output_is_never_read(value in any_json(), at in any::<proptest::sample::Index>()) {
            let text = json!({"state": value}).to_string();
            let cut = at.index(text.len());
            prop_assert!(parse(&text.as_bytes()[..cut], Expected::Values(1)).is_err());
        }
    }
}
