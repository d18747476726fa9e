//! The values of parsed expressions.

mod arithmetic;

use super::expression::environment;
use super::syntax::{Expression, Link, Piece, Unary};
use super::value::Value;
use super::{Context, ManifestFault, same};
use arithmetic::{Amount, add, bitwise, calculate, compare, equal, integer, number, whole};

/// Why there is no value.
pub type Evaluate<T> = Result<T, String>;

/// The values that statements give, those of lists one by one.
pub(super) fn outputs(statements: &[Expression], context: &Context<'_>) -> Evaluate<Vec<Value>> {
    let (mut outputs, mut room) = (Vec::new(), MemoryRoom::default());
    for statement in statements {
        let value = evaluate(statement, context)?;
        room.take(value.weight())?;
        match value {
            Value::Null if matches!(statement, Expression::If(_) | Expression::Command(..) | Expression::Sub(_)) => {}
            Value::List(values) => outputs.extend(values),
            value => outputs.push(value),
        }
    }
    Ok(outputs)
}

fn collapse(mut outputs: Vec<Value>) -> Value {
    match outputs.len() {
        0 => Value::Null,
        1 => outputs.remove(0),
        _ => Value::List(outputs),
    }
}

/// The value of an expression, exactly as PowerShell computes it; where that is not certain, the reason instead.
pub fn evaluate(expression: &Expression, context: &Context<'_>) -> Evaluate<Value> {
    let all = |items: &[Expression]| gathered(items.iter().map(|item| evaluate(item, context)));
    Ok(match expression {
        Expression::Constant(value) => value.clone(),
        Expression::Variable(name) => variable(name, context)?,
        Expression::Expandable(pieces) => Value::Text(expand(pieces, context)?),
        Expression::List(items) => Value::List(all(items)?),
        Expression::Array(statements) => Value::List(outputs(statements, context)?),
        Expression::Sub(statements) => collapse(outputs(statements, context)?),
        Expression::Table(entries) => table(entries, context)?,
        Expression::Unary(Unary::Not, operand) => Value::Boolean(!truth(operand, context)?),
        Expression::Unary(unary, operand) => self::unary(*unary, &self::operand(operand, context)?)?,
        Expression::Ternary(parts) => {
            let [condition, yes, no] = &**parts;
            evaluate(if truth(condition, context)? { yes } else { no }, context)?
        }
        Expression::Cast(name, operand) => cast(name, self::operand(operand, context)?)?,
        Expression::If(branches) => branch(branches, context)?,
        Expression::Command(name, arguments) => command(name, arguments, context)?,
        Expression::Chain(first, links) => chain(first, links, context)?,
    })
}

/// Values that are not too large together.
fn gathered(values: impl Iterator<Item = Evaluate<Value>>) -> Evaluate<Vec<Value>> {
    let (mut gathered, mut room) = (Vec::new(), MemoryRoom::default());
    for value in values {
        let value = value?;
        room.take(value.weight())?;
        gathered.push(value);
    }
    Ok(gathered)
}

/// Room for what is put together of values of which none is too large by itself.
struct MemoryRoom(usize);

impl Default for MemoryRoom {
    fn default() -> Self {
        Self(16 << 20)
    }
}

impl MemoryRoom {
    fn take(&mut self, bytes: usize) -> Evaluate<()> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }
}

fn too_large() -> String {
    "the result is too large".to_owned()
}

/// Returns the length of a text or a list, and the bytes of it that are behind a length.
fn length(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::List(values) => values.len(),
        _ => 0,
    }
}

fn weight_behind(value: &Value, length: usize) -> usize {
    match value {
        Value::Text(text) => text.len().saturating_sub(length),
        Value::List(values) => values.get(length..).unwrap_or_default().iter().map(Value::weight).sum(),
        _ => 0,
    }
}

fn chain(first: &Expression, links: &[Link], context: &Context<'_>) -> Evaluate<Value> {
    let (mut value, mut null) = (evaluate(first, context)?, is_null(first));
    let mut room = MemoryRoom::default();
    for link in links {
        let before = length(&value);
        value = match link {
            Link::Binary(operator, right) => binary(operator, value, null, right, context)?,
            Link::Member(name) => member(&computable(value)?, name)?,
            Link::Index(index) => element(computable(value)?, &operand(index, context)?)?,
            Link::ContainsKey(key) => {
                let (Value::Table(_), Value::Text(key)) = (&value, &operand(key, context)?) else {
                    return Err("'ContainsKey' requires a hashtable and a string".to_owned());
                };
                Value::Boolean(value.get(key).is_some())
            }
        };
        null = false;
        room.take(weight_behind(&value, before))?;
    }
    Ok(value)
}

