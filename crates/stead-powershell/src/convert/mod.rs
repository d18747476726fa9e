//! Values in: JSON by the declared type of a property.
//!
//! PowerShell converts nearly anything to nearly anything: `"false"` to `$true`, `1.5` to `2`, `["a", "b"]` to `"a b"`.
//! A value that reaches it from here means the same afterwards; every other one is refused with its place.

mod form;
mod json;
mod number;
mod refusal;
mod rule;
mod wire;

use stead_core::schema::is_key_of_instances;
use stead_powershell_reader::types::{Class, Enumeration, Property, Type};

pub use json::{Json, JsonError};
pub use refusal::{Mismatch, Path, ValueRefusal};
pub use wire::Wire;

/// Returns whether two names of properties or members are the same.
fn same_name(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// The purpose for which properties are stated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// For an instance, which has its keys and all that is mandatory.
    Instance,
    /// For a filter.
    Filter,
}

/// Converts the properties of an instance into those that are assigned to its resource, or returns all refusals
/// together.
///
/// Names are those of the declaration. A null is not assigned to what cannot hold it: the property keeps its default. What
/// can only be read is left out, so that a state that was read can be given back.
///
/// # Examples
/// ```
/// use stead_powershell::convert::{Json, Mismatch, Purpose, Wire, properties};
/// use stead_powershell_reader::types::{Property, Type};
///
/// let property = |name: &str, ty| Property { key: name == "Name", ..Property::new(name, ty) };
/// let declared = [property("Name", Type::String), property("Port", Type::Integer { bits: 16, signed: false })];
/// let stated = |members: &[(&str, &str)]| {
///     let each = members.iter().map(|(name, json)| Ok(((*name).to_owned(), Json::parse(json)?)));
///     each.collect::<Result<Vec<_>, stead_powershell::convert::JsonError>>()
/// };
///
/// // Names are those of the declaration, whatever the case they are stated in.
/// let wires = properties(&declared, &stated(&[("name", "\"web\""), ("port", "80")])?, Purpose::Instance);
/// let expected = [("Name", Wire::String("web".to_owned())), ("Port", Wire::Integer("80".to_owned()))];
/// assert!(wires.is_ok_and(|wires| wires == expected.map(|(name, wire)| (name.to_owned(), wire))));
///
/// // All refusals at once: a number that does not fit, which PowerShell would refuse later, and a key that is missing.
/// let refusals = properties(&declared, &stated(&[("Port", "70000")])?, Purpose::Instance).err().unwrap_or_default();
/// assert_eq!(refusals.iter().map(|refusal| refusal.mismatch).collect::<Vec<_>>(), [Mismatch::Number, Mismatch::Missing]);
/// assert_eq!(refusals[0].pointer, "/Port");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn properties(
    declared: &[Property],
    stated: &[(String, Json)],
    purpose: Purpose,
) -> Result<Vec<(String, Wire)>, Vec<ValueRefusal>> {
    let path = Path::PROPERTIES;
    let (mut wires, mut refusals) = (Vec::new(), duplicates(stated, path).err().into_iter().collect::<Vec<_>>());
    for (name, value) in stated {
        let place = path.member(name);
        match declared.iter().find(|property| same_name(&property.name, name)) {
            None if is_key_of_instances(name) => {
                refusals.push(place.refuse(Mismatch::Unknown, "belongs to the instance: put it beside 'properties'"));
            }
            None => refusals.push(place.refuse(Mismatch::Unknown, "is not a property of the resource")),
            Some(property) if property.read_only || (*value == Json::Null && !holds_null(&property.ty)) => {}
            Some(property) => match property_value(property, value, place) {
                Ok(wire) => wires.push((property.name.clone(), wire)),
                Err(refusal) => refusals.push(refusal),
            },
        }
    }
    let is_needed = |property: &&Property| (property.key || property.mandatory) && !property.read_only;
    let needed = declared.iter().filter(is_needed).filter(|_| purpose == Purpose::Instance);
    let missing = needed.filter(|property| !stated.iter().any(|(name, _)| same_name(name, &property.name)));
    let refuse = |property: &Property| path.member(&property.name).refuse(Mismatch::Missing, "is required");
    refusals.extend(missing.map(refuse));
    if refusals.is_empty() { Ok(wires) } else { Err(refusals) }
}

/// The value of a property: by its type, and by its rules.
pub fn property_value(property: &Property, value: &Json, place: Path<'_>) -> Result<Wire, ValueRefusal> {
    let wire = convert(&property.ty, value, place)?;
    property.rules.iter().try_for_each(|rule| rule::check(rule, &wire, place))?;
    Ok(wire)
}

