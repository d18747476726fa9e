//! Types by their names, as far as tests need them.

use std::sync::Arc;

use stead_powershell_reader::types::{Class, Enumeration, Type};
use stead_powershell_reader::types::{Property, Rule};

/// A property `P` of a type.
pub(crate) fn property(ty: &str, rules: Vec<Rule>) -> Property {
    Property { written: Some(ty.to_owned()), rules, ..Property::new("P", declared(ty)) }
}

/// The types of the recorded classes.
pub(crate) fn declared(name: &str) -> Type {
    if let Some(item) = name.strip_suffix("[]") {
        return Type::Array(Box::new(declared(item)));
    }
    if let Some(inner) = name.strip_prefix("Nullable[") {
        return Type::Nullable(Box::new(declared(inner.strip_suffix(']').unwrap())));
    }
    let integer = |bits, signed| Type::Integer { bits, signed };
    let class = |name: &str, members: &[(&str, &str)]| {
        let member = |(name, ty): &(&str, &str)| Property { name: (*name).to_owned(), ..property(ty, Vec::new()) };
        Arc::new(Class { name: name.to_owned(), properties: members.iter().map(member).collect() })
    };
    match name {
        "sbyte" => integer(8, true),
        "byte" => integer(8, false),
        "short" => integer(16, true),
        "ushort" => integer(16, false),
        "int" => integer(32, true),
        "uint" => integer(32, false),
        "long" => integer(64, true),
        "ulong" => integer(64, false),
        "bigint" => Type::BigInteger,
        "float" => Type::Single,
        "double" => Type::Double,
        "decimal" => Type::Decimal,
        "bool" => Type::Boolean,
        "switch" => Type::Switch,
        "char" => Type::Char,
        "string" => Type::String,
        "datetime" => Type::DateTime,
        "DateTimeOffset" => Type::DateTimeOffset,
        "timespan" => Type::TimeSpan,
        "guid" => Type::Guid,
        "version" => Type::Version,
        "uri" => Type::Uri,
        "hashtable" | "System.Collections.IDictionary" => Type::Hashtable,
        "System.Collections.Specialized.OrderedDictionary" => Type::OrderedDictionary,
        "object" | "(none)" => Type::Object,
        "pscustomobject" | "psobject" => Type::PsObject,
        "array" => Type::Array(Box::new(Type::Object)),
        "pscredential" => Type::Credential,
        "securestring" => Type::SecureString,
        "scriptblock" => Type::ScriptBlock,
        "ciminstance" => Type::CimInstance(class("C", &[])),
        "Color" => enumeration(false, &["Red", "Green", "Blue"], &[0, 1, 2]),
        "Ensure" => enumeration(false, &["Absent", "Present"], &[0, 1]),
        "Perm" => enumeration(true, &["None", "Read", "Write", "Execute"], &[0, 1, 2, 4]),
        "Inner" => Type::Class(class("Inner", &[("Name", "string"), ("Count", "int")])),
        "Outer" => Type::Class(class("Outer", &[("Name", "string"), ("Inner", "Inner"), ("Many", "Inner[]")])),
        "NoDefault" => Type::Class(class("NoDefault", &[("Name", "string")])),
        other => Type::Other(other.to_owned()),
    }
}

fn enumeration(flags: bool, names: &[&str], values: &[i128]) -> Type {
    let members = names.iter().map(|name| (*name).to_owned()).zip(values.iter().copied()).collect();
    Type::Enumeration(Arc::new(Enumeration { name: "E".to_owned(), flags, members }))
}
