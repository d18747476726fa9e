//! Data types of Puppet, and how they are written.

use std::fmt;

/// A data type. `Display` writes it as Puppet reads it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DataType {
    Any,
    Undef,
    Boolean,
    /// Exactly `true` or `false`.
    Literal(bool),
    Timestamp,
    String(Bounds<u64>),
    Pattern(String),
    Enum {
        values: Vec<String>,
        case: LetterCase,
    },
    /// An enum of words that need no quotes.
    Words(&'static [&'static str]),
    Integer(Bounds<i64>),
    /// Any number: what Puppet calls a float refuses `1`.
    Number(Bounds<f64>),
    Array(Box<DataType>, Bounds<u64>),
    Hash(Box<DataType>, Bounds<u64>),
    Struct(Vec<Member>),
    Optional(Box<DataType>),
    Variant(Vec<DataType>),
    Sensitive(Box<DataType>),
}

/// The rule by which upper and lower case of texts are distinguished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LetterCase {
    /// `A` and `a` are different.
    #[default]
    Sensitive,
    /// `A` and `a` are the same, as everywhere in PowerShell.
    Insensitive,
}

/// The least and the most that is allowed; `None` where there is no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds<T> {
    pub(crate) least: Option<T>,
    pub(crate) most: Option<T>,
}

impl<T: PartialOrd> Bounds<T> {
    pub(crate) const NONE: Self = Self { least: None, most: None };

    /// No limits where no value is within them: Puppet refuses such a type. The engine refuses each value.
    pub(crate) fn new(least: Option<T>, most: Option<T>) -> Self {
        let bounds = Self { least, most };
        if bounds.is_contradiction() { Self::NONE } else { bounds }
    }

    fn is_contradiction(&self) -> bool {
        matches!((&self.least, &self.most), (Some(least), Some(most)) if least > most)
    }

    fn is_none(&self) -> bool {
        self.least.is_none() && self.most.is_none()
    }
}

/// A member of a `Struct`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    pub(crate) presence: Presence,
}

/// The rule by which a member may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Optional,
}

impl DataType {
    /// The type with `undef` added. An attribute of any other type is mandatory, also one of `Undef`.
    pub(crate) fn optional(self) -> Self {
        if let Self::Optional(_) = self { self } else { Self::Optional(Box::new(self)) }
    }

    /// The type whose values are covered in all that Puppet prints.
    pub(crate) fn sensitive(self) -> Self {
        match self {
            Self::Optional(of) => of.sensitive().optional(),
            Self::Sensitive(_) => self,
            _ => Self::Sensitive(Box::new(self)),
        }
    }

    /// One of several types; equal ones once, and `undef` as an optional type.
    pub(crate) fn one_of(alternatives: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        let mut optional = false;
        for alternative in alternatives {
            match alternative {
                Self::Undef => optional = true,
                Self::Optional(of) => {
                    optional = true;
                    add(&mut flat, *of);
                }
                other => add(&mut flat, other),
            }
        }
        let data_type = match (flat.pop(), flat.is_empty()) {
            (None, _) => Self::Undef,
            (Some(only), true) => only,
            (Some(last), false) if flat.contains(&Self::Any) || last == Self::Any => Self::Any,
            (Some(last), false) => {
                flat.push(last);
                Self::Variant(flat)
            }
        };
        if optional && data_type != Self::Undef { data_type.optional() } else { data_type }
    }

    /// Returns whether a value of the type is, or has somewhere in it, one that is covered.
    pub(crate) fn has_sensitive(&self) -> bool {
        match self {
            Self::Sensitive(_) => true,
            Self::Optional(of) | Self::Array(of, _) | Self::Hash(of, _) => of.has_sensitive(),
            Self::Variant(of) => of.iter().any(Self::has_sensitive),
            Self::Struct(members) => members.iter().any(|member| member.data_type.has_sensitive()),
            _ => false,
        }
    }

    /// The types that a value other than `undef` can have.
    pub(crate) fn alternatives(&self) -> &[Self] {
        match self.required() {
            Self::Variant(of) => of,
            only => std::slice::from_ref(only),
        }
    }

    /// The type without `Optional` around it.
    pub(crate) fn required(&self) -> &Self {
        if let Self::Optional(of) = self { of.required() } else { self }
    }
}

fn add(types: &mut Vec<DataType>, data_type: DataType) {
    match data_type {
        DataType::Variant(of) => of.into_iter().for_each(|each| add(types, each)),
        _ if types.contains(&data_type) => {}
        _ => types.push(data_type),
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("Any"),
            Self::Undef => f.write_str("Undef"),
            Self::Boolean => f.write_str("Boolean"),
            Self::Literal(value) => write!(f, "Boolean[{value}]"),
            Self::Timestamp => f.write_str("Timestamp"),
            Self::String(bounds) => write!(f, "String{}", Parameters(bounds)),
            Self::Pattern(pattern) => write!(f, "Pattern[/{pattern}/]"),
            Self::Enum { values, case } => {
                let quoted: Vec<_> = values.iter().map(|value| quoted(value)).collect();
                let end = if *case == LetterCase::Insensitive { ", true" } else { "" };
                write!(f, "Enum[{}{end}]", quoted.join(", "))
            }
            Self::Words(words) => write!(f, "Enum[{}]", words.join(", ")),
            Self::Integer(bounds) => write!(f, "Integer{}", Parameters(bounds)),
            Self::Number(bounds) => write_number(f, bounds),
            Self::Array(of, bounds) => write!(f, "Array[{of}{}]", More(bounds)),
            Self::Hash(of, bounds) => write!(f, "Hash[String, {of}{}]", More(bounds)),
            Self::Struct(members) => write_struct(f, members),
            Self::Optional(of) => write!(f, "Optional[{of}]"),
            Self::Variant(of) => {
                let of: Vec<_> = of.iter().map(Self::to_string).collect();
                write!(f, "Variant[{}]", of.join(", "))
            }
            Self::Sensitive(of) => write!(f, "Sensitive[{of}]"),
        }
    }
}