/// Converts a value to the form from which the worker builds a value of that type.
pub fn convert(ty: &Type, value: &Json, place: Path<'_>) -> Result<Wire, ValueRefusal> {
    if let Type::Nullable(inner) = ty {
        return if *value == Json::Null { Ok(Wire::Null) } else { convert(inner, value, place) };
    }
    if *value == Json::Null {
        let message = "must not be null; leave it out instead";
        return if holds_null(ty) { Ok(Wire::Null) } else { Err(place.refuse(Mismatch::Null, message)) };
    }
    match ty {
        Type::Object | Type::PsObject => anything(value, *ty == Type::PsObject, place),
        Type::Boolean | Type::Switch => match value {
            Json::Bool(truth) => Ok(Wire::Bool(*truth)),
            other => Err(place.kind("true or false", other)),
        },
        Type::Integer { .. } | Type::BigInteger | Type::Single | Type::Double | Type::Decimal => {
            a_number(ty, value, place)
        }
        Type::Hashtable => members(value, place, |value, place| anything(value, false, place)).map(Wire::Hashtable),
        Type::OrderedDictionary => {
            members(value, place, |value, place| anything(value, false, place)).map(Wire::Ordered)
        }
        Type::Credential => credential(value, place),
        Type::Enumeration(enumeration) => enumerated(enumeration, value, place),
        Type::Class(class) => class_members(class, value, place).map(Wire::Hashtable),
        Type::CimInstance(class) => {
            class_members(class, value, place).map(|members| Wire::CimInstance(class.name.clone(), members))
        }
        Type::Array(item) => items(item, value, place),
        Type::Other(name) => other(name, value, place),
        _ => text(ty, value, place),
    }
}

/// Returns whether null is a value of that type, and not its default in disguise.
fn holds_null(ty: &Type) -> bool {
    match ty {
        Type::Other(name) => !matches!(Other::of(name), Other::Value(..)),
        Type::Boolean
        | Type::Switch
        | Type::Char
        | Type::String
        | Type::Guid
        | Type::Enumeration(_)
        | Type::Integer { .. }
        | Type::BigInteger
        | Type::Single
        | Type::Double
        | Type::Decimal
        | Type::DateTime
        | Type::DateTimeOffset
        | Type::TimeSpan => false,
        _ => true,
    }
}

/// A value without a declared type.
fn anything(value: &Json, objects: bool, place: Path<'_>) -> Result<Wire, ValueRefusal> {
    Ok(match value {
        Json::Null => Wire::Null,
        Json::Bool(truth) => Wire::Bool(*truth),
        Json::String(text) => Wire::String(text.clone()),
        Json::Number(text) => untyped_number(text, place)?,
        Json::Array(items) => {
            let item = |(index, item): (usize, &Json)| anything(item, objects, place.item(index));
            Wire::Array(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
        }
        Json::Object(_) => {
            let members = members(value, place, |value, place| anything(value, objects, place))?;
            if objects && members.iter().any(|(name, _)| name.is_empty()) {
                return Err(place.refuse(Mismatch::Form, "must not have a property without a name"));
            }
            if objects { Wire::Object(members) } else { Wire::Hashtable(members) }
        }
    })
}

/// An integer stays one; a fraction is a double, or a decimal where a double would lose digits and a decimal does not.
fn untyped_number(text: &str, place: Path<'_>) -> Result<Wire, ValueRefusal> {
    if !text.contains(['.', 'e', 'E']) {
        return Ok(Wire::Integer(number::integer(text).unwrap_or_else(|| text.to_owned())));
    }
    if number::double(text).is_none() {
        return Err(place.refuse(Mismatch::Number, "is a number that PowerShell cannot hold"));
    }
    let is_decimal = !number::is_double(text) && number::decimal(text).is_some();
    Ok(if is_decimal { Wire::Decimal(text.to_owned()) } else { Wire::Double(text.to_owned()) })
}

/// A number of a type; also as a text in JSON's grammar, and the names of what is not finite.
fn a_number(ty: &Type, value: &Json, place: Path<'_>) -> Result<Wire, ValueRefusal> {
    let (Json::Number(text) | Json::String(text)) = value else { return Err(place.kind(number_name(ty), value)) };
    let is_float = matches!(ty, Type::Single | Type::Double);
    if is_float && matches!(value, Json::String(_)) && ["NaN", "Infinity", "-Infinity"].contains(&text.as_str()) {
        return Ok(Wire::Double(text.clone()));
    }
    if !number::is_number(text) {
        return Err(place.refuse(Mismatch::Form, format!("must be {}", number_name(ty))));
    }
    let wire = match ty {
        Type::Integer { bits, signed } => {
            number::integer(text).filter(|text| fits(text, *bits, *signed)).map(Wire::Integer)
        }
        Type::BigInteger => number::integer(text).map(Wire::Integer),
        Type::Decimal => number::decimal(text).map(Wire::Decimal),
        Type::Single => {
            number::double(text).filter(|value| value.abs() <= f64::from(f32::MAX)).map(|_| Wire::Double(text.clone()))
        }
        _ => number::double(text).map(|_| Wire::Double(text.clone())),
    };
    wire.ok_or_else(|| place.refuse(Mismatch::Number, format!("must be {}", number_name(ty))))
}

fn fits(text: &str, bits: u8, signed: bool) -> bool {
    let range = if signed { -(1_i128 << (bits - 1))..1_i128 << (bits - 1) } else { 0..1_i128 << bits };
    text.parse().is_ok_and(|value| range.contains(&value))
}

fn number_name(ty: &Type) -> &'static str {
    match ty {
        Type::Integer { bits: 8, signed: true } => "an integer from -128 to 127",
        Type::Integer { bits: 8, signed: false } => "an integer from 0 to 255",
        Type::Integer { bits: 16, signed: true } => "an integer from -32768 to 32767",
        Type::Integer { bits: 16, signed: false } => "an integer from 0 to 65535",
        Type::Integer { bits: 32, signed: true } => "an integer from -2147483648 to 2147483647",
        Type::Integer { bits: 32, signed: false } => "an integer from 0 to 4294967295",
        Type::Integer { signed: true, .. } => "an integer of 64 bits",
        Type::Integer { signed: false, .. } => "an integer of 64 bits that is not negative",
        Type::BigInteger => "an integer",
        Type::Single => "a number of single precision",
        Type::Decimal => "a number of at most 28 digits",
        _ => "a number",
    }
}

