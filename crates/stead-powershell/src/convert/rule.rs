//! Values held against the rules of their properties.

use stead_powershell_reader::types::Rule;

use super::{Mismatch, Path, ValueRefusal, Wire, same_name};

/// Holds a rule against a value. Patterns are those of .NET: PowerShell holds against them itself when it assigns.
pub(super) fn check(rule: &Rule, wire: &Wire, place: Path<'_>) -> Result<(), ValueRefusal> {
    let each = |is_valid: &dyn Fn(&Wire) -> bool| match wire {
        Wire::Array(items) => items.iter().all(is_valid),
        one => is_valid(one),
    };
    let (holds, message) = match rule {
        Rule::OneOf(values) => {
            let is_one =
                |wire: &Wire| scalar(wire).is_some_and(|text| values.iter().any(|value| same_name(value, text)));
            (each(&is_one), format!("must be one of {}", values.join(", ")))
        }
        Rule::Range(least, greatest) => {
            (each(&|wire| in_range(wire, least, greatest)), format!("must be between {least} and {greatest}"))
        }
        Rule::Length(least, greatest) => {
            let units = |text: &str| text.encode_utf16().count() as u64;
            let fits = |wire: &Wire| scalar(wire).is_none_or(|text| (*least..=*greatest).contains(&units(text)));
            (each(&fits), format!("must have {least} to {greatest} characters"))
        }
        Rule::Count(least, greatest) => {
            let count = if let Wire::Array(items) = wire { items.len() as u64 } else { 0 };
            ((*least..=*greatest).contains(&count), format!("must have {least} to {greatest} elements"))
        }
        Rule::NotNull => (*wire != Wire::Null && each(&|wire| *wire != Wire::Null), "must not be null".to_owned()),
        Rule::NotEmpty => (!is_empty(wire) && each(&|wire| !is_empty(wire)), "must not be empty".to_owned()),
        Rule::MappedTo(_) | Rule::Pattern(_) => return Ok(()),
    };
    if holds { Ok(()) } else { Err(place.refuse(Mismatch::Rule, message)) }
}

fn scalar(wire: &Wire) -> Option<&str> {
    match wire {
        Wire::String(text) | Wire::Integer(text) | Wire::Double(text) | Wire::Decimal(text) => Some(text),
        _ => None,
    }
}

fn in_range(wire: &Wire, least: &str, greatest: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    let Some(bounds) = number(least).zip(number(greatest)) else { return true };
    *wire != Wire::Null && scalar(wire).and_then(number).is_none_or(|value| (bounds.0..=bounds.1).contains(&value))
}

fn is_empty(wire: &Wire) -> bool {
    match wire {
        Wire::Null => true,
        Wire::String(text) => text.is_empty(),
        Wire::Array(items) => items.is_empty(),
        Wire::Hashtable(members) | Wire::Ordered(members) => members.is_empty(),
        _ => false,
    }
}
