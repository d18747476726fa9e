//! The values of parsed expressions.

use super::expression::{Expression, Link, Piece, Unary, environment};
use super::value::Value;
use super::{Context, Fault, same};

/// Why there is no value.
pub(crate) type Evaluate<T> = Result<T, String>;

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

pub(crate) fn evaluate(expression: &Expression, context: &Context<'_>) -> Evaluate<Value> {
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
pub(crate) fn truth(condition: &Expression, context: &Context<'_>) -> Evaluate<bool> {
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

/// A number as far as calculations need it.
#[derive(Clone, Copy)]
enum Amount {
    Whole(i128),
    Decimal(i128, u32),
    Real(f64),
}

impl Amount {
    fn value(self) -> Value {
        match self {
            Self::Whole(value) => narrow(value),
            Self::Decimal(mantissa, scale) => Value::Decimal(mantissa, scale),
            Self::Real(value) => Value::Double(value),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a double holds what it can, as in PowerShell")]
    fn real(self) -> f64 {
        match self {
            Self::Whole(value) => value as f64,
            Self::Decimal(mantissa, scale) => mantissa as f64 / 10_f64.powi(scale.try_into().unwrap_or(0)),
            Self::Real(value) => value,
        }
    }
}

/// The narrowest type that a result has: an `int`, a `long`, else a `double`.
fn narrow(value: i128) -> Value {
    if i32::try_from(value).is_ok() {
        return Value::int(value);
    }
    match i64::try_from(value) {
        Ok(_) => Value::Integer { value, bits: 64, signed: true },
        Err(_) => Value::Double(Amount::Whole(value).real()),
    }
}

/// A result that keeps the type of what it was made of, where it fits.
fn whole(value: i128, like: &Value) -> Value {
    match like {
        Value::Integer { bits: 64, signed: true, .. } if i64::try_from(value).is_ok() => {
            Value::Integer { value, bits: 64, signed: true }
        }
        _ => narrow(value),
    }
}

fn number(value: &Value) -> Evaluate<Amount> {
    Ok(match value {
        Value::Null => Amount::Whole(0),
        Value::Boolean(value) => Amount::Whole((*value).into()),
        Value::Integer { value, .. } => Amount::Whole(*value),
        Value::Decimal(mantissa, scale) => Amount::Decimal(*mantissa, *scale),
        Value::Double(value) => Amount::Real(*value),
        Value::Character(character) => Amount::Whole(u32::from(*character).into()),
        Value::Text(text) | Value::Big(text) => return parse_number(text),
        Value::Date(_) | Value::Type(_) | Value::List(_) | Value::Table(_) | Value::Opaque { .. } => {
            return Err(format!("'{}' is not a number", value.to_text()));
        }
    })
}

fn parse_number(text: &str) -> Evaluate<Amount> {
    let text = text.trim();
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let parsed = match crate::token::Number::parse(digits).map(Value::from) {
        _ if digits.is_empty() => Some(Amount::Whole(0)),
        Some(value) if !matches!(value, Value::Big(_)) => Some(number(&value)?),
        _ => None,
    };
    match parsed.ok_or_else(|| format!("'{text}' is not a number"))? {
        Amount::Whole(value) if negative => Ok(Amount::Whole(-value)),
        Amount::Decimal(mantissa, scale) if negative => Ok(Amount::Decimal(-mantissa, scale)),
        Amount::Real(value) if negative => Ok(Amount::Real(-value)),
        amount => Ok(amount),
    }
}

/// An integer; halves are rounded to the even one.
fn integer(value: &Value) -> Evaluate<i128> {
    match number(value)? {
        Amount::Whole(value) => Ok(value),
        #[expect(clippy::cast_possible_truncation, reason = "what is too large is refused by its type")]
        amount => Ok(amount.real().round_ties_even() as i128),
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

fn add(left: Value, right: Value) -> Evaluate<Value> {
    match (left, right) {
        (Value::Null, right) => Ok(right),
        (Value::Text(left), right) => Ok(Value::Text(left + &right.to_text())),
        (Value::Character(left), right) => Ok(Value::Text(format!("{left}{}", right.to_text()))),
        (Value::List(mut left), right) => {
            match right {
                Value::List(right) => left.extend(right),
                right => left.push(right),
            }
            Ok(Value::List(left))
        }
        (Value::Table(mut left), Value::Table(right)) => {
            for (key, value) in right {
                insert(&mut left, key, value)?;
            }
            Ok(Value::Table(left))
        }
        (left, right) => calculate("+", &left, &right),
    }
}

/// The most that `*` repeats a text or a list to.
const LARGEST: usize = 1 << 20;

fn calculate(operator: &str, left: &Value, right: &Value) -> Evaluate<Value> {
    if operator == "*" && matches!(left, Value::Text(_) | Value::List(_)) {
        return repeat(left, integer(right)?);
    }
    match (number(left)?, number(right)?) {
        (Amount::Whole(left), Amount::Whole(right)) => exact(operator, left, right),
        (left, right) => {
            let (left, right) = (left.real(), right.real());
            Ok(Value::Double(match operator {
                "+" => left + right,
                "-" => left - right,
                "*" => left * right,
                "/" => left / right,
                _ => left % right,
            }))
        }
    }
}

fn exact(operator: &str, left: i128, right: i128) -> Evaluate<Value> {
    let zero = || "division by zero".to_owned();
    let value = match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "%" => return left.checked_rem(right).map(narrow).ok_or_else(zero),
        _ if right == 0 => return Err(zero()),
        _ if left % right == 0 => left.checked_div(right),
        _ => return Ok(Value::Double(Amount::Whole(left).real() / Amount::Whole(right).real())),
    };
    value.map(narrow).ok_or_else(|| "the number is too large".to_owned())
}

fn repeat(value: &Value, count: i128) -> Evaluate<Value> {
    let count = usize::try_from(count).map_err(|_| "the count is negative".to_owned())?;
    let fits = |length: usize| length.checked_mul(count).is_some_and(|length| length <= LARGEST);
    match value {
        Value::Text(text) if fits(text.len()) => Ok(Value::Text(text.repeat(count))),
        Value::List(values) if fits(value.weight().max(values.len())) => {
            Ok(Value::List(values.iter().cycle().take(values.len() * count).cloned().collect()))
        }
        _ => Err(too_large()),
    }
}

fn bitwise(operator: &str, left: &Value, right: &Value) -> Evaluate<Value> {
    let (number, right) = (integer(left)?, integer(right)?);
    let bits = u32::try_from(right & 31).unwrap_or(0);
    Ok(whole(
        match operator {
            "band" => number & right,
            "bor" => number | right,
            "bxor" => number ^ right,
            "shl" => number << bits,
            _ => number >> bits,
        },
        left,
    ))
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

/// An operator that compares; with a list on its left, most of them select.
fn compare(operator: &str, left: Value, right: &Value) -> Evaluate<Value> {
    let (bare, cased) = match operator.strip_prefix(['c', 'i']) {
        Some(bare) if operator != "contains" && operator != "in" => (bare, operator.starts_with('c')),
        _ => (operator, false),
    };
    let contains = |all: &Value, one: &Value| match all {
        Value::List(values) => values.iter().any(|value| equal(value, one, cased)),
        other => equal(other, one, cased),
    };
    match bare {
        "contains" => Ok(Value::Boolean(contains(&left, right))),
        "notcontains" => Ok(Value::Boolean(!contains(&left, right))),
        "in" => Ok(Value::Boolean(contains(right, &left))),
        "notin" => Ok(Value::Boolean(!contains(right, &left))),
        _ => match left {
            Value::List(values) => {
                let mut kept = Vec::new();
                for value in values {
                    if holds(bare, &value, right, cased)? {
                        kept.push(value);
                    }
                }
                Ok(Value::List(kept))
            }
            left => holds(bare, &left, right, cased).map(Value::Boolean),
        },
    }
}

fn holds(operator: &str, left: &Value, right: &Value, cased: bool) -> Evaluate<bool> {
    Ok(match operator {
        "eq" => equal(left, right, cased),
        "ne" => !equal(left, right, cased),
        "like" => super::wildcard::matches(&right.to_text(), &left.to_text(), cased),
        "notlike" => !super::wildcard::matches(&right.to_text(), &left.to_text(), cased),
        _ => {
            let order = match left {
                Value::Text(left) => super::collation::order(left, &right.to_text(), cased)?,
                _ => number(left)?.real().total_cmp(&number(right)?.real()),
            };
            match operator {
                "gt" => order.is_gt(),
                "ge" => order.is_ge(),
                "lt" => order.is_lt(),
                _ => order.is_le(),
            }
        }
    })
}

fn alike(left: &str, right: &str, cased: bool) -> bool {
    if cased {
        left == right
    } else if left.is_ascii() && right.is_ascii() {
        left.eq_ignore_ascii_case(right)
    } else {
        left.to_lowercase() == right.to_lowercase()
    }
}

/// Returns whether two values are equal, the second converted to the type of the first.
fn equal(left: &Value, right: &Value, cased: bool) -> bool {
    match (left, right) {
        (Value::Null, right) => *right == Value::Null,
        (Value::Boolean(left), right) => *left == right.is_true(),
        (Value::Text(_), Value::Null) => false,
        (Value::Text(left), Value::Text(right)) => alike(left, right, cased),
        (Value::Text(left), right) => alike(left, &right.to_text(), cased),
        (Value::Integer { value: left, .. }, Value::Integer { value: right, .. }) => left == right,
        (Value::Integer { .. } | Value::Decimal(..) | Value::Double(_), right) if *right != Value::Null => {
            let amounts = number(left).and_then(|left| Ok((left.real(), number(right)?.real())));
            amounts.is_ok_and(|(left, right)| left.total_cmp(&right).is_eq())
        }
        (left, right) => left == right,
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

impl From<String> for Fault {
    /// Turns a mistake in a value into one in the whole manifest.
    fn from(message: String) -> Self {
        Self { offset: 0, message }
    }
}