/// Types whose values are written as text.
fn text(ty: &Type, value: &Json, place: Path<'_>) -> Result<Wire, ValueRefusal> {
    if let (Type::String, Json::Number(number)) = (ty, value)
        && let Some(integer) = number::integer(number).filter(|_| !number.contains(['.', 'e', 'E']))
    {
        return Ok(Wire::String(integer));
    }
    if *ty == Type::SecureString {
        return secret_text(value)
            .map(|text| Wire::SecureString(text.to_owned()))
            .ok_or_else(|| place.kind("a string", value));
    }
    let Json::String(text) = value else { return Err(place.kind("a string", value)) };
    let (expected, is_form): (&str, TextForm) = match ty {
        Type::Char => ("a single character", |text| text.encode_utf16().count() == 1),
        Type::DateTime => ("a date and time like 2026-01-02T03:04:05Z", form::is_date_time),
        Type::DateTimeOffset => ("a date and time with an offset, like 2026-01-02T03:04:05+01:00", form::is_instant),
        Type::TimeSpan => ("a time span like 00:01:30 or 1.02:03:04", form::is_time_span),
        Type::Guid => ("a GUID", form::is_guid),
        Type::Version => ("a version of two to four numbers", form::is_version),
        _ => ("a string", |_| true),
    };
    in_form(text, (expected, is_form), place)
}

fn in_form(text: &str, (expected, is_form): (&str, TextForm), place: Path<'_>) -> Result<Wire, ValueRefusal> {
    let refuse = || place.refuse(Mismatch::Form, format!("must be {expected}"));
    is_form(text).then(|| Wire::String(text.to_owned())).ok_or_else(refuse)
}