fn write_number(f: &mut fmt::Formatter<'_>, bounds: &Bounds<f64>) -> fmt::Result {
    let floats = Bounds { least: bounds.least.map(Float), most: bounds.most.map(Float) };
    let integers = Bounds {
        least: bounds.least.and_then(|least| whole(least.ceil())),
        most: bounds.most.and_then(|most| whole(most.floor())),
    };
    if integers.is_contradiction() {
        return write!(f, "Float{}", Parameters(&floats));
    }
    write!(f, "Variant[Float{}, Integer{}]", Parameters(&floats), Parameters(&integers))
}

/// A number without a fraction as an integer of Puppet, if it is small enough to be exact.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked, and the number has no fraction")]
pub(crate) fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (number.abs() <= EXACT).then_some(number as i64)
}

fn write_struct(f: &mut fmt::Formatter<'_>, members: &[Member]) -> fmt::Result {
    // The type of an empty object: `Struct[{}]` is accepted by Puppet as well, and says the same.
    f.write_str("Struct[{")?;
    for (index, member) in members.iter().enumerate() {
        f.write_str(if index == 0 { " " } else { ", " })?;
        let name = quoted(&member.name);
        match member.presence {
            Presence::Required => write!(f, "{name} => {}", member.data_type)?,
            Presence::Optional => write!(f, "Optional[{name}] => {}", member.data_type)?,
        }
    }
    f.write_str(if members.is_empty() { "}]" } else { " }]" })
}

/// A float as Puppet reads it: never without a point or an exponent.
#[derive(PartialEq, PartialOrd)]
struct Float(f64);

impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// `[least, most]`, or nothing.
struct Parameters<'b, T>(&'b Bounds<T>);

impl<T: fmt::Display + PartialOrd> fmt::Display for Parameters<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_none() { Ok(()) } else { write!(f, "[{}]", Pair(self.0)) }
    }
}

/// `, least, most` after another parameter, or nothing.
struct More<'b, T>(&'b Bounds<T>);

impl<T: fmt::Display + PartialOrd> fmt::Display for More<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_none() { Ok(()) } else { write!(f, ", {}", Pair(self.0)) }
    }
}

struct Pair<'b, T>(&'b Bounds<T>);

impl<T: fmt::Display> fmt::Display for Pair<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.least, &self.0.most) {
            (least, None) => write_limit(f, least.as_ref()),
            (least, Some(most)) => {
                write_limit(f, least.as_ref())?;
                write!(f, ", {most}")
            }
        }
    }
}

fn write_limit<T: fmt::Display>(f: &mut fmt::Formatter<'_>, limit: Option<&T>) -> fmt::Result {
    match limit {
        Some(limit) => write!(f, "{limit}"),
        None => f.write_str("default"),
    }
}

/// A string of Puppet's language that is read as exactly this text.
///
/// Guarantees: nothing in it is interpolated.
pub(crate) fn quoted(text: &str) -> String {
    let is_escaped = |character: char| character.is_control() || crate::ruby::is_invisible(character);
    if !text.chars().any(is_escaped) {
        return format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"));
    }
    let escape = |character: char| match character {
        '"' | '\\' | '$' => format!("\\{character}"),
        '\n' => "\\n".to_owned(),
        _ if is_escaped(character) => format!("\\u{{{:x}}}", u32::from(character)),
        _ => character.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ruby::{self, tests};

    #[test]
    fn puppet_reads_a_string_as_what_was_written() {
        let texts: Vec<_> = tests::texts().into_iter().filter(|text| !text.is_empty()).collect();
        let types = texts.iter().map(|text| DataType::Enum { values: vec![text.clone()], case: LetterCase::Sensitive });
        let literals: Vec<_> = types.map(|data_type| ruby::string(&data_type.to_string())).collect();
        let program = format!(
            "require 'puppet'\n[\n{},\n].each do |type|\n  \
             puts Puppet::Pops::Types::TypeParser.singleton.parse(type).values.first.unpack1('H*')\nend\n",
            literals.join(",\n")
        );
        let Some(output) = tests::run("puppet_reads_a_string_as_what_was_written", &program) else { return };
        let expected: Vec<_> = texts.iter().map(|text| tests::hex(text)).collect();
        assert_eq!(output.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn alternatives_are_flat_and_different() {
        let text = || DataType::String(Bounds::NONE);
        let nested = DataType::one_of([text(), DataType::Boolean]);
        assert_eq!(
            DataType::one_of([nested, text(), DataType::Undef]).to_string(),
            "Optional[Variant[String, Boolean]]"
        );
        assert_eq!(DataType::one_of([text(), text()]).to_string(), "String");
        assert_eq!(DataType::one_of([text(), DataType::Any]).to_string(), "Any");
        assert_eq!(DataType::one_of([DataType::Undef]).to_string(), "Undef");
    }
}