/// Returns whether a condition counts as true.
pub fn truth(condition: &Expression, context: &Context<'_>) -> Evaluate<bool> {
    counts(&evaluate(condition, context)?)
}

fn counts(value: &Value) -> Evaluate<bool> {
    match value {
        Value::Opaque { name, is_true: false } => {
            Err(format!("'${name}' is a secret; a secret is not allowed in a condition"))
        }
        value => Ok(value.is_true()),
    }
}

/// A value that something is computed from.
fn operand(expression: &Expression, context: &Context<'_>) -> Evaluate<Value> {
    computable(evaluate(expression, context)?)
}

fn computable(value: Value) -> Evaluate<Value> {
    match value.opaque() {
        None => Ok(value),
        Some(name) => Err(format!("'${name}' can only be passed on: it is a secret, or of a type that has no literal")),
    }
}

/// The members that a hashtable has besides its entries and their number.
const OF_TABLES: [&str; 13] = [
    "Keys",
    "Values",
    "Length",
    "IsReadOnly",
    "IsFixedSize",
    "IsSynchronized",
    "SyncRoot",
    "PSBase",
    "PSAdapted",
    "PSExtended",
    "PSObject",
    "PSTypeNames",
    "GetEnumerator",
];

/// An entry of a table, null where it has none; or how many there are.
fn member(value: &Value, name: &str) -> Evaluate<Value> {
    let count = |count: usize| Value::int(i128::try_from(count).unwrap_or(i128::MAX));
    match value {
        Value::Table(entries) => Ok(match value.get(name) {
            Some(found) => found.clone(),
            None if same(name, "Count") => count(entries.len()),
            None if OF_TABLES.iter().any(|own| same(name, own)) => {
                return Err(format!("'{name}' of a hashtable is not evaluated"));
            }
            None => Value::Null,
        }),
        Value::List(values) if same(name, "Count") || same(name, "Length") => Ok(count(values.len())),
        Value::Text(text) if same(name, "Length") => Ok(count(text.encode_utf16().count())),
        _ => Err(format!("'{name}' is not evaluated: the value is not a table")),
    }
}

/// An entry of a table or an element of a list; null where there is none. A negative index counts from the end.
fn element(value: Value, index: &Value) -> Evaluate<Value> {
    match (value, index) {
        (table @ Value::Table(_), Value::Text(key)) => Ok(table.get(key).cloned().unwrap_or(Value::Null)),
        (Value::List(mut values), Value::Integer { value: index, .. }) => {
            let count = i128::try_from(values.len()).unwrap_or(i128::MAX);
            let at = if *index < 0 { count + index } else { *index };
            let at = usize::try_from(at).ok().filter(|at| *at < values.len());
            Ok(at.map_or(Value::Null, |at| values.swap_remove(at)))
        }
        _ => Err("the index is not evaluated: only tables by text and lists by number are".to_owned()),
    }
}

fn branch(branches: &[(Option<Expression>, Vec<Expression>)], context: &Context<'_>) -> Evaluate<Value> {
    for (condition, statements) in branches {
        let chosen = match condition {
            Some(condition) => truth(condition, context)?,
            None => true,
        };
        if chosen {
            return Ok(collapse(outputs(statements, context)?));
        }
    }
    Ok(Value::Null)
}

fn variable(name: &str, context: &Context<'_>) -> Evaluate<Value> {
    if let Some(name) = environment(name) {
        return Ok((context.environment)(name).map_or(Value::Null, Value::Text));
    }
    if let Some(variables) = context.variables {
        let found = variables.get(&name.to_lowercase()).cloned();
        let automatic = || ["true", "false", "null", "psscriptroot"].iter().any(|known| same(known, name));
        if let Some(value) = found {
            return Ok(value);
        }
        if !automatic() {
            return Err(format!("variable '${name}' is neither a parameter nor assigned before"));
        }
    }
    Ok(match name.to_ascii_lowercase().as_str() {
        "true" => Value::Boolean(true),
        "false" => Value::Boolean(false),
        "psscriptroot" => Value::from(context.folder),
        "psedition" => Value::from("Core"),
        // The culture of a machine without one is the invariant culture, whose name is empty.
        "psculture" | "psuiculture" => Value::from(""),
        _ => Value::Null,
    })
}