/// A text, or one that is wrapped as a secret.
fn secret_text(value: &Json) -> Option<&str> {
    match value {
        Json::String(text) => Some(text),
        Json::Object(members) => match members.as_slice() {
            [(name, Json::String(text))] if name == "secureString" => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// `{"username": .., "password": ..}`, by itself or wrapped as a secret.
fn credential(value: &Json, place: Path<'_>) -> Result<Wire, ValueRefusal> {
    let Json::Object(members) = value else {
        return Err(place.kind("an object with 'username' and 'password'", value));
    };
    if let [(name, inner)] = members.as_slice()
        && name == "secureObject"
    {
        return credential(inner, place);
    }
    let member = |wanted: &str| {
        let (_, value) = members.iter().find(|(name, _)| same_name(name, wanted))?;
        secret_text(value).map(str::to_owned)
    };
    match (member("username").filter(|name| !name.is_empty()), member("password")) {
        (Some(name), Some(password)) if members.len() == 2 => Ok(Wire::Credential(name, password)),
        _ => {
            let stated = place.to_string();
            let name = stated.rsplit('.').next().unwrap_or_default();
            let message = format!(
                "is none: Credential object '{name}' requires both 'username' and 'password' properties, and nothing else"
            );
            Err(place.refuse(Mismatch::Credential, message))
        }
    }
}

/// The members of flags that a number consists of, all of whose bits are members.
fn combined(enumeration: &Enumeration, number: i128) -> Option<String> {
    let is_part = |value: i128| value != 0 && value & number == value;
    let parts = enumeration.members.iter().filter(|(_, value)| enumeration.flags && is_part(*value));
    let (names, covered) = parts.fold((Vec::new(), 0), |(mut names, covered), (name, value)| {
        names.push(name.as_str());
        (names, covered | value)
    });
    (covered == number && number != 0).then(|| names.join(", "))
}

/// A member of an enumeration by its name, or by a number that is its value; of flags, several.
fn enumerated(enumeration: &Enumeration, value: &Json, place: Path<'_>) -> Result<Wire, ValueRefusal> {
    let refuse = || {
        let names: Vec<&str> = enumeration.members.iter().map(|(name, _)| name.as_str()).collect();
        let (count, form) = if enumeration.flags { ("one or several", ", separated by commas") } else { ("one", "") };
        place.refuse(Mismatch::Member, format!("must be {count} of {}{form}", names.join(", ")))
    };
    let named = |name: &str| enumeration.members.iter().find(|(member, _)| same_name(member, name.trim()));
    let joined = |names: &mut dyn Iterator<Item = &str>| {
        let found: Option<Vec<&str>> = names.map(|name| Some(named(name)?.0.as_str())).collect();
        found.filter(|found| !found.is_empty()).map(|found| found.join(", ")).ok_or_else(refuse)
    };
    let text = match value {
        Json::String(text) if enumeration.flags => joined(&mut text.split(','))?,
        Json::String(text) => joined(&mut std::iter::once(text.as_str()))?,
        Json::Number(text) => {
            let number: i128 = number::integer(text).and_then(|text| text.parse().ok()).ok_or_else(refuse)?;
            let exact = enumeration.members.iter().find(|(_, value)| *value == number).map(|(name, _)| name.clone());
            exact.or_else(|| combined(enumeration, number)).ok_or_else(refuse)?
        }
        Json::Array(items) if enumeration.flags => {
            let texts: Option<Vec<&str>> = items
                .iter()
                .map(|item| if let Json::String(text) = item { Some(text.as_str()) } else { None })
                .collect();
            joined(&mut texts.ok_or_else(refuse)?.into_iter())?
        }
        other => return Err(place.kind("the name of a member", other)),
    };
    Ok(Wire::String(text))
}

/// The members of an object, of which no two have names that PowerShell takes for the same.
fn members(
    value: &Json,
    place: Path<'_>,
    convert: impl Fn(&Json, Path<'_>) -> Result<Wire, ValueRefusal>,
) -> Result<Vec<(String, Wire)>, ValueRefusal> {
    let Json::Object(members) = value else { return Err(place.kind("an object", value)) };
    duplicates(members, place)?;
    members.iter().map(|(name, value)| Ok((name.clone(), convert(value, place.member(name))?))).collect()
}

fn duplicates(members: &[(String, Json)], place: Path<'_>) -> Result<(), ValueRefusal> {
    let mut seen = std::collections::BTreeSet::new();
    let twice = members.iter().find(|(name, _)| !seen.insert(name.to_lowercase()));
    twice.map_or(Ok(()), |(name, _)| {
        Err(place.member(name).refuse(Mismatch::Duplicate, "is there twice: names do not depend on case"))
    })
}

/// The members of an instance of a class, by their types and with the names of the declaration.
fn class_members(class: &Class, value: &Json, place: Path<'_>) -> Result<Vec<(String, Wire)>, ValueRefusal> {
    // A class within itself is not described again.
    if class.properties.is_empty() {
        return members(value, place, |value, place| anything(value, false, place));
    }
    let Json::Object(stated) = value else { return Err(place.kind("an object", value)) };
    duplicates(stated, place)?;
    let mut found = Vec::new();
    for (name, value) in stated {
        let place = place.member(name);
        let property = class.properties.iter().find(|property| same_name(&property.name, name));
        let unknown = || place.refuse(Mismatch::Unknown, format!("is not a property of '{}'", class.name));
        let property = property.ok_or_else(unknown)?;
        if *value != Json::Null || holds_null(&property.ty) {
            found.push((property.name.clone(), property_value(property, value, place)?));
        }
    }
    Ok(found)
}

/// The elements of an array; a single value is an array of one.
fn items(item: &Type, value: &Json, place: Path<'_>) -> Result<Wire, ValueRefusal> {
    let Json::Array(items) = value else { return Ok(Wire::Array(vec![convert(item, value, place)?])) };
    let one = |(index, value): (usize, &Json)| convert(item, value, place.item(index));
    items.iter().enumerate().map(one).collect::<Result<_, _>>().map(Wire::Array)
}

type TextForm = fn(&str) -> bool;

/// A type that is not one of [`Type`], as far as it is known.
enum Other {
    /// A list of such elements.
    List(Type),
    /// Nothing converts to it.
    Nothing,
    /// Written as text in that form, and never null.
    Value((&'static str, TextForm)),
    /// Written as text in that form.
    Text((&'static str, TextForm)),
    /// Written as text in a form that only PowerShell knows.
    Unknown,
}

impl Other {
    fn of(name: &str) -> Self {
        let name = name.to_lowercase();
        let short = name.rsplit_once("system.").map_or(name.as_str(), |(_, short)| short);
        let short = ["collections.", "generic.", "net.", "management.automation."]
            .iter()
            .fold(short, |short, space| short.strip_prefix(space).unwrap_or(short));
        if let Some((list, item)) = short.strip_suffix(']').and_then(|short| short.split_once('['))
            && ["list", "hashset", "ilist", "icollection", "ienumerable"].contains(&list)
        {
            return Self::List(element(item));
        }
        match short {
            "arraylist" | "ilist" | "array" => Self::List(Type::Object),
            _ if short.starts_with("dictionary[") || short.starts_with("sorteddictionary[") => Self::Nothing,
            "ipaddress" => Self::Text(("an IP address", form::is_ip_address)),
            "semver" | "semanticversion" => Self::Text(("a semantic version", form::is_semantic_version)),
            "dateonly" => Self::Value(("a date like 2026-01-02", form::is_date)),
            "timeonly" => Self::Value(("a time of day like 03:04:05", form::is_clock)),
            "dayofweek" => Self::Value(("a day of the week", form::is_day_of_week)),
            _ => Self::Unknown,
        }
    }
}

fn element(name: &str) -> Type {
    match name {
        "string" => Type::String,
        "int" | "int32" => Type::Integer { bits: 32, signed: true },
        "long" | "int64" => Type::Integer { bits: 64, signed: true },
        "bool" | "boolean" => Type::Boolean,
        "double" => Type::Double,
        _ => Type::Object,
    }
}

fn other(name: &str, value: &Json, place: Path<'_>) -> Result<Wire, ValueRefusal> {
    match (Other::of(name), value) {
        (Other::List(item), Json::Array(_)) => items(&item, value, place),
        (Other::List(_), _) => Err(place.kind("an array", value)),
        (Other::Nothing, _) => {
            Err(place.refuse(Mismatch::Unsupported, format!("cannot be set: nothing converts to '{name}'")))
        }
        (Other::Text(form) | Other::Value(form), Json::String(text)) => in_form(text, form, place),
        (Other::Unknown, Json::String(text)) => Ok(Wire::String(text.clone())),
        _ => Err(place.kind("a string", value)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn integers_are_exact_or_refused(value in any::<i128>(), shift in 0_u32..127, width in 0_u8..4, signed in any::<bool>()) {
            let (value, bits) = (value >> shift, 8 << width);
            let found = convert(&Type::Integer { bits, signed }, &Json::Number(value.to_string()), Path::PROPERTIES);
            let (least, most) = if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
            prop_assert_eq!(found.is_ok(), (least..=most).contains(&value));
            prop_assert!(found.is_err() || found == Ok(Wire::Integer(value.to_string())));
        }

        #[test]
        fn any_text_is_converted_or_refused(text in any::<String>()) {
            let types = [Type::DateTime, Type::DateTimeOffset, Type::TimeSpan, Type::Guid, Type::Version, Type::Decimal, Type::Double];
            for ty in types {
                let _ = convert(&ty, &Json::String(text.clone()), Path::PROPERTIES);
            }
            prop_assert_eq!(convert(&Type::String, &Json::String(text.clone()), Path::PROPERTIES), Ok(Wire::String(text)));
        }
    }
}
