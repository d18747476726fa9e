//! Values of manifests.

use std::fmt::Write as _;

use crate::token::Number;

/// A value of a manifest.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// `$null`.
    Null,
    /// `$true` or `$false`.
    Boolean(bool),
    /// An integer of a width.
    Integer {
        /// The value.
        value: i128,
        /// 8, 16, 32 or 64.
        bits: u8,
        /// True if its type has negative values.
        signed: bool,
    },
    /// A `decimal`: the digits, and how many of them follow the point.
    Decimal(i128, u32),
    /// A `double`.
    Double(f64),
    /// A `bigint`, by its digits.
    Big(String),
    /// A `char`.
    Character(char),
    /// Text.
    Text(String),
    /// A `datetime`, by the text that was converted.
    Date(String),
    /// A type, by its name as written.
    Type(String),
    /// A list.
    List(Vec<Value>),
    /// A table, its entries in the order written.
    Table(Vec<(Value, Value)>),
    /// A value that can be passed on and is not null: the value of a parameter of a composite resource.
    Opaque {
        /// The parameter.
        name: String,
        /// True if it counts as true whatever it is, as an object does.
        is_true: bool,
    },
}

impl Value {
    pub(crate) fn int(value: i128) -> Self {
        Self::Integer { value, bits: 32, signed: true }
    }

    /// The entry of a table, whatever the case of its key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Table(entries) = self else { return None };
        let same = |known: &Self| matches!(known, Self::Text(text) if super::same(text, key));
        entries.iter().find(|(known, _)| same(known)).map(|(_, value)| value)
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The text that PowerShell converts it to.
    pub fn to_text(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Boolean(true) => "True".to_owned(),
            Self::Boolean(false) => "False".to_owned(),
            Self::Integer { value, .. } => value.to_string(),
            Self::Decimal(mantissa, scale) => decimal(*mantissa, *scale),
            Self::Double(value) if value.is_infinite() => if *value > 0.0 { "∞" } else { "-∞" }.to_owned(),
            Self::Double(value) => double(*value),
            Self::Character(character) => character.to_string(),
            Self::Text(text) | Self::Date(text) | Self::Big(text) | Self::Type(text) => text.clone(),
            Self::List(values) => values.iter().map(Self::to_text).collect::<Vec<_>>().join(" "),
            Self::Table(_) => "System.Collections.Hashtable".to_owned(),
            Self::Opaque { name, .. } => format!("${name}"),
        }
    }

    /// Returns whether it counts as true.
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Boolean(value) => *value,
            Self::Integer { value, .. } | Self::Decimal(value, _) => *value != 0,
            Self::Double(value) => *value != 0.0,
            Self::Character(character) => *character != '\0',
            Self::Text(text) => !text.is_empty(),
            Self::Big(text) => text != "0",
            Self::List(values) => match values.as_slice() {
                [] => false,
                [one] => one.is_true(),
                _ => true,
            },
            Self::Date(_) | Self::Type(_) | Self::Table(_) | Self::Opaque { .. } => true,
        }
    }

    /// The parameter that it is or holds the value of, if that can only be passed on.
    pub fn opaque(&self) -> Option<&str> {
        match self {
            Self::Opaque { name, .. } => Some(name),
            Self::List(values) => values.iter().find_map(Self::opaque),
            Self::Table(entries) => entries.iter().find_map(|(_, value)| value.opaque()),
            _ => None,
        }
    }

    /// About how many bytes it takes.
    pub fn weight(&self) -> usize {
        let inner: usize = match self {
            Self::Text(text) | Self::Date(text) | Self::Big(text) | Self::Type(text) => text.len(),
            Self::List(values) => values.iter().map(Self::weight).sum(),
            Self::Table(entries) => entries.iter().map(|(key, value)| key.weight() + value.weight()).sum(),
            _ => 0,
        };
        inner + size_of::<Self>()
    }

    /// Returns the number of levels of lists and tables in it.
    pub fn depth(&self) -> usize {
        match self {
            Self::List(values) => 1 + values.iter().map(Self::depth).max().unwrap_or(0),
            Self::Table(entries) => 1 + entries.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Its elements: of a list, else itself; none of nothing.
    pub fn elements(self) -> Vec<Self> {
        match self {
            Self::Null => Vec::new(),
            Self::List(values) => values,
            other => vec![other],
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Integer { value, bits, signed } => Self::Integer { value, bits, signed },
            Number::Decimal { mantissa, scale } => Self::Decimal(mantissa, scale),
            Number::Double(value) => Self::Double(value),
            Number::Big(digits) => Self::Big(digits),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

fn decimal(mantissa: i128, scale: u32) -> String {
    let places = usize::try_from(scale).unwrap_or(0);
    let mut digits = format!("{:0width$}", mantissa.unsigned_abs(), width = places + 1);
    if places > 0 {
        digits.insert(digits.len() - places, '.');
    }
    if mantissa < 0 { format!("-{digits}") } else { digits }
}

/// As .NET writes it: with an exponent from 1E+15 and below 0.0001.
fn double(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-5..1e15).contains(&magnitude) {
        let text = format!("{value:E}");
        let (digits, exponent) = text.split_once('E').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        let mut written = digits.to_owned();
        let _ = write!(written, "E{sign}{exponent:0>2}");
        return written;
    }
    value.to_string()
}