fn expand(pieces: &[Piece], context: &Context<'_>) -> Evaluate<String> {
    let (mut text, mut room) = (String::new(), MemoryRoom::default());
    for piece in pieces {
        let before = text.len();
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Value(expression) => text.push_str(&operand(expression, context)?.to_text()),
        }
        room.take(text.len() - before)?;
    }
    Ok(text)
}

fn table(entries: &[(Expression, Expression)], context: &Context<'_>) -> Evaluate<Value> {
    let mut table = Vec::with_capacity(entries.len());
    let mut room = MemoryRoom::default();
    for (key, value) in entries {
        let (key, value) = (operand(key, context)?, evaluate(value, context)?);
        room.take(key.weight() + value.weight())?;
        insert(&mut table, key, value)?;
    }
    Ok(Value::Table(table))
}

fn insert(table: &mut Vec<(Value, Value)>, key: Value, value: Value) -> Evaluate<()> {
    if key == Value::Null {
        return Err("a key must not be null".to_owned());
    }
    if table.iter().any(|(known, _)| equal(known, &key, false)) {
        return Err(format!("duplicate key '{}'", key.to_text()));
    }
    table.push((key, value));
    Ok(())
}

fn unary(unary: Unary, operand: &Value) -> Evaluate<Value> {
    match unary {
        Unary::Not => Ok(Value::Boolean(!operand.is_true())),
        Unary::Plus => number(operand).map(Amount::value),
        Unary::Minus => match number(operand)? {
            Amount::Whole(value) => Ok(whole(-value, operand)),
            Amount::Decimal(mantissa, scale) => Ok(Value::Decimal(-mantissa, scale)),
            Amount::Real(value) => Ok(Value::Double(-value)),
        },
        Unary::BitwiseNot => integer(operand).map(|value| whole(!value, operand)),
    }
}

/// `null`: the left side is `$null` as written.
fn binary(operator: &str, left: Value, null: bool, right: &Expression, context: &Context<'_>) -> Evaluate<Value> {
    let truth = || truth(right, context);
    match operator {
        "and" => return Ok(Value::Boolean(counts(&left)? && truth()?)),
        "or" => return Ok(Value::Boolean(counts(&left)? || truth()?)),
        "xor" => return Ok(Value::Boolean(counts(&left)? ^ truth()?)),
        "eq" | "ne" if null || is_null(right) => {
            let right = evaluate(right, context)?;
            if left.opaque().or(right.opaque()).is_some() {
                return Ok(Value::Boolean(operator == "ne"));
            }
            return compare(operator, left, &right);
        }
        _ => {}
    }
    let left = computable(left)?;
    let right = || operand(right, context);
    match operator {
        "??" => {
            if left == Value::Null {
                right()
            } else {
                Ok(left)
            }
        }
        "+" => add(left, right()?),
        "-" | "*" | "/" | "%" => calculate(operator, &left, &right()?),
        "band" | "bor" | "bxor" | "shl" | "shr" => bitwise(operator, &left, &right()?),
        "is" | "isnot" => Ok(Value::Boolean(is(&left, &right()?) == (operator == "is"))),
        _ => compare(operator, left, &right()?),
    }
}

/// Returns whether it is `$null` as written.
fn is_null(expression: &Expression) -> bool {
    matches!(expression, Expression::Variable(name) if same(name, "null"))
}

fn is(value: &Value, ty: &Value) -> bool {
    let Value::Type(name) = ty else { return false };
    let lower = name.to_ascii_lowercase();
    let name = lower.strip_prefix("system.").unwrap_or(&lower);
    match value {
        Value::Boolean(_) => matches!(name, "bool" | "boolean"),
        Value::Text(_) => name == "string",
        Value::Character(_) => name == "char",
        Value::Double(_) => name == "double",
        Value::Decimal(..) => name == "decimal",
        Value::Date(_) => name == "datetime",
        Value::Integer { bits, signed, .. } => width(name) == Some((*bits, *signed)),
        _ => false,
    }
}

/// The width of an integer type, and whether it is signed.
fn width(name: &str) -> Option<(u8, bool)> {
    Some(match name {
        "sbyte" => (8, true),
        "byte" => (8, false),
        "short" | "int16" => (16, true),
        "ushort" | "uint16" => (16, false),
        "int" | "int32" => (32, true),
        "uint" | "uint32" => (32, false),
        "long" | "int64" => (64, true),
        "ulong" | "uint64" => (64, false),
        _ => return None,
    })
}

fn cast(name: &str, value: Value) -> Evaluate<Value> {
    let lower = name.to_ascii_lowercase();
    let name = lower.strip_prefix("system.").unwrap_or(&lower);
    if let Some(element) = name.strip_suffix("[]") {
        let values = value.elements().into_iter().map(|value| cast(element, value));
        return values.collect::<Evaluate<_>>().map(Value::List);
    }
    let refused = |value: &Value| Err(format!("cannot convert '{}' to '{name}'", value.to_text()));
    if let Some((bits, signed)) = width(name) {
        let number = integer(&value)?;
        let low = if signed { -(1_i128 << (bits - 1)) } else { 0 };
        let high = 1_i128 << if signed { bits - 1 } else { bits };
        return if (low..high).contains(&number) {
            Ok(Value::Integer { value: number, bits, signed })
        } else {
            refused(&value)
        };
    }
    Ok(match name {
        "string" => Value::Text(value.to_text()),
        "bool" | "boolean" => Value::Boolean(value.is_true()),
        "double" | "float" | "single" => Value::Double(number(&value)?.real()),
        "decimal" => match number(&value)? {
            Amount::Whole(number) => Value::Decimal(number, 0),
            Amount::Decimal(mantissa, scale) => Value::Decimal(mantissa, scale),
            Amount::Real(_) => match crate::token::Number::parse(&format!("{}d", value.to_text())) {
                Some(number) => number.into(),
                None => return refused(&value),
            },
        },
        "char" => match character(&value) {
            Some(character) => Value::Character(character),
            None => return refused(&value),
        },
        _ if matches!(value, Value::Text(_)) => Value::Date(value.to_text()),
        _ => return refused(&value),
    })
}

fn character(value: &Value) -> Option<char> {
    if let Value::Text(text) = value {
        let mut characters = text.chars();
        return characters.next().filter(|_| characters.next().is_none());
    }
    integer(value).ok().and_then(|number| u32::try_from(number).ok()).and_then(char::from_u32)
}

fn command(name: &str, arguments: &[(Option<String>, Expression)], context: &Context<'_>) -> Evaluate<Value> {
    let argument = |parameters: &[&str], position: usize| {
        let named = arguments
            .iter()
            .find(|(name, _)| name.as_ref().is_some_and(|name| parameters.iter().any(|each| same(each, name))));
        let bare = || arguments.iter().filter(|(name, _)| name.is_none()).nth(position);
        let found = named.or_else(bare).ok_or_else(|| format!("'{name}' requires another argument"))?;
        operand(&found.1, context)
    };
    match name {
        "join-path" => {
            let named = arguments.iter().any(|(name, _)| name.as_deref() == Some("path"));
            let parent = argument(&["Path", "PSPath"], 0)?.to_text();
            let child = argument(&["ChildPath"], usize::from(!named))?.to_text();
            let joined = format!("{}/{}", parent.trim_end_matches(['/', '\\']), child.trim_start_matches(['/', '\\']));
            Ok(Value::Text(joined.replace('\\', "/")))
        }
        "convertfrom-stringdata" => string_data(&argument(&["StringData", "|"], 0)?.to_text()),
        "import-localizeddata" => Err("'Import-LocalizedData' is not evaluated in a manifest".to_owned()),
        _ => Ok(Value::Null),
    }
}

/// Lines `key = value`; a backslash escapes.
fn string_data(text: &str) -> Evaluate<Value> {
    let mut table = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (key, value) =
            line.split_once('=').ok_or_else(|| format!("the line '{line}' is not of the form 'key=value'"))?;
        insert(&mut table, Value::from(key.trim()), Value::Text(unescape(value.trim())))?;
    }
    Ok(Value::Table(table))
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let escaped = if character == '\\' { characters.next() } else { None };
        plain.push(match escaped {
            None => character,
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(other) => other,
        });
    }
    plain
}

impl From<String> for ManifestFault {
    /// Turns a mistake in a value into one in the whole manifest.
    fn from(message: String) -> Self {
        Self { offset: 0, message }
    }
}
